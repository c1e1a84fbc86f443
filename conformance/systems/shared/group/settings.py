"""A model's constants as the adapter needs them, and the names of member ids on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from conformance.errors import UserError
from conformance.tla import Fn, Value

GROUP_ID = "consumers of the model"
"""Its hash is negative, and overflows on the way: who computes it wrongly asks another broker."""
TOPIC = "topic"
NO_INSTANCE = "none"
INITIAL_DELAY_MS = 10_000
"""One unit of the spec's initial delays; no time passes but in members."""
SESSION_TIMEOUT_MS = 1_800_000
_JOINS_ONCE, _JOINS_TWICE = 3, 9
"""Versions of JoinGroup: before and after MEMBER_ID_REQUIRED (KIP-394)."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What a model fixes. `member_ids`: per process the spec's ids, in the order of their use."""

    members: tuple[str, ...]
    instances: Mapping[str, str | None]
    member_ids: Mapping[str, tuple[str, ...]]
    partitions: int
    protocols: tuple[str, ...]
    protocols_of: Mapping[str, frozenset[str]]
    maximum_size: int
    initial_delays: int
    joins_twice: bool
    heartbeats: bool
    late_requests: bool

    @property
    def ids(self) -> tuple[str, ...]:
        """All member ids of the spec."""
        return tuple(id for ids in self.member_ids.values() for id in ids)

    @property
    def rebalance_timeout_ms(self) -> int:
        """So long that the initial delay may be prolonged as often as the model says."""
        return INITIAL_DELAY_MS * (self.initial_delays + 1)

    def join_version(self, member: str) -> int:
        """The JoinGroup that a member sends; a static one is never asked to join twice."""
        return _JOINS_TWICE if self.joins_twice or self.instances[member] else _JOINS_ONCE

    def real_ids(self) -> dict[str, str]:
        """The coordinator's member ids, by those of the spec: a prefix, a dash, what is unique.

        The prefix is the client id or the instance id, and here the spec's id is what is unique.
        """
        return {
            id: f"{self.instances[member] or member}-{id}"
            for member, ids in self.member_ids.items()
            for id in ids
        }


def settings_of(constants: Mapping[str, Value]) -> GroupSettings:
    """Read a model's constants. Raises UserError for shapes that no implementation can have."""
    members = tuple(sorted(str(name) for name in _set(constants, "Members")))
    given = [cast("Fn", each) for each in _sequence(constants, "MemberIds")]
    return GroupSettings(
        members=members,
        instances={
            str(member): None if instance == NO_INSTANCE else str(instance)
            for member, instance in cast("Fn", constants["InstanceOf"]).items()
        },
        member_ids={
            member: tuple(str(each["id"]) for each in given if each["member"] == member)
            for member in members
        },
        partitions=len(_set(constants, "Partitions")),
        protocols=tuple(sorted(str(name) for name in _set(constants, "Protocols"))),
        protocols_of={
            str(member): frozenset(str(name) for name in cast("frozenset[Value]", names))
            for member, names in cast("Fn", constants["ProtocolsOf"]).items()
        },
        maximum_size=cast("int", constants["MaxSize"]),
        initial_delays=cast("int", constants["InitialDelays"]),
        joins_twice=constants["RequireKnownMemberId"] is True,
        heartbeats=constants["Heartbeats"] is True,
        late_requests=constants["LateRequests"] is True,
    )


def _set(constants: Mapping[str, Value], name: str) -> frozenset[Value]:
    value = constants[name]
    if not isinstance(value, frozenset):
        raise UserError(f"The constant {name} of the model must be a set.")
    return value


def _sequence(constants: Mapping[str, Value], name: str) -> tuple[Value, ...]:
    value = constants[name]
    if not isinstance(value, tuple):
        raise UserError(f"The constant {name} of the model must be a sequence.")
    return value
