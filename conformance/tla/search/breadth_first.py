"""Breadth-first search of a state space with our own successors, as TLC does it.

As in TLC: invariants are also checked on states that a constraint discards, action properties
on every transition, a state without successors is a deadlock even if a constraint would have
discarded its successors, and under a VIEW or SYMMETRY the first state of a class stands for all.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from conformance.tla.errors import SpecError, UnsupportedError
from conformance.tla.front.syntax import Assumption
from conformance.tla.python.formulas import Property
from conformance.tla.python.selection import TracedAction
from conformance.tla.python.session import TlcSession
from conformance.tla.python.spec import Spec
from conformance.tla.search.lasso import Lasso, StepGraph, lasso
from conformance.tla.search.parts import StateParts
from conformance.tla.search.processes import Elsewhere, SuccessorRow, rows
from conformance.tla.search.remembered import RememberedSteps, StateStep
from conformance.tla.search.symmetry import Orbits, Permutation, permutations_of
from conformance.tla.semantics.behaviours import TRUE, AnyOf, Claim, Temporal, all_of, negation
from conformance.tla.semantics.errors import EvaluationError
from conformance.tla.values import Action, Fingerprinter, State, Value
from conformance.tla.values.text import format_state

__all__ = [
    "Counterexample",
    "FalseAssumption",
    "FormulaKind",
    "FormulaResult",
    "SearchEnd",
    "SearchError",
    "SearchLimits",
    "SearchProblem",
    "SearchResult",
    "SearchVerdict",
    "Transitions",
    "problem_of",
    "reachable_states",
    "search",
]

StatePredicate = Callable[[State], bool]
ActionPredicate = Callable[[State, State], bool]


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """What to search and what to check on the way, as functions of states."""

    variables: tuple[str, ...]
    initial: Callable[[], Iterable[State]]
    successors: Callable[[State], Iterable[tuple[Action, State]]]
    traced_actions: Callable[[], Sequence[TracedAction]] = tuple
    """The action instances one by one, for a large search; none where that cannot be done."""
    invariants: Mapping[str, StatePredicate] = field(default_factory=dict)
    initial_properties: Mapping[str, StatePredicate] = field(default_factory=dict)
    """What properties say of the initial states: `Init` of a property `Init /\\ [][Next]_v`."""
    action_properties: Mapping[str, ActionPredicate] = field(default_factory=dict)
    fairness: Temporal = TRUE
    """What the specification says of whole behaviours."""
    temporal_properties: Mapping[str, Temporal] = field(default_factory=dict)
    """What properties say of whole behaviours."""
    unchecked: Mapping[str, str] = field(default_factory=dict)
    """Properties that say of whole behaviours what a search does not judge, and why."""
    constraints: tuple[StatePredicate, ...] = ()
    action_constraints: tuple[ActionPredicate, ...] = ()
    view: Callable[[State], Value] | None = None
    symmetry: tuple[Permutation, ...] = ()
    check_deadlock: bool = True
    search_at: Callable[[int | None], None] = lambda _level: None
    """Told the level of the state that is explored, 0 for initial states, None at the end."""
    session: TlcSession = field(default_factory=TlcSession)
    """What the formulas print and remember; the search tells it what it counts."""
    impure: bool = False
    """Whether they do: then one process searches."""


class FalseAssumption(SpecError):
    """An ASSUME that is false for the constants of a configuration: nothing was searched."""

    def __init__(self, assumption: Assumption, source: str) -> None:
        named = f"the assumption {assumption.name}" if assumption.name else "this ASSUME"
        super().__init__(
            f"{assumption.location}: {named} is false for the constants of "
            f"{source or 'the configuration'}. Mend the one or the other."
        )
        self.assumption = assumption


def problem_of(spec: Spec) -> SearchProblem:
    """What the spec's configuration asks for; of temporal properties what a search can check.

    FalseAssumption if an ASSUME is false, as in TLC. A module that only assumes has no states.
    """
    config = spec.config
    for assumption in spec.false_assumptions():
        raise FalseAssumption(assumption, config.source)
    properties = [spec.property_of(name) for name in config.properties]
    symmetry = _symmetry(spec)
    fairness, temporal, unchecked = _behaviours(
        spec, [item for item in properties if item.unchecked]
    )
    return SearchProblem(
        variables=spec.variables,
        initial=spec.generated_initial_states,
        successors=spec.successors,
        traced_actions=spec.traced_actions,
        invariants={name: spec.state_formula(name) for name in config.invariants}
        | {item.name: item.always for item in properties if item.always is not None},
        initial_properties={
            item.name: item.initial for item in properties if item.initial is not None
        },
        action_properties={item.name: item.step for item in properties if item.step is not None},
        fairness=fairness,
        temporal_properties=temporal,
        unchecked=unchecked,
        constraints=tuple(map(spec.state_formula, config.constraints)),
        action_constraints=tuple(map(spec.action_formula, config.action_constraints)),
        view=None if config.view is None else spec.state_function(config.view),
        symmetry=symmetry,
        check_deadlock=config.check_deadlock,
        search_at=spec.search_at,
        session=spec.session,
        impure=spec.impure,
    )


def _behaviours(
    spec: Spec, properties: Iterable[Property]
) -> tuple[Temporal, dict[str, Temporal], dict[str, str]]:
    """Fairness, what the properties say of whole behaviours, and what is not judged, and why."""
    config = spec.config
    if merging := config.symmetry or config.view:
        why = f"{merging} merges states, and a cycle of merged states may be no behaviour"
        return TRUE, {}, {item.name: why for item in properties}
    temporal: dict[str, Temporal] = {}
    unchecked: dict[str, str] = {}
    fairness: Temporal = TRUE
    for item in properties:
        try:
            fairness = spec.fairness
            temporal[item.name] = _not_trivial(item, spec.behaviours_of(item.name))
        except UnsupportedError as error:
            unchecked[item.name] = str(error)
    return fairness, temporal, unchecked


def _not_trivial(what: Property, formula: Temporal) -> Temporal:
    """SpecError, as in TLC, if the formula is true of every behaviour of every specification."""
    if formula == TRUE:
        raise SpecError(
            f"{what.location}: what {what.name} says of whole behaviours is always true, so there "
            "is nothing to check. Mend the property, or take it out of the configuration."
        )
    return formula


def _symmetry(spec: Spec) -> tuple[Permutation, ...]:
    config = spec.config
    if config.symmetry is None:
        return ()
    if config.view is not None:
        raise UnsupportedError(
            f"{config.source or 'The configuration'} has both SYMMETRY {config.symmetry} and VIEW "
            f"{config.view}. Which states TLC then takes for one depends on its internal order of "
            "values, so the Python engine does not follow it. Leave one out, or check with TLC."
        )
    return permutations_of(spec.value(config.symmetry))


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When to give up; and whether to end at the first violation, as TLC does."""

    states: int | None = None
    seconds: float | None = None
    stop_at_violation: bool = True
    behaviour_steps: int = 5_000_000
    """Steps of the product of states and one temporal property, some 200 bytes each."""


