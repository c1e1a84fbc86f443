------------------------- MODULE TransactionPartition -------------------------
(***************************************************************************)
(* The steps of the leaders of partitions. Apart from each other are the   *)
(* start of a verification, what the coordinator says to it, and the       *)
(* append: the guard exists for what happens in between.                   *)
(*                                                                         *)
(* Kafka: ReplicaManager.handleProduceAppend, UnifiedLog.append,           *)
(* ProducerStateManager, ProducerAppendInfo, VerificationStateEntry.       *)
(***************************************************************************)
EXTENDS TransactionCoordinator

\* Idempotence: a batch is appended once, in its order. What is written to offsets partitions has
\* no sequence; two copies of a request are enough here.
InSequence(p, m) ==
  IF p \in OffsetsPartitions THEN Cardinality(CopiesIn(p, DataRecord(m))) < 2
  ELSE m.sequence = Cardinality({i \in DOMAIN log[p] :
                                   log[p][i].kind = "data" /\ log[p][i].epoch = m.epoch})

\* ProducerAppendInfo.checkProducerEpoch.
EpochIsCurrent(p, m) == m.epoch >= StoredEpoch(p)
IsOpenAt(p, epoch) == \E i \in Open(p) : log[p][i].epoch = epoch
NeedsVerification(p, m) == Verification /\ ~IsOpenAt(p, m.epoch)

IsAppendable(p, m) == EpochIsCurrent(p, m) /\ InSequence(p, m)
\* A batch of an old epoch is refused before the coordinator is asked (KAFKA-18042).
MayBeVerified(p, m) == IsAppendable(p, m)
BatchesFor(p, t, s) ==
  {m \in requests : m.type = "Produce" /\ m.partition = p /\ m.txn = t /\ m.sequence = s}

\* AddPartitionsToTxnManager asks for one batch of an epoch at a time.
AsksFor(p, epoch) ==
  \E v \in verifying : v.batch.partition = p /\ v.batch.epoch = epoch /\ ~v.isVerified

\* UnifiedLog.maybeStartTransactionVerification.
BeginsVerification(p, m) ==
  /\ \A v \in verifying : v.batch # m
  /\ p \in OffsetsPartitions \/ ~AsksFor(p, m.epoch)
  /\ entry' = [entry EXCEPT ![p] = Greater(@, m.epoch)]
  /\ verifying' = verifying \union {[batch |-> m, isVerified |-> FALSE]}
  /\ UNCHANGED <<log, highWatermark, leadership>>
StartVerification(p, t, s) ==
  /\ \E m \in BatchesFor(p, t, s) :
       /\ HasLeader(p) /\ NeedsVerification(p, m) /\ MayBeVerified(p, m)
       /\ BeginsVerification(p, m)
  /\ UNCHANGED <<coordination, requests, clients, applications>>

