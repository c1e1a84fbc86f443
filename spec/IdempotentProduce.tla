-------------------------- MODULE IdempotentProduce --------------------------
(***************************************************************************)
(* One producer id that writes to one partition: sequences, retries,       *)
(* duplicates, epoch bumps, expiry, a new leader, truncation, restarts.    *)
(* The promise: what is acknowledged is in the log once, in order, however *)
(* often it was sent.                                                      *)
(*                                                                         *)
(* Kafka: UnifiedLog.appendAsLeader, appendAsFollower, truncateTo with its *)
(* ProducerStateManager; on the client TransactionManager and Sender.      *)
(*                                                                         *)
(* Left out: how requests wait for the watermark (Acknowledgement), how    *)
(* replicas find where their logs part (Replication). All replicas are in  *)
(* sync. A copy of a batch that was sent may arrive at any time, and more  *)
(* than once: that is loss, delay and every retry in one.                  *)
(***************************************************************************)
EXTENDS ProducerState, FiniteSets

CONSTANTS
  Brokers,
  Sizes,            \* how many records a batch may have
  MaxBatches,       \* what the application sends
  MaxInFlight,      \* max.in.flight.requests.per.connection
  MaxBumps,         \* epoch bumps of the client
  MaxElections,
  Restarts,         \* brokers may restart
  Expirations       \* the producer may be silent for longer than producer.id.expiration.ms

(***************************************************************************)
(* variable     | field                                                    *)
(* -------------+--------------------------------------------------------- *)
(* leader       | the broker that leads the partition                      *)
(* epoch        | its leader epoch                                         *)
(* log[b]       | UnifiedLog: batches, each with its first offset and the  *)
(*              | epoch of its leader                                      *)
(* hw[b]        | the high watermark                                       *)
(* producer[b]  | ProducerStateManager.producers: the entry of this id     *)
(* snapshots[b] | its snapshot files, by offset                            *)
(* answers      | what the leader answers a batch; the newest only. NONE   *)
(*              | is sent once the watermark has passed the batch          *)
(* client       | TransactionManager: epoch, next sequence, last sequence  *)
(*              | acknowledged, batches not acknowledged, how many values  *)
(* sent         | batches of which a copy may arrive                       *)
(* acks         | a ghost: batches that were answered NONE, and where      *)
(* since        | a ghost: [b] the offset from which a broker's window is  *)
(*              | whole, since it was read from a snapshot or forgotten    *)
(***************************************************************************)
VARIABLES leader, epoch, log, hw, producer, snapshots, answers, client, sent, acks, since

vars == <<leader, epoch, log, hw, producer, snapshots, answers, client, sent, acks, since>>
GhostVars == {"acks", "since"}

Range(sequence) == {sequence[i] : i \in DOMAIN sequence}
Max(a, b) == IF a < b THEN b ELSE a
Min(a, b) == IF a < b THEN a ELSE b
MaxOf(numbers) == CHOOSE n \in numbers : \A other \in numbers : other <= n

(***************************************************************************)
(* Logs.                                                                   *)
(***************************************************************************)
EndOf(batch) == batch.offset + batch.size
End(batches) == IF batches = <<>> THEN 0 ELSE EndOf(batches[Len(batches)])

Upto(batches, offset) == SelectSeq(batches, LAMBDA batch : EndOf(batch) <= offset)
From(batches, offset) == SelectSeq(batches, LAMBDA batch : batch.offset >= offset)

IsCopy(batch, logged) == batch.epoch = logged.epoch /\ batch.seq = logged.seq
Logged(batch, offset, leaderEpoch) ==
  [epoch |-> batch.epoch, seq |-> batch.seq, size |-> batch.size, value |-> batch.value,
   offset |-> offset, leaderEpoch |-> leaderEpoch]

(***************************************************************************)
(* Produce: UnifiedLog.appendAsLeader. A duplicate is answered as the      *)
(* batch was; an error writes nothing.                                     *)
(***************************************************************************)
Answer(batch, error, offset) ==
  [epoch |-> batch.epoch, seq |-> batch.seq, error |-> error, offset |-> offset]
IsAnswerOf(answer, batch) == answer.epoch = batch.epoch /\ answer.seq = batch.seq
Answering(answer) == {other \in answers : ~IsAnswerOf(other, answer)} \union {answer}

\* Without followers the watermark is the log's end.
Alone == Cardinality(Brokers) = 1
WatermarkAfter(offset) == IF Alone THEN offset ELSE hw[leader]

AnsweredOffset(entry, i) == entry.batches[i].offset
AfterError(entry, batch) == entry

Produce(producerEpoch, value) ==
  \E batch \in sent :
  LET entry == producer[leader]
      same == Duplicates(entry, batch)
      error == Error(entry, batch)
      appended == Logged(batch, End(log[leader]), epoch)
  IN  /\ batch.epoch = producerEpoch /\ batch.value = value
      /\ IF same # {}
         THEN /\ answers' = Answering(Answer(batch, "NONE",
                   AnsweredOffset(entry, MaxOf(same))))
              /\ UNCHANGED <<log, hw, producer>>
         ELSE IF error # "NONE"
         THEN /\ answers' = Answering(Answer(batch, error, NoOffset))
              /\ producer' = [producer EXCEPT ![leader] = AfterError(@, batch)]
              /\ UNCHANGED <<log, hw>>
         ELSE /\ log' = [log EXCEPT ![leader] = Append(@, appended)]
              /\ hw' = [hw EXCEPT ![leader] = WatermarkAfter(EndOf(appended))]
              /\ producer' = [producer EXCEPT ![leader] = Updated(@, appended)]
              /\ answers' = Answering(Answer(batch, "NONE", appended.offset))
      /\ UNCHANGED <<leader, epoch, snapshots, client, sent, acks, since>>

