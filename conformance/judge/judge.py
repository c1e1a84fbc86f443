"""Judges recordings: from observations to a verdict with its reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as MappingOf
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import msgspec

from conformance.errors import DataError, SpecError
from conformance.judge.candidates import Candidates, Sight
from conformance.judge.events import Event, Recording
from conformance.judge.failure import failure_of
from conformance.judge.formulas import Formulas, violated
from conformance.judge.mapping import Mapping
from conformance.judge.order import Guarantee, Order, order_of, total
from conformance.judge.patience import Patience
from conformance.judge.search import EventSearchResult, Trail, search, survivors
from conformance.judge.start import StartStates, any_state, initial_states
from conformance.judge.steps import BoundSpecSteps
from conformance.judge.translate import translated
from conformance.judge.verdict import FormulaVerdict, Judgement
from conformance.printable import counted
from conformance.tla import ObservedPart, Spec, TooManyInstances, parse_value
from conformance.verdict import Verdict

__all__ = ["Judge"]


@dataclass(frozen=True, slots=True)
class _RecordingCase:
    """A recording, prepared for the search."""

    recording: Recording
    sights: tuple[Sight, ...]
    declared: bool
    """Whether the recording has every step, by the mapping or by the numbers of its steps."""


class Judge:
    """Judges recordings by one bound spec and one mapping; keeps what it compiled.

    `invariants` and `properties` are the formulas to judge. UserError-like mistakes of the
    mapping (an unknown variable, action or formula) raise SpecError.
    """

    def __init__(
        self,
        spec: Spec,
        mapping: Mapping,
        invariants: Sequence[str] = (),
        properties: Sequence[str] = (),
        *,
        invariants_only: bool = False,
    ) -> None:
        self._spec = spec
        self._mapping = mapping
        self._invariants_only = invariants_only
        self._steps = BoundSpecSteps(spec, mapping.silent, mapping.directly)
        self._patience = Patience(mapping.limits.evaluation)
        self._candidates = Candidates(self._steps, mapping.limits, patience=self._patience)
        self._formulas = Formulas(spec, invariants, properties, self._patience)
        self._initial: StartStates | None = None
        self.tell: Callable[[int], None] = lambda _events: None
        """Told how many events of a recording are explained."""
        self._checked: set[Sight] = set()
        self._given = {name: parse_value(text) for name, text in mapping.start.values.items()}
        self._bounds = _bounds(mapping)
        _known_variables(spec, (*mapping.hidden, *self._given))

    def judge(self, recording: Recording, *, brief: bool = False) -> Judgement:
        """The verdict on one recording; `brief`: without its explanation if it passes."""
        if self._candidates.tidy():
            self._checked.clear()
        return self._judge(recording, brief=brief)

    def many(self) -> AbstractContextManager[None]:
        """Around the judging of many recordings: makes each of them cheaper."""
        return self._patience.for_many()

    def _judge(self, recording: Recording, *, brief: bool) -> Judgement:
        if recording.problem:
            return _unjudged(recording, recording.problem)
        try:
            case = self._case(recording)
            compared = _compared(case.sights)
            if self._invariants_only:
                return replace(self._states_alone(case), compared=compared)
            order = self._order(case.recording)
            start = self._start(case.recording.events, order)
        except (DataError, SpecError) as error:
            return _unjudged(recording, str(error))
        if not start.states:
            return self._nowhere(case, start)
        if not compared and not any(sight.actions for sight in case.sights):
            return _unjudged(recording, _NOTHING_SEEN)
        result = search(
            self._candidates, case.sights, order, start.states, self._accepts, self.tell
        )
        return replace(self._told(case, start, result, brief=brief), compared=compared)

    def _accepts(self, trail: Trail) -> bool:
        """Whether one explanation is enough: all formulas have a value on it and are true."""
        return all(verdict.verdict is Verdict.PASS for verdict in self._formulas.judge(trail))

    def _states_alone(self, case: _RecordingCase) -> Judgement:
        """Checks the invariants on the observation of each event, without the steps between."""
        events = case.recording.placed()
        formulas = self._formulas.judge_seen(events)
        false = violated(formulas)
        judged = sum(formula.judged for formula in formulas)
        reason = f"{judged} values of invariants on {counted(len(events), 'event')}, no step judged"
        verdict = Verdict.PASS if judged else Verdict.INCONCLUSIVE
        if false:
            name, done = min(false.items(), key=lambda pair: pair[1])
            reason = f"{name} is false in what event {done} shows ({events[done].source})"
            verdict = Verdict.FAIL
        elif any(formula.undefined for formula in formulas):
            reason = _unclear(next(formula for formula in formulas if formula.undefined))
            verdict = Verdict.INCONCLUSIVE
        return Judgement(
            case.recording.name,
            case.recording.source,
            verdict,
            reason,
            len(events),
            min(false.values(), default=len(events)),
            formulas=formulas,
            decide=() if judged else (_SEE_MORE.format("an invariant"),),
        )

    # --- before the search ----------------------------------------------------------------------

    def _case(self, recording: Recording) -> _RecordingCase:
        """The events in the specification's names; DataError for one that cannot be used."""
        # An expression among the `names` of a mapping may take for ever on a text.
        with self._patience if self._mapping.names else nullcontext():
            read = translated(recording, self._mapping)
        numbers = {event.step for event in read.events}
        if not numbers:
            raise DataError("the trace has no event")
        if numbers != {None}:
            read = _numbered(read)
        sights = self._candidates.sights(read.events)
        if not self._checked.issuperset(sights):
            for event, sight in zip(read.placed(), sights, strict=True):
                if sight not in self._checked:
                    self._check(event, sight)
        return _RecordingCase(read, sights, self._mapping.declared or None not in numbers)

    def _check(self, event: Event, sight: Sight) -> None:
        try:
            _known_variables(self._spec, [p.place.variable for p in (*event.before, *event.after)])
            if event.actions and not self._steps.selection(event.actions).actions:
                raise DataError(
                    f"the spec has no action {event.actions[0]}: it has others called "
                    f"{event.actions[0].name}"
                )
        except TooManyInstances:
            pass  # the search says so, if it comes to it
        except (DataError, SpecError) as error:
            raise DataError(f"{error}\n{event.source}") from None
        self._checked.add(sight)

    def _order(self, recording: Recording) -> Order:
        guarantee = self._mapping.guarantee
        if guarantee is Guarantee.TOTAL:
            return total(len(recording.events))
        return order_of(recording.placed(), guarantee, self._mapping.skew)

    def _start(self, events: Sequence[Event], order: Order) -> StartStates:
        if self._mapping.start.at == "Init":
            self._initial = self._initial or initial_states(self._spec)
            return self._initial
        first = [events[number] for number in order.ready(order.start)]
        return any_state(
            self._spec,
            [_seen_at_first(event) for event in first],
            given=self._given,
            invariants=self._mapping.start.invariants,
            limit=self._mapping.limits.candidates,
        )

    # --- after the search -----------------------------------------------------------------------

    def _nowhere(self, case: _RecordingCase, start: StartStates) -> Judgement:
        """No state of the spec agrees with what was seen first."""
        verdict = Verdict.FAIL if start.exhaustive and case.declared else Verdict.INCONCLUSIVE
        return Judgement(
            case.recording.name,
            case.recording.source,
            verdict,
            "no state to begin in agrees with what was seen first; the recording may begin "
            f"{start.note}",
            len(case.sights),
            0,
            decide=() if start.exhaustive else (_SEE_MORE_AT_START,),
            start=start.note,
        )

    def _told(
        self, case: _RecordingCase, start: StartStates, result: EventSearchResult, *, brief: bool
    ) -> Judgement:
        formulas = self._formulas.judge(result.trail)
        if any(formula.undefined or formula.undecided_at is not None for formula in formulas):
            formulas = self._formulas.judge(survivors(result, self._candidates))
        unclear = [formula for formula in formulas if formula.verdict is Verdict.INCONCLUSIVE]
        violations = violated(formulas)
        passes = result.explained and not unclear and not violations
        actions, silent = result.taken(result.done)
        judgement = Judgement(
            name=case.recording.name,
            source=case.recording.source,
            verdict=Verdict.INCONCLUSIVE if unclear else Verdict.PASS,
            reason=self._explained(result, silent, unclear),
            events=len(case.sights),
            explained=result.done,
            explanation=None if brief and passes else result.explanation(result.done),
            formulas=formulas,
            decide=tuple([_SEE_MORE.format(verdict.name) for verdict in unclear[:1]]),
            actions=actions,
            silent=silent,
            most_candidates=result.most_candidates,
            tried=result.tried,
            start=start.note,
        )
        if violations:
            return self._violating(case, judgement, result, violations)
        return judgement if result.explained else self._failed(case, start, judgement, result)

    def _explained(
        self, result: EventSearchResult, silent: int, unclear: Sequence[FormulaVerdict]
    ) -> str:
        reason = f"a behaviour {self._bounds} explains all {counted(result.done, 'event')}"
        if silent:
            reason += f", with {counted(silent, 'step')} that nobody saw"
        if not result.exhaustive:
            reason += f"; not every other one was looked at: {result.limits[0]}"
        return f"{reason}; but {_unclear(unclear[0])}" if unclear else reason

    def _violating(
        self,
        case: _RecordingCase,
        judgement: Judgement,
        result: EventSearchResult,
        violations: MappingOf[str, int],
    ) -> Judgement:
        name, done = min(violations.items(), key=lambda pair: pair[1])
        exhaustive = result.exhaustive and case.declared
        actions, silent = result.taken(done)
        where = f" {case.recording.placed()[done - 1].source}" if done else ""
        return replace(
            judgement,
            verdict=Verdict.FAIL if exhaustive else Verdict.INCONCLUSIVE,
            reason=(
                f"{name} is false in every state that explains the first "
                f"{counted(done, 'event')}{where}"
            ),
            explanation=result.explanation(done),
            actions=actions,
            silent=silent,
            explained=done,
            decide=() if exhaustive else (*result.limits, _NOTHING_DECLARED),
        )

    def _failed(
        self,
        case: _RecordingCase,
        start: StartStates,
        judgement: Judgement,
        result: EventSearchResult,
    ) -> Judgement:
        failure = failure_of(self._spec, self._steps, case.recording.placed(), result)
        event = f"event {failure.number} ({failure.source}): {failure.event}"
        sure = result.exhaustive and start.exhaustive
        if sure and case.declared:
            return replace(
                judgement,
                verdict=Verdict.FAIL,
                reason=f"no behaviour {self._bounds} explains {event}",
                decide=(),
                failure=failure,
            )
        decide = [*result.limits]
        decide += [_SEE_MORE_AT_START] if not start.exhaustive else []
        decide += _most_open(self._spec, result) if result.limits else []
        decide += [_NOTHING_DECLARED] if not case.declared else []
        return replace(
            judgement,
            verdict=Verdict.INCONCLUSIVE,
            reason=f"no behaviour {self._bounds} was found that explains {event}",
            failure=failure,
            decide=tuple(decide),
        )


