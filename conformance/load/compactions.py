"""A load along every log that the log cleaner may make of some records, and that a reader may meet.

The cleaner works on the records below an end `j`: it drops a record that a later one of its key
below `j` supersedes. In a later pass it drops tombstones too, of batches below some `k`. It puts
cleaned segments in the place of old ones one after the other, so a reader beside it sees an older
log up to some batch, and the cleaned one from there on. So a load reads one of

| up to i                  | i to k                 | k to j       | behind j |
|--------------------------|------------------------|--------------|----------|
| all records              | (none: i = k)          | cleaned once | all      |
| cleaned once             | cleaned, no tombstones | cleaned once | all      |

with i and k at borders of batches, and j at any record: the cleaner's map may be full there. (The
horizon of tombstones is that of their batch.)

Loads that reach the same state go on alike. So the loads are not followed one by one: `_Column` has
the states that any of them may be in before a record, each with one load that reaches it. From one
`j` to the next only what stands behind the first record that is dropped anew is done again.

Source: org.apache.kafka.storage.internals.log.Cleaner (buildOffsetMap, shouldRetainRecord).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal, NamedTuple

Replay = Callable[[int, int], int]
"""The state after a record: from the numbers of a state and of a record to that of a state."""
NEVER = 1 << 62
"""Where a record is superseded that is not."""
SAMPLE = 40
"""Variants of a unit that the classes load besides those that matter."""


class Variant(NamedTuple):
    """A log that a load may read; numbers of records, ends exclusive."""

    kind: Literal["raw", "cleaned", "pruned"]
    """What stands before `start`: all records, those of a log that was cleaned once, or none."""
    start: int
    """From here on the reader sees the newer log."""
    tombstones: int
    """Between `start` and here tombstones are gone."""
    end: int
    """The cleaner's map ends here."""


AS_IT_IS = Variant("raw", 0, 0, 0)


@dataclass(frozen=True, slots=True)
class CompactionShape:
    """What the cleaner and a reader see of the records of one group."""

    superseded: tuple[int, ...]
    """By record: the next one of its key, or NEVER; itself, if its transaction was aborted."""
    tombstones: tuple[bool, ...]
    borders: tuple[bool, ...]
    """By record: whether it is the first of its batch."""
    limit: int
    """The cleaner stays below: the first record of an open transaction."""

    def __len__(self) -> int:
        return len(self.superseded)

    def kept(self, variant: Variant) -> list[int]:
        """The records of a variant."""
        return [number for number in range(len(self)) if self._is_kept(number, variant)]

    def _is_kept(self, number: int, variant: Variant) -> bool:
        kind, start, tombstones, end = variant
        if number >= end or (number < start and kind == "raw"):
            return True
        gone = start <= number < tombstones and self.tombstones[number]
        return not gone and self.superseded[number] >= end

    def batch_of(self, number: int) -> tuple[int, int]:
        """Where the batch of a record begins and ends."""
        first = next(n for n in range(number, -1, -1) if self.borders[n])
        last = (n for n in range(number + 1, len(self)) if self.borders[n])
        return first, next(last, len(self))

    def explore(self, initial: int, replay: Replay, failed: Callable[[int], bool]) -> LoadSearch:
        """Follow a load along all variants; `failed` says which states are the end of a load."""
        result = LoadSearch(straight(len(self), initial, replay))
        walk = _Walk(self, replay, failed, result)
        tails: dict[int, _States] = {}
        before = 0
        for end in self.ends():
            changed = [n for n, at in enumerate(self.superseded[:end]) if before <= at < end]
            walk.clean(end, min([*changed, self.batch_of(before)[0]]))
            tails[end] = walk.merged(end)
            before = end
        walk.finish(tails)
        return result

    def sample(self, random: Random) -> Iterator[Variant]:
        """Some compactions."""
        ends = self.ends()
        borders = [n for n, border in enumerate(self.borders) if border]
        for _ in range(SAMPLE if ends else 0):
            end = random.choice(ends)
            below = [n for n in borders if n < end]
            first, second = sorted(random.choices(below, k=2))
            if random.random() < 0.5:
                yield Variant("raw", first, first, end)
            else:
                yield Variant("cleaned", first, second, end)

    def ends(self) -> list[int]:
        """Where a map may end so that it drops other records than one that ends before."""
        changes = {*self.superseded} | {n for n, gone in enumerate(self.tombstones) if gone}
        return sorted(n + 1 for n in changes if n < min(self.limit, len(self)))


