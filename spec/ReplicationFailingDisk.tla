------------------------ MODULE ReplicationFailingDisk -------------------------
(***************************************************************************)
(* A disk that fails. What the broker was about to write is not written;   *)
(* from then on its log directory is offline (KIP-112): it hosts the       *)
(* partition no longer, answers for it with KAFKA_STORAGE_ERROR, and takes *)
(* over no decision, until its process starts again on a disk that works.  *)
(*                                                                         *)
(* In Replication.tla every write succeeds. Here a model says whose disks  *)
(* may fail, and puts ReceivesOnline in the place of Receives and          *)
(* ErrorOfDirectory in that of LeaderError.                                *)
(*                                                                         *)
(* A directory that is offline shows as fetchState[b] = "Offline"; log,    *)
(* logStartOffset, highWatermark and epochCache are then what a process    *)
(* that starts on the disk finds.                                          *)
(***************************************************************************)
EXTENDS Replication

CONSTANT FailingBrokers  \* whose disks may fail

Offline(b) == fetchState[b] = "Offline"

(***************************************************************************)
(* In the place of operators of the modules below.                         *)
(***************************************************************************)

\* ReplicaManager.becomeLeaderOrFollower: of a partition that is offline nothing is taken over,
\* KAFKA_STORAGE_ERROR. Without that a broker would have the new epoch and no log for it, and
\* refuse the same decision as old when the disk is back.
TakesDecisions(b) == ~Offline(b)

ReceivesOnline(b, e) ==
  /\ TakesDecisions(b)
  /\ online[b] /\ ~HoldsPartitionMapLock(b)
  /\ leaderAndIsr[e].present
  /\ e > leaderEpoch[b]
  /\ leaderEpoch[b] = NoEpoch => e = registration.leaderEpoch

\* ReplicaManager.getPartitionOrError, then Partition.checkCurrentLeaderEpoch.
ErrorOfDirectory(l, m, fence) ==
  IF Offline(l) THEN "KAFKA_STORAGE_ERROR"
  ELSE IF leaderEpoch[l] = NoEpoch THEN "UNKNOWN_TOPIC_OR_PARTITION"
  ELSE IF ~fence
  THEN IF m.currentLeaderEpoch < leaderEpoch[l] THEN "FENCED_LEADER_EPOCH"
                                                ELSE "UNKNOWN_LEADER_EPOCH"
  ELSE IF leader[l] # l THEN "NOT_LEADER_OR_FOLLOWER" ELSE "NONE"

(***************************************************************************)
(* The disk fails at a write.                                              *)
(***************************************************************************)

\* ReplicaManager.handleLogDirFailure: the fetcher lets the partition go, and the broker forgets
\* it. The checkpoint on the disk says h; nothing that was written is lost.
GoesOffline(b, h) ==
  /\ b \in FailingBrokers /\ online[b] /\ ~Offline(b)
  /\ brokerEpoch[b] + 1 \in BrokerEpochs
  /\ h >= logStartOffset[b] /\ h <= highWatermark[b]
  /\ SetReplica(b, [Recover(Replica(b), LogEndOffset(b), h) EXCEPT !.state = "Offline",
                                                                   !.offset = 0])
  /\ leaderEpoch'    = [leaderEpoch EXCEPT ![b] = NoEpoch]
  /\ leader'         = [leader EXCEPT ![b] = NoLeader]
  /\ isr'            = [isr EXCEPT ![b] = {}]
  /\ partitionEpoch' = [partitionEpoch EXCEPT ![b] = 0]
  /\ pendingIsr'     = [pendingIsr EXCEPT ![b] = {}]
  /\ followerState'  = [followerState EXCEPT ![b] = [f \in Brokers |-> UnknownFollower]]
  /\ leaderAndIsr'   = Announced(registration, leaderEpoch', partitionEpoch')
  /\ UNCHANGED <<registration, processVars, alterPartition, ghostVars>>

\* Partition.appendRecordsToLeader: the producer is told, and the log has nothing of it.
FailToAppend(l, h) ==
  /\ ActingLeader(l) /\ LogEndOffset(l) + 1 \in Offsets
  /\ appends + 1 \in AppendCounts
  /\ GoesOffline(l, h)
  /\ UNCHANGED channel

\* Partition.makeLeader has to write where its epoch begins (LeaderEpochFileCache.assign), and
\* cannot.
FailToLead(b, e, h) ==
  /\ ReceivesOnline(b, e) /\ leaderAndIsr[e].leader = b
  /\ AssignEpochStart(epochCache[b], e, LogEndOffset(b)) # epochCache[b]
  /\ GoesOffline(b, h)
  /\ UNCHANGED channel

