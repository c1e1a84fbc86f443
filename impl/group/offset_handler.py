"""OffsetCommit, TxnOffsetCommit and OffsetFetch, the end of transactions, and expiry.

Source: the offset halves of GroupCoordinator and GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..clock import Clock
from ..errors import Errors
from ..records import Record
from ..scheduler import Scheduler
from ..types import TopicPartition
from .config import GroupConfig
from .group_metadata import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupMetadata,
)
from .group_metadata_manager import GroupMetadataManager
from .group_offsets import (
    CommitRecordMetadataAndOffset,
    OffsetAndMetadata,
    PartitionOffsets,
)
from .group_records import (
    offset_commit_key,
    offset_commit_value,
    producer_headers,
    transaction_marker,
)
from .messages import (
    CONSUMER_PROTOCOL_TYPE,
    INVALID_OFFSET,
    NO_EXPIRATION,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetFetchResponsePartition,
    TxnOffsetCommitRequest,
)
from .rebalancer import GroupRebalancer
from .validation import validate_offset_commit

CommitCallback = Callable[[OffsetCommitResponse], None]


def offset_store_error(error: Errors) -> Errors:
    """What a member learns when its commit could not be written."""
    if error in (
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ):
        return Errors.COORDINATOR_NOT_AVAILABLE
    if error in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.KAFKA_STORAGE_ERROR):
        return Errors.NOT_COORDINATOR
    if error in (
        Errors.MESSAGE_TOO_LARGE,
        Errors.RECORD_LIST_TOO_LARGE,
        Errors.INVALID_FETCH_SIZE,
    ):
        return Errors.INVALID_COMMIT_OFFSET_SIZE
    return error


def commit_error(
    partitions: Collection[OffsetCommitRequestPartition], error: Errors
) -> OffsetCommitResponse:
    """The same error for every partition of a request."""
    return OffsetCommitResponse(
        tuple(OffsetCommitResponsePartition(p.topic_partition, error) for p in partitions)
    )


class OffsetHandler:
    """Commits and fetches the positions of groups that exist."""

    def __init__(
        self,
        config: GroupConfig,
        manager: GroupMetadataManager,
        rebalancer: GroupRebalancer,
        clock: Clock,
        scheduler: Scheduler,
    ) -> None:
        self._config = config
        self._scheduler = scheduler
        self._manager = manager
        self._rebalancer = rebalancer
        self._clock = clock

    # -- commits

    def commit(
        self, group: GroupMetadata, request: OffsetCommitRequest, callback: CommitCallback
    ) -> None:
        """A plain commit; one of a member keeps its session alive (KAFKA-3470)."""
        with group.lock:
            error = validate_offset_commit(
                group,
                request.generation_id,
                request.member_id,
                request.group_instance_id,
                is_transactional=False,
            )
            if error is None and group.is_in(COMPLETING_REBALANCE):
                # The member knows the generation, but not yet its assignment.
                error = Errors.REBALANCE_IN_PROGRESS
            if error is not None:
                callback(commit_error(request.partitions, error))
                return
            if group.is_in(STABLE, PREPARING_REBALANCE):
                member = group.get(request.member_id)
                self._rebalancer.complete_and_schedule_next_heartbeat_expiration(group, member)
            now = self._clock.milliseconds()
            expires = request.retention_time_ms != NO_EXPIRATION
            expire_timestamp = now + request.retention_time_ms if expires else None
            self._store(group, request.partitions, expire_timestamp, None, callback)

    def txn_commit(
        self, group: GroupMetadata, request: TxnOffsetCommitRequest, callback: CommitCallback
    ) -> None:
        """A commit within a transaction; it shows once that is committed."""
        with group.lock:
            error = validate_offset_commit(
                group,
                request.generation_id,
                request.member_id,
                request.group_instance_id,
                is_transactional=True,
            )
            if error is not None:
                callback(commit_error(request.partitions, error))
            else:
                self._store(group, request.partitions, None, request.producer_id, callback)

    def _store(
        self,
        group: GroupMetadata,
        partitions: Collection[OffsetCommitRequestPartition],
        expire_timestamp: int | None,
        producer_id: int | None,
        callback: CommitCallback,
    ) -> None:
        now = self._clock.milliseconds()
        offsets = {
            p.topic_partition: OffsetAndMetadata(
                p.committed_offset,
                p.committed_leader_epoch,
                p.committed_metadata,
                now,
                expire_timestamp,
            )
            for p in partitions
            if len(p.committed_metadata) <= self._config.max_metadata_size
        }
        if not offsets:
            callback(commit_error(partitions, Errors.OFFSET_METADATA_TOO_LARGE))
            return
        if producer_id is None:
            group.offsets.prepare_offset_commit(offsets)
        else:
            group.offsets.prepare_txn_offset_commit(producer_id, offsets)

        def appended(error: Errors, batch_offset: int) -> None:
            with group.lock:
                _on_appended(group, offsets, producer_id, error, batch_offset)
                callback(_response(partitions, offsets, offset_store_error(error)))

        headers = () if producer_id is None else producer_headers(producer_id)
        version = self._config.offset_commit_value_version
        records = [
            Record(
                offset_commit_value(offset, version),
                offset_commit_key(group.group_id, tp),
                now,
                headers,
            )
            for tp, offset in offsets.items()
        ]
        self._manager.append(group.group_id, records, appended)

    # -- the end of transactions

    def handle_txn_completion(
        self, producer_id: int, partitions: Collection[int], is_commit: bool
    ) -> None:
        """Write the producer's marker to the partitions; later, apply or drop what is pending.

        A marker is written also where nothing is pending: the log may hold a commit whose append
        was answered with an error, and without a marker whoever loads it would find it open.
        The rest is a task of the scheduler, since whoever completes the append may hold locks of
        groups (KAFKA-6917; GroupMetadataManager.scheduleHandleTxnCompletion).
        """
        for partition in partitions:
            marker = transaction_marker(producer_id, is_commit, self._clock.milliseconds())
            self._manager.append_to(partition, (marker,), lambda _error, _offset: None)
        self._scheduler.schedule_once(
            f"handleTxnCompletion-{producer_id}",
            lambda: self._complete_transaction(producer_id, frozenset(partitions), is_commit),
        )

    def _complete_transaction(
        self, producer_id: int, partitions: Collection[int], is_commit: bool
    ) -> None:
        for group in self._manager.current_groups():
            if self._manager.partition_for(group.group_id) not in partitions:
                continue
            with group.lock:
                if not group.is_in(DEAD):
                    group.offsets.complete_pending_txn_offset_commit(producer_id, is_commit)

    # -- fetches

    def fetch(
        self, group_id: str, partitions: Collection[TopicPartition] | None, require_stable: bool
    ) -> tuple[OffsetFetchResponsePartition, ...]:
        """Committed positions, offset -1 where there is none."""
        group = self._manager.get_group(group_id)
        if group is None:
            return tuple(_no_offset(tp) for tp in partitions or ())
        with group.lock:
            if group.is_in(DEAD):
                return tuple(_no_offset(tp) for tp in partitions or ())
            wanted = group.offsets.all_offsets() if partitions is None else partitions
            return tuple(_fetched(group, tp, require_stable) for tp in wanted)

    # -- expiry

    def cleanup_expired_offsets(self) -> int:
        """Drop positions whose retention is over, and groups that nothing is left of (KIP-211)."""
        now = self._clock.milliseconds()

        def select(group: GroupMetadata) -> list[TopicPartition]:
            expired = expired_offsets(group, now, self._config.offsets_retention_ms)
            return group.offsets.expire_offsets(expired)

        return self._manager.cleanup_group_metadata(self._manager.current_groups(), select)

    # -- deletion

    def delete(
        self, group: GroupMetadata, partitions: Collection[TopicPartition]
    ) -> OffsetDeleteResponse:
        """Remove positions; those of topics that members subscribe to stay (KIP-496).

        Source: GroupCoordinator.handleDeleteOffsets. The subscription is that of the last
        generation: what a member that is about to join wants is not protected yet.
        """
        with group.lock:
            if group.is_in(DEAD):
                return OffsetDeleteResponse(Errors.GROUP_ID_NOT_FOUND)
            if group.is_in(EMPTY):
                kept = []
            elif group.protocol_type == CONSUMER_PROTOCOL_TYPE:
                kept = [tp for tp in partitions if group.is_subscribed_to_topic(tp.topic)]
            else:
                return OffsetDeleteResponse(Errors.NON_EMPTY_GROUP)
        eligible = [tp for tp in partitions if tp not in kept]
        if eligible:
            self._manager.cleanup_group_metadata(
                (group,), lambda each: each.offsets.remove_offsets(eligible)
            )
        results = [
            OffsetDeleteResponsePartition(
                tp, Errors.GROUP_SUBSCRIBED_TO_TOPIC if tp in kept else Errors.NONE
            )
            for tp in partitions
        ]
        return OffsetDeleteResponse(Errors.NONE, tuple(results))


def expired_offsets(group: GroupMetadata, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Positions that nobody needs any longer; what the retention counts from depends on the group.

    Empty: from when it became so, if known. Stable consumers: from the commit, unless subscribed.
    No protocol type at all: a consumer outside groups, from the commit.
    """

    def since_commit(offset: OffsetAndMetadata) -> int:
        return offset.commit_timestamp

    def since_empty(offset: OffsetAndMetadata) -> int:
        timestamp = group.current_state_timestamp
        return offset.commit_timestamp if timestamp is None else timestamp

    def nothing(_topic: str) -> bool:
        return False

    if group.protocol_type is None:
        return group.offsets.expired_offsets(now_ms, retention_ms, since_commit, nothing)
    if group.is_in(EMPTY):
        return group.offsets.expired_offsets(now_ms, retention_ms, since_empty, nothing)
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.is_in(STABLE):
        subscribed = group.is_subscribed_to_topic
        return group.offsets.expired_offsets(now_ms, retention_ms, since_commit, subscribed)
    return []


