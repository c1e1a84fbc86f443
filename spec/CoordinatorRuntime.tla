-------------------------- MODULE CoordinatorRuntime --------------------------
(***************************************************************************)
(* The runtime of Kafka 4's coordinators: one partition of an internal     *)
(* topic, the brokers that may lead it, and on each the shard that the     *)
(* partition's log loads. The law: what a coordinator has in memory is     *)
(* what its log loads, at every watermark, after any compaction, and no    *)
(* answer says more than that.                                             *)
(*                                                                         *)
(* What a record means is a parameter: the module that extends this one    *)
(* says it (CoordinatorStore: keys and values).                            *)
(*                                                                         *)
(* Kafka: CoordinatorRuntime and its CoordinatorContext,                   *)
(* SnapshottableCoordinator, SnapshotRegistry, DeferredEventQueue,         *)
(* CoordinatorLoaderImpl (org.apache.kafka.coordinator.common.runtime).    *)
(*                                                                         *)
(* A step is an event of a shard, which Kafka runs under the context's     *)
(* lock. Apart from each other are: an append, its watermark, and the      *)
(* answers; an election, the load that it begins, and the load's end; a    *)
(* broker that leads no longer, and the shard that it unloads.             *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  EmptyState,       \* the state of a shard whose log is empty
  Replay(_, _),     \* CoordinatorPlayback.replay: the state after a record
  IsLoaded(_),      \* whether the replay of the records that made a state went to its end
  Operation(_, _, _), \* CoordinatorWriteOperation: what a write of a kind gives (see Result)
  Compactions(_),   \* what the log cleaner may make of a log
  Brokers,
  Kinds,            \* kinds of writes, of Operation
  MaxWrites,
  MaxBatch,         \* how many records of plain size a batch takes (max.message.bytes)
  MaxEpochs,        \* elections
  Watermarks,       \* followers are left out: the watermark rises by itself
  AppendFailures,   \* CoordinatorPartitionWriter.append may throw
  TimeOuts,         \* the write time-out may be over
  Deletions         \* the topic may be deleted

(***************************************************************************)
(* variable    | field                                                     *)
(* ------------+---------------------------------------------------------- *)
(* leader      | the broker that leads the partition                       *)
(* epoch       | its leader epoch; 0: nobody was elected yet               *)
(* deleted     | the topic is deleted                                      *)
(* log[b]      | UnifiedLog: records, each with the epoch of its leader,   *)
(*             | the write that it is of, and whether its batch ends there *)
(* hw[b]       | the high watermark                                        *)
(* roles[b]    | elections and resignations whose events are queued        *)
(* state[b]    | CoordinatorContext.state; "NONE": there is no context     *)
(* tenure[b]   | CoordinatorContext.epoch                                  *)
(* loads[b]    | epochs of the loads whose CompleteLoad is to come         *)
(* shard[b]    | SnapshottableCoordinator, currentBatch, deferred events   *)
(* listener[b] | HighWatermarkListener: whether there is one and whether   *)
(*             | the broker has followed since it was registered; the      *)
(*             | number that its queued event will take                    *)
(* answers     | by write, in their order; "none": it waits                *)
(* writes      | a ghost: on which broker it was, how many records it has, *)
(*             | whether these are atomic, and the writes whose records    *)
(*             | its operation saw                                         *)
(***************************************************************************)
VARIABLES leader, epoch, deleted, log, hw, roles, state, tenure, loads, shard, listener, answers,
          writes

vars == <<leader, epoch, deleted, log, hw, roles, state, tenure, loads, shard, listener, answers,
          writes>>
GhostVars == {"writes"}

NoBroker == "none"
NoNumber == -1
NoListener == [kind |-> "NONE", number |-> NoNumber]
NewListener == [kind |-> "LIVE", number |-> NoNumber]
Range(sequence) == {sequence[i] : i \in DOMAIN sequence}
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a < b THEN b ELSE a

(***************************************************************************)
(* Logs, and what a shard that replays one has.                            *)
(***************************************************************************)
Prefix(records, offset) == SubSeq(records, 1, Min(offset, Len(records)))

RECURSIVE Replayed(_, _)
Replayed(before, records) ==
  IF records = <<>> THEN before ELSE Replayed(Replay(before, Head(records)), Tail(records))
Load(records) == Replayed(EmptyState, records)

BatchEnds(records) == {0} \union {i \in DOMAIN records : records[i].last}
WritesIn(records) == {record.write : record \in Range(records)}

\* A shard's record has the fields that its operation gives it. A batch and a log add theirs.
Extended(record, more) ==
  [field \in DOMAIN record \union DOMAIN more |->
     IF field \in DOMAIN more THEN more[field] ELSE record[field]]

\* Those that keep their offsets get them (CoordinatorBatch.nextOffset).
Placed(records, offset) ==
  [i \in DOMAIN records |->
     IF "at" \in DOMAIN records[i] THEN [records[i] EXCEPT !.at = offset + i - 1] ELSE records[i]]

\* An open batch as the log has it once it is flushed. Its header has one producer, that of the
\* write that opened it.
EndsBatch(i, records) == i = Len(records)
Header(records, i) == [epoch |-> epoch, last |-> EndsBatch(i, records)]
OfOneProducer(records) ==
  [i \in DOMAIN records |->
     IF "producer" \in DOMAIN records[i]
     THEN [records[i] EXCEPT !.producer = records[1].producer] ELSE records[i]]
Batch(records) ==
  LET written == OfOneProducer(records)
  IN  [i \in DOMAIN records |-> Extended(written[i], Header(records, i))]

(***************************************************************************)
(* A shard: `memory` is the timeline's newest state, `snapshots` those at  *)
(* offsets, `batch` the records of the open batch, `joined` the writes     *)
(* whose events are in it, `deferred` those that wait for a watermark.     *)
(***************************************************************************)
FreshShard == [
  memory |-> EmptyState, snapshots |-> [offset \in {0} |-> EmptyState],
  written |-> 0, committed |-> 0, batch |-> <<>>, joined |-> {}, deferred |-> {}]

WaitingIn(s) == s.joined \union {event.write : event \in s.deferred}

WithSnapshot(snapshots, offset, memory) ==
  [o \in DOMAIN snapshots \union {offset} |-> IF o = offset THEN memory ELSE snapshots[o]]
Only(snapshots, offsets) == [o \in DOMAIN snapshots \intersect offsets |-> snapshots[o]]

\* SnapshottableCoordinator.updateLastCommittedOffset.
Committed(s, offset) ==
  [s EXCEPT !.committed = offset, !.snapshots = Only(@, offset..s.written)]

\* CoordinatorLoaderImpl: a snapshot at each end of a batch that is not below the watermark.
SnapshotsOfLoad(records, watermark) ==
  {0} \union {o \in BatchEnds(records) : o >= watermark}
CommittedByLoad(records, watermark) == watermark

\* Markers are replayed as data are.
ReadByLoad(records) == records
LoadedUpTo(records, offset) == Load(ReadByLoad(Prefix(records, offset)))
Loaded(records, watermark) ==
  LET s == [FreshShard EXCEPT !.memory = LoadedUpTo(records, Len(records)), !.written = Len(records),
              !.snapshots = [o \in SnapshotsOfLoad(records, watermark) |->
                               LoadedUpTo(records, o)]]
      committed == CommittedByLoad(records, watermark)
  IN  IF committed > 0 THEN Committed(s, committed) ELSE s

(***************************************************************************)
(* Flush and failure: CoordinatorContext.flushCurrentBatch,                *)
(* failCurrentBatch. The outcome of the append: "appended"; "refused";     *)
(* "thrown", after the log has it.                                         *)
(***************************************************************************)

\* What becomes of a shard: itself, its log, which events are completed with an exception, and
\* whether the log has other records than the shard takes it to have.
Outcome(s, records, failed, outOfSync) ==
  [shard |-> s, log |-> records, failed |-> failed, outOfSync |-> outOfSync]

FailedWith(s) == s.joined
FailedBatch(s, leads) ==
  [s EXCEPT !.memory = s.snapshots[s.written], !.batch = <<>>, !.joined = {}]

\* The log's end is not where the batch was to end: the records are there, the shard is rebuilt.
IsOutOfSync(s, records) == Len(records) # s.written

Flushed(s, records, result, leads) ==
  LET longer == records \o Placed(Batch(s.batch), Len(records))
      end == s.written + Len(s.batch)
  IN  IF s.batch = <<>> \/ result = "refused"
      THEN Outcome(FailedBatch(s, leads), records, FailedWith(s), FALSE)
      ELSE IF result = "thrown"
      THEN Outcome(FailedBatch(s, leads), longer, FailedWith(s), FALSE)
      ELSE IF IsOutOfSync(s, records)
      THEN Outcome(FreshShard, longer, WaitingIn(s), TRUE)
      ELSE Outcome(
             [s EXCEPT !.written = end, !.batch = <<>>, !.joined = {},
                       !.snapshots = WithSnapshot(@, end, s.memory),
                       !.deferred = @ \union {[at |-> end, write |-> w] : w \in s.joined}],
             longer, {}, FALSE)

AppendResults == {"appended", "refused", "thrown"}

\* A step may append more than once: the first append succeeds, and the next one does not.
LaterResults == {"refused later", "thrown later"}
FirstResult(result) == IF result \in LaterResults THEN "appended" ELSE result
NextResult(result) ==
  CASE result = "refused later" -> "refused"
    [] result = "thrown later" -> "thrown"
    [] OTHER -> result

\* What an append of this broker may come to. Who leads no longer is refused (NOT_LEADER_OR_FOLLOWER).
Leads(b) == leader = b /\ ~deleted
Results(b) ==
  IF ~Leads(b) THEN {"refused"}
  ELSE IF AppendFailures THEN AppendResults ELSE {"appended"}

(***************************************************************************)
(* Writes: CoordinatorWriteEvent.run, CoordinatorContext.append.           *)
(***************************************************************************)

\* CoordinatorResult: records, a sequence of [key, value]; size, in records of plain size; replays,
\* whether the runtime replays them. replayRecords = false: the operation has changed the memory
\* before its records are appended (classic groups, and a group that is converted).
\* producer: a producer id, of a write in a transaction.
\* isAtomic = false: each record stands for itself, and a batch takes as many as it has room for
\* (offsets that expire, or whose topic is deleted).
NoProducerId == 0
Result(records) ==
  [records |-> records, size |-> Len(records), replays |-> TRUE, atomic |-> TRUE, throws |-> FALSE,
   producer |-> NoProducerId]

\* The operation throws. Its caller is told at once, and nothing is reverted.
Thrown == [Result(<<>>) EXCEPT !.throws = TRUE]

\* An empty batch is tried however large the records are (KAFKA-20845).
IsFlushedFirst(s, size) == s.batch # <<>> /\ Len(s.batch) + size > MaxBatch
IsFull(s) == Len(s.batch) >= MaxBatch

\* A batch that has no room is flushed at once.
IsFlushedAtOnce(s, size) == size > MaxBatch \/ IsFull(s)

RecordsOf(records, w) ==
  [i \in DOMAIN records |-> Extended(records[i], [write |-> w])]

\* A write in a transaction has a batch alone.
IsInTransaction(operation) == operation.producer # NoProducerId
PushesOpenBatch(s, operation) == IsInTransaction(operation) /\ s.batch # <<>>

\* Who leads no longer cannot allocate a batch: the partition gives no max.message.bytes. Nothing is
\* reverted then, not even what the operation has changed itself.
MayAllocate(b) == Leads(b)

\* A write that has records: the outcome, and the write itself among those that are failed if the
\* append threw.
Appended(s, records, operation, w, result, mayAllocate) ==
  LET new == RecordsOf(operation.records, w)
      changed == IF operation.replays THEN s ELSE [s EXCEPT !.memory = Replayed(@, new)]
      first == IsFlushedFirst(changed, operation.size) \/ PushesOpenBatch(changed, operation)
      before == IF first THEN Flushed(changed, records, FirstResult(result), mayAllocate)
                ELSE Outcome(changed, records, {}, FALSE)
      \* An empty batch that is flushed (KAFKA-20845 alone does it) keeps the write from nothing.
      goesOn == \/ ~first \/ changed.batch = <<>>
                \/ FirstResult(result) = "appended" /\ ~before.outOfSync
      base == before.shard
      placed == Placed(new, base.written + Len(base.batch))
      joined == [base EXCEPT
                   !.memory = IF operation.replays THEN Replayed(@, placed) ELSE @,
                   !.batch = @ \o placed, !.joined = @ \union {w}]
      after == Flushed(joined, before.log, IF first THEN NextResult(result) ELSE result, mayAllocate)
  IN  IF ~mayAllocate /\ changed.batch = <<>> THEN Outcome(changed, records, {w}, FALSE)
      ELSE IF ~goesOn THEN [before EXCEPT !.failed = @ \union {w}]
      ELSE IF IsFlushedAtOnce(joined, operation.size) \/ IsInTransaction(operation)
      THEN [after EXCEPT !.failed = @ \union before.failed]
      ELSE Outcome(joined, before.log, before.failed, FALSE)

\* A write that is not atomic: a record that has no room in the open batch pushes it out. What was
\* pushed out stays in the log when a later append fails, and the caller gets an error.
MemoryAfterFailure(s, before) == s.memory
JoinsItsFirstBatch == FALSE
AfterPart(outcome, before) ==
  IF outcome.failed = {} \/ outcome.outOfSync THEN outcome
  ELSE [outcome EXCEPT !.shard.memory = MemoryAfterFailure(outcome.shard, before)]

RECURSIVE Parted(_, _, _, _, _, _)
Parted(outcome, left, w, result, mayAllocate, before) ==
  LET s == outcome.shard
      pushes == left # <<>> /\ IsFlushedFirst(s, 1)
      pushed == AfterPart(Flushed(s, outcome.log, FirstResult(result), mayAllocate), before)
      goesOn == FirstResult(result) = "appended" /\ ~pushed.outOfSync
      joins == left = <<>> \/ JoinsItsFirstBatch
      next == Placed(Prefix(left, 1), s.written + Len(s.batch))
      taken == [s EXCEPT !.memory = Replayed(@, next), !.batch = @ \o next,
                         !.joined = IF joins THEN @ \union {w} ELSE @]
      last == AfterPart(Flushed(taken, outcome.log, FirstResult(result), mayAllocate), before)
  IN  IF pushes
      THEN IF goesOn
           THEN Parted([pushed EXCEPT !.failed = @ \union outcome.failed], left, w,
                       NextResult(result), mayAllocate, before)
           ELSE [pushed EXCEPT !.failed = @ \union outcome.failed \union {w}]
      ELSE IF left # <<>>
      THEN Parted([outcome EXCEPT !.shard = taken], Tail(left), w, result, mayAllocate, before)
      ELSE IF IsFlushedAtOnce(taken, 1)
      THEN [last EXCEPT !.failed = @ \union outcome.failed]
      ELSE [outcome EXCEPT !.shard = taken]

PartsAppended(s, records, operation, w, result, mayAllocate) ==
  IF ~mayAllocate /\ s.batch = <<>> THEN Outcome(s, records, {w}, FALSE)
  ELSE Parted(Outcome(s, records, {}, FALSE), RecordsOf(operation.records, w), w, result, mayAllocate,
              s.snapshots[s.written])

IsParted(operation) == ~operation.atomic
AppendedAs(s, records, operation, w, result, mayAllocate) ==
  IF IsParted(operation) THEN PartsAppended(s, records, operation, w, result, mayAllocate)
  ELSE Appended(s, records, operation, w, result, mayAllocate)

\* An operation without records is answered when all that it saw is committed.
EmptyWrite(s, w) ==
  IF s.batch # <<>> THEN [s EXCEPT !.joined = @ \union {w}]
  ELSE IF s.committed < s.written
       THEN [s EXCEPT !.deferred = @ \union {[at |-> s.written, write |-> w]}]
       ELSE s
IsAnsweredAtOnce(s) == s.batch = <<>> /\ s.committed = s.written

\* DeferredEvent.complete: what was completed before stays as it is (KAFKA-18174).
MayAnswer(former) == former = "none"
Answered(all, some, answer) ==
  [w \in DOMAIN all |-> IF w \in some /\ MayAnswer(all[w]) THEN answer ELSE all[w]]

\* Nobody is answered before the watermark: mutants say otherwise.
AnsweredAtAppend(s) == {}

\* An outcome becomes the broker's. A shard out of sync fails, and is loaded anew at once.
Becomes(b, outcome, all) ==
  /\ log' = [log EXCEPT ![b] = outcome.log]
  /\ shard' = [shard EXCEPT ![b] = outcome.shard]
  /\ state' = IF outcome.outOfSync THEN [state EXCEPT ![b] = "LOADING"] ELSE state
  /\ loads' = IF outcome.outOfSync THEN [loads EXCEPT ![b] = @ \union {tenure[b]}] ELSE loads
  /\ listener' = IF outcome.outOfSync THEN [listener EXCEPT ![b] = NoListener] ELSE listener
  /\ answers' = Answered(Answered(all, outcome.failed, "error"),
                         AnsweredAtAppend(outcome.shard), "ok")

\* What a write's operation saw: the writes whose records are in the memory, and its own.
Seen(b, records) == WritesIn(Prefix(log[b], shard[b].written)) \union
                    WritesIn(shard[b].batch) \union records

\* HighWatermarkUpdate stands before all other events of the shard (EventAccumulator.addFirst). A
\* watermark that is reported while an event runs is one that is reported after it.
MayRun(b) == listener[b].number = NoNumber

AnswerAtOnce(s, operation) ==
  IF operation.throws THEN "error"
  ELSE IF operation.records = <<>> /\ IsAnsweredAtOnce(s) THEN "ok"
  ELSE "none"

\* Of an atomic write that pushes a full batch out both appends come to the same here.
MayAppendTwice(operation) == IsParted(operation) \/ IsInTransaction(operation)

\* A second outcome is one of a step that appends more than once.
MayComeTo(b, operation, w, result) ==
  LET outcome(r) == AppendedAs(shard[b], log[b], operation, w, r, MayAllocate(b))
  IN  IF result \in LaterResults
      THEN AppendFailures /\ Leads(b) /\ MayAppendTwice(operation) /\ outcome(result) # outcome("appended")
      ELSE result \in Results(b)

NextWrite == Len(writes) + 1
MayWrite(b) == state[b] = "ACTIVE" /\ MayRun(b) /\ Len(writes) < MaxWrites
Run(b, operation, result) ==
  LET w == NextWrite
      empty == operation.records = <<>>
      without == IF operation.throws THEN shard[b] ELSE EmptyWrite(shard[b], w)
      all == Append(answers, AnswerAtOnce(shard[b], operation))
  IN  /\ MayComeTo(b, operation, w, result)
      /\ IF empty
         THEN /\ result = IF Leads(b) THEN "appended" ELSE "refused"
              /\ Becomes(b, Outcome(without, log[b], {}, FALSE), all)
         ELSE Becomes(b, AppendedAs(shard[b], log[b], operation, w, result, MayAllocate(b)), all)
      /\ writes' = Append(writes,
           [on |-> b, size |-> Len(operation.records), atomic |-> operation.atomic,
            seen |-> Seen(b, IF empty THEN {} ELSE {w})])
      /\ UNCHANGED <<leader, epoch, deleted, hw, roles, tenure>>
Write(b, kind, result) ==
  /\ MayWrite(b)
  /\ Run(b, Operation(kind, NextWrite, shard[b].memory), result)

\* FlushBatch: by the linger timer, or the adaptive event that stands last in the queue.
IsToBeFlushed(b) == shard[b].batch # <<>>
FlushBatch(b, result) ==
  /\ state[b] = "ACTIVE" /\ MayRun(b) /\ IsToBeFlushed(b)
  /\ result \in Results(b)
  /\ Becomes(b, Flushed(shard[b], log[b], result, Leads(b)), answers)
  /\ UNCHANGED <<leader, epoch, deleted, hw, roles, tenure, writes>>

\* OperationTimeout. The records stay, and may be committed later.
TimeOut(w) ==
  /\ TimeOuts /\ w \in DOMAIN answers /\ answers[w] = "none"
  /\ answers' = Answered(answers, {w}, "timeout")
  /\ UNCHANGED <<leader, epoch, deleted, log, hw, roles, state, tenure, loads, shard, listener,
                 writes>>

(***************************************************************************)
(* Watermarks.                                                             *)
(***************************************************************************)

\* HighWatermarkListener.onHighWatermarkUpdated: its event takes the newest number. The listener
\* serves one tenure: it retires when the broker follows (KAFKA-20634).
Reports(b) == listener[b].kind = "LIVE"
Heard(b, offset) == IF Reports(b) THEN [listener[b] EXCEPT !.number = offset] ELSE listener[b]
Retired(b) == IF listener[b].kind = "LIVE" THEN [listener[b] EXCEPT !.kind = "RETIRED"] ELSE listener[b]

\* Followers that the model leaves out have fetched.
AdvanceWatermark(b, offset) ==
  /\ Watermarks /\ Leads(b)
  /\ offset \in BatchEnds(log[b]) /\ offset > hw[b]
  /\ hw' = [hw EXCEPT ![b] = offset]
  /\ listener' = [listener EXCEPT ![b] = Heard(b, offset)]
  /\ UNCHANGED <<leader, epoch, deleted, log, roles, state, tenure, loads, shard, answers, writes>>

\* A follower fetches: it truncates what its leader does not have, and takes the next batch.
Common(f) ==
  CHOOSE n \in 0..Len(log[f]) :
    /\ n <= Len(log[leader]) /\ Prefix(log[f], n) = Prefix(log[leader], n)
    /\ \A m \in (n + 1)..Len(log[f]) :
         m > Len(log[leader]) \/ Prefix(log[f], m) # Prefix(log[leader], m)
NextEnd(n) ==
  LET later == {o \in BatchEnds(log[leader]) : o > n}
  IN  IF later = {} THEN n ELSE CHOOSE o \in later : \A other \in later : o <= other
Replicate(f) ==
  /\ ~Watermarks /\ ~deleted /\ leader # NoBroker /\ f # leader
  /\ LET end == NextEnd(Common(f))
     IN  /\ end > Len(log[f]) \/ Common(f) < Len(log[f]) \/ hw[f] < hw[leader] \/ hw[leader] < end
         /\ log' = [log EXCEPT ![f] = Prefix(log[leader], end)]
         /\ hw' = [hw EXCEPT ![leader] = Max(@, end), ![f] = Max(@, Min(end, hw[leader]))]
         /\ listener' = [b \in Brokers |->
              IF hw'[b] # hw[b] THEN Heard(b, hw'[b]) ELSE listener[b]]
  /\ UNCHANGED <<leader, epoch, deleted, roles, state, tenure, loads, shard, answers, writes>>

\* The event HighWatermarkUpdate, which stands before all others in the queue.
IsInOrder(s, offset) == s.committed <= offset /\ offset <= s.written
ApplyWatermark(b) ==
  LET s == shard[b]
      offset == listener[b].number
      takes == state[b] = "ACTIVE" /\ IsInOrder(s, offset)
      done == {event \in s.deferred : event.at <= offset}
  IN  /\ offset # NoNumber
      /\ listener' = [listener EXCEPT ![b].number = NoNumber]
      /\ shard' = IF takes
                  THEN [shard EXCEPT ![b] = [Committed(s, offset) EXCEPT !.deferred = @ \ done]]
                  ELSE shard
      /\ answers' = IF takes THEN Answered(answers, {event.write : event \in done}, "ok")
                    ELSE answers
      /\ UNCHANGED <<leader, epoch, deleted, log, hw, roles, state, tenure, loads, writes>>

(***************************************************************************)
(* Elections, loads, resignations.                                         *)
(***************************************************************************)
Role(load, e) == [load |-> load, epoch |-> e]

\* Any replica may be elected: all of them are in sync. The other brokers learn that they follow.
Elect(b) ==
  /\ epoch < MaxEpochs /\ ~deleted
  /\ epoch' = epoch + 1 /\ leader' = b
  /\ roles' = [r \in Brokers |->
       IF r = b THEN Append(roles[r], Role(TRUE, epoch'))
       ELSE IF r = leader THEN Append(roles[r], Role(FALSE, epoch')) ELSE roles[r]]
  /\ listener' = [r \in Brokers |-> IF r = b THEN listener[r] ELSE Retired(r)]
  /\ UNCHANGED <<deleted, log, hw, state, tenure, loads, shard, answers, writes>>

\* The topic is deleted: onResignation without an epoch (KAFKA-19274).
EpochOfDeletion == 0
DeleteTopic ==
  /\ Deletions /\ ~deleted /\ epoch > 0
  /\ deleted' = TRUE
  /\ roles' = [roles EXCEPT ![leader] = Append(@, Role(FALSE, EpochOfDeletion))]
  /\ listener' = [r \in Brokers |-> Retired(r)]
  /\ UNCHANGED <<leader, epoch, log, hw, state, tenure, loads, shard, answers, writes>>

\* CoordinatorRuntime.scheduleLoadOperation.
RunElection(b, e) ==
  /\ IF e <= tenure[b] THEN UNCHANGED <<state, tenure, loads, shard, listener>>
     ELSE /\ tenure' = [tenure EXCEPT ![b] = e]
          /\ IF state[b] \in {"NONE", "FAILED"}
             THEN /\ state' = [state EXCEPT ![b] = "LOADING"]
                  /\ loads' = [loads EXCEPT ![b] = @ \union {e}]
                  /\ shard' = [shard EXCEPT ![b] = FreshShard]
                  /\ UNCHANGED listener
             ELSE UNCHANGED <<state, loads, shard, listener>>
  /\ UNCHANGED answers

\* CoordinatorRuntime.scheduleUnloadOperation. It asks the partition nothing (KAFKA-20115).
MayUnload(b) == TRUE

\* DeferredEventQueue.failAll, failCurrentBatch: all that wait hear NOT_COORDINATOR.
AnsweredByUnload(b) == WaitingIn(shard[b])
RunResignation(b, e) ==
  /\ IF (e = 0 \/ tenure[b] < e) /\ state[b] # "NONE" /\ MayUnload(b)
     THEN /\ state' = [state EXCEPT ![b] = "NONE"]
          /\ tenure' = [tenure EXCEPT ![b] = 0]
          /\ shard' = [shard EXCEPT ![b] = FreshShard]
          /\ listener' = [listener EXCEPT ![b] = NoListener]
          /\ answers' = Answered(answers, AnsweredByUnload(b), "error")
     ELSE UNCHANGED <<state, tenure, shard, listener, answers>>
  /\ UNCHANGED loads

RunRole(b) ==
  /\ roles[b] # <<>> /\ MayRun(b)
  /\ roles' = [roles EXCEPT ![b] = Tail(@)]
  /\ IF Head(roles[b]).load
     THEN RunElection(b, Head(roles[b]).epoch) ELSE RunResignation(b, Head(roles[b]).epoch)
  /\ UNCHANGED <<leader, epoch, deleted, log, hw, writes>>

\* The loader has read the log to its end; CompleteLoad. Kafka's event names the partition alone:
\* it may be of a load that an earlier context began (the model `boundary-stale-load`).
IsOfThisLoad(b, e) == \A later \in loads[b] : later <= e
WatermarkOfLoad(b) == hw[b]
WhatWasLoaded(b, e) == IF IsOfThisLoad(b, e) THEN Loaded(log[b], WatermarkOfLoad(b)) ELSE FreshShard
TakesLoad(b, e) == state[b] = "LOADING" /\ IsOfThisLoad(b, e)

\* A load that fails leaves its context FAILED, until the next election.
MayServe(b) == Leads(b) /\ IsLoaded(Load(log[b]))

\* The shard after a load that is not taken.
AfterLateLoad(b, e) == shard[b]

CompleteLoad(b, e) ==
  /\ e \in loads[b] /\ MayRun(b)
  /\ loads' = [loads EXCEPT ![b] = @ \ {e}]
  /\ IF TakesLoad(b, e)
     THEN IF MayServe(b)
          THEN /\ state' = [state EXCEPT ![b] = "ACTIVE"]
               /\ shard' = [shard EXCEPT ![b] = WhatWasLoaded(b, e)]
               /\ listener' = [listener EXCEPT ![b] = NewListener]
          ELSE /\ state' = [state EXCEPT ![b] = "FAILED"]
               /\ shard' = [shard EXCEPT ![b] = FreshShard]
               /\ UNCHANGED listener
     ELSE /\ shard' = [shard EXCEPT ![b] = AfterLateLoad(b, e)]
          /\ UNCHANGED <<state, listener>>
  /\ UNCHANGED <<leader, epoch, deleted, log, hw, roles, tenure, answers, writes>>

-------------------------------------------------------------------------------
Init ==
  /\ leader = NoBroker /\ epoch = 0 /\ deleted = FALSE
  /\ log = [b \in Brokers |-> <<>>] /\ hw = [b \in Brokers |-> 0]
  /\ roles = [b \in Brokers |-> <<>>]
  /\ state = [b \in Brokers |-> "NONE"] /\ tenure = [b \in Brokers |-> 0]
  /\ loads = [b \in Brokers |-> {}]
  /\ shard = [b \in Brokers |-> FreshShard] /\ listener = [b \in Brokers |-> NoListener]
  /\ answers = <<>> /\ writes = <<>>

RecordsOfWrite == 2   \* at most; a shard whose operations write more says so

Next ==
  \/ \E b \in Brokers, kind \in Kinds, result \in AppendResults \union LaterResults :
       Write(b, kind, result)
  \/ \E b \in Brokers, result \in AppendResults : FlushBatch(b, result)
  \/ \E w \in 1..MaxWrites : TimeOut(w)
  \/ \E b \in Brokers, offset \in 1..(RecordsOfWrite * MaxWrites) : AdvanceWatermark(b, offset)
  \/ \E b \in Brokers : Replicate(b)
  \/ \E b \in Brokers : ApplyWatermark(b)
  \/ \E b \in Brokers : Elect(b)
  \/ DeleteTopic
  \/ \E b \in Brokers : RunRole(b)
  \/ \E b \in Brokers, e \in 1..MaxEpochs : CompleteLoad(b, e)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* A queued event runs, a load ends, and what is in the log is replicated. *)
(* Nobody has to write, and no time-out has to be over.                    *)
(***************************************************************************)
Fairness ==
  /\ \A b \in Brokers :
       /\ WF_vars(\E result \in AppendResults : FlushBatch(b, result))
       /\ WF_vars(\E offset \in 1..(RecordsOfWrite * MaxWrites) : AdvanceWatermark(b, offset))
       /\ WF_vars(Replicate(b))
       /\ WF_vars(ApplyWatermark(b))
       /\ WF_vars(RunRole(b))
       /\ WF_vars(\E e \in 1..MaxEpochs : CompleteLoad(b, e))

FairSpec == Spec /\ Fairness
===============================================================================
