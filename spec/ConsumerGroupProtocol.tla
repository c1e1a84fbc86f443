------------------------ MODULE ConsumerGroupProtocol -------------------------
(***************************************************************************)
(* The steps of consumers, of the network and of the coordinator, which    *)
(* handles one request after the other (CoordinatorRuntime).               *)
(***************************************************************************)
EXTENDS ConsumerGroupRegex

\* A new group's first epoch, and the one after a heartbeat that has changed it.
FirstEpoch == 1
NextEpoch  == IF groupEpoch = 0 THEN FirstEpoch ELSE groupEpoch + 1

\* The epochs that occur, and how often the group has changed.
EpochNumbers == Epochs \union {epoch + FirstEpoch - 1 : epoch \in Epochs}
Changes      == IF groupEpoch = 0 THEN 0 ELSE groupEpoch - FirstEpoch + 1

\* Bounds: who begins what changes the group leaves epochs for what is under way.
UnderWay  == {m \in Members : \/ consumer[m].state = "Leaving"
                              \/ consumer[m].state = "Joining" /\ ~IsRegistered(m)
                              \/ IsRegistered(m) /\ consumer[m].state = "Member"
                                 /\ consumer[m].reads # subscribed[m]}
MayBegin  == Changes + CostOfChange * (Cardinality(UnderWay) + 1) + (IF refresh THEN 1 ELSE 0)
             + ResolutionsDue \in Epochs
MayChange == Changes + 1 \in Epochs
\* Topics and subscriptions change once all are in the group.
MayVary   == MayBegin /\ Registered = Members
CoordinatorStays == UNCHANGED coordinatorVars

\* All but what is noted of a commit under way.
GroupStays == UNCHANGED groupVars

(***************************************************************************)
(* Consumers (ConsumerMembershipManager, ConsumerHeartbeatRequestManager). *)
(***************************************************************************)

\* subscribe(), or a new start after it was fenced or left.
Join(m) ==
  /\ consumer[m].state = "Unsubscribed" /\ MayBegin
  /\ consumer' = [consumer EXCEPT ![m] = Begins(Reads[m])]
  /\ UNCHANGED <<channel, commit>> /\ CoordinatorStays

\* HeartbeatState.buildRequestData: what it owns is named as it joins, when it has changed, and
\* after a failed heartbeat; trunk's client names it then whatever the member is doing.
MayName(c) == NamesWhileReconciling \/ c.local = c.given

SendHeartbeat(m) ==
  LET c     == consumer[m]
      names == c.state = "Joining" \/ (~c.named /\ MayName(c))
      sent  == IF names THEN Naming(c.epoch, c.local) ELSE Heartbeat(c.epoch)
  IN  /\ c.state \in {"Joining", "Member"} /\ channel[m].type = "None"
      /\ channel'  = [channel EXCEPT ![m] =
                        IF names \/ c.news THEN [sent EXCEPT !.reads = c.reads] ELSE sent]
      /\ consumer' = [consumer EXCEPT ![m].named = @ \/ names, ![m].news = FALSE]
      /\ UNCHANGED commit /\ CoordinatorStays

\* subscribe() with other topics. Bound: one change after the other.
Resubscribe(m, names) ==
  /\ names \in Resubscribes[m] \ {consumer[m].reads}
  /\ consumer[m].state = "Member" /\ ~consumer[m].news /\ channel[m].reads = {} /\ MayVary
  /\ consumer' = [consumer EXCEPT ![m].reads = names, ![m].news = TRUE]
  /\ UNCHANGED <<channel, commit>> /\ CoordinatorStays

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
  /\ consumer' = [consumer EXCEPT ![m] = Begins(@.reads)]
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
  IF LostBy(c) = {} THEN Begins(c.reads)
  ELSE [c EXCEPT !.state = "Fenced", !.epoch = 0, !.named = FALSE, !.news = FALSE]

\* What it was given is taken away before it has taken it: it says once more what it has.
IsTakenBack(c, answer) == answer.told /\ answer.given # c.given /\ answer.given = c.local

