---------------------------- MODULE GroupProtocol ----------------------------
(***************************************************************************)
(* Kafka's classic consumer group protocol: one group, its coordinator,    *)
(* its member processes and the messages between them. The coordinator's   *)
(* steps and the specification Spec; what a request makes of the group:    *)
(* GroupCoordinator.tla; what must hold: GroupMembership.tla, the root.    *)
(*                                                                         *)
(* Every choice of the environment is an argument of the action. Given     *)
(* state, action and arguments the next state is unique, but where a       *)
(* coordinator is free: which of several members leads, which of several   *)
(* protocols with as many votes is selected (the choice c of               *)
(* GroupCoordinator).                                                      *)
(*                                                                         *)
(* Not modelled: FindCoordinator (members always reach the coordinator),   *)
(* time (a timer that may fire, may fire now), cooperative rebalancing,    *)
(* what offsets a commit stores, subscriptions to more than one topic.     *)
(***************************************************************************)
EXTENDS GroupMember

(***************************************************************************)
(* Coordinator: requests.                                                  *)
(***************************************************************************)
HasFreshId(p) == idsGiven[p] < Cardinality(PositionsOf(p))

\* What the JoinGroup that p has sent on connection k makes of the group.
JoinGroupArrives(p, k) ==
  LET m == channel[k]
  IN  /\ m.sentMemberId = NoMemberId => HasFreshId(p)
      /\ \E c \in Choices :
           LET new    == IF m.sentMemberId = NoMemberId THEN FreshId(p, idsGiven[p])
                                                        ELSE NoMemberId
               result == Join(Group, p, m.sentMemberId, m.protocols, new, c)
           IN  /\ Offered(c)
               /\ BecomesAndReplies(k, result, "JoinGroupParked", "JoinGroupResponse")
               /\ idsGiven' = [idsGiven EXCEPT ![p] = IF result.created THEN @ + 1 ELSE @]
      /\ UNCHANGED <<memberVars, heartbeat, failures>>

\* GroupCoordinator.handleJoinGroup
HandleJoinGroup(p) ==
  /\ channel[p].type = "JoinGroupRequest"
  /\ JoinGroupArrives(p, p)

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
               /\ channel' = [k \in Connections |-> IF k = p THEN NoMessage
                                                             ELSE Delivered(channel[k], g)]
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
  /\ \E c \in Choices : Offered(c) /\ Becomes(ExpireMember(Group, id, c))
  /\ FailureIf(~Defunct(id))
  /\ CoordinatorStep

\* NewMemberJoinTimeoutMs.
ExpireNewMember(id) ==
  /\ NewMemberMayExpire(Group, id) /\ MayExpire(id)
  /\ \E c \in Choices : Offered(c) /\ Becomes(ExpireMember(Group, id, c))
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
==============================================================================
