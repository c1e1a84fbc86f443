"""Locks, conditions, events and threads as constructor arguments: every interleaving can be chosen.

Three makes share these protocols: `RealConcurrency` (operating system threads), `NoConcurrency`
(one caller steps everything; locks cost next to nothing) and
`impl.deterministic_scheduler.DeterministicScheduler` (greenlets, stepped by name).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection
from typing import Protocol


class Condition(Protocol):
    """Condition of one lock; both methods are called with that lock held."""

    def wait(self, timeout_ms: int | None = None, /) -> bool:
        """Release the lock, wait, take it again. True iff notified before the time-out."""
        ...

    def notify_all(self) -> None: ...


class Lock(Protocol):
    """Reentrant lock, used as a context manager. Its owner is a thread or a greenlet."""

    def acquire(self) -> None: ...

    def release(self) -> None: ...

    def __enter__(self) -> object: ...

    def __exit__(self, _type: object, _value: object, _traceback: object, /) -> None: ...

    def new_condition(self) -> Condition: ...


class LockSide(Protocol):
    """One side of a `ReadWriteLock`, used as a context manager; it can be taken again."""

    def __enter__(self) -> object: ...

    def __exit__(self, _type: object, _value: object, _traceback: object, /) -> None: ...


class ReadWriteLock(Protocol):
    """Many readers at a time, or one writer (ReentrantReadWriteLock).

    A writer may read; a reader that would write waits for itself for ever.
    """

    @property
    def read(self) -> LockSide: ...

    @property
    def write(self) -> LockSide: ...


class Event(Protocol):
    """One-way flag: set once, then every wait returns at once."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout_ms: int | None = None, /) -> bool:
        """True iff the flag is set when the wait ends."""
        ...


class Thread(Protocol):
    """A thread of control that runs its target once."""

    @property
    def name(self) -> str: ...

    def start(self) -> None: ...

    def join(self) -> None: ...

    def is_alive(self) -> bool: ...


class Concurrency(Protocol):
    """Makes the primitives of one world; objects of two worlds must not be mixed."""

    def lock(self, name: str, /) -> Lock: ...

    def read_write_lock(self, name: str, /) -> ReadWriteLock: ...

    def event(self, name: str, /) -> Event: ...

    def thread(self, name: str, target: Callable[[], None], /) -> Thread: ...

    def checkpoint(self, label: str, /) -> None:
        """A point without a lock at which a real thread can be interrupted: a request in flight."""
        ...


def _seconds(timeout_ms: int | None) -> float | None:
    return None if timeout_ms is None else timeout_ms / 1000.0


class _RealCondition:
    __slots__ = ("_condition",)

    def __init__(self, lock: threading.RLock) -> None:
        self._condition = threading.Condition(lock)

    def wait(self, timeout_ms: int | None = None, /) -> bool:
        return self._condition.wait(_seconds(timeout_ms))

    def notify_all(self) -> None:
        self._condition.notify_all()


class _RealLock:
    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def acquire(self) -> None:
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> object:
        self._lock.acquire()
        return self

    def __exit__(self, _type: object, _value: object, _traceback: object) -> None:
        self._lock.release()

    def new_condition(self) -> Condition:
        return _RealCondition(self._lock)


class _RealReadWriteLock:
    """Owners are thread identifiers, each with how often it has the lock."""

    __slots__ = ("_changed", "_readers", "_writers")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers: Counter[int] = Counter()
        self._writers: Counter[int] = Counter()

    @property
    def read(self) -> LockSide:
        return _RealSide(self._changed, self._readers, self._writers, ())

    @property
    def write(self) -> LockSide:
        return _RealSide(self._changed, self._writers, self._writers, self._readers)


class _RealSide:
    """`owners` have this side; writers and `others` keep it from who has neither."""

    __slots__ = ("_changed", "_others", "_owners", "_writers")

    def __init__(
        self,
        changed: threading.Condition,
        owners: Counter[int],
        writers: Counter[int],
        others: Collection[int],
    ) -> None:
        self._changed = changed
        self._owners = owners
        self._writers = writers
        self._others = others

    def __enter__(self) -> object:
        me = threading.get_ident()
        with self._changed:
            if me not in self._owners and me not in self._writers:
                self._changed.wait_for(lambda: not self._writers and not self._others)
            self._owners[me] += 1
        return self

    def __exit__(self, _type: object, _value: object, _traceback: object) -> None:
        me = threading.get_ident()
        with self._changed:
            self._owners[me] -= 1
            if not self._owners[me]:
                del self._owners[me]
            self._changed.notify_all()


class _RealEvent:
    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_ms: int | None = None, /) -> bool:
        return self._event.wait(_seconds(timeout_ms))


class RealConcurrency:
    """Operating system threads. Threads are daemons: they never keep the process alive."""

    __slots__ = ()

    def lock(self, _name: str, /) -> Lock:
        return _RealLock()

    def read_write_lock(self, _name: str, /) -> ReadWriteLock:
        return _RealReadWriteLock()

    def event(self, _name: str, /) -> Event:
        return _RealEvent()

    def thread(self, name: str, target: Callable[[], None], /) -> Thread:
        return threading.Thread(target=target, name=name, daemon=True)

    def checkpoint(self, _label: str, /) -> None:
        """Nothing: the operating system interrupts where it likes."""


class _NoCondition:
    __slots__ = ()

    def wait(self, _timeout_ms: int | None = None, /) -> bool:
        return False

    def notify_all(self) -> None:
        pass


class _NoLock:
    __slots__ = ()

    def acquire(self) -> None:
        pass

    def release(self) -> None:
        pass

    def __enter__(self) -> object:
        return self

    def __exit__(self, _type: object, _value: object, _traceback: object) -> None:
        pass

    def new_condition(self) -> Condition:
        return _NoCondition()


class _NoReadWriteLock:
    __slots__ = ("_lock",)

    def __init__(self, lock: _NoLock) -> None:
        self._lock = lock

    @property
    def read(self) -> LockSide:
        return self._lock

    @property
    def write(self) -> LockSide:
        return self._lock


class _NoEvent:
    __slots__ = ("_set",)

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, _timeout_ms: int | None = None, /) -> bool:
        return self._set


class _SteppedThread:
    """A thread that never runs by itself: whoever holds its object steps it."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def start(self) -> None:
        pass

    def join(self) -> None:
        pass

    def is_alive(self) -> bool:
        return False


class NoConcurrency:
    """Single caller: locks do nothing, waits return at once, threads never run by themselves."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = _NoLock()

    def lock(self, _name: str, /) -> Lock:
        return self._lock

    def read_write_lock(self, _name: str, /) -> ReadWriteLock:
        return _NoReadWriteLock(self._lock)

    def event(self, _name: str, /) -> Event:
        return _NoEvent()

    def thread(self, name: str, _target: Callable[[], None], /) -> Thread:
        return _SteppedThread(name)

    def checkpoint(self, _label: str, /) -> None:
        """Nothing: there is nobody to switch to."""
