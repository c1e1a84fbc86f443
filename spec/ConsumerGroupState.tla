-------------------------- MODULE ConsumerGroupState --------------------------
(***************************************************************************)
(* The consumer group protocol of KIP-848, `group.protocol=consumer`: the  *)
(* coordinator's state of one group, the consumers, and the heartbeats     *)
(* between them.                                                           *)
(*                                                                         *)
(* Source: org.apache.kafka.coordinator.group, as on trunk in October 2024 *)
(* (before 4.0): GroupMetadataManager.consumerGroupHeartbeat, ConsumerGroup, *)
(* CurrentAssignmentBuilder; of the client ConsumerMembershipManager.      *)
(*                                                                         *)
(* variable        | field                                                 *)
(* ----------------+------------------------------------------------------ *)
(* groupEpoch      | ModernGroup.groupEpoch: bumped when who is in the     *)
(*                 | group changes                                         *)
(* assignmentEpoch | ModernGroup.targetAssignmentEpoch                     *)
(* target[m]       | ModernGroup.targetAssignment                          *)
(* memberState[m], | ConsumerGroupMember: state, memberEpoch,              *)
(* memberEpoch[m], | previousMemberEpoch, assignedPartitions,              *)
(* ...             | partitionsPendingRevocation; Member(m) has all five   *)
(* described[m]    | what ConsumerGroupDescribe shows as its assignment:   *)
(*                 | nothing depends on it                                 *)
(* consumer[m]     | the client: its member epoch; given: the assignment   *)
(*                 | that it was last given (currentTargetAssignment);     *)
(*                 | owned: SubscriptionState; local: what it has last     *)
(*                 | reconciled itself to (currentAssignment); named:      *)
(*                 | whether a heartbeat has said that (SentFields)        *)
(* channel[m]      | its ConsumerGroupHeartbeat request, or the answer;    *)
(*                 | named: the request has TopicPartitions; told: the     *)
(*                 | answer has an assignment                              *)
(* commit[m]       | its OffsetCommit request: member epoch, partitions;   *)
(*                 | or the answer: the partitions that were taken         *)
(* keptSince[m]    | of that request's partitions, those that the member   *)
(*                 | has kept since it was sent: nothing depends on it but *)
(*                 | what KIP-1251 learns from assignment epochs           *)
(*                                                                         *)
(* A request that names partitions has all other fields too. The client's  *)
(* has them as it joins and after a failed heartbeat only; the answer then *)
(* lacks an assignment that the consumer knows.                            *)
(* Not here: regular expressions, a topic that changes, fail-over of the   *)
(* coordinator, members of the classic protocol.                           *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Members,     \* consumers; each one's member id is its name
  InstanceOf,  \* of each: group.instance.id, or NoInstance (KIP-345)
  Partitions,
  Epochs,      \* 0..n: who is in the group changes n times at most
  Losses,      \* requests and answers may be lost
  Expiries,    \* session and rebalance time-outs
  Leaves,      \* consumers close
  Commits,     \* consumers commit what they own
  NamesWhileReconciling \* after a failed heartbeat, as trunk's client does

VARIABLES
  groupEpoch, assignmentEpoch, target,
  memberState, memberEpoch, previousMemberEpoch, assignedPartitions, partitionsPendingRevocation,
  described, consumer, channel, commit, keptSince

memberVars == <<memberState, memberEpoch, previousMemberEpoch, assignedPartitions,
                partitionsPendingRevocation, described, keptSince>>
coordinatorVars == <<groupEpoch, assignmentEpoch, target, memberVars>>
vars == <<coordinatorVars, consumer, channel, commit>>

NoInstance == "none"
IsStatic(m) == InstanceOf[m] # NoInstance

\* Epochs that are none: to join, to leave, to leave for a while as a static member.
JoinEpoch        == 0
LeaveEpoch       == -1
StaticLeaveEpoch == -2
NoEpoch          == -3

NoMember ==
  [state |-> "None", epoch |-> NoEpoch, previous |-> NoEpoch, assigned |-> {}, revoking |-> {}]

\* ConsumerGroup.getOrMaybeCreateMember.
NewMember == [NoMember EXCEPT !.state = "Stable", !.epoch = 0, !.previous = 0]

MemberStates   == {"Stable", "UnrevokedPartitions", "UnreleasedPartitions"}
ConsumerStates == {"Unsubscribed", "Joining", "Member", "Fenced", "Leaving", "Failed"}
Errors == {"NONE", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID",
           "FENCED_INSTANCE_ID"}

NoConsumer ==
  [state |-> "Unsubscribed", epoch |-> 0, given |-> {}, owned |-> {}, local |-> {},
   named |-> FALSE]

NoMessage ==
  [type |-> "None", epoch |-> NoEpoch, named |-> FALSE, owned |-> {}, error |-> "NONE",
   told |-> FALSE, given |-> {}]
Heartbeat(epoch) == [NoMessage EXCEPT !.type = "Request", !.epoch = epoch]
Naming(epoch, owned) == [Heartbeat(epoch) EXCEPT !.named = TRUE, !.owned = owned]
Answer(epoch) == [NoMessage EXCEPT !.type = "Answer", !.epoch = epoch]
Telling(epoch, given) == [Answer(epoch) EXCEPT !.told = TRUE, !.given = given]
Refusal(error) == [NoMessage EXCEPT !.type = "Answer", !.error = error]

NoCommit == [type |-> "None", epoch |-> NoEpoch, partitions |-> {}, error |-> "NONE"]
CommitErrors == {"NONE", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH"}

\* A member as the coordinator has it, and what becomes of all of them.
Member(m) ==
  [state |-> memberState[m], epoch |-> memberEpoch[m], previous |-> previousMemberEpoch[m],
   assigned |-> assignedPartitions[m], revoking |-> partitionsPendingRevocation[m]]
AllMembers == [m \in Members |-> Member(m)]

\* ConsumerGroupMember.asConsumerGroupDescribeMember.
Described(k) == k.assigned

\* Of what is being committed, what a member that becomes k is not given anew.
KeptBy(m, k) == keptSince[m] \intersect ((k.assigned \intersect assignedPartitions[m]) \union k.revoking)

MembersBecome(members) ==
  /\ memberState'         = [m \in Members |-> members[m].state]
  /\ memberEpoch'         = [m \in Members |-> members[m].epoch]
  /\ previousMemberEpoch' = [m \in Members |-> members[m].previous]
  /\ assignedPartitions'  = [m \in Members |-> members[m].assigned]
  /\ partitionsPendingRevocation' = [m \in Members |-> members[m].revoking]
  /\ described' = [m \in Members |-> Described(members[m])]
  /\ keptSince' = [m \in Members |-> KeptBy(m, members[m])]

IsRegistered(m) == memberState[m] # "None"
Registered      == {m \in Members : IsRegistered(m)}

\* ConsumerGroup.currentPartitionEpoch: a partition has an epoch while a member holds it.
Holds(k) == k.assigned \union k.revoking
Held     == UNION {Holds(Member(m)) : m \in Registered}

Init ==
  /\ groupEpoch = 0
  /\ assignmentEpoch = 0
  /\ target   = [m \in Members |-> {}]
  /\ memberState         = [m \in Members |-> NoMember.state]
  /\ memberEpoch         = [m \in Members |-> NoMember.epoch]
  /\ previousMemberEpoch = [m \in Members |-> NoMember.previous]
  /\ assignedPartitions  = [m \in Members |-> NoMember.assigned]
  /\ partitionsPendingRevocation = [m \in Members |-> NoMember.revoking]
  /\ described = [m \in Members |-> {}]
  /\ consumer = [m \in Members |-> NoConsumer]
  /\ channel  = [m \in Members |-> NoMessage]
  /\ commit   = [m \in Members |-> NoCommit]
  /\ keptSince = [m \in Members |-> {}]
===============================================================================
