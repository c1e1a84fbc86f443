"""The shard of the group coordinator, as spec/CoordinatorGroups.tla has it: one group of KIP-848.

| spec/GroupLoad.tla | a record of impl                                                       |
|--------------------|------------------------------------------------------------------------|
| type, part, key    | the type of the key, its member; the group's offset has the key "p"    |
| value              | of a group and a target's metadata the epoch; of a target and a        |
|                    | current assignment 1 or 2; of an offset the offset; of all else 1; 0:  |
|                    | a tombstone                                                            |
| epoch, holds       | of a current assignment                                                |
| at                 | of an offset: the number of its write                                  |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from conformance.systems.shared.shard import EMPTY_LOAD
from conformance.tla import Value, make_function, make_record
from impl.clock import Clock
from impl.coordinator.coordinator_executor import TaskOperation, TaskRunnable
from impl.coordinator.coordinator_shard import CoordinatorResult, CoordinatorShard
from impl.coordinator.coordinator_timer import KeyedTimer, TimeoutOperation
from impl.coordinator.group.assignors import RangeAssignor, UniformAssignor
from impl.coordinator.group.config import ConsumerGroupConfig
from impl.coordinator.group.consumer_group import NO_PARTITION_EPOCH, ConsumerGroup
from impl.coordinator.group.consumer_group_manager import ConsumerGroupManager
from impl.coordinator.group.group_coordinator_shard import GroupCoordinatorShard
from impl.coordinator.group.member import (
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroupMember,
    Partitions,
)
from impl.coordinator.group.messages import ConsumerGroupHeartbeatRequest
from impl.coordinator.group.offset_metadata_manager import OffsetMetadataManager
from impl.coordinator.group.records import (
    ConsumerGroupKey,
    ConsumerGroupMetadataValue,
    RecordType,
    TargetAssignmentMetadataValue,
    read_key,
    read_value,
)
from impl.coordinator.timeline import SnapshotRegistry
from impl.group.group_records import read_offset_commit_value
from impl.group.messages import OffsetCommitRequest, OffsetCommitRequestPartition
from impl.records import Record, RecordBatch
from impl.types import TopicIdPartition, TopicPartition

GROUP, _TOPIC, _TOPIC_ID = "group", "topic", "AAAAAAAAAAEAAAAAAAAAAQ"
_PARTITION = TopicIdPartition(_TOPIC_ID, 0)
_THE_PARTITION = (1, 0)
"""The partition as the specification names it: topic 1, partition 0."""
_OFFSET_KEY = "p"
_INSTANCE = "i"
"""The group.instance.id of all static members."""
_MAX_MESSAGE_BYTES = 1 << 20
"""No batch is ever full."""
_NOBODY, _NOTHING, _EVERYTHING = 0, 1, 2
_UNKNOWN_EPOCH = 1
"""Sent by who is not in the group: any epoch is refused."""
_PARTS: Mapping[RecordType, str] = MappingProxyType(
    {
        RecordType.CONSUMER_GROUP_METADATA: "Group",
        RecordType.CONSUMER_GROUP_PARTITION_METADATA: "Attribute",
        RecordType.CONSUMER_GROUP_MEMBER_METADATA: "Member",
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: "Targets",
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: "Target",
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: "Current",
    }
)


class _OneTopic:
    """The topic that all members read (`TopicsImage`): it has one partition."""

    version = 1

    def topic_id(self, name: str) -> str | None:
        """See `TopicsImage.topic_id`."""
        return _TOPIC_ID if name == _TOPIC else None

    def num_partitions(self, topic_id: str) -> int:
        """See `TopicsImage.num_partitions`."""
        return int(topic_id == _TOPIC_ID)

    def topic_names(self) -> frozenset[str]:
        """See `TopicsImage.topic_names`."""
        return frozenset({_TOPIC})


class _NoTimer:
    """Timers that never run out (`KeyedTimer`): no action is theirs."""

    def schedule(self, _key: str, _delay_ms: int, _operation: TimeoutOperation, /) -> None:
        """Nothing comes of it."""

    def cancel(self, _key: str, /) -> None:
        """There is nothing to cancel."""

    def cancel_all(self) -> None:
        """There is nothing to cancel."""


class _NoExecutor:
    """An executor without tasks (`CoordinatorExecutor`): nobody has a regular expression."""

    def schedule(self, key: str, _task: TaskRunnable, _operation: TaskOperation, /) -> bool:
        """No member of the model gets here."""
        raise AssertionError(f"{key} is not of this model")

    def is_scheduled(self, _key: str, /) -> bool:
        """Never."""
        return False

    def cancel(self, _key: str, /) -> None:
        """There is nothing to cancel."""

    def cancel_all(self) -> None:
        """There is nothing to cancel."""


class CoordinatedGroup:
    """The group in a model; see `ModelShard`."""

    empty: Value = make_record(**EMPTY_LOAD)

    def __init__(self, clock: Clock) -> None:
        self.max_message_bytes = _MAX_MESSAGE_BYTES
        self._clock = clock
        self._config = ConsumerGroupConfig(assignment_interval_ms=0)
        self._operations: Mapping[str, Callable[..., CoordinatorResult]] = MappingProxyType(
            {
                "join": self._join,
                "static join": self._static_join,
                "pause": self._pause,
                "heartbeat": self._heartbeat,
                "leave": self._leave,
                "commit": self._commit,
                "delete": self._delete,
            }
        )

    def build(
        self, registry: SnapshotRegistry, timer: KeyedTimer | None = None
    ) -> CoordinatorShard:
        """See `ModelShard.build`. Without a timer nobody's session is ever over."""
        topics = _OneTopic()
        groups = ConsumerGroupManager(
            registry,
            self._config,
            topics,
            (UniformAssignor(), RangeAssignor()),
            timer or _NoTimer(),
            self._clock,
            _NoExecutor(),
        )
        offsets = OffsetMetadataManager(registry, self._config, groups, topics, self._clock)
        return GroupCoordinatorShard(groups, offsets)

    # ---- operations --------------------------------------------------------------------------

    def operation(self, shard: CoordinatorShard, kind: Value, number: int) -> CoordinatorResult:
        """What a write of a kind does (GroupOperation). Raises what the coordinator answers."""
        assert isinstance(shard, GroupCoordinatorShard), "the model's shard has groups"
        assert isinstance(kind, tuple), "a kind is an operation and a member"
        operation, member = kind
        return self._operations[str(operation)](shard, str(member), number)

    @staticmethod
    def _join(shard: GroupCoordinatorShard, member: str, _number: int) -> CoordinatorResult:
        return shard.groups.consumer_group_heartbeat(_joining(member))

    @staticmethod
    def _static_join(shard: GroupCoordinatorShard, member: str, _number: int) -> CoordinatorResult:
        request = replace(_joining(member), instance_id=_INSTANCE)
        return shard.groups.consumer_group_heartbeat(request)

    @staticmethod
    def _pause(shard: GroupCoordinatorShard, member: str, _number: int) -> CoordinatorResult:
        epoch = LEAVE_GROUP_STATIC_MEMBER_EPOCH
        request = ConsumerGroupHeartbeatRequest(GROUP, member, epoch, instance_id=_INSTANCE)
        return shard.groups.consumer_group_heartbeat(request)

    @staticmethod
    def _epoch(shard: GroupCoordinatorShard, member: str) -> int:
        group = shard.groups.group(GROUP)
        known = None if group is None else group.member(member)
        return _UNKNOWN_EPOCH if known is None else known.member_epoch

    def _heartbeat(
        self, shard: GroupCoordinatorShard, member: str, _number: int
    ) -> CoordinatorResult:
        epoch = self._epoch(shard, member)
        request = ConsumerGroupHeartbeatRequest(GROUP, member, epoch)
        return shard.groups.consumer_group_heartbeat(request)

    @staticmethod
    def _leave(shard: GroupCoordinatorShard, member: str, _number: int) -> CoordinatorResult:
        request = ConsumerGroupHeartbeatRequest(GROUP, member, LEAVE_GROUP_MEMBER_EPOCH)
        return shard.groups.consumer_group_heartbeat(request)

    def _commit(self, shard: GroupCoordinatorShard, member: str, number: int) -> CoordinatorResult:
        part = OffsetCommitRequestPartition(TopicPartition(_TOPIC, 0), number)
        epoch = self._epoch(shard, member)
        return shard.offsets.commit_offset(OffsetCommitRequest(GROUP, (part,), epoch, member))

    @staticmethod
    def _delete(shard: GroupCoordinatorShard, _member: str, _number: int) -> CoordinatorResult:
        return shard.delete_group(GROUP)

    # ---- what is seen ------------------------------------------------------------------------

    def memory(self, shard: CoordinatorShard, offset: int) -> Value:
        """See `ShardView.memory`."""
        assert isinstance(shard, GroupCoordinatorShard), "the model's shard has groups"
        group = shard.groups.group(GROUP, offset)
        of_group = {} if group is None else _group(group, offset)
        stored = shard.offsets.offset(GROUP, TopicPartition(_TOPIC, 0), offset)
        if stored is not None:
            number = stored.committed_offset
            entry = make_record(value=number, at=number)
            of_group["offsets"] = make_function({_OFFSET_KEY: entry})
        return make_record(**{**EMPTY_LOAD, **of_group})

    def record(self, _batch: RecordBatch, record: Record) -> Mapping[Value, Value]:
        """See `ShardView.record`."""
        assert record.key is not None, "the coordinator writes keys"
        key = read_key(record.key)
        if key is None:
            number = 0
            if record.value is not None:
                number = read_offset_commit_value(record.value).committed_offset
            names = ("Offset", "", _OFFSET_KEY)
            return _entry(names, value=number, at=record.timestamp)
        names = ("Consumer", _PARTS[key.type], key.member_id)
        if record.value is None:
            return _entry(names)
        return _entry(names, **_content(key, read_value(key, record.value)))


