---------------------------- MODULE ConsumerTopics ----------------------------
(***************************************************************************)
(* What one consumer subscribes to, what its metadata shows of topics, and *)
(* when it asks for a rebalance: topics come and grow, the application     *)
(* subscribes to others, and the member leads the group or follows.        *)
(*                                                                         *)
(* Who leads assigns by its own metadata, and watches it for the topics of *)
(* all members; a follower does not watch anything.                        *)
(*                                                                         *)
(* The group is environment: it answers a join, and the other member is    *)
(* subscribed to other topics. Both requests of a join are answered at     *)
(* once, with the metadata of that moment (GroupMembership has them).      *)
(*                                                                         *)
(* Left out: patterns, cooperative rebalancing, positions and commits      *)
(* (ConsumerPositions, ConsumerCommits), the loss of the membership.       *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Topics,
  MaxPartitions,  \* of a topic
  Subscriptions,  \* what the application may subscribe to: sets of topics
  Others,         \* the topics of the other member: none of this one's
  Roles,          \* what the group makes of it: "leader", "follower"
  Events          \* what else happens: names of actions

(***************************************************************************)
(* The variables, and the field of the real consumer that each stands for. *)
(*                                                                         *)
(* variable     | field                                                    *)
(* -------------+--------------------------------------------------------- *)
(* subscription | SubscriptionState.subscription                           *)
(* joined       | ConsumerCoordinator.joinedSubscription; {}: none         *)
(* watched      | SubscriptionState.groupSubscription, as a leader         *)
(* counts       | Metadata: partitions by topic; 0: the topic is missing   *)
(* snapshot     | ConsumerCoordinator.assignmentSnapshot                   *)
(* leads        | ConsumerCoordinator.isLeader                             *)
(* joining      | joinFuture: none, sent; answered: not yet delivered      *)
(* rejoinNeeded, needsJoinPrepare | fields of AbstractCoordinator          *)
(* owned        | SubscriptionState.assignment                             *)
(* -------------+--------------------------------------------------------- *)
(* An implementation does not have these:                                  *)
(* granted      | the assignment that an answered join brings              *)
(* cluster      | the partitions that there are                            *)
(***************************************************************************)
VARIABLES
  subscription, joined, watched, counts, snapshot, leads, joining, rejoinNeeded,
  needsJoinPrepare, owned, granted, cluster

memberVars == <<subscription, joined, watched, snapshot, leads, joining, rejoinNeeded,
                needsJoinPrepare, owned, granted>>
vars == <<memberVars, counts, cluster>>

NoSnapshot == [t \in Topics |-> -1]

member ==
  [subscription |-> subscription, joined |-> joined, watched |-> watched, snapshot |-> snapshot,
   leads |-> leads, joining |-> joining, rejoinNeeded |-> rejoinNeeded,
   needsJoinPrepare |-> needsJoinPrepare, owned |-> owned, granted |-> granted]

Becomes(m) ==
  /\ subscription' = m.subscription /\ joined' = m.joined /\ watched' = m.watched
  /\ snapshot' = m.snapshot /\ leads' = m.leads /\ joining' = m.joining
  /\ rejoinNeeded' = m.rejoinNeeded /\ needsJoinPrepare' = m.needsJoinPrepare
  /\ owned' = m.owned /\ granted' = m.granted

Init ==
  /\ subscription = {} /\ joined = {} /\ watched = {} /\ snapshot = NoSnapshot /\ leads = FALSE
  /\ joining = "none" /\ rejoinNeeded = TRUE /\ needsJoinPrepare = TRUE
  /\ owned = {} /\ granted = {}
  /\ cluster = [t \in Topics |-> IF t \in Others THEN 1 ELSE 0]
  /\ counts = cluster

\* The partitions of topics, as metadata has them.
PartitionsOf(topics, partitions) ==
  {p \in topics \X (1..MaxPartitions) : p[2] <= partitions[p[1]]}

\* ConsumerCoordinator.MetadataSnapshot: of the own topics, and as a leader of all members'.
Snapshot(m, partitions) ==
  [t \in Topics |-> IF t \in m.subscription \union m.watched THEN partitions[t] ELSE 0]

(***************************************************************************)
(* The application.                                                        *)
(***************************************************************************)
\* ConsumerCoordinator.rejoinNeededOrPending
NeedsRejoin(m) ==
  \/ m.rejoinNeeded
  \/ m.snapshot # NoSnapshot /\ m.snapshot # Snapshot(m, counts)
  \/ m.joined # {} /\ m.joined # m.subscription

\* A leader that joins anew watches the topics of others no more (KAFKA-9181).
WatchedInJoin(m) == {}

Prepared(m) ==
  IF ~m.needsJoinPrepare THEN m
  ELSE [m EXCEPT !.needsJoinPrepare = FALSE, !.owned = {}, !.leads = FALSE,
                 !.watched = WatchedInJoin(m)]

SendsJoin(m) == [m EXCEPT !.joining = "sent", !.joined = m.subscription]

\* Who does not lead has no snapshot.
SnapshotOnComplete(m) == IF m.leads THEN m.snapshot ELSE NoSnapshot

\* onJoinComplete: an assignment of topics that are no longer wanted is left out (KAFKA-7961).
FitsSubscription(m) == \A p \in m.granted : p[1] \in m.subscription

Completed(m) ==
  [m EXCEPT !.joining = "none", !.needsJoinPrepare = TRUE, !.granted = {},
            !.snapshot = SnapshotOnComplete(m),
            !.owned = IF FitsSubscription(m) THEN m.granted ELSE @,
            !.rejoinNeeded = @ \/ ~FitsSubscription(m)]

JoinTurn(m) ==
  LET p == Prepared([m EXCEPT !.rejoinNeeded = NeedsRejoin(m)])
  IN  CASE p.joining = "none" -> SendsJoin(p)
        [] p.joining = "sent" -> p
        [] OTHER -> Completed(p)

NeedsJoin(m) == NeedsRejoin(m) \/ m.joining # "none"

\* ConsumerCoordinator.poll, with a timer of 0.
Polled(m) ==
  IF ~NeedsJoin(m) THEN m
  ELSE LET j == JoinTurn(m)
       IN  IF m.joining = "answered" /\ NeedsJoin(j) THEN JoinTurn(j) ELSE j

Poll ==
  /\ subscription # {}
  /\ Becomes(Polled(member))
  /\ UNCHANGED <<counts, cluster>>

Subscribe(topics) ==
  /\ topics # subscription
  /\ Becomes([member EXCEPT !.subscription = topics])
  /\ UNCHANGED <<counts, cluster>>

(***************************************************************************)
(* Metadata, and the group.                                                *)
(***************************************************************************)
AddPartition(t) ==
  /\ cluster[t] < MaxPartitions
  /\ cluster' = [cluster EXCEPT ![t] = @ + 1]
  /\ UNCHANGED <<memberVars, counts>>

UpdateMetadata ==
  /\ counts # cluster
  /\ counts' = cluster
  /\ UNCHANGED <<memberVars, cluster>>

\* Both requests of the join are answered. A leader has assigned by its metadata.
AnswerJoin(role) ==
  /\ joining = "sent" /\ role \in Roles
  /\ LET m == [member EXCEPT !.joining = "answered", !.rejoinNeeded = FALSE,
                             !.leads = @ \/ role = "leader",
                             !.watched = IF role = "leader" THEN joined \union Others ELSE @]
     IN  Becomes(IF role = "leader"
                 THEN [m EXCEPT !.snapshot = Snapshot(m, counts),
                                !.granted = PartitionsOf(joined, counts)]
                 ELSE [m EXCEPT !.granted = PartitionsOf(joined, cluster)])
  /\ UNCHANGED <<counts, cluster>>

HearRebalance ==
  /\ "HearRebalance" \in Events /\ joined # {} /\ joining # "sent" /\ ~rejoinNeeded
  /\ Becomes([member EXCEPT !.rejoinNeeded = TRUE])
  /\ UNCHANGED <<counts, cluster>>

Next ==
  \/ Poll \/ UpdateMetadata \/ HearRebalance
  \/ \E topics \in Subscriptions : Subscribe(topics)
  \/ \E t \in Topics : AddPartition(t)
  \/ \E role \in Roles : AnswerJoin(role)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Counts == 0..MaxPartitions

TypeOK ==
  /\ subscription \in Subscriptions \union {{}} /\ joined \in Subscriptions \union {{}}
  /\ watched \subseteq Topics /\ counts \in [Topics -> Counts] /\ cluster \in [Topics -> Counts]
  /\ snapshot \in [Topics -> Counts] \union {NoSnapshot}
  /\ leads \in BOOLEAN /\ joining \in {"none", "sent", "answered"}
  /\ rejoinNeeded \in BOOLEAN /\ needsJoinPrepare \in BOOLEAN
  /\ owned \subseteq Topics \X (1..MaxPartitions) /\ granted \subseteq Topics \X (1..MaxPartitions)

\* Only who leads asks for a rebalance when metadata changes.
OnlyLeaderWatches ==
  joining = "none" => (snapshot # NoSnapshot \/ watched # {} => leads \/ needsJoinPrepare = FALSE)

\* Nothing is owned while the group rebalances (eager).
OwnsNothingInJoin == joining # "none" => owned = {}

\* What is owned was asked for when the member joined.
OwnsWhatItJoinedFor == \A p \in owned : p[1] \in joined

\* After a poll that ends no join in the midst, the member has joined for what is subscribed to; who
\* leads has assigned every partition that its metadata shows (KAFKA-3117).
PollSettles ==
  [][Poll /\ joining' = "none" =>
       /\ ~rejoinNeeded' /\ joined' = subscription
       /\ leads' => owned' = PartitionsOf(subscription, counts)]_vars

\* A follower leaves changed metadata to the leader.
FollowerKeepsGeneration ==
  [][Poll /\ ~leads /\ joining = "none" /\ ~rejoinNeeded /\ joined = subscription
       => joining' = "none"]_vars

\* What the leader watches for others is the group's: they cannot.
LeaderWatchesAll == leads /\ joining # "sent" => Others \subseteq watched

\* Situations that a suite shall show.
AssignedByOldMetadata == joining = "answered" /\ leads /\ snapshot # Snapshot(member, counts)
UnwantedAssignment    == joining = "answered" /\ ~FitsSubscription(member)
=============================================================================
