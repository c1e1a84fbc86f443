--------------------------- MODULE PurgatoryThreads ---------------------------
(***************************************************************************)
(* The steps of all threads, each one section under a lock.                *)
(***************************************************************************)
EXTENDS PurgatoryState

Init ==
  /\ ready = {}
  /\ lists = [k \in Keys |-> <<>>] /\ present = <<>> /\ watched = 0
  /\ timer = <<>> /\ due = <<>>
  /\ estimate = 0
  /\ completed = {} /\ timerWon = {} /\ cancelled = {} /\ overtaken = {}
  /\ called = [o \in Operations |-> 0] /\ expired = [o \in Operations |-> 0]
  /\ actions = <<>>
  /\ held = [l \in Locks |-> Nobody]
  /\ thread = [t \in Threads |->
       IF t \in Requests THEN Thread("Acquire", t, NoKey, KeysOf[t])
       ELSE IF t \in DOMAIN Completers THEN Thread("Event", NoOp, Completers[t], <<>>)
       ELSE IF t \in DOMAIN Cancellers THEN Thread("RemoveList", NoOp, Cancellers[t], <<>>)
       ELSE Idle]

(***************************************************************************)
(* The rules that a mutant replaces.                                       *)
(***************************************************************************)

\* The second look of safe_try_complete_or_else.
SeesOnSecondLook(o) == Satisfied(o)

\* AtomicBoolean.compare_and_set in force_complete.
WinsClaim(o) == o \notin completed

\* Since 2.7 an attempt waits for the operation's lock (KAFKA-8334).
WaitsForLock == TRUE

\* A check is made after all locks are released: of the state (KAFKA-7697), of the lists
\* (KAFKA-3994), and of the operation whose completion is the event (KAFKA-6653).
ChecksUnderStateLock == FALSE
ChecksUnderListLock  == FALSE
ChecksUnderOperationLock == FALSE

\* onExpiration is for the timer that won.
Expires(won) == won

\* removeKeyIfEmpty looks again under the lock of the shard.
MayForget(k) == lists[k] = <<>>

\* advanceClock purges when enough operations may have completed since it last did.
MayPurge(delayed) == estimate > delayed + PurgeInterval

\* An operation that completed before it was in the timer is taken out by who added it.
CancelsAfterAdding(o) == o \in completed

(***************************************************************************)
(* Trying an operation.                                                    *)
(***************************************************************************)

\* DelayedOperation.safeTryComplete: take the operation's lock.
Acquire(t) ==
  LET s == thread[t]
      lock == LockOf[s.op]
  IN  /\ At(t, "Acquire")
      /\ \/ /\ Free(lock, t)
            /\ held' = [held EXCEPT ![lock] = t]
            /\ Goes(t, [s EXCEPT !.at = "Look"])
         \/ /\ ~Free(lock, t) /\ ~WaitsForLock
            /\ Goes(t, NextTry([s EXCEPT !.todo = Tail(@)], completed, lists, actions))
            /\ UNCHANGED held
      /\ UNCHANGED <<ready, listVars, timerVars, estimate, doneVars, actions, ghostVars>>

IsSecondLook(s) == ~IsChecking(s) /\ s.todo = <<>>

\* DelayedOperation.tryComplete reads what it waits for; the lock is kept while it registers.
Look(t) ==
  LET s == thread[t]
      found == IF IsSecondLook(s) THEN SeesOnSecondLook(s.op) ELSE Satisfied(s.op)
  IN  /\ At(t, "Look") /\ Free(StateLock, t)
      /\ Goes(t, [s EXCEPT !.at = IF found THEN "Claim"
                                  ELSE IF IsChecking(s) \/ s.todo = <<>> THEN "Release"
                                  ELSE "Watch"])
      /\ UNCHANGED <<ready, listVars, timerVars, estimate, doneVars, actions, held, ghostVars>>

