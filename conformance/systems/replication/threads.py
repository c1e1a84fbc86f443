"""The threads of a broker: whose steps the actions are, and how one interrupts another."""

from __future__ import annotations

from collections.abc import Callable

from conformance.systems.protocol import ActionRefused
from conformance.tla.values import Action
from impl.concurrency import Event, Lock, NoConcurrency, Thread
from impl.deterministic_scheduler import FINISHED, DeadlockError, DeterministicScheduler
from impl.errors import ApiException

_FETCHER = {
    "TruncateToHighWatermark": 0,
    "SendEpochRequest": 0,
    "SendFetch": 0,
    "ProcessEpochResponse": 0,
    "ProcessFetchResponse": 0,
    "LoseMessage": 0,
}
"""Steps of a follower's one fetcher thread; the argument that names the broker."""

_HANDLERS = {
    "BecomeLeader": 0,
    "BecomeFollower": 0,
    "UpdateIsr": 0,
    "AppendAsLeader": 0,
    "HandleEpochRequest": 0,
    "HandleFetch": 0,
    "ShrinkIsr": 0,
    "SubmitShrinkIsr": 0,
    "ProcessAlterPartition": 0,
}
"""Steps of request handlers and of the scheduler, each of which may have a thread of its own.

Not ExpandIsr: to take it apart from the fetch that it belongs to, the adapter lets the leader see
a follower unfenced for its time, which the fetches of other threads would see too.
"""


_ELECTIONS = frozenset({"BecomeLeader", "BecomeFollower"})
_QUESTIONS = frozenset({"HandleEpochRequest", "HandleFetch"})


def concurrent(running: Action, between: Action, *, restarts: bool) -> bool:
    """Whether two threads of one broker take these.

    A broker that has just started makes its Partition before that hears of its leader epoch, and
    answers a question in between with UNKNOWN_LEADER_EPOCH. In the spec, both are one step: where
    brokers restart, no question interrupts an election.
    """
    if restarts and running.name in _ELECTIONS and between.name in _QUESTIONS:
        return False
    steps = {**_FETCHER, **_HANDLERS}
    if running.name not in steps or between.name not in steps:
        return False
    if running.args[steps[running.name]] != between.args[steps[between.name]]:
        return False
    if running.name in _FETCHER and between.name in _FETCHER:
        return False
    # The second of two appends has another offset than the one that its action names.
    return not running.name == between.name == "AppendAsLeader"


_OF_FETCHES = frozenset({"BecomeLeader", "BecomeFollower", "ShrinkIsr", "SubmitShrinkIsr"})


def in_parts(running: Action, between: Action) -> bool:
    """Whether the other one of the two may come between the parts of a fetch's handling.

    Partition.fetchRecords reads under the lock, and counts the follower under the lock again: who
    stops to lead, or shrinks the ISR, in between answers a fetch that moves no high watermark, or
    tells of an older one. In the spec HandleFetch is one step.
    """
    names = {running.name, between.name}
    return "HandleFetch" in names and not names.isdisjoint(_OF_FETCHES)


class InterruptibleThreads:
    """Concurrency in which the environment's steps can be stopped at every lock they take.

    The broker's own threads never run by themselves: what they would do are actions of the spec.
    """

    def __init__(self) -> None:
        self._scheduler = DeterministicScheduler()
        self._stepped = NoConcurrency()

    def lock(self, name: str, /) -> Lock:
        """A lock at which a step can be stopped."""
        return self._scheduler.lock(name)

    def event(self, name: str, /) -> Event:
        """Nobody waits: threads that never run have ended when they are asked to."""
        return self._stepped.event(name)

    def thread(self, name: str, target: Callable[[], None], /) -> Thread:
        """A thread that never runs by itself."""
        return self._stepped.thread(name, target)

    def checkpoint(self, label: str, /) -> None:
        """A point at which a step can be stopped."""
        self._scheduler.checkpoint(label)

    def interrupt(
        self, running: Callable[[], None], point: int, between: Callable[[], None]
    ) -> bool:
        """As Interruptible.interrupt says, of two calls."""
        scheduler = self._scheduler
        scheduler.spawn("running", _unless_refused(running))
        reached = all(scheduler.step("running") != FINISHED for _ in range(point))
        scheduler.spawn("between", _unless_refused(between))
        for name in ("between", "running"):
            while scheduler.point(name) != FINISHED:
                self._step(name, "running" if name == "between" else "between")
        return reached

    def _step(self, name: str, other: str) -> None:
        """Let `name` go on, or the other one where that holds what `name` waits for."""
        runnable = self._scheduler.runnable()
        if not runnable:
            raise DeadlockError("each of the two waits for what the other holds")
        self._scheduler.step(name if name in runnable else other)


def _unless_refused(step: Callable[[], None]) -> Callable[[], None]:
    """A step that comes too late is refused, or answered with an error: that is no failure."""

    def run() -> None:
        try:
            step()
        except (ActionRefused, ApiException):
            return

    return run
