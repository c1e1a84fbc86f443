----------------------- MODULE TransactionalLogRestarts -----------------------
(***************************************************************************)
(* The partition of TransactionalLog on its disk: segments, snapshots of   *)
(* the producers, the abort index; a replica that truncates, a process     *)
(* that stops in order or dies, in the middle of an append or a truncation *)
(* too, and what the next one reads back.                                  *)
(*                                                                         *)
(* Kafka: UnifiedLog (append, roll, truncateTo, rebuildProducerState),     *)
(* LogLoader (load, recoverSegment), ProducerStateManager (takeSnapshot,   *)
(* truncateAndReload, removeStraySnapshots).                               *)
(*                                                                         *)
(* A process that dies loses nothing that it has written. The segments     *)
(* before the last one are flushed, so recovery reads the last one only.   *)
(* The high watermark comes from its checkpoint, which may lag.            *)
(*                                                                         *)
(*   step                   the process dies                               *)
(*   ----------------------+---------------------------------------------- *)
(*   KillAmidAppend         behind LocalLog.append: the segment has the    *)
(*                          record, the abort index has not                *)
(*   KillAmidTruncation     in LocalLog.truncateTo, which removes later    *)
(*                          segments first and then cuts the last one: the *)
(*                          snapshots above are still there                *)
(***************************************************************************)
EXTENDS TransactionalLog

CONSTANTS
  MaxSegments,
  MaxRestarts,
  MaxTruncations  \* those of leaderChanges: the replica follows, truncates, and leads again

