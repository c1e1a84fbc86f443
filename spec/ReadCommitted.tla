---------------------------- MODULE ReadCommitted ----------------------------
(***************************************************************************)
(* What a consumer with isolation.level=read_committed gets from a log.    *)
(* First what it must get, as functions of the log; then how a broker and  *)
(* a consumer find it: the abort index, its look-up, the consumer's filter.*)
(*                                                                         *)
(* A log is a sequence of records. A record has at least the fields        *)
(* `kind` and `producer`; all batches hold one record. The record at place *)
(* i has offset i - 1, so `i <= n` says that it is below offset n.         *)
(* A record of no producer belongs to no transaction.                      *)
(*                                                                         *)
(* Kafka: UnifiedLog, ProducerStateManager, TransactionIndex,              *)
(* CompletedFetch. Nothing here knows of requests or brokers.              *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

NoProducer == "none"
MarkerKinds == {"Committed", "Aborted"}  \* control records: COMMIT and ABORT

IsMarker(record) == record.kind \in MarkerKinds
IsTransactional(record) == record.producer # NoProducer /\ ~IsMarker(record)

\* The first and the last of places; 0: there is none.
First(places) == IF places = {} THEN 0 ELSE CHOOSE i \in places : \A j \in places : i <= j
Last(places) == IF places = {} THEN 0 ELSE CHOOSE i \in places : \A j \in places : j <= i
Lesser(a, b) == IF a < b THEN a ELSE b
Greater(a, b) == IF a < b THEN b ELSE a

(***************************************************************************)
(* Transactions in a log.                                                  *)
(***************************************************************************)
MarkersOf(log, producer) ==
  {i \in DOMAIN log : IsMarker(log[i]) /\ log[i].producer = producer}

\* Where the transaction ends to which the record at i belongs; 0: it is open.
EndOf(log, i) == First({j \in MarkersOf(log, log[i].producer) : j > i})

\* The records of the transaction of `producer` that is open at the end of the log.
OpenIn(log, producer) ==
  {i \in DOMAIN log :
     IsTransactional(log[i]) /\ log[i].producer = producer /\ EndOf(log, i) = 0}

\* The records that the marker at j ends: an effective marker has some.
EndedBy(log, j) ==
  {i \in DOMAIN log :
     IsTransactional(log[i]) /\ log[i].producer = log[j].producer /\ EndOf(log, i) = j}

Outcome(log, i) ==
  IF ~IsTransactional(log[i]) THEN "Committed"
  ELSE IF EndOf(log, i) = 0 THEN "Open"
  ELSE log[EndOf(log, i)].kind

(***************************************************************************)
(* The last stable offset: below it everything is decided, and replicated  *)
(* together with its marker (UnifiedLog.fetchLastStableOffset).            *)
(***************************************************************************)
Unstable(log, hw) ==
  {i \in DOMAIN log :
     IsTransactional(log[i]) /\ (EndOf(log, i) = 0 \/ EndOf(log, i) > hw)}

LastStableOffset(log, start, hw) ==
  IF Unstable(log, hw) = {} THEN hw
  ELSE Lesser(hw, Greater(start, First(Unstable(log, hw)) - 1))

\* What a read_committed consumer gets that reads the whole log.
CommittedBelow(log, start, offset) ==
  {i \in (start + 1)..offset : ~IsMarker(log[i]) /\ Outcome(log, i) = "Committed"}
ReadsCommitted(log, start, hw) == CommittedBelow(log, start, LastStableOffset(log, start, hw))

(***************************************************************************)
(* The abort index: an entry for each abort marker that ends something, in *)
(* the order of the markers. All its numbers are offsets.                  *)
(*   first  of the transaction's first record                              *)
(*   last   of the marker                                                  *)
(*   stable the last stable offset behind it: the first record of the      *)
(*          oldest other open transaction, else what follows the marker    *)
(* (AbortedTxn, ProducerStateManager.lastStableOffset.)                    *)
(***************************************************************************)
AbortedTransaction(producer, first, last, stable) ==
  [producer |-> producer, first |-> first, last |-> last, stable |-> stable]

OpenBehind(log, j) ==
  {i \in 1..j : IsTransactional(log[i]) /\ (EndOf(log, i) = 0 \/ EndOf(log, i) > j)}
StableBehind(log, j) == IF OpenBehind(log, j) = {} THEN j ELSE First(OpenBehind(log, j)) - 1

RECURSIVE AbortIndexTo(_, _)
AbortIndexTo(log, j) ==
  IF j = 0 THEN <<>>
  ELSE IF log[j].kind = "Aborted" /\ EndedBy(log, j) # {}
  THEN Append(AbortIndexTo(log, j - 1),
              AbortedTransaction(log[j].producer, First(EndedBy(log, j)) - 1, j - 1,
                                 StableBehind(log, j)))
  ELSE AbortIndexTo(log, j - 1)
AbortIndexOf(log) == AbortIndexTo(log, Len(log))

\* TransactionIndex.collectAbortedTxns: the entries that concern the offsets [from, upper).
Concerns(entry, from, upper) == entry.last >= from /\ entry.first < upper
IsLastOfLookUp(entry, upper) == entry.stable >= upper

RECURSIVE CollectAborted(_, _, _)
CollectAborted(index, from, upper) ==
  IF index = <<>> THEN {}
  ELSE LET entry == Head(index)
           here == IF Concerns(entry, from, upper)
                   THEN {[producer |-> entry.producer, first |-> entry.first]} ELSE {}
       IN  IF IsLastOfLookUp(entry, upper) THEN here
           ELSE here \union CollectAborted(Tail(index), from, upper)

(***************************************************************************)
(* The consumer's filter: CompletedFetch.nextFetchedRecord. `aborted` are  *)
(* the transactions of the response that begin later, `skipped` the        *)
(* producers whose aborted transaction is being read.                      *)
(***************************************************************************)
EndsSkipping(record) == record.kind = "Aborted"

RECURSIVE Filtered(_, _, _, _, _)
Filtered(log, from, upper, aborted, skipped) ==
  IF from >= upper THEN {}
  ELSE LET record == log[from + 1]
           begun == {a \in aborted : a.first <= from}
           marked == skipped \union {a.producer : a \in begun}
           left == IF EndsSkipping(record) THEN marked \ {record.producer} ELSE marked
           isRead == ~IsMarker(record) /\ ~(IsTransactional(record) /\ record.producer \in marked)
       IN  (IF isRead THEN {from + 1} ELSE {})
             \union Filtered(log, from + 1, upper, aborted \ begun, left)
===============================================================================
