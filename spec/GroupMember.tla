----------------------------- MODULE GroupMember -----------------------------
(***************************************************************************)
(* A member process (AbstractCoordinator, ConsumerCoordinator): what its   *)
(* own steps and the answers make of it, as values; then its steps, and    *)
(* the messages that do not arrive.                                        *)
(***************************************************************************)
EXTENDS GroupState

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
==============================================================================
