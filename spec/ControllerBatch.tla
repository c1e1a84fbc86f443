--------------------------- MODULE ControllerBatch ----------------------------
(***************************************************************************)
(* A controller's view and its batch, as values: what each state change    *)
(* makes of the two (s.context, s.batch), and the requests that the batch  *)
(* is sent as. Kafka: AbstractControllerBrokerRequestBatch.                *)
(***************************************************************************)
EXTENDS ControllerState

\* What the batch keeps of "this replica is new" when it is told of it again.
MergedIsNew(known, isNew) == isNew \/ known.isNew

\* The same of "delete this replica".
MergedDelete(known, delete) == delete \/ known.delete

\* addUpdateMetadataRequestForBrokers: brokers are told who is alive even if
\* nothing is said of a partition (KAFKA-1867).
ToldOfLiveBrokers(bs) == bs

\* UpdateMetadata tells what the context says at that moment.
PartitionInfo(x) ==
  [present |-> TRUE, leader |-> IF x.deleting THEN LeaderDuringDelete ELSE x.leader,
   leaderEpoch |-> x.leaderEpoch, isr |-> x.isr, topicId |-> x.topicId]

AddUpdateMetadata(s, bs) ==
  [s EXCEPT !.batch.updateMetadata = @ \union bs,
            !.batch.partitionInfo = IF Exists(s.context) THEN PartitionInfo(s.context) ELSE @]

AddLiveBrokers(s, bs) ==
  [s EXCEPT !.batch.updateMetadata = @ \union ToldOfLiveBrokers(bs)]

\* addLeaderAndIsrRequestForBrokers.
AddLeaderAndIsr(s, bs, isNew) ==
  LET x == s.context
      state(b) == [present |-> TRUE, leader |-> x.leader, leaderEpoch |-> x.leaderEpoch,
                   isr |-> x.isr, topicId |-> x.topicId,
                   isNew |-> MergedIsNew(s.batch.leaderAndIsr[b], isNew)]
  IN  AddUpdateMetadata(
        [s EXCEPT !.batch.leaderAndIsr =
           [b \in Brokers |-> IF b \in bs THEN state(b) ELSE @[b]]],
        LiveOrShuttingDown(x))

\* addStopReplicaRequestForBrokers: the leader epoch lets a broker tell that
\* the request is too late (KIP-570); a topic that goes has none any more.
EpochToStop(x) ==
  IF x.deleting THEN EpochDuringDelete ELSE IF Exists(x) THEN x.leaderEpoch ELSE NoEpoch

AddStopReplica(s, bs, delete) ==
  LET state(b) == [present |-> TRUE, leaderEpoch |-> EpochToStop(s.context),
                   delete |-> MergedDelete(s.batch.stopReplica[b], delete)]
  IN  [s EXCEPT !.batch.stopReplica =
         [b \in Brokers |-> IF b \in bs THEN state(b) ELSE @[b]]]

\* KAFKA-9212: UpdateMetadata speaks of the epoch that LeaderAndIsr speaks of,
\* since the decision is in the context before either is added.
InContext(x, leader, isr) ==
  [x EXCEPT !.leader = leader, !.leaderEpoch = @ + 1, !.isr = isr]

\* PartitionStateMachine, ReplicaStateMachine.removeReplicasFromIsr: a
\* decision of the next leader epoch, told to all that run but `untold`.
ChangeLeadership(s, leader, isr, untold) ==
  LET t == [s EXCEPT !.context = InContext(@, leader, isr)]
  IN  AddLeaderAndIsr(t, (LiveOrShuttingDown(t.context) \intersect assigned) \ untold, FALSE)

Electable(x, isr) == Live(x) \intersect isr
FirstLive(x, isr) == IF Electable(x, isr) = {} THEN NoLeader ELSE First(Electable(x, isr))

\* Out of the ISR, unless it is the last member; out of office, if it led.
TakeOut(s, b) ==
  LET x == s.context
      isr == IF x.isr = {b} THEN x.isr ELSE x.isr \ {b}
  IN  IF x.leader = b
      THEN ChangeLeadership(s, FirstLive(x, isr), isr, {})
      ELSE ChangeLeadership(s, x.leader, isr, {b})

\* KafkaController.onPartitionReassignment, phase B: somebody else leads, the ISR shrinks, and
\* who has no replica any more deletes it: OfflineReplica, then ReplicaDeletionStarted.
TakeAway(s, b) ==
  LET x == s.context
      isr == x.isr \ {b}
      leader == IF x.leader = b THEN FirstLive(x, isr) ELSE x.leader
      t == IF b \in x.isr THEN ChangeLeadership(s, leader, isr, {b}) ELSE s
  IN  AddStopReplica(AddStopReplica(t, {b}, FALSE), {b}, TRUE)

\* The same, phase A: all hear of the next leader epoch, b that its replica is new.
GiveTo(s, b) ==
  LET t == ChangeLeadership(s, s.context.leader, s.context.isr, {b})
  IN  AddLeaderAndIsr(t, {b}, TRUE)

\* TopicDeletionManager.onPartitionDeletion: OfflineReplica, then ReplicaDeletionStarted. Who
\* has deleted already is not told again (ReplicaDeletionSuccessful): its second answer might
\* be taken for one about a topic that was created since.
StopAndDelete(s, bs) ==
  LET told == (bs \intersect assigned) \ s.context.deletedOn
  IN  AddStopReplica(AddStopReplica(s, told, FALSE), told, TRUE)

\* ReplicaStateMachine: OnlineReplica. A broker that starts again has no new replica.
IsNewWhenOnline == FALSE

BringOnline(s, bs) ==
  LET x == s.context
      t == AddLeaderAndIsr(s, bs \intersect assigned, IsNewWhenOnline)
  IN  IF ~Exists(x) THEN s
      ELSE IF x.deleting THEN StopAndDelete(s, bs)
      ELSE IF x.leader = NoLeader /\ Electable(x, x.isr) # {}
      THEN ChangeLeadership(t, FirstLive(x, x.isr), x.isr, {})
      ELSE t

(***************************************************************************)
(* sendRequestsToBrokers: LeaderAndIsr, UpdateMetadata, StopReplica; to    *)
(* others than live brokers nothing is sent.                               *)
(***************************************************************************)
Header(c, x, b, type) ==
  [NoRequest EXCEPT !.type = type, !.controllerEpoch = c, !.brokerEpoch = x.live[b]]

LeaderAndIsrRequests(c, x, registries, b) ==
  LET state == registries.leaderAndIsr[b]
  IN  IF ~state.present THEN <<>>
      ELSE <<[Header(c, x, b, "LeaderAndIsr") EXCEPT
                !.leader = state.leader, !.leaderEpoch = state.leaderEpoch, !.isr = state.isr,
                !.topicId = state.topicId, !.isNew = state.isNew]>>

UpdateMetadataRequests(c, x, registries, b) ==
  LET info == registries.partitionInfo
  IN  IF b \notin registries.updateMetadata THEN <<>>
      ELSE <<[Header(c, x, b, "UpdateMetadata") EXCEPT
                !.leader = info.leader, !.leaderEpoch = info.leaderEpoch, !.isr = info.isr,
                !.topicId = info.topicId, !.partitions = info.present,
                !.live = LiveOrShuttingDown(x)]>>

StopReplicaRequests(c, x, registries, b) ==
  LET state == registries.stopReplica[b]
  IN  IF ~state.present THEN <<>>
      ELSE <<[Header(c, x, b, "StopReplica") EXCEPT
                !.leaderEpoch = state.leaderEpoch, !.delete = state.delete]>>

RequestsOf(type, c, x, registries, b) ==
  IF b \notin LiveOrShuttingDown(x) THEN <<>>
  ELSE CASE type = "LeaderAndIsr"   -> LeaderAndIsrRequests(c, x, registries, b)
         [] type = "UpdateMetadata" -> UpdateMetadataRequests(c, x, registries, b)
         [] type = "StopReplica"    -> StopReplicaRequests(c, x, registries, b)

AllRequests(c, x, registries, b) ==
  RequestsOf("LeaderAndIsr", c, x, registries, b)
  \o RequestsOf("UpdateMetadata", c, x, registries, b)
  \o RequestsOf("StopReplica", c, x, registries, b)

\* Requests of this type precede those of the other in a batch.
Precedes(type, other) ==
  \/ type = "LeaderAndIsr" /\ other # "LeaderAndIsr"
  \/ type = "UpdateMetadata" /\ other = "StopReplica"

\* Sending a request of `type` to `broken` throws: b got what was sent before.
SentBefore(type, broken, c, x, registries, b) ==
  LET part(t) == IF Precedes(t, type) \/ (t = type /\ Rank(b) < Rank(broken))
                 THEN RequestsOf(t, c, x, registries, b) ELSE <<>>
  IN  part("LeaderAndIsr") \o part("UpdateMetadata") \o part("StopReplica")

\* What such a failure leaves: registries are cleared one by one, each after all of its
\* requests were sent.
LeftAfterFailure(registries, type) ==
  LET sent(t) == Precedes(t, type)
  IN  [leaderAndIsr   |-> IF sent("LeaderAndIsr") THEN EmptyBatch.leaderAndIsr
                          ELSE registries.leaderAndIsr,
       updateMetadata |-> IF sent("UpdateMetadata") THEN {} ELSE registries.updateMetadata,
       partitionInfo  |-> IF sent("UpdateMetadata") THEN NoPartitionInfo
                          ELSE registries.partitionInfo,
       stopReplica    |-> registries.stopReplica]
==============================================================================
