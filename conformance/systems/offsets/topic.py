"""The offsets topic of a model: read as it is written; an action gives each answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.group.group_records import (
    GroupMetadataKey,
    marker_of,
    producer_of,
    read_group_metadata_value,
    read_message_key,
    read_offset_commit_value,
)
from impl.group.offsets_topic import AppendCallback, LocalOffsetsTopic
from impl.log import Log
from impl.records import Record
from impl.scheduler import ImmediateScheduler


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """A record as the spec has it; `producer` is None for what belongs to no transaction.

    Of a group's record `value` is the generation, and `members` are its ids.
    """

    kind: str
    value: int
    producer: int | None
    timestamp: int
    members: frozenset[str] | None = None

    @property
    def is_commit(self) -> bool:
        """Whether it commits a position, in a transaction or not."""
        return self.kind in ("Commit", "TxnCommit")


class DeferredTopic:
    """One partition. An append is in the log at once, and answered when `answer` is called."""

    num_partitions = 1

    def __init__(self) -> None:
        concurrency = NoConcurrency()
        self._topic = LocalOffsetsTopic(MemoryDisk(), ImmediateScheduler(), concurrency, 1)
        self._pending: dict[int, Callable[[Errors], None]] = {}
        self.entries: list[OffsetEntry] = []

    @property
    def in_flight(self) -> frozenset[int]:
        """Places, from 1, of the commits that are not yet answered."""
        return frozenset(self._pending)

    def become_leader(self, partition: int, leader_epoch: int, /) -> Log | None:
        """The log, to be loaded; nobody waits for an answer to the former leader any more."""
        self._pending.clear()
        return self._topic.become_leader(partition, leader_epoch)

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[Record],
        callback: AppendCallback,
        /,
    ) -> None:
        """Append a batch. A commit, which is alone, is answered later; all else at once."""
        outcome: list[tuple[Errors, int]] = []
        self._topic.append(partition, leader_epoch, records, lambda *answer: outcome.append(answer))
        ((error, offset),) = outcome
        if error is not Errors.NONE:
            callback(error, offset)
            return
        self.entries += map(_entry, records)
        if self.entries[-1].is_commit:
            self._pending[len(self.entries)] = _answering(callback, offset)
        else:
            callback(error, offset)

    def answer(self, place: int, error: Errors) -> None:
        """Answer the append of the record there."""
        content = self._pending.pop(place, None)
        if content is None:
            raise ActionRefused(f"no append at {place} waits for an answer")
        content(error)


def _answering(callback: AppendCallback, offset: int) -> Callable[[Errors], None]:
    return lambda error: callback(error, offset if error is Errors.NONE else -1)


def _entry(record: Record) -> OffsetEntry:
    producer, is_commit, time = producer_of(record), marker_of(record), record.timestamp
    if is_commit is not None:
        return OffsetEntry("Committed" if is_commit else "Aborted", 0, producer, time)
    assert record.key is not None, "a record of the coordinator has a key"
    if isinstance(read_message_key(record.key), GroupMetadataKey):
        return _group_entry(record)
    if record.value is None:
        return OffsetEntry("Tombstone", 0, None, time)
    value = read_offset_commit_value(record.value).committed_offset
    return OffsetEntry("Commit" if producer is None else "TxnCommit", value, producer, time)


def _group_entry(record: Record) -> OffsetEntry:
    if record.value is None:
        return OffsetEntry("GroupTombstone", 0, None, record.timestamp)
    group = read_group_metadata_value(record.value)
    members = frozenset(member.member_id for member in group.members)
    return OffsetEntry("Group", group.generation, None, record.timestamp, members)
