------------------------- MODULE ReplicationRequests --------------------------
(***************************************************************************)
(* Requests that wait at the leader of a partition: a produce with         *)
(* acks=all until the high watermark has passed its record, a follower's   *)
(* or a consumer's fetch until there is something to read. Around it the   *)
(* replication protocol takes its steps, each under a name of its own      *)
(* here, as they may begin or end a wait.                                  *)
(*                                                                         *)
(* A request waits in a purgatory (ReplicaManager.delayedProducePurgatory, *)
(* delayedFetchPurgatory). Whoever has changed what it waits for looks at  *)
(* it afterwards, without the partition's lock: a step of its own, before  *)
(* which the broker may move on. How a purgatory works inside is told in   *)
(* DelayedOperations.tla.                                                  *)
(***************************************************************************)
EXTENDS Replication

CONSTANTS
  Producers,   \* each sends one produce of one record
  Consumers,   \* each fetches on, below the high watermark
  Acks,        \* of the produces: subset of {"1", "all"}
  MinInsync    \* min.insync.replicas; MinInsyncReplicas is this in a model

ASSUME MinInsync \in 1..Cardinality(Brokers)

\* Requests are known by the names of those who asked.
ASSUME Producers \intersect Brokers = {} /\ Consumers \intersect (Producers \union Brokers) = {}

(***************************************************************************)
(* variable    | field                                                     *)
(* ------------+---------------------------------------------------------- *)
(* produce[p]  | the Produce request of p: leader, where it waits or was   *)
(*             | answered ("none": not sent, or the broker is gone), acks  *)
(*             | ("none": not sent), answers (how many it got), and the    *)
(*             | answer's error and base_offset                            *)
(* parked[f]   | DelayedFetch of follower f: its request, the one in       *)
(*             | channel[f], was read and waits at its leader              *)
(* consumer[c] | DelayedFetch of consumer c: leader, where it waits        *)
(*             | ("none": nowhere), offset, its position; and of the last  *)
(*             | answer the error and the high watermark                   *)
(* checks[b]   | somebody at b is about to look at what waits there:       *)
(*             | "Handler", a request handler or the thread of an answer   *)
(*             | (ActionQueue, Partition.tryCompleteDelayedRequests);      *)
(*             | "StateChange", the thread of LeaderAndIsr, which still    *)
(*             | holds replicaStateChangeLock; "None"                      *)
(* ------------+---------------------------------------------------------- *)
(* produced[p] | ghost: the record that the produce has appended           *)
(* consumed[c] | ghost: the records that c has read                        *)
(* told[c]     | ghost: per leader epoch the high watermark that a leader  *)
(*             | of that epoch has told c last                             *)
(***************************************************************************)
VARIABLES produce, parked, consumer, checks, produced, consumed, told

requestVars      == <<produce, parked, consumer, checks>>
requestGhostVars == <<produced, consumed, told>>
waitVars         == <<requestVars, requestGhostVars>>
allVars          == <<vars, waitVars>>

NoProduce  == [leader |-> NoLeader, acks |-> "none", answers |-> 0, error |-> "NONE",
               baseOffset |-> NoOffset]
NoConsumer == [leader |-> NoLeader, offset |-> 0, error |-> "NONE", highWatermark |-> NoOffset]
NoRecord   == [offset |-> NoOffset, epoch |-> NoEpoch]

ProduceErrors == {"NONE", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION",
                  "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
                  "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"}

RequestsInit ==
  /\ Init
  /\ produce  = [p \in Producers |-> NoProduce]
  /\ parked   = [b \in Brokers |-> FALSE]
  /\ consumer = [c \in Consumers |-> NoConsumer]
  /\ checks   = [b \in Brokers |-> "None"]
  /\ produced = [p \in Producers |-> NoRecord]
  /\ consumed = [c \in Consumers |-> {}]
  /\ told     = [c \in Consumers |-> [e \in Epochs |-> NoOffset]]

(***************************************************************************)
(* What a waiting request waits for.                                       *)
(***************************************************************************)
ProduceWaitsAt(p, l) == produce[p].leader = l /\ produce[p].answers = 0
FetchWaitsAt(f, l)   == parked[f] /\ channel[f].leader = l
ConsumerWaitsAt(c, l) == consumer[c].leader = l

\* Partition.checkEnoughReplicasReachOffset, of the maximal ISR: "WAIT" as long as the high
\* watermark is not past the record.
IsPastRecord(hw, offset) == hw > offset
StillEnough(members)     == IsEnough(members)

Decision(leads, hw, members, offset) ==
  IF ~leads THEN "NOT_LEADER_OR_FOLLOWER"
  ELSE IF ~IsPastRecord(hw, offset) THEN "WAIT"
  ELSE IF StillEnough(members) THEN "NONE" ELSE "NOT_ENOUGH_REPLICAS_AFTER_APPEND"

Answered(q, error, baseOffset) ==
  [q EXCEPT !.answers = @ + 1, !.error = error, !.baseOffset = baseOffset]

Decided(q, decision, baseOffset) ==
  IF decision = "WAIT" THEN q ELSE Answered(q, decision, baseOffset)

DecisionAt(l, p) ==
  Decision(leader[l] = l, highWatermark[l], MaximalIsr(isr[l], pendingIsr[l]), produced[p].offset)

\* DelayedFetch.tryComplete, fetch.min.bytes being 1: the answer would be an error (cases A
\* to E), a divergence (H), or have a record (G).
HasNews(a) == a.error # "NONE" \/ a.endOffset # NoOffset \/ a.records # <<>>

\* The answer to what f has parked or sent.
AnswerNow(f) == FetchAnswer(channel[f].leader, f, channel[f])

\* Of a consumer, which reads below the high watermark (FetchIsolation.HIGH_WATERMARK).
ReadableEnd(l) == highWatermark[l]

ConsumerError(l, o) ==
  IF leaderEpoch[l] = NoEpoch THEN "UNKNOWN_TOPIC_OR_PARTITION"
  ELSE IF leader[l] # l THEN "NOT_LEADER_OR_FOLLOWER"
  ELSE IF o < logStartOffset[l] \/ o > LogEndOffset(l) THEN "OFFSET_OUT_OF_RANGE" ELSE "NONE"

\* A position above the high watermark is answered at once, with nothing: this leader has a
\* lower one than the last (DelayedFetch, case F).
ConsumerHasNews(l, o) == ConsumerError(l, o) # "NONE" \/ ReadableEnd(l) # o

ConsumerReads(l, o) ==
  IF ConsumerError(l, o) = "NONE" /\ o < ReadableEnd(l)
  THEN {[offset |-> o, epoch |-> EpochAt(l, o)]} ELSE {}

ConsumerAfter(l, q) ==
  LET error == ConsumerError(l, q.offset)
  IN  [leader |-> NoLeader, offset |-> q.offset + Cardinality(ConsumerReads(l, q.offset)),
       error |-> error, highWatermark |-> IF error = "NONE" THEN highWatermark[l] ELSE NoOffset]

ToldBy(l, c) ==
  IF ConsumerError(l, consumer[c].offset) # "NONE" THEN told[c]
  ELSE [told[c] EXCEPT ![leaderEpoch[l]] = highWatermark[l]]

(***************************************************************************)
(* Who looks again. A step that has changed something tells of it; the     *)
(* look is CheckWaiting.                                                   *)
(***************************************************************************)
Told(b, who) ==
  checks' = [checks EXCEPT ![b] = IF @ = "StateChange" THEN @ ELSE who]

\* Partition.maybeIncrementLeaderHW said that the high watermark rose.
TellsOfHighWatermark(l, who) ==
  IF highWatermark'[l] > highWatermark[l] THEN Told(l, who) ELSE UNCHANGED checks

RequestsStay     == UNCHANGED waitVars
RequestsStayBut  == UNCHANGED <<produce, parked, consumer, requestGhostVars>>

(***************************************************************************)
(* Producers. ReplicaManager.appendRecords.                                *)
(***************************************************************************)
IsEnoughToAppend(members) == IsEnough(members)

AppendError(l, acks) ==
  IF leaderEpoch[l] = NoEpoch THEN "UNKNOWN_TOPIC_OR_PARTITION"
  ELSE IF leader[l] # l THEN "NOT_LEADER_OR_FOLLOWER"
  ELSE IF acks = "all" /\ ~IsEnoughToAppend(isr[l]) THEN "NOT_ENOUGH_REPLICAS"
  ELSE "NONE"

MayProduce(l, p) == online[l] /\ produce[p].acks = "none"

SentTo(l, acks) == [NoProduce EXCEPT !.leader = l, !.acks = acks]

\* Nothing is appended.
RefuseProduce(l, p, acks) ==
  /\ MayProduce(l, p) /\ acks \in Acks
  /\ AppendError(l, acks) # "NONE"
  /\ produce' = [produce EXCEPT ![p] =
       Answered(SentTo(l, acks), AppendError(l, acks), NoOffset)]
  /\ UNCHANGED <<vars, parked, consumer, checks, requestGhostVars>>

\* acks=1 is answered after the append; acks=all now, if everything is there already (the ISR
\* is the leader), or waits. The append is an event for what waits (ActionQueue), done after it.
Produce(l, p, acks) ==
  LET o == LogEndOffset(l)
  IN  /\ MayProduce(l, p) /\ acks \in Acks
      /\ AppendError(l, acks) = "NONE"
      /\ AppendAsLeader(l, o)
      /\ produced' = [produced EXCEPT ![p] = [offset |-> o, epoch |-> leaderEpoch[l]]]
      /\ produce' = [produce EXCEPT ![p] =
           IF acks = "1" THEN Answered(SentTo(l, acks), "NONE", o)
           ELSE Decided(SentTo(l, acks),
                        Decision(TRUE, highWatermark'[l], MaximalIsr(isr[l], pendingIsr[l]), o), o)]
      /\ Told(l, "Handler")
      /\ UNCHANGED <<parked, consumer, consumed, told>>

\* DelayedProduce.onExpiration: request.timeout.ms has passed.
MayExpire(q) == q.leader # NoLeader /\ q.answers = 0

ExpireProduce(p) ==
  /\ MayExpire(produce[p])
  /\ produce' = [produce EXCEPT ![p] = Answered(@, "REQUEST_TIMED_OUT", produced[p].offset)]
  /\ UNCHANGED <<vars, parked, consumer, checks, requestGhostVars>>

(***************************************************************************)
(* Followers. ReplicaManager.fetchMessages: the read counts at once, the   *)
(* answer waits for news.                                                  *)
(***************************************************************************)
AnswersFetch(l, f) ==
  /\ ~parked[f] /\ channel[f].type = "FetchRequest" /\ HasNews(AnswerNow(f))
  /\ HandleFetch(l, f)
  /\ TellsOfHighWatermark(l, "Handler") /\ RequestsStayBut

\* The acknowledgement does not wait.
CountsOnArrival(l, f) == LeaderAfterFetch(l, f, channel[f], AnswerNow(f))
FollowersOnArrival(l, f) == FollowersAtLeader(l, f, channel[f], AnswerNow(f))

ParkFetch(l, f) ==
  /\ Fine /\ online[l]
  /\ ~parked[f] /\ channel[f].type = "FetchRequest" /\ channel[f].leader = l
  /\ ~HasNews(AnswerNow(f))
  /\ parked' = [parked EXCEPT ![f] = TRUE]
  /\ followerState' = [followerState EXCEPT ![l] = FollowersOnArrival(l, f)]
  /\ SetReplica(l, CountsOnArrival(l, f))
  /\ Expose(CountsOnArrival(l, f), leaderEpoch[l])
  /\ TellsOfHighWatermark(l, "Handler")
  /\ UNCHANGED <<controllerVars, processVars, leaderEpoch, leader, isr, partitionEpoch,
                 pendingIsr, messageVars, appends, guaranteedFrom,
                 produce, consumer, requestGhostVars>>

\* DelayedFetch.onExpiration: fetch.max.wait.ms has passed. What is answered is read now.
ExpireFetch(f) ==
  /\ parked[f]
  /\ parked' = [parked EXCEPT ![f] = FALSE]
  /\ Delivered(f, channel[f], AnswerNow(f))
  /\ UNCHANGED <<controllerVars, processVars, partitionVars, replicaVars, alterPartition,
                 ghostVars, produce, consumer, checks, requestGhostVars>>

(***************************************************************************)
(* Consumers.                                                              *)
(***************************************************************************)
ConsumerStep ==
  UNCHANGED <<vars, produce, parked, checks, produced>>

AnswerConsumer(l, c) ==
  /\ consumer' = [consumer EXCEPT ![c] = ConsumerAfter(l, @)]
  /\ consumed' = [consumed EXCEPT ![c] = @ \union ConsumerReads(l, consumer[c].offset)]
  /\ told' = [told EXCEPT ![c] = ToldBy(l, c)]
  /\ ConsumerStep

\* A consumer asks l, whom it takes for the leader.
FetchAsConsumer(l, c) ==
  /\ online[l] /\ consumer[c].leader = NoLeader
  /\ IF ConsumerHasNews(l, consumer[c].offset)
     THEN AnswerConsumer(l, c)
     ELSE /\ consumer' = [consumer EXCEPT ![c].leader = l]
          /\ UNCHANGED <<consumed, told>> /\ ConsumerStep

ExpireConsumerFetch(c) ==
  /\ consumer[c].leader # NoLeader
  /\ AnswerConsumer(consumer[c].leader, c)

(***************************************************************************)
(* The look at all that waits: DelayedOperationPurgatory.checkAndComplete  *)
(* of the fetch and the produce purgatory. Kafka goes over the requests    *)
(* without a lock (Watchers.tryCompleteWatched), and each of them asks the *)
(* partition for itself, so that a change may come between two of them.    *)
(* Here the look is one step. Models that override PartsOfLook let it      *)
(* answer request by request, with any steps in between: the formulas have *)
(* to hold there too.                                                      *)
(***************************************************************************)
FetchIsReady(l, f)    == FetchWaitsAt(f, l) /\ HasNews(AnswerNow(f))
ConsumerIsReady(l, c) == ConsumerWaitsAt(c, l) /\ ConsumerHasNews(l, consumer[c].offset)
ProduceIsReady(l, p)  == ProduceWaitsAt(p, l) /\ DecisionAt(l, p) # "WAIT"

\* By the names of those who asked.
Ready(l) == {p \in Producers : ProduceIsReady(l, p)} \union {f \in Brokers : FetchIsReady(l, f)}
            \union {c \in Consumers : ConsumerIsReady(l, c)}

PartsOfLook(ready) == {ready}

DeliveredTo(f, m, a) ==
  IF online[f] /\ m.brokerEpoch = brokerEpoch[f] THEN a ELSE NoMessage

CheckWaiting(l) ==
  /\ online[l] /\ checks[l] # "None"
  /\ \E part \in PartsOfLook(Ready(l)) :
       /\ checks' = IF part = Ready(l) THEN [checks EXCEPT ![l] = "None"] ELSE checks
       /\ produce' = [p \in Producers |->
            IF p \in part THEN Answered(produce[p], DecisionAt(l, p), produced[p].offset)
                          ELSE produce[p]]
       /\ parked' = [f \in Brokers |-> parked[f] /\ f \notin part]
       /\ channel' = [f \in Brokers |->
            IF f \in part THEN DeliveredTo(f, channel[f], AnswerNow(f)) ELSE channel[f]]
       /\ consumer' = [c \in Consumers |->
            IF c \in part THEN ConsumerAfter(l, consumer[c]) ELSE consumer[c]]
       /\ consumed' = [c \in Consumers |->
            IF c \in part THEN consumed[c] \union ConsumerReads(l, consumer[c].offset)
                          ELSE consumed[c]]
       /\ told' = [c \in Consumers |-> IF c \in part THEN ToldBy(l, c) ELSE told[c]]
  /\ UNCHANGED <<controllerVars, processVars, partitionVars, replicaVars, alterPartition,
                 ghostVars, produced>>

(***************************************************************************)
(* The replication protocol's own steps. LeaderAndIsr is handled under     *)
(* replicaStateChangeLock up to and including the look at what waits       *)
(* (ReplicaManager.becomeLeaderOrFollower,                                 *)
(* completeDelayedOperationsWhenNotPartitionLeader).                       *)
(***************************************************************************)
StateChangeLockIsFree(b) == checks[b] # "StateChange"

Leads(b, e) ==
  /\ StateChangeLockIsFree(b) /\ BecomeLeader(b, e)
  /\ TellsOfHighWatermark(b, "StateChange") /\ RequestsStayBut

TellsOfNewLeader(b) == Told(b, "StateChange")

Follows(b, e) ==
  /\ StateChangeLockIsFree(b) /\ BecomeFollower(b, e)
  /\ TellsOfNewLeader(b) /\ RequestsStayBut

UpdatesIsr(l, e) ==
  /\ StateChangeLockIsFree(l) /\ UpdateIsr(l, e)
  /\ TellsOfHighWatermark(l, "StateChange") /\ RequestsStayBut

\* Partition.completeAlterPartition looks after it has released the lock.
ExpandsIsr(l, f) == ExpandIsr(l, f) /\ TellsOfHighWatermark(l, "Handler") /\ RequestsStayBut
ShrinksIsr(l, f) == ShrinkIsr(l, f) /\ TellsOfHighWatermark(l, "Handler") /\ RequestsStayBut

ProcessesAlterPartition(l) ==
  ProcessAlterPartition(l) /\ TellsOfHighWatermark(l, "Handler") /\ RequestsStayBut

SubmitsExpandIsr(l, f)     == SubmitExpandIsr(l, f) /\ RequestsStay
SubmitsShrinkIsr(l, f)     == SubmitShrinkIsr(l, f) /\ RequestsStay
HandlesAlterPartition(l)   == HandleAlterPartition(l) /\ RequestsStay
Elects(e, b)               == ElectLeader(e, b) /\ RequestsStay
Fences(e, b, l)            == FenceBroker(e, b, l) /\ RequestsStay
TakesOffline(e, b)         == TakeOffline(e, b) /\ RequestsStay
ElectsUncleanly(e, b)      == ElectUncleanLeader(e, b) /\ RequestsStay
Truncates(f)               == TruncateToHighWatermark(f) /\ RequestsStay
SendsEpochRequest(f)       == SendEpochRequest(f) /\ RequestsStay
HandlesEpochRequest(l, f)  == HandleEpochRequest(l, f) /\ RequestsStay
ProcessesEpochs(f)         == ProcessEpochResponse(f) /\ RequestsStay
SendsFetch(f)              == SendFetch(f) /\ RequestsStay
ProcessesFetch(f)          == ProcessFetchResponse(f) /\ RequestsStay
HandlesListOffsets(l, f)   == HandleListOffsets(l, f) /\ RequestsStay
ProcessesListOffsets(f)    == ProcessListOffsetsResponse(f) /\ RequestsStay
Restarts(b)                == Restart(b) /\ RequestsStay

\* The follower gives a waiting request up; its leader answers into the void.
Loses(f) ==
  /\ LoseMessage(f)
  /\ parked' = [parked EXCEPT ![f] = FALSE]
  /\ UNCHANGED <<produce, consumer, checks, requestGhostVars>>

\* All that waits at b goes with it. Producers and consumers see their connection break; a
\* follower's request lies there again once b has started, or is lost.
BreaksDown(b, o, h) ==
  /\ Crash(b, o, h)
  /\ produce' = [p \in Producers |->
       IF ProduceWaitsAt(p, b)
       THEN [produce[p] EXCEPT !.leader = NoLeader, !.error = "NETWORK_EXCEPTION"]
       ELSE produce[p]]
  /\ parked' = [f \in Brokers |-> parked[f] /\ channel[f].leader # b]
  /\ consumer' = [c \in Consumers |->
       IF ConsumerWaitsAt(c, b)
       THEN [consumer[c] EXCEPT !.leader = NoLeader, !.error = "NETWORK_EXCEPTION"]
       ELSE consumer[c]]
  /\ checks' = [checks EXCEPT ![b] = "None"]
  /\ UNCHANGED requestGhostVars

