------------------------ MODULE ReplicationPartition -------------------------
(***************************************************************************)
(* The broker's Partition: it becomes leader or follower as LeaderAndIsr   *)
(* says; the leader appends, deletes, and changes the ISR.                 *)
(*                                                                         *)
(* Guards that stand for one check in a broker have names of their own,    *)
(* here and in the other modules, so that a model can take one away by an  *)
(* override (a mutant).                                                    *)
(***************************************************************************)
EXTENDS ReplicationController

(***************************************************************************)
(* Brokers: LeaderAndIsr.                                                  *)
(***************************************************************************)

\* The out-of-range reset calls the leader while it holds partitionMapLock
\* (AbstractFetcherThread.handleOutOfRangeError), which the removal of the partition from
\* its fetcher needs: so the broker cannot move on.
HoldsPartitionMapLock(b) ==
  channel[b].type \in {"LatestRequest", "LatestResponse", "EarliestRequest", "EarliestResponse"}

Receives(b, e) ==
  /\ online[b] /\ ~HoldsPartitionMapLock(b)
  /\ leaderAndIsr[e].present
  /\ e > leaderEpoch[b]
  /\ leaderEpoch[b] = NoEpoch => e = registration.leaderEpoch

\* KAFKA-7415: the cache knows the epoch's start even if nothing is written in it.
AssignEpochStart(cache, e, logEnd) == CacheAssign(cache, e, logEnd)

\* What a new leader knows of its followers (Replica.resetReplicaState): nothing, or what it
\* knew, as PositionsKept says.
RemoteReplicas(b, kept) == IF kept THEN followerState[b] ELSE [f \in Brokers |-> UnknownFollower]

LearnsLeaderEpoch(b, e, itsLeader, itsIsr, itsPartitionEpoch, followers) ==
  /\ leaderEpoch'    = [leaderEpoch EXCEPT ![b] = e]
  /\ leader'         = [leader EXCEPT ![b] = itsLeader]
  /\ isr'            = [isr EXCEPT ![b] = itsIsr]
  /\ partitionEpoch' = [partitionEpoch EXCEPT ![b] = itsPartitionEpoch]
  /\ pendingIsr'     = [pendingIsr EXCEPT ![b] = {}]
  /\ followerState'  = [followerState EXCEPT ![b] = followers]
  /\ leaderAndIsr'   = Announced(registration, [leaderEpoch EXCEPT ![b] = e],
                                 [partitionEpoch EXCEPT ![b] = itsPartitionEpoch])

\* Partition.makeLeader; its fetcher drops the partition (removeFetcherForPartitions).
LeadsAsTold(b, e, request) ==
  \E kept \in PositionsKept(b, e) :
  LET followers == RemoteReplicas(b, kept)
      started   == [Untracked(Replica(b)) EXCEPT
                      !.cache = AssignEpochStart(epochCache[b], e, LogEndOffset(b))]
      r         == WithHighWatermark(b, started, request.isr, {}, followers)
  IN  /\ request.leader = b
      /\ LearnsLeaderEpoch(b, e, b, request.isr, request.partitionEpoch, followers)
      /\ SetReplica(b, r)
      /\ Expose(r, e)
      /\ UNCHANGED <<registration, processVars, messageVars, appends, guaranteedFrom>>

BecomeLeader(b, e) == Receives(b, e) /\ LeadsAsTold(b, e, leaderAndIsr[e])

\* Whether a new follower has to find out first where its log ends to agree.
TruncatesFirst(r) ==
  CASE Protocol \in {"HighWatermark", "Kip320FirstTry"} -> FALSE
    [] Protocol = "TruncateOnFetch" -> LatestEpoch(r.cache) = NoEpoch
    [] OTHER                        -> TRUE

