----------------------------- MODULE LogCompaction -----------------------------
(***************************************************************************)
(* A compacted log and its cleaner: what is cleaned, which records stay,   *)
(* which batches stay without records, and what a reader, a follower and   *)
(* a coordinator that loads make of the log afterwards.                    *)
(*                                                                         *)
(* Kafka: LogCleanerManager (grabFilthiestCompactedLog, cleanableOffsets,  *)
(* maybeTruncateCheckpoint), Cleaner (buildOffsetMap, cleanSegments,       *)
(* cleanInto), MemoryRecords.filterTo, CleanedTransactionMetadata,         *)
(* UnifiedLog.replaceSegments.                                             *)
(*                                                                         *)
(* All batches hold one record. Each replica cleans by itself. All closed  *)
(* segments that are cleaned fit into one.                                 *)
(***************************************************************************)
EXTENDS ReadCommitted, LogCleaner

CONSTANTS
  Replicas,
  Leader,
  Keys,           \* of records; numbers from 1
  MaxRecords,     \* length of the log
  Kinds,          \* what is appended: "value", "tombstone"
  Watermarks,     \* offsets to which the high watermark advances
  Producers,      \* one that has transactions, or none
  Days,           \* a day passes: delete.retention.ms and producer.id.expiration.ms
  Truncations,    \* how often an unclean election cuts a log below its high watermark
  Loads,          \* a coordinator loads the log
  KeepsLastBatch  \* FALSE: as cleaners before KAFKA-17076 (3.9.2)

(***************************************************************************)
(* variable      | field                                                   *)
(* --------------+-------------------------------------------------------- *)
(* log[b]        | UnifiedLog: the batches of all segments                 *)
(*   kind        |   of its record; Empty, EmptyMarker: it has none        *)
(*   horizon     |   deleteHorizonMs: none, set, or due                    *)
(* bases[b]      | base offsets of the segments                            *)
(* end[b]        | UnifiedLog.logEndOffset                                 *)
(* hw[b]         | UnifiedLog.highWatermark                                *)
(* abortIndex[b] | TransactionIndex of all segments                        *)
(* lastData[b]   | ProducerStateEntry.lastDataOffset; -1: no entry         *)
(* checkpoint[b] | cleaner-offset-checkpoint; -1: no entry                 *)
(* answer        | of a load: whose log, and by key the offset of its value *)
(* written       | ghost: the log as if it were never cleaned              *)
(* truncations   | ghost: how many there were                              *)
(***************************************************************************)
VARIABLES log, bases, end, hw, abortIndex, lastData, checkpoint, answer, written, truncations

vars == <<log, bases, end, hw, abortIndex, lastData, checkpoint, answer, written, truncations>>
GhostVars == {"written", "truncations"}

NoOffset == -1
NoKey == 0
Nothing == <<>>
DataKinds == {"value", "tombstone"}
IsData(batch) == batch.kind \in DataKinds \union {"Empty"}
IsControl(batch) == ~IsData(batch)
HasRecord(batch) == batch.kind \notin {"Empty", "EmptyMarker"}
InTransaction(batch) == IsData(batch) /\ batch.producer # NoProducer

Record(kind, key, producer) == [kind |-> kind, key |-> key, producer |-> producer]
Batch(offset, record) ==
  [offset |-> offset, kind |-> record.kind, key |-> record.key, producer |-> record.producer,
   horizon |-> "none"]
Emptied(batch) ==
  [batch EXCEPT !.kind = IF IsData(batch) THEN "Empty" ELSE "EmptyMarker", !.key = NoKey,
                !.horizon = "none"]

Init ==
  /\ log = [b \in Replicas |-> <<>>] /\ bases = [b \in Replicas |-> <<0>>]
  /\ end = [b \in Replicas |-> 0] /\ hw = [b \in Replicas |-> 0]
  /\ abortIndex = [b \in Replicas |-> <<>>]
  /\ lastData = [b \in Replicas |-> NoOffset]
  /\ checkpoint = [b \in Replicas |-> NoOffset]
  /\ answer = Nothing /\ written = <<>> /\ truncations = 0

ActiveBase(b) == bases[b][Len(bases[b])]
StableOffset(b) == LastStableOffset(SubSeq(written, 1, end[b]), 0, hw[b])