\* An entry that is cleared takes its guard with it: nobody who was given it may append.
OthersVerifying(p) == {v \in verifying : v.batch.partition # p}
StillVerifying(p) == OthersVerifying(p)
HasGuard(p, m) == entry[p] # NoEpoch /\ \E v \in verifying : v.batch = m /\ v.isVerified

Clears(p) ==
  /\ entry' = [entry EXCEPT ![p] = NoEpoch]
  /\ verifying' = StillVerifying(p)

AppendBatch(p, t, s) ==
  /\ \E m \in BatchesFor(p, t, s) :
       /\ HasLeader(p) /\ IsAppendable(p, m)
       /\ NeedsVerification(p, m) => HasGuard(p, m)
       /\ WithAppended(p, DataRecord(m))
  /\ Clears(p)
  /\ UNCHANGED <<coordination, requests, clients, applications, leadership>>

(***************************************************************************)
(* Markers: ProducerAppendInfo.appendEndTxnMarker.                         *)
(***************************************************************************)
MarkerEpochIsValid(p, m) ==
  IF StrictMarkers
  THEN m.epoch > StoredEpoch(p) \/ (m.epoch = StoredEpoch(p) /\ Open(p) = {})
  ELSE m.epoch >= StoredEpoch(p)
CoordinatorEpochIsValid(p, m) == m.coordinatorEpoch >= StoredCoordinatorEpoch(p)
IsValid(p, m) == MarkerEpochIsValid(p, m) /\ CoordinatorEpochIsValid(p, m)

\* The marker of the transaction before, while the next one is being verified (KAFKA-18654).
LeavesEntry(p, m) == Version2 /\ entry[p] = m.epoch

MaxCopies == IF "Marker" \in Late THEN 2 ELSE 1
WriteMarker(p, t, coordinatorEpoch) ==
  /\ \E m \in requests :
       /\ m.type = "Marker" /\ m.partition = p /\ m.txn = t
       /\ m.coordinatorEpoch = coordinatorEpoch
       /\ HasLeader(p) /\ IsValid(p, m)
       /\ Cardinality(CopiesIn(p, MarkerRecord(m))) < MaxCopies
       /\ WithAppended(p, MarkerRecord(m))
       /\ IF LeavesEntry(p, m) THEN UNCHANGED <<entry, verifying>> ELSE Clears(p)
  /\ UNCHANGED <<coordination, requests, clients, applications, leadership>>

(***************************************************************************)
(* Replication, and another leader: guards are not replicated.             *)
(***************************************************************************)
Replicate(p) ==
  /\ highWatermark[p] < Len(log[p])
  /\ highWatermark' = [highWatermark EXCEPT ![p] = Len(log[p])]
  /\ UNCHANGED <<coordination, requests, clients, applications>>
  /\ UNCHANGED <<log, entry, verifying, leadership>>

ElectLeader(p, end) ==
  /\ leaderChanges < MaxLeaderChanges
  /\ highWatermark[p] <= end /\ end <= Len(log[p])
  /\ log' = [log EXCEPT ![p] = SubSeq(@, 1, end)]
  /\ entry' = [entry EXCEPT ![p] = NoEpoch]
  /\ verifying' = OthersVerifying(p)
  /\ leaderChanges' = leaderChanges + 1
  /\ UNCHANGED <<coordination, requests, clients, applications, highWatermark, leaderless>>

\* The broker that leads stops, and no other is in sync. It comes back with its log; coordinators that
\* have decided something in between send their markers then.
StopLeader(p) ==
  /\ leaderChanges < MaxOutages /\ HasLeader(p)
  /\ leaderless' = leaderless \union {p}
  /\ leaderChanges' = leaderChanges + 1
  /\ entry' = [entry EXCEPT ![p] = NoEpoch]
  /\ verifying' = OthersVerifying(p)
  /\ UNCHANGED <<coordination, requests, clients, applications, log, highWatermark>>

WaitingMarkers(p) ==
  UNION {{m \in MarkersFor(Now(c), coordinators[c].tenure) : m.partition = p} :
           c \in {c \in Coordinators : Leads(c) /\ Serves(c) /\ Now(c).state \in Prepares}}
RestartLeader(p) ==
  /\ ~HasLeader(p)
  /\ leaderless' = leaderless \ {p}
  /\ requests' = requests \union WaitingMarkers(p)
  /\ UNCHANGED <<coordination, clients, applications, log, highWatermark, entry, verifying, leaderChanges>>

PartitionNext ==
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : StartVerification(p, t, s)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : AppendBatch(p, t, s)
  \/ \E p \in Partitions, t \in Transactions, e \in Tenures : WriteMarker(p, t, e)
  \/ \E p \in Partitions : Replicate(p)
  \/ \E p \in Partitions, end \in 0..(MaxBatches + 4) : ElectLeader(p, end)
  \/ \E p \in Partitions : StopLeader(p) \/ RestartLeader(p)
===============================================================================
