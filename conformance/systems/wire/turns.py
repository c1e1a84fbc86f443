"""Tests that run side by side, and an event that strikes all of them at once.

A fail-over moves the coordinator of every group, so each test that has one waits at it until all
others of its kind wait too, or have ended; then the event happens once, and all go on.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock
from typing import Final


class Turns:
    """The tests of one suite: each begins, waits at most once for the event, and ends."""

    def __init__(self, event: Callable[[], None]) -> None:
        self._event = event
        self._changed = Condition()
        self._running = 0
        """Tests that neither wait for the event nor for their begin."""
        self._late = 0
        self._waiting = 0
        self._begins = 0
        """How often those that were held have been let in."""
        self._events = 0
        self._failure: Exception | None = None

    def begin(self, *, late: bool) -> None:
        """A test begins; one that must not be kept waiting (`late`) when all others wait."""
        with self._changed:
            if not late:
                self._running += 1
                return
            self._late += 1
            turn = self._begins
            self._go_on()
            self._changed.wait_for(lambda: self._begins != turn)

    def end(self) -> None:
        """A test has ended, wherever it was."""
        with self._changed:
            self._running -= 1
            self._go_on()

    def wait(self) -> None:
        """Wait for the event. Raises what it raised."""
        with self._changed:
            self._running -= 1
            self._waiting += 1
            turn = self._events
            self._go_on()
            self._changed.wait_for(lambda: self._events != turn)
            if self._failure is not None:
                raise self._failure

    def _go_on(self) -> None:
        if self._running:
            return
        if self._late:
            self._running, self._late = self._late, 0
            self._begins += 1
        elif self._waiting:
            self._failure = self._outcome()
            self._running, self._waiting = self._waiting, 0
            self._events += 1
        self._changed.notify_all()

    def _outcome(self) -> Exception | None:
        try:
            self._event()
        except Exception as error:  # noqa: BLE001  it is raised again, in each test's thread
            return error
        return None


def turns_of(place: str, event: Callable[[], None]) -> Turns:
    """The turns of all tests of this process whose event strikes this place."""
    with _ONE_AT_A_TIME:
        return _TURNS.setdefault(place, Turns(event))


_TURNS: Final[dict[str, Turns]] = {}
_ONE_AT_A_TIME: Final = Lock()
