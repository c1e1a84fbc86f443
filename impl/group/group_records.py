"""The records of the offsets topic: keys and values in Kafka's binary layout.

Source: GroupMetadataManager and the schemas of GroupMetadataKey/Value and OffsetCommitKey/Value.
Batches here carry no producer state, so two record headers stand for it: the producer of a
transactional commit, and the marker that ends a transaction.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ..errors import CorruptRecordException
from ..records import Record
from ..types import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP, TopicPartition
from .group_offsets import OffsetAndMetadata

OFFSET_COMMIT_KEY_VERSION = 1
GROUP_METADATA_KEY_VERSION = 2
HIGHEST_VALUE_VERSION = 3
"""The newest version of both values that is not flexible."""

NO_EXPIRE_TIMESTAMP = -1
PRODUCER_HEADER = "producer.id"
MARKER_HEADER = "transaction.marker"

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as the log holds it; `rebalance_timeout_ms` -1 is for the session time-out."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """A generation as the log holds it; `current_state_timestamp` in ms, -1 if unknown."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """Key of a committed position."""

    group: str
    topic_partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    """Key of a group's metadata."""

    group: str


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of a version that this reader does not know; such records are skipped (KAFKA-14329)."""

    version: int


class _Writer:
    __slots__ = ("data",)

    def __init__(self, version: int) -> None:
        self.data = bytearray(_SHORT.pack(version))

    def int32(self, value: int) -> None:
        self.data += _INT.pack(value)

    def int64(self, value: int) -> None:
        self.data += _LONG.pack(value)

    def string(self, value: str | None) -> None:
        encoded = None if value is None else value.encode()
        self.data += _SHORT.pack(-1 if encoded is None else len(encoded))
        self.data += encoded or b""

    def blob(self, value: bytes) -> None:
        self.data += _INT.pack(len(value))
        self.data += value


class _Reader:
    __slots__ = ("_data", "_position", "version")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.version = self._int16()

    def _int16(self) -> int:
        (value,) = _SHORT.unpack_from(self._data, self._position)
        self._position += _SHORT.size
        return int(value)

    def int32(self) -> int:
        (value,) = _INT.unpack_from(self._data, self._position)
        self._position += _INT.size
        return int(value)

    def int64(self) -> int:
        (value,) = _LONG.unpack_from(self._data, self._position)
        self._position += _LONG.size
        return int(value)

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise struct.error("the record ends within a field")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def nullable_string(self) -> str | None:
        length = self._int16()
        return None if length < 0 else self._take(length).decode()

    def string(self) -> str:
        return self.nullable_string() or ""

    def blob(self) -> bytes:
        length = self.int32()
        return b"" if length < 0 else self._take(length)


def group_metadata_key(group_id: str) -> bytes:
    """Key of a group's metadata."""
    writer = _Writer(GROUP_METADATA_KEY_VERSION)
    writer.string(group_id)
    return bytes(writer.data)


def offset_commit_key(group_id: str, topic_partition: TopicPartition) -> bytes:
    """Key of a committed position."""
    writer = _Writer(OFFSET_COMMIT_KEY_VERSION)
    writer.string(group_id)
    writer.string(topic_partition.topic)
    writer.int32(topic_partition.partition)
    return bytes(writer.data)


def read_message_key(data: bytes) -> OffsetKey | GroupMetadataKey | UnknownKey:
    """Raises `CorruptRecordException` for bytes that are not a key."""
    try:
        reader = _Reader(data)
        if reader.version <= OFFSET_COMMIT_KEY_VERSION:
            group, topic = reader.string(), reader.string()
            return OffsetKey(group, TopicPartition(topic, reader.int32()))
        if reader.version == GROUP_METADATA_KEY_VERSION:
            return GroupMetadataKey(reader.string())
        return UnknownKey(reader.version)
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptRecordException(f"key of a group record: {error}") from error


def group_metadata_value(value: GroupMetadataValue, version: int = HIGHEST_VALUE_VERSION) -> bytes:
    """Encode in one of the versions 0 to 3; older versions lose what they have no room for."""
    writer = _Writer(version)
    writer.string(value.protocol_type)
    writer.int32(value.generation)
    writer.string(value.protocol)
    writer.string(value.leader)
    if version >= 2:
        writer.int64(value.current_state_timestamp)
    writer.int32(len(value.members))
    for member in value.members:
        _write_member(writer, member, version)
    return bytes(writer.data)


