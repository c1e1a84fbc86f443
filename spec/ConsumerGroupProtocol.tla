------------------------ MODULE ConsumerGroupProtocol -------------------------
(***************************************************************************)
(* The steps of consumers, of the network and of the coordinator, which    *)
(* handles one request after the other (CoordinatorRuntime).               *)
(***************************************************************************)
EXTENDS ConsumerGroupCoordinator

\* A new group's first epoch, and the one after a member has joined.
FirstEpoch     == 1
EpochAfterJoin == IF groupEpoch = 0 THEN FirstEpoch ELSE groupEpoch + 1

\* The epochs that occur, and how often the group has changed.
EpochNumbers == Epochs \union {epoch + FirstEpoch - 1 : epoch \in Epochs}
Changes      == IF groupEpoch = 0 THEN 0 ELSE groupEpoch - FirstEpoch + 1

\* Bounds: who begins what changes the group leaves epochs for what is under way.
UnderWay  == {m \in Members : \/ consumer[m].state = "Leaving"
                              \/ consumer[m].state = "Joining" /\ ~IsRegistered(m)}
MayBegin  == Changes + Cardinality(UnderWay) + 1 \in Epochs
MayChange == Changes + 1 \in Epochs
CoordinatorStays == UNCHANGED coordinatorVars

\* All but what is noted of a commit under way.
GroupStays == UNCHANGED <<groupEpoch, assignmentEpoch, target, memberState, memberEpoch,
                previousMemberEpoch, assignedPartitions, partitionsPendingRevocation, described>>

(***************************************************************************)
(* Consumers (ConsumerMembershipManager, ConsumerHeartbeatRequestManager). *)
(***************************************************************************)

\* subscribe(), or a new start after it was fenced or left.
Join(m) ==
  /\ consumer[m].state = "Unsubscribed" /\ MayBegin
  /\ consumer' = [consumer EXCEPT ![m] = [NoConsumer EXCEPT !.state = "Joining"]]
  /\ UNCHANGED <<channel, commit>> /\ CoordinatorStays

\* HeartbeatState.buildRequestData: what it owns is named as it joins, when it has changed, and
\* after a failed heartbeat; trunk's client names it then whatever the member is doing.
MayName(c) == NamesWhileReconciling \/ c.local = c.given

SendHeartbeat(m) ==
  LET c     == consumer[m]
      names == c.state = "Joining" \/ (~c.named /\ MayName(c))
  IN  /\ c.state \in {"Joining", "Member"} /\ channel[m].type = "None"
      /\ channel'  = [channel EXCEPT ![m] =
                        IF names THEN Naming(c.epoch, c.local) ELSE Heartbeat(c.epoch)]
      /\ consumer' = [consumer EXCEPT ![m].named = @ \/ names]
      /\ UNCHANGED commit /\ CoordinatorStays

\* What a consumer keeps for itself is given back first.
Kept(c) == c.owned \intersect c.given

\* revokeAndAssign: onPartitionsRevoked of what is no longer in the assignment,
Revoke(m) ==
  /\ consumer[m].state = "Member" /\ Kept(consumer[m]) # consumer[m].owned
  /\ consumer' = [consumer EXCEPT ![m].owned = Kept(consumer[m])]
  /\ UNCHANGED <<channel, commit>> /\ CoordinatorStays

\* then onPartitionsAssigned of what is new, and the next heartbeat will say so (ACKNOWLEDGING).
Assign(m) ==
  LET c == consumer[m]
  IN  /\ c.state = "Member" /\ c.local # c.given /\ c.owned \subseteq c.given
      /\ consumer' = [consumer EXCEPT ![m].owned = c.given, ![m].local = c.given,
                                      ![m].named = FALSE]
      /\ UNCHANGED <<channel, commit>> /\ CoordinatorStays

\* onPartitionsLost has been called: a new join with the same member id.
Abandon(m) ==
  /\ consumer[m].state = "Fenced"
  /\ consumer' = [consumer EXCEPT ![m] = [NoConsumer EXCEPT !.state = "Joining"]]
  /\ UNCHANGED <<channel, commit>> /\ CoordinatorStays

\* close(): everything is revoked, then one last heartbeat says so. A request in flight is given up.
Leave(m) ==
  /\ Leaves /\ consumer[m].state = "Member" /\ channel[m].type = "None" /\ MayBegin
  /\ consumer' = [consumer EXCEPT ![m] = [NoConsumer EXCEPT !.state = "Leaving"]]
  /\ channel'  = [channel EXCEPT ![m] =
                    Naming(IF IsStatic(m) THEN StaticLeaveEpoch ELSE LeaveEpoch, {})]
  /\ UNCHANGED commit /\ CoordinatorStays

\* What onPartitionsLost is called of. Without any the member joins again at once.
LostBy(c) == c.owned

\* transitionToFenced: resetEpoch, then onPartitionsLost, which may take its time.
AfterFencing(c) ==
  IF LostBy(c) = {} THEN [NoConsumer EXCEPT !.state = "Joining"]
  ELSE [c EXCEPT !.state = "Fenced", !.epoch = 0, !.named = FALSE]

