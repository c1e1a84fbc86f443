-------------------------- MODULE ReplicationState ---------------------------
(***************************************************************************)
(* The state of one partition of Kafka: constants, variables, the values   *)
(* that they take, and what several parts of the protocol ask of them.     *)
(*                                                                         *)
(* No bounds here: offsets, epochs and counters range over constant sets,  *)
(* which a model makes finite.                                             *)
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
\* Whose round trips channel holds: each follower's one, unless a model has requests that
\* followers have left behind (ReplicationLateFetches).
Connections == Brokers

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
\* lastEpoch: the epoch asked about, or that of the last record fetched; in
\* ListOffsets the leader epoch of the fetch that was out of range, which is
\* not sent: the thread remembers it.
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
  /\ channel        = [c \in Connections |-> NoMessage]
  /\ alterPartition = [b \in Brokers |-> NoAlterPartition]
  /\ exposed        = {}
  /\ appends        = 0
  /\ guaranteedFrom = InitialEpoch

(***************************************************************************)
(* High watermark. Partition.maybeIncrementLeaderHW: the smallest log end  *)
(* in the maximal ISR (committed and pending members), never downwards.    *)
(***************************************************************************)
MaximalIsr(members, pending) == members \union pending

HighWatermarkOf(l, r, members, followers) ==
  Max(r.hw, Smallest({IF m = l THEN LogEnd(r) ELSE followers[m].logEndOffset :
                        m \in members \union {l}}))

\* min.insync.replicas. One broker in sync is enough, unless a model of produce requests
\* asks for more.
MinInsyncReplicas == 1
IsEnough(members) == Cardinality(members) >= MinInsyncReplicas

\* From Kafka 3.7 on (KIP-966) it also stands still while the committed ISR is too small.
WithHighWatermark(l, r, members, pending, followers) ==
  IF IsEnough(members)
  THEN [r EXCEPT !.hw = HighWatermarkOf(l, r, MaximalIsr(members, pending), followers)]
  ELSE r

\* Followers outside the ISR for which a leader's high watermark waits too: whoever has caught up
\* within replica.lag.time.max.ms, since it is about to join (Partition.maybeIncrementLeaderHW,
\* shouldWaitForReplicaToJoinIsr). There is no time here: any of these sets. Nobody is waited for,
\* unless a model says otherwise.
AwaitedFollowers(l) == {{}}

\* Whether broker b, elected in leader epoch e, keeps what it knew of its followers' log ends.
\* It may if it led the epoch before: no other broker has led since, so that its followers have
\* truncated nothing. Kafka keeps them wherever the same broker leads again, which is not safe
\* (mutant-remote-replica-reset-coarse-3b). An implementation may do as it likes: the models
\* forget, kept-positions-coarse-3b has both, and an implementation that keeps is judged by
\* PositionsKeptIfDirect.
PositionsKept(b, e) == {FALSE}
LedEpochBefore(b, e) == leader[b] = b /\ e = leaderEpoch[b] + 1
PositionsFree(b, e) == IF LedEpochBefore(b, e) THEN BOOLEAN ELSE {FALSE}
PositionsKeptIfDirect(b, e) == {LedEpochBefore(b, e)}

\* Whatever a leader of a guaranteed epoch has below its high watermark is exposed.
Expose(r, e) ==
  exposed' = IF e >= guaranteedFrom THEN exposed \union RecordsBelow(r, r.hw) ELSE exposed
==============================================================================
