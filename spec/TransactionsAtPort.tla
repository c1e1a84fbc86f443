-------------------------- MODULE TransactionsAtPort --------------------------
(***************************************************************************)
(* Transactions, as far as a broker's port lets them be driven and seen.   *)
(* Nobody outside holds a broker back: what it does by itself, it does at  *)
(* once. So a client's step is taken while nothing is under way (`Quiet`), *)
(* and until then only the broker goes on.                                 *)
(*                                                                         *)
(* A request that comes too late, or once more, is a step of its own here, *)
(* which changes nothing: `Refuse` is answered with an error, `Repeat`     *)
(* without one.                                                            *)
(*                                                                         *)
(*   a step of Transactions             | here                             *)
(*   -----------------------------------+--------------------------------- *)
(*   of a producer's instance           | the same, while nothing is under *)
(*                                      | way                              *)
(*   HandleInitProducerId, BeginFence,  | the same: a request that comes   *)
(*   AddPartitionOfClient, HandleEndTxn |                                  *)
(*   StartVerification, AppendBatch     | Produce, TxnOffsetCommit         *)
(*   all others                         | the broker goes on               *)
(*                                                                         *)
(* An adversary sends what no client sends (`Forged`): it is refused, and  *)
(* nothing changes.                                                        *)
(***************************************************************************)
EXTENDS Transactions

CONSTANT Forged  \* the kinds of requests that an adversary sends

(***************************************************************************)
(* Functions of the logs: what is seen of them at a port.                  *)
(*   reads[p]      Fetch and ListOffsets with read_committed; of an        *)
(*                 offsets partition what OffsetFetch gives                *)
(*   producers[p]  DescribeProducers                                       *)
(* And what a request that had no effect leaves behind:                    *)
(*   lowest[p]     VerificationStateEntry.lowestSequence, of an entry of   *)
(*                 the present epoch; NoSequence if there is none          *)
(***************************************************************************)
VARIABLES reads, producers, lowest
portVars == <<vars, reads, producers, lowest>>

NoSequence == MaxBatches

Named(record) == <<record.txn, record.sequence>>
LatestOf(places) == IF places = {} THEN {} ELSE {Last(places)}
ReadFrom(p, records, hw) ==
  LET stable == LastStableOffset(records, 0, hw)
      committed == CommittedBelow(records, 0, stable)
      all == {i \in 1..hw : ~IsMarker(records[i]) /\ Outcome(records, i) = "Committed"}
  IN  IF p \in OffsetsPartitions
      THEN [stable |-> IF OpenIn(records, Producer) = {} THEN 1 ELSE 0,
            records |-> {Named(records[i]) : i \in LatestOf(all)}]
      ELSE [stable |-> stable, records |-> {Named(records[i]) : i \in committed}]

EpochIn(records) == IF records = <<>> THEN NoEpoch ELSE records[Len(records)].epoch
ProducerIn(records) ==
  LET epoch == EpochIn(records)
      markers == MarkersOf(records, Producer)
      own == {i \in DOMAIN records : records[i].kind = "data" /\ records[i].epoch = epoch}
  IN  [epoch |-> epoch,
       sequence |-> IF own = {} THEN -1 ELSE records[Last(own)].sequence,
       coordinatorEpoch |-> IF markers = {} THEN 0 ELSE records[Last(markers)].coordinatorEpoch,
       start |-> First(OpenIn(records, Producer)) - 1]

Seen ==
  /\ reads' = [p \in Partitions |-> ReadFrom(p, log'[p], highWatermark'[p])]
  /\ producers' = [p \in Partitions |-> ProducerIn(log'[p])]
Shown == Seen /\ UNCHANGED lowest
\* What is appended clears the entry.
ShownWithoutEntry(p) == Seen /\ lowest' = [lowest EXCEPT ![p] = NoSequence]

PortInit ==
  /\ Init
  /\ reads = [p \in Partitions |-> ReadFrom(p, <<>>, 0)]
  /\ producers = [p \in Partitions |-> ProducerIn(<<>>)]
  /\ lowest = [p \in Partitions |-> NoSequence]

Quiet == verifying = {} /\ \A c \in Coordinators : Idle(c)
Nothing == UNCHANGED vars /\ Shown

(***************************************************************************)
(* Instances of the producer.                                              *)
(***************************************************************************)
TakesProducerId(i, c) == Quiet /\ TakeProducerId(i, c) /\ Shown
Begins(i) == Quiet /\ BeginTransaction(i) /\ Shown
TakesAdded(i, c, p) == Quiet /\ TakeAdded(i, c, p) /\ Shown
Sends(i, p) == Quiet /\ SendBatch(i, p) /\ Shown
Ends(i, commits) == Quiet /\ EndTransaction(i, commits) /\ Shown
TakesEnd(i, c) == Quiet /\ TakeEnd(i, c) /\ Shown

(***************************************************************************)
(* Requests that have an effect.                                           *)
(***************************************************************************)
RequestProducerId(c, i) == Quiet /\ HandleInitProducerId(c, i) /\ Shown
RequestFence(c) == Quiet /\ BeginFence(c) /\ Shown
RequestPartition(c, i, p) == Quiet /\ AddPartitionOfClient(c, i, p) /\ Shown
RequestEnd(c, t, commits) == Quiet /\ HandleEndTxn(c, t, commits) /\ Shown

\* The coordinator will let the batch in.
IsKnownAt(c, p, m) ==
  /\ Now(c).epoch = m.epoch
  /\ Version2 \/ (Now(c).state = "Ongoing" /\ p \in Now(c).parts)
WillBeVerified(p, m) == \E c \in Coordinators : IsKnownAt(c, p, m)

\* A batch that was let in and not appended keeps later ones out, so that none overtakes it
\* (KAFKA-14920). In version 1 it may be one of the transaction before.
IsBlocked(p, m) == m.sequence > lowest[p]

ProduceFirst(p, t, s) ==
  /\ Quiet
  /\ \E m \in BatchesFor(p, t, s) : WillBeVerified(p, m) /\ ~IsBlocked(p, m)
  /\ StartVerification(p, t, s) /\ Shown
Produce(p, t, s) == Quiet /\ AppendBatch(p, t, s) /\ ShownWithoutEntry(p)

(***************************************************************************)
(* Requests that come too late, or once more.                              *)
(***************************************************************************)
EndsFor(t, commits) ==
  {m \in requests : m.type = "EndTxn" /\ m.txn = t /\ m.commits = commits}
IsEndedBy(c, m) ==
  /\ Now(c).state = Complete(m.commits)
  /\ Now(c).epoch = EpochOfEnd(m.epoch)

RepeatEnd(c, t, commits) ==
  /\ Quiet /\ \E m \in EndsFor(t, commits) : ~EndsHere(c, m) /\ IsEndedBy(c, m)
  /\ Nothing
RefuseEnd(c, t, commits) ==
  /\ Quiet /\ \E m \in EndsFor(t, commits) : ~EndsHere(c, m) /\ ~IsEndedBy(c, m)
  /\ Nothing

\* A zombie: another instance has got a later epoch.
RefuseAddPartition(c, i, p) ==
  /\ Quiet /\ ~Version2 /\ InTransaction(i) /\ p \notin clients[i].added
  /\ Now(c).epoch # clients[i].epoch
  /\ Nothing

\* A batch of this epoch is known by its sequence.
IsDuplicate(p, m) ==
  /\ p \notin OffsetsPartitions /\ m.epoch = StoredEpoch(p) /\ CopiesIn(p, DataRecord(m)) # {}
IsRefused(p, m) ==
  \/ ~EpochIsCurrent(p, m)
  \/ NeedsVerification(p, m) /\ ~WillBeVerified(p, m)

\* UnifiedLog.maybeStartTransactionVerification, for a batch that is not appended.
LeavesEntryOf(p, m) ==
  /\ UNCHANGED vars /\ Seen
  /\ lowest' = [lowest EXCEPT ![p] =
       IF EpochIsCurrent(p, m) /\ NeedsVerification(p, m) /\ p \notin OffsetsPartitions
       THEN Lesser(@, m.sequence) ELSE @]