\* After a look in vain the lock is released, and the thread goes to the timer or to the next
\* operation. What comes between the look and this must not be lost (KAFKA-8334).
Release(t) ==
  LET s == thread[t]
      next == IF IsChecking(s) THEN NextTry([s EXCEPT !.todo = Tail(@)], completed, lists, actions)
              ELSE IF s.op \in completed THEN AfterCheck(s, actions)
              ELSE [s EXCEPT !.at = "AddTimer"]
  IN  /\ At(t, "Release")
      /\ Goes(t, next)
      /\ held' = IF next.at = "Done" THEN Unlocked(t) ELSE Released(t, LockOf[s.op])
      /\ UNCHANGED <<ready, listVars, timerVars, estimate, doneVars, actions, ghostVars>>

\* Where a thread goes that found the operation complete as it wanted to complete it.
AfterLostClaim(t, s) ==
  IF t = Executor THEN (IF Expires(FALSE) THEN [s EXCEPT !.at = "OnExpiration"] ELSE Idle)
  ELSE IF IsChecking(s) THEN NextTry([s EXCEPT !.todo = Tail(@)], completed, lists, actions)
  ELSE AfterCheck(s, actions)

\* DelayedOperation.forceComplete: who sets the flag completes the operation.
Claim(t) ==
  LET s == thread[t]
      wins == WinsClaim(s.op)
      next == IF wins THEN [s EXCEPT !.at = "Finish"] ELSE AfterLostClaim(t, s)
  IN  /\ At(t, "Claim")
      /\ completed' = IF wins THEN completed \union {s.op} ELSE completed
      /\ timerWon' = IF wins /\ t = Executor THEN timerWon \union {s.op} ELSE timerWon
      /\ Goes(t, next)
      /\ held' = IF wins THEN held
                 ELSE IF next.at = "Done" THEN Unlocked(t) ELSE Released(t, LockOf[s.op])
      /\ UNCHANGED <<ready, listVars, timerVars, estimate, called, expired, actions, ghostVars>>

\* Where a thread goes that has completed its operation.
AfterFinish(t, s, queued) ==
  IF ChecksUnderOperationLock /\ Triggers[s.op] # NoKey
  THEN Thread("Snapshot", NoOp, Triggers[s.op], <<>>)
  ELSE IF t = Executor THEN [s EXCEPT !.at = "OnExpiration"]
  ELSE IF IsChecking(s)
  THEN NextTry([s EXCEPT !.todo = Tail(@), !.over = @ \union {s.op}], completed, lists, queued)
  ELSE AfterCheck(s, queued)

\* The rest of forceComplete: out of the timer, then onComplete, then the lock is released.
\* What the completion sets off is queued: ActionQueue.add.
Finish(t) ==
  LET s == thread[t]
      key == Triggers[s.op]
      queued == IF key = NoKey \/ ChecksUnderOperationLock THEN actions ELSE Append(actions, key)
      next == AfterFinish(t, s, queued)
  IN  /\ At(t, "Finish") /\ (key = NoKey \/ Free(StateLock, t))
      /\ timer' = Without(timer, {s.op})
      /\ called' = [called EXCEPT ![s.op] = @ + 1]
      /\ ready' = IF key = NoKey THEN ready ELSE ready \union {key}
      /\ actions' = queued
      /\ Goes(t, next)
      /\ held' = IF next.at = "Snapshot" THEN held
                 ELSE IF next.at = "Done" THEN Unlocked(t) ELSE Released(t, LockOf[s.op])
      /\ UNCHANGED <<listVars, due, estimate, completed, expired, timerWon, ghostVars>>

(***************************************************************************)
(* A request: tryCompleteElseWatch.                                        *)
(***************************************************************************)

\* WatcherList.watchForOperation, key by key, with the operation's lock held.
Watch(t) ==
  LET s == thread[t]
      k == Head(s.todo)
  IN  /\ At(t, "Watch") /\ Free(ListLock, t)
      /\ lists' = [lists EXCEPT ![k] = Append(@, s.op)]
      /\ present' = IF k \in Range(present) THEN present ELSE Append(present, k)
      /\ watched' = watched + 1
      /\ Goes(t, [s EXCEPT !.todo = Tail(@), !.at = IF Len(s.todo) = 1 THEN "Count" ELSE "Watch"])
      /\ UNCHANGED <<ready, timerVars, estimate, doneVars, actions, held, ghostVars>>

