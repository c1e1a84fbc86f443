"""The bytes inside a consumer group's joins and syncs: subscriptions and assignments.

Source: ConsumerProtocol, ConsumerProtocolSubscription.json (versions 0 to 3) and
ConsumerProtocolAssignment.json. Fields of later versions follow those of earlier ones, so an old
reader stops early and a new reader takes defaults.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...errors import KafkaException
from ...types import TopicPartition
from .buffer import ByteBuffer

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3
DEFAULT_GENERATION = -1
_NULL_LENGTH = -1


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants, and what it owns as it joins (KIP-429, KIP-792, KIP-881)."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = DEFAULT_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None
    """Not part of the bytes: the leader takes it from the join answer."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member gets."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def serialize_subscription(
    subscription: Subscription, version: int = SUBSCRIPTION_VERSION
) -> bytes:
    """The metadata of a join. An older version tells less: 0 to 3 as in the schema."""
    parts = [
        struct.pack(">hi", version, len(subscription.topics)),
        *(_string(topic) for topic in sorted(subscription.topics)),
        _bytes(subscription.user_data),
    ]
    if version >= 1:
        parts.append(serialize_partitions(subscription.owned_partitions))
    if version >= 2:
        parts.append(struct.pack(">i", subscription.generation_id))
    if version >= 3:
        parts.append(_string(subscription.rack_id))
    return b"".join(parts)


def deserialize_subscription(buffer: ByteBuffer) -> Subscription:
    """The subscription of any version. Raises KafkaException if the bytes are not one."""
    version = _short(buffer)
    _check_version(version)
    topics = tuple(_read_string(buffer) or "" for _ in range(_int(buffer)))
    user_data = _read_bytes(buffer)
    owned = deserialize_partitions(buffer) if version >= 1 else ()
    generation_id = _int(buffer) if version >= 2 else DEFAULT_GENERATION
    rack_id = _read_string(buffer) if version >= 3 else None
    return Subscription(topics, user_data, owned, generation_id, rack_id)


def serialize_assignment(assignment: Assignment) -> bytes:
    """The assignment of one member, in version 3."""
    return b"".join(
        (
            struct.pack(">h", ASSIGNMENT_VERSION),
            serialize_partitions(assignment.partitions),
            _bytes(assignment.user_data),
        )
    )


def deserialize_assignment(buffer: ByteBuffer) -> Assignment:
    """The assignment of any version. Raises KafkaException if the bytes are not one."""
    _check_version(_short(buffer))
    partitions = deserialize_partitions(buffer)
    return Assignment(partitions, _read_bytes(buffer))


def serialize_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Partitions grouped by topic, topics in order of first appearance."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return struct.pack(">i", len(by_topic)) + b"".join(_topics_of(by_topic))


def deserialize_partitions(buffer: ByteBuffer) -> tuple[TopicPartition, ...]:
    """What `serialize_partitions` wrote."""
    partitions: list[TopicPartition] = []
    for _ in range(_int(buffer)):
        topic = _read_string(buffer) or ""
        partitions.extend(TopicPartition(topic, _int(buffer)) for _ in range(_int(buffer)))
    return tuple(partitions)


def _topics_of(by_topic: Mapping[str, list[int]]) -> Iterable[bytes]:
    for topic, numbers in by_topic.items():
        yield _string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)


def _check_version(version: int) -> None:
    if version < 0:
        raise KafkaException(f"unsupported consumer protocol version {version}")


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", _NULL_LENGTH)
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _bytes(data: bytes | None) -> bytes:
    if data is None:
        return struct.pack(">i", _NULL_LENGTH)
    return struct.pack(">i", len(data)) + data


def _short(buffer: ByteBuffer) -> int:
    return int.from_bytes(buffer.read(2), "big", signed=True)


def _int(buffer: ByteBuffer) -> int:
    return int.from_bytes(buffer.read(4), "big", signed=True)


def _read_string(buffer: ByteBuffer) -> str | None:
    length = _short(buffer)
    return None if length == _NULL_LENGTH else buffer.read(length).decode()


def _read_bytes(buffer: ByteBuffer) -> bytes | None:
    length = _int(buffer)
    return None if length == _NULL_LENGTH else buffer.read(length)
