---------------------------- MODULE GroupProtocol ----------------------------
(***************************************************************************)
(* Kafka's classic consumer group protocol: one group, its coordinator,    *)
(* its member processes and the messages between them. State and actions;  *)
(* what a request makes of the group: GroupCoordinator.tla; what must      *)
(* hold: GroupMembership.tla, the root.                                    *)
(*                                                                         *)
(* A request, its handling and the processing of its answer are separate   *)
(* steps. Either message may be lost, and a process may move on (restart,  *)
(* leave, lose its generation) before the answer comes. A process has one  *)
(* JoinGroup, SyncGroup or LeaveGroup in flight, and beside it one         *)
(* Heartbeat or OffsetCommit.                                              *)
(*                                                                         *)
(* No bounds here but constant sets, which a model makes finite. Every     *)
(* choice of the environment is an argument of the action. Given state,    *)
(* action and arguments the next state is unique, but where a coordinator  *)
(* is free: which of several members leads, which of several protocols     *)
(* with as many votes is selected (the choice c of GroupCoordinator).      *)
(*                                                                         *)
(* Not modelled: FindCoordinator (members always reach the coordinator),   *)
(* time (a timer that may fire, may fire now), cooperative rebalancing,    *)
(* what offsets a commit stores, subscriptions to more than one topic.     *)
(***************************************************************************)
EXTENDS GroupCoordinator

CONSTANTS
  ProtocolsOf,     \* per process the protocols (assignors) that it starts with
  ProtocolSets,    \* what it may change them to; {} for: it never does
  Commits,         \* members commit offsets
  Heartbeats,      \* members send heartbeats
  Timeouts,        \* sessions, rebalances and syncs time out, for live members too
  Losses,          \* messages get lost
  LateRequests,    \* a process may give up on a request that is handled nevertheless
  Restarts,        \* processes restart and forget all
  Leaves,          \* members leave (unsubscribe, max.poll.interval.ms) and join again
  Rejoins,         \* members join again of their own accord (new metadata)
  FailOvers,       \* the coordinator moves to another broker, which loads the log
  StoreFailures,   \* the log does not take the group's record
  Deletes,         \* DeleteGroups
  FailureLimit     \* how many of the above may happen in all; Unlimited: not counted

Unlimited == -1

(***************************************************************************)
(* The variables, and the field of the real coordinator or client that     *)
(* each stands for. All but those in GhostVars can be read off an          *)
(* implementation.                                                         *)
(*                                                                         *)
(* variable             | field                                            *)
(* ---------------------+------------------------------------------------- *)
(*                      | coordinator: GroupMetadata                       *)
(* groupState           | state; Dead also when the group is not there     *)
(* generation           | generationId                                     *)
(* protocolName         | protocolName; "none" if null                     *)
(* leader               | leaderId; "" if null                             *)
(* members              | members.keySet                                   *)
(* pendingMembers       | pendingMembers                                   *)
(* staticMembers[i]     | staticMembers: instance id -> member id; "" if   *)
(*                      | not mapped (always, for "none")                  *)
(* supported[id]        | MemberMetadata.supportedProtocols, names         *)
(* awaitingJoin         | members with isAwaitingJoin: JoinGroup parked    *)
(* awaitingSync         | members with isAwaitingSync: SyncGroup parked    *)
(* newMembers           | members with isNew                               *)
(* pendingSync          | pendingSyncMembers                               *)
(* assignment[id]       | MemberMetadata.assignment, partitions; {} empty  *)
(* joinTimer            | the pending DelayedJoin: None, Initial           *)
(*                      | (InitialDelayedJoin), Rebalance                  *)
(* initialDelays        | InitialDelayedJoin.remainingMs, in units of      *)
(*                      | group.initial.rebalance.delay.ms                 *)
(* newMemberAdded       | newMemberAdded                                   *)
(* groupRecord          | the last GroupMetadataValue in                   *)
(*                      | __consumer_offsets; present = FALSE: none        *)
(* ---------------------+------------------------------------------------- *)
(*                      | process p: AbstractCoordinator                   *)
(* memberState[p]       | state                                            *)
(* memberGeneration[p]  | generation: generationId, memberId, protocolName *)
(* rejoinNeeded[p]      | rejoinNeeded                                     *)
(* needsJoinPrepare[p]  | needsJoinPrepare                                 *)
(* joinFuture[p]        | joinFuture: None (null), Pending, Succeeded with *)
(*                      | its assignment (joinGroupIfNeeded has yet to see *)
(*                      | it; a failed one it sees in the same step)       *)
(* isLeader[p]          | ConsumerCoordinator.isLeader: led since its last *)
(*                      | onJoinPrepare, though it may follow by now       *)
(* owned[p]             | SubscriptionState.assignedPartitions             *)
(* protocols[p]         | what metadata() tells: the assignors' names      *)
(* failed[p]            | a fatal error was thrown to the user             *)
(* ---------------------+------------------------------------------------- *)
(*                      | network                                          *)
(* channel[p]           | JoinGroup, SyncGroup, LeaveGroup of p: none; the *)
(*                      | request until it is handled; parked, under       *)
(*                      | memberId, while the coordinator holds it; the    *)
(*                      | answer until it is processed                     *)
(* heartbeat[p]         | the same of Heartbeat and OffsetCommit           *)
(* ---------------------+------------------------------------------------- *)
(* GhostVars: an implementation does not have them.                        *)
(* idsGiven[p]          | how many member ids were created for p (real     *)
(*                      | ones are random)                                 *)
(* failures             | how many failures there were, if they count      *)
(***************************************************************************)
VARIABLES
  groupState, generation, protocolName, leader, members, pendingMembers, staticMembers,
  supported, awaitingJoin, awaitingSync, newMembers, pendingSync, assignment,
  joinTimer, initialDelays, newMemberAdded, groupRecord,
  memberState, memberGeneration, rejoinNeeded, needsJoinPrepare, joinFuture, isLeader,
  owned, protocols, failed,
  channel, heartbeat,
  idsGiven, failures

groupVars  == <<groupState, generation, protocolName, leader, members, pendingMembers,
                staticMembers, supported, awaitingJoin, awaitingSync, newMembers, pendingSync,
                assignment, joinTimer, initialDelays, newMemberAdded, groupRecord>>
memberVars == <<memberState, memberGeneration, rejoinNeeded, needsJoinPrepare, joinFuture,
                isLeader, owned, protocols, failed>>
ghostVars  == <<idsGiven, failures>>
GhostVars  == {"idsGiven", "failures"}

vars == <<groupVars, memberVars, channel, heartbeat, ghostVars>>

(***************************************************************************)
(* Values.                                                                 *)
(***************************************************************************)
NoMemberGeneration ==
  [generation |-> NoGeneration, memberId |-> NoMemberId, protocol |-> NoProtocol]

NoFuture        == [state |-> "None", assignment |-> {}]
PendingFuture   == [state |-> "Pending", assignment |-> {}]
Completed(a)    == [state |-> "Succeeded", assignment |-> a]

\* One shape for every message of channel. sentMemberId, sentGeneration: what the client
\* was when it sent the request (AbstractCoordinator's sentGeneration), kept beside the
\* parked request and the answer; memberId to skipAssignment: the answer's content;
\* memberId of a parked request: under which the coordinator holds it. abandoned: the
\* process does not wait for an answer (any longer).
NoMessage ==
  [type |-> "None", sentMemberId |-> NoMemberId, sentGeneration |-> NoGeneration,
   abandoned |-> FALSE, protocols |-> {}, assignments |-> NoAssignments, error |-> "NONE",
   memberId |-> NoMemberId, generation |-> NoGeneration, protocol |-> NoProtocol,
   leader |-> NoMemberId, members |-> {}, assignment |-> {}, skipAssignment |-> FALSE]

ParkedTypes == {"JoinGroupParked", "SyncGroupParked"}
ResponseTypes == {"JoinGroupResponse", "SyncGroupResponse"}
RequestTypes == {"JoinGroupRequest", "SyncGroupRequest", "LeaveGroupRequest"}
MessageTypes == {"None"} \union RequestTypes \union ParkedTypes \union ResponseTypes

NoHeartbeat ==
  [type |-> "None", memberId |-> NoMemberId, generation |-> NoGeneration, error |-> "NONE"]

HeartbeatTypes == {"None", "HeartbeatRequest", "HeartbeatResponse", "OffsetCommitRequest",
                   "OffsetCommitResponse"}

Errors == {"NONE", "MEMBER_ID_REQUIRED", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION",
           "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID", "INCONSISTENT_GROUP_PROTOCOL",
           "GROUP_MAX_SIZE_REACHED", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}

Group ==
  [state |-> groupState, generation |-> generation, protocol |-> protocolName,
   leader |-> leader, members |-> members, pendingMembers |-> pendingMembers,
   staticMembers |-> staticMembers, supported |-> supported,
   awaitingJoin |-> awaitingJoin, awaitingSync |-> awaitingSync,
   newMembers |-> newMembers, pendingSync |-> pendingSync, assignment |-> assignment,
   joinTimer |-> joinTimer, initialDelays |-> initialDelays,
   newMemberAdded |-> newMemberAdded, record |-> groupRecord,
   joinReplies |-> NoReplies, syncReplies |-> NoReplies]

SetGroup(g) ==
  /\ g.generation \in Generations
  /\ groupState' = g.state
  /\ generation' = g.generation
  /\ protocolName' = g.protocol
  /\ leader' = g.leader
  /\ members' = g.members
  /\ pendingMembers' = g.pendingMembers
  /\ staticMembers' = g.staticMembers
  /\ supported' = g.supported
  /\ awaitingJoin' = g.awaitingJoin
  /\ awaitingSync' = g.awaitingSync
  /\ newMembers' = g.newMembers
  /\ pendingSync' = g.pendingSync
  /\ assignment' = g.assignment
  /\ joinTimer' = g.joinTimer
  /\ initialDelays' = g.initialDelays
  /\ newMemberAdded' = g.newMemberAdded
  /\ groupRecord' = g.record

\* A member process, as a value; and with what it next has in flight.
Member(p) ==
  [state |-> memberState[p], generation |-> memberGeneration[p],
   rejoinNeeded |-> rejoinNeeded[p], needsJoinPrepare |-> needsJoinPrepare[p],
   future |-> joinFuture[p], isLeader |-> isLeader[p], owned |-> owned[p],
   protocols |-> protocols[p], failed |-> failed[p]]

SetMember(p, m) ==
  /\ memberState'      = [memberState EXCEPT ![p] = m.state]
  /\ memberGeneration' = [memberGeneration EXCEPT ![p] = m.generation]
  /\ rejoinNeeded'     = [rejoinNeeded EXCEPT ![p] = m.rejoinNeeded]
  /\ needsJoinPrepare' = [needsJoinPrepare EXCEPT ![p] = m.needsJoinPrepare]
  /\ joinFuture'       = [joinFuture EXCEPT ![p] = m.future]
  /\ isLeader'         = [isLeader EXCEPT ![p] = m.isLeader]
  /\ owned'            = [owned EXCEPT ![p] = m.owned]
  /\ protocols'        = [protocols EXCEPT ![p] = m.protocols]
  /\ failed'           = [failed EXCEPT ![p] = m.failed]

\* A consumer that has just been constructed.
FreshMember(names) ==
  [state |-> "UNJOINED", generation |-> NoMemberGeneration, rejoinNeeded |-> TRUE,
   needsJoinPrepare |-> TRUE, future |-> NoFuture, isLeader |-> FALSE, owned |-> {},
   protocols |-> names, failed |-> FALSE]

Init ==
  /\ groupState = "Dead"
  /\ generation = 0
  /\ protocolName = NoProtocol
  /\ leader = NoMemberId
  /\ members = {}
  /\ pendingMembers = {}
  /\ staticMembers = NobodyStatic
  /\ supported = NoAssignments
  /\ awaitingJoin = {}
  /\ awaitingSync = {}
  /\ newMembers = {}
  /\ pendingSync = {}
  /\ assignment = NoAssignments
  /\ joinTimer = "None"
  /\ initialDelays = 0
  /\ newMemberAdded = FALSE
  /\ groupRecord = NoRecord
  /\ memberState = [p \in Members |-> "UNJOINED"]
  /\ memberGeneration = [p \in Members |-> NoMemberGeneration]
  /\ rejoinNeeded = [p \in Members |-> TRUE]
  /\ needsJoinPrepare = [p \in Members |-> TRUE]
  /\ joinFuture = [p \in Members |-> NoFuture]
  /\ isLeader = [p \in Members |-> FALSE]
  /\ owned = [p \in Members |-> {}]
  /\ protocols = ProtocolsOf
  /\ failed = [p \in Members |-> FALSE]
  /\ channel = [p \in Members |-> NoMessage]
  /\ heartbeat = [p \in Members |-> NoHeartbeat]
  /\ idsGiven = [p \in Members |-> 0]
  /\ failures = 0

\* A failure happens, if one more may. Timers that remove who is gone are none: see Defunct.
Failure ==
  /\ FailureLimit = Unlimited \/ failures < FailureLimit
  /\ failures' = IF FailureLimit = Unlimited THEN failures ELSE failures + 1

FailureIf(condition) == IF condition THEN Failure ELSE UNCHANGED failures

(***************************************************************************)
(* The network.                                                            *)
(***************************************************************************)

\* The answer in place of the request or parked request m.
Answer(m, type, r) ==
  [type |-> type, sentMemberId |-> m.sentMemberId, sentGeneration |-> m.sentGeneration,
   abandoned |-> FALSE, protocols |-> {}, assignments |-> NoAssignments, error |-> r.error,
   memberId |-> r.memberId, generation |-> r.generation, protocol |-> r.protocol,
   leader |-> r.leader, members |-> r.members, assignment |-> r.assignment,
   skipAssignment |-> r.skipAssignment]

ParkedMessage(m, type, id) ==
  [NoMessage EXCEPT !.type = type, !.sentMemberId = m.sentMemberId,
                    !.sentGeneration = m.sentGeneration, !.memberId = id]

\* What p has in flight once the coordinator has sent the answers in g.
Delivered(m, g) ==
  IF m.type = "JoinGroupParked" /\ g.joinReplies[m.memberId].given
  THEN Answer(m, "JoinGroupResponse", g.joinReplies[m.memberId])
  ELSE IF m.type = "SyncGroupParked" /\ g.syncReplies[m.memberId].given
  THEN Answer(m, "SyncGroupResponse", g.syncReplies[m.memberId])
  ELSE m

\* The group becomes g; who waits for an answer that this gives, gets it.
Becomes(g) ==
  /\ SetGroup(g)
  /\ channel' = [q \in Members |-> Delivered(channel[q], g)]

\* The same, where g comes of p's request, which is answered or parked.
BecomesAndReplies(p, result, parkedType, responseType) ==
  LET m    == channel[p]
      mine == IF m.abandoned THEN NoMessage
              ELSE IF result.reply.given THEN Answer(m, responseType, result.reply)
              ELSE ParkedMessage(m, parkedType, result.memberId)
  IN  /\ SetGroup(result.group)
      /\ channel' = [q \in Members |->
                       Delivered(IF q = p THEN mine ELSE channel[q], result.group)]

\* What the coordinator may choose (GroupCoordinator); who is no member cannot lead.
Choices == {[leader |-> id, protocol |-> n] : id \in Ids, n \in Protocols}

Offered(c) == members = {} \/ c.leader \in members

(***************************************************************************)
(* Member: what its own steps and the answers make of it.                  *)
(***************************************************************************)

\* Who lost its generation lost its partitions: the user must hear of it (KAFKA-12983).
ResetNeedsJoinPrepare(m) == TRUE

\* AbstractCoordinator.resetStateAndRejoin; keepsId: KAFKA-13419.
Reset(m, keepsId) ==
  [m EXCEPT !.state = "UNJOINED", !.rejoinNeeded = TRUE,
     !.needsJoinPrepare = ResetNeedsJoinPrepare(m),
     !.generation = IF keepsId THEN [NoMemberGeneration EXCEPT !.memberId = m.generation.memberId]
                               ELSE NoMemberGeneration]

\* An ILLEGAL_GENERATION does not cost the member id (KAFKA-13419).
KeepsMemberId(error) == error = "ILLEGAL_GENERATION"

\* joinGroupIfNeeded sees the join future fail: again.
JoinFailed(m) == [m EXCEPT !.future = NoFuture, !.rejoinNeeded = TRUE]

\* ... with an error that is thrown to the user.
Fatal(m) == [m EXCEPT !.future = NoFuture, !.failed = TRUE]

FatalErrors == {"FENCED_INSTANCE_ID", "INCONSISTENT_GROUP_PROTOCOL", "GROUP_MAX_SIZE_REACHED"}

\* AbstractCoordinator.generationUnchanged: the answer is to who the member still is.
GenerationUnchanged(m, sentMemberId, sentGeneration) ==
  m.generation.memberId = sentMemberId /\ m.generation.generation = sentGeneration

ResetIfUnchanged(m, sentMemberId, sentGeneration, keepsId) ==
  IF GenerationUnchanged(m, sentMemberId, sentGeneration) THEN Reset(m, keepsId) ELSE m

\* ConsumerCoordinator.onJoinPrepare, eager: all partitions are revoked (or lost).
Prepared(m) ==
  IF m.needsJoinPrepare
  THEN [m EXCEPT !.needsJoinPrepare = FALSE, !.owned = {}, !.isLeader = FALSE]
  ELSE m

\* RangeAssignor over the members in the order of their ids.
RangeAssignment(ids) ==
  LET n        == Cardinality(ids)
      each     == Cardinality(Partitions) \div n
      rest     == Cardinality(Partitions) % n
      place(id) == Cardinality({o \in ids : Rank[o] < Rank[id]})
      start(i) == each * i + (IF i < rest THEN i ELSE rest)
  IN  [id \in Ids |-> IF id \in ids
                      THEN {k \in Partitions : start(place(id)) <= k /\ k < start(place(id) + 1)}
                      ELSE {}]

\* JoinGroupResponseHandler: only who still waits to join adopts the generation.
AdoptsJoin(m) == m.state = "PREPARING_REBALANCE" /\ ~m.failed

AfterJoin(m, a) ==
  CASE a.error = "NONE" /\ AdoptsJoin(m) ->
         [m EXCEPT !.state = "COMPLETING_REBALANCE",
            !.isLeader = m.isLeader \/ a.leader = a.memberId,
            !.generation = [generation |-> a.generation, memberId |-> a.memberId,
                            protocol |-> a.protocol]]
    [] a.error = "MEMBER_ID_REQUIRED" ->
         JoinFailed([m EXCEPT !.generation = [NoMemberGeneration EXCEPT !.memberId = a.memberId]])
    [] a.error = "UNKNOWN_MEMBER_ID" ->
         JoinFailed(ResetIfUnchanged(m, a.sentMemberId, a.sentGeneration, FALSE))
    [] a.error \in FatalErrors -> Fatal(m)
    [] OTHER -> JoinFailed(m)

\* onLeaderElected or onJoinFollower: SyncGroup follows in the same callback.
SyncRequest(a) ==
  [NoMessage EXCEPT !.type = "SyncGroupRequest", !.sentMemberId = a.memberId,
     !.sentGeneration = a.generation, !.protocol = a.protocol,
     !.assignments = IF a.leader = a.memberId /\ ~a.skipAssignment
                     THEN RangeAssignment(a.members) ELSE NoAssignments]

\* SyncGroupResponseHandler: an answer to who lost its generation meanwhile is stale.
AdoptsSync(m) ==
  m.generation.generation # NoGeneration /\ m.state = "COMPLETING_REBALANCE" /\ ~m.failed

AfterSync(m, a) ==
  CASE a.error = "NONE" /\ AdoptsSync(m) ->
         IF a.protocol # m.generation.protocol THEN Fatal(m)
         ELSE [m EXCEPT !.state = "STABLE", !.rejoinNeeded = FALSE,
                        !.future = Completed(a.assignment)]
    [] a.error \in {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"} ->
         JoinFailed(ResetIfUnchanged(m, a.sentMemberId, a.sentGeneration, KeepsMemberId(a.error)))
    [] a.error \in FatalErrors -> Fatal(m)
    [] OTHER -> JoinFailed(m)

\* HeartbeatResponseHandler; REBALANCE_IN_PROGRESS counts only for who is stable.
AfterHeartbeat(m, a) ==
  CASE a.error = "REBALANCE_IN_PROGRESS" ->
         IF m.state = "STABLE" THEN [m EXCEPT !.rejoinNeeded = TRUE] ELSE m
    [] a.error \in {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"} ->
         ResetIfUnchanged(m, a.memberId, a.generation, KeepsMemberId(a.error))
    [] a.error = "FENCED_INSTANCE_ID" ->
         IF GenerationUnchanged(m, a.memberId, a.generation)
         THEN [Reset(m, FALSE) EXCEPT !.failed = TRUE] ELSE m
    [] OTHER -> m

\* A commit amid a rebalance is no reason to forget who one is (KAFKA-8487).
CommitAmidRebalance(m) == [m EXCEPT !.rejoinNeeded = TRUE]

\* OffsetCommitResponseHandler. Whoever waits to join again has it behind it already; all
\* others reset, even if the answer is to an earlier generation: unlike a heartbeat's.
AfterOffsetCommit(m, a) ==
  CASE a.error = "REBALANCE_IN_PROGRESS" -> CommitAmidRebalance(m)
    [] a.error \in {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"} ->
         IF m.state = "PREPARING_REBALANCE"
         THEN ResetIfUnchanged(m, a.memberId, a.generation, KeepsMemberId(a.error))
         ELSE Reset(m, KeepsMemberId(a.error))
    [] a.error = "FENCED_INSTANCE_ID" ->
         IF GenerationUnchanged(m, a.memberId, a.generation) THEN [m EXCEPT !.failed = TRUE] ELSE m
    [] OTHER -> m

\* onJoinComplete, unless the heartbeat thread has reset the generation meanwhile: then
\* the assignment is dropped (KAFKA-9140, KAFKA-12983), and the member id with it, even
\* if the reset had kept it (resetStateAndRejoin's second argument is true here).
AssignmentIsCurrent(m) ==
  m.generation.generation # NoGeneration /\ m.state = "STABLE"

AfterFuture(m) ==
  IF AssignmentIsCurrent(m)
  THEN [m EXCEPT !.future = NoFuture, !.needsJoinPrepare = TRUE, !.owned = m.future.assignment]
  ELSE Reset([m EXCEPT !.future = NoFuture], FALSE)

(***************************************************************************)
(* Member: steps.                                                          *)
(***************************************************************************)
Running(p) == ~failed[p]

MemberStep == UNCHANGED <<groupVars, idsGiven>>

\* AbstractCoordinator.joinGroupIfNeeded, initiateJoinGroup, sendJoinGroupRequest.
SendJoinGroup(p) ==
  /\ Running(p) /\ rejoinNeeded[p]
  /\ joinFuture[p].state = "None" /\ channel[p].type = "None"
  /\ SetMember(p, [Prepared(Member(p)) EXCEPT !.state = "PREPARING_REBALANCE",
                                              !.future = PendingFuture])
  /\ channel' = [channel EXCEPT ![p] =
       [NoMessage EXCEPT !.type = "JoinGroupRequest", !.protocols = protocols[p],
          !.sentMemberId = memberGeneration[p].memberId,
          !.sentGeneration = memberGeneration[p].generation]]
  /\ MemberStep /\ UNCHANGED <<heartbeat, failures>>

\* After these the client gives up the connection to the coordinator (markCoordinatorUnknown),
\* and with it what it has in flight there.
Disconnects(error) == error \in {"COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}

DisconnectIf(p, error) ==
  heartbeat' = IF Disconnects(error) THEN [heartbeat EXCEPT ![p] = NoHeartbeat] ELSE heartbeat

\* JoinGroupResponseHandler.handle
ProcessJoinGroup(p) ==
  LET a == channel[p]
      m == AfterJoin(Member(p), a)
  IN  /\ a.type = "JoinGroupResponse"
      /\ SetMember(p, IF a.error = "NONE" /\ ~AdoptsJoin(Member(p)) THEN JoinFailed(m) ELSE m)
      /\ channel' = [channel EXCEPT ![p] =
           IF a.error = "NONE" /\ AdoptsJoin(Member(p)) THEN SyncRequest(a) ELSE NoMessage]
      /\ DisconnectIf(p, a.error)
      /\ MemberStep /\ UNCHANGED failures

\* SyncGroupResponseHandler.handle
ProcessSyncGroup(p) ==
  /\ channel[p].type = "SyncGroupResponse"
  /\ SetMember(p, AfterSync(Member(p), channel[p]))
  /\ channel' = [channel EXCEPT ![p] = NoMessage]
  /\ DisconnectIf(p, channel[p].error)
  /\ MemberStep /\ UNCHANGED failures

\* joinGroupIfNeeded sees the completed future: onJoinComplete.
CompleteJoin(p) ==
  /\ Running(p) /\ joinFuture[p].state = "Succeeded"
  /\ SetMember(p, AfterFuture(Member(p)))
  /\ MemberStep /\ UNCHANGED <<channel, heartbeat, failures>>

\* HeartbeatThread.run; who joins does not send heartbeats.
SendHeartbeat(p) ==
  /\ Heartbeats /\ Running(p) /\ heartbeat[p].type = "None"
  /\ memberState[p] \in {"COMPLETING_REBALANCE", "STABLE"}
  /\ heartbeat' = [heartbeat EXCEPT ![p] =
       [type |-> "HeartbeatRequest", memberId |-> memberGeneration[p].memberId,
        generation |-> memberGeneration[p].generation, error |-> "NONE"]]
  /\ MemberStep /\ UNCHANGED <<memberVars, channel, failures>>

\* HeartbeatResponseHandler.handle. The answer has the request's generation and member id.
ProcessHeartbeat(p) ==
  /\ heartbeat[p].type = "HeartbeatResponse"
  /\ SetMember(p, AfterHeartbeat(Member(p), heartbeat[p]))
  /\ heartbeat' = [heartbeat EXCEPT ![p] = NoHeartbeat]
  /\ MemberStep /\ UNCHANGED <<channel, failures>>

\* ConsumerCoordinator.sendOffsetCommitRequest: of a stable member only.
SendOffsetCommit(p) ==
  /\ Commits /\ Running(p) /\ heartbeat[p].type = "None"
  /\ memberState[p] = "STABLE" /\ joinFuture[p].state = "None"
  /\ heartbeat' = [heartbeat EXCEPT ![p] =
       [type |-> "OffsetCommitRequest", memberId |-> memberGeneration[p].memberId,
        generation |-> memberGeneration[p].generation, error |-> "NONE"]]
  /\ MemberStep /\ UNCHANGED <<memberVars, channel, failures>>

\* OffsetCommitResponseHandler.handle
ProcessOffsetCommit(p) ==
  /\ heartbeat[p].type = "OffsetCommitResponse"
  /\ SetMember(p, AfterOffsetCommit(Member(p), heartbeat[p]))
  /\ heartbeat' = [heartbeat EXCEPT ![p] = NoHeartbeat]
  /\ MemberStep /\ UNCHANGED <<channel, failures>>

\* AbstractCoordinator.maybeLeaveGroup: a static member does not tell the coordinator.
TellsThatItLeaves(p) == ~IsStatic(p)

LeaveGroup(p) ==
  /\ Leaves /\ Running(p) /\ channel[p].type = "None" /\ joinFuture[p].state = "None"
  /\ memberState[p] # "UNJOINED" /\ memberGeneration[p].memberId # NoMemberId
  /\ SetMember(p, Reset(Member(p), FALSE))
  /\ channel' = [channel EXCEPT ![p] =
       IF TellsThatItLeaves(p)
       THEN [NoMessage EXCEPT !.type = "LeaveGroupRequest", !.abandoned = TRUE,
               !.sentMemberId = memberGeneration[p].memberId]
       ELSE NoMessage]
  /\ Failure
  /\ MemberStep /\ UNCHANGED heartbeat

\* AbstractCoordinator.requestRejoin by the user: enforceRebalance, new metadata.
RequestRejoin(p) ==
  /\ Rejoins /\ Running(p) /\ memberState[p] = "STABLE" /\ ~rejoinNeeded[p]
  /\ SetMember(p, [Member(p) EXCEPT !.rejoinNeeded = TRUE])
  /\ Failure
  /\ MemberStep /\ UNCHANGED <<channel, heartbeat>>

\* The user configures other assignors (partition.assignment.strategy). In place of a rolling
\* restart, so that the member keeps its id.
ChangeProtocols(p, names) ==
  /\ Running(p) /\ memberState[p] = "STABLE" /\ names # protocols[p]
  /\ SetMember(p, [Member(p) EXCEPT !.protocols = names, !.rejoinNeeded = TRUE])
  /\ Failure
  /\ MemberStep /\ UNCHANGED <<channel, heartbeat>>

\* What is left of p's request when p does not wait for it any longer.
LeftBehind(m) ==
  IF m.type \in RequestTypes /\ (LateRequests \/ m.abandoned)
  THEN [m EXCEPT !.abandoned = TRUE] ELSE NoMessage

\* The process stops and starts; whoever it was, it joins as a new one.
RestartProcess(p) ==
  /\ Restarts
  /\ Member(p) # FreshMember(protocols[p])
  /\ SetMember(p, FreshMember(protocols[p]))
  /\ channel' = [channel EXCEPT ![p] = LeftBehind(channel[p])]
  /\ heartbeat' = [heartbeat EXCEPT ![p] = NoHeartbeat]
  /\ Failure
  /\ MemberStep

(***************************************************************************)
(* Messages that do not arrive. The client learns of it (a broken          *)
(* connection, a time-out) and tries again.                                *)
(***************************************************************************)
AfterDisconnect(p) == IF channel[p].abandoned THEN Member(p) ELSE JoinFailed(Member(p))

\* The request, or the parked request's or the request's answer, is lost.
LoseMessage(p) ==
  /\ Losses /\ channel[p].type # "None"
  /\ SetMember(p, AfterDisconnect(p))
  /\ channel' = [channel EXCEPT ![p] = NoMessage]
  /\ Failure
  /\ MemberStep /\ UNCHANGED heartbeat

\* The request is not lost, but arrives after the client has given up on it.
AbandonRequest(p) ==
  /\ LateRequests /\ channel[p].type \in RequestTypes /\ ~channel[p].abandoned
  /\ SetMember(p, AfterDisconnect(p))
  /\ channel' = [channel EXCEPT ![p].abandoned = TRUE]
  /\ Failure
  /\ MemberStep /\ UNCHANGED heartbeat

LoseHeartbeat(p) ==
  /\ Losses /\ heartbeat[p].type # "None"
  /\ heartbeat' = [heartbeat EXCEPT ![p] = NoHeartbeat]
  /\ Failure
  /\ MemberStep /\ UNCHANGED <<memberVars, channel>>

(***************************************************************************)
(* Coordinator: requests.                                                  *)
(***************************************************************************)
HasFreshId(p) == idsGiven[p] < Cardinality(PositionsOf(p))

\* GroupCoordinator.handleJoinGroup
HandleJoinGroup(p) ==
  LET m == channel[p]
  IN  /\ m.type = "JoinGroupRequest"
      /\ m.sentMemberId = NoMemberId => HasFreshId(p)
      /\ \E c \in Choices :
           LET new    == IF m.sentMemberId = NoMemberId THEN FreshId(p, idsGiven[p])
                                                        ELSE NoMemberId
               result == Join(Group, p, m.sentMemberId, m.protocols, new, c)
           IN  /\ Offered(c)
               /\ BecomesAndReplies(p, result, "JoinGroupParked", "JoinGroupResponse")
               /\ idsGiven' = [idsGiven EXCEPT ![p] = IF result.created THEN @ + 1 ELSE @]
      /\ UNCHANGED <<memberVars, heartbeat, failures>>

\* GroupCoordinator.handleSyncGroup
HandleSyncGroup(p) ==
  LET m == channel[p]
  IN  /\ m.type = "SyncGroupRequest"
      /\ \E c \in Choices :
           /\ Offered(c)
           /\ BecomesAndReplies(p, Sync(Group, p, m, TRUE, c),
                                "SyncGroupParked", "SyncGroupResponse")
      /\ UNCHANGED <<memberVars, heartbeat, idsGiven, failures>>

\* The same, where the log refuses the leader's assignment.
FailToStoreAssignment(p) ==
  LET m == channel[p]
  IN  /\ StoreFailures /\ m.type = "SyncGroupRequest"
      /\ groupState = "CompletingRebalance" /\ SyncError(Group, p, m) = "NONE"
      /\ IsFromLeader(Group, m.sentMemberId)
      /\ \E c \in Choices :
           /\ Offered(c)
           /\ BecomesAndReplies(p, Sync(Group, p, m, FALSE, c),
                                "SyncGroupParked", "SyncGroupResponse")
      /\ Failure
      /\ UNCHANGED <<memberVars, heartbeat, idsGiven>>

\* GroupCoordinator.handleLeaveGroup; nobody waits for the answer.
HandleLeaveGroup(p) ==
  LET m == channel[p]
  IN  /\ m.type = "LeaveGroupRequest"
      /\ \E c \in Choices :
           LET g == Leave(Group, p, m.sentMemberId, c)
           IN  /\ Offered(c)
               /\ SetGroup(g)
               /\ channel' = [q \in Members |-> IF q = p THEN NoMessage
                                                         ELSE Delivered(channel[q], g)]
      /\ UNCHANGED <<memberVars, heartbeat, idsGiven, failures>>

\* GroupCoordinator.handleHeartbeat
HandleHeartbeat(p) ==
  /\ heartbeat[p].type = "HeartbeatRequest"
  /\ heartbeat' = [heartbeat EXCEPT ![p].type = "HeartbeatResponse",
                                    ![p].error = HeartbeatError(Group, p, heartbeat[p])]
  /\ UNCHANGED <<groupVars, memberVars, channel, ghostVars>>

