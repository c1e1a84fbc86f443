------------------------ MODULE CoordinatorTransactions -----------------------
(***************************************************************************)
(* The runtime with a shard whose values may be written in transactions:   *)
(* they are pending until the marker of their producer is replayed, in     *)
(* memory before it is appended, and by a load.                            *)
(*                                                                         *)
(* Kafka: CoordinatorRuntime.scheduleTransactionalWriteOperation,          *)
(* scheduleTransactionCompletion, CoordinatorContext.completeTransaction;  *)
(* the shard stores values as OffsetMetadataManager stores offsets. Whether*)
(* the transaction coordinator knows a producer is Transactions: here      *)
(* producers write, and their transactions end, at any time.               *)
(***************************************************************************)
EXTENDS CoordinatorLaw, LogCleaner, PendingOffsets

CONSTANTS
  Producers,           \* producer ids, from 1 on
  TransactionalKinds   \* kinds of writes that are made in transactions

Keys == {"k1", "k2"}
Commit == "COMMIT"
Abort == "ABORT"

(***************************************************************************)
(* Records. `producer` is of the header of the record's batch, `at` the    *)
(* record's offset. A record of `control` is a marker; its key is the      *)
(* result.                                                                 *)
(***************************************************************************)
Value(key, value) ==
  [key |-> key, value |-> value, producer |-> NoProducer, control |-> FALSE, at |-> 0]
Marker(p, end) == [Value(end, 0) EXCEPT !.producer = p, !.control = TRUE]

NoValues == [offsets |-> Nothing, pending |-> Nothing]
ReplayMarker(s, record) == ReplayEnd(s, record.producer, record.key = Commit)
ValuesReplay(s, record) == IF record.control THEN ReplayMarker(s, record) ELSE ReplayValue(s, record)
ValuesAreLoaded(s) == TRUE

ValueRecords(kind, w) ==
  CASE kind = "two" -> <<Value("k1", w), Value("k2", w)>>
    [] kind = "delete" -> <<Value("k1", Tombstone)>>
    [] kind = "nothing" -> <<>>
    [] OTHER -> <<Value("k1", w)>>
ValuesOperation(kind, w, memory) == Result(ValueRecords(kind, w))

(***************************************************************************)
(* Writes in a transaction, and its end. Both have a batch alone.          *)
(***************************************************************************)
InTransaction(operation, p) ==
  [operation EXCEPT !.producer = p,
                    !.records = [i \in DOMAIN @ |-> [@[i] EXCEPT !.producer = p]]]
TransactionalWrite(b, p, kind, result) ==
  /\ MayWrite(b)
  /\ Run(b, InTransaction(Operation(kind, NextWrite, shard[b].memory), p), result)

\* Whether the shard replays the marker before it is appended, and with it the snapshot behind it.
ReplaysBeforeAppend == TRUE

\* An append behind records that the shard does not know: as of a batch, it is noticed. Kafka's
\* completeTransaction takes the offset that the log gives (`boundary-marker-out-of-sync`).
MarkerNoticesOutOfSync == TRUE
MarkerTaken(s, records, w) ==
  LET longer == records \o Placed(Batch(s.batch), Len(records))
      end == Len(longer)
  IN  Outcome([s EXCEPT !.written = end, !.batch = <<>>, !.joined = {},
                        !.snapshots = WithSnapshot(@, end, s.memory),
                        !.deferred = @ \union {[at |-> end, write |-> w]}],
              longer, {}, FALSE)

\* A failure takes the shard back to before the marker, and the marker's event alone fails.
MarkerReverted(s) == [s EXCEPT !.memory = s.snapshots[s.written], !.batch = <<>>, !.joined = {}]
MarkerAppended(s, records, w, result) ==
  LET taken == MarkerTaken(s, records, w)
  IN  CASE result = "refused" -> Outcome(MarkerReverted(s), records, {w}, FALSE)
        [] result = "thrown" -> Outcome(MarkerReverted(s), taken.log, {w}, FALSE)
        [] OTHER ->
             IF MarkerNoticesOutOfSync /\ IsOutOfSync(s, records)
             THEN Outcome(FreshShard, taken.log, WaitingIn(s), TRUE) ELSE taken

Completed(s, records, marker, w, result, leads) ==
  LET first == s.batch # <<>>
      before == IF first THEN Flushed(s, records, FirstResult(result), leads)
                ELSE Outcome(s, records, {}, FALSE)
      goesOn == ~first \/ (FirstResult(result) = "appended" /\ ~before.outOfSync)
      base == before.shard
      batch == Placed(RecordsOf(<<marker>>, w), base.written)
      replayed == Replayed(base.memory, batch)
      begun == [base EXCEPT !.memory = IF ReplaysBeforeAppend THEN replayed ELSE @,
                            !.batch = batch, !.joined = {w}]
      after == MarkerAppended(begun, before.log, w, IF first THEN NextResult(result) ELSE result)
      ended == IF after.failed = {} /\ ~after.outOfSync
               THEN [after EXCEPT !.shard.memory = replayed] ELSE after
  IN  IF goesOn THEN [ended EXCEPT !.failed = @ \union before.failed]
      ELSE [before EXCEPT !.failed = @ \union {w}]

MarkerMayComeTo(b, marker, result) ==
  LET outcome(r) == Completed(shard[b], log[b], marker, NextWrite, r, Leads(b))
  IN  IF result \in LaterResults
      THEN AppendFailures /\ Leads(b) /\ outcome(result) # outcome("appended")
      ELSE result \in Results(b)
CompleteTransaction(b, p, end, result) ==
  LET w == NextWrite
      marker == Marker(p, end)
  IN  /\ MayWrite(b) /\ MarkerMayComeTo(b, marker, result)
      /\ Becomes(b, Completed(shard[b], log[b], marker, w, result, Leads(b)), Append(answers, "none"))
      /\ writes' = Append(writes, [on |-> b, size |-> 1, atomic |-> TRUE, seen |-> Seen(b, {w})])
      /\ UNCHANGED <<leader, epoch, deleted, hw, roles, tenure>>

TransactionsNext ==
  \/ Next
  \/ \E b \in Brokers, p \in Producers, kind \in TransactionalKinds,
        result \in AppendResults \union LaterResults : TransactionalWrite(b, p, kind, result)
  \/ \E b \in Brokers, p \in Producers, end \in {Commit, Abort},
        result \in AppendResults \union LaterResults : CompleteTransaction(b, p, end, result)

(***************************************************************************)
(* The log cleaner goes no further than the first transaction that is open *)
(* (UnifiedLog.lastStableOffset). It drops what was aborted, and does not  *)
(* count it as its key's newest (Cleaner.buildOffsetMap). A later pass     *)
(* drops tombstones before which nothing of their key is left, and markers *)
(* of whose transaction nothing is left (CleanedTransactionMetadata).      *)
(***************************************************************************)
IsData(record) == ~record.control
IsMarkerOf(record, p) == record.control /\ record.producer = p
EndsOf(records, n) == {m \in DOMAIN records : m > n /\ IsMarkerOf(records[m], records[n].producer)}
IsOpen(records, n) ==
  IsData(records[n]) /\ records[n].producer # NoProducer /\ EndsOf(records, n) = {}
IsAborted(records, n) ==
  /\ IsData(records[n]) /\ records[n].producer # NoProducer
  /\ \E m \in EndsOf(records, n) : records[m].key = Abort /\ \A o \in EndsOf(records, n) : m <= o

LastStable(records) ==
  CHOOSE n \in 0..Len(records) :
    /\ \A m \in 1..n : ~IsOpen(records, m)
    /\ n = Len(records) \/ IsOpen(records, n + 1)
CleanerEnds(records) == {o \in BatchEnds(records) : o <= LastStable(records)}

CleanerKeys(records) ==
  [n \in DOMAIN records |->
     IF IsData(records[n]) /\ ~IsAborted(records, n) THEN <<records[n].key, 0>> ELSE <<"", n>>]
Cleaned(records, i, j) ==
  {n \in Survivors(CleanerKeys(records), i, j) : n <= i \/ n > j \/ ~IsAborted(records, n)}

HasData(records, kept, n) ==
  \E m \in kept : /\ m < n /\ IsData(records[m]) /\ records[m].producer = records[n].producer
                  /\ n = CHOOSE o \in EndsOf(records, m) : \A other \in EndsOf(records, m) : o <= other
HasValue(records, kept, n) ==
  \E m \in kept : m < n /\ IsData(records[m]) /\ records[m].key = records[n].key
IsNeeded(records, kept, n) ==
  IF records[n].control THEN HasData(records, kept, n)
  ELSE records[n].value # Tombstone \/ HasValue(records, kept, n)
Needed(records, kept, last) == {n \in kept : n > last \/ IsNeeded(records, kept, n)}

ValuesCompactions(records) ==
  LET windows == {w \in CleanerEnds(records) \X CleanerEnds(records) : w[1] < w[2]}
      once == {[kept |-> Cleaned(records, w[1], w[2]), last |-> w[2]] : w \in windows}
  IN  {At(records, pass.kept) : pass \in once}
        \union {At(records, Needed(records, pass.kept, pass.last)) : pass \in once}

(***************************************************************************)
(* What a transaction is for: of all values of a key that were committed   *)
(* the one with the greatest offset is in force, in whatever order the     *)
(* transactions ended; nothing of an open or an aborted one is.            *)
(***************************************************************************)
IsCommitted(records, n) ==
  IsData(records[n]) /\ ~IsOpen(records, n) /\ ~IsAborted(records, n)
InForce(records, key) ==
  LET committed == {n \in DOMAIN records : IsCommitted(records, n) /\ records[n].key = key}
  IN  IF committed = {} THEN Tombstone
      ELSE records[CHOOSE n \in committed : \A m \in committed : m <= n].value
ValueOf(s, key) == IF key \in DOMAIN s.offsets THEN s.offsets[key].value ELSE Tombstone
NewestIsInForce ==
  \A b \in Brokers, key \in Keys : ValueOf(Load(log[b]), key) = InForce(log[b], key)

Entries == [value : 1..MaxWrites, at : 0..(2 * MaxWrites)]
TypeOK ==
  /\ RuntimeTypeOK
  /\ \A b \in Brokers :
       LET memory == shard[b].memory
       IN  /\ DOMAIN memory.offsets \subseteq Keys /\ Range(memory.offsets) \subseteq Entries
           /\ DOMAIN memory.pending \subseteq Producers \X Keys
           /\ Range(memory.pending) \subseteq Entries

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
PendingInMemory == \E b \in Brokers : Serves(b) /\ DOMAIN shard[b].memory.pending # {}
LoadedPending ==
  \E b \in Brokers : Serves(b) /\ shard[b].deferred = {} /\ DOMAIN shard[b].memory.pending # {}
OlderIsCommitted ==
  \E b \in Brokers : \E n \in DOMAIN log[b] :
    IsCommitted(log[b], n) /\ log[b][n].producer # NoProducer /\ log[b][n].value # InForce(log[b], log[b][n].key)
===============================================================================
