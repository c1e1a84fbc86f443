"""The system under test: a member and the topics that it knows, driven by ConsumerTopics.tla."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.positions.client import (
    BROKER,
    CONFIG,
    FOREVER_MS,
    CoordinatorConnection,
    RequestT,
)
from conformance.systems.positions.commits import MEMBER_ID
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.threads import StartedThreads
from conformance.tla import Action, Fn, Value
from impl.clock import MockClock
from impl.consumer.classic_kafka_consumer import ClassicKafkaConsumer
from impl.errors import Errors, KafkaException
from impl.group.client.assignors.assignor import PartitionAssignor
from impl.group.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.buffer import ByteBuffer
from impl.group.client.config import MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig, RebalanceListener
from impl.group.client.consumer_coordinator import ConsumerCoordinator
from impl.group.client.consumer_protocol import (
    Assignment,
    Subscription,
    deserialize_assignment,
    deserialize_subscription,
    serialize_assignment,
    serialize_subscription,
)
from impl.group.client.network_client import ClientRequest, ConsumerNetworkClient, GroupResponse
from impl.group.client.subscription_state import SubscriptionState
from impl.group.client.timer import Timer
from impl.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from impl.types import TopicPartition

_OTHER = "another"
_ABSENT = 0
_NONE = -1
_NOT_JOINED: Value = frozenset({"none"})
_RAISED: Value = ("raised", frozenset())


class GroupConnection(CoordinatorConnection):
    """Answers a sync at once: with what the leader sent, or else what the group grants."""

    granted: bytes = b""

    def send(self, request: ClientRequest) -> None:
        """Keep what the spec answers."""
        match request.request:
            case FindCoordinatorRequest():
                self.network.respond(request, FindCoordinatorResponse(Errors.NONE, BROKER))
            case SyncGroupRequest(protocol_type=kind, protocol_name=name, assignments=sent):
                own = {each.member_id: each.assignment for each in sent}
                granted = own.get(MEMBER_ID, self.granted)
                self.network.respond(request, SyncGroupResponse(Errors.NONE, kind, name, granted))
            case _:
                pass


class RaisedByApplication(Exception):
    """What a callback of the application raises when it was told to."""


class SwallowedFailure(Exception):
    """A callback has raised, and the application was not told."""


class NotedCallbacks:
    """The calls of the application's ConsumerRebalanceListener in the last step."""

    def __init__(self) -> None:
        self.calls: tuple[Value, ...] = ()
        self.fails = False

    def _called(self, name: str) -> Callable[[frozenset[TopicPartition]], None]:
        def note(partitions: frozenset[TopicPartition]) -> None:
            self.calls = (*self.calls, (name, _owned(partitions)))
            if self.fails:
                self.fails = False
                self.calls = (*self.calls, _RAISED)
                raise RaisedByApplication(name)

        return note

    def demand_told(self) -> None:
        """After a poll that raised nothing. Raises SwallowedFailure if a callback did."""
        if _RAISED in self.calls:
            raise SwallowedFailure

    @property
    def listener(self) -> RebalanceListener:
        """What the consumer calls."""
        names = ("assigned", "revoked", "lost")
        return RebalanceListener(*(self._called(name) for name in names))


@dataclass(frozen=True, slots=True)
class TopicsConstants:
    """What a model says of the topics and of the member."""

    topics: tuple[str, ...]
    others: tuple[str, ...]
    is_cooperative: bool

    @classmethod
    def of(cls, constants: Mapping[str, Value]) -> TopicsConstants:
        """The constants of a model."""
        topics, others = constants["Topics"], constants["Others"]
        assert isinstance(topics, frozenset)
        assert isinstance(others, frozenset)
        return cls(
            tuple(sorted(map(str, topics))),
            tuple(sorted(map(str, others))),
            constants["Cooperative"] is True,
        )


