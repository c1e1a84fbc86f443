"""The specification as a judge: `GroupReplay` of spec/GroupLoad.tla, compiled, for one release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from conformance.kafka.jars import release_of
from conformance.load.compactions import CompactionSearch, explore
from conformance.load.meaning import GroupRecords
from conformance.modelcheck.specifications import Specification
from conformance.tla import Fn, Value
from conformance.toml import decode

MODEL = "load/log-2m"
"""The model that has the specification; the rules are those of the release."""
_MANY = 1_000_000
"""Steps of loads that are kept."""
_TABLE = Path(__file__).parent / "rules.toml"


class _LoadRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Since when Kafka loads by a rule: the first release of each branch that has it."""

    since: list[str]
    jira: str = ""


def rules_of(release: str) -> dict[str, Value]:
    """The constants of spec/GroupLoad.tla for a release."""
    rules = decode(_TABLE.read_bytes(), dict[str, _LoadRule])
    return {name: _has(release_of(release), rule.since) for name, rule in rules.items()}


def _has(release: tuple[int, int, int], since: list[str]) -> bool:
    """Whether a release is at or behind the first one of its branch, or of an older branch."""
    firsts = [release_of(first) for first in since]
    own = [first for first in firsts if first[:2] == release[:2]]
    return release >= own[0] if own else release >= max(firsts)


_LOADS: dict[str, SpecifiedLoad] = {}
"""By release: a process goes on with what it has computed for other partitions."""


def specified_load(specification: Specification, release: str) -> SpecifiedLoad:
    """The specification's loads for a release."""
    if release not in _LOADS or _LOADS[release].is_large:
        _LOADS[release] = SpecifiedLoad(specification, release)
    return _LOADS[release]


class SpecifiedLoad:
    """Loads by the specification. States and records are numbered, each step is computed once."""

    def __init__(self, specification: Specification, release: str) -> None:
        spec = specification.bound(rules_of(release))
        self._replay = spec.operator_function("GroupReplay")
        self._states: list[Fn] = []
        self._numbers: dict[Fn, int] = {}
        self._records: dict[Fn, int] = {}
        self._meanings: list[Fn] = []
        self._steps: dict[tuple[int, int], int] = {}
        self._empty = self._number(cast("Fn", spec.value("EmptyLoad")))
        self._explored: dict[tuple[object, ...], CompactionSearch] = {}

    @property
    def is_large(self) -> bool:
        """Whether it keeps so much that a new one is better."""
        return len(self._steps) > _MANY

    def explore(self, group: GroupRecords) -> CompactionSearch:
        """The loads of a group's records under all compactions; states are numbers."""
        records = [self._record(meaning) for meaning in group.meanings]
        known = (tuple(records), group.shape)
        if known not in self._explored:
            self._explored[known] = explore(
                group.shape,
                self._empty,
                lambda state, number: self._step(state, records[number]),
                lambda state: bool(self.rule(state)),
            )
        return self._explored[known]

    def load(self, group: GroupRecords, kept: Sequence[int]) -> tuple[int | None, str, int]:
        """One load, by the numbers of its records: which failed, the rule, the state."""
        state = self._empty
        for number in kept:
            state = self._step(state, self._record(group.meanings[number]))
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
