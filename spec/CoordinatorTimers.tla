--------------------------- MODULE CoordinatorTimers ---------------------------
(***************************************************************************)
(* The timers of a shard, by key. A timer's time is over: an event stands  *)
(* last in the queue, and can still be cancelled. An event that is queued  *)
(* stays queued: it is late when its timer is replaced or cancelled, and   *)
(* does nothing then.                                                      *)
(*                                                                         *)
(* Kafka: CoordinatorTimerImpl (up to 4.2 EventBasedCoordinatorTimer).     *)
(***************************************************************************)
EXTENDS Integers

(***************************************************************************)
(* field    | what it is                                                   *)
(* ---------+------------------------------------------------------------- *)
(* running  | CoordinatorTimerImpl.tasks by key: a timer "WAITS", or its   *)
(*          | event is queued ("FIRED"); `of` is what it was set for       *)
(* late     | by key, queued events whose timers are registered no longer  *)
(* expiries | the writes of timers that wait for their answers             *)
(***************************************************************************)
TimerKinds == {"NONE", "WAITS", "FIRED"}
NoTimer == [kind |-> "NONE", of |-> 0]
NoTimersOf(keys) ==
  [running |-> [key \in keys |-> NoTimer], late |-> [key \in keys |-> 0], expiries |-> {}]

IsFired(t, key) == t.running[key].kind = "FIRED"
WithLate(t, keys) ==
  [t EXCEPT !.late = [key \in DOMAIN @ |->
     IF key \in keys /\ IsFired(t, key) THEN @[key] + 1 ELSE @[key]]]

Started(former, of) == [kind |-> "WAITS", of |-> of]
Scheduled(t, key, of) == [WithLate(t, {key}) EXCEPT !.running[key] = Started(@, of)]
Cancelled(t, key) == [WithLate(t, {key}) EXCEPT !.running[key] = NoTimer]
CancelledAll(t) ==
  [NoTimersOf(DOMAIN t.late) EXCEPT !.late = WithLate(t, DOMAIN t.late).late]

\* The write of a timer has failed: the timer is started again for 500 ms, in place of the one that
\* runs under its key. NOT_COORDINATOR is no failure; only a shard that is unloaded gives it.
Retried(t, failed) ==
  LET again == {x \in t.expiries : x.write \in failed}
      keys == {x.key : x \in again}
      last == [key \in keys |-> CHOOSE x \in again :
                 x.key = key /\ \A y \in again : y.key = key => y.write <= x.write]
  IN  [WithLate(t, keys) EXCEPT !.running = [key \in DOMAIN @ |->
         IF key \in keys THEN [kind |-> "WAITS", of |-> last[key].of] ELSE @[key]]]
===============================================================================
