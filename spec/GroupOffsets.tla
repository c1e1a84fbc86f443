----------------------------- MODULE GroupOffsets -----------------------------
(***************************************************************************)
(* The positions of a group without members: one partition's, committed by *)
(* simple consumers and by transactional producers, which the coordinator  *)
(* keeps in memory and in a log. Who of a group's members may commit is    *)
(* GroupMembership's business; here it is what becomes of what they commit.*)
(*                                                                         *)
(* Kafka: GroupMetadata (offsets, pendingOffsetCommits,                    *)
(* pendingTransactionalOffsetCommits), GroupMetadataManager.               *)
(***************************************************************************)
EXTENDS ReadCommitted

CONSTANTS
  MaxCommits,     \* commits of either kind; each commits the next position: 1, 2, ...
  Producers,      \* transactional producers
  MaxFailOvers,   \* how often another broker becomes the coordinator
  AppendFailures, \* an append is refused after the leader has it (NOT_ENOUGH_REPLICAS_AFTER_APPEND)
  Expiries        \* the retention may be over

(***************************************************************************)
(* variable       | field                                                  *)
(* ---------------+------------------------------------------------------- *)
(* log            | the group's partition of __consumer_offsets            *)
(* inFlight       | places in the log whose appends are not yet answered   *)
(* committed      | GroupMetadata.offsets: the position, and where in the  *)
(*                | log it is (appendedBatchOffset; from 1 here)           *)
(* pending        | pendingOffsetCommits: the last that is on its way      *)
(* pendingTxn[p]  | pendingTransactionalOffsetCommits; `at` is 0 until the *)
(*                | append is answered                                     *)
(* failOvers      | ghost: how many there were                             *)
(* answered       | ghost: the last plain commit that was answered NONE    *)
(* failed         | ghost: appends that were answered with an error        *)
(***************************************************************************)
VARIABLES log, inFlight, committed, pending, pendingTxn, failOvers, answered, failed

vars == <<log, inFlight, committed, pending, pendingTxn, failOvers, answered, failed>>
GhostVars == {"failOvers", "answered", "failed"}

Nothing == [value |-> 0, at |-> 0]
NonePending == [p \in Producers |-> Nothing]
Rec(kind, value, producer) == [kind |-> kind, value |-> value, producer |-> producer]

Init ==
  /\ log = <<>> /\ inFlight = {}
  /\ committed = Nothing /\ pending = 0 /\ pendingTxn = NonePending
  /\ failOvers = 0 /\ answered = 0 /\ failed = {}

(***************************************************************************)
(* The log, and what a coordinator that loads it makes of it:              *)
(* GroupMetadataManager.doLoadGroupsAndOffsets. What is open, and how it   *)
(* ended, ReadCommitted says, as for any other partition.                  *)
(***************************************************************************)
Places == DOMAIN log
IsCommit(i) == log[i].kind \in {"Commit", "TxnCommit"}
Commits == {i \in Places : IsCommit(i)}
OpenOf(p) == OpenIn(log, p)

\* When the record at i begins to count, 0 if it does not.
CountsFrom(i) ==
  IF log[i].kind = "Commit" THEN i
  ELSE IF Outcome(log, i) = "Committed" THEN EndOf(log, i) ELSE 0

LastExpiry == Last({i \in Places : log[i].kind = "Tombstone"})
Counting == {i \in Commits : CountsFrom(i) > LastExpiry}
At(i) == IF i = 0 THEN Nothing ELSE [value |-> log[i].value, at |-> i]

Loaded == At(Last(Counting))
LoadedTxn(p) == At(Last(OpenOf(p)))

(***************************************************************************)
(* Requests of clients.                                                    *)
(***************************************************************************)
NextValue == Cardinality(Commits) + 1
Appended(record) ==
  /\ log' = Append(log, record)
  /\ inFlight' = inFlight \union {Len(log) + 1}

\* OffsetCommit without generation: prepareOffsetCommit, then the append.
CommitOffset ==
  /\ NextValue <= MaxCommits
  /\ Appended(Rec("Commit", NextValue, NoProducer))
  /\ pending' = NextValue
  /\ UNCHANGED <<committed, pendingTxn, failOvers, answered, failed>>

\* TxnOffsetCommit: prepareTxnOffsetCommit.
CommitInTransaction(p) ==
  /\ NextValue <= MaxCommits
  /\ Appended(Rec("TxnCommit", NextValue, p))
  /\ pendingTxn' = [pendingTxn EXCEPT ![p] = [value |-> NextValue, at |-> 0]]
  /\ UNCHANGED <<committed, pending, failOvers, answered, failed>>

(***************************************************************************)
(* Answers of the log, in any order.                                       *)
(***************************************************************************)

\* What lies later in the log is newer, whatever is answered first (KAFKA-5247).
Newer(i) == IF i > committed.at THEN At(i) ELSE committed
NoLongerPending(i) == IF pending = log[i].value THEN 0 ELSE pending

\* GroupMetadata.onOffsetCommitAppend, onTxnOffsetCommitAppend.
AcknowledgeAppend(i) ==
  /\ i \in inFlight
  /\ inFlight' = inFlight \ {i}
  /\ IF log[i].kind = "Commit"
     THEN /\ committed' = IF pending # 0 THEN Newer(i) ELSE committed
          /\ pending' = NoLongerPending(i)
          /\ answered' = Last({answered, i})
          /\ UNCHANGED pendingTxn
     ELSE /\ pendingTxn' = [pendingTxn EXCEPT ![log[i].producer] =
               IF @.value = log[i].value THEN At(i) ELSE @]
          /\ UNCHANGED <<committed, pending, answered>>
  /\ UNCHANGED <<log, failOvers, failed>>

\* failPendingOffsetWrite, failPendingTxnOffsetCommit. The leader has the record all the same.
FailAppend(i) ==
  /\ AppendFailures /\ i \in inFlight
  /\ inFlight' = inFlight \ {i}
  /\ failed' = failed \union {i}
  /\ IF log[i].kind = "Commit"
     THEN pending' = NoLongerPending(i) /\ UNCHANGED pendingTxn
     ELSE /\ pendingTxn' = [pendingTxn EXCEPT ![log[i].producer] =
               IF @.value = log[i].value THEN Nothing ELSE @]
          /\ UNCHANGED pending
  /\ UNCHANGED <<log, committed, failOvers, answered>>

(***************************************************************************)
(* The end of a transaction: KafkaApis.handleWriteTxnMarkersRequest writes *)
(* the marker; then completePendingTxnOffsetCommit. A producer commits     *)
(* after all of its commits were answered, and aborts at any time.         *)
(***************************************************************************)
MayCommit(p) == pendingTxn[p].at # 0 /\ OpenOf(p) \intersect inFlight = {}
Shows(p) == IF pendingTxn[p].at > committed.at THEN pendingTxn[p] ELSE committed
AfterAbort(p) == committed

EndTransaction(p, commits) ==
  /\ OpenOf(p) # {}
  /\ commits => MayCommit(p)
  /\ log' = Append(log, Rec(IF commits THEN "Committed" ELSE "Aborted", 0, p))
  /\ committed' = IF commits THEN Shows(p) ELSE AfterAbort(p)
  /\ pendingTxn' = [pendingTxn EXCEPT ![p] = Nothing]
  /\ UNCHANGED <<inFlight, pending, failOvers, answered, failed>>

(***************************************************************************)
(* Time, and another coordinator.                                          *)
(***************************************************************************)

\* GroupMetadata.removeExpiredOffsets: what is open stays, and may show later. Long after all
\* requests were answered.
TxnAfterExpiry == pendingTxn
ExpireOffsets ==
  /\ Expiries /\ committed # Nothing /\ inFlight = {} /\ pending = 0
  /\ log' = Append(log, Rec("Tombstone", 0, NoProducer))
  /\ committed' = Nothing
  /\ pendingTxn' = TxnAfterExpiry
  /\ answered' = 0
  /\ UNCHANGED <<inFlight, pending, failOvers, failed>>

\* onElection: who reads the log. The answers that the old coordinator waits for concern nobody.
TxnAfterLoad(p) == LoadedTxn(p)
FailOver ==
  /\ failOvers < MaxFailOvers
  /\ failOvers' = failOvers + 1
  /\ inFlight' = {} /\ pending' = 0
  /\ committed' = Loaded
  /\ pendingTxn' = [p \in Producers |-> TxnAfterLoad(p)]
  /\ failed' = failed \union inFlight
  /\ UNCHANGED <<log, answered>>

Next ==
  \/ CommitOffset
  \/ \E p \in Producers : CommitInTransaction(p)
  \/ \E i \in 1..(3 * MaxCommits) : AcknowledgeAppend(i)
  \/ \E i \in 1..(3 * MaxCommits) : FailAppend(i)
  \/ \E p \in Producers, commits \in BOOLEAN : EndTransaction(p, commits)
  \/ ExpireOffsets
  \/ FailOver

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Positions == 0..MaxCommits
PlaceOK(x) == x.value \in Positions /\ x.at \in 0..Len(log)

TypeOK ==
  /\ inFlight \subseteq Commits /\ failed \subseteq Commits
  /\ PlaceOK(committed) /\ pending \in Positions
  /\ \A p \in Producers : PlaceOK(pendingTxn[p])

\* What is committed counts in the log: nobody sees what an aborted or open transaction commits.
OnlyWhatCountsShows == committed # Nothing => committed.at \in Counting /\ committed = At(committed.at)

\* A consumer that was told of its commit does not begin earlier after a fail-over.
AnsweredIsKept == answered # 0 => committed.at >= answered

\* Another coordinator would find at least what this one shows, ...
CommittedIsLoaded == Loaded.at >= committed.at

\* ... and nothing else, unless an append is on its way or was answered with an error.
NothingElseIsLoaded == inFlight = {} /\ failed = {} => Loaded = committed

\* Open transactions are found again.
OpenIsLoaded == inFlight = {} /\ failed = {} => \A p \in Producers : LoadedTxn(p) = pendingTxn[p]

\* KIP-447: a position that is told as stable changes by a new request or by time only.
IsStable == pending = 0 /\ \A p \in Producers : pendingTxn[p] = Nothing
StableChangesByRequests ==
  [][IsStable /\ failed = {} /\ failed' = {} /\ committed' # committed => Len(log') > Len(log)]_vars

\* As long as nothing expires, a consumer never goes back in the log.
CommittedNeverGoesBack == [][committed'.at >= committed.at \/ committed' = Nothing]_vars

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
OlderIsAnsweredLast ==
  \E i \in inFlight : log[i].kind = "Commit" /\ i < committed.at
TransactionOvertaken == \E p \in Producers : pendingTxn[p].at # 0 /\ pendingTxn[p].at < committed.at
OpenAfterExpiry == LastExpiry # 0 /\ \E p \in Producers : pendingTxn[p] # Nothing
===============================================================================