(***************************************************************************)
(* The client: TransactionManager, Sender.                                 *)
(***************************************************************************)

\* From the first batch that is not acknowledged on, no more batches are sent than a broker's window
\* has. Kafka's client counts those in flight instead (the model `boundary-in-flight`).
MaySend ==
  IF client.pending = <<>> THEN TRUE
  ELSE client.values + 1 - Head(client.pending).value < MaxInFlight
Send(size) ==
  LET batch == [epoch |-> client.epoch, seq |-> client.next, size |-> size,
                value |-> client.values + 1]
  IN  /\ client.values < MaxBatches /\ MaySend
      /\ client' = [client EXCEPT !.values = @ + 1, !.next = @ + size,
                                  !.pending = Append(@, batch)]
      /\ sent' = sent \union {batch}
      /\ UNCHANGED <<leader, epoch, log, hw, producer, snapshots, answers, acks, since>>

\* The watermark has passed the batch: its answer leaves, and arrives or is lost.
IsCommitted(answer) == answer.offset < hw[leader]
Done(batch) ==
  [client EXCEPT !.pending = SelectSeq(@, LAMBDA other : other # batch),
                 !.lastAcked = Max(@, LastSequence(batch))]
Acknowledge(value, arrives) ==
  \E answer \in answers, batch \in Range(client.pending) :
    /\ batch.value = value
    /\ IsAnswerOf(answer, batch) /\ answer.error = "NONE" /\ IsCommitted(answer)
    /\ answers' = answers \ {answer}
    /\ client' = IF arrives THEN Done(batch) ELSE client
    /\ acks' = acks \union {[epoch |-> batch.epoch, seq |-> batch.seq, value |-> batch.value,
                             offset |-> answer.offset]}
    /\ UNCHANGED <<leader, epoch, log, hw, producer, snapshots, sent, since>>

\* OUT_OF_ORDER_SEQUENCE_NUMBER for the batch that is next after the last one acknowledged: the
\* client bumps its epoch by itself and numbers the batches in flight anew (KIP-360). Of any other
\* batch it is no more than a reason to send it again.
RECURSIVE Renumbered(_, _, _)
Renumbered(batches, newEpoch, seq) ==
  IF batches = <<>> THEN <<>>
  ELSE <<[Head(batches) EXCEPT !.epoch = newEpoch, !.seq = seq]>>
       \o Renumbered(Tail(batches), newEpoch, seq + Head(batches).size)
