--------------------------- MODULE ConsumerCommits ---------------------------
(***************************************************************************)
(* A consumer's commits: what must hold, each with what it means to a      *)
(* user. Below it: ConsumerCommitSteps (the steps).                        *)
(***************************************************************************)
EXTENDS ConsumerCommitSteps

OffsetsOrNone == Offsets \union {NoOffset}
Outcomes == {"NONE", "RETRIABLE", "REBALANCING", "FAILED"}

Commits ==
  [kind : {"async", "auto", "join", "sync", "abandoned"}, id : Calls \union {0},
   offset : OffsetsOrNone, generation : Generations \union {0}]

Entries == [id : Calls \union {0}, offset : OffsetsOrNone, error : Outcomes]

All(sequence, values) == \A i \in 1..Len(sequence) : sequence[i] \in values

TypeOK ==
  /\ mode \in {"none", "group", "manual", "closed"}
  /\ state \in {"UNJOINED", "PREPARING", "STABLE"}
  /\ generation \in Generations \union {0}
  /\ rejoinNeeded \in BOOLEAN /\ needsJoinPrepare \in BOOLEAN
  /\ heartbeats \in {"none", "disabled", "enabled", "failed"}
  /\ joining \in {"none", "sent", "answered", "failed"}
  /\ owned \in BOOLEAN /\ position \in OffsetsOrNone /\ pendingRevocation \in BOOLEAN
  /\ coordinator \in {"known", "unknown"} /\ lookup \in {"none", "sent", "done"}
  /\ All(waiting, Commits) /\ All(sent, Commits) /\ All(queue, Entries) /\ All(told, Entries)
  /\ timer \in {"interval", "backoff", "due"}
  /\ preJoin \in Outcomes \union {"none", "sent", "again"} /\ overdue \in BOOLEAN /\ wakeup \in BOOLEAN
  /\ call \in [type : {"none", "sync", "close"}, offset : OffsetsOrNone,
               waits : {"none", "answer", "lookup", "callbacks", "pending"}]
  /\ result \in Outcomes \union {"none", "TIMEOUT", "WAKEUP"}
  /\ callback \in {"none", "assigned", "revoked", "lost"}
  /\ committed \in OffsetsOrNone /\ groupGeneration \in Generations \union {0}
  /\ handedOut \in Offsets

(***************************************************************************)
(* Invariants.                                                             *)
(***************************************************************************)
\* After a failure nothing is skipped: no position is committed that the application has not got.
CommittedIsHandedOut == committed <= handedOut

\* Each callback is called once, and in the order of the calls: the last one says what holds. Of
\* nothing there is nothing to wait for: such a commit may overtake others.
InOrder(entries) ==
  \A i, j \in 1..Len(entries) :
    i < j /\ entries[i].offset # NoOffset /\ entries[j].offset # NoOffset /\ entries[i].id # 0
      => entries[j].id = 0 \/ entries[i].id < entries[j].id

CallbacksInOrder == InOrder(told \o queue)
CalledOnce == \A i, j \in 1..Len(told) : i # j => told[i].id # told[j].id

\* A commit that waits for the coordinator is not forgotten: a look-up is under way (KAFKA-13563).
WaitsForLookup == waiting # <<>> => lookup = "sent"

\* Who assigns by hand has no membership.
ManualIsNoMember == mode = "manual" => state = "UNJOINED" /\ generation = 0 /\ joining = "none"

\* A partition is the member's own in a generation, or it will hear that it is lost.
OwnedInGeneration ==
  mode = "group" /\ owned => needsJoinPrepare /\ (generation # 0 \/ rejoinNeeded)

\* Who owns a partition says so to the coordinator, or will join anew: else others get it, and the
\* member never hears of it. What ended the heartbeat thread is raised first.
OwnerHeartbeats ==
  owned /\ state = "STABLE" => heartbeats \in {"enabled", "failed"} \/ rejoinNeeded

\* Requests need a coordinator.
SentIsKnown == sent # <<>> => coordinator = "known"

\* When close returns, the application has heard of all commits that were answered (KAFKA-16599).
ClosedHasCalledBack == mode = "closed" => queue = <<>>

(***************************************************************************)
(* Action properties.                                                      *)
(***************************************************************************)
HasEntry(entries, entry) == \E i \in 1..Len(entries) : entries[i] = entry

\* When commitSync returns, the callbacks of commits before it have been called (KAFKA-5730), also
\* with nothing to commit; with success no commit of before is in flight.
SyncReturns == (call.type = "sync" \/ CallCommitSync) /\ call' = NoCall /\ result' = "NONE"

SyncIsLast == [][SyncReturns => queue' = <<>> /\ SelectSeq(sent', IsAsync) = <<>>]_vars

\* ... and what it committed is the group's position.
SyncIsCommitted ==
  [][call.type = "sync" /\ call' = NoCall /\ result' = "NONE" /\ call.offset # NoOffset
       => committed' = call.offset]_vars

\* What has ended the heartbeat thread is raised in the application's thread, once.
EndIsRaised ==
  [][Poll /\ mode = "group" /\ ~wakeup
       => (heartbeats = "failed" => result' = "FAILED" /\ heartbeats' = "none")]_vars

\* Nothing is handed out that the commit before the revocation cannot have (KAFKA-14024).
NothingBehindLastCommit == [][position' = position + 1 => preJoin = "none" \/ ~owned]_vars

\* What a member gives up in order is committed, unless the coordinator has refused or time is over.
RevokedIsCommitted ==
  [][AutoCommit /\ call = NoCall /\ owned /\ ~owned' /\ callback' = "revoked" /\ mode' = "group"
       /\ position # NoOffset /\ ~overdue
       => committed = position \/ preJoin \in {"REBALANCING", "FAILED"}]_vars

\* Lost, not revoked, iff others may have it already: the application must not write any more. The
\* answer for which close has waited may itself have put the member out.
IsLost == generation = 0 \/ state = "PREPARING"

LostIffGone ==
  [][owned /\ ~owned' /\ mode = "group" /\ ~(call.type = "close" /\ callback' = "lost")
       => callback' = IF IsLost THEN "lost" ELSE "revoked"]_vars

\* Who closes in order has committed, unless the coordinator has refused.
Closes == owned /\ ~owned' /\ (call'.type = "close" \/ mode' = "closed")

ClosedIsCommitted ==
  [][AutoCommit /\ Closes /\ position # NoOffset
       => committed' = position \/ state # "STABLE" \/ generation # groupGeneration]_vars

\* An answer to a commit of before puts nobody out who joins anew (KAFKA-8487, KAFKA-13419).
OldAnswerPutsNobodyOut ==
  [][sent # <<>> /\ state = "PREPARING" /\ generation # Head(sent).generation
       /\ Len(sent') < Len(sent)
       => generation' = generation]_vars

\* The interval begins again when a commit is on its way; the back-off when one has failed.
TimerHasReason ==
  [][/\ timer = "due" /\ timer' = "interval" /\ owned /\ position # NoOffset /\ owned'
        => \/ \E i \in 1..Len(sent') : sent'[i].kind = "auto" /\ sent'[i].offset = position
           \/ \E i \in 1..Len(waiting') : waiting'[i].kind = "auto"
           \/ queue' # <<>> \/ callback' # callback
     /\ timer = "due" /\ timer' = "backoff" /\ call = NoCall
        => \E i \in 1..Len(queue) : queue[i].id = 0 /\ queue[i].error = "RETRIABLE"]_vars

\* Unsubscribe commits nothing.
UnsubscribeCommitsNothing == [][mode # "none" /\ mode' = "none" => sent' = sent]_vars

\* What the application learns is what came: never success for a commit that was not taken.
SuccessIsTaken ==
  [][\A id \in Calls : Has(sent, id) /\ ~Has(sent', id) /\
       HasEntry(told' \o queue', [id |-> id, offset |-> Head(sent).offset, error |-> "NONE"])
       => committed' = Head(sent).offset]_vars

(***************************************************************************)
(* Situations that a suite shall show.                                     *)
(***************************************************************************)
WaitsBehindOthers == call.type = "sync" /\ Len(sent) > 1
TakenAfterTimeout == result = "TIMEOUT" /\ sent # <<>> /\ sent[1].kind = "abandoned"
OutBeforeDelivered == joining = "answered" /\ generation = 0
=============================================================================
