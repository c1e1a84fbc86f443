"""What is to be done once no lock is held any more (ActionQueue).

An operation's completion can be an event for others. Trying those at once would take their locks
under the completed one's lock, and two such threads can wait for each other (KAFKA-6653,
KAFKA-7697). So the check is queued, and the thread does it after it has released its locks.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ..concurrency import Concurrency

_log = logging.getLogger(__name__)

Action = Callable[[], object]


class Actions(Protocol):
    """Where actions wait; who steps a broker's threads by hand gives one of its own."""

    def add(self, action: Action, /) -> None:
        """Do `action` later."""

    def try_complete_actions(self) -> None:
        """Do what is queued. The caller must hold no lock."""


class ActionQueue:
    """Actions of all threads of a broker: whoever comes first does them."""

    __slots__ = ("_actions", "_lock")

    def __init__(self, concurrency: Concurrency) -> None:
        self._lock = concurrency.lock("action queue")
        self._actions: deque[Action] = deque()

    def __len__(self) -> int:
        return len(self._actions)

    def pending(self) -> tuple[Action, ...]:
        """What is queued, the next first."""
        return tuple(self._actions)

    def add(self, action: Action) -> None:
        """Do `action` later."""
        with self._lock:
            self._actions.append(action)

    def try_complete_actions(self) -> None:
        """Do what is queued now; what the actions add is left to the next call.

        The caller must hold no lock. An action that raises is logged.
        """
        for _ in range(len(self._actions)):
            action = self._take()
            if action is None:
                return
            try:
                action()
            except Exception as error:  # noqa: BLE001 - the others' actions are not to suffer
                _log.error("a delayed action failed", exc_info=error)

    def _take(self) -> Action | None:
        with self._lock:
            return self._actions.popleft() if self._actions else None