(***************************************************************************)
(* Appends, replication, segments.                                         *)
(***************************************************************************)
Appends(record) ==
  /\ Len(written) < MaxRecords
  /\ written' = Append(written, record)
  /\ log' = [log EXCEPT ![Leader] = Append(@, Batch(end[Leader], record))]
  /\ end' = [end EXCEPT ![Leader] = @ + 1]
  /\ answer' = Nothing
  /\ UNCHANGED <<bases, hw, checkpoint, truncations>>

\* UnifiedLog.appendAsLeader
AppendRecord(kind, key) ==
  /\ Appends(Record(kind, key, NoProducer))
  /\ UNCHANGED <<abortIndex, lastData>>

AppendInTransaction(p, key) ==
  /\ Appends(Record("value", key, p))
  /\ lastData' = [lastData EXCEPT ![Leader] = end[Leader]]
  /\ UNCHANGED abortIndex

\* The same of a marker that ends something.
AppendMarker(p, kind) ==
  /\ OpenIn(written, p) # {}
  /\ Appends(Record(kind, NoKey, p))
  /\ abortIndex' = [abortIndex EXCEPT ![Leader] =
       IF kind = "Aborted"
       THEN Append(@, AbortedTransaction(p, First(OpenIn(written, p)) - 1, end[Leader],
                                         end[Leader] + 1))
       ELSE @]
  /\ UNCHANGED lastData

\* UnifiedLog.roll; records or time have closed the segment.
Roll(b) ==
  /\ \E n \in DOMAIN log[b] : log[b][n].offset >= ActiveBase(b)
  /\ bases' = [bases EXCEPT ![b] = Append(@, end[b])]
  /\ answer' = Nothing
  /\ UNCHANGED <<log, end, hw, abortIndex, lastData, checkpoint, written, truncations>>

\* UnifiedLog.maybeIncrementHighWatermark; the followers here are not in the ISR.
AdvanceHighWatermark(offset) ==
  /\ hw[Leader] < offset /\ offset <= end[Leader]
  /\ hw' = [hw EXCEPT ![Leader] = offset]
  /\ answer' = Nothing
  /\ UNCHANGED <<log, bases, end, abortIndex, lastData, checkpoint, written, truncations>>

\* Where a read from `offset` on finds its first batch (UnifiedLog.read); 0: nowhere.
FirstFrom(batches, offset) == First({n \in DOMAIN batches : batches[n].offset >= offset})

\* ReplicaFetcherThread.processPartitionData: the next batch of the leader, if there is one.
Fetch(b) ==
  LET n == FirstFrom(log[Leader], end[b])
      grown == IF n = 0 THEN end[b] ELSE log[Leader][n].offset + 1
      known == Lesser(grown, hw[Leader])
  IN  /\ b # Leader /\ (n # 0 \/ known # hw[b])
      /\ log' = [log EXCEPT ![b] = IF n = 0 THEN @ ELSE Append(@, log[Leader][n])]
      /\ end' = [end EXCEPT ![b] = grown]
      /\ hw' = [hw EXCEPT ![b] = known]
      /\ answer' = Nothing
      /\ UNCHANGED <<bases, abortIndex, lastData, checkpoint, written, truncations>>

(***************************************************************************)
(* The cleaner.                                                            *)
(***************************************************************************)
\* LogCleanerManager.cleanableOffsets: a checkpoint outside of the log counts as its start.
FirstDirty(b) == IF checkpoint[b] \in 0..end[b] THEN checkpoint[b] ELSE 0

\* Records that are not stable displace none that are (KAFKA-13194).
Cleanable(b) == Lesser(StableOffset(b), ActiveBase(b))

\* LogCleanerManager.calculateCleanableBytes: whole segments.
Bound(b) ==
  LET upTo == Greater(FirstDirty(b), Cleanable(b))
  IN  bases[b][Last({n \in DOMAIN bases[b] : bases[b][n] <= upTo})]

\* CleanedTransactionMetadata: transactions by the abort index.
IsAborted(b, batch) ==
  \E i \in DOMAIN abortIndex[b] :
    LET entry == abortIndex[b][i]
    IN  InTransaction(batch) /\ entry.producer = batch.producer
        /\ entry.first <= batch.offset /\ batch.offset < entry.last

