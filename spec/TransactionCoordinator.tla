------------------------ MODULE TransactionCoordinator ------------------------
(***************************************************************************)
(* The steps of the transaction coordinators. Apart from each other are an *)
(* append and its call-back; the decision and its markers; a marker and    *)
(* its answer; an election and the load that it begins. A coordinator that *)
(* was replaced goes on answering what needs no append.                    *)
(*                                                                         *)
(* Kafka: TransactionCoordinator, TransactionStateManager,                 *)
(* TransactionMetadata, TransactionMarkerChannelManager.                   *)
(***************************************************************************)
EXTENDS TransactionState

Pending(c) == coordinators[c].pending
Idle(c) == Pending(c) = "None"
MayWrite(c) == Serves(c) /\ Leads(c)

\* TransactionStateManager.appendTransactionToLog: one step from the lock to the local log.
Appends(c, record) ==
  /\ transactionLog' = Append(transactionLog, record)
  /\ calls' = calls \union {[broker |-> c, tenure |-> tenure, record |-> record,
                             at |-> Len(transactionLog) + 1]}
  /\ UNCHANGED <<leader, tenure, replicated, appendFailures>>

OnlyWrites(c, record) ==
  /\ Appends(c, record)
  /\ coordinators' = [coordinators EXCEPT ![c].pending = record.state]
  /\ UNCHANGED <<requests, clients, partitions, applications>>

(***************************************************************************)
(* InitProducerId, and what it does to an open transaction. Time-outs go   *)
(* the same way. The fence takes two sections under the lock.              *)
(***************************************************************************)
IsOver(state) == state = "Empty" \/ state \in Completes
SomeoneInitializes == \E i \in Clients : clients[i].state = "Initializing"
HasEpochLeft(c) == Now(c).epoch < MaxEpoch
NextEpoch(c) == Now(c).epoch + 1

HandleInitProducerId(c, i) ==
  /\ MayWrite(c) /\ Idle(c) /\ clients[i].state = "Initializing"
  /\ IsOver(Now(c).state) /\ HasEpochLeft(c)
  /\ OnlyWrites(c, TxnRecord("Empty", NextEpoch(c), {}, NoTransaction, i, NoTransaction))

\* TransactionMetadata.prepareFenceProducerEpoch.
BeginFence(c) ==
  /\ MayWrite(c) /\ Idle(c) /\ Now(c).state = "Ongoing"
  /\ TimeOuts \/ SomeoneInitializes
  /\ HasEpochLeft(c)
  /\ coordinators' = [coordinators EXCEPT ![c].pending = "Fence"]
  /\ UNCHANGED <<leader, tenure, transactionLog, replicated, calls, appendFailures>>
  /\ UNCHANGED <<requests, clients, partitions, applications>>

FenceEpoch(epoch) == epoch + 1
\* In version 1 the epoch counts in memory before its record is acknowledged.
FencedInMemory(record) == IF Version2 THEN record ELSE [record EXCEPT !.epoch = FenceEpoch(@)]
EndFence(c) ==
  /\ MayWrite(c) /\ Pending(c) = "Fence"
  /\ LET record == TxnRecord("PrepareAbort", FenceEpoch(Now(c).epoch), Now(c).parts, Now(c).txn,
                             NoClient, NoTransaction)
     IN  /\ Appends(c, record)
         /\ coordinators' = [coordinators EXCEPT ![c].pending = record.state,
                                                 ![c].now = FencedInMemory(@)]
  /\ UNCHANGED <<requests, clients, partitions, applications>>

