--------------------- MODULE ReplicationInterruptedFetches ---------------------
(***************************************************************************)
(* A fetch that its leader handles in two sections. Partition.fetchRecords *)
(* reads under leaderIsrUpdateLock and lets it go;                         *)
(* updateFollowerFetchState takes it again to count the fetch. In between  *)
(* another thread of the same broker may hear of an election, change the   *)
(* ISR, or append.                                                         *)
(*                                                                         *)
(* In Replication.tla both are one step, HandleFetch, in which the epoch   *)
(* of the read is that of the count. Here they may differ, and             *)
(* AcknowledgementFence decides: a count that comes in another epoch is    *)
(* dropped.                                                                *)
(***************************************************************************)
EXTENDS Replication

\* What channel may hold: also a fetch that is read and not counted yet, with what was read for
\* its answer. A model puts them in the place of MessageTypes.
TypesWithRead ==
  {"None", "EpochRequest", "EpochResponse", "FetchRequest", "FetchRead", "FetchResponse",
   "LatestRequest", "LatestResponse", "EarliestRequest", "EarliestResponse"}

\* Partition.fetchRecords, the first section. Only of a fetch that will be counted: any other is
\* answered by HandleFetch alike.
ReadFetch(l, f) ==
  LET m == channel[f]
      a == FetchAnswer(l, f, m)
  IN  /\ Fine /\ online[l]
      /\ m.type = "FetchRequest" /\ m.leader = l
      /\ FetchCounts(l, m, a)
      /\ Sends(f, [a EXCEPT !.type = "FetchRead", !.brokerEpoch = m.brokerEpoch])

\* Partition.updateFollowerFetchState, the second section; then the answer is sent.
CountFetch(l, f) ==
  LET m == channel[f]
      a == [m EXCEPT !.type = "FetchResponse", !.brokerEpoch = NoMessage.brokerEpoch]
  IN  /\ Fine /\ online[l]
      /\ m.type = "FetchRead" /\ m.leader = l
      /\ Delivered(f, m, a)
      /\ Counted(l, f, m, a)

InterruptedNext ==
  \/ Next
  \/ \E l \in Brokers, f \in Brokers : ReadFetch(l, f)
  \/ \E l \in Brokers, f \in Brokers : CountFetch(l, f)

(***************************************************************************)
(* Action constraints: what is not followed here.                          *)
(***************************************************************************)

\* A follower that gives its request up, while the leader has it in hand: that is a count which is
\* late for another reason, see ReplicationLateFetches.
ReadsAreCounted ==
  \A f \in Brokers : channel[f].type = "FetchRead" =>
    channel'[f].type \in {"FetchRead", "FetchResponse"}

\* A leader that becomes a follower amid the two sections. Its count goes to a Replica object that
\* nobody looks at any longer, and changes nothing. Its answer is a slice of a file (FileRecords)
\* that is read when it is sent: if the broker has truncated until then, it is not what was read.
\* Here an answer is what was read.
LeadersCountWhatTheyRead ==
  \A l \in Brokers : ActingLeader(l) /\ ~ActingLeader(l)' =>
    \A f \in Brokers : ~ (channel[f].type = "FetchRead" /\ channel[f].leader = l)

(***************************************************************************)
(* A situation.                                                            *)
(***************************************************************************)

\* A fetch is about to be counted in a later epoch than it was read in.
CountIsLate ==
  \E l \in Brokers, f \in Brokers :
    /\ channel[f].type = "FetchRead" /\ channel[f].leader = l
    /\ leaderEpoch[l] > channel[f].currentLeaderEpoch
================================================================================