AfterAnswer(c, answer) ==
  IF c.state = "Leaving" THEN NoConsumer
  ELSE IF answer.error = "NONE"
  THEN [c EXCEPT !.state = "Member", !.epoch = answer.epoch,
                 !.given = IF answer.told THEN answer.given ELSE @,
                 !.named = @ /\ ~IsTakenBack(c, answer)]
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

\* A request that says what its sender reads, and no more.
IsUnheard(m) == channel[m].type = "Request" /\ channel[m].reads # {} /\ ~channel[m].named

LoseMessage(m) ==
  /\ Losses /\ channel[m].type # "None"
  /\ channel'  = [channel EXCEPT ![m] = NoMessage]
  /\ consumer' = [consumer EXCEPT ![m] =
                    IF @.state = "Leaving" THEN NoConsumer
                    ELSE [@ EXCEPT !.named = FALSE, !.news = @ \/ IsUnheard(m)]]
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
Joined(m) ==
  [other \in Members |->
    IF other = m THEN Inherited(m) ELSE IF other \in Replaced(m) THEN NoMember ELSE Member(other)]

\* The members that a heartbeat finds, and what they are once it has said what its sender reads and
\* which assignor it names. A field that a request does not have stays as it was.
Found(m)   == IF channel[m].epoch = JoinEpoch THEN Joined(m) ELSE AllMembers
NamesAssignor(m) == channel[m].named /\ NamedAssignor[m] # NoAssignor
Updated(m) ==
  [Found(m) EXCEPT ![m].reads = IF channel[m].reads = {} THEN @ ELSE channel[m].reads,
                   ![m].assignor = IF NamesAssignor(m) THEN NamedAssignor[m] ELSE @]
IsNews(m)  == Updated(m)[m].reads # Found(m)[m].reads

\* hasPreferredServerAssignorChanged (KAFKA-20434): a group without members prefers the default.
PreferredBefore == IF preferred = NoAssignor THEN Assignors[1] ELSE preferred
PreferredChanges(m) == Preferred(Updated(m)) # PreferredBefore

\* The group is another one if a member reads other topics, and it is known which, or if the
\* preferred assignor changes; its topics are looked at on request.
HashDiffers(members) == ReadBy(members) # hashed
IsAnother(m) == IsNews(m) /\ IsKnown(Found(m)[m].reads, Updated(m)[m].reads)

\* Of a group whose first member waits for its regular expression: it has left epoch 0. Where that is
\* an epoch before the first one (KAFKA-20268), nobody has made its target.
EpochOfWaitingGroup == FirstEpoch
EpochAfter(m) ==
  IF IsAnother(m) \/ PreferredChanges(m) \/ (refresh /\ HashDiffers(Updated(m))) THEN NextEpoch
  ELSE IF groupEpoch = 0 THEN EpochOfWaitingGroup
  ELSE groupEpoch

\* canComputeNextTargetAssignment (KAFKA-20291).
IntervalIsOver == ~intervalRuns

\* maybeUpdateTargetAssignment: which assignor makes the target,
MadeBy(m) == Preferred(Updated(m))

\* and to the target of which epoch the member is reconciled.
TargetEpoch(epoch, isDue) == IF isDue THEN epoch ELSE assignmentEpoch

TargetsAfter(m, isDue, members) ==
  LET inherited == UNION {target[other] : other \in Replaced(m)}
  IN  IF isDue THEN TargetAssignments(members)
      ELSE {[other \in Members |->
               IF other = m /\ channel[m].epoch = JoinEpoch THEN target[m] \union inherited
               ELSE IF other \in Replaced(m) /\ channel[m].epoch = JoinEpoch THEN {}
               ELSE target[other]]}

\* The answer has the assignment if it has changed, or if the request had all fields.
AnswerTo(request, moved, before) ==
  IF request.epoch = JoinEpoch \/ request.named \/ moved.assigned # before.assigned
  THEN Telling(moved.epoch, moved.assigned)
  ELSE Answer(moved.epoch)

