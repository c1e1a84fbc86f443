"""What no state of a group allows: requests that break Kafka's schemas, commits and fetches of what
the client was not given. A breach does not end an example.

Kafka's broker takes a member's subscription and assignment as bytes that only members read
(GroupMetadata.computeSubscribedTopics passes over what it cannot parse), and reads the topics for
nothing but checks of its own. So such a client joins; whoever leads a group with it reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.client.requests import MemberRequest
from conformance.kafka.consumer_protocol import read_assignment, read_subscription
from conformance.kafka.entities import Entity, MalformedFrame

__all__ = ["Breach", "assignment_of", "in_hex", "subscription_of", "unreadable_parts"]

_SHOWN_BYTES = 96
_VERSION_0 = b"\0\0"
_NULL_BYTES = b"\xff\xff\xff\xff"
_ADDED = ("Topics or UserData", "OwnedPartitions", "GenerationId", "RackId")
"""The fields that each version of ConsumerProtocolSubscription.json adds."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a request breaks, and its bytes or what it asks."""

    title: str
    """What the client does; breaches of one title are one finding."""
    rule: str
    evidence: str


def in_hex(data: bytes) -> str:
    """Bytes for a finding: at most 96, in groups of four."""
    shown = data[:_SHOWN_BYTES].hex(" ", -4)
    rest = len(data) - _SHOWN_BYTES
    return f"{shown} ... and {rest} bytes more" if rest > 0 else shown


def subscription_of(data: bytes) -> Entity | None:
    """What can be read of a subscription, where its last fields are missing; None: no topics."""
    as_oldest = _VERSION_0 + data[2:]
    for readable in (data, as_oldest, as_oldest + _NULL_BYTES):
        try:
            return read_subscription(readable)
        except MalformedFrame:
            continue
    return None


def assignment_of(data: bytes) -> tuple[tuple[str, int], ...] | None:
    """What can be read of an assignment; None: no partitions."""
    for readable in (data, data + _NULL_BYTES):
        try:
            return read_assignment(readable)
        except MalformedFrame:
            continue
    return None


def unreadable_parts(request: MemberRequest) -> Iterator[Breach]:
    """The subscriptions and assignments of a request that members of a group cannot read."""
    if request.api == "join_group":
        for protocol in request.body.protocols:
            data = bytes(protocol.metadata)
            if (what := _subscription_fault(data)) is not None:
                yield _breach("subscription", "ConsumerProtocolSubscription", what, data)
    elif request.api == "sync_group":
        for data in request.assignments().values():
            if data and (what := _assignment_fault(data)) is not None:
                yield _breach("assignment", "ConsumerProtocolAssignment", what, data)


def _breach(part: str, schema: str, what: str, data: bytes) -> Breach:
    rule = (
        f"{schema}.json: {what}. The coordinator takes these bytes as they are; a member that "
        f"reads them fails (ConsumerProtocol.deserialize{part.capitalize()}: SchemaException)"
    )
    return Breach(f"sends a {part} that other members cannot read", rule, in_hex(data))


def _subscription_fault(data: bytes) -> str | None:
    try:
        read_subscription(data)
    except MalformedFrame as error:
        version = int.from_bytes(data[:2], "big", signed=True)
        return f"version {version}, {_first_missing(data, version)}: {error}"
    return None


def _first_missing(data: bytes, version: int) -> str:
    """The fields of the oldest version as which the bytes cannot be read."""
    if len(data) < len(_VERSION_0) or version < 0:
        return "Version"
    for number, names in enumerate(_ADDED[: version + 1]):
        try:
            read_subscription(number.to_bytes(2, "big") + data[2:])
        except MalformedFrame:
            return names
    raise AssertionError("bytes that every version reads")


def _assignment_fault(data: bytes) -> str | None:
    try:
        read_assignment(data)
    except MalformedFrame as error:
        readable = assignment_of(data) is not None
        return f"{'UserData' if readable else 'AssignedPartitions'}: {error}"
    return None
