"""A scheduler of greenlets: every interruption point of a real thread becomes a step by name.

Scheduling points are: the start of a thread, each outermost lock acquisition, each wait on a
condition or an event, each join, and each `checkpoint`. Between two points a task runs alone, so a
schedule (the list of names stepped) fixes the whole execution. Code that runs outside any task is
the *main* task: it is never interrupted and may never block.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from greenlet import getcurrent, greenlet

from .concurrency import (
    Concurrency,
    Condition,
    Event,
    Lock,
    LockSide,
    ReadWriteLock,
    Thread,
)

FINISHED = "finished"


class SchedulerError(Exception):
    """The schedule asks for what is impossible: an unknown, finished or blocked task."""


class DeadlockError(SchedulerError):
    """Unfinished tasks remain, and none of them can take a step."""


def _always() -> bool:
    return True


class Task:
    """One thread of control: the point at which it stands, and whether it can go on.

    It may run a greenlet of its own, whose parent it is then; if that comes to a point, the task
    stands there with it, and goes on in it.
    """

    __slots__ = (
        "_greenlet",
        "_name",
        "_parked",
        "_scheduler",
        "_target",
        "finished",
        "point",
        "ready",
    )

    def __init__(
        self, scheduler: DeterministicScheduler, name: str, target: Callable[[], None]
    ) -> None:
        self._scheduler = scheduler
        self._name = name
        self._target = target
        self._greenlet: greenlet | None = None
        self._parked: greenlet | None = None
        self.point = "not started"
        self.ready: Callable[[], bool] = _always
        self.finished = False

    @property
    def name(self) -> str:
        """The name by which the schedule steps this task."""
        return self._name

    def start(self) -> None:
        """Make the task steppable; nothing of it runs yet."""
        if self._greenlet is not None:
            raise RuntimeError("threads can only be started once")
        self._greenlet = self._parked = greenlet(self._run)
        self.point = "start"
        self._scheduler.register(self)

    def join(self) -> None:
        """Wait for the end; from the main task this drives the scheduler until then."""
        self._scheduler.wait_for(f"join {self._name}", lambda: self.finished)

    def is_alive(self) -> bool:
        """True from start to end."""
        return self._greenlet is not None and not self.finished

    def park(self, point: str, ready: Callable[[], bool]) -> None:
        """Stand at `point` until stepped again, which needs `ready()`; called by the task."""
        assert self._greenlet is not None
        self.point = point
        self.ready = ready
        self._parked = getcurrent()
        parent = self._greenlet.parent
        assert parent is not None
        parent.switch()

    def resume(self) -> None:
        """Run up to the next point; an exception that ends the task comes out here."""
        assert self._greenlet is not None
        assert self._parked is not None
        self._greenlet.parent = getcurrent()
        self._parked.switch()

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self.finished = True
            self.point = FINISHED


class _Lock:
    __slots__ = ("_count", "_name", "_owner", "_scheduler")

    def __init__(self, scheduler: DeterministicScheduler, name: str) -> None:
        self._scheduler = scheduler
        self._name = name
        self._owner: object | None = None
        self._count = 0

    def acquire(self) -> None:
        me = getcurrent()
        if self._owner is not me:
            self._scheduler.stand_at(f"lock {self._name}", self.is_free)
            self._owner = me
        self._count += 1

    def release(self) -> None:
        if self._owner is not getcurrent():
            raise RuntimeError(f"lock {self._name} is released by a task that does not own it")
        self._count -= 1
        if self._count == 0:
            self._owner = None

    def __enter__(self) -> object:
        self.acquire()
        return self

    def __exit__(self, _type: object, _value: object, _traceback: object) -> None:
        self.release()

    def new_condition(self) -> Condition:
        return _Condition(self, self._scheduler, self._name)

    def is_free(self) -> bool:
        return self._owner is None

    def give_up(self) -> int:
        """Release however often it is held; returns how often."""
        count, self._count, self._owner = self._count, 0, None
        return count

    def take_back(self, count: int) -> None:
        self._owner, self._count = getcurrent(), count


class _ReadWriteLock:
    """Owners are greenlets, each with how often it has the lock."""

    __slots__ = ("_name", "_readers", "_scheduler", "_writers")

    def __init__(self, scheduler: DeterministicScheduler, name: str) -> None:
        self._scheduler = scheduler
        self._name = name
        self._readers: Counter[object] = Counter()
        self._writers: Counter[object] = Counter()

    @property
    def read(self) -> LockSide:
        return _Side(self._scheduler, f"{self._name} to read", self._readers, self._writers, ())

    @property
    def write(self) -> LockSide:
        name = f"{self._name} to write"
        return _Side(self._scheduler, name, self._writers, self._writers, self._readers)


class _Side:
    """`owners` have this side; writers and `others` keep it from who has neither."""

    __slots__ = ("_name", "_others", "_owners", "_scheduler", "_writers")

    def __init__(
        self,
        scheduler: DeterministicScheduler,
        name: str,
        owners: Counter[object],
        writers: Counter[object],
        others: Collection[object],
    ) -> None:
        self._scheduler = scheduler
        self._name = name
        self._owners = owners
        self._writers = writers
        self._others = others

    def __enter__(self) -> object:
        me = getcurrent()
        if me not in self._owners and me not in self._writers:
            self._scheduler.stand_at(f"lock {self._name}", self._is_free)
        self._owners[me] += 1
        return self

    def _is_free(self) -> bool:
        return not self._writers and not self._others

    def __exit__(self, _type: object, _value: object, _traceback: object) -> None:
        me = getcurrent()
        self._owners[me] -= 1
        if not self._owners[me]:
            del self._owners[me]


class _Condition:
    __slots__ = ("_lock", "_name", "_scheduler", "_signals")

    def __init__(self, lock: _Lock, scheduler: DeterministicScheduler, name: str) -> None:
        self._lock = lock
        self._scheduler = scheduler
        self._name = name
        self._signals = 0

    def wait(self, timeout_ms: int | None = None, /) -> bool:
        seen = self._signals
        held = self._lock.give_up()

        def ready() -> bool:
            notified = self._signals != seen
            return self._lock.is_free() and (notified or timeout_ms is not None)

        try:
            self._scheduler.stand_at(f"wait {self._name}", ready)
        finally:
            self._lock.take_back(held)
        if self._signals != seen:
            return True
        self._scheduler.elapse(timeout_ms)
        return False

    def notify_all(self) -> None:
        self._signals += 1


class _Event:
    __slots__ = ("_name", "_scheduler", "_set")

    def __init__(self, scheduler: DeterministicScheduler, name: str) -> None:
        self._scheduler = scheduler
        self._name = name
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout_ms: int | None = None, /) -> bool:
        if timeout_ms is None:
            self._scheduler.wait_for(f"await {self._name}", self.is_set)
        elif not self._set:
            self._scheduler.stand_at(f"await {self._name}", _always)
        if not self._set:
            self._scheduler.elapse(timeout_ms)
        return self._set


class _Scope:
    """The same scheduler, every name with a prefix."""

    __slots__ = ("_prefix", "_scheduler")

    def __init__(self, scheduler: DeterministicScheduler, prefix: str) -> None:
        self._scheduler = scheduler
        self._prefix = prefix

    def lock(self, name: str, /) -> Lock:
        return self._scheduler.lock(self._prefix + name)

    def read_write_lock(self, name: str, /) -> ReadWriteLock:
        return self._scheduler.read_write_lock(self._prefix + name)

    def event(self, name: str, /) -> Event:
        return self._scheduler.event(self._prefix + name)

    def thread(self, name: str, target: Callable[[], None], /) -> Thread:
        return self._scheduler.thread(self._prefix + name, target)

    def checkpoint(self, label: str, /) -> None:
        self._scheduler.checkpoint(label)


class DeterministicScheduler:
    """Concurrency in which nothing runs until `step` names a task.

    `elapse` is called with the time-out (ms) of a wait that ends without notification, so that a
    mock clock can follow. `history` is the schedule so far; `run_schedule(history)` on a fresh
    scheduler repeats the execution.
    """

    def __init__(self, elapse: Callable[[int], None] | None = None) -> None:
        self._tasks: dict[str, Task] = {}
        self._current: Task | None = None
        self._elapse = elapse
        self.history: list[str] = []

    def lock(self, name: str, /) -> Lock:
        """A reentrant lock owned by a greenlet."""
        return _Lock(self, name)

    def read_write_lock(self, name: str, /) -> ReadWriteLock:
        """Its owners are greenlets."""
        return _ReadWriteLock(self, name)

    def event(self, name: str, /) -> Event:
        """A one-way flag."""
        return _Event(self, name)

    def thread(self, name: str, target: Callable[[], None], /) -> Thread:
        """A task; it can be stepped once it is started."""
        return Task(self, name, target)

    def checkpoint(self, label: str, /) -> None:
        """Let others run here, unless called outside every task."""
        if self._current is not None:
            self._current.park(label, _always)

    def scoped(self, prefix: str) -> Concurrency:
        """This scheduler for one of several brokers: threads of equal names are kept apart."""
        return _Scope(self, prefix)

    def spawn(self, name: str, target: Callable[[], None]) -> None:
        """Start a task of the caller's own, for example a broker's request handler."""
        self.thread(name, target).start()

    def runnable(self) -> tuple[str, ...]:
        """Names of the tasks that can take a step now, in order of their start."""
        return tuple(
            name for name, task in self._tasks.items() if not task.finished and task.ready()
        )

    @property
    def current(self) -> str:
        """The task that runs now; empty in the main task."""
        return "" if self._current is None else self._current.name

    def point(self, name: str) -> str:
        """Where a task stands: `start`, `lock x`, `wait x`, a checkpoint's label, `finished`."""
        return self._task(name).point

    def step(self, name: str) -> str:
        """Run one task to its next scheduling point and return that point.

        Raises SchedulerError if the task is finished or blocked; an exception that ends the task
        is raised here.
        """
        task = self._task(name)
        if task.finished:
            raise SchedulerError(f"task {name!r} is finished")
        if not task.ready():
            raise SchedulerError(f"task {name!r} is blocked at {task.point!r}")
        self.history.append(name)
        outer, self._current = self._current, task
        try:
            task.resume()
        finally:
            self._current = outer
        return task.point

    def run_until(self, name: str, point: str, max_steps: int = 10_000) -> None:
        """Step one task until it stands at `point`, at least one step."""
        for _ in range(max_steps):
            if self.step(name) == point:
                return
        raise SchedulerError(f"task {name!r} did not reach {point!r} in {max_steps} steps")

    def run_schedule(self, names: Iterable[str]) -> None:
        """Step the named tasks in order."""
        for name in names:
            self.step(name)

    def run_random(self, seed: int, max_steps: int) -> list[str]:
        """Step randomly chosen runnable tasks; returns the schedule taken.

        Ends when all tasks are finished or after `max_steps`; raises DeadlockError when unfinished
        tasks are all blocked.
        """
        choose = random.Random(seed)
        start = len(self.history)
        for _ in range(max_steps):
            runnable = self.runnable()
            if not runnable:
                self._check_no_deadlock()
                break
            self.step(choose.choice(runnable))
        return self.history[start:]

    # What locks, events and tasks use.

    def register(self, task: Task) -> None:
        """Add a started task. A finished one of the same name gives way."""
        known = self._tasks.get(task.name)
        if known is not None and not known.finished:
            raise SchedulerError(f"a task named {task.name!r} is still running")
        self._tasks[task.name] = task

    def stand_at(self, point: str, ready: Callable[[], bool]) -> None:
        """A scheduling point: park the current task, or check that main would not block."""
        if self._current is not None:
            self._current.park(point, ready)
        elif not ready():
            raise SchedulerError(f"the main task would block at {point!r}: step the others first")

    def wait_for(self, point: str, done: Callable[[], bool]) -> None:
        """Stand at `point` until `done`; the main task drives all others meanwhile."""
        if self._current is not None:
            self._current.park(point, done)
            return
        while not done():
            runnable = self.runnable()
            if not runnable:
                raise DeadlockError(f"the main task waits at {point!r}; {self._blocked()}")
            for name in runnable:
                if not done() and name in self.runnable():
                    self.step(name)

    def elapse(self, timeout_ms: int | None) -> None:
        """A timed wait ended without notification."""
        if self._elapse is not None and timeout_ms is not None:
            self._elapse(timeout_ms)

    def _task(self, name: str) -> Task:
        task = self._tasks.get(name)
        if task is None:
            raise SchedulerError(f"no task named {name!r}; started are {list(self._tasks)}")
        return task

    def _check_no_deadlock(self) -> None:
        if any(not task.finished for task in self._tasks.values()):
            raise DeadlockError(self._blocked())

    def _blocked(self) -> str:
        stuck = {n: t.point for n, t in self._tasks.items() if not t.finished}
        return f"blocked tasks: {stuck}"
