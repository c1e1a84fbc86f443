----------------------------- MODULE GroupState ------------------------------
(***************************************************************************)
(* The state of the classic consumer group protocol: constants, variables, *)
(* the values that they take, and the network between the coordinator and  *)
(* its member processes.                                                   *)
(*                                                                         *)
(* A request, its handling and the processing of its answer are separate   *)
(* steps. Either message may be lost, and a process may move on (restart,  *)
(* leave, lose its generation) before the answer comes. A process has one  *)
(* JoinGroup, SyncGroup or LeaveGroup in flight, and beside it one         *)
(* Heartbeat or OffsetCommit.                                              *)
(*                                                                         *)
(* No bounds here but constant sets, which a model makes finite.           *)
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

\* Where requests are under way: a process has one. GroupLateRequests gives it another one.
Connections == Members

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
  /\ channel = [k \in Connections |-> NoMessage]
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

IsGiven(replies, id) == id # NoMemberId /\ replies[id].given

\* What a process has in flight once the coordinator has sent the answers in g.
Delivered(m, g) ==
  IF m.type = "JoinGroupParked" /\ IsGiven(g.joinReplies, m.memberId)
  THEN Answer(m, "JoinGroupResponse", g.joinReplies[m.memberId])
  ELSE IF m.type = "SyncGroupParked" /\ IsGiven(g.syncReplies, m.memberId)
  THEN Answer(m, "SyncGroupResponse", g.syncReplies[m.memberId])
  ELSE m

\* The group becomes g; who waits for an answer that this gives, gets it.
Becomes(g) ==
  /\ SetGroup(g)
  /\ channel' = [k \in Connections |-> Delivered(channel[k], g)]

\* What is left of the parked request m once another one is parked under id. Its process has no
\* other one, but in GroupLateRequests.
StillHeld(m, id) == m

\* The same, where g comes of the request on connection k, which is answered or parked.
BecomesAndReplies(k, result, parkedType, responseType) ==
  LET m    == channel[k]
      mine == IF m.abandoned THEN NoMessage
              ELSE IF result.reply.given THEN Answer(m, responseType, result.reply)
              ELSE ParkedMessage(m, parkedType, result.memberId)
  IN  /\ SetGroup(result.group)
      /\ channel' = [q \in Connections |->
                       Delivered(IF q = k THEN mine ELSE StillHeld(channel[q], result.memberId),
                                 result.group)]

\* What the coordinator may choose (GroupCoordinator); who is no member cannot lead.
Choices == {[leader |-> id, protocol |-> n] : id \in Ids, n \in Protocols}

Offered(c) == members = {} \/ c.leader \in members
==============================================================================
