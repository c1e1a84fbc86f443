----------------------------- MODULE MemberOffsets ----------------------------
(***************************************************************************)
(* The positions of a group that has members: who may commit in which      *)
(* state of the group, what becomes of positions when offsets or the group *)
(* are deleted, when they expire, and the end of a transaction as two      *)
(* steps (the marker, and what the coordinator makes of it). What becomes  *)
(* of one commit is GroupOffsets; how a group rebalances is                *)
(* GroupMembership: here a member joins, follows and leaves in one step.   *)
(*                                                                         *)
(* Kafka 3.8: GroupCoordinator (validateOffsetCommit, handleDeleteOffsets, *)
(* handleDeleteGroups), GroupMetadata (removeExpiredOffsets,               *)
(* isSubscribedToTopic), GroupMetadataManager (cleanupGroupMetadata,       *)
(* scheduleHandleTxnCompletion). KIP-211, KIP-447, KIP-496.                *)
(***************************************************************************)
EXTENDS GroupOffsets

CONSTANTS
  Members,         \* members that may join
  Subscribers,     \* those of them that subscribe to the partition's topic
  MaxGenerations,  \* so many generations with members
  Deletions,       \* OffsetDelete and DeleteGroups
  Sizes            \* of commits: "fits"; "half": of another partition too, with too much
                   \* metadata; "large": the metadata is too much

(***************************************************************************)
(* variable | field                                                        *)
(* ---------+------------------------------------------------------------- *)
(* group    | GroupMetadata: state, generationId, protocolType, members,   *)
(*          | of these the ones whose JoinGroup is parked, whether the last*)
(*          | completed generation subscribes to the topic                 *)
(*          | (subscribedTopics), and of an Empty group whether it has been*)
(*          | so for the retention (currentStateTimestamp)                 *)
(* emptied  | producers that pendingTransactionalOffsetCommits has with no *)
(*          | position, since their positions were deleted                 *)
(* ended[p] | a task of scheduleHandleTxnCompletion that waits             *)
(* aged     | the retention is over for what lies up to here in the log    *)
(* orphans  | places whose appends are of a group that is Dead by now      *)
(* taken    | ghost: the last commit that was taken, and in which state    *)
(***************************************************************************)
VARIABLES group, emptied, ended, aged, orphans, taken

memberVars == <<group, emptied, ended, aged, orphans, taken>>
allVars == <<vars, memberVars>>

NoMember == ""
NoGroup == [state |-> "Absent", generation |-> 0, type |-> "none", members |-> {},
            waiting |-> {}, subscribed |-> FALSE, old |-> FALSE]
NoneEnded == [p \in Producers |-> "none"]
NoneTaken == [isMember |-> FALSE, generation |-> "none", state |-> "none", inTransaction |-> FALSE]

MemberInit ==
  /\ Init
  /\ group = NoGroup /\ emptied = {} /\ ended = NoneEnded /\ aged = 0 /\ orphans = {}
  /\ taken = NoneTaken

(***************************************************************************)
(* The group, as its members see it.                                       *)
(***************************************************************************)
GroupRecord(g) ==
  [kind |-> "Group", value |-> g.generation, producer |-> NoProducer, members |-> g.members]

\* GroupMetadata.initNextGeneration; subscribedTopics are computed here, and when a group is loaded.
NextGeneration(g) ==
  [g EXCEPT !.generation = @ + 1,
            !.state = IF g.members = {} THEN "Empty" ELSE "CompletingRebalance",
            !.waiting = {},
            !.subscribed = g.members \intersect Subscribers # {},
            !.old = FALSE]
Rebalanced(g) == IF g.waiting = g.members THEN NextGeneration(g) ELSE g

GroupBecomes(g) ==
  /\ group' = g
  \* onCompleteJoin stores a group that has become Empty.
  /\ log' = IF g.state = "Empty" THEN Append(log, GroupRecord(g)) ELSE log
  /\ UNCHANGED <<inFlight, committed, pending, pendingTxn, failOvers, answered, failed>>
  /\ UNCHANGED <<emptied, ended, aged, orphans, taken>>

\* A JoinGroup without member id; of the first member also the end of the initial delay.
JoinGroup(m) ==
  /\ m \notin group.members /\ group.generation < MaxGenerations
  /\ \A i \in Places : log[i].kind # "GroupTombstone"  \* a bound: who comes then is a simple consumer
  /\ GroupBecomes(
       IF group.state \in {"Absent", "Empty"}
       THEN NextGeneration([group EXCEPT !.members = {m}, !.type = "consumer"])
       ELSE [group EXCEPT !.state = "PreparingRebalance", !.members = @ \union {m},
                          !.waiting = @ \union {m}])

