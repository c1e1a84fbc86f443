"""A member process: a real consumer over a network that hands over every request."""

from __future__ import annotations

from collections.abc import Callable

from greenlet import getcurrent, greenlet

from conformance.systems.group.coordinator import rebalance_timeout_ms
from conformance.systems.group.exchange import Exchange
from conformance.systems.group.settings import GROUP_ID, TOPIC, Settings
from conformance.systems.protocol import ActionRefused
from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.errors import ApiException, Errors
from impl.group.client.assignors.assignor import PartitionAssignor
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig
from impl.group.client.consumer_coordinator import ConsumerCoordinator
from impl.group.client.errors import DisconnectException, FencedInstanceIdException
from impl.group.client.generation import Generation
from impl.group.client.heartbeat_thread import HeartbeatThread
from impl.group.client.network_client import ClientRequest, ConsumerNetworkClient, GroupResponse
from impl.group.client.subscription_state import OffsetAndMetadata, SubscriptionState
from impl.group.client.timer import Timer
from impl.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
)
from impl.types import BrokerEndPoint, TopicPartition

_BROKER = BrokerEndPoint(0)
"""Members always reach the coordinator, whichever broker it is."""
_FOREVER_MS = 2**40
_SESSION_TIMEOUT_MS = 1_800_000
_JOINS_ONCE, _JOINS_TWICE = 3, 9
"""Versions of JoinGroup: before and after MEMBER_ID_REQUIRED (KIP-394)."""
_WITHOUT_GENERATION = 1
"""The subscription's version before it told the generation (KIP-792), as in the spec."""
_TURNS = 5
"""Turns of the heartbeat thread until its request is out, the look-up of a coordinator included."""
_COMMITTED = {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)}


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

    def rejoin_needed_or_pending(self) -> bool:
        """As a consumer's, but a join begins only when the driver lets it."""
        while self.wants_to_join() and self.join_future is None and not self.may_join:
            _stand_still()
        return self.wants_to_join()

    def wants_to_join(self) -> bool:
        """What a consumer without a driver would do."""
        return super().rejoin_needed_or_pending()


def _stand_still() -> None:
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
        _stand_still()


