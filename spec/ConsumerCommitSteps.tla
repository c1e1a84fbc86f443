------------------------- MODULE ConsumerCommitSteps -------------------------
(***************************************************************************)
(* One consumer behind the group's protocol: its subscription, the one     *)
(* partition that it owns at times, and its commits. The application's     *)
(* calls are steps (poll waits for nothing, commitSync and close stand     *)
(* still until something comes); what the heartbeat thread hears, what the *)
(* coordinator answers and what time brings are steps between them.        *)
(*                                                                         *)
(* The coordinator is environment: it takes commits of its present         *)
(* generation. GroupMembership has the join itself, with its two requests. *)
(*                                                                         *)
(* Left out: how a position comes about and moves, several partitions,     *)
(* static members and their fence, a look-up that fails for good, close    *)
(* amid a look-up, authorization.                                          *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Offsets,      \* positions, from 0
  Generations,  \* of the group, from 1
  Calls,        \* calls of commitAsync, from 1
  InFlight,     \* how many commits may be on their way, at most
  Modes,        \* how the application gets partitions: "group" (subscribe), "manual" (assign)
  AutoCommit,   \* enable.auto.commit
  Answers,      \* what else the coordinator answers: see AnswerCommit
  Failures,     \* what ends the heartbeat thread: "authentication", "metadata"
  Events        \* what else happens: names of actions

(***************************************************************************)
(* The variables, and the field of the real consumer that each stands for. *)
(*                                                                         *)
(* variable          | field                                               *)
(* ------------------+---------------------------------------------------- *)
(* mode              | SubscriptionState.subscriptionType; "closed"        *)
(* state, generation | AbstractCoordinator.state, generation (0: none)     *)
(* rejoinNeeded, needsJoinPrepare | fields of AbstractCoordinator          *)
(* heartbeats        | heartbeatThread: none, disabled, enabled, failed    *)
(* joining           | joinFuture: none, sent, failed; answered: the       *)
(*                   | assignment is there and not delivered               *)
(* owned, position   | SubscriptionState.assignment; -1: no position       *)
(* pendingRevocation | TopicPartitionState.pendingRevocation               *)
(* coordinator       | AbstractCoordinator.coordinator: known, unknown     *)
(* lookup            | findCoordinatorFuture: none, sent, done             *)
(* waiting           | asynchronous commits that listen to the look-up     *)
(* sent              | commits in flight, in the connection's order        *)
(* queue             | completedOffsetCommits; id 0: the consumer's own    *)
(* told              | what the application's callbacks were called with   *)
(* timer             | nextAutoCommitTimer: due, or how long it was set    *)
(* preJoin           | autoCommitOffsetRequestFuture of onJoinPrepare      *)
(* overdue           | joinPrepareTimer has run out                        *)
(* wakeup            | ConsumerNetworkClient.wakeup                        *)
(* call              | the call in which the application stands still, and *)
(*                   | what it waits for                                   *)
(* result            | how its last commitSync, close or poll ended        *)
(* callback          | the last callback of ConsumerRebalanceListener      *)
(* committed         | the coordinator: the group's position; -1: none     *)
(* groupGeneration   | the coordinator: the generation                     *)
(* ------------------+---------------------------------------------------- *)
(* An implementation does not have this:                                   *)
(* handedOut         | the greatest position that the application had      *)
(***************************************************************************)
VARIABLES
  mode, state, generation, rejoinNeeded, needsJoinPrepare, heartbeats, joining, owned, position,
  pendingRevocation, coordinator, lookup, waiting, sent, queue, told, timer, preJoin, overdue,
  wakeup, call, result, callback, committed, groupGeneration, handedOut

subscriptionVars == <<mode, owned, position, pendingRevocation, callback>>
memberVars       == <<state, generation, rejoinNeeded, needsJoinPrepare, heartbeats, joining,
                      preJoin, overdue>>
commitVars       == <<coordinator, lookup, waiting, sent, queue, told, timer>>
callVars         == <<wakeup, call, result>>
environment      == <<committed, groupGeneration, handedOut>>
vars == <<subscriptionVars, memberVars, commitVars, callVars, environment>>

NoOffset == -1
NoCall   == [type |-> "none", waits |-> "none", offset |-> NoOffset]

\* The consumer as a value.
consumer ==
  [mode |-> mode, state |-> state, generation |-> generation, rejoinNeeded |-> rejoinNeeded,
   needsJoinPrepare |-> needsJoinPrepare, heartbeats |-> heartbeats, joining |-> joining,
   owned |-> owned, position |-> position, pendingRevocation |-> pendingRevocation, coordinator |-> coordinator,
   lookup |-> lookup, waiting |-> waiting, sent |-> sent, queue |-> queue, told |-> told,
   timer |-> timer, preJoin |-> preJoin, overdue |-> overdue, wakeup |-> wakeup, call |-> call,
   result |-> result, callback |-> callback]

Becomes(c) ==
  /\ mode' = c.mode /\ state' = c.state /\ generation' = c.generation
  /\ rejoinNeeded' = c.rejoinNeeded /\ needsJoinPrepare' = c.needsJoinPrepare
  /\ heartbeats' = c.heartbeats
  /\ joining' = c.joining /\ owned' = c.owned /\ position' = c.position
  /\ pendingRevocation' = c.pendingRevocation /\ coordinator' = c.coordinator
  /\ lookup' = c.lookup /\ waiting' = c.waiting /\ sent' = c.sent /\ queue' = c.queue
  /\ told' = c.told /\ timer' = c.timer /\ preJoin' = c.preJoin /\ overdue' = c.overdue
  /\ wakeup' = c.wakeup /\ call' = c.call /\ result' = c.result /\ callback' = c.callback

Init ==
  /\ mode = "none" /\ state = "UNJOINED" /\ generation = 0
  /\ rejoinNeeded = TRUE /\ needsJoinPrepare = TRUE /\ heartbeats = "none" /\ joining = "none"
  /\ owned = FALSE /\ position = NoOffset /\ pendingRevocation = FALSE
  /\ coordinator = "unknown" /\ lookup = "none"
  /\ waiting = <<>> /\ sent = <<>> /\ queue = <<>> /\ told = <<>>
  /\ timer = "interval" /\ preJoin = "none" /\ overdue = FALSE /\ wakeup = FALSE
  /\ call = NoCall /\ result = "none" /\ callback = "none"
  /\ committed = NoOffset /\ groupGeneration = 0 /\ handedOut = 0

(***************************************************************************)
(* Commits: what becomes of one.                                           *)
(***************************************************************************)
CallsBack(entry) == entry.id # 0

\* ConsumerCoordinator.invokeCompletedOffsetCommitCallbacks. A failure of the consumer's own commit
\* that may pass brings the next one forward.
RunCallbacks(c) ==
  [c EXCEPT !.told = @ \o SelectSeq(c.queue, CallsBack), !.queue = <<>>,
     !.timer = IF \E i \in 1..Len(c.queue) : c.queue[i].id = 0 /\ c.queue[i].error = "RETRIABLE"
               THEN "backoff" ELSE @]

Commit(kind, id, offset) == [kind |-> kind, id |-> id, offset |-> offset, generation |-> 0]

\* A commit is over. Whoever gave it up does not hear of it.
Done(c, commit, error) ==
  CASE commit.kind = "sync"      -> [c EXCEPT !.call.waits = error]
    [] commit.kind = "abandoned" -> c
    [] OTHER ->
         [c EXCEPT
            !.queue = Append(@, [id |-> commit.id, offset |-> commit.offset, error |-> error]),
            !.preJoin = IF commit.kind = "join" THEN error ELSE @]

\* ConsumerCoordinator.sendOffsetCommitRequest. Generation and state are read together.
Send(c, commit) ==
  IF commit.offset = NoOffset THEN Done(c, commit, "NONE")
  ELSE IF c.coordinator # "known" THEN Done(c, commit, "RETRIABLE")
  ELSE IF c.mode = "group" /\ c.state # "STABLE"
  THEN Done(c, commit, IF c.state = "PREPARING" THEN "REBALANCING" ELSE "FAILED")
  ELSE [c EXCEPT !.sent = Append(@, [commit EXCEPT !.generation = c.generation])]

RECURSIVE SendAll(_, _)
SendAll(c, commits) ==
  IF commits = <<>> THEN c ELSE SendAll(Send(c, Head(commits)), Tail(commits))

RECURSIVE FailAll(_, _)
FailAll(c, commits) ==
  IF commits = <<>> THEN c ELSE FailAll(Done(c, Head(commits), "RETRIABLE"), Tail(commits))

\* AbstractCoordinator.ensureCoordinatorReadyAsync while it is unknown: a look-up that is over is
\* forgotten (KAFKA-13563).
LookedUp(c) ==
  IF c.coordinator = "known" THEN c
  ELSE [c EXCEPT !.lookup = IF @ = "done" THEN "none" ELSE "sent"]

LookUpOfCommit(look) == "sent"

\* ConsumerCoordinator.commitOffsetsAsync. Nothing to commit needs no coordinator (KAFKA-13717).
CommitAsync(c, kind, id, offset) ==
  LET r == RunCallbacks(c)
      commit == Commit(kind, id, offset)
  IN  IF offset = NoOffset \/ r.coordinator = "known" THEN Send(r, commit)
      ELSE [r EXCEPT !.lookup = LookUpOfCommit(@), !.waiting = Append(@, commit)]

\* SubscriptionState.allConsumed
AllConsumed(c) == IF c.owned THEN c.position ELSE NoOffset

\* ConsumerCoordinator.maybeAutoCommitOffsetsAsync: whether the coordinator is known or not.
AutoCommitLooksUp(c) == TRUE

MaybeAutoCommit(c) ==
  IF ~AutoCommit \/ c.timer # "due" THEN c
  ELSE IF c.coordinator = "unknown" /\ ~AutoCommitLooksUp(c) THEN [c EXCEPT !.timer = "backoff"]
  ELSE CommitAsync([c EXCEPT !.timer = "interval"], "auto", 0, AllConsumed(c))

(***************************************************************************)
(* Membership.                                                             *)
(***************************************************************************)
\* AbstractCoordinator.resetStateAndRejoin
Reset(c) ==
  [c EXCEPT !.state = "UNJOINED", !.generation = 0, !.rejoinNeeded = TRUE,
            !.needsJoinPrepare = TRUE]

Unowned(c, name) ==
  [c EXCEPT !.owned = FALSE, !.position = NoOffset, !.pendingRevocation = FALSE,
            !.callback = IF c.owned THEN name ELSE @]

\* A member that is out of its generation has lost what it owned: others may have it.
IsGone(c) == c.generation = 0

\* Nothing is handed out between the last commit and the revocation (KAFKA-14024).
MarksPending(c) == c.owned

\* onJoinPrepare commits, one commit at a time, ...
PreJoinCommit(c) ==
  IF ~AutoCommit \/ c.preJoin \notin {"none", "again"} THEN c
  ELSE CommitAsync([c EXCEPT !.pendingRevocation = MarksPending(c), !.preJoin = "sent"],
                   "join", 0, AllConsumed(c))

\* ... until it is through, cannot be, or the rebalance time-out is over ...
WaitsForCommit(c) == AutoCommit /\ ~c.overdue /\ c.preJoin \in {"sent", "RETRIABLE"}
TriesAgain(c)     == [c EXCEPT !.preJoin = IF @ = "RETRIABLE" THEN "again" ELSE @]

Abandoned(commits, kind, as) ==
  [i \in 1..Len(commits) |->
     IF commits[i].kind = kind THEN [commits[i] EXCEPT !.kind = as] ELSE commits[i]]

\* ... and gives up what is owned.
Prepared(c) ==
  [Unowned(c, IF IsGone(c) THEN "lost" ELSE "revoked") EXCEPT
     !.needsJoinPrepare = FALSE, !.preJoin = "none", !.overdue = FALSE,
     !.sent = Abandoned(@, "join", "auto")]

\* The heartbeat thread has put the member out after the join was answered.
IsOfThePast(c) == c.generation = 0 \/ c.state # "STABLE"

\* ConsumerCoordinator.onJoinComplete
JoinCompleted(c) ==
  [c EXCEPT !.joining = "none", !.needsJoinPrepare = TRUE, !.owned = TRUE, !.position = NoOffset,
            !.callback = "assigned", !.timer = "interval"]

AfterPrepare(c) ==
  CASE c.joining = "none"   -> [c EXCEPT !.joining = "sent", !.state = "PREPARING"]
    [] c.joining = "sent"   -> c
    [] c.joining = "failed" -> [c EXCEPT !.joining = "none", !.rejoinNeeded = TRUE]
    [] OTHER -> IF IsOfThePast(c) THEN [Reset(c) EXCEPT !.joining = "none"] ELSE JoinCompleted(c)

\* A turn of AbstractCoordinator.joinGroupIfNeeded.
JoinTurn(c) ==
  LET a == IF c.needsJoinPrepare THEN PreJoinCommit(c) ELSE c
  IN  IF ~c.needsJoinPrepare THEN AfterPrepare(a)
      ELSE IF WaitsForCommit(a) THEN TriesAgain(a) ELSE AfterPrepare(Prepared(a))

\* Of an answered join there may be another turn at once.
Join(c) ==
  LET a == JoinTurn(c)
  IN  IF c.joining = "answered" /\ a.joining = "none" /\ a.rejoinNeeded THEN JoinTurn(a) ELSE a

NeedsJoin(c) == c.rejoinNeeded \/ c.joining # "none"

\* AbstractCoordinator.startHeartbeatThreadIfNeeded, before a join only. The thread waits until a
\* JoinGroup is answered.
WithHeartbeatThread(c) == [c EXCEPT !.heartbeats = IF @ = "none" THEN "disabled" ELSE @]

\* AbstractCoordinator.pollHeartbeat raises, once, what has ended the thread.
RaisesFailure(c) == [c EXCEPT !.heartbeats = "none", !.result = "FAILED"]

\* ConsumerCoordinator.poll, with a timer of 0.
Polled(c) ==
  LET r == RunCallbacks(c)
  IN  IF r.mode = "manual" THEN MaybeAutoCommit(r)
      ELSE IF r.heartbeats = "failed" THEN RaisesFailure(r)
      ELSE IF r.coordinator = "unknown" THEN LookedUp(r)
      ELSE IF ~NeedsJoin(r) THEN MaybeAutoCommit(r)
      ELSE LET j == Join(WithHeartbeatThread(r)) IN IF NeedsJoin(j) THEN j ELSE MaybeAutoCommit(j)

(***************************************************************************)
(* Calls in which the application stands still.                            *)
(***************************************************************************)
Ends(c, how) ==
  [c EXCEPT !.call = NoCall, !.result = how, !.sent = Abandoned(@, "sync", "abandoned")]

\* ConsumerCoordinator.onLeavePrepare: in a rebalance others may have the partition already.
LeavesAsLost(c) == IsGone(c) \/ c.state = "PREPARING"

Left(c) ==
  Reset(IF c.mode = "group" THEN Unowned(c, IF LeavesAsLost(c) THEN "lost" ELSE "revoked") ELSE c)

\* ConsumerCoordinator.close after its commit, whose failure is logged: leave, and wait for what is in
\* flight.
AwaitsPending(c) == c.sent # <<>> \/ c.joining = "sent"

\* AbstractCoordinator.close ends the heartbeat thread first.
LeftForGood(c) == Left([c EXCEPT !.heartbeats = "none"])

\* Who has waited for what is in flight hears how it ended.
ClosingCallsBack(c) == RunCallbacks(c)

Closing(c) ==
  IF AwaitsPending(c) THEN [c EXCEPT !.call.waits = "pending"]
  ELSE [ClosingCallsBack(c) EXCEPT !.mode = "closed", !.call = NoCall, !.result = "NONE"]

CommitEnds(c, how) ==
  IF c.call.type = "close"
  THEN Closing(LeftForGood(c))
  ELSE Ends(c, how)

IsAsync(commit) == commit.kind \in {"async", "auto", "join"}

\* What commitSync does with an answer: those in flight before it are called back first.
CallsBackFirst(c) == RunCallbacks(c)
EmptyWaits(c)     == SelectSeq(c.sent, IsAsync) # <<>>

\* Once more: commits that failed for a reason that may pass.
Sends(c)  == Send([c EXCEPT !.call.waits = "answer"], Commit("sync", 0, c.call.offset))
LooksUp(c) == [c EXCEPT !.call.waits = "lookup", !.lookup = "sent"]
Again(c)  == IF c.coordinator = "known" THEN Sends(c) ELSE LooksUp(c)

Final == {"NONE", "REBALANCING", "FAILED"}

Settled(c) ==
  IF c.call.waits \in Final THEN CommitEnds(CallsBackFirst(c), c.call.waits) ELSE c

\* ConsumerCoordinator.commitOffsetsSync goes on when something has come.
Resumed(c) ==
  CASE c.call.type = "none"        -> c
    [] c.call.waits = "pending"    -> Closing(c)
    [] c.call.waits = "callbacks"  ->
         LET r == RunCallbacks(c) IN IF EmptyWaits(r) THEN r ELSE CommitEnds(r, "NONE")
    [] c.call.waits = "RETRIABLE"  -> Settled(Again(CallsBackFirst(c)))
    [] c.call.waits = "lookup" /\ c.coordinator = "known" ->
         Settled(Sends([c EXCEPT !.lookup = "none"]))
    [] c.call.waits = "lookup" /\ c.lookup = "done" -> LooksUp(c)
    [] OTHER -> Settled(c)

CommitBegins(c, type, offset) ==
  LET r == [RunCallbacks(c) EXCEPT !.call = [type |-> type, waits |-> "answer", offset |-> offset]]
  IN  IF offset # NoOffset THEN Again(r)
      ELSE IF EmptyWaits(r) THEN [r EXCEPT !.call.waits = "callbacks"]
      ELSE [r EXCEPT !.call.waits = "NONE"]

\* ConsumerNetworkClient.maybeTriggerWakeup, where the call waits for the network. A look-up that is
\* over has not been forgotten by then.
Woken(c) ==
  IF c.wakeup /\ c.call.type = "sync" /\ (c.call.waits # "NONE" \/ c.call.offset # NoOffset)
  THEN Ends([c EXCEPT !.wakeup = FALSE, !.lookup = IF lookup = "done" THEN lookup ELSE @],
            "WAKEUP")
  ELSE Settled(c)

(***************************************************************************)
(* The application.                                                        *)
(***************************************************************************)
Runs == call = NoCall /\ mode \in {"group", "manual"}
OnTheirWay == Len(sent) + Len(waiting)
HasRoom == OnTheirWay < InFlight

Subscribe ==
  /\ mode = "none" /\ "group" \in Modes
  /\ Becomes([consumer EXCEPT !.mode = "group"])
  /\ UNCHANGED environment

Assign ==
  /\ mode = "none" /\ "manual" \in Modes
  /\ Becomes([consumer EXCEPT !.mode = "manual", !.owned = TRUE])
  /\ UNCHANGED environment

Poll ==
  /\ Runs
  /\ HasRoom \/ timer # "due"
  /\ Becomes(IF wakeup THEN [consumer EXCEPT !.wakeup = FALSE, !.result = "WAKEUP"]
             ELSE Polled(consumer))
  /\ UNCHANGED environment

\* The committed position is looked up.
Begin ==
  /\ Runs /\ owned /\ position = NoOffset
  /\ Becomes([consumer EXCEPT !.position = IF committed = NoOffset THEN 0 ELSE committed])
  /\ UNCHANGED environment

\* Poll hands out a record: what the application got before, it has processed.
Consume ==
  /\ Runs /\ owned /\ position # NoOffset /\ ~pendingRevocation /\ position + 1 \in Offsets
  /\ Becomes([consumer EXCEPT !.position = @ + 1])
  /\ handedOut' = IF position + 1 > handedOut THEN position + 1 ELSE handedOut
  /\ UNCHANGED <<committed, groupGeneration>>

IsOf(commit, id)  == commit.id = id
Has(commits, id)  == \E i \in 1..Len(commits) : IsOf(commits[i], id)
IsKnown(id) == Has(waiting, id) \/ Has(sent, id) \/ Has(queue, id) \/ Has(told, id)

CallCommitAsync(id) ==
  /\ "CallCommitAsync" \in Events /\ Runs /\ HasRoom
  /\ id \in Calls /\ ~IsKnown(id) /\ \A other \in Calls : other < id => IsKnown(other)
  /\ Becomes(CommitAsync(consumer, "async", id, AllConsumed(consumer)))
  /\ UNCHANGED environment

CallCommitSync ==
  /\ "CallCommitSync" \in Events /\ Runs
  /\ HasRoom \/ AllConsumed(consumer) = NoOffset
  /\ Becomes(Woken(CommitBegins(consumer, "sync", AllConsumed(consumer))))
  /\ UNCHANGED environment

\* SubscriptionState.unsubscribe, after the member has left: nothing is committed (KAFKA-4234).
Unsubscribe ==
  /\ "Unsubscribe" \in Events /\ Runs
  /\ Becomes([Left(consumer) EXCEPT !.mode = "none", !.owned = FALSE, !.position = NoOffset,
                                    !.pendingRevocation = FALSE])
  /\ UNCHANGED environment

\* With wake-ups off.
Close ==
  /\ "Close" \in Events /\ Runs /\ waiting = <<>>
  /\ Becomes(LET c == [consumer EXCEPT !.wakeup = FALSE,
                         !.call = [type |-> "close", waits |-> "answer", offset |-> NoOffset]]
             IN  IF AutoCommit THEN Settled(CommitBegins(c, "close", AllConsumed(c)))
                 ELSE Closing(LeftForGood(c)))
  /\ UNCHANGED environment

Wakeup ==
  /\ "Wakeup" \in Events /\ mode # "closed" /\ call.type # "close" /\ ~wakeup
  /\ Becomes(Woken([consumer EXCEPT !.wakeup = TRUE]))
  /\ UNCHANGED environment

(***************************************************************************)
(* Time.                                                                   *)
(***************************************************************************)
Due == IF AutoCommit THEN "due" ELSE timer

PassInterval ==
  /\ AutoCommit /\ Runs /\ timer # "due"
  /\ Becomes([consumer EXCEPT !.timer = "due"])
  /\ UNCHANGED environment

PassBackoff ==
  /\ AutoCommit /\ Runs /\ timer = "backoff"
  /\ Becomes([consumer EXCEPT !.timer = "due"])
  /\ UNCHANGED environment

\* The rebalance time-out is over while onJoinPrepare waits for its commit.
PassRebalanceTimeout ==
  /\ "PassRebalanceTimeout" \in Events /\ Runs /\ preJoin = "sent" /\ ~overdue
  /\ Becomes([consumer EXCEPT !.overdue = TRUE, !.timer = "due"])
  /\ UNCHANGED environment

\* The time of commitSync is over: its request may still be taken.
PassCallTimeout ==
  /\ "PassCallTimeout" \in Events /\ call.type = "sync"
  /\ Becomes(Ends([RunCallbacks(consumer) EXCEPT !.timer = Due], "TIMEOUT"))
  /\ UNCHANGED environment

(***************************************************************************)
(* The coordinator, and the heartbeat thread.                              *)
(***************************************************************************)
\* A commit of no generation is of nobody's: whoever assigns by hand.
IsTaken(commit) == commit.generation \in {0, groupGeneration}

AnswerLookup(succeeds) ==
  /\ lookup = "sent" /\ (succeeds \/ "LookupFails" \in Events)
  /\ LET c == [consumer EXCEPT !.lookup = "done", !.waiting = <<>>]
     IN  Becomes(Resumed(IF succeeds THEN SendAll([c EXCEPT !.coordinator = "known"], waiting)
                         ELSE FailAll(c, waiting)))
  /\ UNCHANGED environment

\* The connection breaks, or the coordinator is given up: all that is in flight fails.
GivenUp(c) ==
  FailAll([c EXCEPT !.coordinator = "unknown", !.sent = <<>>,
                    !.joining = IF @ = "sent" THEN "failed" ELSE @], c.sent)

\* OffsetCommitResponseHandler: an answer to a generation of the past puts nobody out who joins.
PutsOut(c, commit) == ~(c.generation # commit.generation /\ c.state = "PREPARING")

AfterAnswer(c, commit, error) ==
  CASE error = "NONE"    -> Done(c, commit, "NONE")
    [] error = "COORDINATOR_LOAD_IN_PROGRESS" -> Done(c, commit, "RETRIABLE")
    [] error = "NOT_COORDINATOR" -> GivenUp(Done(c, commit, "RETRIABLE"))
    [] error = "REBALANCE_IN_PROGRESS" ->
         Done([c EXCEPT !.rejoinNeeded = TRUE], commit, "REBALANCING")
    [] error = "OFFSET_METADATA_TOO_LARGE" -> Done(c, commit, "FAILED")
    [] OTHER -> IF PutsOut(c, commit) THEN Done(Reset(c), commit, "FAILED")
                ELSE Done(c, commit, "REBALANCING")

AnswerCommit(error) ==
  /\ sent # <<>>
  /\ LET commit == Head(sent)
     IN  /\ CASE error = "NONE"               -> IsTaken(commit)
              [] error = "ILLEGAL_GENERATION" -> ~IsTaken(commit)
              [] error = "REBALANCE_IN_PROGRESS" -> commit.generation = groupGeneration
              [] OTHER                        -> TRUE
         /\ Becomes(Resumed(AfterAnswer([consumer EXCEPT !.sent = Tail(@)], commit, error)))
         /\ committed' = IF error = "NONE" THEN commit.offset ELSE committed
  /\ UNCHANGED <<groupGeneration, handedOut>>

\* `taken`: the coordinator has taken the oldest request; its answer does not arrive.
Disconnect(taken) ==
  /\ "Disconnect" \in Events /\ coordinator = "known"
  /\ taken => sent # <<>> /\ IsTaken(Head(sent))
  /\ Becomes(Resumed(GivenUp(consumer)))
  /\ committed' = IF taken THEN Head(sent).offset ELSE committed
  /\ UNCHANGED <<groupGeneration, handedOut>>

Enabled(thread) == IF thread = "none" THEN thread ELSE "enabled"

\* JoinGroup and SyncGroup are answered: the group has a new generation.
AnswerJoin ==
  /\ joining = "sent" /\ groupGeneration + 1 \in Generations
  /\ groupGeneration' = groupGeneration + 1
  /\ Becomes(Resumed(
       IF state = "PREPARING"
       THEN [consumer EXCEPT !.joining = "answered", !.state = "STABLE", !.rejoinNeeded = FALSE,
                             !.generation = groupGeneration + 1, !.heartbeats = Enabled(@)]
       ELSE [consumer EXCEPT !.joining = "failed"]))
  /\ UNCHANGED <<committed, handedOut>>

InGeneration ==
  state = "STABLE" /\ coordinator = "known" /\ call.type # "close" /\ heartbeats = "enabled"

\* A heartbeat is answered: the group rebalances.
HearRebalance ==
  /\ "HearRebalance" \in Events /\ InGeneration /\ ~rejoinNeeded
  /\ Becomes(Resumed([consumer EXCEPT !.rejoinNeeded = TRUE]))
  /\ UNCHANGED environment

\* A heartbeat is answered: the coordinator has put the member out. Others go on without it.
HearEnd ==
  /\ "HearEnd" \in Events /\ InGeneration /\ groupGeneration + 1 \in Generations
  /\ groupGeneration' = groupGeneration + 1
  /\ Becomes(Resumed(Reset(consumer)))
  /\ UNCHANGED <<committed, handedOut>>

\* max.poll.interval.ms is over: the heartbeat thread leaves.
OverrunPollInterval ==
  /\ "OverrunPollInterval" \in Events /\ InGeneration /\ groupGeneration + 1 \in Generations
  /\ call = NoCall
  /\ groupGeneration' = groupGeneration + 1
  /\ Becomes([Reset(consumer) EXCEPT !.timer = Due, !.overdue = preJoin # "none" \/ @])
  /\ UNCHANGED <<committed, handedOut>>

\* An authentication that failed calls for a new join, which starts a new thread (KAFKA-20253).
RejoinsAfter(failure) == failure = "authentication"

\* HeartbeatThread.run: what ConsumerNetworkClient.pollNoWakeup raises ends the thread. A failure of
\* the metadata, such as TOPIC_AUTHORIZATION_FAILED, is raised in whichever thread polls next.
EndHeartbeatThread(failure) ==
  /\ InGeneration
  /\ Becomes([consumer EXCEPT !.heartbeats = "failed",
                               !.rejoinNeeded = @ \/ RejoinsAfter(failure)])
  /\ UNCHANGED environment

Errors == Answers \union {"NONE", "ILLEGAL_GENERATION"}

Next ==
  \/ Subscribe \/ Assign \/ Poll \/ Begin \/ Consume
  \/ \E id \in Calls : CallCommitAsync(id)
  \/ CallCommitSync \/ Unsubscribe \/ Close \/ Wakeup
  \/ PassInterval \/ PassBackoff \/ PassRebalanceTimeout \/ PassCallTimeout
  \/ \E succeeds \in BOOLEAN : AnswerLookup(succeeds)
  \/ \E error \in Errors : AnswerCommit(error)
  \/ \E taken \in BOOLEAN : Disconnect(taken)
  \/ AnswerJoin \/ HearRebalance \/ HearEnd \/ OverrunPollInterval
  \/ \E failure \in Failures : EndHeartbeatThread(failure)

Spec == Init /\ [][Next]_vars
=============================================================================