class SearchEnd(StrEnum):
    """Why a search ended."""

    EXHAUSTED = "exhausted"
    VIOLATION = "violation"
    LIMIT = "limit"
    CANCELLED = "cancelled"


class FormulaKind(StrEnum):
    """What a result is about."""

    INVARIANT = "invariant"
    INITIAL_PROPERTY = "initial property"
    ACTION_PROPERTY = "action property"
    TEMPORAL_PROPERTY = "temporal property"
    """What a property says of whole behaviours."""
    DEADLOCK = "deadlock"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A shortest path to a violation: an initial state, then actions and the states they lead to.

    It ends in the violating state, or with the violating step. An infinite one goes round for ever:
    its last state is that after `back_to` steps.
    """

    initial: State
    steps: tuple[tuple[Action, State], ...] = ()
    back_to: int | None = None

    def __len__(self) -> int:
        """The number of states, as TLC counts."""
        return 1 + len(self.steps)

    @property
    def states(self) -> tuple[State, ...]:
        """All states, the initial one first."""
        return (self.initial, *(state for _, state in self.steps))


class SearchVerdict(StrEnum):
    """What a search says of a formula; nothing to check is INCONCLUSIVE."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class FormulaResult:
    """FAIL with a counterexample; PASS only if the whole space was searched."""

    name: str
    kind: FormulaKind
    verdict: SearchVerdict
    counterexample: Counterexample | None = None


