"""The system under test: the wire server's broker without its sockets, and a client of one
partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.kafka.entities import api_of
from conformance.systems.protocol import Observation, SystemFailed
from conformance.systems.wire.data.driven import VARIABLES, DrivenPartition, marker_time
from conformance.systems.wire.data.requests import DataRequests
from conformance.systems.wire.port import ABSENT
from conformance.tla import Action, Value
from impl.clock import Clock, MockClock
from impl.fetch_session import MAX_SESSIONS
from impl.types import BrokerEndPoint
from impl.wire.broker import OFFERED, Broker, BrokerConfig
from impl.wire.entities import Received

TOPIC = "topic"
BEGINNING_MS = 1_700_000_000_000
"""When each test begins: a system that repeats itself asks no clock of the machine."""
_VERSIONS: Mapping[str, int] = {api: highest for api, (_, _, highest) in OFFERED.items()}


class MovedTime:
    """The time of a clock that stands still between the client's pauses."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def time(self) -> float:
        """Seconds since 1970."""
        return self._clock.milliseconds() / 1_000

    def sleep(self, seconds: float, /) -> None:
        """Move the clock."""
        self._clock.sleep(round(seconds * 1_000))


class LocalPort:
    """A broker in this process; each request is answered before the next is sent."""

    def __init__(self, clock: Clock, partitions: int = 1, slots: int = MAX_SESSIONS) -> None:
        endpoint = BrokerEndPoint(0, "localhost", 1)
        self.versions = {**_VERSIONS, "add_partitions_to_txn": 3}
        self.broker = Broker(
            BrokerConfig(endpoint, {TOPIC: partitions}, fetch_session_slots=slots),
            clock,
            lambda _ms, run: run(),
        )

    def offers(self, api: str) -> bool:
        """Whether the broker has the request."""
        return self.versions.get(api, ABSENT) != ABSENT

    def ask_body(self, body: Any) -> Any:
        """The answer. Raises SystemFailed if there is none."""
        (answer,) = self._answers(body)
        if answer is None:
            raise SystemFailed(f"{api_of(body)} was not answered")
        return answer

    def ask_all(self, bodies: Sequence[Any]) -> list[Any]:
        """The answers in their order."""
        return [self.ask_body(body) for body in bodies]

    def tell(self, body: Any) -> None:
        """Send what is not answered. Raises SystemFailed if it is."""
        if self._answers(body) != [None]:
            raise SystemFailed(f"{api_of(body)} with acks=0 was answered")

    def _answers(self, body: Any) -> list[Any]:
        received = Received(api_of(body), int(body.__version__), 1, "kconform", body)
        answers: list[Any] = []
        self.broker.handle(received, "/127.0.0.1", answers.append)
        return answers


class DataSystem:
    """A new broker for each test."""

    variables = VARIABLES
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._latest_time = marker_time(constants["Batches"])

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty partition."""
        clock = MockClock(BEGINNING_MS)
        port = LocalPort(clock)
        topic_id = port.broker.topic_id(TOPIC)
        assert topic_id is not None, "the broker was made with the topic"
        requests = DataRequests(port, TOPIC, topic_id, 0)

        def elect(of_partition: DataRequests) -> DataRequests:
            port.broker.logs.elect_leaders()
            return of_partition

        self._driven = DrivenPartition(
            requests, lambda _id: port, "t", self._latest_time, elect, MovedTime(clock)
        )

    def apply(self, action: Action) -> None:
        """See `DrivenPartition.apply`."""
        self._driven.apply(action)

    def observe(self) -> Observation:
        """See `DrivenPartition.observe`."""
        return self._driven.observe()


def create(constants: Mapping[str, Value]) -> DataSystem:
    """The system for a model's constants."""
    return DataSystem(constants)
