------------------------ MODULE ReplicationLateFetches -------------------------
(***************************************************************************)
(* Fetches that are read late. A leader whose process stands still (a      *)
(* stopped or starved machine) still has its followers' requests in its    *)
(* sockets. The followers give them up, follow another leader or restart,  *)
(* and send others; when the leader goes on, it finds the old request and  *)
(* counts it, if it still leads the epoch that is named there.             *)
(*                                                                         *)
(* In Replication.tla a follower has one request under way. Here it may    *)
(* have two: its fetcher's, and the last one that it has left behind.      *)
(***************************************************************************)
EXTENDS Replication

CONSTANT LeftBehind  \* by broker, where channel has the fetch that it left: no broker's name

\* A model puts them in the place of Connections.
AllConnections == Brokers \union {LeftBehind[b] : b \in Brokers}

\* NetworkClient.handleTimedOutRequests, or a broken connection; or the partition has gone to the
\* fetcher thread of another leader (AbstractFetcherManager.removeFetcherForPartitions). Of a
\* request that was left before, nothing is known any longer: it is lost.
LeaveFetch(f) ==
  /\ Fine /\ channel[f].type = "FetchRequest"
  /\ channel' = [channel EXCEPT ![f] = NoMessage, ![LeftBehind[f]] = channel[f]]
  /\ UNCHANGED replicaVars /\ FollowerStep

\* Replica.updateFetchStateOrThrow (KIP-903) refuses a fetch of a process that has ended. Kafka
\* asks its metadata cache, here it is what this leader has heard from the follower itself.
ProcessFence(requestEpoch, knownEpoch) == requestEpoch >= knownEpoch

IsOfKnownProcess(l, f, m) == ProcessFence(m.brokerEpoch, followerState[l][f].brokerEpoch)

\* ReplicaManager.fetchMessages on l. Nobody waits for the answer: KafkaChannel finds the
\* connection closed.
HandleLeftFetch(l, f) ==
  LET m == channel[LeftBehind[f]]
      a == FetchAnswer(l, f, m)
  IN  /\ Fine /\ online[l]
      /\ m.type = "FetchRequest" /\ m.leader = l
      /\ IsOfKnownProcess(l, f, m)
      /\ channel' = [channel EXCEPT ![LeftBehind[f]] = NoMessage]
      /\ Counted(l, f, m, a)

LateNext ==
  \/ Next
  \/ \E f \in Brokers : LeaveFetch(f)
  \/ \E l \in Brokers, f \in Brokers : HandleLeftFetch(l, f)

LateSpec == Init /\ [][LateNext]_vars

\* The leader counts a position that the follower has long gone past, or has left.
OldPositionIsCounted ==
  \E l \in Brokers, f \in Brokers :
    LET m == channel[LeftBehind[f]]
    IN  /\ m.type = "FetchRequest" /\ m.leader = l /\ online[l] /\ IsOfKnownProcess(l, f, m)
        /\ FetchCounts(l, m, FetchAnswer(l, f, m))
        /\ m.fetchOffset < followerState[l][f].logEndOffset
================================================================================
