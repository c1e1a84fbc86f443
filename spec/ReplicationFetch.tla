-------------------------- MODULE ReplicationFetch ---------------------------
(***************************************************************************)
(* What a follower asks its leader, what the leader answers and remembers, *)
(* and what the follower makes of the answer. Values, no actions: both     *)
(* granularities of ReplicationRoundTrips apply the same operators, a      *)
(* request (...Request), its answer by the leader (...Answer), the leader  *)
(* and the follower afterwards (LeaderAfter..., After...).                 *)
(***************************************************************************)
EXTENDS ReplicationState

(***************************************************************************)
(* Leader: answers. KafkaApis.handleFetchRequest and                       *)
(* handleOffsetForLeaderEpochRequest, Partition.checkCurrentLeaderEpoch:   *)
(* the epoch first, then whether it leads at all.                          *)
(***************************************************************************)
FetchEpochFence(requestEpoch, localEpoch)       == requestEpoch = localEpoch
TruncationEpochFence(requestEpoch, localEpoch)  == requestEpoch = localEpoch
ListOffsetsEpochFence(requestEpoch, localEpoch) == requestEpoch = localEpoch

\* A broker that restarted knows nothing of the partition before its first
\* LeaderAndIsr: ReplicaManager.getPartitionOrError.
LeaderError(l, m, fence) ==
  IF leaderEpoch[l] = NoEpoch THEN "UNKNOWN_TOPIC_OR_PARTITION"
  ELSE IF CurrentEpochIsSent /\ ~fence
  THEN IF m.currentLeaderEpoch < leaderEpoch[l] THEN "FENCED_LEADER_EPOCH"
                                                ELSE "UNKNOWN_LEADER_EPOCH"
  ELSE IF leader[l] # l THEN "NOT_LEADER_OR_FOLLOWER" ELSE "NONE"

\* An answer to m of that type, nothing in it yet.
AnswerTo(m, type, error) ==
  [NoMessage EXCEPT !.type = type, !.leader = m.leader, !.error = error,
                    !.currentLeaderEpoch = m.currentLeaderEpoch,
                    !.fetchOffset = m.fetchOffset]

\* Partition.lastOffsetForLeaderEpoch: of leader l, asked by f about an epoch.
EpochEndOffset(l, f, asked) == EndOffsetFor(epochCache[l], asked, LogEndOffset(l))

\* Before KIP-279 the answer was an offset without its epoch.
EpochAnswer(l, f, m) ==
  LET error == LeaderError(l, m, TruncationEpochFence(m.currentLeaderEpoch, leaderEpoch[l]))
      end   == EpochEndOffset(l, f, m.lastEpoch)
      a     == AnswerTo(m, "EpochResponse", error)
  IN  IF error # "NONE" THEN a
      ELSE [a EXCEPT !.epoch = IF Protocol = "Kip101" THEN NoEpoch ELSE end.epoch,
                     !.endOffset = end.offset]

\* A position below the log start is out of range before it is diverging (KAFKA-12996).
OutOfRangeBeforeDivergence(offset, logStart) == offset < logStart

\* Does the leader's log lack the follower's last record?
Diverges(end, m) ==
  /\ m.lastEpoch # NoEpoch
  /\ end.epoch # m.lastEpoch \/ end.offset < m.fetchOffset

\* Partition.readRecords: epoch, range below (KAFKA-12996), divergence, range, data.
\* The high watermark is the one before this fetch counts.
FetchAnswer(l, f, m) ==
  LET error == LeaderError(l, m, FetchEpochFence(m.currentLeaderEpoch, leaderEpoch[l]))
      end   == EndOffsetFor(epochCache[l], m.lastEpoch, LogEndOffset(l))
      o     == m.fetchOffset
      unknown == m.lastEpoch # NoEpoch /\ end.offset = NoOffset
      below == m.lastEpoch # NoEpoch /\ OutOfRangeBeforeDivergence(o, logStartOffset[l])
      a(e)  == AnswerTo(m, "FetchResponse", e)
  IN  IF error # "NONE" THEN a(error)
      ELSE IF Protocol = "TruncateOnFetch" /\ (unknown \/ below)
      THEN a("OFFSET_OUT_OF_RANGE")
      ELSE IF Protocol = "TruncateOnFetch" /\ Diverges(end, m)
      THEN [a("NONE") EXCEPT !.epoch = end.epoch, !.endOffset = end.offset]
      ELSE IF Protocol = "Kip320FirstTry" /\ Diverges(end, m) THEN a("LOG_TRUNCATION")
      ELSE IF o < logStartOffset[l] \/ o > LogEndOffset(l) THEN a("OFFSET_OUT_OF_RANGE")
      ELSE [a("NONE") EXCEPT
              !.records = IF o < LogEndOffset(l) THEN <<log[l][o - logStartOffset[l] + 1]>>
                                                 ELSE <<>>,
              !.highWatermark = highWatermark[l],
              !.logStartOffset = logStartOffset[l]]

