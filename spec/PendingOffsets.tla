---------------------------- MODULE PendingOffsets ----------------------------
(***************************************************************************)
(* What a record of a transaction means to a shard of the group            *)
(* coordinator: values that wait for the end of their transaction.         *)
(*                                                                         *)
(* Kafka: OffsetMetadataManager.replay, replayEndTransactionMarker. A      *)
(* state has `offsets`, values by key, and `pending`, values by            *)
(* <<producer, key>>. With each is the offset of its record.               *)
(***************************************************************************)
EXTENDS Integers

Tombstone == 0
NoProducer == 0

Nothing == [key \in {} |-> 0]
With(function, key, value) ==
  [k \in DOMAIN function \union {key} |-> IF k = key THEN value ELSE function[k]]
Without(function, keys) == [k \in DOMAIN function \ keys |-> function[k]]

\* A tombstone takes the value, and what is pending of it in every transaction.
PendingAfterTombstone(s, key) == Without(s.pending, {p \in DOMAIN s.pending : p[2] = key})
ReplayValue(s, r) ==
  LET entry == [value |-> r.value, at |-> r.at]
  IN  IF r.value = Tombstone
      THEN [s EXCEPT !.offsets = Without(@, {r.key}), !.pending = PendingAfterTombstone(s, r.key)]
      ELSE IF r.producer = NoProducer
      THEN [s EXCEPT !.offsets = With(@, r.key, entry)]
      ELSE [s EXCEPT !.pending = With(@, <<r.producer, r.key>>, entry)]

\* The newest record counts, whatever the order of the markers.
IsNewer(s, p) ==
  p[2] \notin DOMAIN s.offsets \/ s.pending[p].at > s.offsets[p[2]].at
ReplayEnd(s, producer, commits) ==
  LET ended == {p \in DOMAIN s.pending : p[1] = producer}
      committed == IF commits THEN {p \in ended : IsNewer(s, p)} ELSE {}
      keys == {p[2] : p \in committed}
  IN  [s EXCEPT !.pending = Without(@, ended),
                !.offsets = [key \in DOMAIN @ \union keys |->
                               IF key \in keys THEN s.pending[<<producer, key>>] ELSE @[key]]]
===============================================================================
