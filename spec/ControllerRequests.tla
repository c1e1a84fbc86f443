-------------------------- MODULE ControllerRequests --------------------------
(***************************************************************************)
(* What must hold of a controller's requests to brokers, and what each     *)
(* formula means to somebody who runs a cluster.                           *)
(***************************************************************************)
EXTENDS ControllerProtocol

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
LeadersOrNone == Brokers \union {NoLeader, LeaderDuringDelete}
EpochsOrNone  == LeaderEpochs \union {NoEpoch, EpochDuringDelete}
TopicsOrNone  == TopicIds \union {NoTopic}

RequestOK(m) ==
  /\ m.type \in RequestTypes
  /\ m.controllerEpoch \in ControllerEpochs /\ m.brokerEpoch \in BrokerEpochs
  /\ m.leader \in LeadersOrNone /\ m.leaderEpoch \in EpochsOrNone
  /\ m.isr \subseteq Brokers /\ m.topicId \in TopicsOrNone
  /\ m.isNew \in BOOLEAN /\ m.delete \in BOOLEAN
  /\ m.partitions \in BOOLEAN /\ m.live \subseteq Brokers

TypeOK ==
  /\ registration.topicId \in TopicsOrNone /\ registration.leader \in LeadersOrNone
  /\ activeController \in ControllerEpochs /\ assigned \subseteq Brokers
  /\ \A b \in Brokers :
       /\ online[b] \in BOOLEAN /\ brokerEpoch[b] \in BrokerEpochs
       /\ hasLog[b] \in BOOLEAN /\ hasLog[b] = (logTopic[b] # NoTopic)
       /\ partition[b].present => hasLog[b]
       /\ partition[b].fetching => partition[b].present
       /\ partition[b].leader \in LeadersOrNone \ {LeaderDuringDelete}
       /\ metadata[b].live \subseteq Brokers
       /\ seenController[b] \in ControllerEpochs \union {0}
       /\ late[b] = NoRequest \/ RequestOK(late[b])
  /\ \A c \in ControllerEpochs :
       /\ context[c].state \in {"None", "Active", "Failed", "Resigned"}
       /\ context[c].deletedOn \subseteq Brokers
       /\ \A b \in Brokers :
            /\ \A i \in DOMAIN queue[c][b] : RequestOK(queue[c][b][i])
            /\ channel[c][b].state \in {"None", "Sent", "Answered"}
            /\ channel[c][b].error \in Errors /\ channel[c][b].partitionError \in Errors
            /\ channel[c][b].state # "None" => queue[c][b] # <<>>

(***************************************************************************)
(* No state change is lost: once a broker has handled what the controller  *)
(* has for it on the way, it is what the controller believes. What is on   *)
(* the way is what it handles now, its queue, and the batch.               *)
(***************************************************************************)
OnItsWay(c, b) == queue[c][b] \o AllRequests(c, context[c], batch[c], b)

Governs(c, b) == c = activeController /\ IsActive(c) /\ IsRegistered(c, b)

HostsAsTold(k, x, b) ==
  IF ~Exists(x) \/ x.deleting \/ b \notin assigned
  THEN ~k.partition.present /\ ~k.hasLog
  ELSE /\ k.partition.present
       /\ k.partition.leaderEpoch = x.leaderEpoch
       /\ k.partition.leader = x.leader
       /\ k.partition.topicId = x.topicId
       /\ k.partition.leader = b => k.partition.isr = x.isr
       /\ k.partition.fetching = (x.leader \notin {b, NoLeader})

KnowsAsTold(k, x) ==
  /\ k.metadata.live = LiveOrShuttingDown(x)
  /\ IF ~Exists(x) \/ x.deleting
     THEN ~k.metadata.present
     ELSE /\ k.metadata.present
          /\ k.metadata.leader = x.leader /\ k.metadata.leaderEpoch = x.leaderEpoch
          /\ k.metadata.isr = x.isr /\ k.metadata.topicId = x.topicId

\* A broker that is shutting down is told no more of what it does not lead.
NoStateChangeIsLost ==
  \A c \in ControllerEpochs, b \in Brokers :
    Governs(c, b) =>
      LET k == AppliedAll(Broker(b), b, OnItsWay(c, b))
          x == context[c]
      IN  /\ b \notin x.shuttingDown => HostsAsTold(k, x, b)
          /\ KnowsAsTold(k, x)

\* A batch that could not be sent whole keeps the rest: the next newBatch finds it.
FailedBatchIsKept ==
  \A c \in ControllerEpochs : context[c].state = "Failed" => batch[c] # EmptyBatch

\* LeaderAndIsr and UpdateMetadata of one batch name one leader epoch, or clients
\* are refused by the leader that they were sent to (KAFKA-9212).
EpochsOfABatchAgree ==
  \A c \in ControllerEpochs, b \in Brokers :
    LET told == batch[c].leaderAndIsr[b]
        info == batch[c].partitionInfo
    IN  told.present => info.present /\ info.leaderEpoch >= told.leaderEpoch
                        /\ info.topicId = told.topicId

(***************************************************************************)
(* Brokers and their former controllers.                                   *)
(***************************************************************************)
SameLife(b) == online[b] /\ online'[b]

\* Nobody obeys a controller after having obeyed its successor.
BrokersFollowTheNewestController ==
  [][\A b \in Brokers : SameLife(b) => /\ lastApplied'[b] >= lastApplied[b]
                                       /\ seenController'[b] >= seenController[b]]_vars

\* A broker has heard nothing of a controller that does not know that it started again
\* (KIP-380): what that one had to say is about the life before.
FormerLivesAreNotObeyed ==
  \A b \in Brokers, c \in ControllerEpochs :
    online[b] /\ seenController[b] = c /\ IsActive(c) => context[c].live[b] = brokerEpoch[b]

\* The leader epoch by which a broker acts never falls, as long as it hosts the topic.
LeaderEpochsNeverFall ==
  [][\A b \in Brokers :
       SameLife(b) /\ partition[b].present /\ partition'[b].present
       /\ partition'[b].topicId = partition[b].topicId
         => partition'[b].leaderEpoch >= partition[b].leaderEpoch]_vars

\* A request that speaks of a topic which was deleted since does not replace the replica of the
\* topic that has its name now (KIP-516).
HostedTopicNeverGoesBack ==
  [][\A b \in Brokers :
       SameLife(b) /\ partition[b].present /\ partition'[b].present
         => partition'[b].topicId >= partition[b].topicId]_vars

\* A replica that was deleted does not come back: not that of a topic that there is no
\* more, nor that of one that goes, once the broker has said so.
StoppedReplicaStaysStopped ==
  /\ \A b \in Brokers : partition[b].present => partition[b].topicId = registration.topicId
  /\ \A b \in Brokers : b \in context[activeController].deletedOn =>
                          ~partition[b].present /\ ~hasLog[b]

\* A replica that was taken away may still go as long as its broker has not heard that it is back.
ReturnIsOnItsWay(b) == Reassignments /\ partition[b].leaderEpoch < registration.leaderEpoch

\* Nobody deletes a replica of a topic that is not being deleted, unless it was taken from him
\* (KAFKA-9539, KIP-570).
NoLiveReplicaIsDeleted ==
  [][\A b \in Brokers : logTopic[b] # NoTopic /\ logTopic'[b] = NoTopic
       => \/ registration.deleting \/ logTopic[b] # registration.topicId
          \/ b \notin assigned \/ ReturnIsOnItsWay(b)]_vars

(***************************************************************************)
(* Metadata: what clients are told does not go back to an older leader, or *)
(* to a topic that is gone.                                                *)
(***************************************************************************)
NotOlder(old, new) ==
  \/ new.topicId > old.topicId
  \/ /\ new.topicId = old.topicId
     /\ new.leaderEpoch >= old.leaderEpoch
     /\ old.deleting => new.deleting

MetadataNeverGoesBack ==
  [][\A b \in Brokers : SameLife(b) => NotOlder(metadataSeen[b], metadataSeen'[b])]_vars

(***************************************************************************)
(* A replica is new once. A broker whose directory failed must not be told *)
(* that the replica in it is new: it would make an empty one elsewhere.    *)
(***************************************************************************)
IsNewOnlyOnce == \A b \in Brokers, t \in TopicIds : toldNew[b][t] <= 1

\* Who is to learn that its replica is new does, whatever else the batch says of it.
IsNewIsKept ==
  [][\A c \in ControllerEpochs, b \in Brokers :
       (batch[c].leaderAndIsr[b].isNew /\ batch'[c].leaderAndIsr[b].present
        /\ batch'[c].leaderAndIsr[b].topicId = batch[c].leaderAndIsr[b].topicId)
         => batch'[c].leaderAndIsr[b].isNew]_vars

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
TwoControllersSpeak ==
  \E c \in ControllerEpochs, b \in Brokers :
    c < activeController /\ channel[c][b].state = "Sent"
SuccessorWasHeardFirst ==
  \E c \in ControllerEpochs, b \in Brokers :
    channel[c][b].state = "Sent" /\ Head(queue[c][b]).controllerEpoch < seenController[b]
FormerLifeIsAddressed ==
  \E c \in ControllerEpochs, b \in Brokers :
    channel[c][b].state = "Sent" /\ Head(queue[c][b]).brokerEpoch < brokerEpoch[b]
DeletionIsHalfDone ==
  \E b \in Brokers : registration.deleting /\ hasLog[b] /\ \E o \in Brokers : ~hasLog[o]
ReplicaIsTakenAway == registration.topicId # NoTopic /\ assigned # Brokers
TopicIsBack == registration.topicId > 1
BatchIsHalfSent ==
  \E c \in ControllerEpochs, b \in Brokers :
    context[c].state = "Failed" /\ queue[c][b] # <<>>
NobodyLeads == registration.topicId # NoTopic /\ registration.leader = NoLeader
RequestIsLate == \E b \in Brokers : late[b] # NoRequest
==============================================================================
