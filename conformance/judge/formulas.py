"""Invariants and action properties on what the candidates agree about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.errors import SpecError
from conformance.judge.events import Event
from conformance.judge.search import Node
from conformance.judge.verdict import FormulaVerdict
from conformance.tla import ModelValue, Spec, State

_REMEMBERED = 200_000
_UNSEEN = ModelValue("(not seen)")


@dataclass(slots=True)
class _Tally:
    """One formula while the levels are gone through."""

    judged: int = 0
    violated_at: int | None = None
    undecided_at: int | None = None
    undefined: str = ""

    def add(self, event: int, truths: Sequence[bool | None]) -> None:
        if None in truths:
            return
        self.judged += 1
        if True not in truths and self.violated_at is None:
            self.violated_at = event
        elif True in truths and False in truths and self.undecided_at is None:
            self.undecided_at = event


@dataclass(slots=True)
class Formulas:
    """A spec's formulas, each asked once for what it reads of a state."""

    spec: Spec
    invariants: Sequence[str]
    properties: Sequence[str] = ()
    _known: dict[tuple[object, ...], bool | str] = field(default_factory=dict)
    _reads: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Which variables each formula reads: candidates differ in few."""
        for name in (*self.invariants, *self.properties):
            self._reads[name] = self.spec.reads(name)

    def judge(self, levels: Sequence[Sequence[Node]]) -> tuple[FormulaVerdict, ...]:
        """On the candidates after each event, and on each step by which the event led there."""
        tallies = {name: _Tally() for name in (*self.invariants, *self.properties)}
        for done, level in enumerate(levels):
            for name in self.invariants:
                formula = self.spec.state_formula(name)
                truths = [self._ask(name, formula, (node.state,), tallies[name]) for node in level]
                tallies[name].add(done, truths)
            for name in self.properties if done else ():
                step = self.spec.action_formula(name)
                pairs = [(before, node.state) for node in level for before in node.sources]
                if pairs:
                    asked = [self._ask(name, step, pair, tallies[name]) for pair in pairs]
                    tallies[name].add(done, asked)
        return tuple(
            FormulaVerdict(n, t.judged, t.violated_at, t.undecided_at, t.undefined)
            for n, t in tallies.items()
        )

    def judge_seen(self, events: Sequence[Event]) -> tuple[FormulaVerdict, ...]:
        """The invariants on each event that shows all the variables that they read."""
        tallies = {name: _Tally() for name in self.invariants}
        for number, event in enumerate(events):
            seen = {p.place.variable: p.value for p in event.after if not p.place.path}
            state = tuple(seen.get(name, _UNSEEN) for name in self.spec.variables)
            for name in self.invariants:
                if all(state[index] is not _UNSEEN for index in self._reads[name]):
                    truth = self._ask(name, self.spec.state_formula(name), (state,), tallies[name])
                    tallies[name].add(number, [truth])
        return tuple(
            FormulaVerdict(n, t.judged, t.violated_at, t.undecided_at, t.undefined)
            for n, t in tallies.items()
        )

    def _ask(
        self, name: str, formula: Callable[..., bool], states: tuple[State, ...], tally: _Tally
    ) -> bool | None:
        read = self._reads[name]
        key = (name, *(tuple([state[index] for index in read]) for state in states))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = _truth(formula, states)
        if isinstance(known, bool):
            return known
        tally.undefined = tally.undefined or known
        return None


def _truth(formula: Callable[..., bool], states: tuple[State, ...]) -> bool | str:
    try:
        return formula(*states)
    except SpecError as error:
        return str(error)


def violated(formulas: Sequence[FormulaVerdict]) -> Mapping[str, int]:
    """The formulas that are false in all candidates, with the first event after which they are."""
    return {one.name: one.violated_at for one in formulas if one.violated_at is not None}