AfterAnswer(c, answer) ==
  IF c.state = "Leaving" THEN NoConsumer
  ELSE IF answer.error = "NONE"
  THEN [c EXCEPT !.state = "Member", !.epoch = answer.epoch,
                 !.given = IF answer.told THEN answer.given ELSE @]
  ELSE IF answer.error \in {"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"}
  THEN AfterFencing(c)
  ELSE [NoConsumer EXCEPT !.state = "Failed"]

ReceiveAnswer(m) ==
  /\ channel[m].type = "Answer"
  /\ consumer' = [consumer EXCEPT ![m] = AfterAnswer(@, channel[m])]
  /\ channel'  = [channel EXCEPT ![m] = NoMessage]
  /\ UNCHANGED commit /\ CoordinatorStays

\* CommitRequestManager: what it owns, in the epoch that it knows. Heartbeats go on meanwhile, so
\* the commit may come to the coordinator after later ones.
SendCommit(m) ==
  LET c == consumer[m]
  IN  /\ Commits /\ c.state = "Member" /\ c.owned # {} /\ commit[m].type = "None"
      /\ commit' = [commit EXCEPT ![m] = [NoCommit EXCEPT
                      !.type = "Request", !.epoch = c.epoch, !.partitions = c.owned]]
      /\ keptSince' = [keptSince EXCEPT ![m] = c.owned \intersect Holds(Member(m))]
      /\ GroupStays /\ UNCHANGED <<consumer, channel>>

\* OffsetCommitRequestState.onResponse: a heartbeat will tell what the member is, a commit does not.
ReceiveCommit(m) ==
  /\ commit[m].type = "Answer"
  /\ commit' = [commit EXCEPT ![m] = NoCommit]
  /\ UNCHANGED <<consumer, channel>> /\ CoordinatorStays

(***************************************************************************)
(* The network. Who leaves does not ask again; others forget what they     *)
(* have named (onFailure: HeartbeatState.reset).                           *)
(***************************************************************************)
LoseMessage(m) ==
  /\ Losses /\ channel[m].type # "None"
  /\ channel'  = [channel EXCEPT ![m] = NoMessage]
  /\ consumer' = [consumer EXCEPT ![m] =
                    IF @.state = "Leaving" THEN NoConsumer ELSE [@ EXCEPT !.named = FALSE]]
  /\ UNCHANGED commit /\ CoordinatorStays

LoseCommit(m) ==
  /\ Losses /\ commit[m].type # "None"
  /\ commit' = [commit EXCEPT ![m] = NoCommit]
  /\ keptSince' = [keptSince EXCEPT ![m] = {}]
  /\ GroupStays /\ UNCHANGED <<consumer, channel>>

(***************************************************************************)
(* The coordinator.                                                        *)
(***************************************************************************)

\* A heartbeat that is refused changes nothing.
RefuseHeartbeat(m) ==
  LET error == Error(m, channel[m])
  IN  /\ channel[m].type = "Request" /\ error # "NONE"
      /\ channel' = [channel EXCEPT ![m] = Refusal(error)]
      /\ UNCHANGED <<consumer, commit>> /\ CoordinatorStays

