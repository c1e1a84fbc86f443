------------------------- MODULE ReplicationProtocol -------------------------
(***************************************************************************)
(* One partition of Kafka: the controller, leaders, followers and the      *)
(* messages between them. State, actions and the specification Spec; what  *)
(* must hold of it, and under which fairness, stands in Replication.tla,   *)
(* the root.                                                               *)
(*                                                                         *)
(* Two granularities of one text. Fine: request, handling and response of  *)
(* a round trip are three steps, and a broker may move on between them.    *)
(* Coarse: the round trip is one step. Both apply the same operators:      *)
(* a request (...Request), its answer by the leader (...Answer), what the  *)
(* leader remembers (...AtLeader), the follower after it (After...).       *)
(*                                                                         *)
(* No bounds here: offsets, epochs and counters range over constant sets,  *)
(* which a model makes finite. Every choice of the environment (which      *)
(* broker, which epoch, what survives a crash) is an argument of the       *)
(* action: state, action and arguments determine the next state.           *)
(*                                                                         *)
(* Guards that stand for one check in a broker have names of their own,    *)
(* so that a model can take one away by an override (a mutant).            *)
(***************************************************************************)
EXTENDS ReplicationLog

CONSTANTS
  Brokers,         \* ids, strings
  Epochs,          \* leader epochs, consecutive
  Offsets,         \* offsets, from 0; log ends lie here too
  AppendCounts,    \* how many records may be appended in all: 0..n
  BrokerEpochs,    \* incarnations of a broker: 0..n; {0} without crashes
  PartitionEpochs, \* 0..n; {0} unless TwoStepIsr
  InitialLeader,   \* leads the first epoch
  Protocol,        \* which truncation protocol, see below
  Fine,            \* TRUE: fine granularity, FALSE: coarse
  UncleanElection, \* unclean.leader.election.enable
  Crashes,         \* brokers crash and restart
  LogStartMoves,   \* DeleteRecords, retention
  TwoStepIsr       \* AlterPartition and its answer are messages

