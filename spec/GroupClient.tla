----------------------------- MODULE GroupClient -----------------------------
(***************************************************************************)
(* A client in the loop: GroupMembership as one real client process and a  *)
(* coordinator that a harness plays go through it. Every step of the       *)
(* protocol is one here too. What is added:                                *)
(*                                                                         *)
(* - the callback of onJoinPrepare (onPartitionsRevoked, onPartitionsLost) *)
(*   is a step of its own: it is seen some time before the JoinGroup;      *)
(* - a client has several Heartbeats and OffsetCommits under way: they wait *)
(*   until the coordinator takes them up, and their answers until they are *)
(*   read;                                                                 *)
(* - a broker that is not the coordinator, or is still loading the group,  *)
(*   answers without looking at it (GroupCoordinator.validateGroupStatus); *)
(* - where clients differ from the Java client by design, a constant says  *)
(*   how: a model with these constants is a variant, known by its name.    *)
(***************************************************************************)
EXTENDS GroupMembership

CONSTANTS
  SyncIsSentAgain,      \* after these a SyncGroup is sent again, as it was: errors, and DISCONNECTED
                        \* where it is lost with its connection. After all others the member joins
                        \* again (librdkafka: rd_kafka_SyncGroupRequest; franz-go: retryable.Request)

  SessionMayEndAfter,   \* after these, as the answer to a heartbeat, a member may give up its
                        \* generation and join again under its id; {}: it only sends the next one
                        \* (franz-go: manageFailWait; Sarama: heartbeatLoop, after some retries)

  RequestsBehind        \* so many Heartbeats and OffsetCommits at most wait to be taken up

VARIABLES
  behind,  \* [Members -> sequence of Heartbeats and OffsetCommits that are not taken up yet]
  aside    \* [Members -> answers to them that are not read yet]

clientVars == <<vars, behind, aside>>

ClientInit ==
  /\ Init
  /\ behind = [p \in Members |-> <<>>]
  /\ aside = [p \in Members |-> {}]

Keeps == UNCHANGED <<behind, aside>>

(***************************************************************************)
(* The client.                                                             *)
(***************************************************************************)

\* ConsumerCoordinator.onJoinPrepare as the user sees it: the callback of what was assigned. After
\* a fatal error it comes with the closing (onLeavePrepare).
GivesUpPartitions(p) ==
  /\ rejoinNeeded[p] \/ failed[p]
  /\ needsJoinPrepare[p] /\ joinFuture[p].state = "None" /\ owned[p] # {}
  /\ SetMember(p, [Member(p) EXCEPT !.owned = {}])
  /\ MemberStep /\ UNCHANGED <<channel, heartbeat, failures>> /\ Keeps

SendsJoinGroup(p) == SendJoinGroup(p) /\ Keeps

\* With NOT_COORDINATOR a client gives up the connection, and what it had to read there.
DropIf(p, error) ==
  /\ aside' = IF Disconnects(error) THEN [aside EXCEPT ![p] = {}] ELSE aside
  /\ UNCHANGED behind

ProcessesJoinGroup(p) == ProcessJoinGroup(p) /\ DropIf(p, channel[p].error)
ProcessesSyncGroup(p) == ProcessSyncGroup(p) /\ DropIf(p, channel[p].error)

\* onJoinComplete with its callback onPartitionsAssigned; without, where the generation is gone.
CompletesJoin(p) == AssignmentIsCurrent(Member(p)) /\ CompleteJoin(p) /\ Keeps
DropsJoin(p)     == ~AssignmentIsCurrent(Member(p)) /\ CompleteJoin(p) /\ Keeps

\* Every partition to one member, as an assignor likes: holders[k] has k.
AssignmentOf(holders) == [id \in Ids |-> {k \in Partitions : holders[k] = id}]

\* Of a leader with another assignor than RangeAssignor.
AssignsPartitions(p, holders) ==
  LET m == channel[p]
  IN  /\ m.type = "SyncGroupRequest" /\ m.assignments # NoAssignments /\ m.protocol # "range"
      /\ \A k \in Partitions : holders[k] \in members
      /\ channel' = [channel EXCEPT ![p].assignments = AssignmentOf(holders)]
      /\ MemberStep /\ UNCHANGED <<memberVars, heartbeat, failures>> /\ Keeps

