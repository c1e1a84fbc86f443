"""Server logs: each wording of each version gives its kind and its fields."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import UserError
from conformance.inspect.evidence import Evidence
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of
from conformance.inspect.reading.layouts import ParsedLine
from conformance.inspect.reading.lines import Pattern, matched, patterns
from conformance.inspect.reading.reader import read

LEADER_38 = (
    "[Broker id=2] Leader t-1 with topic id Some(88Cnx1IkTlmmPjK51qdjIw) starts at leader epoch 3 "
    "from offset 7 with partition epoch 5, high watermark 6, ISR [2,3,1], adding replicas [] and "
    "removing replicas [4] . Previous leader Some(1) and previous leader epoch was 2."
)
FOLLOWER_38 = (
    "[Broker id=2] Follower t-0 starts at leader epoch 1 from offset 12 with partition epoch 2 and "
    "high watermark 11. Current leader is 1. Previous leader Some(1) and previous leader epoch was "
    "0."
)
FETCHER = "[ReplicaFetcher replicaId=3, leaderId=1, fetcherId=0] "
TABLE: list[tuple[str, str, dict[str, Any]]] = [
    (LEADER_38, "become-leader", {"tp": "t-1", "epoch": 3, "offset": 7, "partition_epoch": 5,
     "high_watermark": 6, "isr": [2, 3, 1], "adding": [], "removing": [4], "previous_leader": 1,
     "previous_epoch": 2, "broker": 2}),
    ("[Broker id=1] Leader t-0 with topic id None starts at leader epoch 0 from offset 0 with "
     "partition epoch 0, high watermark 0, ISR [1], adding replicas [] and removing replicas [] "
     "(under-min-isr). Previous leader None and previous leader epoch was -1.",
     "become-leader", {"previous_leader": "None", "under_min_isr": "(under-min-isr)"}),
    ("[Broker id=1] Leader t-0 with topic id Some(abc) starts at leader epoch 4 from offset 9 with "
     "partition epoch 2, high watermark 9, ISR [1,2], adding replicas [] and removing replicas []. "
     "Previous leader epoch was 3.", "become-leader", {"epoch": 4, "previous_epoch": 3}),
    ("[Broker id=1] Leader t-0 starts at leader epoch 4 from offset 9 with high watermark 8 ISR "
     "[1,2] addingReplicas [] removingReplicas []. Previous leader epoch was 3.",
     "become-leader", {"epoch": 4, "high_watermark": 8, "isr": [1, 2]}),
    ("[Partition t-0 broker=1] t-0 starts at leader epoch 4 from offset 9 with high watermark 8. "
     "Previous leader epoch was 3.", "become-leader", {"tp": "t-0", "broker": 1}),
    ("[Partition t-0 broker=1] t-0 starts at Leader Epoch 4 from offset 9. Previous Leader Epoch "
     "was: 3", "become-leader", {"epoch": 4, "offset": 9}),
    (FOLLOWER_38, "become-follower", {"tp": "t-0", "epoch": 1, "offset": 12, "leader": 1,
     "partition_epoch": 2, "high_watermark": 11}),
    ("[Broker id=3] Follower t-0 starts at leader epoch 1 from offset 12 with high watermark 11. "
     "Previous leader epoch was 0.", "become-follower", {"offset": 12, "high_watermark": 11}),
    ("[Broker id=1] Skipped the become-follower state change for t-0 with topic id Some(x) and "
     "partition state LeaderAndIsrPartitionState(leaderEpoch=1) since it is already the follower "
     "with leader epoch 1.", "become-follower-skipped", {"tp": "t-0", "epoch": 1}),
    ("[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 5, "
     "endOffset: 9). Out of sync replicas: (brokerId: 3, endOffset: 5, lastCaughtUpTimeMs: 7).",
     "isr-shrink", {"tp": "t-0", "isr_before": [1, 2, 3], "isr": [1, 2], "high_watermark": 5}),
    ("[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1", "isr-shrink", {"isr": [1]}),
    ("[Partition t-0 broker=1] Expanding ISR from 1 to 1,2", "isr-expand", {"isr": [1, 2]}),
    ("[Partition t-0 broker=1] ISR updated to 2,3,1  and version updated to 4", "isr-updated",
     {"isr": [2, 3, 1], "partition_epoch": 4}),
    ("[Partition t-0 broker=1] ISR updated to 2 (under-min-isr) and version updated to 4",
     "isr-updated", {"isr": [2], "partition_epoch": 4}),
    ("[Partition t-0 broker=1] ISR updated to [1,2] and zkVersion updated to [7]", "isr-updated",
     {"isr": [1, 2], "partition_epoch": 7}),
    ("[Partition t-0 broker=1] ISR updated from AlterIsr to 1,2 and version updated to [7]",
     "isr-updated", {"isr": [1, 2]}),
    ("[Partition t-1 broker=2] Log loaded for partition t-1 with initial high watermark 60",
     "log-loaded", {"tp": "t-1", "high_watermark": 60}),
    ("[UnifiedLog partition=t-0, dir=/d] Non-monotonic update of high watermark from "
     "LogOffsetMetadata(offset=9, segmentBaseOffset=0, relativePositionInSegment=10) to "
     "LogOffsetMetadata(offset=4, segmentBaseOffset=-1, relativePositionInSegment=-1)",
     "high-watermark-fell", {"tp": "t-0", "high_watermark_before": 9, "high_watermark": 4}),
    ("[Log partition=t-0, dir=/d] Non-monotonic update of high watermark from (offset=9 "
     "segment=[0:10]) to (offset=4 segment=[-1:-1])", "high-watermark-fell",
     {"high_watermark_before": 9, "high_watermark": 4}),
    (FETCHER + "Truncating partition t-0 with TruncationState(offset=4, completed=true) due to "
     "local high watermark 4", "truncate-to-high-watermark",
     {"tp": "t-0", "offset": 4, "leaderId": 1, "broker": 3}),
    (FETCHER + "Truncating partition t-0 to local high watermark 4", "truncate-to-high-watermark",
     {"high_watermark": 4}),
    (FETCHER + "Truncating partition t-0 with TruncationState(offset=8, completed=true) due to "
     "leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=2, "
     "endOffset=8)", "truncate-to-epoch", {"tp": "t-0", "offset": 8, "epoch": 2, "end_offset": 8}),
    ("[UnifiedLog partition=t-0, dir=/d/x] Truncating to offset 8", "truncated",
     {"tp": "t-0", "offset": 8, "dir": "/d/x"}),
    ("[Log partition=t-0, dir=/d/x] Truncating to 9 has no effect as the largest offset in the log "
     "is 7", "truncation-without-effect", {"offset": 9, "last_offset": 7}),
    (FETCHER + "Truncating t-0 to offset 3 below high watermark 5", "truncate-below-high-watermark",
     {"offset": 3, "high_watermark": 5}),
    (FETCHER + "Reset fetch offset for partition t-0 from 9 to current leader's latest offset 7",
     "reset-fetch-offset", {"end_offset": 9, "offset": 7}),
    (FETCHER + "Truncate fully and reset fetch offset for partition t-0 from 3 to the current "
     "leader's start offset 7 because the local replica's end offset is smaller than the current "
     "leader's start offsets.", "reset-fetch-offset", {"end_offset": 3, "offset": 7}),
    (FETCHER + "Current offset 9 for partition t-0 is out of range, which typically implies a "
     "leader change. Reset fetch offset to 7", "fetch-out-of-range", {"new_offset": 7}),
    (FETCHER + "Partition t-0 has an older epoch (1) than the current leader. Will await the new "
     "LeaderAndIsr state before resuming fetching.", "fetcher-in-older-epoch", {"epoch": 1}),
    (FETCHER + "Partition t-0 has an new epoch (1) than the current leader. retry the partition "
     "later", "fetcher-in-newer-epoch", {"epoch": 1}),
    ("[LeaderEpochCache t-0] New epoch entry EpochEntry(epoch=5, startOffset=8) caused truncation "
     "of conflicting entries ListBuffer(EpochEntry(epoch=4, startOffset=9)). Cache now contains 2 "
     "entries.", "epoch-conflict", {"tp": "t-0", "epoch": 5, "offset": 8}),
    ("[LogLoader partition=t-0, dir=/d] Recovering unflushed segment 0. 0/1 recovered for t-0.",
     "segment-recovered", {"tp": "t-0", "segment": 0}),
    ("Completed load of Log(dir=/d/t-0, topicId=88C, topic=t, partition=0, highWatermark=0, "
     "lastStableOffset=0, logStartOffset=0, logEndOffset=12) with 1 segments",
     "log-load-completed", {"tp": "t-0", "end_offset": 12, "high_watermark": 0}),
    ("Recovering 2 logs from /d since no clean shutdown file was found", "unclean-shutdown", {}),
    ("[QuorumController id=1] UNCLEAN partition change for t-0 with topic ID 88C: leader: 1 -> 2, "
     "leaderEpoch: 1 -> 2", "unclean-election", {"tp": "t-0", "topic_id": "88C"}),
    ("[RaftManager id=2] Completed transition to Leader(localId=2, epoch=1, epochStartOffset=0) "
     "from CandidateState(localId=2)", "quorum-state", {"state": "Leader", "before": "Candidate"}),
    ("[QuorumController id=2] Fencing broker 1 because its session has timed out.",
     "broker-fenced", {"fenced": 1}),
    ("[GroupCoordinator 1]: Preparing to rebalance group g in state PreparingRebalance with old "
     "generation 3 (__consumer_offsets-5) (reason: leaving)", "group-rebalance",
     {"group": "g", "generation": 3, "reason": "leaving"}),
    ("[GroupCoordinator id=1 topic=__consumer_offsets partition=5] Stabilized group g h generation "
     "4 with 2 members.", "group-stabilized",
     {"tp": "__consumer_offsets-5", "group": "g h", "generation": 4, "members": 2}),
    ("[GroupCoordinator id=1 topic=__consumer_offsets partition=0] [Group g] Member m-1 has left "
     "group through explicit `LeaveGroup` request; client reason: not provided",
     "group-member-left", {"group_java": "g", "member": "m-1"}),
    ("[UnifiedLog partition=t-0, dir=/d] Appended message set with last offset: 9, first offset: "
     "7, next offset: 10, and messages: x", "appended",
     {"tp": "t-0", "offset": 7, "last_offset": 9, "end_offset": 10}),
    ("[UnifiedLog partition=t-0, dir=/d] Setting high watermark LogOffsetMetadata(offset=7, x)",
     "high-watermark-set", {"high_watermark": 7}),
    (FETCHER + "Follower received high watermark 9 from the leader and updated replica high "
     "watermark to 8 for partition t-0", "follower-high-watermark",
     {"leader_high_watermark": 9, "high_watermark": 8}),
    ("[Partition t-0 broker=1] High watermark updated from (offset=3 segment=[0:1]) to (offset=4 "
     "segment=[0:2])", "high-watermark-updated", {"high_watermark_before": 3, "high_watermark": 4}),
    # Older and newer wordings of the same, and what is rare
    ("[Broker id=1] Skipped the become-leader state change for t-0 with topic id Some(x), "
     "partition "
     "registration PartitionRegistration(replicas=[1], leader=1, leaderEpoch=5) and isNew=false "
     "since it is already the leader with leader epoch 5. Current high watermark 3, ISR [1], "
     "adding "
     "replicas [] and removing replicas [].", "become-leader-skipped", {"tp": "t-0", "epoch": 5}),
    ("Broker 1 skipped the become-leader state change after marking its partition as leader with "
     "correlation id 3 from controller 1 epoch 2 for partition t-0 (last update controller "
     "epoch 2) "
     "since it is already the leader for the partition.", "become-leader-skipped", {"tp": "t-0"}),
    ("Broker 1 skipped the become-follower state change after marking its partition as follower "
     "with correlation id 3 from controller 1 epoch 2 for partition t-0 (last update controller "
     "epoch 2) since the new leader 2 is the same as the old leader", "become-follower-skipped",
     {"tp": "t-0"}),
    ("[Partition t-0 broker=1] The topic partition t-0 was marked as RECOVERING. Marking the topic "
     "partition as RECOVERED.", "recovering-after-unclean-election", {"tp": "t-0"}),
    ("[QuorumController id=1] partition change for t-0 with topic ID 88C: isr: [1, 2] -> [1]",
     "partition-change", {"tp": "t-0", "change": "isr: [1, 2] -> [1]"}),
    ("[Broker id=1] Received LeaderAndIsr request LeaderAndIsrPartitionState(x) correlation id 3 "
     "from controller 1 epoch 2 for partition t-0", "leader-and-isr-received", {"tp": "t-0"}),
    ("Broker 1 received LeaderAndIsr request PartitionState(x) correlation id 3 from controller 1 "
     "epoch 2 for partition [t,0]", "leader-and-isr-received",
     {"tp": "t-0", "controller_epoch": 2}),
    ("[Broker id=1] Ignoring LeaderAndIsr request from controller 1 with correlation id 3 epoch 2 "
     "for partition t-0 since its associated leader epoch 4 is not higher than the current leader "
     "epoch 5", "leader-and-isr-ignored", {"tp": "t-0", "controller_epoch": 2}),
    ("Broker 1 ignoring LeaderAndIsr request from controller 1 with correlation id 3 epoch 2 for "
     "partition [t,0] as itself is not in assigned replica list 2,3", "leader-and-isr-ignored",
     {"tp": "t-0", "reason": "as itself is not in assigned replica list 2,3"}),
    ("Partition [t,0] on broker 1: Shrinking ISR from 1,2,3 to 1,2", "isr-shrink",
     {"tp": "t-0", "broker": 1, "isr": [1, 2]}),
    ("Partition [t,0] on broker 1: t-0 starts at Leader Epoch 4 from offset 9. Previous Leader "
     "Epoch was: 3", "become-leader", {"tp": "t-0", "epoch": 4, "broker": 1}),
    ("[Partition t-0 broker=1] Failed to alter partition to PendingShrinkIsr(x) since the "
     "controller rejected the request with INVALID_REQUEST. Partition state has been reset to the "
     "latest committed state CommittedPartitionState(x).", "isr-update-rejected",
     {"error": "INVALID_REQUEST"}),
    ("[Partition t-0 broker=1] Failed to alter partition to PendingShrinkIsr(x) because the "
     "partition epoch is invalid. Partition state may be out of sync, awaiting new the latest "
     "metadata.", "isr-update-rejected", {"tp": "t-0"}),
    ("[Partition t-0 broker=1] Controller failed to update ISR to PendingExpandIsr(x) due to "
     "unexpected UNKNOWN_SERVER_ERROR. Retrying.", "isr-update-rejected",
     {"unexpected": "UNKNOWN_SERVER_ERROR"}),
    ("[Partition t-0 broker=1] Cached zkVersion 7 not equal to that in zookeeper, skip updating "
     "ISR", "isr-update-rejected", {"partition_epoch": 7}),
    ("Replica loaded for partition t-0 with initial high watermark 60", "log-loaded",
     {"tp": "t-0", "high_watermark": 60}),
    ("[Partition t-0 broker=1] No checkpointed highwatermark is found for partition t-0",
     "no-checkpointed-high-watermark", {"tp": "t-0"}),
    ("Setting high watermark for replica 1001 partition t-0 to [7 [0 : 90]]", "high-watermark-set",
     {"tp": "t-0", "high_watermark": 7}),
    ("Setting high watermark for replica 1001 partition t-0 to [(offset=7 segment=[0:90])]",
     "high-watermark-set", {"high_watermark": 7}),
    ("Partition [t,0] on broker 1: High watermark updated to 9 [0 : 10]", "high-watermark-updated",
     {"tp": "t-0", "high_watermark": 9}),
    ("[ReplicaFetcherThread-0-1], Follower 3 set replica high watermark for partition t-0 to 8",
     "follower-high-watermark", {"high_watermark": 8}),
    ("Appended message set to log t-0 with first offset: 7, next offset: 10, and messages: x",
     "appended", {"tp": "t-0", "offset": 7, "end_offset": 10}),
    ("[Log partition=t-0, dir=/d] Appended message set to log with last offset 9 first offset: 7, "
     "next offset: 10, and messages: x", "appended", {"tp": "t-0", "last_offset": 9, "offset": 7}),
    (FETCHER + "Follower has replica log end offset 9 for partition t-0. Received 70 bytes of "
     "messages and leader hw 8", "follower-fetched", {"end_offset": 9, "leader_high_watermark": 8}),
    ("[ReplicaFetcherThread-0-1], Follower 3 has replica log end offset 9 after appending 70 bytes "
     "of messages for partition t-0", "follower-appended", {"end_offset": 9, "tp": "t-0"}),
    ("[Partition t-0 broker=1] Recorded replica 2 log end offset (LEO) position 9 and log start "
     "offset 0.", "follower-position", {"replica": 2, "end_offset": 9}),
    ("[Partition t-0 broker=1] Unexpected offset in append to t-0. First offset 3 is less than log "
     "start offset 5. Since this is the first record to be appended to the follower's log, will "
     "start the log from offset 3.", "unexpected-first-offset", {"offset": 3, "start_offset": 5}),
    (FETCHER + "Based on follower's leader epoch, leader replied with an unknown offset in t-0. "
     "High watermark 4 will be used for truncation.", "truncate-unknown-offset", {"offset": 4}),
    (FETCHER + "Leader or replica is on protocol version where leader epoch is not considered in "
     "the OffsetsForLeaderEpoch response. The leader's offset 4 will be used for truncation in "
     "t-0.", "truncate-to-leader-offset", {"tp": "t-0", "offset": 4}),
    (FETCHER + "Based on replica's leader epoch, leader replied with epoch 3 unknown to the "
     "replica "
     "for t-0. Will truncate to 4 and send another leader epoch request to the leader.",
     "truncate-epoch-unknown", {"epoch": 3, "offset": 4}),
    (FETCHER + "Based on replica's leader epoch, leader replied with epoch 1 below any replica's "
     "tracked epochs for t-0. The leader's offset only 4 will be used for truncation.",
     "truncate-epoch-below", {"epoch": 1, "offset": 4}),
    ("Truncating log t-0 to offset 8.", "truncated", {"tp": "t-0", "offset": 8}),
    ("Truncating t-0 to 9 has no effect as the largest offset in the log is 7.",
     "truncation-without-effect", {"tp": "t-0", "offset": 9, "last_offset": 7}),
    ("[UnifiedLog partition=t-0, dir=/d] Truncating t-0 to offset 3 below high watermark 5",
     "truncate-below-high-watermark", {"offset": 3, "high_watermark": 5}),
    ("[UnifiedLog partition=t-0, dir=/d] Truncating future t-0 to offset 3 below high watermark 5",
     "truncate-below-high-watermark", {"future": "future "}),
    ("[UnifiedLog partition=t-0, dir=/d] Truncate and start at offset 3, logStartOffset: 2",
     "truncated-fully", {"offset": 3, "start_offset": 2}),
    ("Truncate and start log 't-0' at offset 3", "truncated-fully", {"tp": "t-0", "offset": 3}),
    ("[LocalLog partition=t-0, dir=/d] Deleting segments as part of log truncation: "
     "LogSegment(baseOffset=5, size=9)", "segments-deleted-by-truncation", {"tp": "t-0"}),
    ("[ReplicaFetcherThread-0-1], Replica 3 for partition t-0 reset its fetch offset from 9 to "
     "current leader 1's latest offset 7", "reset-fetch-offset", {"end_offset": 9, "offset": 7}),
    ("[ReplicaFetcherThread-0-1], Current offset 9 for partition [t,0] out of range; reset offset "
     "to 7", "fetch-out-of-range", {"tp": "t-0", "new_offset": 7}),
    (FETCHER + "Partition t-0 marked as failed", "fetcher-failed", {"tp": "t-0"}),
    (FETCHER + "Error while processing data for partition t-0 at offset 5", "fetcher-error",
     {"tp": "t-0", "offset": 5}),
    (FETCHER + "Error while processing data for partition t-0", "fetcher-error", {"tp": "t-0"}),
    (FETCHER + "Unexpected error occurred during truncation for t-0 at offset 5", "fetcher-error",
     {"tp": "t-0", "offset": 5}),
    (FETCHER + "Failed to truncate t-0 at offset 5", "fetcher-error", {"tp": "t-0", "offset": 5}),
    (FETCHER + "Failed to truncate t-0", "fetcher-error", {"tp": "t-0"}),
    (FETCHER + "Error in response for fetch request (type=FetchRequest, replicaId=3)",
     "fetch-request-error", {"leaderId": 1}),
    ("[ReplicaFetcherThread-0-1], Error in fetch to broker 1, request (type=FetchRequest)",
     "fetch-request-error", {"leader": 1}),
    ("[ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions Map(t-0 -> x)",
     "fetcher-added", {"leader": 1, "partitions": "Map(t-0 -> x)"}),
    ("[ReplicaFetcherManager on broker 2] Added fetcher for partitions List([t-0, initOffset 3 to "
     "broker BrokerEndPoint(1,h,9092)] )", "fetcher-added", {}),
    ("[ReplicaFetcherManager on broker 2] Removed fetcher for partitions Set(t-0)",
     "fetcher-removed", {"partitions": "Set(t-0)"}),
    ("[LeaderEpochCache t-0] New epoch entry EpochEntry[epoch=5, startOffset=8] caused truncation "
     "of conflicting entries [EpochEntry[epoch=4, startOffset=9]]. Cache now contains 2 entries.",
     "epoch-conflict", {"tp": "t-0", "epoch": 5, "offset": 8}),
    ("[LeaderEpochCache t-0] Appended new epoch entry EpochEntry[epoch=5, startOffset=8]. "
     "Cache now "
     "contains 2 entries.", "epoch-appended", {"tp": "t-0", "epoch": 5, "offset": 8}),
    ("Updated PartitionLeaderEpoch. New: {epoch:5, offset:8}, Current: {epoch:4, offset:3} for "
     "Partition: t-0. Cache now contains 2 entries.", "epoch-appended", {"tp": "t-0", "epoch": 5}),
    ("[Log partition=t-0, dir=/d] Deleting non-empty leader epoch cache due to incompatible "
     "message "
     "format V1", "epoch-cache-cleared", {"format": "V1"}),
    ("Created log for partition [t,0] in /d with properties {x}.", "log-created",
     {"tp": "t-0", "dir": "/d"}),
    ("Created log for partition t-0 in /d/t-0 with properties {}", "log-created", {"tp": "t-0"}),
    ("Completed load of log t-0 with 1 log segments, log start offset 2 and log end offset 9 in 3 "
     "ms", "log-load-completed", {"tp": "t-0", "start_offset": 2, "end_offset": 9}),
    ("[Log partition=t-0, dir=/d] Completed load of log with 1 segments, log start offset 2 "
     "and log "
     "end offset 9 in 3 ms", "log-load-completed", {"tp": "t-0", "end_offset": 9}),
    ("Attempting recovery for all logs in /d since no clean shutdown file was found",
     "unclean-shutdown", {"dir": "/d"}),
    ("Skipping recovery of 2 logs from /d since clean shutdown file was found", "clean-shutdown",
     {"dir": "/d"}),
    ("Skipping recovery for all logs in /d since clean shutdown file was found", "clean-shutdown",
     {"dir": "/d"}),
    ("Found clean shutdown file. Skipping recovery for all logs in data directory: /d",
     "clean-shutdown", {"dir": "/d"}),
    ("Recovering unflushed segment 5 in log t-0.", "segment-recovered",
     {"tp": "t-0", "segment": 5}),
    ("Corruption found in segment 5 of log t-0, truncating to offset 7.", "segment-corrupt",
     {"tp": "t-0", "segment": 5, "offset": 7}),
    ("[LogLoader partition=t-0, dir=/d] Corruption found in segment 5, truncating to offset 7",
     "segment-corrupt", {"tp": "t-0", "offset": 7}),
    ("Found invalid offset during recovery for log t-0. Deleting the corrupt segment and creating "
     "an empty one with starting offset 7", "segment-corrupt", {"tp": "t-0", "offset": 7}),
    ("Found a corrupted index file due to requirement failed: x}. deleting /d/a.timeindex, "
     "/d/a.index, and /d/a.txnindex and rebuilding index...", "index-corrupt", {}),
    ("[LogLoader partition=t-0, dir=/d] Could not find offset index file corresponding to log file "
     "/d/t-0/0.log, recovering segment and rebuilding index files...", "index-corrupt",
     {"tp": "t-0", "path": "/d/t-0/0.log"}),
    ("[LogLoader partition=t-0, dir=/d] Deleting all segments because logEndOffset (3) "
     "smaller than "
     "logStartOffset 5. This could happen if segment files were deleted from the file system.",
     "all-segments-deleted", {"end_offset": 3, "start_offset": 5}),
    ("[UnifiedLog partition=t-0, dir=/d] Incremented log start offset to 5 due to leader offset "
     "increment", "log-start-incremented", {"offset": 5, "reason": "leader offset increment"}),
    ("Incrementing log start offset of partition t-0 to 5 in dir /d", "log-start-incremented",
     {"tp": "t-0", "offset": 5}),
    ("Log for partition t-0 is renamed to /d/t-0.ab-delete and is scheduled for deletion",
     "log-deleted", {"tp": "t-0"}),
    ("Log in /d/t-0 marked stray and renamed to /d/t-0.ab-stray", "log-stray",
     {"dir": "/d/t-0.ab-stray"}),
    ("The current replica is successfully replaced with the future replica for t-0", "log-moved",
     {"tp": "t-0"}),
    ("[ReplicaManager broker=1] Stopping serving replicas in dir /d with uuid x because the log "
     "directory has failed.", "log-directory-failed", {"dir": "/d", "broker": 1}),
    ("[UnifiedLog partition=t-0, dir=/d] Deleting segment LogSegment(baseOffset=0, size=9) due to "
     "log retention time 60000ms breach based on the largest record timestamp in the segment",
     "segments-deleted", {"reason": "log retention time 60000ms breach"}),
    ("[Log partition=t-0, dir=/d] Deleting segment LogSegment(baseOffset=0, size=9) due to "
     "retention size 60000 breach. Log size after deletion will be 9.", "segments-deleted",
     {"reason": "retention size 60000 breach"}),
    ("[UnifiedLog partition=t-0, dir=/d] Deleting segments due to log start offset 7 breach: "
     "LogSegment(baseOffset=0, size=9)", "segments-deleted",
     {"reason": "log start offset 7 breach"}),
    ("[Log partition=t-0, dir=/d] Found deletable segments with base offsets [0,7] due to "
     "retention "
     "time 60000ms breach", "segments-deleted", {"segment": "0,7"}),
    ("[RaftManager nodeId=2] Completed transition to FollowerState(fetchTimeoutMs=2000, epoch=1, "
     "leaderId=3)", "quorum-state", {"state": "Follower"}),
    ("[QuorumController id=1] Becoming the active controller at epoch 3, next write offset 9.",
     "controller-active", {"epoch": 3}),
    ("[QuorumController id=1] Renouncing the leadership due to a metadata log event. We were the "
     "leader at epoch 3, but in the new epoch 4, the leader is 2. Reverting to last stable offset "
     "9.", "controller-renounced", {"epoch": 3, "new_epoch": 4, "leader": 2}),
    ("[QuorumController id=1] Renouncing the leadership at oldEpoch 3 due to a metadata log event. "
     "Reverting to last committed offset 9.", "controller-renounced", {"epoch": 3}),
    ("[QuorumController id=1] The request from broker 2 to unfence has been granted because it has "
     "caught up with the offset of its register broker record 5.", "broker-unfenced",
     {"unfenced": 2}),
    ("[QuorumController id=1] The request from broker 2 to shut down has been granted since the "
     "lowest active offset 9 is now greater than the broker's controlled shutdown offset 5.",
     "broker-shut-down", {"shut_down": 2}),
    ("[GroupCoordinator 1]: Assignment received from leader m-1 for group g for generation 3. The "
     "group has 2 members, 0 of which are static.", "group-assignment",
     {"member": "m-1", "group": "g", "generation": 3}),
    ("[GroupCoordinator 1]: Member m-1 in group g has failed, removing it from the group",
     "group-member-failed", {"member": "m-1", "group": "g"}),
    ("[GroupCoordinator 1]: Member[group.instance.id Some(i), member.id m-1] in group g has left, "
     "removing it from the group", "group-member-left", {"identity": "m-1", "group": "g"}),
    ("[GroupCoordinator 1]: Group g with generation 3 is now empty (__consumer_offsets-5)",
     "group-empty", {"group": "g", "generation": 3}),
    ("[GroupMetadataManager brokerId=1] Group g transitioned to Dead in generation 3",
     "group-dead", {"group": "g", "generation": 3}),
    ("[GroupCoordinator 1]: Static member with groupInstanceId=i and unknown member id joins group "
     "g in Stable state. Replacing previously mapped member m-1 with this groupInstanceId.",
     "group-static-member-replaced", {"instance": "i"}),
    ("[GroupMetadataManager brokerId=1] Finished loading offsets and group metadata from "
     "__consumer_offsets-5 in 3 milliseconds.", "group-metadata-loaded",
     {"tp": "__consumer_offsets-5"}),
    ("[ReplicaFetcherThread-0-1], Error for partition [t,0] to broker 1:x", "fetcher-error",
     {"tp": "t-0", "leader": 1}),
    ("[GroupCoordinator id=1 topic=__consumer_offsets partition=0] [GroupId g] Dynamic member m-1 "
     "has left group through explicit `LeaveGroup` request; client reason: not provided",
     "group-member-left", {"group_java": "g", "member": "m-1"}),
    ("[GroupCoordinator 1]: Static member i with unknown member id rejoins, assigning new "
     "member id "
     "m-2, while old member m-1 will be removed.", "group-static-member-replaced",
     {"instance": "i"}),
]  # fmt: skip


def lines_of(
    tmp_path: Path, text: str | bytes, name: str = "server.log", **options: Any
) -> Evidence:
    (tmp_path / "b1" / "data").mkdir(parents=True, exist_ok=True)
    (tmp_path / "b2").mkdir(exist_ok=True)
    content = text.encode() if isinstance(text, str) else text
    (tmp_path / "b1" / name).write_bytes(content)
    inputs = Inputs(
        brokers_of([f"b1={tmp_path / 'b1' / 'data'}", f"b2={tmp_path / 'b2'}"]),
        (str(tmp_path / "b1" / "*.log*"),),
        **options,
    )
    return read(inputs, tmp_path / "out", ())


def line(message: str, time: str = "2024-05-04 10:11:12,345", level: str = "INFO") -> str:
    return f"[{time}] {level} {message} (kafka.Some$Class)\n"


def test_each_wording_gives_its_kind_and_fields(tmp_path: Path) -> None:
    evidence = lines_of(tmp_path, "".join(line(message) for message, _, _ in TABLE))
    rows = list(evidence.rows("log_lines"))
    assert [row["line"] for row in rows] == list(range(1, len(TABLE) + 1))
    for row, (message, kind, fields) in zip(rows, TABLE, strict=True):
        assert row["kind"] == kind, message
        found = json.loads(row["fields"])
        found["tp"] = f"{row['topic']}-{row['partition']}"
        assert fields.items() <= found.items(), message
        assert row["text"] == message


def test_every_wording_of_the_table_has_an_example_that_no_other_takes() -> None:
    """The first wording that matches wins: each must be the first for something."""
    chosen = {wording_of(message) for message, _, _ in TABLE}
    assert [pattern for pattern in patterns() if pattern not in chosen] == []


def wording_of(message: str) -> Pattern | None:
    entry = ParsedLine("2024-05-04 10:11:12,345", "INFO", message, "kafka")
    found = matched(entry)
    return None if found is None else found[0]


def test_every_wording_of_the_table_has_literal_words_and_tells_something() -> None:
    for pattern in patterns():
        assert pattern.level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
        assert re.fullmatch(r"\d\.\d+(\.\d)?(-(\d\.\d+(\.\d)?)?)?", pattern.versions)
        assert re.fullmatch(r"[a-z-]+", pattern.kind)
        assert len(pattern.words) > 5


def test_what_tells_nothing_and_what_is_no_log_is_passed_over(tmp_path: Path) -> None:
    text = line("Kafka version: 3.8.1") + "Truncating to offset 3\n\tat stack.trace\n\n"
    evidence = lines_of(tmp_path, text.encode() + b"\xff\xfe Truncating to offset \x00\n")
    assert evidence.table("log_lines").num_rows == 0
    assert [row["status"] for row in evidence.rows("files")] == ["read"]


def test_other_prefixes_are_understood(tmp_path: Path) -> None:
    """A container's prefix, a line number behind the logger."""
    text = "kafka_1  | " + line("[Log partition=t-0, dir=/d] Truncating to offset 3")
    text += text.replace("Class)", "Class:412)").replace(",345", ".345")
    rows = list(lines_of(tmp_path, text).rows("log_lines"))
    assert [row["time"] for row in rows] == [1714817472345] * 2
    assert rows[1]["text"].endswith("offset 3")


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    text = line("[Log partition=t-0, dir=/d] Truncating to offset 3").encode()
    evidence = lines_of(tmp_path, text + b"Truncating to offset " * 200_000 + b"\n" + text)
    assert [row["line"] for row in evidence.rows("log_lines")] == [1, 3]


