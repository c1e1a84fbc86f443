----------------------------- MODULE Transactions -----------------------------
(***************************************************************************)
(* What a transaction promises (KIP-98, KIP-890, KIP-1228): the formulas,  *)
(* each with what it means to a user. Below it: the steps of producers     *)
(* (TransactionProducer), of coordinators (TransactionCoordinator) and of  *)
(* the leaders of partitions (TransactionPartition), the variables         *)
(* (TransactionState), what consumers read (ReadCommitted).                *)
(*                                                                         *)
(*   protocol                       | Version2 Verification StrictMarkers  *)
(*   -------------------------------+------------------------------------- *)
(*   version 1, before Kafka 3.6    | FALSE    FALSE        FALSE          *)
(*   version 1, from 3.6 on         | FALSE    TRUE         FALSE          *)
(*   version 2 of 4.0 and 4.1       | TRUE     TRUE         FALSE          *)
(*   version 2 from 4.2 on          | TRUE     TRUE         TRUE           *)
(***************************************************************************)
EXTENDS TransactionProducer, TransactionPartition

Next == ProducerNext \/ CoordinatorNext \/ PartitionNext

\* Fair: what brokers do by themselves. Nobody is made to begin, end, elect or fail anything.
BrokersGoOn ==
  \/ \E c \in Coordinators, t \in Tenures : AcknowledgeAppend(c, t)
  \/ \E c \in Coordinators, p \in Partitions : AcknowledgeMarker(c, p)
  \/ \E c \in Coordinators : CompleteTransaction(c) \/ Load(c) \/ EndFence(c)
  \/ \E p \in Partitions : Replicate(p)
MarkersArrive == \E p \in Partitions, t \in Transactions, e \in Tenures : WriteMarker(p, t, e)
FairSpec == Init /\ [][Next]_vars /\ WF_vars(BrokersGoOn) /\ WF_vars(MarkersArrive)

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
TxnRecords ==
  [state : States, epoch : Epochs \union {NoEpoch}, parts : SUBSET Partitions,
   txn : {NoTransaction} \union Transactions, client : Clients \union {NoClient},
   request : {NoTransaction} \union Transactions]

TypeOK ==
  /\ leader \in Coordinators /\ tenure \in Tenures
  /\ \A i \in DOMAIN transactionLog : transactionLog[i] \in TxnRecords
  /\ replicated \in 1..Len(transactionLog)
  /\ \A c \in Coordinators :
       /\ coordinators[c].now \in TxnRecords
       /\ coordinators[c].pending \in States \union {"None", "Fence", "Complete"}
  /\ \A i \in Clients :
       clients[i].state \in {"Initializing", "Ready", "InTransaction", "Ending"}
  /\ \A p \in Partitions : highWatermark[p] \in 0..Len(log[p])
  /\ entry \in [Partitions -> Epochs \union {NoEpoch}]
  /\ begun \in {NoTransaction} \union Transactions

(***************************************************************************)
(* What an application relies on.                                          *)
(***************************************************************************)
DataOf(p, t) == {i \in DOMAIN log[p] : log[p][i].kind = "data" /\ log[p][i].txn = t}
OutcomesOf(t) ==
  UNION {{Outcome(log[p], i) : i \in DataOf(p, t)} : p \in Partitions}

\* A transaction is committed in all of its partitions or in none (S7).
AllOrNothing == \A t \in Transactions : ~({"Committed", "Aborted"} \subseteq OutcomesOf(t))

\* Nobody reads what its producer has not committed (S7, S19).
CommittedIsAsked ==
  \A t \in Transactions :
    "Committed" \in OutcomesOf(t) => [txn |-> t, commits |-> TRUE] \in asked

\* A producer that was told of its commit has lost nothing, ...
ToldCommittedIsKept ==
  \A end \in told : end.commits =>
    \A m \in end.batches :
      \E i \in CopiesIn(m.partition, DataRecord(m)) :
        i <= highWatermark[m.partition] /\ Outcome(log[m.partition], i) # "Aborted"

\* ... and one that was told of its abort has left nothing.
ToldAbortedIsDropped ==
  \A end \in told : ~end.commits => "Committed" \notin OutcomesOf(end.txn)

\* An answer is given once the decision cannot be lost (A5).
ToldIsDecided ==
  \A end \in told :
    \E i \in 1..replicated :
      /\ transactionLog[i].state \in {Prepare(end.commits), Complete(end.commits)}
      /\ transactionLog[i].txn = end.txn \/ transactionLog[i].request = end.txn

\* Not promised: that a consumer sees a transaction in all of its partitions at once, ...
VisibleAsAWhole == \A t \in Transactions : ~({"Open", "Committed"} \subseteq OutcomesOf(t))

\* ... and that whoever was told of a commit, reads it.
ToldIsVisible == \A end \in told : "Open" \notin OutcomesOf(end.txn)