(***************************************************************************)
(* AddPartitionsToTxn: of a client (version 1), or of a partition's leader *)
(* (version 2), which is answered by Verify.                               *)
(***************************************************************************)
MayBeginHere(c) == Idle(c) /\ (IsOver(Now(c).state) \/ Now(c).state = "Ongoing")

WithPartition(parts, p) == parts \union {p}
Adds(c, epoch, p, txn) ==
  /\ MayWrite(c) /\ MayBeginHere(c) /\ Now(c).epoch = epoch
  /\ LET goesOn == Now(c).state = "Ongoing" IN
       /\ ~(goesOn /\ p \in Now(c).parts)
       /\ OnlyWrites(c, TxnRecord("Ongoing", epoch,
                                  IF goesOn THEN WithPartition(Now(c).parts, p) ELSE {p},
                                  IF goesOn THEN Now(c).txn ELSE txn,
                                  NoClient, NoTransaction))

AddPartitionOfClient(c, i, p) ==
  /\ ~Version2 /\ clients[i].state = "InTransaction" /\ p \notin clients[i].added
  /\ Adds(c, clients[i].epoch, p, clients[i].txn)

AddPartitionOfLeader(c, p) ==
  /\ Version2
  /\ \E v \in verifying : v.batch.partition = p /\ ~v.isVerified
                            /\ Adds(c, v.batch.epoch, p, v.batch.txn)

\* handleVerifyPartitionsInTransaction: whatever is pending (KAFKA-14904).
Verify(c, p) ==
  /\ AnswersUnwritten(c) /\ Now(c).state = "Ongoing" /\ p \in Now(c).parts
  /\ \E v \in verifying :
       /\ v.batch.partition = p /\ v.batch.epoch = Now(c).epoch /\ ~v.isVerified
       /\ verifying' = (verifying \ {v}) \union {[v EXCEPT !.isVerified = TRUE]}
  /\ UNCHANGED <<coordination, requests, clients, applications>>
  /\ UNCHANGED <<log, highWatermark, entry, leadership>>

(***************************************************************************)
(* EndTxn. In version 1 nothing ties it to one transaction (KAFKA-17754).  *)
(***************************************************************************)
\* A fence that has begun leaves the transaction to a client that aborts it, not to one that commits.
MayEnd(c, m) == Idle(c) \/ (Pending(c) = "Fence" /\ ~m.commits)
EpochOfEnd(epoch) == IF Version2 THEN epoch + 1 ELSE epoch
\* A client of version 2 does not know whether its batch has added the partition: it may abort what
\* is empty here, and the new epoch fences the batch.
MayEndEmpty(m) == Version2 /\ ~m.commits
EndsHere(c, m) ==
  /\ m.epoch = Now(c).epoch
  /\ Now(c).state = "Ongoing" \/ (IsOver(Now(c).state) /\ MayEndEmpty(m))

HandleEndTxn(c, t, commits) ==
  /\ MayWrite(c)
  /\ \E m \in requests :
       /\ m.type = "EndTxn" /\ m.txn = t /\ m.commits = commits
       /\ MayEnd(c, m) /\ EndsHere(c, m) /\ (EpochOfEnd(m.epoch) # m.epoch => HasEpochLeft(c))
       /\ OnlyWrites(c, TxnRecord(Prepare(commits), EpochOfEnd(m.epoch),
                                  IF Now(c).state = "Ongoing" THEN Now(c).parts ELSE {},
                                  IF Now(c).state = "Ongoing" THEN Now(c).txn ELSE NoTransaction,
                                  NoClient, t))

(***************************************************************************)
(* The call-back of an append. A decision is answered and its markers are  *)
(* queued.                                                                 *)
(***************************************************************************)
MarkersFor(record, coordinatorEpoch) ==
  {Marker(p, MarkerKind(record.state), record.epoch, coordinatorEpoch, record.txn) :
     p \in record.parts}
QueuedFor(record, coordinatorEpoch) ==
  IF record.state \in Prepares
  THEN {m \in MarkersFor(record, coordinatorEpoch) : HasLeader(m.partition)} ELSE {}
\* TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue: a partition that was deleted needs no
\* marker. Kafka 4.3 and 4.4 take one without a leader for deleted (KAFKA-20734).
TakenForDeleted == {}
LeftToMark(record) ==
  IF record.state \in Prepares THEN [record EXCEPT !.parts = @ \ TakenForDeleted] ELSE record
PendingAfter(record) == IF record.state \in Prepares THEN "Complete" ELSE "None"

OfThisTenure(c, call) == call.tenure = coordinators[c].tenure
\* The leader still has the record that the call-back is about.
IsInLog(call) ==
  call.at <= Len(transactionLog) /\ transactionLog[call.at] = call.record

\* TransactionMetadata.completeTransitionTo: memory is what was written.
InMemory(c, record) == record
AcknowledgeAppend(c, t) ==
  /\ MayWrite(c)
  /\ \E call \in calls :
       /\ call.broker = c /\ call.tenure = t /\ OfThisTenure(c, call) /\ IsInLog(call)
       /\ calls' = calls \ {call}
       /\ replicated' = Greater(replicated, call.at)
       /\ coordinators' = [coordinators EXCEPT ![c].now = LeftToMark(InMemory(c, call.record)),
                                               ![c].pending = PendingAfter(call.record)]
       /\ requests' = requests \union QueuedFor(call.record, coordinators[c].tenure)
  /\ UNCHANGED <<leader, tenure, transactionLog, clients, partitions, applications,
                 appendFailures>>

\* The append timed out, or too few replicas took part. The record stays, and whoever loads the log
\* finds it. The append of a completion is repeated for ever.
FailAppend(c) ==
  /\ appendFailures < MaxAppendFailures /\ MayWrite(c)
  /\ appendFailures' = appendFailures + 1
  /\ \E call \in calls :
       /\ call.broker = c /\ OfThisTenure(c, call) /\ call.record.state \notin Completes
       /\ calls' = calls \ {call}
  /\ coordinators' = [coordinators EXCEPT ![c].pending = "None"]
  /\ UNCHANGED <<leader, tenure, transactionLog, replicated, requests, clients, partitions,
                 applications>>

(***************************************************************************)
(* Markers that were answered, and completion.                             *)
(***************************************************************************)
IsMarked(c, p) ==
  \E m \in MarkersFor(Now(c), coordinators[c].tenure) :
    /\ m.partition = p
    /\ \E i \in CopiesIn(p, MarkerRecord(m)) : i <= highWatermark[p]

AcknowledgeMarker(c, p) ==
  /\ MayWrite(c) /\ Now(c).state \in Prepares /\ p \in Now(c).parts
  /\ IsMarked(c, p)
  /\ coordinators' = [coordinators EXCEPT ![c].now.parts = @ \ {p}]
  /\ requests' = requests \ Gone({m \in MarkersFor(Now(c), coordinators[c].tenure) :
                                    m.partition = p})
  /\ UNCHANGED <<leader, tenure, transactionLog, replicated, calls, appendFailures>>
  /\ UNCHANGED <<clients, partitions, applications>>

