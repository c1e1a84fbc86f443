"""The bytes inside a consumer group's joins and syncs: subscriptions and assignments, by kio.

Fields of later versions follow those of earlier ones (ConsumerProtocol.java). So the bytes of a
version that kio does not know are read as the newest one that it does, and what follows is passed
over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

from conformance.kafka.entities import Entity, MalformedFrame, body_bytes, body_from

NEWEST_VERSION = 3
_VERSION = struct.Struct(">h")


def subscription_bytes(
    topics: Iterable[str], version: int, owned: Mapping[str, Iterable[int]] | None = None
) -> bytes:
    """The metadata of a join; `owned`: partitions by topic, from version 1 on."""
    module = _module("subscription", version)
    values: dict[str, object] = {"topics": tuple(sorted(topics)), "user_data": None}
    if version >= 1:
        values["owned_partitions"] = _by_topic(module, owned or {})
    return _VERSION.pack(version) + body_bytes(module.ConsumerProtocolSubscription(**values))


def read_subscription(data: bytes) -> Entity:
    """The subscription of any version. Raises MalformedFrame if the bytes are not one."""
    version = _version_of(data)
    return body_from(_module("subscription", version).ConsumerProtocolSubscription, data[2:])


def assignment_bytes(topic: str, partitions: Iterable[int]) -> bytes:
    """A member's assignment of one topic's partitions."""
    return assignment_of({topic: partitions})


def assignment_of(partitions: Mapping[str, Iterable[int]]) -> bytes:
    """A member's assignment, by topic."""
    module = _module("assignment", NEWEST_VERSION)
    body = module.ConsumerProtocolAssignment(
        assigned_partitions=_by_topic(module, partitions), user_data=None
    )
    return _VERSION.pack(NEWEST_VERSION) + body_bytes(body)


def _by_topic(module: Any, partitions: Mapping[str, Iterable[int]]) -> tuple[Entity, ...]:
    """One entry a topic; none of a topic without partitions."""
    numbers = {topic: tuple(sorted(some)) for topic, some in sorted(partitions.items())}
    return tuple(
        module.TopicPartition(topic=topic, partitions=some)
        for topic, some in numbers.items()
        if some
    )


def read_assignment(data: bytes) -> tuple[tuple[str, int], ...]:
    """The (topic, partition)s of an assignment of any version. Raises MalformedFrame."""
    module = _module("assignment", _version_of(data))
    body = body_from(module.ConsumerProtocolAssignment, data[2:])
    return tuple(
        (str(entry.topic), int(number))
        for entry in body.assigned_partitions
        for number in entry.partitions
    )


@lru_cache(maxsize=4096)
def assigned_partitions(assignment: bytes) -> frozenset[int]:
    """The partitions of a serialized assignment; a member left out has no bytes at all."""
    if not assignment:
        return frozenset()
    return frozenset([number for _, number in read_assignment(assignment)])


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise MalformedFrame(f"{len(data)} bytes have no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedFrame(f"unsupported consumer protocol version {version}")
    return min(version, NEWEST_VERSION)


def _module(part: str, version: int) -> Any:
    return import_module(f"kio.schema.consumer_protocol_{part}.v{version}.data")
