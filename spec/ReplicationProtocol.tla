------------------------- MODULE ReplicationProtocol -------------------------
(***************************************************************************)
(* One partition of Kafka: the controller, leaders, followers and the      *)
(* messages between them. Crashes and the specification Spec; what must    *)
(* hold of it, and under which fairness, stands in Replication.tla, the    *)
(* root.                                                                   *)
(*                                                                         *)
(* Every choice of the environment (which broker, which epoch, what        *)
(* survives a crash) is an argument of the action: state, action and       *)
(* arguments determine the next state.                                     *)
(***************************************************************************)
EXTENDS ReplicationPartition, ReplicationRoundTrips

(***************************************************************************)
(* Crashes.                                                                *)
(***************************************************************************)

\* On disk, or deleted as the log start offset says.
StillHas(r, record) == record.offset < r.logStart \/ record \in RecordsBelow(r, LogEnd(r))

\* b stops; of its log what lies below o survives, and the checkpointed high
\* watermark is h. A fetch request that is under way may still be handled.
\* Where no ISR member runs any longer, nothing is owed but what every member still has on
\* disk: any of them may lead next, and the loss of the last member's tail is real, as is
\* that of a member which crashed before it.
Crash(b, o, h) ==
  LET r == Untracked(Recover(Replica(b), o, h))
      survivors == {m \in registration.isr \ {b} : online[m]}
      none == b \in registration.isr /\ survivors = {}
      left == {record \in exposed : \A m \in registration.isr :
                 StillHas(IF m = b THEN r ELSE Replica(m), record)}
      reg  == registration
  IN  /\ Crashes /\ online[b]
      /\ brokerEpoch[b] + 1 \in BrokerEpochs
      /\ o >= logStartOffset[b] /\ o <= LogEndOffset(b)
      /\ h >= logStartOffset[b] /\ h <= o /\ h <= highWatermark[b]
      /\ online' = [online EXCEPT ![b] = FALSE]
      /\ SetReplica(b, r)
      /\ leaderEpoch'    = [leaderEpoch EXCEPT ![b] = NoEpoch]
      /\ leader'         = [leader EXCEPT ![b] = NoLeader]
      /\ isr'            = [isr EXCEPT ![b] = {}]
      /\ partitionEpoch' = [partitionEpoch EXCEPT ![b] = 0]
      /\ pendingIsr'     = [pendingIsr EXCEPT ![b] = {}]
      /\ followerState'  = [followerState EXCEPT ![b] = [f \in Brokers |-> UnknownFollower]]
      /\ channel' = [channel EXCEPT ![b] =
           IF channel[b].type = "FetchRequest" THEN channel[b] ELSE NoMessage]
      /\ alterPartition' = [alterPartition EXCEPT ![b] = NoAlterPartition]
      /\ leaderAndIsr' = Announced(reg, [leaderEpoch EXCEPT ![b] = NoEpoch],
                                   [partitionEpoch EXCEPT ![b] = 0])
      /\ exposed' = IF none THEN left ELSE exposed
      /\ guaranteedFrom' = IF none /\ (o < LogEndOffset(b) \/ left # exposed)
                             THEN reg.leaderEpoch + 1 ELSE guaranteedFrom
      /\ UNCHANGED <<registration, brokerEpoch, appends>>

\* b registers anew: not before its former session has expired and the controller
\* has reacted, so it is out of the ISR, unless it is the last member.
Restart(b) ==
  /\ Crashes /\ ~online[b]
  /\ b \notin registration.isr \/ registration.leader = NoLeader
  /\ online' = [online EXCEPT ![b] = TRUE]
  /\ brokerEpoch' = [brokerEpoch EXCEPT ![b] = brokerEpoch[b] + 1]
  /\ UNCHANGED <<controllerVars, partitionVars, replicaVars, messageVars, ghostVars>>

(***************************************************************************)
(* The specification.                                                      *)
(***************************************************************************)
Next ==
  \/ \E e \in Epochs, b \in Brokers : ElectLeader(e, b)
  \/ \E e \in Epochs, b \in Brokers, l \in Brokers : FenceBroker(e, b, l)
  \/ \E e \in Epochs, b \in Brokers : TakeOffline(e, b)
  \/ \E e \in Epochs, b \in Brokers : ElectUncleanLeader(e, b)
  \/ \E b \in Brokers, e \in Epochs : BecomeLeader(b, e)
  \/ \E b \in Brokers, e \in Epochs : BecomeFollower(b, e)
  \/ \E l \in Brokers, o \in Offsets : AppendAsLeader(l, o)
  \/ \E l \in Brokers, o \in Offsets : AdvanceLogStartOffset(l, o)
  \/ \E l \in Brokers, f \in Brokers : ExpandIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : ShrinkIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : SubmitExpandIsr(l, f)
  \/ \E l \in Brokers, f \in Brokers : SubmitShrinkIsr(l, f)
  \/ \E l \in Brokers : HandleAlterPartition(l)
  \/ \E l \in Brokers : ProcessAlterPartition(l)
  \/ \E l \in Brokers, e \in Epochs : UpdateIsr(l, e)
  \/ \E f \in Brokers : TruncateToHighWatermark(f)
  \/ \E f \in Brokers : SendEpochRequest(f)
  \/ \E l \in Brokers, f \in Brokers : HandleEpochRequest(l, f)
  \/ \E f \in Brokers : ProcessEpochResponse(f)
  \/ \E f \in Brokers : SendFetch(f)
  \/ \E l \in Brokers, f \in Brokers : HandleFetch(l, f)
  \/ \E f \in Brokers : ProcessFetchResponse(f)
  \/ \E l \in Brokers, f \in Brokers : HandleListOffsets(l, f)
  \/ \E f \in Brokers : ProcessListOffsetsResponse(f)
  \/ \E f \in Brokers : LoseMessage(f)
  \/ \E l \in Brokers, f \in Brokers : EpochRoundTrip(l, f)
  \/ \E l \in Brokers, f \in Brokers : FetchRoundTrip(l, f)
  \/ \E l \in Brokers, f \in Brokers : ListOffsetsRoundTrip(l, f)
  \/ \E b \in Brokers, o \in Offsets, h \in Offsets : Crash(b, o, h)
  \/ \E b \in Brokers : Restart(b)

Spec == Init /\ [][Next]_vars
==============================================================================
