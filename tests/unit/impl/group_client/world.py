"""One member over a network that answers from a script (AbstractCoordinatorTest's set-up)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from impl.clock import MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.errors import Errors
from impl.group.client.abstract_coordinator import INT_MAX, AbstractCoordinator
from impl.group.client.assignors.assignor import PartitionAssignor
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.buffer import ByteBuffer
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig, RebalanceListener
from impl.group.client.consumer_coordinator import ConsumerCoordinator
from impl.group.client.network_client import (
    ClientRequest,
    ConsumerNetworkClient,
    GroupResponse,
)
from impl.group.client.subscription_state import SubscriptionState
from impl.group.client.timer import Timer
from impl.group.messages import (
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from impl.types import BrokerEndPoint

NODE = BrokerEndPoint(0)
COORDINATOR = BrokerEndPoint(INT_MAX - NODE.id)
MEMBER, LEADER = "memberId", "leaderId"
TYPE, NAME = "dummy", "dummy-subprotocol"
FOREVER = 2**62
CONFIG = GroupRebalanceConfig(
    group_id="dummy-group",
    session_timeout_ms=10_000,
    rebalance_timeout_ms=60_000,
    heartbeat_interval_ms=3_000,
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
)

RequestT = TypeVar("RequestT")
Scripted = GroupResponse | Exception


class ScriptedTransport:
    """Answers each request with the next prepared answer; without one it stays in flight."""

    def __init__(self, clock: MockClock) -> None:
        self.clock = clock
        self.network: ConsumerNetworkClient | None = None
        self.sent: list[ClientRequest] = []
        self.prepared: deque[Scripted] = deque()
        self.no_brokers = False
        self.connected: list[BrokerEndPoint] = []
        self.unreachable_until: dict[BrokerEndPoint, int] = {}
        self.on_send: Callable[[ClientRequest], None] = lambda _request: None
        self.moves_clock = True

    def least_loaded_node(self) -> BrokerEndPoint | None:
        return None if self.no_brokers else NODE

    def connection_failed(self, node: BrokerEndPoint) -> bool:
        return self.clock.milliseconds() < self.unreachable_until.get(node, 0)

    def try_connect(self, node: BrokerEndPoint) -> None:
        self.connected.append(node)

    def send(self, request: ClientRequest) -> None:
        self.sent.append(request)
        self.on_send(request)
        if self.prepared:
            assert self.network is not None
            self.network.respond(request, self.prepared.popleft())

    def update_metadata(self) -> None:
        pass

    def idle(self, timeout_ms: int) -> None:
        if self.moves_clock:
            self.clock.sleep(timeout_ms)


class DummyCoordinator(AbstractCoordinator):
    """Counts the callbacks of the contract."""

    supports_type = True
    assigns: Mapping[str, bytes] = {MEMBER: b"assigned"}
    callback_raises: Exception | None = None
    prepare_ready = True

    def __init__(
        self, config: GroupRebalanceConfig, network: ConsumerNetworkClient, runtime: MemberRuntime
    ) -> None:
        super().__init__(config, network, runtime)
        self.calls: list[str] = []
        self.delivered: list[bytes] = []

    @property
    def protocol_type(self) -> str:
        return TYPE

    def metadata(self) -> tuple[JoinGroupRequestProtocol, ...]:
        return (JoinGroupRequestProtocol(NAME, b"meta"),)

    def perform_assignment(
        self,
        leader_id: str,
        protocol: str,
        members: tuple[JoinGroupResponseMember, ...],
        skip_assignment: bool,
    ) -> Mapping[str, bytes]:
        if self.callback_raises is not None:
            raise self.callback_raises
        return self.assigns

    def on_join_prepare(self, timer: Timer, generation_id: int, member_id: str) -> bool:
        self.calls.append("prepare")
        assert len(self.calls) < 200, "the member joins for ever"
        return self.prepare_ready

    def on_join_complete(
        self, generation_id: int, member_id: str, protocol: str, assignment: ByteBuffer
    ) -> None:
        self.calls.append("complete")
        self.delivered.append(assignment.read())
        if self.callback_raises is not None:
            error, self.callback_raises = self.callback_raises, None
            raise error


@dataclass
class World:
    """A member, its clock, and the script of what the brokers answer."""

    config: GroupRebalanceConfig = CONFIG
    concurrency: Concurrency = field(default_factory=NoConcurrency)
    clock: MockClock = field(default_factory=MockClock)

    def __post_init__(self) -> None:
        self.transport = ScriptedTransport(self.clock)
        self.network = ConsumerNetworkClient(self.transport, self.clock, self.concurrency)
        self.transport.network = self.network
        self.runtime = MemberRuntime(self.clock, self.concurrency, seed=7)
        self.member = DummyCoordinator(self.config, self.network, self.runtime)

    def timer(self, ms: int = FOREVER) -> Timer:
        return Timer(self.clock, ms)

    def prepare(self, *responses: Scripted) -> None:
        self.transport.prepared.extend(responses)

    def requests(self, kind: type[RequestT]) -> list[RequestT]:
        return [s.request for s in self.transport.sent if isinstance(s.request, kind)]

    def answer(self, response: Scripted) -> None:
        """Answer the oldest request in flight, and call back."""
        self.network.poll_no_wakeup()
        assert self.network.respond(self.network.in_flight()[0], response)
        self.network.poll_no_wakeup()

    def know_coordinator(self) -> None:
        self.prepare(found())
        assert self.member.ensure_coordinator_ready(self.timer(0))

    def join(self, generation_id: int = 1, member_id: str = MEMBER) -> None:
        """From nothing to STABLE, as a follower."""
        if self.member.coordinator_unknown():
            self.know_coordinator()
        self.prepare(joined(generation_id, member_id), synced())
        assert self.member.ensure_active_group(self.timer(50))

    def beat(self) -> bool:
        """One turn of the heartbeat thread."""
        thread = self.member.heartbeat_thread
        assert thread is not None
        return thread.run_once()


class ConsumerWorld(World):
    """A consumer of topic `t` instead of a dummy."""

    def __init__(
        self,
        assignors: tuple[PartitionAssignor, ...] | None = None,
        listener: RebalanceListener | None = None,
        config: GroupRebalanceConfig = CONFIG,
        auto_commit: bool = True,
    ) -> None:
        super().__init__(config)
        self.counts = {"t": 2}
        self.subscriptions = SubscriptionState()
        self.subscriptions.subscribe(["t"])
        settings = ConsumerConfig(
            assignors or (RangeAssignor(),),
            enable_auto_commit=auto_commit,
            listener=listener or RebalanceListener(),
        )
        self.consumer = ConsumerCoordinator(
            config, settings, self.network, self.runtime, self.subscriptions, lambda: self.counts
        )


def found(error: Errors = Errors.NONE) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(error, NODE if error is Errors.NONE else None)


def joined(
    generation_id: int = 1,
    member_id: str = MEMBER,
    leader: str = LEADER,
    error: Errors = Errors.NONE,
    protocol_type: str | None = TYPE,
    name: str | None = NAME,
    members: tuple[JoinGroupResponseMember, ...] = (),
) -> JoinGroupResponse:
    return JoinGroupResponse(
        error, member_id, generation_id, protocol_type, name, leader, members=members
    )


def join_failed(error: Errors, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error, member_id)


def synced(
    error: Errors = Errors.NONE,
    assignment: bytes = b"mine",
    protocol_type: str | None = TYPE,
    name: str | None = NAME,
) -> SyncGroupResponse:
    return SyncGroupResponse(error, protocol_type, name, assignment)


def beaten(error: Errors = Errors.NONE) -> HeartbeatResponse:
    return HeartbeatResponse(error)


def left() -> LeaveGroupResponse:
    return LeaveGroupResponse(Errors.NONE)


def static(instance: str = "i1") -> GroupRebalanceConfig:
    return replace(CONFIG, group_instance_id=instance)
