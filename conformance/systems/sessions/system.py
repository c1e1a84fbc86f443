"""The system under test: fetch sessions of the wire server's broker, without its sockets."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.data.system import BEGINNING_MS, TOPIC, LocalPort, MovedTime
from conformance.systems.protocol import Observation
from conformance.systems.wire.data.requests import DataRequests
from conformance.systems.wire.data.sessions import VARIABLES, DrivenSessions, partitions_of
from conformance.tla import Action, Value
from impl.clock import MockClock


class SessionSystem:
    """A new broker for each test."""

    variables = VARIABLES
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._names = partitions_of(constants)

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty partitions, and no session."""
        clock = MockClock(BEGINNING_MS)
        port = LocalPort(clock, len(self._names))
        topic_id = port.broker.topic_id(TOPIC)
        assert topic_id is not None, "the broker was made with the topic"
        self._driven = DrivenSessions(
            {name: DataRequests(port, TOPIC, topic_id, name) for name in self._names},
            MovedTime(clock),
        )

    def apply(self, action: Action) -> None:
        """See `DrivenSessions.apply`."""
        self._driven.apply(action)

    def observe(self) -> Observation:
        """See `DrivenSessions.observe`."""
        return self._driven.observe()


def create(constants: Mapping[str, Value]) -> SessionSystem:
    """The system for a model's constants."""
    return SessionSystem(constants)
