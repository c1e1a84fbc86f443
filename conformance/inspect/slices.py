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
from conformance.inspect.history import Key, MetadataHistory
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
    controller: MetadataHistory
    """The whole history for whoever judges groups; else that of the keys."""


@dataclass(slots=True)
class _PartGroup:
    """Neighbouring parts while slices grow."""

    parts: list[int] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)

    @property
    def weight(self) -> int:
        """Partitions cost by their number, batches by that of parts, whose bytes are bounded."""
        return len(self.keys) + _PART_WEIGHT * len(self.parts)


def slices(evidence: Evidence, controller: MetadataHistory) -> list[Slice]:
    """The evidence in slices, in the order of partitions; one at least."""
    groups = _joined(_groups(evidence))
    for key, number in _without_files(sorted(controller.partitions), groups):
        groups[number].keys.add(key)
    return [
        Slice(
            number,
            tuple(group.parts),
            tuple(sorted(key for key in group.keys if _wanted(evidence, key))),
            controller if _has_groups(evidence, group) else _history(controller, group.keys),
        )
        for number, group in enumerate(groups)
    ]


def _groups(evidence: Evidence) -> list[_PartGroup]:
    """Parts that share a partition are together."""
    groups: list[_PartGroup] = []
    last: set[Key] = set()
    for part, keys in _parts(evidence):
        if not groups or (keys and last.isdisjoint(keys)):
            groups.append(_PartGroup())
        groups[-1].parts.append(part)
        groups[-1].keys |= keys
        last = keys or last
    return groups or [_PartGroup()]


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


def _joined(groups: Sequence[_PartGroup]) -> list[_PartGroup]:
    """Neighbours together until they are worth a task."""
    enough = max(_WEIGHT, sum(group.weight for group in groups) // _SLICES)
    part_groups: list[_PartGroup] = []
    for group in groups:
        if part_groups and part_groups[-1].weight + group.weight <= enough:
            part_groups[-1].parts += group.parts
            part_groups[-1].keys |= group.keys
        else:
            part_groups.append(_PartGroup(list(group.parts), set(group.keys)))
    return part_groups


def _without_files(known: Sequence[Key], groups: Sequence[_PartGroup]) -> Iterator[tuple[Key, int]]:
    """Partitions that only the controller knows, each to the slice of its neighbours."""
    members = set[Key]().union(*(group.keys for group in groups))
    firsts = [min(group.keys, default=("", -1)) for group in groups]
    for key in known:
        if key not in members:
            yield key, max(bisect_left(firsts, key) - 1, 0)


def _wanted(evidence: Evidence, key: Key) -> bool:
    """Whether the filters take a partition: the files of others were listed, and not read."""
    filters = evidence.manifest.get("filters", {})
    topics = frozenset[str](filters.get("topics") or ())
    partitions = frozenset[int](filters.get("partitions") or ())
    return Filters(topics, partitions).takes(*key)


def _has_groups(evidence: Evidence, group: _PartGroup) -> bool:
    return bool(evidence.within(group.parts).dataset("group_records").count_rows())


def _history(controller: MetadataHistory, keys: set[Key]) -> MetadataHistory:
    """What the judgement of these partitions needs of the history."""
    return replace(
        controller,
        partitions={key: controller.partitions[key] for key in keys & controller.partitions.keys()},
        snapshots={key: controller.snapshots[key] for key in keys & controller.snapshots.keys()},
        counts={},
    )
