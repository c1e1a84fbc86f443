--------------------------- MODULE ControllerBroker ---------------------------
(***************************************************************************)
(* What a broker makes of a controller's request, as values.               *)
(* Kafka: KafkaApis, ReplicaManager, ZkMetadataCache.                      *)
(***************************************************************************)
EXTENDS ControllerBatch

Broker(b) ==
  [partition |-> partition[b], hasLog |-> hasLog[b], seenController |-> seenController[b],
   metadata |-> metadata[b], logTopic |-> logTopic[b], lastApplied |-> lastApplied[b],
   metadataSeen |-> metadataSeen[b], toldNew |-> toldNew[b]]

\* A request to a former life of the broker (KIP-380).
IsStaleBrokerEpoch(b, m) == m.brokerEpoch < brokerEpoch[b]

\* A request of a controller that was replaced.
IsStaleControllerEpoch(k, m) == m.controllerEpoch < k.seenController

RequestError(k, b, m) ==
  IF IsStaleBrokerEpoch(b, m) THEN "STALE_BROKER_EPOCH"
  ELSE IF IsStaleControllerEpoch(k, m) THEN "STALE_CONTROLLER_EPOCH"
  ELSE "NONE"

(***************************************************************************)
(* LeaderAndIsr: ReplicaManager.becomeLeaderOrFollower.                    *)
(***************************************************************************)
IsOtherTopic(p, m) == UsesTopicIds /\ p.topicId # m.topicId
IsStaleLeaderEpoch(p, m) == m.leaderEpoch <= p.leaderEpoch

LeaderAndIsrError(p, m) ==
  IF ~p.present THEN "NONE"
  ELSE IF IsOtherTopic(p, m) THEN "INCONSISTENT_TOPIC_ID"
  ELSE IF IsStaleLeaderEpoch(p, m) THEN "STALE_CONTROLLER_EPOCH"
  ELSE "NONE"

AfterLeaderAndIsr(k, b, m) ==
  [k EXCEPT
     !.partition = [present |-> TRUE, leader |-> m.leader, leaderEpoch |-> m.leaderEpoch,
                    isr |-> IF m.leader = b THEN m.isr ELSE {}, topicId |-> m.topicId,
                    fetching |-> m.leader \notin {b, NoLeader}],
     !.hasLog = TRUE,
     !.logTopic = IF k.hasLog THEN @ ELSE m.topicId,
     !.toldNew = IF m.isNew THEN [@ EXCEPT ![m.topicId] = IF @ < 2 THEN @ + 1 ELSE @] ELSE @]

(***************************************************************************)
(* StopReplica: ReplicaManager.stopReplicas. That a topic is deleted, and  *)
(* that nobody knows an epoch, is not compared with anything (KIP-570).    *)
(***************************************************************************)
IsTooLateToStop(p, m) ==
  p.present /\ m.leaderEpoch \notin {NoEpoch, EpochDuringDelete} /\ m.leaderEpoch < p.leaderEpoch

StopReplicaError(p, m) == IF IsTooLateToStop(p, m) THEN "FENCED_LEADER_EPOCH" ELSE "NONE"

AfterStopReplica(k, m) ==
  IF m.delete
  THEN [k EXCEPT !.partition = NoPartition, !.hasLog = FALSE, !.logTopic = NoTopic]
  ELSE [k EXCEPT !.partition.fetching = FALSE]

(***************************************************************************)
(* UpdateMetadata: ZkMetadataCache.updateMetadata. Only the controller's   *)
(* epoch is checked: of one controller, what comes later is newer.         *)
(***************************************************************************)
AfterUpdateMetadata(k, m) ==
  LET known == [present |-> TRUE, leader |-> m.leader, leaderEpoch |-> m.leaderEpoch,
                isr |-> m.isr, topicId |-> m.topicId, live |-> m.live]
      gone == m.leader = LeaderDuringDelete
  IN  IF ~m.partitions THEN [k EXCEPT !.metadata.live = m.live]
      ELSE [k EXCEPT
              !.metadata = IF gone THEN [NoMetadata EXCEPT !.live = m.live] ELSE known,
              !.metadataSeen = [topicId |-> m.topicId, deleting |-> gone,
                                leaderEpoch |-> m.leaderEpoch]]

(***************************************************************************)
(* Any request.                                                            *)
(***************************************************************************)
PartitionError(k, m) ==
  CASE m.type = "LeaderAndIsr"   -> LeaderAndIsrError(k.partition, m)
    [] m.type = "StopReplica"    -> StopReplicaError(k.partition, m)
    [] m.type = "UpdateMetadata" -> "NONE"

Answer(k, b, m) ==
  LET error == RequestError(k, b, m)
  IN  [state |-> "Answered", error |-> error,
       partitionError |-> IF error = "NONE" THEN PartitionError(k, m) ELSE "NONE"]

Applied(k, b, m) ==
  LET heard == [k EXCEPT !.seenController = m.controllerEpoch,
                         !.lastApplied = m.controllerEpoch]
  IN  IF RequestError(k, b, m) # "NONE" THEN k
      ELSE IF PartitionError(k, m) # "NONE" THEN heard
      ELSE CASE m.type = "LeaderAndIsr"   -> AfterLeaderAndIsr(heard, b, m)
             [] m.type = "StopReplica"    -> AfterStopReplica(heard, m)
             [] m.type = "UpdateMetadata" -> AfterUpdateMetadata(heard, m)

\* What b comes to if it handles these requests in turn.
RECURSIVE AppliedAll(_, _, _)
AppliedAll(k, b, requests) ==
  IF requests = <<>> THEN k
  ELSE AppliedAll(Applied(k, b, Head(requests)), b, Tail(requests))

SetBroker(b, k) ==
  /\ partition'      = [partition EXCEPT ![b] = k.partition]
  /\ hasLog'         = [hasLog EXCEPT ![b] = k.hasLog]
  /\ seenController' = [seenController EXCEPT ![b] = k.seenController]
  /\ metadata'       = [metadata EXCEPT ![b] = k.metadata]
  /\ logTopic'       = [logTopic EXCEPT ![b] = k.logTopic]
  /\ lastApplied'    = [lastApplied EXCEPT ![b] = k.lastApplied]
  /\ metadataSeen'   = [metadataSeen EXCEPT ![b] = k.metadataSeen]
  /\ toldNew'        = [toldNew EXCEPT ![b] = k.toldNew]
==============================================================================
