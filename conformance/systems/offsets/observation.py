"""What a coordinator and its log hold of one position, as the spec's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.offsets.topic import DeferredTopic, OffsetEntry
from conformance.tla import Fn, Value, make_function
from impl.group.group_metadata import DEAD, EMPTY, GroupMetadata
from impl.group.group_offsets import CommitRecordMetadataAndOffset, GroupOffsets
from impl.types import TopicPartition

POSITION = TopicPartition("topic", 0)
"""The partition whose position is committed."""
_NO_PRODUCER = "none"
_NOTHING = Fn({"value": 0, "at": 0})


@dataclass(frozen=True, slots=True)
class OffsetsView:
    """The log, what the group has of it, and the ids of the producers by their names."""

    topic: DeferredTopic
    offsets: GroupOffsets
    producers: Mapping[str, int]
    names_of: Callable[[frozenset[str]], frozenset[str]] = frozenset
    """The names of a group's members by their ids."""


def _log(view: OffsetsView) -> Value:
    names: dict[int | None, str] = {number: name for name, number in view.producers.items()}
    names[None] = _NO_PRODUCER
    return tuple(_record(view, entry, names[entry.producer]) for entry in view.topic.entries)


def _record(view: OffsetsView, entry: OffsetEntry, producer: str) -> Fn:
    record: dict[Value, Value] = {"kind": entry.kind, "value": entry.value, "producer": producer}
    if entry.members is not None:
        record["members"] = view.names_of(entry.members)
    return Fn(record)


def _pending(view: OffsetsView) -> Value:
    waiting = view.offsets.pending_commit_of(POSITION)
    return 0 if waiting is None else waiting.committed_offset


def _pending_in_transactions(view: OffsetsView) -> Value:
    pending = view.offsets.pending_txn_commits_of(POSITION)
    return make_function(
        {name: _commit(pending.get(number)) for name, number in view.producers.items()}
    )


def _commit(commit: CommitRecordMetadataAndOffset | None) -> Fn:
    """A position and its place, from 1; 0 for one whose append is not yet answered."""
    if commit is None:
        return _NOTHING
    at = commit.appended_batch_offset
    position = commit.offset_and_metadata.committed_offset
    return Fn({"value": position, "at": 0 if at is None else at + 1})


OF_OFFSETS: dict[str, Callable[[OffsetsView], Value]] = {
    "log": _log,
    "inFlight": lambda view: frozenset[Value](view.topic.in_flight),
    "committed": lambda view: _commit(view.offsets.commit_of(POSITION)),
    "pending": _pending,
    "pendingTxn": _pending_in_transactions,
}
"""Each variable, and how the objects show it."""

VARIABLES = tuple(OF_OFFSETS)
"""Observed."""


@dataclass(frozen=True, slots=True)
class MemberOffsetsView:
    """A group that has members, the time, and the tasks and appends that wait."""

    offsets: OffsetsView
    group: GroupMetadata | None
    now_ms: int
    retention_ms: int
    ended: Mapping[Value, Value]
    """By producer, what the task says that waits for the end of its transaction."""
    appended_by: Mapping[int, GroupMetadata]
    """Places in the log, and the group that a commit there was appended for."""


def _group(view: MemberOffsetsView) -> Value:
    group = view.group
    if group is None:
        return _NO_GROUP
    waiting = frozenset(id for id, member in group.members.items() if member.is_awaiting_join)
    topics = group.subscribed_topics
    return Fn(
        {
            "state": group.state.value,
            "generation": group.generation_id,
            "type": group.protocol_type or "none",
            "members": view.offsets.names_of(frozenset(group.members)),
            "waiting": view.offsets.names_of(waiting),
            "subscribed": topics is not None and POSITION.topic in topics,
            "old": _has_long_been_empty(view, group),
        }
    )


_NO_GROUP = Fn(
    {
        "state": "Absent",
        "generation": 0,
        "type": "none",
        "members": frozenset[Value](),
        "waiting": frozenset[Value](),
        "subscribed": False,
        "old": False,
    }
)


def _has_long_been_empty(view: MemberOffsetsView, group: GroupMetadata) -> bool:
    since = group.current_state_timestamp
    if group.protocol_type is None or not group.is_in(EMPTY) or since is None:
        return False
    return view.now_ms - since >= view.retention_ms


def _emptied(view: MemberOffsetsView) -> Value:
    emptied = view.offsets.offsets.producers_without_positions()
    return frozenset[Value](p for p, number in view.offsets.producers.items() if number in emptied)


def _aged(view: MemberOffsetsView) -> Value:
    entries = view.offsets.topic.entries
    return sum(view.now_ms - entry.timestamp >= view.retention_ms for entry in entries)


def _orphans(view: MemberOffsetsView) -> Value:
    in_flight = view.offsets.topic.in_flight
    return frozenset[Value](p for p in in_flight if view.appended_by[p].is_in(DEAD))


OF_GROUP: dict[str, Callable[[MemberOffsetsView], Value]] = {
    "group": _group,
    "emptied": _emptied,
    "ended": lambda view: make_function(dict(view.ended)),
    "aged": _aged,
    "orphans": _orphans,
}
"""Each variable of MemberOffsets alone, and how the objects show it."""