def test_rotated_and_compressed_logs(tmp_path: Path) -> None:
    text = line("[Log partition=t-0, dir=/d] Truncating to offset 3")
    evidence = lines_of(tmp_path, gzip.compress(text.encode()), "server.log.1.gz")
    (row,) = evidence.rows("log_lines")
    assert (row["broker"], row["path"]) == ("b1", str(tmp_path / "b1" / "server.log.1.gz"))


def test_a_damaged_archive_is_in_error(tmp_path: Path) -> None:
    data = gzip.compress(line("Truncating to offset 3").encode() * 100)
    evidence = lines_of(tmp_path, data[:-12], "server.log.gz")
    assert [row["status"] for row in evidence.rows("files")] == ["error"]


def test_time_zone_and_filters(tmp_path: Path) -> None:
    message = "[Log partition={}, dir=/d] Truncating to offset 3"
    text = line(message.format("t-0")) + line(message.format("u-0"))
    text += line(message.format("t-0"), "2024-05-04 12:00:00,000")
    text += line("Fencing broker 1 because its session has timed out")
    filters = Filters(topics=frozenset({"t"}), until=1714817472345 - 7_200_000)
    evidence = lines_of(tmp_path, text, zone="Europe/Berlin", filters=filters)
    assert [row["line"] for row in evidence.rows("log_lines")] == [1, 4]


