--------------------------- MODULE CoordinatorGroups ---------------------------
(***************************************************************************)
(* The runtime with the group coordinator's shard: one group, whose        *)
(* members read one partition. What a record means is the text that the    *)
(* load of a log is judged by, GroupLoad. The operations below fill in     *)
(* what CoordinatorRuntime leaves open: they read the latest state, and    *)
(* give the records of GroupMetadataManager in Kafka's order.              *)
(*                                                                         *)
(* A record of the log has its key and a value: what GroupLoad reads.      *)
(* Values stand for bytes: of a group and of a target's metadata the       *)
(* epoch, of a target 1 (nothing) or 2 (the partition), of what a member   *)
(* has 2 if its previous epoch is its epoch, else 1.                       *)
(*                                                                         *)
(* Kafka: GroupCoordinatorShard over GroupMetadataManager and              *)
(* OffsetMetadataManager, branch 4.4.                                      *)
(***************************************************************************)
EXTENDS CoordinatorLaw, LogCleaner, GroupLoad

CONSTANTS
  FirstEpoch   \* the epoch of a group that nobody has joined (KAFKA-20268)

GroupIsLoaded(s) == s.failed = ""
GroupsReplay(s, record) == GroupReplay(s, record.value)

(***************************************************************************)
(* Records: GroupCoordinatorRecordHelpers.                                 *)
(***************************************************************************)
Partition == <<1, 0>>
NothingValue == 1
StaticLeaveEpoch == -2
PartitionValue == 2

Of(type, part, key, value, at) ==
  [key |-> <<type, part, key>>,
   value |-> [type |-> type, part |-> part, key |-> key, value |-> value, epoch |-> 0,
              holds |-> {}, gives |-> {}, helps |-> {}, instance |-> NoInstance,
              process |-> NoProcess, simple |-> FALSE, producer |-> NoProducer, at |-> at]]
Modern(part, key, value) == Of("Consumer", part, key, value, 0)
\* Up to 4.0 a group had a record of its topics; its tombstone is still written.
NoTopics == Modern("Attribute", "", Tombstone)
CurrentOf(m, value, e, holds, gives) ==
  LET record == Modern("Current", m, value)
  IN  [record EXCEPT !.value.epoch = e, !.value.holds = holds, !.value.gives = gives]
Current(m, e, holds) == CurrentOf(m, 1, e, holds, {})

(***************************************************************************)
(* What the operations read.                                               *)
(***************************************************************************)
MembersOf(s) == DOMAIN s.members
IsGroup(s) == s.kind = "Consumer"
EpochOfNewGroup == FirstEpoch
GroupEpoch(s) == IF s.metadata = Tombstone THEN EpochOfNewGroup ELSE s.metadata
AssignmentEpoch(s) == IF s.targets = NoTargets THEN EpochOfNewGroup ELSE s.targets
TargetOf(s, m) == IF m \in DOMAIN s.target THEN s.target[m] ELSE Tombstone

\* UniformAssignor, in the order of ids: who has the partition keeps it; else the last member gets
\* it, since each before leaves the odd partition to the next (KAFKA-18688).
FirstOf(members) == CHOOSE m \in members : m = "m1" \/ members = {m}
LastOf(members) == CHOOSE m \in members : m # "m1" \/ members = {m}
Assignee(s, members) ==
  LET keeps == {m \in members : TargetOf(s, m) = PartitionValue}
  IN  IF keeps # {} THEN FirstOf(keeps) ELSE LastOf(members)
NewTarget(s, members, m) == IF Assignee(s, members) = m THEN PartitionValue ELSE NothingValue

\* TargetAssignmentBuilder.build: the members whose target is another one, in the order of ids.
Changes(s, members, m) ==
  IF m \in members /\ NewTarget(s, members, m) # TargetOf(s, m)
  THEN <<Modern("Target", m, NewTarget(s, members, m))>> ELSE <<>>
NewTargets(s, members, e) ==
  Changes(s, members, "m1") \o Changes(s, members, "m2") \o <<Modern("Targets", "", e)>>

\* CurrentAssignmentBuilder: the partition is given once nobody else holds it. Who is to have it
\* no more gives it back first, in its epoch, unless it says that it has nothing.
IsFree(s, m) ==
  Partition \notin DOMAIN s.owners \/ (m \in MembersOf(s) /\ Partition \in s.members[m].holds)
Holding(s, m, target) == IF target = PartitionValue /\ IsFree(s, m) THEN {Partition} ELSE {}
ToGive(member, target) ==
  member.gives \union IF target = PartitionValue THEN {} ELSE member.holds

\* ... of a member that is there. `isFull`: its request says that it has nothing. Who still gives
\* back and who is where its target is stays as it is.
Stays(member, e, target, isFull) ==
  \/ member.gives # {} /\ ~isFull
  \/ member.gives = {} /\ member.epoch = e /\ (target = PartitionValue => member.holds # {})
Reconciled(s, m, e, target, isFull) ==
  LET member == s.members[m]
      gives == IF isFull THEN {} ELSE ToGive(member, target)
      next == IF gives # {} THEN member.epoch ELSE e
      holds == IF gives # {} THEN {} ELSE Holding(s, m, target)
      value == IF next = member.epoch THEN 2 ELSE 1
      before == <<member.current, member.epoch, member.holds, member.gives>>
  IN  IF Stays(member, e, target, isFull) \/ before = <<value, next, holds, gives>> THEN <<>>
      ELSE <<CurrentOf(m, value, next, holds, gives)>>

\* What is written of the topics that these members subscribe to: nothing (KAFKA-17747).
SubscribedTopics(s, members) == <<>>

(***************************************************************************)
(* GroupMetadataManager.consumerGroupHeartbeat.                            *)
(***************************************************************************)
Join(s, m) ==
  LET members == MembersOf(s) \union {m}
      next == GroupEpoch(s) + 1
  IN  Result(<<Modern("Member", m, 1)>>
               \o SubscribedTopics(s, members) \o <<Modern("Group", "", next)>>
               \o NewTargets(s, members, next)
               \o <<Current(m, next, Holding(s, m, NewTarget(s, members, m)))>>)

\* ... of a member that is there: a newer group epoch makes a target; the member goes to it.
Heartbeat(s, m, isFull) ==
  LET isDue == AssignmentEpoch(s) < GroupEpoch(s)
      target == IF isDue THEN NewTarget(s, MembersOf(s), m) ELSE TargetOf(s, m)
  IN  Result((IF isDue THEN NewTargets(s, MembersOf(s), GroupEpoch(s)) ELSE <<>>)
               \o Reconciled(s, m, GroupEpoch(s), target, isFull))

\* consumerGroupFenceMembers. An empty group waits for no assignment (KAFKA-20442).
TargetsOfEmptied(e) == <<Modern("Targets", "", e)>>
Leave(s, m) ==
  LET members == MembersOf(s) \ {m}
      next == GroupEpoch(s) + 1
  IN  Result(<<Modern("Current", m, Tombstone), Modern("Target", m, Tombstone),
               Modern("Member", m, Tombstone)>>
               \o SubscribedTopics(s, members) \o <<Modern("Group", "", next)>>
               \o IF members = {} THEN TargetsOfEmptied(next) ELSE <<>>)

\* consumerGroupStaticMemberGroupLeave: a static member leaves for a while, with what it has.
StaticInstance == "i"
IsStatic(s, m) == m \in MembersOf(s) /\ s.members[m].instance = StaticInstance
Pause(s, m) == Result(<<CurrentOf(m, 1, StaticLeaveEpoch, s.members[m].holds, {})>>)

\* replaceMember: who comes in its place takes all that it has, and goes to its target from epoch 0.
\* The group is the same one.
StaticMember(m) == LET record == Modern("Member", m, 1)
                   IN  [record EXCEPT !.value.instance = StaticInstance]
Replace(s, former, m) ==
  LET holds == s.members[former].holds
  IN  Result(<<Modern("Current", former, Tombstone), Modern("Target", former, Tombstone),
               Modern("Member", former, Tombstone), StaticMember(m),
               Modern("Target", m, TargetOf(s, former)), CurrentOf(m, 2, 0, holds, {}),
               Current(m, GroupEpoch(s), holds)>>)

\* Who has the instance has left for a while, or the instance is not released. All members of such
\* a model are static, so that there is one at most, and what it has is its target.
StaticJoin(s, m) ==
  LET joined == Join(s, m)
  IN  IF StaticInstance \notin DOMAIN s.statics
      THEN [joined EXCEPT !.records[1] = StaticMember(m)]
      ELSE IF s.members[s.statics[StaticInstance]].epoch = StaticLeaveEpoch
      THEN Replace(s, s.statics[StaticInstance], m)
      ELSE Thrown \* UNRELEASED_INSTANCE_ID

\* OffsetMetadataManager.commitOffset of a member. `w` stands for the offset that it commits.
Offset(value, w) == Of("Offset", "", "p", value, w)
Commit(w) == Result(<<Offset(w, w)>>)

\* GroupCoordinatorShard.deleteGroups: offsets first. What is wrong with a group stands in the
\* response, which waits for what it rests on.
Delete(s, w) ==
  Result((IF "p" \in DOMAIN s.offsets THEN <<Offset(Tombstone, w)>> ELSE <<>>)
           \o <<Modern("Targets", "", Tombstone), NoTopics, Modern("Group", "", Tombstone)>>)

(***************************************************************************)
(* Classic groups, and a group that goes from one protocol to the other.   *)
(* Of a classic group the log has the last generation, with its members:   *)
(* here the member m1, which has the partition. Its operations change the  *)
(* memory themselves (ClassicGroup is no timeline structure).              *)
(***************************************************************************)
IsClassic(s) == s.kind = "Classic"
Generation(w) == Of("Classic", "Group", "", w, 0)
NextGeneration(w) == [Result(<<Generation(w)>>) EXCEPT !.replays = FALSE]

\* ConsumerGroup.fromClassicGroup, createConsumerGroupRecords: the generation is the epoch.
Converted(s) ==
  <<Generation(Tombstone), Modern("Member", "m1", 1), Modern("Group", "", s.metadata),
    Modern("Target", "m1", PartitionValue), Modern("Targets", "", s.metadata),
    Current("m1", s.metadata, {Partition})>>
Upgrade(s, m) ==
  Result(Converted(s) \o Join(Replayed(s, Converted(s)), m).records)

\* convertToClassicGroup: the last member of the consumer protocol leaves, m1 stays.
OfEach(part) == <<Modern(part, "m1", Tombstone), Modern(part, "m2", Tombstone)>>
Downgrade(w) ==
  [Result(OfEach("Current") \o OfEach("Target") \o <<Modern("Targets", "", Tombstone)>>
            \o OfEach("Member") \o <<NoTopics, Modern("Group", "", Tombstone), Generation(w)>>)
     EXCEPT !.replays = FALSE]

GroupOperation(kind, w, s) ==
  LET m == kind[2]
  IN  CASE kind[1] = "generation" -> IF IsGroup(s) THEN Thrown ELSE NextGeneration(w)
        [] kind[1] = "downgrade" ->
             IF MembersOf(s) = {"m1", "m2"} THEN Downgrade(w) ELSE Thrown
        [] kind[1] = "delete" ->
             IF IsGroup(s) /\ MembersOf(s) = {} THEN Delete(s, w) ELSE Result(<<>>)
        [] kind[1] = "commit" /\ IsClassic(s) -> Commit(w)
        [] kind[1] = "static join" -> StaticJoin(s, m)
        [] kind[1] = "pause" -> IF IsStatic(s, m) THEN Pause(s, m) ELSE Thrown
        [] kind[1] = "join" ->
             IF IsClassic(s) THEN Upgrade(s, m)
             ELSE IF m \in MembersOf(s) THEN Heartbeat(s, m, TRUE)
             ELSE Join(s, m)
        [] m \notin MembersOf(s) -> Thrown \* UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND
        [] kind[1] = "heartbeat" -> Heartbeat(s, m, FALSE)
        [] kind[1] = "leave" -> Leave(s, m)
        [] kind[1] = "commit" -> Commit(w)

(***************************************************************************)
(* The logs that the cleaner may leave. One that begins behind the first   *)
(* record is what a load reads that runs beside the cleaner.               *)
(***************************************************************************)
Starts(records) == BatchEnds(records)
GroupCompactions(records) ==
  LET keys == [n \in DOMAIN records |-> records[n].key]
      gone == {n \in DOMAIN records : records[n].value.value = Tombstone}
  IN  CleanedLogs(records, keys, gone, Starts(records), BatchEnds(records))

\* At most, in any release: a member, topics, an epoch, three of targets, what the member has.
RecordsOfGroupWrite == 7

TypeOK ==
  /\ RuntimeTypeOK
  /\ \A b \in Brokers : shard[b].memory.kind \in {"None", "Simple", "Classic", "Consumer"}

\* An upgrade, a fail-over and a restart find their coordinator.
LogsLoad == \A b \in Brokers : IsLoaded(Load(log[b]))
\* Only the load of a leader that is none any more fails, and the load of a topic that is deleted.
LoadsEnd == \A b \in Brokers : state[b] = "FAILED" => tenure[b] < epoch \/ deleted

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
BehindTheGroup ==
  \E b \in Brokers : \E m \in MembersOf(shard[b].memory) :
    shard[b].memory.members[m].epoch < shard[b].memory.metadata
UpgradedWithOffset ==
  \E b \in Brokers :
    {"m1", "m2"} \subseteq MembersOf(shard[b].memory) /\ shard[b].memory.offsets # Nothing
Downgraded == \E b \in Brokers : IsClassic(shard[b].memory) /\ shard[b].memory.metadata > 2
OffsetWithoutMembers ==
  \E b \in Brokers : shard[b].memory.offsets # Nothing /\ MembersOf(shard[b].memory) = {}
===============================================================================
