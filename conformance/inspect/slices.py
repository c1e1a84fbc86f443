"""Cuts the evidence between partitions, so that each slice can be judged by itself, anywhere.

A slice is some parts of the reading that no other slice has, and the partitions whose files these
parts hold. Parts hold neighbouring partitions of all brokers, so few partitions lie in two of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc
import pyarrow.dataset as ds

from conformance.inspect.evidence import Evidence, part_number
from conformance.inspect.history import Controller, Key
from conformance.inspect.reading.inputs import Filters
from conformance.inspect.reading.names import place_of

_SLICES = 64
"""At most, about: each of them looks through the checkpoints and the server logs' lines once."""
_WEIGHT = 200
"""Of a slice at least; see `_weight`."""
_PART_WEIGHT = 20
_FOLDER = r"[^/]*$"


@dataclass(frozen=True, slots=True)
class Slice:
    """Partitions that are judged together."""

    number: int
    parts: tuple[int, ...]
    keys: tuple[Key, ...]
    """In order; also those that only the controller knows."""
    controller: Controller
    """The whole history for whoever judges groups; else that of the keys."""


@dataclass(slots=True)
class _Group:
    """Neighbouring parts while slices grow."""

    parts: list[int] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)

    @property
    def weight(self) -> int:
        """Partitions cost by their number, batches by that of parts, whose bytes are bounded."""
        return len(self.keys) + _PART_WEIGHT * len(self.parts)


def slices(evidence: Evidence, controller: Controller) -> list[Slice]:
    """The evidence in slices, in the order of partitions; one at least."""
    groups = _joined(_groups(evidence))
    for key, number in _without_files(sorted(controller.partitions), groups):
        groups[number].keys.add(key)
    return [
        Slice(
            number,
            tuple(one.parts),
            tuple(sorted(key for key in one.keys if _wanted(evidence, key))),
            controller if _has_groups(evidence, one) else _history(controller, one.keys),
        )
        for number, one in enumerate(groups)
    ]


def _groups(evidence: Evidence) -> list[_Group]:
    """Parts that share a partition are together."""
    groups: list[_Group] = []
    last: set[Key] = set()
    for part, keys in _parts(evidence):
        if not groups or (keys and last.isdisjoint(keys)):
            groups.append(_Group())
        groups[-1].parts.append(part)
        groups[-1].keys |= keys
        last = keys or last
    return groups or [_Group()]


def _parts(evidence: Evidence) -> Iterator[tuple[int, set[Key]]]:
    """Each part with the partitions of which it holds segments."""
    segments = ds.field("kind") == "segment"
    for path in evidence.paths("files"):
        part = part_number(path)
        table = evidence.within([part]).table("files", ["path"], segments)
        folders = pc.unique(pc.replace_substring_regex(table["path"], _FOLDER, ""))
        places = (place_of(f"{folder}{0:020}.log") for folder in folders.to_pylist())
        yield (
            part,
            {
                (place.topic, place.partition)
                for place in places
                if place.topic is not None and place.partition is not None and not place.state
            },
        )


def _joined(groups: Sequence[_Group]) -> list[_Group]:
    """Neighbours together until they are worth a task."""
    enough = max(_WEIGHT, sum(group.weight for group in groups) // _SLICES)
    found: list[_Group] = []
    for group in groups:
        if found and found[-1].weight + group.weight <= enough:
            found[-1].parts += group.parts
            found[-1].keys |= group.keys
        else:
            found.append(_Group(list(group.parts), set(group.keys)))
    return found


def _without_files(known: Sequence[Key], groups: Sequence[_Group]) -> Iterator[tuple[Key, int]]:
    """Partitions that only the controller knows, each to the slice of its neighbours."""
    held = set[Key]().union(*(group.keys for group in groups))
    firsts = [min(group.keys, default=("", -1)) for group in groups]
    for key in known:
        if key not in held:
            yield key, max(bisect_left(firsts, key) - 1, 0)


def _wanted(evidence: Evidence, key: Key) -> bool:
    """Whether the filters take a partition: the files of others were listed, and not read."""
    filters = evidence.manifest.get("filters", {})
    topics = frozenset[str](filters.get("topics") or ())
    partitions = frozenset[int](filters.get("partitions") or ())
    return Filters(topics, partitions).takes(*key)


def _has_groups(evidence: Evidence, group: _Group) -> bool:
    return bool(evidence.within(group.parts).dataset("group_records").count_rows())


def _history(controller: Controller, keys: set[Key]) -> Controller:
    """What the judgement of these partitions needs of the history."""
    return replace(
        controller,
        partitions={key: controller.partitions[key] for key in keys & controller.partitions.keys()},
        snapshots={key: controller.snapshots[key] for key in keys & controller.snapshots.keys()},
        counts={},
    )
