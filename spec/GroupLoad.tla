------------------------------ MODULE GroupLoad ------------------------------
(***************************************************************************)
(* What a record of __consumer_offsets means to the coordinator that       *)
(* loads it: the groups of all kinds, and committed offsets. A load        *)
(* replays record after record; the first that a rule forbids ends it, and *)
(* the partition has no coordinator (CoordinatorContext FAILED).           *)
(*                                                                         *)
(* Kafka: the methods `replay` of GroupMetadataManager and                 *)
(* OffsetMetadataManager, and what they call in ConsumerGroup,             *)
(* StreamsGroup, ShareGroup and ClassicGroup.                              *)
(*                                                                         *)
(* Every record names one group, and changes that group only. So the state *)
(* here is of one group; a marker of a transaction is a record of each     *)
(* group that the transaction has offsets of.                              *)
(***************************************************************************)
EXTENDS PendingOffsets

CONSTANTS
  OwnersAreReplaced,       \* KAFKA-19862: a stale owner gives way, and its removal is ignored
  InstancesMove,           \* a member's former group.instance.id is given up with its new one
  StreamsReplacesSimple,   \* KAFKA-20254: streams groups may follow their own offsets
  ShareIsTolerant          \* KAFKA-19453: share groups are as the others: any record may make
                           \* them, tombstones of what is not there are ignored

