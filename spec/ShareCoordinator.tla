--------------------------- MODULE ShareCoordinator ---------------------------
(***************************************************************************)
(* What is stored of one partition of a share group (KIP-932): the shard   *)
(* of the share coordinator that has it, the leaders of the partition that *)
(* write to it, and the group coordinator that initialises and deletes it. *)
(* The persister between them repeats requests and lets them overtake each *)
(* other (PersisterStateManager).                                          *)
(*                                                                         *)
(*   a step           | in Kafka                                           *)
(*   -----------------+--------------------------------------------------- *)
(*   Join             | GroupMetadataManager.shareGroupHeartbeat: a member *)
(*                    | joins, and the partition is to be initialised      *)
(*   Alter            | GroupMetadataManager.alterShareGroupOffsets        *)
(*   Initialize       | ShareCoordinatorShard.initializeState              *)
(*   Read             | readStateAndMaybeUpdateLeaderEpoch, from           *)
(*                    | SharePartition.maybeInitialize                     *)
(*   Acknowledge      | SharePartition.acknowledge, up to its write        *)
(*   Write            | ShareCoordinatorShard.writeState, of one request   *)
(*                    | or a copy of it                                    *)
(*   Delete           | deleteState, from DeleteShareGroupOffsets          *)
(*   SnapshotCold     | snapshotColdPartitions                             *)
(*   FailOver         | another broker loads the log, or what is left of   *)
(*                    | it after ShareCoordinatorService's periodic job    *)
(*   HandleForged     | a request with an epoch that nobody has            *)
(*                                                                         *)
(* Each step of the shard is committed at once: CoordinatorRuntime.tla has *)
(* what lies between.                                                      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Records,            \* the log of the topic has the offsets 0 .. Records - 1
  DeliveryLimit,      \* group.share.delivery.count.limit
  LeaderEpochs,       \* 1 .. n: of the partition of the topic
  MaxGroupEpoch,
  AckTypes,           \* of "ACCEPT", "RELEASE", "REJECT"
  MaxWrites,          \* under way at a time
  MaxRequests,        \* to initialise
  UpdatesPerSnapshot, \* share.coordinator.snapshot.update.records.per.snapshot
  AlteredTo,          \* start offsets of an administrator
  Deletions,          \* BOOLEAN
  ColdSnapshots,      \* BOOLEAN
  FailOvers,          \* BOOLEAN
  ForgedRequests      \* with epoch -1: "WriteLeaderEpoch", "WriteStateEpoch", "Read", "Initialize"

VARIABLES
  share,      \* ShareGroupOffset in shareStateMap
  complete,   \* its deliveryCompleteCount: from 4.2 on
  fences,     \* leaderEpochMap and stateEpochMap
  updates,    \* snapshotUpdateCount, if it has an entry
  cold,       \* the newest snapshot was one of snapshotColdPartitions
  log,        \* the records from the newest snapshot on
  group,      \* what the group coordinator has
  requests,   \* to initialise: once sent, any may come at any time, again and again
  leaders,    \* by leader epoch: the SharePartition
  writes,     \* under way
  answer,     \* of the share coordinator's last step
  generation, \* which of the requests has made the state; 0: none
  accepted    \* of this generation: what a leader was told is acknowledged, or archived
vars == <<share, complete, fences, updates, cold, log, group, requests, leaders, writes, answer,
          generation, accepted>>
stored == <<share, complete, fences, updates, cold, log>>

Offsets == 0..(Records - 1)
Unknown == -1           \* no epoch, no start offset: PartitionFactory.UNINITIALIZED_START_OFFSET
NoRecord == [state |-> "NONE", count |-> 0]
NoShare == [known |-> FALSE, epoch |-> Unknown, leader |-> Unknown, start |-> Unknown,
            rec |-> [o \in Offsets |-> NoRecord]]
NoFences == [leader |-> Unknown, epoch |-> Unknown]
NoLeader == [alive |-> FALSE, epoch |-> Unknown, generation |-> 0, start |-> 0,
             rec |-> [o \in Offsets |-> NoRecord]]

Max(a, b) == IF a > b THEN a ELSE b
Ids == [NONE |-> -1, AVAILABLE |-> 0, ACKNOWLEDGED |-> 2, ARCHIVED |-> 4]  \* RecordState.id
Terminal == {"ACKNOWLEDGED", "ARCHIVED"}
Settled(rec, start) == {o \in Offsets : o >= start /\ rec[o].state \in Terminal}

-------------------------------------------------------------------------------
(***************************************************************************)
(* A record of the log, and what it does to the shard.                     *)
(***************************************************************************)
\* PersisterStateBatchCombiner: the greater count wins, then the greater state.
IsBetter(a, b) == a.count > b.count \/ (a.count = b.count /\ Ids[a.state] > Ids[b.state])
Combined(old, new, start) ==
  [o \in Offsets |->
    IF o < start THEN NoRecord ELSE IF IsBetter(new[o], old[o]) THEN new[o] ELSE old[o]]

Snapshot(epoch, leader, start, done, rec) ==
  [kind |-> "Snapshot", epoch |-> epoch, leader |-> leader, start |-> start, complete |-> done,
   rec |-> rec]
Update(leader, start, done, rec) ==
  [kind |-> "Update", epoch |-> Unknown, leader |-> leader, start |-> start, complete |-> done,
   rec |-> rec]

\* handleShareSnapshot, handleShareUpdate; a fence never goes back.
ShareAfter(s, r) ==
  IF r.kind = "Snapshot"
  THEN [known |-> TRUE, epoch |-> r.epoch, leader |-> r.leader, start |-> r.start, rec |-> r.rec]
  ELSE [s EXCEPT !.known = TRUE, !.leader = r.leader, !.start = r.start,
                 !.rec = Combined(s.rec, r.rec, r.start)]
FencesAfter(f, r) == [leader |-> Max(f.leader, r.leader), epoch |-> Max(f.epoch, r.epoch)]
FirstUpdate == 1
CountAfter(count, r) ==
  IF r.kind = "Update" THEN IF count = Unknown THEN FirstUpdate ELSE count + 1
  ELSE IF count # Unknown /\ count >= UpdatesPerSnapshot THEN 0 ELSE count

Stored(r, isCold) ==
  /\ share' = ShareAfter(share, r)
  /\ complete' = r.complete
  /\ fences' = FencesAfter(fences, r)
  /\ updates' = CountAfter(updates, r)
  /\ cold' = IF r.kind = "Snapshot" THEN isCold ELSE cold
  /\ log' = IF r.kind = "Snapshot" THEN <<r>> ELSE Append(log, r)

\* What a broker makes of these records that begins with nothing.
RECURSIVE Loaded(_, _, _, _)
Loaded(s, f, count, records) ==
  IF records = <<>> THEN [share |-> s, fences |-> f, updates |-> count]
  ELSE LET r == Head(records)
       IN Loaded(ShareAfter(s, r), FencesAfter(f, r), CountAfter(count, r), Tail(records))
Load(records) == Loaded(NoShare, NoFences, Unknown, records)

-------------------------------------------------------------------------------
(***************************************************************************)
(* The group coordinator.                                                  *)
(***************************************************************************)
IsToInitialize(epoch, start) ==
  /\ Len(requests) < MaxRequests
  /\ requests' = Append(requests, [epoch |-> epoch, start |-> start])

\* The partition's state begins with the epoch that the group has now.
Join ==
  /\ ~group.initialized
  /\ group.epoch < MaxGroupEpoch
  /\ group' = [group EXCEPT !.epoch = @ + 1]
  /\ IsToInitialize(group'.epoch, Unknown)
  /\ answer' = "none"
  /\ UNCHANGED <<stored, leaders, writes, generation, accepted>>

\* An administrator sets the start. The epoch rises, so that nobody who read before may write
\* (KAFKA-20910).
AlteredEpoch(epoch) == epoch + 1
Alter(start) ==
  /\ group.initialized
  /\ group.epoch < MaxGroupEpoch
  /\ group' = [group EXCEPT !.epoch = AlteredEpoch(@)]
  /\ IsToInitialize(group'.epoch, start)
  /\ answer' = "none"
  /\ UNCHANGED <<stored, leaders, writes, generation, accepted>>

\* A state of this epoch was initialised before: the request is a copy.
IsRepeated(r) == share.known /\ r.epoch = share.epoch

\* A copy may come at any time.
MayCome(n) == n \in DOMAIN requests

\* Who leads the partition stays who it was: nobody who led before may read again.
LeaderAtFirst == Max(fences.leader, 0)
\* Of a start that is known the lag can be told (KAFKA-20034).
CompleteAtFirst(start) == IF start = Unknown THEN -1 ELSE 0

Initialize(n) ==
  /\ MayCome(n)
  /\ LET r == requests[n]
     IN IF r.epoch < fences.epoch
        THEN /\ answer' = "FENCED_STATE_EPOCH"
             /\ UNCHANGED <<stored, group, generation, accepted>>
        ELSE /\ answer' = "NONE"
             /\ group' = [group EXCEPT !.initialized = TRUE]
             /\ generation' = n
             /\ accepted' = IF generation = n THEN accepted ELSE {}
             /\ IF IsRepeated(r) THEN UNCHANGED stored
                ELSE Stored(Snapshot(r.epoch, LeaderAtFirst, r.start, CompleteAtFirst(r.start),
                                     NoShare.rec), FALSE)
  /\ UNCHANGED <<requests, leaders, writes>>

\* The group is empty. A tombstone: nothing of the state is left. The group's epoch stays, unless
\* the group is deleted, too.
EpochAfterDelete == group.epoch
Delete ==
  /\ Deletions
  /\ group.initialized
  /\ group' = [epoch |-> EpochAfterDelete, initialized |-> FALSE]
  /\ answer' = "NONE"
  /\ share' = NoShare /\ fences' = NoFences /\ complete' = 0 /\ updates' = Unknown
  /\ cold' = FALSE /\ log' = <<>>
  /\ generation' = 0 /\ accepted' = {}
  /\ UNCHANGED <<requests, leaders, writes>>

-------------------------------------------------------------------------------
(***************************************************************************)
(* The leaders of the partition.                                           *)
(***************************************************************************)
\* A record with nothing new: the leader's epoch is raised (KAFKA-17796).
Batchless == NoShare.rec
AllOf(rec, start) == Combined(share.rec, rec, start)
RaisesFence(l) == l # fences.leader
Recorded(epoch, leader, start, done, rec) ==
  IF Max(updates, 0) >= UpdatesPerSnapshot \/ epoch > share.epoch
  THEN Snapshot(epoch, leader, start, done, AllOf(rec, start))
  ELSE Update(leader, start, done, Combined(NoShare.rec, rec, start))

Read(l) ==
  /\ ~leaders[l].alive
  /\ IF ~share.known
     THEN answer' = "INVALID_REQUEST" /\ UNCHANGED <<stored, leaders>>
     ELSE IF l < fences.leader
     THEN answer' = "FENCED_LEADER_EPOCH" /\ UNCHANGED <<stored, leaders>>
     ELSE /\ answer' = "NONE"
          /\ leaders' = [leaders EXCEPT ![l] =
               [alive |-> TRUE, epoch |-> share.epoch, generation |-> generation,
                start |-> Max(share.start, 0), rec |-> share.rec]]
          /\ IF RaisesFence(l)
             THEN Stored(Recorded(share.epoch, l, share.start, complete, Batchless), FALSE)
             ELSE UNCHANGED stored
  /\ UNCHANGED <<group, requests, writes, generation, accepted>>

\* A member was given a record, and has acknowledged it. The start passes what is settled.
StateOf(type, count) ==
  CASE type = "ACCEPT" -> "ACKNOWLEDGED"
    [] type = "REJECT" -> "ARCHIVED"
    [] OTHER -> IF count >= DeliveryLimit THEN "ARCHIVED" ELSE "AVAILABLE"
StartAfter(rec, start) ==
  CHOOSE s \in start..Records :
    /\ \A o \in start..(s - 1) : rec[o].state \in Terminal
    /\ s < Records => rec[s].state \notin Terminal
Acknowledge(l, o, type) ==
  LET leader == leaders[l]
      count == leader.rec[o].count + 1
      after == [leader.rec EXCEPT ![o] = [state |-> StateOf(type, count), count |-> count]]
      start == StartAfter(after, leader.start)
  IN /\ leader.alive
     /\ Len(writes) < MaxWrites
     /\ o >= leader.start /\ leader.rec[o].state \notin Terminal
     /\ leaders' = [leaders EXCEPT ![l].rec = after, ![l].start = start]
     /\ writes' = Append(writes,
          [leader |-> l, epoch |-> leader.epoch, generation |-> leader.generation,
           start |-> start, complete |-> Cardinality(Settled(after, start)),
           offset |-> o, state |-> after[o].state, count |-> count])
     /\ answer' = "none"
     /\ UNCHANGED <<stored, group, requests, generation, accepted>>

\* generateShareStateRecord: neither goes back (MINOR #23074, #23112).
StartOfWrite(w) == Max(w.start, share.start)
CompleteOfWrite(w) ==
  IF w.start = share.start THEN Max(w.complete, complete)
  ELSE IF w.start < share.start THEN complete ELSE w.complete
\* A write moves no epoch (KAFKA-19456): only who reads raises the leader's.
LeaderOfWrite(leader) == share.leader
EpochOfWrite(epoch) == share.epoch

IsOfBefore(w) == w.epoch < fences.epoch
ErrorOfWrite(w) ==
  IF ~share.known THEN "INVALID_REQUEST"
  ELSE IF w.leader < fences.leader THEN "FENCED_LEADER_EPOCH"
  ELSE IF IsOfBefore(w) THEN "FENCED_STATE_EPOCH"
  ELSE "NONE"
Written(w) ==
  LET new == [NoShare.rec EXCEPT ![w.offset] = [state |-> w.state, count |-> w.count]]
  IN Stored(Recorded(EpochOfWrite(w.epoch), LeaderOfWrite(w.leader), StartOfWrite(w),
                     CompleteOfWrite(w), new), FALSE)
Without(sequence, n) == SubSeq(sequence, 1, n - 1) \o SubSeq(sequence, n + 1, Len(sequence))

\* The n-th write under way arrives; `again`: the persister does not hear the answer, and repeats.
Write(n, again) ==
  /\ n \in DOMAIN writes
  /\ LET w == writes[n]
         error == ErrorOfWrite(w)
     IN /\ answer' = error
        /\ IF error = "NONE" THEN Written(w) ELSE UNCHANGED stored
        /\ writes' = IF again THEN writes ELSE Without(writes, n)
        /\ accepted' = IF ~again /\ error = "NONE" /\ w.generation = generation
                         /\ w.state \in Terminal
                       THEN accepted \cup {w.offset} ELSE accepted
        \* A leader that is fenced ends; one of another time has ended.
        /\ leaders' = IF ~again /\ error # "NONE" /\ leaders[w.leader].generation = w.generation
                      THEN [leaders EXCEPT ![w.leader] = NoLeader] ELSE leaders
  /\ UNCHANGED <<group, requests, generation>>

-------------------------------------------------------------------------------
(***************************************************************************)
(* Time, fail-over, and what nobody should send.                           *)
(***************************************************************************)
\* Once, until another snapshot: share.coordinator.cold.partition.snapshot.interval.ms.
SnapshotCold ==
  /\ ColdSnapshots
  /\ share.known /\ ~cold
  /\ Stored(Snapshot(share.epoch, share.leader, share.start, complete, share.rec), TRUE)
  /\ answer' = "none"
  /\ UNCHANGED <<group, requests, leaders, writes, generation, accepted>>

\* With all of the log, or with what lastRedundantOffset leaves of it. The number of updates is not
\* in the log.
FailOver(pruned) ==
  /\ FailOvers
  /\ share.known
  /\ IF pruned
     THEN /\ share' = Load(log).share
          /\ fences' = Load(log).fences
          /\ updates' = Load(log).updates
     ELSE UNCHANGED <<share, fences, updates>>
  /\ answer' = "none"
  /\ UNCHANGED <<complete, cold, log, group, requests, leaders, writes, generation, accepted>>

\* A sentinel for "no epoch" is no epoch (KAFKA-20694, KAFKA-20743); by which error is left open.
AnswerToForgedRead == "refused"
AnswerToForgedWrite(kind) == "refused"
HandleForged(kind) ==
  /\ kind \in ForgedRequests
  /\ answer' = IF kind = "Read" THEN AnswerToForgedRead ELSE AnswerToForgedWrite(kind)
  /\ IF answer' # "NONE" \/ kind = "Read" THEN UNCHANGED stored
     ELSE IF kind = "Initialize"
     THEN Stored(Snapshot(Unknown, LeaderAtFirst, Unknown, -1, Batchless), FALSE)
     ELSE LET epoch == IF kind = "WriteStateEpoch" THEN Unknown ELSE fences.epoch
              leader == IF kind = "WriteLeaderEpoch" THEN share.leader ELSE fences.leader
          IN Stored(Recorded(EpochOfWrite(epoch), LeaderOfWrite(leader), share.start, complete,
                             Batchless), FALSE)
  /\ UNCHANGED <<group, requests, leaders, writes, generation, accepted>>

-------------------------------------------------------------------------------
Init ==
  /\ share = NoShare /\ complete = 0 /\ fences = NoFences /\ updates = Unknown /\ cold = FALSE
  /\ log = <<>>
  /\ group = [epoch |-> 0, initialized |-> FALSE]
  /\ requests = <<>>
  /\ leaders = [l \in LeaderEpochs |-> NoLeader]
  /\ writes = <<>>
  /\ answer = "none"
  /\ generation = 0 /\ accepted = {}

Next ==
  \/ Join
  \/ \E start \in AlteredTo : Alter(start)
  \/ \E n \in 1..MaxRequests : Initialize(n)
  \/ Delete
  \/ \E l \in LeaderEpochs : Read(l)
  \/ \E l \in LeaderEpochs, o \in Offsets, type \in AckTypes : Acknowledge(l, o, type)
  \/ \E n \in 1..MaxWrites, again \in BOOLEAN : Write(n, again)
  \/ SnapshotCold
  \/ \E pruned \in BOOLEAN : FailOver(pruned)
  \/ \E kind \in ForgedRequests : HandleForged(kind)

-------------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Epochs == 0..MaxGroupEpoch
TypeOK ==
  /\ share.epoch \in {Unknown} \cup Epochs
  /\ share.leader \in {Unknown, 0} \cup LeaderEpochs
  /\ share.start \in {Unknown} \cup 0..Records
  /\ \A o \in Offsets : share.rec[o].count \in 0..DeliveryLimit
  /\ complete \in {-1} \cup 0..Records
  /\ updates \in {Unknown} \cup 0..UpdatesPerSnapshot
  /\ generation \in 0..Len(requests)

\* What a leader was told is acknowledged, no later leader reads as anything else.
AcceptedIsFinal ==
  \A o \in accepted : o < share.start \/ share.rec[o].state \in Terminal

\* The count covers what is stored: DescribeShareGroupOffsets makes the lag of it.
CompleteCovers ==
  share.start # Unknown => complete >= Cardinality(Settled(share.rec, share.start))

\* Nothing below the start is stored.
PrunedBelowStart == \A o \in Offsets : o < share.start => share.rec[o] = NoRecord

\* Memory is what the log loads, and what is left of it.
LoadIsMemory == share.known => Load(log).share = share
LoadKeepsFence == share.known => Load(log).fences = fences

(***************************************************************************)
(* The same for steps.                                                     *)
(***************************************************************************)
\* The state has begun anew: by the epoch of the group, or after a deletion.
IsNew == generation' # generation

\* Who has not read the state of now does not write it.
NoStaleWrite ==
  [][\A n \in 1..MaxWrites, again \in BOOLEAN :
       Write(n, again) /\ answer' = "NONE" => writes[n].generation = generation]_vars

\* The read is the fence: no leader before the one that read last is heard.
ReadFences ==
  [][\A n \in 1..MaxWrites, again \in BOOLEAN :
       Write(n, again) /\ answer' = "NONE" =>
         \A l \in LeaderEpochs :
           leaders[l].alive /\ leaders[l].generation = generation => l <= writes[n].leader]_vars

\* What is stored is the best of all writes: in any order, and repeated.
JoinOfWrites ==
  [][\A n \in 1..MaxWrites, again \in BOOLEAN :
       Write(n, again) /\ answer' = "NONE" =>
         LET w == writes[n]
             new == [NoShare.rec EXCEPT ![w.offset] = [state |-> w.state, count |-> w.count]]
         IN /\ share'.start = Max(share.start, w.start)
            /\ share'.rec = Combined(share.rec, new, share'.start)]_vars

\* Only a new state begins below the start.
StartNeverBack == [][~IsNew => share'.start >= share.start]_vars

\* A request that comes again changes nothing.
RepeatedIsHarmless ==
  [][\A n \in 1..MaxRequests : Initialize(n) /\ generation = n => UNCHANGED stored]_vars

StateEpochRises == [][share.known /\ share'.known => share'.epoch >= share.epoch]_vars

\* A write moves no fence; a fail-over and a deletion are apart.
OnlyReadsFence ==
  [][fences'.leader > fences.leader =>
       \E l \in LeaderEpochs : Read(l) \/ ~share.known]_vars

\* What is refused changes nothing.
RefusedChangesNothing == [][answer' \notin {"NONE", "none"} => UNCHANGED stored]_vars
===============================================================================