\* Partition.updateFollowerFetchState: only a fetch that was served counts (KAFKA-8400),
\* and only as an acknowledgement from the leader's own epoch (in Kafka 3.8 a new epoch may
\* begin between the read and the update, which takes the lock anew; here they are one step).
FetchWasServed(a) == a.error = "NONE" /\ a.endOffset = NoOffset
AcknowledgementFence(requestEpoch, localEpoch) == requestEpoch = localEpoch

FetchCounts(l, m, a) ==
  /\ FetchWasServed(a)
  /\ CurrentEpochIsSent => AcknowledgementFence(m.currentLeaderEpoch, leaderEpoch[l])

FollowersAtLeader(l, f, m, a) ==
  IF FetchCounts(l, m, a)
  THEN [followerState[l] EXCEPT ![f] = [logEndOffset |-> m.fetchOffset,
                                        brokerEpoch |-> m.brokerEpoch]]
  ELSE followerState[l]

LeaderAfterFetchAwaiting(l, f, m, a, awaited) ==
  IF FetchCounts(l, m, a)
  THEN WithHighWatermark(l, Replica(l), isr[l], pendingIsr[l] \union awaited,
                         FollowersAtLeader(l, f, m, a))
  ELSE Replica(l)

LeaderAfterFetch(l, f, m, a) == LeaderAfterFetchAwaiting(l, f, m, a, {})

\* Partition.fetchOffsetForTimestamp, asked by RemoteLeaderEndPoint.fetchLatestOffset and
\* fetchEarliestOffset: the epoch is checked as for a fetch.
ListOffsetsAnswer(l, f, m) ==
  LET error == LeaderError(l, m, ListOffsetsEpochFence(m.currentLeaderEpoch, leaderEpoch[l]))
      latest == m.type = "LatestRequest"
      type == IF latest THEN "LatestResponse" ELSE "EarliestResponse"
      a == [AnswerTo(m, type, error) EXCEPT !.lastEpoch = m.lastEpoch]
  IN  IF error # "NONE" THEN a
      ELSE [a EXCEPT !.endOffset = IF latest THEN LogEndOffset(l) ELSE logStartOffset[l]]

(***************************************************************************)
(* Follower: AbstractFetcherThread. One thread does one thing at a time:   *)
(* while a round trip is under way nothing else starts. The slot survives  *)
(* the removal and re-addition of the partition, also where that is to     *)
(* another leader (for which Kafka has another thread).                    *)
(***************************************************************************)
Request(f, type) ==
  [NoMessage EXCEPT !.type = type, !.leader = leader[f],
                    !.currentLeaderEpoch = leaderEpoch[f],
                    !.brokerEpoch = brokerEpoch[f]]

\* Whether there is an epoch to ask about.
HasEpoch(f) == LatestEpoch(epochCache[f]) # NoEpoch

MaySendEpochRequest(f) ==
  /\ online[f] /\ channel[f].type = "None"
  /\ fetchState[f] = "Truncating"
  /\ HasEpoch(f)

EpochRequest(f) == [Request(f, "EpochRequest") EXCEPT !.lastEpoch = LatestEpoch(epochCache[f])]

MaySendFetch(f) ==
  /\ online[f] /\ channel[f].type = "None"
  /\ fetchState[f] = "Fetching"

FetchRequest(f) ==
  [Request(f, "FetchRequest") EXCEPT
     !.fetchOffset = fetchOffset[f],
     !.lastEpoch = IF LastFetchedEpochIsSent THEN LatestEpoch(epochCache[f]) ELSE NoEpoch]

\* doTruncate, then updateFetchOffsetAndMaybeMarkTruncationComplete.
Truncated(r, a) ==
  LET st == OffsetTruncationState(r, a)
  IN  [TruncateTo(r, st.offset) EXCEPT
         !.offset = st.offset,
         !.state = IF st.completed \/ Protocol = "TruncateOnFetch" THEN "Fetching"
                                                                  ELSE "Truncating"]

\* onPartitionFenced: fenced in the epoch in which it still is: FailedPartitions
\* (until a new LeaderAndIsr); fenced in an epoch that it has left: try again.
AfterFenced(f, requestEpoch) ==
  IF requestEpoch = leaderEpoch[f] THEN MarkFailed(Replica(f)) ELSE Replica(f)

