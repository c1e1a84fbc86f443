--------------------------- MODULE LogStorageSteps ---------------------------
(***************************************************************************)
(* One replica's log on its disk, and the work in the background that      *)
(* keeps both in step: retention, DeleteRecords, flushes, checkpoints,     *)
(* files that are deleted later, a stop in order, a process that is        *)
(* killed, a power loss, and the load after each of them.                  *)
(*                                                                         *)
(* What Kafka's scheduler is given is a step of its own here: it runs      *)
(* late, after something newer, or never (whoever stops drops it). Who     *)
(* leads and what a leader of elsewhere sends is environment; this broker  *)
(* is alone in its ISR whenever it leads, as in DirectoryMove.tla.         *)
(*                                                                         *)
(* A power loss takes appended bytes that were not flushed. Truncations    *)
(* and the names of files survive it: a file system with a journal keeps   *)
(* them. Every batch is one record, and a record is its leader epoch.      *)
(*                                                                         *)
(* Left out: compaction (a record that goes needs keys), producers         *)
(* (IdempotentProduce has their snapshots), several log directories        *)
(* (DirectoryMove has them), log.roll.ms, and indexes, which a load        *)
(* rebuilds.                                                               *)
(***************************************************************************)
EXTENDS ReplicationLog

CONSTANTS
  Epochs,          \* leader epochs, consecutive from 0
  Offsets,         \* offsets, from 0; log ends lie here too
  SegmentRecords,  \* segment.bytes, in records
  RetainedRecords, \* retention.bytes, in records; NoLimit keeps all
  WaitingTasks,    \* how many scheduled tasks may wait, from 0
  Events,          \* which of EventKinds happen
  Messages         \* what a peer that is not honest sends: see VerdictOn

NoLimit == -1

EventKinds ==
  {"follow", "truncate", "start anew", "delete records", "retention", "time", "flush",
   "recovery point file", "log start file", "high watermark file", "shutdown", "failing shutdown", "kill", "power loss", "failing load"}

(***************************************************************************)
(* The variables, and the field of the real broker that each stands for.   *)
(*                                                                         *)
(* variable        | field                                                 *)
(* ----------------+------------------------------------------------------ *)
(* role            | Partition.isLeader; "down": there is no process       *)
(* leaderEpoch     | Partition.leaderEpoch; -1 if down                     *)
(* segments        | the segment files: base offset, records, how many of  *)
(*                 | them an fsync has covered, and whether a torn batch   *)
(*                 | lies behind them                                      *)
(* logStart, highWatermark, recoveryPoint, epochCache                      *)
(*                 | fields of UnifiedLog; 0 and none if down              *)
(* tasks           | names of the tasks that KafkaScheduler has not run    *)
(* deleted         | bases of the files `.deleted`                         *)
(* epochFile       | leader-epoch-checkpoint                               *)
(* recoveryPointFile, logStartFile, highWatermarkFile                      *)
(*                 | the replica's entry in the directory's checkpoint; -1 *)
(*                 | if there is none                                      *)
(* cleanShutdown   | .kafka_cleanshutdown is there                         *)
(* answer          | what the last step's message was answered             *)
(* ----------------+------------------------------------------------------ *)
(* An implementation does not have these:                                  *)
(* arguments       | of each task: an offset, or bases of files            *)
(* lastEpoch       | the controller's leader epoch                         *)
(* aged            | records below it are older than retention.ms          *)
(* stopped         | the log when the process ended: its start, what it    *)
(*                 | was not to lose, and its records                      *)
(* droppedFlush    | a flush of the epoch cache was dropped by a stop      *)
(* deletedBelow    | the greatest log start so far                         *)
(***************************************************************************)
VARIABLES role, leaderEpoch, segments, logStart, highWatermark, recoveryPoint, epochCache,
          tasks, deleted, epochFile, recoveryPointFile, logStartFile, highWatermarkFile,
          cleanShutdown, answer, arguments, lastEpoch, aged, stopped, droppedFlush,
          deletedBelow

elected     == <<role, leaderEpoch, lastEpoch>>
log         == <<segments, logStart, highWatermark, recoveryPoint, epochCache>>
background  == <<tasks, arguments, deleted>>
checkpoints == <<recoveryPointFile, logStartFile, highWatermarkFile>>
disk        == <<epochFile, checkpoints, cleanShutdown>>
ghosts      == <<aged, stopped, droppedFlush, deletedBelow>>
vars        == <<elected, log, background, disk, answer, ghosts>>

EpochsOrNone  == Epochs \union {NoEpoch}
OffsetsOrNone == Offsets \union {NoOffset}

(***************************************************************************)
(* Segments as values.                                                     *)
(***************************************************************************)
Last(s) == s[Len(s)]

EmptySegment(base) == [base |-> base, records |-> <<>>, durable |-> 0, torn |-> FALSE]

SegmentEnd(segment) == segment.base + Len(segment.records)
EndOf(segs)         == SegmentEnd(Last(segs))
LogEndOffset        == EndOf(segments)

RECURSIVE RecordsOf(_)
RecordsOf(segs) == IF segs = <<>> THEN <<>> ELSE Head(segs).records \o RecordsOf(Tail(segs))

\* As ReplicationLog has a log: its records from an offset on.
From(segs, offset) ==
  [logStart |-> offset,
   log |-> SubSeq(RecordsOf(segs), offset - segs[1].base + 1, Len(RecordsOf(segs)))]

CutSegment(segment, offset) ==
  LET kept == Min(Len(segment.records), offset - segment.base)
  IN  [segment EXCEPT !.records = SubSeq(segment.records, 1, kept),
                      !.durable = Min(segment.durable, kept)]

Bases(segs) == {segs[i].base : i \in 1..Len(segs)}

\* The segments that begin at or below the offset.
UpTo(segs, offset) == SelectSeq(segs, LAMBDA s : s.base <= offset)

\* LocalLog.truncateTo: segments that begin above the offset go, the last one is cut.
CutSegments(segs, offset) ==
  LET kept == UpTo(segs, offset)
  IN  [kept EXCEPT ![Len(kept)] = CutSegment(Last(kept), offset)]

\* UnifiedLog.flush: from the segment that holds the recovery point, those that begin below `end`.
Flushed(segs, from, end) ==
  [i \in 1..Len(segs) |->
    IF segs[i].base < end /\ (i = Len(segs) \/ segs[i + 1].base > from)
    THEN [segs[i] EXCEPT !.durable = Len(segs[i].records)] ELSE segs[i]]

(***************************************************************************)
(* What a step changes in the running log, as a value.                     *)
(***************************************************************************)
Now == [segments |-> segments, start |-> logStart, hw |-> highWatermark, rp |-> recoveryPoint,
        cache |-> epochCache, tasks |-> tasks, arguments |-> arguments, deleted |-> deleted,
        file |-> epochFile]

\* A task keeps no copy of the epoch cache.
Copied(cache) == <<>>

\* KafkaScheduler.scheduleOnce
Scheduled(s, name, offset, bases) ==
  [s EXCEPT !.tasks = Append(s.tasks, name),
            !.arguments = Append(s.arguments, [offset |-> offset, bases |-> bases,
                                               cache |-> Copied(s.cache)])]

\* LeaderEpochFileCache.truncateFromEndAsyncFlush and truncateFromStartAsyncFlush (KAFKA-16541). The
\* latter writes the file also if the entry at the offset stays as it was.
WithFlush(s, cache) ==
  Scheduled([s EXCEPT !.cache = cache], "leader-epoch-cache-flush", NoOffset, {})

WithEpochsBelow(s, offset) ==
  LET cache == CacheTruncateFromEnd(s.cache, offset)
  IN  IF cache = s.cache THEN s ELSE WithFlush(s, cache)

WithEpochsFrom(s, offset) ==
  IF s.cache = <<>> \/ s.cache[1].start > offset THEN s
  ELSE WithFlush(s, CacheTruncateFromStart(s.cache, offset))

\* LeaderEpochFileCache.assign: written before anything else goes on.
WithEpoch(s, epoch, start) ==
  LET cache == CacheAssign(s.cache, epoch, start)
  IN  IF cache = s.cache THEN s ELSE [s EXCEPT !.cache = cache, !.file = cache]

\* LocalLog.removeAndDeleteSegments: renamed at once, deleted later.
WithoutFiles(s, bases) ==
  IF bases = {} THEN s
  ELSE Scheduled([s EXCEPT !.deleted = s.deleted \union bases], "delete-file", NoOffset, bases)

\* LocalLog.updateLogEndOffset: a recovery point above the log end comes down to it. There is none,
\* as long as FlushedUpTo is what it is.
WithEnd(s) == [s EXCEPT !.rp = Min(s.rp, EndOf(s.segments))]

\* UnifiedLog.roll
Rolled(s) ==
  LET end == EndOf(s.segments)
  IN  IF Last(s.segments).base = end THEN s
      ELSE Scheduled(WithEnd([s EXCEPT !.segments = Append(s.segments, EmptySegment(end))]),
                     "flush-log", end, {})

\* UnifiedLog.append, of one record: the epoch's entry, the roll, the record.
IsFull(segment) == Len(segment.records) = SegmentRecords

Appended(s, epoch) ==
  LET assigned == WithEpoch(s, epoch, EndOf(s.segments))
      rolled   == IF IsFull(Last(s.segments)) THEN Rolled(assigned) ELSE assigned
      active   == Last(rolled.segments)
  IN  WithEnd([rolled EXCEPT !.segments[Len(rolled.segments)] =
                 [active EXCEPT !.records = Append(active.records, epoch)]])

\* UnifiedLog.maybeIncrementLogStartOffset, at most up to the high watermark. Kafka's
\* updateLogStartOffset lifts a recovery point that is below it, at a load too; see the model of it.
RecoveryPointAtLogStart(rp, offset) == rp

WithLogStart(s, offset) ==
  IF offset <= s.start THEN s
  ELSE WithEpochsFrom(
         [s EXCEPT !.start = offset, !.rp = RecoveryPointAtLogStart(s.rp, offset)], offset)

\* UnifiedLog.deletableSegments: the oldest that a rule names, up to the high watermark.
MayGo(s, i) ==
  IF i = Len(s.segments)
  THEN s.segments[i].records # <<>> /\ EndOf(s.segments) <= s.hw
  ELSE s.segments[i + 1].base <= s.hw

Deletable(s, Names(_)) ==
  LET goes == {n \in 0..Len(s.segments) : \A i \in 1..n : Names(i) /\ MayGo(s, i)}
  IN  CHOOSE n \in goes : \A m \in goes : m <= n

\* UnifiedLog.deleteSegments: at least one segment stays; the log start goes first, then the files.
WithoutSegments(s, count) ==
  IF count = 0 THEN s
  ELSE LET rolled == IF count = Len(s.segments) THEN Rolled(s) ELSE s
           kept   == SubSeq(rolled.segments, count + 1, Len(rolled.segments))
           moved  == WithLogStart(rolled, kept[1].base)
       IN  WithoutFiles([moved EXCEPT !.segments = kept],
                        Bases(SubSeq(rolled.segments, 1, count)))

\* The three rules, one after the other: log start, size, time.
BelowLogStart(s, i) == i < Len(s.segments) /\ s.segments[i + 1].base <= s.start

IsSurplus(s, i) ==
  /\ RetainedRecords # NoLimit
  /\ EndOf(s.segments) - SegmentEnd(s.segments[i]) >= RetainedRecords

IsOld(s, i) == SegmentEnd(s.segments[i]) <= aged

AfterLogStart(s) == WithoutSegments(s, Deletable(s, LAMBDA i : BelowLogStart(s, i)))
AfterSize(s)     == WithoutSegments(s, Deletable(s, LAMBDA i : IsSurplus(s, i)))
AfterTime(s)     == WithoutSegments(s, Deletable(s, LAMBDA i : IsOld(s, i)))

\* UnifiedLog.truncateTo: what is cut is neither committed nor flushed any more. At the log end only
\* an epoch without records goes (KAFKA-10706).
LoweredRecoveryPoint(rp, offset) == Min(rp, offset)

TruncatedTo(s, offset) ==
  LET kept == CutSegments(s.segments, offset)
      cut  == WithoutFiles([s EXCEPT !.segments = kept, !.rp = LoweredRecoveryPoint(s.rp, offset)],
                           Bases(s.segments) \ Bases(kept))
  IN  WithEpochsBelow(IF offset = EndOf(s.segments) THEN s ELSE cut, offset)

\* UnifiedLog.truncateFullyAndStartAt: the last segment goes by itself, for the new one is made before
\* that. The cache's file is cleared at once. The recovery point stays where it was, below the new
\* log: there is nothing to flush up to it.
StartedAnew(s, offset) ==
  LET front   == SubSeq(s.segments, 1, Len(s.segments) - 1)
      emptied == WithoutFiles(WithoutFiles(s, Bases(front)), {Last(s.segments).base})
  IN  WithEnd([emptied EXCEPT !.segments = <<EmptySegment(offset)>>, !.start = offset,
                              !.hw = offset, !.cache = <<>>, !.file = <<>>])

(***************************************************************************)
(* Parts of actions.                                                       *)
(***************************************************************************)
Up        == role # "down"
Leads     == role = "leader"
Follows   == role = "follower"

Becomes(s) ==
  /\ Len(s.tasks) \in WaitingTasks
  /\ segments' = s.segments /\ logStart' = s.start /\ highWatermark' = s.hw
  /\ recoveryPoint' = s.rp /\ epochCache' = s.cache
  /\ tasks' = s.tasks /\ arguments' = s.arguments /\ deleted' = s.deleted
  /\ epochFile' = s.file
  /\ deletedBelow' = Max(deletedBelow, s.start)

Answers(error) == answer' = error

\* A step of the running log that writes no checkpoint.
LogStep(s) ==
  /\ Becomes(s)
  /\ Answers("NONE")
  /\ UNCHANGED <<elected, checkpoints, cleanShutdown, stopped, droppedFlush>>

CheckpointStep ==
  /\ Answers("NONE")
  /\ UNCHANGED <<elected, log, background, epochFile, cleanShutdown, ghosts>>

(***************************************************************************)
(* The log serves.                                                         *)
(***************************************************************************)

\* Partition.makeLeader: where the epoch begins is written, and all is committed.
AsLeader(s, epoch) ==
  [WithEpoch(s, epoch, EndOf(s.segments)) EXCEPT !.hw = EndOf(s.segments)]

Elects(newRole, s) ==
  /\ lastEpoch + 1 \in Epochs
  /\ lastEpoch' = lastEpoch + 1 /\ leaderEpoch' = lastEpoch + 1
  /\ role' = newRole
  /\ Becomes(IF newRole = "leader" THEN AsLeader(s, lastEpoch + 1) ELSE s)

Elect(newRole) ==
  /\ Up
  /\ newRole = "leader" \/ "follow" \in Events
  /\ Elects(newRole, Now)
  /\ Answers("NONE")
  /\ UNCHANGED <<checkpoints, cleanShutdown, aged, stopped, droppedFlush>>

\* Partition.appendRecordsToLeader
AppendAsLeader ==
  /\ Leads /\ LogEndOffset + 1 \in Offsets
  /\ LET s == Appended(Now, leaderEpoch) IN LogStep([s EXCEPT !.hw = EndOf(s.segments)])
  /\ UNCHANGED aged

\* ReplicaFetcherThread.processPartitionData: a record, and whether it is committed by now.
AppendAsFollower(e, commits) ==
  /\ Follows /\ LogEndOffset + 1 \in Offsets
  /\ LatestEpoch(epochCache) <= e /\ e <= leaderEpoch
  /\ LET s == Appended(Now, e)
     IN  LogStep([s EXCEPT !.hw = IF commits THEN EndOf(s.segments) ELSE s.hw])
  /\ UNCHANGED aged

\* The same, of an answer without records whose log start is above this one's.
LearnLogStart(o) ==
  /\ "delete records" \in Events
  /\ Follows /\ logStart < o /\ o <= highWatermark
  /\ LogStep(WithLogStart(Now, o))
  /\ UNCHANGED aged

\* LogManager.truncateTo: the log, then the recovery point's checkpoint. At the log end nothing is
\* checkpointed.
CheckpointedAtTruncation(s) == s.rp

Truncate(o) ==
  /\ "truncate" \in Events
  /\ Follows /\ highWatermark <= o /\ o <= LogEndOffset
  /\ LET s == TruncatedTo(Now, o)
     IN  /\ s # Now
         /\ Becomes(s)
         /\ recoveryPointFile' = IF o = LogEndOffset THEN recoveryPointFile
                                 ELSE CheckpointedAtTruncation(s)
  /\ aged' = Min(aged, o)
  /\ Answers("NONE")
  /\ UNCHANGED <<elected, logStartFile, highWatermarkFile, cleanShutdown, stopped, droppedFlush>>

\* LogManager.truncateFullyAndStartAt: the leader has nothing before `o` any more, and this log
\* ends before it. The log start's checkpoint stays as it was.
StartAnew(o) ==
  /\ "start anew" \in Events
  /\ Follows /\ LogEndOffset < o
  /\ LET s == StartedAnew(Now, o) IN Becomes(s) /\ recoveryPointFile' = s.rp
  /\ Answers("NONE")
  /\ UNCHANGED <<elected, logStartFile, highWatermarkFile, cleanShutdown, aged, stopped,
                 droppedFlush>>

\* Partition.deleteRecordsOnLeader
DeleteRecords(o) ==
  /\ "delete records" \in Events
  /\ Leads /\ logStart < o /\ o <= highWatermark
  /\ LogStep(WithLogStart(Now, o))
  /\ UNCHANGED aged

(***************************************************************************)
(* Work in the background. A step that would change nothing is none.       *)
(***************************************************************************)

\* retention.ms goes by.
TimePasses ==
  /\ "time" \in Events /\ Up /\ aged # LogEndOffset
  /\ aged' = LogEndOffset
  /\ Answers("NONE")
  /\ UNCHANGED <<elected, log, background, disk, stopped, droppedFlush, deletedBelow>>

\* kafka-log-retention: LogManager.cleanupLogs
Retained == AfterTime(AfterSize(AfterLogStart(Now)))

Retain ==
  /\ "retention" \in Events /\ Up /\ Retained # Now
  /\ LogStep(Retained)
  /\ UNCHANGED aged

\* kafka-log-flusher: LogManager.flushDirtyLogs
Flush ==
  /\ "flush" \in Events /\ Up /\ recoveryPoint < LogEndOffset
  /\ LogStep([Now EXCEPT !.segments = Flushed(segments, recoveryPoint, LogEndOffset),
                         !.rp = LogEndOffset])
  /\ UNCHANGED aged

\* kafka-recovery-point-checkpoint, kafka-log-start-offset-checkpoint, highwatermark-checkpoint
CheckpointRecoveryPoint ==
  /\ "recovery point file" \in Events /\ Up /\ recoveryPointFile # recoveryPoint
  /\ recoveryPointFile' = recoveryPoint
  /\ UNCHANGED <<logStartFile, highWatermarkFile>>
  /\ CheckpointStep

\* Only a log start that no file's name says.
NamedLogStart == IF logStart > segments[1].base THEN logStart ELSE NoOffset

CheckpointLogStart ==
  /\ "log start file" \in Events /\ Up /\ logStartFile # NamedLogStart
  /\ logStartFile' = NamedLogStart
  /\ UNCHANGED <<recoveryPointFile, highWatermarkFile>>
  /\ CheckpointStep

CheckpointHighWatermark ==
  /\ "high watermark file" \in Events /\ Up /\ highWatermarkFile # highWatermark
  /\ highWatermarkFile' = highWatermark
  /\ UNCHANGED <<recoveryPointFile, logStartFile>>
  /\ CheckpointStep

\* What a task does. The flush of a roll may come after a truncation: Kafka (3.8, 4.4) then sets
\* the recovery point above the log end; see the model of it.
FlushedUpTo(offset) == Min(offset, LogEndOffset)

\* The flush of the epoch cache writes what the cache holds when it runs.
WrittenEpochs(argument) == epochCache

AfterTask(i) ==
  LET a    == arguments[i]
      Without(q) == SubSeq(q, 1, i - 1) \o SubSeq(q, i + 1, Len(q))
      done == [Now EXCEPT !.tasks = Without(tasks), !.arguments = Without(arguments)]
  IN  CASE tasks[i] = "flush-log" ->
             IF a.offset <= recoveryPoint THEN done
             ELSE [done EXCEPT !.segments = Flushed(segments, recoveryPoint, a.offset),
                               !.rp = FlushedUpTo(a.offset)]
        [] tasks[i] = "leader-epoch-cache-flush" -> [done EXCEPT !.file = WrittenEpochs(a)]
        [] tasks[i] = "delete-file" -> [done EXCEPT !.deleted = deleted \ a.bases]

RunTask(i) ==
  /\ Up /\ i <= Len(tasks)
  /\ LogStep(AfterTask(i))
  /\ UNCHANGED aged

(***************************************************************************)
(* The process ends.                                                       *)
(***************************************************************************)
\* What must not be lost: what was flushed, from the log start on.
Safe == [start |-> logStart, below |-> Max(logStart, recoveryPoint), log |-> RecordsOf(segments),
         base |-> segments[1].base]

NothingStopped == [start |-> 0, below |-> 0, log |-> <<>>, base |-> 0]

\* Its memory is gone, and what its scheduler has not run.
Ends(newSegments) ==
  /\ role' = "down" /\ leaderEpoch' = NoEpoch
  /\ segments' = newSegments
  /\ logStart' = 0 /\ highWatermark' = 0 /\ recoveryPoint' = 0 /\ epochCache' = <<>>
  /\ tasks' = <<>> /\ arguments' = <<>>
  /\ stopped' = Safe
  /\ droppedFlush' =
       (droppedFlush \/ \E i \in 1..Len(tasks) : tasks[i] = "leader-epoch-cache-flush")
  /\ Answers("NONE")
  /\ UNCHANGED <<deleted, epochFile, lastEpoch, aged, deletedBelow>>

Durable(segs) == [i \in 1..Len(segs) |-> [segs[i] EXCEPT !.durable = Len(segs[i].records)]]

\* ReplicaManager.shutdown, then LogManager.shutdown: flush, checkpoints, the mark.
Shutdown ==
  /\ "shutdown" \in Events /\ Up
  /\ Ends(Durable(segments))
  /\ recoveryPointFile' = LogEndOffset /\ logStartFile' = NamedLogStart
  /\ highWatermarkFile' = highWatermark /\ cleanShutdown' = TRUE

\* The log cannot be flushed: of its directory nothing is checkpointed or marked (KAFKA-19221).
MarkOfFailingShutdown == FALSE

FailingShutdown ==
  /\ "failing shutdown" \in Events /\ Up
  /\ Ends(segments)
  /\ highWatermarkFile' = highWatermark /\ cleanShutdown' = MarkOfFailingShutdown
  /\ UNCHANGED <<recoveryPointFile, logStartFile>>

\* The process is killed: what it has written is in the machine.
Kill ==
  /\ "kill" \in Events /\ Up
  /\ Ends(segments)
  /\ UNCHANGED <<checkpoints, cleanShutdown>>

\* The machine dies: of one segment's records that were not flushed the first `kept` survive. Behind
\* them lies the part of a batch, unless it is the log's last file. What survives is on the disk.
Lost(i, kept, torn) ==
  LET s == segments[i]
  IN  Durable([segments EXCEPT ![i] = [s EXCEPT !.records = SubSeq(s.records, 1, kept),
                                                !.torn = torn]])

MayLose(i, kept, torn) ==
  /\ segments[i].durable <= kept /\ kept < Len(segments[i].records)
  /\ torn \/ i = Len(segments)

LosePower(i, kept, torn) ==
  /\ "power loss" \in Events /\ Up
  /\ i <= Len(segments) /\ MayLose(i, kept, torn)
  /\ Ends(Lost(i, kept, torn))
  /\ UNCHANGED <<checkpoints, cleanShutdown>>

(***************************************************************************)
(* The process starts: LogManager.loadLog, LogLoader.load.                 *)
(***************************************************************************)
FileOffset(o) == Max(0, o)

\* From the recovery point on each segment is checked: a torn batch is cut, and what follows goes.
IsChecked(i, clean) ==
  ~clean /\ (i = Len(segments) \/ segments[i + 1].base > FileOffset(recoveryPointFile))

KeptBehind(bad) == IF bad = {} THEN Len(segments) ELSE Smallest(bad)

Sound(clean) ==
  LET bad == {i \in 1..Len(segments) : IsChecked(i, clean) /\ segments[i].torn}
  IN  [i \in 1..KeptBehind(bad) |-> [segments[i] EXCEPT !.torn = @ /\ ~IsChecked(i, clean)]]

\* A log that ends before its checkpointed start begins anew there.
LoadedSegments(clean) ==
  IF EndOf(Sound(clean)) < logStartFile THEN <<EmptySegment(logStartFile)>> ELSE Sound(clean)

LoadedCache(clean) ==
  IF EndOf(Sound(clean)) < logStartFile THEN <<>> ELSE epochFile

LoadedRecoveryPoint(clean, end) ==
  IF clean THEN end ELSE Min(FileOffset(recoveryPointFile), end)

\* LogLoader.removeAndDeleteSegmentsAsync: what a load gives up goes later, as any file does. First
\* the segments behind a bad one, then all of a log that ends before its checkpointed start.
WithoutLost(s, clean) ==
  LET sound  == Sound(clean)
      behind == Bases(segments) \ Bases(sound)
  IN  WithoutFiles(WithoutFiles(s, behind),
                   IF EndOf(sound) < logStartFile THEN Bases(sound) ELSE {})

\* What was to be deleted is deleted now. The cache is cut at the log start's checkpoint, which may
\* be less than the log start.
Loaded(clean) ==
  LET segs  == LoadedSegments(clean)
      end   == EndOf(segs)
      cache == LoadedCache(clean)
      start == Max(FileOffset(logStartFile), segs[1].base)
      new   == [segments |-> segs,
                start |-> start,
                hw |-> Max(start, Min(FileOffset(highWatermarkFile), end)),
                rp |-> RecoveryPointAtLogStart(LoadedRecoveryPoint(clean, end), start),
                cache |-> cache, tasks |-> <<>>, arguments |-> <<>>, deleted |-> {},
                file |-> IF cache = <<>> THEN cache ELSE epochFile]
  IN  WithEpochsFrom(WithEpochsBelow(WithoutLost(new, clean), end), FileOffset(logStartFile))

\* KAFKA-10471: the mark goes before anything is loaded.
MarkAfterLoad == FALSE

Start(newRole) ==
  /\ role = "down"
  /\ newRole = "leader" \/ "follow" \in Events
  /\ Elects(newRole, Loaded(cleanShutdown))
  /\ cleanShutdown' = MarkAfterLoad
  /\ aged' = Min(aged, EndOf(LoadedSegments(cleanShutdown)))
  /\ stopped' = NothingStopped
  /\ Answers("NONE")
  /\ UNCHANGED <<checkpoints, droppedFlush>>

\* A log cannot be read: its directory fails, and with it the broker. Only the mark is gone.
FailToLoad ==
  /\ "failing load" \in Events /\ role = "down" /\ cleanShutdown
  /\ cleanShutdown' = MarkAfterLoad
  /\ deleted' = {}
  /\ Answers("NONE")
  /\ UNCHANGED <<elected, log, tasks, arguments, epochFile, checkpoints, ghosts>>

(***************************************************************************)
(* What no honest peer sends: it is refused, and nothing changes.          *)
(***************************************************************************)
ToLeader ==
  [CorruptBatch |-> "CORRUPT_MESSAGE", BatchOfOtherOffset |-> "INVALID_RECORD",
   DeleteAboveHighWatermark |-> "OFFSET_OUT_OF_RANGE", DeleteBelowZero |-> "OFFSET_OUT_OF_RANGE",
   FetchAboveLogEnd |-> "OFFSET_OUT_OF_RANGE", FetchBelowLogStart |-> "OFFSET_OUT_OF_RANGE",
   FetchOfLaterEpoch |-> "UNKNOWN_LEADER_EPOCH"]

ToFollower ==
  [CorruptBatch |-> "CORRUPT_MESSAGE", OverlappingBatch |-> "UNEXPECTED_APPEND_OFFSET",
   DisorderedBatches |-> "OFFSETS_OUT_OF_ORDER", LogStartAboveHighWatermark |-> "OFFSET_OUT_OF_RANGE",
   DeleteRecordsOfFollower |-> "NOT_LEADER_OR_FOLLOWER"]

CanBeSent(message) ==
  CASE message = "OverlappingBatch" -> LogEndOffset > logStart
    [] OTHER -> TRUE

VerdictOn(message) == IF Leads THEN ToLeader[message] ELSE ToFollower[message]

AfterRefusal(message) == Now

Refuse(message) ==
  /\ Up
  /\ message \in DOMAIN (IF Leads THEN ToLeader ELSE ToFollower)
  /\ CanBeSent(message)
  /\ Answers(VerdictOn(message))
  /\ Becomes(AfterRefusal(message))
  /\ UNCHANGED <<elected, checkpoints, cleanShutdown, aged, stopped, droppedFlush>>

(***************************************************************************)
(* All together.                                                           *)
(***************************************************************************)
\* A broker that leads in epoch 0, without a record.
Init ==
  /\ role = "leader" /\ leaderEpoch = 0 /\ lastEpoch = 0
  /\ segments = <<EmptySegment(0)>>
  /\ logStart = 0 /\ highWatermark = 0 /\ recoveryPoint = 0
  /\ epochCache = <<[epoch |-> 0, start |-> 0]>> /\ epochFile = epochCache
  /\ tasks = <<>> /\ arguments = <<>> /\ deleted = {}
  /\ recoveryPointFile = NoOffset /\ logStartFile = NoOffset /\ highWatermarkFile = NoOffset
  /\ cleanShutdown = FALSE
  /\ answer = "NONE"
  /\ aged = 0 /\ stopped = NothingStopped /\ droppedFlush = FALSE
  /\ deletedBelow = 0

Roles   == {"leader", "follower"}
Numbers == Offsets \ {0}

Next ==
  \/ \E newRole \in Roles : Elect(newRole)
  \/ AppendAsLeader
  \/ \E e \in Epochs, commits \in BOOLEAN : AppendAsFollower(e, commits)
  \/ \E o \in Offsets : LearnLogStart(o)
  \/ \E o \in Offsets : Truncate(o)
  \/ \E o \in Offsets : StartAnew(o)
  \/ \E o \in Offsets : DeleteRecords(o)
  \/ TimePasses
  \/ Retain
  \/ Flush
  \/ CheckpointRecoveryPoint
  \/ CheckpointLogStart
  \/ CheckpointHighWatermark
  \/ \E i \in WaitingTasks \ {0} : RunTask(i)
  \/ Shutdown
  \/ FailingShutdown
  \/ Kill
  \/ \E i \in Numbers, kept \in Offsets, torn \in BOOLEAN : LosePower(i, kept, torn)
  \/ \E newRole \in Roles : Start(newRole)
  \/ FailToLoad
  \/ \E message \in Messages : Refuse(message)

Spec == Init /\ [][Next]_vars
=============================================================================
