---------------------------- MODULE ConsumerGroup ----------------------------
(***************************************************************************)
(* KIP-848's consumer group protocol: what must hold, each with what it    *)
(* means to a user. Below it: ConsumerGroupProtocol (the steps, Spec),     *)
(* ConsumerGroupCoordinator, ConsumerGroupState.                           *)
(***************************************************************************)
EXTENDS ConsumerGroupProtocol

TypeOK ==
  /\ groupEpoch \in EpochNumbers
  /\ assignmentEpoch \in EpochNumbers
  /\ target \in [Members -> SUBSET Partitions]
  /\ topics \in [DOMAIN Topics -> {Gone, NotYet} \union 1..Cardinality(Partitions)]
  /\ hashed \in SUBSET Partitions
  /\ refresh \in BOOLEAN
  /\ subscribed \in [Members -> SUBSET (Names \union Regexes)]
  /\ memberState \in [Members -> MemberStates \union {"None"}]
  /\ memberEpoch \in [Members -> EpochNumbers \union {StaticLeaveEpoch, NoEpoch}]
  /\ previousMemberEpoch \in [Members -> EpochNumbers \union {NoEpoch}]
  /\ assignedPartitions \in [Members -> SUBSET Partitions]
  /\ partitionsPendingRevocation \in [Members -> SUBSET Partitions]
  /\ described \in [Members -> SUBSET Partitions]
  /\ serverAssignor \in [Members -> {NamedAssignor[m] : m \in Members} \union {NoAssignor}]
  /\ {preferred, assignedBy} \subseteq
       Offered \union {NamedAssignor[m] : m \in Members} \union {NoAssignor}
  /\ intervalRuns \in BOOLEAN
  /\ \A m \in Members : ~IsRegistered(m) => Member(m) = NoMember
  /\ consumer \in [Members ->
       [state : ConsumerStates, epoch : EpochNumbers, given : SUBSET Partitions,
        owned : SUBSET Partitions, local : SUBSET Partitions, named : BOOLEAN,
        reads : SUBSET (Names \union Regexes), news : BOOLEAN]]
  /\ channel \in [Members ->
       [type : {"None", "Request", "Answer"},
        epoch : EpochNumbers \union {LeaveEpoch, StaticLeaveEpoch, NoEpoch}, named : BOOLEAN,
        owned : SUBSET Partitions, reads : SUBSET (Names \union Regexes), error : Errors,
        told : BOOLEAN, given : SUBSET Partitions]]
  /\ commit \in [Members ->
       [type : {"None", "Request", "Answer"}, epoch : EpochNumbers \union {NoEpoch},
        partitions : SUBSET Partitions, error : CommitErrors]]
  /\ \A m \in Members : keptSince[m] \subseteq commit[m].partitions \intersect Holds(Member(m))
  /\ resolved \in [Regexes -> SUBSET Names \union {Unresolved}]
  /\ resolution \in {"None", "Scheduled", "Run"} /\ asked \subseteq Regexes
  /\ matched \subseteq Names /\ regexAge \in {"None", "Recent", "Rested", "Old"}
  /\ regexMisses \in BOOLEAN /\ resultMisses \in BOOLEAN

(***************************************************************************)
(* The coordinator.                                                        *)
(***************************************************************************)

\* A partition is given to nobody while another member holds it.
HeldByOneMember ==
  \A a, b \in Registered : a # b => Holds(Member(a)) \intersect Holds(Member(b)) = {}

\* What is to be revoked is not assigned as well.
RevokedIsNotAssigned ==
  \A m \in Registered : assignedPartitions[m] \intersect partitionsPendingRevocation[m] = {}

\* The target gives every partition that is read to one member, unless nobody has asked since the
\* group changed. Those of a regular expression that was just replaced by an unknown one it may lack.
TargetIsComplete ==
  LET given == UNION {target[m] : m \in Members}
  IN  /\ \A a, b \in Members : a # b => target[a] \intersect target[b] = {}
      /\ assignmentEpoch = groupEpoch /\ Registered # {} =>
           given = hashed \/ (given \subseteq hashed /\ Waiting # {})

\* Nobody has a partition of a topic that it does not read any more (KAFKA-19431).
AssignedIsSubscribed ==
  \A m \in Registered : \A p \in Shown(assignedPartitions[m]) : NameOf[p] \in NamesOf(subscribed[m])

\* A group that does not know its topics as they are will look at them, or at what its regular
\* expressions match.
ChangeIsNoticed ==
  Registered # {} /\ hashed # ReadBy(AllMembers) => refresh \/ Waiting # {}

\* The number of regular expressions tells whether one has to be resolved: none is kept that nobody
\* subscribes to.
ResolvedIsRead == ResolvedRegexes \subseteq SubscribedBy(AllMembers)

\* A member in the group's epoch has its target, but for what others have still to give back. While
\* it waits for its regular expression it has what it still reads of it.
StableIsAssigned ==
  \A m \in Registered :
    memberState[m] = "Stable" /\ memberEpoch[m] = assignmentEpoch =>
      \/ OfItsTopics(Member(m), assignedPartitions[m]) = OfItsTopics(Member(m), target[m])
      \/ /\ subscribed[m] \intersect Regexes # {} /\ assignmentEpoch < groupEpoch
         /\ assignedPartitions[m] \subseteq target[m]

\* Nobody is ahead of the target assignment, which is not ahead of the group.
EpochsInOrder ==
  /\ assignmentEpoch <= groupEpoch
  /\ \A m \in Registered : memberEpoch[m] <= assignmentEpoch

\* The target of the group's epoch is the work of the assignor that most members name.
TargetIsByPreferred == assignmentEpoch = groupEpoch /\ Registered # {} => assignedBy = preferred

\* Nobody is in the group who names an assignor that the coordinator does not have.
AssignorIsOffered == \A m \in Registered : serverAssignor[m] \in Offered \union {NoAssignor}

OneMemberPerInstance ==
  \A a, b \in Registered : a # b /\ IsStatic(a) => InstanceOf[a] # InstanceOf[b]

\* A group does not grow beyond its limit.
SizeIsBounded == Cardinality(Registered) <= MaxSize

(***************************************************************************)
(* Consumers. One that was put out and has not heard of it yet may still   *)
(* own partitions: its commits are refused by its epoch.                   *)
(***************************************************************************)
IsCurrent(m) ==
  /\ IsRegistered(m) /\ consumer[m].state = "Member"
  /\ consumer[m].epoch \in {memberEpoch[m], previousMemberEpoch[m]}

\* No two consumers in good standing own the same partition.
OwnersAreExclusive ==
  \A a, b \in Members :
    a # b /\ IsCurrent(a) /\ IsCurrent(b) => consumer[a].owned \intersect consumer[b].owned = {}

\* A consumer owns nothing beyond what its epoch gives it.
OwnsWithinItsEpoch == \A m \in Members : IsCurrent(m) => consumer[m].owned \subseteq Holds(Member(m))

(***************************************************************************)
(* Steps.                                                                  *)
(***************************************************************************)
EpochsNeverFall ==
  [][/\ groupEpoch' >= groupEpoch /\ assignmentEpoch' >= assignmentEpoch
     /\ \A m \in Members :
          IsRegistered(m) /\ IsRegistered(m)' /\ memberEpoch[m] >= 0 /\ memberEpoch'[m] >= 0 =>
            memberEpoch'[m] >= memberEpoch[m]]_vars

\* The group changes only if who is in it does, or what they read, or the topics that they read, or
\* the assignor that they prefer.
EpochHasCause ==
  [][groupEpoch' # groupEpoch =>
       \/ Registered' # Registered \/ subscribed' # subscribed \/ hashed' # hashed
       \/ resolved' # resolved \/ preferred' # preferred]_vars

\* A target stays for an assignment interval, however often the group changes (KAFKA-20291).
TargetIsKept == [][intervalRuns /\ intervalRuns' => UNCHANGED <<assignmentEpoch, assignedBy>>]_vars

\* Who joins an empty group is assigned at once.
FirstIsAssigned ==
  [][Registered = {} /\ Registered' # {} => assignmentEpoch' = groupEpoch']_vars

\* A partition leaves a member that stays only once that member no longer owns it.
RevokedBeforeReleased ==
  [][\A m \in Members :
       IsCurrent(m) /\ IsRegistered(m)' /\ memberEpoch'[m] >= 0 =>
         (Holds(Member(m)) \ Holds(Member(m))') \intersect consumer[m].owned = {}]_vars

\* Who takes the place of a static member finds that it has given up its partitions.
ReplacedOwnsNothing ==
  [][\A m \in Members :
       /\ IsRegistered(m) /\ ~IsRegistered(m)' /\ IsStatic(m)
       /\ \E other \in Members : InstanceOf[other] = InstanceOf[m] /\ IsRegistered(other)'
       => consumer[m].owned = {}]_vars

\* A full group refuses nobody who is in it, or who takes a static member's place.
PlaceIsKept ==
  [][\A m \in Members :
       channel[m].type = "Request" /\ channel'[m].error = "GROUP_MAX_SIZE_REACHED" =>
         \A other \in Registered : m # other /\ (IsStatic(m) => InstanceOf[m] # InstanceOf[other])]_vars

\* What a static member had when it left for a while stays its own until it is replaced or expires.
StaticKeeps ==
  [][\A m \in Members :
       IsRegistered(m) /\ IsRegistered(m)' /\ memberEpoch'[m] = StaticLeaveEpoch =>
         assignedPartitions'[m] = assignedPartitions[m]]_vars

(***************************************************************************)
(* Commits: what a member commits is what the next owner begins with.      *)
(***************************************************************************)
Taken(m) == commit[m]'.partitions

\* An answered commit. A request that is lost is none.
IsTaken(m) == commit[m].type = "Request" /\ commit[m]'.type = "Answer"

\* Nobody commits a partition that another consumer in good standing owns.
CommitsAreTheOwners ==
  [][\A m \in Members : IsTaken(m) =>
       \A other \in Members \ {m} :
         IsCurrent(other) => consumer[other].owned \intersect Taken(m) = {}]_vars

\* What is committed is what the member holds.
CommittedIsHeld ==
  [][\A m \in Members : IsTaken(m) => Taken(m) \subseteq Holds(Member(m))]_vars

(***************************************************************************)
(* What comes about. Presupposes that nothing is lost and nobody expires.  *)
(***************************************************************************)
Settled ==
  /\ assignmentEpoch = groupEpoch \/ Registered = {}
  /\ UNION {target[m] : m \in Members} = ReadBy(AllMembers)
  /\ \A m \in Registered : consumer[m].state = "Member" => subscribed[m] = consumer[m].reads
  /\ \A m \in Members : consumer[m].state = "Member" =>
       /\ consumer[m].owned = target[m]
       /\ memberState[m] = "Stable" /\ assignedPartitions[m] = target[m]

\* When nothing changes any more, everybody gets what is assigned to him.
AssignmentIsReached == <>[]Settled

\* Every member reads all topics that there are and that its regular expression matches.
RegexReached ==
  <>[](\A r \in SubscribedBy(AllMembers) : Matches[r] \intersect ExistingNames \subseteq NamesOf({r}))

(***************************************************************************)
(* Situations, for suites and coverage.                                    *)
(***************************************************************************)
SomeoneIsWaiting  == \E m \in Members : memberState[m] = "UnreleasedPartitions"
SomeoneIsRevoking == \E m \in Members : memberState[m] = "UnrevokedPartitions"
SomeCommitIsRefused == \E m \in Members : commit[m].error # "NONE"
SomeoneUnsubscribes == \E m \in Members : partitionsPendingRevocation[m] \ PartitionsOf(subscribed[m]) # {}
TargetLags        == assignmentEpoch < groupEpoch /\ Registered # {} /\ intervalRuns
PreferenceIsATie  == Cardinality(MostNamed(AllMembers)) > 1
SomeTopicIsGone   == \E t \in DOMAIN Topics : topics[t] = Gone
SomeoneIsRefused  == \E m \in Members : consumer[m].state = "Failed"
SomeoneIsFenced   == \E m \in Members : consumer[m].state = "Fenced"
SomeoneWaitsForTopics == \E m \in Registered : NamesOf(subscribed[m]) = {}
SomeResultIsLate  == resolution = "Run" /\ ~(asked \subseteq SubscribedBy(AllMembers))
===============================================================================
