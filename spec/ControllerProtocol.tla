-------------------------- MODULE ControllerProtocol --------------------------
(***************************************************************************)
(* The steps: of controllers, of their sending threads, of brokers and of  *)
(* what may go wrong. What must hold stands in ControllerRequests.tla.     *)
(***************************************************************************)
EXTENDS ControllerBroker

BrokersStay == UNCHANGED <<processVars, brokerVars, appliedVars>>
NetworkStays == UNCHANGED networkVars

View(c) == [context |-> context[c], batch |-> batch[c]]

\* Only the elected controller may write to ZooKeeper (KAFKA-6082). Who was replaced and
\* has not heard of it goes on with what needs no writing.
MayWrite(c) == c = activeController
MayAct(c) == IsActive(c) /\ (MayWrite(c) \/ Zombies)

Decision(x) ==
  [topicId |-> x.topicId, leader |-> x.leader, leaderEpoch |-> x.leaderEpoch, isr |-> x.isr,
   deleting |-> x.deleting]

\* c makes state changes: its view, its batch, and what ZooKeeper is told.
MakesFor(c, s, replicas) ==
  /\ s.context.leaderEpoch \in LeaderEpochs \union {NoEpoch}
  /\ context' = [context EXCEPT ![c] = s.context]
  /\ batch'   = [batch EXCEPT ![c] = s.batch]
  /\ assigned' = replicas
  /\ UNCHANGED activeController
  /\ IF Decision(s.context) = Decision(context[c])
     THEN UNCHANGED registration
     ELSE MayWrite(c) /\ registration' = Decision(s.context)

Makes(c, s) == MakesFor(c, s, assigned)

\* A request whose connection broke may still be under way. One is enough.
StillUnderWay(c, b) ==
  IF LateRequests /\ channel[c][b].state = "Sent" /\ late[b] = NoRequest
  THEN Head(queue[c][b]) ELSE late[b]

\* ControllerChannelManager.removeBroker: what is queued for b is dropped.
Drops(c, b) ==
  /\ queue'   = [queue EXCEPT ![c][b] = <<>>]
  /\ channel' = [channel EXCEPT ![c][b] = NoAnswer]
  /\ late'    = [late EXCEPT ![b] = StillUnderWay(c, b)]

(***************************************************************************)
(* State changes of the partition. Several may be gathered in one batch.   *)
(***************************************************************************)

\* KafkaController.onNewPartitionCreation. The live replicas are the first ISR.
CreateTopic(c) ==
  LET isr == Live(context[c])
      x == [context[c] EXCEPT !.topicId = topicsCreated + 1, !.leader = First(isr),
                              !.leaderEpoch = 0, !.isr = isr, !.deletedOn = {}]
  IN  /\ MayAct(c) /\ MayWrite(c) /\ ~Exists(context[c])
      /\ topicsCreated + 1 \in TopicIds /\ isr # {}
      /\ topicsCreated' = topicsCreated + 1
      /\ Makes(c, AddLeaderAndIsr([context |-> x, batch |-> batch[c]], isr, TRUE))
      /\ BrokersStay /\ NetworkStays

\* PartitionStateMachine.electLeaderForPartitions, updateLeaderEpochAndSendRequest:
\* a preferred election, a reassignment; the leader may be the one that there is.
ElectLeader(c, l) ==
  /\ Elections /\ MayAct(c) /\ MayWrite(c)
  /\ Exists(context[c]) /\ ~context[c].deleting
  /\ l \in Electable(context[c], context[c].isr)
  /\ Makes(c, ChangeLeadership(View(c), l, context[c].isr, {}))
  /\ BrokersStay /\ NetworkStays /\ UNCHANGED topicsCreated

\* TopicDeletionManager: clients hear that the topic goes, brokers delete it.
DeleteTopic(c) ==
  LET x == [context[c] EXCEPT !.deleting = TRUE]
      s == AddUpdateMetadata([View(c) EXCEPT !.context = x], LiveOrShuttingDown(x))
  IN  /\ Deletes /\ MayAct(c) /\ MayWrite(c)
      /\ Exists(context[c]) /\ ~context[c].deleting
      /\ Makes(c, StopAndDelete(s, Live(x)))
      /\ BrokersStay /\ NetworkStays /\ UNCHANGED topicsCreated

