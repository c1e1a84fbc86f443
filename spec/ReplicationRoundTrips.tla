------------------------ MODULE ReplicationRoundTrips ------------------------
(***************************************************************************)
(* The follower's fetcher thread, in two granularities of one text. Fine:  *)
(* request, handling and response of a round trip are three steps, and a   *)
(* broker may move on between them. Coarse: the round trip is one step.    *)
(***************************************************************************)
EXTENDS ReplicationFetch

FollowerStep ==
  UNCHANGED <<controllerVars, processVars, partitionVars, alterPartition, ghostVars>>

\* AbstractFetcherThread.truncateToHighWatermark: of a log without epochs.
TruncateToHighWatermark(f) ==
  /\ online[f] /\ channel[f].type = "None"
  /\ fetchState[f] = "Truncating"
  /\ ~HasEpoch(f)
  /\ SetReplica(f, [TruncateTo(Replica(f), fetchOffset[f]) EXCEPT !.state = "Fetching"])
  /\ UNCHANGED channel /\ FollowerStep

(***************************************************************************)
(* Round trips, fine: three steps.                                         *)
(***************************************************************************)
Sends(f, m) ==
  /\ channel' = [channel EXCEPT ![f] = m]
  /\ UNCHANGED replicaVars /\ FollowerStep

\* An answer reaches f only if f is still the process that asked.
Delivered(f, m, a) ==
  channel' = [channel EXCEPT ![f] =
                IF online[f] /\ m.brokerEpoch = brokerEpoch[f] THEN a ELSE NoMessage]

\* AbstractFetcherThread.fetchTruncatingPartitions; leader.fetchEpochEndOffsets begins.
SendEpochRequest(f) == Fine /\ MaySendEpochRequest(f) /\ Sends(f, EpochRequest(f))

\* AbstractFetcherThread.maybeFetch: buildFetch; leader.fetch begins.
SendFetch(f) == Fine /\ MaySendFetch(f) /\ Sends(f, FetchRequest(f))

\* ReplicaManager.lastOffsetForLeaderEpoch on l.
HandleEpochRequest(l, f) ==
  LET m == channel[f]
  IN  /\ Fine /\ online[l]
      /\ m.type = "EpochRequest" /\ m.leader = l
      /\ Delivered(f, m, EpochAnswer(l, f, m))
      /\ UNCHANGED replicaVars /\ FollowerStep

\* Partition.updateFollowerFetchState: what l knows of f after a fetch m that it answers with a.
Counted(l, f, m, a) ==
  /\ followerState' = [followerState EXCEPT ![l] = FollowersAtLeader(l, f, m, a)]
  /\ \E awaited \in AwaitedFollowers(l) :
       LET r == LeaderAfterFetchAwaiting(l, f, m, a, awaited)
       IN  /\ SetReplica(l, r)
           /\ IF FetchCounts(l, m, a) THEN Expose(r, leaderEpoch[l]) ELSE UNCHANGED exposed
  /\ UNCHANGED <<controllerVars, processVars, leaderEpoch, leader, isr, partitionEpoch,
                 pendingIsr, alterPartition, appends, guaranteedFrom>>

\* ReplicaManager.fetchMessages on l: read and updateFollowerFetchState.
HandleFetch(l, f) ==
  LET m == channel[f]
      a == FetchAnswer(l, f, m)
  IN  /\ Fine /\ online[l]
      /\ m.type = "FetchRequest" /\ m.leader = l
      /\ Delivered(f, m, a)
      /\ Counted(l, f, m, a)

\* ListOffsets of a follower, on l.
HandleListOffsets(l, f) ==
  LET m == channel[f]
  IN  /\ Fine /\ online[l]
      /\ m.type \in {"LatestRequest", "EarliestRequest"} /\ m.leader = l
      /\ Delivered(f, m, ListOffsetsAnswer(l, f, m))
      /\ UNCHANGED replicaVars /\ FollowerStep

