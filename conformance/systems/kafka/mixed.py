"""The system under test: Kafka's coordinator, driven by MixedGroup.tla's actions.

A group in a JVM changes its protocol; requests of both protocols go to it as frames.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import msgspec
from kio.schema.errors import ErrorCode

from conformance.kafka.consumer_protocol import assignment_of, read_assignment
from conformance.kafka.entities import SIZE_BYTES, Entity, class_of, read_response, request_frame
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.consumers import BridgeConsumerGroup, member_group
from conformance.systems.kafka.groups import BridgeGroup
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.shared.mixed.coordinator import (
    HeartbeatOf848,
    MixedAnswer,
    MixedMember,
    MixedView,
)
from conformance.systems.shared.mixed.inside import MixedGroupInside
from conformance.systems.shared.mixed.requests import (
    CLASSIC_VERSIONS,
    ClassicSender,
    Timeouts,
    classic_heartbeat,
    join_request,
    leave_request,
    subscription,
    sync_request,
)
from conformance.systems.shared.mixed.settings import MixedSettings, Partitions
from conformance.systems.wire.consumer.member import Heartbeat
from conformance.systems.wire.consumer.requests import (
    REBALANCE_MS,
    heartbeat_answer,
    heartbeat_request,
)
from conformance.tla import Value

_GROUP_ID = "group"
"""As the bridge calls the only group (Groups.java)."""
_OF_848 = "consumer_group_heartbeat"
_VERSIONS: Mapping[str, int] = MappingProxyType({**CLASSIC_VERSIONS, _OF_848: 1})
_STATES: Mapping[str, str] = MappingProxyType(
    {
        "STABLE": "Stable",
        "UNREVOKED_PARTITIONS": "UnrevokedPartitions",
        "UNRELEASED_PARTITIONS": "UnreleasedPartitions",
    }
)
"""MemberState, by Kafka's name."""


class _BridgeMixedStep(msgspec.Struct, frozen=True, array_like=True):
    """Answers as (number of the request, frame); the group as one of its two kinds."""

    answered: tuple[tuple[int, bytes], ...]
    classic: BridgeGroup | None
    consumer: BridgeConsumerGroup | None


_as_step = msgspec.json.Decoder(_BridgeMixedStep).decode


