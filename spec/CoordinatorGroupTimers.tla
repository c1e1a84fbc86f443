------------------------- MODULE CoordinatorGroupTimers -------------------------
(***************************************************************************)
(* The group coordinator's shard with the session timers of its members:   *)
(* a heartbeat starts a member's timer again, a departure cancels it, a    *)
(* load makes one for each member. When its time is over, an event stands  *)
(* last in the queue: it fences the member, unless the member was heard of *)
(* meanwhile. Time may be over whenever a timer waits.                     *)
(*                                                                         *)
(* Timers are no timeline structures: a batch that fails leaves them as    *)
(* the operations have set them. A commit of offsets starts none.          *)
(*                                                                         *)
(* A static member that leaves for a while keeps its timer; who takes its  *)
(* place leaves it as it is, since the append may fail: its event finds    *)
(* nobody. Left out are rebalance timers (no member has to give its        *)
(* partition back here), and groups with classic members.                  *)
(*                                                                         *)
(* Kafka: GroupMetadataManager (scheduleConsumerGroupSessionTimeout,       *)
(* cancelTimers, consumerGroupFenceMemberOperation, onLoaded), branch 4.4. *)
(***************************************************************************)
EXTENDS CoordinatorGroups, CoordinatorTimers

CONSTANT TimedMembers   \* whose timers are seen: all members of the model

(***************************************************************************)
(* variable    | field                                                     *)
(* ------------+---------------------------------------------------------- *)
(* timers[b]   | CoordinatorTimers, by member: `of` is how many writes     *)
(*             | there were when the timer was set, its own among them     *)
(* heard       | a ghost: by write, the member whose heartbeat it was      *)
(***************************************************************************)
VARIABLES timers, heard

timedVars == <<vars, timers, heard>>

NoMember == ""
NoSessions == NoTimersOf(TimedMembers)

(***************************************************************************)
(* What operations do to timers, before their records are appended.        *)
(***************************************************************************)
IsHeartbeat(kind, s) ==
  CASE kind[1] = "heartbeat" -> kind[2] \in MembersOf(s)
    [] kind[1] = "static join" -> ~StaticJoin(s, kind[2]).throws
    [] OTHER -> kind[1] = "join"
Departs(kind, s) == kind[1] = "leave" /\ kind[2] \in MembersOf(s)

\* consumerGroupHeartbeat: the last thing that it does, for who joins and for who is there.
HeardOf(t, m, w) == Scheduled(t, m, w)

\* cancelTimers, of consumerGroupFenceMembers.
Departed(t, m) == Cancelled(t, m)

\* consumerGroupStaticMemberGroupLeave, and replaceMember.
PauseTimer(t, m) == t
ReplacedTimer(t, former) == t
SessionsOf(t, kind, s, w) ==
  CASE Departs(kind, s) -> Departed(t, kind[2])
    [] kind[1] = "pause" /\ IsStatic(s, kind[2]) -> PauseTimer(t, kind[2])
    [] IsHeartbeat(kind, s) ->
         HeardOf(IF kind[1] = "static join" /\ StaticInstance \in DOMAIN s.statics
                 THEN ReplacedTimer(t, s.statics[StaticInstance]) ELSE t, kind[2], w)
    [] OTHER -> t

\* onLoaded: each member gets its whole session time again.
AfterLoad(t, members, of) ==
  [t EXCEPT !.running = [m \in DOMAIN @ |->
     IF m \in members THEN [kind |-> "WAITS", of |-> of] ELSE NoTimer]]

\* consumerGroupFenceMemberOperation: of who is there no longer it writes nothing.
Expire(s, m) == IF m \in MembersOf(s) THEN Leave(s, m) ELSE Result(<<>>)
TimedGroupOperation(kind, w, s) ==
  IF kind[1] = "expire" THEN Expire(s, kind[2]) ELSE GroupOperation(kind, w, s)

(***************************************************************************)
(* A step of the runtime, and what it does to timers: an unload cancels    *)
(* them, a load makes them, the write of a timer that fails is tried again.*)
(***************************************************************************)
NewlyFailed ==
  {w \in DOMAIN answers' : answers'[w] \in {"error", "timeout"}
                           /\ (w \in DOMAIN answers => answers[w] = "none")}
SessionsAfter(b, t) ==
  IF state'[b] # "ACTIVE" THEN CancelledAll(t)
  ELSE IF state[b] # "ACTIVE" THEN AfterLoad(t, MembersOf(shard'[b].memory), Len(writes'))
  ELSE [Retried(t, NewlyFailed) EXCEPT !.expiries = {x \in @ : answers'[x.write] = "none"}]

\* What the operation has done to the timers of its own broker comes first.
TimersBecome(b, t) == timers' = [x \in Brokers |-> SessionsAfter(x, IF x = b THEN t ELSE timers[x])]
Follow ==
  /\ timers' = [x \in Brokers |-> SessionsAfter(x, timers[x])]
  /\ UNCHANGED heard

Operate(b, kind, result) ==
  /\ Write(b, kind, result)
  /\ TimersBecome(b, SessionsOf(timers[b], kind, shard[b].memory, NextWrite))
  /\ heard' = Append(heard, IF IsHeartbeat(kind, shard[b].memory) THEN kind[2] ELSE NoMember)

Flush(b, result) == FlushBatch(b, result) /\ Follow
OperationTimeOut(w) == TimeOut(w) /\ Follow
RaiseWatermark(b, offset) == AdvanceWatermark(b, offset) /\ Follow
Fetch(b) == Replicate(b) /\ Follow
TakeWatermark(b) == ApplyWatermark(b) /\ Follow
BecomeLeader(b) == Elect(b) /\ Follow
DeleteOffsetsTopic == DeleteTopic /\ Follow
HandleRole(b) == RunRole(b) /\ Follow
EndLoad(b, e) == CompleteLoad(b, e) /\ Follow

\* A member's session time is over: its event is queued.
Fire(b, m) ==
  /\ timers[b].running[m].kind = "WAITS"
  /\ timers' = [timers EXCEPT ![b].running[m].kind = "FIRED"]
  /\ UNCHANGED <<vars, heard>>

\* The event of a registered timer: the timer is over, and its operation fences the member.
RunTimeout(b, m, result) ==
  LET timer == timers[b].running[m]
      expiry == [write |-> NextWrite, key |-> m, of |-> timer.of]
  IN  /\ timer.kind = "FIRED"
      /\ Write(b, <<"expire", m>>, result)
      /\ TimersBecome(b, [timers[b] EXCEPT !.running[m] = NoTimer, !.expiries = @ \union {expiry}])
      /\ heard' = Append(heard, NoMember)

\* The event of a timer that was replaced or cancelled: RejectedExecutionException.
DoesNothing(b, kind) == UNCHANGED vars
RunLateTimeout(b, m) ==
  /\ timers[b].late[m] > 0 /\ MayRun(b)
  /\ DoesNothing(b, <<"expire", m>>)
  /\ timers' = [timers EXCEPT ![b].late[m] = @ - 1]
  /\ UNCHANGED heard

-------------------------------------------------------------------------------
TimedInit == Init /\ timers = [b \in Brokers |-> NoSessions] /\ heard = <<>>

TimedNext ==
  \/ \E b \in Brokers, kind \in Kinds, result \in AppendResults : Operate(b, kind, result)
  \/ \E b \in Brokers, result \in AppendResults : Flush(b, result)
  \/ \E w \in 1..MaxWrites : OperationTimeOut(w)
  \/ \E b \in Brokers, offset \in 1..(RecordsOfWrite * MaxWrites) : RaiseWatermark(b, offset)
  \/ \E b \in Brokers : Fetch(b)
  \/ \E b \in Brokers : TakeWatermark(b)
  \/ \E b \in Brokers : BecomeLeader(b)
  \/ DeleteOffsetsTopic
  \/ \E b \in Brokers : HandleRole(b)
  \/ \E b \in Brokers, e \in 1..MaxEpochs : EndLoad(b, e)
  \/ \E b \in Brokers, m \in TimedMembers : Fire(b, m)
  \/ \E b \in Brokers, m \in TimedMembers, result \in AppendResults : RunTimeout(b, m, result)
  \/ \E b \in Brokers, m \in TimedMembers : RunLateTimeout(b, m)

(***************************************************************************)
(* The law of session timers.                                              *)
(***************************************************************************)
TimedTypeOK ==
  /\ TypeOK
  /\ DOMAIN heard = DOMAIN writes /\ Range(heard) \subseteq TimedMembers \union {NoMember}
  /\ \A b \in Brokers :
       /\ timers[b].running \in [TimedMembers -> [kind : TimerKinds, of : 0..MaxWrites]]
       /\ timers[b].late \in [TimedMembers -> 0..MaxWrites]
       /\ \A x \in timers[b].expiries : x.write \in DOMAIN answers /\ x.key \in TimedMembers

\* A member that died is removed at some time: whoever is in the group has a timer, after a load too.
SessionsGuard ==
  \A b \in Brokers : Serves(b) =>
    \A m \in MembersOf(shard[b].memory) : timers[b].running[m].kind # "NONE"

\* A shard that is gone fences nobody.
UnloadedIsQuiet ==
  \A b \in Brokers : state[b] # "ACTIVE" =>
    timers[b] = [NoSessions EXCEPT !.late = timers[b].late]

\* A member whose heartbeat was taken is not removed by a timer that is older than the heartbeat.
NewsOf(b, x) ==
  {w \in DOMAIN heard : w > x.of /\ heard[w] = x.key /\ writes[w].on = b /\ answers[w] \in {"none", "ok"}}
HeardIsNotRemoved ==
  [][\A b \in Brokers : \A x \in timers'[b].expiries \ timers[b].expiries : NewsOf(b, x) = {}]_timedVars

\* The event of a timer that was cancelled or replaced changes nothing.
CancelledDoesNothing ==
  [][\A b \in Brokers :
       timers'[b].late # timers[b].late =>
         timers'[b].running # timers[b].running \/ shard'[b].memory = shard[b].memory]_timedVars

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
LateTimeout == \E b \in Brokers, m \in TimedMembers : state[b] = "ACTIVE" /\ timers[b].late[m] > 0
ExpiryWaits == \E b \in Brokers : timers[b].expiries # {}
Paused ==
  \E b \in Brokers : \E m \in MembersOf(shard[b].memory) :
    shard[b].memory.members[m].epoch = StaticLeaveEpoch
TimerOfNobody ==
  \E b \in Brokers : \E m \in TimedMembers \ MembersOf(shard[b].memory) :
    timers[b].running[m].kind # "NONE"
===============================================================================
