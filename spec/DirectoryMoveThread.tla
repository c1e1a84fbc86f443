------------------------- MODULE DirectoryMoveThread -------------------------
(***************************************************************************)
(* One partition on one broker with two log directories, and the thread    *)
(* that copies its current log to a future log in the other directory:     *)
(* ReplicaAlterLogDirsThread (KIP-113). The thread follows this broker as  *)
(* a replica follows a leader, over LocalLeaderEndPoint; once both logs    *)
(* end alike, the future log becomes the current one.                      *)
(*                                                                         *)
(* What the rest of the cluster does is environment: who leads, what a     *)
(* leader of elsewhere sends, where it makes this replica truncate. This   *)
(* broker is alone in its ISR whenever it leads, so what it appends is     *)
(* committed. It is one of the brokers of Replication.tla, seen more       *)
(* closely.                                                                *)
(*                                                                         *)
(* Left out: log start offsets (DeleteRecords amid a move), the quota of   *)
(* moves (a thread that waits), a loss of records that were not flushed    *)
(* (ReplicationFailingDisk, Replication with Crashes have it), more than   *)
(* two directories.                                                        *)
(***************************************************************************)
EXTENDS ReplicationLog

CONSTANTS
  Epochs,            \* leader epochs, consecutive from 0
  Offsets,           \* offsets, from 0; log ends lie here too
  Requested,         \* directories that AlterReplicaLogDirs asks for
  Restarts,          \* the process is killed and starts again
  DirectoryFailures  \* a log directory fails

Directories == {"d1", "d2"}

