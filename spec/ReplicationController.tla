------------------------ MODULE ReplicationController ------------------------
(***************************************************************************)
(* The controller. It may think that a broker failed whether or not it     *)
(* did: a zombie, a live broker that has not heard of its successor, is    *)
(* part of the protocol. LeaderAndIsr requests arrive late, never, or      *)
(* after a newer one.                                                      *)
(***************************************************************************)
EXTENDS ReplicationState

\* Partition.makeLeader lets an equal partition epoch pass, too: the leader hears of a change
\* again that AlterPartition's answer has told it. It then forgets the change that it has sent
\* since, which the controller may accept. That is not safe, see the model of it.
IsNewsOfIsr(announcedEpoch, knownEpoch) == announcedEpoch > knownEpoch

\* A broker that just started gets the state of now; requests to its former
\* incarnation carry that one's broker epoch and are dropped (KIP-380).
MayReceive(b, e, reg, epochs, partitionEpochs) ==
  IF epochs[b] = NoEpoch
  THEN e = reg.leaderEpoch
  ELSE \/ e > epochs[b]
       \/ /\ e = epochs[b] /\ e = reg.leaderEpoch /\ b = reg.leader
          /\ IsNewsOfIsr(reg.partitionEpoch, partitionEpochs[b])

\* The request of the current epoch tells the registration as it is now.
Announced(reg, epochs, partitionEpochs) ==
  [e \in Epochs |->
     IF ~ \E b \in Brokers : MayReceive(b, e, reg, epochs, partitionEpochs)
     THEN NoLeaderAndIsr
     ELSE IF e = reg.leaderEpoch
     THEN [present |-> TRUE, leader |-> reg.leader, isr |-> reg.isr,
           partitionEpoch |-> reg.partitionEpoch]
     ELSE leaderAndIsr[e]]

NextPartitionEpoch == IF TwoStepIsr THEN registration.partitionEpoch + 1 ELSE 0

Register(newLeader, e, newIsr) ==
  LET reg == [leader |-> newLeader, leaderEpoch |-> e, isr |-> newIsr,
              partitionEpoch |-> NextPartitionEpoch]
  IN  /\ NextPartitionEpoch \in PartitionEpochs
      /\ registration' = reg
      /\ leaderAndIsr' = Announced(reg, leaderEpoch, partitionEpoch)

ControllerStep ==
  UNCHANGED <<processVars, partitionVars, replicaVars, messageVars, appends>>

\* A clean election, also of the leader itself: the leader epoch is bumped.
\* PartitionStateMachine.electLeaderForPartitions; KRaft: PartitionChangeBuilder.electLeader.
ElectLeader(e, b) ==
  /\ e = registration.leaderEpoch + 1
  /\ online[b] /\ b \in registration.isr
  /\ Register(b, e, registration.isr)
  /\ ControllerStep /\ UNCHANGED <<exposed, guaranteedFrom>>

\* The controller takes b for dead: out of the ISR, l leads.
\* KafkaController.onBrokerFailure; KRaft: ReplicationControlManager.handleBrokerFenced.
\* ZooKeeper's controller bumps the leader epoch; from 3.6 on, KRaft's does only if b was
\* the leader (KAFKA-15021), and so it is here where AlterPartition is modelled.
FenceBroker(e, b, l) ==
  /\ e = registration.leaderEpoch + (IF TwoStepIsr /\ b # registration.leader THEN 0 ELSE 1)
  /\ b \in registration.isr /\ l \in registration.isr \ {b} /\ online[l]
  /\ b # registration.leader => l = registration.leader
  /\ Register(l, e, registration.isr \ {b})
  /\ ControllerStep /\ UNCHANGED <<exposed, guaranteedFrom>>

\* A broker's session may expire although it runs: it is late with its heartbeats
\* (BrokerHeartbeatManager, ReplicationControlManager.handleBrokerFenced). Here nobody's does where
\* that leaves a partition without a leader, unless a model says otherwise.
SessionsExpire == FALSE

\* The leader is taken for dead, and so is everybody in the ISR: no leader; the last member stays
\* in the ISR. PartitionStateMachine: OfflinePartition; KRaft: leader -1 (NO_LEADER). Who runs
\* leads on, in its old epoch, until it hears of it.
TakeOffline(e, b) ==
  /\ Crashes \/ SessionsExpire
  /\ e = registration.leaderEpoch + 1
  /\ b = registration.leader
  /\ \A m \in registration.isr : SessionsExpire \/ ~online[m]
  /\ Register(NoLeader, e, IF registration.isr = {b} THEN {b} ELSE registration.isr \ {b})
  /\ ControllerStep /\ UNCHANGED <<exposed, guaranteedFrom>>

\* A live replica outside the ISR leads, and is the ISR. Nothing that was exposed
\* before, or is still exposed by leaders of older epochs, is owed any longer.
\* OfflinePartitionLeaderElectionStrategy with unclean.leader.election.enable.
ElectUncleanLeader(e, b) ==
  /\ UncleanElection
  /\ e = registration.leaderEpoch + 1
  /\ online[b] /\ b \notin registration.isr
  /\ Register(b, e, {b})
  /\ guaranteedFrom' = e
  /\ exposed' = {}
  /\ ControllerStep
==============================================================================
