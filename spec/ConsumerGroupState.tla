-------------------------- MODULE ConsumerGroupState --------------------------
(***************************************************************************)
(* The consumer group protocol of KIP-848, `group.protocol=consumer`: the  *)
(* coordinator's state of one group, the consumers, and the heartbeats     *)
(* between them.                                                           *)
(*                                                                         *)
(* Source: org.apache.kafka.coordinator.group, as on trunk in October 2024 *)
(* (before 4.0): GroupMetadataManager.consumerGroupHeartbeat, ConsumerGroup, *)
(* CurrentAssignmentBuilder; of the client ConsumerMembershipManager.      *)
(* What is said of subscriptions, topics, regular expressions, a group's   *)
(* size, assignors and the assignment interval is 4.4's.                   *)
(*                                                                         *)
(* variable        | field                                                 *)
(* ----------------+------------------------------------------------------ *)
(* groupEpoch      | ModernGroup.groupEpoch: bumped when who is in the     *)
(*                 | group changes                                         *)
(* assignmentEpoch | ModernGroup.targetAssignmentEpoch                     *)
(* target[m]       | ModernGroup.targetAssignment                          *)
(* topics[t]       | the topics of the coordinator's metadata image, by    *)
(*                 | topic id: how many partitions                         *)
(* hashed          | ModernGroup.metadataHash: the partitions of which it  *)
(*                 | is made, in place of the hash                         *)
(* refresh         | ModernGroup.requestMetadataRefresh was called: the    *)
(*                 | next heartbeat asks whether the hash is still right   *)
(* memberState[m], | ConsumerGroupMember: state, memberEpoch,              *)
(* memberEpoch[m], | previousMemberEpoch, assignedPartitions,              *)
(* ...             | partitionsPendingRevocation; subscribed[m]:           *)
(*                 | subscribedTopicNames; serverAssignor[m]:              *)
(*                 | serverAssignorName; Member(m) has all seven           *)
(* described[m]    | what ConsumerGroupDescribe shows as its assignment:   *)
(*                 | nothing depends on it                                 *)
(* preferred       | ConsumerGroup.preferredServerAssignor, which          *)
(*                 | ConsumerGroupDescribe shows; none without members     *)
(* assignedBy      | the assignor that made the target                     *)
(* intervalRuns    | ModernGroup.assignmentTimestamp: the assignment       *)
(*                 | interval that began then is not over                  *)
(* consumer[m]     | the client: its member epoch; given: the assignment   *)
(*                 | that it was last given (currentTargetAssignment);     *)
(*                 | owned: SubscriptionState; local: what it has last     *)
(*                 | reconciled itself to (currentAssignment); named:      *)
(*                 | whether a heartbeat has said that (SentFields);       *)
(*                 | reads: the topics that its application subscribes to; *)
(*                 | news: no heartbeat has said that yet                  *)
(* channel[m]      | its ConsumerGroupHeartbeat request, or the answer;    *)
(*                 | named: the request has TopicPartitions; reads: its    *)
(*                 | SubscribedTopicNames, if it has any; told: the answer *)
(*                 | has an assignment                                     *)
(* commit[m]       | its OffsetCommit request: member epoch, partitions;   *)
(*                 | or the answer: the partitions that were taken         *)
(* keptSince[m]    | of that request's partitions, those that the member   *)
(*                 | has kept since it was sent: nothing depends on it but *)
(*                 | what KIP-1251 learns from assignment epochs           *)
(* resolved[r]     | ConsumerGroup.resolvedRegularExpressions: the names   *)
(*                 | of the topics that the regular expression matched     *)
(* resolution      | the task of the group at CoordinatorExecutor: none;   *)
(*                 | scheduled; run, and its result waits to be written    *)
(* asked, matched  | of that task: what it resolves; the names of the      *)
(*                 | topics that there were as it ran                      *)
(* regexAge        | how long ago the regular expressions were resolved:   *)
(*                 | ten seconds at most, longer, longer than the refresh  *)
(*                 | interval; or none is resolved                         *)
(* regexMisses     | there are topics that no regular expression was asked *)
(*                 | for: lastResolvedRegularExpressionVersion is older    *)
(*                 | than lastMetadataImageWithNewTopics; resultMisses:    *)
(*                 | the same of the result that is to be written          *)
(*                                                                         *)
(* A request that names partitions has all other fields too. The client's  *)
(* has them as it joins and after a failed heartbeat only; the answer then *)
(* lacks an assignment that the consumer knows.                            *)
(* A subscription is a set of names and of at most one regular expression. *)
(* Not here: fail-over of the coordinator, members of the classic          *)
(* protocol, a client that has not heard of a topic yet.                   *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS
  Members,     \* consumers; each one's member id is its name
  InstanceOf,  \* of each: group.instance.id, or NoInstance (KIP-345)
  Partitions,
  Topics,      \* by topic id: its name, its partitions in their order; so many of them as it is
               \* created; whether it is there at first, and whether it may be deleted
  Reads,       \* the names of the topics that a consumer subscribes to as it joins
  Resubscribes,\* of each consumer: what its application subscribes to later
  MaxSize,     \* group.consumer.max.size: how many members a group has at most
  Epochs,      \* 0..n: the group changes n times at most
  Losses,      \* requests and answers may be lost
  Expiries,    \* session and rebalance time-outs
  Leaves,      \* consumers close
  Commits,     \* consumers commit what they own
  NamesWhileReconciling, \* after a failed heartbeat, as trunk's client does
  Matches,     \* of each regular expression: the names that it matches
  RefreshesByTime, \* group.consumer.regex.refresh.interval.ms passes
  Assignors,   \* group.consumer.assignors in their order; the first one is the default
  NamedAssignor, \* of each consumer: group.remote.assignor, or NoAssignor
  AssignmentInterval \* whether group.consumer.assignment.interval.ms is not 0 (KAFKA-20291)

VARIABLES
  groupEpoch, assignmentEpoch, target, topics, hashed, refresh,
  memberState, memberEpoch, previousMemberEpoch, assignedPartitions, partitionsPendingRevocation,
  subscribed, described, consumer, channel, commit, keptSince,
  resolved, resolution, asked, matched, regexAge, regexMisses, resultMisses,
  serverAssignor, preferred, assignedBy, intervalRuns

assignmentVars == <<memberState, memberEpoch, previousMemberEpoch, assignedPartitions,
                    partitionsPendingRevocation, subscribed, serverAssignor, preferred>>
targetVars == <<assignmentEpoch, target, assignedBy, intervalRuns>>
taskVars   == <<resolution, asked, matched, resultMisses>>
regexVars  == <<resolved, regexAge, regexMisses, taskVars>>
groupVars  == <<groupEpoch, targetVars, topics, hashed, refresh, assignmentVars, described, regexVars>>
coordinatorVars == <<groupVars, keptSince>>
vars == <<coordinatorVars, consumer, channel, commit>>

NoInstance == "none"
IsStatic(m) == InstanceOf[m] # NoInstance

\* Epochs that are none: to join, to leave, to leave for a while as a static member.
JoinEpoch        == 0
LeaveEpoch       == -1
StaticLeaveEpoch == -2
NoEpoch          == -3

NoAssignor == "none"

NoMember ==
  [state |-> "None", epoch |-> NoEpoch, previous |-> NoEpoch, assigned |-> {}, revoking |-> {},
   reads |-> {}, assignor |-> NoAssignor]

\* ConsumerGroup.getOrMaybeCreateMember.
NewMember == [NoMember EXCEPT !.state = "Stable", !.epoch = 0, !.previous = 0]

MemberStates   == {"Stable", "UnrevokedPartitions", "UnreleasedPartitions"}
ConsumerStates == {"Unsubscribed", "Joining", "Member", "Fenced", "Leaving", "Failed"}
Errors == {"NONE", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID",
           "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED", "UNSUPPORTED_ASSIGNOR"}

NoConsumer ==
  [state |-> "Unsubscribed", epoch |-> 0, given |-> {}, owned |-> {}, local |-> {},
   named |-> FALSE, reads |-> {}, news |-> FALSE]

\* A consumer that subscribes, or begins anew with the subscription that it has.
Begins(reads) == [NoConsumer EXCEPT !.state = "Joining", !.reads = reads]

NoMessage ==
  [type |-> "None", epoch |-> NoEpoch, named |-> FALSE, owned |-> {}, reads |-> {},
   error |-> "NONE", told |-> FALSE, given |-> {}]
Heartbeat(epoch) == [NoMessage EXCEPT !.type = "Request", !.epoch = epoch]
Naming(epoch, owned) == [Heartbeat(epoch) EXCEPT !.named = TRUE, !.owned = owned]
Answer(epoch) == [NoMessage EXCEPT !.type = "Answer", !.epoch = epoch]
Telling(epoch, given) == [Answer(epoch) EXCEPT !.told = TRUE, !.given = given]
Refusal(error) == [NoMessage EXCEPT !.type = "Answer", !.error = error]

NoCommit == [type |-> "None", epoch |-> NoEpoch, partitions |-> {}, error |-> "NONE"]
CommitErrors == {"NONE", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH"}

(***************************************************************************)
(* Topics. The same name may come back with another id.                    *)
(***************************************************************************)
NotYet == 0
Gone   == -1

TopicOf == [p \in Partitions |-> CHOOSE t \in DOMAIN Topics : p \in Topics[t].partitions]
NameOf  == [p \in Partitions |-> Topics[TopicOf[p]].name]
Names   == {Topics[t].name : t \in DOMAIN Topics}
\* A partition's number in its topic.
PlaceOf == [p \in Partitions |->
             Cardinality({q \in Topics[TopicOf[p]].partitions : q < p})]

(***************************************************************************)
(* Regular expressions.                                                    *)
(***************************************************************************)
Regexes    == DOMAIN Matches
Unresolved == {"unresolved"}

\* A member that waits for its regular expression reads what it names otherwise.
NamesMatched(known, r) == IF known[r] = Unresolved THEN {} ELSE known[r]
NamesWith(known, reads) ==
  (reads \ Regexes) \union UNION {NamesMatched(known, r) : r \in reads \intersect Regexes}
NamesOf(reads) == NamesWith(resolved, reads)

\* The partitions that there are of topics with these names.
PartitionsNamed(names) ==
  {p \in Partitions : NameOf[p] \in names /\ PlaceOf[p] < topics[TopicOf[p]]}

\* The partitions that there are of the topics of a subscription.
PartitionsOf(reads) == PartitionsNamed(NamesOf(reads))

\* A member as the coordinator has it, and what becomes of all of them.
Member(m) ==
  [state |-> memberState[m], epoch |-> memberEpoch[m], previous |-> previousMemberEpoch[m],
   assigned |-> assignedPartitions[m], revoking |-> partitionsPendingRevocation[m],
   reads |-> subscribed[m], assignor |-> serverAssignor[m]]
AllMembers == [m \in Members |-> Member(m)]

(***************************************************************************)
(* The members' choice of an assignor (ConsumerGroup.serverAssignors).     *)
(***************************************************************************)
Offered == {Assignors[i] : i \in DOMAIN Assignors}
NamedBy(members) == {members[m].assignor : m \in Members} \ {NoAssignor}
Count(members, a) == Cardinality({m \in Members : members[m].assignor = a})
MostNamed(members) ==
  {a \in NamedBy(members) : \A b \in NamedBy(members) : Count(members, b) <= Count(members, a)}

\* Among equals the first on offer; Kafka leaves that to the order of a hash table.
Place(a) == IF a \in Offered THEN CHOOSE i \in DOMAIN Assignors : Assignors[i] = a
            ELSE Len(Assignors) + 1
FirstOf(assignors) == CHOOSE a \in assignors : \A b \in assignors : Place(a) <= Place(b)

Preferred(members) ==
  IF \A m \in Members : members[m].state = "None" THEN NoAssignor
  ELSE IF NamedBy(members) = {} THEN Assignors[1]
  ELSE FirstOf(MostNamed(members))

\* ConsumerGroupMember.asConsumerGroupDescribeMember.
Described(k) == k.assigned

\* Partitions of a topic that is gone are not shown.
Shown(partitions) == {p \in partitions : topics[TopicOf[p]] # Gone}

\* Of what is being committed, what a member that becomes k is not given anew.
KeptBy(m, k) == keptSince[m] \intersect ((k.assigned \intersect assignedPartitions[m]) \union k.revoking)

MembersBecome(members) ==
  /\ memberState'         = [m \in Members |-> members[m].state]
  /\ memberEpoch'         = [m \in Members |-> members[m].epoch]
  /\ previousMemberEpoch' = [m \in Members |-> members[m].previous]
  /\ assignedPartitions'  = [m \in Members |-> members[m].assigned]
  /\ partitionsPendingRevocation' = [m \in Members |-> members[m].revoking]
  /\ subscribed' = [m \in Members |-> members[m].reads]
  /\ serverAssignor' = [m \in Members |-> members[m].assignor]
  /\ preferred' = Preferred(members)
  /\ described' = [m \in Members |-> Shown(Described(members[m]))]
  /\ keptSince' = [m \in Members |-> KeptBy(m, members[m])]

\* What a group with these members is about.
ReadBy(members) == PartitionsOf(UNION {members[m].reads : m \in Members})

IsRegistered(m) == memberState[m] # "None"
Registered      == {m \in Members : IsRegistered(m)}

\* ConsumerGroup.currentPartitionEpoch: a partition has an epoch while a member holds it.
Holds(k) == k.assigned \union k.revoking
Held     == UNION {Holds(Member(m)) : m \in Registered}

Init ==
  /\ groupEpoch = 0
  /\ assignmentEpoch = 0
  /\ topics = [t \in DOMAIN Topics |-> IF Topics[t].isThere THEN Topics[t].size ELSE NotYet]
  /\ hashed = {}
  /\ refresh = FALSE
  /\ target   = [m \in Members |-> {}]
  /\ memberState         = [m \in Members |-> NoMember.state]
  /\ memberEpoch         = [m \in Members |-> NoMember.epoch]
  /\ previousMemberEpoch = [m \in Members |-> NoMember.previous]
  /\ assignedPartitions  = [m \in Members |-> NoMember.assigned]
  /\ partitionsPendingRevocation = [m \in Members |-> NoMember.revoking]
  /\ subscribed = [m \in Members |-> {}]
  /\ described = [m \in Members |-> {}]
  /\ consumer = [m \in Members |-> NoConsumer]
  /\ channel  = [m \in Members |-> NoMessage]
  /\ commit   = [m \in Members |-> NoCommit]
  /\ keptSince = [m \in Members |-> {}]
  /\ resolved = [r \in Regexes |-> Unresolved]
  /\ resolution = "None" /\ asked = {} /\ matched = {} /\ resultMisses = FALSE
  /\ regexAge = "None" /\ regexMisses = FALSE
  /\ serverAssignor = [m \in Members |-> NoMember.assignor]
  /\ preferred = NoAssignor
  /\ assignedBy = NoAssignor
  /\ intervalRuns = FALSE
===============================================================================
