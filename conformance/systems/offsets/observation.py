"""What a coordinator and its log hold of one position, as the spec's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.offsets.topic import DeferredTopic, OffsetEntry
from conformance.tla import Fn, Value, make_function
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


def _log(view: OffsetsView) -> Value:
    names: dict[int | None, str] = {number: name for name, number in view.producers.items()}
    names[None] = _NO_PRODUCER
    return tuple(_record(entry, names[entry.producer]) for entry in view.topic.entries)


def _record(entry: OffsetEntry, producer: str) -> Fn:
    return Fn({"kind": entry.kind, "value": entry.value, "producer": producer})


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
