---------------------------- MODULE ProducerState ----------------------------
(***************************************************************************)
(* What a partition remembers of one producer id, and what follows from it *)
(* for a batch of that producer. Pure operators: the log, the replicas and *)
(* the client are elsewhere.                                               *)
(*                                                                         *)
(* Kafka: ProducerStateManager, ProducerStateEntry, ProducerAppendInfo     *)
(* (org.apache.kafka.storage.internals.log).                               *)
(***************************************************************************)
EXTENDS Integers, Sequences

CONSTANT Window   \* ProducerStateEntry.NUM_BATCHES_TO_RETAIN: 5 in Kafka

NoEpoch == -1
NoSequence == -1
NoOffset == -1

\* A batch has a producer epoch, a first sequence and a number of records.
LastSequence(batch) == batch.seq + batch.size - 1

(***************************************************************************)
(* An entry: the epoch, and of the last batches in that epoch the first    *)
(* and the last sequence and the offset of the first record. Without an    *)
(* entry the producer is unknown.                                          *)
(***************************************************************************)
NoEntry == [epoch |-> NoEpoch, batches |-> <<>>]

Newest(sequence, n) ==
  SubSeq(sequence, IF Len(sequence) > n THEN Len(sequence) - n + 1 ELSE 1, Len(sequence))
LastOf(entry) ==
  IF entry.batches = <<>> THEN NoSequence ELSE entry.batches[Len(entry.batches)].last

(***************************************************************************)
(* The checks of an append by a client, in Kafka's order: first the        *)
(* duplicate, then the epoch, then the sequence.                           *)
(***************************************************************************)

\* ProducerStateEntry.findDuplicateBatch: the same epoch, exactly the same sequences.
IsDuplicateOf(cached, batch) == cached.first = batch.seq /\ cached.last = LastSequence(batch)
Duplicates(entry, batch) ==
  IF batch.epoch # entry.epoch THEN {}
  ELSE {i \in DOMAIN entry.batches : IsDuplicateOf(entry.batches[i], batch)}

\* ProducerAppendInfo.checkProducerEpoch.
IsFenced(entry, batch) == batch.epoch < entry.epoch

\* ProducerAppendInfo.checkSequence. Of a producer that is unknown any sequence is accepted: its
\* state may have expired. A new epoch begins at zero.
AcceptsUnknown(batch) == TRUE
BeginsEpoch(batch) == batch.seq = 0
IsNext(entry, batch) ==
  IF entry.epoch = NoEpoch THEN AcceptsUnknown(batch)
  ELSE IF batch.epoch # entry.epoch THEN BeginsEpoch(batch)
  ELSE batch.seq = LastOf(entry) + 1

Error(entry, batch) ==
  IF IsFenced(entry, batch) THEN "INVALID_PRODUCER_EPOCH"
  ELSE IF ~IsNext(entry, batch) THEN "OUT_OF_ORDER_SEQUENCE_NUMBER"
  ELSE "NONE"

(***************************************************************************)
(* ProducerStateEntry.addBatch, whoever appends: a client, replication, or *)
(* a log that is read after a start. A new epoch clears what is cached.    *)
(***************************************************************************)
KeptOf(entry, batch) == IF batch.epoch = entry.epoch THEN entry.batches ELSE <<>>
Updated(entry, batch) ==
  [epoch |-> batch.epoch,
   batches |-> Newest(
     Append(KeptOf(entry, batch),
            [first |-> batch.seq, last |-> LastSequence(batch), offset |-> batch.offset]),
     Window)]

RECURSIVE ReplayedOn(_, _)
ReplayedOn(entry, batches) ==
  IF batches = <<>> THEN entry ELSE ReplayedOn(Updated(entry, Head(batches)), Tail(batches))

\* ProducerStateManager.writeSnapshot keeps the last batch only.
Snapshot(entry) == [entry EXCEPT !.batches = Newest(@, 1)]
===============================================================================
