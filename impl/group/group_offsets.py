"""The committed positions of one group: appended, pending, in transactions, and expired.

Source: the offsets of kafka.coordinator.group.GroupMetadata. What counts is the order in the log,
not the order in which appends are acknowledged or transactions end (KAFKA-5247).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import IllegalStateException
from ..types import NO_PARTITION_LEADER_EPOCH, TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A position as committed; times in ms, `expire_timestamp` only with an explicit retention."""

    committed_offset: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class CommitRecordMetadataAndOffset:
    """A position and the log offset of the batch that carries it, none before it is appended."""

    appended_batch_offset: int | None
    offset_and_metadata: OffsetAndMetadata

    def older_than(self, that: CommitRecordMetadataAndOffset) -> bool:
        """Whether this one lies before that one in the log. Both must be appended."""
        if self.appended_batch_offset is None or that.appended_batch_offset is None:
            raise IllegalStateException("a commit that is not appended has no place in the log")
        return self.appended_batch_offset < that.appended_batch_offset


PartitionOffsets = dict[TopicPartition, OffsetAndMetadata]


class GroupOffsets:
    """Guarded by the lock of its group."""

    __slots__ = ("_offsets", "_pending", "_pending_transactional")

    def __init__(self) -> None:
        self._offsets: dict[TopicPartition, CommitRecordMetadataAndOffset] = {}
        self._pending: PartitionOffsets = {}
        self._pending_transactional: dict[
            int, dict[TopicPartition, CommitRecordMetadataAndOffset]
        ] = {}

    def initialize(
        self,
        offsets: dict[TopicPartition, CommitRecordMetadataAndOffset],
        pending_transactional: dict[int, dict[TopicPartition, CommitRecordMetadataAndOffset]],
    ) -> None:
        """Start from what the log holds."""
        self._offsets = dict(offsets)
        self._pending_transactional = {
            producer: dict(pending) for producer, pending in pending_transactional.items()
        }

    def offset(self, topic_partition: TopicPartition) -> OffsetAndMetadata | None:
        """The committed position."""
        found = self._offsets.get(topic_partition)
        return None if found is None else found.offset_and_metadata

    def commit_of(self, topic_partition: TopicPartition) -> CommitRecordMetadataAndOffset | None:
        """The committed position, and where it lies in the log."""
        return self._offsets.get(topic_partition)

    def pending_commit_of(self, topic_partition: TopicPartition) -> OffsetAndMetadata | None:
        """The last plain commit that is on its way."""
        return self._pending.get(topic_partition)

    def pending_txn_commits_of(
        self, topic_partition: TopicPartition
    ) -> Mapping[int, CommitRecordMetadataAndOffset]:
        """What open transactions commit, by producer; those that are on their way have no place."""
        return {
            producer: pending[topic_partition]
            for producer, pending in self._pending_transactional.items()
            if topic_partition in pending
        }

    def producers_without_positions(self) -> frozenset[int]:
        """Producers whose positions were all deleted while their transaction was open."""
        pending = self._pending_transactional.items()
        return frozenset(producer for producer, positions in pending if not positions)

    def all_offsets(self) -> PartitionOffsets:
        """Every committed position."""
        return {tp: commit.offset_and_metadata for tp, commit in self._offsets.items()}

    def has_offsets(self) -> bool:
        """Whether anything is committed or on its way."""
        return bool(self._offsets or self._pending or self._pending_transactional)

    def has_pending_offset_commits_for(self, topic_partition: TopicPartition) -> bool:
        """Whether the position may change by what was sent already (KIP-447)."""
        return topic_partition in self._pending or any(
            topic_partition in pending for pending in self._pending_transactional.values()
        )

    # -- plain commits

    def prepare_offset_commit(self, offsets: PartitionOffsets) -> None:
        """The commit is about to be appended."""
        self._pending.update(offsets)

    def on_offset_commit_append(
        self, topic_partition: TopicPartition, commit: CommitRecordMetadataAndOffset
    ) -> None:
        """The commit is in the log."""
        if topic_partition in self._pending:
            self._put_if_newer(topic_partition, commit)
        self.fail_pending_offset_write(topic_partition, commit.offset_and_metadata)

    def fail_pending_offset_write(
        self, topic_partition: TopicPartition, offset: OffsetAndMetadata
    ) -> None:
        """The commit is no longer on its way; a later one of the same partition may be."""
        if self._pending.get(topic_partition) == offset:
            del self._pending[topic_partition]

    def _put_if_newer(
        self, topic_partition: TopicPartition, commit: CommitRecordMetadataAndOffset
    ) -> None:
        current = self._offsets.get(topic_partition)
        if current is None or current.older_than(commit):
            self._offsets[topic_partition] = commit

    # -- transactions

    def prepare_txn_offset_commit(self, producer_id: int, offsets: PartitionOffsets) -> None:
        """The transactional commit is about to be appended."""
        pending = self._pending_transactional.setdefault(producer_id, {})
        for topic_partition, offset in offsets.items():
            pending[topic_partition] = CommitRecordMetadataAndOffset(None, offset)

    def on_txn_offset_commit_append(
        self,
        producer_id: int,
        topic_partition: TopicPartition,
        commit: CommitRecordMetadataAndOffset,
    ) -> None:
        """The transactional commit is in the log, and waits for the end of the transaction."""
        pending = self._pending_transactional.get(producer_id, {})
        current = pending.get(topic_partition)
        if current is not None and current.offset_and_metadata == commit.offset_and_metadata:
            pending[topic_partition] = commit

    def fail_pending_txn_offset_commit(
        self, producer_id: int, topic_partition: TopicPartition, offset: OffsetAndMetadata
    ) -> None:
        """The transactional commit could not be appended."""
        pending = self._pending_transactional.get(producer_id, {})
        current = pending.get(topic_partition)
        if current is not None and current.offset_and_metadata == offset:
            del pending[topic_partition]
        if not pending:
            self._pending_transactional.pop(producer_id, None)

    def complete_pending_txn_offset_commit(self, producer_id: int, is_commit: bool) -> None:
        """The transaction ended; a committed position counts from where it lies in the log.

        Raises `IllegalStateException` for the commit of a position that was never appended:
        whoever loads the log would not find it.
        """
        pending = self._pending_transactional.pop(producer_id, {})
        if is_commit:
            for topic_partition, commit in pending.items():
                if commit.appended_batch_offset is None:
                    raise IllegalStateException(
                        f"producer {producer_id} commits a position of {topic_partition} that is"
                        " not in the log"
                    )
                self._put_if_newer(topic_partition, commit)

    # -- removal

    def expire_offsets(self, topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Forget committed positions; what an open transaction commits stays, and may show later.

        Source: GroupMetadata.removeExpiredOffsets.
        """
        expired = [tp for tp in topic_partitions if tp in self._offsets]
        for topic_partition in expired:
            del self._offsets[topic_partition]
        return expired

    def remove_offsets(self, topic_partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Forget positions, also those on their way and of open transactions (KIP-496).

        Returns what was committed. A producer stays here without positions until its transaction
        ends, and its group with it. Source: GroupMetadata.removeOffsets.
        """
        removed = []
        for topic_partition in topic_partitions:
            self._pending.pop(topic_partition, None)
            for pending in self._pending_transactional.values():
                pending.pop(topic_partition, None)
            if self._offsets.pop(topic_partition, None) is not None:
                removed.append(topic_partition)
        return removed

    def remove_all_offsets(self) -> list[TopicPartition]:
        """Forget everything; return what was committed."""
        removed = list(self._offsets)
        self._offsets.clear()
        self._pending.clear()
        self._pending_transactional.clear()
        return removed

    def expired_offsets(
        self,
        now_ms: int,
        retention_ms: int,
        base_timestamp: Callable[[OffsetAndMetadata], int],
        is_subscribed: Callable[[str], bool],
    ) -> list[TopicPartition]:
        """Positions whose time is over: their own expiry, or retention after the base (KIP-211)."""
        expired = []
        for topic_partition, commit in self._offsets.items():
            offset = commit.offset_and_metadata
            if topic_partition in self._pending or is_subscribed(topic_partition.topic):
                continue
            if offset.expire_timestamp is not None:
                over = now_ms >= offset.expire_timestamp
            else:
                over = now_ms - base_timestamp(offset) >= retention_ms
            if over:
                expired.append(topic_partition)
        return expired