class KafkaMixedCoordinator:
    """A ChoosingMixedCoordinator in a JVM; it is sent what the Java client sends."""

    def __init__(self, channel: AdapterChannel, settings: MixedSettings) -> None:
        self._settings = settings
        self._channel = channel
        self._member_group = member_group(settings.topics)
        self._numbers = itertools.count(1)
        self._ids: dict[str, str] = {}
        """Member ids, as the coordinator has given them, by name."""
        self._waiting: dict[int, str] = {}
        """By the number of a JoinGroup that is not answered, who sent it."""
        self._answers: dict[str, MixedAnswer] = {}
        self._chosen: Mapping[str, Partitions] | None = None

    # ---- ChoosingMixedCoordinator -----------------------------------------------------------

    def begin_group(self) -> None:
        self._ids, self._waiting, self._answers = {}, {}, {}
        topics = [
            (each.topic, each.topic_id.int & (2**64 - 1), topic.first, topic.size)
            for each, topic in zip(self._member_group.topics, self._settings.topics, strict=True)
        ]
        self._command(
            "group_reset",
            topics=topics,
            partitions=0,
            initial_delay_ms=REBALANCE_MS,
            migration_policy=self._settings.policy,
        )

    def end_initial_delay(self) -> None:
        self._command("group_fire", kind="INITIAL_JOIN", member=None)

    def expire(self, name: str) -> None:
        self._command("group_fire", kind="SESSION", member=self._id(name))

    def choose(self, target: Mapping[str, Partitions] | None) -> None:
        self._chosen = target

    def heartbeat_of_848(self, name: str, sent: HeartbeatOf848) -> MixedAnswer:
        heartbeat = Heartbeat(sent.epoch, sent.owned, sent.reads)
        group, instance = self._member_group, self._settings.instances[name]
        body = heartbeat_request(_VERSIONS[_OF_848], group, name, instance, heartbeat)
        self._ids[name] = name
        # Without an assignor of its own a member does not change the group's.
        answer = heartbeat_answer(self._ask(_OF_848, replace(body, server_assignor=None)), group)
        return MixedAnswer(answer.error, answer.epoch, answer.given)

    def join_group(self, name: str, owned: Partitions) -> MixedAnswer | None:
        answer = self._send_join(name, owned)
        if answer is not None and answer.error == "MEMBER_ID_REQUIRED":
            answer = self._send_join(name, owned)
        return answer

    def _send_join(self, name: str, owned: Partitions) -> MixedAnswer | None:
        settings = self._settings
        metadata = subscription(
            settings.reads[name], settings.by_topic(owned), malformed=name in settings.malformed
        )
        number = next(self._numbers)
        self._waiting[number] = name
        timeouts = Timeouts(REBALANCE_MS, REBALANCE_MS)
        self._request(number, join_request(self._sender(name), metadata, timeouts))
        return self._answers.pop(name, None)

    def _sender(self, name: str) -> ClassicSender:
        return ClassicSender(_GROUP_ID, self._ids.get(name, ""), self._settings.instances[name])

    def forget(self, name: str) -> None:
        self._ids.pop(name, None)

    def joins_answered(self) -> Mapping[str, MixedAnswer]:
        answers, self._answers = self._answers, {}
        return answers

    def sync_group(
        self, name: str, generation: int, given: Mapping[str, Partitions]
    ) -> MixedAnswer:
        by_topic = self._settings.by_topic
        assignments = {self._ids[each]: assignment_of(by_topic(of)) for each, of in given.items()}
        answer = self._ask_maybe(
            "sync_group", sync_request(self._sender(name), generation, assignments)
        )
        if answer is None:
            return MixedAnswer("")  # a follower's waits for the leader's
        return MixedAnswer(_error(answer), generation, self._numbers_of(answer.assignment))

    def heartbeat(self, name: str, generation: int) -> MixedAnswer:
        body = classic_heartbeat(self._sender(name), generation)
        return MixedAnswer(_error(self._ask("heartbeat", body)))

    def leave_group(self, name: str) -> MixedAnswer:
        leaving = {self._ids[name]: self._settings.instances[name]}
        answer = self._ask("leave_group", leave_request(_GROUP_ID, leaving))
        of_members = (each for each in answer.members if _error(each) != "NONE")
        return MixedAnswer(_error(next(of_members, answer)))

    def view(self) -> MixedView:
        classic, consumer = self._step.classic, self._step.consumer
        names = {theirs: name for name, theirs in self._ids.items()}
        if consumer is not None:
            return MixedView(
                "consumer",
                "none",
                consumer.epoch,
                consumer.assignment_epoch,
                {
                    names.get(each.member_id, each.member_id): MixedMember(
                        _STATES.get(each.state, each.state),
                        each.epoch,
                        each.assigned,
                        each.pending_revocation,
                        each.target,
                        each.described,
                    )
                    for each in consumer.members
                },
                frozenset(),
            )
        if classic is None:
            raise SystemFailed("The group is gone.")
        members = {names.get(each.member_id, each.member_id): each for each in classic.members}
        assigned = {name: self._numbers_of(each.assignment) for name, each in members.items()}
        return MixedView(
            "classic",
            classic.state,
            classic.generation,
            0,
            {
                name: MixedMember("Classic", assigned=given, described=given)
                for name, given in assigned.items()
            },
            frozenset(name for name, each in members.items() if each.awaits_join),
        )

    # ---- requests --------------------------------------------------------------------------

    def _id(self, name: str) -> str:
        return self._ids.get(name, name)

    def _numbers_of(self, assignment: bytes) -> Partitions:
        if not assignment:
            return frozenset()
        return frozenset(
            self._settings.numbers(topic, place) for topic, place in read_assignment(assignment)
        )

    def _ask(self, api: str, body: Entity) -> Entity:
        answer = self._ask_maybe(api, body)
        if answer is None:
            raise SystemFailed(f"{api} is not answered")
        return answer

    def _ask_maybe(self, api: str, body: Entity) -> Entity | None:
        number = next(self._numbers)
        frame = self._request(number, body).get(number)
        return None if frame is None else _read(api, frame)

    def _request(self, number: int, body: Entity) -> Mapping[int, bytes]:
        frame = request_frame(body, 0, _GROUP_ID)[SIZE_BYTES:]
        text = base64.b64encode(frame).decode("ascii")
        return self._command("group_request", number=number, frame=text, target=self._target())

    def _target(self) -> Mapping[str, list[int]] | None:
        """What is chosen, by the ids that members have by now."""
        chosen = self._chosen
        if chosen is None:
            return None
        return {self._id(name): sorted(given) for name, given in chosen.items()}

    def _command(self, command: str, **members: object) -> Mapping[int, bytes]:
        """Let the coordinator take a step; the frames that it answers, but to joins, by request."""
        steps: list[dict[str, object]] = [
            {"command": command, **members},
            {"command": "group_mixed_view"},
        ]
        self._step = _as_step(self._channel.call(steps)[-1])
        others: dict[int, bytes] = {}
        for number, frame in self._step.answered:
            name = self._waiting.pop(number, None)
            if name is None:
                others[number] = frame
                continue
            answer = _read("join_group", frame)
            if answer.member_id:
                self._ids[name] = answer.member_id
            self._answers[name] = MixedAnswer(_error(answer), answer.generation_id)
        return others


class KafkaMixedGroupSystem(MixedGroupInside):
    """The coordinator, and the consumers of its group."""

    def __init__(self, channel: AdapterChannel, settings: MixedSettings) -> None:
        super().__init__(settings, KafkaMixedCoordinator(channel, settings))
        self._channel = channel

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, a coordinator that has loaded it, the classic group of the beginning."""
        self._begin()

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)


def _read(api: str, frame: bytes) -> Entity:
    _, answer = read_response(frame, class_of(api, _VERSIONS[api], "response"))
    return answer


def _error(answer: Entity) -> str:
    code: ErrorCode = answer.error_code
    return error_name(code)