\* consumerGroupHeartbeat: subscribe, assign if the group has changed and the target is not too new
\* for that, reconcile this member.
\* `\E x \in {value}` and not LET: in ENABLED, for fairness, TLC evaluates a LET wherever it is used.
HandleHeartbeat(m) ==
  /\ channel[m].type = "Request" /\ channel[m].epoch >= JoinEpoch
  /\ Error(m, channel[m]) = "NONE"
  /\ \E request \in {channel[m]}, members \in {Updated(m)}, epoch \in {EpochAfter(m)} :
       LET isDue  == epoch > assignmentEpoch /\ IntervalIsOver
           isMade == isDue /\ epoch >= FirstEpoch
           held   == UNION {Holds(members[other]) : other \in Members}
       IN  /\ epoch = groupEpoch \/ MayChange
           /\ groupEpoch' = epoch
           /\ assignmentEpoch' = IF isDue THEN epoch ELSE assignmentEpoch
           /\ assignedBy' = IF isMade THEN MadeBy(m) ELSE assignedBy
           /\ intervalRuns' = IF isMade THEN AssignmentInterval ELSE intervalRuns
           /\ hashed' = IF epoch = groupEpoch THEN hashed ELSE ReadBy(members)
           /\ refresh' = FALSE
           /\ \E given \in TargetsAfter(m, isDue, members) :
              \E moved \in {Reconciled(members[m], TargetEpoch(epoch, isDue), given[m], request, held,
                                       IsNews(m))} :
                /\ target' = given
                /\ MembersBecome([members EXCEPT ![m] = moved])
                /\ channel' = [channel EXCEPT ![m] = AnswerTo(request, moved, members[m])]
           /\ RegexesAfter(Found(m)[m].reads, members, members[m].reads)
           /\ UNCHANGED <<topics, consumer, commit>>

EpochAfterRemoval == groupEpoch + 1

\* Nothing is assigned anew before the next heartbeat.
AssignmentEpochAfterRemoval(m) == assignmentEpoch

\* Who joins an empty group waits for no interval (KAFKA-20442).
IntervalAfterRemoval(m) == intervalRuns /\ Registered # {m}

\* consumerGroupFenceMember: removed, and the group is another one.
Remove(m) ==
  /\ MayChange
  /\ MembersBecome([AllMembers EXCEPT ![m] = NoMember])
  /\ hashed' = ReadBy([AllMembers EXCEPT ![m] = NoMember])
  /\ Forget([AllMembers EXCEPT ![m] = NoMember])
  /\ UNCHANGED <<topics, refresh, assignedBy, taskVars>>
  /\ target' = [target EXCEPT ![m] = {}]
  /\ groupEpoch' = EpochAfterRemoval
  /\ assignmentEpoch' = AssignmentEpochAfterRemoval(m)
  /\ intervalRuns' = IntervalAfterRemoval(m)

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
  /\ UNCHANGED <<groupEpoch, targetVars, topics, hashed, refresh, regexVars, consumer, commit>>

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

\* Time. Nothing is assigned before the next heartbeat of any member.
PassAssignmentInterval ==
  /\ intervalRuns /\ intervalRuns' = FALSE
  /\ UNCHANGED <<groupEpoch, assignmentEpoch, target, assignedBy, topics, hashed, refresh,
                 assignmentVars, described, keptSince, regexVars, consumer, channel, commit>>

(***************************************************************************)
(* Topics. What the coordinator hears of them changes no group: the next   *)
(* heartbeat does (GroupMetadataManager.onMetadataUpdate).                 *)
(***************************************************************************)
IsRead(t) == \E m \in Registered : Topics[t].name \in NamesOf(subscribed[m])

\* Groups that read the topic are asked to look at their topics again.
RefreshAfter(t) == refresh \/ IsRead(t)

TopicBecomes(t, size) ==
  /\ MayVary
  /\ UNCHANGED <<resolved, resolution, asked, matched, regexAge>>
  /\ topics'  = [topics EXCEPT ![t] = size]
  /\ refresh' = RefreshAfter(t)
  /\ described' = [m \in Members |-> {p \in described[m] : TopicOf[p] # t \/ size # Gone}]
  /\ UNCHANGED <<groupEpoch, targetVars, hashed, assignmentVars, keptSince, consumer, channel,
                 commit>>

CreateTopic(t) ==
  /\ topics[t] = NotYet
  /\ \A other \in DOMAIN Topics : Topics[other].name = Topics[t].name => topics[other] <= NotYet
  /\ TopicBecomes(t, Topics[t].size)
  /\ IsMissed