\* What a read_committed consumer has got is not taken back (S17).
ReadBound(p) == highWatermark[p]
ReadOf(p) == ReadsCommitted(log[p], 0, ReadBound(p))
ReadIsKept == [][\A p \in Partitions : ReadOf(p) \subseteq ReadOf(p)']_vars

\* No consumer waits for ever: what is open in a partition belongs to a transaction that the
\* coordinator's log still has (S9, S10, L3).
NoneHangs ==
  \A p \in Partitions :
    Open(p) # {} =>
      LET last == LastRecord(transactionLog)
      IN  last.state \in Prepares \union {"Ongoing"} /\ p \in last.parts

\* Two instances of a producer never hold one epoch (S25).
Holders == {i \in Clients : clients[i].state # "Initializing"}
EpochHasOneOwner ==
  \A i, j \in Holders : i # j => clients[i].epoch # clients[j].epoch

(***************************************************************************)
(* What makes it so: partitions.                                           *)
(***************************************************************************)
\* A marker ends the transaction that it was written for (S8).
MarkersEndTheirOwn ==
  \A p \in Partitions : \A j \in Markers(p) : \A i \in EndedBy(log[p], j) :
    log[p][i].txn = log[p][j].txn

\* What a marker has ended is decided: the coordinator's log says so, for good (S8).
OutcomesAreDecided ==
  \A p \in Partitions : \A j \in Markers(p) :
    EndedBy(log[p], j) # {} =>
      \E i \in DOMAIN transactionLog :
        /\ transactionLog[i].state \in Prepares /\ p \in transactionLog[i].parts
        /\ transactionLog[i].txn = log[p][j].txn
        /\ MarkerKind(transactionLog[i].state) = log[p][j].kind

\* Transactions are not mixed (S11).
OneTransactionOpen ==
  \A p \in Partitions : \A i, j \in Open(p) : log[p][i].txn = log[p][j].txn

\* Behind a marker nothing comes of an older epoch; epochs never fall (S12, S13).
EpochsNeverFall ==
  \A p \in Partitions : \A i \in 2..Len(log[p]) : log[p][i - 1].epoch <= log[p][i].epoch

\* Nor do the epochs of the coordinators that markers come from (S14).
CoordinatorEpochsNeverFall ==
  \A p \in Partitions : \A i, j \in Markers(p) :
    i < j => log[p][i].coordinatorEpoch <= log[p][j].coordinatorEpoch

\* Whoever may append has the guard of the entry that is there (S22).
GuardsAreCurrent ==
  \A v \in verifying : entry[v.batch.partition] # NoEpoch

(***************************************************************************)
(* What makes it so: coordinators.                                         *)
(***************************************************************************)
Current(c) == Serves(c) /\ Leads(c)

\* Nothing is pending but a move that is legal (S3).
PendingIsLegal ==
  \A c \in Coordinators :
    \/ Pending(c) = "None"
    \/ Pending(c) = "Fence" /\ Now(c).state = "Ongoing"
    \/ Pending(c) = "Complete" /\ Now(c).state \in Prepares
    \/ <<Now(c).state, Pending(c)>> \in LegalMoves

\* One record is on its way at a time (S4).
OneRecordInFlight ==
  \A c \in Coordinators : Cardinality({call \in calls :
     call.broker = c /\ call.tenure = coordinators[c].tenure}) <= 1

\* A coordinator that nothing is pending at knows what its log says (S6).
MemoryIsTheLog ==
  \A c \in Coordinators : Current(c) /\ Idle(c) =>
    LET last == LastRecord(transactionLog) IN Now(c) \in {last, AsLoaded(last)}

\* The log moves by legal steps; a decision is followed by its completion only (A1, A4, A6).
LogMovesAreLegal ==
  \A i \in 2..Len(transactionLog) :
    <<transactionLog[i - 1].state, transactionLog[i].state>> \in LegalMoves

\* Epochs rise one by one (A2).
EpochsRiseByOne ==
  \A i \in 2..Len(transactionLog) :
    transactionLog[i].epoch - transactionLog[i - 1].epoch \in {0, 1}

\* While a transaction goes on partitions are only added to it (A3).
PartitionsAreKept ==
  \A i \in 2..Len(transactionLog) :
    transactionLog[i - 1].state = "Ongoing" =>
      transactionLog[i - 1].parts \subseteq transactionLog[i].parts

\* No partition refuses the markers of the coordinator that leads: it would give up (L2).
MarkersAreAccepted ==
  \A c \in Coordinators : Current(c) =>
    \A m \in QueuedFor(Now(c), coordinators[c].tenure) :
      CopiesIn(m.partition, MarkerRecord(m)) = {} => IsValid(m.partition, m)

\* What is decided is completed, if the brokers go on and are elected no more (L2).
IsDeciding == LastRecord(transactionLog).state \in Prepares
EveryEndCompletes == []<>(~IsDeciding)

===============================================================================
