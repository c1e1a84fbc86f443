"""A call that never ends: it is cut off, and seen as a divergence like what is raised."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from conformance.replay import engine
from conformance.replay.engine import Driver, run_path
from conformance.replay.explore import explore
from conformance.replay.machine import Exploration
from conformance.replay.oracle import SpecOracle
from conformance.replay.watch import CallWatch, StepNeverEnds, watch
from conformance.story.kind import BehaviourKind
from conformance.systems.protocol import Offers
from conformance.tla import Action, State, Value
from conformance.verdict import Verdict

COUNT, STOP = Action("Count", ()), Action("Stop", ())


def counting(state: State) -> list[tuple[Action, State]]:
    (count,) = state
    assert isinstance(count, int)
    return [(COUNT, (count + 1,)), (STOP, (0,))] if count < 20 else [(STOP, (0,))]


ORACLE = SpecOracle(("count",), [(0,)], counting)


def loop() -> None:
    while True:
        pass


def loop_whatever_is_raised() -> None:
    try:
        loop()
    except StepNeverEnds:
        loop()


def wait() -> None:
    """For a lock that nobody gives back: no time of the processor's."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


class Counter:
    """Counts; where the method of the name `where` is called at `at`, it does `what` first."""

    variables = ("count",)

    def __init__(self, where: str, what: Callable[[], None], at: int = 0) -> None:
        self.count = 0
        self._where, self._what, self._at = where, what, at

    def _met(self, where: str) -> None:
        if where == self._where and self.count == self._at:
            self._what()

    def reset(self, initial: Mapping[str, Value]) -> None:
        self._met("reset")
        self.count = 0

    def apply(self, action: Action) -> None:
        self._met("apply")
        self.count = 0 if action == STOP else self.count + 1

    def observe(self) -> Mapping[str, Value]:
        self._met("observe")
        return {"count": self.count}


class OfferingCounter(Counter):
    """Would count wherever it may."""

    offerable = frozenset({"Count"})

    def offers(self) -> frozenset[Action]:
        self._met("offers")
        return frozenset({COUNT} if self.count < 20 else set())


@pytest.fixture(autouse=True)
def quiet_after() -> Iterator[None]:
    """No timer of a test ticks in the next one."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGVTALRM, signal.SIGALRM)}
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def impatient(wall_seconds: float = 30.0) -> CallWatch:
    """By the clock patient, unless a test waits for that: the machine may be busy."""
    return CallWatch(processor_seconds=0.05, wall_seconds=wall_seconds)


@pytest.mark.parametrize("where", ["reset", "apply", "observe", "offers"])
@pytest.mark.parametrize("what", [loop, loop_whatever_is_raised, wait], ids=lambda f: f.__name__)
def test_a_call_that_never_ends_is_a_divergence(where: str, what: Callable[[], None]) -> None:
    system = OfferingCounter(where, what)
    assert isinstance(system, Offers)

    within = impatient(0.5 if what is wait else 30.0)

    divergence = run_path(Driver(system, ORACLE, within), (0,), [COUNT]).divergence

    assert divergence is not None
    assert divergence.kind is BehaviourKind.ENDLESS
    assert divergence.step == (1 if where == "apply" else 0)
    spent = "0.5 s" if what is wait else "0.05 s of the processor's time"
    assert divergence.detail.endswith(f"StepNeverEnds: the step has not ended after {spent}\n")


def test_many_calls_that_end_are_not_cut_off() -> None:
    driver = Driver(Counter("", loop), ORACLE, impatient())
    until = time.process_time() + 0.3
    while time.process_time() < until:
        assert run_path(driver, (0,), [COUNT, COUNT, STOP]).divergence is None


def test_what_is_not_a_call_takes_its_time_and_the_timers_stop() -> None:
    within = impatient()
    with within:
        pass
    # The one timer counts what this process computes, the other what the clock says: both go on
    # until they have rung once more.
    until = time.monotonic() + 0.3
    while time.monotonic() < until or signal.getitimer(signal.ITIMER_VIRTUAL) != (0.0, 0.0):
        assert time.monotonic() < until + 10
        sum(range(10_000))
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with pytest.raises(StepNeverEnds), within:
        loop()


def test_two_watches_take_turns() -> None:
    one, other = impatient(), impatient()
    for each in (one, other, one):
        with pytest.raises(StepNeverEnds), each:
            loop()


def test_an_alarm_that_was_set_before_stays() -> None:
    rung: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 60.0)
    with pytest.raises(StepNeverEnds), impatient():
        loop()
    assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60.0
    signal.raise_signal(signal.SIGALRM)
    assert rung == [signal.SIGALRM]


def test_outside_of_the_main_thread_there_are_no_signals_and_no_watch() -> None:
    made: list[object] = []
    thread = threading.Thread(target=lambda: made.append(watch()))
    thread.start()
    thread.join()
    assert isinstance(watch(), CallWatch)
    assert not isinstance(made[0], CallWatch)


def test_an_exploration_ends_with_the_first_step_that_never_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "watch", impatient)
    exploration = Exploration(ORACLE, lambda: Counter("apply", loop, at=3))

    result = explore(exploration, ("Count", "Stop"), examples=50, steps=20)

    assert result.verdict is Verdict.FAIL
    assert result.divergence is not None
    assert result.divergence.kind is BehaviourKind.ENDLESS
    assert result.divergence.actions[:3] == (COUNT, COUNT, COUNT)
    assert result.divergence.step == 4
    assert len(exploration.failures) == 1


def test_a_process_that_has_driven_a_system_ends_in_peace() -> None:
    """Python's shutdown, made longer than a tick: its handlers of signals are gone by then."""
    program = """
import time
from conformance.replay.watch import CallWatch

class Slow:
    def __del__(self):
        until = time.process_time() + 0.3
        while time.process_time() < until:
            pass

kept = Slow()
kept.itself = kept
with CallWatch(0.05, 0.05):
    pass
"""
    run = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)

    assert run.returncode == 0
