"""The system under test: Kafka's own coordinator of KIP-848, driven by ConsumerGroup.tla's actions.

The members are ours (`systems/wire/consumer/member`). Where the specification lets the coordinator
handle a request, it goes to the JVM as a frame. Time stands still, so every variable is seen after
every step. The harness may choose the target assignment; else Kafka's range assignor does.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from uuid import UUID

import msgspec

from conformance.kafka.entities import (
    NEWEST,
    SIZE_BYTES,
    Entity,
    MalformedFrame,
    api_of,
    class_of,
    read_response,
    request_frame,
)
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.protocol import ActionRefused, Observation, SystemFailed
from conformance.systems.wire.admin import commit_request
from conformance.systems.wire.consumer.member import (
    NO_EPOCH,
    OF_A_MEMBER,
    REQUESTS,
    Commit,
    Heartbeat,
    WireMember,
)
from conformance.systems.wire.consumer.observation import member_values
from conformance.systems.wire.consumer.reach import ConsumerSettings
from conformance.systems.wire.consumer.requests import (
    MemberGroup,
    commit_answer,
    heartbeat_answer,
    heartbeat_request,
)
from conformance.tla import Action, Fn, Value

_HEARTBEAT, _HEARTBEAT_VERSION = "consumer_group_heartbeat", 1
_VERSIONS: Mapping[str, int] = MappingProxyType({**NEWEST, _HEARTBEAT: _HEARTBEAT_VERSION})
_GROUP = MemberGroup("group", "topic", UUID(int=(1 << 64) + 1))
"""As the bridge calls the only group (Groups.java) and the topic that it reads (Metadata.java)."""
_EXPIRIES: Mapping[str, str] = MappingProxyType(
    {"ExpireSession": "SESSION", "ExpireRebalance": "REBALANCE"}
)
"""Timers of a member, by the bridge's names (Coordinator.Kind)."""
_STATES: Mapping[str, str] = MappingProxyType(
    {
        "STABLE": "Stable",
        "UNREVOKED_PARTITIONS": "UnrevokedPartitions",
        "UNRELEASED_PARTITIONS": "UnreleasedPartitions",
    }
)
"""MemberState, by Kafka's name."""

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


class _BridgeConsumerGroup(msgspec.Struct, frozen=True, array_like=True):
    """The group; nobody has joined it where there is none."""

    epoch: int = 0
    assignment_epoch: int = 0
    members: tuple[_BridgeConsumer, ...] = ()


class _BridgeConsumerStep(msgspec.Struct, frozen=True, array_like=True):
    """What has become of a step: answers as (number of the request, frame); offsets by partition,
    -1 where none is committed."""

    answered: tuple[tuple[int, bytes], ...]
    group: _BridgeConsumerGroup | None
    offsets: tuple[int, ...]


_as_step = msgspec.json.Decoder(_BridgeConsumerStep).decode
_ABSENT = _BridgeConsumer(
    "", "None", NO_EPOCH, NO_EPOCH, frozenset(), frozenset(), frozenset(), frozenset()
)
"""Stands for who is no member of the group."""


_OF_MEMBER: Mapping[str, Callable[[_BridgeConsumer], Value]] = MappingProxyType(
    {
        "target": lambda member: _values(member.target),
        "memberState": lambda member: _STATES.get(member.state, member.state),
        "memberEpoch": lambda member: member.epoch,
        "previousMemberEpoch": lambda member: member.previous_epoch,
        "assignedPartitions": lambda member: _values(member.assigned),
        "partitionsPendingRevocation": lambda member: _values(member.pending_revocation),
        "described": lambda member: _values(member.described),
    }
)


def _values(partitions: Iterable[int]) -> frozenset[Value]:
    return frozenset(partitions)