@dataclass(frozen=True, slots=True)
class Transitions:
    """Parallel arrays: numbers of states and indices into `actions`; nothing is merged."""

    actions: tuple[Action, ...]
    source: array[int]
    action: array[int]
    target: array[int]

    def __iter__(self) -> Iterator[tuple[int, Action, int]]:
        for source, action, target in zip(self.source, self.action, self.target, strict=True):
            yield source, self.actions[action], target

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was found. States are numbered in the order of discovery."""

    end: SearchEnd
    states: tuple[State, ...]
    initial: tuple[int, ...]
    generated: int
    depth: int
    """The number of levels: an initial state is at level 1."""
    transitions: Transitions | None
    formulas: tuple[FormulaResult, ...]
    seconds: float
    given_up: Mapping[str, str] = field(default_factory=dict)
    """Temporal properties whose judgement came to a limit, and which limit."""

    @property
    def violated(self) -> FormulaResult | None:
        """The violation that was found first."""
        failed = [result for result in self.formulas if result.counterexample is not None]
        return min(failed, key=_counterexample_length, default=None)


class _GivenUp(Exception):
    """The judgement of a temporal property came to a limit."""


class SearchError(SpecError):
    """A formula that could not be evaluated, and the path to the state on which it failed."""

    def __init__(
        self, error: EvaluationError, problem: SearchProblem, path: Counterexample
    ) -> None:
        shown = format_state(problem.variables, path.states[-1])
        text = str(error).rstrip(".")
        super().__init__(f"{text}. The state, {len(path)} deep, was:\n{shown}")
        self.reason = error
        self.counterexample = path


def search(
    problem: SearchProblem,
    limits: SearchLimits | None = None,
    *,
    keep_transitions: bool = False,
    elsewhere: Elsewhere | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda _generated, _distinct: None,
) -> SearchResult:
    """Search until all states are known, a violation or a limit.

    What is found, and in which order, does not depend on who expands states `elsewhere`.
    `cancelled` and `progress` (generated and distinct states so far) are called once per
    explored state. A formula without a value raises SearchError.
    """
    return _BreadthFirstSearch(problem, limits or SearchLimits(), keep_transitions, elsewhere).run(
        cancelled, progress
    )


def _class_key(problem: SearchProblem) -> Callable[[State], int] | None:
    """By what two states are the same under a VIEW or SYMMETRY; None if there is neither."""
    if problem.symmetry:
        return Orbits(problem.symmetry)
    fingerprint, view = Fingerprinter(), problem.view
    return None if view is None else lambda state: fingerprint(view(state))


def _counterexample_length(result: FormulaResult) -> int:
    return 0 if result.counterexample is None else len(result.counterexample)


_DEADLOCK = "deadlock"


class _BreadthFirstSearch:
    """The state of one search: a queue of the states found, explored in order."""

    def __init__(
        self,
        problem: SearchProblem,
        limits: SearchLimits,
        keep_transitions: bool,
        elsewhere: Elsewhere | None,
    ) -> None:
        self.problem = problem
        self.limits = limits
        self.keep_transitions = keep_transitions or bool(problem.temporal_properties)
        self.elsewhere = None if problem.impure else elsewhere
        self.started = time.monotonic()
        self.explored = 0
        self.states: list[State] = []
        self.parent = array("q")
        self.by_action = array("q")
        self.level = array("q")
        self.initial: list[int] = []
        self.numbers: dict[int, int] = {}
        self.keys = array("Q")
        self.class_key = _class_key(problem)
        self.parts = StateParts(len(problem.variables))
        self.steps = RememberedSteps(problem.successors, problem.traced_actions, self.parts)
        self.action_codes: dict[Action, int] = {}
        self.source, self.action, self.target = array("q"), array("q"), array("q")
        self.generated = 0
        # Formulas not yet violated; a violated one is not evaluated again.
        self.invariants = dict(problem.invariants)
        self.action_properties = dict(problem.action_properties)
        self.judged = bool(problem.action_constraints or problem.action_properties)
        """Whether a step to a known state, which no constraint discards, has to be looked at."""
        self.check_deadlock = problem.check_deadlock
        self.violations: dict[tuple[FormulaKind, str], Counterexample] = {}
        self.given_up: dict[str, str] = {}

    def run(
        self, cancelled: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> SearchResult:
        self.problem.session.statistics = self._statistics
        try:
            end = self._explore(cancelled, progress)
            if end is SearchEnd.EXHAUSTED:
                self._judge_behaviours(cancelled)
                if self.violations and self.limits.stop_at_violation:
                    end = SearchEnd.VIOLATION
        finally:
            self.problem.search_at(None)
        return SearchResult(
            end=end,
            states=tuple(self.states),
            initial=tuple(self.initial),
            generated=self.generated,
            depth=max(self.level, default=0),
            transitions=self._transitions() if self.keep_transitions else None,
            formulas=self._formulas(end),
            seconds=time.monotonic() - self.started,
            given_up=self.given_up,
        )

    def _explore(
        self, cancelled: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> SearchEnd:
        self._start()
        done = 0
        while done < len(self.states):
            level = range(done, len(self.states))
            with closing(rows(self._row, level, self.elsewhere)) as ahead:
                for number, row in zip(level, ahead, strict=True):
                    if (end := self._ended(cancelled)) is not None:
                        return end
                    self.explored = number + 1
                    self._take(number, row)
                    progress(self.generated, len(self.states))
            done = level.stop
        return self._ended(lambda: False) or SearchEnd.EXHAUSTED

    def _judge_behaviours(self, cancelled: Callable[[], bool]) -> None:
        """Look for a fair behaviour that violates a property, one property after the other."""

        def going(steps: int) -> None:
            self._go_on(steps, cancelled)

        graph = self._step_graph()
        for name, formula in self.problem.temporal_properties.items():
            wrong = negation(formula)
            try:
                for part in wrong.parts if isinstance(wrong, AnyOf) else (wrong,):
                    result = lasso(graph, all_of([self.problem.fairness, part]), going)
                    if result is not None:
                        path = self._round(result)
                        self.violations[FormulaKind.TEMPORAL_PROPERTY, name] = path
                        break
            except _GivenUp as limit:
                self.given_up[name] = str(limit)
            if self.violations and self.limits.stop_at_violation:
                return

    def _go_on(self, steps: int, cancelled: Callable[[], bool]) -> None:
        """_GivenUp where the judgement of a temporal property may not go on."""
        limits = self.limits
        if steps > limits.behaviour_steps:
            raise _GivenUp(
                f"the states and the property have more than {limits.behaviour_steps:,} steps "
                "together, more than the Python engine keeps in memory"
            )
        if self._out_of_time():
            raise _GivenUp(f"the {limits.seconds:g} seconds of the search were over")
        if cancelled():
            raise _GivenUp("the search was cancelled")

    def _step_graph(self) -> StepGraph:
        successors: list[dict[int, None]] = [{} for _ in self.states]
        for source, target in zip(self.source, self.target, strict=True):
            if source != target:
                successors[source][target] = None
        known: dict[tuple[int, int, int], bool] = {}

        def holds(claim: Claim, before: int, after: int) -> bool:
            key = claim.number, before, after if claim.of_steps else before
            if key not in known:
                try:
                    known[key] = claim.holds(self.states[before], self.states[after])
                except EvaluationError as error:
                    raise SearchError(error, self.problem, self._path(before)) from error
            return known[key]

        return StepGraph(self.initial, [tuple(successor) for successor in successors], holds)

    def _round(self, result: Lasso) -> Counterexample:
        """The states of a path and of its cycle, with the actions between them."""
        numbers = (*result.path, *result.cycle)
        actions = tuple(self.action_codes)
        by_step = {
            (source, target): actions[action]
            for source, action, target in zip(self.source, self.action, self.target, strict=True)
        }
        steps = tuple((by_step[item], self.states[item[1]]) for item in pairwise(numbers))
        return Counterexample(self.states[numbers[0]], steps, len(result.path) - 1)

    def _ended(self, cancelled: Callable[[], bool]) -> SearchEnd | None:
        if self.violations and self.limits.stop_at_violation:
            return SearchEnd.VIOLATION
        if self._over_limit():
            return SearchEnd.LIMIT
        return SearchEnd.CANCELLED if self.problem.session.ended or cancelled() else None

    def _statistics(self) -> Mapping[str, int]:
        """What TLCGet asks for."""
        return {
            "generated": self.generated,
            "distinct": len(self.states),
            "queue": len(self.states) - self.explored,
            "diameter": self.level[-1] if self.level else 1,
            "duration": int(time.monotonic() - self.started),
        }

    def _take(self, number: int, row: SuccessorRow | None) -> None:
        """Take a state's successors: as a process found them, or by finding them here."""
        if row is not None:
            self.generated += row.generated
            for action, key, successor in row.steps:
                self._note(number, action, key, successor)
            return
        try:
            self._expand(number)
        except EvaluationError as error:
            raise SearchError(error, self.problem, self._path(number)) from error

    def _row(self, number: int, met: set[int]) -> SuccessorRow | None:
        """What another process tells of a state; None if there is more to tell than successors.

        It changes nothing here; `met` gets the keys of the targets that it tells.
        """
        state = self.states[number]
        self.problem.search_at(self.level[number])
        generated, steps = 0, list[tuple[Action, int, State | None]]()
        try:
            for step in self.steps.of(state):
                generated += 1
                key, successor = self._target(number, step)
                if successor is None:
                    steps.append((step.action, key, None))
                    continue
                if not all(holds(state, successor) for holds in self.action_properties.values()):
                    return None
                outside = self._is_outside(state, successor)
                new = not (outside or key in met or key in self.numbers)
                if (new or outside) and not all(
                    holds(successor) for holds in self.invariants.values()
                ):
                    return None
                if not outside:
                    met.add(key)
                    steps.append((step.action, key, successor if new else None))
        except EvaluationError:
            return None
        return None if self.check_deadlock and not generated else SuccessorRow(generated, steps)

    def _over_limit(self) -> bool:
        most = self.limits.states
        return (most is not None and len(self.states) > most) or self._out_of_time()

    def _out_of_time(self) -> bool:
        seconds = self.limits.seconds
        return seconds is not None and time.monotonic() - self.started > seconds

    def _start(self) -> None:
        self.problem.search_at(0)
        for state in self.problem.initial():
            self.generated += 1
            try:
                self._start_with(state)
            except EvaluationError as error:
                raise SearchError(error, self.problem, Counterexample(state)) from error

    def _start_with(self, state: State) -> None:
        if all(constraint(state) for constraint in self.problem.constraints):
            known = len(self.states)
            key = self.parts.state(state)[1] if self.class_key is None else self.class_key(state)
            number = self._number(key, state, -1, -1, 1)
            if number < known:
                return
            self.initial.append(number)
        for name in self._violated_invariants(state):
            self.violations[FormulaKind.INVARIANT, name] = Counterexample(state)
        for name, holds in self.problem.initial_properties.items():
            if not holds(state):
                violated = FormulaKind.INITIAL_PROPERTY, name
                self.violations.setdefault(violated, Counterexample(state))

    def _expand(self, number: int) -> None:
        state = self.states[number]
        self.problem.search_at(self.level[number])
        any_successor = False
        for result in self.steps.of(state):
            self.generated += 1
            any_successor = True
            key, successor = self._target(number, result)
            if successor is None:
                self._note_known(number, result.action, self.numbers[key])
                continue
            step = (result.action, successor)
            outside = self._is_outside(state, successor)
            if outside or self._note(number, result.action, key, successor):
                for name in self._violated_invariants(successor):
                    self.violations[FormulaKind.INVARIANT, name] = self._path(number, step)
            for name in self._violated_properties(state, successor):
                self.violations[FormulaKind.ACTION_PROPERTY, name] = self._path(number, step)
            if self.violations and self.limits.stop_at_violation:
                return
        if not any_successor and self.check_deadlock:
            self.check_deadlock = False
            self.violations[FormulaKind.DEADLOCK, _DEADLOCK] = self._path(number)

    def _is_outside(self, state: State, successor: State) -> bool:
        """Whether a constraint discards the successor."""
        problem = self.problem
        return not all(constraint(successor) for constraint in problem.constraints) or not all(
            constraint(state, successor) for constraint in problem.action_constraints
        )

    def _target(self, number: int, step: StateStep) -> tuple[int, State | None]:
        """The key of a step's target; the target, unless it is known and nobody asks for it."""
        if self.class_key is None:
            key = self.keys[number] ^ step.key
            if key in self.numbers and not self.judged:
                return key, None
        successor = self.steps.successor(self.states[number], step)
        return key if self.class_key is None else self.class_key(successor), successor

    def _note(self, source: int, action: Action, key: int, state: State | None) -> bool:
        """Note a transition to the state of that key, which has a number already if it is None."""
        known = len(self.states)
        code = self.action_codes.setdefault(action, len(self.action_codes))
        target = self._number(key, state, source, code, self.level[source] + 1)
        self._note_known(source, action, target)
        return target == known

    def _note_known(self, source: int, action: Action, target: int) -> None:
        """Note a transition between states that have numbers."""
        if self.keep_transitions:
            self.source.append(source)
            code = self.action_codes.setdefault(action, len(self.action_codes))
            self.action.append(code)
            self.target.append(target)

    def _number(
        self, key: int, state: State | None, parent: int, by_action: int, level: int
    ) -> int:
        """The number of the state, or of its class; a new one if it is not known."""
        number = self.numbers.setdefault(key, len(self.states))
        if number == len(self.states):
            assert state is not None, "a process told a state before it was known"
            shared, own_key = self.parts.state(state)
            self.states.append(shared)
            self.keys.append(own_key)
            self.parent.append(parent)
            self.by_action.append(by_action)
            self.level.append(level)
        return number

    def _violated_invariants(self, state: State) -> list[str]:
        """The names of the invariants that this state is the first to violate."""
        violated = [name for name, holds in self.invariants.items() if not holds(state)]
        for name in violated:
            del self.invariants[name]
        return violated

    def _violated_properties(self, state: State, successor: State) -> list[str]:
        properties = self.action_properties
        violated = [name for name, holds in properties.items() if not holds(state, successor)]
        for name in violated:
            del properties[name]
        return violated

    def _path(self, number: int, *steps: tuple[Action, State]) -> Counterexample:
        """From an initial state to the state of that number, and on by the steps."""
        actions = tuple(self.action_codes)
        path = list(reversed(steps))
        while self.parent[number] >= 0:
            path.append((actions[self.by_action[number]], self.states[number]))
            number = self.parent[number]
        return Counterexample(self.states[number], tuple(reversed(path)))

    def _transitions(self) -> Transitions:
        return Transitions(tuple(self.action_codes), self.source, self.action, self.target)

    def _formulas(self, end: SearchEnd) -> tuple[FormulaResult, ...]:
        checked = [(FormulaKind.INVARIANT, name) for name in self.problem.invariants]
        checked += [
            (FormulaKind.INITIAL_PROPERTY, name) for name in self.problem.initial_properties
        ]
        checked += [(FormulaKind.ACTION_PROPERTY, name) for name in self.problem.action_properties]
        checked += [
            (FormulaKind.TEMPORAL_PROPERTY, name) for name in self.problem.temporal_properties
        ]
        if self.problem.check_deadlock:
            checked.append((FormulaKind.DEADLOCK, _DEADLOCK))
        holds = (
            SearchVerdict.PASS
            if end is SearchEnd.EXHAUSTED and self.states
            else SearchVerdict.INCONCLUSIVE
        )
        judged = [
            FormulaResult(name, kind, self._verdict(kind, name, holds), path)
            for kind, name in checked
            for path in [self.violations.get((kind, name))]
        ]
        unchecked = (
            FormulaResult(name, FormulaKind.TEMPORAL_PROPERTY, SearchVerdict.INCONCLUSIVE)
            for name in self.problem.unchecked
        )
        return (*judged, *unchecked)

    def _verdict(self, kind: FormulaKind, name: str, otherwise: SearchVerdict) -> SearchVerdict:
        if (kind, name) in self.violations:
            return SearchVerdict.FAIL
        unjudged = kind is FormulaKind.TEMPORAL_PROPERTY and name in self.given_up
        return SearchVerdict.INCONCLUSIVE if unjudged else otherwise


def reachable_states(spec: Spec) -> Iterator[State]:
    """The states within the constraints, breadth first, as far as somebody asks for them."""
    constraints = [spec.state_formula(name) for name in spec.config.constraints]
    seen = dict.fromkeys(spec.initial_states())
    queue = list(seen)
    for state in queue:
        if not all(constraint(state) for constraint in constraints):
            continue
        yield state
        for _, following in spec.successors(state):
            if following not in seen:
                seen[following] = None
                queue.append(following)
