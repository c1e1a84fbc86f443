"""Replays a suite against a system, path by path, with step equality after every action."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from conformance.compared import ComparedStates
from conformance.deviations.tolerance import Reading, Tolerance
from conformance.errors import UserError
from conformance.events import Emit, Progress, ignore
from conformance.modelcheck.graph import StateGraph
from conformance.printable import counted
from conformance.replay.engine import (
    TRIES,
    Divergence,
    Driver,
    PathResult,
    StepTrail,
    close,
    common_steps,
    run_path,
    run_until_believed,
)
from conformance.replay.minimise import minimise
from conformance.replay.oracle import GraphOracle, Oracle, allows
from conformance.replay.shorten import shortest_failure
from conformance.story.kind import BehaviourKind
from conformance.suites.suite import Suite
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Action, State
from conformance.verdict import Verdict

MakeSystem = Callable[[], SystemUnderTest]

_MOST_SET_ASIDE = 8
"""The maximum number of differences that are set aside."""
_MOST_VARIABLES = 2
"""The maximum number of variables in which such a state may differ."""
_SHRINKING = 30_000
"""Steps that are driven to shrink one divergence, about: some systems take a thousand a second."""
_MOST_SPOILED = 20
"""So many tests spoiled one after the other, though alone: those that are left would be too."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What replaying a suite showed.

    `passed + failed + inconclusive + spoiled + not_run`, and the tests `not_driven`, are every
    test.
    """

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
    visits: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, np.int64), compare=False
    )
    """By edge of the graph, the steps that went along it."""
    not_driven: Mapping[str, int] = field(default_factory=dict)
    """How many tests the system cannot be driven along, by the reason why."""
    spoiled: int = 0
    """Tests that ended early each time that they were driven, while the machine was too slow."""
    again: int = 0
    """Of those that passed, how many had to be driven more than once."""
    steps_taken: int = 0
    """Steps that the system took; the other `steps` are those before a snapshot that was restored,
    which it had taken in an earlier test."""
    compared: ComparedStates = field(default_factory=ComparedStates)
    set_aside: tuple[str, ...] = ()
    """Differences after which the replay went on without comparing what differed."""

    @property
    def verdict(self) -> Verdict:
        """FAIL on a divergence; INCONCLUSIVE if a test could not be judged or none ran, or if too
        little was compared."""
        if self.failed:
            return Verdict.FAIL
        incomplete = self.inconclusive or self.spoiled or self.not_run
        if incomplete or not self.steps or self.compared.gap:
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
    going_on: bool = False,
) -> ReplayResult:
    """Drive every test of the suite until `stop_after` tests have diverged.

    Each reported divergence has been shortened and reproduced. `oracle` defaults to the graph.
    `going_on`: where a state differs in few variables, set the smallest difference aside that
    explains what was seen, and look at what comes behind it; the replay has failed all the same.
    """
    oracle = oracle or GraphOracle(graph)
    run = _Run(graph, suite, make_system, oracle, emit, stop_after, going_on=going_on)
    started = time.perf_counter()
    system = make_system()
    try:
        driver = Driver(system, oracle)
        if driver.in_real_time:
            run.in_real_time(driver.lanes)
        else:
            run.tests(driver)
        run.end(driver)
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
        *,
        going_on: bool,
    ) -> None:
        self._graph, self._suite, self._oracle = graph, suite, oracle
        self._make_system, self._emit, self._stop_after = make_system, emit, stop_after
        self._passed = self._inconclusive = self._steps = self._spoiled = self._again = 0
        self._taken_steps, self._compared = 0, ComparedStates()
        self._counted = 0
        self._divergences: list[Divergence] = []
        self._notes: list[str] = []
        self._edges_taken: Counter[int] = Counter()
        self._visits = np.zeros(len(graph.source), np.int64)
        self._not_driven: Counter[str] = Counter()
        self._left = iter(range(len(suite)))
        self._again_later: list[int] = []
        """Tests to be driven again, now that what they differed in is set aside."""
        self._failed: set[int] = set()
        self._may_set_aside = _MOST_SET_ASIDE if going_on else 0
        self._final = 0
        """Divergences after which nothing was set aside."""
        self._tolerance: Tolerance | None = None
        """None: as the system itself declares."""
        self._real_time = False
        self._suspects: dict[int, tuple[PathResult, int]] = {}
        """Tests that diverged while others ran, by number, with their tries, to repeat alone."""
        self._progress_at = time.monotonic()
        # The oracle's own objects: it finds them by identity.
        own = {state: state for state in oracle.initial_states()}
        starts = {test.initial: graph.states[test.initial] for test in suite.tests}
        self._starts = {number: own.get(state, state) for number, state in starts.items()}
        self._lock = threading.RLock()

    def tests(self, driver: Driver) -> None:
        """Drive the tests that nobody has taken yet; with a system that repeats itself, those one
        after the other that begin alike."""
        if driver.repeats:
            self._along_a_trail(driver)
            return
        while (number := self._next()) is not None:
            outcome, tries = self._drive(driver, number)
            self._count(driver, number, outcome, tries)

    def _along_a_trail(self, driver: Driver) -> None:
        tests = self._suite.tests
        codes = [self._codes(number) for number in range(len(tests))]
        order = sorted(range(len(tests)), key=lambda number: (tests[number].initial, codes[number]))
        marks = dict(zip(order, _partings([codes[number] for number in order]), strict=True))
        self._left = iter(order)
        trail = StepTrail()
        while (number := self._next()) is not None:
            path = self._path(number)
            self._prepare(driver)
            outcome = run_path(driver, *path, trail, marks[number], self._states(driver, number))
            if outcome.divergence is not None:
                outcome = self._again_from_the_beginning(driver, number, outcome)
            self._count(driver, number, outcome, 1)

    def _again_from_the_beginning(
        self, driver: Driver, number: int, outcome: PathResult
    ) -> PathResult:
        """A divergence after going back counts if it comes without that, too."""
        afresh = run_path(driver, *self._path(number), states=self._states(driver, number))
        if afresh.divergence is not None:
            return outcome
        driver.never_go_back()
        self._notes.append(
            f"test {number}: agreed only when the system was set up again: going back to a "
            "snapshot leaves something behind, and is left alone from here on"
        )
        return afresh

    def _prepare(self, driver: Driver) -> None:
        if self._tolerance is not None and driver.tolerance is not self._tolerance:
            driver.tolerate(self._tolerance)

    def _drive(self, driver: Driver, number: int, believed: int = TRIES) -> tuple[PathResult, int]:
        self._prepare(driver)
        states = self._states(driver, number)
        return run_until_believed(driver, *self._path(number), believed, states)

    def _path(self, number: int) -> tuple[State, list[Action]]:
        """A test's initial state and actions."""
        initial = self._starts[self._suite.tests[number].initial]
        return initial, [self._graph.actions[code] for code in self._codes(number)]

    def _states(self, driver: Driver, number: int) -> list[State]:
        """Where its actions lead; nothing if the system cannot be told how to choose."""
        if not driver.chooses:
            return []
        targets = self._graph.target[self._suite.tests[number].edges].tolist()
        return [self._graph.states[target] for target in targets]

    def _codes(self, number: int) -> list[int]:
        codes: list[int] = self._graph.action[self._suite.tests[number].edges].tolist()
        return codes

    def end(self, driver: Driver) -> None:
        """Add what this driver did; it drives no further test."""
        self._taken_steps += driver.steps_taken
        self._compared += driver.take_compared()

    # ---- in real time ----------------------------------------------------------------------

    def in_real_time(self, lanes: int) -> None:
        """Drive the tests side by side, and alone those that diverge there: the others may have
        been in their way. The longest come first, so that no lane is left alone with one."""
        self._real_time = True
        tests = self._suite.tests
        self._left = iter(sorted(range(len(tests)), key=lambda number: -len(tests[number])))
        while True:
            self._side_by_side(lanes)
            if not self._suspects:
                return
            self._alone()

    def _alone(self) -> None:
        """Drive the suspects, those first that were in time; what is left when enough tests have
        diverged is not run."""
        suspects, self._suspects = self._suspects, {}
        spoiled_before = self._spoiled
        for number, (outcome, tries) in sorted(suspects.items(), key=_late_last):
            if self._final >= self._stop_after:
                break
            is_driven = self._spoiled - spoiled_before < _MOST_SPOILED
            self._count_alone(number, outcome, tries, is_driven=is_driven)

    def _count_alone(
        self, number: int, outcome: PathResult, tries: int, *, is_driven: bool
    ) -> None:
        """With a system of its own: a test before it may have left something behind, and whoever
        replays its saved path meets nothing of that."""
        system = self._make_system()
        try:
            driver = Driver(system, self._oracle)
            driver.be_alone()
            if is_driven:
                believed = TRIES if outcome.late else 1  # those beside others count too
                outcome, further = self._drive(driver, number, believed)
                tries += further
            self._count(driver, number, outcome, tries)
            self.end(driver)
        finally:
            close(system)

    def _side_by_side(self, lanes: int) -> None:
        """Drive them in threads, each with a system of its own, which ends its calls itself:
        a watch, made of the process's timers, can stop the main thread only."""
        with ThreadPoolExecutor(lanes, "lane") as pool:
            running = [pool.submit(self._lane) for _ in range(lanes)]
            try:
                for lane in running:
                    lane.result()
            except BaseException:
                self._left = iter(())  # an interrupt too: the lanes end with their present test
                raise

    def _lane(self) -> None:
        system = self._make_system()
        try:
            driver = Driver(system, self._oracle, nullcontext())
            while (number := self._next()) is not None:
                outcome, tries = self._drive(driver, number)
                with self._lock:
                    if outcome.divergence is not None or outcome.spoiled:
                        self._suspects[number] = outcome, tries
                    else:
                        self._count(driver, number, outcome, tries)
            with self._lock:
                self.end(driver)
        except BaseException:
            self._left = iter(())  # the others need not wait to be told
            raise
        finally:
            close(system)

    def _next(self) -> int | None:
        with self._lock:
            believable = sum(not result.late for result, _ in self._suspects.values())
            if self._final + believable >= self._stop_after:
                return None
            if self._again_later:
                return self._again_later.pop()
            return next(self._left, None)

    # ---- counting --------------------------------------------------------------------------

    def _count(self, driver: Driver, number: int, outcome: PathResult, tries: int) -> None:
        self._counted += number not in self._failed
        self._steps += outcome.steps
        self._edges_taken.update(self._codes(number)[: outcome.steps])
        np.add.at(self._visits, self._suite.tests[number].edges[: outcome.steps], 1)
        if number in self._failed and (outcome.spoiled or outcome.divergence is None):
            pass  # it has failed already
        elif outcome.spoiled:
            self._spoiled += 1
            self._notes.append(
                f"test {number}: spoiled by a slow machine {tries} times: {outcome.late}"
            )
        elif outcome.divergence is not None:
            self._failed.add(number)
            self._diverged(driver, number, outcome.divergence)
        elif outcome.disabled:
            self._inconclusive += 1
            self._notes.append(
                f"test {number}: after {counted(outcome.steps, 'step')} the implementation had "
                "taken another branch that the spec allows, where "
                f"{outcome.disabled} is not enabled"
            )
        elif outcome.not_driven:
            self._not_driven[outcome.not_driven] += 1
        else:
            self._passed += 1
            if tries > 1:
                self._again += 1
                self._notes.append(f"test {number}: agreed at try {tries}; time is real")
        if time.monotonic() - self._progress_at > 0.2:
            self._progress_at = time.monotonic()
            self._emit(Progress("replay", self._counted, len(self._suite)))

    def result(self, seconds: float) -> ReplayResult:
        names: Counter[str] = Counter()
        for code, count in self._edges_taken.items():
            names[self._graph.actions[code].name] += count
        seen = self._passed + len(self._failed) + self._inconclusive + self._spoiled
        left = len(self._suite) - seen - self._not_driven.total()
        return ReplayResult(
            passed=self._passed,
            failed=len(self._failed),
            inconclusive=self._inconclusive,
            not_run=left,
            steps=self._steps,
            seconds=seconds,
            actions=dict(names),
            divergences=tuple(self._divergences),
            notes=tuple(self._notes[:20]),
            visits=self._visits,
            not_driven=dict(self._not_driven),
            spoiled=self._spoiled,
            again=self._again,
            steps_taken=self._taken_steps,
            compared=self._compared,
            set_aside=() if self._tolerance is None else tuple(self._tolerance.lines()),
        )

    def _diverged(self, driver: Driver, number: int, divergence: Divergence) -> None:
        """Keep it; set the difference aside, if that may be, and have the test driven again."""
        if self._final < self._stop_after:
            self._divergences.append(self._shorten(divergence))
        differences = self._smallest(driver, divergence)
        if not differences or not self._may_set_aside:
            self._final += 1
            return
        self._may_set_aside -= 1
        self._tolerance = driver.tolerance.with_readings(differences)
        self._again_later.append(number)

    def _smallest(self, driver: Driver, divergence: Divergence) -> tuple[Reading, ...]:
        """The fewest differences from a state that was allowed; none if they are too many."""
        if divergence.kind not in (BehaviourKind.NOT_ALLOWED, BehaviourKind.WRONG_INITIAL):
            return ()
        result = (driver.differing(state, divergence.observed) for state in divergence.allowed)
        fewest = min(result, key=len, default=())
        return fewest if len(fewest) <= _MOST_VARIABLES else ()

    def _shorten(self, divergence: Divergence) -> Divergence:
        driven = 0

        def attempt(initial: State, actions: Sequence[Action]) -> Divergence | None:
            nonlocal driven
            try:
                system = self._make_system()
            except UserError:
                return None  # it has broken its protocol, and cannot be set up again
            try:
                driver = Driver(system, self._oracle)
                self._prepare(driver)
                outcome = run_path(driver, initial, actions)
                driven += outcome.steps
                return None if outcome.late else outcome.divergence
            finally:
                close(system)

        def cheaply(initial: State, actions: Sequence[Action]) -> Divergence | None:
            if driven > _SHRINKING or not allows(self._oracle, initial, actions):
                return None
            return attempt(initial, actions)

        short = shortest_failure(self._oracle, divergence, attempt)
        # What fails only after a certain past is not on the shortest way. In real time each attempt
        # takes seconds, and several to be believed.
        return short if self._real_time else minimise(short, cheaply)


def _late_last(suspect: tuple[int, tuple[PathResult, int]]) -> tuple[bool, int]:
    number, (outcome, _) = suspect
    return bool(outcome.late), number


def _partings(paths: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    """Of each of these sorted paths, after how many steps later ones part from it; 0 is one."""
    partings: list[frozenset[int]] = []
    later: frozenset[int] = frozenset()
    following: Sequence[int] = ()
    for path in reversed(paths):
        shared = common_steps(path, following)
        later = frozenset([shared, *(depth for depth in later if depth < shared)])
        partings.append(later)
        following = path
    return partings[::-1]
