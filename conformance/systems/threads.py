"""Threads of an implementation of ours that stand still where they are told to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.protocol import ActionRefused
from conformance.tla import Action
from impl.concurrency import Event, Lock, NoConcurrency, ReadWriteLock, Thread
from impl.deterministic_scheduler import FINISHED, DeadlockError, DeterministicScheduler
from impl.errors import ApiException


class ThreadNeverStarted(Exception):
    """The implementation has made a thread and forgotten to start it."""


class WholeSections:
    """The part of `Interruptible` that is the same where each action is one section of one thread.

    Every thread goes on, nothing is bounded but by what the threads do, and no step is seen in
    parts.
    """

    @property
    def voluntary(self) -> frozenset[str]:
        """None."""
        return frozenset()

    @property
    def unconditional(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def in_parts(self, _running: Action, _between: Action) -> bool:
        """Never."""
        return False


class StartedThreads:
    """A single caller, as NoConcurrency; a thread that was made has to be started.

    What a thread would do are actions, which can be taken whether its code started it or not: in a
    broker one that was never started does nothing at all.
    """

    __slots__ = ("_not_started", "_plain")

    def __init__(self) -> None:
        self._plain = NoConcurrency()
        self._not_started: dict[_SteppedThread, None] = {}

    def lock(self, name: str, /) -> Lock:
        """A lock that does nothing."""
        return self._plain.lock(name)

    def read_write_lock(self, name: str, /) -> ReadWriteLock:
        """A lock that does nothing."""
        return self._plain.read_write_lock(name)

    def event(self, name: str, /) -> Event:
        """An event for which nobody waits."""
        return self._plain.event(name)

    def thread(self, name: str, _target: Callable[[], None], /) -> Thread:
        """A thread that never runs by itself."""
        made = _SteppedThread(name, self._not_started)
        self._not_started[made] = None
        return made

    def checkpoint(self, _label: str, /) -> None:
        """Nothing: there is nobody to switch to."""

    @property
    def step(self) -> str:
        """See `InterruptibleThreads.step`: nothing is interrupted."""
        return ""

    def demand_started(self) -> None:
        """Between two steps: raises ThreadNeverStarted if a thread was made only."""
        for thread in self._not_started:
            raise ThreadNeverStarted(thread.name)


class _SteppedThread:
    __slots__ = ("_name", "_not_started")

    def __init__(self, name: str, not_started: dict[_SteppedThread, None]) -> None:
        self._name = name
        self._not_started = not_started

    @property
    def name(self) -> str:
        return self._name

    def start(self) -> None:
        self._not_started.pop(self, None)

    def join(self) -> None:
        """It never ran."""

    def is_alive(self) -> bool:
        return False


class InterruptibleThreads:
    """Concurrency in which the environment's steps can be stopped at every lock they take.

    A system's own threads never run by themselves: what they would do are actions of the spec.
    """

    def __init__(self) -> None:
        self._scheduler = DeterministicScheduler()
        self._stepped = StartedThreads()

    def lock(self, name: str, /) -> Lock:
        """A lock at which a step can be stopped."""
        return self._scheduler.lock(name)

    def read_write_lock(self, name: str, /) -> ReadWriteLock:
        """A lock at which a step can be stopped."""
        return self._scheduler.read_write_lock(name)

    @property
    def step(self) -> str:
        """Which of two steps asks: `running`, `between`; empty if nothing is interrupted."""
        return self._scheduler.current

    def event(self, name: str, /) -> Event:
        """Nobody waits: threads that never run have ended when they are asked to."""
        return self._stepped.event(name)

    def thread(self, name: str, target: Callable[[], None], /) -> Thread:
        """A thread that never runs by itself."""
        return self._stepped.thread(name, target)

    def demand_started(self) -> None:
        """See `StartedThreads.demand_started`."""
        self._stepped.demand_started()

    def checkpoint(self, label: str, /) -> None:
        """A point at which a step can be stopped."""
        self._scheduler.checkpoint(label)

    def stand_until(self, label: str, ready: Callable[[], bool]) -> None:
        """Let the step that calls this wait for what another thread does."""
        self._scheduler.wait_for(label, ready)

    def interrupt(
        self, running: Callable[[], None], point: int, between: Callable[[], None]
    ) -> str:
        """As Interruptible.interrupt says, of two calls."""
        scheduler = self._scheduler
        scheduler.spawn("running", _unless_refused(running))
        stops = (scheduler.step("running") for _ in range(point))
        stood_at = list(takewhile(lambda stop: stop != FINISHED, stops))
        scheduler.spawn("between", _unless_refused(between))
        for name in ("between", "running"):
            while scheduler.point(name) != FINISHED:
                self._step(name, "running" if name == "between" else "between")
        return stood_at[-1] if len(stood_at) == point else ""

    def _step(self, name: str, other: str) -> None:
        """Let `name` go on, or the other one where that holds what `name` waits for."""
        runnable = self._scheduler.runnable()
        if not runnable:
            raise DeadlockError("each of the two waits for what the other holds")
        self._scheduler.step(name if name in runnable else other)


def interrupted(
    threads: StartedThreads | InterruptibleThreads,
    apply: Callable[[Action], None],
    running: Action,
    point: int,
    between: Action,
) -> str:
    """As Interruptible.interrupt says, of two actions. ActionRefused if nothing can be stopped."""
    if not isinstance(threads, InterruptibleThreads):
        raise ActionRefused("the steps of this system cannot be interrupted")
    return threads.interrupt(lambda: apply(running), point, lambda: apply(between))


def take_two_threads(threads: Iterable[frozenset[str]], running: Action, between: Action) -> bool:
    """Whether two threads take these actions; each is given by the names of its actions."""
    known = list(threads)
    own = [names for names in known if running.name in names]
    others = [names for names in known if between.name in names]
    return bool(own and others) and own != others


def _unless_refused(step: Callable[[], None]) -> Callable[[], None]:
    """A step that comes too late is refused, or answered with an error: that is no failure."""

    def run() -> None:
        try:
            step()
        except (ActionRefused, ApiException):
            return

    return run
