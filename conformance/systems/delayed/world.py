"""A purgatory with what its operations wait for, in which nothing moves but by the scheduler."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from conformance.systems.delayed.settings import DelayedSettings, OperationSettings
from conformance.systems.protocol import ActionRefused
from impl.clock import MockClock
from impl.concurrency import Lock
from impl.deterministic_scheduler import DeterministicScheduler
from impl.purgatory.action_queue import ActionQueue
from impl.purgatory.delayed_operation import DelayedOperation
from impl.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from impl.purgatory.system_timer import SystemTimer

DELAY_MS = 10
"""Long enough for three wheels of two buckets."""


class Executor:
    """What the timer has handed over, run one at a time by the executor's thread."""

    def __init__(self) -> None:
        self.tasks: deque[Callable[[], None]] = deque()

    def schedule_once(self, _name: str, task: Callable[[], None]) -> None:
        """Keep the task."""
        self.tasks.append(task)

    def run_next(self) -> None:
        """Run the task that has waited longest."""
        self.tasks.popleft()()


@dataclass(frozen=True, slots=True)
class QueuedCheck:
    """A queued look at a key, which a completion has set off."""

    purgatory: DelayedOperationPurgatory[Operation]
    key: str

    def __call__(self) -> None:
        self.purgatory.check_and_complete(self.key)


class Operation(DelayedOperation):
    """Waits until enough of its keys' events have come; counts what is called."""

    def __init__(self, world: World, settings: OperationSettings) -> None:
        lock = world.lock(settings.lock)
        super().__init__(DELAY_MS, world.scheduler, lock, name=settings.name)
        self._world = world
        self.settings = settings
        self.called = 0
        self.expired = 0

    def try_complete(self) -> bool:
        """Look at the state under its lock."""
        with self._world.state:
            come = len(self._world.ready & frozenset(self.settings.keys))
        if come >= self.settings.needs:
            return self.force_complete()
        self._world.scheduler.checkpoint("looked")
        return False

    def on_complete(self) -> None:
        """Count it; what it sets off is checked later."""
        self._world.scheduler.checkpoint("callback")
        self.called += 1
        if self.settings.triggers is not None:
            self._world.happen(self.settings.triggers)
            self._world.actions.add(QueuedCheck(self._world.purgatory, self.settings.triggers))

    def on_expiration(self) -> None:
        """Count it."""
        self._world.scheduler.checkpoint("expiration")
        self.expired += 1


class World:
    """One purgatory and the threads' bodies; the timer's wheels are so small that all are used."""

    def __init__(self, settings: DelayedSettings) -> None:
        self.keys = settings.keys
        self.scheduler = DeterministicScheduler()
        self.clock = MockClock()
        self.executor = Executor()
        self.timer = SystemTimer(
            "delayed", self.clock, self.scheduler, wheel_size=2, executor=self.executor
        )
        self.purgatory: DelayedOperationPurgatory[Operation] = DelayedOperationPurgatory(
            "delayed",
            self.timer,
            self.scheduler,
            purge_interval=settings.purge_interval,
            shards=1,
            reaper_enabled=False,
        )
        self.actions = ActionQueue(self.scheduler)
        self.state = self.scheduler.lock("state")
        self.ready: frozenset[str] = frozenset()
        self._locks: dict[str, Lock] = {}
        self.operations = {each.name: Operation(self, each) for each in settings.operations}

    def lock(self, name: str) -> Lock:
        """An operation's lock; operations of one group share theirs."""
        return self._locks.setdefault(name, self.scheduler.lock(name))

    def happen(self, key: str) -> None:
        """The key's event comes."""
        with self.state:
            self.ready |= {key}

    def request(self, name: str) -> Callable[[], None]:
        """A request's thread: try the operation, else keep it; then what has been set off."""

        def run() -> None:
            operation = self.operations[name]
            self.purgatory.try_complete_else_watch(operation, operation.settings.keys)
            self.actions.try_complete_actions()

        return run

    def completer(self, key: str) -> Callable[[], None]:
        """A thread that makes a key's event happen and then tells the purgatory."""

        def run() -> None:
            self.happen(key)
            self.purgatory.check_and_complete(key)
            self.actions.try_complete_actions()

        return run

    def canceller(self, key: str) -> Callable[[], None]:
        """A thread that drops a key."""

        def run() -> None:
            self.purgatory.cancel_for_key(key)

        return run

    def reaper(self, due: int) -> Callable[[], None]:
        """One turn of the reaper, after the next `due` deadlines have passed.

        It raises ActionRefused if fewer operations wait.
        """

        def run() -> None:
            waiting = self.timer.pending()
            if due > len(waiting):
                raise ActionRefused(f"{len(waiting)} operations wait for their time-out")
            if due:
                passed_ms = waiting[due - 1].deadline_ms - self.clock.milliseconds()
                self.clock.sleep(max(passed_ms, 0))
            self.purgatory.advance_clock(0)

        return run