\* truncateToEpochEndOffsets drops the answer to a question asked in another epoch.
TruncationResponseEpochCheck(requestEpoch, localEpoch) == requestEpoch = localEpoch

AfterEpochResponse(f, a) ==
  IF ~ /\ fetchState[f] = "Truncating" /\ leader[f] = a.leader
       /\ TruncationResponseEpochCheck(a.currentLeaderEpoch, leaderEpoch[f])
  THEN Replica(f)
  ELSE CASE a.error = "NONE"                -> Truncated(Replica(f), a)
         [] a.error = "FENCED_LEADER_EPOCH" -> AfterFenced(f, a.currentLeaderEpoch)
         [] OTHER                           -> Replica(f)

\* processFetchRequest drops what was asked at another offset. Kafka 3.8 compares
\* only the offset; with TruncateOnFetch that is not enough (a response may outlive
\* two elections), so the epoch is compared too.
FetchResponseEpochCheck(requestEpoch, localEpoch) == requestEpoch = localEpoch

FetchResponseIsCurrent(f, a) ==
  /\ fetchState[f] = "Fetching" /\ leader[f] = a.leader
  /\ fetchOffset[f] = a.fetchOffset
  /\ FetchResponseEpochCheck(a.currentLeaderEpoch, leaderEpoch[f])

\* ReplicaFetcherThread.processPartitionData: append, high watermark, log start.
WithFetchedData(r, a) ==
  LET appended == AppendRecords(r, a.records)
      counted  == [appended EXCEPT
                     !.hw = FollowerHighWatermark(a.highWatermark, r.logStart, LogEnd(appended)),
                     !.offset = LogEnd(appended)]
  IN  IF r.offset # LogEnd(r) THEN MarkFailed(r)
      ELSE IF a.logStartOffset > counted.hw THEN MarkFailed(counted)
      ELSE AdvanceLogStart(counted, a.logStartOffset)

AfterFetchResponse(f, a) ==
  LET r == Replica(f)
  IN  IF ~FetchResponseIsCurrent(f, a) THEN r
      ELSE CASE a.error = "NONE" /\ a.endOffset # NoOffset -> Truncated(r, a)
             [] a.error = "NONE"                -> WithFetchedData(r, a)
             [] a.error = "LOG_TRUNCATION"      -> [r EXCEPT !.state = "Truncating", !.offset = r.hw]
             [] a.error = "FENCED_LEADER_EPOCH" -> AfterFenced(f, a.currentLeaderEpoch)
             [] OTHER                           -> r

\* handleOutOfRangeError, fetchOffsetAndTruncate: first the leader's log end.
MessageAfterFetchResponse(f, a) ==
  IF FetchResponseIsCurrent(f, a) /\ a.error = "OFFSET_OUT_OF_RANGE"
  THEN [Request(f, "LatestRequest") EXCEPT !.lastEpoch = a.currentLeaderEpoch]
  ELSE NoMessage

\* The leader's log end is below ours: cut. Otherwise ask for its log start.
LeaderEndsBelow(f, a) == a.endOffset < LogEndOffset(f)

\* handleOutOfRangeError: the epoch in which it was fenced is that of its question. Kafka from 3.5
\* on takes that of the fetch. They differ only if a response of another epoch is looked at.
EpochOfFencedReset(fetchEpoch, requestEpoch) == requestEpoch

AfterListOffsetsResponse(f, a) ==
  LET r == Replica(f)
  IN  IF a.error = "FENCED_LEADER_EPOCH"
      THEN AfterFenced(f, EpochOfFencedReset(a.lastEpoch, a.currentLeaderEpoch))
      ELSE IF a.error # "NONE" THEN r
      ELSE IF a.type = "LatestResponse"
      THEN IF LeaderEndsBelow(f, a)
           THEN [TruncateTo(r, a.endOffset) EXCEPT !.offset = a.endOffset]
           ELSE r
      ELSE IF a.endOffset > LogEnd(r)
      THEN [TruncateFullyAndStartAt(r, a.endOffset) EXCEPT !.offset = a.endOffset]
      ELSE [r EXCEPT !.offset = LogEnd(r)]

MessageAfterListOffsetsResponse(f, a) ==
  IF a.type = "LatestResponse" /\ a.error = "NONE" /\ ~LeaderEndsBelow(f, a)
  THEN [Request(f, "EarliestRequest") EXCEPT !.lastEpoch = a.lastEpoch]
  ELSE NoMessage
==============================================================================