\* Batches of the transaction of an entry: those that are empty count.
IsObserved(b, entry) ==
  \E n \in DOMAIN log[b] :
    LET batch == log[b][n]
    IN  InTransaction(batch) /\ entry.producer = batch.producer
        /\ entry.first <= batch.offset /\ batch.offset < entry.last

\* Batches that the commit marker at n ends.
HasCommitted(b, n) ==
  \E m \in 1..(n - 1) :
    /\ InTransaction(log[b][m]) /\ log[b][m].producer = log[b][n].producer
    /\ ~IsAborted(b, log[b][m])
    /\ ~\E k \in (m + 1)..(n - 1) : log[b][k].kind = "Committed"

\* CleanedTransactionMetadata.onControlBatchRead: nothing is left of the transaction.
MayDiscardMarker(b, n) ==
  CASE log[b][n].kind = "EmptyMarker" -> TRUE
    [] log[b][n].kind = "Aborted" ->
         ~\E i \in DOMAIN abortIndex[b] :
            abortIndex[b][i].last = log[b][n].offset /\ IsObserved(b, abortIndex[b][i])
    [] log[b][n].kind = "Committed" -> ~HasCommitted(b, n)

\* Cleaner.buildOffsetMap: aborted records displace none.
IsMapped(b, batch) ==
  /\ batch.kind \in DataKinds /\ ~IsAborted(b, batch)
  /\ FirstDirty(b) <= batch.offset /\ batch.offset < Bound(b)
IsSuperseded(b, batch) ==
  \E m \in DOMAIN log[b] :
    /\ log[b][m].offset > batch.offset /\ log[b][m].key = batch.key
    /\ IsMapped(b, log[b][m])

\* A tombstone goes a day after the pass that has found it first, and so does a marker.
IsDue(batch) == batch.horizon = "due"

\* Cleaner.shouldRetainRecord, and what checkBatchRetention discards.
IsRetained(b, n) ==
  LET batch == log[b][n]
  IN  CASE batch.kind \in DataKinds ->
             /\ ~IsAborted(b, batch) /\ ~IsSuperseded(b, batch)
             /\ ~(batch.kind = "tombstone" /\ IsDue(batch))
        [] batch.kind \in MarkerKinds -> ~(MayDiscardMarker(b, n) /\ IsDue(batch))
        [] OTHER -> FALSE

\* MemoryRecords.filterTo: what it finds to be removed later gets its delete horizon.
GetsHorizon(b, n) ==
  /\ log[b][n].horizon = "none"
  /\ log[b][n].kind = "tombstone" \/ (IsControl(log[b][n]) /\ MayDiscardMarker(b, n))
Retained(b, n) == IF GetsHorizon(b, n) THEN [log[b][n] EXCEPT !.horizon = "set"] ELSE log[b][n]

\* A producer's last sequence stays known.
IsLastOfProducer(b, batch) == batch.producer # NoProducer /\ batch.offset = lastData[b]
\* The batch that ends at the high watermark stays: who fetches must get there (KAFKA-17076; up to
\* 4.3 it is the last batch of the pass, KAFKA-20452).
IsLastToFetch(b, batch, roundEnd) == KeepsLastBatch /\ batch.offset + 1 = hw[b]
StaysEmpty(b, batch) == IsLastOfProducer(b, batch) \/ IsLastToFetch(b, batch, Bound(b))

Stays(b, n) ==
  log[b][n].offset >= Bound(b) \/ IsRetained(b, n) \/ StaysEmpty(b, log[b][n])
AfterPass(b, n) ==
  CASE log[b][n].offset >= Bound(b) -> log[b][n]
    [] log[b][n].offset < Bound(b) /\ IsRetained(b, n) -> Retained(b, n)
    [] OTHER -> Emptied(log[b][n])

Cleaned(b) ==
  At([n \in DOMAIN log[b] |-> AfterPass(b, n)], {n \in DOMAIN log[b] : Stays(b, n)})