(***************************************************************************)
(* A record's fields.                                                      *)
(*                                                                         *)
(* type     | the group's type; "Offset", "Marker"; "Unknown" of a type of *)
(*          | record that the release does not have; "Unreadable"          *)
(* part     | what it is of the group                                      *)
(* key      | a member, a regular expression, a partition                  *)
(* value    | stands for the value: equal for equal ones; 0: a tombstone   *)
(* epoch    | the member epoch of a current assignment                     *)
(* holds    | the partitions, or active tasks, that it assigns             *)
(* gives    | those that are to be revoked                                 *)
(* helps    | standby and warm-up tasks                                    *)
(* instance | the group.instance.id of a member                            *)
(* process  | the process id of a member of a streams group                *)
(* simple   | a classic group without protocol type and members            *)
(* producer | of an offset in a transaction; 0: in none                    *)
(* at       | the record's offset                                          *)
(***************************************************************************)
NoProcess == ""
NoInstance == ""
LeaveEpoch == -1       \* LEAVE_GROUP_MEMBER_EPOCH
NoTargets == 0         \* no TargetAssignmentMetadata yet: the assignment epoch is not -1
RemovedTargets == -1   \* after its tombstone

(***************************************************************************)
(* The state's fields.                                                     *)
(*                                                                         *)
(* kind       | Group.type; "None"; "Simple": a classic group that has     *)
(*            | neither protocol type nor members                          *)
(* metadata   | of the group                                               *)
(* members    | their metadata and current assignments                     *)
(* targets    | the target assignment's epoch; target: by member           *)
(* statics    | staticMembers: by group.instance.id                        *)
(* owners     | currentPartitionEpoch; of a streams group the process of   *)
(*            | each active task; helpers: those of standby tasks          *)
(* attributes | subscription metadata, regular expressions, topology       *)
(* sharing    | shareGroupStatePartitionMetadata                           *)
(* offsets    | committed; pending: those of open transactions             *)
(* failed     | the rule that ended the load                               *)
(***************************************************************************)
EmptyLoad == [
  kind |-> "None", metadata |-> Tombstone, members |-> Nothing, targets |-> NoTargets,
  target |-> Nothing, statics |-> Nothing, owners |-> Nothing, helpers |-> {}, attributes |-> Nothing,
  sharing |-> Tombstone, offsets |-> Nothing, pending |-> Nothing, failed |-> ""]

WithValue(function, key, value) ==
  IF value = Tombstone THEN Without(function, {key}) ELSE With(function, key, value)

Failed(s, rule) == [s EXCEPT !.failed = rule]

\* A new group object; offsets and share states are kept beside the groups.
Fresh(s, kind) ==
  [s EXCEPT !.kind = kind, !.metadata = Tombstone, !.members = Nothing, !.targets = NoTargets,
            !.target = Nothing, !.statics = Nothing, !.owners = Nothing, !.helpers = {},
            !.attributes = Nothing]

(***************************************************************************)
(* Who has a partition: ConsumerGroup.removePartitionEpochs,               *)
(* addPartitionEpochs.                                                     *)
(***************************************************************************)
NewMember == [metadata |-> Tombstone, instance |-> NoInstance, process |-> NoProcess, current |-> Tombstone, epoch |-> 0,
              holds |-> {}, gives |-> {}, helps |-> {}]
MemberOf(s, id) == IF id \in DOMAIN s.members THEN s.members[id] ELSE NewMember

Owns(owners, p, mark) == p \in DOMAIN owners /\ owners[p] = mark

\* OwnersAreReplaced: who was replaced takes nothing away from the new owner.
Released(s, partitions, mark) ==
  IF OwnersAreReplaced \/ \A p \in partitions : Owns(s.owners, p, mark)
  THEN [s EXCEPT !.owners = Without(@, {p \in partitions : Owns(@, p, mark)})]
  ELSE Failed(s, "PartitionHasOtherOwner")

MayOwn(owners, p, epoch) ==
  p \notin DOMAIN owners \/ (OwnersAreReplaced /\ owners[p] < epoch)
Owned(s, partitions, epoch) ==
  IF \A p \in partitions : MayOwn(s.owners, p, epoch)
  THEN [s EXCEPT !.owners =
          [p \in DOMAIN @ \union partitions |-> IF p \in partitions THEN epoch ELSE @[p]]]
  ELSE Failed(s, "PartitionHasOwner")

\* What follows a step that failed does not happen.
Then(s, after) == IF s.failed # "" THEN s ELSE after

ReleasedBy(s, member) ==
  LET first == Released(s, member.holds, member.epoch)
  IN  Then(first, Released(first, member.gives, member.epoch))
OwnedBy(s, member) ==
  LET first == Owned(s, member.holds, member.epoch)
  IN  Then(first, Owned(first, member.gives, member.epoch))

(***************************************************************************)
(* The same of a streams group's tasks: StreamsGroup.removeTaskProcessIds, *)
(* addTaskProcessId. A task is <<subtopology, partition>>.                 *)
(***************************************************************************)
HasProcesses(owners, task) == \E t \in DOMAIN owners : t[1] = task[1]
IsProcessOf(owners, task, process) ==
  IF task \in DOMAIN owners THEN owners[task] = process
  ELSE process = NoProcess /\ HasProcesses(owners, task)
ReleasedTasks(s, tasks, process) ==
  IF OwnersAreReplaced \/ \A t \in tasks : IsProcessOf(s.owners, t, process)
  THEN [s EXCEPT !.owners = Without(@, {t \in tasks : Owns(@, t, process)})]
  ELSE Failed(s, "TaskHasOtherProcess")
OwnedTasks(s, tasks, process) ==
  IF process = NoProcess THEN s
  ELSE IF OwnersAreReplaced \/ \A t \in tasks : t \notin DOMAIN s.owners
  THEN [s EXCEPT !.owners =
          [t \in DOMAIN @ \union tasks |-> IF t \in tasks THEN process ELSE @[t]]]
  ELSE Failed(s, "TaskHasProcess")

ReleasedHelp(s, member) ==
  LET pairs == {<<t, member.process>> : t \in member.helps}
  IN  IF OwnersAreReplaced \/ pairs \subseteq s.helpers
      THEN [s EXCEPT !.helpers = @ \ pairs] ELSE Failed(s, "TaskHasOtherProcess")
ReleasedTasksBy(s, member) ==
  LET first == ReleasedTasks(s, member.holds, member.process)
      second == Then(first, ReleasedTasks(first, member.gives, member.process))
  IN  Then(second, ReleasedHelp(second, member))
OwnedTasksBy(s, member) ==
  LET first == OwnedTasks(s, member.holds, member.process)
      second == Then(first, OwnedTasks(first, member.gives, member.process))
      help == IF member.process = NoProcess THEN {}
              ELSE {<<t, member.process>> : t \in member.helps}
  IN  Then(second, [second EXCEPT !.helpers = @ \union help])

(***************************************************************************)
(* Members: updateMember, removeMember.                                    *)
(***************************************************************************)
\* Whoever had an instance is forgotten, even if another member has it by now.
WithoutInstance(s, id) ==
  IF id \notin DOMAIN s.members \/ s.kind = "Share" THEN s
  ELSE [s EXCEPT !.statics = Without(@, {s.members[id].instance})]
WithInstance(s, id, member) ==
  LET before == IF InstancesMove THEN WithoutInstance(s, id) ELSE s
  IN  IF member.instance = NoInstance \/ s.kind = "Share" THEN before
      ELSE [before EXCEPT !.statics = With(@, member.instance, id)]

WithoutOld(s, id) ==
  IF id \notin DOMAIN s.members \/ s.kind = "Share" THEN s
  ELSE IF s.kind = "Streams" THEN ReleasedTasksBy(s, s.members[id])
  ELSE ReleasedBy(s, s.members[id])
Updated(s, id, member) ==
  LET before == WithoutOld(s, id)
      after == [WithInstance(before, id, member) EXCEPT !.members = With(@, id, member)]
  IN  Then(before,
        CASE s.kind = "Share" -> after
          [] s.kind = "Streams" -> OwnedTasksBy(after, member)
          [] OTHER -> OwnedBy(after, member))

\* updateMember gives up and takes again what a member has, even if only its metadata changed.
MetadataMovesOwners == TRUE
WithMetadata(s, r) ==
  LET member == [MemberOf(s, r.key) EXCEPT
                   !.metadata = r.value, !.instance = r.instance, !.process = r.process]
  IN  IF MetadataMovesOwners \/ s.kind # "Consumer" THEN Updated(s, r.key, member)
      ELSE [s EXCEPT !.members = With(@, r.key, member)]

ReplayMember(s, r) ==
  IF r.value # Tombstone THEN WithMetadata(s, r)
  ELSE IF s.members[r.key].epoch # LeaveEpoch THEN Failed(s, "MemberHasEpoch")
  ELSE IF r.key \in DOMAIN s.target THEN Failed(s, "MemberHasTarget")
  ELSE LET before == WithoutOld(s, r.key)
       IN  Then(before, [WithoutInstance(before, r.key) EXCEPT !.members = Without(@, {r.key})])

ReplayCurrent(s, r) ==
  Updated(s, r.key,
    [MemberOf(s, r.key) EXCEPT
       !.current = r.value, !.epoch = IF r.value = Tombstone THEN LeaveEpoch ELSE r.epoch,
       !.holds = r.holds, !.gives = r.gives, !.helps = r.helps])

(***************************************************************************)
(* Groups: getOrMaybeCreatePersistedConsumerGroup and its kind.            *)
(***************************************************************************)
Replaces(type) == type = "Consumer" \/ (type = "Streams" /\ StreamsReplacesSimple)

ReplayGroup(s, r) ==
  IF r.value # Tombstone THEN [s EXCEPT !.metadata = r.value]
  ELSE IF s.members # Nothing THEN Failed(s, "GroupHasMembers")
  ELSE IF s.target # Nothing /\ s.kind # "Streams" THEN Failed(s, "GroupHasTargets")
  ELSE IF s.targets # RemovedTargets THEN Failed(s, "GroupHasAssignmentEpoch")
  ELSE Fresh(s, "None")

ReplayTargets(s, r) ==
  IF r.value # Tombstone THEN [s EXCEPT !.targets = r.value]
  ELSE IF s.target # Nothing THEN Failed(s, "TargetsRemain")
  ELSE [s EXCEPT !.targets = RemovedTargets]

\* Records that make a group, or a member, which is not there.
Makes(r, parts) ==
  r.value # Tombstone /\ (r.type # "Share" \/ ShareIsTolerant \/ r.part \in parts)
IsOfMember(r) == r.part \in {"Member", "Current"}
IsNobodys(s, r) == IsOfMember(r) /\ r.key \notin DOMAIN s.members /\ ~Makes(r, {"Member"})

ReplayPart(s, r) ==
  CASE r.part = "Group" -> ReplayGroup(s, r)
    [] r.part = "Member" -> ReplayMember(s, r)
    [] r.part = "Current" -> ReplayCurrent(s, r)
    [] r.part = "Targets" -> ReplayTargets(s, r)
    [] r.part = "Target" -> [s EXCEPT !.target = WithValue(@, r.key, r.value)]
    [] r.part = "Sharing" ->
         IF ShareIsTolerant THEN [s EXCEPT !.sharing = r.value] ELSE Failed(s, "SharingIsUnknown")
    [] OTHER -> [s EXCEPT !.attributes = WithValue(@, r.key, r.value)]

\* A record of a group, or of a member, that is not there.
Absent(s, r) ==
  IF r.type = "Share" /\ ~ShareIsTolerant THEN Failed(s, "ShareGroupIsAbsent")
  ELSE IF r.part = "Sharing" THEN [s EXCEPT !.sharing = Tombstone]
  ELSE s

ReplayModern(s, r) ==
  IF s.kind = "None" /\ ~Makes(r, {"Group", "Member"}) THEN Absent(s, r)
  ELSE LET group == IF s.kind = "None" \/ (s.kind = "Simple" /\ Replaces(r.type))
                    THEN Fresh(s, r.type) ELSE s
       IN  IF group.kind # r.type THEN Failed(s, "GroupHasOtherType")
           ELSE IF IsNobodys(group, r) THEN Absent(group, r)
           ELSE ReplayPart(group, r)

\* GroupMetadata takes the place of whatever was there.
ReplayClassic(s, r) ==
  IF r.value = Tombstone THEN Fresh(s, "None")
  ELSE [Fresh(s, IF r.simple THEN "Simple" ELSE "Classic") EXCEPT !.metadata = r.value]

(***************************************************************************)
(* Offsets. The first one makes a simple group.                            *)
(***************************************************************************)
ReplayOffset(s, r) ==
  ReplayValue(IF r.value # Tombstone /\ s.kind = "None" THEN Fresh(s, "Simple") ELSE s, r)

GroupReplay(s, r) ==
  IF s.failed # "" THEN s
  ELSE CASE r.type = "Unreadable" -> Failed(s, "Unreadable")
         [] r.type = "Unknown" -> s
         [] r.type = "Offset" -> ReplayOffset(s, r)
         [] r.type = "Marker" -> ReplayEnd(s, r.producer, r.part = "Commit")
         [] r.type = "Classic" -> ReplayClassic(s, r)
         [] OTHER -> ReplayModern(s, r)
===============================================================================
