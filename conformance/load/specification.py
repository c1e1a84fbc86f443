"""The specification as a judge: a topic's replay of a record, compiled, for one release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from conformance.kafka.jars import release_of
from conformance.load.compactions import LoadSearch
from conformance.load.topics import StateTopic
from conformance.load.units import UnitRecords
from conformance.modelcheck.specifications import Specification
from conformance.tla import Fn, Value
from conformance.toml import decode

_MANY = 1_000_000
"""Steps of loads that are kept."""
_TABLE = Path(__file__).parent / "rules.toml"


class _LoadRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Since when Kafka loads by a rule: the first release of each branch that has it."""

    topic: str
    since: list[str]
    jira: str = ""


def rules_of(topic: StateTopic, release: str) -> dict[str, Value]:
    """The constants of a topic's specification for a release."""
    rules = decode(_TABLE.read_bytes(), dict[str, _LoadRule])
    return {
        name: _has(release_of(release), rule.since)
        for name, rule in rules.items()
        if rule.topic == topic.name
    }


def _has(release: tuple[int, int, int], since: list[str]) -> bool:
    """Whether a release is at or behind the first one of its branch, or of an older branch."""
    firsts = [release_of(first) for first in since]
    own = [first for first in firsts if first[:2] == release[:2]]
    return release >= own[0] if own else release >= max(firsts)


_LOADS: dict[tuple[str, str], SpecifiedLoad] = {}
"""By topic and release: a process goes on with what it has computed for other partitions."""


def specified_load(specification: Specification, topic: StateTopic, release: str) -> SpecifiedLoad:
    """The specification's loads of a topic's logs for a release."""
    key = (topic.name, release)
    if key not in _LOADS or _LOADS[key].is_large:
        _LOADS[key] = SpecifiedLoad(specification, topic, release)
    return _LOADS[key]


class SpecifiedLoad:
    """Loads by the specification. States and records are numbered, each step is computed once."""

    def __init__(self, specification: Specification, topic: StateTopic, release: str) -> None:
        spec = specification.bound(rules_of(topic, release))
        self._replay = spec.operator_function(topic.replay)
        self._states: list[Fn] = []
        self._numbers: dict[Fn, int] = {}
        self._records: dict[Fn, int] = {}
        self._meanings: list[Fn] = []
        self._steps: dict[tuple[int, int], int] = {}
        self._empty = self._number(cast("Fn", spec.value(topic.empty)))
        self._explored: dict[tuple[object, ...], LoadSearch] = {}

    @property
    def is_large(self) -> bool:
        """Whether it keeps so much that a new one is better."""
        return len(self._steps) > _MANY

    def explore(self, unit: UnitRecords) -> LoadSearch:
        """The loads of a unit's records under all compactions; states are numbers."""
        records = [self._record(meaning) for meaning in unit.meanings]
        known = (tuple(records), unit.shape)
        if known not in self._explored:
            self._explored[known] = unit.shape.explore(
                self._empty,
                lambda state, number: self._step(state, records[number]),
                lambda state: bool(self.rule(state)),
            )
        return self._explored[known]

    def load(self, unit: UnitRecords, kept: Sequence[int]) -> tuple[int | None, str, int]:
        """One load, by the numbers of its records: which failed, the rule, the state."""
        state = self._empty
        for number in kept:
            state = self._step(state, self._record(unit.meanings[number]))
            if self.rule(state):
                return number, self.rule(state), state
        return None, "", state

    def rule(self, state: int) -> str:
        """The rule that ended a load; empty if it goes on."""
        return cast("str", self._states[state]["failed"])

    def state(self, number: int) -> Fn:
        """A state as the specification has it."""
        return self._states[number]

    def _step(self, state: int, record: int) -> int:
        step = (state, record)
        if step not in self._steps:
            after = self._replay(self._states[state], self._meanings[record])
            self._steps[step] = self._number(cast("Fn", after))
        return self._steps[step]

    def _number(self, state: Fn) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]

    def _record(self, meaning: Fn) -> int:
        if meaning not in self._records:
            self._records[meaning] = len(self._meanings)
            self._meanings.append(meaning)
        return self._records[meaning]