\* estimatedTotalOperations.incrementAndGet; then the second look.
Count(t) ==
  /\ At(t, "Count")
  /\ estimate' = estimate + 1
  /\ Goes(t, [thread[t] EXCEPT !.at = "Look"])
  /\ UNCHANGED <<ready, listVars, timerVars, doneVars, actions, held, ghostVars>>

\* SystemTimer.add, without the operation's lock; then isCompleted is read again.
AddTimer(t) ==
  LET s == thread[t]
  IN  /\ At(t, "AddTimer")
      /\ timer' = Append(timer, s.op)
      /\ Goes(t, IF CancelsAfterAdding(s.op) THEN [s EXCEPT !.at = "CancelTimer"]
                 ELSE AfterCheck(s, actions))
      /\ UNCHANGED <<ready, listVars, due, estimate, doneVars, actions, held, ghostVars>>

\* TimerTask.cancel, by who added it or by a canceller.
CancelTimer(t) ==
  LET s == thread[t]
  IN  /\ At(t, "CancelTimer")
      /\ timer' = Without(timer, {s.op})
      /\ Goes(t, IF t \in Requests THEN AfterCheck(s, actions)
                 ELSE IF s.todo = <<>> THEN Done
                 ELSE [s EXCEPT !.op = Head(s.todo), !.todo = Tail(@)])
      /\ UNCHANGED <<ready, listVars, due, estimate, doneVars, actions, held, ghostVars>>

(***************************************************************************)
(* An event: checkAndComplete.                                             *)
(***************************************************************************)

\* What operations wait for happens: an append, a new high watermark, a member that joins.
Event(t) ==
  LET s == thread[t]
  IN  /\ At(t, "Event") /\ Free(StateLock, t)
      /\ ready' = ready \union {s.key}
      /\ held' = IF ChecksUnderStateLock THEN [held EXCEPT ![StateLock] = t] ELSE held
      /\ Goes(t, [s EXCEPT !.at = "Snapshot"])
      /\ UNCHANGED <<listVars, timerVars, estimate, doneVars, actions, ghostVars>>

\* The key's list is found, and who is in it now will be tried.
Snapshot(t) ==
  LET s == thread[t]
      next == IF s.key \in Range(present)
              THEN NextTry([s EXCEPT !.todo = lists[s.key]], completed, lists, actions)
              ELSE AfterCheck(s, actions)
  IN  /\ At(t, "Snapshot") /\ Free(ListLock, t)
      /\ Goes(t, next)
      /\ held' = IF next.at = "Done" THEN Unlocked(t)
                 ELSE IF ChecksUnderListLock THEN [held EXCEPT ![ListLock] = t] ELSE held
      /\ UNCHANGED <<ready, listVars, timerVars, estimate, doneVars, actions, ghostVars>>

\* Completed operations leave this key's list.
Drop(t) ==
  LET s == thread[t]
      left == Without(lists[s.key], s.over)
      after == [lists EXCEPT ![s.key] = left]
      next == AfterDrop([s EXCEPT !.over = {}], after, actions)
  IN  /\ At(t, "Drop") /\ Free(ListLock, t)
      /\ lists' = after
      /\ watched' = watched - (Len(lists[s.key]) - Len(left))
      /\ Goes(t, next)
      /\ held' = IF next.at = "Done" THEN Unlocked(t) ELSE held
      /\ UNCHANGED <<ready, present, timerVars, estimate, doneVars, actions, ghostVars>>