@dataclass(slots=True)
class LoadSearch:
    """What the loads of all variants come to."""

    raw: list[int]
    """The state before each record of the log as it is, and behind the last one."""
    failures: dict[tuple[int, int], Variant] = field(default_factory=dict)
    """By the record that fails and the state then: a variant."""
    final: dict[int, Variant] = field(default_factory=dict)
    """By the state at the end: a variant."""
    variants: int = 0
    """How many were followed."""


_States = dict[int, Variant]


class _Column(NamedTuple):
    """States before a record, by where the load is in the table above."""

    racing: _States
    """Behind all records, in what was cleaned once."""
    once: _States
    """In what was cleaned once, from the beginning on."""
    without: _States
    """Where tombstones are gone."""
    behind: _States
    """Behind those, in what was cleaned once."""


def straight(count: int, initial: int, replay: Replay) -> list[int]:
    """The state before each of so many records, and behind the last one."""
    states = [initial]
    for number in range(count):
        states.append(replay(states[-1], number))
    return states


class _Walk:
    """The columns for the last end, and what was met."""

    def __init__(
        self,
        shape: CompactionShape,
        replay: Replay,
        failed: Callable[[int], bool],
        result: LoadSearch,
    ) -> None:
        self._shape, self._replay, self._failed, self._result = shape, replay, failed, result
        self._columns = [_Column({}, {}, {}, {})]
        borders = [0]
        for border in shape.borders:
            borders.append(borders[-1] + border)
        self._borders = borders

    def clean(self, end: int, first: int) -> None:
        """The columns up to `end`, from the first record on that is treated otherwise now."""
        del self._columns[first + 1 :]
        for number in range(first, end):
            column = self._started(number, end)
            self._columns.append(self._advanced(number, column, end))
        starts = self._borders[end]
        self._result.variants += starts + starts * (starts + 1) // 2

    def _started(self, number: int, end: int) -> _Column:
        """What may begin before a record, if a batch begins there."""
        column = self._columns[number]
        if not self._shape.borders[number]:
            return column
        racing, once, without, behind = (dict(states) for states in column)
        raw = self._result.raw[number]
        if not self._failed(raw):
            racing.setdefault(raw, Variant("raw", number, number, end))
        if number == 0:
            once.setdefault(raw, Variant("cleaned", 0, 0, end))
        for state, variant in without.items():
            behind.setdefault(state, variant._replace(tombstones=number))
        for state, variant in once.items():
            without.setdefault(state, variant._replace(start=number, tombstones=NEVER))
        if self._shape.batch_of(number)[1] > end:
            without = {}  # the last batch is not cleaned as a whole
        return _Column(racing, once, without, behind)

    def _advanced(self, number: int, column: _Column, end: int) -> _Column:
        if self._shape.superseded[number] < end:
            return column
        racing, once, behind = (
            self._mapped(number, states, end)
            for states in (column.racing, column.once, column.behind)
        )
        gone = self._shape.tombstones[number]
        without = column.without if gone else self._mapped(number, column.without, end)
        return _Column(racing, once, without, behind)

    def _mapped(self, number: int, states: _States, end: int) -> _States:
        result: _States = {}
        for state, variant in states.items():
            after = self._replay(state, number)
            if self._failed(after):
                self._result.failures.setdefault((number, after), _ending(variant, end))
            else:
                result.setdefault(after, variant)
        return result

    def merged(self, end: int) -> _States:
        """The states in which loads leave what is cleaned up to here."""
        result: _States = {}
        for states in self._columns[end]:
            for state, variant in states.items():
                result.setdefault(state, _ending(variant, end))
        return result

    def finish(self, tails: dict[int, _States]) -> None:
        """Behind the cleaned part all records are there."""
        states: _States = {}
        for number in range(len(self._shape) + 1):
            for state, variant in tails.get(number, {}).items():
                states.setdefault(state, variant)
            if number < len(self._shape):
                states = self._mapped(number, states, NEVER)
        self._result.final = states


def _ending(variant: Variant, end: int) -> Variant:
    """A variant that was begun for another end drops the same records up to where it is."""
    if end == NEVER:
        return variant
    return variant._replace(end=end, tombstones=min(variant.tombstones, end))