\* TopicDeletionManager.completeDeleteTopic: an event of its own. In one batch with what comes
\* next, a StopReplica would follow the LeaderAndIsr of the topic's successor, and delete it.
CompleteDeletion(c) ==
  LET x == [context[c] EXCEPT !.topicId = NoTopic, !.leader = NoLeader, !.leaderEpoch = NoEpoch,
                              !.isr = {}, !.deleting = FALSE, !.deletedOn = {}]
  IN  /\ MayAct(c) /\ MayWrite(c)
      /\ context[c].deleting /\ assigned \subseteq context[c].deletedOn
      /\ batch[c] = EmptyBatch
      /\ MakesFor(c, [View(c) EXCEPT !.context = x], Brokers)
      /\ BrokersStay /\ NetworkStays /\ UNCHANGED topicsCreated

\* KafkaController.onPartitionReassignment to replicas without b, if another one can lead.
RemoveReplica(c, b) ==
  /\ Reassignments /\ MayAct(c) /\ MayWrite(c)
  /\ Exists(context[c]) /\ ~context[c].deleting
  /\ b \in assigned /\ b \in Live(context[c])
  /\ Electable(context[c], context[c].isr \ {b}) # {}
  /\ MakesFor(c, TakeAway(View(c), b), assigned \ {b})
  /\ BrokersStay /\ NetworkStays /\ UNCHANGED topicsCreated

\* The same, to replicas with b.
AddReplica(c, b) ==
  /\ Reassignments /\ MayAct(c) /\ MayWrite(c)
  /\ Exists(context[c]) /\ ~context[c].deleting
  /\ b \notin assigned /\ b \in Live(context[c])
  /\ MakesFor(c, GiveTo(View(c), b), assigned \union {b})
  /\ BrokersStay /\ NetworkStays /\ UNCHANGED topicsCreated

(***************************************************************************)
(* Brokers come and go.                                                    *)
(***************************************************************************)
IsRegistered(c, b) == online[b] /\ context[c].live[b] = brokerEpoch[b]

\* KafkaController.onBrokerFailure; also of a broker that is back under another epoch,
\* which then starts up (bouncedBrokerIds).
OnBrokerFailure(c, b) ==
  LET x == [context[c] EXCEPT !.live[b] = NoEpoch, !.shuttingDown = @ \ {b}]
      s == AddLiveBrokers([View(c) EXCEPT !.context = x], LiveOrShuttingDown(x))
  IN  /\ MayAct(c)
      /\ context[c].live[b] # NoEpoch /\ ~IsRegistered(c, b)
      /\ Makes(c, IF Exists(x) /\ ~x.deleting /\ b \in x.isr \union {x.leader}
                  THEN TakeOut(s, b) ELSE s)
      /\ Drops(c, b)
      /\ BrokersStay /\ UNCHANGED topicsCreated

\* KafkaController.onBrokerStartup: the others hear of b, b hears of everything.
OnBrokerStartup(c, b) ==
  LET x == [context[c] EXCEPT !.live[b] = brokerEpoch[b]]
      s == AddUpdateMetadata(
             AddLiveBrokers([View(c) EXCEPT !.context = x], LiveOrShuttingDown(x)), {b})
  IN  /\ MayAct(c)
      /\ online[b] /\ context[c].live[b] = NoEpoch
      /\ Makes(c, BringOnline(s, {b}))
      /\ Drops(c, b)
      /\ BrokersStay /\ UNCHANGED topicsCreated