(***************************************************************************)
(* variable  | field                                                       *)
(* ----------+------------------------------------------------------------ *)
(* segments  | base offsets of LogSegments                                 *)
(* snapshots | ProducerStateManager.snapshots: by offset, where each       *)
(*           | producer's open transaction begins                          *)
(* restarts  | ghost: how many there were                                  *)
(***************************************************************************)
VARIABLES segments, snapshots, restarts

files == <<segments, snapshots>>
restartVars == <<vars, files, restarts>>
RestartGhostVars == GhostVars \union {"restarts"}

LogEnd(records) == Len(records)
ActiveBase(bases) == bases[Len(bases)]

RestartInit == Init /\ segments = <<0>> /\ snapshots = <<>> /\ restarts = 0

(***************************************************************************)
(* Snapshots, and what is replayed behind them.                            *)
(***************************************************************************)
InSnapshot(open) == open
WithSnapshot(taken, end, open) ==
  IF end = 0 THEN taken
  ELSE [o \in DOMAIN taken \union {end} |-> IF o = end THEN InSnapshot(open) ELSE taken[o]]
Only(taken, offsets) == [o \in DOMAIN taken \intersect offsets |-> taken[o]]
UpTo(taken, end) == Only(taken, 0..end)

NewestOf(taken) == IF DOMAIN taken = {} THEN 0 ELSE CHOOSE o \in DOMAIN taken : \A n \in DOMAIN taken : n <= o
NoneOpen == [p \in Producers |-> NoOffset]
OpenAt(taken, offset) == IF offset = 0 THEN NoneOpen ELSE taken[offset]

\* ProducerAppendInfo, with origin REPLICATION.
WithRecord(open, record, offset) ==
  [open EXCEPT ![record.producer] =
     IF IsMarker(record) THEN NoOffset ELSE IF @ = NoOffset THEN offset ELSE @]
RECURSIVE ReplayedFrom(_, _, _)
ReplayedFrom(open, offset, records) ==
  IF offset >= LogEnd(records) THEN open
  ELSE ReplayedFrom(WithRecord(open, records[offset + 1], offset), offset + 1, records)

\* The newest snapshot, and the log behind it.
Rebuilt(taken, records) ==
  ReplayedFrom(OpenAt(taken, NewestOf(taken)), NewestOf(taken), records)

\* The snapshot has no transactions that have ended: those whose markers are replayed only are known.
EndedBehind(taken, records, hw) ==
  {t \in UnreplicatedOf(records, hw) : t.last >= NewestOf(taken)}

(***************************************************************************)
(* The segments.                                                           *)
(***************************************************************************)
AfterRoll == WithSnapshot(snapshots, Len(log), ongoing)
Roll ==
  /\ Len(segments) < MaxSegments /\ ActiveBase(segments) < Len(log)
  /\ segments' = Append(segments, Len(log))
  /\ snapshots' = AfterRoll
  /\ UNCHANGED <<vars, restarts>>

\* UnifiedLog.truncateTo. The replica hears of the high watermark with the next fetch.
KeptSnapshots(end) == UpTo(snapshots, end)
Truncate(end) ==
  /\ leaderChanges < MaxTruncations
  /\ highWatermark <= end /\ end < Len(log)
  /\ LET records == SubSeq(log, 1, end)
         kept == KeptSnapshots(end)
     IN  /\ log' = records
         /\ ongoing' = Rebuilt(kept, records)
         /\ unreplicated' = EndedBehind(kept, records, highWatermark)
         /\ snapshots' = WithSnapshot(kept, end, Rebuilt(kept, records))
  /\ abortIndex' = SelectSeq(abortIndex, LAMBDA entry : entry.last < end)
  /\ segments' = SelectSeq(segments, LAMBDA base : base <= end)
  /\ leaderChanges' = leaderChanges + 1
  /\ UNCHANGED <<highWatermark, logStart, restarts>>
  /\ UNCHANGED consumer

(***************************************************************************)
(* A process ends, and the next one loads what it has left: these records  *)
(* in these segments, with these snapshots and this abort index.           *)
(***************************************************************************)
AfterLoad(records, bases, taken, open) ==
  LET last == NewestOf(UpTo(taken, LogEnd(records)))
      names == {bases[i] : i \in DOMAIN bases} \union {last}
  IN  /\ ongoing' = open
      /\ unreplicated' = {}
      /\ snapshots' = Only(taken, names)
      /\ log' = records
      /\ segments' = bases

Starts(hw) ==
  /\ restarts < MaxRestarts /\ hw <= highWatermark
  /\ restarts' = restarts + 1
  /\ highWatermark' = hw
  /\ UNCHANGED <<logStart, leaderChanges>>
  /\ UNCHANGED consumer

\* UnifiedLog.close writes a snapshot of the log's end, and the load reads no more.
Stop(hw) ==
  /\ Starts(hw)
  /\ LET taken == WithSnapshot(snapshots, Len(log), ongoing)
     IN  AfterLoad(log, segments, taken, OpenAt(taken, Len(log)))
  /\ UNCHANGED abortIndex

\* LogLoader.recoverSegment of the last segment: its abort index is made anew, and a snapshot is
\* written behind it.
FromBase(taken, bases) == UpTo(taken, ActiveBase(bases))
IndexRecovered(index, records, bases) ==
  SelectSeq(index, LAMBDA entry : entry.last < ActiveBase(bases))
    \o SelectSeq(AbortIndexOf(records), LAMBDA entry : entry.last >= ActiveBase(bases))
Recovers(records, bases, index) ==
  LET before == FromBase(snapshots, bases)
      open == Rebuilt(before, records)
  IN  /\ AfterLoad(records, bases, WithSnapshot(before, LogEnd(records), open), open)
      /\ abortIndex' = IndexRecovered(index, records, bases)

Kill(hw) == Starts(hw) /\ Recovers(log, segments, abortIndex)

KillAmidAppend(p, kind, hw) ==
  /\ MayGrow
  /\ Starts(hw) /\ Recovers(Append(log, Record(kind, p)), segments, abortIndex)

\* `end` is the target, or where the last of the segments ends that are left and not yet cut.
EndsLeft(target) ==
  {target} \union
    {segments[i] : i \in {n \in 2..Len(segments) : segments[n - 1] <= target /\ target < segments[n]}}
KillAmidTruncation(target, end, hw) ==
  /\ highWatermark <= target /\ target < Len(log) /\ end \in EndsLeft(target)
  /\ Starts(hw)
  /\ Recovers(SubSeq(log, 1, end), SelectSeq(segments, LAMBDA base : base <= target),
              SelectSeq(abortIndex, LAMBDA entry : entry.last < end))

(***************************************************************************)
(* What the log of TransactionalLog does, whatever lies on the disk.       *)
(***************************************************************************)
Produce(p) == AppendData(p) /\ UNCHANGED <<files, restarts>>
EndTransaction(p, kind) == AppendMarker(p, kind) /\ UNCHANGED <<files, restarts>>
Replicate(hw) == AdvanceHighWatermark(hw) /\ UNCHANGED <<files, restarts>>

RestartNext ==
  \/ \E p \in Producers : Produce(p)
  \/ \E p \in Producers, kind \in MarkerKinds : EndTransaction(p, kind)
  \/ \E hw \in Lengths : Replicate(hw)
  \/ Roll
  \/ \E end \in Lengths : Truncate(end)
  \/ \E hw \in Lengths : Stop(hw)
  \/ \E hw \in Lengths : Kill(hw)
  \/ \E p \in Producers, kind \in MarkerKinds \union {"data"}, hw \in Lengths : KillAmidAppend(p, kind, hw)
  \/ \E target \in Lengths, end \in Lengths, hw \in Lengths : KillAmidTruncation(target, end, hw)

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
\* A snapshot has what the log has up to it, so whoever loads it knows the open transactions (S21).
SnapshotsAreOfLog ==
  \A o \in DOMAIN snapshots : o <= Len(log) /\ snapshots[o] = OngoingOf(SubSeq(log, 1, o))

\* Recovery of a segment begins at its snapshot.
EachSegmentHasSnapshot ==
  \A i \in 2..Len(segments) : segments[i] \in DOMAIN snapshots

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
OpenAcrossSegments ==
  \E p \in Producers : ongoing[p] # NoOffset /\ ongoing[p] < ActiveBase(segments)
EndedButForgotten ==
  \E t \in UnreplicatedOf(log, highWatermark) : t \notin unreplicated
===============================================================================