def _write_member(writer: _Writer, member: GroupMember, version: int) -> None:
    writer.string(member.member_id)
    if version >= 3:
        writer.string(member.group_instance_id)
    writer.string(member.client_id)
    writer.string(member.client_host)
    if version >= 1:
        writer.int32(member.rebalance_timeout_ms)
    writer.int32(member.session_timeout_ms)
    writer.blob(member.subscription)
    writer.blob(member.assignment)


def read_group_metadata_value(data: bytes) -> GroupMetadataValue:
    """Raises `CorruptRecordException` for bytes that are not a group's metadata."""
    try:
        reader = _Reader(data)
        version = _known(reader)
        return GroupMetadataValue(
            protocol_type=reader.string(),
            generation=reader.int32(),
            protocol=reader.nullable_string(),
            leader=reader.nullable_string(),
            # KAFKA-10401: the timestamp is there from version 2 on, not in version 2 only.
            current_state_timestamp=reader.int64() if version >= 2 else NO_TIMESTAMP,
            members=tuple(_read_member(reader, version) for _ in range(reader.int32())),
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptRecordException(f"metadata of a group: {error}") from error


def _read_member(reader: _Reader, version: int) -> GroupMember:
    return GroupMember(
        member_id=reader.string(),
        group_instance_id=reader.nullable_string() if version >= 3 else None,
        client_id=reader.string(),
        client_host=reader.string(),
        rebalance_timeout_ms=reader.int32() if version >= 1 else -1,
        session_timeout_ms=reader.int32(),
        subscription=reader.blob(),
        assignment=reader.blob(),
    )


def _known(reader: _Reader) -> int:
    if not 0 <= reader.version <= HIGHEST_VALUE_VERSION:
        raise CorruptRecordException(f"unknown version {reader.version} of a group record's value")
    return reader.version


def offset_commit_value(offset: OffsetAndMetadata, version: int = HIGHEST_VALUE_VERSION) -> bytes:
    """Encode in one of the versions 1 to 3; only version 1 has room for an explicit expiry."""
    if offset.expire_timestamp is not None:
        version = 1
    writer = _Writer(version)
    writer.int64(offset.committed_offset)
    if version >= 3:
        writer.int32(offset.leader_epoch)
    writer.string(offset.metadata)
    writer.int64(offset.commit_timestamp)
    if version == 1:
        # KAFKA-7403: version 1 is also written for commits that have no explicit expiry.
        expiry = offset.expire_timestamp
        writer.int64(NO_EXPIRE_TIMESTAMP if expiry is None else expiry)
    return bytes(writer.data)


def read_offset_commit_value(data: bytes) -> OffsetAndMetadata:
    """Raises `CorruptRecordException` for bytes that are not a committed position."""
    try:
        reader = _Reader(data)
        version = _known(reader)
        committed_offset = reader.int64()
        leader_epoch = reader.int32() if version >= 3 else NO_PARTITION_LEADER_EPOCH
        metadata = reader.string()
        commit_timestamp = reader.int64()
        expiry = reader.int64() if version == 1 else NO_EXPIRE_TIMESTAMP
        # KAFKA-8069: -1 stands for "no explicit expiry".
        expire_timestamp = None if expiry == NO_EXPIRE_TIMESTAMP else expiry
        return OffsetAndMetadata(
            committed_offset, leader_epoch, metadata, commit_timestamp, expire_timestamp
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptRecordException(f"committed position: {error}") from error


def producer_headers(producer_id: int) -> tuple[tuple[str, bytes | None], ...]:
    """Headers of a transactional commit."""
    return ((PRODUCER_HEADER, _LONG.pack(producer_id)),)


def transaction_marker(producer_id: int, is_commit: bool, timestamp: int) -> Record:
    """The record that ends a producer's transaction."""
    outcome = b"COMMIT" if is_commit else b"ABORT"
    headers = (*producer_headers(producer_id), (MARKER_HEADER, outcome))
    return Record(None, None, timestamp, headers)


def producer_of(record: Record) -> int | None:
    """The producer of a transactional record, none for a plain one."""
    for name, value in record.headers:
        if name == PRODUCER_HEADER and value is not None:
            return int(_LONG.unpack(value)[0])
    return None


def marker_of(record: Record) -> bool | None:
    """True for a commit marker, False for an abort marker, None for other records."""
    for name, value in record.headers:
        if name == MARKER_HEADER:
            return value == b"COMMIT"
    return None