\* KafkaController.doControlledShutdown: b stops to follow, or another one leads. What it
\* leads alone it goes on leading.
ControlledShutdown(c, b) ==
  LET x == [context[c] EXCEPT !.shuttingDown = @ \union {b}]
      s == [View(c) EXCEPT !.context = x]
      t == IF x.leader = b THEN s ELSE AddStopReplica(s, {b}, FALSE)
  IN  /\ Shutdowns /\ MayAct(c) /\ MayWrite(c)
      /\ IsRegistered(c, b) /\ b \notin context[c].shuttingDown
      /\ Exists(x) /\ ~x.deleting
      /\ Makes(c, IF b \in x.isr /\ x.isr # {b} THEN TakeOut(t, b) ELSE t)
      /\ BrokersStay /\ NetworkStays /\ UNCHANGED topicsCreated

\* The process dies, its connections break; of its replica the log is left.
CrashBroker(b) ==
  /\ Restarts /\ online[b] /\ brokerEpoch[b] + 1 \in BrokerEpochs
  /\ online' = [online EXCEPT ![b] = FALSE]
  /\ SetBroker(b, [Broker(b) EXCEPT
       !.partition = NoPartition, !.seenController = 0, !.metadata = NoMetadata,
       !.lastApplied = 0, !.metadataSeen = NothingSeen])
  /\ channel' = [c \in ControllerEpochs |-> [channel[c] EXCEPT ![b] = NoAnswer]]
  /\ UNCHANGED <<zooKeeperVars, controllerVars, brokerEpoch, queue, late, topicsCreated>>

RestartBroker(b) ==
  /\ ~online[b]
  /\ online' = [online EXCEPT ![b] = TRUE]
  /\ brokerEpoch' = [brokerEpoch EXCEPT ![b] = @ + 1]
  /\ UNCHANGED <<zooKeeperVars, controllerVars, networkVars, brokerVars, topicsCreated,
                 appliedVars>>

(***************************************************************************)
(* Sending.                                                                *)
(***************************************************************************)

\* ControllerBrokerRequestBatch.sendRequestsToBrokers: into the queues.
SendRequestsToBrokers(c) ==
  /\ IsActive(c) /\ batch[c] # EmptyBatch
  /\ queue' = [queue EXCEPT ![c] =
       [b \in Brokers |-> queue[c][b] \o AllRequests(c, context[c], batch[c], b)]]
  /\ batch' = [batch EXCEPT ![c] = EmptyBatch]
  /\ UNCHANGED <<zooKeeperVars, context, channel, late, topicsCreated>> /\ BrokersStay

\* What a batch keeps, and what its controller does, when the request of this type throws.
Kept(registries, type) == LeftAfterFailure(registries, type)
StateAfterFailure == "Failed"

\* Sending throws at b's request of this type. The next newBatch would find the registries
\* not empty: the controller is to give up.
FailToSend(c, type, b) ==
  /\ SendFailures /\ IsActive(c)
  /\ RequestsOf(type, c, context[c], batch[c], b) # <<>>
  /\ queue' = [queue EXCEPT ![c] =
       [x \in Brokers |-> queue[c][x] \o SentBefore(type, b, c, context[c], batch[c], x)]]
  /\ batch' = [batch EXCEPT ![c] = Kept(batch[c], type)]
  /\ context' = [context EXCEPT ![c].state = StateAfterFailure]
  /\ UNCHANGED <<zooKeeperVars, channel, late, topicsCreated>> /\ BrokersStay

\* KafkaController.handleIllegalState; or c hears of its successor: onControllerResignation.
Resign(c) ==
  /\ \/ context[c].state = "Failed"
     \/ IsActive(c) /\ c < activeController
  /\ context' = [context EXCEPT ![c] = Resigned]
  /\ batch'   = [batch EXCEPT ![c] = EmptyBatch]
  /\ queue'   = [queue EXCEPT ![c] = [b \in Brokers |-> <<>>]]
  /\ channel' = [channel EXCEPT ![c] = [b \in Brokers |-> NoAnswer]]
  /\ late'    = [b \in Brokers |-> StillUnderWay(c, b)]
  /\ UNCHANGED <<zooKeeperVars, topicsCreated>> /\ BrokersStay

\* KafkaController.onControllerFailover: c reads ZooKeeper, and tells everybody everything.
FailOver(c) ==
  LET r == registration
      x == [NoContext EXCEPT
              !.state = "Active", !.topicId = r.topicId, !.leader = r.leader,
              !.leaderEpoch = r.leaderEpoch, !.isr = r.isr, !.deleting = r.deleting,
              !.live = [b \in Brokers |-> IF online[b] THEN brokerEpoch[b] ELSE NoEpoch]]
      s == AddUpdateMetadata([context |-> x, batch |-> EmptyBatch], LiveOrShuttingDown(x))
      t == BringOnline(s, Live(x))
  IN  /\ c = activeController + 1
      /\ t.context.leaderEpoch \in LeaderEpochs \union {NoEpoch}
      /\ activeController' = c
      /\ context' = [context EXCEPT ![c] = t.context]
      /\ batch'   = [batch EXCEPT ![c] = t.batch]
      /\ registration' = Decision(t.context)
      /\ UNCHANGED <<assigned, topicsCreated>> /\ BrokersStay /\ NetworkStays

(***************************************************************************)
(* RequestSendThread: one request at a time, again until it is answered.   *)
(***************************************************************************)

\* doWork: brokerReady, the request leaves. To a broker that is down there is no connection.
SendRequest(c, b) ==
  /\ channel[c][b] = NoAnswer /\ queue[c][b] # <<>> /\ online[b]
  /\ channel' = [channel EXCEPT ![c][b] = SentOut]
  /\ UNCHANGED <<zooKeeperVars, controllerVars, queue, late, topicsCreated>> /\ BrokersStay

