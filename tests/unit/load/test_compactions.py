"""A load followed along all compactions at once comes to what single loads come to."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from conformance.load.compactions import (
    AS_IT_IS,
    NEVER,
    CompactionShape,
    LoadSearch,
    Variant,
)


@dataclass(frozen=True)
class Entry:
    """A record of a store: a key and a value, 0 for a tombstone."""

    key: str
    value: int


_FAILED = 10**6


@dataclass(frozen=True)
class Story:
    """Records in batches, and a replay that remembers all, or only what a store has."""

    entries: tuple[Entry, ...]
    borders: tuple[bool, ...]

    def shape(self) -> CompactionShape:
        superseded = [
            next(
                (m for m in range(n + 1, len(self.entries)) if self.entries[m].key == e.key), NEVER
            )
            for n, e in enumerate(self.entries)
        ]
        tombstones = tuple(not entry.value for entry in self.entries)
        return CompactionShape(tuple(superseded), tombstones, self.borders, len(self.entries))


class Machine:
    """States are numbered; a tombstone of `b` fails where `a` has an odd value."""

    def __init__(self, story: Story, *, remembers_all: bool) -> None:
        self.story, self.remembers_all = story, remembers_all
        self.states: list[object] = [()]

    def replay(self, state: int, number: int) -> int:
        before = self.states[state]
        if before == "failed":
            return state
        after = self._after(before, number)
        if after not in self.states:
            self.states.append(after)
        return self.states.index(after)

    def _after(self, before: object, number: int) -> object:
        assert isinstance(before, tuple)
        entry = self.story.entries[number]
        if self.remembers_all:
            return (*before, number)
        store = dict(before)
        if entry.key == "b" and not entry.value and store.get("a", 0) % 2:
            return "failed"
        store[entry.key] = entry.value
        return tuple(sorted((key, value) for key, value in store.items() if value))

    def failed(self, state: int) -> bool:
        return self.states[state] == "failed"

    def load(self, numbers: list[int]) -> tuple[int | None, object]:
        """The record that fails, and the state."""
        state = 0
        for number in numbers:
            state = self.replay(state, number)
            if self.failed(state):
                return number, "failed"
        return None, self.states[state]


def _stories() -> Iterator[Story]:
    chance = random.Random(3)
    for _ in range(60):
        size = chance.randrange(1, 9)
        entries = tuple(Entry(chance.choice("abc"), chance.randrange(4)) for _ in range(size))
        borders = (True, *(chance.random() < 0.6 for _ in range(size - 1)))
        yield Story(entries, borders)


STORIES = tuple(_stories())


def all_variants(shape: CompactionShape) -> Iterator[Variant]:
    """Every row of the table in compactions.py, by brute force."""
    starts = [n for n, border in enumerate(shape.borders) if border]
    for end in range(1, len(shape) + 1):
        whole = end == len(shape) or shape.borders[end]
        borders = [n for n in starts if n < end]
        for start in borders:
            yield Variant("raw", start, start, end)
        for start, stop in itertools.combinations_with_replacement(
            [*borders, *([end] if whole else [])], 2
        ):
            yield Variant("cleaned", start, stop, end)


def explored(story: Story, machine: Machine) -> LoadSearch:
    return story.shape().explore(0, machine.replay, machine.failed)


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_every_log_that_can_be_read_is_followed(story: Story) -> None:
    shape, machine = story.shape(), Machine(story, remembers_all=True)
    result = explored(story, machine)

    logs = {tuple(shape.kept(variant)) for variant in all_variants(shape)}

    followed = {machine.states[state] for state in result.final}
    whole = tuple(range(len(shape)))
    assert followed | {whole} == logs | {whole}


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_ends_and_failures_are_those_of_single_loads(story: Story) -> None:
    shape, machine = story.shape(), Machine(story, remembers_all=False)
    result = explored(story, machine)

    loads = [machine.load(shape.kept(variant)) for variant in all_variants(shape)]
    _, as_it_is = machine.load(shape.kept(AS_IT_IS))

    assert {machine.states[s] for s in result.final} | {as_it_is} == {
        state for failed, state in loads if failed is None
    } | {as_it_is}
    raw = {machine.load(shape.kept(AS_IT_IS))[0]}
    assert {number for number, _ in result.failures} | raw == {
        failed for failed, _ in loads if failed is not None
    } | raw


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_variant_that_is_named_does_what_is_said_of_it(story: Story) -> None:
    shape, machine = story.shape(), Machine(story, remembers_all=False)
    result = explored(story, machine)

    for state, variant in result.final.items():
        assert machine.load(shape.kept(variant)) == (None, machine.states[state])
    for (number, _), variant in result.failures.items():
        assert machine.load(shape.kept(variant))[0] == number
