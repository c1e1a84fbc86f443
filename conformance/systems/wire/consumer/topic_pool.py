"""Topics that are made before the tests that read them.

A topic that appears is news to every group with regular expressions: it will resolve them again. So
where tests with such groups run side by side, topics are made for many of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.consumer.topics import TopicSet

MANY = 512
"""So many tests are served before topics are made again."""


class TopicPool:
    """Of all systems of this process that drive a broker along one model."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._left: list[TopicSet] = []

    def enter(self) -> None:
        """One more system will take topics."""
        with self._lock:
            self._users += 1

    def leave(self) -> Sequence[TopicSet]:
        """One fewer does; what nobody will take any more, which the last one gets."""
        with self._lock:
            self._users -= 1
            if self._users:
                return ()
            left, self._left = self._left, []
            return left

    def take(self, make: Callable[[], Sequence[TopicSet]]) -> TopicSet:
        """Topics that nobody has used; `make` gives more of them if there are none."""
        with self._lock:
            if not self._left:
                self._left.extend(make())
            return self._left.pop()


_POOLS: Final[dict[tuple[str, tuple[ModelTopic, ...]], TopicPool]] = {}
_ONE_AT_A_TIME: Final = Lock()


def pool_of(broker: str, topics: tuple[ModelTopic, ...]) -> TopicPool:
    """That of a broker (HOST:PORT) and of a model's topics."""
    with _ONE_AT_A_TIME:
        return _POOLS.setdefault((broker, topics), TopicPool())