\* A request of this type with the generation that the client has now.
SendBehind(p, type) ==
  /\ Running(p) /\ Len(behind[p]) < RequestsBehind
  /\ behind' = [behind EXCEPT ![p] = Append(@,
       [type |-> type, memberId |-> memberGeneration[p].memberId,
        generation |-> memberGeneration[p].generation, error |-> "NONE"])]
  /\ MemberStep /\ UNCHANGED <<memberVars, channel, heartbeat, failures, aside>>

\* HeartbeatThread.run; who joins does not send heartbeats.
SendsHeartbeat(p) ==
  /\ Heartbeats /\ memberState[p] \in {"COMPLETING_REBALANCE", "STABLE"}
  /\ SendBehind(p, "HeartbeatRequest")

\* ConsumerCoordinator.sendOffsetCommitRequest: of a stable member only (generationIfStable).
MayCommit(p) == memberState[p] = "STABLE"

SendsOffsetCommit(p) ==
  /\ Commits /\ MayCommit(p) /\ joinFuture[p].state = "None"
  /\ SendBehind(p, "OffsetCommitRequest")

Without(seq, i) == SubSeq(seq, 1, i - 1) \o SubSeq(seq, i + 1, Len(seq))

\* The coordinator reads a request: those of one connection in their order.
TakesUp(p, i) ==
  /\ heartbeat[p].type = "None" /\ i <= Len(behind[p])
  /\ heartbeat' = [heartbeat EXCEPT ![p] = behind[p][i]]
  /\ behind' = [behind EXCEPT ![p] = Without(@, i)]
  /\ MemberStep /\ UNCHANGED <<memberVars, channel, failures, aside>>

AfterAnswer(m, a) ==
  IF a.type = "HeartbeatResponse" THEN AfterHeartbeat(m, a) ELSE AfterOffsetCommit(m, a)

\* What a member may become that reads an answer, or that its heartbeat's connection broke.
AfterReading(m, a) ==
  (IF a.error = "DISCONNECTED" THEN {} ELSE {AfterAnswer(m, a)})
  \union
  (IF a.type = "HeartbeatResponse" /\ a.error \in SessionMayEndAfter
   THEN {ResetIfUnchanged(m, a.memberId, a.generation, TRUE)} ELSE {})

\* HeartbeatResponseHandler, OffsetCommitResponseHandler.
ReadsAnswer(p) ==
  /\ heartbeat[p].type \in {"HeartbeatResponse", "OffsetCommitResponse"}
  /\ \E after \in AfterReading(Member(p), heartbeat[p]) : SetMember(p, after)
  /\ heartbeat' = [heartbeat EXCEPT ![p] = NoHeartbeat]
  /\ MemberStep /\ UNCHANGED <<channel, failures>> /\ Keeps

\* The next request is on its way before the answer to this one is read.
SetsAside(p) ==
  /\ heartbeat[p].type \in {"HeartbeatResponse", "OffsetCommitResponse"}
  /\ heartbeat[p].error # "NONE"
  /\ heartbeat' = [heartbeat EXCEPT ![p] = NoHeartbeat]
  /\ aside' = [aside EXCEPT ![p] = @ \union {heartbeat[p]}]
  /\ MemberStep /\ UNCHANGED <<memberVars, channel, failures, behind>>

ReadsAside(p) ==
  \E a \in aside[p] :
    /\ \E after \in AfterReading(Member(p), a) : SetMember(p, after)
    /\ aside' = [aside EXCEPT ![p] = IF Disconnects(a.error) THEN {} ELSE @ \ {a}]
    /\ MemberStep /\ UNCHANGED <<channel, heartbeat, failures, behind>>

LeavesGroup(p)     == LeaveGroup(p) /\ Keeps
RequestsRejoin(p)  == RequestRejoin(p) /\ Keeps

