--------------------------- MODULE GroupMembership ---------------------------
(***************************************************************************)
(* Kafka's classic consumer group protocol: what must hold, each with what *)
(* it means to a user. Below it: GroupProtocol (the coordinator's steps,   *)
(* Spec), GroupMember, GroupState, GroupCoordinator.                       *)
(*                                                                         *)
(* Which formula a model checks stands in its manifest; what a formula     *)
(* presupposes is said beside it.                                          *)
(***************************************************************************)
EXTENDS GroupProtocol

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
GenerationsOrNone == Generations \union {NoGeneration}
ProtocolsOrNone   == Protocols \union {NoProtocol}
Assignments       == [Ids -> SUBSET Partitions]

ChannelMessage ==
  [type : MessageTypes, sentMemberId : IdsOrNone, sentGeneration : GenerationsOrNone,
   abandoned : BOOLEAN, protocols : SUBSET Protocols, assignments : Assignments,
   error : Errors, memberId : IdsOrNone, generation : GenerationsOrNone,
   protocol : ProtocolsOrNone, leader : IdsOrNone, members : SUBSET Ids,
   assignment : SUBSET Partitions, skipAssignment : BOOLEAN]

GroupRecord ==
  [present : BOOLEAN, generation : Generations, protocol : ProtocolsOrNone,
   leader : IdsOrNone, members : SUBSET Ids, staticMembers : [Instances -> IdsOrNone],
   supported : [Ids -> SUBSET Protocols], assignment : Assignments]

TypeOK ==
  /\ groupState \in {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}
  /\ generation \in Generations
  /\ protocolName \in ProtocolsOrNone
  /\ leader \in IdsOrNone
  /\ members \in SUBSET Ids
  /\ pendingMembers \in SUBSET Ids
  /\ staticMembers \in [Instances -> IdsOrNone]
  /\ supported \in [Ids -> SUBSET Protocols]
  /\ awaitingJoin \in SUBSET Ids
  /\ awaitingSync \in SUBSET Ids
  /\ newMembers \in SUBSET Ids
  /\ pendingSync \in SUBSET Ids
  /\ assignment \in Assignments
  /\ joinTimer \in {"None", "Initial", "Rebalance"}
  /\ initialDelays \in 0..InitialDelays
  /\ newMemberAdded \in BOOLEAN
  /\ groupRecord \in GroupRecord
  /\ memberState \in [Members -> {"UNJOINED", "PREPARING_REBALANCE", "COMPLETING_REBALANCE",
                                  "STABLE"}]
  /\ memberGeneration \in [Members -> [generation : GenerationsOrNone, memberId : IdsOrNone,
                                       protocol : ProtocolsOrNone]]
  /\ rejoinNeeded \in [Members -> BOOLEAN]
  /\ needsJoinPrepare \in [Members -> BOOLEAN]
  /\ joinFuture \in [Members -> [state : {"None", "Pending", "Succeeded"},
                                 assignment : SUBSET Partitions]]
  /\ isLeader \in [Members -> BOOLEAN]
  /\ owned \in [Members -> SUBSET Partitions]
  /\ protocols \in [Members -> SUBSET Protocols]
  /\ failed \in [Members -> BOOLEAN]
  /\ channel \in [Connections -> ChannelMessage]
  /\ heartbeat \in [Members -> [type : HeartbeatTypes, memberId : IdsOrNone,
                                generation : GenerationsOrNone, error : Errors]]
  /\ idsGiven \in [Members -> 0..Len(MemberIds)]
  /\ failures \in Nat

(***************************************************************************)
(* Reading the state.                                                      *)
(***************************************************************************)
MemberId(p)         == memberGeneration[p].memberId
MemberGeneration(p) == memberGeneration[p].generation
InGeneration        == groupState \in {"CompletingRebalance", "Stable"}

\* p and q are different members in users' eyes: two processes with one instance id are
\* one member that was started twice.
AreApart(p, q) == p # q /\ (IsStatic(p) => InstanceOf[p] # InstanceOf[q])

\* The assignment that p has been given, whether or not the user has heard of it.
Given(p) == IF joinFuture[p].state = "Succeeded" THEN joinFuture[p].assignment ELSE owned[p]

\* p is, by the coordinator's word, a member, under the id and in the generation it thinks.
IsCurrent(p) ==
  /\ MemberId(p) \in members /\ MemberGeneration(p) = generation
  /\ IsStatic(p) => staticMembers[InstanceOf[p]] = MemberId(p)

(***************************************************************************)
(* Invariants: the group as the coordinator has it.                        *)
(***************************************************************************)

\* A group without members has no leader and no protocol, and nobody waits in it.
EmptyGroupHasNoLeader ==
  /\ members = {} => leader = NoMemberId /\ awaitingJoin = {} /\ awaitingSync = {}
  /\ groupState \in {"Empty", "Dead"} => members = {} /\ protocolName = NoProtocol

\* Somebody who is there assigns the partitions.
LeaderIsMember == members # {} => leader \in members

\* Two processes never both count as the same instance (KIP-345).
OneMemberPerInstance ==
  /\ \A a, b \in members :
       InstanceOfId(a) = InstanceOfId(b) /\ InstanceOfId(a) # NoInstance => a = b
  /\ \A i \in Instances : staticMembers[i] # NoMemberId =>
       staticMembers[i] \in members /\ InstanceOfId(staticMembers[i]) = i
  /\ \A id \in members : InstanceOfId(id) # NoInstance =>
       staticMembers[InstanceOfId(id)] = id

\* A process that is never cut off from the coordinator is in the group once: a second
\* member id of its would hold partitions that nobody consumes until its session expires.
\* Presupposes that nothing is lost, nobody restarts or leaves.
OneMemberPerProcess ==
  \A a, b \in members : OwnerOf[a] = OwnerOf[b] => a = b

\* group.max.size holds of every generation. Presupposes dynamic members: a static member
\* that has not joined keeps its place, and may be one too many (see the model of it).
GroupWithinMaximumSize == InGeneration => Cardinality(members) <= MaxSize

\* The protocol of a generation is one that each of its members knows.
MembersOfAGenerationAgreeOnProtocol ==
  InGeneration => \A id \in members : protocolName \in supported[id]

\* A process that was told its id and has not come back is no member: it neither counts
\* nor is assigned anything.
PendingMembersAreNoMembers ==
  /\ pendingMembers \intersect members = {}
  /\ \A id \in Ids : assignment[id] # {} => id \in members

\* In a stable group every partition is consumed, by one member.
AssignmentIsComplete ==
  groupState = "Stable" =>
    /\ \A k \in Partitions : \E id \in members : k \in assignment[id]
    /\ \A a, b \in members : a # b => assignment[a] \intersect assignment[b] = {}

\* Requests wait only as long as there is something to wait for; new members are those
\* whose first JoinGroup waits.
RequestsWaitOnlyForTheirPhase ==
  /\ awaitingJoin \subseteq members /\ awaitingSync \subseteq members
  /\ awaitingJoin # {} => groupState = "PreparingRebalance"
  /\ awaitingSync # {} => groupState = "CompletingRebalance"
  /\ newMembers \subseteq awaitingJoin

\* No timer runs for an operation that is over.
CompletedOperationsAreRemoved ==
  /\ joinTimer # "None" <=> groupState = "PreparingRebalance"
  /\ pendingSync # {} => InGeneration

\* Who waits for an answer will be given one: its request is held.
WaitingRequestIsHeld ==
  \A p \in Members :
    /\ channel[p].type = "JoinGroupParked" => channel[p].memberId \in awaitingJoin
    /\ channel[p].type = "SyncGroupParked" => channel[p].memberId \in awaitingSync

\* Nobody waits for the rebalance timeout once all are there (KAFKA-7909).
RebalanceEndsWhenAllHaveJoined ==
  groupState = "PreparingRebalance" /\ joinTimer = "Rebalance" => ~HasAllMembersJoined(Group)

\* The sync timeout waits for members of the group. Not so where a static member joins
\* again before the sync timeout is over: see the model of it.
AwaitedSyncIsOfAMember == pendingSync \subseteq members

\* Members that all have gone do not come back with a fail-over. Not so where the record of the
\* empty group is lost: see the model of it.
EmptyGroupIsStored ==
  groupState = "Empty" /\ groupRecord.present => groupRecord.members = {}

\* What a stable group is, is stored: a fail-over loses nothing of it.
StableGroupIsStored ==
  groupState = "Stable" =>
    /\ groupRecord.present
    /\ groupRecord.generation = generation /\ groupRecord.protocol = protocolName
    /\ groupRecord.leader = leader /\ groupRecord.members = members
    /\ groupRecord.staticMembers = staticMembers /\ groupRecord.assignment = assignment

(***************************************************************************)
(* Invariants: the members among each other.                               *)
(***************************************************************************)

\* Two members that both believe to be stable in one generation never consume the same
\* partition, and each holds what the coordinator has for it.
AtMostOneStableGeneration ==
  /\ \A p, q \in Members :
       /\ AreApart(p, q) /\ memberState[p] = "STABLE" /\ memberState[q] = "STABLE"
       /\ MemberGeneration(p) = MemberGeneration(q)
       => Given(p) \intersect Given(q) = {}
  /\ \A p \in Members :
       memberState[p] = "STABLE" /\ groupState = "Stable" /\ IsCurrent(p) =>
         Given(p) = assignment[MemberId(p)]

\* The generation that p has been told to lead, and has not yet handed in an assignment for.
\* Not isLeader: a member that joins again after a failed sync keeps that as a follower.
IsToAssign(p) ==
  LET m == channel[p]
  IN  CASE m.type = "JoinGroupResponse" /\ m.members # {} /\ ~m.skipAssignment -> m.generation
        [] m.type = "SyncGroupRequest" /\ m.assignments # NoAssignments -> m.sentGeneration
        [] OTHER -> NoGeneration

\* One process assigns the partitions of a generation. Presupposes no fail-over: what was
\* not stored is forgotten, and its generation's number is given again.
OneLeaderPerGeneration ==
  \A p, q \in Members :
    AreApart(p, q) /\ IsToAssign(p) # NoGeneration => IsToAssign(p) # IsToAssign(q)

\* Members of one generation speak one protocol. Presupposes no fail-over, as above.
OneProtocolPerGeneration ==
  \A p, q \in Members :
    MemberGeneration(p) # NoGeneration /\ MemberGeneration(p) = MemberGeneration(q) =>
      memberGeneration[p].protocol = memberGeneration[q].protocol

\* Who is in a generation knows its own id; who is not, joins.
MemberStateIsConsistent ==
  \A p \in Members :
    /\ memberState[p] \in {"COMPLETING_REBALANCE", "STABLE"} =>
         MemberId(p) # NoMemberId /\ MemberGeneration(p) # NoGeneration
    /\ memberState[p] = "UNJOINED" => MemberGeneration(p) = NoGeneration /\ rejoinNeeded[p]
    /\ joinFuture[p].state = "None" /\ memberState[p] # "STABLE" => rejoinNeeded[p] \/ failed[p]

\* Eager rebalancing: who joins has given up all its partitions (onPartitionsRevoked).
RevokedBeforeJoining ==
  \A p \in Members : joinFuture[p].state # "None" => owned[p] = {}

\* Who holds partitions will be told before it joins again.
OwnerWillBePrepared == \A p \in Members : owned[p] # {} => needsJoinPrepare[p]

(***************************************************************************)
(* Action properties.                                                      *)
(***************************************************************************)

\* The group is what the log says, and no request of before is waiting.
Reloads ==
  /\ FailOvers /\ groupRecord' = groupRecord
  /\ generation' = groupRecord.generation /\ members' = groupRecord.members
  /\ awaitingJoin' = {} /\ awaitingSync' = {}

\* A generation's number counts completed join phases. It falls only by a fail-over, to
\* what was stored, and when the group is deleted; what is stored does not fall.
GenerationsNeverFall ==
  [][/\ \/ generation' \in {generation, generation + 1}
        \/ Reloads
        \/ groupState = "Empty" /\ groupState' = "Dead"
     /\ groupRecord'.generation >= groupRecord.generation \/ groupState' = "Dead"]_vars

\* A member never goes back to an older generation but by forgetting. Presupposes neither
\* fail-over nor deletion.
MemberGenerationsNeverFall ==
  [][\A p \in Members :
       memberGeneration'[p].generation # NoGeneration =>
         memberGeneration'[p].generation >= MemberGeneration(p)]_vars

\* GroupMetadata.validPreviousStates; where a step passes through PreparingRebalance, since
\* everybody has joined already, the generation tells.
MovesWithinAGeneration(from, to) ==
  CASE from = "Dead"                -> to \in {"Empty", "PreparingRebalance"}
    [] from = "Empty"               -> to \in {"PreparingRebalance", "Dead"}
    [] from = "PreparingRebalance"  -> FALSE
    [] from = "CompletingRebalance" -> to \in {"Stable", "PreparingRebalance"}
    [] from = "Stable"              -> to = "PreparingRebalance"

MovesToTheNext(from, to) ==
  to \in {"CompletingRebalance", "Empty"}
  /\ from \in {"PreparingRebalance", "CompletingRebalance", "Stable"}

LegalTransitionsOnly ==
  [][\/ Reloads
     \/ generation' = generation + 1 /\ MovesToTheNext(groupState, groupState')
     \/ generation' = generation /\ groupState' = groupState
     \/ /\ generation' = generation \/ groupState' = "Dead"
        /\ MovesWithinAGeneration(groupState, groupState')]_vars

\* The coordinator answers p's request with a success.
HeartbeatSucceeds(p, request, response) ==
  heartbeat[p].type = request /\ heartbeat'[p].type = response
  /\ heartbeat'[p].error \in {"NONE", "REBALANCE_IN_PROGRESS"}

ChannelSucceeds(p, response) ==
  channel[p].type # response /\ channel'[p].type = response /\ channel'[p].error = "NONE"

\* id is a member now, and nobody else has its instance id.
NotFenced(p, id) ==
  /\ id \in members'
  /\ IsStatic(p) => staticMembers'[InstanceOf[p]] = id

\* No heartbeat, sync or commit of an old generation, of who is no member, or of a process
\* whose instance id another one has taken, succeeds.
FencedNeverSucceeds ==
  [][\A p \in Members :
       /\ \/ HeartbeatSucceeds(p, "HeartbeatRequest", "HeartbeatResponse")
          \/ HeartbeatSucceeds(p, "OffsetCommitRequest", "OffsetCommitResponse")
          => heartbeat[p].generation = generation /\ NotFenced(p, heartbeat[p].memberId)
       /\ ChannelSucceeds(p, "SyncGroupResponse") =>
            channel[p].sentGeneration = generation' /\ NotFenced(p, channel[p].sentMemberId)
       /\ ChannelSucceeds(p, "JoinGroupResponse") =>
            channel'[p].generation = generation' /\ NotFenced(p, channel'[p].memberId)]_vars

\* A heartbeat tells of a rebalance if and only if members are awaited.
HeartbeatTellsOfRebalance ==
  [][\A p \in Members :
       HeartbeatSucceeds(p, "HeartbeatRequest", "HeartbeatResponse") =>
         (heartbeat'[p].error = "REBALANCE_IN_PROGRESS" <=> groupState = "PreparingRebalance")]_vars

\* A commit amid the assignment is refused: the committer may have lost the partition.
NoCommitWhileAssigning ==
  [][\A p \in Members :
       /\ heartbeat[p].type = "OffsetCommitRequest"
       /\ heartbeat'[p].type = "OffsetCommitResponse" /\ heartbeat'[p].error = "NONE"
       => groupState # "CompletingRebalance"]_vars

LeavesItself(id) ==
  LET p == OwnerOf[id]
  IN  channel[p].type = "LeaveGroupRequest" /\ channel[p].sentMemberId = id

IsReplaced(id) ==
  InstanceOfId(id) # NoInstance /\ staticMembers'[InstanceOfId(id)] \notin {id, NoMemberId}

\* Who waits for the coordinator is not taken for dead; but for a new member, whose first
\* JoinGroup has its own limit.
ParkedMembersDoNotExpire ==
  [][\A id \in (awaitingJoin \ newMembers) \union awaitingSync :
       id \in members' \/ LeavesItself(id) \/ IsReplaced(id) \/ Reloads]_vars

\* onJoinPrepare and onJoinComplete alternate: a join starts prepared; it completes once,
\* and the next one is prepared again. But for a restart, only they change what is owned.
PreparedOncePerRebalance ==
  [][\A p \in Members :
       /\ joinFuture[p].state = "None" /\ joinFuture'[p].state = "Pending"
          => ~needsJoinPrepare'[p]
       /\ memberState[p] = "UNJOINED" /\ memberState'[p] = "PREPARING_REBALANCE"
          => needsJoinPrepare[p]
       /\ joinFuture[p].state = "Succeeded" /\ memberState'[p] = "STABLE"
          /\ joinFuture'[p].state = "None"
          => ~needsJoinPrepare[p] /\ needsJoinPrepare'[p]
       /\ owned'[p] # owned[p] =>
            \/ needsJoinPrepare[p] /\ owned'[p] = {}
            \/ joinFuture[p].state = "Succeeded" /\ owned'[p] = joinFuture[p].assignment]_vars

\* An assignment reaches the user only while it is that of its member's own generation.
OnlyTheStableAdopt ==
  [][\A p \in Members :
       owned'[p] # owned[p] /\ owned'[p] # {} =>
         /\ memberState[p] = "STABLE" /\ MemberGeneration(p) # NoGeneration
         /\ memberGeneration'[p] = memberGeneration[p]]_vars

\* A process whose instance id another one has taken is told so, and stops; otherwise the
\* two would take it from each other for ever.
IsTakenFrom(p, id) == IsStatic(p) /\ staticMembers[InstanceOf[p]] \notin {id, NoMemberId}

DuplicateInstanceIsFenced ==
  [][\A p \in Members :
       /\ /\ heartbeat[p].type \in {"HeartbeatRequest", "OffsetCommitRequest"}
          /\ heartbeat'[p].type \in {"HeartbeatResponse", "OffsetCommitResponse"}
          /\ IsTakenFrom(p, heartbeat[p].memberId)
          => heartbeat'[p].error = "FENCED_INSTANCE_ID"
       /\ /\ channel[p].type = "SyncGroupRequest" /\ channel'[p].type = "SyncGroupResponse"
          /\ IsTakenFrom(p, channel[p].sentMemberId)
          => channel'[p].error = "FENCED_INSTANCE_ID"]_vars

\* An instance that has its place in the group is not turned away when it comes back. Not
\* so where the group is full: see the model of it.
InstanceIsNotTurnedAway ==
  [][\A p \in Members :
       /\ channel[p].type = "JoinGroupRequest" /\ channel'[p].type = "JoinGroupResponse"
       /\ IsStatic(p) /\ staticMembers[InstanceOf[p]] # NoMemberId
       => channel'[p].error # "GROUP_MAX_SIZE_REACHED"]_vars

\* Who is told that the assignment was not stored does not find it in force after a fail-over.
\* Not so where a broker refuses what it has appended: see the model of it.
RefusedIsNotStored ==
  [][groupState = "CompletingRebalance" /\ groupState' = "PreparingRebalance" =>
       groupRecord' = groupRecord]_vars

\* A stable group rebalances only for somebody who joins or is gone. Not so where a static
\* member joins again before the sync timeout is over: see the model of it.
RebalanceHasAReason ==
  [][groupState = "Stable" /\ groupState' = "PreparingRebalance" =>
       members' # members \/ awaitingJoin' # {} \/ Reloads]_vars

(***************************************************************************)
(* Situations: states worth reaching, for suites that find shortest paths. *)
(***************************************************************************)

\* All processes consume what they are assigned.
EverybodyConsumes ==
  groupState = "Stable" /\ \A p \in Members : IsCurrent(p) /\ owned[p] # {}

\* A process consumes partitions that the group has given to others, and has yet to learn it.
ZombieConsumes ==
  \E p \in Members : owned[p] # {} /\ ~IsCurrent(p) /\ groupState = "Stable"

SomebodyIsFenced == \E p \in Members : channel[p].error = "FENCED_INSTANCE_ID"
                                      \/ heartbeat[p].error = "FENCED_INSTANCE_ID"

SomebodyIsTurnedAway == \E p \in Members : channel[p].error = "GROUP_MAX_SIZE_REACHED"

SomebodyIsPending == pendingMembers # {}

\* The generation was reset between the answer to SyncGroup and onJoinComplete.
AssignmentIsStale ==
  \E p \in Members : joinFuture[p].state = "Succeeded" /\ memberState[p] # "STABLE"

\* A process is in the group under an id that it has forgotten.
SomebodyIsDefunct == \E id \in members : Defunct(id)

\* A static member is in a generation that it did not join.
StaticMemberIsAbsent ==
  InGeneration /\ \E id \in members :
    IsStatic(OwnerOf[id]) /\ memberGeneration[OwnerOf[id]].generation < generation
    /\ channel[OwnerOf[id]].type \notin ResponseTypes

(***************************************************************************)
(* Liveness.                                                               *)
(***************************************************************************)

\* Fairness, per process and timer: where a step is possible for ever, it happens again and
\* again. In place of WF of the actions themselves: TLC takes minutes for each state to find
\* out whether they are enabled. The bounds must not stop a step: models check that.
CanParticipate(p) ==
  \/ Running(p) /\ rejoinNeeded[p] /\ joinFuture[p].state = "None" /\ channel[p].type = "None"
  \/ Running(p) /\ joinFuture[p].state = "Succeeded"
  \/ channel[p].type \in RequestTypes \union ResponseTypes

Participates(p) == channel'[p] # channel[p] \/ joinFuture'[p] # joinFuture[p]

CanKeepAlive(p) ==
  \/ heartbeat[p].type # "None"
  \/ Heartbeats /\ Running(p) /\ memberState[p] \in {"COMPLETING_REBALANCE", "STABLE"}

KeepsAlive(p) == heartbeat'[p] # heartbeat[p]

CanRemove(id) ==
  /\ Defunct(id)
  /\ id \in pendingMembers \union newMembers \/ SessionMayExpire(Group, id)

Removes(id) == id \notin members' \union pendingMembers'

CanEndInitialDelay == joinTimer = "Initial"
EndsInitialDelay   == joinTimer' # joinTimer \/ initialDelays' # initialDelays

\* One connection to the coordinator, in order: a Heartbeat that was sent before a JoinGroup is
\* handled, and its answer read, before it. Without this a group need not settle: see the
\* model of it.
InOrder ==
  \A p \in Members :
    /\ channel[p].type \in {"JoinGroupRequest", "JoinGroupResponse"}
    /\ channel'[p] # channel[p]
    => heartbeat[p].type = "None"

\* Messages arrive in order, and timers fire that have a reason to; nothing makes failures go on.
FairSpec ==
  /\ Init /\ [][Next /\ InOrder]_vars
  /\ \A p \in Members : []<>~CanParticipate(p) \/ []<><<Participates(p)>>_vars
  /\ \A p \in Members : []<>~CanKeepAlive(p) \/ []<><<KeepsAlive(p)>>_vars
  /\ \A id \in Ids : []<>~CanRemove(id) \/ []<><<Removes(id)>>_vars
  /\ []<>~CanEndInitialDelay \/ []<><<EndsInitialDelay>>_vars

\* Nothing waits for a generation or a member id that a model's bounds do not have.
BoundsSuffice ==
  /\ generation + 1 \in Generations
  /\ \A p \in Members : channel[p].type = "JoinGroupRequest"
       /\ channel[p].sentMemberId = NoMemberId => HasFreshId(p)

Settled ==
  \/ \A p \in Members : failed[p]
  \/ /\ groupState = "Stable"
     /\ \A p \in Members : ~failed[p] =>
          memberState[p] = "STABLE" /\ IsCurrent(p) /\ owned[p] = assignment[MemberId(p)]

\* Once failures end, the group becomes stable and every live member consumes what it is
\* assigned.
EventuallySettled == <>[]Settled
=============================================================================
