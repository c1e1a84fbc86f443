"""The coordinator's side: two brokers, of which one coordinates the group, and what they store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.systems.group.timers import check_timers
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.settings import GROUP_ID, INITIAL_DELAY_MS, GroupSettings
from conformance.systems.shared.group.views import MemberRecord, RecordView
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.group.config import GroupConfig
from impl.group.delayed_operations import GroupOperation, InitialDelayedJoin
from impl.group.group_coordinator import GroupCoordinator
from impl.group.group_metadata import DEAD, GroupMetadata
from impl.group.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    read_group_metadata_value,
    read_message_key,
)
from impl.group.messages import DeletableGroupResult, DeleteGroupsRequest
from impl.group.offsets_topic import AppendCallback, LocalOffsetsTopic
from impl.log import Log
from impl.records import Record
from impl.scheduler import ImmediateScheduler

_PARTITION, _PARTITIONS = 30, 50
"""Where Kafka keeps a group of this id, whose hashCode() is -1881749580."""
_NOT_STORED = Errors.NOT_ENOUGH_REPLICAS
"""Which members are told as COORDINATOR_NOT_AVAILABLE."""


class GroupTopic:
    """The offsets topic, read as it is written; it refuses the next append when it is told to."""

    def __init__(self, concurrency: Concurrency) -> None:
        self._topic = LocalOffsetsTopic(
            MemoryDisk(), ImmediateScheduler(), concurrency, _PARTITIONS
        )
        self.record: RecordView | None = None
        self.refuses = False

    @property
    def num_partitions(self) -> int:
        """As many as Kafka makes by default (offsets.topic.num.partitions)."""
        return self._topic.num_partitions

    def become_leader(self, partition: int, leader_epoch: int, /) -> Log | None:
        """The log, to be loaded."""
        return self._topic.become_leader(partition, leader_epoch)

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[Record],
        callback: AppendCallback,
        /,
    ) -> None:
        """Append, and note the group's record among the records."""
        if self.refuses:
            callback(_NOT_STORED, -1)
            return

        def stored(error: Errors, offset: int) -> None:
            if error is Errors.NONE:
                self._note(records)
            callback(error, offset)

        self._topic.append(partition, leader_epoch, records, stored)

    def _note(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.key is None or not isinstance(read_message_key(record.key), GroupMetadataKey):
                continue
            value = record.value
            self.record = None if value is None else _record(read_group_metadata_value(value))


def _record(value: GroupMetadataValue) -> RecordView:
    members = tuple(
        [
            MemberRecord(each.member_id, each.group_instance_id, each.assignment)
            for each in value.members
        ]
    )
    return RecordView(value.generation, value.protocol, value.leader, members)


class Coordinators:
    """Two brokers that share the offsets topic; a fail-over moves its one partition."""

    def __init__(
        self, settings: GroupSettings, unique_id: Callable[[], str], concurrency: Concurrency
    ) -> None:
        self._config = GroupConfig(
            group_max_size=settings.maximum_size,
            group_initial_rebalance_delay_ms=INITIAL_DELAY_MS,
        )
        self._unique_id = unique_id
        self._concurrency = concurrency
        self.topic = GroupTopic(concurrency)
        self._epoch = 0
        self.current = self._start()
        self._other: GroupCoordinator | None = None
        self._last_seen: GroupMetadata | None = None
        self.current.on_election(_PARTITION, 0)

    def _start(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(
            self.topic,
            MockClock(1_000_000),
            unique_id=self._unique_id,
            config=self._config,
            concurrency=self._concurrency,
        )
        coordinator.startup()
        return coordinator

    def fail_over(self) -> None:
        """The partition moves to the other broker, which may have had it before."""
        self._epoch += 1
        old, new = self.current, self._other or self._start()
        self.current, self._other = new, old
        old.on_resignation(_PARTITION, self._epoch)
        new.on_election(_PARTITION, self._epoch)

    def group(self) -> GroupMetadata | None:
        """The group as the present coordinator has it."""
        return self.current.group(GROUP_ID)

    def delete_group(self) -> None:
        """DeleteGroups of an administrator."""
        response = self.current.handle_delete_groups(DeleteGroupsRequest((GROUP_ID,)))
        if response.results != (DeletableGroupResult(GROUP_ID, Errors.NONE),):
            raise ActionRefused(f"the administrator is answered {response.results}")

    def check_timers(self) -> None:
        """Raises WrongTimers unless both coordinators wait for exactly what they have to."""
        check_timers(self.current.timers(), self.group())
        if self._other is not None:
            check_timers(self._other.timers(), None)

    def check_former_group(self) -> None:
        """A group that no coordinator has any longer is dead: so finds it who still holds it."""
        last, self._last_seen = self._last_seen, self.group()
        if last is not None and last is not self._last_seen and not last.is_in(DEAD):
            raise ActionRefused(f"a group that is gone is still {last.state.value}")

    def fire(self, kind: str, member_id: str | None = None) -> None:
        """Let the timer of this kind, of this member if given, expire now."""
        for operation in self.current.timers():
            if operation.kind == kind and operation.member_id == member_id:
                self.current.fire(operation)
                return
        whose = f" of {member_id}" if member_id else ""
        raise ActionRefused(f"the coordinator has no {kind} timer{whose}")

    def join_timer(self) -> GroupOperation | None:
        """What ends the join phase, if one is under way."""
        for operation in self.current.timers():
            if operation.kind in ("join", "initial join"):
                return operation
        return None


def remaining_delays(operation: GroupOperation | None) -> int:
    """How often the initial delay may still be prolonged."""
    if isinstance(operation, InitialDelayedJoin):
        return -(-operation.remaining_ms // INITIAL_DELAY_MS)
    return 0