(***************************************************************************)
(* Protocol is one of                                                      *)
(*  HighWatermark    before KIP-101: truncate to the own high watermark    *)
(*  Kip101           ask once for the end offset of the own last epoch     *)
(*  Kip279           the answer names its epoch; ask until one is common   *)
(*  Kip320FirstTry   a draft: no truncation on becoming follower; a fetch  *)
(*                   carries the last record's epoch, not the current one; *)
(*                   a leader that finds it diverging sends the follower   *)
(*                   to truncate as in Kip279                              *)
(*  Kip320           every request carries the current leader epoch        *)
(*  TruncateOnFetch  KIP-595 (inter.broker.protocol.version >= 2.7): as    *)
(*                   Kip320, and a fetch response carries the divergence   *)
(***************************************************************************)
CurrentEpochIsSent     == Protocol \in {"Kip320", "TruncateOnFetch"}
LastFetchedEpochIsSent == Protocol \in {"Kip320FirstTry", "TruncateOnFetch"}

(***************************************************************************)
(* The variables, and the field of the real broker that each stands for.   *)
(* All but those in GhostVars can be read off an implementation.           *)
(*                                                                         *)
(* variable           | field                                              *)
(* -------------------+--------------------------------------------------- *)
(* registration       | the controller's PartitionRegistration (ZooKeeper: *)
(*                    | the partition's state node): leader ("none" if     *)
(*                    | offline), leaderEpoch, isr, partitionEpoch         *)
(* leaderAndIsr       | per leader epoch the LeaderAndIsr request that some *)
(*                    | broker may still receive; erased when all have     *)
(*                    | that epoch or a newer one                          *)
(* online[b]          | the process runs                                   *)
(* brokerEpoch[b]     | broker epoch (KIP-380, KIP-903): its incarnation   *)
(* leaderEpoch[b]     | Partition.leaderEpoch; -1 before LeaderAndIsr      *)
(* leader[b]          | Partition.leaderReplicaIdOpt; b itself: it leads   *)
(* isr[b]             | Partition.partitionState.isr; {} on a follower     *)
(* partitionEpoch[b]  | Partition.partitionEpoch of a leader, else 0       *)
(* pendingIsr[b]      | PendingExpandIsr or PendingShrinkIsr: the sent ISR; *)
(*                    | {} when none (always, unless TwoStepIsr)           *)
(* followerState[b][f]| Partition.remoteReplicasMap: Replica.logEndOffset  *)
(*                    | and the broker epoch of f's last fetch; -1 unknown *)
(* log[b]             | UnifiedLog: each record's epoch, from log start on *)
(* logStartOffset[b]  | UnifiedLog.logStartOffset                          *)
(* highWatermark[b]   | UnifiedLog.highWatermark                           *)
(* epochCache[b]      | LeaderEpochFileCache's entries                     *)
(* fetchState[b]      | ReplicaFetcherThread: PartitionFetchState.state;   *)
(*                    | Failed: in FailedPartitions; None: not tracked     *)
(* fetchOffset[b]     | PartitionFetchState.fetchOffset; 0 if not tracked  *)
(* channel[b]         | the round trip in which b's fetcher thread is, as  *)
(*                    | follower: none, the request until it is handled,   *)
(*                    | then the answer until it is processed              *)
(* alterPartition[b]  | AlterPartitionManager: the one item in flight      *)
(* -------------------+--------------------------------------------------- *)
(* GhostVars: an implementation does not have them.                        *)
(* exposed            | records that were once below a leader's high       *)
(*                    | watermark and are still owed to consumers          *)
(* appends            | number of records appended so far                  *)
(* guaranteedFrom     | the promise covers what leaders of this epoch and  *)
(*                    | later ones exposed: raised by an unclean election  *)
(*                    | and by the loss of the last ISR member's log tail  *)
(***************************************************************************)
VARIABLES
  registration, leaderAndIsr,
  online, brokerEpoch,
  leaderEpoch, leader, isr, partitionEpoch, pendingIsr, followerState,
  log, logStartOffset, highWatermark, epochCache, fetchState, fetchOffset,
  channel, alterPartition,
  exposed, appends, guaranteedFrom

controllerVars == <<registration, leaderAndIsr>>
processVars    == <<online, brokerEpoch>>
partitionVars  == <<leaderEpoch, leader, isr, partitionEpoch, pendingIsr, followerState>>
replicaVars    == <<log, logStartOffset, highWatermark, epochCache, fetchState, fetchOffset>>
messageVars    == <<channel, alterPartition>>
ghostVars      == <<exposed, appends, guaranteedFrom>>
GhostVars      == {"exposed", "appends", "guaranteedFrom"}

vars == <<controllerVars, processVars, partitionVars, replicaVars, messageVars, ghostVars>>

(***************************************************************************)
(* Values.                                                                 *)
(***************************************************************************)
NoLeader     == "none"
InitialEpoch == Smallest(Epochs)
BrokersOrNone  == Brokers \union {NoLeader}
EpochsOrNone   == Epochs \union {NoEpoch}
OffsetsOrNone  == Offsets \union {NoOffset}
UnknownFollower == [logEndOffset |-> NoOffset, brokerEpoch |-> NoEpoch]

NoLeaderAndIsr == [present |-> FALSE, leader |-> NoLeader, isr |-> {}, partitionEpoch |-> 0]

\* One shape for every message between a follower and its leader.
\* currentLeaderEpoch, in an answer: the one of the request, by which the
\* follower's thread tells a stale answer (the historical protocols do not
\* send it, but a thread remembers it); epoch, endOffset: EpochEndOffset, or
\* the diverging epoch of a fetch response; endOffset also answers ListOffsets.
NoMessage ==
  [type |-> "None", leader |-> NoLeader, currentLeaderEpoch |-> NoEpoch,
   brokerEpoch |-> 0, fetchOffset |-> 0, lastEpoch |-> NoEpoch,
   error |-> "NONE", epoch |-> NoEpoch, endOffset |-> NoOffset,
   records |-> <<>>, highWatermark |-> 0, logStartOffset |-> 0]

MessageTypes ==
  {"None", "EpochRequest", "EpochResponse", "FetchRequest", "FetchResponse",
   "LatestRequest", "LatestResponse", "EarliestRequest", "EarliestResponse"}

Errors == {"NONE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH",
           "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION",
           "OFFSET_OUT_OF_RANGE", "LOG_TRUNCATION"}

NoAlterPartition ==
  [type |-> "None", leaderEpoch |-> NoEpoch, partitionEpoch |-> 0, isr |-> {},
   brokerEpochs |-> [b \in Brokers |-> NoEpoch], error |-> "NONE"]

AlterPartitionErrors ==
  {"NONE", "FENCED_LEADER_EPOCH", "INVALID_UPDATE_VERSION", "INELIGIBLE_REPLICA"}

Replica(b) ==
  [log |-> log[b], logStart |-> logStartOffset[b], hw |-> highWatermark[b],
   cache |-> epochCache[b], state |-> fetchState[b], offset |-> fetchOffset[b]]

SetReplica(b, r) ==
  /\ log'            = [log EXCEPT ![b] = r.log]
  /\ logStartOffset' = [logStartOffset EXCEPT ![b] = r.logStart]
  /\ highWatermark'  = [highWatermark EXCEPT ![b] = r.hw]
  /\ epochCache'     = [epochCache EXCEPT ![b] = r.cache]
  /\ fetchState'     = [fetchState EXCEPT ![b] = r.state]
  /\ fetchOffset'    = [fetchOffset EXCEPT ![b] = r.offset]

LogEndOffset(b) == logStartOffset[b] + Len(log[b])
ActingLeader(b) == online[b] /\ leader[b] = b
Untracked(r)    == [r EXCEPT !.state = "None", !.offset = 0]
MarkFailed(r)   == [r EXCEPT !.state = "Failed", !.offset = 0]

Init ==
  /\ registration = [leader |-> InitialLeader, leaderEpoch |-> InitialEpoch,
                     isr |-> Brokers, partitionEpoch |-> 0]
  /\ leaderAndIsr   = [e \in Epochs |-> NoLeaderAndIsr]
  /\ online         = [b \in Brokers |-> TRUE]
  /\ brokerEpoch    = [b \in Brokers |-> 0]
  /\ leaderEpoch    = [b \in Brokers |-> InitialEpoch]
  /\ leader         = [b \in Brokers |-> InitialLeader]
  /\ isr            = [b \in Brokers |-> IF b = InitialLeader THEN Brokers ELSE {}]
  /\ partitionEpoch = [b \in Brokers |-> 0]
  /\ pendingIsr     = [b \in Brokers |-> {}]
  /\ followerState  = [b \in Brokers |-> [f \in Brokers |-> UnknownFollower]]
  /\ log            = [b \in Brokers |-> <<>>]
  /\ logStartOffset = [b \in Brokers |-> 0]
  /\ highWatermark  = [b \in Brokers |-> 0]
  /\ epochCache     = [b \in Brokers |-> IF b = InitialLeader
                                         THEN <<[epoch |-> InitialEpoch, start |-> 0]>>
                                         ELSE <<>>]
  /\ fetchState     = [b \in Brokers |-> IF b = InitialLeader THEN "None" ELSE "Fetching"]
  /\ fetchOffset    = [b \in Brokers |-> 0]
  /\ channel        = [b \in Brokers |-> NoMessage]
  /\ alterPartition = [b \in Brokers |-> NoAlterPartition]
  /\ exposed        = {}
  /\ appends        = 0
  /\ guaranteedFrom = InitialEpoch

(***************************************************************************)
(* Controller. It may think that a broker failed whether or not it did: a  *)
(* zombie, a live broker that has not heard of its successor, is part of   *)
(* the protocol. LeaderAndIsr requests arrive late, never, or after a      *)
(* newer one.                                                              *)
(***************************************************************************)

\* A broker that just started gets the state of now; requests to its former
\* incarnation carry that one's broker epoch and are dropped (KIP-380).
MayReceive(b, e, reg, epochs, partitionEpochs) ==
  IF epochs[b] = NoEpoch
  THEN e = reg.leaderEpoch
  ELSE \/ e > epochs[b]
       \/ /\ e = epochs[b] /\ e = reg.leaderEpoch /\ b = reg.leader
          /\ reg.partitionEpoch > partitionEpochs[b]

\* The request of the current epoch tells the registration as it is now.
Announced(reg, epochs, partitionEpochs) ==
  [e \in Epochs |->
     IF ~ \E b \in Brokers : MayReceive(b, e, reg, epochs, partitionEpochs)
     THEN NoLeaderAndIsr
     ELSE IF e = reg.leaderEpoch
     THEN [present |-> TRUE, leader |-> reg.leader, isr |-> reg.isr,
           partitionEpoch |-> reg.partitionEpoch]
     ELSE leaderAndIsr[e]]

NextPartitionEpoch == IF TwoStepIsr THEN registration.partitionEpoch + 1 ELSE 0

Register(newLeader, e, newIsr) ==
  LET reg == [leader |-> newLeader, leaderEpoch |-> e, isr |-> newIsr,
              partitionEpoch |-> NextPartitionEpoch]
  IN  /\ NextPartitionEpoch \in PartitionEpochs
      /\ registration' = reg
      /\ leaderAndIsr' = Announced(reg, leaderEpoch, partitionEpoch)

ControllerStep ==
  UNCHANGED <<processVars, partitionVars, replicaVars, messageVars, appends>>

\* A clean election, also of the leader itself: the leader epoch is bumped.
\* PartitionStateMachine.electLeaderForPartitions; KRaft: PartitionChangeBuilder.electLeader.
ElectLeader(e, b) ==
  /\ e = registration.leaderEpoch + 1
  /\ online[b] /\ b \in registration.isr
  /\ Register(b, e, registration.isr)
  /\ ControllerStep /\ UNCHANGED <<exposed, guaranteedFrom>>

\* The controller takes b for dead: out of the ISR, l leads.
\* KafkaController.onBrokerFailure; KRaft: ReplicationControlManager.handleBrokerFenced.
\* ZooKeeper's controller bumps the leader epoch; from 3.6 on, KRaft's does only if b was
\* the leader (KAFKA-15021), and so it is here where AlterPartition is modelled.
FenceBroker(e, b, l) ==
  /\ e = registration.leaderEpoch + (IF TwoStepIsr /\ b # registration.leader THEN 0 ELSE 1)
  /\ b \in registration.isr /\ l \in registration.isr \ {b} /\ online[l]
  /\ b # registration.leader => l = registration.leader
  /\ Register(l, e, registration.isr \ {b})
  /\ ControllerStep /\ UNCHANGED <<exposed, guaranteedFrom>>

\* The leader is dead and nobody in the ISR runs: no leader; the last member stays in the ISR.
\* PartitionStateMachine: OfflinePartition; KRaft: leader -1 (NO_LEADER).
TakeOffline(e, b) ==
  /\ Crashes
  /\ e = registration.leaderEpoch + 1
  /\ b = registration.leader
  /\ \A m \in registration.isr : ~online[m]
  /\ Register(NoLeader, e, IF registration.isr = {b} THEN {b} ELSE registration.isr \ {b})
  /\ ControllerStep /\ UNCHANGED <<exposed, guaranteedFrom>>

\* A live replica outside the ISR leads, and is the ISR. Nothing that was exposed
\* before, or is still exposed by leaders of older epochs, is owed any longer.
\* OfflinePartitionLeaderElectionStrategy with unclean.leader.election.enable.
ElectUncleanLeader(e, b) ==
  /\ UncleanElection
  /\ e = registration.leaderEpoch + 1
  /\ online[b] /\ b \notin registration.isr
  /\ Register(b, e, {b})
  /\ guaranteedFrom' = e
  /\ exposed' = {}
  /\ ControllerStep

(***************************************************************************)
(* High watermark. Partition.maybeIncrementLeaderHW: the smallest log end  *)
(* in the maximal ISR (committed and pending members), never downwards.    *)
(***************************************************************************)
MaximalIsr(members, pending) == members \union pending

HighWatermarkOf(l, r, members, followers) ==
  Max(r.hw, Smallest({IF m = l THEN LogEnd(r) ELSE followers[m].logEndOffset :
                        m \in members \union {l}}))

WithHighWatermark(l, r, members, followers) ==
  [r EXCEPT !.hw = HighWatermarkOf(l, r, members, followers)]

\* Whatever a leader of a guaranteed epoch has below its high watermark is exposed.
Expose(r, e) ==
  exposed' = IF e >= guaranteedFrom THEN exposed \union RecordsBelow(r, r.hw) ELSE exposed

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

\* What a new leader knows of its followers: nothing. Replica.resetReplicaState of Kafka 3.8
\* keeps their positions where the same broker leads again; that is not safe for a leader
\* that has missed an epoch of another one in between.
RemoteReplicas(old) == [f \in Brokers |-> UnknownFollower]

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
BecomeLeader(b, e) ==
  LET request   == leaderAndIsr[e]
      followers == RemoteReplicas(followerState[b])
      started   == [Untracked(Replica(b)) EXCEPT
                      !.cache = AssignEpochStart(epochCache[b], e, LogEndOffset(b))]
      r         == WithHighWatermark(b, started, request.isr, followers)
  IN  /\ Receives(b, e)
      /\ request.leader = b
      /\ LearnsLeaderEpoch(b, e, b, request.isr, request.partitionEpoch, followers)
      /\ SetReplica(b, r)
      /\ Expose(r, e)
      /\ UNCHANGED <<registration, processVars, messageVars, appends, guaranteedFrom>>

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
  LET r == WithHighWatermark(l, AppendRecord(Replica(l), leaderEpoch[l]),
                             MaximalIsr(isr[l], pendingIsr[l]), followerState[l])
  IN  /\ ActingLeader(l)
      /\ o = LogEndOffset(l) /\ o + 1 \in Offsets
      /\ appends + 1 \in AppendCounts
      /\ SetReplica(l, r)
      /\ appends' = appends + 1
      /\ Expose(r, leaderEpoch[l])
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
  LET r == WithHighWatermark(l, Replica(l), newIsr, followerState[l])
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

\* Partition.prepareIsrShrink, submitAlterPartition
SubmitShrinkIsr(l, f) == MayShrink(l, f) /\ Submit(l, isr[l] \ {f})

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
      r        == IF accepted THEN WithHighWatermark(l, Replica(l), newIsr, followerState[l])
                              ELSE Replica(l)
  IN  /\ m.type = "Response"
      /\ alterPartition' = [alterPartition EXCEPT ![l] = NoAlterPartition]
      /\ isr' = [isr EXCEPT ![l] = newIsr]
      /\ partitionEpoch' = newPartitionEpoch
      /\ pendingIsr' = [pendingIsr EXCEPT ![l] =
           IF accepted \/ (current /\ m.error = "INELIGIBLE_REPLICA") THEN {} ELSE pendingIsr[l]]
      /\ leaderAndIsr' = Announced(registration, leaderEpoch, newPartitionEpoch)
      /\ SetReplica(l, r)
      /\ IF accepted THEN Expose(r, leaderEpoch[l]) ELSE UNCHANGED exposed
      /\ UNCHANGED <<registration, processVars, leaderEpoch, leader, followerState, channel,
                     appends, guaranteedFrom>>

\* Partition.makeLeader, same leader epoch, newer partition epoch: only the ISR.
UpdateIsr(l, e) ==
  LET request == leaderAndIsr[e]
      r == WithHighWatermark(l, Replica(l), request.isr, followerState[l])
  IN  /\ ActingLeader(l) /\ request.present
      /\ e = leaderEpoch[l] /\ request.partitionEpoch > partitionEpoch[l]
      /\ LearnsLeaderEpoch(l, e, l, request.isr, request.partitionEpoch, followerState[l])
      /\ SetReplica(l, r)
      /\ Expose(r, e)
      /\ UNCHANGED <<registration, processVars, messageVars, appends, guaranteedFrom>>

(***************************************************************************)
(* Leader: answers. KafkaApis.handleFetchRequest and                       *)
(* handleOffsetForLeaderEpochRequest, Partition.checkCurrentLeaderEpoch:   *)
(* the epoch first, then whether it leads at all.                          *)
(***************************************************************************)
FetchEpochFence(requestEpoch, localEpoch)       == requestEpoch = localEpoch
TruncationEpochFence(requestEpoch, localEpoch)  == requestEpoch = localEpoch
ListOffsetsEpochFence(requestEpoch, localEpoch) == requestEpoch = localEpoch

\* A broker that restarted knows nothing of the partition before its first
\* LeaderAndIsr: ReplicaManager.getPartitionOrError.
LeaderError(l, m, fence) ==
  IF leaderEpoch[l] = NoEpoch THEN "UNKNOWN_TOPIC_OR_PARTITION"
  ELSE IF CurrentEpochIsSent /\ ~fence
  THEN IF m.currentLeaderEpoch < leaderEpoch[l] THEN "FENCED_LEADER_EPOCH"
                                                ELSE "UNKNOWN_LEADER_EPOCH"
  ELSE IF leader[l] # l THEN "NOT_LEADER_OR_FOLLOWER" ELSE "NONE"

\* An answer to m of that type, nothing in it yet.
AnswerTo(m, type, error) ==
  [NoMessage EXCEPT !.type = type, !.leader = m.leader, !.error = error,
                    !.currentLeaderEpoch = m.currentLeaderEpoch,
                    !.fetchOffset = m.fetchOffset]

\* Partition.lastOffsetForLeaderEpoch: of leader l, asked by f about an epoch.
EpochEndOffset(l, f, asked) == EndOffsetFor(epochCache[l], asked, LogEndOffset(l))

\* Before KIP-279 the answer was an offset without its epoch.
EpochAnswer(l, f, m) ==
  LET error == LeaderError(l, m, TruncationEpochFence(m.currentLeaderEpoch, leaderEpoch[l]))
      end   == EpochEndOffset(l, f, m.lastEpoch)
      a     == AnswerTo(m, "EpochResponse", error)
  IN  IF error # "NONE" THEN a
      ELSE [a EXCEPT !.epoch = IF Protocol = "Kip101" THEN NoEpoch ELSE end.epoch,
                     !.endOffset = end.offset]

\* A position below the log start is out of range before it is diverging (KAFKA-12996).
OutOfRangeBeforeDivergence(offset, logStart) == offset < logStart

\* Does the leader's log lack the follower's last record?
Diverges(end, m) ==
  /\ m.lastEpoch # NoEpoch
  /\ end.epoch # m.lastEpoch \/ end.offset < m.fetchOffset

\* Partition.readRecords: epoch, range below (KAFKA-12996), divergence, range, data.
\* The high watermark is the one before this fetch counts.
FetchAnswer(l, f, m) ==
  LET error == LeaderError(l, m, FetchEpochFence(m.currentLeaderEpoch, leaderEpoch[l]))
      end   == EndOffsetFor(epochCache[l], m.lastEpoch, LogEndOffset(l))
      o     == m.fetchOffset
      unknown == m.lastEpoch # NoEpoch /\ end.offset = NoOffset
      below == m.lastEpoch # NoEpoch /\ OutOfRangeBeforeDivergence(o, logStartOffset[l])
      a(e)  == AnswerTo(m, "FetchResponse", e)
  IN  IF error # "NONE" THEN a(error)
      ELSE IF Protocol = "TruncateOnFetch" /\ (unknown \/ below)
      THEN a("OFFSET_OUT_OF_RANGE")
      ELSE IF Protocol = "TruncateOnFetch" /\ Diverges(end, m)
      THEN [a("NONE") EXCEPT !.epoch = end.epoch, !.endOffset = end.offset]
      ELSE IF Protocol = "Kip320FirstTry" /\ Diverges(end, m) THEN a("LOG_TRUNCATION")
      ELSE IF o < logStartOffset[l] \/ o > LogEndOffset(l) THEN a("OFFSET_OUT_OF_RANGE")
      ELSE [a("NONE") EXCEPT
              !.records = IF o < LogEndOffset(l) THEN <<log[l][o - logStartOffset[l] + 1]>>
                                                 ELSE <<>>,
              !.highWatermark = highWatermark[l],
              !.logStartOffset = logStartOffset[l]]

\* Partition.updateFollowerFetchState: only a fetch that was served counts (KAFKA-8400),
\* and only as an acknowledgement from the leader's own epoch (in Kafka 3.8 a new epoch may
\* begin between the read and the update, which takes the lock anew; here they are one step).
FetchWasServed(a) == a.error = "NONE" /\ a.endOffset = NoOffset
AcknowledgementFence(requestEpoch, localEpoch) == requestEpoch = localEpoch

FetchCounts(l, m, a) ==
  /\ FetchWasServed(a)
  /\ CurrentEpochIsSent => AcknowledgementFence(m.currentLeaderEpoch, leaderEpoch[l])

FollowersAtLeader(l, f, m, a) ==
  IF FetchCounts(l, m, a)
  THEN [followerState[l] EXCEPT ![f] = [logEndOffset |-> m.fetchOffset,
                                        brokerEpoch |-> m.brokerEpoch]]
  ELSE followerState[l]

LeaderAfterFetch(l, f, m, a) ==
  IF FetchCounts(l, m, a)
  THEN WithHighWatermark(l, Replica(l), MaximalIsr(isr[l], pendingIsr[l]),
                         FollowersAtLeader(l, f, m, a))
  ELSE Replica(l)

\* Partition.fetchOffsetForTimestamp, asked by RemoteLeaderEndPoint.fetchLatestOffset and
\* fetchEarliestOffset: the epoch is checked as for a fetch.
ListOffsetsAnswer(l, f, m) ==
  LET error == LeaderError(l, m, ListOffsetsEpochFence(m.currentLeaderEpoch, leaderEpoch[l]))
      latest == m.type = "LatestRequest"
      a == AnswerTo(m, IF latest THEN "LatestResponse" ELSE "EarliestResponse", error)
  IN  IF error # "NONE" THEN a
      ELSE [a EXCEPT !.endOffset = IF latest THEN LogEndOffset(l) ELSE logStartOffset[l]]

(***************************************************************************)
(* Follower: AbstractFetcherThread. One thread does one thing at a time:   *)
(* while a round trip is under way nothing else starts. The slot survives  *)
(* the removal and re-addition of the partition, also where that is to     *)
(* another leader (for which Kafka has another thread).                    *)
(***************************************************************************)
Request(f, type) ==
  [NoMessage EXCEPT !.type = type, !.leader = leader[f],
                    !.currentLeaderEpoch = leaderEpoch[f],
                    !.brokerEpoch = brokerEpoch[f]]

\* Whether there is an epoch to ask about.
HasEpoch(f) == LatestEpoch(epochCache[f]) # NoEpoch

MaySendEpochRequest(f) ==
  /\ online[f] /\ channel[f].type = "None"
  /\ fetchState[f] = "Truncating"
  /\ HasEpoch(f)

EpochRequest(f) == [Request(f, "EpochRequest") EXCEPT !.lastEpoch = LatestEpoch(epochCache[f])]

MaySendFetch(f) ==
  /\ online[f] /\ channel[f].type = "None"
  /\ fetchState[f] = "Fetching"

FetchRequest(f) ==
  [Request(f, "FetchRequest") EXCEPT
     !.fetchOffset = fetchOffset[f],
     !.lastEpoch = IF LastFetchedEpochIsSent THEN LatestEpoch(epochCache[f]) ELSE NoEpoch]

\* AbstractFetcherThread.getOffsetTruncationState: where to cut, and whether that is final.
\* Kip101 has no epoch in the answer; its follower asks once.
EpochIsCommon(localEpoch, leadersEpoch) == localEpoch = leadersEpoch

OffsetTruncationState(r, a) ==
  LET end   == LogEnd(r)
      local == EndOffsetFor(r.cache, a.epoch, end)
  IN  IF a.endOffset = NoOffset THEN [offset |-> r.offset, completed |-> TRUE]
      ELSE IF a.epoch = NoEpoch \/ local.offset = NoOffset
      THEN [offset |-> Min(a.endOffset, end), completed |-> TRUE]
      ELSE IF EpochIsCommon(local.epoch, a.epoch)
      THEN [offset |-> Min(Min(local.offset, a.endOffset), end), completed |-> TRUE]
      ELSE [offset |-> Min(local.offset, end), completed |-> FALSE]

\* doTruncate, then updateFetchOffsetAndMaybeMarkTruncationComplete.
Truncated(r, a) ==
  LET st == OffsetTruncationState(r, a)
  IN  [TruncateTo(r, st.offset) EXCEPT
         !.offset = st.offset,
         !.state = IF st.completed \/ Protocol = "TruncateOnFetch" THEN "Fetching"
                                                                  ELSE "Truncating"]

\* onPartitionFenced: fenced in the epoch in which it still is: FailedPartitions
\* (until a new LeaderAndIsr); fenced in an epoch that it has left: try again.
AfterFenced(f, a) ==
  IF a.currentLeaderEpoch = leaderEpoch[f] THEN MarkFailed(Replica(f)) ELSE Replica(f)

\* truncateToEpochEndOffsets drops the answer to a question asked in another epoch.
TruncationResponseEpochCheck(requestEpoch, localEpoch) == requestEpoch = localEpoch

AfterEpochResponse(f, a) ==
  IF ~ /\ fetchState[f] = "Truncating" /\ leader[f] = a.leader
       /\ TruncationResponseEpochCheck(a.currentLeaderEpoch, leaderEpoch[f])
  THEN Replica(f)
  ELSE CASE a.error = "NONE"                -> Truncated(Replica(f), a)
         [] a.error = "FENCED_LEADER_EPOCH" -> AfterFenced(f, a)
         [] OTHER                           -> Replica(f)

\* processFetchRequest drops what was asked at another offset. Kafka 3.8 compares
\* only the offset; with TruncateOnFetch that is not enough (a response may outlive
\* two elections), so the epoch is compared too.
FetchResponseEpochCheck(requestEpoch, localEpoch) == requestEpoch = localEpoch

FetchResponseIsCurrent(f, a) ==
  /\ fetchState[f] = "Fetching" /\ leader[f] = a.leader
  /\ fetchOffset[f] = a.fetchOffset
  /\ FetchResponseEpochCheck(a.currentLeaderEpoch, leaderEpoch[f])

\* The follower's high watermark: the leader's, within the own log.
FollowerHighWatermark(leaderHw, logStart, logEnd) == Max(logStart, Min(leaderHw, logEnd))

\* ReplicaFetcherThread.processPartitionData: append, high watermark, log start.
WithFetchedData(r, a) ==
  LET appended == AppendRecords(r, a.records)
      counted  == [appended EXCEPT
                     !.hw = FollowerHighWatermark(a.highWatermark, r.logStart, LogEnd(appended)),
                     !.offset = LogEnd(appended)]
  IN  IF r.offset # LogEnd(r) THEN MarkFailed(r)
      ELSE IF a.logStartOffset > counted.hw THEN MarkFailed(counted)
      ELSE AdvanceLogStart(counted, a.logStartOffset)

AfterFetchResponse(f, a) ==
  LET r == Replica(f)
  IN  IF ~FetchResponseIsCurrent(f, a) THEN r
      ELSE CASE a.error = "NONE" /\ a.endOffset # NoOffset -> Truncated(r, a)
             [] a.error = "NONE"                -> WithFetchedData(r, a)
             [] a.error = "LOG_TRUNCATION"      -> [r EXCEPT !.state = "Truncating", !.offset = r.hw]
             [] a.error = "FENCED_LEADER_EPOCH" -> AfterFenced(f, a)
             [] OTHER                           -> r

\* handleOutOfRangeError, fetchOffsetAndTruncate: first the leader's log end.
MessageAfterFetchResponse(f, a) ==
  IF FetchResponseIsCurrent(f, a) /\ a.error = "OFFSET_OUT_OF_RANGE"
  THEN Request(f, "LatestRequest")
  ELSE NoMessage

\* The leader's log end is below ours: cut. Otherwise ask for its log start.
LeaderEndsBelow(f, a) == a.endOffset < LogEndOffset(f)

AfterListOffsetsResponse(f, a) ==
  LET r == Replica(f)
  IN  IF a.error = "FENCED_LEADER_EPOCH" THEN AfterFenced(f, a)
      ELSE IF a.error # "NONE" THEN r
      ELSE IF a.type = "LatestResponse"
      THEN IF LeaderEndsBelow(f, a)
           THEN [TruncateTo(r, a.endOffset) EXCEPT !.offset = a.endOffset]
           ELSE r
      ELSE IF a.endOffset > LogEnd(r)
      THEN [TruncateFullyAndStartAt(r, a.endOffset) EXCEPT !.offset = a.endOffset]
      ELSE [r EXCEPT !.offset = LogEnd(r)]

MessageAfterListOffsetsResponse(f, a) ==
  IF a.type = "LatestResponse" /\ a.error = "NONE" /\ ~LeaderEndsBelow(f, a)
  THEN Request(f, "EarliestRequest")
  ELSE NoMessage

FollowerStep ==
  UNCHANGED <<controllerVars, processVars, partitionVars, alterPartition, ghostVars>>

\* AbstractFetcherThread.truncateToHighWatermark: of a log without epochs.
TruncateToHighWatermark(f) ==
  /\ online[f] /\ channel[f].type = "None"
  /\ fetchState[f] = "Truncating"
  /\ ~HasEpoch(f)
  /\ SetReplica(f, [TruncateTo(Replica(f), fetchOffset[f]) EXCEPT !.state = "Fetching"])
  /\ UNCHANGED channel /\ FollowerStep

(***************************************************************************)
(* Round trips, fine: three steps.                                         *)
(***************************************************************************)
Sends(f, m) ==
  /\ channel' = [channel EXCEPT ![f] = m]
  /\ UNCHANGED replicaVars /\ FollowerStep

\* An answer reaches f only if f is still the process that asked.
Delivered(f, m, a) ==
  channel' = [channel EXCEPT ![f] =
                IF online[f] /\ m.brokerEpoch = brokerEpoch[f] THEN a ELSE NoMessage]

\* AbstractFetcherThread.fetchTruncatingPartitions; leader.fetchEpochEndOffsets begins.
SendEpochRequest(f) == Fine /\ MaySendEpochRequest(f) /\ Sends(f, EpochRequest(f))

\* AbstractFetcherThread.maybeFetch: buildFetch; leader.fetch begins.
SendFetch(f) == Fine /\ MaySendFetch(f) /\ Sends(f, FetchRequest(f))

\* ReplicaManager.lastOffsetForLeaderEpoch on l.
HandleEpochRequest(l, f) ==
  LET m == channel[f]
  IN  /\ Fine /\ online[l]
      /\ m.type = "EpochRequest" /\ m.leader = l
      /\ Delivered(f, m, EpochAnswer(l, f, m))
      /\ UNCHANGED replicaVars /\ FollowerStep

\* ReplicaManager.fetchMessages on l: read and updateFollowerFetchState.
HandleFetch(l, f) ==
  LET m == channel[f]
      a == FetchAnswer(l, f, m)
      r == LeaderAfterFetch(l, f, m, a)
  IN  /\ Fine /\ online[l]
      /\ m.type = "FetchRequest" /\ m.leader = l
      /\ Delivered(f, m, a)
      /\ followerState' = [followerState EXCEPT ![l] = FollowersAtLeader(l, f, m, a)]
      /\ SetReplica(l, r)
      /\ IF FetchCounts(l, m, a) THEN Expose(r, leaderEpoch[l]) ELSE UNCHANGED exposed
      /\ UNCHANGED <<controllerVars, processVars, leaderEpoch, leader, isr, partitionEpoch,
                     pendingIsr, alterPartition, appends, guaranteedFrom>>

\* ListOffsets of a follower, on l.
HandleListOffsets(l, f) ==
  LET m == channel[f]
  IN  /\ Fine /\ online[l]
      /\ m.type \in {"LatestRequest", "EarliestRequest"} /\ m.leader = l
      /\ Delivered(f, m, ListOffsetsAnswer(l, f, m))
      /\ UNCHANGED replicaVars /\ FollowerStep

\* AbstractFetcherThread.truncateToEpochEndOffsets, the lock taken again.
ProcessEpochResponse(f) ==
  /\ Fine /\ channel[f].type = "EpochResponse"
  /\ SetReplica(f, AfterEpochResponse(f, channel[f]))
  /\ channel' = [channel EXCEPT ![f] = NoMessage]
  /\ FollowerStep

\* AbstractFetcherThread.processFetchRequest, the lock taken.
ProcessFetchResponse(f) ==
  /\ Fine /\ channel[f].type = "FetchResponse"
  /\ SetReplica(f, AfterFetchResponse(f, channel[f]))
  /\ channel' = [channel EXCEPT ![f] = MessageAfterFetchResponse(f, channel[f])]
  /\ FollowerStep

\* AbstractFetcherThread.fetchOffsetAndTruncate, between and after its two questions.
ProcessListOffsetsResponse(f) ==
  /\ Fine /\ channel[f].type \in {"LatestResponse", "EarliestResponse"}
  /\ SetReplica(f, AfterListOffsetsResponse(f, channel[f]))
  /\ channel' = [channel EXCEPT ![f] = MessageAfterListOffsetsResponse(f, channel[f])]
  /\ FollowerStep

\* A request or its answer is lost (a time-out, a broken connection): the partition
\* is delayed and the thread goes on (handlePartitionsWithErrors).
LoseMessage(f) ==
  /\ channel[f].type # "None"
  /\ Sends(f, NoMessage)

(***************************************************************************)
(* Round trips, coarse: one step. Only the questions after an out-of-range *)
(* answer are steps of their own.                                          *)
(***************************************************************************)
EpochRoundTrip(l, f) ==
  /\ ~Fine /\ online[l]
  /\ MaySendEpochRequest(f) /\ leader[f] = l
  /\ SetReplica(f, AfterEpochResponse(f, EpochAnswer(l, f, EpochRequest(f))))
  /\ UNCHANGED channel /\ FollowerStep

FetchRoundTrip(l, f) ==
  LET m == FetchRequest(f)
      a == FetchAnswer(l, f, m)
      r == LeaderAfterFetch(l, f, m, a)
      g == AfterFetchResponse(f, a)
  IN  /\ ~Fine /\ online[l]
      /\ MaySendFetch(f) /\ leader[f] = l
      /\ log'            = [log EXCEPT ![f] = g.log]
      /\ logStartOffset' = [logStartOffset EXCEPT ![f] = g.logStart]
      /\ highWatermark'  = [highWatermark EXCEPT ![f] = g.hw, ![l] = r.hw]
      /\ epochCache'     = [epochCache EXCEPT ![f] = g.cache]
      /\ fetchState'     = [fetchState EXCEPT ![f] = g.state]
      /\ fetchOffset'    = [fetchOffset EXCEPT ![f] = g.offset]
      /\ followerState'  = [followerState EXCEPT ![l] = FollowersAtLeader(l, f, m, a)]
      /\ channel' = [channel EXCEPT ![f] = MessageAfterFetchResponse(f, a)]
      /\ IF FetchCounts(l, m, a) THEN Expose(r, leaderEpoch[l]) ELSE UNCHANGED exposed
      /\ UNCHANGED <<controllerVars, processVars, leaderEpoch, leader, isr, partitionEpoch,
                     pendingIsr, alterPartition, appends, guaranteedFrom>>

ListOffsetsRoundTrip(l, f) ==
  LET m == channel[f]
      a == ListOffsetsAnswer(l, f, m)
  IN  /\ ~Fine /\ online[l]
      /\ m.type \in {"LatestRequest", "EarliestRequest"} /\ m.leader = l
      /\ SetReplica(f, AfterListOffsetsResponse(f, a))
      /\ channel' = [channel EXCEPT ![f] = MessageAfterListOffsetsResponse(f, a)]
      /\ FollowerStep

(***************************************************************************)
(* Crashes.                                                                *)
(***************************************************************************)

\* On disk, or deleted as the log start offset says.
StillHas(r, record) == record.offset < r.logStart \/ record \in RecordsBelow(r, LogEnd(r))

\* b stops; of its log what lies below o survives, and the checkpointed high
\* watermark is h. A fetch request that is under way may still be handled.
\* Where no ISR member runs any longer, nothing is owed but what every member still has on
\* disk: any of them may lead next, and the loss of the last member's tail is real, as is
\* that of a member which crashed before it.
Crash(b, o, h) ==
  LET r == Untracked(Recover(Replica(b), o, h))
      survivors == {m \in registration.isr \ {b} : online[m]}
      none == b \in registration.isr /\ survivors = {}
      left == {record \in exposed : \A m \in registration.isr :
                 StillHas(IF m = b THEN r ELSE Replica(m), record)}
      reg  == registration
  IN  /\ Crashes /\ online[b]
      /\ brokerEpoch[b] + 1 \in BrokerEpochs
      /\ o >= logStartOffset[b] /\ o <= LogEndOffset(b)
      /\ h >= logStartOffset[b] /\ h <= o /\ h <= highWatermark[b]
      /\ online' = [online EXCEPT ![b] = FALSE]
      /\ SetReplica(b, r)
      /\ leaderEpoch'    = [leaderEpoch EXCEPT ![b] = NoEpoch]
      /\ leader'         = [leader EXCEPT ![b] = NoLeader]
      /\ isr'            = [isr EXCEPT ![b] = {}]
      /\ partitionEpoch' = [partitionEpoch EXCEPT ![b] = 0]
      /\ pendingIsr'     = [pendingIsr EXCEPT ![b] = {}]
      /\ followerState'  = [followerState EXCEPT ![b] = [f \in Brokers |-> UnknownFollower]]
      /\ channel' = [channel EXCEPT ![b] =
           IF channel[b].type = "FetchRequest" THEN channel[b] ELSE NoMessage]
      /\ alterPartition' = [alterPartition EXCEPT ![b] = NoAlterPartition]
      /\ leaderAndIsr' = Announced(reg, [leaderEpoch EXCEPT ![b] = NoEpoch],
                                   [partitionEpoch EXCEPT ![b] = 0])
      /\ exposed' = IF none THEN left ELSE exposed
      /\ guaranteedFrom' = IF none /\ (o < LogEndOffset(b) \/ left # exposed)
                             THEN reg.leaderEpoch + 1 ELSE guaranteedFrom
      /\ UNCHANGED <<registration, brokerEpoch, appends>>

\* b registers anew: not before its former session has expired and the controller
\* has reacted, so it is out of the ISR, unless it is the last member.
Restart(b) ==
  /\ Crashes /\ ~online[b]
  /\ b \notin registration.isr \/ registration.leader = NoLeader
  /\ online' = [online EXCEPT ![b] = TRUE]
  /\ brokerEpoch' = [brokerEpoch EXCEPT ![b] = brokerEpoch[b] + 1]
  /\ UNCHANGED <<controllerVars, partitionVars, replicaVars, messageVars, ghostVars>>

(***************************************************************************)
(* The specification.                                                      *)
(***************************************************************************)
Next ==
  \/ \E e \in Epochs, b \in Brokers : ElectLeader(e, b)
  \/ \E e \in Epochs, b \in Brokers, l \in Brokers : FenceBroker(e, b, l)
  \/ \E e \in Epochs, b \in Brokers : TakeOffline(e, b)
  \/ \E e \in Epochs, b \in Brokers : ElectUncleanLeader(e, b)
  \/ \E b \in Brokers, e \in Epochs : BecomeLeader(b, e)
  \/ \E b \in Brokers, e \in Epochs : BecomeFollower(b, e)
  \/ \E l \in Brokers, o \in Offsets : AppendAsLeader(l, o)
  \/ \E l \in Brokers, o \in Offsets : AdvanceLogStartOffset(l, o)
  \/ \E l \in Brokers, f \in Brokers : ExpandIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : ShrinkIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : SubmitExpandIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : SubmitShrinkIsr(l, f)
  \/ \E l \in Brokers : HandleAlterPartition(l)
  \/ \E l \in Brokers : ProcessAlterPartition(l)
  \/ \E l \in Brokers, e \in Epochs : UpdateIsr(l, e)
  \/ \E f \in Brokers : TruncateToHighWatermark(f)
  \/ \E f \in Brokers : SendEpochRequest(f)
  \/ \E l \in Brokers, f \in Brokers : HandleEpochRequest(l, f)
  \/ \E f \in Brokers : ProcessEpochResponse(f)
  \/ \E f \in Brokers : SendFetch(f)
  \/ \E l \in Brokers, f \in Brokers : HandleFetch(l, f)
  \/ \E f \in Brokers : ProcessFetchResponse(f)
  \/ \E l \in Brokers, f \in Brokers : HandleListOffsets(l, f)
  \/ \E f \in Brokers : ProcessListOffsetsResponse(f)
  \/ \E f \in Brokers : LoseMessage(f)
  \/ \E l \in Brokers, f \in Brokers : EpochRoundTrip(l, f)
  \/ \E l \in Brokers, f \in Brokers : FetchRoundTrip(l, f)
  \/ \E l \in Brokers, f \in Brokers : ListOffsetsRoundTrip(l, f)
  \/ \E b \in Brokers, o \in Offsets, h \in Offsets : Crash(b, o, h)
  \/ \E b \in Brokers : Restart(b)

Spec == Init /\ [][Next]_vars
=============================================================================
