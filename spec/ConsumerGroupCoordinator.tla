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

\* consumerGroupLeave asks who it is, and no epoch.
Error(m, request) ==
  IF request.epoch = JoinEpoch THEN JoinError(m, request)
  ELSE IF request.epoch \in {LeaveEpoch, StaticLeaveEpoch} THEN IdentityError(m)
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
(* The target assignment: any that gives out every partition, evenly       *)
(* (the uniform and the range assignor do; which one it is, is its choice).*)
(***************************************************************************)
IsEven(shares) == \A a, b \in DOMAIN shares : Cardinality(shares[a]) <= Cardinality(shares[b]) + 1

TargetAssignments(members) ==
  {[m \in Members |-> IF m \in members THEN {p \in Partitions : owner[p] = m} ELSE {}] :
     owner \in {o \in [Partitions -> members] :
                  IsEven([m \in members |-> {p \in Partitions : o[p] = m}])}}

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

MoveOn(k, from, epoch, wanted, m, held) ==
  LET kept    == k.assigned \intersect wanted
      revoked == k.assigned \ wanted
      missing == wanted \ kept
      free    == Released(missing, HeldFor(k, held))
  IN  IF revoked # {} /\ StillOwns(m, revoked)
      THEN [state |-> "UnrevokedPartitions", epoch |-> from, previous |-> k.epoch,
            assigned |-> kept, revoking |-> revoked]
      ELSE [state |-> IF free = missing THEN "Stable" ELSE "UnreleasedPartitions",
            epoch |-> epoch, previous |-> k.epoch,
            assigned |-> kept \union free, revoking |-> {}]

\* A member that has given back all that it was to revoke is in the next epoch.
EpochAfterRevocation(k) == k.epoch + 1

Reconciled(k, epoch, wanted, m, held) ==
  IF k.state = "Stable" /\ k.epoch = epoch THEN k
  ELSE IF k.state = "UnrevokedPartitions"
  THEN IF StillOwns(m, k.revoking) THEN k
       ELSE MoveOn(k, EpochAfterRevocation(k), epoch, wanted, m, held)
  ELSE MoveOn(k, k.epoch, epoch, wanted, m, held)
===============================================================================
