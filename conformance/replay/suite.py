"""Replays a suite against a system, path by path, with step equality after every action."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.events import Emit, Finding, Progress, ignore
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.story import changes
from conformance.replay.engine import Divergence, Driver, Kind, close, run_path
from conformance.replay.interleave import parts, told
from conformance.replay.oracle import GraphOracle, Oracle
from conformance.replay.shorten import shortest_failure
from conformance.replay.story import differences, observed_lines
from conformance.suites.suite import Suite
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Action, State
from conformance.verdict import Verdict

MakeSystem = Callable[[], SystemUnderTest]
Locate = Callable[[Action], str]
"""The spec's place of an action, as `file:line:column`."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What replaying a suite showed. `passed + failed + inconclusive` is every test."""

    passed: int
    failed: int
    inconclusive: int
    steps: int
    seconds: float
    actions: Mapping[str, int]
    divergences: tuple[Divergence, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """FAIL on a divergence; INCONCLUSIVE if a test could not be judged or none ran."""
        if self.failed:
            return Verdict.FAIL
        if self.inconclusive or not self.steps:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS


def replay_suite(
    graph: StateGraph,
    suite: Suite,
    make_system: MakeSystem,
    *,
    oracle: Oracle | None = None,
    emit: Emit = ignore,
    stop_after: int = 1,
) -> ReplayResult:
    """Drive every test of the suite until `stop_after` tests have diverged.

    Each reported divergence has been shortened and reproduced. `oracle` defaults to the graph.
    """
    oracle = oracle or GraphOracle(graph)
    run = _Run(graph, suite, make_system, oracle, emit, stop_after)
    started = time.perf_counter()
    system = make_system()
    try:
        run.tests(Driver(system, oracle))
    finally:
        close(system)
    return run.result(time.perf_counter() - started)


class _Run:
    """The counters of one replay."""

    def __init__(
        self,
        graph: StateGraph,
        suite: Suite,
        make_system: MakeSystem,
        oracle: Oracle,
        emit: Emit,
        stop_after: int,
    ) -> None:
        self._graph, self._suite, self._oracle = graph, suite, oracle
        self._make_system, self._emit, self._stop_after = make_system, emit, stop_after
        self._passed = self._inconclusive = self._steps = 0
        self._divergences: list[Divergence] = []
        self._notes: list[str] = []
        self._taken: Counter[int] = Counter()

    def tests(self, driver: Driver) -> None:
        graph = self._graph
        # The oracle's own objects: it finds them by identity.
        own = {state: state for state in self._oracle.initial_states()}
        starts = {test.initial: graph.states[test.initial] for test in self._suite.tests}
        starts = {number: own.get(state, state) for number, state in starts.items()}
        told = time.monotonic()
        for number, test in enumerate(self._suite.tests):
            codes = graph.action[test.edges].tolist()
            outcome = run_path(
                driver, starts[test.initial], (graph.actions[code] for code in codes)
            )
            self._steps += outcome.steps
            self._taken.update(codes[: outcome.steps])
            if outcome.divergence is not None:
                self._divergences.append(self._shorten(outcome.divergence))
                if len(self._divergences) >= self._stop_after:
                    return
            elif outcome.disabled:
                self._inconclusive += 1
                self._notes.append(
                    f"test {number}: after {outcome.steps} steps the implementation had taken "
                    f"another branch that the spec allows, where {outcome.disabled} is not enabled"
                )
            else:
                self._passed += 1
            if time.monotonic() - told > 0.2:
                told = time.monotonic()
                self._emit(Progress("replay", number + 1, len(self._suite)))

    def result(self, seconds: float) -> ReplayResult:
        names: Counter[str] = Counter()
        for code, count in self._taken.items():
            names[self._graph.actions[code].name] += count
        left = len(self._suite) - self._passed - len(self._divergences) - self._inconclusive
        if left:
            self._notes.append(f"{left} tests not run: stopped at the first divergence")
        return ReplayResult(
            passed=self._passed,
            failed=len(self._divergences),
            inconclusive=self._inconclusive + left,
            steps=self._steps,
            seconds=seconds,
            actions=dict(names),
            divergences=tuple(self._divergences),
            notes=tuple(self._notes[:20]),
        )

    def _shorten(self, divergence: Divergence) -> Divergence:
        def attempt(initial: State, actions: Sequence[Action]) -> Divergence | None:
            system = self._make_system()
            try:
                return run_path(Driver(system, self._oracle), initial, actions).divergence
            finally:
                close(system)

        return shortest_failure(self._oracle, divergence, attempt)


def finding(
    oracle: Oracle,
    divergence: Divergence,
    *,
    stage: str = "replay",
    locate: Locate = lambda _: "",
    reasons: Sequence[str] = (),
) -> Finding:
    """The divergence as a finding: one key per action and set of differing variables.

    How to see it again says who knows where it is kept. `reasons` end the story.
    """
    differing = differences(oracle.variables, divergence)
    action = divergence.action
    shown = told(action) if action else "initial state"
    name = action.name if action else "Init"
    variables = sorted({part.variable.partition("[")[0] for part in differing})
    if divergence.kind is Kind.OFFERS:
        variables = sorted(set(re.findall(r"take (\w+)", divergence.detail)))
    return Finding(
        key=":".join([stage, name, divergence.kind.name.lower(), *variables]),
        title=f"{shown}: {divergence.kind}",
        stage=stage,
        message=_message(divergence),
        step=divergence.step,
        action=shown if action else "",
        formula=name,
        location=locate(action) if action else "",
        differences=differing,
        story=(*divergence_story(oracle, divergence), *reasons),
    )


def _message(divergence: Divergence) -> str:
    if divergence.action and parts(divergence.action) and divergence.kind is Kind.NOT_ALLOWED:
        return (
            "One action interrupted by the other leads to a state that the spec allows after "
            "neither order of the two."
        )
    return _MESSAGES[divergence.kind]


_MESSAGES = {
    Kind.WRONG_INITIAL: "The implementation does not start in the spec's initial state.",
    Kind.NOT_ALLOWED: (
        "After this action the implementation is in a state that the spec does not allow."
    ),
    Kind.REFUSED: "The spec allows this action, the implementation cannot take it.",
    Kind.RAISED: "The implementation raised an exception.",
    Kind.ENDLESS: "The implementation did not come to an end of this action, and was interrupted.",
    Kind.OFFERS: "The implementation would go on with other steps than the spec enables here.",
    Kind.NOT_ENABLED: "The trace has an action that the spec does not enable here.",
    Kind.INVARIANT: "The state that spec and implementation agree on breaks an invariant.",
}


def divergence_story(oracle: Oracle, divergence: Divergence) -> tuple[str, ...]:
    """The path as numbered lines with what the spec says changed, the divergence last."""
    lines: list[str] = []
    possible: tuple[State, ...] = (divergence.initial,)
    for number, action in enumerate(divergence.actions, 1):
        lines.append(f"{number:3}. {told(action)}")
        if number == len(divergence.actions):
            break
        following = tuple(dict.fromkeys(t for s in possible for t in oracle.successors(s, action)))
        if following:
            lines.extend(
                f"       {c}" for c in changes(oracle.variables, possible[0], following[0])
            )
            possible = following
    lines.append(f"     {divergence.kind}")
    if divergence.detail:
        lines.extend(f"       {line}" for line in divergence.detail.rstrip().splitlines()[-12:])
    elif not divergence.allowed:
        lines.extend(f"       {line}" for line in observed_lines(divergence.observed))
    return tuple(lines)
