------------------------------ MODULE LogStorage ------------------------------
(***************************************************************************)
(* A log on its disk, and the work in the background around it: what must  *)
(* hold, each with what it means to a user. Below it: LogStorageSteps (the *)
(* steps), ReplicationLog (logs and epoch caches as values).               *)
(***************************************************************************)
EXTENDS LogStorageSteps

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
Caches == UNION {[1..n -> [epoch : Epochs, start : Offsets]] : n \in 0..Cardinality(Epochs)}

Segment ==
  [base : Offsets, records : UNION {[1..n -> Epochs] : n \in 0..SegmentRecords},
   durable : Offsets, torn : BOOLEAN]

Tasks  == {"flush-log", "leader-epoch-cache-flush", "delete-file"}
Errors ==
  {"NONE"} \union {ToLeader[m] : m \in DOMAIN ToLeader}
           \union {ToFollower[m] : m \in DOMAIN ToFollower}

TypeOK ==
  /\ role \in {"leader", "follower", "down"}
  /\ leaderEpoch \in EpochsOrNone
  /\ \A i \in 1..Len(segments) :
       segments[i] \in Segment /\ segments[i].durable <= Len(segments[i].records)
  /\ logStart \in Offsets /\ highWatermark \in Offsets /\ recoveryPoint \in Offsets
  /\ epochCache \in Caches /\ epochFile \in Caches
  /\ Len(tasks) \in WaitingTasks /\ Len(arguments) = Len(tasks)
  /\ \A i \in 1..Len(tasks) :
       /\ tasks[i] \in Tasks
       /\ arguments[i].offset \in OffsetsOrNone /\ arguments[i].bases \in SUBSET Offsets
       /\ arguments[i].cache = <<>>
  /\ deleted \in SUBSET Offsets
  /\ recoveryPointFile \in OffsetsOrNone
  /\ logStartFile \in OffsetsOrNone
  /\ highWatermarkFile \in OffsetsOrNone
  /\ cleanShutdown \in BOOLEAN
  /\ answer \in Errors
  /\ lastEpoch \in Epochs
  /\ aged \in Offsets
  /\ droppedFlush \in BOOLEAN
  /\ deletedBelow \in Offsets

(***************************************************************************)
(* Invariants.                                                             *)
(***************************************************************************)

\* A consumer is told of offsets in this order, and finds a record at each of them.
OrderedOffsets == Up => logStart <= highWatermark /\ highWatermark <= LogEndOffset

\* No offset lies between two files, and the first one holds the log start: what is read goes on.
SegmentsCover ==
  Up =>
    /\ segments[1].base <= logStart
    /\ \A i \in 1..(Len(segments) - 1) : SegmentEnd(segments[i]) = segments[i + 1].base
    /\ \A i \in 1..Len(segments) : ~segments[i].torn

\* What a load need not check is on the disk: a power loss takes none of it. Nor does it claim
\* records that are not written yet.
AreDurable(below) ==
  \A i \in 1..Len(segments) :
    segments[i].durable >= Min(Len(segments[i].records), below - segments[i].base)

RecoveryPointIsFlushed == Up => recoveryPoint <= LogEndOffset /\ AreDurable(recoveryPoint)

\* The same of the file that the next process reads.
CheckpointIsFlushed == Up => AreDurable(recoveryPointFile)

\* After a stop in order there is nothing to lose, and no batch to check.
MarkMeansAll ==
  cleanShutdown =>
    /\ role = "down"
    /\ \A i \in 1..Len(segments) :
         segments[i].durable = Len(segments[i].records) /\ ~segments[i].torn
    /\ recoveryPointFile = LogEndOffset

\* The epoch cache, by which replicas truncate, names the epochs of the records; a last entry may
\* be of an epoch in which nothing is written. It need not name those of records that were deleted,
\* and came back with a process that did not know.
CacheMatches(cache, from) ==
  LET whole == CacheOf(From(segments, from))
      known == CacheTruncateFromStart(cache, from)
      n     == Len(whole) + 1
  IN  \/ known = whole
      \/ /\ Len(known) = n
         /\ SubSeq(known, 1, n - 1) = whole
         /\ known[n].start = LogEndOffset