(***************************************************************************)
(* The network.                                                            *)
(***************************************************************************)
LosesMessage(p) == LoseMessage(p) /\ Keeps

\* What p has to read after a heartbeat or a commit is lost: nothing, or that its connection broke:
\* with a commit a heartbeat may be lost that nobody has seen, for it was being sent there.
AsideAfterLoss(p, lost) ==
  {aside} \union
  IF "DISCONNECTED" \in SessionMayEndAfter
  THEN {[aside EXCEPT ![p] = @ \union
          {[lost EXCEPT !.type = "HeartbeatResponse", !.error = "DISCONNECTED"]}]}
  ELSE {}

LosesHeartbeat(p) ==
  /\ LoseHeartbeat(p)
  /\ aside' \in AsideAfterLoss(p, heartbeat[p])
  /\ UNCHANGED behind

LosesBehind(p, i) ==
  /\ Losses /\ i <= Len(behind[p])
  /\ behind' = [behind EXCEPT ![p] = Without(@, i)]
  /\ aside' \in AsideAfterLoss(p, behind[p][i])
  /\ Failure
  /\ MemberStep /\ UNCHANGED <<memberVars, channel, heartbeat>>

\* A SyncGroup is refused, and its client sends it again.
ResumesSync(p) ==
  /\ channel[p].type = "SyncGroupResponse" /\ channel[p].error \in SyncIsSentAgain
  /\ channel' = [channel EXCEPT ![p] = NoMessage]
  /\ DisconnectIf(p, channel[p].error) /\ DropIf(p, channel[p].error)
  /\ MemberStep /\ UNCHANGED <<memberVars, failures>>

\* A SyncGroup or its answer is lost, and its client sends it again.
LosesSync(p) ==
  /\ "DISCONNECTED" \in SyncIsSentAgain /\ Losses
  /\ channel[p].type \in {"SyncGroupRequest", "SyncGroupParked", "SyncGroupResponse"}
  /\ channel' = [channel EXCEPT ![p] = NoMessage]
  /\ Failure
  /\ MemberStep /\ UNCHANGED <<memberVars, heartbeat>> /\ Keeps

\* The client closes a connection, of its own accord or after NOT_COORDINATOR: an answer that came
\* there and that it has not read is lost (NetworkClient.disconnect). A harness sees the connection
\* end, and not whether the answer was read before.
ClosesConnection(p) ==
  /\ \E unread \in BOOLEAN, again \in BOOLEAN :
       IF unread
       THEN /\ Losses /\ channel[p].type \in {"JoinGroupResponse", "SyncGroupResponse"}
            /\ again => channel[p].type = "SyncGroupResponse" /\ "DISCONNECTED" \in SyncIsSentAgain
            /\ channel' = [channel EXCEPT ![p] = NoMessage]
            /\ SetMember(p, IF again THEN Member(p) ELSE JoinFailed(Member(p)))
            /\ Failure
       ELSE ~again /\ UNCHANGED <<channel, memberVars, failures>>
  /\ MemberStep /\ UNCHANGED heartbeat /\ Keeps

AwaitsResend(p) == joinFuture[p].state = "Pending" /\ channel[p].type = "None"

Resend(p, given) ==
  /\ Running(p) /\ AwaitsResend(p) /\ memberState[p] = "COMPLETING_REBALANCE"
  /\ channel' = [channel EXCEPT ![p] =
       [NoMessage EXCEPT !.type = "SyncGroupRequest", !.assignments = given,
          !.sentMemberId = memberGeneration[p].memberId,
          !.sentGeneration = memberGeneration[p].generation,
          !.protocol = memberGeneration[p].protocol]]
  /\ MemberStep /\ UNCHANGED <<memberVars, heartbeat, failures>> /\ Keeps

ResendsAsFollower(p)        == SyncIsSentAgain # {} /\ Resend(p, NoAssignments)
ResendsAsLeader(p, holders) ==
  SyncIsSentAgain # {} /\ isLeader[p] /\ Resend(p, AssignmentOf(holders))