\* JoinGroup of a member that was told to.
RejoinGroup(m) ==
  /\ group.state = "PreparingRebalance" /\ m \in group.members \ group.waiting
  /\ GroupBecomes(Rebalanced([group EXCEPT !.waiting = @ \union {m}]))

\* The leader's SyncGroup, which is stored; everybody follows.
SyncGroup ==
  /\ group.state = "CompletingRebalance"
  /\ group' = [group EXCEPT !.state = "Stable"]
  /\ log' = Append(log, GroupRecord(group))
  /\ UNCHANGED <<inFlight, committed, pending, pendingTxn, failOvers, answered, failed>>
  /\ UNCHANGED <<emptied, ended, aged, orphans, taken>>

LeaveGroup(m) ==
  /\ m \in group.members
  /\ GroupBecomes(Rebalanced(
       [group EXCEPT !.state = "PreparingRebalance", !.members = @ \ {m}, !.waiting = @ \ {m}]))

(***************************************************************************)
(* Who may commit: GroupCoordinator.validateOffsetCommit. A request has a  *)
(* member id or none, and no generation, the group's, or the one before.   *)
(***************************************************************************)
Requests == {<<NoMember, "none">>} \union (Members \X {"none", "current", "previous"})
MayBeSent(generation) == generation = "previous" => group.generation > 0

Validated(id, generation) ==
  IF id \notin group.members THEN "UNKNOWN_MEMBER_ID"
  ELSE IF generation # "current" THEN "ILLEGAL_GENERATION"
  ELSE "NONE"

IsNobodys(id, generation) == generation = "none" /\ group.state \in {"Absent", "Empty"}

WhileAssigning(error) ==
  IF error = "NONE" /\ group.state = "CompletingRebalance" THEN "REBALANCE_IN_PROGRESS" ELSE error

OutcomeOfCommit(id, generation) ==
  IF IsNobodys(id, generation) THEN "NONE"
  ELSE IF group.state = "Absent" THEN "ILLEGAL_GENERATION"
  ELSE IF <<id, generation>> = <<NoMember, "none">> THEN "UNKNOWN_MEMBER_ID"
  ELSE WhileAssigning(Validated(id, generation))

\* A producer of before KIP-447 names no member: it commits in every state.
OutcomeInTransaction(id, generation) ==
  IF IsNobodys(id, generation) \/ <<id, generation>> = <<NoMember, "none">> THEN "NONE"
  ELSE Validated(id, generation)

\* A commit without generation, and any of a transaction, makes a group that is absent.
Made == IF group.state = "Absent" THEN [group EXCEPT !.state = "Empty"] ELSE group
Takes(id, generation, inTransaction) ==
  taken' = [isMember |-> id \in group.members, generation |-> generation,
            state |-> group.state, inTransaction |-> inTransaction]

\* OffsetCommit. A session's timer begins anew; here no time passes for it.
CommitAs(id, generation, size) ==
  /\ size # "large" /\ OutcomeOfCommit(id, generation) = "NONE" /\ MayBeSent(generation)
  /\ CommitOffset
  /\ group' = Made
  /\ Takes(id, generation, FALSE)
  /\ UNCHANGED <<emptied, ended, aged, orphans>>

RefuseCommit(id, generation, size, error) ==
  LET outcome == OutcomeOfCommit(id, generation)
  IN  /\ MayBeSent(generation)
      /\ error = IF outcome = "NONE" /\ size = "large" THEN "OFFSET_METADATA_TOO_LARGE" ELSE outcome
      /\ error # "NONE"
      /\ group' = IF outcome = "NONE" THEN Made ELSE group
      /\ UNCHANGED <<vars, emptied, ended, aged, orphans, taken>>

\* A producer begins its next transaction when the marker of the last is written. That the
\* coordinator has done by then what the marker says is the assumption of the models that hold.
BeginsNext(p) == ended[p] = "none"

CommitInTransactionAs(p, id, generation) ==
  /\ OutcomeInTransaction(id, generation) = "NONE" /\ MayBeSent(generation)
  /\ BeginsNext(p)
  /\ CommitInTransaction(p)
  /\ group' = Made
  /\ emptied' = emptied \ {p}
  /\ Takes(id, generation, TRUE)
  /\ UNCHANGED <<ended, aged, orphans>>

