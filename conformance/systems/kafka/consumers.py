"""The system under test: Kafka's own coordinator of KIP-848, driven by ConsumerGroup.tla's actions.

Where the specification lets the coordinator handle a request, it goes to the JVM as a frame. Time
stands still. What the harness does not choose is Kafka's range assignor's.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

import msgspec

from conformance.kafka.entities import (
    NEWEST,
    SIZE_BYTES,
    Entity,
    MalformedFrame,
    class_of,
    read_response,
    request_frame,
)
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.java_consumer import JavaConsumer
from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.admin import commit_request
from conformance.systems.wire.consumer.inner_steps import (
    ASSIGNMENT_INTERVAL_MS,
    PAUSES_MS,
    RUN_RESOLUTION,
    WRITE_RESOLUTION,
)
from conformance.systems.wire.consumer.inside import (
    OF_MEMBER,
    VARIABLES,
    CoordinatorInside,
    GroupInside,
    MemberInside,
)
from conformance.systems.wire.consumer.member import (
    Commit,
    CommitAnswer,
    ConsumerProcess,
    Heartbeat,
    HeartbeatAnswer,
)
from conformance.systems.wire.consumer.reach import ConsumerSettings
from conformance.systems.wire.consumer.regexes import Resolved
from conformance.systems.wire.consumer.requests import (
    MemberGroup,
    ReadTopic,
    commit_answer,
    heartbeat_answer,
    heartbeat_request,
)
from conformance.tla import Action, Value

_HEARTBEAT, _HEARTBEAT_VERSION = "consumer_group_heartbeat", 1
_COMMIT = "offset_commit"
_VERSIONS: Mapping[str, int] = MappingProxyType({**NEWEST, _HEARTBEAT: _HEARTBEAT_VERSION})
_GROUP_ID = "group"
"""As the bridge calls the only group (Groups.java)."""
_ID_BITS = 64
_OF_EXECUTOR = {RUN_RESOLUTION: "group_run_task", WRITE_RESOLUTION: "group_release_task"}
"""The assignment interval, where a model has one. Time stands still but for it."""
_EXPIRIES: Mapping[str, str] = MappingProxyType(
    {"ExpireSession": "SESSION", "ExpireRebalance": "REBALANCE"}
)
"""Timers of a member, by the bridge's names (Coordinator.Kind)."""
_Partitions = frozenset[int]


class _BridgeConsumer(msgspec.Struct, frozen=True, array_like=True):
    """A member as the bridge writes it: ConsumerGroupView.java."""

    member_id: str
    state: str
    epoch: int
    previous_epoch: int
    assigned: _Partitions
    pending_revocation: _Partitions
    described: _Partitions
    target: _Partitions
    reads: frozenset[str]
    assignor: str

    @property
    def inside(self) -> MemberInside:
        """The same, for what is driven of it."""
        return MemberInside(
            self.state,
            self.epoch,
            self.previous_epoch,
            self.assigned,
            self.pending_revocation,
            self.described,
            self.target,
            self.reads,
            self.assignor,
        )


class BridgeConsumerGroup(msgspec.Struct, frozen=True, array_like=True):
    """The group as the bridge writes it."""

    epoch: int
    assignment_epoch: int
    members: tuple[_BridgeConsumer, ...]
    resolved: Resolved
    resolution: str
    preferred: str
    assigned_by: str
    interval_runs: bool


class _BridgeConsumerStep(msgspec.Struct, frozen=True, array_like=True):
    """What has become of a step: answers as (number of the request, frame); offsets by partition,
    -1 where none is committed."""

    answered: tuple[tuple[int, bytes], ...]
    group: BridgeConsumerGroup | None
    offsets: tuple[int, ...]


_as_step = msgspec.json.Decoder(_BridgeConsumerStep).decode


