"""A real consumer that a driver steps: its network, and where its application stands still."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from greenlet import getcurrent

from conformance.systems.group.callbacks import RebalanceCallbacks
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.settings import (
    GROUP_ID,
    SESSION_TIMEOUT_MS,
    TOPIC,
    GroupSettings,
)
from conformance.systems.threads import InterruptibleThreads
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.errors import Errors
from impl.group.client.assignors.assignor import PartitionAssignor, PartitionCounts
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig
from impl.group.client.consumer_coordinator import ConsumerCoordinator
from impl.group.client.generation import Generation
from impl.group.client.network_client import (
    ClientRequest,
    ConsumerNetworkClient,
    ConsumerRequest,
    GroupRequest,
    GroupResponse,
)
from impl.group.client.request_future import RequestFuture
from impl.group.client.subscription_state import SubscriptionState
from impl.group.messages import FindCoordinatorRequest, FindCoordinatorResponse
from impl.types import BrokerEndPoint

ResponseT = TypeVar("ResponseT", bound=GroupResponse)
ResultT = TypeVar("ResultT")

FOREVER_MS = 2**40
_BROKER = BrokerEndPoint(0)
"""Members always reach the coordinator, whichever broker it is."""
_WITHOUT_GENERATION = 1
"""The subscription's version before it told the generation (KIP-792), as in the spec."""


class NamedAssignor(RangeAssignor):
    """Assigns ranges under any name: the spec has one way to assign, and names to agree on."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The protocol's name."""
        return self._name


class SteppedConsumer(ConsumerCoordinator):
    """A consumer that stands still before each join, where the spec has a step of its own."""

    may_join = False

    def __init__(
        self,
        config: GroupRebalanceConfig,
        consumer: ConsumerConfig,
        network: ConsumerNetworkClient,
        runtime: MemberRuntime,
        subscriptions: SubscriptionState,
        partition_counts: Callable[[], PartitionCounts],
    ) -> None:
        super().__init__(config, consumer, network, runtime, subscriptions, partition_counts)
        self._sent_in: dict[int, Generation] = {}

    def send_to_coordinator(
        self,
        request: GroupRequest,
        expects: type[ResponseT],
        handle: Callable[[ResponseT, Generation, RequestFuture[ResultT]], None],
        sent: Generation,
        timeout_ms: int | None = None,
        timed: Callable[[ResponseT, int], None] = lambda _response, _latency_ms: None,
    ) -> RequestFuture[ResultT]:
        """As a consumer's, and noted in which generation the request was made."""
        self._sent_in[id(request)] = sent
        return super().send_to_coordinator(request, expects, handle, sent, timeout_ms, timed)

    def sent_in(self, request: ConsumerRequest) -> Generation:
        """The generation that a request was made in, with which its answer will be compared."""
        return self._sent_in.pop(id(request))

    def rejoin_needed_or_pending(self) -> bool:
        """As a consumer's, but a join begins only when the driver lets it."""
        while wants := self.wants_to_join():
            if self.join_future is not None or self.may_join:
                break
            stand_still()
        return wants

    def wants_to_join(self) -> bool:
        """What a consumer without a driver would do."""
        return super().rejoin_needed_or_pending()


def stand_still() -> None:
    """The application's thread waits until the driver lets it go on."""
    driver = getcurrent().parent
    if driver is None:
        raise ActionRefused("only an application joins")
    driver.switch()


class Wire:
    """The transport of one consumer: FindCoordinator is answered at once, the rest handed over."""

    def __init__(self, hand_over: Callable[[ClientRequest], None]) -> None:
        self._hand_over = hand_over
        self.network: ConsumerNetworkClient | None = None

    def least_loaded_node(self) -> BrokerEndPoint | None:
        """The one broker there is for a member."""
        return _BROKER

    def connection_failed(self, _node: BrokerEndPoint) -> bool:
        """Never: a loss is told request by request."""
        return False

    def try_connect(self, _node: BrokerEndPoint) -> None:
        """It is connected."""

    def send(self, request: ClientRequest) -> None:
        """Answer or hand over."""
        if isinstance(request.request, FindCoordinatorRequest) and self.network is not None:
            self.network.respond(request, FindCoordinatorResponse(Errors.NONE, _BROKER))
        else:
            self._hand_over(request)

    def update_metadata(self) -> None:
        """Nothing changes."""

    def idle(self, _timeout_ms: int) -> None:
        """The application waits for an answer."""
        stand_still()


@dataclass(frozen=True, slots=True)
class ConstructedConsumer:
    """A consumer that was just constructed, and what it was made of."""

    consumer: SteppedConsumer
    network: ConsumerNetworkClient
    subscriptions: SubscriptionState
    clock: MockClock
    callbacks: RebalanceCallbacks
    _assignors: list[PartitionAssignor]

    def use(self, names: frozenset[str]) -> None:
        """From the next join on, tell of these assignors."""
        self._assignors[:] = [NamedAssignor(name) for name in sorted(names)]


def start_client(
    name: str,
    settings: GroupSettings,
    hand_over: Callable[[ClientRequest], None],
    concurrency: Concurrency,
) -> ConstructedConsumer:
    """A consumer of the one topic; every request but FindCoordinator is handed over."""
    clock = MockClock(1_000_000)
    wire = Wire(hand_over)
    network = wire.network = ConsumerNetworkClient(
        wire, clock, concurrency, request_timeout_ms=FOREVER_MS
    )
    subscriptions = SubscriptionState()
    subscriptions.subscribe([TOPIC])
    # The list is read at each join; to know an assignor, a consumer must have it now.
    assignors: list[PartitionAssignor] = [NamedAssignor(each) for each in settings.protocols]
    counts = {TOPIC: settings.partitions}

    def is_out() -> bool:
        return consumer.has_generation_reset(consumer.generation)

    # Threads that meet may reset the generation amid a callback.
    callbacks = RebalanceCallbacks(
        None if isinstance(concurrency, InterruptibleThreads) else is_out
    )
    consumer = SteppedConsumer(
        _config(name, settings),
        ConsumerConfig(
            assignors,
            enable_auto_commit=False,
            listener=callbacks.listener,
            subscription_version=_WITHOUT_GENERATION,
        ),
        network,
        MemberRuntime(clock, concurrency),
        subscriptions,
        lambda: counts,
    )
    return ConstructedConsumer(consumer, network, subscriptions, clock, callbacks, assignors)


def _config(name: str, settings: GroupSettings) -> GroupRebalanceConfig:
    return GroupRebalanceConfig(
        GROUP_ID,
        settings.instances[name],
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        heartbeat_interval_ms=1,
        retry_backoff_ms=1,
        retry_backoff_max_ms=1,
        client_id=name,
        join_version=settings.join_version(name),
    )
