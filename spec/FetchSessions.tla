----------------------------- MODULE FetchSessions -----------------------------
(***************************************************************************)
(* Incremental fetch sessions (KIP-227), as one client meets them at a     *)
(* broker's port: the broker remembers which partitions the client wants,  *)
(* and answers only those that have news. What the broker leaves out, the  *)
(* client takes for unchanged. So a wrong session loses records silently.  *)
(*                                                                         *)
(* Each request is a step of its own, with its answer in `answer`; until   *)
(* that is taken no other request is sent.                                 *)
(*                                                                         *)
(*   a step                | in Kafka                                      *)
(*   ----------------------+---------------------------------------------- *)
(*   Produce               | ReplicaManager.appendRecords                  *)
(*   DeleteRecords         | ReplicaManager.deleteRecords (KIP-107)        *)
(*   FetchFull             | FetchManager.newContext, epoch 0:             *)
(*                         | FullFetchContext                              *)
(*   FetchSessionless      | the same, epoch -1: SessionlessFetchContext   *)
(*   FetchIncremental      | the same: FetchSession.update,                *)
(*                         | IncrementalFetchContext, SessionErrorContext  *)
(*                                                                         *)
(* A full request names the session that the client has, which ends it.    *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS
  Partitions,  \* of one topic, each with one replica
  MaxRecords,  \* each log grows up to so many records
  Offsets,     \* that the client asks for
  Deletions    \* BOOLEAN: DeleteRecords is sent

VARIABLES
  logs,     \* of each partition its end and its start
  session,  \* what the broker remembers
  client,   \* what the client takes for granted
  answer    \* of the last request
vars == <<logs, session, client, answer>>

NoOffset == -1
\* Of a partition: what was told last.
Nothing == [end |-> NoOffset, start |-> NoOffset]
NoOffsets == [p \in Partitions |-> NoOffset]
NothingTold == [p \in Partitions |-> Nothing]

\* `isUsed`: an incremental request was accepted, so there is an older epoch than the next one.
NoSession == [isOpen |-> FALSE, isUsed |-> FALSE, offsets |-> NoOffsets, told |-> NothingTold]
NoClient == [isOpen |-> FALSE, wanted |-> NoOffsets, heard |-> NothingTold]
NoAnswer ==
  [request |-> "none", epoch |-> "none", error |-> "NONE", isOpen |-> FALSE, partitions |-> {}]

Idle == answer = NoAnswer
PartitionsIn(offsets) == {p \in Partitions : offsets[p] # NoOffset}

Init ==
  /\ logs = [p \in Partitions |-> [end |-> 0, start |-> 0]]
  /\ session = NoSession
  /\ client = NoClient
  /\ answer = NoAnswer

(***************************************************************************)
(* What a partition has for a reader.                                      *)
(***************************************************************************)
InRange(p, offset) == logs[p].start <= offset /\ offset <= logs[p].end
\* An error says nothing of the log: LogReadResult has -1 for its offsets.
Read(p, offset) ==
  IF InRange(p, offset)
  THEN [partition |-> p, error |-> "NONE", end |-> logs[p].end, start |-> logs[p].start,
        records |-> offset..(logs[p].end - 1)]
  ELSE [partition |-> p, error |-> "OFFSET_OUT_OF_RANGE", end |-> NoOffset,
        start |-> NoOffset, records |-> {}]
OffsetsOf(read) == [end |-> read.end, start |-> read.start]

(***************************************************************************)
(* Requests of others.                                                     *)
(***************************************************************************)
Produce(p) ==
  /\ Idle /\ logs[p].end < MaxRecords
  /\ logs' = [logs EXCEPT ![p].end = @ + 1]
  /\ UNCHANGED <<session, client, answer>>

DeleteRecords(p) ==
  /\ Deletions /\ Idle /\ logs[p].start < logs[p].end
  /\ logs' = [logs EXCEPT ![p].start = @ + 1]
  /\ UNCHANGED <<session, client, answer>>

(***************************************************************************)
(* Full requests: they list all partitions.                                *)
(***************************************************************************)
Asked(partitions, offset) ==
  [p \in Partitions |-> IF p \in partitions THEN offset ELSE NoOffset]
AllOf(offsets) == {Read(p, offsets[p]) : p \in PartitionsIn(offsets)}
\* FetchSession.CachedPartition keeps what each answer said.
ToldBy(reads, before) ==
  [p \in Partitions |->
     IF \E read \in reads : read.partition = p
     THEN OffsetsOf(CHOOSE read \in reads : read.partition = p)
     ELSE before[p]]

FetchFull(partitions, offset) ==
  LET offsets == Asked(partitions, offset)
      told == ToldBy(AllOf(offsets), NothingTold)
  IN  /\ Idle /\ partitions # {}
      /\ session' = [isOpen |-> TRUE, isUsed |-> FALSE, offsets |-> offsets, told |-> told]
      /\ client' = [isOpen |-> TRUE, wanted |-> offsets, heard |-> told]
      /\ answer' = [NoAnswer EXCEPT !.request = "FetchFull", !.isOpen = TRUE,
                                    !.partitions = AllOf(offsets)]
      /\ UNCHANGED logs

SessionAfterClose == NoSession
FetchSessionless(partitions, offset) ==
  /\ Idle /\ partitions # {}
  /\ session' = SessionAfterClose
  /\ client' = NoClient
  /\ answer' = [NoAnswer EXCEPT !.request = "FetchSessionless",
                                !.partitions = AllOf(Asked(partitions, offset))]
  /\ UNCHANGED logs

(***************************************************************************)
(* Incremental requests: they list what the client changes.                *)
(***************************************************************************)
Epochs == {"current", "ahead", "behind"}
IsExpected(epoch) == epoch = "current"
SessionError(epoch) ==
  IF ~session.isOpen THEN "FETCH_SESSION_ID_NOT_FOUND"
  ELSE IF ~IsExpected(epoch) THEN "INVALID_FETCH_SESSION_EPOCH"
  ELSE "NONE"

\* FetchSession.update: a partition that is added is not told of yet; one that is changed is.
OffsetsAfter(changed, offset, forgotten) ==
  [p \in Partitions |->
     IF p \in forgotten THEN NoOffset
     ELSE IF p \in changed THEN offset
     ELSE session.offsets[p]]
ToldAfter(forgotten) ==
  [p \in Partitions |-> IF p \in forgotten THEN Nothing ELSE session.told[p]]

\* FetchSession.CachedPartition.maybeUpdateResponseData
HasRecords(read) == read.records # {}
IsError(read) == read.error # "NONE"
HasMoved(read, told) == OffsetsOf(read) # told
IsAnswered(read, told) == HasRecords(read) \/ IsError(read) \/ HasMoved(read, told)

\* An error says -1 for both offsets, so that the partition is told once it is gone.
KeptAfter(reads, before) == ToldBy(reads, before)

ClientAfter(changed, offset, forgotten, reads) ==
  LET heard == [p \in Partitions |-> IF p \in forgotten THEN Nothing ELSE client.heard[p]]
      wanted == [p \in Partitions |-> IF p \in forgotten THEN NoOffset
                                      ELSE IF p \in changed THEN offset
                                      ELSE client.wanted[p]]
  IN  [isOpen |-> TRUE, wanted |-> wanted, heard |-> ToldBy(reads, heard)]

FetchIncremental(epoch, changed, offset, forgotten) ==
  LET asked == [NoAnswer EXCEPT !.request = "FetchIncremental", !.epoch = epoch]
      error == SessionError(epoch)
      offsets == OffsetsAfter(changed, offset, forgotten)
      told == ToldAfter(forgotten)
      reads == {read \in AllOf(offsets) : IsAnswered(read, told[read.partition])}
  IN  /\ Idle
      /\ changed \intersect forgotten = {}
      /\ epoch = "behind" => session.isUsed
      /\ epoch # "current" => changed = {}
      /\ IF error # "NONE"
         THEN /\ answer' = [asked EXCEPT !.error = error]
              /\ UNCHANGED <<session, client>>
         ELSE IF PartitionsIn(offsets) = {}
         THEN \* a session without partitions ends
              /\ session' = NoSession /\ client' = NoClient /\ answer' = asked
         ELSE /\ session' = [isOpen |-> TRUE, isUsed |-> TRUE, offsets |-> offsets,
                             told |-> KeptAfter(reads, told)]
              /\ client' = ClientAfter(changed, offset, forgotten, reads)
              /\ answer' = [asked EXCEPT !.isOpen = TRUE, !.partitions = reads]
      /\ UNCHANGED logs