class Process:
    """One process of the spec, through restarts; `channel` and `heartbeat` are what it sent."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self._settings = settings
        self.protocols = settings.protocols_of[name]
        self.channel: Exchange | None = None
        self._start()

    def _start(self) -> None:
        settings, name = self._settings, self.name
        instance = settings.instances[name]
        self.failed = False
        self.heartbeat: Exchange | None = None
        self.clock = MockClock(1_000_000)
        concurrency = NoConcurrency()
        wire = Wire(self._sent)
        self.network = wire.network = ConsumerNetworkClient(
            wire, self.clock, concurrency, request_timeout_ms=_FOREVER_MS
        )
        self.subscriptions = SubscriptionState()
        self.subscriptions.subscribe([TOPIC])
        # The list is read at each join; to know an assignor, a consumer must have it now.
        self._assignors: list[PartitionAssignor] = [
            NamedAssignor(each) for each in settings.protocols
        ]
        config = GroupRebalanceConfig(
            GROUP_ID,
            instance,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=rebalance_timeout_ms(settings),
            heartbeat_interval_ms=1,
            retry_backoff_ms=1,
            retry_backoff_max_ms=1,
            client_id=name,
            join_version=_JOINS_TWICE if settings.joins_twice or instance else _JOINS_ONCE,
        )
        counts = {TOPIC: settings.partitions}
        self.consumer = SteppedConsumer(
            config,
            ConsumerConfig(
                self._assignors,
                enable_auto_commit=False,
                subscription_version=_WITHOUT_GENERATION,
            ),
            self.network,
            MemberRuntime(self.clock, concurrency),
            self.subscriptions,
            lambda: counts,
        )
        self._use(self.protocols)
        self._application = greenlet(self._run_application)

    def _use(self, names: frozenset[str]) -> None:
        self.protocols = names
        self._assignors[:] = [NamedAssignor(name) for name in sorted(names)]

    def _sent(self, request: ClientRequest) -> None:
        sent = self.consumer.generation
        if isinstance(request.request, HeartbeatRequest | OffsetCommitRequest):
            self.heartbeat = Exchange(request, sent, abandoned=False)
        else:
            leaves = isinstance(request.request, LeaveGroupRequest)
            self.channel = Exchange(request, sent, abandoned=leaves)

    # ---- the application ---------------------------------------------------------------------

    def _run_application(self) -> None:
        """KafkaConsumer.poll in a loop, until a fatal error."""
        try:
            while True:
                self.consumer.poll(Timer(self.clock, _FOREVER_MS))
                _stand_still()
        except ApiException:
            self.failed = True

    def _go_on(self, *, may_join: bool = False) -> None:
        """Let the application run until it waits, or would join without being told to."""
        self.consumer.may_join = may_join
        self._application.parent = getcurrent()
        self._application.switch()
        self.consumer.may_join = False

    def send_join_group(self) -> None:
        """AbstractCoordinator.joinGroupIfNeeded up to the request."""
        if self.channel is not None or self.consumer.join_future is not None:
            raise ActionRefused(f"{self.name} is joining already")
        self._go_on(may_join=True)
        if self.channel is None:
            raise ActionRefused(f"{self.name} did not join")

    def complete_join(self) -> None:
        """AbstractCoordinator.joinGroupIfNeeded sees the completed future."""
        future = self.consumer.join_future
        if future is None or not future.succeeded:
            raise ActionRefused(f"{self.name} has no completed join")
        self._go_on()

    def send_offset_commit(self) -> None:
        """The application commits a position."""
        self.consumer.commit_offsets_async(_COMMITTED, self._committed)
        if self.heartbeat is None:
            raise ActionRefused(f"{self.name} did not commit")

    def _committed(self, _offsets: object, error: Exception | None) -> None:
        if isinstance(error, FencedInstanceIdException):
            self.failed = True

    def leave_group(self) -> None:
        """Unsubscribe, and subscribe again: AbstractCoordinator.maybeLeaveGroup."""
        self.consumer.maybe_leave_group("the consumer unsubscribed")

    def request_rejoin(self) -> None:
        """AbstractCoordinator.requestRejoin."""
        self.consumer.request_rejoin("the application asked for it")

    def change_protocols(self, names: frozenset[str]) -> None:
        """From its next join on the consumer tells of other assignors."""
        self._use(names)
        self.consumer.request_rejoin("the assignors have changed")

    def restart(self) -> None:
        """A new process; what the old one has sent may still arrive."""
        left = self.channel
        if left is not None and left.is_under_way and self._settings.late_requests:
            left.abandoned = True
        if left is not None and not left.abandoned:
            self.channel = None
        self._start()

    # ---- the heartbeat thread ----------------------------------------------------------------

    def send_heartbeat(self) -> None:
        """HeartbeatThread.run, once the interval is over."""
        thread = self.consumer.heartbeat_thread
        if thread is None or self.heartbeat is not None:
            raise ActionRefused(f"{self.name} sends no heartbeats now")
        # The application polls, else it would be taken for dead (max.poll.interval.ms).
        self.consumer.poll_heartbeat(self.clock.milliseconds())
        wait = self.consumer.time_to_next_heartbeat(self.clock.milliseconds())
        if wait > _SESSION_TIMEOUT_MS:
            raise ActionRefused(f"{self.name} is in no generation to send heartbeats for")
        self.clock.sleep(wait)
        if not any(self._beat(thread) for _ in range(_TURNS)):
            raise ActionRefused(f"{self.name} sent no heartbeat")

    def _beat(self, thread: HeartbeatThread) -> bool:
        """One turn; whether the heartbeat is out."""
        thread.run_once()
        self.network.poll_no_wakeup()
        return self.heartbeat is not None

    # ---- answers -----------------------------------------------------------------------------

    def process(self, exchange: Exchange | None) -> None:
        """Hand the answer in, and call back."""
        if exchange is None or exchange.response is None:
            raise ActionRefused(f"no answer has arrived at {self.name}")
        self._respond(exchange, exchange.response)

    def lose(self, exchange: Exchange | None) -> None:
        """The request or its answer is lost: the connection broke."""
        if exchange is None:
            raise ActionRefused(f"nothing of {self.name} is in flight")
        if exchange.abandoned:
            self.channel = None
        else:
            self._respond(exchange, DisconnectException("the connection broke"))

    def abandon(self) -> None:
        """The client gives up on its request, which arrives nevertheless."""
        exchange = self.channel
        if exchange is None or not exchange.is_under_way or exchange.abandoned:
            raise ActionRefused(f"{self.name} waits for no request")
        self.lose(exchange)
        exchange.abandoned = True
        self.channel = exchange

    def _respond(self, exchange: Exchange, response: GroupResponse | Exception) -> None:
        if exchange is self.channel:
            self.channel = None
        else:
            self.heartbeat = None
        self.network.respond(exchange.request, response)
        self.network.poll_no_wakeup()
        self.consumer.invoke_completed_offset_commit_callbacks()
        self._let_application_see()

    def _let_application_see(self) -> None:
        """The application learns at once what ended the heartbeat thread, or its join."""
        try:
            self.consumer.poll_heartbeat(self.clock.milliseconds())
        except ApiException:
            self.failed = True
        future = self.consumer.join_future
        if future is not None and future.failed:
            self._go_on()
        self._find_coordinator()
        self._forget_disconnected()

    def _find_coordinator(self) -> None:
        """What either thread does next if the step cost the coordinator; the answer is there."""
        self.consumer.ensure_coordinator_ready(Timer(self.clock, _FOREVER_MS))

    def _forget_disconnected(self) -> None:
        """What the client has given up with its connection is not answered any more."""
        waiting = self.network.in_flight()
        if self.heartbeat is not None and self.heartbeat.request not in waiting:
            self.heartbeat = None
        channel = self.channel
        if channel is not None and not channel.abandoned and channel.request not in waiting:
            self.channel = None

    # ---- what it would do --------------------------------------------------------------------

    def next_steps(self) -> list[str]:
        """What the process would do by itself, by the spec's action names; changes nothing."""
        if self.failed:
            return []
        consumer, steps = self.consumer, []
        if consumer.join_future is None:
            if self.channel is None and consumer.wants_to_join():
                steps.append("SendJoinGroup")
        elif consumer.join_future.succeeded:
            steps.append("CompleteJoin")
        thread = consumer.heartbeat_thread
        beats = thread is not None and thread.enabled and not consumer.state.has_not_joined_group
        if beats and self.heartbeat is None and self._settings.heartbeats:
            steps.append("SendHeartbeat")
        return steps

    @property
    def generation(self) -> Generation:
        """AbstractCoordinator.generation."""
        return self.consumer.generation
