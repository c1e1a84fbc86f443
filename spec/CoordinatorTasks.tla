--------------------------- MODULE CoordinatorTasks ---------------------------
(***************************************************************************)
(* What a shard does later: its timers, and tasks that run beside its      *)
(* events. Both come back as a write that stands last in the queue, and    *)
(* that does nothing if its timer or its task is not the registered one.   *)
(*                                                                         *)
(* Of the store: a value is a session. Its timer deletes it; `put` starts  *)
(* the timer again, `delete` cancels it, a load makes it anew. `offload`   *)
(* gives k1's value to a task, whose result becomes k2's; `delete` cancels *)
(* the task, too.                                                          *)
(*                                                                         *)
(* Neither timers nor tasks are timeline structures: a batch that fails    *)
(* leaves them as the operations have set them.                            *)
(*                                                                         *)
(* Kafka: CoordinatorTimerImpl (up to 4.2 EventBasedCoordinatorTimer),     *)
(* CoordinatorExecutorImpl.                                                *)
(***************************************************************************)
EXTENDS CoordinatorStore, CoordinatorTimers

CONSTANT Sessions   \* values have timers

(***************************************************************************)
(* variable    | field                                                     *)
(* ------------+---------------------------------------------------------- *)
(* timers[b]   | CoordinatorTimers: `of` is the value that a timer was set *)
(*             | for                                                       *)
(* executor[b] | CoordinatorExecutorImpl.tasks: one key, k1. A task is     *)
(*             | "SUBMITTED" to the pool, or the event with its result is  *)
(*             | queued ("DONE"). `late` counts queued events of former    *)
(*             | tasks                                                     *)
(***************************************************************************)
VARIABLES timers, executor

laterVars == <<timers, executor>>
tasksVars == <<vars, timers, executor>>

NoTask == [kind |-> "NONE", input |-> 0]
NoTimers == NoTimersOf(Keys)
NoTasks == [task |-> NoTask, late |-> 0]