(***************************************************************************)
(* The variables, and the field of the real broker that each stands for.   *)
(*                                                                         *)
(* variable    | field                                                     *)
(* ------------+---------------------------------------------------------- *)
(* role        | Partition.isLeader; "offline": HostedPartition.Offline    *)
(* leaderEpoch | Partition.leaderEpoch; -1 if offline                      *)
(* directory   | UnifiedLog.parentDir of Partition.log                     *)
(* moving      | whether the other directory holds a `-future` log         *)
(* log[c]      | UnifiedLog: each record's epoch; c is "current" for       *)
(*             | Partition.log, "future" for the `-future` log (what its   *)
(*             | directory holds, if that has failed)                      *)
(* highWatermark[c], epochCache[c] | UnifiedLog.highWatermark, entries of  *)
(*             | its LeaderEpochFileCache                                  *)
(* failed      | log directories that are offline                          *)
(* fetchState  | ReplicaAlterLogDirsThread: PartitionFetchState.state;     *)
(*             | Failed: in FailedPartitions; None: not tracked            *)
(* fetchOffset | PartitionFetchState.fetchOffset; 0 if not tracked         *)
(* fetchEpoch  | PartitionFetchState.currentLeaderEpoch; -1 if not tracked *)
(* channel     | the call of LocalLeaderEndPoint in which the thread is:   *)
(*             | none, what it asks, what it was answered; and whether the *)
(*             | future log was marked since it asked for an epoch         *)
(* unadded     | maybeAddLogDirFetchers is under way: the fetch offset of  *)
(*             | its InitialFetchState; -1 if it is not                    *)
(* unmarked    | ReplicaFetcherThread.truncate has truncated the current   *)
(*             | log, and is to mark the future one: where; else -1        *)
(* ------------+---------------------------------------------------------- *)
(* An implementation does not have these:                                  *)
(* lastEpoch   | the controller's leader epoch                             *)
(* committed   | the greatest high watermark so far                        *)
(* seen        | leader epochs of which this broker had a record, or which *)
(*             | it led: an epoch names one history, so of an epoch that   *)
(*             | was truncated away nothing else comes back                *)
(* settled     | this follower has truncated, or taken a record, in this   *)
(*             | epoch: its log is a prefix of its leader's from then on   *)
(***************************************************************************)
VARIABLES
  role, leaderEpoch, directory, moving, log, highWatermark, epochCache, failed,
  fetchState, fetchOffset, fetchEpoch, channel, unadded, unmarked, lastEpoch, committed, seen,
  settled

broker == <<role, leaderEpoch, directory, failed>>
copies == <<log, highWatermark, epochCache>>
logs   == <<moving, copies>>
fetch  == <<fetchState, fetchOffset, fetchEpoch>>
calls  == <<unadded, unmarked>>
ghosts == <<lastEpoch, committed, seen, settled>>
vars   == <<broker, logs, fetch, channel, calls, ghosts>>

EpochsOrNone  == Epochs \union {NoEpoch}
OffsetsOrNone == Offsets \union {NoOffset}
Greatest      == CHOOSE e \in Epochs : \A other \in Epochs : other <= e
LongestLog    == CHOOSE o \in Offsets : \A other \in Offsets : other <= o

MessageTypes == {"None", "EpochRequest", "EpochResponse", "FetchRequest", "FetchResponse"}
Errors       == {"NONE", "FENCED_LEADER_EPOCH", "OFFSET_OUT_OF_RANGE", "KAFKA_STORAGE_ERROR"}

NoMessage ==
  [type |-> "None", currentLeaderEpoch |-> NoEpoch, fetchOffset |-> 0, lastEpoch |-> NoEpoch,
   error |-> "NONE", epoch |-> NoEpoch, endOffset |-> NoOffset, records |-> <<>>,
   highWatermark |-> 0, overtaken |-> FALSE]

\* A copy as a value of ReplicationLog.
Copy(c) == [log |-> log[c], logStart |-> 0, hw |-> highWatermark[c], cache |-> epochCache[c]]
current == Copy("current")
future  == Copy("future")

HasCopies(cur, fut) ==
  /\ log = [current |-> cur.log, future |-> fut.log]
  /\ highWatermark = [current |-> cur.hw, future |-> fut.hw]
  /\ epochCache = [current |-> cur.cache, future |-> fut.cache]

GetsCopies(cur, fut) ==
  /\ log' = [current |-> cur.log, future |-> fut.log]
  /\ highWatermark' = [current |-> cur.hw, future |-> fut.hw]
  /\ epochCache' = [current |-> cur.cache, future |-> fut.cache]

EmptyLog == [log |-> <<>>, logStart |-> 0, hw |-> 0, cache |-> <<>>]

Other(d) == CHOOSE other \in Directories : other # d

IsOnline       == role # "offline"
IsTracked      == fetchState \in {"Truncating", "Fetching"}
FutureIsOnline == moving /\ failed = {}

\* One record was written and committed before anything happens.
Init ==
  /\ role = "leader" /\ leaderEpoch = 0 /\ directory = "d1" /\ failed = {}
  /\ HasCopies([log |-> <<0>>, hw |-> 1, cache |-> <<[epoch |-> 0, start |-> 0]>>], EmptyLog)
  /\ moving = FALSE
  /\ fetchState = "None" /\ fetchOffset = 0 /\ fetchEpoch = NoEpoch
  /\ channel = NoMessage
  /\ unadded = NoOffset /\ unmarked = NoOffset
  /\ lastEpoch = 0 /\ committed = 1 /\ seen = {0} /\ settled = TRUE

Untracked == fetchState' = "None" /\ fetchOffset' = 0 /\ fetchEpoch' = NoEpoch

(***************************************************************************)
(* The administrator.                                                      *)
(***************************************************************************)

\* ReplicaManager.alterReplicaLogDirs, under replicaStateChangeLock. It creates the future log,
\* or, asked for the directory of the current log, gives a move up. Else nothing happens.
AlterReplicaLogDirs(d) ==
  /\ d \in Requested /\ moving = (d = directory)
  /\ IsOnline /\ failed = {} /\ unadded = NoOffset
  /\ moving' = ~moving
  /\ GetsCopies(current, EmptyLog)
  /\ IF moving THEN Untracked
     ELSE fetchState' = "Truncating" /\ fetchOffset' = 0 /\ fetchEpoch' = leaderEpoch
  /\ UNCHANGED <<broker, channel, calls, ghosts>>

(***************************************************************************)
(* The rest of the cluster.                                                *)
(***************************************************************************)
NextEpoch == lastEpoch + 1

\* Whoever is elected, the future log follows in the new epoch (KAFKA-8001).
AddsLogDirFetchers(newRole) == newRole \in {"leader", "follower"}

\* A delta of the metadata (LeaderAndIsr) is handled, but for its last part, AddFetcher.
\* ReplicaManager.applyDelta holds replicaStateChangeLock, and waits for the fetcher thread of
\* the current log.
Elected(newRole, r, f, follows) ==
  /\ NextEpoch \in Epochs
  /\ role' = newRole /\ leaderEpoch' = NextEpoch /\ lastEpoch' = NextEpoch
  /\ GetsCopies(r, f)
  /\ committed' = Max(committed, r.hw)
  /\ seen' = IF newRole = "leader" THEN seen \union {NextEpoch} ELSE seen
  /\ settled' = (newRole = "leader")
  /\ unadded' = IF follows /\ AddsLogDirFetchers(newRole) THEN f.hw ELSE NoOffset

AsLeader(r) ==
  [r EXCEPT !.cache = CacheAssign(r.cache, NextEpoch, LogEnd(r)), !.hw = LogEnd(r)]

MayBeElected == IsOnline /\ unadded = NoOffset /\ unmarked = NoOffset

\* Partition.makeLeader
BecomeLeader ==
  /\ MayBeElected
  /\ Elected("leader", AsLeader(current), future, FutureIsOnline)
  /\ UNCHANGED <<directory, failed, moving, fetch, channel, unmarked>>

\* Partition.makeFollower
BecomeFollower ==
  /\ MayBeElected
  /\ Elected("follower", current, future, FutureIsOnline)
  /\ UNCHANGED <<directory, failed, moving, fetch, channel, unmarked>>

\* Partition.appendRecordsToLeader
AppendAsLeader ==
  /\ role = "leader" /\ LogEnd(current) + 1 \in Offsets
  /\ LET appended == AppendRecord(current, leaderEpoch)
     IN  /\ GetsCopies([appended EXCEPT !.hw = LogEnd(appended)], future)
         /\ committed' = Max(committed, LogEnd(appended))
  /\ UNCHANGED <<broker, moving, fetch, channel, calls, lastEpoch, seen, settled>>

\* ReplicaFetcherThread.processPartitionData: the leader sends a record of an epoch up to its own.
\* It had not committed more than before.
AppendAsFollower(e) ==
  /\ role = "follower" /\ unmarked = NoOffset /\ LogEnd(current) + 1 \in Offsets
  /\ LatestEpoch(current.cache) <= e /\ e <= leaderEpoch
  /\ e \notin seen \/ current.log[Len(current.log)] = e
  /\ GetsCopies(AppendRecord(current, e), future)
  /\ seen' = seen \union {e} /\ settled' = TRUE
  /\ UNCHANGED <<broker, moving, fetch, channel, calls, lastEpoch, committed>>

\* ReplicaFetcherThread.truncate, its first part: where the leader's log diverges; never below
\* what was committed. Of an epoch without a record only the cache has to be cut.
TruncateCurrent(o) ==
  /\ role = "follower" /\ ~settled
  /\ committed <= o /\ o <= LogEnd(current)
  /\ TruncateTo(current, o) # current
  /\ GetsCopies(TruncateTo(current, o), future)
  /\ unmarked' = o /\ settled' = TRUE
  /\ UNCHANGED <<broker, moving, fetch, channel, unadded, lastEpoch, committed, seen>>

(***************************************************************************)
(* What the other threads of the broker tell the thread.                   *)
(***************************************************************************)

\* AbstractFetcherThread.addPartitions: the state of the same epoch stays; a failure is forgotten.
KeepsState == IsTracked /\ fetchEpoch = leaderEpoch

\* ReplicaManager.maybeAddLogDirFetchers, its last part. The move may have ended meanwhile
\* (KAFKA-9750).
IsStillMoving == FutureIsOnline

AddFetcher ==
  /\ unadded # NoOffset
  /\ unadded' = NoOffset
  /\ IF IsStillMoving /\ ~KeepsState
     THEN fetchState' = "Truncating" /\ fetchOffset' = unadded /\ fetchEpoch' = leaderEpoch
     ELSE UNCHANGED fetch
  /\ UNCHANGED <<broker, logs, channel, unmarked, ghosts>>

\* ReplicaFetcherThread.truncate, its second part: markPartitionsForTruncation. What the thread was
\* answered before may be of the log as it was, and does not count any more. In Kafka (3.8 and 4.4)
\* it counts, as long as the epoch is the same: see the model of it.
MayBeMarked   == IsTracked
EpochMessages == {"EpochRequest", "EpochResponse"}
Overtaken(m)  == [m EXCEPT !.overtaken = TRUE]
MarkedOffset == Min(fetchOffset, unmarked)

MarkForTruncation ==
  /\ unmarked # NoOffset
  /\ unmarked' = NoOffset
  /\ IF MayBeMarked
     THEN fetchState' = "Truncating" /\ fetchOffset' = MarkedOffset /\ UNCHANGED fetchEpoch
     ELSE UNCHANGED fetch
  /\ channel' = IF MayBeMarked /\ channel.type \in EpochMessages THEN Overtaken(channel)
                ELSE channel
  /\ UNCHANGED <<broker, logs, unadded, ghosts>>

(***************************************************************************)
(* The thread truncates: AbstractFetcherThread.maybeTruncate. It always    *)
(* asks for the end of an epoch (isTruncationOnFetchSupported = false).    *)
(***************************************************************************)
MaySend(state) == fetchState = state /\ channel.type = "None"

Request(type) == [NoMessage EXCEPT !.type = type, !.currentLeaderEpoch = fetchEpoch]

TruncateToHighWatermark ==
  /\ MaySend("Truncating") /\ LatestEpoch(future.cache) = NoEpoch
  /\ GetsCopies(current, TruncateTo(future, fetchOffset))
  /\ fetchState' = "Fetching"
  /\ UNCHANGED <<broker, moving, fetchOffset, fetchEpoch, channel, calls, ghosts>>

SendEpochRequest ==
  /\ MaySend("Truncating") /\ LatestEpoch(future.cache) # NoEpoch
  /\ channel' = [Request("EpochRequest") EXCEPT !.lastEpoch = LatestEpoch(future.cache)]
  /\ UNCHANGED <<broker, logs, fetch, calls, ghosts>>

\* Partition.checkCurrentLeaderEpoch; leadership is not required (fetchOnlyLeader = false).
LocalError(m) ==
  IF ~IsOnline THEN "KAFKA_STORAGE_ERROR"
  ELSE IF m.currentLeaderEpoch < leaderEpoch THEN "FENCED_LEADER_EPOCH" ELSE "NONE"

AnswerTo(m, type, error) ==
  [NoMessage EXCEPT !.type = type, !.currentLeaderEpoch = m.currentLeaderEpoch,
                    !.fetchOffset = m.fetchOffset, !.error = error, !.overtaken = m.overtaken]

\* LocalLeaderEndPoint.fetchEpochEndOffsets
HandleEpochRequest ==
  /\ channel.type = "EpochRequest"
  /\ LET error == LocalError(channel)
         end   == EndOffsetFor(current.cache, channel.lastEpoch, LogEnd(current))
         a     == AnswerTo(channel, "EpochResponse", error)
     IN  channel' = IF error # "NONE" THEN a
                    ELSE [a EXCEPT !.epoch = end.epoch, !.endOffset = end.offset]
  /\ UNCHANGED <<broker, logs, fetch, calls, ghosts>>

\* What was answered before the mark is of the log as it was (Kafka takes it).
IsLate(m) == m.overtaken

\* An answer to a question of another epoch is dropped.
ResponseIsOfEpoch(m) == m.currentLeaderEpoch = fetchEpoch

\* AbstractFetcherThread.onPartitionFenced: fenced in the epoch in which it still is.
Fails == fetchState' = "Failed" /\ fetchOffset' = 0 /\ fetchEpoch' = NoEpoch

WithOffset(r, o) ==
  [log |-> r.log, logStart |-> r.logStart, hw |-> r.hw, cache |-> r.cache, offset |-> o]

TruncatesTo(state) ==
  /\ GetsCopies(current, TruncateTo(future, state.offset))
  /\ fetchState' = IF state.completed THEN "Fetching" ELSE "Truncating"
  /\ fetchOffset' = state.offset
  /\ UNCHANGED fetchEpoch

ProcessEpochResponse ==
  /\ channel.type = "EpochResponse"
  /\ channel' = NoMessage
  /\ IF fetchState # "Truncating" \/ ~ResponseIsOfEpoch(channel) \/ IsLate(channel)
     THEN UNCHANGED <<copies, fetch>>
     ELSE CASE channel.error = "NONE" ->
                 TruncatesTo(OffsetTruncationState(WithOffset(future, fetchOffset), channel))
            [] channel.error = "FENCED_LEADER_EPOCH" -> Fails /\ UNCHANGED copies
            [] OTHER -> UNCHANGED <<copies, fetch>>
  /\ UNCHANGED <<broker, moving, calls, ghosts>>

(***************************************************************************)
(* The thread fetches: AbstractFetcherThread.maybeFetch.                   *)
(***************************************************************************)

\* LocalLeaderEndPoint.buildFetch
SendFetch ==
  /\ MaySend("Fetching")
  /\ channel' = [Request("FetchRequest") EXCEPT !.fetchOffset = fetchOffset]
  /\ UNCHANGED <<broker, logs, fetch, calls, ghosts>>

\* LocalLeaderEndPoint.fetch: up to the log end, beyond the high watermark; one batch.
HandleFetch ==
  /\ channel.type = "FetchRequest"
  /\ LET error == LocalError(channel)
         o     == channel.fetchOffset
         a(e)  == AnswerTo(channel, "FetchResponse", e)
     IN  channel' = IF error # "NONE" THEN a(error)
                    ELSE IF o > LogEnd(current) THEN a("OFFSET_OUT_OF_RANGE")
                    ELSE [a("NONE") EXCEPT
                            !.records = SubSeq(current.log, o + 1, Min(o + 1, LogEnd(current))),
                            !.highWatermark = current.hw]
  /\ UNCHANGED <<broker, logs, fetch, calls, ghosts>>

\* ReplicaAlterLogDirsThread.processPartitionData: the records, then the high watermark.
FetchedRecords(m) == m.records \* Kafka reads them off the current log's file when it appends them
WithFetchedData(r, m) ==
  LET appended == AppendRecords(r, FetchedRecords(m))
  IN  [appended EXCEPT
         !.hw = FollowerHighWatermark(m.highWatermark, appended.logStart, LogEnd(appended))]

\* Partition.runCallbackIfFutureReplicaCaughtUp (KAFKA-8002): only log ends are compared.
CaughtUp(cur, fut) == LogEnd(cur) = LogEnd(fut)

\* With ZooKeeper nobody else is asked; DirectoryAssignment has KRaft's rule.
MayBePromoted == TRUE

\* LogManager.replaceCurrentWithFutureLog
SwappedHighWatermark(cur, fut) == Min(cur.hw, LogEnd(fut))

Swap(fut) ==
  /\ GetsCopies([fut EXCEPT !.hw = SwappedHighWatermark(current, fut)], EmptyLog)
  /\ directory' = Other(directory)
  /\ moving' = FALSE
  /\ Untracked

Appends(m) ==
  LET fut == WithFetchedData(future, m)
  IN  IF CaughtUp(current, fut) /\ MayBePromoted THEN Swap(fut)
      ELSE /\ GetsCopies(current, fut)
           /\ fetchOffset' = LogEnd(fut)
           /\ UNCHANGED <<directory, moving, fetchState, fetchEpoch>>

\* AbstractFetcherThread.fetchOffsetAndTruncate, without a check of the epoch: the current log
\* may end before the future one, after it was truncated; else the thread asks again.
Resets ==
  LET o == Min(LogEnd(current), LogEnd(future))
  IN  /\ GetsCopies(current, TruncateTo(future, o))
      /\ fetchOffset' = o
      /\ UNCHANGED <<directory, moving, fetchState, fetchEpoch>>

NothingHappens == UNCHANGED <<directory, logs, fetch>>

FetchResponseCounts ==
  fetchState = "Fetching" /\ channel.fetchOffset = fetchOffset /\ ResponseIsOfEpoch(channel)

\* AbstractFetcherThread.processFetchRequest
ProcessFetchResponse ==
  /\ channel.type = "FetchResponse"
  /\ channel' = NoMessage
  /\ IF ~FetchResponseCounts
     THEN NothingHappens
     ELSE CASE channel.error = "NONE" -> Appends(channel)
            [] channel.error = "OFFSET_OUT_OF_RANGE" -> Resets
            [] channel.error = "FENCED_LEADER_EPOCH" -> Fails /\ UNCHANGED <<directory, logs>>
            [] OTHER -> NothingHappens
  /\ UNCHANGED <<role, leaderEpoch, failed, calls, ghosts>>

(***************************************************************************)
(* Failures.                                                               *)
(***************************************************************************)

\* LogDirFailureHandler, ReplicaManager.handleLogDirFailure: where the current log lies, the
\* partition goes offline; where the future log lies, the move ends. What lies there is seen
\* again by the next process.
FailDirectory(d) ==
  /\ DirectoryFailures
  /\ IsOnline /\ failed = {} /\ unadded = NoOffset /\ unmarked = NoOffset
  /\ failed' = {d}
  /\ role' = IF d = directory THEN "offline" ELSE role
  /\ leaderEpoch' = IF d = directory THEN NoEpoch ELSE leaderEpoch
  /\ IF d = directory \/ moving THEN Untracked ELSE UNCHANGED fetch
  /\ UNCHANGED <<directory, logs, channel, calls, ghosts>>

\* The process is killed, its successor loads both logs and hears who leads. `saved`: the high
\* watermarks were checkpointed just before; else there is no checkpoint. LogLoader keeps of the
\* epochs those that begin below the log end.
Loaded(r, saved) == Recover(r, LogEnd(r), IF saved THEN r.hw ELSE 0)

Restart(newRole, saved) ==
  /\ Restarts
  /\ saved => failed = {}
  /\ failed' = {}
  /\ LET r == Loaded(current, saved)
         f == IF moving THEN Loaded(future, saved) ELSE future
     IN  Elected(newRole, IF newRole = "leader" THEN AsLeader(r) ELSE r, f, moving)
  /\ Untracked
  /\ channel' = NoMessage
  /\ unmarked' = NoOffset
  /\ UNCHANGED <<directory, moving>>

(***************************************************************************)
(* All together.                                                           *)
(***************************************************************************)
ThreadSteps ==
  \/ TruncateToHighWatermark \/ SendEpochRequest \/ HandleEpochRequest \/ ProcessEpochResponse
  \/ SendFetch \/ HandleFetch \/ ProcessFetchResponse
  \/ AddFetcher \/ MarkForTruncation

Next ==
  \/ \E d \in Directories : AlterReplicaLogDirs(d) \/ FailDirectory(d)
  \/ BecomeLeader \/ BecomeFollower \/ AppendAsLeader
  \/ \E e \in Epochs : AppendAsFollower(e)
  \/ \E o \in Offsets : TruncateCurrent(o)
  \/ TruncateToHighWatermark \/ SendEpochRequest \/ HandleEpochRequest \/ ProcessEpochResponse
  \/ SendFetch \/ HandleFetch \/ ProcessFetchResponse
  \/ AddFetcher \/ MarkForTruncation
  \/ \E newRole \in {"leader", "follower"}, saved \in BOOLEAN : Restart(newRole, saved)

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(ThreadSteps)
=============================================================================
