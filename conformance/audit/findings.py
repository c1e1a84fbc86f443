"""Turns causes into findings: one per kind of violation, with its shortest example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from conformance.audit.result import STAGE
from conformance.audit.rules import INIT, NEXT, Rulebook
from conformance.events import Difference, Finding
from conformance.story.comparison import differences, variables_of
from conformance.story.key import (
    NOT_ALLOWED,
    NOT_ENABLED,
    WRONG_INITIAL,
    departure_key,
    formula_key,
    step_key,
)
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, State
from conformance.traces.model import PartialState, Trace, TraceEnd, complete, is_complete
from conformance.traces.store import TraceStore

DIVERGED = "step equality"


class SpecView(Protocol):
    """The spec as a function, for the few steps that a report shows."""

    def initial_states(self) -> Sequence[State]:
        """The states that Init allows."""

    def successors(self, state: State, action: Action) -> Sequence[State]:
        """The states that the action leads to; empty where it is not enabled."""

    def explain(self, formula: str, state: State, next_state: State) -> Sequence[str]:
        """Why the formula is false, line by line: an invariant in `next_state`, else the step."""

    def branches(self, counts: Mapping[tuple[str, int], int]) -> Mapping[str, int]:
        """Steps by disjunct, given steps by an action's name and the disjuncts that they took."""


@dataclass(frozen=True, slots=True)
class FailureCause:
    """What decided a number of traces: one distinct visit, or a divergence.

    `step` and `trace_id` are those of the shortest example. `source` is None at step 0.
    """

    traces: int
    trace_id: int
    step: int
    violations: tuple[str, ...]
    action: Action | None
    source: PartialState | None
    target: PartialState
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Makes findings of causes."""

    store: TraceStore
    rules: Rulebook
    spec: SpecView | None
    reproduce: Callable[[int], str]
    place: Callable[[str], str] = str
    name: Callable[[int], str] = str
    """How a trace is called."""

    def findings(self, causes: Sequence[FailureCause]) -> tuple[Finding, ...]:
        """The causes merged by what went wrong (`story.key`); most traces first.

        The example is the shortest; the formulas are those that are false of any.
        """
        merged: dict[str, list[FailureCause]] = {}
        for cause in sorted(causes, key=lambda cause: (cause.step, cause.trace_id)):
            merged.setdefault(self._key(cause), []).append(cause)
        findings = [self._finding(key, alike) for key, alike in merged.items()]
        named = [replace(finding, trace=self.name(int(finding.trace))) for finding in findings]
        return tuple(sorted(named, key=lambda finding: (-finding.count, finding.key)))

    def _key(self, cause: FailureCause) -> str:
        """Formulas are false of many a step that is none of the spec's: then the step is it."""
        result, allowed = self._differences(cause)
        kind = _departed(cause)
        if kind is not None and not result:
            name = cause.action.name if cause.action else ""
            return departure_key(kind, name, cause.detail, ())
        if cause.action is None and cause.violations[0] in (INIT, DIVERGED):
            return step_key((), WRONG_INITIAL, variables_of(result))
        if cause.action is None or not {NEXT, DIVERGED} & {*cause.violations}:
            return formula_key(cause.violations[0])
        if allowed == 0:
            return step_key([cause.action.name], NOT_ENABLED)
        return step_key([cause.action.name], NOT_ALLOWED, variables_of(result))

    def _finding(self, key: str, alike: Sequence[FailureCause]) -> Finding:
        cause = alike[0]
        result, allowed = self._differences(cause)
        name = cause.action.name if cause.action else INIT
        variables = ", ".join(variables_of(result))
        false = dict.fromkeys(formula for cause in alike for formula in cause.violations)
        formulas = [str(cause.action) if name == NEXT else name for name in false]
        return Finding(
            key=key,
            title=self._title(cause, name, legal=bool(allowed) and not result),
            stage=STAGE,
            message=self._message(cause, allowed, variables),
            trace=str(cause.trace_id),
            step=cause.step,
            action=str(cause.action) if cause.action else "",
            formula=", ".join(formulas),
            location=self._location(cause, formulas),
            story=self._story(cause),
            differences=result,
            reproduce=self.reproduce(cause.trace_id),
            count=sum(cause.traces for cause in alike),
        )

    def _title(self, cause: FailureCause, name: str, *, legal: bool) -> str:
        kind = _departed(cause)
        if kind not in (None, BehaviourKind.NOT_ALLOWED):
            return f"{name}: {kind}"
        if legal and DIVERGED in cause.violations:  # a snapshot, say, which is no step of a trace
            return f"nothing explains what was seen after {name}"
        broken = [
            violation for violation in cause.violations if violation not in (DIVERGED, INIT, NEXT)
        ]
        if broken:
            return f"{broken[0]} is violated after {name}"
        return f"{name} led to a state that the spec does not allow"

    def _location(self, cause: FailureCause, formulas: Sequence[str]) -> str:
        place = self.rules.location(formulas[0])
        return self.place(place or self.rules.location(cause.action.name if cause.action else INIT))

    def _story(self, cause: FailureCause) -> tuple[str, ...]:
        """The spec's own account of the first formula that is violated."""
        if self.spec is None or not is_complete(cause.target) or DIVERGED in cause.violations:
            return ()
        target = complete(cause.target)
        source = cause.source
        before = target if source is None or not is_complete(source) else complete(source)
        formula = cause.violations[0]
        if formula == INIT:
            return ()
        text = str(cause.action) if formula == NEXT else formula
        return tuple(self.spec.explain(text, before, target))

    def _message(self, cause: FailureCause, allowed: int | None, variables: str) -> str:
        parts = [f"{_sentence(cause)}."] if cause.detail else []
        if allowed == 0:
            parts.append("The spec does not enable the action in the state before.")
        elif allowed and variables:
            parts.append(
                f"The state that the spec allows differs in {variables}."
                if allowed == 1
                else f"The spec allows {allowed} states; the nearest differs in {variables}."
            )
        where = f"step {cause.step}" if cause.step else "the initial state"
        parts.append(f"Trace {cause.trace_id} shows it first, at {where}.")
        return " ".join(parts)

    def _differences(self, cause: FailureCause) -> tuple[tuple[Difference, ...], int | None]:
        """Against the allowed state that is nearest; how many are allowed (None: not known)."""
        allowed = self._allowed(cause)
        if allowed is None:
            return (), None
        variables = self.rules.variables
        seen = zip(variables, cause.target, strict=True)
        observed = {name: value for name, value in seen if value is not None}
        # Of what is not enabled: what it changed.
        expected = allowed or (cause.source or (None,) * len(variables),)
        return differences(variables, expected, observed), len(allowed)

    def _allowed(self, cause: FailureCause) -> Sequence[State] | None:
        if self.spec is None:
            return None
        if cause.action is None:
            return self.spec.initial_states()
        if cause.source is None or not is_complete(cause.source):
            return None
        return self.spec.successors(complete(cause.source), cause.action)


