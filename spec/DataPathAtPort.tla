---------------------------- MODULE DataPathAtPort ----------------------------
(***************************************************************************)
(* The data path of one partition, as a client meets it at a broker's      *)
(* port: what it appends, deletes, reads and looks up, and which request   *)
(* is refused. The partition has one replica, so that what is appended is  *)
(* replicated at once, and one leader at a time.                           *)
(*                                                                         *)
(* Each request is a step of its own, with its answer in `answer`; until   *)
(* that is taken no other request is sent.                                 *)
(*                                                                         *)
(*   a step                | in Kafka                                      *)
(*   ----------------------+---------------------------------------------- *)
(*   Produce               | KafkaApis.handleProduceRequest,               *)
(*                         | ReplicaManager.appendRecords                  *)
(*   ProduceInTransaction  | the same, of a transactional producer         *)
(*   EndTransaction        | EndTxn, until its marker is written           *)
(*   DeleteRecords         | ReplicaManager.deleteRecords (KIP-107)        *)
(*   Fetch                 | ReplicaManager.readFromLog, Partition.        *)
(*                         | fetchRecords, and the client's filter         *)
(*   ListOffsets           | Partition.fetchOffsetForTimestamp (KIP-79,    *)
(*                         | KIP-734)                                      *)
(*   OffsetForLeaderEpoch  | Partition.lastOffsetForLeaderEpoch (KIP-320)  *)
(*   ChangeLeader          | Partition.makeLeader in a higher epoch: the   *)
(*                         | replica is moved, or its broker is restarted  *)
(***************************************************************************)
EXTENDS ReadCommitted

CONSTANTS
  MaxRecords,     \* the log grows up to so many records
  Batches,        \* what is sent: sequences of the records' timestamps, which are positive
  Acks,           \* of Produce: -1 is `all`; what is not -1, 0 or 1 is no number of acks
  Transactional,  \* BOOLEAN: there is a transactional producer
  Deletions,      \* BOOLEAN: DeleteRecords is sent
  LeaderChanges,  \* so often another leader is elected
  Lookups,        \* those of "Fetch", "ListOffsets", "OffsetForLeaderEpoch" that are sent;
                  \* "Youngest": ListOffsets for the youngest record (KIP-734)
  Isolations      \* isolation.level: "read_uncommitted", "read_committed"

VARIABLES
  log,     \* records, and markers of transactions; `base` is the offset of the batch's first
  start,   \* the log start offset
  epochs,  \* of each leader epoch, from 0 on, the end of the log when its leader was elected
  answer,  \* of the last request
  visible  \* what a reader of everything sees: a function of the log and its start
vars == <<log, start, epochs, answer, visible>>

NoOffset == -1
NoTime == -1
NoEpoch == -1
Client == "t"   \* the transactional producer

(***************************************************************************)
(* Times. A marker is written now; clients' records are older.             *)
(***************************************************************************)
TimesIn(batch) == {batch[i] : i \in DOMAIN batch}
Times == UNION {TimesIn(batch) : batch \in Batches}
MarkerTime == 1 + CHOOSE t \in Times : \A u \in Times : u <= t
MarkerCount == Cardinality({i \in DOMAIN log : IsMarker(log[i])})

(***************************************************************************)
(* Offsets.                                                                *)
(***************************************************************************)
End == Len(log)
HighWatermark == End
Stable == LastStableOffset(log, start, HighWatermark)
\* Partition.fetchOffsetForTimestamp and UnifiedLog.read: up to where a reader may read.
Fetchable(isolation) == IF isolation = "read_committed" THEN Stable ELSE HighWatermark

\* From one below the log to one above it.
Offsets == -1..(MaxRecords + 1)
IsNear(offset) == offset <= End + 1

(***************************************************************************)
(* Leader epochs, counted from 0. LeaderEpochFileCache knows where each    *)
(* begins; an epoch without a record that is still there has no entry,     *)
(* unless it is the present one.                                           *)
(***************************************************************************)
Epoch == Len(epochs) - 1
BeginOf(epoch) == epochs[epoch + 1]
EndOfEpoch(epoch) == IF epoch = Epoch THEN End ELSE Greater(start, BeginOf(epoch + 1))
IsKnownEpoch(epoch) ==
  epoch = Epoch \/ Greater(start, BeginOf(epoch)) < EndOfEpoch(epoch)
\* LeaderEpochFileCache.endOffsetFor: the greatest epoch with an entry that is not greater.
FloorOf(epoch) ==
  LET known == {e \in 0..epoch : IsKnownEpoch(e)}
  IN  IF known = {} THEN epoch ELSE CHOOSE e \in known : \A f \in known : f <= e
\* UnifiedLog.fetchOffsetByTimestamp, for the log start: the first entry.
FirstKnownEpoch == IF start < End THEN log[start + 1].epoch ELSE Epoch

(***************************************************************************)
(* The leader epoch that a client has heard of. Partition.                 *)
(* checkCurrentLeaderEpoch: a client that knows none is not checked. There *)
(* is no Fetch with an older one than the first: FetchRequest takes a      *)
(* negative one for none.                                                  *)
(***************************************************************************)
Epochs == {"none", "old", "current", "future"}
NumberOf(epoch) ==
  CASE epoch = "old" -> Epoch - 1
    [] epoch = "current" -> Epoch
    [] epoch = "future" -> Epoch + 1
EpochError(epoch) ==
  CASE epoch = "old" -> "FENCED_LEADER_EPOCH"
    [] epoch = "future" -> "UNKNOWN_LEADER_EPOCH"
    [] OTHER -> "NONE"

(***************************************************************************)
(* Answers. `asked`, `isolation` and `epoch` are of the request; `leader`  *)
(* is the epoch that comes with an offset.                                 *)
(***************************************************************************)
NoAnswer ==
  [request |-> "none", asked |-> NoOffset, isolation |-> "none", epoch |-> "none",
   error |-> "NONE", offset |-> NoOffset, time |-> NoTime, leader |-> NoEpoch, records |-> {}]
AnswerTo(request) == [NoAnswer EXCEPT !.request = request]

\* When a marker was written nobody knows beforehand.
Shown(record) == [record EXCEPT !.time = Lesser(@, MarkerTime)]
VisibleOf(records, from) ==
  [start |-> from, end |-> Len(records),
   records |-> [i \in 1..(Len(records) - from) |-> Shown(records[from + i])]]
Writes == visible' = VisibleOf(log', start')
Reads == UNCHANGED <<log, start, epochs, visible>>

Idle == answer = NoAnswer
Is(error) == error # "NONE"

Init ==
  /\ log = <<>>
  /\ start = 0
  /\ epochs = <<0>>
  /\ answer = NoAnswer
  /\ visible = VisibleOf(<<>>, 0)

(***************************************************************************)
(* Requests that write.                                                    *)
(***************************************************************************)
WrittenEpoch == Epoch
DataRecords(batch, producer) ==
  [i \in DOMAIN batch |->
     [kind |-> "data", producer |-> producer, time |-> batch[i], base |-> End,
      epoch |-> WrittenEpoch]]

\* The marker of an open transaction must find room.
IsOpen == OpenIn(log, Client) # {}
HasRoom(batch) == End + Len(batch) + (IF IsOpen THEN 1 ELSE 0) <= MaxRecords

IsAcks(acks) == acks \in {-1, 0, 1}
\* With acks=0 nobody waits for an answer, and none comes.
IsAnswered(acks) == acks # 0

Appended(acks, batch) == IF IsAcks(acks) THEN DataRecords(batch, NoProducer) ELSE <<>>
BaseOffset == End

Produce(acks, batch) ==
  /\ Idle /\ HasRoom(batch)
  /\ log' = log \o Appended(acks, batch)
  /\ answer' =
       IF ~IsAcks(acks)
       THEN [AnswerTo("Produce") EXCEPT !.error = "INVALID_REQUIRED_ACKS"]
       ELSE IF IsAnswered(acks) THEN [AnswerTo("Produce") EXCEPT !.offset = BaseOffset]
       ELSE NoAnswer
  /\ UNCHANGED <<start, epochs>> /\ Writes

ProduceInTransaction(batch) ==
  /\ Transactional /\ Idle /\ End + Len(batch) < MaxRecords
  /\ log' = log \o DataRecords(batch, Client)
  /\ answer' = [AnswerTo("Produce") EXCEPT !.offset = End]
  /\ UNCHANGED <<start, epochs>> /\ Writes

\* Each marker is younger than those before it.
EndTransaction(commits) ==
  /\ Idle /\ IsOpen
  /\ log' = Append(log, [kind |-> IF commits THEN "Committed" ELSE "Aborted",
                         producer |-> Client, time |-> MarkerTime + MarkerCount,
                         base |-> End, epoch |-> WrittenEpoch])
  /\ UNCHANGED <<start, epochs, answer>> /\ Writes

\* Offset -1 stands for the high watermark.
DeletedTo(offset) == IF offset = -1 THEN HighWatermark ELSE offset
MayBeDeleted(offset) == DeletedTo(offset) <= HighWatermark
StartAfter(offset) == Greater(start, DeletedTo(offset))
DeleteRecords(offset) ==
  /\ Deletions /\ Idle /\ IsNear(offset)
  /\ start' = IF MayBeDeleted(offset) THEN StartAfter(offset) ELSE start
  /\ answer' = IF MayBeDeleted(offset)
               THEN [AnswerTo("DeleteRecords") EXCEPT !.offset = start']
               ELSE [AnswerTo("DeleteRecords") EXCEPT !.error = "OFFSET_OUT_OF_RANGE"]
  /\ UNCHANGED <<log, epochs>> /\ Writes

(***************************************************************************)
(* Another leader is elected. It has the whole log: the replica that was   *)
(* moved was in sync, and a broker that comes back has what it had.        *)
(***************************************************************************)
LogAfterChange == log
\* Partition.makeLeader notes where the epoch begins, before a record is written.
EpochsAfterChange == Append(epochs, End)
ChangeLeader ==
  /\ Epoch < LeaderChanges /\ Idle
  /\ log' = LogAfterChange
  /\ epochs' = EpochsAfterChange
  /\ UNCHANGED <<start, answer>> /\ Writes

(***************************************************************************)
(* Fetch. The leader epoch is looked at first, then the offset.            *)
(***************************************************************************)
InRange(offset) == start <= offset /\ offset <= End
FetchError(offset, epoch) ==
  IF Is(EpochError(epoch)) THEN EpochError(epoch)
  ELSE IF ~InRange(offset) THEN "OFFSET_OUT_OF_RANGE"
  ELSE "NONE"

\* The offsets of what the client's application gets.
Delivered(isolation, offset) ==
  IF isolation = "read_committed"
  THEN {i - 1 : i \in CommittedBelow(log, offset, Stable)}
  ELSE {i - 1 : i \in {j \in (offset + 1)..HighWatermark : ~IsMarker(log[j])}}

Fetch(isolation, offset, epoch) ==
  /\ "Fetch" \in Lookups /\ Idle /\ IsNear(offset)
  /\ epoch = "old" => Epoch > 0
  /\ epoch \in {"old", "future"} => offset \in {start, End + 1}
  /\ answer' =
       LET asked == [AnswerTo("Fetch") EXCEPT !.asked = offset, !.isolation = isolation,
                                              !.epoch = epoch]
       IN  IF Is(FetchError(offset, epoch))
           THEN [asked EXCEPT !.error = FetchError(offset, epoch)]
           ELSE [asked EXCEPT !.offset = Fetchable(isolation),
                              !.records = Delivered(isolation, offset)]
  /\ Reads

(***************************************************************************)
(* ListOffsets. A marker has a time too.                                   *)
(***************************************************************************)
\* ListOffsetsRequest: what stands for no time.
Latest == -1
Earliest == -2
MaxTimestamp == -3
Targets == {Latest, Earliest, MaxTimestamp, MarkerTime} \union Times

Remaining == (start + 1)..End
FirstNotBefore(time) == First({i \in Remaining : log[i].time >= time})
FirstOfYoungest ==
  First({i \in Remaining : \A j \in Remaining : log[j].time <= log[i].time})
\* Which record is meant; 0: none.
PlaceOf(target) == IF target = MaxTimestamp THEN FirstOfYoungest ELSE FirstNotBefore(target)
\* From it on the consumer watches for a log that was truncated (KIP-320).
EpochOfFound(i) == log[i].epoch

ListOffsets(isolation, target, epoch) ==
  /\ "ListOffsets" \in Lookups /\ Idle
  /\ epoch = "none" \/ target = Latest
  /\ target = MaxTimestamp => "Youngest" \in Lookups
  /\ answer' =
       LET asked == [AnswerTo("ListOffsets") EXCEPT !.isolation = isolation, !.epoch = epoch]
       IN  IF Is(EpochError(epoch)) THEN [asked EXCEPT !.error = EpochError(epoch)]
           ELSE IF target = Earliest
           THEN [asked EXCEPT !.offset = start, !.leader = FirstKnownEpoch]
           ELSE IF target = Latest
           THEN [asked EXCEPT !.offset = Fetchable(isolation), !.leader = Epoch]
           ELSE LET i == PlaceOf(target)
                IN  IF i = 0 \/ i > Fetchable(isolation) THEN asked
                    ELSE [asked EXCEPT !.offset = i - 1,
                                       !.time = Lesser(log[i].time, MarkerTime),
                                       !.leader = EpochOfFound(i)]
  /\ Reads

(***************************************************************************)
(* OffsetForLeaderEpoch, by which a consumer validates its position. `of`  *)
(* is the epoch whose end it asks for.                                     *)
(***************************************************************************)
OffsetForLeaderEpoch(of, epoch) ==
  /\ "OffsetForLeaderEpoch" \in Lookups /\ Idle
  /\ of # "none" /\ (of = "old" => Epoch > 0) /\ (epoch = "none" \/ of = "current")
  /\ answer' =
       LET asked == [AnswerTo("OffsetForLeaderEpoch") EXCEPT !.asked = NumberOf(of),
                                                             !.epoch = epoch]
       IN  IF Is(EpochError(epoch)) THEN [asked EXCEPT !.error = EpochError(epoch)]
           ELSE IF of = "future" THEN asked
           ELSE [asked EXCEPT !.offset = EndOfEpoch(NumberOf(of)),
                              !.leader = FloorOf(NumberOf(of))]
  /\ Reads

TakeAnswer ==
  /\ ~Idle
  /\ answer' = NoAnswer
  /\ Reads

Next ==
  \/ \E acks \in Acks, batch \in Batches : Produce(acks, batch)
  \/ \E batch \in Batches : ProduceInTransaction(batch)
  \/ \E commits \in BOOLEAN : EndTransaction(commits)
  \/ \E offset \in Offsets : DeleteRecords(offset)
  \/ \E isolation \in Isolations, offset \in Offsets, epoch \in Epochs :
       Fetch(isolation, offset, epoch)
  \/ \E isolation \in Isolations, target \in Targets, epoch \in Epochs :
       ListOffsets(isolation, target, epoch)
  \/ \E of, epoch \in Epochs : OffsetForLeaderEpoch(of, epoch)
  \/ ChangeLeader
  \/ TakeAnswer

(***************************************************************************)
(* What a client may rely on.                                              *)
(***************************************************************************)
TypeOK ==
  /\ Len(log) <= MaxRecords
  /\ start \in 0..Len(log)
  /\ answer.offset \in -1..MaxRecords
  /\ answer.records \subseteq 0..(MaxRecords - 1)

Answers(request) == answer.request = request /\ answer.error = "NONE"

\* What was acknowledged lies where the answer says.
AcknowledgedIsThere ==
  Answers("Produce") => answer.offset \in 0..(End - 1) /\ ~IsMarker(log[answer.offset + 1])

\* No reader gets what was deleted, or is sent there.
DeletedIsGone ==
  /\ \A offset \in answer.records : offset >= start
  /\ Answers("ListOffsets") /\ answer.offset # NoOffset => answer.offset >= start

\* read_committed: what is aborted or not decided is not read.
UndecidedIsNotRead ==
  answer.isolation = "read_committed" =>
    \A offset \in answer.records : Outcome(log, offset + 1) = "Committed"

\* Whoever reads on behind the last record that he got has lost nothing.
NothingIsSkipped ==
  Answers("Fetch") =>
    \A offset \in answer.asked..(answer.offset - 1) :
      \/ IsMarker(log[offset + 1])
      \/ offset \in answer.records
      \/ answer.isolation = "read_committed" /\ Outcome(log, offset + 1) = "Aborted"

\* A reader that is outside the log hears of it: it would wait for ever, or skip records.
OutsideIsTold == Answers("Fetch") => start <= answer.asked /\ answer.asked <= End

\* A client that has heard of another leader than this one hears of it (KIP-320).
OtherLeaderIsTold ==
  answer.epoch \in {"old", "future"} => answer.error # "NONE"

\* A consumer that validates its position keeps what the log has, and nothing else: the epoch ends
\* behind its last record, and before the first of a later one.
EpochEndIsTrue ==
  Answers("OffsetForLeaderEpoch") /\ answer.asked <= Epoch =>
    /\ answer.offset # NoOffset
    /\ \A i \in (start + 1)..End : log[i].epoch <= answer.asked <=> i <= answer.offset

\* The epoch that comes with a record's offset is the record's.
FoundEpochIsTrue ==
  Answers("ListOffsets") /\ answer.time # NoTime => answer.leader = log[answer.offset + 1].epoch

\* A look-up by time misses no record that is as young.
NothingEarlierIsAsYoung ==
  Answers("ListOffsets") /\ answer.time # NoTime =>
    \A i \in (start + 1)..answer.offset : log[i].time < answer.time

\* A look-up sends no reader behind what it may read.
WithinReach ==
  Answers("ListOffsets") =>
    answer.offset <= (IF answer.isolation = "read_committed"
                      THEN LastStableOffset(log, start, End) ELSE End)

RefusedChangesNothing ==
  [][answer'.error # "NONE" => UNCHANGED <<log, start>>]_vars
ReadsChangeNothing ==
  [][answer'.request \in {"Fetch", "ListOffsets", "OffsetForLeaderEpoch"}
       => UNCHANGED <<log, start>>]_vars
StartIsMonotonic == [][start' >= start]_vars
\* What was written stays, whoever leads.
WrittenStays ==
  [][Len(log') >= Len(log) /\ \A i \in DOMAIN log : log'[i] = log[i]]_vars
===============================================================================
