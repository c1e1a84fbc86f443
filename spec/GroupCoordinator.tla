-------------------------- MODULE GroupCoordinator --------------------------
(***************************************************************************)
(* The group coordinator's side of the classic consumer group protocol, as *)
(* values: a group, and what each request and each timer makes of it.      *)
(* Nothing here knows of messages under way or of the members' own state.  *)
(*                                                                         *)
(* Guards that stand for one check in a coordinator have names of their    *)
(* own, so that a model can take one away by an override (a mutant).       *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Members,      \* member processes, strings
  InstanceOf,   \* per process its group.instance.id, or "none": dynamic
  MemberIds,    \* the member ids that the coordinator gives out, as a sequence of
                \* [id, member] in the order in which assignors sort them; a
                \* process gets its own from first to last
  Generations,  \* 0..n
  Partitions,   \* of the one subscribed topic, 0..n
  Protocols,    \* assignors' names
  MaxSize,      \* group.max.size
  InitialDelays,        \* how often group.initial.rebalance.delay.ms may be prolonged
  RequireKnownMemberId  \* JoinGroup v4 and later: a dynamic member joins twice

NoMemberId   == ""
NoInstance   == "none"
NoProtocol   == "none"
NoGeneration == -1

Positions  == 1..Len(MemberIds)
Ids        == {MemberIds[i].id : i \in Positions}
IdsOrNone  == Ids \union {NoMemberId}
Rank       == [id \in Ids |-> CHOOSE i \in Positions : MemberIds[i].id = id]
OwnerOf    == [id \in Ids |-> MemberIds[Rank[id]].member]
Instances  == {InstanceOf[p] : p \in Members}
InstanceOfId(id) == InstanceOf[OwnerOf[id]]
IsStatic(p) == InstanceOf[p] # NoInstance

PositionsOf(p) == {i \in Positions : MemberIds[i].member = p}

\* The id that p gets next, given that it got n so far.
FreshId(p, n) ==
  MemberIds[CHOOSE i \in PositionsOf(p) :
              Cardinality({j \in PositionsOf(p) : j < i}) = n].id

(***************************************************************************)
(* Values.                                                                 *)
(***************************************************************************)
NoAssignments == [id \in Ids |-> {}]
NobodyStatic  == [i \in Instances |-> NoMemberId]

\* What a JoinGroup or SyncGroup is answered; given = FALSE: not (yet).
NoReply ==
  [given |-> FALSE, error |-> "NONE", memberId |-> NoMemberId, generation |-> NoGeneration,
   protocol |-> NoProtocol, leader |-> NoMemberId, members |-> {}, assignment |-> {},
   skipAssignment |-> FALSE]

ErrorReply(id, error) == [NoReply EXCEPT !.given = TRUE, !.memberId = id, !.error = error]

NoReplies == [id \in Ids |-> NoReply]

\* The group's record in __consumer_offsets.
NoRecord ==
  [present |-> FALSE, generation |-> 0, protocol |-> NoProtocol, leader |-> NoMemberId,
   members |-> {}, staticMembers |-> NobodyStatic, supported |-> NoAssignments,
   assignment |-> NoAssignments]

\* joinReplies and syncReplies: answers to parked requests that a step gives.
EmptyGroup ==
  [state |-> "Empty", generation |-> 0, protocol |-> NoProtocol, leader |-> NoMemberId,
   members |-> {}, pendingMembers |-> {}, staticMembers |-> NobodyStatic,
   supported |-> NoAssignments, awaitingJoin |-> {}, awaitingSync |-> {},
   newMembers |-> {}, pendingSync |-> {}, assignment |-> NoAssignments,
   joinTimer |-> "None", initialDelays |-> 0, newMemberAdded |-> FALSE,
   record |-> NoRecord, joinReplies |-> NoReplies, syncReplies |-> NoReplies]

\* A group that is not there is described as Dead.
NoGroup == [EmptyGroup EXCEPT !.state = "Dead"]

(***************************************************************************)
(* Choices that the coordinator is free in: c.leader where any of several  *)
(* members may lead, c.protocol where several have as many votes (which    *)
(* member prefers which protocol is not modelled).                         *)
(***************************************************************************)
PickLeader(candidates, c) ==
  IF c.leader \in candidates
  THEN c.leader
  ELSE CHOOSE id \in candidates : \A other \in candidates : Rank[id] <= Rank[other]

CommonProtocols(g) == {n \in Protocols : \A id \in g.members : n \in g.supported[id]}

\* GroupMetadata.supportsProtocols
SupportsProtocols(g, names) ==
  IF g.state = "Empty" THEN names # {} ELSE names \intersect CommonProtocols(g) # {}

\* GroupMetadata.selectProtocol
SelectProtocol(g, c) ==
  IF c.protocol \in CommonProtocols(g) THEN c.protocol ELSE CHOOSE n \in CommonProtocols(g) : TRUE

(***************************************************************************)
(* Storing.                                                                *)
(***************************************************************************)
\* Of what a member supports the record has the selected protocol only
\* (GroupMetadataValue.MemberMetadata.subscription).
Store(g) ==
  [g EXCEPT !.record =
     [present |-> TRUE, generation |-> g.generation, protocol |-> g.protocol,
      leader |-> g.leader, members |-> g.members, staticMembers |-> g.staticMembers,
      supported |-> [id \in Ids |-> IF id \in g.members THEN {g.protocol} ELSE {}],
      assignment |-> g.assignment]]

\* Nobody waits for the record of a group that has become empty (GroupCoordinator.onCompleteJoin
\* logs a failure, no more): where a broker fails, it may be missing. Models of recordings say so.
StoreEmpty(g, c) == Store(g)

\* The record of an assignment that was refused is not in the log. Where a leader has appended it
\* and then gives up waiting for its followers, or leads no longer, it may be there all the same,
\* and is what the next coordinator loads. Models of recordings say so: c.taken.
RecordWhenRefused(g, assigned, c) == g.record

(***************************************************************************)
(* Members come and go.                                                    *)
(***************************************************************************)

\* GroupMetadata.remove. A parked request of a removed member is not answered here.
RemoveAll(g, gone, c) ==
  LET left == g.members \ gone
  IN  [g EXCEPT
        !.members = left,
        !.pendingMembers = g.pendingMembers \ gone,
        !.staticMembers = [i \in Instances |-> IF g.staticMembers[i] \in gone
                                               THEN NoMemberId ELSE g.staticMembers[i]],
        !.supported = [id \in Ids |-> IF id \in gone THEN {} ELSE g.supported[id]],
        !.assignment = [id \in Ids |-> IF id \in gone THEN {} ELSE g.assignment[id]],
        !.awaitingJoin = g.awaitingJoin \ gone,
        !.awaitingSync = g.awaitingSync \ gone,
        !.newMembers = g.newMembers \ gone,
        !.pendingSync = g.pendingSync \ gone,
        !.leader = IF g.leader \notin gone THEN g.leader
                   ELSE IF left = {} THEN NoMemberId ELSE PickLeader(left, c)]

Remove(g, id, c) == RemoveAll(g, {id}, c)

\* The member with its protocols, its JoinGroup parked.
Park(g, id, names) ==
  [g EXCEPT !.supported[id] = names, !.awaitingJoin = g.awaitingJoin \union {id}]

(***************************************************************************)
(* The join phase.                                                         *)
(***************************************************************************)
JoinReply(g, id, skip) ==
  [NoReply EXCEPT !.given = TRUE, !.memberId = id, !.generation = g.generation,
     !.protocol = g.protocol, !.leader = g.leader,
     !.members = IF g.leader = id THEN g.members ELSE {}, !.skipAssignment = skip]

\* DelayedSync waits for static members too that did not join (they are in the generation).
AwaitedSyncs(g) == g.members

\* GroupMetadata.initNextGeneration, and the answers.
NextGeneration(g, c) ==
  LET next == [g EXCEPT !.generation = g.generation + 1, !.joinTimer = "None",
                        !.initialDelays = 0]
      full == [next EXCEPT !.state = "CompletingRebalance", !.protocol = SelectProtocol(g, c),
                           !.awaitingJoin = {}, !.newMembers = {},
                           !.pendingSync = AwaitedSyncs(g)]
  IN  IF g.members = {}
      THEN StoreEmpty([next EXCEPT !.state = "Empty", !.protocol = NoProtocol], c)
      ELSE [full EXCEPT !.joinReplies =
              [id \in Ids |-> IF id \in g.awaitingJoin THEN JoinReply(full, id, FALSE)
                                                       ELSE g.joinReplies[id]]]

\* Dynamic members that have not joined in time are out; static ones stay (KIP-345).
StaysWithoutJoining(id) == InstanceOfId(id) # NoInstance

\* GroupCoordinator.onCompleteJoin. If only absent static members are left, the phase goes on.
CompleteJoinPhase(g, c) ==
  LET late    == {id \in g.members \ g.awaitingJoin : ~StaysWithoutJoining(id)}
      kept    == RemoveAll(g, late, c)
      elected == IF kept.leader \in g.awaitingJoin \/ g.awaitingJoin = {} THEN kept
                 ELSE [kept EXCEPT !.leader = PickLeader(g.awaitingJoin, c)]
  IN  IF g.awaitingJoin = {} /\ kept.members # {}
      THEN [kept EXCEPT !.joinTimer = "Rebalance", !.initialDelays = 0]
      ELSE NextGeneration(elected, c)

\* A member that was told its id is waited for, until its session expires.
PendingMembersHaveJoined(g) == g.pendingMembers = {}

\* GroupMetadata.hasAllMembersJoined
HasAllMembersJoined(g) == g.members = g.awaitingJoin /\ PendingMembersHaveJoined(g)

\* DelayedJoin.tryComplete; an InitialDelayedJoin never completes early.
TryCompleteJoin(g, c) ==
  IF g.state = "PreparingRebalance" /\ g.joinTimer = "Rebalance" /\ HasAllMembersJoined(g)
  THEN CompleteJoinPhase(g, c)
  ELSE g

\* GroupCoordinator.resetAndPropagateAssignmentError
FailSyncs(g, error) ==
  [g EXCEPT !.assignment = NoAssignments, !.awaitingSync = {},
            !.syncReplies = [id \in Ids |-> IF id \in g.awaitingSync THEN ErrorReply(id, error)
                                                                     ELSE g.syncReplies[id]]]

\* GroupCoordinator.prepareRebalance
PrepareRebalance(g, c) ==
  LET failed == IF g.state = "CompletingRebalance" THEN FailSyncs(g, "REBALANCE_IN_PROGRESS")
                                                   ELSE g
  IN  TryCompleteJoin(
        [failed EXCEPT !.state = "PreparingRebalance", !.pendingSync = {},
           !.joinTimer = IF g.state = "Empty" THEN "Initial" ELSE "Rebalance",
           !.initialDelays = IF g.state = "Empty" THEN InitialDelays ELSE 0],
        c)

MaybePrepareRebalance(g, c) ==
  IF g.state \in {"Empty", "CompletingRebalance", "Stable"} THEN PrepareRebalance(g, c) ELSE g

\* GroupCoordinator.removeMemberAndUpdateGroup, but for its end.
WithoutMember(g, id, c) ==
  LET answered == IF id \notin g.awaitingJoin THEN g
                  ELSE [g EXCEPT !.joinReplies[id] = ErrorReply(NoMemberId, "UNKNOWN_MEMBER_ID")]
  IN  MaybePrepareRebalance(Remove(answered, id, c), c)

\* GroupCoordinator.removeMemberAndUpdateGroup
RemoveMember(g, id, c) == TryCompleteJoin(WithoutMember(g, id, c), c)

\* A timer has removed who may have been the last one awaited (KAFKA-7909).
TryCompleteAfterExpiry(g, c) == TryCompleteJoin(g, c)

\* The same on a timer: GroupCoordinator.onExpireHeartbeat.
ExpireMember(g, id, c) == TryCompleteAfterExpiry(WithoutMember(g, id, c), c)

\* Whether who joins now may prolong the initial delay: once in a group's life, in its first
\* join phase.
ProlongsInitialDelay(g) == g.state = "PreparingRebalance" /\ g.generation = 0

\* GroupCoordinator.addMemberAndRebalance
AddMember(g, p, id, names, c) ==
  LET parked == Park(g, id, names)
  IN  MaybePrepareRebalance(
        [parked EXCEPT
           !.members = g.members \union {id},
           !.pendingMembers = g.pendingMembers \ {id},
           !.newMembers = g.newMembers \union {id},
           !.staticMembers = IF IsStatic(p) THEN [g.staticMembers EXCEPT ![InstanceOf[p]] = id]
                                            ELSE g.staticMembers,
           !.leader = IF g.leader = NoMemberId THEN id ELSE g.leader,
           !.newMemberAdded = g.newMemberAdded \/ ProlongsInitialDelay(g)],
        c)

(***************************************************************************)
(* Checks of a request.                                                    *)
(***************************************************************************)

\* An instance id belongs to the process that joined with it last (KAFKA-8225).
FencesInstance(mappedId, id) == mappedId # id

\* GroupCoordinator.validateCurrentMember
MemberError(g, p, id) ==
  LET mapped == g.staticMembers[InstanceOf[p]]
  IN  IF IsStatic(p) /\ mapped = NoMemberId THEN "UNKNOWN_MEMBER_ID"
      ELSE IF IsStatic(p) /\ FencesInstance(mapped, id) THEN "FENCED_INSTANCE_ID"
      ELSE IF id \notin g.members THEN "UNKNOWN_MEMBER_ID"
      ELSE "NONE"

SyncGenerationCheck(sent, current)      == sent = current
HeartbeatGenerationCheck(sent, current) == sent = current
CommitGenerationCheck(sent, current)    == sent = current

SyncError(g, p, m) ==
  LET error == MemberError(g, p, m.sentMemberId)
  IN  IF g.state = "Dead" THEN "UNKNOWN_MEMBER_ID"
      ELSE IF error # "NONE" THEN error
      ELSE IF ~SyncGenerationCheck(m.sentGeneration, g.generation) THEN "ILLEGAL_GENERATION"
      ELSE IF m.protocol # g.protocol THEN "INCONSISTENT_GROUP_PROTOCOL"
      ELSE IF g.state = "PreparingRebalance" THEN "REBALANCE_IN_PROGRESS"
      ELSE "NONE"

\* GroupCoordinator.handleHeartbeat
HeartbeatError(g, p, m) ==
  LET error == MemberError(g, p, m.memberId)
  IN  IF g.state = "Dead" THEN "UNKNOWN_MEMBER_ID"
      ELSE IF error # "NONE" THEN error
      ELSE IF ~HeartbeatGenerationCheck(m.generation, g.generation) THEN "ILLEGAL_GENERATION"
      ELSE IF g.state = "PreparingRebalance" THEN "REBALANCE_IN_PROGRESS"
      ELSE "NONE"

\* GroupCoordinator.validateOffsetCommit, of a member
CommitError(g, p, m) ==
  LET error == MemberError(g, p, m.memberId)
  IN  IF g.state = "Dead" THEN "ILLEGAL_GENERATION"
      ELSE IF error # "NONE" THEN error
      ELSE IF ~CommitGenerationCheck(m.generation, g.generation) THEN "ILLEGAL_GENERATION"
      ELSE IF g.state = "CompletingRebalance" THEN "REBALANCE_IN_PROGRESS"
      ELSE "NONE"

(***************************************************************************)
(* JoinGroup. What comes of it: the group; the answer, or not given: the   *)
(* request is parked under memberId; whether a new member id was created.  *)
(***************************************************************************)
Answered(g, reply)         == [group |-> g, reply |-> reply, memberId |-> NoMemberId,
                               created |-> FALSE]
Refused(g, id, error)      == Answered(g, ErrorReply(id, error))
Parked(g, id)              == [group |-> g, reply |-> NoReply, memberId |-> id, created |-> FALSE]
Created(result)            == [result EXCEPT !.created = TRUE]

\* GroupCoordinator.acceptJoiningMember (KAFKA-9885): those who join last must go.
HasRoomToJoin(g, id) == id \in g.awaitingJoin \/ Cardinality(g.awaitingJoin) < MaxSize

AcceptsJoiningMember(g, id) ==
  CASE g.state \in {"Empty", "Dead"} -> TRUE
    [] g.state = "PreparingRebalance" -> HasRoomToJoin(g, id)
    [] OTHER -> id \in g.members \/ Cardinality(g.members) < MaxSize

\* GroupMetadata.replaceStaticMember: who waits under the old id is told that it is fenced.
\* The new id takes its place, but not among those whose SyncGroup is awaited.
AnswerReplaced(g, old) ==
  [g EXCEPT
     !.joinReplies[old] = IF old \in g.awaitingJoin THEN ErrorReply(old, "FENCED_INSTANCE_ID")
                                                    ELSE g.joinReplies[old],
     !.syncReplies[old] = IF old \in g.awaitingSync THEN ErrorReply(old, "FENCED_INSTANCE_ID")
                                                    ELSE g.syncReplies[old]]

Renamed(ids, old, new) == IF old \in ids THEN (ids \ {old}) \union {new} ELSE ids

\* It is as new as the member whose place it takes: its first JoinGroup keeps its own limit.
NewAfterReplacing(g, old, new) == Renamed(g.newMembers, old, new)

ReplaceStaticMember(g, i, old, new) ==
  [AnswerReplaced(g, old) EXCEPT
     !.members = Renamed(g.members, old, new),
     !.newMembers = NewAfterReplacing(g, old, new),
     !.awaitingJoin = g.awaitingJoin \ {old},
     !.awaitingSync = g.awaitingSync \ {old},
     !.staticMembers[i] = new,
     !.leader = IF g.leader = old THEN new ELSE g.leader,
     !.supported = [g.supported EXCEPT ![old] = {}, ![new] = g.supported[old]],
     !.assignment = [g.assignment EXCEPT ![old] = {}, ![new] = g.assignment[old]]]

\* A static member that joins while the assignment is under way has the group rebalance:
\* the assignment may name its old id (KAFKA-9801).
RebalancesOnStaticRejoin(g) == g.state = "CompletingRebalance"

\* GroupCoordinator.updateStaticMemberAndRebalance
RejoinStaticMember(g, p, names, new, c) ==
  LET old      == g.staticMembers[InstanceOf[p]]
      replaced == [ReplaceStaticMember(g, InstanceOf[p], old, new) EXCEPT !.supported[new] = names]
      parked   == Park(replaced, new, names)
      quiet    == Answered(Store(replaced), JoinReply(replaced, new, g.leader = old))
  IN  CASE g.state = "Stable" ->
             IF SelectProtocol(replaced, c) = g.protocol
             THEN quiet ELSE Parked(PrepareRebalance(parked, c), new)
        [] g.state = "CompletingRebalance" ->
             IF RebalancesOnStaticRejoin(g)
             THEN Parked(PrepareRebalance(parked, c), new)
             ELSE Answered(replaced, JoinReply(replaced, new, FALSE))
        [] OTHER -> Parked(parked, new)

\* Whoever has the instance id is replaced, in whatever state the group is (KAFKA-8500).
ReplacesStaticMember(g) == TRUE

\* GroupCoordinator.doNewMemberJoinGroup
JoinAsNewMember(g, p, names, new, c) ==
  IF ~SupportsProtocols(g, names) THEN Refused(g, NoMemberId, "INCONSISTENT_GROUP_PROTOCOL")
  ELSE IF IsStatic(p) /\ g.staticMembers[InstanceOf[p]] # NoMemberId /\ ReplacesStaticMember(g)
  THEN Created(RejoinStaticMember(g, p, names, new, c))
  ELSE IF RequireKnownMemberId /\ ~IsStatic(p)
  THEN Created(Refused([g EXCEPT !.pendingMembers = g.pendingMembers \union {new}],
                       new, "MEMBER_ID_REQUIRED"))
  ELSE Created(Parked(AddMember(g, p, new, names, c), new))

\* GroupCoordinator.doCurrentMemberJoinGroup: a follower that joins again with nothing new
\* only wants to know what it missed; the leader may know of new partitions.
NeedsRebalance(g, id, names) ==
  \/ names # g.supported[id]
  \/ g.state = "Stable" /\ g.leader = id

\* The coordinator compares subscriptions byte by byte (MemberMetadata.matches), and since KIP-792
\* the Java consumer's names the generation in which it was made: it differs from the last one
\* though its protocols are the same. Here a subscription is the protocols' names, unless a model
\* says otherwise.
SubscriptionIsRenewed(c) == FALSE

JoinAsCurrentMember(g, p, id, names, c) ==
  LET error == MemberError(g, p, id)
  IN  IF ~SupportsProtocols(g, names) THEN Refused(g, id, "INCONSISTENT_GROUP_PROTOCOL")
      ELSE IF id \in g.pendingMembers THEN Parked(AddMember(g, p, id, names, c), id)
      ELSE IF error # "NONE" THEN Refused(g, id, error)
      ELSE IF g.state = "PreparingRebalance" THEN Parked(Park(g, id, names), id)
      ELSE IF NeedsRebalance(g, id, names) \/ SubscriptionIsRenewed(c)
      THEN Parked(PrepareRebalance(Park(g, id, names), c), id)
      ELSE Answered(g, JoinReply(g, id, FALSE))

\* The group that the first JoinGroup makes: nothing of it is stored yet.
CreatedGroup(g) == [EmptyGroup EXCEPT !.record = g.record]

\* GroupCoordinator.handleJoinGroup. new: the id that p gets if it needs one.
Join(g, p, id, names, new, c) ==
  LET there  == IF g.state = "Dead" THEN CreatedGroup(g) ELSE g
      result == IF g.state = "Dead" /\ id # NoMemberId THEN Refused(g, id, "UNKNOWN_MEMBER_ID")
                ELSE IF ~AcceptsJoiningMember(there, id)
                THEN Refused(IF id \in Ids THEN Remove(there, id, c) ELSE there,
                             NoMemberId, "GROUP_MAX_SIZE_REACHED")
                ELSE IF id = NoMemberId THEN JoinAsNewMember(there, p, names, new, c)
                ELSE JoinAsCurrentMember(there, p, id, names, c)
  IN  [result EXCEPT !.group = TryCompleteJoin(result.group, c)]

(***************************************************************************)
(* SyncGroup. It is parked, or answered, or, the leader's, answers all.    *)
(***************************************************************************)
SyncReply(g, id, assignment) ==
  [NoReply EXCEPT !.given = TRUE, !.memberId = id, !.generation = g.generation,
     !.protocol = g.protocol, !.assignment = assignment]

\* An assignment is stored before anybody is told.
StoreAssignment(g) == Store(g)

\* GroupCoordinator.setAndPropagateAssignment. Who is not assigned anything gets nothing.
PropagateAssignment(g, assignments) ==
  StoreAssignment([g EXCEPT
    !.state = "Stable",
    !.assignment = [id \in Ids |-> IF id \in g.members THEN assignments[id] ELSE {}],
    !.awaitingSync = {},
    !.syncReplies = [id \in Ids |-> IF id \in g.awaitingSync
                                    THEN SyncReply(g, id, assignments[id])
                                    ELSE g.syncReplies[id]]])

\* Only the leader's assignment counts.
IsFromLeader(g, id) == g.leader = id

\* GroupCoordinator.doSyncGroup; stored: whether the log took the assignment.
Sync(g, p, m, stored, c) ==
  LET id     == m.sentMemberId
      error  == SyncError(g, p, m)
      waits  == [g EXCEPT !.awaitingSync = g.awaitingSync \union {id},
                          !.pendingSync = g.pendingSync \ {id}]
      synced == [g EXCEPT !.pendingSync = g.pendingSync \ {id}]
      assigned == PropagateAssignment(waits, m.assignments)
  IN  IF error # "NONE" THEN Refused(g, id, error)
      ELSE IF g.state = "Stable" THEN Answered(synced, SyncReply(g, id, g.assignment[id]))
      ELSE IF ~IsFromLeader(g, id) THEN Parked(waits, id)
      ELSE IF stored THEN Parked(assigned, id)
      ELSE Parked(MaybePrepareRebalance(
                    FailSyncs([waits EXCEPT !.record = RecordWhenRefused(g, assigned, c)],
                              "COORDINATOR_NOT_AVAILABLE"), c), id)

(***************************************************************************)
(* LeaveGroup, timers, deletion, fail-over.                                *)
(***************************************************************************)

\* GroupCoordinator.handleLeaveGroup
Leave(g, p, id, c) ==
  IF id \in g.pendingMembers THEN TryCompleteJoin(Remove(g, id, c), c)
  ELSE IF g.state # "Dead" /\ MemberError(g, p, id) = "NONE" THEN RemoveMember(g, id, c)
  ELSE g

\* MemberMetadata.hasSatisfiedHeartbeat: whose JoinGroup or SyncGroup is parked is alive.
IsParked(g, id) == id \in g.awaitingJoin \union g.awaitingSync

\* GroupCoordinator.onExpireHeartbeat: who may be taken for dead.
SessionMayExpire(g, id) == id \in g.members /\ ~IsParked(g, id)

\* A JoinGroup of a new member is parked for five minutes at most, whatever the rebalance does.
NewMemberMayExpire(g, id) == id \in g.newMembers

ExpirePending(g, id, c) == TryCompleteAfterExpiry(Remove(g, id, c), c)

\* InitialDelayedJoin.onComplete
InitialDelayOver(g, c) ==
  IF g.newMemberAdded /\ g.initialDelays > 0
  THEN [g EXCEPT !.newMemberAdded = FALSE, !.initialDelays = g.initialDelays - 1]
  ELSE CompleteJoinPhase(g, c)

\* GroupCoordinator.onExpirePendingSync (KAFKA-12890)
SyncMayExpire(g) ==
  g.state \in {"CompletingRebalance", "Stable"} /\ g.pendingSync # {}

SyncExpired(g, c) == PrepareRebalance(RemoveAll(g, g.pendingSync, c), c)

\* GroupMetadataManager.doLoadGroupsAndOffsets; onGroupLoaded: too many members rebalance.
Loaded(record, c) ==
  LET g == [EmptyGroup EXCEPT
              !.state = IF record.members = {} THEN "Empty" ELSE "Stable",
              !.generation = record.generation, !.protocol = record.protocol,
              !.leader = record.leader, !.members = record.members,
              !.staticMembers = record.staticMembers, !.supported = record.supported,
              !.assignment = record.assignment, !.record = record]
  IN  IF ~record.present THEN NoGroup
      ELSE IF Cardinality(record.members) > MaxSize THEN PrepareRebalance(g, c)
      ELSE g

\* GroupCoordinator.onGroupUnloaded on the old coordinator, onGroupLoaded on the new one.
FailedOver(g, c) ==
  LET replies(ids) == [id \in Ids |-> IF id \in ids THEN ErrorReply(id, "NOT_COORDINATOR")
                                                    ELSE NoReply]
  IN  [Loaded(g.record, c) EXCEPT !.joinReplies = replies(g.awaitingJoin),
                                  !.syncReplies = replies(g.awaitingSync)]
=============================================================================