RefuseCommitInTransaction(p, id, generation, error) ==
  /\ error = OutcomeInTransaction(id, generation) /\ error # "NONE" /\ MayBeSent(generation)
  /\ group' = Made
  /\ UNCHANGED <<vars, emptied, ended, aged, orphans, taken>>

\* Answers of the log. What a Dead group waits for is answered, and changes nothing.
IsOrphan(i) == i \in orphans
AcknowledgesAppend(i) ==
  /\ i \in inFlight
  /\ IF IsOrphan(i)
     THEN inFlight' = inFlight \ {i} /\ UNCHANGED <<log, committed, pending, pendingTxn>>
          /\ UNCHANGED <<failOvers, answered, failed>>
     ELSE AcknowledgeAppend(i)
  /\ orphans' = orphans \ {i}
  /\ UNCHANGED <<group, emptied, ended, aged, taken>>

FailsAppend(i) ==
  /\ AppendFailures /\ i \in inFlight
  /\ IF IsOrphan(i)
     THEN /\ inFlight' = inFlight \ {i} /\ failed' = failed \union {i}
          /\ UNCHANGED <<log, committed, pending, pendingTxn, failOvers, answered>>
     ELSE FailAppend(i)
  /\ orphans' = orphans \ {i}
  /\ emptied' = IF IsOrphan(i) THEN emptied ELSE emptied \ {log[i].producer}
  /\ UNCHANGED <<group, ended, aged, taken>>

(***************************************************************************)
(* OffsetFetch: in every state, by anybody. -1: no position; -2: with      *)
(* RequireStable, UNSTABLE_OFFSET_COMMIT (KIP-447).                        *)
(***************************************************************************)
FetchOffset(requiresStable, offset) ==
  /\ offset = IF requiresStable /\ ~IsStable THEN -2
              ELSE IF committed = Nothing THEN -1 ELSE committed.value
  /\ UNCHANGED allVars

(***************************************************************************)
(* The end of a transaction. KafkaApis.handleWriteTxnMarkersRequest has    *)
(* written the marker; the task that it schedules comes later (KAFKA-6917).*)
(***************************************************************************)
WriteMarker(p, commits) ==
  /\ OpenOf(p) # {} /\ ended[p] = "none"
  /\ commits => OpenOf(p) \intersect (inFlight \union failed) = {}
  /\ log' = Append(log, Rec(IF commits THEN "Committed" ELSE "Aborted", 0, p))
  /\ ended' = [ended EXCEPT ![p] = IF commits THEN "Committed" ELSE "Aborted"]
  /\ UNCHANGED <<inFlight, committed, pending, pendingTxn, failOvers, answered, failed>>
  /\ UNCHANGED <<group, emptied, aged, orphans, taken>>

\* GroupMetadata.completePendingTxnOffsetCommit.
CompleteTransaction(p) ==
  /\ ended[p] # "none"
  /\ pendingTxn[p] # Nothing /\ ended[p] = "Committed" => pendingTxn[p].at # 0
  /\ committed' = IF ended[p] = "Committed" THEN Shows(p) ELSE AfterAbort(p)
  /\ pendingTxn' = [pendingTxn EXCEPT ![p] = Nothing]
  /\ ended' = [ended EXCEPT ![p] = "none"]
  /\ emptied' = emptied \ {p}
  /\ UNCHANGED <<log, inFlight, pending, failOvers, answered, failed>>
  /\ UNCHANGED <<group, aged, orphans, taken>>

(***************************************************************************)
(* Removal: GroupMetadataManager.cleanupGroupMetadata. An Empty group that *)
(* has nothing left becomes Dead and leaves the cache; one that had        *)
(* members leaves the log, too.                                            *)
(***************************************************************************)
Removes(position) ==
  LET dead == /\ group.state = "Empty"
              /\ committed' = Nothing /\ pending' = 0 /\ pendingTxn' = NonePending
              /\ emptied' = {}
      tombstones == (IF position THEN <<Rec("Tombstone", 0, NoProducer)>> ELSE <<>>)
                    \o (IF dead /\ group.generation > 0
                        THEN <<Rec("GroupTombstone", 0, NoProducer)>> ELSE <<>>)
  IN  /\ log' = log \o tombstones
      /\ group' = IF dead THEN NoGroup ELSE group
      /\ orphans' = IF dead THEN inFlight ELSE orphans

\* GroupCoordinator.handleDeleteOffsets.
OutcomeOfDelete ==
  IF group.state = "Absent" THEN "GROUP_ID_NOT_FOUND"
  ELSE IF group.state # "Empty" /\ group.subscribed THEN "GROUP_SUBSCRIBED_TO_TOPIC"
  ELSE "NONE"

