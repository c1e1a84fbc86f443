------------------------------ MODULE Reassignment ------------------------------
(***************************************************************************)
(* Replicas that leave and brokers that stop, as the leader that goes on   *)
(* serving them sees it: a partition's replicas are reassigned, brokers    *)
(* are fenced, restart, and are shut down in order (KRaft).                *)
(*                                                                         *)
(* The controller decides; the leader learns of it later, first from its   *)
(* metadata cache and then from the partition's change. Meanwhile          *)
(* followers fetch, and the leader proposes changes of the ISR.            *)
(*                                                                         *)
(* Kafka: Partition (makeLeader, maybeExpandIsr, maybeShrinkIsr,           *)
(* isReplicaIsrEligible), BrokerMetadataPublisher, on the controller       *)
(* ReplicationControlManager.alterPartition, PartitionReassignmentReplicas *)
(* and BrokerHeartbeatManager. KIP-455, KIP-497, KIP-841, KIP-903.         *)
(*                                                                         *)
(* Left out: elections (the leader stays, Replication), what records are   *)
(* (only how many a replica has), min.insync.replicas (Acknowledgement).   *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Brokers,
  Leader,          \* the broker that leads throughout
  FirstReplicas,   \* assigned and in sync at the beginning
  Target,          \* the replicas of the one reassignment; FirstReplicas: none
  MaxAppends,
  BrokerEpochs,    \* epochs of registrations, 0..n: n restarts of each follower
  MaxFenced,       \* no broker is fenced after so many changes of the partition
  Shutdowns,       \* brokers may ask for a controlled shutdown
  Lags             \* replica.lag.time.max.ms may pass

(***************************************************************************)
(* variable     | field                                                    *)
(* -------------+--------------------------------------------------------- *)
(* registration | the controller's PartitionRegistration                   *)
(* brokers[b]   | its BrokerRegistration: Active, Fenced, ShuttingDown     *)
(* heard        | brokers that shut down, of which the leader has heard:   *)
(*              | its metadata offset has reached controlledShutdownOffset *)
(* stopped      | brokers whose shutdown was granted (shouldShutDown)      *)
(* cache[b]     | the leader's KRaftMetadataCache                          *)
(* delta        | a change of the partition that is published and not yet  *)
(*              | applied (ReplicaManager.applyDelta)                      *)
(* view         | the leader's Partition; pending: a change of the ISR that*)
(*              | is proposed (PendingExpandIsr, PendingShrinkIsr)         *)
(* positions[f] | Replica.stateSnapshot; caughtUp: within the lag time;    *)
(*              | lastEnd: the leader's log end at its last fetch, within  *)
(*              | the lag time                                             *)
(* end, hw      | the leader's log end offset and high watermark           *)
(* alter        | AlterPartition: the request, or its answer               *)
(* fetch[f]     | a fetch on its way to the leader                         *)
(* held[f]      | how many of the leader's records a follower has          *)
(***************************************************************************)
VARIABLES
  registration, brokers, heard, stopped, cache, delta, view, positions, end, hw, alter, fetch, held

controllerVars == <<registration, brokers, heard, stopped>>
leaderVars == <<cache, delta, view, positions, end, hw>>
vars == <<controllerVars, leaderVars, alter, fetch, held>>

Followers == Brokers \ {Leader}
NoOffset == -1
NoEpoch == -1
NoDelta == [partitionEpoch |-> -1]
NoFetch == [offset |-> NoOffset, brokerEpoch |-> NoEpoch, leaderEpoch |-> NoEpoch]
NoAlter == [type |-> "None", isr |-> {}, epochs |-> [b \in Brokers |-> NoEpoch],
            leaderEpoch |-> 0, partitionEpoch |-> 0, error |-> "NONE"]
NoChange == [type |-> "None", isr |-> {}]

Smallest(numbers) == CHOOSE n \in numbers : \A other \in numbers : n <= other
Larger(a, b) == IF a < b THEN b ELSE a

FirstRegistration ==
  [replicas |-> FirstReplicas, adding |-> {}, removing |-> {}, isr |-> FirstReplicas,
   leaderEpoch |-> 0, partitionEpoch |-> 0]
AsView(r, epochStart) ==
  [replicas |-> r.replicas, isr |-> r.isr, pending |-> NoChange, leaderEpoch |-> r.leaderEpoch,
   partitionEpoch |-> r.partitionEpoch, epochStart |-> epochStart]
NoPosition == [end |-> NoOffset, epoch |-> NoEpoch, caughtUp |-> FALSE, lastEnd |-> NoOffset]
\* Replica.resetReplicaState: a member of the ISR gets the whole lag time to fetch.
ResetPosition(inSync) == [NoPosition EXCEPT !.caughtUp = inSync]

Init ==
  /\ registration = FirstRegistration
  /\ brokers = [b \in Brokers |-> [state |-> "Active", epoch |-> 0]]
  /\ heard = {} /\ stopped = {}
  /\ cache = brokers
  /\ delta = NoDelta
  /\ view = AsView(FirstRegistration, 0)
  /\ positions = [f \in Followers |-> ResetPosition(f \in FirstReplicas)]
  /\ end = 0 /\ hw = 0
  /\ alter = NoAlter
  /\ fetch = [f \in Followers |-> NoFetch]
  /\ held = [f \in Followers |-> 0]

(***************************************************************************)
(* The controller.                                                         *)
(***************************************************************************)
\* PartitionReassignmentReplicas.maybeCompleteReassignment, 3.8 to 4.2: part of any change.
IsReassigned(r) == r.adding \union r.removing # {}
Completes(r, isr) == r.replicas \ r.removing \subseteq isr \ r.removing
\* PartitionChangeBuilder.triggerLeaderEpochBumpForReplicaReassignmentIfNeeded: the leader stays,
\* and a replica that is removed is fenced.
EpochOfRemoval(r) == r.leaderEpoch + 1

Changed(r, isr) ==
  IF IsReassigned(r) /\ Completes(r, isr)
  THEN [replicas |-> r.replicas \ r.removing, adding |-> {}, removing |-> {},
        isr |-> isr \ r.removing,
        leaderEpoch |-> IF r.removing # {} THEN EpochOfRemoval(r) ELSE r.leaderEpoch,
        partitionEpoch |-> r.partitionEpoch + 1]
  ELSE [r EXCEPT !.isr = isr, !.partitionEpoch = @ + 1]
\* A broker that is fenced or stops leaves the ISR; the leader stays in it.
WithoutMember(r, b) == IF b \in r.isr THEN Changed(r, r.isr \ {b}) ELSE r

\* ReplicationControlManager.alterPartitionReassignments.
StartReassignment ==
  /\ registration.replicas = FirstReplicas /\ Target # FirstReplicas
  /\ registration.adding \union registration.removing = {}
  /\ LET r == [registration EXCEPT
                 !.replicas = FirstReplicas \union Target,
                 !.adding = Target \ FirstReplicas, !.removing = FirstReplicas \ Target]
     IN  registration' = Changed(r, r.isr)
  /\ UNCHANGED <<brokers, heard, stopped, leaderVars, alter, fetch, held>>

\* ReplicationControlManager.fenceStaleBrokers, handleBrokerFenced: no heartbeat came.
Fence(b) ==
  /\ registration.partitionEpoch < MaxFenced /\ b # Leader /\ brokers[b].state = "Active"
  /\ brokers' = [brokers EXCEPT ![b].state = "Fenced"]
  /\ registration' = WithoutMember(registration, b)
  /\ UNCHANGED <<heard, stopped, leaderVars, alter, fetch, held>>

Unfence(b) ==
  /\ brokers[b].state = "Fenced" /\ b \notin stopped
  /\ brokers' = [brokers EXCEPT ![b].state = "Active"]
  /\ UNCHANGED <<registration, heard, stopped, leaderVars, alter, fetch, held>>

\* The broker's process ends and starts again, without what was not yet on its disk; it registers
\* with a new epoch (ClusterControlManager.registerBroker).
Restart(b) ==
  /\ b # Leader /\ brokers[b].epoch + 1 \in BrokerEpochs
  /\ brokers' = [brokers EXCEPT ![b] = [state |-> "Active", epoch |-> @.epoch + 1]]
  /\ registration' = WithoutMember(registration, b)
  /\ held' = [held EXCEPT ![b] = 0]
  /\ heard' = heard \ {b} /\ stopped' = stopped \ {b}
  /\ UNCHANGED <<leaderVars, alter, fetch>>

\* handleBrokerInControlledShutdown.
AskToStop(b) ==
  /\ Shutdowns /\ b # Leader /\ brokers[b].state = "Active"
  /\ brokers' = [brokers EXCEPT ![b].state = "ShuttingDown"]
  /\ registration' = WithoutMember(registration, b)
  /\ UNCHANGED <<heard, stopped, leaderVars, alter, fetch, held>>

\* BrokerHeartbeatManager.calculateNextBrokerState: not before the leader has heard of it.
MayStop(b) == b \in heard
GrantStop(b) ==
  /\ brokers[b].state = "ShuttingDown" /\ MayStop(b)
  /\ heard' = heard \ {b} /\ stopped' = stopped \union {b}
  /\ brokers' = [brokers EXCEPT ![b].state = "Fenced"]
  /\ UNCHANGED <<registration, leaderVars, alter, fetch, held>>

\* ReplicationControlManager.validateAlterPartitionData, in its order.
IsEligible(b, epoch) ==
  brokers[b].state = "Active" /\ (epoch = NoEpoch \/ epoch = brokers[b].epoch)
AlterPartitionError ==
  IF alter.leaderEpoch < registration.leaderEpoch THEN "FENCED_LEADER_EPOCH"
  ELSE IF alter.partitionEpoch < registration.partitionEpoch THEN "INVALID_UPDATE_VERSION"
  ELSE IF \E b \in alter.isr : ~IsEligible(b, alter.epochs[b]) THEN "INELIGIBLE_REPLICA"
  ELSE "NONE"

HandleAlterPartition(error) ==
  /\ alter.type = "Request" /\ error = AlterPartitionError
  /\ LET r == Changed(registration, alter.isr)
     IN  IF error # "NONE"
         THEN /\ alter' = [NoAlter EXCEPT !.type = "Answer", !.error = error]
              /\ UNCHANGED registration
         ELSE /\ registration' = r
              /\ alter' = [NoAlter EXCEPT !.type = "Answer", !.isr = r.isr,
                             !.leaderEpoch = r.leaderEpoch, !.partitionEpoch = r.partitionEpoch]
  /\ UNCHANGED <<brokers, heard, stopped, leaderVars, fetch, held>>

(***************************************************************************)
(* What the leader knows: BrokerMetadataPublisher updates the cache first, *)
(* then the partitions.                                                    *)
(***************************************************************************)
\* Several changes may come as one: the last counts.
IsNews == registration.partitionEpoch > view.partitionEpoch
StopsIn(told) == {b \in Brokers : brokers[b].state = "ShuttingDown" /\ told[b] = brokers[b]}
Publish ==
  /\ delta = NoDelta /\ (cache # brokers \/ IsNews)
  /\ cache' = brokers
  /\ delta' = IF IsNews THEN registration ELSE NoDelta
  /\ heard' = IF IsNews THEN heard ELSE heard \union StopsIn(brokers)
  /\ UNCHANGED <<registration, brokers, stopped, view, positions, end, hw, alter, fetch, held>>

\* Partition.isReplicaIsrEligible, isBrokerEpochIsrEligible.
NotShuttingDown(b) == cache[b].state # "ShuttingDown"
OfPresentLife(p, b) == p.epoch = cache[b].epoch
Eligible(v, ps, b) ==
  b \in v.replicas /\ cache[b].state # "Fenced" /\ NotShuttingDown(b) /\ OfPresentLife(ps[b], b)

MaximalIsr(v) == IF v.pending.type = "Expand" THEN v.pending.isr ELSE v.isr
IsCaughtUp(p, logEnd) == p.end = logEnd \/ p.caughtUp

\* Partition.maybeIncrementLeaderHW: least position of those that are in sync, or soon may be.
IsCounted(v, f) == f \in v.replicas
Holds(v, ps, logEnd, f) ==
  IsCounted(v, f) /\ (f \in MaximalIsr(v) \/ (IsCaughtUp(ps[f], logEnd) /\ Eligible(v, ps, f)))
WatermarkOf(v, ps, logEnd) ==
  Smallest({logEnd} \union {ps[f].end : f \in {f \in Followers : Holds(v, ps, logEnd, f)}})
Watermark(v, ps, logEnd) == Larger(hw, WatermarkOf(v, ps, logEnd))

\* Partition.makeLeader. A proposed change of the ISR is forgotten.
PendingAfterDelta == NoChange
\* Replica.resetReplicaState: in a new epoch of its own a leader may keep what it knows, as nobody
\* else has led (PositionKept is what Kafka does).
PositionInNewEpoch(f, inSync) == ResetPosition(inSync)
PositionKept(f, inSync) ==
  [positions[f] EXCEPT !.caughtUp = inSync, !.lastEnd = IF inSync THEN end ELSE NoOffset]
PositionsAfter(v) ==
  [f \in Followers |->
     IF f \notin v.replicas THEN NoPosition
     ELSE IF v.leaderEpoch > view.leaderEpoch THEN PositionInNewEpoch(f, f \in v.isr)
     ELSE positions[f]]
WatermarkAfterDelta(v, ps) == Watermark(v, ps, end)
\* Partition.makeLeader lets an equal partition epoch pass, too: not safe (boundary-told-again-2b).
IsNewsOfPartition(epoch) == epoch > view.partitionEpoch
ApplyDelta ==
  /\ delta # NoDelta
  /\ LET isNewEpoch == delta.leaderEpoch > view.leaderEpoch
         v == [AsView(delta, IF isNewEpoch THEN end ELSE view.epochStart) EXCEPT
                 !.pending = PendingAfterDelta]
         ps == PositionsAfter(v)
     IN  IF ~IsNewsOfPartition(delta.partitionEpoch) THEN UNCHANGED <<view, positions, hw>>
         ELSE view' = v /\ positions' = ps /\ hw' = WatermarkAfterDelta(v, ps)
  /\ delta' = NoDelta
  /\ heard' = heard \union StopsIn(cache)
  /\ UNCHANGED <<registration, brokers, stopped, cache, end, alter, fetch, held>>

(***************************************************************************)
(* Appends and fetches.                                                    *)
(***************************************************************************)
AppendRecord ==
  /\ end < MaxAppends
  /\ end' = end + 1
  /\ hw' = Watermark(view, positions, end + 1)
  /\ UNCHANGED <<controllerVars, cache, delta, view, positions, alter, fetch, held>>

\* A follower may not have heard of the newest leader epoch, or before the leader.
SendFetch(f, leaderEpoch) ==
  /\ fetch[f] = NoFetch /\ f \in registration.replicas \union view.replicas /\ f \notin stopped
  /\ leaderEpoch \in {registration.leaderEpoch, registration.leaderEpoch - 1} /\ leaderEpoch >= 0
  /\ fetch' = [fetch EXCEPT ![f] = [offset |-> held[f], brokerEpoch |-> brokers[f].epoch,
                                    leaderEpoch |-> leaderEpoch]]
  /\ UNCHANGED <<controllerVars, leaderVars, alter, held>>

LoseFetch(f) ==
  /\ fetch[f] # NoFetch
  /\ fetch' = [fetch EXCEPT ![f] = NoFetch]
  /\ UNCHANGED <<controllerVars, leaderVars, alter, held>>

\* Partition.fetchRecords, then Replica.updateFetchStateOrThrow.
IsOfFormerLife(f) == cache[f].state # "Fenced" /\ fetch[f].brokerEpoch < cache[f].epoch
FetchError(f) ==
  IF fetch[f].leaderEpoch < view.leaderEpoch THEN "FENCED_LEADER_EPOCH"
  ELSE IF fetch[f].leaderEpoch > view.leaderEpoch THEN "UNKNOWN_LEADER_EPOCH"
  ELSE IF f \notin view.replicas THEN "UNKNOWN_LEADER_EPOCH"
  ELSE IF IsOfFormerLife(f) THEN "NOT_LEADER_OR_FOLLOWER"
  ELSE "NONE"

PositionAfter(f) ==
  [end |-> fetch[f].offset, epoch |-> fetch[f].brokerEpoch,
   \* KAFKA-4485: at the log end of its last fetch it was caught up then.
   caughtUp |-> \/ positions[f].caughtUp \/ fetch[f].offset >= end
                \/ positions[f].lastEnd # NoOffset /\ fetch[f].offset >= positions[f].lastEnd,
   lastEnd |-> end]

\* Partition.isFollowerInSync, and a change of the ISR is proposed at a time.
MayExpand(ps, f) ==
  /\ alter.type = "None" /\ view.pending = NoChange
  /\ f \notin view.isr /\ Eligible(view, ps, f)
  /\ ps[f].end >= hw /\ ps[f].end >= view.epochStart
Proposed(ps, isr) ==
  [NoAlter EXCEPT !.type = "Request", !.isr = isr, !.leaderEpoch = view.leaderEpoch,
                  !.partitionEpoch = view.partitionEpoch,
                  !.epochs = [b \in Brokers |-> IF b \notin isr THEN NoEpoch
                                                ELSE IF b = Leader THEN brokers[b].epoch
                                                ELSE ps[b].epoch]]

HandleFetch(f, error) ==
  /\ fetch[f] # NoFetch /\ error = FetchError(f)
  /\ fetch' = [fetch EXCEPT ![f] = NoFetch]
  /\ IF error # "NONE" THEN UNCHANGED <<positions, view, alter, hw, held>>
     ELSE LET ps == [positions EXCEPT ![f] = PositionAfter(f)]
              expands == MayExpand(ps, f)
              v == IF ~expands THEN view
                   ELSE [view EXCEPT !.pending = [type |-> "Expand", isr |-> view.isr \union {f}]]
          IN  /\ positions' = ps
              /\ view' = v
              /\ alter' = IF expands THEN Proposed(ps, v.pending.isr) ELSE alter
              /\ hw' = IF ps[f].end = positions[f].end THEN hw ELSE Watermark(v, ps, end)
              \* What is sent to a former life of the follower does not reach it.
              /\ held' = IF fetch[f].brokerEpoch = brokers[f].epoch
                         THEN [held EXCEPT ![f] = end] ELSE held
  /\ UNCHANGED <<controllerVars, cache, delta, end>>

(***************************************************************************)
(* Changes of the ISR.                                                     *)
(***************************************************************************)
PassLagTime ==
  /\ Lags /\ \E f \in Followers : positions[f].caughtUp \/ positions[f].lastEnd # NoOffset
  /\ positions' = [f \in Followers |->
                     [positions[f] EXCEPT !.caughtUp = FALSE, !.lastEnd = NoOffset]]
  /\ UNCHANGED <<controllerVars, cache, delta, view, end, hw, alter, fetch, held>>

\* Partition.maybeShrinkIsr.
OutOfSync == {f \in view.isr \ {Leader} : ~IsCaughtUp(positions[f], end)}
ShrinkIsr ==
  /\ alter.type = "None" /\ view.pending = NoChange /\ OutOfSync # {}
  /\ view' = [view EXCEPT !.pending = [type |-> "Shrink", isr |-> view.isr \ OutOfSync]]
  /\ alter' = Proposed(positions, view.isr \ OutOfSync)
  /\ UNCHANGED <<controllerVars, cache, delta, positions, end, hw, fetch, held>>

\* Partition.handleAlterPartitionError, handleAlterPartitionUpdate. Of one error it is certain that
\* the change was not made; after the others it stays pending until the next delta.
HearAlterPartition ==
  /\ alter.type = "Answer"
  /\ LET isStale == \/ alter.leaderEpoch # view.leaderEpoch
                    \/ alter.partitionEpoch < view.partitionEpoch
         v == [view EXCEPT !.isr = alter.isr, !.partitionEpoch = alter.partitionEpoch,
                           !.pending = NoChange]
     IN  IF view.pending = NoChange THEN UNCHANGED <<view, hw>>
         ELSE IF alter.error = "INELIGIBLE_REPLICA"
         THEN view' = [view EXCEPT !.pending = NoChange] /\ UNCHANGED hw
         ELSE IF alter.error # "NONE" \/ isStale THEN UNCHANGED <<view, hw>>
         ELSE view' = v /\ hw' = Watermark(v, positions, end)
  /\ alter' = NoAlter
  /\ UNCHANGED <<controllerVars, cache, delta, positions, end, fetch, held>>

Errors == {"NONE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER",
           "INVALID_UPDATE_VERSION", "INELIGIBLE_REPLICA"}
LeaderEpochs == {0, 1}

Next ==
  \/ StartReassignment \/ Publish \/ ApplyDelta
  \/ AppendRecord \/ PassLagTime \/ ShrinkIsr \/ HearAlterPartition
  \/ \E error \in Errors : HandleAlterPartition(error)
  \/ \E b \in Brokers : Fence(b) \/ Unfence(b) \/ Restart(b) \/ AskToStop(b) \/ GrantStop(b)
  \/ \E f \in Followers :
       \/ \E e \in LeaderEpochs : SendFetch(f, e)
       \/ LoseFetch(f)
       \/ \E error \in Errors : HandleFetch(f, error)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
States == {"Active", "Fenced", "ShuttingDown"}
TypeOK ==
  /\ registration.isr \subseteq registration.replicas /\ Leader \in registration.isr
  /\ registration.leaderEpoch \in LeaderEpochs
  /\ \A b \in Brokers : brokers[b].state \in States /\ brokers[b].epoch \in BrokerEpochs
  /\ hw \in 0..end /\ end \in 0..MaxAppends
  /\ \A f \in Followers : held[f] \in 0..end /\ positions[f].end \in NoOffset..end
  /\ alter.type \in {"None", "Request", "Answer"} /\ alter.error \in Errors
  /\ stopped \subseteq Followers /\ \A b \in heard : brokers[b].state = "ShuttingDown"
  /\ view.pending.type \in {"None", "Expand", "Shrink"}

\* Every member of the ISR has every record that consumers may read: any of them may lead next.
CommittedIsOnIsr == \A b \in registration.isr : b = Leader \/ held[b] >= hw

\* What the leader may still count on are replicas.
PendingIsDropped == MaximalIsr(view) \subseteq view.replicas

\* Who joins the ISR is alive, stays, and is the process that fetched (KIP-841, KIP-903).
OnlyEligibleJoin ==
  [][\A b \in registration'.isr \ registration.isr :
       brokers[b].state = "Active" /\ alter.epochs[b] \in {NoEpoch, brokers[b].epoch}]_vars

\* The leader does not ask for what it can know to be refused.
OnlyEligibleAreProposed ==
  [][alter'.type = "Request" /\ alter.type = "None"
       => \A b \in alter'.isr \ view.isr :
            cache[b].state = "Active" /\ alter'.epochs[b] = cache[b].epoch]_vars

\* A broker that was told to stop is in no ISR, and the leader cannot bring it back.
StoppedIsOut ==
  \A b \in stopped : b \notin registration.isr /\ b \notin view.isr /\ ~Eligible(view, positions, b)

\* A replica that has left holds the watermark back no longer.
NobodyElseIsWaitedFor ==
  [][view'.partitionEpoch # view.partitionEpoch
       => hw' >= Smallest({end'} \union {positions'[f].end : f \in view'.replicas \ {Leader}})]_vars
\* ... nor raises it: what is known of it goes with it.
LeftIsForgotten == \A f \in Followers \ view.replicas : positions[f] = NoPosition

\* A reassignment ends with all of its replicas in sync; nothing is lost with those that leave.
EndsInSync ==
  [][registration'.replicas = Target /\ registration.replicas # Target
       => Target \subseteq registration'.isr]_vars

\* A follower that is a replica no longer is fenced, and does not ask for ever.
LeavesWithTheEpoch ==
  [][view'.leaderEpoch = view.leaderEpoch => view.replicas \subseteq view'.replicas]_vars

\* Situations worth being in.
JoinsAgain == \E b \in Followers : brokers[b].epoch > 0 /\ b \in registration.isr
IsReplaced == registration.replicas = Target /\ view.replicas = Target /\ Target # FirstReplicas
PendingIsOvertaken == alter.type # "None" /\ view.pending = NoChange
================================================================================
