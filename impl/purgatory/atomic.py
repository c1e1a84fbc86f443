"""Values that change in one step, on locks of the injected concurrency: each change can be met."""

from __future__ import annotations

from ..concurrency import Lock


class AtomicBoolean:
    """A flag. `get` needs no lock: it may be out of date as soon as it returns."""

    __slots__ = ("_lock", "_value")

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._value = False

    def get(self) -> bool:
        """The flag now."""
        return self._value

    def compare_and_set(self, expected: bool, new: bool) -> bool:
        """Set the flag if it is as expected; whether this call did."""
        with self._lock:
            if self._value is not expected:
                return False
            self._value = new
            return True


class AtomicInteger:
    """A counter."""

    __slots__ = ("_lock", "_value")

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._value = 0

    def get(self) -> int:
        """The counter now."""
        return self._value

    def set(self, value: int) -> None:
        """Begin to count from `value`."""
        with self._lock:
            self._value = value

    def add(self, delta: int) -> None:
        """Count up, or down."""
        with self._lock:
            self._value += delta
