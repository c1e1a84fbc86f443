--------------------------- MODULE DelayedOperations ---------------------------
(***************************************************************************)
(* Kafka's delayed operations: what must hold, each with what it means to  *)
(* a user. Below it: PurgatoryThreads (the steps), PurgatoryState.         *)
(*                                                                         *)
(* An operation is a request that waits: a fetch for bytes, a produce for  *)
(* its replicas, a member for its group. Its bugs live between locks.      *)
(***************************************************************************)
EXTENDS PurgatoryThreads

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
Places == {"Acquire", "Look", "Release", "Claim", "Finish", "Watch", "Count", "AddTimer",
           "CancelTimer", "Event", "Snapshot", "Drop", "Forget", "TakeAction", "RemoveList", "SetEstimate",
           "SnapshotKeys", "PurgeKey", "OnExpiration", "Idle", "Done"}

TypeOK ==
  /\ ready \in SUBSET Keys
  /\ \A k \in Keys : Range(lists[k]) \subseteq Operations
  /\ Range(present) \subseteq Keys
  /\ watched \in Nat
  /\ Range(timer) \subseteq Operations
  /\ Range(due) \subseteq Operations
  /\ estimate \in 0..Cardinality(Operations)
  /\ completed \in SUBSET Operations
  /\ called \in [Operations -> 0..2]
  /\ expired \in [Operations -> 0..2]
  /\ Range(actions) \subseteq Keys
  /\ held \in [Locks -> Threads \union {Nobody}]
  /\ \A t \in Threads : thread[t].at \in Places
  /\ timerWon \subseteq completed
  /\ cancelled \in SUBSET Operations /\ overtaken \in SUBSET Operations

(***************************************************************************)
(* Reading the state.                                                      *)
(***************************************************************************)
IsOf(k, o) == k \in Range(KeysOf[o])

\* The request's thread has not yet looked for the second time.
IsRegistering(o) ==
  thread[o].op = o /\ ~IsChecking(thread[o]) /\ thread[o].at \in {"Acquire", "Watch", "Count", "Look"}

\* The request's thread has put the operation into all its lists.
IsWatched(o) ==
  \/ thread[o].op # o \/ IsChecking(thread[o])
  \/ thread[o].at \notin {"Acquire", "Watch"} /\ thread[o].todo = <<>>

Finishing(o) == \E t \in Claimers : thread[t].op = o /\ At(t, "Finish")

IsTrying(t, o) ==
  \/ thread[t].op = o /\ thread[t].at \in {"Acquire", "Look", "Claim", "Finish"}
  \/ IsChecking(thread[t]) /\ o \in Range(IF At(t, "Release") THEN Tail(thread[t].todo)
                                           ELSE thread[t].todo)

\* Somebody will look whether o is complete: as it registers, by a key, or by a queued check.
WillBeChecked(o) ==
  \/ IsRegistering(o)
  \/ \E t \in Claimers : IsTrying(t, o)
  \/ \E t \in Checkers : At(t, "Snapshot") /\ IsOf(thread[t].key, o)
  \/ \E i \in 1..Len(actions) : IsOf(actions[i], o)

InList(o) == {k \in Keys : o \in Range(lists[k])}

RECURSIVE Total(_)
Total(S) == IF S = {} THEN 0 ELSE LET k == CHOOSE k \in S : TRUE IN Len(lists[k]) + Total(S \ {k})

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

\* A request is answered once: never twice, and never not at all once it counts as complete.
CompletedExactlyOnce ==
  \A o \in Operations :
    /\ called[o] + Cardinality({t \in Claimers : thread[t].op = o /\ At(t, "Finish")}) <= 1
    /\ o \in completed <=> (called[o] = 1 \/ Finishing(o))

\* A request counts as timed out only if its time-out answered it.
ExpiredMeansTimerWon ==
  \A o \in Operations :
    /\ expired[o] <= 1
    /\ expired[o] = 1 => o \in timerWon

\* KAFKA-6653, KAFKA-8334: what a request waits for has come, and nobody will answer it before
\* its time-out. Of a cancelled one nobody has to know.
NoLostWakeUp ==
  \A o \in Operations :
    Satisfied(o) /\ o \notin completed /\ o \notin cancelled => WillBeChecked(o)

\* Every thread of S waits for a lock that another one of S holds.
WantedLock(t) ==
  CASE At(t, "Acquire") -> {LockOf[thread[t].op]}
    [] thread[t].at \in {"Look", "Event"} -> {StateLock}
    [] thread[t].at \in {"Watch", "Snapshot", "Drop", "Forget", "RemoveList", "SnapshotKeys",
                         "PurgeKey"} -> {ListLock}
    [] OTHER -> {}

WaitsWithin(t, S) == \E l \in WantedLock(t) : held[l] \in S \ {t}

NoDeadlock == ~\E S \in SUBSET Threads : S # {} /\ \A t \in S : WaitsWithin(t, S)

\* PurgatorySize is what the lists hold; what waits is in the list of each of its keys, once.
WatchedCountIsExact ==
  /\ watched = Total(Keys)
  /\ \A k \in Keys : Len(lists[k]) = Cardinality(Range(lists[k]))
  /\ \A o \in Operations :
       IsWatched(o) /\ o \notin completed /\ o \notin cancelled => InList(o) = Range(KeysOf[o])

\* NumDelayedOperations counts nothing that is complete, but for who is just taking it out.
DelayedAreNotCompleted ==
  \A o \in Operations \intersect completed :
    o \in Range(timer) => Finishing(o) \/ (thread[o].op = o /\ At(o, "CancelTimer"))

\* Who waits can time out: it is in the timer or due, unless it was cancelled.
WaitingCanExpire ==
  \A o \in Operations :
    Clock /\ ~IsRegistering(o) /\ o \notin completed /\ o \notin cancelled
      => \/ o \in Range(timer) \union Range(due)
         \/ \E t \in Claimers : IsTrying(t, o)
         \/ thread[o].op = o /\ thread[o].at \in {"Release", "AddTimer"}

\* A key that nobody watches costs nothing: only its last user still has its list.
ForgottenKeysAreEmpty == \A k \in Keys : lists[k] # <<>> => k \in Range(present)

(***************************************************************************)
(* What every step must keep.                                              *)
(***************************************************************************)
CompletedForGood  == [][completed \subseteq completed']_vars
CancelledIsNotCompleted == [][cancelled' # cancelled => completed' = completed /\ called' = called]_vars

(***************************************************************************)
(* What must come, if no thread stands still.                              *)
(***************************************************************************)
\* But for those that a purge overtook: it counted them out before they were in the timer, or as
\* they were due. They leave with the next check of their key, or the purge after more completions.
CompletedAreRemoved ==
  \A o \in Operations :
    o \in completed ~> ((InList(o) = {} \/ o \in overtaken) /\ o \notin Range(timer))

EverybodyIsAnswered ==
  \A o \in Operations : <>(called[o] = 1 \/ o \in cancelled)

(***************************************************************************)
(* Situations that a suite shall show.                                     *)
(***************************************************************************)
SecondLookFinds    == \E o \in Operations : IsSecondLook(thread[o]) /\ At(o, "Claim") /\ thread[o].op = o
TwoWantToComplete  == \E o \in Operations : Cardinality({t \in Claimers : thread[t].op = o /\ At(t, "Claim")}) > 1
CompletedBeforeTimed == \E o \in Operations : o \in completed /\ At(o, "AddTimer") /\ thread[o].op = o
DueAndCompleted    == \E o \in Operations : o \in completed /\ o \in Range(due)
EverythingIsOver   == \A t \in Threads : At(t, "Done") \/ At(t, "Idle")
===============================================================================
