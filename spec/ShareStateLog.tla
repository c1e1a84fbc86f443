---------------------------- MODULE ShareStateLog ----------------------------
(***************************************************************************)
(* What a record of __share_group_state means to the share coordinator     *)
(* that loads it, and the log of one partition of a share group that a     *)
(* coordinator writes (KIP-932).                                           *)
(*                                                                         *)
(* A snapshot is the whole state, an update what changed since. The log is *)
(* not compacted: the coordinator deletes a prefix that no load needs.     *)
(*                                                                         *)
(* Kafka: ShareCoordinatorShard.replay, ShareCoordinatorOffsetsManager.    *)
(***************************************************************************)
EXTENDS Integers, Sequences

CONSTANTS
  SnapshotsAreDeleted, \* tombstones: from 4.1 on
  MaxWrites,
  UpdatesPerSnapshot,  \* share.coordinator.snapshot.update.records.per.snapshot
  LeaderEpochs,
  Initializations      \* so often a partition's state begins anew

VARIABLE log

(***************************************************************************)
(* A record's fields.                                                      *)
(*                                                                         *)
(* type        | "Share"; "Unknown" of a type of record that the release   *)
(*             | does not have; "Unreadable"                               *)
(* part        | "Snapshot", "Update"                                      *)
(* value       | stands for the value: equal for equal ones; 0: a          *)
(*             | tombstone                                                 *)
(* leaderEpoch | of the partition's leader that asked for the write        *)
(* stateEpoch  | of a snapshot: how often the state has begun anew         *)
(***************************************************************************)
Tombstone == 0
NoEpoch == -1   \* the maps of epochs have no entry

\* The state: snapshot and updates stand for ShareGroupOffset, which they make.
EmptyShare == [
  snapshot |-> Tombstone, updates |-> <<>>, leaderEpoch |-> NoEpoch, stateEpoch |-> NoEpoch,
  failed |-> ""]

Failed(s, rule) == [s EXCEPT !.failed = rule]
Max(a, b) == IF a < b THEN b ELSE a

\* handleShareSnapshot, handleShareUpdate. The maps of epochs never go back.
ShareReplay(s, r) ==
  IF s.failed # "" THEN s
  ELSE CASE r.type = "Unreadable" -> Failed(s, "Unreadable")
         [] r.type = "Unknown" -> s
         [] r.part = "Snapshot" /\ r.value = Tombstone ->
              IF SnapshotsAreDeleted THEN EmptyShare ELSE Failed(s, "SnapshotHasNoValue")
         [] r.part = "Snapshot" ->
              [s EXCEPT !.snapshot = r.value, !.updates = <<>>,
                        !.leaderEpoch = Max(@, r.leaderEpoch), !.stateEpoch = Max(@, r.stateEpoch)]
         [] r.value = Tombstone -> Failed(s, "UpdateHasNoValue")
         [] OTHER ->
              [s EXCEPT !.updates = Append(@, r.value), !.leaderEpoch = Max(@, r.leaderEpoch)]

RECURSIVE Replayed(_, _)
Replayed(s, records) ==
  IF records = <<>> THEN s ELSE Replayed(ShareReplay(s, Head(records)), Tail(records))
Load(records) == Replayed(EmptyShare, records)

(***************************************************************************)
(* What a coordinator writes.                                              *)
(***************************************************************************)
Record(part, value, leaderEpoch, stateEpoch) ==
  [type |-> "Share", part |-> part, value |-> value, leaderEpoch |-> leaderEpoch,
   stateEpoch |-> stateEpoch]
Value == Len(log) + 1
Written(record) == log' = Append(log, record)

State == Load(log)
IsInitialized == State.snapshot # Tombstone
StateEpochs == {log[n].stateEpoch : n \in DOMAIN log}
LeaderEpochOfState == log[Len(log)].leaderEpoch  \* ShareGroupOffset.leaderEpoch

\* generateInitializeStateRecord: of no leader yet.
Initialize ==
  \E epoch \in 1..Initializations :
    /\ \A known \in StateEpochs : known < epoch
    /\ Written(Record("Snapshot", Value, 0, epoch))

\* generateShareStateRecord, of a write, and of a read by a newer leader, which raises the epoch.
Snapshots(s) == Len(s.updates) >= UpdatesPerSnapshot
Stored(leaderEpoch) ==
  Written(IF Snapshots(State) THEN Record("Snapshot", Value, leaderEpoch, State.stateEpoch)
          ELSE Record("Update", Value, leaderEpoch, 0))
Write == IsInitialized /\ Stored(LeaderEpochOfState)
Read(epoch) == IsInitialized /\ epoch > State.leaderEpoch /\ Stored(epoch)

\* DeleteShareGroupState.
Delete == IsInitialized /\ Written(Record("Snapshot", Tombstone, 0, 0))

Init == log = <<>>
Next ==
  /\ Len(log) < MaxWrites
  /\ \/ Initialize \/ Write \/ Delete
     \/ \E epoch \in LeaderEpochs : Read(epoch)

(***************************************************************************)
(* Pruning: ShareCoordinatorOffsetsManager.lastRedundantOffset. Everything *)
(* below the newest snapshot may be gone.                                  *)
(***************************************************************************)
IsSnapshot(n) == log[n].part = "Snapshot"
NewestSnapshot ==
  IF \E n \in DOMAIN log : IsSnapshot(n)
  THEN CHOOSE n \in DOMAIN log :
         IsSnapshot(n) /\ \A m \in DOMAIN log : IsSnapshot(m) => m <= n
  ELSE 1
Deletable == NewestSnapshot - 1
Pruned == {SubSeq(log, n + 1, Len(log)) : n \in 0..Deletable}

\* A fail-over finds the coordinator, and consumers go on where they were.
LoadsAsItIs == Load(log).failed = ""
LoadsPruned == \A records \in Pruned : Load(records).failed = ""
LoadsTheSame == \A records \in Pruned : Load(records) = Load(log)
===============================================================================