SequencesOf(batches) == IF batches = <<>> THEN 0 ELSE LastSequence(batches[Len(batches)]) + 1
Bump(value) ==
  \E batch \in Range(client.pending) :
  LET renumbered == Renumbered(client.pending, client.epoch + 1, 0)
  IN  /\ client.epoch < MaxBumps
      /\ batch.value = value /\ batch.seq = client.lastAcked + 1
      /\ Answer(batch, "OUT_OF_ORDER_SEQUENCE_NUMBER", NoOffset) \in answers
      /\ client' = [client EXCEPT !.epoch = @ + 1, !.pending = renumbered,
                                  !.next = SequencesOf(renumbered), !.lastAcked = NoSequence]
      /\ sent' = sent \union Range(renumbered)
      /\ answers' = {}
      /\ UNCHANGED <<leader, epoch, log, hw, producer, snapshots, acks, since>>

(***************************************************************************)
(* Replication and elections.                                              *)
(***************************************************************************)
Common(f) ==
  CHOOSE n \in 0..Len(log[f]) :
    /\ n <= Len(log[leader]) /\ SubSeq(log[f], 1, n) = SubSeq(log[leader], 1, n)
    /\ \A m \in (n + 1)..Len(log[f]) :
         m > Len(log[leader]) \/ SubSeq(log[f], 1, m) # SubSeq(log[leader], 1, m)
IsPrefix(f) == Common(f) = Len(log[f])

\* Whoever leads next has all that is below the watermark. Requests that wait at the old leader are
\* answered NOT_LEADER_OR_FOLLOWER: the client sends those batches again.
Elect(b) ==
  /\ b # leader /\ epoch < MaxElections
  /\ leader' = b /\ epoch' = epoch + 1
  /\ answers' = {}
  /\ UNCHANGED <<log, hw, producer, snapshots, client, sent, acks, since>>

\* UnifiedLog.appendAsFollower: nothing is checked. The fetch itself raises the leader's watermark.
Replicated(entry, batch) == Updated(entry, batch)
Fetch(f) ==
  /\ f # leader /\ IsPrefix(f)
  /\ LET more == Len(log[f]) < Len(log[leader])
         next == log[leader][Len(log[f]) + 1]
         end == IF more THEN EndOf(next) ELSE End(log[f])
     IN  /\ more \/ hw[f] < Min(hw[leader], end)
         /\ log' = IF more THEN [log EXCEPT ![f] = Append(@, next)] ELSE log
         /\ producer' = IF more THEN [producer EXCEPT ![f] = Replicated(@, next)] ELSE producer
         /\ hw' = [hw EXCEPT ![leader] = Max(@, end), ![f] = Max(@, Min(hw[leader], end))]
  /\ UNCHANGED <<leader, epoch, snapshots, answers, client, sent, acks, since>>

(***************************************************************************)
(* Truncation and restart: UnifiedLog.truncateTo, rebuildProducerState;    *)
(* ProducerStateManager.truncateAndReload, takeSnapshot.                   *)
(***************************************************************************)
StaysAt(offset, end) == offset <= end
Kept(files, end) == [o \in {o \in DOMAIN files : StaysAt(o, end)} |-> files[o]]
NewestOf(files) == IF DOMAIN files = {} THEN 0 ELSE MaxOf(DOMAIN files)
ReadFrom(files) == IF DOMAIN files = {} THEN NoEntry ELSE files[NewestOf(files)]
WithSnapshot(files, offset, entry) ==
  IF offset <= NewestOf(files) THEN files
  ELSE [o \in DOMAIN files \union {offset} |-> IF o = offset THEN Snapshot(entry) ELSE files[o]]

\* The state is read from the newest snapshot that is left, and from the log behind it.
Rebuilt(batches, files) == ReplayedOn(ReadFrom(files), From(batches, NewestOf(files)))
AfterTruncation(b, batches, files) == Rebuilt(batches, files)
Truncate(f) ==
  /\ f # leader /\ ~IsPrefix(f)
  /\ LET batches == SubSeq(log[f], 1, Common(f))
         files == Kept(snapshots[f], End(batches))
         entry == AfterTruncation(f, batches, files)
     IN  /\ log' = [log EXCEPT ![f] = batches]
         /\ producer' = [producer EXCEPT ![f] = entry]
         /\ snapshots' = [snapshots EXCEPT ![f] = WithSnapshot(files, End(batches), entry)]
         /\ since' = [since EXCEPT ![f] = NewestOf(files)]
         /\ hw' = [hw EXCEPT ![f] = Min(@, End(batches))]
  /\ UNCHANGED <<leader, epoch, answers, client, sent, acks>>

