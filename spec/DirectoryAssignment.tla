------------------------- MODULE DirectoryAssignment -------------------------
(***************************************************************************)
(* A move between log directories in KRaft (KIP-858): the controller knows *)
(* in which directory each replica lies. A future log that has caught up   *)
(* is first assigned there, and takes over once the controller has agreed. *)
(* The steps of the move itself are DirectoryMove's: AInKRaft is A, and    *)
(* what A does to the assignment. MayBePromoted is replaced by IsAccepted  *)
(* in the manifests.                                                       *)
(*                                                                         *)
(* variable  | field                                                       *)
(* ----------+------------------------------------------------------------ *)
(* assigned  | PartitionRegistration.directories at the controller: this   *)
(*           | broker's entry                                              *)
(* promotion | ReplicaAlterLogDirsThread.promotionStates: its              *)
(*           | ReassignmentState; None also where there is no entry        *)
(* queued    | AssignmentsManager.ready: the directory, and whether its    *)
(*           | call-back promotes (handleAssignment's reason)              *)
(* sent      | AssignmentsManager.inflight: the same                       *)
(* written   | the controller has handled what was sent; the answer is on  *)
(*           | its way                                                     *)
(* unlearned | the broker has not applied the record of it yet             *)
(*                                                                         *)
(* Left out: a request that its broker gives up and that the controller    *)
(* handles later all the same, a delta with an election and an assignment  *)
(* at once, failing directories.                                           *)
(***************************************************************************)
EXTENDS DirectoryMove

CONSTANT AssignmentFailures  \* a request to the controller, or its answer, is lost

VARIABLES assigned, promotion, queued, sent, written, unlearned

assignment   == <<assigned, promotion, queued, sent, written, unlearned>>
requests     == <<queued, sent, written>>
assignedVars == <<vars, assignment>>

NoDirectory == "none"
NoRequest   == [directory |-> NoDirectory, promotes |-> FALSE]
Ask(d)      == [directory |-> d, promotes |-> TRUE]
Correct(d)  == [directory |-> d, promotes |-> FALSE]

IsAccepted == promotion = "Accepted"

Assignments == [directory : Directories \union {NoDirectory}, promotes : BOOLEAN]

AssignmentTypeOK ==
  /\ TypeOK
  /\ assigned \in Directories
  /\ promotion \in {"None", "Queued", "Accepted"}
  /\ queued \in Assignments /\ sent \in Assignments
  /\ written \in BOOLEAN /\ unlearned \in BOOLEAN
  /\ written => sent # NoRequest

AssignmentInit ==
  /\ Init
  /\ assigned = "d1" /\ promotion = "None" /\ queued = NoRequest /\ sent = NoRequest
  /\ written = FALSE /\ unlearned = FALSE

(***************************************************************************)
(* The thread.                                                             *)
(***************************************************************************)

\* ReplicaAlterLogDirsThread.maybePromoteFutureReplica: caught up for the first time, it asks for
\* the assignment. What was queued of this partition is forgotten.
AsksForAssignment ==
  /\ channel.type = "FetchResponse" /\ channel.error = "NONE" /\ FetchResponseCounts
  /\ CaughtUp(current, WithFetchedData(future, channel))
  /\ promotion = "None"

\* removePartitions of a move that was not finished: the assignment goes back (KAFKA-16297).
GoesBack == queued' = Correct(directory)
Reverts  ==
  /\ promotion' = "None"
  /\ IF promotion = "None" THEN UNCHANGED queued ELSE GoesBack

HasFailed == fetchState # "Failed" /\ fetchState' = "Failed"

ProcessFetchResponseInKRaft ==
  /\ ProcessFetchResponse
  /\ IF AsksForAssignment THEN promotion' = "Queued" /\ queued' = Ask(Other(directory))
     ELSE IF directory' # directory THEN promotion' = "None" /\ UNCHANGED queued
     ELSE IF HasFailed THEN Reverts
     ELSE UNCHANGED <<promotion, queued>>
  /\ UNCHANGED <<assigned, sent, written, unlearned>>

ProcessEpochResponseInKRaft ==
  /\ ProcessEpochResponse
  /\ IF HasFailed THEN Reverts ELSE UNCHANGED <<promotion, queued>>
  /\ UNCHANGED <<assigned, sent, written, unlearned>>

AlterReplicaLogDirsInKRaft(d) ==
  /\ AlterReplicaLogDirs(d)
  /\ IF moving THEN Reverts ELSE UNCHANGED <<promotion, queued>>
  /\ UNCHANGED <<assigned, sent, written, unlearned>>

\* addPartitions overwrites the promotion state, whether or not the fetch state stays. What was
\* asked for goes back, as where a move is given up; not so in Kafka, where the next step may give
\* the move up, with nothing to take back.
QueuedWhenOverwritten == IF promotion = "None" THEN queued ELSE Correct(directory)

AddFetcherInKRaft ==
  /\ AddFetcher
  /\ promotion' = "None"
  /\ queued' = QueuedWhenOverwritten
  /\ UNCHANGED <<assigned, sent, written, unlearned>>

(***************************************************************************)
(* AssignmentsManager and the controller.                                  *)
(***************************************************************************)

\* AssignmentsManager.maybeSendAssignments: one request at a time.
SendAssignment ==
  /\ queued # NoRequest /\ sent = NoRequest
  /\ sent' = queued /\ queued' = NoRequest
  /\ UNCHANGED <<vars, assigned, promotion, written, unlearned>>

\* ReplicationControlManager.handleAssignReplicasToDirs; a partition that lies there already gets
\* no record.
WriteAssignment ==
  /\ sent # NoRequest /\ ~written
  /\ written' = TRUE
  /\ assigned' = sent.directory
  /\ unlearned' = (unlearned \/ assigned' # assigned)
  /\ UNCHANGED <<vars, promotion, queued, sent>>

\* An answer counts for the move that has asked, and is not given up or registered again since:
\* then nothing is queued, and the thread still waits. In Kafka it counts for any move.
IsAwaited == promotion = "Queued" /\ queued = NoRequest /\ sent.promotes

\* AssignmentsManager.handleResponse
AnswerAssignment ==
  /\ written
  /\ sent' = NoRequest /\ written' = FALSE
  /\ promotion' = IF IsAwaited THEN "Accepted" ELSE promotion
  /\ UNCHANGED <<vars, assigned, queued, unlearned>>

\* The same with an error, or after a time-out: it is sent again, unless another one is queued.
FailAssignment ==
  /\ AssignmentFailures
  /\ sent # NoRequest
  /\ queued' = IF queued = NoRequest THEN sent ELSE queued
  /\ sent' = NoRequest /\ written' = FALSE
  /\ UNCHANGED <<vars, assigned, promotion, unlearned>>

(***************************************************************************)
(* The broker's metadata.                                                  *)
(***************************************************************************)

\* ReplicaManager.maybeUpdateTopicAssignment: what the current log's directory is not.
Corrected(d, request) == IF assigned # d THEN Correct(d) ELSE request

\* ReplicaManager.shutdownIdleFetcherThreads, with each delta. In Kafka a call-back is of the thread.
AfterDelta(request) == request

\* ReplicaManager.applyDelta of an assignment: the fetcher is added again, and a directory that is
\* not that of the current log is corrected.
LearnAssignment ==
  /\ unlearned /\ unlearned' = FALSE
  /\ IsOnline /\ unadded = NoOffset
  /\ promotion' = "None"
  /\ queued' = Corrected(directory, AfterDelta(QueuedWhenOverwritten))
  /\ sent' = AfterDelta(sent)
  /\ UNCHANGED <<vars, assigned, written>>

\* Records of the metadata come in their order.
AppliesElection ==
  /\ ~unlearned
  /\ queued' = AfterDelta(queued) /\ sent' = AfterDelta(sent)
  /\ UNCHANGED <<assigned, promotion, written, unlearned>>

BecomeLeaderInKRaft   == BecomeLeader /\ AppliesElection
BecomeFollowerInKRaft == BecomeFollower /\ AppliesElection

\* LogManager.recoverAbandonedFutureLogs (KAFKA-16082): at a start a future log takes over whose
\* directory the metadata names. Kafka does not look at the log ends: see the model of it.
MayPromoteAtStart(cur, fut) == CaughtUp(cur, fut)

PromotesAtStart == moving /\ assigned # directory /\ MayPromoteAtStart(current, future)

Promoted(newRole, saved) ==
  /\ Restarts
  /\ LET r == Loaded(future, saved)
     IN  Elected(newRole, IF newRole = "leader" THEN AsLeader(r) ELSE r, EmptyLog, FALSE)
  /\ directory' = Other(directory) /\ moving' = FALSE /\ failed' = {}
  /\ Untracked
  /\ channel' = NoMessage /\ unmarked' = NoOffset

\* The successor reads the whole metadata.
RestartInKRaft(newRole, saved) ==
  /\ IF PromotesAtStart THEN Promoted(newRole, saved) ELSE Restart(newRole, saved)
  /\ promotion' = "None" /\ sent' = NoRequest /\ written' = FALSE /\ unlearned' = FALSE
  /\ queued' = Corrected(directory', NoRequest)
  /\ UNCHANGED assigned

(***************************************************************************)
(* What changes nothing of the assignment.                                 *)
(***************************************************************************)
AppendAsLeaderInKRaft          == AppendAsLeader /\ UNCHANGED assignment
AppendAsFollowerInKRaft(e)     == AppendAsFollower(e) /\ UNCHANGED assignment
TruncateCurrentInKRaft(o)      == TruncateCurrent(o) /\ UNCHANGED assignment
MarkForTruncationInKRaft       == MarkForTruncation /\ UNCHANGED assignment
TruncateToHighWatermarkInKRaft == TruncateToHighWatermark /\ UNCHANGED assignment
SendEpochRequestInKRaft        == SendEpochRequest /\ UNCHANGED assignment
HandleEpochRequestInKRaft      == HandleEpochRequest /\ UNCHANGED assignment
SendFetchInKRaft               == SendFetch /\ UNCHANGED assignment
HandleFetchInKRaft             == HandleFetch /\ UNCHANGED assignment

AssignmentNext ==
  \/ \E d \in Directories : AlterReplicaLogDirsInKRaft(d)
  \/ BecomeLeaderInKRaft \/ BecomeFollowerInKRaft \/ AppendAsLeaderInKRaft
  \/ \E e \in Epochs : AppendAsFollowerInKRaft(e)
  \/ \E o \in Offsets : TruncateCurrentInKRaft(o)
  \/ TruncateToHighWatermarkInKRaft
  \/ SendEpochRequestInKRaft \/ HandleEpochRequestInKRaft \/ ProcessEpochResponseInKRaft
  \/ SendFetchInKRaft \/ HandleFetchInKRaft \/ ProcessFetchResponseInKRaft
  \/ AddFetcherInKRaft \/ MarkForTruncationInKRaft
  \/ SendAssignment \/ WriteAssignment \/ AnswerAssignment \/ FailAssignment \/ LearnAssignment
  \/ \E newRole \in {"leader", "follower"}, saved \in BOOLEAN : RestartInKRaft(newRole, saved)

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)

\* The log that takes over lies where the controller has agreed that it lies: if that directory
\* fails now, the controller elects another leader.
SwapIsAssigned == [][Swaps => assigned = directory']_assignedVars

\* What the thread waits for is on its way.
WaitIsAnswered == promotion = "Queued" => queued.promotes \/ sent.promotes

\* Once all is done, the controller knows where the log lies.
IsSettled == ~moving /\ queued = NoRequest /\ sent = NoRequest /\ ~unlearned
AssignedIsDirectory == IsSettled => assigned = directory

(***************************************************************************)
(* Situations that a suite shall show.                                     *)
(***************************************************************************)
AnswerIsLate      == written /\ promotion = "Queued" /\ assigned # directory
AcceptedLate      == promotion = "None" /\ written /\ sent.promotes
SwapWhileUnlearned == ~moving /\ unlearned /\ assigned = directory
=============================================================================