def _sentence(cause: FailureCause) -> str:
    """What was said of the divergence, but for an exception's trace, which ends the story."""
    first, *rest = cause.detail.splitlines()
    return f"{first}: {'; '.join(rest)}" if _departed(cause) is BehaviourKind.OFFERS else first


def _departed(cause: FailureCause) -> BehaviourKind | None:
    """How the trace ended, if whoever recorded it wrote it down as `replay` does."""
    kind = cause.detail.partition("\n")[0].partition(":")[0]
    return (
        BehaviourKind(kind) if DIVERGED in cause.violations and kind in [*BehaviourKind] else None
    )


def name_of(store: TraceStore, trace_id: int) -> str:
    """The trace's number, and how whoever imported it called it, with file and line."""
    source = store.trace(trace_id).source
    return f"{trace_id} ({source})" if source else str(trace_id)


def number_of(name: str) -> int | None:
    """The number of a trace that is called so; None if no trace is meant."""
    number = name.partition(" ")[0]
    return int(number) if number.isdecimal() else None


def diverged(store: TraceStore) -> tuple[FailureCause, ...]:
    """Traces that ended with a divergence while they were recorded: the shortest of each kind.

    Of a kind are those that ended at one action, with the same said of it.
    """
    failure_causes: dict[tuple[str, str], FailureCause] = {}
    for trace in store.traces(TraceEnd.DIVERGED):
        cause = divergence(trace)
        kind = cause.action.name if cause.action else "", cause.detail.partition("\n")[0]
        known = failure_causes.get(kind, cause)
        shorter = min(known, cause, key=lambda cause: cause.step)
        failure_causes[kind] = replace(shorter, traces=known.traces + (kind in failure_causes))
    return tuple(failure_causes.values())


def divergence(trace: Trace, traces: int = 1) -> FailureCause:
    """What decides a trace that ended with a divergence; it stands for so many."""
    path, last = trace.states, trace.steps[-1] if trace.steps else None
    return FailureCause(
        traces,
        trace.trace_id,
        len(trace.steps),
        (DIVERGED,),
        last.action if last else None,
        path[-2] if last else None,
        path[-1],
        trace.problem or "",
    )


def lookup(store: TraceStore, fingerprints: Sequence[int]) -> Mapping[int, PartialState]:
    """The states of a few fingerprints; an unknown one has no observed variable."""
    unknown: PartialState = (None,) * len(store.columns.schema.variables)
    states = store.states(set(fingerprints))
    return {value: states.get(value, unknown) for value in fingerprints}