class KafkaConsumerGroupSystem:
    """One coordinator in a JVM, and members that send what the Java client sends."""

    variables = ("groupEpoch", "assignmentEpoch", *_OF_MEMBER, "consumer", "channel", "commit")

    def __init__(self, channel: AdapterChannel, settings: ConsumerSettings) -> None:
        self._channel = channel
        self._settings = settings
        self._members: dict[str, WireMember] = {}
        self._chosen: Mapping[str, list[int]] | None = None
        self._known: dict[object, Observation] = {}

    # ---- SystemUnderTest -------------------------------------------------------------------

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, a coordinator that has loaded it, new members."""
        names = self._settings.names_while_reconciling
        self._members = {
            name: WireMember(name, instance, names_while_reconciling=names)
            for name, instance in self._settings.instances.items()
        }
        self._numbers = itertools.count(1)
        self._command("group_reset", partitions=self._settings.partitions)

    def choose(self, wanted: Mapping[str, Value]) -> None:
        """The target that the next heartbeat is to lead to, if it leads to a new one."""
        target = wanted["target"]
        assert isinstance(target, Fn), "a function of the members"
        self._chosen = {str(name): sorted(_numbers(given)) for name, given in target.items()}

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if Kafka or a member cannot."""
        name, member = action.name, self._members[str(action.args[0])]
        if name in OF_A_MEMBER:
            OF_A_MEMBER[name](member)
        elif name in REQUESTS:
            self._handle_heartbeat(member)
        elif name == "HandleCommit":
            self._handle_commit(member)
        elif name in _EXPIRIES:
            self._command("group_fire", kind=_EXPIRIES[name], member=member.name)
        else:
            raise ActionRefused(f"the adapter knows no action {name}")
        self._chosen = None

    def observe(self) -> Observation:
        """The observed variables as the coordinator's and the members' objects have them now.

        The same object for the same state: the harness compares it once.
        """
        members = tuple(self._members.values())
        state = (
            self._group,
            *((member.consumer, member.channel, member.commit) for member in members),
        )
        known = self._known.get(state)
        if known is None:
            values = {**_group_values(self._group, self._members), **member_values(members)}
            known = self._known[state] = Observation(values)
        return known

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)

    # ---- requests --------------------------------------------------------------------------

    def _handle_heartbeat(self, member: WireMember) -> None:
        sent = member.channel
        if not isinstance(sent, Heartbeat):
            raise ActionRefused(f"no request of {member.name} is under way")
        body = heartbeat_request(_HEARTBEAT_VERSION, _GROUP, member.name, member.instance, sent)
        member.channel = heartbeat_answer(self._ask(body), _GROUP)

    def _handle_commit(self, member: WireMember) -> None:
        """What is committed is this request's number, so that the offsets tell which it was."""
        sent = member.commit
        if not isinstance(sent, Commit):
            raise ActionRefused(f"no commit of {member.name} is under way")
        offset = next(self._numbers)
        membership = (sent.epoch, member.name, member.instance)
        offsets = dict.fromkeys(sent.partitions, offset)
        answer = self._ask(commit_request(_GROUP.group_id, _GROUP.topic, offsets, membership))
        stored = {partition: self._offsets[partition] for partition in sent.partitions}
        member.commit = commit_answer(answer, sent, offset, stored)

    def _ask(self, body: Entity) -> Entity:
        """Let the coordinator handle a request; its answer. SystemFailed if it gives none."""
        number = next(self._numbers)
        frame = request_frame(body, number, _GROUP.group_id)[SIZE_BYTES:]
        text = base64.b64encode(frame).decode("ascii")
        answered = self._command("group_request", number=number, frame=text, target=self._chosen)
        api = api_of(body)
        if number not in answered:
            raise SystemFailed(f"{api} is not answered")
        kind = class_of(api, _VERSIONS[api], "response")
        try:
            _, answer = read_response(answered[number], kind)
        except MalformedFrame as error:
            raise SystemFailed(f"the answer to {api} cannot be read: {error}") from error
        return answer

    def _command(self, command: str, **members: object) -> Mapping[int, bytes]:
        """Let the coordinator take a step; the frames that it answers, by request."""
        steps: list[dict[str, object]] = [
            {"command": command, **members},
            {"command": "group_consumer_view"},
        ]
        step = _as_step(self._channel.call(steps)[-1])
        self._offsets = step.offsets
        self._group = step.group or _BridgeConsumerGroup()
        return dict(step.answered)


def _group_values(group: _BridgeConsumerGroup, names: Iterable[str]) -> dict[str, Value]:
    """The group's variables. SystemFailed if it has a member that is not among the names."""
    present = {member.member_id: member for member in group.members}
    if strangers := sorted({*present} - {*names}):
        raise SystemFailed(f"The group has members that nobody sent: {strangers}")
    members = {name: present.get(name, _ABSENT) for name in names}
    of_members = {
        variable: Fn({name: value(member) for name, member in members.items()})
        for variable, value in _OF_MEMBER.items()
    }
    return {"groupEpoch": group.epoch, "assignmentEpoch": group.assignment_epoch, **of_members}


def _numbers(value: Value) -> frozenset[int]:
    assert isinstance(value, frozenset), "partitions are numbers"
    return frozenset(number for number in value if isinstance(number, int))
