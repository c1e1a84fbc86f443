---------------------------- MODULE ConsumerTopics ----------------------------
(***************************************************************************)
(* What one consumer subscribes to, what its metadata shows of topics, and *)
(* when it asks for a rebalance: topics come and grow, the application     *)
(* subscribes to others, and the member leads the group or follows.        *)
(*                                                                         *)
(* Who leads assigns by its own metadata, and watches it for the topics of *)
(* all members; a follower does not watch anything.                        *)
(*                                                                         *)
(* An eager member gives up everything before it joins; a cooperative one  *)
(* (KIP-429) what it no longer subscribes to, and after the join what it   *)
(* no longer has: then it joins once more, so that others get that.        *)
(*                                                                         *)
(* The group is environment: it answers a join, and the other member is    *)
(* subscribed to other topics. Both requests of a join are answered at     *)
(* once, with the metadata of that moment (GroupMembership has them).      *)
(*                                                                         *)
(* Left out: positions and commits (ConsumerPositions, ConsumerCommits),   *)
(* topics that are deleted, assignors that add topics to a pattern's, and  *)
(* the refresh of metadata before a member with a pattern joins.           *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Topics,
  MaxPartitions,  \* of a topic
  Subscriptions,  \* what the application may subscribe to: sets of topics
  Patterns,       \* or what a pattern of its may match: sets of topics
  Cooperative,    \* the protocol: BOOLEAN
  Others,         \* the topics of the other member: none of this one's
  Roles,          \* what the group makes of it: "leader", "follower"
  Shares,         \* what it gets as a follower: "all", "part" of its topics' partitions
  Events          \* what else happens: names of actions

(***************************************************************************)
(* The variables, and the field of the real consumer that each stands for. *)
(*                                                                         *)
(* variable     | field                                                    *)
(* -------------+--------------------------------------------------------- *)
(* subscription | SubscriptionState.subscription                           *)
(* pattern      | SubscriptionState.subscribedPattern; {}: none            *)
(* joined       | ConsumerCoordinator.joinedSubscription                   *)
(* claimed      | the owned partitions of the JoinGroup that was sent      *)
(* gone         | generation is -1, or the member id is not known          *)
(* calls        | what the last poll called of ConsumerRebalanceListener,  *)
(*              | and that it raised                                       *)
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
(* fails        | the application's next callback raises                   *)
(***************************************************************************)
VARIABLES
  subscription, pattern, joined, claimed, watched, counts, snapshot, leads, gone, joining,
  rejoinNeeded, needsJoinPrepare, owned, calls, granted, cluster, fails

memberVars == <<subscription, pattern, joined, claimed, watched, snapshot, leads, gone, joining,
                rejoinNeeded, needsJoinPrepare, owned, calls, granted, fails>>
vars == <<memberVars, counts, cluster>>

NoSnapshot == [t \in Topics |-> -1]
NotJoined  == {"none"}

member ==
  [subscription |-> subscription, pattern |-> pattern, joined |-> joined, claimed |-> claimed,
   watched |-> watched, snapshot |-> snapshot, leads |-> leads, gone |-> gone,
   joining |-> joining, rejoinNeeded |-> rejoinNeeded, needsJoinPrepare |-> needsJoinPrepare,
   owned |-> owned, calls |-> calls, granted |-> granted, fails |-> fails]

Becomes(m) ==
  /\ subscription' = m.subscription /\ pattern' = m.pattern /\ joined' = m.joined
  /\ claimed' = m.claimed /\ watched' = m.watched /\ snapshot' = m.snapshot
  /\ leads' = m.leads /\ gone' = m.gone /\ joining' = m.joining
  /\ rejoinNeeded' = m.rejoinNeeded /\ needsJoinPrepare' = m.needsJoinPrepare
  /\ owned' = m.owned /\ calls' = m.calls /\ granted' = m.granted /\ fails' = m.fails

Init ==
  /\ subscription = {} /\ pattern = {} /\ joined = NotJoined /\ claimed = {} /\ watched = {}
  /\ snapshot = NoSnapshot /\ leads = FALSE /\ gone = TRUE
  /\ joining = "none" /\ rejoinNeeded = TRUE /\ needsJoinPrepare = TRUE
  /\ owned = {} /\ calls = <<>> /\ granted = {} /\ fails = FALSE
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
\* ConsumerCoordinator.updatePatternSubscription: topics that are known and match.
Matching(topics, partitions) == {t \in topics : partitions[t] > 0}

\* ConsumerCoordinator.maybeUpdateSubscriptionMetadata: each poll looks at what metadata has.
Matched(m) ==
  IF m.pattern = {} THEN m ELSE [m EXCEPT !.subscription = Matching(m.pattern, counts)]

\* ConsumerCoordinator.rejoinNeededOrPending
NeedsRejoin(m) ==
  \/ m.rejoinNeeded
  \/ m.snapshot # NoSnapshot /\ m.snapshot # Snapshot(m, counts)
  \/ m.joined # NotJoined /\ m.joined # m.subscription

\* ConsumerRebalanceListenerInvoker: an application's callback, which may raise. What it raises is
\* kept until the member is done.
Raised == <<"raised", {}>>
Called(m, name, partitions) ==
  [m EXCEPT !.calls = Append(@, <<name, partitions>>) \o (IF m.fails THEN <<Raised>> ELSE <<>>),
            !.fails = FALSE]
HasRaised(m) == \E i \in 1..Len(m.calls) : m.calls[i] = Raised

\* A leader that joins anew watches the topics of others no more (KAFKA-9181).
WatchedInJoin(m) == {}

\* What a member gives up before it joins: whoever is out of the group, all (KIP-429).
IsUnwanted(m, p) == p[1] \notin m.subscription
GivesUp(m) ==
  IF m.gone \/ ~Cooperative THEN m.owned ELSE {p \in m.owned : IsUnwanted(m, p)}

\* ConsumerCoordinator.onJoinPrepare. An eager member in a generation hears also that nothing is
\* revoked.
PrepareCalls(m) ==
  LET given == GivesUp(m)
  IN  IF given = {} /\ (m.gone \/ Cooperative) THEN m
      ELSE Called(m, IF m.gone THEN "lost" ELSE "revoked", given)

Prepared(m) ==
  IF ~m.needsJoinPrepare THEN m
  ELSE [PrepareCalls(m) EXCEPT
          !.needsJoinPrepare = FALSE, !.owned = @ \ GivesUp(m), !.leads = FALSE,
          !.watched = WatchedInJoin(m)]

\* JoinGroup tells the leader what the member owns.
Claims(m) == m.owned
SendsJoin(m) ==
  [m EXCEPT !.joining = "sent", !.joined = m.subscription, !.claimed = Claims(m)]

\* Who does not lead has no snapshot.
SnapshotOnComplete(m) == IF m.leads THEN m.snapshot ELSE NoSnapshot

\* onJoinComplete: an assignment of topics that are no longer wanted is left out (KAFKA-7961).
IsWanted(m, t) == IF m.pattern = {} THEN t \in m.subscription ELSE t \in m.pattern
FitsSubscription(m) == \A p \in m.granted : IsWanted(m, p[1])

\* What a cooperative member no longer has, it has to give up before others get it.
Revoked(m) == IF Cooperative THEN m.owned \ m.granted ELSE {}
JoinsAfterRevocation(m) == Revoked(m) # {}

Takes(m) ==
  LET revoked == IF Revoked(m) = {} THEN m ELSE Called(m, "revoked", Revoked(m))
      taken == [revoked EXCEPT !.rejoinNeeded = @ \/ JoinsAfterRevocation(m), !.owned = m.granted]
  IN  Called(taken, "assigned", m.granted \ m.owned)

\* A delivery that raised is made once more, with nothing that is new.
Delivered(m) ==
  [m EXCEPT !.joining = "none", !.needsJoinPrepare = TRUE, !.granted = {}]

Completed(m) ==
  LET s == [m EXCEPT !.snapshot = SnapshotOnComplete(m)]
      t == Takes(s)
  IN  IF ~FitsSubscription(m) THEN Delivered([s EXCEPT !.rejoinNeeded = TRUE])
      ELSE IF HasRaised(t) THEN t ELSE Delivered(t)

\* The heartbeat thread has put the member out after the join was answered.
Discarded(m) == [Delivered(m) EXCEPT !.rejoinNeeded = TRUE]

JoinTurn(m) ==
  LET p == Prepared([m EXCEPT !.rejoinNeeded = NeedsRejoin(m)])
  IN  CASE HasRaised(p) -> p
        [] p.joining = "none" -> SendsJoin(p)
        [] p.joining = "sent" -> p
        [] OTHER -> IF p.gone THEN Discarded(p) ELSE Completed(p)

NeedsJoin(m) == NeedsRejoin(m) \/ m.joining # "none"

\* ConsumerCoordinator.poll, with a timer of 0.
Polled(m) ==
  IF ~NeedsJoin(m) THEN m
  ELSE LET j == JoinTurn(m)
       IN  IF m.joining = "answered" /\ NeedsJoin(j) /\ ~HasRaised(j) THEN JoinTurn(j) ELSE j

Poll ==
  /\ subscription # {} \/ pattern # {}
  /\ Becomes(Polled(Matched([member EXCEPT !.calls = <<>>])))
  /\ UNCHANGED <<counts, cluster>>

\* What was called is of the last poll.
Quiet == [member EXCEPT !.calls = <<>>]

Subscribe(topics) ==
  /\ topics # subscription /\ pattern = {}
  /\ Becomes([Quiet EXCEPT !.subscription = topics])
  /\ UNCHANGED <<counts, cluster>>

\* Topics and a pattern exclude each other.
SubscribePattern(topics) ==
  /\ topics # pattern /\ (subscription = {} \/ pattern # {})
  /\ Becomes([Quiet EXCEPT !.pattern = topics, !.subscription = Matching(topics, counts)])
  /\ UNCHANGED <<counts, cluster>>

\* The application's next callback will raise.
FailCallback ==
  /\ "FailCallback" \in Events /\ ~fails
  /\ Becomes([Quiet EXCEPT !.fails = TRUE])
  /\ UNCHANGED <<counts, cluster>>

(***************************************************************************)
(* Metadata, and the group.                                                *)
(***************************************************************************)
AddPartition(t) ==
  /\ cluster[t] < MaxPartitions
  /\ cluster' = [cluster EXCEPT ![t] = @ + 1]
  /\ Becomes(Quiet)
  /\ UNCHANGED counts

UpdateMetadata ==
  /\ counts # cluster
  /\ counts' = cluster
  /\ Becomes(Quiet)
  /\ UNCHANGED cluster

SharedWith(share, partitions) ==
  IF share = "all" THEN partitions ELSE {p \in partitions : p[2] = 1}

\* What a leader gives itself: all that its metadata shows of the topics that it has joined for.
AssignsItself(m) == PartitionsOf(joined, counts)

\* ConsumerCoordinator.onLeaderElected: before it assigns, the leader looks at what metadata has of all
\* members' topics, and matches its pattern again.
Leads(m) ==
  LET l == Matched([m EXCEPT !.leads = TRUE, !.watched = joined \union Others])
  IN  [l EXCEPT !.snapshot = Snapshot(l, counts), !.granted = AssignsItself(l)]

\* Both requests of the join are answered.
AnswerJoin(role, share) ==
  /\ joining = "sent" /\ role \in Roles /\ share \in Shares /\ (role = "leader" => share = "all")
  /\ LET m == [Quiet EXCEPT !.joining = "answered", !.rejoinNeeded = FALSE, !.gone = FALSE,
                            !.claimed = {}]
     IN  Becomes(IF role = "leader" THEN Leads(m)
                 ELSE [m EXCEPT !.granted = SharedWith(share, PartitionsOf(joined, cluster))])
  /\ UNCHANGED <<counts, cluster>>

IsMember == joined # NotJoined /\ joining # "sent" /\ ~gone

HearRebalance ==
  /\ "HearRebalance" \in Events /\ IsMember /\ ~rejoinNeeded
  /\ Becomes([Quiet EXCEPT !.rejoinNeeded = TRUE])
  /\ UNCHANGED <<counts, cluster>>

\* A heartbeat is answered with UNKNOWN_MEMBER_ID: others have what was owned.
HearEnd ==
  /\ "HearEnd" \in Events /\ IsMember
  /\ Becomes([Quiet EXCEPT !.rejoinNeeded = TRUE, !.needsJoinPrepare = TRUE, !.gone = TRUE])
  /\ UNCHANGED <<counts, cluster>>

Next ==
  \/ Poll \/ UpdateMetadata \/ HearRebalance \/ HearEnd \/ FailCallback
  \/ \E topics \in Subscriptions : Subscribe(topics)
  \/ \E topics \in Patterns : SubscribePattern(topics)
  \/ \E t \in Topics : AddPartition(t)
  \/ \E role \in Roles, share \in Shares : AnswerJoin(role, share)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Counts == 0..MaxPartitions
AllPartitions == Topics \X (1..MaxPartitions)

TypeOK ==
  /\ subscription \subseteq Topics /\ pattern \in Patterns \union {{}}
  /\ joined \in (SUBSET Topics) \union {NotJoined} /\ claimed \subseteq AllPartitions
  /\ watched \subseteq Topics /\ counts \in [Topics -> Counts] /\ cluster \in [Topics -> Counts]
  /\ snapshot \in [Topics -> Counts] \union {NoSnapshot}
  /\ leads \in BOOLEAN /\ gone \in BOOLEAN /\ joining \in {"none", "sent", "answered"}
  /\ rejoinNeeded \in BOOLEAN /\ needsJoinPrepare \in BOOLEAN /\ fails \in BOOLEAN
  /\ owned \subseteq AllPartitions /\ granted \subseteq AllPartitions

\* Only who leads asks for a rebalance when metadata changes.
OnlyLeaderWatches ==
  joining = "none" => (snapshot # NoSnapshot \/ watched # {} => leads \/ needsJoinPrepare = FALSE)

\* Nothing is owned while the group rebalances (eager), but for a delivery that raised.
OwnsNothingInJoin == ~Cooperative /\ joining # "none" => owned = {} \/ owned = granted

\* What is owned was asked for when the member joined.
OwnsWhatItJoinedFor == \A p \in owned : p[1] \in joined

\* The leader hears what a member owns: it must not give that to others at once (KIP-429).
ClaimsWhatItOwns == joining = "sent" => claimed = owned

\* After a poll that ends no join in the midst, the member has joined for what is subscribed to, and
\* that is every known topic that the pattern matches; who leads has assigned every partition that
\* its metadata shows (KAFKA-3117).
PollSettles ==
  [][Poll /\ joining' = "none" /\ Raised \notin {calls'[i] : i \in 1..Len(calls')} =>
       /\ ~rejoinNeeded' /\ joined' = subscription'
       /\ pattern' # {} => subscription' = Matching(pattern', counts)
       /\ leads' => owned' = PartitionsOf(subscription', counts)]_vars

\* A follower leaves changed metadata to the leader, unless its pattern matches a new topic.
FollowerKeepsGeneration ==
  [][Poll /\ ~leads /\ joining = "none" /\ ~rejoinNeeded /\ joined = subscription
       /\ subscription' = subscription => joining' = "none"]_vars

\* The callbacks tell what is owned, one by one: nothing is given up that is not owned, nothing comes
\* twice.
RECURSIVE Told(_, _)
Told(partitions, called) ==
  IF called = <<>> THEN partitions
  ELSE LET name == Head(called)[1]
           these == Head(called)[2]
       IN  IF name = "assigned"
           THEN IF these \intersect partitions = {} THEN Told(partitions \union these, Tail(called))
                ELSE {NotJoined}
           ELSE IF these \subseteq partitions THEN Told(partitions \ these, Tail(called))
           ELSE {NotJoined}

CallbacksTell == [][Poll => owned' = Told(owned, calls')]_vars

IsCalled(name) == \E i \in 1..Len(calls') : calls'[i][1] = name

\* Lost, not revoked: others may have it.
LostIffGone ==
  [][Poll => /\ IsCalled("lost") => gone
             /\ gone /\ needsJoinPrepare => ~(calls' # <<>> /\ calls'[1][1] = "revoked")]_vars

\* A cooperative member goes on with what it keeps.
KeepsWhatStays ==
  [][Cooperative /\ Poll /\ ~gone =>
       \A p \in owned \ owned' :
         p[1] \notin subscription' \/ (joining = "answered" /\ p \notin granted)]_vars

\* ... and what it gives up is free for others only after another join.
RevokedJoinsAnew ==
  [][Cooperative /\ Poll /\ joining = "answered" /\ ~gone /\ FitsSubscription(Matched(member))
       /\ owned \ granted # {} => rejoinNeeded' \/ joining' = "sent"]_vars

\* What the leader watches for others is the group's: they cannot.
LeaderWatchesAll == leads /\ joining # "sent" => Others \subseteq watched

\* Situations that a suite shall show.
AssignedByOldMetadata == joining = "answered" /\ leads /\ snapshot # Snapshot(member, counts)
UnwantedAssignment    == joining = "answered" /\ ~FitsSubscription(member)
KeepsInJoin           == joining = "sent" /\ owned # {}
DeliveredAgain        == joining = "answered" /\ owned # {} /\ owned = granted
=============================================================================