\* LogCleaner.cleanFilthiestLog; only where something is dirty.
Clean(b) ==
  /\ \E n \in DOMAIN log[b] : FirstDirty(b) <= log[b][n].offset /\ log[b][n].offset < Bound(b)
  /\ log' = [log EXCEPT ![b] = Cleaned(b)]
  /\ bases' = [bases EXCEPT ![b] = <<@[1]>> \o At(@, {n \in DOMAIN @ : @[n] >= Bound(b)})]
  /\ abortIndex' = [abortIndex EXCEPT ![b] =
       At(@, {i \in DOMAIN @ : @[i].last >= Bound(b) \/ IsObserved(b, @[i])})]
  /\ checkpoint' = [checkpoint EXCEPT ![b] = Bound(b)]
  /\ answer' = Nothing
  /\ UNCHANGED <<end, hw, lastData, written, truncations>>

\* Delete horizons are reached, and producers without an open transaction are forgotten.
Older(batch) == IF batch.horizon = "set" THEN [batch EXCEPT !.horizon = "due"] ELSE batch
Forgets(b) == \A p \in Producers : OpenIn(SubSeq(written, 1, end[b]), p) = {}

DayPasses ==
  /\ Days
  /\ log' = [b \in Replicas |-> [n \in DOMAIN log[b] |-> Older(log[b][n])]]
  /\ lastData' = [b \in Replicas |-> IF Forgets(b) THEN NoOffset ELSE lastData[b]]
  /\ <<log', lastData'>> # <<log, lastData>>
  /\ answer' = Nothing
  /\ UNCHANGED <<bases, end, hw, abortIndex, checkpoint, written, truncations>>

(***************************************************************************)
(* Truncation, loading.                                                    *)
(***************************************************************************)
\* LogManager.truncateTo: a checkpoint behind the active segment's beginning is cut to it.
CheckpointAfterTruncation(b, cut, active) ==
  IF cut /\ checkpoint[b] > active THEN active ELSE checkpoint[b]

Truncate(b, offset) ==
  LET left == At(bases[b], {n \in DOMAIN bases[b] : bases[b][n] <= offset})
  IN  /\ truncations < Truncations /\ offset < end[b]
      /\ log' = [log EXCEPT ![b] = At(@, {n \in DOMAIN @ : @[n].offset < offset})]
      /\ bases' = [bases EXCEPT ![b] = left]
      /\ end' = [end EXCEPT ![b] = offset]
      /\ hw' = [hw EXCEPT ![b] = Lesser(@, offset)]
      /\ checkpoint' = [checkpoint EXCEPT ![b] =
           CheckpointAfterTruncation(b, offset < ActiveBase(b), left[Len(left)])]
      /\ written' = SubSeq(written, 1, offset)
      /\ truncations' = truncations + 1
      /\ answer' = Nothing
      /\ UNCHANGED <<abortIndex, lastData>>

\* By key, the offset of the last value among these places; NoOffset: none, or it is deleted.
LastOf(records, key) ==
  LET n == Last({m \in DOMAIN records : records[m].key = key /\ records[m].kind \in DataKinds})
  IN  IF n = 0 \/ records[n].kind = "tombstone" THEN NoOffset ELSE records[n].offset
Loaded(batches) == [key \in Keys |-> LastOf(batches, key)]

\* GroupMetadataManager.loadGroupsAndOffsets: from the log start to where a read finds nothing
\* (KAFKA-9065).
Load(b) ==
  /\ Loads /\ answer = Nothing
  /\ answer' = [of |-> b, found |-> Loaded(log[b])]
  /\ UNCHANGED <<log, bases, end, hw, abortIndex, lastData, checkpoint, written, truncations>>

Next ==
  \/ \E kind \in Kinds, key \in Keys : AppendRecord(kind, key)
  \/ \E p \in Producers, key \in Keys : AppendInTransaction(p, key)
  \/ \E p \in Producers, kind \in MarkerKinds : AppendMarker(p, kind)
  \/ \E b \in Replicas : Roll(b)
  \/ \E offset \in Watermarks : AdvanceHighWatermark(offset)
  \/ \E b \in Replicas : Fetch(b)
  \/ \E b \in Replicas : Clean(b)
  \/ DayPasses
  \/ \E b \in Replicas, offset \in 0..MaxRecords : Truncate(b, offset)
  \/ \E b \in Replicas : Load(b)

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Offsets == -1..MaxRecords
TypeOK ==
  /\ \A b \in Replicas :
       /\ \A n \in DOMAIN log[b] :
            /\ log[b][n].offset \in 0..(end[b] - 1)
            /\ log[b][n].kind \in DataKinds \union MarkerKinds \union {"Empty", "EmptyMarker"}
            /\ log[b][n].horizon \in {"none", "set", "due"}
       /\ hw[b] \in 0..end[b] /\ end[b] \in 0..Len(written)
       /\ lastData[b] \in Offsets /\ checkpoint[b] \in Offsets
  /\ end[Leader] = Len(written)