\* A clean stop writes a snapshot at the log's end; after a crash recovery reads the log and writes
\* one. Either way the window has one batch then. Snapshots before the newest go, unless a segment
\* begins there. Who has expired is not read.
AtStop(b, clean) == IF clean THEN producer[b] ELSE ReplayedOn(NoEntry, log[b])
AfterRestart(b, files) == IF producer[b] = NoEntry THEN NoEntry ELSE ReadFrom(files)
OnlyNewest(files) == [o \in {o \in DOMAIN files : o = NewestOf(files)} |-> files[o]]
Restart(b, clean) ==
  /\ Restarts
  /\ LET files == OnlyNewest(WithSnapshot(snapshots[b], End(log[b]), AtStop(b, clean)))
     IN  /\ snapshots' = [snapshots EXCEPT ![b] = files]
         /\ producer' = [producer EXCEPT ![b] = AfterRestart(b, files)]
         /\ since' = [since EXCEPT ![b] = End(log[b])]
  /\ UNCHANGED <<leader, epoch, log, hw, answers, client, sent, acks>>

\* ProducerStateManager.removeExpiredProducers: leaders and followers each by themselves. Once: late
\* copies are appended again after it, and a log that is empty or whole has not seen it.
Expire(b) ==
  /\ Expirations /\ producer[b] # NoEntry /\ since[b] = 0
  /\ producer' = [producer EXCEPT ![b] = NoEntry]
  /\ since' = [since EXCEPT ![b] = End(log[b])]
  /\ UNCHANGED <<leader, epoch, log, hw, snapshots, answers, client, sent, acks>>

-------------------------------------------------------------------------------
Init ==
  /\ leader = CHOOSE b \in Brokers : TRUE
  /\ epoch = 0
  /\ log = [b \in Brokers |-> <<>>] /\ hw = [b \in Brokers |-> 0]
  /\ producer = [b \in Brokers |-> NoEntry] /\ snapshots = [b \in Brokers |-> <<>>]
  /\ answers = {}
  /\ client = [epoch |-> 0, next |-> 0, lastAcked |-> NoSequence, pending |-> <<>>, values |-> 0]
  /\ sent = {} /\ acks = {} /\ since = [b \in Brokers |-> 0]

Next ==
  \/ \E size \in Sizes : Send(size)
  \/ \E producerEpoch \in 0..MaxBumps, value \in 1..MaxBatches : Produce(producerEpoch, value)
  \/ \E value \in 1..MaxBatches, arrives \in BOOLEAN : Acknowledge(value, arrives)
  \/ \E value \in 1..MaxBatches : Bump(value)
  \/ \E b \in Brokers : Elect(b)
  \/ \E f \in Brokers : Fetch(f)
  \/ \E f \in Brokers : Truncate(f)
  \/ \E b \in Brokers, clean \in BOOLEAN : Restart(b, clean)
  \/ \E b \in Brokers : Expire(b)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Errors == {"NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH"}
TypeOK ==
  /\ leader \in Brokers /\ epoch \in 0..MaxElections
  /\ \A b \in Brokers :
       /\ hw[b] \in 0..End(log[b])
       /\ producer[b].epoch \in NoEpoch..MaxBumps /\ Len(producer[b].batches) <= Window
       /\ \A o \in DOMAIN snapshots[b] : o <= End(log[b]) /\ Len(snapshots[b][o].batches) <= 1
  /\ \A answer \in answers : answer.error \in Errors
  /\ client.epoch \in 0..MaxBumps /\ Len(client.pending) <= MaxInFlight

Pairs(batches) == {pair \in (DOMAIN batches) \X (DOMAIN batches) : pair[1] < pair[2]}