TakeAnswer ==
  /\ ~Idle
  /\ answer' = NoAnswer
  /\ UNCHANGED <<logs, session, client>>

\* An offset belongs to what is changed; without a change there is none.
OffsetsOfChange(changed) == IF changed = {} THEN {NoOffset} ELSE Offsets
SetsOfOne == {{p} : p \in Partitions}

Next ==
  \/ \E p \in Partitions : Produce(p)
  \/ \E p \in Partitions : DeleteRecords(p)
  \/ \E partitions \in SUBSET Partitions, offset \in Offsets : FetchFull(partitions, offset)
  \/ \E partitions \in SUBSET Partitions, offset \in Offsets :
       FetchSessionless(partitions, offset)
  \/ \E epoch \in Epochs, changed, forgotten \in SetsOfOne \union {{}} :
       \E offset \in OffsetsOfChange(changed) :
         FetchIncremental(epoch, changed, offset, forgotten)
  \/ TakeAnswer

(***************************************************************************)
(* What a client may rely on.                                              *)
(***************************************************************************)
OffsetsOrNone == Offsets \union {NoOffset}
TypeOK ==
  /\ \A p \in Partitions : 0 <= logs[p].start /\ logs[p].start <= logs[p].end
  /\ session.offsets \in [Partitions -> OffsetsOrNone]
  /\ client.wanted \in [Partitions -> OffsetsOrNone]
  /\ answer.isOpen \in BOOLEAN