\* AbstractFetcherThread.truncateToEpochEndOffsets, the lock taken again.
ProcessEpochResponse(f) ==
  /\ Fine /\ channel[f].type = "EpochResponse"
  /\ SetReplica(f, AfterEpochResponse(f, channel[f]))
  /\ channel' = [channel EXCEPT ![f] = NoMessage]
  /\ FollowerStep

\* AbstractFetcherThread.processFetchRequest, the lock taken.
ProcessFetchResponse(f) ==
  /\ Fine /\ channel[f].type = "FetchResponse"
  /\ SetReplica(f, AfterFetchResponse(f, channel[f]))
  /\ channel' = [channel EXCEPT ![f] = MessageAfterFetchResponse(f, channel[f])]
  /\ FollowerStep

\* AbstractFetcherThread.fetchOffsetAndTruncate, between and after its two questions.
ProcessListOffsetsResponse(f) ==
  /\ Fine /\ channel[f].type \in {"LatestResponse", "EarliestResponse"}
  /\ SetReplica(f, AfterListOffsetsResponse(f, channel[f]))
  /\ channel' = [channel EXCEPT ![f] = MessageAfterListOffsetsResponse(f, channel[f])]
  /\ FollowerStep

\* A request or its answer is lost (a time-out, a broken connection): the partition
\* is delayed and the thread goes on (handlePartitionsWithErrors).
LoseMessage(f) ==
  /\ channel[f].type # "None"
  /\ Sends(f, NoMessage)

(***************************************************************************)
(* Round trips, coarse: one step. Only the questions after an out-of-range *)
(* answer are steps of their own.                                          *)
(***************************************************************************)
EpochRoundTrip(l, f) ==
  /\ ~Fine /\ online[l]
  /\ MaySendEpochRequest(f) /\ leader[f] = l
  /\ SetReplica(f, AfterEpochResponse(f, EpochAnswer(l, f, EpochRequest(f))))
  /\ UNCHANGED channel /\ FollowerStep

FetchRoundTrip(l, f) ==
  LET m == FetchRequest(f)
      a == FetchAnswer(l, f, m)
      r == LeaderAfterFetch(l, f, m, a)
      g == AfterFetchResponse(f, a)
  IN  /\ ~Fine /\ online[l]
      /\ MaySendFetch(f) /\ leader[f] = l
      /\ log'            = [log EXCEPT ![f] = g.log]
      /\ logStartOffset' = [logStartOffset EXCEPT ![f] = g.logStart]
      /\ highWatermark'  = [highWatermark EXCEPT ![f] = g.hw, ![l] = r.hw]
      /\ epochCache'     = [epochCache EXCEPT ![f] = g.cache]
      /\ fetchState'     = [fetchState EXCEPT ![f] = g.state]
      /\ fetchOffset'    = [fetchOffset EXCEPT ![f] = g.offset]
      /\ followerState'  = [followerState EXCEPT ![l] = FollowersAtLeader(l, f, m, a)]
      /\ channel' = [channel EXCEPT ![f] = MessageAfterFetchResponse(f, a)]
      /\ IF FetchCounts(l, m, a) THEN Expose(r, leaderEpoch[l]) ELSE UNCHANGED exposed
      /\ UNCHANGED <<controllerVars, processVars, leaderEpoch, leader, isr, partitionEpoch,
                     pendingIsr, alterPartition, appends, guaranteedFrom>>

ListOffsetsRoundTrip(l, f) ==
  LET m == channel[f]
      a == ListOffsetsAnswer(l, f, m)
  IN  /\ ~Fine /\ online[l]
      /\ m.type \in {"LatestRequest", "EarliestRequest"} /\ m.leader = l
      /\ SetReplica(f, AfterListOffsetsResponse(f, a))
      /\ channel' = [channel EXCEPT ![f] = MessageAfterListOffsetsResponse(f, a)]
      /\ FollowerStep
==============================================================================
