"""The group coordinator's shard as the bridge writes it, as values of CoordinatorGroups.tla.

CoordinatedGroup.java says what the arrays are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.conversion import convert
from conformance.systems.shared.shard import EMPTY_LOAD
from conformance.tla import Value, make_function, make_record

_PARTITION = (1, 0)
_OFFSET_KEY = "p"
_INSTANCE = "i"
"""The group.instance.id of all static members."""
_NOBODY = -1
"""The owner's epoch of a partition that nobody has."""
EMPTY: Value = make_record(**EMPTY_LOAD)
"""A group that nobody has heard of (EmptyLoad)."""


class _LoggedEntry(msgspec.Struct, frozen=True, array_like=True):
    """A record; an offset has no part."""

    part: str
    member: str
    value: int
    epoch: int
    holds: bool
    gives: bool
    instance: str


class _DescribedMember(msgspec.Struct, frozen=True, array_like=True):
    name: str
    current: int
    epoch: int
    holds: bool
    gives: bool
    target: int
    instance: str


class _DescribedGroup(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    assignment_epoch: int
    members: tuple[_DescribedMember, ...]
    owner: int
    topics: int
    """What the log says of the topics that the group subscribes to; 0: it has no record of them."""
    holder: str
    """Who has the instance; empty: nobody."""


class _State(msgspec.Struct, frozen=True, array_like=True):
    group: _DescribedGroup | None
    offset: int


def record(sent: Any, write: int) -> Mapping[Value, Value]:
    """Key and value of a record."""
    entry = convert(sent, _LoggedEntry)
    is_offset = not entry.part
    type, key = ("Offset", _OFFSET_KEY) if is_offset else ("Consumer", entry.member)
    return {
        "key": (type, entry.part, key),
        "value": make_record(
            type=type,
            part=entry.part,
            key=key,
            value=entry.value,
            epoch=entry.epoch,
            holds=_partitions(entry.holds),
            gives=_partitions(entry.gives),
            helps=frozenset(),
            instance=entry.instance,
            process="",
            simple=False,
            producer=0,
            at=write if is_offset else 0,
        ),
    }


def memory(sent: Any) -> Value:
    """The state of the group."""
    state = convert(sent, _State)
    fields: dict[str, Value] = {} if state.group is None else _group(state.group)
    if state.offset >= 0:
        offset = make_record(value=state.offset, at=state.offset)
        fields["offsets"] = make_function({_OFFSET_KEY: offset})
    return make_record(**{**EMPTY_LOAD, **fields})


def _group(group: _DescribedGroup) -> dict[str, Value]:
    return {
        "kind": "Consumer",
        "metadata": group.epoch,
        "targets": group.assignment_epoch,
        "members": make_function({member.name: _member(member) for member in group.members}),
        "target": make_function({member.name: member.target for member in group.members}),
        "owners": make_function({} if group.owner == _NOBODY else {_PARTITION: group.owner}),
        "statics": make_function({_INSTANCE: group.holder} if group.holder else {}),
        "attributes": make_function({"": group.topics} if group.topics else {}),
    }


def _member(member: _DescribedMember) -> Value:
    return make_record(
        metadata=1,
        instance=member.instance,
        process="",
        current=member.current,
        epoch=member.epoch,
        holds=_partitions(member.holds),
        gives=_partitions(member.gives),
        helps=frozenset(),
    )


def _partitions(holds: bool) -> frozenset[Value]:
    return frozenset({_PARTITION}) if holds else frozenset()
