------------------------ MODULE ConsumerPositionSteps ------------------------
(***************************************************************************)
(* The positions of one consumer: where each partition that it owns is     *)
(* read, how that position comes about (committed, reset, validated), and  *)
(* what is fetched, buffered and handed out.                               *)
(*                                                                         *)
(* A poll waits for nothing and is one step of the application's thread.   *)
(* Requests are of one partition: each partition has a leader of its own.  *)
(* An answer sets positions in whichever thread polls: a step of its own.  *)
(*                                                                         *)
(* The group is environment: it gives and takes partitions, and has their  *)
(* committed positions. ConsumerCommits has what the consumer commits.     *)
(* The leaders are environment too: a log, and the leader's epoch.         *)
(*                                                                         *)
(* Left out: a partition without a leader, fetch sessions, the preferred   *)
(* replica, transactions (ReadCommitted has them), deleted records.        *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Partitions,    \* 1..n
  GroupAssigns,  \* TRUE: the group assigns (subscribe); FALSE: the application does (assign)
  InitialLog,    \* of each partition: the leader epochs of its records
  InitialEpoch,  \* of each partition's leader, of which metadata has the first only
  MaxEpoch,      \* of a leader
  MaxLog,        \* records
  Committed,     \* the group's positions by partition: [offset, epoch]; offset -1: none
  Policy,        \* auto.offset.reset: "earliest", "latest" or "none"
  MaxFetch,      \* records that a fetch brings, at most
  MaxPoll,       \* max.poll.records
  InFlight,      \* requests on their way, at most, for a poll to begin
  SeekTargets,   \* where the application seeks to: [offset, epoch]; epoch 0: none
  Errors,        \* of answers, beside those that a leader has a reason for: <<kind, error>>
  Events         \* what else happens: names of actions

(***************************************************************************)
(* The variables, and the field of the real consumer that each stands for. *)
(*                                                                         *)
(* variable    | field                                                     *)
(* ------------+---------------------------------------------------------- *)
(* tps         | SubscriptionState.assignment: a TopicPartitionState for   *)
(*             | each partition; state NONE: not assigned. Its offset,     *)
(*             | epoch, leader and known are the FetchPosition (epoch 0:   *)
(*             | none; known: the leader is); retry is nextRetryTimeMs:    *)
(*             | sent while an answer is awaited, backoff, now             *)
(* metadata    | Metadata: the leader epoch that the cache has, and the    *)
(*             | last seen one                                             *)
(* outdated    | OffsetFetcherUtils.metadataUpdateVersion is not Metadata's*)
(* refresh     | Metadata.needFullUpdate                                   *)
(* lookup      | ConsumerCoordinator.pendingCommittedOffsetRequest         *)
(* sent        | ListOffsets, OffsetsForLeaderEpoch and Fetch in flight    *)
(* buffer      | FetchBuffer, the next in line first; ready: initialized   *)
(* failure     | cachedResetPositionsException and                         *)
(*             | cachedOffsetsForLeaderException                           *)
(* consumed    | SubscriptionState.allConsumed; -1: nothing to commit      *)
(* result      | what the last call of poll has returned or raised         *)
(* ------------+---------------------------------------------------------- *)
(* log, leaderEpoch | each partition's leader                              *)
(***************************************************************************)
VARIABLES
  tps, metadata, outdated, refresh, lookup, sent, buffer, failure, consumed, result,
  log, leaderEpoch

consumerVars == <<tps, metadata, outdated, refresh, lookup, sent, buffer, failure, consumed, result>>
environment  == <<log, leaderEpoch>>
vars == <<consumerVars, environment>>

NoOffset == -1
NoEpoch  == 0
Unowned ==
  [state |-> "NONE", offset |-> NoOffset, epoch |-> NoEpoch, leader |-> NoEpoch, known |-> FALSE,
   strategy |-> "none", retry |-> "now", paused |-> FALSE]
NoLookup  == [asked |-> {}, answer |-> "none"]
NoFailure == [reset |-> "none", validation |-> "none"]
NoResult  == [records |-> <<>>, error |-> "none"]

\* The consumer as a value; a result is there for one step only.
consumer ==
  [tps |-> tps, metadata |-> metadata, outdated |-> outdated, refresh |-> refresh,
   lookup |-> lookup, sent |-> sent, buffer |-> buffer, failure |-> failure, result |-> NoResult]

\* SubscriptionState.allConsumed: a position that is not valid is not committed.
Commits(tp) == tp.state = "FETCHING"

Becomes(c) ==
  /\ tps' = c.tps /\ metadata' = c.metadata /\ outdated' = c.outdated /\ refresh' = c.refresh
  /\ lookup' = c.lookup /\ sent' = c.sent /\ buffer' = c.buffer /\ failure' = c.failure
  /\ result' = c.result
  /\ consumed' = [p \in Partitions |-> IF Commits(c.tps[p]) THEN c.tps[p].offset ELSE NoOffset]

Init ==
  /\ tps = [p \in Partitions |-> Unowned]
  /\ metadata = [p \in Partitions |-> [epoch |-> 1, seen |-> 1]]
  /\ outdated = TRUE /\ refresh = FALSE /\ lookup = NoLookup /\ sent = <<>> /\ buffer = <<>>
  /\ failure = NoFailure /\ result = NoResult
  /\ consumed = [p \in Partitions |-> NoOffset]
  /\ log = [p \in Partitions |-> InitialLog]
  /\ leaderEpoch = [p \in Partitions |-> InitialEpoch]

Lesser(a, b) == IF a < b THEN a ELSE b

(***************************************************************************)
(* A partition's position (SubscriptionState.TopicPartitionState).         *)
(***************************************************************************)
\* Metadata.currentLeader: unknown while metadata lacks the newest epoch that any answer had.
CurrentLeader(c, p) ==
  [leader |-> c.metadata[p].seen, known |-> c.metadata[p].epoch = c.metadata[p].seen]

Position(offset, epoch, leader) ==
  [offset |-> offset, epoch |-> epoch, leader |-> leader.leader, known |-> leader.known]

At(tp, position, state) ==
  [tp EXCEPT !.state = state, !.offset = position.offset, !.epoch = position.epoch,
             !.leader = position.leader, !.known = position.known,
             !.strategy = "none", !.retry = "now"]

\* validatePosition: without an epoch there is nothing to ask.
AsksLeader(position) == position.epoch # NoEpoch /\ position.leader # NoEpoch

SeekUnvalidated(tp, position) ==
  At(tp, position, IF AsksLeader(position) THEN "AWAIT_VALIDATION" ELSE "FETCHING")

\* A position that awaits a reset is none.
Reset(tp, strategy) ==
  [At(tp, Position(NoOffset, NoEpoch, [leader |-> NoEpoch, known |-> FALSE]), "AWAIT_RESET")
     EXCEPT !.strategy = strategy]

HasPosition(tp) == tp.state \in {"FETCHING", "AWAIT_VALIDATION"}
IsAssigned(tp)  == tp.state # "NONE"

\* maybeValidatePosition
MaybeValidated(tp, leader) ==
  IF ~HasPosition(tp) \/ ~leader.known \/ (tp.leader = leader.leader /\ tp.known) THEN tp
  ELSE SeekUnvalidated(tp, Position(tp.offset, tp.epoch, leader))

\* OffsetFetcherUtils.validatePositionsOnMetadataChange
LooksAtMetadata(c) == c.outdated

OnMetadataChange(c) ==
  IF ~LooksAtMetadata(c) THEN c
  ELSE [c EXCEPT !.outdated = FALSE,
          !.tps = [p \in Partitions |-> MaybeValidated(@[p], CurrentLeader(c, p))]]

\* Metadata.updateLastSeenEpochIfNewer
Seen(c, p, epoch) ==
  IF epoch <= c.metadata[p].seen THEN c
  ELSE [c EXCEPT !.metadata[p].seen = epoch, !.refresh = TRUE]

SeekTo(c, p, target) ==
  LET s == Seen(c, p, target.epoch)
  IN  [s EXCEPT !.tps[p] =
         SeekUnvalidated(@, Position(target.offset, target.epoch, CurrentLeader(s, p)))]

(***************************************************************************)
(* Requests.                                                               *)
(***************************************************************************)
Request(kind, p, tp, leader) ==
  [kind |-> kind, partition |-> p, offset |-> tp.offset, epoch |-> tp.epoch, leader |-> leader,
   strategy |-> tp.strategy]

\* While its answer is awaited, nothing is asked again.
Asks(c, p, kind, leader) ==
  [c EXCEPT !.sent = Append(@, Request(kind, p, c.tps[p], leader)), !.tps[p].retry = "sent"]

AsksForMetadata(c) == [c EXCEPT !.refresh = TRUE]

\* OffsetFetcher.validatePositionsAsync
Validate(c, p) ==
  IF c.tps[p].state # "AWAIT_VALIDATION" \/ c.tps[p].retry # "now" THEN c
  ELSE IF c.tps[p].known THEN Asks(c, p, "epochs", c.tps[p].leader) ELSE AsksForMetadata(c)

\* OffsetFetcher.resetPositionsAsync
AskToReset(c, p) ==
  IF c.tps[p].state # "AWAIT_RESET" \/ c.tps[p].retry # "now" THEN c
  ELSE IF CurrentLeader(c, p).known THEN Asks(c, p, "list", CurrentLeader(c, p).leader)
  ELSE AsksForMetadata(c)

IsFetchable(tp) == tp.state = "FETCHING" /\ ~tp.paused
IsBuffered(c, p) == \E i \in 1..Len(c.buffer) : c.buffer[i].partition = p
IsFetching(c, p) ==
  \E i \in 1..Len(c.sent) : c.sent[i].kind = "fetch" /\ c.sent[i].partition = p

\* AbstractFetch.prepareFetchRequests
Fetch(c, p) ==
  IF ~IsFetchable(c.tps[p]) \/ IsBuffered(c, p) THEN c
  ELSE IF ~c.tps[p].known THEN AsksForMetadata(c)
  ELSE IF IsFetching(c, p) THEN c
  ELSE [c EXCEPT !.sent = Append(@, Request("fetch", p, [c.tps[p] EXCEPT !.epoch = NoEpoch],
                                           c.tps[p].leader))]

RECURSIVE ValidateAll(_, _), ResetAll(_, _), FetchAll(_, _)
ValidateAll(c, p) == IF p \notin Partitions THEN c ELSE ValidateAll(Validate(c, p), p + 1)
ResetAll(c, p)    == IF p \notin Partitions THEN c ELSE ResetAll(AskToReset(c, p), p + 1)
FetchAll(c, p)    == IF p \notin Partitions THEN c ELSE FetchAll(Fetch(c, p), p + 1)

(***************************************************************************)
(* FetchCollector.collectFetch                                             *)
(***************************************************************************)
Raised(c, error) == [c EXCEPT !.result.error = error]

Kept(c, paused) == [c EXCEPT !.buffer = @ \o paused]
Dropped(c)      == [c EXCEPT !.buffer = Tail(@)]

\* A fetch goes on exactly where the position is.
FitsPosition(tp, entry) == tp.offset = entry.offset

\* Of a paused partition nothing is thrown away (KAFKA-7548).
KeepsPaused(entry) == <<[entry EXCEPT !.ready = TRUE]>>

\* An error at the head is raised once; behind records it stays for the next poll (KAFKA-5075).
CollectedUpTo(c, error, out, paused) ==
  IF out = <<>> THEN Raised(Kept(Dropped(c), paused), error)
  ELSE [Kept(c, paused) EXCEPT !.result.records = out]

StaleLeader == {"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"}

\* What is handed out whole makes room for the next fetch. `room`: how many records the poll takes.
LeavesBuffer(entry, n, room) == n = Len(entry.records)

Took(c, p, entry, n, room) ==
  [c EXCEPT
     !.tps[p].offset = entry.offset + n,
     !.tps[p].epoch = IF n = 0 THEN @ ELSE entry.records[n],
     !.buffer = IF LeavesBuffer(entry, n, room) THEN Tail(@)
                ELSE <<[entry EXCEPT !.ready = TRUE, !.offset = @ + n,
                                     !.records = SubSeq(@, n + 1, Len(@))]>> \o Tail(@)]

HandedOut(p, offset, n) == [i \in 1..n |-> [partition |-> p, offset |-> offset + i - 1]]

RECURSIVE Collected(_, _, _)
Collected(c, out, paused) ==
  IF c.buffer = <<>> \/ Len(out) = MaxPoll THEN [Kept(c, paused) EXCEPT !.result.records = out]
  ELSE
    LET entry == Head(c.buffer)
        p == entry.partition
        tp == c.tps[p]
        room == MaxPoll - Len(out)
        n == Lesser(room, Len(entry.records))
    IN  CASE ~entry.ready /\ tp.state # "FETCHING" -> Collected(Dropped(c), out, paused)
          [] ~entry.ready /\ entry.error \in StaleLeader ->
               Collected(AsksForMetadata(Dropped(c)), out, paused)
          [] ~entry.ready /\ ~FitsPosition(tp, entry)
               /\ entry.error \in {"NONE", "OFFSET_OUT_OF_RANGE"} ->
               Collected(Dropped(c), out, paused)
          [] ~entry.ready /\ entry.error = "OFFSET_OUT_OF_RANGE" /\ Policy # "none" ->
               Collected([Dropped(c) EXCEPT !.tps[p] = Reset(@, Policy)], out, paused)
          [] ~entry.ready /\ entry.error # "NONE" -> CollectedUpTo(c, entry.error, out, paused)
          [] tp.paused -> Collected(Dropped(c), out, paused \o KeepsPaused(entry))
          [] ~IsFetchable(tp) \/ ~FitsPosition(tp, entry) -> Collected(Dropped(c), out, paused)
          [] OTHER ->
               Collected(Took(c, p, entry, n, room), out \o HandedOut(p, entry.offset, n), paused)

\* ClassicKafkaConsumer.pollForFetches; what is fetched next is under way when it returns.
PolledForFetches(c) ==
  LET r == Collected(c, <<>>, <<>>)
  IN  IF r.result.error = "none" THEN FetchAll(r, 1) ELSE r

(***************************************************************************)
(* ClassicKafkaConsumer.updateFetchPositions                               *)
(***************************************************************************)
Initializing(c) == {p \in Partitions : c.tps[p].state = "INITIALIZING"}

\* ConsumerUtils.refreshCommittedOffsets
RECURSIVE InitializedFrom(_, _)
InitializedFrom(c, p) ==
  IF p \notin Partitions THEN c
  ELSE InitializedFrom(
         IF p \in c.lookup.asked /\ Committed[p].offset # NoOffset /\ IsAssigned(c.tps[p])
         THEN SeekTo(c, p, Committed[p]) ELSE c, p + 1)

\* What is not committed begins where the policy says: only those that were asked for.
ResetsByPolicy(c) == Initializing(c)

ResetInitializing(c) ==
  [c EXCEPT !.tps = [p \in Partitions |->
     IF p \in ResetsByPolicy(c) THEN Reset(@[p], Policy) ELSE @[p]]]

ResetPositions(c) ==
  IF c.failure.reset # "none"
  THEN Raised([c EXCEPT !.failure.reset = "none"], c.failure.reset)
  ELSE PolledForFetches(ResetAll(c, 1))

AfterLookup(c) ==
  IF Initializing(c) # {} /\ Policy = "none" THEN Raised(c, "NO_OFFSET")
  ELSE ResetPositions(ResetInitializing(c))

\* ConsumerCoordinator.fetchCommittedOffsets: an answer counts for those who were asked about.
IsOfAnother(c) == c.lookup.answer # "none" /\ c.lookup.asked # Initializing(c)

LookedUp(c) ==
  LET l == IF IsOfAnother(c) THEN [c EXCEPT !.lookup = NoLookup] ELSE c
  IN  CASE l.lookup.answer = "none" ->
             PolledForFetches(
               [l EXCEPT !.lookup = [asked |-> Initializing(c), answer |-> "sent"]])
        [] l.lookup.answer = "sent" -> PolledForFetches(l)
        [] l.lookup.answer = "failed" -> PolledForFetches([l EXCEPT !.lookup = NoLookup])
        [] OTHER -> AfterLookup([InitializedFrom(l, 1) EXCEPT !.lookup = NoLookup])

UpdateFetchPositions(c) ==
  LET v == ValidateAll(OnMetadataChange(c), 1)
  IN  CASE c.failure.validation # "none" ->
             Raised([c EXCEPT !.failure.validation = "none"], c.failure.validation)
        [] \A p \in Partitions : v.tps[p].state \in {"FETCHING", "NONE"} -> PolledForFetches(v)
        [] Initializing(v) # {} -> LookedUp(v)
        [] OTHER -> ResetPositions(v)

(***************************************************************************)
(* The application.                                                        *)
(***************************************************************************)
Poll ==
  /\ \E p \in Partitions : IsAssigned(tps[p])
  /\ Len(sent) < InFlight
  /\ Becomes(UpdateFetchPositions(consumer))
  /\ UNCHANGED environment

New == [Unowned EXCEPT !.state = "INITIALIZING"]

\* A rebalance gives up everything first, and leaves the buffer alone.
Assigned(c, partitions) ==
  IF GroupAssigns
  THEN [c EXCEPT !.tps = [p \in Partitions |-> IF p \in partitions THEN New ELSE Unowned]]
  ELSE [c EXCEPT
          !.tps = [p \in Partitions |->
            IF p \notin partitions THEN Unowned ELSE IF IsAssigned(@[p]) THEN @[p] ELSE New],
          !.buffer = SelectSeq(@, LAMBDA entry : entry.partition \in partitions)]

Assign(partitions) ==
  /\ partitions # {} \/ "Unassign" \in Events
  /\ (\A p \in Partitions : ~IsAssigned(tps[p])) \/ "Reassign" \in Events
  /\ {p \in Partitions : IsAssigned(tps[p])} # partitions \/ GroupAssigns
  /\ Becomes(Assigned(consumer, partitions))
  /\ UNCHANGED environment

Seek(p, target) ==
  /\ IsAssigned(tps[p])
  /\ Becomes(SeekTo(consumer, p, target))
  /\ UNCHANGED environment

\* seekToBeginning, seekToEnd: nothing is sent before the next poll.
SeekToEdge(p, strategy) ==
  /\ "SeekToEdge" \in Events /\ IsAssigned(tps[p])
  /\ Becomes([consumer EXCEPT !.tps[p] = Reset(@, strategy)])
  /\ UNCHANGED environment

Pause(p) ==
  /\ "Pause" \in Events /\ IsAssigned(tps[p]) /\ ~tps[p].paused
  /\ Becomes([consumer EXCEPT !.tps[p].paused = TRUE])
  /\ UNCHANGED environment

Resume(p) ==
  /\ tps[p].paused
  /\ Becomes([consumer EXCEPT !.tps[p].paused = FALSE])
  /\ UNCHANGED environment

PassBackoff ==
  /\ \E p \in Partitions : tps[p].retry = "backoff"
  /\ Becomes([consumer EXCEPT !.tps = [p \in Partitions |->
       IF @[p].retry = "backoff" THEN [@[p] EXCEPT !.retry = "now"] ELSE @[p]]])
  /\ UNCHANGED environment

(***************************************************************************)
(* Answers.                                                                *)
(***************************************************************************)
\* What a leader answers to OffsetsForLeaderEpoch: the greatest epoch up to the one asked for that it
\* knows, and where that ends.
KnownEpochs(p, epoch) ==
  {e \in 1..epoch : e = leaderEpoch[p] \/ \E i \in 1..Len(log[p]) : log[p][i] = e}

Greatest(epochs) == CHOOSE e \in epochs : \A other \in epochs : other <= e

End(p, epoch) ==
  IF KnownEpochs(p, epoch) = {} THEN [offset |-> NoOffset, epoch |-> NoEpoch]
  ELSE LET e == Greatest(KnownEpochs(p, epoch))
       IN  [offset |-> Cardinality({i \in 1..Len(log[p]) : log[p][i] <= e}), epoch |-> e]

\* The answer counts for the position that was asked about (KAFKA-8429).
IsAskedFor(tp, r) ==
  /\ tp.state = "AWAIT_VALIDATION" /\ tp.known
  /\ tp.offset = r.offset /\ tp.epoch = r.epoch /\ tp.leader = r.leader

\* SubscriptionState.maybeCompleteValidation
Validated(c, r, end) ==
  LET p == r.partition
      tp == c.tps[p]
      truncated == end.offset = NoOffset \/ end.offset < tp.offset
  IN  CASE ~IsAskedFor(tp, r) -> c
        [] ~truncated -> [c EXCEPT !.tps[p].state = "FETCHING", !.tps[p].retry = "now"]
        [] Policy = "none" ->
             [c EXCEPT !.failure.validation = IF @ = "none" THEN "LOG_TRUNCATION" ELSE @]
        [] end.offset = NoOffset -> [c EXCEPT !.tps[p] = Reset(@, Policy)]
        [] OTHER ->
             [c EXCEPT !.tps[p] =
                At(@, Position(end.offset, end.epoch, [leader |-> tp.leader, known |-> TRUE]),
                   "FETCHING")]

\* The answer counts for the strategy that was asked with (KAFKA-7703).
IsStillWanted(tp, r) == tp.state = "AWAIT_RESET" /\ tp.strategy = r.strategy

\* OffsetFetcherUtils.resetPositionIfNeeded: the position has no epoch.
ResetTo(c, r, offset) ==
  IF ~IsStillWanted(c.tps[r.partition], r) THEN c
  ELSE [c EXCEPT !.tps[r.partition] =
          SeekUnvalidated(@, Position(offset, NoEpoch, CurrentLeader(c, r.partition)))]

FetchedFrom(p, offset) ==
  IF offset > Len(log[p]) THEN [records |-> <<>>, error |-> "OFFSET_OUT_OF_RANGE"]
  ELSE [records |-> SubSeq(log[p], offset + 1, Lesser(offset + MaxFetch, Len(log[p]))),
        error |-> "NONE"]

Buffered(c, r, fetched) ==
  [c EXCEPT !.buffer = Append(@,
     [partition |-> r.partition, offset |-> r.offset, records |-> fetched.records,
      error |-> fetched.error, ready |-> FALSE])]

\* Another try, later, and with newer metadata (KAFKA-9535).
RetriesLater(c, p) ==
  AsksForMetadata(IF IsAssigned(c.tps[p]) THEN [c EXCEPT !.tps[p].retry = "backoff"] ELSE c)

IsForGood(error) == error = "TOPIC_AUTHORIZATION_FAILED"

Failed(c, r, error) ==
  LET later == RetriesLater(c, r.partition)
  IN  CASE r.kind = "fetch" /\ error = "NETWORK_EXCEPTION" -> c
        [] r.kind = "fetch" -> Buffered(c, r, [records |-> <<>>, error |-> error])
        [] ~IsForGood(error) -> later
        [] r.kind = "list" ->
             [later EXCEPT !.failure.reset = IF @ = "none" THEN error ELSE @]
        [] OTHER -> [later EXCEPT !.failure.validation = IF @ = "none" THEN error ELSE @]

Without(i) == [consumer EXCEPT !.sent = SubSeq(@, 1, i - 1) \o SubSeq(@, i + 1, Len(@))]

\* The leader answers. A request of an older leader epoch is fenced.
Answered(c, r) ==
  LET p == r.partition
  IN  CASE r.leader # leaderEpoch[p] -> Failed(c, r, "FENCED_LEADER_EPOCH")
        [] r.kind = "list" ->
             ResetTo(c, r, IF r.strategy = "earliest" THEN 0 ELSE Len(log[p]))
        [] r.kind = "epochs" -> Validated(c, r, End(p, r.epoch))
        [] OTHER -> Buffered(c, r, FetchedFrom(p, r.offset))

Answer(i) ==
  /\ i <= Len(sent)
  /\ Becomes(Answered(Without(i), sent[i]))
  /\ UNCHANGED environment

Fail(i, error) ==
  /\ i <= Len(sent) /\ <<sent[i].kind, error>> \in Errors
  /\ Becomes(Failed(Without(i), sent[i], error))
  /\ UNCHANGED environment

\* The group's coordinator answers OffsetFetch.
AnswerLookup(succeeds) ==
  /\ lookup.answer = "sent" /\ (succeeds \/ "LookupFails" \in Events)
  /\ Becomes([consumer EXCEPT !.lookup.answer = IF succeeds THEN "done" ELSE "failed"])
  /\ UNCHANGED environment

\* Metadata.update: what is older than what was seen is left out.
UpdateMetadata(age) ==
  /\ "Metadata" \in Events /\ age <= MaxEpoch - 1 /\ (age = 0 \/ "OldMetadata" \in Events)
  /\ refresh \/ \E p \in Partitions : metadata[p].epoch # leaderEpoch[p]
  /\ LET epochs == [p \in Partitions |-> IF age < leaderEpoch[p] THEN leaderEpoch[p] - age ELSE 1]
     IN  Becomes([consumer EXCEPT
           !.metadata = [p \in Partitions |->
              IF epochs[p] >= @[p].seen THEN [epoch |-> epochs[p], seen |-> epochs[p]] ELSE @[p]],
           !.outdated = TRUE, !.refresh = FALSE])
  /\ UNCHANGED environment

(***************************************************************************)
(* Leaders.                                                                *)
(***************************************************************************)
\* A leader that lacks records that were read was elected uncleanly.
Elect(p, kept) ==
  /\ leaderEpoch[p] < MaxEpoch /\ kept <= Len(log[p])
  /\ kept = Len(log[p]) \/ "Truncate" \in Events
  /\ leaderEpoch' = [leaderEpoch EXCEPT ![p] = @ + 1]
  /\ log' = [log EXCEPT ![p] = SubSeq(@, 1, kept)]
  /\ Becomes(consumer)

AppendRecord(p) ==
  /\ "AppendRecord" \in Events /\ Len(log[p]) < MaxLog
  /\ log' = [log EXCEPT ![p] = Append(@, leaderEpoch[p])]
  /\ Becomes(consumer)
  /\ UNCHANGED leaderEpoch

Next ==
  \/ Poll \/ PassBackoff
  \/ \E partitions \in SUBSET Partitions : Assign(partitions)
  \/ \E p \in Partitions :
       \/ \E target \in SeekTargets : Seek(p, target)
       \/ \E strategy \in {"earliest", "latest"} : SeekToEdge(p, strategy)
       \/ Pause(p) \/ Resume(p)
       \/ \E kept \in 0..MaxLog : Elect(p, kept)
       \/ AppendRecord(p)
  \/ \E i \in 1..InFlight + 1 : Answer(i) \/ \E e \in Errors : Fail(i, e[2])
  \/ \E succeeds \in BOOLEAN : AnswerLookup(succeeds)
  \/ \E age \in 0..1 : UpdateMetadata(age)

Spec == Init /\ [][Next]_vars
=============================================================================
