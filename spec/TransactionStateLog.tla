------------------------- MODULE TransactionStateLog -------------------------
(***************************************************************************)
(* What a record of __transaction_state means to the coordinator that      *)
(* loads it, and a log of one transactional id that a coordinator writes.  *)
(*                                                                         *)
(* Kafka: TransactionStateManager.loadTransactionMetadata and              *)
(* TransactionLog.read (until 4.2 readTxnRecordKey, readTxnRecordValue).   *)
(* A record that cannot be read ends the load without a word: the          *)
(* coordinator serves with what was read before.                           *)
(***************************************************************************)
EXTENDS LogCleaner

CONSTANTS
  UnknownValuesAreSkipped,  \* values of an unknown version: from 4.3 on; before, they end the load
  MaxWrites

VARIABLE log

(***************************************************************************)
(* A record's fields.                                                      *)
(*                                                                         *)
(* type    | "Transaction"; "Unknown", "UnknownValue" by the version of    *)
(*         | its key or its value; "Unreadable"                            *)
(* value   | stands for the value: equal for equal ones; 0: a tombstone    *)
(* status  | TransactionState.id                                           *)
(* listed  | it has a list of partitions, be it empty                      *)
(* version | ClientTransactionVersion                                      *)
(***************************************************************************)
Tombstone == 0
Empty == 0
Ongoing == 1
PrepareCommit == 2
CompleteCommit == 4
Statuses == 0..7   \* TransactionState.fromId throws for others
Versions == 0..2   \* TransactionVersion.fromFeatureLevel too

EmptyTransaction == [value |-> Tombstone, failed |-> ""]
Failed(s, rule) == [s EXCEPT !.failed = rule]

TransactionReplay(s, r) ==
  IF s.failed # "" THEN s
  ELSE CASE r.type = "Unreadable" -> Failed(s, "Unreadable")
         [] r.type = "Unknown" -> s
         [] r.type = "UnknownValue" ->
              IF UnknownValuesAreSkipped THEN s ELSE Failed(s, "ValueIsUnknown")
         [] r.value = Tombstone -> EmptyTransaction
         [] r.status \notin Statuses -> Failed(s, "StatusIsUnknown")
         [] r.status # Empty /\ ~r.listed -> Failed(s, "PartitionsAreMissing")
         [] r.version \notin Versions -> Failed(s, "VersionIsUnknown")
         [] OTHER -> [s EXCEPT !.value = r.value]

RECURSIVE Replayed(_, _)
Replayed(s, records) ==
  IF records = <<>> THEN s ELSE Replayed(TransactionReplay(s, Head(records)), Tail(records))
Load(records) == Replayed(EmptyTransaction, records)

(***************************************************************************)
(* What a coordinator writes: TransactionLog.valueToBytes.                 *)
(***************************************************************************)
Record(value, status, listed) ==
  [type |-> "Transaction", value |-> value, status |-> status, listed |-> listed, version |-> 2]
Newest == IF log = <<>> THEN Record(Tombstone, Empty, FALSE) ELSE log[Len(log)]
Value == Len(log) + 1

HasPartitions(status) == status # Empty
Written(status) == log' = Append(log, Record(Value, status, HasPartitions(status)))

Initialize == Newest.status \in {Empty, CompleteCommit} /\ Written(Empty)
Begin == Newest.value # Tombstone /\ Newest.status \in {Empty, CompleteCommit} /\ Written(Ongoing)
Prepare == Newest.status = Ongoing /\ Written(PrepareCommit)
Complete == Newest.status = PrepareCommit /\ Written(CompleteCommit)

\* removeExpiredTransactionalIds, of an id without a transaction that is under way.
Expire ==
  /\ Newest.value # Tombstone /\ Newest.status \in {Empty, CompleteCommit}
  /\ log' = Append(log, Record(Tombstone, Empty, FALSE))

Init == log = <<>>
Next == Len(log) < MaxWrites /\ (Initialize \/ Begin \/ Prepare \/ Complete \/ Expire)

(***************************************************************************)
(* Each write is a batch, and all records have one key.                    *)
(***************************************************************************)
Keys == [n \in DOMAIN log |-> "id"]
Tombstones == {n \in DOMAIN log : log[n].value = Tombstone}
Borders == 0..Len(log)
Compactions == CleanedLogs(log, Keys, Tombstones, Borders, Borders)

\* A fail-over and a restart know every transactional id.
LoadsAsItIs == Load(log).failed = ""
LoadsCompacted == \A records \in Compactions : Load(records).failed = ""
LoadsTheSame == \A records \in Compactions : Load(records) = Load(log)
===============================================================================