\* Its shard's onLoaded: each value gets its whole time again.
AfterLoad(t, memory) ==
  [t EXCEPT !.running = [key \in Keys |->
     IF Sessions /\ memory[key] # Tombstone THEN [kind |-> "WAITS", of |-> memory[key]] ELSE NoTimer]]

\* What an operation of a kind does to the timers, before its records are appended.
PutKeys(kind) ==
  CASE kind \in {"put", "direct", "large"} -> {"k1"}
    [] kind = "two" -> Keys
    [] OTHER -> {}
Sets(t, keys, of) ==
  IF ~Sessions THEN t
  ELSE [WithLate(t, keys) EXCEPT !.running = [key \in Keys |->
          IF key \in keys THEN Started(@[key], of) ELSE @[key]]]
TimersOf(t, kind, w) == IF kind = "delete" THEN Cancelled(t, "k1") ELSE Sets(t, PutKeys(kind), w)

(***************************************************************************)
(* Tasks. One at most has a key; its input is a value, not the shard.      *)
(***************************************************************************)
Dropped(e) == [task |-> NoTask, late |-> IF e.task.kind = "DONE" THEN e.late + 1 ELSE e.late]
TasksOf(e, kind, memory) ==
  CASE kind = "delete" -> Dropped(e)
    [] kind = "offload" /\ e.task = NoTask /\ memory["k1"] # Tombstone ->
         [e EXCEPT !.task = [kind |-> "SUBMITTED", input |-> memory["k1"]]]
    [] OTHER -> e

(***************************************************************************)
(* The writes of timers and tasks are operations like others.              *)
(***************************************************************************)
ExpiryKinds == [k1 |-> "expire k1", k2 |-> "expire k2"]
ResultKinds == <<"result 1", "result 2", "result 3">>
TasksOperation(kind, w, memory) ==
  CASE kind = "offload" -> Result(<<>>)
    [] \E key \in Keys : kind = ExpiryKinds[key] ->
         LET key == CHOOSE k \in Keys : kind = ExpiryKinds[k]
         IN  Result(IF memory[key] = Tombstone THEN <<>> ELSE <<Value(key, Tombstone)>>)
    [] \E n \in DOMAIN ResultKinds : kind = ResultKinds[n] ->
         Result(<<Value("k2", CHOOSE n \in DOMAIN ResultKinds : kind = ResultKinds[n])>>)
    [] OTHER -> StoreOperation(kind, w, memory)

(***************************************************************************)
(* A step of the runtime, and what it does to timers and tasks: an unload  *)
(* cancels them, a load makes timers, a write of a timer that fails is     *)
(* tried again.                                                            *)
(***************************************************************************)
Failed ==
  {w \in DOMAIN answers' : answers'[w] \in {"error", "timeout"}
                           /\ (w \in DOMAIN answers => answers[w] = "none")}
TimersAfter(b, t) ==
  IF state'[b] # "ACTIVE" THEN CancelledAll(t)
  ELSE IF state[b] # "ACTIVE" THEN AfterLoad(t, shard'[b].memory)
  ELSE [Retried(t, Failed) EXCEPT !.expiries = {x \in @ : answers'[x.write] = "none"}]
TasksAfter(b, e) == IF state'[b] # "ACTIVE" THEN Dropped(e) ELSE e

\* What the operation has done to the timers and tasks of its own broker comes first.
With(b, t, e) ==
  /\ timers' = [x \in Brokers |-> TimersAfter(x, IF x = b THEN t ELSE timers[x])]
  /\ executor' = [x \in Brokers |-> TasksAfter(x, IF x = b THEN e ELSE executor[x])]
Follow ==
  /\ timers' = [x \in Brokers |-> TimersAfter(x, timers[x])]
  /\ executor' = [x \in Brokers |-> TasksAfter(x, executor[x])]

Operate(b, kind, result) ==
  /\ Write(b, kind, result)
  /\ With(b, TimersOf(timers[b], kind, Len(writes) + 1), TasksOf(executor[b], kind, shard[b].memory))

Flush(b, result) == FlushBatch(b, result) /\ Follow
OperationTimeOut(w) == TimeOut(w) /\ Follow
RaiseWatermark(b, offset) == AdvanceWatermark(b, offset) /\ Follow
Fetch(b) == Replicate(b) /\ Follow
TakeWatermark(b) == ApplyWatermark(b) /\ Follow
BecomeLeader(b) == Elect(b) /\ Follow
Delete == DeleteTopic /\ Follow
HandleRole(b) == RunRole(b) /\ Follow
EndLoad(b, e) == CompleteLoad(b, e) /\ Follow

\* A timer's time is over: its event is queued.
Fire(b, key) ==
  /\ timers[b].running[key].kind = "WAITS"
  /\ timers' = [timers EXCEPT ![b].running[key].kind = "FIRED"]
  /\ UNCHANGED <<vars, executor>>

\* The event of a registered timer: the timer is over, and its operation deletes the value.
RunTimeout(b, key, result) ==
  LET timer == timers[b].running[key]
      expiry == [write |-> Len(writes) + 1, key |-> key, of |-> timer.of]
  IN  /\ timer.kind = "FIRED"
      /\ Write(b, ExpiryKinds[key], result)
      /\ With(b, [timers[b] EXCEPT !.running[key] = NoTimer, !.expiries = @ \union {expiry}],
              executor[b])

\* The event of a timer that was replaced or cancelled: RejectedExecutionException.
DoesNothing(b, kind) == UNCHANGED vars
RunLateTimeout(b, key) ==
  /\ timers[b].late[key] > 0 /\ MayRun(b)
  /\ DoesNothing(b, ExpiryKinds[key])
  /\ timers' = [timers EXCEPT ![b].late[key] = @ - 1]
  /\ UNCHANGED executor

\* A thread of the pool has run the task.
RunTask(b) ==
  /\ executor[b].task.kind = "SUBMITTED"
  /\ executor' = [executor EXCEPT ![b].task.kind = "DONE"]
  /\ UNCHANGED <<vars, timers>>

\* The event with the result of a registered task. If its append fails, the result is lost.
CompleteTask(b, result) ==
  LET task == executor[b].task
  IN  /\ task.kind = "DONE"
      /\ Write(b, ResultKinds[task.input], result)
      /\ With(b, Sets(timers[b], {"k2"}, task.input), [executor[b] EXCEPT !.task = NoTask])

\* That of a task that was cancelled: nobody wants its result.
CompleteLateTask(b) ==
  /\ executor[b].late > 0 /\ MayRun(b)
  /\ DoesNothing(b, ResultKinds[1])
  /\ executor' = [executor EXCEPT ![b].late = @ - 1]
  /\ UNCHANGED timers

-------------------------------------------------------------------------------
TasksInit ==
  /\ Init
  /\ timers = [b \in Brokers |-> NoTimers] /\ executor = [b \in Brokers |-> NoTasks]

TasksNext ==
  \/ \E b \in Brokers, kind \in Kinds, result \in AppendResults : Operate(b, kind, result)
  \/ \E b \in Brokers, result \in AppendResults : Flush(b, result)
  \/ \E w \in 1..MaxWrites : OperationTimeOut(w)
  \/ \E b \in Brokers, offset \in 1..(2 * MaxWrites) : RaiseWatermark(b, offset)
  \/ \E b \in Brokers : Fetch(b)
  \/ \E b \in Brokers : TakeWatermark(b)
  \/ \E b \in Brokers : BecomeLeader(b)
  \/ Delete
  \/ \E b \in Brokers : HandleRole(b)
  \/ \E b \in Brokers, e \in 1..MaxEpochs : EndLoad(b, e)
  \/ \E b \in Brokers, key \in Keys : Fire(b, key)
  \/ \E b \in Brokers, key \in Keys, result \in AppendResults : RunTimeout(b, key, result)
  \/ \E b \in Brokers, key \in Keys : RunLateTimeout(b, key)
  \/ \E b \in Brokers : RunTask(b)
  \/ \E b \in Brokers, result \in AppendResults : CompleteTask(b, result)
  \/ \E b \in Brokers : CompleteLateTask(b)

(***************************************************************************)
(* The law of timers and tasks.                                            *)
(***************************************************************************)
TaskKinds == {"NONE", "SUBMITTED", "DONE"}
TasksTypeOK ==
  /\ TypeOK
  /\ \A b \in Brokers :
       /\ timers[b].running \in [Keys -> [kind : TimerKinds, of : 0..MaxWrites]]
       /\ timers[b].late \in [Keys -> 0..MaxWrites]
       /\ \A x \in timers[b].expiries : x.write \in DOMAIN answers /\ x.key \in Keys
       /\ executor[b].task \in [kind : TaskKinds, input : 0..MaxWrites]
       /\ executor[b].late \in 0..MaxWrites

\* No session lives for ever: who has a value has a timer.
TimersGuard ==
  \A b \in Brokers : Serves(b) /\ Sessions =>
    \A key \in Keys : shard[b].memory[key] # Tombstone => timers[b].running[key].kind # "NONE"

\* A shard that is gone does nothing later.
UnloadedIsQuiet ==
  \A b \in Brokers : state[b] # "ACTIVE" =>
    timers[b] = [NoTimers EXCEPT !.late = timers[b].late] /\ executor[b].task = NoTask

\* A timer deletes the value that it is of, and no later one.
NothingExpiresEarly ==
  [][\A b \in Brokers : \A x \in timers'[b].expiries \ timers[b].expiries :
       shard[b].memory[x.key] <= x.of]_tasksVars

\* What was cancelled or replaced changes nothing.
CancelledDoesNothing ==
  [][\A b \in Brokers :
       timers'[b].late # timers[b].late \/ executor'[b].late # executor[b].late =>
         timers'[b].running # timers[b].running \/ executor'[b].task # executor[b].task
         \/ shard'[b].memory = shard[b].memory]_tasksVars

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
LateTimeout == \E b \in Brokers, key \in Keys : state[b] = "ACTIVE" /\ timers[b].late[key] > 0
ExpiryWaits == \E b \in Brokers : timers[b].expiries # {}
LateResult == \E b \in Brokers : state[b] = "ACTIVE" /\ executor[b].late > 0
===============================================================================
