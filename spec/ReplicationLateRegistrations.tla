--------------------- MODULE ReplicationLateRegistrations ----------------------
(***************************************************************************)
(* Registrations that are applied late. Brokers of KRaft replay the        *)
(* metadata log in its order, each at its own pace: MetadataLoader         *)
(* publishes what it has replayed, BrokerMetadataPublisher hands the       *)
(* partition's registration of then to ReplicaManager.applyDelta. The      *)
(* controller may have registered others since.                            *)
(*                                                                         *)
(* In Replication.tla a leader epoch's request tells its newest            *)
(* registration. Here a leader may also be told an earlier one of the      *)
(* epoch, as long as it knows none as new; and it may hear of its ISR when *)
(* another leader is elected already. To a follower all registrations of a *)
(* leader epoch say the same.                                              *)
(***************************************************************************)
EXTENDS Replication

(***************************************************************************)
(* A model puts the next three in the place of NoLeaderAndIsr,             *)
(* LeaderAndIsrRequest and Announced. earlier: the registrations of that   *)
(* leader epoch before this one.                                           *)
(***************************************************************************)
NoRegistrations ==
  [present |-> FALSE, leader |-> NoLeader, isr |-> {}, partitionEpoch |-> 0, earlier |-> {}]

Registrations ==
  [present : BOOLEAN, leader : BrokersOrNone, isr : SUBSET Brokers,
   partitionEpoch : PartitionEpochs,
   earlier : SUBSET [isr : SUBSET Brokers, partitionEpoch : PartitionEpochs]]

\* Whether b has not come to a registration of leader epoch e yet. A broker that just started has
\* come to the newest one: MetadataLoader publishes nothing before that.
IsAhead(b, e, itsLeader, itsPartitionEpoch, epochs, partitionEpochs) ==
  /\ epochs[b] # NoEpoch
  /\ \/ e > epochs[b]
     \/ /\ e = epochs[b] /\ b = itsLeader
        /\ IsNewsOfIsr(itsPartitionEpoch, partitionEpochs[b])

AnnouncedInOrder(reg, epochs, partitionEpochs) ==
  [e \in Epochs |->
     LET old     == leaderAndIsr[e]
         current == e = reg.leaderEpoch
         latest  == IF current THEN reg ELSE old
         passed  == IF current /\ old.present /\ old.partitionEpoch # reg.partitionEpoch
                    THEN {[isr |-> old.isr, partitionEpoch |-> old.partitionEpoch]}
                    ELSE {}
         Awaits(registered) ==
           \E b \in Brokers : IsAhead(b, e, latest.leader, registered.partitionEpoch,
                                      epochs, partitionEpochs)
         starts  == \E b \in Brokers : epochs[b] = NoEpoch
     IN  IF (current /\ (starts \/ Awaits(reg))) \/ (~current /\ old.present /\ Awaits(old))
         THEN [present |-> TRUE, leader |-> latest.leader, isr |-> latest.isr,
               partitionEpoch |-> latest.partitionEpoch,
               earlier |-> {r \in old.earlier \union passed : Awaits(r)}]
         ELSE NoRegistrations]

EarlierRequest(e, r) ==
  [leader |-> leaderAndIsr[e].leader, isr |-> r.isr, partitionEpoch |-> r.partitionEpoch]

\* Partition.makeLeader of a registration p that is not the epoch's newest any longer: others of
\* the partition's replicas have been fenced since.
BecomeLeaderLate(b, e, p) ==
  /\ Receives(b, e) /\ leaderEpoch[b] # NoEpoch
  /\ \E r \in leaderAndIsr[e].earlier :
       r.partitionEpoch = p /\ LeadsAsTold(b, e, EarlierRequest(e, r))

\* The same of the leader: only the ISR.
UpdateIsrLate(l, e, p) ==
  /\ ActingLeader(l) /\ leaderAndIsr[e].present
  /\ \E r \in leaderAndIsr[e].earlier :
       r.partitionEpoch = p /\ AdoptsIsr(l, e, EarlierRequest(e, r))

ApplyLate ==
  \/ \E b \in Brokers, e \in Epochs, p \in PartitionEpochs : BecomeLeaderLate(b, e, p)
  \/ \E l \in Brokers, e \in Epochs, p \in PartitionEpochs : UpdateIsrLate(l, e, p)

InOrderNext == Next \/ ApplyLate

InOrderSpec == Init /\ [][InOrderNext]_vars

\* A leader has adopted an ISR that the controller has replaced, and not heard of the next one.
LeadsByEarlierRegistration ==
  \E l \in Brokers :
    /\ TrueLeader(l) /\ leaderAndIsr[leaderEpoch[l]].present
    /\ 0 < partitionEpoch[l] /\ partitionEpoch[l] < registration.partitionEpoch
================================================================================