AddPartition(t) ==
  /\ topics[t] > NotYet /\ topics[t] < Cardinality(Topics[t].partitions)
  /\ TopicBecomes(t, topics[t] + 1)
  /\ UNCHANGED <<regexMisses, resultMisses>>

\* A partition has another leader: the image has changed, and no group is another one.
MoveLeader(t) ==
  /\ topics[t] > NotYet /\ Topics[t].mayMove /\ ~refresh /\ IsRead(t)
  /\ TopicBecomes(t, topics[t])
  /\ UNCHANGED <<regexMisses, resultMisses>>

DeleteTopic(t) ==
  /\ topics[t] > NotYet /\ Topics[t].mayGo
  /\ TopicBecomes(t, Gone)
  /\ UNCHANGED <<regexMisses, resultMisses>>

(***************************************************************************)
(* Regular expressions: the executor's thread, the result, and time.       *)
(***************************************************************************)

\* TopicRegexResolver.resolveRegularExpressions: the metadata image is that of now.
RunResolution ==
  /\ resolution = "Scheduled"
  /\ resolution' = "Run"
  /\ matched' = ExistingNames
  /\ UNCHANGED <<groupEpoch, targetVars, topics, hashed, refresh, assignmentVars,
                 described, keptSince, resolved, asked, regexAge, regexMisses, resultMisses,
                 consumer, channel, commit>>

\* handleRegularExpressionsResult: the group is another one if its topics are others.
WriteResolution ==
  LET differs == IsAnotherWith(Written)
  IN  /\ resolution = "Run" /\ (differs => MayChange)
      /\ TakeResult
      /\ groupEpoch' = IF differs THEN EpochAfterResolution ELSE groupEpoch
      /\ hashed' = IF differs THEN ReadWith(Written) ELSE hashed
      /\ refresh' = (refresh /\ ~differs)
      /\ UNCHANGED <<targetVars, topics, assignmentVars, described, keptSince,
                     consumer, channel, commit>>

\* Bound: no time passes while a task is under way.
TimePasses(age) ==
  /\ resolution = "None"
  /\ regexAge' = age
  /\ UNCHANGED <<groupEpoch, targetVars, topics, hashed, refresh, assignmentVars,
                 described, keptSince, resolved, taskVars, regexMisses, consumer, channel, commit>>

\* REGEX_BATCH_REFRESH_MIN_INTERVAL_MS: ten seconds.
PassMinInterval == regexAge = "Recent" /\ TimePasses("Rested")

\* group.consumer.regex.refresh.interval.ms: ten minutes (KAFKA-18961).
PassRefreshInterval == RefreshesByTime /\ regexAge = "Rested" /\ TimePasses("Old")

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
  \/ \E m \in Members, names \in SUBSET (Names \union Regexes) : Resubscribe(m, names)
  \/ \E t \in DOMAIN Topics : CreateTopic(t)
  \/ \E t \in DOMAIN Topics : AddPartition(t)
  \/ \E t \in DOMAIN Topics : MoveLeader(t)
  \/ \E t \in DOMAIN Topics : DeleteTopic(t)
  \/ RunResolution
  \/ WriteResolution
  \/ PassMinInterval
  \/ PassRefreshInterval
  \/ PassAssignmentInterval

Fairness ==
  /\ WF_vars(RunResolution) /\ WF_vars(WriteResolution) /\ WF_vars(PassMinInterval)
  /\ WF_vars(PassAssignmentInterval)
  /\ \A m \in Members :
       /\ WF_vars(SendHeartbeat(m)) /\ WF_vars(ReceiveAnswer(m))
       /\ WF_vars(Revoke(m)) /\ WF_vars(Assign(m)) /\ WF_vars(Abandon(m))
       /\ WF_vars(RefuseHeartbeat(m)) /\ WF_vars(HandleHeartbeat(m))
       /\ WF_vars(HandleLeave(m)) /\ WF_vars(HandleStaticLeave(m))

Spec     == Init /\ [][Next]_vars
FairSpec == Spec /\ Fairness
===============================================================================
