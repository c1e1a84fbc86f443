------------------------------ MODULE LogCleaner ------------------------------
(***************************************************************************)
(* What a pass of the log cleaner leaves of a compacted log (LogCleaner,   *)
(* Cleaner.cleanInto): between two places it drops every record that a     *)
(* later one of its key supersedes. `keys` are the keys of the records, by *)
(* place. Tombstones go in a later pass, by rules of who reads the log.    *)
(***************************************************************************)
EXTENDS Integers, Sequences

\* The places that a pass over the records behind i, up to j, leaves.
Survivors(keys, i, j) ==
  {n \in DOMAIN keys : n <= i \/ n > j \/ ~\E m \in (n + 1)..j : keys[m] = keys[n]}

RECURSIVE AtFrom(_, _, _)
AtFrom(records, places, n) ==
  IF n > Len(records) THEN <<>>
  ELSE (IF n \in places THEN <<records[n]>> ELSE <<>>) \o AtFrom(records, places, n + 1)

\* The records at these places, in their order.
At(records, places) == AtFrom(records, places, 1)

(***************************************************************************)
(* The logs that a load may read: up to i all records, up to j what the    *)
(* cleaner leaves, behind j all. Only a log that is cleaned from its       *)
(* beginning on lacks tombstones: they stay for a day. i is one of starts, *)
(* j one of ends.                                                          *)
(***************************************************************************)
WithoutTombstones(keys, tombstones, j) ==
  {n \in Survivors(keys, 0, j) : n > j \/ n \notin tombstones}
CleanedLogs(records, keys, tombstones, starts, ends) ==
  {At(records, Survivors(keys, w[1], w[2])) : w \in {w \in starts \X ends : w[1] < w[2]}}
    \union {At(records, WithoutTombstones(keys, tombstones, j)) : j \in ends}
===============================================================================