\* It has lost its generation meanwhile, or thinks better of it: it joins again.
StopsResending(p) ==
  /\ SyncIsSentAgain # {} /\ Running(p) /\ AwaitsResend(p)
  /\ SetMember(p, JoinFailed(Member(p)))
  /\ MemberStep /\ UNCHANGED <<channel, heartbeat, failures>> /\ Keeps

(***************************************************************************)
(* The coordinator, and brokers that are none.                             *)
(***************************************************************************)
HandlesJoinGroup(p)    == HandleJoinGroup(p) /\ Keeps
HandlesSyncGroup(p)    == HandleSyncGroup(p) /\ Keeps
HandlesLeaveGroup(p)   == HandleLeaveGroup(p) /\ Keeps
HandlesHeartbeat(p)    == HandleHeartbeat(p) /\ Keeps
HandlesOffsetCommit(p) == HandleOffsetCommit(p) /\ Keeps
FailsToStore(p)        == FailToStoreAssignment(p) /\ Keeps

Elsewhere == {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"}

\* What a coordinator answers that is still loading: GroupCoordinator.doSyncGroup has the member
\* join again, handleHeartbeat answers blindly.
LoadingError ==
  [JoinGroupRequest |-> "COORDINATOR_LOAD_IN_PROGRESS",
   SyncGroupRequest |-> "REBALANCE_IN_PROGRESS",
   HeartbeatRequest |-> "NONE",
   OffsetCommitRequest |-> "COORDINATOR_LOAD_IN_PROGRESS"]

ResponseTo ==
  [JoinGroupRequest |-> "JoinGroupResponse", SyncGroupRequest |-> "SyncGroupResponse",
   HeartbeatRequest |-> "HeartbeatResponse", OffsetCommitRequest |-> "OffsetCommitResponse"]

RefuseChannel(p, error) ==
  /\ channel[p].type \in {"JoinGroupRequest", "SyncGroupRequest"} /\ ~channel[p].abandoned
  /\ channel' = [channel EXCEPT ![p] =
       Answer(channel[p], ResponseTo[channel[p].type], ErrorReply(channel[p].sentMemberId, error))]
  /\ Failure
  /\ UNCHANGED <<groupVars, memberVars, heartbeat, idsGiven>> /\ Keeps

RefuseHeartbeat(p, error) ==
  /\ heartbeat[p].type \in {"HeartbeatRequest", "OffsetCommitRequest"}
  /\ heartbeat' = [heartbeat EXCEPT ![p].type = ResponseTo[heartbeat[p].type], ![p].error = error]
  /\ Failure
  /\ UNCHANGED <<groupVars, memberVars, channel, idsGiven>> /\ Keeps

RefusesElsewhere(p, error) == FailOvers /\ RefuseChannel(p, error)
RefusesWhileLoading(p) == FailOvers /\ RefuseChannel(p, LoadingError[channel[p].type])
RefusesHeartbeatElsewhere(p, error) == FailOvers /\ RefuseHeartbeat(p, error)
RefusesHeartbeatWhileLoading(p) == FailOvers /\ RefuseHeartbeat(p, LoadingError[heartbeat[p].type])

ExpiresSession(id)       == ExpireSession(id) /\ Keeps
ExpiresNewMember(id)     == ExpireNewMember(id) /\ Keeps
ExpiresPendingMember(id) == ExpirePendingMember(id) /\ Keeps
ExpiresInitialDelay      == ExpireInitialDelay /\ Keeps
ExpiresRebalance         == ExpireRebalance /\ Keeps
ExpiresSync              == ExpireSync /\ Keeps
FailsOver                == FailOver /\ Keeps
DeletesGroup             == DeleteGroup /\ Keeps

