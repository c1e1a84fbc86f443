----------------------- MODULE ConsumerGroupCoordinator -----------------------
(***************************************************************************)
(* What the coordinator makes of a heartbeat, without side effects.        *)
(* Operators that a mutant overrides stand alone.                          *)
(***************************************************************************)
EXTENDS ConsumerGroupState

(***************************************************************************)
(* May the request be served? throwIfConsumerGroupMemberEpochIsInvalid and *)
(* the checks of static members.                                           *)
(***************************************************************************)

\* The previous epoch is taken, as the answer with the newer one may be lost.
AcceptsPrevious(k, m) == m.epoch = k.previous /\ m.named /\ m.owned \subseteq k.assigned
EpochIsValid(k, m)    == m.epoch = k.epoch \/ (m.epoch < k.epoch /\ AcceptsPrevious(k, m))

\* The members that hold a static member's instance id: one at most.
OfInstance(m) ==
  {other \in Registered : IsStatic(m) /\ InstanceOf[other] = InstanceOf[m]}

\* throwIfInstanceIdIsUnreleased: only who has left for a while is replaced.
IsReleased(other) == memberEpoch[other] = StaticLeaveEpoch

\* Who is there already may join again if its join's answer can have been lost.
AcceptsJoin(k, request) == EpochIsValid(k, request)

JoinError(m, request) ==
  IF IsStatic(m)
  THEN IF \A other \in OfInstance(m) : IsReleased(other) THEN "NONE"
       ELSE "UNRELEASED_INSTANCE_ID"
  ELSE IF IsRegistered(m) /\ ~AcceptsJoin(Member(m), request) THEN "FENCED_MEMBER_EPOCH"
  ELSE "NONE"

IdentityError(m) ==
  IF IsStatic(m)
  THEN IF OfInstance(m) = {} THEN "UNKNOWN_MEMBER_ID"
       ELSE IF m \notin OfInstance(m) THEN "FENCED_INSTANCE_ID"
       ELSE "NONE"
  ELSE IF IsRegistered(m) THEN "NONE" ELSE "UNKNOWN_MEMBER_ID"

HeartbeatError(m, request) ==
  IF IdentityError(m) # "NONE" THEN IdentityError(m)
  ELSE IF EpochIsValid(Member(m), request) THEN "NONE"
  ELSE "FENCED_MEMBER_EPOCH"

\* throwIfConsumerGroupIsFull: who is there stays, and so does a static member's place (KAFKA-20601).
HasRoom     == Cardinality(Registered) < MaxSize
HasPlace(m) == IsRegistered(m) \/ OfInstance(m) # {}

\* GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid, before any state.
IsSupported(m) == NamedAssignor[m] \in Offered \union {NoAssignor}

\* consumerGroupLeave asks who it is, and no epoch.
Error(m, request) ==
  IF request.named /\ ~IsSupported(m) THEN "UNSUPPORTED_ASSIGNOR"
  ELSE IF request.epoch \in {LeaveEpoch, StaticLeaveEpoch} THEN IdentityError(m)
  ELSE IF ~HasRoom /\ ~HasPlace(m) THEN "GROUP_MAX_SIZE_REACHED"
  ELSE IF request.epoch = JoinEpoch THEN JoinError(m, request)
  ELSE HeartbeatError(m, request)

(***************************************************************************)
(* ConsumerGroup.validateOffsetCommit.                                     *)
(***************************************************************************)
MayCommit(m, request) == request.epoch = memberEpoch[m]

\* All of a request is taken, or nothing.
CommitAnswer(m, request) ==
  LET error == IF ~IsRegistered(m) THEN "UNKNOWN_MEMBER_ID"
               ELSE IF MayCommit(m, request) THEN "NONE"
               ELSE "STALE_MEMBER_EPOCH"
  IN  [NoCommit EXCEPT !.type = "Answer", !.error = error,
                       !.partitions = IF error = "NONE" THEN request.partitions ELSE {}]

