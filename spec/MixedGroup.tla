------------------------------ MODULE MixedGroup ------------------------------
(***************************************************************************)
(* A group that moves between the classic protocol and KIP-848's: upgrade, *)
(* the mixed group, downgrade.                                             *)
(*                                                                         *)
(* Source: org.apache.kafka.coordinator.group, as on branch 4.4 in August  *)
(* 2026: GroupMetadataManager.convertToConsumerGroup, convertToClassicGroup, *)
(* classicGroup...ToConsumerGroup, ConsumerGroup.fromClassicGroup,         *)
(* ClassicGroup.fromConsumerGroup, CurrentAssignmentBuilder.               *)
(*                                                                         *)
(* variable       | field                                                  *)
(* ---------------+------------------------------------------------------- *)
(* type           | Group.type: "classic" or "consumer"                    *)
(* phase          | ClassicGroup.state; "none" of a consumer group         *)
(* epoch          | ClassicGroup.generationId, ModernGroup.groupEpoch      *)
(* assignmentEpoch, | ModernGroup.targetAssignmentEpoch, targetAssignment; *)
(* target[m]      | 0 and nothing of a classic group                       *)
(* member[m]      | ConsumerGroupMember: state, memberEpoch,               *)
(*                | assignedPartitions, partitionsPendingRevocation;       *)
(*                | of a classic group ClassicGroupMember.assignment       *)
(* listed, described[m] | what ConsumerGroupDescribe shows of a consumer   *)
(*                | group, DescribeGroups of a classic one: who is in it,  *)
(*                | epochs (0 in a classic group), assignments; nothing    *)
(*                | depends on them                                        *)
(* parked         | members whose JoinGroup is not answered                *)
(* client[m]      | the consumer: what it does next, the epoch or          *)
(*                | generation that it knows, what it owns                 *)
(*                                                                         *)
(* A request and its answer are one step, but for a JoinGroup that waits   *)
(* for other members. ConsumerGroup has what else happens to heartbeats,   *)
(* GroupMembership how a classic group goes on: a member joins a classic   *)
(* group here only while it rebalances, and nobody assigns in it.          *)
(* Not here: members that leave for a while, eager members with a user's   *)
(* own assignor, the assignment interval, fail-over of the coordinator.    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Members,     \* processes; a process of another protocol under the same instance id is another one
  Protocol,    \* of each: "classic" or "consumer"
  InstanceOf,  \* of each: group.instance.id, or "none"
  Malformed,   \* members whose JoinGroup has a subscription that cannot be read
  TopicOf,     \* of each partition
  Reads,       \* of each member: its topics
  First,       \* the members at first, of one protocol, and what each is assigned
  Policy,      \* group.consumer.migration.policy
  Cooperative, \* classic members keep what they own while they join (KIP-429)
  Leaves,      \* members close
  Crashes,     \* members of KIP-848 and static ones end without a word, and their sessions run out
  MaxEpoch

VARIABLES type, phase, epoch, assignmentEpoch, target, member, listed, described, parked, client

shownVars == <<listed, described>>
groupVars == <<type, phase, epoch, assignmentEpoch, target, member, shownVars, parked>>
vars      == <<groupVars, client>>

Partitions == DOMAIN TopicOf
Topics     == {TopicOf[p] : p \in Partitions}
\* JoinGroup, Heartbeat and LeaveGroup are theirs.
Classic    == {m \in Members : Protocol[m] = "classic"}

NoMember  == [state |-> "None", epoch |-> 0, assigned |-> {}, revoking |-> {}]
NewMember == [NoMember EXCEPT !.state = "Stable"]
InClassicGroup(assigned) == [NoMember EXCEPT !.state = "Classic", !.assigned = assigned]

\* does: "out"; "rejoin"; "wait" for the answer to JoinGroup; "sync"; "on"; or it has "failed".
NoClient == [does |-> "out", epoch |-> 0, owned |-> {}, error |-> "NONE"]
Goes     == {"out", "rejoin", "wait", "sync", "on", "failed"}

IsRegistered(m) == member[m].state # "None"
Registered      == {m \in Members : IsRegistered(m)}
IsStatic(m)     == InstanceOf[m] # "none"
Others(m)       == {o \in Members \ {m} : IsStatic(m) /\ InstanceOf[o] = InstanceOf[m]}
Holds(k)        == k.assigned \union k.revoking
ReadBy(m)       == {p \in Partitions : TopicOf[p] \in Reads[m]}

\* ConsumerGroupMember.asConsumerGroupDescribeMember: a member has what it is to revoke until it has
\* done so (KAFKA-20431). ClassicGroupMember.describe.
Described(k) == Holds(k)
Shown(k)     == [epoch |-> k.epoch, assignment |-> Described(k)]

\* Epochs are counted from that of the first members: 1 or 2, by release (ConsumerGroup's FirstEpoch).
Init ==
  LET isClassic == DOMAIN First \subseteq Classic
      at        == 1
      has(m)    == IF m \in DOMAIN First THEN First[m] ELSE {}
  IN  /\ type = IF isClassic THEN "classic" ELSE "consumer"
      /\ phase = IF isClassic THEN "Stable" ELSE "none"
      /\ epoch = at /\ assignmentEpoch = IF isClassic THEN 0 ELSE at
      /\ target = [m \in Members |-> IF isClassic THEN {} ELSE has(m)]
      /\ member = [m \in Members |->
                     IF m \notin DOMAIN First THEN NoMember
                     ELSE IF isClassic THEN InClassicGroup(has(m))
                     ELSE [NewMember EXCEPT !.epoch = at, !.assigned = has(m)]]
      /\ listed = DOMAIN First
      /\ described = [m \in Members |-> Shown(member[m])]
      /\ parked = {}
      /\ client = [m \in Members |->
                     IF m \in DOMAIN First
                     THEN [NoClient EXCEPT !.does = "on", !.epoch = at, !.owned = has(m)]
                     ELSE NoClient]

(***************************************************************************)
(* A consumer group as a value, and what a request makes of it.            *)
(***************************************************************************)
Group ==
  [epoch |-> epoch, assignmentEpoch |-> assignmentEpoch, target |-> target, member |-> member]

\* ConsumerGroup.fromClassicGroup: all are stable in the generation, with what they were assigned.
Upgraded ==
  [epoch |-> epoch, assignmentEpoch |-> epoch,
   target |-> [m \in Members |-> member[m].assigned],
   member |-> [m \in Members |->
                 IF IsRegistered(m) THEN [member[m] EXCEPT !.state = "Stable", !.epoch = epoch]
                 ELSE NoMember]]

Present(g) == {m \in Members : g.member[m].state # "None"}

\* The member whose instance id a joining one has: replaceMember gives it all that one has.
ReplacedIn(g, m) == Others(m) \intersect Present(g)
WithMember(g, m) ==
  IF ReplacedIn(g, m) # {}
  THEN LET old == CHOOSE o \in ReplacedIn(g, m) : TRUE
           in(of, what, nothing) ==
             [o \in Members |-> IF o = m THEN what ELSE IF o = old THEN nothing ELSE of[o]]
       IN  [g EXCEPT !.member = in(g.member, [g.member[old] EXCEPT !.epoch = 0], NoMember),
                     !.target = in(g.target, g.target[old], {})]
  ELSE IF m \in Present(g) THEN g
  ELSE [g EXCEPT !.member[m] = NewMember]

\* hasMemberSubscriptionChanged.
IsNews(g, m) ==
  IF ReplacedIn(g, m) # {} THEN \E o \in ReplacedIn(g, m) : Reads[o] # Reads[m]
  ELSE m \notin Present(g)

\* A group that was upgraded knows its topics (KAFKA-18687): only who reads what makes it another.
EpochAfterJoin(g, m, isUpgrade) == IF IsNews(g, m) THEN g.epoch + 1 ELSE g.epoch

IsEven(shares) == \A a, b \in DOMAIN shares : Cardinality(shares[a]) <= Cardinality(shares[b]) + 1
IsFair(members, owner) ==
  \A t \in Topics :
    IsEven([m \in {r \in members : t \in Reads[r]} |->
              {p \in DOMAIN owner : TopicOf[p] = t /\ owner[p] = m}])

\* Any even target, topic by topic: which one it is, is the assignor's choice.
TargetAssignments(members) ==
  {[m \in Members |-> {p \in DOMAIN owner : owner[p] = m}] :
     owner \in {o \in [UNION {ReadBy(m) : m \in members} -> members] :
                  /\ \A p \in DOMAIN o : TopicOf[p] \in Reads[o[p]]
                  /\ IsFair(members, o)}}

\* What a member gives back with this request is its own to take (KAFKA-19449).
HeldFor(k, held) == held \ k.revoking

\* CurrentAssignmentBuilder; held: what members hold by now.
MoveOn(m, k, to, given, owned, held) ==
  LET wanted  == given \intersect ReadBy(m)
      kept    == k.assigned \intersect wanted
      revoked == k.assigned \ wanted
      free    == (wanted \ kept) \ HeldFor(k, held)
  IN  IF revoked \intersect owned # {}
      THEN [k EXCEPT !.state = "UnrevokedPartitions", !.assigned = kept, !.revoking = revoked]
      ELSE [state |-> IF free = wanted \ kept THEN "Stable" ELSE "UnreleasedPartitions",
            epoch |-> to, assigned |-> kept \union free, revoking |-> {}]

Reconciled(m, k, to, given, owned, held) ==
  IF \/ k.state = "Stable" /\ k.epoch = to
     \/ k.state = "UnrevokedPartitions" /\ k.revoking \intersect owned # {}
  THEN k
  ELSE MoveOn(m, k, to, given, owned, held)

\* maybeUpdateTargetAssignment and maybeReconcile: the groups that a request of m may lead to.
Served(g, m, to, owned) ==
  LET held == UNION {Holds(g.member[o]) : o \in Members}
      with(given, at) ==
        [epoch |-> to, assignmentEpoch |-> at, target |-> given,
         member |-> [o \in Members |->
                       IF o = m THEN Reconciled(m, g.member[m], at, given[m], owned, held)
                       ELSE g.member[o]]]
  IN  IF to > g.assignmentEpoch THEN {with(t, to) : t \in TargetAssignments(Present(g))}
      ELSE {with(g.target, g.assignmentEpoch)}

MembersBecome(members) ==
  /\ member' = members
  /\ listed' = {m \in Members : members[m].state # "None"}
  /\ described' = [m \in Members |-> Shown(members[m])]

BecomesConsumerGroup(g) ==
  /\ type' = "consumer" /\ phase' = "none" /\ parked' = {}
  /\ epoch' = g.epoch /\ assignmentEpoch' = g.assignmentEpoch
  /\ target' = g.target /\ MembersBecome(g.member)

\* ClassicGroup.fromConsumerGroup: everybody keeps what it holds, until the group has rebalanced.
AssignedAtDowngrade(g, m) == Holds(g.member[m])
IsUnsettled(g) == \E m \in Present(g) : AssignedAtDowngrade(g, m) # g.target[m]

BecomesClassicGroup(g, rebalances) ==
  /\ type' = "classic" /\ parked' = {}
  /\ phase' = IF rebalances THEN "PreparingRebalance" ELSE "Stable"
  /\ epoch' = epoch /\ assignmentEpoch' = 0
  /\ target' = [m \in Members |-> {}]
  /\ MembersBecome([m \in Members |->
       IF m \in Present(g) THEN InClassicGroup(AssignedAtDowngrade(g, m)) ELSE NoMember])

MayUpgrade   == Policy \in {"bidirectional", "upgrade"}
MayDowngrade == Policy \in {"bidirectional", "downgrade"}

\* validateOnlineDowngradeWithFencedMembers
IsDowngrade(rest) == MayDowngrade /\ rest # {} /\ rest \subseteq Classic

\* validateOnlineDowngradeWithReplacedMember
IsDowngradedBy(m) ==
  LET old == ReplacedIn(Group, m)
  IN  MayDowngrade /\ old # {} /\ Registered \ old \subseteq Classic

(***************************************************************************)
(* What consumers make of answers.                                         *)
(***************************************************************************)
Failed(error) == [NoClient EXCEPT !.does = "failed", !.error = error]

\* onPartitionsLost: what it knew of its membership is void.
LosesAll == [NoClient EXCEPT !.does = "rejoin"]

\* Who hears of the next rebalance before it has synchronized commits nothing in between.
AfterRefusal(c, error) ==
  IF error = "REBALANCE_IN_PROGRESS"
  THEN [c EXCEPT !.does = "rejoin", !.epoch = IF c.does = "sync" THEN 0 ELSE @]
  ELSE IF error = "ILLEGAL_GENERATION" THEN LosesAll
  ELSE IF error = "UNKNOWN_MEMBER_ID" THEN NoClient
  ELSE Failed(error)

\* A consumer of KIP-848 gives up and takes over what an answer says; its next heartbeat tells.
AfterHeartbeat(k) == [NoClient EXCEPT !.does = "on", !.epoch = k.epoch, !.owned = k.assigned]

AfterJoin(c, generation) == [c EXCEPT !.does = "sync", !.epoch = generation]

\* Who had to give something up joins once more, so that others get it (KIP-429).
AfterSync(c, given) ==
  [c EXCEPT !.does = IF c.owned \subseteq given THEN "on" ELSE "rejoin", !.owned = given]

Told(m, error) ==
  /\ client' = [client EXCEPT ![m] = AfterRefusal(@, error)]
  /\ UNCHANGED groupVars

\* A classic group that is upgraded tells those who wait that they have to join again.
Woken == [m \in Members |-> IF m \in parked THEN [client[m] EXCEPT !.does = "rejoin"] ELSE client[m]]

(***************************************************************************)
(* Members of KIP-848's protocol (ConsumerGroupHeartbeat).                 *)
(***************************************************************************)
Fits(g) == g.epoch <= MaxEpoch

\* The process whose place it takes has ended.
IsAlone(m) == \A o \in Others(m) : client[o].does \in {"out", "failed"}

\* consumerGroupHeartbeat with epoch 0.
ConsumerJoin(m) ==
  /\ m \notin Classic /\ client[m].does = "out" /\ IsAlone(m) /\ ~IsRegistered(m)
  /\ IF type = "classic" /\ ~MayUpgrade
     THEN Told(m, "GROUP_ID_NOT_FOUND")
     ELSE LET isUpgrade == type = "classic"
              g  == IF isUpgrade THEN Upgraded ELSE Group
              to == EpochAfterJoin(g, m, isUpgrade)
          IN  \E next \in Served(WithMember(g, m), m, to, {}) :
                /\ Fits(next) /\ BecomesConsumerGroup(next)
                /\ client' = [Woken EXCEPT ![m] = AfterHeartbeat(next.member[m])]

IdentityError(m) ==
  IF IsRegistered(m) THEN "NONE"
  ELSE IF Others(m) \intersect Registered # {} THEN "FENCED_INSTANCE_ID"
  ELSE "UNKNOWN_MEMBER_ID"

\* consumerGroupHeartbeat: it says what it owns.
ConsumerHeartbeat(m) ==
  /\ m \notin Classic /\ client[m].does = "on" /\ type = "consumer" /\ IdentityError(m) = "NONE"
  /\ \E next \in Served(Group, m, epoch, client[m].owned) :
       /\ BecomesConsumerGroup(next)
       /\ client' = [client EXCEPT ![m] = AfterHeartbeat(next.member[m])]

\* consumerGroupFenceMembers: the last one of its protocol that goes takes the protocol along.
Fence(m) ==
  LET rest == Registered \ {m}
      left == [Group EXCEPT !.member[m] = NoMember, !.target[m] = {}]
  IN  /\ rest # {}
      /\ IF IsDowngrade(rest) THEN BecomesClassicGroup(left, TRUE)
         ELSE /\ epoch < MaxEpoch
              /\ BecomesConsumerGroup([left EXCEPT !.epoch = @ + 1])

\* close(): what it owns is revoked before.
ConsumerLeave(m) ==
  /\ Leaves /\ m \notin Classic /\ client[m].does = "on" /\ type = "consumer" /\ IsRegistered(m)
  /\ Fence(m)
  /\ client' = [client EXCEPT ![m] = NoClient]

\* The process ends, and says nothing.
Crash(m) ==
  /\ Crashes /\ (m \notin Classic \/ IsStatic(m)) /\ client[m].does = "on"
  /\ client' = [client EXCEPT ![m] = NoClient]
  /\ UNCHANGED groupVars

\* scheduleConsumerGroupSessionTimeout's timer, of who has crashed.
ExpireSession(m) ==
  /\ Crashes /\ client[m].does = "out" /\ type = "consumer" /\ IsRegistered(m)
  /\ Fence(m)
  /\ UNCHANGED client

(***************************************************************************)
(* Members of the classic protocol.                                        *)
(***************************************************************************)

\* throwIfClassicMemberCannotJoinConsumerGroup (KAFKA-20640).
MayJoinConsumerGroup == Policy # "disabled"

\* deserializeSubscription (KAFKA-20662).
MalformedError == "INCONSISTENT_GROUP_PROTOCOL"

JoinError(m) ==
  IF ~MayJoinConsumerGroup THEN "INCONSISTENT_GROUP_PROTOCOL"
  ELSE IF m \in Malformed THEN MalformedError
  ELSE "NONE"

\* What a member still owns as it joins, and what its JoinGroup says of that.
OwnedInJoin(m)   == IF Cooperative THEN client[m].owned ELSE {}
ClaimedInJoin(m) == OwnedInJoin(m)

\* A downgrade by replacement: the classic group rebalances if its assignment is not the newest
\* (KAFKA-20273), if the new member reads something else (KAFKA-19546), or somebody is on its way.
IsTargetStale               == assignmentEpoch < epoch
SubscriptionRebalances(new) == new
\* The generation that the new member is told: that of the target, unless it has to join again.
ToldAtDowngrade(rebalances, to) == IF rebalances THEN 0 ELSE assignmentEpoch

DowngradeByReplacement(m) ==
  LET isNews     == IsNews(Group, m)
      with       == WithMember(Group, m)
      rebalances == IsTargetStale \/ SubscriptionRebalances(isNews) \/ IsUnsettled(with)
      to         == EpochAfterJoin(Group, m, FALSE)
  IN  /\ to <= MaxEpoch
      /\ BecomesClassicGroup(with, rebalances)
      /\ client' = [client EXCEPT ![m] = AfterJoin(NoClient, ToldAtDowngrade(rebalances, to))]

\* classicGroupJoinToConsumerGroup: like a heartbeat that says what its sender owns.
JoinMixed(m) ==
  LET to == EpochAfterJoin(Group, m, FALSE)
  IN  \E next \in Served(WithMember(Group, m), m, to, ClaimedInJoin(m)) :
        /\ Fits(next) /\ BecomesConsumerGroup(next)
        /\ client' = [client EXCEPT ![m] =
                        AfterJoin([@ EXCEPT !.owned = OwnedInJoin(m)], next.member[m].epoch)]

ClassicJoin(m) ==
  /\ m \in Classic /\ client[m].does \in {"out", "rejoin"} /\ IsAlone(m) /\ type = "consumer"
  /\ client[m].does = "rejoin" => IdentityError(m) = "NONE"
  /\ IF JoinError(m) # "NONE" THEN Told(m, JoinError(m))
     ELSE IF IsDowngradedBy(m) THEN DowngradeByReplacement(m)
     ELSE JoinMixed(m)

\* classicGroupJoinToClassicGroup: it waits until all have joined (completeClassicGroupJoin).
ClassicRejoin(m) ==
  /\ m \in Classic /\ client[m].does = "rejoin" /\ type = "classic" /\ IsRegistered(m)
  /\ phase = "PreparingRebalance"
  /\ LET waiting == parked \union {m}
         waits(c) == [c EXCEPT !.does = "wait", !.epoch = 0, !.owned = IF Cooperative THEN @ ELSE {}]
         joined  == [client EXCEPT ![m] = waits(@)]
     IN  IF waiting # Registered
         THEN /\ parked' = waiting /\ client' = joined
              /\ UNCHANGED <<type, phase, epoch, assignmentEpoch, target, member, shownVars>>
         ELSE /\ epoch < MaxEpoch /\ epoch' = epoch + 1
              /\ parked' = {} /\ phase' = "CompletingRebalance"
              /\ client' = [o \in Members |->
                              IF o \in waiting THEN AfterJoin(joined[o], epoch + 1) ELSE client[o]]
              /\ UNCHANGED <<type, assignmentEpoch, target, member, shownVars>>

\* There is a new target for it (KAFKA-20272).
HasNewTarget(k) == k.epoch < assignmentEpoch

\* classicGroupSyncToConsumerGroup, or to a classic group.
SyncError(m) ==
  IF IdentityError(m) # "NONE" THEN IdentityError(m)
  ELSE IF type = "consumer"
  THEN IF client[m].epoch # member[m].epoch THEN "ILLEGAL_GENERATION"
       ELSE IF HasNewTarget(member[m]) /\ member[m].state # "UnrevokedPartitions"
       THEN "REBALANCE_IN_PROGRESS"
       ELSE "NONE"
  ELSE IF client[m].epoch # epoch THEN "ILLEGAL_GENERATION"
  ELSE IF phase = "PreparingRebalance" THEN "REBALANCE_IN_PROGRESS"
  ELSE "NONE"

ClassicSync(m) ==
  /\ m \in Classic /\ client[m].does = "sync" /\ phase # "CompletingRebalance"
  /\ IF SyncError(m) # "NONE" THEN Told(m, SyncError(m))
     ELSE /\ client' = [client EXCEPT ![m] = AfterSync(@, member[m].assigned)]
          /\ UNCHANGED groupVars

\* waitingOnUnreleasedPartition: somebody still has what it is to get.
WaitsForOthers(m) ==
  \E p \in target[m] \ member[m].assigned :
    \E o \in Members \ {m} : p \in Holds(member[o])

\* classicGroupHeartbeatToConsumerGroup, or to a classic group.
HeartbeatError(m) ==
  IF IdentityError(m) # "NONE" THEN IdentityError(m)
  ELSE IF type = "consumer"
  THEN LET k == member[m]
       IN  IF client[m].epoch # k.epoch THEN "ILLEGAL_GENERATION"
           ELSE IF \/ HasNewTarget(k) \/ k.state = "UnrevokedPartitions"
                   \/ k.state = "UnreleasedPartitions" /\ ~WaitsForOthers(m)
           THEN "REBALANCE_IN_PROGRESS"
           ELSE "NONE"
  ELSE IF client[m].epoch # epoch THEN "ILLEGAL_GENERATION"
  ELSE IF phase = "PreparingRebalance" THEN "REBALANCE_IN_PROGRESS"
  ELSE "NONE"

ClassicHeartbeat(m) ==
  /\ m \in Classic /\ client[m].does = "on"
  /\ IF HeartbeatError(m) # "NONE" THEN Told(m, HeartbeatError(m)) ELSE UNCHANGED vars

\* classicGroupLeaveToConsumerGroup.
ClassicLeave(m) ==
  /\ Leaves /\ m \in Classic /\ client[m].does = "on" /\ type = "consumer" /\ IsRegistered(m)
  /\ Fence(m)
  /\ client' = [client EXCEPT ![m] = NoClient]

Next ==
  \/ \E m \in Members : ConsumerJoin(m)
  \/ \E m \in Members : ConsumerHeartbeat(m)
  \/ \E m \in Members : ConsumerLeave(m)
  \/ \E m \in Members : Crash(m)
  \/ \E m \in Members : ExpireSession(m)
  \/ \E m \in Members : ClassicJoin(m)
  \/ \E m \in Members : ClassicRejoin(m)
  \/ \E m \in Members : ClassicSync(m)
  \/ \E m \in Members : ClassicHeartbeat(m)
  \/ \E m \in Members : ClassicLeave(m)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Errors == {"NONE", "GROUP_ID_NOT_FOUND", "INCONSISTENT_GROUP_PROTOCOL", "UNKNOWN_SERVER_ERROR",
           "FENCED_INSTANCE_ID"}

TypeOK ==
  /\ type \in {"classic", "consumer"}
  /\ phase \in {"none", "Stable", "PreparingRebalance", "CompletingRebalance"}
  /\ (type = "consumer") = (phase = "none")
  /\ epoch \in 1..MaxEpoch /\ assignmentEpoch \in 0..MaxEpoch
  /\ target \in [Members -> SUBSET Partitions]
  /\ member \in [Members ->
       [state : {"None", "Classic", "Stable", "UnrevokedPartitions", "UnreleasedPartitions"},
        epoch : 0..MaxEpoch, assigned : SUBSET Partitions, revoking : SUBSET Partitions]]
  /\ listed = Registered
  /\ described \in [Members -> [epoch : 0..MaxEpoch, assignment : SUBSET Partitions]]
  /\ parked \subseteq Registered
  /\ client \in [Members ->
       [does : Goes, epoch : 0..MaxEpoch, owned : SUBSET Partitions, error : Errors]]

\* A partition is given to nobody while another member of the consumer group holds it.
HeldByOneMember ==
  \A a, b \in Registered : a # b => Holds(member[a]) \intersect Holds(member[b]) = {}

\* Whoever is in the group and in its member's epoch: commits of others are refused. A consumer of the
\* classic protocol commits nothing before its SyncGroup is answered (generationIfStable).
IsCurrent(m) ==
  /\ IsRegistered(m) /\ client[m].does \in {"on", "rejoin"}
  /\ client[m].epoch = IF type = "classic" THEN epoch ELSE member[m].epoch

\* No two consumers in good standing own the same partition, whatever protocols they speak.
OwnersAreExclusive ==
  \A a, b \in Members :
    a # b /\ IsCurrent(a) /\ IsCurrent(b) => client[a].owned \intersect client[b].owned = {}

\* One owner at a time, whether its commits would be refused or not: what it reads, it has processed.
NobodyOwnsTwice ==
  \A a, b \in Members : a # b => client[a].owned \intersect client[b].owned = {}

\* A classic group that is at rest gives out what is read, to who reads it.
StableIsComplete ==
  type = "classic" /\ phase = "Stable" =>
    /\ UNION {member[m].assigned : m \in Registered} = UNION {ReadBy(m) : m \in Registered}
    /\ \A m \in Registered : member[m].assigned \subseteq ReadBy(m)

IsMixed == type = "consumer" /\ ~(Registered \subseteq Classic) /\ ~(Registered \intersect Classic = {})

\* Where no group may change its protocol, none is mixed.
NeverMixedIfDisabled == Policy = "disabled" => ~IsMixed

\* A group of classic members only is a classic group, where it may become one.
ClassicAlone == MayDowngrade /\ Registered \subseteq Classic => type = "classic"

\* A consumer whose request is wrong hears why.
ErrorsAreKnown == \A m \in Members : client[m].error # "UNKNOWN_SERVER_ERROR"

\* A member that fails has said something wrong, or came where it may not, or another took its place.
FailsForAReason ==
  \A m \in Members : client[m].error \in {"INCONSISTENT_GROUP_PROTOCOL", "GROUP_ID_NOT_FOUND"} =>
    m \in Malformed \/ Policy # "bidirectional"

EpochsNeverFall == [][epoch' >= epoch]_vars

\* The group is another one if its members are, or if it rebalances as a classic one.
EpochHasCause ==
  [][epoch' # epoch =>
       \/ phase' = "CompletingRebalance"
       \/ {Reads[m] : m \in Registered'} # {Reads[m] : m \in Registered}
       \/ Cardinality(Registered') # Cardinality(Registered)]_vars

\* A partition leaves a member that stays only once its consumer no longer owns it. While a classic
\* group rebalances, what was meant for its members is given to nobody.
RevokedBeforeReleased ==
  [][\A m \in Members :
       IsCurrent(m) /\ IsRegistered(m)' /\ phase' # "PreparingRebalance" =>
         (Holds(member[m]) \ Holds(member[m])') \intersect client[m].owned = {}]_vars

(***************************************************************************)
(* Situations, for suites and coverage.                                    *)
(***************************************************************************)
SomeGroupIsMixed == IsMixed
SomeoneIsParked  == parked # {}
SomeoneRevokes   == \E m \in Classic : member[m].state = "UnrevokedPartitions"
IsConsumerGroup  == type = "consumer"
IsDowngraded     == type = "classic" /\ epoch > 1
===============================================================================