\* What is on its way, or in an open transaction, is forgotten too, and no tombstone says so.
MayDelete == TRUE

DeleteOffset ==
  /\ Deletions /\ OutcomeOfDelete = "NONE" /\ MayDelete
  /\ committed' = Nothing /\ pending' = 0 /\ pendingTxn' = NonePending
  /\ emptied' = emptied \union {p \in Producers : pendingTxn[p] # Nothing}
  /\ Removes(committed # Nothing)
  /\ answered' = 0
  /\ UNCHANGED <<inFlight, failOvers, failed, ended, aged, taken>>

RefuseDeleteOffset(error) ==
  /\ Deletions /\ error = OutcomeOfDelete /\ error # "NONE"
  /\ UNCHANGED allVars

\* DeleteGroups.
OutcomeOfGroupDelete ==
  IF group.state = "Absent" THEN "GROUP_ID_NOT_FOUND"
  ELSE IF group.state # "Empty" THEN "NON_EMPTY_GROUP"
  ELSE "NONE"

DeleteGroup ==
  /\ Deletions /\ OutcomeOfGroupDelete = "NONE" /\ MayDelete
  /\ committed' = Nothing /\ pending' = 0 /\ pendingTxn' = NonePending /\ emptied' = {}
  /\ Removes(committed # Nothing)
  /\ answered' = 0
  /\ UNCHANGED <<inFlight, failOvers, failed, ended, aged, taken>>

RefuseDeleteGroup(error) ==
  /\ Deletions /\ error = OutcomeOfGroupDelete /\ error # "NONE"
  /\ UNCHANGED allVars

(***************************************************************************)
(* Expiry (KIP-211). The retention passes for all that was written.        *)
(***************************************************************************)
PassRetention ==
  /\ Expiries /\ aged # Len(log)
  /\ aged' = Len(log)
  /\ group' = [group EXCEPT !.old = group.state = "Empty" /\ group.type = "consumer"]
  /\ UNCHANGED <<vars, emptied, ended, orphans, taken>>

\* GroupMetadata.removeExpiredOffsets: what the retention counts from.
IsOver ==
  CASE group.type = "none" -> committed.at <= aged
    [] group.type # "none" /\ group.state = "Empty" -> group.old
    [] group.state = "Stable" -> ~group.subscribed /\ committed.at <= aged
    [] OTHER -> FALSE
HasExpired == committed # Nothing /\ pending = 0 /\ IsOver

\* GroupMetadataManager.cleanupGroupMetadata, every offsets.retention.check.interval.ms.
CleanUp ==
  /\ Expiries
  /\ committed' = IF HasExpired THEN Nothing ELSE committed
  /\ UNCHANGED <<pending, pendingTxn, emptied>>
  /\ Removes(HasExpired)
  /\ answered' = IF HasExpired THEN 0 ELSE answered
  /\ UNCHANGED <<inFlight, failOvers, failed, ended, aged, taken>>

(***************************************************************************)
(* Another coordinator: GroupMetadataManager.loadGroup.                    *)
(***************************************************************************)
LastGroup == Last({i \in Places : log[i].kind \in {"Group", "GroupTombstone"}})
LoadedGroup ==
  IF LastGroup # 0 /\ log[LastGroup].kind = "Group"
  THEN LET record == log[LastGroup]
       IN  [state |-> IF record.members = {} THEN "Empty" ELSE "Stable",
            generation |-> record.value, type |-> "consumer", members |-> record.members,
            waiting |-> {}, subscribed |-> record.members \intersect Subscribers # {},
            old |-> record.members = {} /\ LastGroup <= aged]
  ELSE IF Loaded # Nothing \/ \E p \in Producers : LoadedTxn(p) # Nothing
  THEN [NoGroup EXCEPT !.state = "Empty"]
  ELSE NoGroup

FailsOver ==
  /\ FailOver
  /\ group' = LoadedGroup
  /\ emptied' = {} /\ ended' = NoneEnded /\ orphans' = {}
  /\ UNCHANGED <<aged, taken>>

Errors ==
  {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "OFFSET_METADATA_TOO_LARGE"}

MemberNext ==
  \/ \E m \in Members : JoinGroup(m)
  \/ \E m \in Members : RejoinGroup(m)
  \/ SyncGroup
  \/ \E m \in Members : LeaveGroup(m)
  \/ \E request \in Requests, size \in Sizes : CommitAs(request[1], request[2], size)
  \/ \E request \in Requests, size \in Sizes, error \in Errors :
       RefuseCommit(request[1], request[2], size, error)
  \/ \E p \in Producers, request \in Requests : CommitInTransactionAs(p, request[1], request[2])
  \/ \E p \in Producers, request \in Requests, error \in Errors :
       RefuseCommitInTransaction(p, request[1], request[2], error)
  \/ \E i \in 1..(5 * MaxCommits) : AcknowledgesAppend(i)
  \/ \E i \in 1..(5 * MaxCommits) : FailsAppend(i)
  \/ \E requiresStable \in BOOLEAN, offset \in -2..MaxCommits : FetchOffset(requiresStable, offset)
  \/ \E p \in Producers, commits \in BOOLEAN : WriteMarker(p, commits)
  \/ \E p \in Producers : CompleteTransaction(p)
  \/ DeleteOffset
  \/ \E error \in {"GROUP_ID_NOT_FOUND", "GROUP_SUBSCRIBED_TO_TOPIC"} : RefuseDeleteOffset(error)
  \/ DeleteGroup
  \/ \E error \in {"GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"} : RefuseDeleteGroup(error)
  \/ PassRetention
  \/ CleanUp
  \/ FailsOver

MemberSpec == MemberInit /\ [][MemberNext]_allVars

(***************************************************************************)
(* What must hold, besides what GroupOffsets says.                         *)
(***************************************************************************)
HasMembers(state) == state \in {"PreparingRebalance", "CompletingRebalance", "Stable"}

GroupOK ==
  /\ group.state \in {"Absent", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}
  /\ HasMembers(group.state) <=> group.members # {}
  /\ group.waiting \subseteq group.members
  /\ group.state \in {"Absent", "Empty", "CompletingRebalance", "Stable"} => group.waiting = {}
  /\ orphans \subseteq inFlight /\ aged \in 0..Len(log)

\* Who was put out of the group, or is late, does not overwrite what the partition's new owner
\* commits; nor does a consumer outside the group. A producer of before KIP-447 does.
OnlyMembersCommit ==
  HasMembers(taken.state) =>
    \/ taken.isMember /\ taken.generation = "current"
    \/ taken.inTransaction /\ taken.generation = "none" /\ ~taken.isMember

\* A member that does not yet know its assignment has nothing to commit of this generation.
NobodyCommitsUnassigned == taken.state = "CompletingRebalance" => taken.inTransaction

\* A position that members subscribe to does not go while the group is Stable, ...
SubscribedIsSpared ==
  [][group.state = "Stable" /\ group.subscribed /\ committed # Nothing /\ failOvers' = failOvers
       => committed' # Nothing]_allVars

\* ... and none goes by time while the group rebalances: nobody knows who will subscribe.
NothingExpiresInRebalance ==
  [][/\ group.state \in {"PreparingRebalance", "CompletingRebalance"} /\ committed # Nothing
      /\ ~Deletions /\ failOvers' = failOvers
        => committed' # Nothing]_allVars

\* The retention begins when the group has lost its last member, not with the last commit.
EmptyGroupKeepsItsPositions ==
  [][group.state = "Empty" /\ group.type = "consumer" /\ ~group.old /\ ~Deletions
       /\ failOvers' = failOvers /\ committed # Nothing => committed' # Nothing]_allVars

\* KIP-447, with the end of a transaction as two steps.
StablePositionIsFinal ==
  [][IsStable /\ failed = {} /\ failed' = {} /\ orphans = {} /\ committed' # committed
       => Len(log') > Len(log)]_allVars

\* What another coordinator would find, if all has been answered and no task waits.
IsQuiet == inFlight = {} /\ failed = {} /\ ended = NoneEnded
PositionIsLoaded == IsQuiet => Loaded = committed
TransactionsAreLoaded == IsQuiet => \A p \in Producers : LoadedTxn(p) = pendingTxn[p]

\* A member that has its assignment is a member after a fail-over, in the same generation.
MembersAreLoaded == group.state = "Stable" => LoadedGroup.members = group.members
                                              /\ LoadedGroup.generation = group.generation

\* Who deletes a group, or its offsets, sees nothing of them again.
NothingComesBack == group.state = "Absent" => Loaded = Nothing

\* Situations worth being in.
CommittedInRebalance == group.state = "PreparingRebalance" /\ taken.state = "PreparingRebalance"
MarkerWaits == \E p \in Producers : ended[p] = "Committed" /\ pendingTxn[p] # Nothing
ExpiresBesideMembers == group.state = "Stable" /\ HasExpired
DeadGroupIsAnswered == orphans # {}
===============================================================================