RequestsNext ==
  \/ \E l \in Brokers, p \in Producers, acks \in Acks : Produce(l, p, acks)
  \/ \E l \in Brokers, p \in Producers, acks \in Acks : RefuseProduce(l, p, acks)
  \/ \E p \in Producers : ExpireProduce(p)
  \/ \E l \in Brokers, f \in Brokers : AnswersFetch(l, f)
  \/ \E l \in Brokers, f \in Brokers : ParkFetch(l, f)
  \/ \E f \in Brokers : ExpireFetch(f)
  \/ \E l \in Brokers, c \in Consumers : FetchAsConsumer(l, c)
  \/ \E c \in Consumers : ExpireConsumerFetch(c)
  \/ \E l \in Brokers : CheckWaiting(l)
  \/ \E b \in Brokers, e \in Epochs : Leads(b, e)
  \/ \E b \in Brokers, e \in Epochs : Follows(b, e)
  \/ \E l \in Brokers, e \in Epochs : UpdatesIsr(l, e)
  \/ \E l \in Brokers, f \in Brokers : ExpandsIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : ShrinksIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : SubmitsExpandIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : SubmitsShrinkIsr(l, f)
  \/ \E l \in Brokers : HandlesAlterPartition(l)
  \/ \E l \in Brokers : ProcessesAlterPartition(l)
  \/ \E e \in Epochs, b \in Brokers : Elects(e, b)
  \/ \E e \in Epochs, b \in Brokers, l \in Brokers : Fences(e, b, l)
  \/ \E e \in Epochs, b \in Brokers : TakesOffline(e, b)
  \/ \E e \in Epochs, b \in Brokers : ElectsUncleanly(e, b)
  \/ \E f \in Brokers : Truncates(f)
  \/ \E f \in Brokers : SendsEpochRequest(f)
  \/ \E l \in Brokers, f \in Brokers : HandlesEpochRequest(l, f)
  \/ \E f \in Brokers : ProcessesEpochs(f)
  \/ \E f \in Brokers : SendsFetch(f)
  \/ \E f \in Brokers : ProcessesFetch(f)
  \/ \E l \in Brokers, f \in Brokers : HandlesListOffsets(l, f)
  \/ \E f \in Brokers : ProcessesListOffsets(f)
  \/ \E f \in Brokers : Loses(f)
  \/ \E b \in Brokers, o \in Offsets, h \in Offsets : BreaksDown(b, o, h)
  \/ \E b \in Brokers : Restarts(b)

RequestsSpec == RequestsInit /\ [][RequestsNext]_allVars
==============================================================================
