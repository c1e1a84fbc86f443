"""The records of consumer groups in Kafka's binary layout: types 3 to 8 and 16.

Source: GroupCoordinatorRecordHelpers, GroupCoordinatorRecordSerde and the schemas of
ConsumerGroup*Key and ConsumerGroup*Value. A value is flexible (KIP-482): lengths are unsigned
varints of the length plus one, and each structure ends with its tagged fields.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby

from ...errors import CorruptRecordException
from ...types import TopicIdPartition
from ..coordinator_shard import CoordinatorRecord
from .member import AssignmentEpochs, ConsumerGroupMember, MemberState, Partitions
from .regular_expressions import ResolvedRegularExpression

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_BYTE = struct.Struct(">b")
_UUID_BYTES = 16
_VERSION = _SHORT.pack(0)
_ASSIGNMENT_EPOCHS_TAG = 0
"""Of AssignmentEpochs (4.3), AssignmentTimestamp (4.3) and MetadataHash (4.1) alike."""


class RecordType(IntEnum):
    """CoordinatorRecordType: the version of a key."""

    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16


_OF_TWO_NAMES = frozenset(
    {
        RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    }
)


@dataclass(frozen=True, slots=True)
class ConsumerGroupKey:
    """The key of a record; `member_id` is empty for what is the whole group's, and the regular
    expression in the record of one."""

    type: RecordType
    group_id: str
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataValue:
    """The group's epoch, and a hash of the topics that it subscribes to."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class TargetAssignmentMetadataValue:
    """The target's epoch, and when it was computed in ms (0: of an empty group)."""

    assignment_epoch: int
    assignment_timestamp: int = 0


# ---- primitives ----------------------------------------------------------------------------------


class _FlexibleWriter:
    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray(_VERSION)

    def fixed(self, form: struct.Struct, value: int) -> None:
        self.data += form.pack(value)

    def unsigned(self, value: int) -> None:
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def string(self, value: str | None) -> None:
        encoded = b"" if value is None else value.encode()
        self.unsigned(0 if value is None else len(encoded) + 1)
        self.data += encoded

    def integers(self, values: list[int]) -> None:
        self.unsigned(len(values) + 1)
        self.data += struct.pack(f">{len(values)}i", *values)

    def tags(self, tagged: bytes = b"") -> None:
        """The tagged fields: none, or the one of tag 0."""
        self.unsigned(1 if tagged else 0)
        if tagged:
            self.unsigned(_ASSIGNMENT_EPOCHS_TAG)
            self.unsigned(len(tagged))
            self.data += tagged


class _FlexibleReader:
    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        version = self.fixed(_SHORT)
        if version:
            raise CorruptRecordException(f"unknown version {version} of a group record's value")

    def fixed(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self._data, self._position)
        self._position += form.size
        return int(value)

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte <= 0x7F:
                return value
            shift += 7

    def take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise struct.error("the record ends within a field")
        content = self._data[self._position : end]
        self._position = end
        return content

    def nullable_string(self) -> str | None:
        length = self.unsigned()
        return self.take(length - 1).decode() if length else None

    def string(self) -> str:
        return self.nullable_string() or ""

    def integers(self) -> list[int]:
        count = self.unsigned() - 1
        return list(struct.unpack(f">{count}i", self.take(4 * count)))

    def tags(self) -> _FlexibleReader | None:
        """A reader of the field of tag 0, if it is there; others are skipped."""
        known = None
        for _ in range(self.unsigned()):
            tag, size = self.unsigned(), self.unsigned()
            content = self.take(size)
            if tag == _ASSIGNMENT_EPOCHS_TAG:
                known = _FlexibleReader(_VERSION + content)
        return known


def _key(type: RecordType, group_id: str, member_id: str = "") -> bytes:
    names = (group_id, member_id) if type in _OF_TWO_NAMES else (group_id,)
    encoded = (name.encode() for name in names)
    return _SHORT.pack(type) + b"".join(_SHORT.pack(len(name)) + name for name in encoded)


# ---- making records ------------------------------------------------------------------------------


def new_consumer_group_epoch_record(
    group_id: str, epoch: int, metadata_hash: int
) -> CoordinatorRecord:
    """The group is in a new epoch."""
    writer = _FlexibleWriter()
    writer.fixed(_INT, epoch)
    writer.tags(_LONG.pack(metadata_hash) if metadata_hash else b"")
    return CoordinatorRecord(_key(RecordType.CONSUMER_GROUP_METADATA, group_id), bytes(writer.data))


