------------------------------- MODULE GroupLog -------------------------------
(***************************************************************************)
(* A coordinator of KIP-848 writes the records of one group, in Kafka's    *)
(* order and batches. Any log that the cleaner makes of them, and any that *)
(* a load reads beside the cleaner, must load, and load the same group.    *)
(***************************************************************************)
EXTENDS GroupLoad, LogCleaner

CONSTANTS
  Members,
  MaxWrites,
  Renames,    \* a member's metadata may change
  Deletions,  \* an empty group may be deleted
  Racing      \* a load may run beside the cleaner

VARIABLES log, writes

RECURSIVE Replayed(_, _)
Replayed(s, records) ==
  IF records = <<>> THEN s ELSE Replayed(GroupReplay(s, Head(records)), Tail(records))
Load(records) == Replayed(EmptyLoad, records)

(***************************************************************************)
(* Records, and the batch of a write.                                      *)
(***************************************************************************)
Partition == <<1, 0>>
Record(part, key, value, epoch, holds) == [
  type |-> "Consumer", part |-> part, key |-> key, value |-> value, epoch |-> epoch,
  holds |-> holds, gives |-> {}, helps |-> {}, instance |-> NoInstance, process |-> NoProcess,
  simple |-> FALSE, producer |-> NoProducer, at |-> 0]
Of(part, key, value) == Record(part, key, value, 0, {})

EndsBatch(i, records) == i = Len(records)
Batch(records) ==
  [i \in DOMAIN records |-> [record |-> records[i], last |-> EndsBatch(i, records)]]
Records(entries) == [i \in DOMAIN entries |-> entries[i].record]
Loaded == Load(Records(log))
Epoch == writes + 1

Written(records) == log' = log \o Batch(records) /\ writes' = writes + 1

\* What a member may be assigned: the partition only if nobody else has it.
MayHold(m, holds) ==
  holds = {} \/ Partition \notin DOMAIN Loaded.owners
    \/ (m \in DOMAIN Loaded.members /\ Partition \in Loaded.members[m].holds)

\* GroupMetadataManager.consumerGroupHeartbeat of a member that joins.
Joining(m, holds) ==
  <<Of("Member", m, 1), Of("Group", "", 1), Of("Target", m, 1), Of("Targets", "", 1),
    Record("Current", m, 1, Epoch, holds)>>
Join(m, holds) ==
  /\ m \notin DOMAIN Loaded.members /\ MayHold(m, holds)
  /\ Written(Joining(m, holds))

\* ... of one that comes to a newer epoch: with the partition, or without it.
Follow(m, holds) ==
  /\ m \in DOMAIN Loaded.members /\ MayHold(m, holds)
  /\ Written(<<Record("Current", m, 1, Epoch, holds)>>)

\* ... of one whose client id, rack or subscription changed.
Rename(m) ==
  /\ Renames /\ m \in DOMAIN Loaded.members
  /\ Written(<<Of("Member", m, 1)>>)

\* consumerGroupFenceMember, with the tombstones in their order.
Tombstones(m) == <<Of("Current", m, 0), Of("Target", m, 0), Of("Member", m, 0)>>
Leave(m) ==
  /\ m \in DOMAIN Loaded.members
  /\ Written(Tombstones(m) \o <<Of("Group", "", 1)>>)

\* createGroupTombstoneRecords.
Delete ==
  /\ Deletions /\ Loaded.kind = "Consumer" /\ DOMAIN Loaded.members = {}
  /\ Written(<<Of("Targets", "", 0), Of("Group", "", 0)>>)

Init == log = <<>> /\ writes = 0
Next ==
  /\ writes < MaxWrites
  /\ \/ \E m \in Members : \/ \E holds \in {{}, {Partition}} : Join(m, holds) \/ Follow(m, holds)
                           \/ Rename(m) \/ Leave(m)
     \/ Delete

(***************************************************************************)
(* A load may run beside the cleaner, which works on whole batches.        *)
(***************************************************************************)
Borders == {0} \union {i \in DOMAIN log : log[i].last}
Keys == [n \in DOMAIN log |-> <<log[n].record.part, log[n].record.key>>]
Gone == {n \in DOMAIN log : log[n].record.value = Tombstone}
Starts == IF Racing THEN Borders ELSE {0}
Compactions == CleanedLogs(Records(log), Keys, Gone, Starts, Borders)

\* An upgrade, a fail-over and a restart find their coordinator.
LoadsAsItIs == Loaded.failed = ""
LoadsCompacted == \A records \in Compactions : Load(records).failed = ""
LoadsTheSame ==
  \A records \in Compactions : Load(records).failed = "" => Load(records) = Loaded
===============================================================================
