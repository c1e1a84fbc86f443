"""The committed offsets of consumer groups.

Source: OffsetMetadataManager. Requests that commit in a transaction and expiry are not here.
"""

from __future__ import annotations

from ...clock import Clock
from ...errors import Errors
from ...group.group_offsets import OffsetAndMetadata
from ...group.group_records import OffsetKey, offset_commit_key, offset_commit_value
from ...group.messages import (
    INVALID_OFFSET,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
)
from ...types import TopicIdPartition, TopicPartition
from ..coordinator_shard import CoordinatorRecord, CoordinatorResult
from ..pending_values import PendingValues
from ..timeline import LATEST_EPOCH, SnapshotRegistry
from .assignors import TopicsImage
from .config import ConsumerGroupConfig
from .consumer_group_manager import ConsumerGroupManager

_NO_TOPIC = ""


class OffsetMetadataManager:
    """By group and partition."""

    def __init__(
        self,
        registry: SnapshotRegistry,
        config: ConsumerGroupConfig,
        groups: ConsumerGroupManager,
        topics: TopicsImage,
        clock: Clock,
    ) -> None:
        self._config = config
        self._groups = groups
        self._topics = topics
        self._clock = clock
        self._offsets: PendingValues[OffsetKey, OffsetAndMetadata] = PendingValues(registry)

    def commit_offset(self, request: OffsetCommitRequest) -> CoordinatorResult:
        """All of a request is taken, but for metadata that are too large, or nothing.

        Raises GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """
        group = self._groups.group_or_raise(request.group_id)
        validate = group.validate_offset_commit(request.member_id, request.generation_id)
        now = self._clock.milliseconds()
        records, results = [], []
        for part in request.partitions:
            error = Errors.NONE
            if len(part.committed_metadata) > self._config.max_metadata_size:
                error = Errors.OFFSET_METADATA_TOO_LARGE
            else:
                validate(self._with_id(part.topic_partition))
                key = offset_commit_key(request.group_id, part.topic_partition)
                offset = OffsetAndMetadata(
                    part.committed_offset, part.committed_leader_epoch, part.committed_metadata, now
                )
                records.append(CoordinatorRecord(key, offset_commit_value(offset)))
            results.append(OffsetCommitResponsePartition(part.topic_partition, error))
        return CoordinatorResult(tuple(records), OffsetCommitResponse(tuple(results)))

    def _with_id(self, partition: TopicPartition) -> TopicIdPartition:
        topic_id = self._topics.topic_id(partition.topic)
        return TopicIdPartition(topic_id or _NO_TOPIC, partition.partition)

    def fetch_offsets(
        self, request: OffsetFetchRequest, committed_offset: int
    ) -> OffsetFetchResponse:
        """What is committed below the watermark. Raises UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH."""
        group = self._groups.group_or_raise(request.group_id, committed_offset)
        group.validate_offset_fetch(request.member_id, request.member_epoch, committed_offset)
        partitions = request.partitions
        if partitions is None:
            partitions = tuple(
                key.topic_partition for key in self._keys_of(request.group_id, committed_offset)
            )
        return OffsetFetchResponse(
            Errors.NONE,
            tuple(
                self._fetched(OffsetKey(request.group_id, partition), committed_offset)
                for partition in partitions
            ),
        )

    def offset(
        self, group_id: str, partition: TopicPartition, committed_offset: int = LATEST_EPOCH
    ) -> OffsetAndMetadata | None:
        """What the group has committed of the partition; None if nothing."""
        return self._offsets.get(OffsetKey(group_id, partition), committed_offset)

    def _fetched(self, key: OffsetKey, committed_offset: int) -> OffsetFetchResponsePartition:
        offset = self._offsets.get(key, committed_offset) or OffsetAndMetadata(INVALID_OFFSET)
        return OffsetFetchResponsePartition(
            key.topic_partition, offset.committed_offset, offset.leader_epoch, offset.metadata
        )

    def tombstones_of(self, group_id: str) -> tuple[CoordinatorRecord, ...]:
        """Of all that the group has committed."""
        return tuple(
            CoordinatorRecord(offset_commit_key(group_id, key.topic_partition), None)
            for key in self._keys_of(group_id, LATEST_EPOCH)
        )

    def _keys_of(self, group_id: str, committed_offset: int) -> list[OffsetKey]:
        return [key for key in self._offsets.entries(committed_offset) if key.group == group_id]

    def replay(
        self, offset: int, producer_id: int, key: OffsetKey, value: OffsetAndMetadata | None
    ) -> None:
        """Change the offsets as a record says; None for a tombstone."""
        self._offsets.replay(offset, producer_id, key, value)

    def replay_end_transaction_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """What the transaction has committed counts now, or never."""
        self._offsets.replay_end_transaction_marker(producer_id, is_commit=is_commit)