(***************************************************************************)
(* The specification.                                                      *)
(***************************************************************************)
ClientNext ==
  \/ \E p \in Members : GivesUpPartitions(p)
  \/ \E p \in Members : SendsJoinGroup(p)
  \/ \E p \in Members : ProcessesJoinGroup(p)
  \/ \E p \in Members : ProcessesSyncGroup(p)
  \/ \E p \in Members : CompletesJoin(p)
  \/ \E p \in Members : DropsJoin(p)
  \/ \E p \in Members, holders \in [Partitions -> Ids] : AssignsPartitions(p, holders)
  \/ \E p \in Members : SendsHeartbeat(p)
  \/ \E p \in Members : SendsOffsetCommit(p)
  \/ \E p \in Members, i \in 1..RequestsBehind : TakesUp(p, i)
  \/ \E p \in Members, i \in 1..RequestsBehind : LosesBehind(p, i)
  \/ \E p \in Members : ReadsAnswer(p)
  \/ \E p \in Members : SetsAside(p)
  \/ \E p \in Members : ReadsAside(p)
  \/ \E p \in Members : LeavesGroup(p)
  \/ \E p \in Members : RequestsRejoin(p)
  \/ \E p \in Members : LosesMessage(p)
  \/ \E p \in Members : LosesHeartbeat(p)
  \/ \E p \in Members : ResumesSync(p)
  \/ \E p \in Members : LosesSync(p)
  \/ \E p \in Members : ClosesConnection(p)
  \/ \E p \in Members : ResendsAsFollower(p)
  \/ \E p \in Members, holders \in [Partitions -> Ids] : ResendsAsLeader(p, holders)
  \/ \E p \in Members : StopsResending(p)
  \/ \E p \in Members : HandlesJoinGroup(p)
  \/ \E p \in Members : HandlesSyncGroup(p)
  \/ \E p \in Members : HandlesLeaveGroup(p)
  \/ \E p \in Members : HandlesHeartbeat(p)
  \/ \E p \in Members : HandlesOffsetCommit(p)
  \/ \E p \in Members : FailsToStore(p)
  \/ \E p \in Members, error \in Elsewhere : RefusesElsewhere(p, error)
  \/ \E p \in Members : RefusesWhileLoading(p)
  \/ \E p \in Members, error \in Elsewhere : RefusesHeartbeatElsewhere(p, error)
  \/ \E p \in Members : RefusesHeartbeatWhileLoading(p)
  \/ \E id \in Ids : ExpiresSession(id)
  \/ \E id \in Ids : ExpiresNewMember(id)
  \/ \E id \in Ids : ExpiresPendingMember(id)
  \/ ExpiresInitialDelay
  \/ ExpiresRebalance
  \/ ExpiresSync
  \/ FailsOver
  \/ DeletesGroup

ClientSpec == ClientInit /\ [][ClientNext]_clientVars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
AsideTypeOK == aside \in [Members -> SUBSET [type : {"HeartbeatResponse", "OffsetCommitResponse"},
                                             memberId : IdsOrNone, generation : GenerationsOrNone,
                                             error : {"DISCONNECTED", "MEMBER_ID_REQUIRED",
                                                      "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION",
                                                      "REBALANCE_IN_PROGRESS",
                                                      "FENCED_INSTANCE_ID", "NOT_COORDINATOR",
                                                      "COORDINATOR_NOT_AVAILABLE",
                                                      "COORDINATOR_LOAD_IN_PROGRESS"}]]

\* p has read all that it was told about its heartbeats and commits.
HasRead(p) ==
  /\ aside[p] = {}
  /\ heartbeat[p].type \notin {"HeartbeatResponse", "OffsetCommitResponse"}

\* Whoever lives and waits for nobody sends something, sooner or later: the SyncGroup after a
\* JoinGroup's answer, or the next JoinGroup. What the fairness of GroupMembership asks of it.
OwesRequest(p) ==
  LET m == channel[p]
  IN  /\ Running(p)
      /\ \/ m.type = "JoinGroupResponse" /\ m.error \notin FatalErrors
         \/ m.type = "SyncGroupResponse" /\ m.error \notin FatalErrors \union {"NONE"}
         \/ m.type = "None" /\ rejoinNeeded[p] /\ joinFuture[p].state # "Succeeded"

\* A member that has its assignment tells the user: onPartitionsAssigned.
OwesCallback(p) ==
  Running(p) /\ joinFuture[p].state = "Succeeded" /\ AssignmentIsCurrent(Member(p))
=============================================================================