def new_target_assignment_metadata_record(
    group_id: str, epoch: int, timestamp_ms: int
) -> CoordinatorRecord:
    """The target was computed for an epoch."""
    writer = _FlexibleWriter()
    writer.fixed(_INT, epoch)
    writer.tags(_LONG.pack(timestamp_ms) if timestamp_ms else b"")
    key = _key(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, group_id)
    return CoordinatorRecord(key, bytes(writer.data))


def new_member_subscription_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Who the member is and what it reads."""
    writer = _FlexibleWriter()
    for text in (member.instance_id, member.rack_id, member.client_id, member.client_host):
        writer.string(text)
    writer.unsigned(len(member.subscribed_topic_names) + 1)
    for name in sorted(member.subscribed_topic_names):
        writer.string(name)
    writer.string(member.subscribed_topic_regex or None)
    writer.fixed(_INT, member.rebalance_timeout_ms)
    writer.string(member.server_assignor_name)
    writer.tags()
    key = _key(RecordType.CONSUMER_GROUP_MEMBER_METADATA, group_id, member.member_id)
    return CoordinatorRecord(key, bytes(writer.data))


def new_target_assignment_record(
    group_id: str, member_id: str, target: Partitions
) -> CoordinatorRecord:
    """What the member is to have in the end."""
    writer = _FlexibleWriter()
    _write_partitions(writer, dict.fromkeys(target, 0), with_epochs=False)
    writer.tags()
    key = _key(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, group_id, member_id)
    return CoordinatorRecord(key, bytes(writer.data))


def new_current_assignment_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """What the member has now, and what it is to revoke."""
    writer = _FlexibleWriter()
    writer.fixed(_INT, member.member_epoch)
    writer.fixed(_INT, member.previous_member_epoch)
    writer.fixed(_BYTE, member.state)
    _write_partitions(writer, member.assigned_partitions, with_epochs=True)
    _write_partitions(writer, member.partitions_pending_revocation, with_epochs=True)
    writer.tags()
    key = _key(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, group_id, member.member_id)
    return CoordinatorRecord(key, bytes(writer.data))


def _write_partitions(
    writer: _FlexibleWriter, partitions: AssignmentEpochs, *, with_epochs: bool
) -> None:
    topics = groupby(sorted(partitions), lambda partition: partition.topic_id)
    by_topic = [(topic_id, list(of_topic)) for topic_id, of_topic in topics]
    writer.unsigned(len(by_topic) + 1)
    for topic_id, of_topic in by_topic:
        writer.data += base64.urlsafe_b64decode(topic_id + "==")
        writer.integers([partition.partition for partition in of_topic])
        epochs = _FlexibleWriter()
        epochs.integers([partitions[partition] for partition in of_topic])
        writer.tags(bytes(epochs.data[_SHORT.size :]) if with_epochs else b"")


def new_regular_expression_record(
    group_id: str, regex: str, resolved: ResolvedRegularExpression
) -> CoordinatorRecord:
    """Which topics the regular expression matched."""
    writer = _FlexibleWriter()
    writer.unsigned(len(resolved.topics) + 1)
    for name in sorted(resolved.topics):
        writer.string(name)
    writer.fixed(_LONG, resolved.version)
    writer.fixed(_LONG, resolved.timestamp)
    writer.tags()
    key = _key(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, group_id, regex)
    return CoordinatorRecord(key, bytes(writer.data))


def tombstone_of_regular_expression(group_id: str, regex: str) -> CoordinatorRecord:
    """Nobody subscribes to the regular expression any more."""
    return CoordinatorRecord(
        _key(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, group_id, regex), None
    )


def tombstones_of_member(group_id: str, member_id: str) -> tuple[CoordinatorRecord, ...]:
    """In the only order that loads: the member itself goes last."""
    return tuple(
        CoordinatorRecord(_key(type, group_id, member_id), None)
        for type in (
            RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
            RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        )
    )


def tombstones_of_group(group_id: str) -> tuple[CoordinatorRecord, ...]:
    """Of a group without members: the group itself goes last."""
    return tuple(
        CoordinatorRecord(_key(type, group_id), None)
        for type in (
            RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
            # Up to 4.0 a group had a record of its topics.
            RecordType.CONSUMER_GROUP_PARTITION_METADATA,
            RecordType.CONSUMER_GROUP_METADATA,
        )
    )


# ---- reading records -----------------------------------------------------------------------------


def read_key(data: bytes) -> ConsumerGroupKey | None:
    """The key of a consumer group's record; None for one of another kind.

    Raises CorruptRecordException.
    """
    try:
        (version,) = _SHORT.unpack_from(data)
        if version not in _TYPES:
            return None
        names, position = [], _SHORT.size
        while position < len(data):
            (length,) = _SHORT.unpack_from(data, position)
            position += _SHORT.size
            names.append(data[position : position + length].decode())
            position += length
        return ConsumerGroupKey(RecordType(version), *names)
    except (struct.error, UnicodeDecodeError, TypeError) as error:
        raise CorruptRecordException(f"key of a group record: {error}") from error


_TYPES = frozenset(map(int, RecordType))


def read_value(key: ConsumerGroupKey, data: bytes) -> object:
    """The value of a record with that key: what `_READERS` says. Raises CorruptRecordException."""
    try:
        return _READERS[key.type](key, _FlexibleReader(data))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise CorruptRecordException(f"value of {key.type.name}: {error}") from error


def _read_group(_key: ConsumerGroupKey, reader: _FlexibleReader) -> ConsumerGroupMetadataValue:
    epoch, tagged = reader.fixed(_INT), reader.tags()
    return ConsumerGroupMetadataValue(epoch, 0 if tagged is None else tagged.fixed(_LONG))


def _read_targets(_key: ConsumerGroupKey, reader: _FlexibleReader) -> TargetAssignmentMetadataValue:
    epoch, tagged = reader.fixed(_INT), reader.tags()
    return TargetAssignmentMetadataValue(epoch, 0 if tagged is None else tagged.fixed(_LONG))


def _read_member(key: ConsumerGroupKey, reader: _FlexibleReader) -> ConsumerGroupMember:
    """A member without an assignment."""
    instance_id, rack_id = reader.nullable_string(), reader.nullable_string()
    client_id, client_host = reader.string(), reader.string()
    names = frozenset(reader.string() for _ in range(reader.unsigned() - 1))
    regex = reader.nullable_string() or ""
    rebalance_timeout_ms = reader.fixed(_INT)
    return ConsumerGroupMember(
        key.member_id,
        instance_id,
        rack_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        names,
        reader.nullable_string(),
        regex,
    )


def _read_regular_expression(
    _key: ConsumerGroupKey, reader: _FlexibleReader
) -> ResolvedRegularExpression:
    topics = frozenset(reader.string() for _ in range(reader.unsigned() - 1))
    return ResolvedRegularExpression(topics, reader.fixed(_LONG), reader.fixed(_LONG))


def _read_target(_key: ConsumerGroupKey, reader: _FlexibleReader) -> Partitions:
    return frozenset(_read_partitions(reader, 0))


def _read_current(key: ConsumerGroupKey, reader: _FlexibleReader) -> ConsumerGroupMember:
    """A member of which nothing but its assignment is known."""
    epoch, previous, state = reader.fixed(_INT), reader.fixed(_INT), reader.fixed(_BYTE)
    return ConsumerGroupMember(
        key.member_id,
        member_epoch=epoch,
        previous_member_epoch=previous,
        state=MemberState.from_value(state),
        assigned_partitions=_read_partitions(reader, max(epoch, 0)),
        partitions_pending_revocation=_read_partitions(reader, max(epoch, 0)),
    )


def _read_partitions(reader: _FlexibleReader, otherwise: int) -> AssignmentEpochs:
    """`otherwise`: the epoch of partitions that an older release has written without one."""
    partitions: dict[TopicIdPartition, int] = {}
    for _ in range(reader.unsigned() - 1):
        topic_id = base64.urlsafe_b64encode(reader.take(_UUID_BYTES)).decode().rstrip("=")
        numbers, tagged = reader.integers(), reader.tags()
        epochs: Iterable[int] = [otherwise] * len(numbers) if tagged is None else tagged.integers()
        for number, epoch in zip(numbers, epochs, strict=True):
            partitions[TopicIdPartition(topic_id, number)] = epoch
    return partitions


_READERS: Mapping[RecordType, Callable[[ConsumerGroupKey, _FlexibleReader], object]] = {
    RecordType.CONSUMER_GROUP_METADATA: _read_group,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: lambda _key, _reader: None,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: _read_member,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: _read_targets,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _read_target,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _read_current,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: _read_regular_expression,
}
