"""Evaluates invariants and action properties on the candidates, as far as these agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.errors import SpecError
from conformance.judge.candidates import Arrival, CandidateSet
from conformance.judge.events import Event
from conformance.judge.patience import Patience
from conformance.judge.search import CutCandidates, Level, Trail
from conformance.judge.verdict import FormulaVerdict
from conformance.tla import ModelValue, Spec, State

__all__ = ["Formulas", "violated"]

_REMEMBERED = 200_000
_UNSEEN = ModelValue("(not seen)")

_TRUE, _FALSE, _UNDEFINED = 1, 2, 4
"""The values that a formula has in the candidates, as bits."""

Truths = tuple[int, ...]
"""The bits of each formula, in their order."""


@dataclass(slots=True)
class _Tally:
    """One formula while the levels are gone through."""

    judged: int = 0
    violated_at: int | None = None
    undecided_at: int | None = None
    undefined_at: int | None = None

    def add(self, event: int, truths: int) -> None:
        if truths & _UNDEFINED:
            self.undefined_at = event if self.undefined_at is None else self.undefined_at
        elif truths:
            self.judged += 1
            if truths == _FALSE and self.violated_at is None:
                self.violated_at = event
            elif truths == _TRUE | _FALSE and self.undecided_at is None:
                self.undecided_at = event


@dataclass(slots=True)
class Formulas:
    """A spec's formulas, each asked once for what it reads of a state.

    `patience` bounds each evaluation; what it ends has no value.
    """

    spec: Spec
    invariants: Sequence[str]
    properties: Sequence[str]
    patience: Patience
    _known: dict[tuple[object, ...], bool | str] = field(default_factory=dict)
    _reads: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _of_sets: dict[CandidateSet, Truths] = field(default_factory=dict)
    _of_arrivals: dict[Arrival, Truths] = field(default_factory=dict)
    _usual: set[Arrival] = field(default_factory=set)
    """After which all formulas are true, and on the steps to there."""

    def __post_init__(self) -> None:
        """Which variables each formula reads: candidates differ in few."""
        for name in (*self.invariants, *self.properties):
            self._reads[name] = self.spec.reads(name)

    def judge(self, trail: Trail) -> tuple[FormulaVerdict, ...]:
        """On the candidates after each event, and on each step by which the event led there."""
        tallies = [_Tally() for _ in (*self.invariants, *self.properties)]
        if not tallies:
            return ()
        plain = 0
        unclear: dict[int, Level] = {}
        usual = (_TRUE,) * len(tallies)
        arrivals = trail.arrivals()
        for done in range(len(trail)):
            arrival = arrivals[done - 1] if arrivals and done else None
            if arrival in self._usual:
                plain += 1
                continue
            level = trail.level(done)
            truths = self._of_level(level)
            if truths == usual:
                plain += 1
                if arrival is not None:
                    _bound(self._usual)
                    self._usual.add(arrival)
                continue
            for tally, bits in zip(tallies, truths, strict=True):
                tally.add(done, bits)
                if tally.undefined_at == done:
                    unclear[done] = level
        for tally in tallies:
            tally.judged += plain
        return tuple(self._verdicts(tallies, unclear))

    def _verdicts(
        self, tallies: Iterable[_Tally], levels: Mapping[int, Level]
    ) -> Iterator[FormulaVerdict]:
        names = (*self.invariants, *self.properties)
        for name, t in zip(names, tallies, strict=True):
            why = "" if t.undefined_at is None else self._reason(name, levels[t.undefined_at])
            yield FormulaVerdict(name, t.judged, t.violated_at, t.undecided_at, why)

    def _reason(self, name: str, level: Level) -> str:
        """Why a formula has no value in the first state, or step, of a level where it has none."""
        formula = self._compiled(name)
        for reached in level.values():
            for states in self._asked(name, reached):
                known = self._ask(name, formula, states)
                if isinstance(known, str):
                    return known
        return ""

    def _asked(self, name: str, reached: CutCandidates) -> Iterator[tuple[State, ...]]:
        if name in self.invariants:
            yield from ((state,) for state in reached.candidates.states)
            return
        for way in reached.ways:
            yield from _steps(way.arrival, reached.candidates)

    def _compiled(self, name: str) -> Callable[..., bool]:
        if name in self.invariants:
            return self.spec.state_formula(name)
        return self.spec.action_formula(name)

    def judge_seen(self, events: Sequence[Event]) -> tuple[FormulaVerdict, ...]:
        """The invariants on each event that shows all the variables that they read."""
        tallies = {name: _Tally() for name in self.invariants}
        reasons: dict[str, str] = {}
        for number, event in enumerate(events):
            seen = {p.place.variable: p.value for p in event.after if p.place.is_whole}
            state = tuple(seen.get(name, _UNSEEN) for name in self.spec.variables)
            for name, tally in tallies.items():
                if any(state[index] is _UNSEEN for index in self._reads[name]):
                    continue
                truth = self._truth(self.spec.state_formula(name), (state,))
                if isinstance(truth, str):
                    reasons.setdefault(name, truth)
                tally.add(number, _bits(truth))
        return tuple(
            FormulaVerdict(n, t.judged, t.violated_at, t.undecided_at, reasons.get(n, ""))
            for n, t in tallies.items()
        )

    # --- what is asked once -----------------------------------------------------------------------

    def _of_level(self, level: Level) -> Truths:
        result: list[Truths] = []
        for reached in level.values():
            truths = self._of_set(reached.candidates)
            for way in reached.ways:
                result.append(truths + self._of_arrival(way.arrival, reached.candidates))
            if not reached.ways:
                result.append(truths + (0,) * len(self.properties))
        return result[0] if len(result) == 1 else tuple(map(_merged, zip(*result, strict=True)))

    def _of_set(self, candidates: CandidateSet) -> Truths:
        entry = self._of_sets.get(candidates)
        if entry is None:
            _bound(self._of_sets)
            entry = tuple(self._of_states(name, candidates.states) for name in self.invariants)
            self._of_sets[candidates] = entry
        return entry

    def _of_states(self, name: str, states: Iterable[State]) -> int:
        formula = self.spec.state_formula(name)
        return _merged(_bits(self._ask(name, formula, (state,))) for state in states)

    def _of_arrival(self, arrival: Arrival, kept: CandidateSet) -> Truths:
        """Of all steps that the event may have been; `kept`: the states after it to be counted."""
        if not self.properties:
            return ()
        if kept is not arrival.candidates:
            return tuple(self._of_steps(name, arrival, kept) for name in self.properties)
        entry = self._of_arrivals.get(arrival)
        if entry is None:
            _bound(self._of_arrivals)
            entry = tuple(self._of_steps(name, arrival, kept) for name in self.properties)
            self._of_arrivals[arrival] = entry
        return entry

    def _of_steps(self, name: str, arrival: Arrival, kept: CandidateSet) -> int:
        formula = self.spec.action_formula(name)
        return _merged(_bits(self._ask(name, formula, step)) for step in _steps(arrival, kept))

    def _ask(
        self, name: str, formula: Callable[..., bool], states: tuple[State, ...]
    ) -> bool | str:
        read = self._reads[name]
        key = (name, *(tuple([state[index] for index in read]) for state in states))
        known = self._known.get(key)
        if known is None:
            _bound(self._known)
            known = self._known[key] = self._truth(formula, states)
        return known

    def _truth(self, formula: Callable[..., bool], states: tuple[State, ...]) -> bool | str:
        try:
            with self.patience:
                return formula(*states)
        except SpecError as error:
            return str(error)


def _steps(arrival: Arrival, kept: CandidateSet) -> Iterator[tuple[State, State]]:
    """All that the event may have been, as far as it leads to states that are kept."""
    for after in kept.members:
        if after in arrival.origins and arrival.origins[after].action is not None:
            for before in arrival.sources[after]:
                yield before.state, after.state


def _bits(truth: bool | str) -> int:
    if isinstance(truth, str):
        return _UNDEFINED
    return _TRUE if truth else _FALSE


def _merged(truths: Iterable[int]) -> int:
    result = 0
    for bits in truths:
        result |= bits
    return result


def _bound(table: dict[Any, Any] | set[Any]) -> None:
    if len(table) >= _REMEMBERED:
        table.clear()


def violated(formulas: Sequence[FormulaVerdict]) -> Mapping[str, int]:
    """The formulas that are false in all candidates, with the first event after which they are."""
    return {
        formula.name: formula.violated_at for formula in formulas if formula.violated_at is not None
    }