_SEE_MORE = "see more of the variables that {} reads"
_SEE_MORE_AT_START = (
    "see more of the first state, or give the values of variables that nobody sees under "
    "[start.values] of the mapping"
)
_NOTHING_DECLARED = (
    "declare what the recording holds: number its events with `step` from 0 if every step of the "
    "system is one, or give a mapping that says which actions happen unseen and where it starts "
    "(docs/mapping.md)"
)


_NOTHING_SEEN = (
    "no event names an action or shows a variable, so nothing was compared with the specification"
)


def _compared(sights: Sequence[Sight]) -> Counter[str]:
    """In how many events each variable is seen."""
    counts: Counter[str] = Counter()
    alike = Counter(map(id, sights))  # events share what they show
    for sight in {id(sight): sight for sight in sights}.values():
        for name in {part.place.variable for part in (*sight.before, *sight.after)}:
            counts[name] += alike[id(sight)]
    return counts


def _unjudged(recording: Recording, reason: str) -> Judgement:
    return Judgement(
        recording.name,
        recording.source,
        Verdict.INCONCLUSIVE,
        reason,
        len(recording.events),
        0,
        decide=("mend what cannot be read, or leave the trace out",),
    )


def _bounds(mapping: Mapping) -> str:
    """Within which bounds the search is exhaustive."""
    steps = mapping.limits.silent
    if not steps or not (mapping.silent or mapping.directly):
        return "without unseen steps"
    each = mapping.limits.each
    most = f"with at most {steps} unseen steps in a row"
    return most if each is None else f"{most}, {each} of each process,"


