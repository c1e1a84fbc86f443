--------------------------- MODULE FollowerFetching ---------------------------
(* KIP-392: a consumer may fetch from any replica, up to that one's high watermark. *)
EXTENDS Replication

FollowersServeExposedRecordsOnly ==
  \A b \in Brokers : online[b] => RecordsBelow(Replica(b), highWatermark[b]) \subseteq exposed
===============================================================================