MayComplete(c) == Now(c).parts = {}
CompleteTransaction(c) ==
  /\ MayWrite(c) /\ Pending(c) = "Complete" /\ Now(c).state \in Prepares
  /\ MayComplete(c)
  /\ OnlyWrites(c, TxnRecord(Complete(Commits(Now(c).state)), Now(c).epoch, {}, Now(c).txn,
                             NoClient, Now(c).request))

(***************************************************************************)
(* Elections. The log that the new leader has holds all that is replicated *)
(* and perhaps more. It is read to its end, records above the high         *)
(* watermark too.                                                          *)
(***************************************************************************)
Elect(c, end) ==
  /\ tenure < MaxTenures
  /\ replicated <= end /\ end <= Len(transactionLog)
  /\ leader' = c /\ tenure' = tenure + 1
  /\ transactionLog' = SubSeq(transactionLog, 1, end)
  /\ coordinators' = [coordinators EXCEPT ![c] = [Absent EXCEPT !.tenure = tenure + 1]]
  /\ requests' = requests \ Gone({m \in requests : m.type = "Marker"})
  /\ UNCHANGED <<replicated, calls, clients, partitions, applications, appendFailures>>

LoadEnd == Len(transactionLog)
\* Whoever loads a decision goes on with it.
GoesOn(record) == record.state \in Prepares

Load(c) ==
  /\ Leads(c) /\ ~Serves(c)
  /\ LET record == LastRecord(SubSeq(transactionLog, 1, LoadEnd)) IN
       /\ coordinators' = [coordinators EXCEPT ![c].loaded = TRUE, ![c].now = LeftToMark(AsLoaded(record)),
                             ![c].pending = IF GoesOn(record) THEN "Complete" ELSE "None"]
       /\ requests' = IF GoesOn(record) THEN requests \union QueuedFor(record, tenure)
                      ELSE requests
  /\ replicated' = IF LoadIsReplicated THEN Len(transactionLog) ELSE replicated
  /\ UNCHANGED <<leader, tenure, transactionLog, calls, clients, partitions, applications,
                 appendFailures>>

Lengths == 1..(6 * MaxTransactions + 2)

CoordinatorNext ==
  \/ \E c \in Coordinators, i \in Clients : HandleInitProducerId(c, i)
  \/ \E c \in Coordinators : BeginFence(c)
  \/ \E c \in Coordinators : EndFence(c)
  \/ \E c \in Coordinators, i \in Clients, p \in Partitions : AddPartitionOfClient(c, i, p)
  \/ \E c \in Coordinators, p \in Partitions : AddPartitionOfLeader(c, p)
  \/ \E c \in Coordinators, p \in Partitions : Verify(c, p)
  \/ \E c \in Coordinators, t \in Transactions, commits \in BOOLEAN : HandleEndTxn(c, t, commits)
  \/ \E c \in Coordinators, t \in Tenures : AcknowledgeAppend(c, t)
  \/ \E c \in Coordinators : FailAppend(c)
  \/ \E c \in Coordinators, p \in Partitions : AcknowledgeMarker(c, p)
  \/ \E c \in Coordinators : CompleteTransaction(c)
  \/ \E c \in Coordinators, end \in Lengths : Elect(c, end)
  \/ \E c \in Coordinators : Load(c)
===============================================================================
