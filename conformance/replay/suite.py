"""Replays a suite against a system, path by path, with step equality after every action."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from conformance.events import Emit, Progress, ignore
from conformance.modelcheck.graph import StateGraph
from conformance.replay.engine import Divergence, Driver, close, run_path
from conformance.replay.oracle import GraphOracle, Oracle
from conformance.replay.shorten import shortest_failure
from conformance.suites.suite import Suite
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Action, State
from conformance.verdict import Verdict

MakeSystem = Callable[[], SystemUnderTest]


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What replaying a suite showed. `passed + failed + inconclusive + not_run` is every test."""

    passed: int
    failed: int
    inconclusive: int
    not_run: int
    """Left over because the replay stopped at a divergence: a consequence, not a finding."""
    steps: int
    seconds: float
    actions: Mapping[str, int]
    divergences: tuple[Divergence, ...] = ()
    notes: tuple[str, ...] = field(default=())
    visited: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool), compare=False)
    """By edge of the graph, whether a test has driven it."""

    @property
    def verdict(self) -> Verdict:
        """FAIL on a divergence; INCONCLUSIVE if a test could not be judged or none ran."""
        if self.failed:
            return Verdict.FAIL
        if self.inconclusive or self.not_run or not self.steps:
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
        self._visited = np.zeros(len(graph.source), bool)

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
            self._visited[test.edges[: outcome.steps]] = True
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
        return ReplayResult(
            passed=self._passed,
            failed=len(self._divergences),
            inconclusive=self._inconclusive,
            not_run=left,
            steps=self._steps,
            seconds=seconds,
            actions=dict(names),
            divergences=tuple(self._divergences),
            notes=tuple(self._notes[:20]),
            visited=self._visited,
        )

    def _shorten(self, divergence: Divergence) -> Divergence:
        def attempt(initial: State, actions: Sequence[Action]) -> Divergence | None:
            system = self._make_system()
            try:
                return run_path(Driver(system, self._oracle), initial, actions).divergence
            finally:
                close(system)

        return shortest_failure(self._oracle, divergence, attempt)
