"""What the files of one folder say of each other, and what folders say of each other: the table.

Each row is something that Kafka keeps. docs/disk-invariants.md shows the table; the checks are in
`reading.indexes`, `replica_files`, `attested`, `damage`, `identities`, `quorum` and, where a
formula of spec/Replication.tla says it, in `judgement`. Faults are planted for each row (`faults`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class InvariantScope(StrEnum):
    """Between which files a row holds."""

    FOLDER = "one folder"
    FOLDERS = "several folders"


class ViolationSeverity(StrEnum):
    """What a violation does to the verdict."""

    FAIL = "fail"
    CLEAN = "fail after a clean stop, else inconclusive"
    ONLY_CLEAN = "fail; asked after a clean stop only"
    DOUBT = "fail, or inconclusive where the copying explains it"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Invariant:
    """A row of the table."""

    name: str
    scope: InvariantScope
    files: str
    """Between which files it holds."""
    says: str
    keeper: str
    """The class of Kafka that keeps it."""
    broken: str
    """What it means if it does not hold."""
    legal: str
    """When it may be broken without damage."""
    kinds: tuple[str, ...]
    """The kinds of findings that tell it: a formula, or one of `damage.KINDS`."""
    severity: ViolationSeverity


def _folder(
    name: str,
    files: str,
    says: str,
    keeper: str,
    broken: str,
    legal: str,
    kinds: str,
    severity: ViolationSeverity,
) -> Invariant:
    kept = tuple(kinds.split())
    return Invariant(
        name, InvariantScope.FOLDER, files, says, keeper, broken, legal, kept, severity
    )


def _folders(
    name: str,
    files: str,
    says: str,
    keeper: str,
    broken: str,
    legal: str,
    kinds: str,
    severity: ViolationSeverity,
) -> Invariant:
    kept = tuple(kinds.split())
    return Invariant(
        name, InvariantScope.FOLDERS, files, says, keeper, broken, legal, kept, severity
    )


INVARIANTS = (
    # --- the files of one folder ----------------------------------------------------------------
    _folder(
        "segments-join", "segments",
        "Each batch begins where the one before it ends, within a segment and between segments.",
        "LocalLog.append, UnifiedLog.roll",
        "Records were removed, doubled or moved.",
        "Compaction leaves gaps; a compressed message of magic 0 or 1 has its last offset only.",
        "gap overlap out-of-order", ViolationSeverity.FAIL,
    ),
    _folder(
        "segment-is-named-for-its-first-record", "segment, its name",
        "A segment is named for the offset of its first batch.",
        "LocalLog.roll, UnifiedLog.roll",
        "The first batches are gone, or the file is another segment.",
        "Compaction. Retention and DeleteRecords remove whole segments only.",
        "head-gone before-segment", ViolationSeverity.FAIL,
    ),
    _folder(
        "offset-index", ".index, segment",
        "Each entry has the last offset of an append, and the position of its first batch.",
        "OffsetIndex, LogSegment.append",
        "Readers begin at a wrong position; Kafka checks an index only where it recovers.",
        "Entries behind the last good one of an index that was not trimmed.",
        "index-position index-offset index-order index-beyond-end index-size",
        ViolationSeverity.FAIL,
    ),
    _folder(
        "time-index", ".timeindex, segment",
        "Each entry has the greatest timestamp so far, and the offset that has it.",
        "TimeIndex, LogSegment.append",
        "Look-ups by time and retention by time go wrong.",
        "Entries behind the last good one of an index that was not trimmed.",
        "timeindex-timestamp timeindex-order timeindex-beyond-end index-size",
        ViolationSeverity.FAIL,
    ),
    _folder(
        "transaction-index", ".txnindex, segment",
        "Its entries are the aborted transactions whose abort markers are in the segment.",
        "TransactionIndex, ProducerStateManager.completeTxn",
        "Consumers with read_committed drop or read the wrong records.",
        "An unclean stop: the entries of a segment that is recovered are made anew.",
        "txnindex txnindex-missing index-size", ViolationSeverity.FAIL,
    ),
    _folder(
        "index-has-a-segment", ".index, .timeindex, .txnindex, segment",
        "No index stands without its segment.",
        "LogSegment.changeFileSuffixes, LogSegments",
        "The segment, and its records, are gone.",
        "An unclean stop within a deletion.",
        "orphan-index", ViolationSeverity.CLEAN,
    ),
    _folder(
        "epochs-of-the-log", "leader-epoch-checkpoint, segments",
        "The file tells where each leader epoch begins in the log, in growing order.",
        "LeaderEpochFileCache.assign (written before the record)",
        "Followers truncate to a wrong offset, or to the high watermark.",
        "Entries below the log start; the newest epoch, while an election was copied.",
        "EpochCacheMatchesLog EpochsNonDecreasing epoch-order no-epoch-checkpoint",
        ViolationSeverity.DOUBT,
    ),
    _folder(
        "high-watermark-in-log", "replication-offset-checkpoint, segments",
        "The high watermark is not beyond the log's end.",
        "UnifiedLog.updateHighWatermark, ReplicaManager.checkpointHighWatermarks",
        "Records that consumers could read are not in the log any more.",
        "A power failure loses what was not flushed; a copy in which the log is the older file.",
        "HighWatermarkWithinLog", ViolationSeverity.DOUBT,
    ),
    _folder(
        "high-watermark-is-written", "replication-offset-checkpoint, log start, mark",
        "A clean stop writes a high watermark for each log, at or above its start.",
        "ReplicaManager.shutdown",
        "The entry was removed or is another log's; Kafka begins at the log's start.",
        "A log that was never made by a leader or follower.",
        "no-high-watermark high-watermark-below-start", ViolationSeverity.ONLY_CLEAN,
    ),
    _folder(
        "recovery-point-in-log", "recovery-point-offset-checkpoint, segments",
        "The recovery point is not beyond the log's end.",
        "UnifiedLog.flush, LogManager.truncateTo (checkpointed with it)",
        "Records that were on disk are not there any more.",
        "An unclean stop between a truncation and the checkpoint; a flush that ran late.",
        "recovery-point-beyond-end", ViolationSeverity.CLEAN,
    ),
    _folder(
        "clean-stop-flushes", "recovery-point-offset-checkpoint, segments, .kafka_cleanshutdown",
        "After a clean stop the recovery point is the log's end.",
        "LogManager.shutdown, UnifiedLog.close",
        "The log, the checkpoint or the mark is of another time; Kafka skips the recovery.",
        "Without the mark any recovery point within the log.",
        "recovery-point-behind", ViolationSeverity.ONLY_CLEAN,
    ),
    _folder(
        "log-start-in-log", "log-start-offset-checkpoint, segments",
        "The log start is not beyond the log's end.",
        "UnifiedLog.maybeIncrementLogStartOffset",
        "At the next start Kafka deletes the whole log, and begins there.",
        "An unclean stop after a whole log was truncated; never beyond every replica's end.",
        "log-start-beyond-end", ViolationSeverity.CLEAN,
    ),
    _folder(
        "log-start-has-a-segment", "log-start-offset-checkpoint, segments, .kafka_cleanshutdown",
        "After a clean stop no checkpointed log start lies below the first segment.",
        "LogManager.checkpointLogStartOffsets",
        "The first segments were removed by hand.",
        "Without the mark: retention after the checkpoint, which is written once a minute.",
        "head-gone", ViolationSeverity.ONLY_CLEAN,
    ),
    _folder(
        "cleaned-in-log", "cleaner-offset-checkpoint, segments",
        "The cleaner's first dirty offset is not beyond the log's end.",
        "LogCleanerManager.maybeTruncateCheckpoint",
        "What had been cleaned is not in the log any more.",
        "An unclean stop between a truncation and the checkpoint.",
        "cleaned-beyond-end", ViolationSeverity.CLEAN,
    ),
    _folder(
        "snapshot-in-log", "producer snapshots, segments",
        "No producer snapshot is of an offset beyond the log's end.",
        "ProducerStateManager.truncateAndReload",
        "The log was cut after the snapshot was taken.",
        "An unclean stop within a truncation.",
        "snapshot-beyond-end", ViolationSeverity.CLEAN,
    ),
    _folder(
        "clean-stop-takes-a-snapshot", "producer snapshots, segments, .kafka_cleanshutdown",
        "After a clean stop the newest producer snapshot is of the log's end.",
        "UnifiedLog.close, ProducerStateManager.takeSnapshot",
        "The log grew, or the snapshot was removed: Kafka forgets producers, and takes duplicates.",
        "Without the mark the records behind the newest snapshot are read again.",
        "snapshot-behind", ViolationSeverity.ONLY_CLEAN,
    ),
    _folder(
        "snapshot-of-this-log", "producer snapshots, segments",
        "What a snapshot names as a producer's last record is in the log.",
        "ProducerStateManager.update",
        "The snapshot is another log's: retries are refused or taken twice.",
        "Compaction and retention remove the record.",
        "snapshot-contents", ViolationSeverity.FAIL,
    ),
    _folder(
        "two-logs", "log directories of a broker",
        "A partition's log lies in one directory of its broker.",
        "LogManager.loadLog, LogManager.replaceCurrentWithFutureLog",
        "Kafka refuses to start.",
        "A crash amid the swap of a moved log.",
        "two-logs", ViolationSeverity.FAIL,
    ),
    _folder(
        "one-identity", "meta.properties of a broker's log directories",
        "They have one node id and one cluster id, and a directory id each.",
        "MetaPropertiesEnsemble.verify",
        "Kafka refuses to start. Or several brokers were given under one name.",
        "Never.",
        "identity-differs same-directory", ViolationSeverity.INCONCLUSIVE,
    ),
    _folder(
        "has-an-identity", "meta.properties, log directory",
        "Each log directory has a meta.properties.",
        "MetaPropertiesEnsemble, StorageTool",
        "Whose folder it is cannot be told; Kafka refuses to start.",
        "A directory without partitions.",
        "no-meta-properties", ViolationSeverity.INCONCLUSIVE,
    ),
    _folder(
        "vote-is-remembered", "quorum-state, __cluster_metadata-0",
        "quorum-state has an epoch that is not below that of the metadata log.",
        "FileQuorumStateStore, QuorumState.durableTransitionTo",
        "The node could vote a second time in an epoch.",
        "An election while the files were copied.",
        "quorum-state-behind", ViolationSeverity.DOUBT,
    ),
    _folder(
        "snapshot-before-log", "metadata snapshots, __cluster_metadata-0",
        "A metadata log that does not begin at 0 begins where a snapshot reaches.",
        "KafkaMetadataLog.deleteBeforeSnapshot",
        "The metadata cannot be loaded.",
        "Never.",
        "no-metadata-snapshot", ViolationSeverity.FAIL,
    ),
    # --- several folders ------------------------------------------------------------------------
    _folders(
        "same-records", "segments of replicas",
        "At one offset in one epoch replicas hold the same batch, in one format.",
        "ReplicaFetcherThread.processPartitionData (appends the bytes as they are)",
        "One replica's bytes were changed.",
        "Below a cleaner's checkpoint, where each broker rewrites batches.",
        "contents-differ without-epoch LogMatching", ViolationSeverity.FAIL,
    ),
    _folders(
        "exposed-is-kept", "segments and high watermarks of replicas, the controller's ISR",
        "The leader and each member of the ISR hold what was below a high watermark.",
        "Partition.maybeIncrementLeaderHW, Partition.maybeShrinkIsr",
        "Acknowledged records are lost, or would be at the next election.",
        "An unclean election (told as such); a copy that is older than the exposure.",
        "CommittedNeverLost ElectableHasExposed HighWatermarkWithinLog lost-by-unclean-election",
        ViolationSeverity.DOUBT,
    ),
    _folders(
        "epochs-are-the-controllers", "segments, checkpoints and server logs, the metadata log",
        "Every leader epoch was given out by the controller.",
        "ReplicationControlManager, Partition.makeLeader",
        "A log of another cluster or time, or a changed byte: the CRC does not cover the epoch.",
        "The metadata log was copied before the election.",
        "KnownEpochIsRegistered EpochCacheMatchesLog EpochsNonDecreasing", ViolationSeverity.DOUBT,
    ),
    _folders(
        "reaches-what-its-log-says", "segments, the broker's server log",
        "A log ends where its broker last said that it began to lead, follow or cut, or later.",
        "Partition.makeLeader, Partition.makeFollower",
        "An older copy was taken or put back, or the log was cut.",
        "A server log that is newer than the copy; a power failure.",
        "older-than-its-log", ViolationSeverity.CLEAN,
    ),
    _folders(
        "reaches-what-the-controller-says", "segments, the metadata log, epochs of other replicas",
        "A log reaches to where each epoch begins that it led, or in which it came into the ISR.",
        "Partition.isFollowerInSync, Partition.makeLeader",
        "An older copy was taken or put back, or the log was cut.",
        "An unclean election; a replica outside the ISR whose disk was replaced.",
        "older-than-the-controller", ViolationSeverity.DOUBT,
    ),
    _folders(
        "knows-its-registration", "__cluster_metadata-0, RegisterBrokerRecord in other copies",
        "A broker's metadata log reaches its own last registration.",
        "BrokerLifecycleManager (caught up before it is unfenced)",
        "The whole folder is of an earlier time.",
        "A copy from before the registration; a broker killed right after it.",
        "older-than-its-registration", ViolationSeverity.INCONCLUSIVE,
    ),
    _folders(
        "mark-of-the-last-run", ".kafka_cleanshutdown, RegisterBrokerRecord",
        "The mark has the broker epoch of the last registration (KIP-966).",
        "CleanShutdownFileHandler, LogManager.loadLogs (removes it)",
        "The mark, or the folder, is of another run: Kafka skips a recovery that is due.",
        "Metadata that ends before the registration.",
        "foreign-marker", ViolationSeverity.DOUBT,
    ),
    _folders(
        "one-cluster", "meta.properties of brokers",
        "All have one cluster id.",
        "MetaPropertiesEnsemble.verify, DefaultApiVersionManager",
        "A folder of another cluster. Nothing else of it is judged.",
        "Never.",
        "other-cluster", ViolationSeverity.FAIL,
    ),
    _folders(
        "one-node", "meta.properties of brokers",
        "Each has a node id of its own.",
        "ClusterControlManager.registerBroker",
        "Two copies of one broker, or two brokers with one id. None of them is judged.",
        "Never.",
        "same-node-id", ViolationSeverity.INCONCLUSIVE,
    ),
    _folders(
        "directory-is-registered", "meta.properties, RegisterBrokerRecord",
        "The node has registered its log directories, and no other has (KIP-858).",
        "ClusterControlManager.registerBroker, BrokerLifecycleManager",
        "The directory, or its meta.properties, is another broker's.",
        "Releases before 3.7 do not register directories.",
        "other-node unknown-directory", ViolationSeverity.FAIL,
    ),
    _folders(
        "log-is-where-it-is-assigned", "log directories, PartitionRecord.directories",
        "A replica lies in the directory that the controller has assigned.",
        "AssignmentsManager, ReplicaManager.maybeUpdateTopicAssignment",
        "The controller would not notice that this directory failed.",
        "A move that is not finished.",
        "other-directory", ViolationSeverity.INCONCLUSIVE,
    ),
    _folders(
        "replicas-have-folders", "folders, PartitionRecord.replicas",
        "A broker has the folder of each of its replicas, and of no others.",
        "ReplicaManager.applyDelta, LogManager.asyncDelete",
        "A replica is gone, or the folder is another broker's.",
        "A partition younger than the copy; a replica that was moved away while its broker was "
        "down.",
        "missing-log not-a-replica", ViolationSeverity.DOUBT,
    ),
    _folders(
        "topic-id", "partition.metadata, TopicRecord",
        "A folder has the topic id of the topic with its name.",
        "PartitionMetadataFile, LogManager.loadLog (isStray)",
        "A log of an earlier topic of that name; without an id Kafka sets the folder aside.",
        "Releases before 2.8 have no such file.",
        "other-topic no-topic-id identity", ViolationSeverity.FAIL,
    ),
    _folders(
        "metadata-log-everywhere", "__cluster_metadata-0 of brokers",
        "Every node has the metadata log.",
        "KafkaRaftManager, KafkaMetadataLog",
        "The node lost its votes and its metadata.",
        "metadata.log.dir was not given; a cluster with ZooKeeper.",
        "no-metadata-log", ViolationSeverity.INCONCLUSIVE,
    ),
    _folders(
        "metadata-agrees", "__cluster_metadata-0 of brokers",
        "Committed metadata records are the same in all copies.",
        "KafkaRaftClient",
        "A copy was changed, or is of another cluster.",
        "Records that were not committed.",
        "metadata-differs", ViolationSeverity.FAIL,
    ),
    _folders(
        "one-quorum-leader", "quorum-state and LeaderChangeMessage of nodes",
        "In each epoch all that name a leader of the quorum name the same one.",
        "QuorumState, FileQuorumStateStore",
        "Two controllers decided at the same time, or a file was changed.",
        "Never.",
        "two-quorum-leaders", ViolationSeverity.FAIL,
    ),
    _folders(
        "one-leader", "server logs, the metadata log",
        "In each leader epoch all that name a leader name the same one.",
        "ReplicationControlManager, Partition.makeLeader",
        "Two brokers appended in one epoch.",
        "Never. A broker whose node id is not known is left out.",
        "OneLeaderPerEpoch", ViolationSeverity.FAIL,
    ),
    _folders(
        "holds-something", "folders that were named",
        "Each holds something of a broker.",
        "kconform",
        "A wrong path, a disk that is not mounted, or one that was wiped.",
        "Never.",
        "empty-folder", ViolationSeverity.INCONCLUSIVE,
    ),
)  # fmt: skip
"""All rows."""


def named(name: str) -> Invariant:
    """The row of that name."""
    return next(invariant for invariant in INVARIANTS if invariant.name == name)
