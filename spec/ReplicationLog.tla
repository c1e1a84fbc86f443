--------------------------- MODULE ReplicationLog ---------------------------
(***************************************************************************)
(* A replica's log and its leader epoch cache, as values: nothing here     *)
(* knows of brokers or messages.                                           *)
(*                                                                         *)
(* A record is its leader epoch. Where every epoch has one leader, offset  *)
(* and epoch identify a record; a value of its own would add states and    *)
(* no behaviour. A log is the sequence of records from its log start       *)
(* offset on; all batches hold one record.                                 *)
(*                                                                         *)
(* A replica is a record of the fields log, logStart, hw (high watermark), *)
(* cache (LeaderEpochFileCache: a sequence of [epoch, start]), state       *)
(* (of its fetcher) and offset (the offset that it fetches next).          *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

NoEpoch  == -1  \* UNDEFINED_EPOCH
NoOffset == -1  \* UNDEFINED_EPOCH_OFFSET

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Smallest(S) == CHOOSE x \in S : \A y \in S : x <= y

LogEnd(r) == r.logStart + Len(r.log)

(***************************************************************************)
(* LeaderEpochFileCache (KIP-101; KAFKA-10706 for truncateFromEnd).        *)
(* Epochs and start offsets both increase strictly along the cache, so     *)
(* "remove from the end while" is "keep as many as are below".             *)
(***************************************************************************)
LatestEpoch(cache) == IF cache = <<>> THEN NoEpoch ELSE cache[Len(cache)].epoch

\* LeaderEpochFileCache.assign
CacheAssign(cache, epoch, start) ==
  LET kept == Cardinality({i \in 1..Len(cache) :
                             cache[i].epoch < epoch /\ cache[i].start < start})
  IN  IF cache # <<>> /\ LatestEpoch(cache) = epoch /\ cache[Len(cache)].start <= start
      THEN cache
      ELSE Append(SubSeq(cache, 1, kept), [epoch |-> epoch, start |-> start])

\* LeaderEpochFileCache.truncateFromEnd
CacheTruncateFromEnd(cache, offset) ==
  SubSeq(cache, 1, Cardinality({i \in 1..Len(cache) : cache[i].start < offset}))

\* LeaderEpochFileCache.truncateFromStart: the last dropped entry stays, at offset.
CacheTruncateFromStart(cache, offset) ==
  LET dropped == Cardinality({i \in 1..Len(cache) : cache[i].start <= offset})
  IN  IF dropped = 0
      THEN cache
      ELSE <<[epoch |-> cache[dropped].epoch, start |-> offset]>>
             \o SubSeq(cache, dropped + 1, Len(cache))

\* LeaderEpochFileCache.endOffsetFor: the greatest epoch <= asked, and its end.
EndOffsetFor(cache, asked, logEnd) ==
  LET higher == Cardinality({i \in 1..Len(cache) : cache[i].epoch > asked})
      first  == Len(cache) - higher + 1
  IN  IF asked = NoEpoch THEN [epoch |-> NoEpoch, offset |-> NoOffset]
      ELSE IF LatestEpoch(cache) = asked THEN [epoch |-> asked, offset |-> logEnd]
      ELSE IF higher = 0 THEN [epoch |-> NoEpoch, offset |-> NoOffset]
      ELSE IF first = 1 THEN [epoch |-> asked, offset |-> cache[1].start]
      ELSE [epoch |-> cache[first - 1].epoch, offset |-> cache[first].start]

(***************************************************************************)
(* UnifiedLog.                                                             *)
(***************************************************************************)

\* KAFKA-10706: also a truncation that cuts no record drops the cache entry
\* of an epoch in which nothing was written.
TruncateAtLogEnd(r) == [r EXCEPT !.cache = CacheTruncateFromEnd(r.cache, LogEnd(r))]

\* UnifiedLog.truncateTo
TruncateTo(r, offset) ==
  IF offset >= LogEnd(r)
  THEN TruncateAtLogEnd(r)
  ELSE [r EXCEPT !.log = SubSeq(r.log, 1, offset - r.logStart),
                 !.logStart = Min(offset, r.logStart),
                 !.hw = Min(r.hw, offset),
                 !.cache = CacheTruncateFromEnd(r.cache, offset)]

\* The high watermark of a log that starts anew (KAFKA-9491).
RestartedHighWatermark(r, offset) == offset

\* UnifiedLog.truncateFullyAndStartAt
TruncateFullyAndStartAt(r, offset) ==
  [r EXCEPT !.log = <<>>, !.logStart = offset,
            !.hw = RestartedHighWatermark(r, offset), !.cache = <<>>]

\* UnifiedLog.appendAsLeader and appendAsFollower, one record.
AppendRecord(r, epoch) ==
  [r EXCEPT !.log = Append(r.log, epoch),
            !.cache = CacheAssign(r.cache, epoch, LogEnd(r))]

\* A fetch response holds one record at most.
AppendRecords(r, records) == IF records = <<>> THEN r ELSE AppendRecord(r, records[1])

\* UnifiedLog.maybeIncrementLogStartOffset, for offset <= high watermark.
AdvanceLogStart(r, offset) ==
  IF offset <= r.logStart
  THEN r
  ELSE [r EXCEPT !.log = SubSeq(r.log, offset - r.logStart + 1, Len(r.log)),
                 !.logStart = offset,
                 !.cache = CacheTruncateFromStart(r.cache, offset)]

\* LogLoader.load after an unclean shutdown: cut, then the cache follows the log. The high
\* watermark is the checkpointed one, within what is left.
Recover(r, logEnd, checkpointedHw) ==
  LET cut == [r EXCEPT !.log = SubSeq(r.log, 1, logEnd - r.logStart),
                       !.hw = Max(r.logStart, Min(checkpointedHw, logEnd))]
  IN  [cut EXCEPT !.cache = CacheTruncateFromEnd(r.cache, logEnd)]

\* Records below an offset, with their offsets.
RecordsBelow(r, offset) ==
  {[offset |-> r.logStart + i - 1, epoch |-> r.log[i]] :
     i \in 1..Max(0, Min(Len(r.log), offset - r.logStart))}

\* What the cache must say of a log: each epoch with its first offset.
CacheOf(r) ==
  LET Begins(i) == i = 1 \/ r.log[i] # r.log[i - 1]
      starts    == SelectSeq([i \in 1..Len(r.log) |-> i], Begins)
  IN  [k \in 1..Len(starts) |->
        [epoch |-> r.log[starts[k]], start |-> r.logStart + starts[k] - 1]]

(***************************************************************************)
(* A replica that follows: AbstractFetcherThread.                          *)
(***************************************************************************)

\* getOffsetTruncationState: where to cut, and whether that is final.
\* Kip101 has no epoch in the answer; its follower asks once.
EpochIsCommon(localEpoch, leadersEpoch) == localEpoch = leadersEpoch

OffsetTruncationState(r, a) ==
  LET end   == LogEnd(r)
      local == EndOffsetFor(r.cache, a.epoch, end)
  IN  IF a.endOffset = NoOffset THEN [offset |-> r.offset, completed |-> TRUE]
      ELSE IF a.epoch = NoEpoch \/ local.offset = NoOffset
      THEN [offset |-> Min(a.endOffset, end), completed |-> TRUE]
      ELSE IF EpochIsCommon(local.epoch, a.epoch)
      THEN [offset |-> Min(Min(local.offset, a.endOffset), end), completed |-> TRUE]
      ELSE [offset |-> Min(local.offset, end), completed |-> FALSE]

\* The follower's high watermark: the leader's, within the own log.
FollowerHighWatermark(leaderHw, logStart, logEnd) == Max(logStart, Min(leaderHw, logEnd))
=============================================================================