\* KafkaApis.handleLeaderAndIsrRequest, handleUpdateMetadataRequest, handleStopReplicaRequest.
HandleRequest(c, b) ==
  LET m == Head(queue[c][b])
  IN  /\ channel[c][b].state = "Sent"
      /\ SetBroker(b, Applied(Broker(b), b, m))
      /\ channel' = [channel EXCEPT ![c][b] = Answer(Broker(b), b, m)]
      /\ UNCHANGED <<zooKeeperVars, processVars, controllerVars, queue, late, topicsCreated>>

\* The callback's event: TopicDeletionStopReplicaResponseReceived counts who has deleted.
Counted(x, b, m, answer) ==
  IF m.type = "StopReplica" /\ m.delete /\ x.deleting /\ answer.error = "NONE"
     /\ answer.partitionError = "NONE"
  THEN [x EXCEPT !.deletedOn = @ \union {b}] ELSE x

ProcessResponse(c, b) ==
  /\ channel[c][b].state = "Answered"
  /\ queue'   = [queue EXCEPT ![c][b] = Tail(@)]
  /\ channel' = [channel EXCEPT ![c][b] = NoAnswer]
  /\ context' = [context EXCEPT ![c] = Counted(@, b, Head(queue[c][b]), channel[c][b])]
  /\ UNCHANGED <<zooKeeperVars, batch, late, topicsCreated>> /\ BrokersStay

\* What is left to send when the connection broke after the request had left (KAFKA-1738).
LeftToSend(requests) == requests

\* The connection breaks before the answer is there; the thread reconnects.
LoseConnection(c, b) ==
  /\ Losses /\ channel[c][b] # NoAnswer
  /\ queue'   = [queue EXCEPT ![c][b] = LeftToSend(@)]
  /\ channel' = [channel EXCEPT ![c][b] = NoAnswer]
  /\ late'    = [late EXCEPT ![b] = StillUnderWay(c, b)]
  /\ UNCHANGED <<zooKeeperVars, controllerVars, topicsCreated>> /\ BrokersStay

\* It was in the broker's request queue all the time; nobody waits for the answer.
HandleLateRequest(b) ==
  /\ late[b] # NoRequest /\ online[b]
  /\ SetBroker(b, Applied(Broker(b), b, late[b]))
  /\ late' = [late EXCEPT ![b] = NoRequest]
  /\ UNCHANGED <<zooKeeperVars, processVars, controllerVars, queue, channel, topicsCreated>>

(***************************************************************************)
(* The specification.                                                      *)
(***************************************************************************)
Next ==
  \/ \E c \in ControllerEpochs : CreateTopic(c)
  \/ \E c \in ControllerEpochs, l \in Brokers : ElectLeader(c, l)
  \/ \E c \in ControllerEpochs : DeleteTopic(c)
  \/ \E c \in ControllerEpochs : CompleteDeletion(c)
  \/ \E c \in ControllerEpochs, b \in Brokers : RemoveReplica(c, b)
  \/ \E c \in ControllerEpochs, b \in Brokers : AddReplica(c, b)
  \/ \E c \in ControllerEpochs, b \in Brokers : OnBrokerFailure(c, b)
  \/ \E c \in ControllerEpochs, b \in Brokers : OnBrokerStartup(c, b)
  \/ \E c \in ControllerEpochs, b \in Brokers : ControlledShutdown(c, b)
  \/ \E b \in Brokers : CrashBroker(b)
  \/ \E b \in Brokers : RestartBroker(b)
  \/ \E c \in ControllerEpochs : SendRequestsToBrokers(c)
  \/ \E c \in ControllerEpochs, type \in RequestTypes, b \in Brokers : FailToSend(c, type, b)
  \/ \E c \in ControllerEpochs : Resign(c)
  \/ \E c \in ControllerEpochs : FailOver(c)
  \/ \E c \in ControllerEpochs, b \in Brokers : SendRequest(c, b)
  \/ \E c \in ControllerEpochs, b \in Brokers : HandleRequest(c, b)
  \/ \E c \in ControllerEpochs, b \in Brokers : ProcessResponse(c, b)
  \/ \E c \in ControllerEpochs, b \in Brokers : LoseConnection(c, b)
  \/ \E b \in Brokers : HandleLateRequest(b)

Spec == Init /\ [][Next]_vars
==============================================================================