\* GroupCoordinator.handleCommitOffsets
HandleOffsetCommit(p) ==
  /\ heartbeat[p].type = "OffsetCommitRequest"
  /\ heartbeat' = [heartbeat EXCEPT ![p].type = "OffsetCommitResponse",
                                    ![p].error = CommitError(Group, p, heartbeat[p])]
  /\ UNCHANGED <<groupVars, memberVars, channel, ghostVars>>

(***************************************************************************)
(* Coordinator: timers, deletion, fail-over.                               *)
(***************************************************************************)
CoordinatorStep == UNCHANGED <<memberVars, heartbeat, idsGiven>>

\* No process is id any longer, or is about to be: its timers remove it, sooner or later.
Defunct(id) ==
  LET p == OwnerOf[id]
  IN  /\ memberGeneration[p].memberId # id \/ failed[p]
      /\ channel[p].memberId # id /\ channel[p].sentMemberId # id

MayExpire(id) == Timeouts \/ Defunct(id)

\* session.timeout.ms without a heartbeat: GroupCoordinator.onExpireHeartbeat.
ExpireSession(id) ==
  /\ SessionMayExpire(Group, id) /\ MayExpire(id)
  /\ \E c \in Choices : Offered(c) /\ Becomes(RemoveMember(Group, id, c))
  /\ FailureIf(~Defunct(id))
  /\ CoordinatorStep