\* The member that a joining static one replaces (replaceMember): its partitions come with it.
Replaced(m) == {other \in OfInstance(m) : other # m}
Inherited(m) ==
  IF OfInstance(m) # {}
  THEN [Member(CHOOSE other \in OfInstance(m) : TRUE) EXCEPT !.epoch = 0, !.previous = 0]
  ELSE IF IsRegistered(m) THEN Member(m) ELSE NewMember
Subscribed(m) ==
  [other \in Members |->
    IF other = m THEN Inherited(m) ELSE IF other \in Replaced(m) THEN NoMember ELSE Member(other)]

IsNew(m) == ~IsRegistered(m) /\ Replaced(m) = {}
Bumped(m) == IF channel[m].epoch = JoinEpoch /\ IsNew(m) THEN EpochAfterJoin ELSE groupEpoch

TargetsAfter(m, registered) ==
  LET inherited == UNION {target[other] : other \in Replaced(m)}
  IN  IF Bumped(m) > assignmentEpoch THEN TargetAssignments(registered)
      ELSE {[other \in Members |->
               IF other = m /\ channel[m].epoch = JoinEpoch THEN target[m] \union inherited
               ELSE IF other \in Replaced(m) /\ channel[m].epoch = JoinEpoch THEN {}
               ELSE target[other]]}

\* The answer has the assignment if it has changed, or if the request had all fields.
AnswerTo(request, moved, before) ==
  IF request.epoch = JoinEpoch \/ request.named \/ moved.assigned # before.assigned
  THEN Telling(moved.epoch, moved.assigned)
  ELSE Answer(moved.epoch)

\* consumerGroupHeartbeat: subscribe, assign if the group has changed, reconcile this member.
HandleHeartbeat(m) ==
  LET request == channel[m]
      joined  == IF request.epoch = JoinEpoch THEN Subscribed(m) ELSE AllMembers
      present == {other \in Members : joined[other].state # "None"}
      held    == UNION {Holds(joined[other]) : other \in present}
  IN  /\ request.type = "Request" /\ request.epoch >= JoinEpoch
      /\ Error(m, request) = "NONE" /\ (Bumped(m) = groupEpoch \/ MayChange)
      /\ groupEpoch' = Bumped(m)
      /\ assignmentEpoch' = Bumped(m)
      /\ \E given \in TargetsAfter(m, present) :
           LET moved == Reconciled(joined[m], Bumped(m), given[m], request, held)
           IN  /\ target' = given
               /\ MembersBecome([joined EXCEPT ![m] = moved])
               /\ channel' = [channel EXCEPT ![m] = AnswerTo(request, moved, joined[m])]
      /\ UNCHANGED <<consumer, commit>>

EpochAfterRemoval == groupEpoch + 1

\* Nothing is assigned anew before the next heartbeat.
AssignmentEpochAfterRemoval(m) == assignmentEpoch

\* consumerGroupFenceMember: removed, and the group is another one.
Remove(m) ==
  /\ MayChange
  /\ MembersBecome([AllMembers EXCEPT ![m] = NoMember])
  /\ target' = [target EXCEPT ![m] = {}]
  /\ groupEpoch' = EpochAfterRemoval
  /\ assignmentEpoch' = AssignmentEpochAfterRemoval(m)

HandleLeave(m) ==
  /\ channel[m].type = "Request" /\ channel[m].epoch = LeaveEpoch
  /\ Error(m, channel[m]) = "NONE"
  /\ Remove(m)
  /\ channel' = [channel EXCEPT ![m] = Answer(LeaveEpoch)]
  /\ UNCHANGED <<consumer, commit>>

\* What it has is kept for whoever comes back, and its session goes on.
LeftForAWhile(k) == [k EXCEPT !.epoch = StaticLeaveEpoch, !.revoking = {}]

\* consumerGroupStaticMemberGroupLeave.
HandleStaticLeave(m) ==
  /\ channel[m].type = "Request" /\ channel[m].epoch = StaticLeaveEpoch
  /\ Error(m, channel[m]) = "NONE"
  /\ MembersBecome([AllMembers EXCEPT ![m] = LeftForAWhile(Member(m))])
  /\ channel' = [channel EXCEPT ![m] = Answer(StaticLeaveEpoch)]
  /\ UNCHANGED <<groupEpoch, assignmentEpoch, target, consumer, commit>>

\* OffsetMetadataManager.commitOffset: taken or refused, the group is the same.
HandleCommit(m) ==
  /\ commit[m].type = "Request"
  /\ commit' = [commit EXCEPT ![m] = CommitAnswer(m, commit[m])]
  /\ keptSince' = [keptSince EXCEPT ![m] = {}]
  /\ GroupStays /\ UNCHANGED <<consumer, channel>>

\* consumerGroupSessionTimeoutKey's timer: no heartbeat in time.
ExpireSession(m) ==
  /\ Expiries /\ IsRegistered(m) /\ Remove(m)
  /\ UNCHANGED <<consumer, channel, commit>>

\* consumerGroupRebalanceTimeoutKey's timer: runs while partitions are to be revoked.
ExpireRebalance(m) ==
  /\ Expiries /\ memberState[m] = "UnrevokedPartitions" /\ memberEpoch[m] # StaticLeaveEpoch
  /\ Remove(m)
  /\ UNCHANGED <<consumer, channel, commit>>

(***************************************************************************)
(* The specification. Fair: consumers that stay go on, requests are served.*)
(***************************************************************************)
Next ==
  \/ \E m \in Members : Join(m)
  \/ \E m \in Members : SendHeartbeat(m)
  \/ \E m \in Members : Revoke(m)
  \/ \E m \in Members : Assign(m)
  \/ \E m \in Members : Abandon(m)
  \/ \E m \in Members : Leave(m)
  \/ \E m \in Members : ReceiveAnswer(m)
  \/ \E m \in Members : LoseMessage(m)
  \/ \E m \in Members : SendCommit(m)
  \/ \E m \in Members : HandleCommit(m)
  \/ \E m \in Members : ReceiveCommit(m)
  \/ \E m \in Members : LoseCommit(m)
  \/ \E m \in Members : RefuseHeartbeat(m)
  \/ \E m \in Members : HandleHeartbeat(m)
  \/ \E m \in Members : HandleLeave(m)
  \/ \E m \in Members : HandleStaticLeave(m)
  \/ \E m \in Members : ExpireSession(m)
  \/ \E m \in Members : ExpireRebalance(m)

Fairness ==
  \A m \in Members :
    /\ WF_vars(SendHeartbeat(m)) /\ WF_vars(ReceiveAnswer(m))
    /\ WF_vars(Revoke(m)) /\ WF_vars(Assign(m)) /\ WF_vars(Abandon(m))
    /\ WF_vars(RefuseHeartbeat(m)) /\ WF_vars(HandleHeartbeat(m))
    /\ WF_vars(HandleLeave(m)) /\ WF_vars(HandleStaticLeave(m))

Spec     == Init /\ [][Next]_vars
FairSpec == Spec /\ Fairness
===============================================================================