class _BridgedCoordinator:
    """The coordinator in its JVM. `chosen`: the target that its assignor is to give, if any."""

    def __init__(self, channel: AdapterChannel) -> None:
        self.channel = channel
        self.group = GroupInside()
        self.offsets: tuple[int, ...] = ()
        self.chosen: Mapping[str, list[int]] | None = None
        self._requests = 0

    def reset(self, settings: ConsumerSettings, group: MemberGroup) -> None:
        """An empty log, and a coordinator that has loaded it."""
        self._requests = 0
        topics = [
            (each.topic, _low(each.topic_id), topic.first, topic.size if topic.is_there else 0)
            for each, topic in zip(group.topics, settings.topics, strict=True)
        ]
        self.command(
            "group_reset",
            topics=topics,
            partitions=settings.partitions,
            max_size=settings.maximum_size,
            assignors=settings.assignors,
            assignment_interval_ms=ASSIGNMENT_INTERVAL_MS if settings.has_interval else 0,
        )

    def exchange(self, api: str, frame: bytes) -> bytes:
        """The frame that answers this one, both without their size. SystemFailed if none does."""
        self._requests += 1
        number = self._requests
        text = base64.b64encode(frame).decode("ascii")
        answered = self.command("group_request", number=number, frame=text, target=self.chosen)
        if number not in answered:
            raise SystemFailed(f"{api} is not answered")
        return answered[number]

    def command(self, command: str, **members: object) -> Mapping[int, bytes]:
        """Let the coordinator take a step; the frames that it answers, by request."""
        steps: list[dict[str, object]] = [
            {"command": command, **members},
            {"command": "group_consumer_view"},
        ]
        step = _as_step(self.channel.call(steps)[-1])
        self.offsets = step.offsets
        self.group = _inside(step.group)
        return dict(step.answered)


class KafkaConsumerGroupSystem(CoordinatorInside):
    """One coordinator in a JVM, and members that send what the Java client sends."""

    of_member = MappingProxyType(
        {name: value for name, value in OF_MEMBER.items() if name != "keptSince"}
    )
    variables = tuple(name for name in VARIABLES if name != "keptSince")

    def __init__(
        self,
        channel: AdapterChannel,
        settings: ConsumerSettings,
        clients: AdapterChannel | None = None,
    ) -> None:
        self._bridge = bridge = _BridgedCoordinator(channel)
        super().__init__(
            settings,
            lambda topic, size: bridge.command(
                "group_topic", topic=settings.topics.index(topic), size=size
            ),
        )
        self._member_group = member_group(settings.topics, settings.regexes)
        self._clients = channel if clients is None else clients

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        limits = self._bridge.channel.limits
        return limits.start + limits.call

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, a coordinator that has loaded it, new members."""
        self._begin()
        self._bridge.reset(self._settings, self._member_group)

    def close(self) -> None:
        """Leave its JVMs to the next system of this process."""
        for channel in dict.fromkeys((self._bridge.channel, self._clients)):
            CHANNELS.give_back(channel)

    # ---- CoordinatorInside -----------------------------------------------------------------

    def _heartbeat(self, member: ConsumerProcess, sent: Heartbeat) -> HeartbeatAnswer:
        group = self._member_group
        body = heartbeat_request(_HEARTBEAT_VERSION, group, member.name, member.instance, sent)
        return heartbeat_answer(
            _read(_HEARTBEAT, self._bridge.exchange(_HEARTBEAT, _frame(body))), group
        )

    def _commit(self, member: ConsumerProcess, sent: Commit, offset: int) -> CommitAnswer:
        membership = (sent.epoch, member.name, member.instance)
        offsets = dict.fromkeys(sent.partitions, offset)
        body = commit_request(_GROUP_ID, self._member_group.topic, offsets, membership)
        answer = _read(_COMMIT, self._bridge.exchange(_COMMIT, _frame(body)))
        return commit_answer(answer, sent, offset, _stored(self._bridge.offsets, sent))

    def _go_on(self, step: str, member: ConsumerProcess | None) -> None:
        if step in PAUSES_MS:
            self._bridge.command("group_sleep", ms=PAUSES_MS[step])
        elif step in _OF_EXECUTOR:
            self._bridge.command(_OF_EXECUTOR[step])
        elif member is not None and step in _EXPIRIES:
            self._bridge.command("group_fire", kind=_EXPIRIES[step], member=member.name)
        else:
            raise ActionRefused(f"the adapter knows no action {step}")

    def _choose(self, target: Mapping[str, frozenset[int]] | None) -> None:
        self._bridge.chosen = None
        if target is not None:
            self._bridge.chosen = {name: sorted(given) for name, given in target.items()}

    def _group(self) -> GroupInside:
        return self._bridge.group


class JavaConsumerGroupSystem(KafkaConsumerGroupSystem):
    """The same with members that are Kafka's Java consumers, in this JVM or in another one.

    They name no assignor, so that the coordinator's default is preferred.
    """

    of_member = MappingProxyType(
        {
            name: value
            for name, value in KafkaConsumerGroupSystem.of_member.items()
            if name != "serverAssignor"
        }
    )
    variables = tuple(
        name for name in KafkaConsumerGroupSystem.variables if name != "serverAssignor"
    )

    def __init__(
        self, channel: AdapterChannel, settings: ConsumerSettings, clients: AdapterChannel
    ) -> None:
        super().__init__(channel, settings, clients)
        self._offsets_sent = itertools.count(1)

    # ---- Interruptible: the background thread and the application of one consumer ------------

    voluntary: frozenset[str] = frozenset()
    unconditional: frozenset[str] = frozenset()

    def make_interruptible(self) -> bool:
        """A consumer's reconciliation begins in one thread and goes on in the other."""
        return True

    def concurrent(self, _running: Action, _between: Action) -> bool:
        """None is searched for. What is known (stale-assignment) no operator of the specification
        says, so that no table could set it aside; its saved path shows it.
        """
        return False

    def in_parts(self, _running: Action, _between: Action) -> bool:
        """What comes out is what one of the two orders gives."""
        return False

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """The background thread has begun to reconcile, then `between`, then the application polls.

        ActionRefused for an action other than `Assign`, which has this one interruption.
        """
        if running.name != "Assign" or point != 1:
            raise ActionRefused(f"{running} has no interruption {point}")
        member = self.members[str(running.args[0])]
        assert isinstance(member, JavaConsumer), "all members are"
        member.begin_reconciliation()
        self.apply(between)
        member.poll()
        return "between the reconciliation and the application's poll"

    def _new_member(self, name: str, instance: str | None) -> JavaConsumer:
        settings = self._settings
        return JavaConsumer(
            self._clients,
            name,
            instance,
            settings.partitions,
            settings.reads[name],
            self._offsets_sent,
        )

    def _heartbeat(self, member: ConsumerProcess, _sent: Heartbeat) -> HeartbeatAnswer:
        assert isinstance(member, JavaConsumer), "all members are"
        frame = self._bridge.exchange(_HEARTBEAT, member.heartbeat_frame)
        member.heartbeat_frame = frame
        return heartbeat_answer(_read(_HEARTBEAT, frame), self._member_group)

    def _commit(self, member: ConsumerProcess, sent: Commit, _offset: int) -> CommitAnswer:
        assert isinstance(member, JavaConsumer), "all members are"
        frame = self._bridge.exchange(_COMMIT, member.commit_frame)
        member.commit_frame = frame
        answer = _read(_COMMIT, frame)
        return commit_answer(answer, sent, member.offset, _stored(self._bridge.offsets, sent))