IsAccepted == answer.request = "FetchIncremental" /\ answer.error = "NONE"
Wanted == PartitionsIn(client.wanted)

\* Records that are there for the client are in the answer, from the wanted offset on.
RecordsAreRead ==
  answer.request \in {"FetchFull", "FetchIncremental"} /\ answer.error = "NONE" =>
    \A p \in Wanted :
      InRange(p, client.wanted[p]) /\ client.wanted[p] < logs[p].end =>
        \E read \in answer.partitions :
          read.partition = p /\ read.records = client.wanted[p]..(logs[p].end - 1)

\* A reader outside a log hears of it at each request.
OutsideIsTold ==
  IsAccepted =>
    \A p \in Wanted :
      ~InRange(p, client.wanted[p]) =>
        \E read \in answer.partitions : read.partition = p /\ IsError(read)

\* What the client has heard of a log's end and start is true: silence says that it still is.
SilenceIsTrue ==
  IsAccepted =>
    \A p \in Wanted : InRange(p, client.wanted[p]) => client.heard[p] = logs[p]

\* Nothing is answered of a partition that the client has forgotten.
ForgottenIsNotAnswered ==
  answer.request = "FetchIncremental" =>
    \A read \in answer.partitions : read.partition \in Wanted

\* A request that was doubled or overtaken is refused.
OtherEpochIsRefused ==
  answer.epoch \in {"ahead", "behind"} => answer.error # "NONE" /\ answer.partitions = {}

\* The broker and the client agree on whether there is a session.
SessionIsKnown == session.isOpen = client.isOpen

\* What did not change is left out: what sessions are for.
UnchangedIsLeftOut ==
  [][answer'.request = "FetchIncremental" =>
       \A read \in answer'.partitions :
         HasRecords(read) \/ IsError(read) \/ OffsetsOf(read) # client.heard[read.partition]]_vars

RefusedChangesNothing == [][answer'.error # "NONE" => UNCHANGED <<logs, session>>]_vars
===============================================================================