\* ReplicaManager.initialFetchOffset and AbstractFetcherThread.partitionFetchState.
\* Before KIP-101 ReplicaManager.makeFollowers itself truncated.
Tracked(r) ==
  LET cut == IF Protocol = "HighWatermark" THEN TruncateTo(r, r.hw) ELSE r
  IN  IF TruncatesFirst(r)
      THEN [r EXCEPT !.state = "Truncating", !.offset = r.hw]
      ELSE [cut EXCEPT !.state = "Fetching", !.offset = LogEnd(cut)]

\* Partition.makeFollower, then ReplicaFetcherManager.addFetcherForPartitions.
\* Without a leader the partition is not fetched.
BecomeFollower(b, e) ==
  LET request == leaderAndIsr[e]
  IN  /\ Receives(b, e)
      /\ request.leader # b
      /\ LearnsLeaderEpoch(b, e, request.leader, {}, 0, [f \in Brokers |-> UnknownFollower])
      /\ SetReplica(b, IF request.leader = NoLeader THEN Untracked(Replica(b))
                                                    ELSE Tracked(Replica(b)))
      /\ UNCHANGED <<registration, processVars, messageVars, ghostVars>>

(***************************************************************************)
(* Leader: append, log start.                                              *)
(***************************************************************************)

LeaderStep == UNCHANGED <<controllerVars, processVars, leaderEpoch, leader, messageVars>>

\* Partition.appendRecordsToLeader: one record, at offset o.
AppendAsLeader(l, o) ==
  /\ ActingLeader(l)
  /\ o = LogEndOffset(l) /\ o + 1 \in Offsets
  /\ appends + 1 \in AppendCounts
  /\ \E awaited \in AwaitedFollowers(l) :
       LET r == WithHighWatermark(l, AppendRecord(Replica(l), leaderEpoch[l]),
                                  isr[l], pendingIsr[l] \union awaited, followerState[l])
       IN  SetReplica(l, r) /\ Expose(r, leaderEpoch[l])
  /\ appends' = appends + 1
  /\ LeaderStep
  /\ UNCHANGED <<isr, partitionEpoch, pendingIsr, followerState, guaranteedFrom>>

\* Partition.deleteRecordsOnLeader, or retention: never above the high watermark.
\* What is deleted is owed no longer: a follower may still have another record there,
\* since the leader's cache no longer tells the epochs below its log start.
AdvanceLogStartOffset(l, o) ==
  /\ LogStartMoves
  /\ ActingLeader(l)
  /\ o > logStartOffset[l] /\ o <= highWatermark[l]
  /\ SetReplica(l, AdvanceLogStart(Replica(l), o))
  /\ exposed' = {record \in exposed : record.offset >= o}
  /\ LeaderStep
  /\ UNCHANGED <<isr, partitionEpoch, pendingIsr, followerState, appends, guaranteedFrom>>

(***************************************************************************)
(* ISR changes: the leader proposes, the controller decides.               *)
(***************************************************************************)

\* Partition.isFollowerInSync: the follower reaches the high watermark, and the
\* leader's epoch (KAFKA-7128).
CaughtUpToHighWatermark(logEnd, hw) == logEnd >= hw
ReachedEpochStart(logEnd, epochStart) == logEnd >= epochStart

\* Partition.leaderEpochStartOffsetOpt
EpochStart(l) ==
  LET own == {i \in 1..Len(log[l]) : log[l][i] = leaderEpoch[l]}
  IN  IF own = {} THEN LogEndOffset(l) ELSE logStartOffset[l] + Smallest(own) - 1

MayExpand(l, f) ==
  /\ ActingLeader(l) /\ f \notin MaximalIsr(isr[l], pendingIsr[l])
  /\ followerState[l][f].logEndOffset # NoOffset
  /\ CaughtUpToHighWatermark(followerState[l][f].logEndOffset, highWatermark[l])
  /\ ReachedEpochStart(followerState[l][f].logEndOffset, EpochStart(l))