\* What the answer that has arrived makes of the follower's log.
AfterAnswer(f) ==
  CASE channel[f].type = "EpochResponse" -> AfterEpochResponse(f, channel[f])
    [] channel[f].type = "FetchResponse" -> AfterFetchResponse(f, channel[f])
    [] OTHER -> Replica(f)

\* AbstractFetcherThread.processFetchRequest or doTruncate: the append or the truncation fails,
\* and so does the partition (markPartitionFailed); then LogDirFailureHandler hears of it.
FailToProcess(f, h) ==
  /\ \/ AfterAnswer(f).log # log[f]
     \/ AfterAnswer(f).cache # epochCache[f]
  /\ GoesOffline(f, h)
  /\ channel' = [channel EXCEPT ![f] = NoMessage]

\* ReplicaManager.checkpointHighWatermarks, at any time: the checkpoint stays as it was.
FailToCheckpoint(b, h) == GoesOffline(b, h) /\ UNCHANGED channel

\* ReplicaManager.becomeLeaderOrFollower refuses, and remembers nothing of the decision.
RefuseDecision(b, e) ==
  /\ Offline(b) /\ ~TakesDecisions(b)
  /\ leaderAndIsr[e].present /\ e = registration.leaderEpoch
  /\ UNCHANGED vars

(***************************************************************************)
(* The broker starts again on a disk that works.                           *)
(***************************************************************************)

\* Not before the controller has taken it out of the ISR. A fetch request that is under way may
\* still be handled.
StartAgain(b) ==
  /\ Offline(b) /\ b \notin registration.isr
  /\ fetchState'  = [fetchState EXCEPT ![b] = "None"]
  /\ brokerEpoch' = [brokerEpoch EXCEPT ![b] = brokerEpoch[b] + 1]
  /\ channel' = [channel EXCEPT ![b] =
       IF channel[b].type = "FetchRequest" THEN channel[b] ELSE NoMessage]
  /\ UNCHANGED <<controllerVars, partitionVars, log, logStartOffset, highWatermark, epochCache,
                 fetchOffset, online, alterPartition, ghostVars>>

DiskNext ==
  \/ Next
  \/ \E l \in Brokers, h \in Offsets : FailToAppend(l, h)
  \/ \E b \in Brokers, e \in Epochs, h \in Offsets : FailToLead(b, e, h)
  \/ \E f \in Brokers, h \in Offsets : FailToProcess(f, h)
  \/ \E b \in Brokers, h \in Offsets : FailToCheckpoint(b, h)
  \/ \E b \in Brokers, e \in Epochs : RefuseDecision(b, e)
  \/ \E b \in Brokers : StartAgain(b)

(***************************************************************************)
(* What must hold, beside the formulas of Replication.tla.                 *)
(***************************************************************************)

\* In the place of TypeOK, of what may have other values here.
DisksTypeOK ==
  /\ fetchState \in [Brokers -> {"None", "Truncating", "Fetching", "Failed", "Offline"}]
  /\ \A f \in Brokers : channel[f].error \in Errors \union {"KAFKA_STORAGE_ERROR"}

\* A broker without its directory neither leads nor follows: clients find no leader there.
OfflineHostsNothing ==
  \A b \in Brokers : Offline(b) => leaderEpoch[b] = NoEpoch /\ leader[b] = NoLeader

\* It takes no part until it starts again: not even for the decision at which its disk failed.
OfflineUntilItStarts ==
  [][\A b \in Brokers : Offline(b) => Offline(b)' \/ brokerEpoch'[b] > brokerEpoch[b]]_vars

\* Nothing is written to a directory that is offline.
OfflineIsUntouched ==
  [][\A b \in Brokers : Offline(b) /\ Offline(b)' =>
       log'[b] = log[b] /\ epochCache'[b] = epochCache[b]]_vars

\* The next start finds all that was written before.
StartFindsTheLog ==
  [][\A b \in Brokers : Offline(b)' # Offline(b) => log'[b] = log[b]]_vars

\* Where replicas are fetched from: as FetchedIffFollower, of brokers that host the partition.
HostedIsFetchedIffFollower ==
  \A b \in Brokers : ~Offline(b) =>
    ((fetchState[b] = "None") <=> (ActingLeader(b) \/ leader[b] = NoLeader))

(***************************************************************************)
(* Situations.                                                             *)
(***************************************************************************)

OfflineIsAsked ==
  \E f \in Brokers : channel[f].error = "KAFKA_STORAGE_ERROR"

RepairedIsInIsr ==
  \E b \in registration.isr : brokerEpoch[b] > 0
================================================================================