class TopicsSystem(RewindingSystem):
    """One member; a group and a cluster that do what the actions say."""

    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._model = TopicsConstants.of(constants)
        self._threads = StartedThreads()
        self._actions: dict[str, Callable[..., None]] = {
            "Poll": self._poll,
            "Subscribe": lambda topics: self.consumer.subscribe(sorted(topics)),
            "SubscribePattern": self._subscribe_pattern,
            "FailCallback": self._fail_callback,
            "AddPartition": self._add_partition,
            "UpdateMetadata": self._update_metadata,
            "AnswerJoin": self._answer_join,
            "HearRebalance": lambda: self._hear(Errors.REBALANCE_IN_PROGRESS),
            "HearEnd": lambda: self._hear(Errors.UNKNOWN_MEMBER_ID),
        }
        self._shown: dict[str, Callable[[], Value]] = {
            "subscription": lambda: self.subscriptions.subscription,
            "pattern": lambda: frozenset(
                filter(self.subscriptions.matches_subscribed_pattern, self._model.topics)
            ),
            "joined": self._joined,
            "claimed": self._claimed,
            "watched": lambda: self.subscriptions._group_subscription,
            "snapshot": self._snapshot,
            "leads": lambda: self.coordinator.is_leader,
            "gone": lambda: self.coordinator.has_generation_reset(self.coordinator.generation),
            "joining": self._joining,
            "rejoinNeeded": lambda: self.coordinator.rejoin_needed,
            "needsJoinPrepare": lambda: self.coordinator.needs_join_prepare,
            "owned": lambda: _owned(self.subscriptions.assigned_partitions),
            "calls": lambda: self.callbacks.calls,
            "granted": self._granted,
        }
        self._rewinder = Rewinder(self, apart=(self._actions, self._shown))

    # ---- SystemUnderTest -------------------------------------------------------------------

    @property
    def variables(self) -> tuple[str, ...]:
        """All but what metadata counts, which the consumer does not keep."""
        return tuple(self._shown)

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A consumer that knows its coordinator. There is one initial state."""
        self._rewinder.forget()
        clock = MockClock(1_000_000)
        self.callbacks = NotedCallbacks()
        self._connection = GroupConnection()
        self.network = self._connection.network = ConsumerNetworkClient(
            self._connection, clock, self._threads, request_timeout_ms=FOREVER_MS
        )
        self.subscriptions = SubscriptionState()
        self.counts = dict.fromkeys(self._model.others, 1)
        self.cluster = dict(self.counts)
        self.coordinator = ConsumerCoordinator(
            CONFIG,
            ConsumerConfig(
                [self._assignor()], enable_auto_commit=False, listener=self.callbacks.listener
            ),
            self.network,
            MemberRuntime(clock, self._threads),
            self.subscriptions,
            lambda: self.counts,
        )
        self.consumer = ClassicKafkaConsumer(self.coordinator, self.network, self.subscriptions)
        self._timer = Timer(clock, 0)
        self._generation = 0
        self.coordinator.ensure_coordinator_ready(self._timer)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        self.callbacks.calls = ()
        step_of(self._actions, action)(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        self._threads.demand_started()
        return Observation({name: value() for name, value in self._shown.items()})

    # ---- the application -------------------------------------------------------------------

    def _assignor(self) -> PartitionAssignor:
        return CooperativeStickyAssignor() if self._model.is_cooperative else RangeAssignor()

    def _poll(self) -> None:
        try:
            self.consumer.poll(self._timer)
        except KafkaException as error:
            if not isinstance(error.__cause__, RaisedByApplication):
                raise
        else:
            self.callbacks.demand_told()

    def _subscribe_pattern(self, topics: frozenset[str]) -> None:
        self.consumer.subscribe_pattern(re.compile("|".join(map(re.escape, sorted(topics)))))

    def _fail_callback(self) -> None:
        self.callbacks.fails = True

    # ---- metadata, and the group -----------------------------------------------------------

    def _add_partition(self, topic: str) -> None:
        self.cluster = self.cluster | {topic: self.cluster.get(topic, _ABSENT) + 1}

    def _update_metadata(self) -> None:
        self.counts = self.cluster

    def _answer_join(self, role: str, share: str) -> None:
        sent, request = self._oldest(JoinGroupRequest)
        self._generation += 1
        leads = role == "leader"
        members: tuple[JoinGroupResponseMember, ...] = ()
        if leads:
            own = request.protocols[0].metadata
            other = serialize_subscription(Subscription(self._model.others))
            members = (
                JoinGroupResponseMember(MEMBER_ID, None, own),
                JoinGroupResponseMember(_OTHER, None, other),
            )
        else:
            granted = self._all_joined_for()
            if share == "part":
                granted = tuple(each for each in granted if each.partition == 0)
            self._connection.granted = serialize_assignment(Assignment(granted))
        leader = MEMBER_ID if leads else _OTHER
        self._come(
            sent,
            JoinGroupResponse(
                Errors.NONE,
                MEMBER_ID,
                self._generation,
                "consumer",
                self._assignor().name,
                leader,
                members=members,
            ),
        )

    def _all_joined_for(self) -> tuple[TopicPartition, ...]:
        joined = self.coordinator._joined_subscription or frozenset()
        return tuple(
            TopicPartition(topic, number)
            for topic in sorted(joined)
            for number in range(self.cluster.get(topic, _ABSENT))
        )

    def _hear(self, error: Errors) -> None:
        self.coordinator.send_heartbeat_request()
        self.network.poll_no_wakeup()
        self._come(self._oldest(HeartbeatRequest)[0], HeartbeatResponse(error))

    def _oldest(self, kind: type[RequestT]) -> tuple[ClientRequest, RequestT]:
        for sent in self.network.in_flight():
            if isinstance(sent.request, kind):
                return sent, sent.request
        raise ActionRefused(f"no {kind.__name__} is in flight")

    def _come(self, sent: ClientRequest, answer: GroupResponse) -> None:
        self.network.respond(sent, answer)
        self.network.poll_no_wakeup()

    # ---- what is shown ---------------------------------------------------------------------

    def _function(self, partitions: Mapping[str, int], missing: int) -> Value:
        return Fn({topic: partitions.get(topic, missing) for topic in self._model.topics})

    def _joined(self) -> Value:
        joined = self.coordinator._joined_subscription
        return _NOT_JOINED if joined is None else joined

    def _claimed(self) -> Value:
        """What the JoinGroup that is on its way says of owned partitions."""
        for sent in self.network.in_flight():
            if isinstance(sent.request, JoinGroupRequest):
                metadata = ByteBuffer(sent.request.protocols[0].metadata)
                return _owned(deserialize_subscription(metadata).owned_partitions)
        return frozenset()

    def _snapshot(self) -> Value:
        snapshot = self.coordinator._assignment_snapshot
        if snapshot is None:
            return self._function({}, _NONE)
        return self._function(snapshot, _ABSENT)

    def _joining(self) -> Value:
        future = self.coordinator.join_future
        if future is None:
            return "none"
        return "answered" if future.is_done else "sent"

    def _granted(self) -> Value:
        future = self.coordinator.join_future
        if future is None or not future.succeeded:
            return frozenset()
        assignment: ByteBuffer = future.value.duplicate()
        return _owned(deserialize_assignment(assignment).partitions)


def _owned(partitions: frozenset[TopicPartition] | tuple[TopicPartition, ...]) -> Value:
    """Partitions as the spec counts them: from 1."""
    return frozenset((each.topic, each.partition + 1) for each in partitions)