\* Partition.isFollowerOutOfSync, replica.lag.time.max.ms having passed: one that
\* is at the leader's log end is in sync however long ago it fetched (KAFKA-7152).
MayShrink(l, f) ==
  /\ ActingLeader(l) /\ f \in isr[l] \ {l}
  /\ followerState[l][f].logEndOffset # LogEndOffset(l)

\* ReplicationControlManager.validateAlterPartitionData, in its order. The controller
\* may be early to take a broker for dead (FenceBroker), but is never late here: a broker
\* that does not run is ineligible at once.
AlterPartitionFence(requestEpoch, registeredEpoch) == requestEpoch = registeredEpoch
PartitionEpochFence(requestEpoch, registeredEpoch) == requestEpoch = registeredEpoch
BrokerEpochFence(requestEpoch, registeredEpoch) ==  \* KIP-903
  requestEpoch = NoEpoch \/ requestEpoch = registeredEpoch

AlterPartitionRequest(l, newIsr) ==
  [NoAlterPartition EXCEPT
     !.type = "Request", !.leaderEpoch = leaderEpoch[l], !.partitionEpoch = partitionEpoch[l],
     !.isr = newIsr,
     !.brokerEpochs = [b \in Brokers |-> IF b \notin newIsr THEN NoEpoch
                                         ELSE IF b = l THEN brokerEpoch[l]
                                         ELSE followerState[l][b].brokerEpoch]]

AlterPartitionError(m) ==
  IF ~AlterPartitionFence(m.leaderEpoch, registration.leaderEpoch)
  THEN "FENCED_LEADER_EPOCH"
  ELSE IF ~PartitionEpochFence(m.partitionEpoch, registration.partitionEpoch)
  THEN "INVALID_UPDATE_VERSION"
  ELSE IF \E b \in m.isr : ~(online[b] /\ BrokerEpochFence(m.brokerEpochs[b], brokerEpoch[b]))
  THEN "INELIGIBLE_REPLICA"
  ELSE "NONE"

\* One step: the change is proposed, accepted and adopted at once.
AlterIsr(l, newIsr) ==
  LET r == WithHighWatermark(l, Replica(l), newIsr, {}, followerState[l])
  IN  /\ ~TwoStepIsr
      /\ AlterPartitionError(AlterPartitionRequest(l, newIsr)) = "NONE"
      /\ Register(registration.leader, registration.leaderEpoch, newIsr)
      /\ isr' = [isr EXCEPT ![l] = newIsr]
      /\ SetReplica(l, r)
      /\ Expose(r, leaderEpoch[l])
      /\ UNCHANGED <<processVars, leaderEpoch, leader, partitionEpoch, pendingIsr,
                     followerState, messageVars, appends, guaranteedFrom>>

\* Partition.maybeExpandIsr, of one follower.
ExpandIsr(l, f) == MayExpand(l, f) /\ AlterIsr(l, isr[l] \union {f})

\* Partition.maybeShrinkIsr, of one follower.
ShrinkIsr(l, f) == MayShrink(l, f) /\ AlterIsr(l, isr[l] \ {f})

\* Two steps (KIP-497): until the answer, the high watermark counts the maximal
\* ISR. AlterPartitionManager has one item of a partition in flight.
Submit(l, newIsr) ==
  /\ TwoStepIsr
  /\ pendingIsr[l] = {} /\ alterPartition[l].type = "None"
  /\ pendingIsr' = [pendingIsr EXCEPT ![l] = newIsr]
  /\ alterPartition' = [alterPartition EXCEPT ![l] = AlterPartitionRequest(l, newIsr)]
  /\ UNCHANGED <<controllerVars, processVars, leaderEpoch, leader, isr, partitionEpoch,
                 followerState, replicaVars, channel, ghostVars>>

\* Partition.prepareIsrExpand, submitAlterPartition
SubmitExpandIsr(l, f) == MayExpand(l, f) /\ Submit(l, isr[l] \union {f})

\* What the leader may propose to take f out. Kafka takes out all that are out of sync at
\* once; here it is one follower, unless a model says otherwise.
ShrunkIsrs(l, f) == {isr[l] \ {f}}