\* As Kafka is, this ends when a flush of the cache was dropped: see the model of it.
NeverDeletedFrom == Max(segments[1].base, Min(deletedBelow, LogEndOffset))

EpochCacheMatchesLog == Up /\ ~droppedFlush => CacheMatches(epochCache, NeverDeletedFrom)

\* Not so in Kafka, whatever is dropped and deleted: see the models of it.
EpochCacheAlwaysMatches == Up => CacheMatches(epochCache, NeverDeletedFrom)
EpochsOfReturnedRecords == Up /\ ~droppedFlush => CacheMatches(epochCache, logStart)

\* The file never lacks an entry that a load cannot find elsewhere.
EpochFileLacksNothing ==
  Up => \A i \in 1..Len(epochCache) :
          \E k \in 1..Len(epochFile) :
            /\ epochFile[k].epoch = epochCache[i].epoch
            /\ epochFile[k].start <= epochCache[i].start

\* A file that is deleted later is no file of the log, though its name may be used again.
DeletedLater ==
  Up => \A base \in deleted : \E i \in 1..Len(tasks) : base \in arguments[i].bases

(***************************************************************************)
(* Action properties.                                                      *)
(***************************************************************************)
Starts == role = "down" /\ role' # "down"
Stays  == Up /\ Up'

\* What was committed and what the log start has not passed stays, whatever runs.
RecordAt(o) ==
  LET at == {i \in 1..Len(segments) : segments[i].base <= o /\ o < SegmentEnd(segments[i])}
  IN  IF at = {} THEN NoEpoch
      ELSE LET s == segments[Smallest(at)] IN s.records[o - s.base + 1]

Kept(from, below) ==
  /\ segments'[1].base <= from /\ below <= LogEndOffset'
  /\ \A o \in from..(below - 1) : RecordAt(o)' = RecordAt(o)

RetentionKeepsUncommitted ==
  [][Stays /\ logStart' # logStart /\ LogEndOffset' = LogEndOffset
       => logStart' <= highWatermark]_vars

TasksLoseNothing ==
  [][Stays /\ Len(tasks') < Len(tasks) => Kept(logStart, LogEndOffset)]_vars

\* A log start that was told to consumers does not go back while the broker runs.
StartOnlyRises == [][Stays => logStart' >= logStart]_vars

\* What a process had flushed the next one has; and it has nothing else than what was written (that
\* there is no hole is for SegmentsCover to say).
StartKeepsFlushed ==
  [][Starts =>
       LET n == LogEndOffset' - stopped.base
       IN  \/ stopped.below <= stopped.start
           \/ stopped.below <= LogEndOffset' /\ segments'[1].base <= stopped.start]_vars

LoadedWasWritten ==
  [][Starts =>
       /\ LogEndOffset' <= stopped.base + Len(stopped.log)
       /\ \A o \in segments'[1].base..(LogEndOffset' - 1) :
            /\ stopped.base <= o
            /\ RecordAt(o)' \in {NoEpoch, stopped.log[o - stopped.base + 1]}]_vars

\* Nothing that a peer sends wrongly changes the log.
RefusedChangesNothing == [][answer' # "NONE" => UNCHANGED <<elected, log, background, disk>>]_vars

(***************************************************************************)
(* Situations that a suite shall show.                                     *)
(***************************************************************************)
FlushAfterTruncation ==
  \E i \in 1..Len(tasks) : tasks[i] = "flush-log" /\ arguments[i].offset > LogEndOffset
DeletedBaseIsUsedAgain == \E base \in deleted : base \in Bases(segments)
LogStartIsForgotten    == Up /\ logStartFile < logStart /\ segments[1].base < logStart
TornBehindFirstSegment == Len(segments) > 1 /\ segments[1].torn
===============================================================================