\* removeKeyIfEmpty: not if somebody has registered meanwhile, nor if it is another list.
Forget(t) ==
  LET s == thread[t]
      k == s.key
      isStale == s.stale \/ (t = Reaper /\ k \in s.over)
      forgets == ~isStale /\ k \in Range(present) /\ MayForget(k)
      next == IF t = Reaper THEN NextPurge(s) ELSE AfterCheck(s, actions)
      moved == [thread EXCEPT ![t] = next]
  IN  /\ At(t, "Forget") /\ Free(ListLock, t)
      /\ present' = IF forgets THEN Without(present, {k}) ELSE present
      /\ lists' = IF forgets THEN [lists EXCEPT ![k] = <<>>] ELSE lists
      /\ watched' = IF forgets THEN watched - Len(lists[k]) ELSE watched
      /\ thread' = IF forgets THEN WithStale(moved, k) ELSE moved
      /\ held' = IF next.at \in {"Done", "Idle"} THEN Unlocked(t) ELSE held
      /\ UNCHANGED <<ready, timerVars, estimate, doneVars, actions, ghostVars>>

\* ActionQueue.tryCompleteActions: a request's thread does what completions have set off.
TakeAction(t) ==
  LET s == thread[t]
  IN  /\ At(t, "TakeAction")
      /\ actions' = IF actions = <<>> THEN actions ELSE Tail(actions)
      /\ Goes(t, IF actions = <<>> THEN Done
                 ELSE [Thread("Snapshot", NoOp, Head(actions), <<>>) EXCEPT !.left = s.left])
      /\ UNCHANGED <<ready, listVars, timerVars, estimate, doneVars, held, ghostVars>>

(***************************************************************************)
(* cancelForKey.                                                           *)
(***************************************************************************)

\* The list goes; who was in it and is not complete leaves the timer, and is not completed.
RemoveList(t) ==
  LET s == thread[t]
      k == s.key
      todo == Without(lists[k], completed)
      next == IF todo = <<>> THEN Done
              ELSE [Thread("CancelTimer", Head(todo), NoKey, Tail(todo)) EXCEPT !.left = s.left]
  IN  /\ At(t, "RemoveList") /\ Free(ListLock, t)
      /\ lists' = [lists EXCEPT ![k] = <<>>]
      /\ present' = Without(present, {k})
      /\ watched' = watched - Len(lists[k])
      /\ cancelled' = cancelled \union Range(todo)
      /\ thread' = WithStale([thread EXCEPT ![t] = next], k)
      /\ UNCHANGED <<ready, timerVars, estimate, doneVars, actions, held, overtaken>>

(***************************************************************************)
(* Time: the reaper and the executor.                                      *)
(***************************************************************************)

\* SystemTimer.advanceClock: the n next deadlines have passed. Then the purge's condition is read.
AdvanceClock(n) ==
  LET t == Reaper
      left == SubSeq(timer, n + 1, Len(timer))
      purges == MayPurge(Len(left))
  IN  /\ Clock /\ At(t, "Idle")
      /\ n <= Len(timer) /\ (n > 0 \/ purges)
      /\ timer' = left
      /\ due' = due \o SubSeq(timer, 1, n)
      /\ Goes(t, IF purges THEN [Idle EXCEPT !.at = "SetEstimate", !.left = Len(left),
                                             !.over = Range(left)]
                 ELSE Idle)
      /\ UNCHANGED <<ready, listVars, estimate, doneVars, actions, held, ghostVars>>

\* estimatedTotalOperations.getAndSet(numDelayed), before the purge. Who was in the lists but not
\* in the timer then, and is not complete, is counted no more: its completion makes nobody purge.
SetEstimate(t) ==
  /\ At(t, "SetEstimate")
  /\ estimate' = thread[t].left
  /\ overtaken' = overtaken \union {o \in Operations \ (completed \union thread[t].over) :
                                     \E k \in Keys : o \in Range(lists[k])}
  /\ Goes(t, [thread[t] EXCEPT !.at = "SnapshotKeys", !.over = {}])
  /\ UNCHANGED <<ready, listVars, timerVars, doneVars, actions, held, cancelled>>

\* All watch lists, as they are now.
SnapshotKeys(t) ==
  /\ At(t, "SnapshotKeys") /\ Free(ListLock, t)
  /\ Goes(t, NextPurge([Idle EXCEPT !.todo = present]))
  /\ UNCHANGED <<ready, listVars, timerVars, estimate, doneVars, actions, held, ghostVars>>