def _joining(member: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        GROUP,
        member,
        0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=(_TOPIC,),
        topic_partitions=(),
    )


def _group(group: ConsumerGroup, offset: int) -> dict[str, Value]:
    owner = group.current_partition_epoch(_PARTITION, offset)
    return {
        "kind": "Consumer",
        "metadata": group.metadata(offset).epoch,
        "targets": group.target_metadata(offset).assignment_epoch,
        "members": make_function(
            {name: _member(member) for name, member in group.members(offset).items()}
        ),
        "target": make_function(
            {name: _target(target) for name, target in group.target_assignment(offset).items()}
        ),
        "owners": make_function({} if owner == NO_PARTITION_EPOCH else {_THE_PARTITION: owner}),
        "statics": make_function(dict(group.static_members(offset).items())),
    }


def _member(member: ConsumerGroupMember) -> Value:
    return make_record(
        metadata=1,
        instance=member.instance_id or "",
        process="",
        current=_current(member),
        epoch=member.member_epoch,
        holds=_named(frozenset(member.assigned_partitions)),
        gives=_named(frozenset(member.partitions_pending_revocation)),
        helps=frozenset(),
    )


def _current(member: ConsumerGroupMember) -> int:
    """2: its previous epoch is its epoch, too."""
    return 2 if member.previous_member_epoch == member.member_epoch else 1


