"""A consumer that reads: its objects, and the connections to the group and to the leaders."""

from __future__ import annotations

from conformance.systems.positions.client import (
    BACKOFF_MS,
    BROKER,
    CONFIG,
    FOREVER_MS,
    TOPIC,
    CoordinatorConnection,
)
from conformance.systems.protocol import ActionRefused
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.consumer.classic_kafka_consumer import ClassicKafkaConsumer, Fetching
from impl.consumer.consumer_metadata import ConsumerMetadata
from impl.consumer.fetcher import ConsumerRecord, Fetcher
from impl.consumer.offset_fetcher import OffsetFetcher
from impl.errors import ApiException, Errors, KafkaException
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.config import MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig
from impl.group.client.consumer_coordinator import ConsumerCoordinator
from impl.group.client.network_client import ClientRequest, ConsumerNetworkClient
from impl.group.client.subscription_state import (
    LeaderAndEpoch,
    LogTruncationException,
    NoOffsetForPartitionException,
    OffsetResetStrategy,
    SubscriptionState,
)
from impl.group.client.timer import Timer
from impl.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetFetchRequest,
)
from impl.types import BrokerEndPoint, TopicPartition


def topic_partition(number: int) -> TopicPartition:
    """The spec's partition."""
    return TopicPartition(TOPIC, number)


def leader_of(number: int) -> BrokerEndPoint:
    """Each partition has a leader of its own."""
    return BrokerEndPoint(number)


def error_name(error: Exception | None) -> str:
    """The spec's name of what a call raised, or an answer found. Raises what has none."""
    match error:
        case None:
            return "none"
        case LogTruncationException():
            return "LOG_TRUNCATION"
        case NoOffsetForPartitionException():
            return "NO_OFFSET"
        case ApiException():
            return error.error.name
        case _:
            raise error


class PartitionLeadersConnection(CoordinatorConnection):
    """The transport: the coordinator is found at once, all else is the spec's to answer."""

    def send(self, request: ClientRequest) -> None:
        """Keep what the spec answers."""
        if isinstance(request.request, FindCoordinatorRequest):
            self.network.respond(request, FindCoordinatorResponse(Errors.NONE, BROKER))

    def idle(self, _timeout_ms: int) -> None:
        """Raises ActionRefused: a poll of the spec waits for nothing."""
        raise ActionRefused("the application waits")


class AssignedCoordinator(ConsumerCoordinator):
    """A member whose rebalances are the spec's: the group's part of a poll is ConsumerCommits'."""

    def poll(self, timer: Timer) -> bool:
        """Call back what has come."""
        timer.update()
        self.network.poll_no_wakeup()
        return True


class ReadingConsumer:
    """One consumer and its clock."""

    def __init__(
        self,
        concurrency: Concurrency,
        policy: OffsetResetStrategy,
        max_poll_records: int,
        *,
        group_assigns: bool,
    ) -> None:
        self.clock = MockClock(1_000_000)
        connection = PartitionLeadersConnection()
        self.network = connection.network = ConsumerNetworkClient(
            connection, self.clock, concurrency, request_timeout_ms=FOREVER_MS
        )
        self.subscriptions = SubscriptionState(policy, concurrency.lock("subscriptions"))
        self.metadata = ConsumerMetadata()
        coordinator = AssignedCoordinator if group_assigns else ConsumerCoordinator
        self.coordinator = coordinator(
            CONFIG,
            ConsumerConfig([RangeAssignor()], enable_auto_commit=False),
            self.network,
            MemberRuntime(self.clock, concurrency),
            self.subscriptions,
            dict,
        )
        self.offset_fetcher = OffsetFetcher(
            self.network, self.metadata, self.subscriptions, self.clock, BACKOFF_MS
        )
        self.fetcher = Fetcher(self.network, self.metadata, self.subscriptions, max_poll_records)
        fetching = Fetching(self.metadata, self.offset_fetcher, self.fetcher)
        self.consumer = ClassicKafkaConsumer(
            self.coordinator, self.network, self.subscriptions, fetching
        )
        self.records: list[ConsumerRecord] = []
        self.error: Exception | None = None

    def update_metadata(self, epochs: dict[int, int]) -> None:
        """Metadata comes: each partition's leader epoch."""
        self.metadata.update(
            {
                topic_partition(number): LeaderAndEpoch(leader_of(number), epoch)
                for number, epoch in epochs.items()
            }
        )

    def forget_result(self) -> None:
        """The spec has the result of a poll for one step."""
        self.records, self.error = [], None

    def poll(self) -> None:
        """The application polls without waiting; what it has queued is sent in any case."""
        try:
            self.records = self.consumer.poll(Timer(self.clock, 0))
        except KafkaException as error:
            self.error = error
        self.network.transmit_sends()

    def asked_of_leaders(self) -> list[ClientRequest]:
        """Requests to leaders in flight, the oldest first."""
        return [
            request
            for request in self.network.in_flight()
            if not isinstance(request.request, OffsetFetchRequest)
        ]
