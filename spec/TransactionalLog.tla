--------------------------- MODULE TransactionalLog ---------------------------
(***************************************************************************)
(* One partition that transactional producers and others write, and a      *)
(* consumer with isolation.level=read_committed that reads it in pieces:   *)
(* the last stable offset and the abort index, as a broker keeps them.     *)
(*                                                                         *)
(* Kafka: UnifiedLog (append, updateHighWatermark, truncateTo, read with   *)
(* TXN_COMMITTED), ProducerStateManager (ongoingTxns, unreplicatedTxns),   *)
(* TransactionIndex, CompletedFetch.                                       *)
(*                                                                         *)
(* Who decides a transaction, and which epochs may write, is the business  *)
(* of Transactions; here a producer's transaction ends in either way.      *)
(***************************************************************************)
EXTENDS ReadCommitted

CONSTANTS
  Producers,
  MaxRecords,       \* length of the log
  PieceSizes,       \* how many records a fetch returns at most
  MaxLeaderChanges, \* elections that may cut the log
  Deletions         \* DeleteRecords

(***************************************************************************)
(* variable      | field                                                   *)
(* --------------+-------------------------------------------------------- *)
(* log           | UnifiedLog: kind and producer of each record            *)
(* highWatermark | UnifiedLog.highWatermark                                *)
(* logStart      | UnifiedLog.logStartOffset; what is deleted stays in log *)
(* ongoing[p]    | ProducerStateManager.ongoingTxns: the first offset      *)
(* unreplicated  | ProducerStateManager.unreplicatedTxns                   *)
(* abortIndex    | TransactionIndex                                        *)
(* position      | the consumer's                                          *)
(* delivered     | ghost: places that the consumer's application got       *)
(* deleted       | ghost: places that were deleted before it read them     *)
(* leaderChanges | ghost: how many there were                              *)
(***************************************************************************)
VARIABLES log, highWatermark, logStart, ongoing, unreplicated, abortIndex, position, delivered,
          deleted, leaderChanges

vars == <<log, highWatermark, logStart, ongoing, unreplicated, abortIndex, position, delivered,
          deleted, leaderChanges>>
broker == <<log, highWatermark, logStart, ongoing, unreplicated, abortIndex, leaderChanges>>
consumer == <<position, delivered, deleted>>
GhostVars == {"delivered", "deleted", "leaderChanges"}

NoOffset == -1
Record(kind, producer) == [kind |-> kind, producer |-> producer]
Lengths == 0..MaxRecords

Init ==
  /\ log = <<>> /\ highWatermark = 0 /\ logStart = 0
  /\ ongoing = [p \in Producers |-> NoOffset] /\ unreplicated = {} /\ abortIndex = <<>>
  /\ position = 0 /\ delivered = {} /\ deleted = {}
  /\ leaderChanges = 0

(***************************************************************************)
(* UnifiedLog.firstUnstableOffset and lastStableOffset. The high watermark *)
(* is read once (KAFKA-9807).                                              *)
(***************************************************************************)
FirstOffsets ==
  {ongoing[p] : p \in {q \in Producers : ongoing[q] # NoOffset}}
    \union {t.first : t \in unreplicated}
FirstUnstable ==
  IF FirstOffsets = {} THEN NoOffset ELSE Greater(logStart, First(FirstOffsets))
StableOffset ==
  IF FirstUnstable # NoOffset /\ FirstUnstable < highWatermark
  THEN FirstUnstable ELSE highWatermark

(***************************************************************************)
(* Appends.                                                                *)
(***************************************************************************)
MayGrow == Len(log) < MaxRecords

AppendPlain ==
  /\ MayGrow
  /\ log' = Append(log, Record("data", NoProducer))
  /\ UNCHANGED <<highWatermark, logStart, ongoing, unreplicated, abortIndex, leaderChanges>>
  /\ UNCHANGED consumer

AppendData(p) ==
  /\ MayGrow
  /\ log' = Append(log, Record("data", p))
  /\ ongoing' = [ongoing EXCEPT ![p] = IF @ = NoOffset THEN Len(log) ELSE @]
  /\ UNCHANGED <<highWatermark, logStart, unreplicated, abortIndex, leaderChanges>>
  /\ UNCHANGED consumer

\* ProducerStateManager.lastStableOffset(completedTxn): as far as others let it.
OtherOngoing(p) == {ongoing[q] : q \in {r \in Producers \ {p} : ongoing[r] # NoOffset}}
StableWithout(p) == IF OtherOngoing(p) = {} THEN Len(log) + 1 ELSE First(OtherOngoing(p))
\* Only aborted transactions are in the index.
IsIndexed(kind) == kind = "Aborted"

AfterMarker(p) == NoOffset

\* A marker ends what is open; where nothing is open it changes the log only.
AppendMarker(p, kind) ==
  /\ MayGrow
  /\ log' = Append(log, Record(kind, p))
  /\ ongoing' = [ongoing EXCEPT ![p] = AfterMarker(p)]
  /\ IF ongoing[p] = NoOffset
     THEN UNCHANGED <<unreplicated, abortIndex>>
     ELSE /\ unreplicated' = unreplicated \union {[first |-> ongoing[p], last |-> Len(log)]}
          /\ abortIndex' =
               IF IsIndexed(kind)
               THEN Append(abortIndex,
                           AbortedTransaction(p, ongoing[p], Len(log), StableWithout(p)))
               ELSE abortIndex
  /\ UNCHANGED <<highWatermark, logStart, leaderChanges>>
  /\ UNCHANGED consumer

(***************************************************************************)
(* Replication, deletion, another leader.                                  *)
(***************************************************************************)
\* ProducerStateManager.onHighWatermarkUpdated.
StillUnreplicated(hw) == {t \in unreplicated : t.last >= hw}

AdvanceHighWatermark(hw) ==
  /\ highWatermark < hw /\ hw <= Len(log)
  /\ highWatermark' = hw
  /\ unreplicated' = StillUnreplicated(hw)
  /\ UNCHANGED <<log, logStart, ongoing, abortIndex, leaderChanges>>
  /\ UNCHANGED consumer

DeleteRecords(offset) ==
  /\ Deletions /\ logStart < offset /\ offset <= highWatermark
  /\ logStart' = offset
  /\ UNCHANGED <<log, highWatermark, ongoing, unreplicated, abortIndex, leaderChanges>>
  /\ UNCHANGED consumer

\* What a replica makes of its log, as it appends, truncates or recovers.
OngoingOf(records) == [p \in Producers |-> First(OpenIn(records, p)) - 1]
UnreplicatedOf(records, hw) ==
  {[first |-> First(EndedBy(records, j)) - 1, last |-> j - 1] :
     j \in {i \in (hw + 1)..Len(records) : IsMarker(records[i]) /\ EndedBy(records, i) # {}}}

IndexAfterElection(records) == AbortIndexOf(records)

\* A follower with `end` records leads. What was committed it has; its high watermark may lag, so
\* that consumers wait.
ElectFollower(end, hw) ==
  /\ leaderChanges < MaxLeaderChanges
  /\ highWatermark <= end /\ end <= Len(log) /\ logStart <= hw /\ hw <= highWatermark
  /\ LET records == SubSeq(log, 1, end) IN
       /\ log' = records
       /\ ongoing' = OngoingOf(records)
       /\ unreplicated' = UnreplicatedOf(records, hw)
       /\ abortIndex' = IndexAfterElection(records)
  /\ highWatermark' = hw
  /\ leaderChanges' = leaderChanges + 1
  /\ UNCHANGED logStart
  /\ UNCHANGED consumer

(***************************************************************************)
(* The consumer.                                                           *)
(***************************************************************************)
\* The end of the range for which aborted transactions are looked up: that of the records returned.
UpperBound(from, end) == end

Fetch(size) ==
  /\ logStart <= position /\ position < StableOffset
  /\ LET end == Lesser(position + size, StableOffset)
         aborted == CollectAborted(abortIndex, position, UpperBound(position, end))
     IN  /\ delivered' = delivered \union Filtered(log, position, end, aborted, {})
         /\ position' = end
  /\ UNCHANGED deleted
  /\ UNCHANGED broker

\* OFFSET_OUT_OF_RANGE: the consumer goes on at the log start (auto.offset.reset=earliest).
ResetPosition ==
  /\ position < logStart
  /\ deleted' = deleted \union ((position + 1)..logStart)
  /\ position' = logStart
  /\ UNCHANGED delivered
  /\ UNCHANGED broker

Next ==
  \/ AppendPlain
  \/ \E p \in Producers : AppendData(p)
  \/ \E p \in Producers, kind \in MarkerKinds : AppendMarker(p, kind)
  \/ \E hw \in Lengths : AdvanceHighWatermark(hw)
  \/ \E offset \in Lengths : DeleteRecords(offset)
  \/ \E end \in Lengths, hw \in Lengths : ElectFollower(end, hw)
  \/ \E size \in PieceSizes : Fetch(size)
  \/ ResetPosition

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Offsets == -1..MaxRecords
TypeOK ==
  /\ \A i \in DOMAIN log :
       log[i].kind \in MarkerKinds \union {"data"} /\ log[i].producer \in Producers \union {NoProducer}
  /\ highWatermark \in 0..Len(log) /\ logStart \in 0..highWatermark
  /\ ongoing \in [Producers -> Offsets]
  /\ \A t \in unreplicated : t.first \in Offsets /\ t.last \in Offsets
  /\ position \in 0..MaxRecords
  /\ delivered \subseteq 1..MaxRecords /\ deleted \subseteq 1..MaxRecords

\* A consumer never gets what is undecided, nor what may still be lost with its marker, and is not
\* made to wait without a reason (S17).
StableOffsetIsExact == StableOffset = LastStableOffset(log, logStart, highWatermark)

\* Weaker than StableOffsetIsExact, as Kafka is (boundary-log-restarts): no consumer gets what is
\* open, and none waits without a reason.
FirstOpen == {i \in DOMAIN log : IsTransactional(log[i]) /\ EndOf(log, i) = 0}
StableOffsetIsDecided ==
  /\ LastStableOffset(log, logStart, highWatermark) <= StableOffset
  /\ FirstOpen # {} => StableOffset < First(FirstOpen)

\* A read_committed consumer is never sent before the log start (S18).
StableOffsetInLog == logStart <= StableOffset /\ StableOffset <= highWatermark

\* A consumer gets the records of committed transactions and those of none, all of them and
\* nothing else, however it cuts its fetches (S19).
ConsumerGetsCommitted ==
  delivered \ deleted = CommittedBelow(log, 0, Lesser(position, Len(log))) \ deleted

\* Nothing that a consumer has got is lost by an election.
DeliveredIsKept == position <= Len(log)

\* Leader, follower and a replica that recovers have the same index (S20).
AbortIndexIsThatOfLog == abortIndex = AbortIndexOf(log)

\* They have the same producer state (S21).
OngoingIsThatOfLog == ongoing = OngoingOf(log)

\* While one leader leads, a consumer is not sent back (A8).
StableOffsetNeverFalls ==
  [][leaderChanges' = leaderChanges => StableOffset' >= StableOffset]_vars

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
DecidedButUnstable == \E t \in unreplicated : t.first < highWatermark
AbortedBesideOpen ==
  abortIndex # <<>> /\ \E p \in Producers : ongoing[p] # NoOffset /\ ongoing[p] < Head(abortIndex).last
ReaderInsideAborted ==
  \E i \in DOMAIN abortIndex : abortIndex[i].first < position /\ position <= abortIndex[i].last
===============================================================================