\* Watchers.purgeCompleted of one key.
PurgeKey(t) ==
  LET s == thread[t]
      k == s.key
      isStale == k \in s.over
      left == IF isStale THEN lists[k] ELSE Without(lists[k], completed)
  IN  /\ At(t, "PurgeKey") /\ Free(ListLock, t)
      /\ lists' = [lists EXCEPT ![k] = left]
      /\ watched' = watched - (Len(lists[k]) - Len(left))
      /\ Goes(t, IF isStale \/ left = <<>> THEN [s EXCEPT !.at = "Forget"] ELSE NextPurge(s))
      /\ UNCHANGED <<ready, present, timerVars, estimate, doneVars, actions, held, ghostVars>>

\* The executor's thread runs what is due: TimerTask.run, without the operation's lock.
TakeDue(t) ==
  /\ At(t, "Idle") /\ due # <<>>
  /\ due' = Tail(due)
  /\ Goes(t, Thread("Claim", Head(due), NoKey, <<>>))
  /\ UNCHANGED <<ready, listVars, timer, estimate, doneVars, actions, held, ghostVars>>

\* DelayedOperation.onExpiration, after onComplete.
OnExpiration(t) ==
  /\ At(t, "OnExpiration")
  /\ expired' = [expired EXCEPT ![thread[t].op] = @ + 1]
  /\ Goes(t, Idle)
  /\ UNCHANGED <<ready, listVars, timerVars, estimate, completed, called, timerWon, actions, held,
                 ghostVars>>

(***************************************************************************)
(* The next-state relation.                                                *)
(***************************************************************************)
Executors == Claimers \ Checkers

Next ==
  \/ \E t \in Checkers : Acquire(t) \/ Look(t) \/ Release(t)
  \/ \E t \in Checkers : Snapshot(t) \/ Drop(t) \/ TakeAction(t)
  \/ \E t \in Claimers : Claim(t) \/ Finish(t)
  \/ \E t \in Requests : Watch(t) \/ Count(t) \/ AddTimer(t)
  \/ \E t \in Requests \union DOMAIN Cancellers : CancelTimer(t)
  \/ \E t \in DOMAIN Completers : Event(t)
  \/ \E t \in DOMAIN Cancellers : RemoveList(t)
  \/ \E t \in Checkers \union Reapers : Forget(t)
  \/ \E n \in 0..Cardinality(Operations) : AdvanceClock(n)
  \/ \E t \in Reapers : SetEstimate(t) \/ SnapshotKeys(t) \/ PurgeKey(t)
  \/ \E t \in Executors : TakeDue(t) \/ OnExpiration(t)

\* No thread stands still for ever, and time passes.
Fairness ==
  /\ \A t \in Checkers : WF_vars(Acquire(t) \/ Look(t) \/ Release(t))
  /\ \A t \in Checkers : WF_vars(Snapshot(t) \/ Drop(t) \/ TakeAction(t))
  /\ \A t \in Claimers : WF_vars(Claim(t) \/ Finish(t))
  /\ \A t \in Requests : WF_vars(Watch(t) \/ Count(t) \/ AddTimer(t) \/ CancelTimer(t))
  /\ \A t \in DOMAIN Completers : WF_vars(Event(t))
  /\ \A t \in DOMAIN Cancellers : WF_vars(RemoveList(t) \/ CancelTimer(t))
  /\ \A t \in Checkers \union Reapers : WF_vars(Forget(t))
  /\ WF_vars(\E n \in 0..Cardinality(Operations) : AdvanceClock(n))
  /\ \A t \in Reapers : WF_vars(SetEstimate(t) \/ SnapshotKeys(t) \/ PurgeKey(t))
  /\ \A t \in Executors : WF_vars(TakeDue(t) \/ OnExpiration(t))

FairSpec == Init /\ [][Next]_vars /\ Fairness
===============================================================================