\* A batch that is sent ten times is read once.
NoneTwice ==
  \A b \in Brokers : \A pair \in Pairs(log[b]) : ~IsCopy(log[b][pair[1]], log[b][pair[2]])

\* No value is read twice, whatever the client did: exactly once, to the application.
NoValueTwice ==
  \A b \in Brokers : \A pair \in Pairs(log[b]) : log[b][pair[1]].value # log[b][pair[2]].value

\* A reader gets the batches of an epoch in the order in which they were sent, without a hole.
Follows(batch, next) ==
  IF next.epoch = batch.epoch THEN next.seq = LastSequence(batch) + 1 ELSE next.seq = 0
Contiguous ==
  \A b \in Brokers : \A i \in 1..(Len(log[b]) - 1) : Follows(log[b][i], log[b][i + 1])

\* ... and what was sent first is there first.
NothingIsMissing == \A b \in Brokers : log[b] # <<>> => log[b][1].seq = 0

\* What a producer with an old epoch sent late is not taken.
EpochsInOrder ==
  \A b \in Brokers : \A pair \in Pairs(log[b]) : log[b][pair[1]].epoch <= log[b][pair[2]].epoch

\* A leader, whoever it is, knows the producer as its log does.
MayBeForgotten(b) == Expirations /\ producer[b] = NoEntry
StateIsTheLog ==
  \A b \in Brokers : ~MayBeForgotten(b) =>
    IF log[b] = <<>> THEN producer[b] = NoEntry
    ELSE LET last == log[b][Len(log[b])]
         IN  producer[b].epoch = last.epoch /\ LastOf(producer[b]) = LastSequence(last)

\* A retry is recognised if no more than a window of batches went after it.
OfEpoch(batches, producerEpoch) == SelectSeq(batches, LAMBDA batch : batch.epoch = producerEpoch)
WindowIsTheLog ==
  \A b \in Brokers :
    LET written == OfEpoch(log[b], producer[b].epoch)
        known == producer[b].batches
        whole == OfEpoch(From(log[b], since[b]), producer[b].epoch)
    IN  /\ Len(known) <= Len(written)
        /\ Len(known) >= Min(Window, Len(whole))
        /\ \A i \in DOMAIN known :
             LET batch == written[Len(written) - Len(known) + i]
             IN  known[i] = [first |-> batch.seq, last |-> LastSequence(batch),
                             offset |-> batch.offset]

\* What was acknowledged is in the log of whoever leads, at the offset that the answer named.
AcknowledgedIsThere ==
  \A ack \in acks : \E i \in DOMAIN log[leader] :
    /\ IsCopy(ack, log[leader][i]) /\ log[leader][i].value = ack.value
    /\ log[leader][i].offset = ack.offset

\* Two answers to one batch name one offset.
SameOffset == \A ack, other \in acks : IsCopy(ack, other) => ack.offset = other.offset

\* What a client may conclude from OUT_OF_ORDER_SEQUENCE_NUMBER for a batch that it waits for: the
\* leader does not have it.
OutOfOrderIsNotThere ==
  \A batch \in Range(client.pending) :
    Answer(batch, "OUT_OF_ORDER_SEQUENCE_NUMBER", NoOffset) \in answers =>
      \A i \in DOMAIN log[leader] : ~IsCopy(batch, log[leader][i])

\* An answer with an error has written nothing and has changed nothing.
ErrorsOf(some) == {answer \in some : answer.error # "NONE"}
ErrorsWriteNothing ==
  [][ErrorsOf(answers') \ ErrorsOf(answers) # {} => UNCHANGED <<log, hw, producer, snapshots>>]_vars

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
DuplicateAcknowledged == \E answer \in answers, ack \in acks : answer.error = "NONE" /\ IsAnswerOf(answer, ack)
RetryBeyondWindow ==
  \E batch \in sent : producer[leader].epoch = batch.epoch /\ Duplicates(producer[leader], batch) = {} /\
    \E i \in DOMAIN log[leader] : IsCopy(batch, log[leader][i])
NarrowWindow ==
  \E b \in Brokers : Len(producer[b].batches) < Min(Window, Len(OfEpoch(log[b], producer[b].epoch)))
LostTail == \E f \in Brokers : ~IsPrefix(f)
===============================================================================