\* Cleaning changes and invents nothing, so replicas agree wherever both have a record.
CleanedAgrees ==
  \A b \in Replicas : \A n \in DOMAIN log[b] :
    LET batch == log[b][n]
    IN  HasRecord(batch) => Record(batch.kind, batch.key, batch.producer) = written[batch.offset + 1]

\* What a consumer with isolation.level=read_committed reads of a replica, by offset.
Gap == [kind |-> "Empty", producer |-> NoProducer]
Padded(b) ==
  [i \in 1..end[b] |->
     LET n == FirstFrom(log[b], i - 1)
     IN  IF n # 0 /\ log[b][n].offset = i - 1 THEN log[b][n] ELSE Gap]
Read(b) ==
  {i \in Filtered(Padded(b), 0, StableOffset(b), CollectAborted(abortIndex[b], 0, StableOffset(b)), {}) :
     Padded(b)[i].kind \in DataKinds}
LastRead(records, places, key) ==
  LET i == Last({j \in places : records[j].key = key})
  IN  IF i = 0 \/ records[i].kind = "tombstone" THEN NoOffset ELSE i - 1

\* The last committed value of each key is read, and what was deleted is not.
LatestSurvives ==
  \A b \in Replicas : hw[b] = end[Leader] \/ b = Leader =>
    \A key \in Keys :
      LastRead(Padded(b), Read(b), key)
        = LastRead(written, CommittedBelow(written, 0, StableOffset(b)), key)

\* What is aborted is never read.
AbortedIsHidden ==
  \A b \in Replicas : Read(b) \subseteq CommittedBelow(written, 0, StableOffset(b))

\* Who fetches reaches the log end.
EndIsReachable ==
  \A b \in Replicas :
    end[b] > 0 => log[b] # <<>> /\ log[b][Len(log[b])].offset + 1 = end[b]

\* The end of a transaction stays while a batch of it does: a replica that copies the log, or loads
\* it, has no transaction that is open for ever.
MarkerOutlivesData ==
  \A b \in Replicas : \A n \in DOMAIN log[b] :
    LET mark == EndOf(written, log[b][n].offset + 1)
    IN  InTransaction(log[b][n]) /\ mark # 0 /\ mark <= end[b] =>
          \E m \in DOMAIN log[b] : log[b][m].offset = mark - 1 /\ HasRecord(log[b][m])

\* Below the checkpoint each key has one record.
CleanPartIsClean ==
  \A b \in Replicas : \A m, n \in DOMAIN log[b] :
    (m < n /\ log[b][n].offset < checkpoint[b]
     /\ log[b][m].kind \in DataKinds /\ log[b][n].kind \in DataKinds)
      => log[b][m].key # log[b][n].key

\* A load finds the last values of the log as it was written.
LoadFindsLatest ==
  answer # Nothing /\ end[answer.of] = end[Leader] =>
    \A key \in Keys : answer.found[key] = LastRead(written, DOMAIN written, key)

\* A tombstone stays for a day at least, unless a later record of its key makes it superfluous.
TombstoneWaits ==
  [][\A b \in Replicas : \A n \in DOMAIN log[b] :
       LET batch == log[b][n]
       IN  (batch.kind = "tombstone" /\ batch.horizon # "due" /\ batch.offset < end'[b])
             => \/ \E m \in DOMAIN log'[b] :
                     log'[b][m].offset = batch.offset /\ log'[b][m].kind = "tombstone"
                \/ \E m \in DOMAIN log'[b] :
                     log'[b][m].offset > batch.offset /\ log'[b][m].key = batch.key]_vars

\* The last sequence of a producer that is known stays known.
LastSequenceStays ==
  \A b \in Replicas :
    lastData[b] # NoOffset => \E n \in DOMAIN log[b] : log[b][n].offset = lastData[b]

Spec == Init /\ [][Next]_vars
=============================================================================