def _unclear(formula: FormulaVerdict) -> str:
    if formula.undefined:
        return f"{formula.name} has no value: {formula.undefined}"
    return (
        f"{formula.name} is true in some of the states that explain the first "
        f"{formula.undecided_at} events, and false in others"
    )


def _known_variables(spec: Spec, names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in spec.variables]
    if unknown:
        raise SpecError(
            f"the spec has no variable {unknown[0]}: its variables are {', '.join(spec.variables)}"
        )


def _numbered(recording: Recording) -> Recording:
    """With one event for each number; DataError if a number is missing."""
    events = _joined(recording.placed())
    _check_numbers(events)
    return replace(recording, events=events, lines=())


def _joined(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events, with all lines of one step merged: each line may show a part of the step."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if last is None or event.step is None or event.step != last.step:
            result.append(event)
        elif last.actions and event.actions:
            raise DataError(f"step {event.step} has two actions\n{event.source}")
        else:
            result[-1] = msgspec.structs.replace(
                last,
                actions=last.actions or event.actions,
                before=(*last.before, *event.before),
                after=(*last.after, *event.after),
            )
    return tuple(result)


def _check_numbers(events: Sequence[Event]) -> None:
    """`step` counts every step, so a gap in the numbers is a step without an event."""
    for number, event in enumerate(events):
        if event.step != number:
            raise DataError(f"step {number} is missing, step {event.step} came\n{event.source}")
    if events[0].actions:
        raise DataError(f"step 0 is the initial state and has no action\n{events[0].source}")
    for event in events[1:]:
        if event.is_snapshot:
            raise DataError(f"step {event.step} names no action\n{event.source}")


def _seen_at_first(event: Event) -> tuple[ObservedPart, ...]:
    return event.after if event.is_snapshot else event.before


def _most_open(spec: Spec, result: EventSearchResult) -> list[str]:
    """The variable that would tell most of the candidates apart, had it been seen."""
    states = result.states_after(result.done)
    counts = [(len({state[i] for state in states}), name) for i, name in enumerate(spec.variables)]
    values, name = max(counts)
    if values < 2:
        return []
    return [f"see {name} after event {result.done}: the candidates have {values} values of it"]