def _on_appended(
    group: GroupMetadata,
    offsets: PartitionOffsets,
    producer_id: int | None,
    error: Errors,
    batch_offset: int,
) -> None:
    if group.is_in(DEAD):
        return
    for topic_partition, offset in offsets.items():
        commit = CommitRecordMetadataAndOffset(batch_offset, offset)
        if error is Errors.NONE and producer_id is None:
            group.offsets.on_offset_commit_append(topic_partition, commit)
        elif error is Errors.NONE and producer_id is not None:
            group.offsets.on_txn_offset_commit_append(producer_id, topic_partition, commit)
        elif producer_id is None:
            group.offsets.fail_pending_offset_write(topic_partition, offset)
        else:
            group.offsets.fail_pending_txn_offset_commit(producer_id, topic_partition, offset)


def _response(
    partitions: Collection[OffsetCommitRequestPartition],
    stored: PartitionOffsets,
    error: Errors,
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        tuple(
            OffsetCommitResponsePartition(
                p.topic_partition,
                error if p.topic_partition in stored else Errors.OFFSET_METADATA_TOO_LARGE,
            )
            for p in partitions
        )
    )


def _no_offset(topic_partition: TopicPartition) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(topic_partition, INVALID_OFFSET)


def _fetched(
    group: GroupMetadata, topic_partition: TopicPartition, require_stable: bool
) -> OffsetFetchResponsePartition:
    if require_stable and group.offsets.has_pending_offset_commits_for(topic_partition):
        return OffsetFetchResponsePartition(
            topic_partition, INVALID_OFFSET, error_code=Errors.UNSTABLE_OFFSET_COMMIT
        )
    offset = group.offsets.offset(topic_partition)
    if offset is None:
        return _no_offset(topic_partition)
    return OffsetFetchResponsePartition(
        topic_partition, offset.committed_offset, offset.leader_epoch, offset.metadata
    )
