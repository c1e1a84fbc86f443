"""A consumer of one partition, its application, and the connections over which it asks."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from conformance.systems.protocol import ActionRefused
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.consumer.classic_kafka_consumer import ClassicKafkaConsumer, CommitTimeoutException
from impl.errors import ApiException, Errors, KafkaException
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig, RebalanceListener
from impl.group.client.consumer_coordinator import ConsumerCoordinator
from impl.group.client.consumer_protocol import Assignment, serialize_assignment
from impl.group.client.errors import (
    CommitFailedException,
    RebalanceInProgressException,
    RetriableCommitFailedException,
    WakeupException,
    is_retriable,
)
from impl.group.client.network_client import ClientRequest, ConsumerNetworkClient
from impl.group.client.subscription_state import SubscriptionState
from impl.group.client.timer import Timer
from impl.group.messages import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from impl.types import BrokerEndPoint, TopicPartition

TOPIC = "topic"
PARTITION = TopicPartition(TOPIC, 0)
BROKER = BrokerEndPoint(0)
FOREVER_MS = 2**50
REBALANCE_TIMEOUT_MS = 2**40
INTERVAL_MS = 10_000
BACKOFF_MS = 1_000
CALL_TIMEOUT_MS = 2 * INTERVAL_MS

RequestT = TypeVar("RequestT")

_HAS_ENDED: ContextVar[bool] = ContextVar("has_ended", default=False)
"""Whether the application was ended amid a call: each greenlet has a value."""


def outcome(error: Exception | None) -> str:
    """The spec's name of how a commit ended. Raises what no commit ends with."""
    match error:
        case None:
            return "NONE"
        case RebalanceInProgressException():
            return "REBALANCING"
        case RetriableCommitFailedException():
            return "RETRIABLE"
        case CommitFailedException():
            return "FAILED"
        case CommitTimeoutException():
            return "TIMEOUT"
        case WakeupException():
            return "WAKEUP"
        case ApiException() | KafkaException():
            return "RETRIABLE" if is_retriable(error) else "FAILED"
        case _:
            raise error


class CoordinatorConnection:
    """The transport: the group's answers that the spec leaves out are there at once."""

    network: ConsumerNetworkClient

    def least_loaded_node(self) -> BrokerEndPoint | None:
        """The one broker."""
        return BROKER

    def connection_failed(self, _node: BrokerEndPoint) -> bool:
        """Never: a loss is told request by request."""
        return False

    def try_connect(self, _node: BrokerEndPoint) -> None:
        """It is connected."""

    def send(self, request: ClientRequest) -> None:
        """Keep what the spec answers; the rest is answered."""
        match request.request:
            case SyncGroupRequest(protocol_type=kind, protocol_name=name):
                own = serialize_assignment(Assignment((PARTITION,)))
                self.network.respond(request, SyncGroupResponse(Errors.NONE, kind, name, own))
            case LeaveGroupRequest():
                self.network.respond(request, LeaveGroupResponse(Errors.NONE))
            case _:
                pass

    def update_metadata(self) -> None:
        """Nothing changes."""

    def idle(self, _timeout_ms: int) -> None:
        """The application waits for something to come; one that has ended waits no more."""
        driver = getcurrent().parent
        if driver is None:
            raise ActionRefused("only the application waits")
        if _HAS_ENDED.get():
            raise GreenletExit
        try:
            driver.switch()
        except GreenletExit:
            _HAS_ENDED.set(True)
            raise


@dataclass(slots=True)
class Callbacks:
    """The last call of the application's ConsumerRebalanceListener."""

    last: str = "none"

    def _called(self, name: str) -> Callable[[frozenset[TopicPartition]], None]:
        def note(partitions: frozenset[TopicPartition]) -> None:
            if partitions != {PARTITION}:
                raise ImpossibleCall(f"{name} is called with {set(partitions)}")
            self.last = name

        return note

    @property
    def listener(self) -> RebalanceListener:
        """What the consumer calls."""
        names = ("assigned", "revoked", "lost")
        return RebalanceListener(*(self._called(name) for name in names))


class ImpossibleCall(Exception):
    """The application is called with what it does not own."""


class LeavingCoordinator(ConsumerCoordinator):
    """Notes when close is past its commit."""

    has_left = False

    def on_leave_prepare(self) -> None:
        """As a consumer's."""
        self.has_left = True
        super().on_leave_prepare()


class Client:
    """One consumer, its clock, and its application, which may stand still in a call."""

    def __init__(self, concurrency: Concurrency, *, auto_commit: bool) -> None:
        self.clock = MockClock(1_000_000)
        connection = CoordinatorConnection()
        self.network = connection.network = ConsumerNetworkClient(
            connection, self.clock, concurrency, request_timeout_ms=FOREVER_MS
        )
        self.subscriptions = SubscriptionState()
        self.callbacks = Callbacks()
        self.coordinator = LeavingCoordinator(
            CONFIG,
            ConsumerConfig(
                [RangeAssignor()],
                enable_auto_commit=auto_commit,
                auto_commit_interval_ms=INTERVAL_MS,
                listener=self.callbacks.listener,
            ),
            self.network,
            MemberRuntime(self.clock, concurrency),
            self.subscriptions,
            lambda: {TOPIC: 1},
        )
        self.consumer = ClassicKafkaConsumer(self.coordinator, self.network, self.subscriptions)
        self.result = "none"
        self._thread: greenlet | None = None

    def timer(self, timeout_ms: int) -> Timer:
        """A timer on the consumer's clock."""
        return Timer(self.clock, timeout_ms)

    def is_waiting(self) -> bool:
        """Whether the application stands still in a call."""
        return self._thread is not None

    def call(self, call: Callable[[], object]) -> None:
        """The application calls; `result` says how it ended, once it has."""

        def run() -> None:
            try:
                call()
            except (ApiException, KafkaException, CommitTimeoutException) as error:
                self.result = outcome(error)
            else:
                self.result = "NONE"

        self._thread = greenlet(run)
        self.go_on()

    def go_on(self) -> None:
        """Something has come: let a call that stands still look at it."""
        if self._thread is not None:
            self._thread.parent = getcurrent()
            self._thread.switch()
            if self._thread.dead:
                self._thread = None

    def end(self) -> None:
        """End a call that stands still. What its clean-up does to the consumer is of no use."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.parent = getcurrent()
            thread.throw()

    def in_flight(self, kind: type[RequestT]) -> list[tuple[ClientRequest, RequestT]]:
        """Requests of a kind without an answer, the oldest first."""
        return [
            (request, request.request)
            for request in self.network.in_flight()
            if isinstance(request.request, kind)
        ]

    def oldest(self, kind: type[RequestT]) -> tuple[ClientRequest, RequestT]:
        """The oldest request of a kind. Raises ActionRefused if there is none."""
        requests = self.in_flight(kind)
        if not requests:
            raise ActionRefused(f"no {kind.__name__} is in flight")
        return requests[0]


CONFIG = GroupRebalanceConfig(
    "group",
    session_timeout_ms=FOREVER_MS,
    rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
    heartbeat_interval_ms=1,
    retry_backoff_ms=BACKOFF_MS,
    # Calls that wait try again at once: the spec has no such waits.
    retry_backoff_max_ms=0,
)
