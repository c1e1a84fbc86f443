---------------------------- MODULE PurgatoryState ----------------------------
(***************************************************************************)
(* What a purgatory and the threads that use it hold.                      *)
(*                                                                         *)
(* An operation waits for Needs of its keys' events. Each operation has a  *)
(* request thread, of the same name, that tries it and else registers it;  *)
(* completers make a key's event happen and check the key; cancellers drop *)
(* a key; the reaper moves the clock on and purges; the executor runs what *)
(* is due. A thread stands before the next section under a lock, and each  *)
(* action is one such section, with what is read without a lock after it.  *)
(*                                                                         *)
(*   variable   impl/purgatory                                             *)
(*   lists      Watchers of each key, in order; present: keys with a list  *)
(*   watched    DelayedOperationPurgatory.watched (PurgatorySize)          *)
(*   timer      SystemTimer, in the order of deadlines                     *)
(*   due        handed to the timer's executor                             *)
(*   estimate   estimated_total_operations                                 *)
(*   completed  DelayedOperation.is_completed                              *)
(*   called     calls of on_complete; expired: of on_expiration            *)
(*   actions    ActionQueue: keys to be checked                            *)
(*                                                                         *)
(* held and thread are where the code's threads stand. Ghosts: timerWon,   *)
(* cancelled, and overtaken, whose completion the purge does not count.    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Operations,     \* names of operations, and of the threads of their requests
  Keys,
  KeysOf,         \* of each operation: the sequence of its keys
  Needs,          \* of each operation: how many of its keys' events complete it
  LockOf,         \* of each operation: its lock, which several may share (a group's)
  Triggers,       \* of each operation: the key whose event its completion is, or NoKey
  Completers,     \* function of thread names: the key whose event each one makes
  Cancellers,     \* function of thread names: the key that each one drops
  Clock,          \* whether there are a reaper and an executor
  PurgeInterval   \* purgatory.purge.interval.requests

VARIABLES ready, lists, present, watched, timer, due, estimate, completed, called, expired,
          actions, held, thread, timerWon, cancelled, overtaken

listVars  == <<lists, present, watched>>
timerVars == <<timer, due>>
doneVars  == <<completed, called, expired, timerWon>>
ghostVars == <<cancelled, overtaken>>
vars == <<ready, listVars, timerVars, estimate, doneVars, actions, held, thread, ghostVars>>

NoOp     == "no operation"
NoKey    == "no key"
Nobody   == "nobody"
Reaper   == "reaper"
Executor == "executor"

Requests  == Operations
Checkers  == Requests \union DOMAIN Completers
Claimers  == Checkers \union (IF Clock THEN {Executor} ELSE {})
Reapers   == IF Clock THEN {Reaper} ELSE {}
Threads   == Claimers \union DOMAIN Cancellers \union Reapers

\* "state" guards what operations look at (a partition's lock), "lists" all watch lists.
StateLock == "state"
ListLock  == "lists"
Locks     == {LockOf[o] : o \in Operations} \union {StateLock, ListLock}

(***************************************************************************)
(* A thread: where it stands, the operation and key that it is about, what *)
(* it has still to go through, and what is over and to be dropped (of the  *)
(* reaper: keys whose list is no longer the one it saw).                   *)
(***************************************************************************)
NotYet == 99   \* the thread has not begun to do queued actions

Thread(at, op, key, todo) ==
  [at |-> at, op |-> op, key |-> key, todo |-> todo, over |-> {}, stale |-> FALSE, left |-> NotYet]

Idle == Thread("Idle", NoOp, NoKey, <<>>)
Done == Thread("Done", NoOp, NoKey, <<>>)

At(t, place)    == thread[t].at = place
Goes(t, s)      == thread' = [thread EXCEPT ![t] = s]
IsChecking(s)   == s.key # NoKey
Free(lock, t)   == held[lock] \in {Nobody, t}
Without(seq, S) == SelectSeq(seq, LAMBDA x : x \notin S)
Range(seq)      == {seq[i] : i \in 1..Len(seq)}
Min(S)          == CHOOSE x \in S : \A y \in S : x <= y

\* What try_complete looks at.
Satisfied(o) == Cardinality(Range(KeysOf[o]) \intersect ready) >= Needs[o]

\* When a thread ends it holds nothing.
Unlocked(t) == [l \in Locks |-> IF held[l] = t THEN Nobody ELSE held[l]]
Released(t, lock) == [held EXCEPT ![lock] = IF @ = t THEN Nobody ELSE @]

(***************************************************************************)
(* Where a thread goes next. done, seen and queued are completed, lists    *)
(* and actions after its step.                                             *)
(***************************************************************************)

\* After a request or a check: ActionQueue.try_complete_actions, with no lock held.
AfterCheck(s, queued) ==
  LET left == IF s.left = NotYet THEN Len(queued) ELSE s.left
  IN  IF left = 0 THEN Done
      ELSE [Thread("TakeAction", NoOp, NoKey, <<>>) EXCEPT !.left = left - 1]

\* The end of try_complete_watched: an empty list's key is forgotten.
AfterDrop(s, seen, queued) ==
  IF s.stale \/ seen[s.key] = <<>>
  THEN [s EXCEPT !.at = "Forget", !.op = NoOp, !.over = {}]
  ELSE AfterCheck(s, queued)

\* The loop of Watchers.try_complete_watched: completed ones are passed over.
NextTry(s, done, seen, queued) ==
  LET open  == {i \in 1..Len(s.todo) : s.todo[i] \notin done}
      first == IF open = {} THEN Len(s.todo) + 1 ELSE Min(open)
      rest  == [s EXCEPT !.todo = SubSeq(s.todo, first, Len(s.todo)),
                         !.over = @ \union {s.todo[i] : i \in 1..(first - 1)}]
  IN  IF open # {} THEN [rest EXCEPT !.at = "Acquire", !.op = s.todo[first]]
      ELSE IF rest.over # {} THEN [rest EXCEPT !.at = "Drop", !.op = NoOp]
      ELSE AfterDrop(rest, seen, queued)

\* The reaper goes from list to list.
NextPurge(s) ==
  IF s.todo = <<>> THEN Idle
  ELSE [s EXCEPT !.at = "PurgeKey", !.key = Head(s.todo), !.todo = Tail(s.todo)]

\* The places of a thread that has got a key's list.
Trying == {"Acquire", "Look", "Release", "Claim", "Finish", "Drop", "Forget"}

\* Whoever got the list of key k before k was forgotten has a list that is no longer in use.
WithStale(threads, k) ==
  [t \in Threads |->
    IF t = Reaper /\ threads[t].at \in {"PurgeKey", "Forget"}
    THEN [threads[t] EXCEPT !.over = @ \union {k}]
    ELSE IF threads[t].key = k /\ threads[t].at \in Trying
    THEN [threads[t] EXCEPT !.stale = TRUE]
    ELSE threads[t]]
===============================================================================
