"""The system under test: fetch sessions of the wire server's broker, without its sockets."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.data.system import BEGINNING_MS, TOPIC, LocalPort, MovedTime
from conformance.systems.protocol import Observation
from conformance.systems.wire.data import session_cache
from conformance.systems.wire.data.requests import DataRequests
from conformance.systems.wire.data.session_cache import DrivenCache
from conformance.systems.wire.data.sessions import VARIABLES, DrivenSessions, partitions_of
from conformance.tla import Action, Value
from impl.clock import MockClock
from impl.fetch_session import MAX_SESSIONS, MIN_EVICTION_MS


class SessionSystem:
    """A new broker for each test."""

    variables = VARIABLES
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._names = partitions_of(constants)

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty partitions, and no session."""
        clock = MockClock(BEGINNING_MS)
        partitions = _partitions(clock, len(self._names))
        self._driven = DrivenSessions(dict(enumerate(partitions)), MovedTime(clock))

    def apply(self, action: Action) -> None:
        """See `DrivenSessions.apply`."""
        self._driven.apply(action)

    def observe(self) -> Observation:
        """See `DrivenSessions.observe`."""
        return self._driven.observe()


class SessionCacheSystem:
    """A new broker for each test, with few slots in one shard."""

    variables = session_cache.VARIABLES
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._constants = constants
        slots = constants["Slots"]
        assert isinstance(slots, int), "a number in every model"
        self._slots = slots

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """No session."""
        self._clock = MockClock(BEGINNING_MS)
        count = session_cache.partitions_of(self._constants)
        partitions = _partitions(self._clock, count, self._slots)
        self._driven = DrivenCache(
            partitions, self._constants, 1, lambda: self._clock.sleep(MIN_EVICTION_MS + 1)
        )

    def apply(self, action: Action) -> None:
        """See `DrivenCache.apply`; no two steps are taken at one time."""
        self._clock.sleep(1)
        self._driven.apply(action)

    def observe(self) -> Observation:
        """See `DrivenCache.observe`."""
        return self._driven.observe()


def _partitions(clock: MockClock, count: int, slots: int = MAX_SESSIONS) -> list[DataRequests]:
    port = LocalPort(clock, count, slots)
    topic_id = port.broker.topic_id(TOPIC)
    assert topic_id is not None, "the broker was made with the topic"
    return [DataRequests(port, TOPIC, topic_id, index) for index in range(count)]


def create(constants: Mapping[str, Value]) -> SessionSystem | SessionCacheSystem:
    """The system for a model's constants."""
    if session_cache.SIGN in constants:
        return SessionCacheSystem(constants)
    return SessionSystem(constants)