RepeatBatch(p, t, s) ==
  /\ Quiet
  /\ \E m \in BatchesFor(p, t, s) :
       /\ IsDuplicate(p, m) /\ ~IsRefused(p, m)
       /\ LeavesEntryOf(p, m)
RefuseBatch(p, t, s) ==
  /\ Quiet /\ \E m \in BatchesFor(p, t, s) : IsRefused(p, m) /\ LeavesEntryOf(p, m)
\* Kafka's choice. A broker that takes the batch harms nobody: it overrides this (docs/wire.md).
TakesBlocked == FALSE
ProduceBlocked(p, t, s) ==
  /\ Quiet
  /\ \E m \in BatchesFor(p, t, s) :
       /\ NeedsVerification(p, m) /\ WillBeVerified(p, m) /\ IsAppendable(p, m) /\ IsBlocked(p, m)
       /\ IF TakesBlocked
          THEN /\ WithAppended(p, DataRecord(m)) /\ Clears(p) /\ UNCHANGED leadership
               /\ ShownWithoutEntry(p)
          ELSE UNCHANGED partitions /\ Shown
  /\ UNCHANGED <<coordination, requests, clients, applications>>

SentMarkers(p, t, e) ==
  {m \in requests : m.type = "Marker" /\ m.partition = p /\ m.txn = t /\ m.coordinatorEpoch = e}