\* Partition.prepareIsrShrink, submitAlterPartition
SubmitShrinkIsr(l, f) == MayShrink(l, f) /\ \E newIsr \in ShrunkIsrs(l, f) : Submit(l, newIsr)

\* ReplicationControlManager.alterPartition
HandleAlterPartition(l) ==
  LET m     == alterPartition[l]
      error == AlterPartitionError(m)
  IN  /\ m.type = "Request"
      /\ IF error = "NONE"
         THEN Register(registration.leader, registration.leaderEpoch, m.isr)
         ELSE UNCHANGED controllerVars
      /\ alterPartition' = [alterPartition EXCEPT ![l] =
           [m EXCEPT !.type = "Response", !.error = error,
                     !.brokerEpochs = NoAlterPartition.brokerEpochs]]
      /\ UNCHANGED <<processVars, partitionVars, replicaVars, channel, ghostVars>>

\* Partition.handleAlterPartitionUpdate and handleAlterPartitionError; the high
\* watermark is looked at again (KAFKA-13091). An answer to a change that is
\* pending no longer (a newer LeaderAndIsr came) is ignored. After
\* INVALID_UPDATE_VERSION or FENCED_LEADER_EPOCH the change stays pending until
\* LeaderAndIsr tells the outcome.
ProcessAlterPartition(l) ==
  LET m        == alterPartition[l]
      current  == /\ leader[l] = l /\ leaderEpoch[l] = m.leaderEpoch
                  /\ partitionEpoch[l] = m.partitionEpoch /\ pendingIsr[l] = m.isr
      accepted == current /\ m.error = "NONE"
      newPartitionEpoch == [partitionEpoch EXCEPT ![l] =
                              IF accepted THEN m.partitionEpoch + 1 ELSE partitionEpoch[l]]
      newIsr   == IF accepted THEN m.isr ELSE isr[l]
      r(awaited) == IF accepted
                    THEN WithHighWatermark(l, Replica(l), newIsr, awaited, followerState[l])
                    ELSE Replica(l)
  IN  /\ m.type = "Response"
      /\ alterPartition' = [alterPartition EXCEPT ![l] = NoAlterPartition]
      /\ isr' = [isr EXCEPT ![l] = newIsr]
      /\ partitionEpoch' = newPartitionEpoch
      /\ pendingIsr' = [pendingIsr EXCEPT ![l] =
           IF accepted \/ (current /\ m.error = "INELIGIBLE_REPLICA") THEN {} ELSE pendingIsr[l]]
      /\ leaderAndIsr' = Announced(registration, leaderEpoch, newPartitionEpoch)
      /\ \E awaited \in AwaitedFollowers(l) :
           /\ SetReplica(l, r(awaited))
           /\ IF accepted THEN Expose(r(awaited), leaderEpoch[l]) ELSE UNCHANGED exposed
      /\ UNCHANGED <<registration, processVars, leaderEpoch, leader, followerState, channel,
                     appends, guaranteedFrom>>

\* Partition.makeLeader, same leader epoch, newer partition epoch: only the ISR.
AdoptsIsr(l, e, request) ==
  /\ e = leaderEpoch[l] /\ IsNewsOfIsr(request.partitionEpoch, partitionEpoch[l])
  /\ LearnsLeaderEpoch(l, e, l, request.isr, request.partitionEpoch, followerState[l])
  /\ \E awaited \in AwaitedFollowers(l) :
       LET r == WithHighWatermark(l, Replica(l), request.isr, awaited, followerState[l])
       IN  SetReplica(l, r) /\ Expose(r, e)
  /\ UNCHANGED <<registration, processVars, messageVars, appends, guaranteedFrom>>

UpdateIsr(l, e) ==
  ActingLeader(l) /\ leaderAndIsr[e].present /\ AdoptsIsr(l, e, leaderAndIsr[e])
==============================================================================