\* NewMemberJoinTimeoutMs.
ExpireNewMember(id) ==
  /\ NewMemberMayExpire(Group, id) /\ MayExpire(id)
  /\ \E c \in Choices : Offered(c) /\ Becomes(RemoveMember(Group, id, c))
  /\ FailureIf(~Defunct(id))
  /\ CoordinatorStep

\* session.timeout.ms after MEMBER_ID_REQUIRED.
ExpirePendingMember(id) ==
  /\ id \in pendingMembers /\ MayExpire(id)
  /\ \E c \in Choices : Offered(c) /\ Becomes(ExpirePending(Group, id, c))
  /\ FailureIf(~Defunct(id))
  /\ CoordinatorStep

\* group.initial.rebalance.delay.ms: every join starts with it.
ExpireInitialDelay ==
  /\ groupState = "PreparingRebalance" /\ joinTimer = "Initial"
  /\ \E c \in Choices : Offered(c) /\ Becomes(InitialDelayOver(Group, c))
  /\ UNCHANGED failures
  /\ CoordinatorStep

\* rebalance.timeout.ms (max.poll.interval.ms): DelayedJoin completes by its timer.
ExpireRebalance ==
  /\ Timeouts
  /\ groupState = "PreparingRebalance" /\ joinTimer = "Rebalance"
  /\ \E c \in Choices : Offered(c) /\ Becomes(CompleteJoinPhase(Group, c))
  /\ Failure
  /\ CoordinatorStep

