------------------------- MODULE TransactionProducer -------------------------
(***************************************************************************)
(* The steps of a producer's instances. An answer is taken where the       *)
(* coordinator that gives it still stands by it: who takes it later has    *)
(* been in the same state before.                                          *)
(*                                                                         *)
(* Kafka: TransactionManager of the Java client.                           *)
(***************************************************************************)
EXTENDS TransactionState

InTransaction(i) == clients[i].state = "InTransaction"

\* The answer to InitProducerId.
TakeProducerId(i, c) ==
  /\ clients[i].state = "Initializing"
  /\ Serves(c) /\ Now(c).state = "Empty" /\ Now(c).client = i
  /\ Now(c).epoch > clients[i].epoch
  /\ clients' = [clients EXCEPT ![i].state = "Ready", ![i].epoch = Now(c).epoch]
  /\ UNCHANGED <<coordination, requests, partitions, applications>>

BeginTransaction(i) ==
  /\ clients[i].state = "Ready" /\ begun < MaxTransactions
  /\ begun' = begun + 1
  /\ clients' = [clients EXCEPT ![i].state = "InTransaction", ![i].txn = begun + 1]
  /\ UNCHANGED <<coordination, requests, partitions, asked, told>>

\* The answer to AddPartitionsToTxn: NONE (version 1).
TakeAdded(i, c, p) ==
  /\ ~Version2 /\ InTransaction(i) /\ p \notin clients[i].added
  /\ AnswersUnwritten(c) /\ Now(c).state = "Ongoing" /\ Now(c).epoch = clients[i].epoch
  /\ p \in Now(c).parts
  /\ clients' = [clients EXCEPT ![i].added = @ \union {p}]
  /\ UNCHANGED <<coordination, requests, partitions, applications>>

MaySend(i, p) == Version2 \/ p \in clients[i].added
NextSequence(i, p) == Cardinality({m \in clients[i].sent : m.partition = p})
AllSent == {m \in requests : m.type = "Produce"}
              \union UNION {clients[i].sent : i \in Clients}
              \union UNION {t.batches : t \in told}

SendBatch(i, p) ==
  /\ InTransaction(i) /\ MaySend(i, p) /\ Cardinality(AllSent) < MaxBatches
  /\ LET m == Batch(p, clients[i].epoch, NextSequence(i, p), clients[i].txn) IN
       /\ clients' = [clients EXCEPT ![i].sent = @ \union {m}]
       /\ requests' = requests \union {m}
  /\ UNCHANGED <<coordination, partitions, applications>>

\* EndTxn waits until all batches are answered; a transaction that added nothing sends none. The
\* application may abort while batches are on their way: their time is over.
MayCommit(i) == \A m \in SentIn(i) : IsAcknowledged(m)
HasAdded(i) == IF Version2 THEN SentIn(i) # {} ELSE clients[i].added # {}

EndTransaction(i, commits) ==
  /\ InTransaction(i) /\ HasAdded(i)
  /\ commits => MayCommit(i)
  /\ clients' = [clients EXCEPT ![i].state = "Ending", ![i].commits = commits]
  /\ requests' = (requests \ Gone(clients[i].sent))
                   \union {EndTxn(clients[i].epoch, commits, clients[i].txn)}
  /\ asked' = asked \union {[txn |-> clients[i].txn, commits |-> commits]}
  /\ UNCHANGED <<coordination, partitions, begun, told>>

\* The answer to EndTxn: NONE. The answer of the record that this request led to comes with the
\* decision; the same request sent again finds the decision of its kind, complete and at rest.
IsSameEnd(i, record) ==
  /\ record.state \in {Prepare(clients[i].commits), Complete(clients[i].commits)}
  /\ IF Version2 THEN record.epoch = clients[i].epoch + 1
     ELSE record.epoch = clients[i].epoch
  /\ record.state \in Prepares => record.request = clients[i].txn
IsAtRest(c) == coordinators[c].pending = "None"
IsAnswered(i, c) ==
  IsSameEnd(i, Now(c)) /\ (IsAtRest(c) \/ Now(c).request = clients[i].txn)

\* A batch whose fate is unknown must not reach the next transaction: version 1 asks for a new epoch
\* (KIP-360), version 2 has one.
NeedsNewEpoch(i) == ~MayCommit(i)
AfterEnd(i) ==
  LET before == clients[i]
  IN  IF Version2 THEN Client("Ready", before.epoch + 1, NoTransaction, {}, {}, FALSE)
      ELSE IF NeedsNewEpoch(i)
      THEN Client("Initializing", before.epoch, NoTransaction, {}, {}, FALSE)
      ELSE Client("Ready", before.epoch, NoTransaction, {}, before.sent, FALSE)

TakeEnd(i, c) ==
  /\ clients[i].state = "Ending"
  /\ AnswersUnwritten(c) /\ IsAnswered(i, c)
  /\ clients' = [clients EXCEPT ![i] = AfterEnd(i)]
  /\ requests' = requests \ Gone({EndTxn(clients[i].epoch, clients[i].commits, clients[i].txn)})
  /\ told' = told \union {[txn |-> clients[i].txn, commits |-> clients[i].commits,
                           batches |-> SentIn(i)]}
  /\ UNCHANGED <<coordination, partitions, begun, asked>>

ProducerNext ==
  \/ \E i \in Clients, c \in Coordinators : TakeProducerId(i, c)
  \/ \E i \in Clients : BeginTransaction(i)
  \/ \E i \in Clients, c \in Coordinators, p \in Partitions : TakeAdded(i, c, p)
  \/ \E i \in Clients, p \in Partitions : SendBatch(i, p)
  \/ \E i \in Clients, commits \in BOOLEAN : EndTransaction(i, commits)
  \/ \E i \in Clients, c \in Coordinators : TakeEnd(i, c)
===============================================================================