def test_a_log_belongs_to_the_broker_whose_folder_is_beside_it_or_that_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "b1" / "data").mkdir(parents=True)
    (tmp_path / "b2" / "data").mkdir(parents=True)
    for place in ("b1/x.log", "b2/data/x.log", "x.log", "y.log"):
        (tmp_path / place).write_text(line("[Log partition=t-0, dir=/d] Truncating to offset 3"))
    inputs = Inputs(
        brokers_of([f"b1={tmp_path}/b1/data", f"b2={tmp_path}/b2/data"]),
        (f"b2={tmp_path}/y.log", f"{tmp_path}/**/*.log"),
    )
    evidence = read(inputs, tmp_path / "out", ())
    owners = {Path(row["path"]).relative_to(tmp_path).as_posix(): row["broker"]
              for row in evidence.rows("log_lines")}  # fmt: skip
    assert owners == {"b1/x.log": "b1", "b2/data/x.log": "b2", "x.log": "", "y.log": "b2"}


def test_a_log_that_lies_elsewhere_belongs_to_the_broker_whose_node_id_it_tells(
    tmp_path: Path,
) -> None:
    told = {
        "one.log": line("KafkaConfig values:\n\tnode.id = 1\n", "2024-05-04 10:11:12,345"),
        "two.log": line("[BrokerServer id=2] Transition from SHUTDOWN to STARTING"),
        "both.log": line("[Broker id=2] x") + line("[Broker id=1] x"),
        "none.log": "",
    }
    (tmp_path / "logs").mkdir()
    for name, text in told.items():
        text += line("[Log partition=t-0, dir=/d] Truncating to offset 3")
        (tmp_path / "logs" / name).write_text(text)
    for node in (1, 2):
        (tmp_path / "data" / f"b{node}").mkdir(parents=True)
        properties = tmp_path / "data" / f"b{node}" / "meta.properties"
        properties.write_text(f"version=1\nnode.id={node}\n")
    brokers = brokers_of([f"x={tmp_path}/data/b1", f"y={tmp_path}/data/b2"])
    evidence = read(Inputs(brokers, (f"{tmp_path}/logs/*",)), tmp_path / "out", ())
    owners = {Path(row["path"]).name: row["broker"] for row in evidence.rows("log_lines")}
    assert owners == {"one.log": "x", "two.log": "y", "both.log": "", "none.log": ""}


def test_patterns_that_name_nothing_and_unknown_zones_are_the_users(tmp_path: Path) -> None:
    (tmp_path / "b1").mkdir()
    brokers = brokers_of([f"b1={tmp_path / 'b1'}"])
    with pytest.raises(UserError, match="names no file"):
        read(Inputs(brokers, (f"{tmp_path}/no*",)), tmp_path / "out", ())
    with pytest.raises(UserError, match="no time zone"):
        read(Inputs(brokers, zone="Mars"), tmp_path / "out2", ())