(***************************************************************************)
(* The target assignment: any that gives out every partition that somebody *)
(* reads, evenly, topic by topic (the range assignor) or in all (the       *)
(* uniform one); which one it is, is the coordinator's choice.             *)
(***************************************************************************)
IsEven(shares) == \A a, b \in DOMAIN shares : Cardinality(shares[a]) <= Cardinality(shares[b]) + 1

\* owner: of each partition that is read.
IsEvenIn(t, members, owner) ==
  IsEven([m \in {reader \in Members : Topics[t].name \in NamesOf(members[reader].reads)} |->
            {p \in DOMAIN owner : TopicOf[p] = t /\ owner[p] = m}])

IsFair(members, owner) ==
  \/ \A t \in DOMAIN Topics : IsEvenIn(t, members, owner)
  \/ IsEven([m \in {reader \in Members : NamesOf(members[reader].reads) # {}} |->
               {p \in DOMAIN owner : owner[p] = m}])

TargetAssignments(members) ==
  {[m \in Members |-> {p \in DOMAIN owner : owner[p] = m}] :
     owner \in {o \in [ReadBy(members) -> Members] :
                  /\ \A p \in DOMAIN o : NameOf[p] \in NamesOf(members[o[p]].reads)
                  /\ IsFair(members, o)}}

(***************************************************************************)
(* CurrentAssignmentBuilder. k is the member, wanted its target of the     *)
(* epoch, m its heartbeat, held what members hold by now.                  *)
(***************************************************************************)

\* ownsRevokedPartitions: a heartbeat that does not say what its sender owns gives nothing back.
StillOwns(m, revoked) == ~m.named \/ m.owned \intersect revoked # {}

\* A partition is given out when nobody holds it, the member itself included.
Released(partitions, held) == partitions \ held

\* What a member has given back with this heartbeat counts as held until its next one.
HeldFor(k, held) == held

\* Nobody has partitions of topics that it does not read (KAFKA-19431), or that are gone.
OfItsTopics(k, partitions) == partitions \intersect PartitionsOf(k.reads)

MoveOn(k, from, epoch, given, m, held) ==
  LET wanted  == OfItsTopics(k, given)
      kept    == k.assigned \intersect wanted
      revoked == k.assigned \ wanted
      missing == wanted \ kept
      free    == Released(missing, HeldFor(k, held))
  IN  IF revoked # {} /\ StillOwns(m, revoked)
      THEN [k EXCEPT !.state = "UnrevokedPartitions", !.epoch = from, !.previous = k.epoch,
                     !.assigned = kept, !.revoking = revoked]
      ELSE [k EXCEPT !.state = IF free = missing THEN "Stable" ELSE "UnreleasedPartitions",
                     !.epoch = epoch, !.previous = k.epoch,
                     !.assigned = kept \union free, !.revoking = {}]

\* Who waits for its regular expression, or for its topics, reads nothing.
ReadsNothing(k) == OfItsTopics(k, Partitions) = {}

\* updateCurrentAssignment: who unsubscribes gives up at once what it read, in the epoch that it has.
\* Who reads nothing any more has given up all, were it nothing: its epoch is told once more.
Trimmed(k, m) ==
  LET kept    == OfItsTopics(k, k.assigned)
      revoked == k.revoking \union (k.assigned \ kept)
  IN  IF kept = k.assigned /\ ~(ReadsNothing(k) /\ k.revoking = {}) THEN k
      ELSE IF revoked # {} /\ StillOwns(m, revoked)
      THEN [k EXCEPT !.state = "UnrevokedPartitions", !.previous = k.epoch,
                     !.assigned = kept, !.revoking = revoked]
      ELSE [k EXCEPT !.previous = k.epoch, !.assigned = kept]

\* A member that has given back all that it was to revoke is in the next epoch.
EpochAfterRevocation(k) == k.epoch + 1

\* isNews: the heartbeat says that the member reads other topics.
Reconciled(k, epoch, wanted, m, held, isNews) ==
  IF \/ k.state = "Stable" /\ k.epoch = epoch
     \/ k.state = "UnrevokedPartitions" /\ StillOwns(m, k.revoking)
  THEN IF isNews THEN Trimmed(k, m) ELSE k
  ELSE IF k.state = "UnrevokedPartitions"
  THEN MoveOn(k, EpochAfterRevocation(k), epoch, wanted, m, held)
  ELSE MoveOn(k, k.epoch, epoch, wanted, m, held)
===============================================================================
