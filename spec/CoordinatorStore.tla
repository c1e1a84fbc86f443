--------------------------- MODULE CoordinatorStore ---------------------------
(***************************************************************************)
(* The runtime with a shard that stores values by key: the smallest shard  *)
(* whose records are values and tombstones, as those of groups, offsets    *)
(* and share states are. The operators below fill in what                  *)
(* CoordinatorRuntime leaves open.                                         *)
(***************************************************************************)
EXTENDS CoordinatorLaw, LogCleaner

Keys == {"k1", "k2"}
Tombstone == 0

EmptyStore == [key \in Keys |-> Tombstone]
StoreReplay(before, record) == [before EXCEPT ![record.key] = record.value]
StoreIsLoaded(store) == TRUE

Value(key, value) == [key |-> key, value |-> value]
StoreRecords(kind, w) ==
  CASE kind = "two" -> <<Value("k1", w), Value("k2", w)>>
    [] kind = "parts" -> <<Value("k1", w), Value("k2", w), Value("k1", w)>>
    [] kind = "delete" -> <<Value("k1", Tombstone)>>
    [] kind = "nothing" -> <<>>
    [] OTHER -> <<Value("k1", w)>>

\* A large record is larger than a batch until it is compressed (KAFKA-19760).
StoreOperation(kind, w, memory) ==
  LET result == Result(StoreRecords(kind, w))
  IN  [result EXCEPT !.size = IF kind = "large" THEN MaxBatch + 1 ELSE @,
                     !.replays = kind \notin {"direct", "large"},
                     !.atomic = kind # "parts"]

\* What the log has of a write that is not atomic is the beginning of it.
PlaceInWrite(records, i) ==
  Cardinality({j \in DOMAIN records : j <= i /\ records[j].write = records[i].write})
PartsInOrder ==
  \A b \in Brokers : \A i \in DOMAIN log[b] :
    LET record == log[b][i]
        parts == StoreRecords("parts", record.write)
        place == PlaceInWrite(log[b], i)
    IN  ~writes[record.write].atomic =>
          place <= Len(parts) /\ parts[place] = Value(record.key, record.value)

(***************************************************************************)
(* The log cleaner, between two ends of batches: a later pass also drops a *)
(* tombstone before which nothing of its key is left.                      *)
(***************************************************************************)
KeysOf(records) == [n \in DOMAIN records |-> records[n].key]
Bare(records, kept) ==
  {n \in kept : records[n].value # Tombstone \/ \E m \in kept : m < n /\ records[m].key = records[n].key}
StoreCompactions(records) ==
  LET windows == {w \in BatchEnds(records) \X BatchEnds(records) : w[1] < w[2]}
      kept == {Survivors(KeysOf(records), w[1], w[2]) : w \in windows}
  IN  {At(records, places) : places \in kept \union {Bare(records, k) : k \in kept}}

TypeOK ==
  /\ RuntimeTypeOK
  /\ \A b \in Brokers : shard[b].memory \in [Keys -> 0..MaxWrites]
===============================================================================
