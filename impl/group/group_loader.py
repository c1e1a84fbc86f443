"""Reads back from the log of one partition what a coordinator wrote to it.

Source: GroupMetadataManager.doLoadGroupsAndOffsets and readGroupMessageValue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..clock import Clock
from ..concurrency import Lock
from ..log import Log
from ..records import Record
from ..types import NO_TIMESTAMP, TopicPartition
from .group_metadata import EMPTY, STABLE, GroupMetadata
from .group_offsets import CommitRecordMetadataAndOffset
from .group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetKey,
    marker_of,
    producer_of,
    read_group_metadata_value,
    read_message_key,
    read_offset_commit_value,
)
from .member_metadata import MemberMetadata
from .messages import JoinGroupRequestProtocol

Commits = dict[TopicPartition, CommitRecordMetadataAndOffset]


@dataclass(slots=True)
class LoadedPartition:
    """What the records of one partition add up to; `pending` by group and producer."""

    groups: dict[str, GroupMetadataValue] = field(default_factory=dict)
    offsets: dict[str, Commits] = field(default_factory=dict)
    pending: dict[str, dict[int, Commits]] = field(default_factory=dict)

    def group_ids(self) -> list[str]:
        """Groups with metadata or positions, in the order in which they came."""
        with_offsets = [group for group, commits in self.offsets.items() if commits]
        with_pending = [group for group, pending in self.pending.items() if pending]
        return list(dict.fromkeys([*self.groups, *with_offsets, *with_pending]))

    def apply(self, batch_offset: int, record: Record) -> None:
        """Take one record in, in the order of the log."""
        producer_id = producer_of(record)
        is_commit = marker_of(record)
        if producer_id is not None and is_commit is not None:
            self._end_transaction(producer_id, is_commit)
        elif record.key is not None:
            key = read_message_key(record.key)
            if isinstance(key, GroupMetadataKey):
                self._apply_group(key.group, record.value)
            elif isinstance(key, OffsetKey):
                self._apply_offset(key, record.value, producer_id, batch_offset)

    def _apply_group(self, group: str, value: bytes | None) -> None:
        if value is None:
            self.groups.pop(group, None)
        else:
            self.groups[group] = read_group_metadata_value(value)

    def _apply_offset(
        self, key: OffsetKey, value: bytes | None, producer_id: int | None, batch_offset: int
    ) -> None:
        if producer_id is None:
            commits = self.offsets.setdefault(key.group, {})
        else:
            commits = self.pending.setdefault(key.group, {}).setdefault(producer_id, {})
        if value is None:
            commits.pop(key.topic_partition, None)
        else:
            commits[key.topic_partition] = CommitRecordMetadataAndOffset(
                batch_offset, read_offset_commit_value(value)
            )

    def _end_transaction(self, producer_id: int, is_commit: bool) -> None:
        for group, pending in self.pending.items():
            commits = pending.pop(producer_id, {})
            if not is_commit:
                continue
            offsets = self.offsets.setdefault(group, {})
            for topic_partition, commit in commits.items():
                current = offsets.get(topic_partition)
                if current is None or current.older_than(commit):
                    offsets[topic_partition] = commit


def read_groups(log: Log, buffer_size: int) -> LoadedPartition:
    """Everything from the log start to the log end, read in pieces of about `buffer_size` bytes."""
    loaded = LoadedPartition()
    for batch_offset, record in _records(log, buffer_size):
        loaded.apply(batch_offset, record)
    return loaded


def _records(log: Log, buffer_size: int) -> Iterator[tuple[int, Record]]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        # KAFKA-7286: a batch larger than the buffer is read whole, or loading never ends.
        batches = log.read(offset, buffer_size, min_one_message=True).records.batches()
        if not batches:
            return
        for batch in batches:
            for record in batch.records:
                yield batch.base_offset, record
        offset = batches[-1].next_offset


def group_of(
    group_id: str, value: GroupMetadataValue | None, clock: Clock, lock: Lock
) -> GroupMetadata:
    """The group as it was written: Stable, or Empty without members (or without metadata)."""
    if value is None:
        return GroupMetadata(group_id, EMPTY, clock, lock)
    group = GroupMetadata(group_id, STABLE if value.members else EMPTY, clock, lock)
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    unknown = value.current_state_timestamp == NO_TIMESTAMP
    group.current_state_timestamp = None if unknown else value.current_state_timestamp
    for member in value.members:
        protocols = (JoinGroupRequestProtocol(value.protocol or "", member.subscription),)
        rebalance_timeout_ms = member.rebalance_timeout_ms
        if rebalance_timeout_ms < 0:
            rebalance_timeout_ms = member.session_timeout_ms
        group.add(
            MemberMetadata(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                rebalance_timeout_ms,
                member.session_timeout_ms,
                value.protocol_type,
                protocols,
                member.assignment,
            )
        )
    group.subscribed_topics = group.compute_subscribed_topics()
    return group
