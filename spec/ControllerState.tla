--------------------------- MODULE ControllerState ----------------------------
(***************************************************************************)
(* ZooKeeper mode's controllers, the requests by which they tell brokers   *)
(* of one partition, and the brokers: constants, variables, values.        *)
(*                                                                         *)
(* A controller is named by its epoch: a broker that is elected twice      *)
(* comes here as two controllers, and so does the one that has not yet     *)
(* heard of its successor.                                                 *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Replicas,         \* the partition's assignment: brokers, in the order of preference
  LeaderEpochs,     \* 0..n
  ControllerEpochs, \* 1..n
  BrokerEpochs,     \* registrations of a broker: 0..n; {0} without restarts
  TopicIds,         \* how often the topic may be created: 1..n
  Elections,        \* leaders change without a failure
  Deletes,          \* the topic is deleted
  Restarts,         \* brokers crash and start again
  Shutdowns,        \* brokers ask for a controlled shutdown
  Reassignments,    \* replicas are taken from brokers and given back
  Losses,           \* connections between controller and broker break
  LateRequests,     \* what was sent on a broken connection may still arrive
  SendFailures,     \* a batch cannot be sent whole
  Zombies,          \* a controller may act after its successor was elected
  UsesTopicIds      \* KIP-516: LeaderAndIsr says which topic of that name

Brokers == {Replicas[i] : i \in DOMAIN Replicas}
Rank(b) == CHOOSE i \in DOMAIN Replicas : Replicas[i] = b
First(bs) == CHOOSE b \in bs : \A other \in bs : Rank(b) <= Rank(other)

(***************************************************************************)
(* The variables, and what each is in Kafka.                               *)
(*                                                                         *)
(* variable         | field                                                *)
(* -----------------+----------------------------------------------------- *)
(* registration     | ZooKeeper: the topic's id (0: there is no topic),     *)
(*                  | the partition's state node, /admin/delete_topics      *)
(* activeController | ZooKeeper: /controller_epoch                          *)
(* assigned         | ZooKeeper: who has a replica, once there is a topic   *)
(* online[b]        | the process runs and is registered                    *)
(* brokerEpoch[b]   | the epoch of its registration (KIP-380)               *)
(* context[c]       | ControllerContext; `deletedOn`: who has said that the *)
(*                  | replica is deleted                                   *)
(* batch[c]         | AbstractControllerBrokerRequestBatch's registries    *)
(* queue[c][b]      | ControllerBrokerStateInfo.messageQueue; its head is   *)
(*                  | what the RequestSendThread is about to send or sent   *)
(* channel[c][b]    | what the head of the queue has come to               *)
(* late[b]          | a request whose connection broke, still under way    *)
(* partition[b]     | ReplicaManager: Partition; fetching: a fetcher thread *)
(*                  | follows it                                           *)
(* hasLog[b]        | LogManager has the partition's log                   *)
(* seenController[b]| ReplicaManager.controllerEpoch                       *)
(* metadata[b]      | ZkMetadataCache: the partition and the live brokers  *)
(* -----------------+----------------------------------------------------- *)
(* GhostVars: an implementation does not have them.                        *)
(* topicsCreated    | how many topics were created so far                  *)
(* logTopic[b]      | to which topic the log belongs; 0: there is no log   *)
(* lastApplied[b]   | of which controller b last accepted a request        *)
(* metadataSeen[b]  | the newest that b's cache was told of the partition  *)
(* toldNew[b][t]    | how often b accepted that its replica of t is new    *)
(***************************************************************************)
VARIABLES
  registration, activeController, assigned, online, brokerEpoch,
  context, batch, queue, channel, late,
  partition, hasLog, seenController, metadata,
  topicsCreated, logTopic, lastApplied, metadataSeen, toldNew

zooKeeperVars  == <<registration, activeController, assigned>>
processVars    == <<online, brokerEpoch>>
controllerVars == <<context, batch>>
networkVars    == <<queue, channel, late>>
brokerVars     == <<partition, hasLog, seenController, metadata>>
appliedVars    == <<logTopic, lastApplied, metadataSeen, toldNew>>
GhostVars      == {"topicsCreated", "logTopic", "lastApplied", "metadataSeen", "toldNew"}

vars == <<zooKeeperVars, processVars, controllerVars, networkVars, brokerVars,
          topicsCreated, appliedVars>>

(***************************************************************************)
(* Values.                                                                 *)
(***************************************************************************)
NoLeader          == "none"
LeaderDuringDelete == "deleting"
NoEpoch           == -1
EpochDuringDelete == -2
NoTopic           == 0

NoRegistration ==
  [topicId |-> NoTopic, leader |-> NoLeader, leaderEpoch |-> NoEpoch, isr |-> {},
   deleting |-> FALSE]

NoContext ==
  [state |-> "None", topicId |-> NoTopic, leader |-> NoLeader, leaderEpoch |-> NoEpoch,
   isr |-> {}, deleting |-> FALSE, live |-> [b \in Brokers |-> NoEpoch],
   shuttingDown |-> {}, deletedOn |-> {}]

Resigned == [NoContext EXCEPT !.state = "Resigned"]

NoLeaderAndIsr ==
  [present |-> FALSE, leader |-> NoLeader, leaderEpoch |-> NoEpoch, isr |-> {},
   topicId |-> NoTopic, isNew |-> FALSE]
NoStopReplica == [present |-> FALSE, leaderEpoch |-> NoEpoch, delete |-> FALSE]
NoPartitionInfo ==
  [present |-> FALSE, leader |-> NoLeader, leaderEpoch |-> NoEpoch, isr |-> {},
   topicId |-> NoTopic]

EmptyBatch ==
  [leaderAndIsr |-> [b \in Brokers |-> NoLeaderAndIsr],
   updateMetadata |-> {}, partitionInfo |-> NoPartitionInfo,
   stopReplica |-> [b \in Brokers |-> NoStopReplica]]

\* One shape for the three requests; `partitions`: UpdateMetadata tells of the partition.
NoRequest ==
  [type |-> "None", controllerEpoch |-> 0, brokerEpoch |-> NoEpoch,
   leader |-> NoLeader, leaderEpoch |-> NoEpoch, isr |-> {}, topicId |-> NoTopic,
   isNew |-> FALSE, delete |-> FALSE, partitions |-> FALSE, live |-> {}]

RequestTypes == {"LeaderAndIsr", "UpdateMetadata", "StopReplica"}

\* error: of the whole request; partitionError: of the partition in it.
NoAnswer == [state |-> "None", error |-> "NONE", partitionError |-> "NONE"]
SentOut  == [NoAnswer EXCEPT !.state = "Sent"]

Errors == {"NONE", "STALE_CONTROLLER_EPOCH", "STALE_BROKER_EPOCH", "FENCED_LEADER_EPOCH",
           "INCONSISTENT_TOPIC_ID"}

NoPartition ==
  [present |-> FALSE, leader |-> NoLeader, leaderEpoch |-> NoEpoch, isr |-> {},
   topicId |-> NoTopic, fetching |-> FALSE]

\* What a cache knows of the partition, and who is alive.
NoMetadata ==
  [present |-> FALSE, leader |-> NoLeader, leaderEpoch |-> NoEpoch, isr |-> {},
   topicId |-> NoTopic, live |-> {}]
NothingSeen == [topicId |-> NoTopic, deleting |-> FALSE, leaderEpoch |-> NoEpoch]

LiveOrShuttingDown(x) == {b \in Brokers : x.live[b] # NoEpoch}
Live(x) == LiveOrShuttingDown(x) \ x.shuttingDown
IsActive(c) == context[c].state = "Active"
Exists(x) == x.topicId # NoTopic

\* The first controller is elected and has told everybody who is alive.
Init ==
  /\ registration = NoRegistration
  /\ activeController = 1
  /\ assigned       = Brokers
  /\ online         = [b \in Brokers |-> TRUE]
  /\ brokerEpoch    = [b \in Brokers |-> 0]
  /\ context        = [c \in ControllerEpochs |->
       IF c = 1 THEN [NoContext EXCEPT !.state = "Active", !.live = brokerEpoch] ELSE NoContext]
  /\ batch          = [c \in ControllerEpochs |-> EmptyBatch]
  /\ queue          = [c \in ControllerEpochs |-> [b \in Brokers |-> <<>>]]
  /\ channel        = [c \in ControllerEpochs |-> [b \in Brokers |-> NoAnswer]]
  /\ late           = [b \in Brokers |-> NoRequest]
  /\ partition      = [b \in Brokers |-> NoPartition]
  /\ hasLog         = [b \in Brokers |-> FALSE]
  /\ seenController = [b \in Brokers |-> 1]
  /\ metadata       = [b \in Brokers |-> [NoMetadata EXCEPT !.live = Brokers]]
  /\ topicsCreated  = 0
  /\ logTopic       = [b \in Brokers |-> NoTopic]
  /\ lastApplied    = [b \in Brokers |-> 1]
  /\ metadataSeen   = [b \in Brokers |-> NothingSeen]
  /\ toldNew        = [b \in Brokers |-> [t \in TopicIds |-> 0]]
==============================================================================