def _named(partitions: Partitions) -> frozenset[Value]:
    return frozenset(_THE_PARTITION for _ in partitions & {_PARTITION})


def _target(partitions: Partitions) -> int:
    return _EVERYTHING if _PARTITION in partitions else _NOTHING


def _entry(names: tuple[str, str, str], **fields: Value) -> Mapping[Value, Value]:
    record: dict[str, Value] = {
        "value": _NOBODY,
        "epoch": 0,
        "holds": frozenset(),
        "gives": frozenset(),
        "helps": frozenset(),
        "instance": "",
        "process": "",
        "simple": False,
        "producer": 0,
        "at": 0,
    }
    named = dict(zip(("type", "part", "key"), names, strict=True))
    return {"key": names, "value": make_record(**{**record, **named, **fields})}


def _content(key: ConsumerGroupKey, value: object) -> dict[str, Value]:
    match value:
        case ConsumerGroupMetadataValue():
            return {"value": value.epoch}
        case TargetAssignmentMetadataValue():
            return {"value": value.assignment_epoch}
        case frozenset():
            return {"value": _target(value)}
        case ConsumerGroupMember() if key.type is RecordType.CONSUMER_GROUP_MEMBER_METADATA:
            return {"value": 1, "instance": value.instance_id or ""}
        case ConsumerGroupMember():
            holds = _named(frozenset(value.assigned_partitions))
            gives = _named(frozenset(value.partitions_pending_revocation))
            current = _current(value)
            return {"value": current, "epoch": value.member_epoch, "holds": holds, "gives": gives}
    raise AssertionError(f"a record of {key.type.name} is not of this model")
