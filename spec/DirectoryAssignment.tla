------------------------- MODULE DirectoryAssignment -------------------------
(***************************************************************************)
(* A move between log directories in KRaft (KIP-858): the controller knows *)
(* in which directory each replica lies. A future log that has caught up   *)
(* is first assigned there, and takes over once the controller has agreed. *)
(* The steps of the move itself are DirectoryMove's, with MayBePromoted    *)
(* replaced by IsAccepted in the manifests.                                *)
(*                                                                         *)
(* variable  | field                                                       *)
(* ----------+------------------------------------------------------------ *)
(* assigned  | PartitionRegistration.directories: this broker's entry      *)
(* promotion | ReplicaAlterLogDirsThread.promotionStates                   *)
(* request   | AssignmentsManager: what is queued or in flight; "none"     *)
(* unlearned | the record of the last assignment has not come back yet     *)
(***************************************************************************)
EXTENDS DirectoryMove

VARIABLES assigned, promotion, request, unlearned

assignment  == <<assigned, promotion, request, unlearned>>
assignedVars == <<vars, assignment>>

IsAccepted == promotion = "Accepted"

AssignmentTypeOK ==
  /\ TypeOK
  /\ assigned \in Directories
  /\ promotion \in {"None", "Queued", "Accepted"}
  /\ request \in Directories \union {"none"}
  /\ unlearned \in BOOLEAN

AssignmentInit ==
  /\ Init
  /\ assigned = "d1" /\ promotion = "None" /\ request = "none" /\ unlearned = FALSE

\* ReplicaAlterLogDirsThread.processPartitionData: caught up for the first time, it asks for the
\* assignment (maybePromoteFutureReplica).
AsksForAssignment ==
  /\ channel.type = "FetchResponse" /\ channel.error = "NONE" /\ FetchResponseCounts
  /\ CaughtUp(current, WithFetchedData(future, channel))
  /\ promotion = "None"

\* removePartitions of a move that was not finished: the assignment goes back (KAFKA-16297).
Reverts == promotion' = "None" /\ request' = IF promotion = "None" THEN request ELSE directory

Processes ==
  /\ ProcessFetchResponse
  /\ IF AsksForAssignment THEN promotion' = "Queued" /\ request' = Other(directory)
     ELSE IF directory' # directory THEN promotion' = "None" /\ UNCHANGED request
     ELSE IF fetchState # "Failed" /\ fetchState' = "Failed" THEN Reverts
     ELSE UNCHANGED <<promotion, request>>
  /\ UNCHANGED <<assigned, unlearned>>

Alters(d) ==
  /\ AlterReplicaLogDirs(d)
  /\ IF moving THEN Reverts ELSE UNCHANGED <<promotion, request>>
  /\ UNCHANGED <<assigned, unlearned>>

\* addPartitions overwrites the promotion state, whether or not the fetch state stays.
Adds == AddFetcher /\ promotion' = "None" /\ UNCHANGED <<assigned, request, unlearned>>

\* AssignReplicasToDirs: the controller writes the record and answers.
Accept ==
  /\ request # "none"
  /\ assigned' = request /\ request' = "none"
  /\ unlearned' = (unlearned \/ request # assigned)
  /\ promotion' = IF promotion = "Queued" /\ request # directory THEN "Accepted" ELSE promotion
  /\ UNCHANGED vars

\* The broker's own applyDelta: the fetcher is added again, and a directory that is not that of
\* the current log is corrected (maybeUpdateTopicAssignment).
Learn ==
  /\ unlearned /\ unlearned' = FALSE
  /\ IsOnline /\ unadded = NoOffset
  /\ promotion' = "None"
  /\ request' = IF assigned # directory THEN directory ELSE request
  /\ UNCHANGED <<vars, assigned>>

\* LogManager.recoverAbandonedFutureLogs (KAFKA-16082): at a start a future log takes over whose
\* directory the metadata names. In Kafka without a look at the log ends: see the model of it.
MayPromoteAtStart(cur, fut) == TRUE

PromotesAtStart == moving /\ assigned # directory /\ MayPromoteAtStart(current, future)

Starts(newRole, saved) ==
  /\ promotion' = "None" /\ request' = "none" /\ unlearned' = FALSE /\ UNCHANGED assigned
  /\ IF ~PromotesAtStart THEN Restart(newRole, saved)
     ELSE /\ Restarts /\ failed = {}
          /\ LET r == Loaded(future, saved)
             IN  Elected(newRole, IF newRole = "leader" THEN AsLeader(r) ELSE r, EmptyLog, FALSE)
          /\ directory' = Other(directory) /\ moving' = FALSE /\ failed' = {}
          /\ Untracked
          /\ channel' = NoMessage /\ unmarked' = NoOffset

AssignmentNext ==
  \/ \E d \in Directories : Alters(d)
  \/ Processes \/ Adds \/ Accept \/ Learn
  \/ \E newRole \in {"leader", "follower"}, saved \in BOOLEAN : Starts(newRole, saved)
  \/ /\ \/ BecomeLeader \/ BecomeFollower \/ AppendAsLeader
        \/ \E e \in Epochs : AppendAsFollower(e)
        \/ \E o \in Offsets : TruncateCurrent(o)
        \/ TruncateToHighWatermark \/ SendEpochRequest \/ HandleEpochRequest
        \/ ProcessEpochResponse \/ SendFetch \/ HandleFetch \/ MarkForTruncation
     /\ UNCHANGED assignment

\* The log that takes over lies where the controller agreed that it lies.
SwapIsAssigned == [][Swaps => assigned = directory' \/ promotion = "Accepted"]_assignedVars
=============================================================================