def member_group(
    topics: Iterable[ModelTopic], regexes: frozenset[str] = frozenset()
) -> MemberGroup:
    """Ids as the bridge has them: the first one is Metadata.java's."""
    ids = (UUID(int=(1 << _ID_BITS) + 1 + (place << 8)) for place in itertools.count())
    read = (ReadTopic(topic, topic.name, id) for topic, id in zip(topics, ids, strict=False))
    return MemberGroup(_GROUP_ID, tuple(read), {regex: regex for regex in regexes})


def _low(id: UUID) -> int:
    return id.int & ((1 << _ID_BITS) - 1)


def _inside(group: BridgeConsumerGroup | None) -> GroupInside:
    if group is None:
        return GroupInside()
    members = ((member.member_id, member.inside) for member in group.members)
    return GroupInside(
        group.epoch,
        group.assignment_epoch,
        tuple(members),
        group.resolved,
        group.resolution,
        group.preferred,
        group.assigned_by,
        group.interval_runs,
    )


def _frame(body: Entity) -> bytes:
    """A request of ours, without its size. The bridge numbers it."""
    return request_frame(body, 0, _GROUP_ID)[SIZE_BYTES:]


def _read(api: str, frame: bytes) -> Entity:
    kind = class_of(api, _VERSIONS[api], "response")
    try:
        _, answer = read_response(frame, kind)
    except MalformedFrame as error:
        raise SystemFailed(f"the answer to {api} cannot be read: {error}") from error
    return answer


def _stored(offsets: Sequence[int], sent: Commit) -> dict[int, int]:
    """The group's offsets of what was to be committed."""
    return {partition: offsets[partition] for partition in sent.partitions}
