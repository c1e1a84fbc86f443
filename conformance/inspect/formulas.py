"""The specification's formulas on what the files show: compiled from spec/, never copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.errors import SpecError
from conformance.events import Reason
from conformance.inspect.abstraction import WINDOW, PartitionMoment, Window, windows
from conformance.modelcheck.specifications import Specification
from conformance.story.why import why_false
from conformance.tla import ModelValue, Spec, State, Value, make_function

_UNSEEN = ModelValue("(not seen)")
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class FalseFormula:
    """A formula that is false."""

    formula: str
    location: str
    reasons: tuple[Reason, ...]
    window: Window


@dataclass(frozen=True, slots=True)
class FormulaTruth:
    """What a formula says of a moment: None, if it has no value there, with the reason."""

    holds: bool | None
    broken: FalseFormula | None = None
    undefined: str = ""


@dataclass(slots=True)
class ReplicationFormulas:
    """spec/Replication.tla for sets of brokers; equal questions are asked once."""

    specification: Specification
    _known: dict[tuple[object, ...], bool | str] = field(default_factory=dict)

    def judge(
        self,
        formulas: Sequence[str],
        moment: PartitionMoment,
        *,
        size: int = WINDOW,
        merged: bool = True,
    ) -> dict[str, FormulaTruth]:
        """The truth of invariants at a moment: false where false in any of its windows."""
        truths = dict.fromkeys(formulas, FormulaTruth(True))
        for window in windows(moment, size=size, merged=merged):
            spec = self._spec(moment, len(window.cuts))
            state = state_of(spec, window.values)
            for formula in formulas:
                if truths[formula].holds:
                    truths[formula] = self._truth(spec, formula, state, window)
        return truths

    def _truth(self, spec: Spec, formula: str, state: State, window: Window) -> FormulaTruth:
        truth = self._ask(spec, formula, spec.state_formula(formula), state)
        if isinstance(truth, str):
            return FormulaTruth(None, undefined=truth)
        return (
            FormulaTruth(True)
            if truth
            else FormulaTruth(False, _broken(spec, formula, state, state, window))
        )

    def step(self, formula: str, before: PartitionMoment, after: PartitionMoment) -> FormulaTruth:
        """The truth of an action property of two moments in a row, of registrations alone."""
        first, second = next(windows(before)), next(windows(after))
        spec = self._spec(before, 1)
        epochs = tuple(sorted({*first.epochs, *second.epochs}))
        states = [
            state_of(spec, {**window.values, "registration": _renumbered(window, epochs)})
            for window in (first, second)
        ]
        truth = self._ask(spec, formula, spec.action_formula(formula), *states)
        if isinstance(truth, str):
            return FormulaTruth(None, undefined=truth)
        if truth:
            return FormulaTruth(True)
        return FormulaTruth(False, _broken(spec, formula, states[0], states[1], second))

    def _ask(
        self, spec: Spec, name: str, formula: Callable[..., bool], *states: State
    ) -> bool | str:
        key = (id(spec), name, *states)
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            try:
                self._known[key] = formula(*states)
            except SpecError as error:
                self._known[key] = str(error)
        return self._known[key]

    def _spec(self, moment: PartitionMoment, offsets: int) -> Spec:
        """The specification for these brokers; offsets in powers of two, so that few are bound."""
        bound = 1 << max(6, (offsets + 1).bit_length())
        brokers = tuple(sorted({*moment.replicas, *moment.registered.isr}))
        return self.specification.bound(_constants(brokers, bound))


def _renumbered(window: Window, epochs: tuple[int, ...]) -> Value:
    """The registration with its leader epoch numbered among the epochs of both moments."""
    registration = window.values["registration"]
    assert isinstance(registration, Mapping)
    number = registration["leaderEpoch"]
    assert isinstance(number, int)
    real = window.epochs[number]
    return make_function({**registration, "leaderEpoch": epochs.index(real)})


def state_of(spec: Spec, values: Mapping[str, Value]) -> State:
    """A state in the order of the spec's variables; what is not given was not seen."""
    return tuple(values.get(name, _UNSEEN) for name in spec.variables)


def _broken(spec: Spec, formula: str, state: State, after: State, window: Window) -> FalseFormula:
    definition = spec.program.operator(formula, "a formula")
    reasons = why_false(spec, formula, state, after)
    return FalseFormula(formula, str(definition.location), reasons, window)


def _constants(brokers: tuple[str, ...], offsets: int) -> dict[str, Value]:
    """Those that are the files': the formulas range over offsets and brokers only."""
    numbers = frozenset(range(offsets))
    return {
        "Brokers": frozenset(brokers),
        "Epochs": numbers,
        "Offsets": numbers,
        "AppendCounts": numbers,
        "PartitionEpochs": numbers,
        "InitialLeader": brokers[0],
    }