RepeatMarker(p, t, e) == Quiet /\ WriteMarker(p, t, e) /\ ShownWithoutEntry(p)
RefuseMarker(p, t, e) ==
  /\ Quiet /\ \E m \in SentMarkers(p, t, e) : ~IsValid(p, m)
  /\ Nothing

(***************************************************************************)
(* Requests that no client sends. Each is right but for what its name      *)
(* says: a wrong producer id, an epoch from the future, a field that is    *)
(* missing, a marker by hand.                                              *)
(*                                                                         *)
(*   EndTxn           TransactionCoordinator.endTransaction, and           *)
(*                    endTransactionWithTV1                                *)
(*   InitProducerId   KafkaApis.handleInitProducerIdRequest, then          *)
(*                    TransactionCoordinator.prepareInitProducerIdTransit; *)
(*                    an open transaction is aborted whatever the epoch is *)
(*   AddPartitions    handleAddPartitionsToTransaction; of clients in      *)
(*                    version 1 only                                       *)
(*   Batch            KafkaApis.handleProduceRequest, the coordinator's    *)
(*                    verification, LogValidator.validateBatch             *)
(*   Marker           ProducerAppendInfo.checkCoordinatorEpoch             *)
(***************************************************************************)
ForgedError(kind) ==
  CASE kind \in {"EndOfAnotherId", "AddPartitionsOfAnotherId", "BatchOfAnotherId"}
         -> "INVALID_PRODUCER_ID_MAPPING"
    [] kind \in {"EndOfLaterEpoch", "AddPartitionsOfLaterEpoch",
                 "InitProducerIdOfAnotherId", "InitProducerIdOfLaterEpoch"}
         -> "PRODUCER_FENCED"
    [] kind = "InitProducerIdWithoutEpoch" -> "INVALID_REQUEST"
    [] kind = "BatchWithoutTransactionalId" -> "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    [] kind \in {"BatchWithoutSequence", "BatchOfMarkers"} -> "INVALID_RECORD"
    [] kind = "MarkerOfOldCoordinator" -> "TRANSACTION_COORDINATOR_FENCED"

CanBeForged(c, kind) ==
  /\ kind \in {"AddPartitionsOfAnotherId", "AddPartitionsOfLaterEpoch"} => ~Version2
  /\ kind = "InitProducerIdOfLaterEpoch" => Now(c).state # "Ongoing"
ToCoordinator ==
  {"EndOfAnotherId", "EndOfLaterEpoch", "AddPartitionsOfAnotherId", "AddPartitionsOfLaterEpoch",
   "InitProducerIdOfAnotherId", "InitProducerIdOfLaterEpoch", "InitProducerIdWithoutEpoch"}
RefuseForged(c, kind, error) ==
  /\ Quiet /\ kind \in Forged \intersect ToCoordinator /\ CanBeForged(c, kind)
  /\ error = ForgedError(kind)
  /\ Nothing

\* Where the transaction is open the coordinator is not asked: the leader alone refuses.
IsUnderWayAt(p) ==
  /\ OpenIn(log[p], Producer) # {}
  /\ \E c \in Coordinators : Now(c).epoch = StoredEpoch(p) /\ Now(c).state = "Ongoing"
ToLeader ==
  {"BatchOfAnotherId", "BatchWithoutTransactionalId", "BatchWithoutSequence", "BatchOfMarkers"}
ByHand == "MarkerOfOldCoordinator"
ForgedErrors == {ForgedError(kind) : kind \in ToCoordinator \union ToLeader \union {ByHand}}
IsForgedAt(p, kind, error) ==
  /\ Quiet /\ p \notin OffsetsPartitions /\ kind \in Forged
  /\ kind \in {"BatchWithoutSequence", "BatchOfMarkers"} => IsUnderWayAt(p)
  /\ error = ForgedError(kind)

\* A leader that takes what it must refuse: it has the record, and nobody has decided it.
IsTaken(kind) == FALSE
ForgedRecord(c, p, kind) ==
  [kind |-> IF kind = "BatchOfMarkers" THEN "Committed" ELSE "data",
   producer |-> Producer, epoch |-> Now(c).epoch, coordinatorEpoch |-> 0,
   sequence |-> IF kind = "BatchOfMarkers" THEN -1 ELSE 0,
   txn |-> MaxTransactions]
RefuseForgedBatch(p, kind, error) ==
  /\ kind \in ToLeader /\ IsForgedAt(p, kind, error)
  /\ IF IsTaken(kind)
     THEN /\ \E c \in Coordinators : WithAppended(p, ForgedRecord(c, p, kind))
          /\ UNCHANGED <<entry, verifying, leadership>>
     ELSE UNCHANGED partitions
  /\ UNCHANGED <<coordination, requests, clients, applications>> /\ Shown
RefuseForgedMarker(p, kind, error) ==
  /\ kind = ByHand /\ IsForgedAt(p, kind, error)
  /\ MarkersOf(log[p], Producer) # {}
  /\ Nothing

(***************************************************************************)
(* The broker goes on.                                                     *)
(***************************************************************************)
BrokerWrites(p, t, e) ==
  /\ ~Quiet /\ \E m \in SentMarkers(p, t, e) : CopiesIn(p, MarkerRecord(m)) = {}
  /\ WriteMarker(p, t, e) /\ ShownWithoutEntry(p)
BrokerAppends(p, t, s) ==
  /\ \E v \in verifying : v.isVerified /\ v.batch \in BatchesFor(p, t, s)
  /\ AppendBatch(p, t, s) /\ ShownWithoutEntry(p)
BrokerAdds(c, p) == ~Quiet /\ AddPartitionOfLeader(c, p) /\ Shown
BrokerVerifies(c, p) == ~Quiet /\ Verify(c, p) /\ Shown
BrokerAcknowledges(c, t) == ~Quiet /\ AcknowledgeAppend(c, t) /\ Shown
BrokerFences(c) == ~Quiet /\ EndFence(c) /\ Shown
BrokerMarks(c, p) == ~Quiet /\ AcknowledgeMarker(c, p) /\ Shown
BrokerCompletes(c) == ~Quiet /\ CompleteTransaction(c) /\ Shown

PortNext ==
  \/ \E i \in Clients, c \in Coordinators : TakesProducerId(i, c)
  \/ \E i \in Clients : Begins(i)
  \/ \E i \in Clients, c \in Coordinators, p \in Partitions : TakesAdded(i, c, p)
  \/ \E i \in Clients, p \in Partitions : Sends(i, p)
  \/ \E i \in Clients, commits \in BOOLEAN : Ends(i, commits)
  \/ \E i \in Clients, c \in Coordinators : TakesEnd(i, c)
  \/ \E c \in Coordinators, i \in Clients : RequestProducerId(c, i)
  \/ \E c \in Coordinators : RequestFence(c)
  \/ \E c \in Coordinators, i \in Clients, p \in Partitions : RequestPartition(c, i, p)
  \/ \E c \in Coordinators, t \in Transactions, commits \in BOOLEAN : RequestEnd(c, t, commits)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : ProduceFirst(p, t, s)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : Produce(p, t, s)
  \/ \E c \in Coordinators, t \in Transactions, commits \in BOOLEAN : RepeatEnd(c, t, commits)
  \/ \E c \in Coordinators, t \in Transactions, commits \in BOOLEAN : RefuseEnd(c, t, commits)
  \/ \E c \in Coordinators, i \in Clients, p \in Partitions : RefuseAddPartition(c, i, p)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : RepeatBatch(p, t, s)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : RefuseBatch(p, t, s)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : ProduceBlocked(p, t, s)
  \/ \E p \in Partitions, t \in Transactions, e \in Tenures : RepeatMarker(p, t, e)
  \/ \E p \in Partitions, t \in Transactions, e \in Tenures : RefuseMarker(p, t, e)
  \/ \E c \in Coordinators, kind \in ToCoordinator, error \in ForgedErrors :
       RefuseForged(c, kind, error)
  \/ \E p \in Partitions, kind \in ToLeader, error \in ForgedErrors :
       RefuseForgedBatch(p, kind, error)
  \/ \E p \in Partitions, kind \in {ByHand}, error \in ForgedErrors :
       RefuseForgedMarker(p, kind, error)
  \/ \E p \in Partitions, t \in Transactions, e \in Tenures : BrokerWrites(p, t, e)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : BrokerAppends(p, t, s)
  \/ \E c \in Coordinators, p \in Partitions : BrokerAdds(c, p)
  \/ \E c \in Coordinators, p \in Partitions : BrokerVerifies(c, p)
  \/ \E c \in Coordinators, t \in Tenures : BrokerAcknowledges(c, t)
  \/ \E c \in Coordinators : BrokerFences(c)
  \/ \E c \in Coordinators, p \in Partitions : BrokerMarks(c, p)
  \/ \E c \in Coordinators : BrokerCompletes(c)

(***************************************************************************)
(* Not promised in version 1: that a late copy of a batch leaves the next  *)
(* transaction alone: Kafka refuses its first batch until it is aborted.   *)
(***************************************************************************)
NewBatchesAreTaken ==
  \A i \in Clients : InTransaction(i) =>
    \A m \in SentIn(i) :
      /\ NeedsVerification(m.partition, m) /\ WillBeVerified(m.partition, m)
      /\ IsAppendable(m.partition, m)
      => ~IsBlocked(m.partition, m)
===============================================================================