\* rebalance.timeout.ms after the join phase: DelayedSync.onExpiration.
ExpireSync ==
  /\ Timeouts
  /\ SyncMayExpire(Group)
  /\ \E c \in Choices : Offered(c) /\ Becomes(SyncExpired(Group, c))
  /\ Failure
  /\ CoordinatorStep

\* The group's partition of __consumer_offsets moves to another broker.
FailOver ==
  /\ FailOvers
  /\ \E c \in Choices : Offered(c) /\ Becomes(FailedOver(Group, c))
  /\ Failure
  /\ CoordinatorStep

\* GroupCoordinator.handleDeleteGroups; GroupMetadataManager.cleanupGroupMetadata.
DeleteGroup ==
  /\ Deletes /\ groupState = "Empty"
  /\ Becomes(NoGroup)
  /\ Failure
  /\ CoordinatorStep

(***************************************************************************)
(* The specification.                                                      *)
(***************************************************************************)
Next ==
  \/ \E p \in Members : SendJoinGroup(p)
  \/ \E p \in Members : HandleJoinGroup(p)
  \/ \E p \in Members : ProcessJoinGroup(p)
  \/ \E p \in Members : HandleSyncGroup(p)
  \/ \E p \in Members : FailToStoreAssignment(p)
  \/ \E p \in Members : ProcessSyncGroup(p)
  \/ \E p \in Members : CompleteJoin(p)
  \/ \E p \in Members : SendHeartbeat(p)
  \/ \E p \in Members : HandleHeartbeat(p)
  \/ \E p \in Members : ProcessHeartbeat(p)
  \/ \E p \in Members : SendOffsetCommit(p)
  \/ \E p \in Members : HandleOffsetCommit(p)
  \/ \E p \in Members : ProcessOffsetCommit(p)
  \/ \E p \in Members : LeaveGroup(p)
  \/ \E p \in Members : HandleLeaveGroup(p)
  \/ \E p \in Members : RequestRejoin(p)
  \/ \E p \in Members, names \in ProtocolSets : ChangeProtocols(p, names)
  \/ \E p \in Members : RestartProcess(p)
  \/ \E p \in Members : LoseMessage(p)
  \/ \E p \in Members : AbandonRequest(p)
  \/ \E p \in Members : LoseHeartbeat(p)
  \/ \E id \in Ids : ExpireSession(id)
  \/ \E id \in Ids : ExpireNewMember(id)
  \/ \E id \in Ids : ExpirePendingMember(id)
  \/ ExpireInitialDelay
  \/ ExpireRebalance
  \/ ExpireSync
  \/ FailOver
  \/ DeleteGroup

Spec == Init /\ [][Next]_vars
=============================================================================
