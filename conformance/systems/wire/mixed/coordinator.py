"""One group that changes its protocol, and its coordinator behind a port."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from conformance.kafka.consumer_protocol import assignment_of, read_assignment
from conformance.kafka.entities import Entity
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.shared.mixed.client import NO_ERROR
from conformance.systems.shared.mixed.coordinator import (
    HeartbeatOf848,
    MixedAnswer,
    MixedMember,
    MixedView,
)
from conformance.systems.shared.mixed.requests import (
    classic_heartbeat,
    leave_request,
    subscription,
    sync_request,
)
from conformance.systems.shared.mixed.settings import MixedSettings, Partitions
from conformance.systems.wire.admin import describe_group
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.member import LEAVE_EPOCH, Heartbeat
from conformance.systems.wire.consumer.requests import (
    Description,
    MemberGroup,
    describe,
    heartbeat,
)
from conformance.systems.wire.mixed.classic_members import ClassicMembers
from conformance.systems.wire.mixed.reach import member_id
from conformance.systems.wire.mixed.timers import RunningMixedTimers
from conformance.systems.wire.pace import Pace
from conformance.systems.wire.port import ANSWER_SECONDS

_CONSUMER, _CLASSIC = "consumer", "classic"
_STABLE = "Stable"
_NOT_SHOWN: frozenset[str] = frozenset({"Dead", "Empty"})


class MixedTest(NamedTuple):
    """What belongs to one test: a group id that nobody has used, and timers for its path."""

    group: MemberGroup
    timers: RunningMixedTimers


class WireMixedCoordinator:
    """A MixedCoordinator; each test has a group of its own (`begin`)."""

    def __init__(self, broker: WireBroker, settings: MixedSettings, pace: Pace) -> None:
        self._broker = broker
        self._settings = settings
        self._pace = pace
        self._test: MixedTest | None = None
        self._view: MixedView | None = None
        self._type = ""

    def begin(self, test: MixedTest) -> None:
        """The next test's group."""
        self._test = test

    @property
    def timers(self) -> RunningMixedTimers:
        """Of the present test."""
        return self._present.timers

    @property
    def over(self) -> str:
        """Which session may be over although the path has not come to it; empty if none."""
        return "" if self._test is None else self._test.timers.over

    @property
    def _present(self) -> MixedTest:
        assert self._test is not None, "the harness resets a system first"
        return self._test

    @property
    def _group(self) -> MemberGroup:
        return self._present.group

    # ---- MixedCoordinator ------------------------------------------------------------------

    def begin_group(self) -> None:
        """Nobody is in it, and no request is under way."""
        self._classic = ClassicMembers(self._broker, self._group.group_id, self._settings.instances)
        self._view, self._type = None, ""

    def end_initial_delay(self) -> None:
        """It is over by itself, and the joins are answered."""
        delay = self._broker.address.initial_delay / 1000
        self._classic.await_answers(ANSWER_SECONDS + len(self._settings.first) * delay)

    def expire(self, name: str) -> None:
        """Wait until the session is over."""
        self._view = None
        self.timers.wait_for(name)

    def heartbeat_of_848(self, name: str, sent: HeartbeatOf848) -> MixedAnswer:
        """ConsumerGroupHeartbeat, without an assignor."""
        self._view = None
        if sent.epoch == LEAVE_EPOCH:
            self.timers.left(name)
        else:
            self.timers.set_session()
        asked = time.monotonic()
        answer = heartbeat(
            self._broker.coordinator,
            self._group,
            member_id(name, self._broker.run),
            self._settings.instances[name],
            Heartbeat(sent.epoch, sent.owned, sent.reads, assignor=None),
        )
        if sent.epoch != LEAVE_EPOCH:
            self.timers.of_848(name, answer.interval_ms, asked)
        return MixedAnswer(answer.error, answer.epoch, answer.given)

    def join_group(self, name: str, owned: Partitions) -> MixedAnswer | None:
        """JoinGroup. In a consumer group it is answered at once, so the answer is waited for."""
        self._view = None
        settings, names = self._settings, self._topic_names
        metadata = subscription(
            frozenset(names[topic] for topic in settings.reads[name]),
            self._by_topic(owned),
            malformed=name in settings.malformed,
        )
        self.timers.of_classic(name, time.monotonic())
        self._classic.send_join(name, metadata, self.timers.session_of(name))
        if self._type == _CONSUMER:
            self._classic.await_answers(ANSWER_SECONDS)
        return None

    def forget(self, name: str) -> None:
        """A new process."""
        self._classic.forget(name)

    def joins_answered(self) -> Mapping[str, MixedAnswer]:
        """What has arrived."""
        answers = self._classic.take_answers()
        if answers:
            self._view = None
        return answers

    def sync_group(
        self, name: str, generation: int, given: Mapping[str, Partitions]
    ) -> MixedAnswer:
        """SyncGroup, answered at once."""
        assignments = {
            self._classic.sender(each).member_id: assignment_of(self._by_topic(of))
            for each, of in given.items()
        }
        request = sync_request(self._classic.sender(name), generation, assignments)
        answer = self._ask(name, request)
        return MixedAnswer(
            error_name(answer.error_code), generation, self._numbers_of(answer.assignment)
        )

    def heartbeat(self, name: str, generation: int) -> MixedAnswer:
        """The classic protocol's."""
        answer = self._ask(name, classic_heartbeat(self._classic.sender(name), generation))
        return MixedAnswer(error_name(answer.error_code))

    def leave_group(self, name: str) -> MixedAnswer:
        """LeaveGroup of one member."""
        sender = self._classic.sender(name)
        request = leave_request(sender.group_id, {sender.member_id: sender.instance})
        answer = self._ask(name, request)
        self.timers.left(name)
        errors = [error_name(each.error_code) for each in (answer, *answer.members)]
        return MixedAnswer(next((error for error in errors if error != NO_ERROR), NO_ERROR))

    def view(self) -> MixedView:
        """The group as it is described; what nothing can have changed is not asked for again."""
        if self._view is None:
            self._view = self._described()
            self._pace.seen_at = time.monotonic()
            self._type = self._view.type
        return self._view._replace(parked=self._classic.parked)

    # ---- beside it -------------------------------------------------------------------------

    def look_again(self, seconds: float) -> None:
        """Wait for an answer; something may have changed the group."""
        self._broker.coordinator.receive(seconds)
        self._view = None

    def leave_behind(self) -> None:
        """Let all members leave, so that the group can be deleted."""
        if self._test is None:
            return
        port, (group, _), self._test = self._broker.coordinator, self._test, None
        port.abandon()
        described = describe(port, group)
        ours = {
            member_id(name, self._broker.run): instance
            for name, instance in self._settings.instances.items()
        }
        ids = described.members
        present = self._listed_classic(group.group_id) if ids is None else ids
        classic = dict.fromkeys(id for id in present if id not in ours)
        if classic:
            port.ask(leave_request(group.group_id, classic))
        for id in ours.keys() & {*present}:
            heartbeat(port, group, id, ours[id], Heartbeat(LEAVE_EPOCH))
        self._broker.delete_group(group.group_id)

    # ---- requests and descriptions ---------------------------------------------------------

    def _ask(self, name: str, request: Entity) -> Entity:
        self._view = None
        self.timers.of_classic(name, time.monotonic())
        return self._broker.coordinator.ask(request)

    def _described(self) -> MixedView:
        group = describe(self._broker.coordinator, self._group)
        return self._classic_view() if group.members is None else self._consumer_view(group)

    def _consumer_view(self, group: Description) -> MixedView:
        names = {member_id(name, self._broker.run): name for name in self._settings.instances}
        members = _by_name(
            (
                names.get(id) or self._classic.name_of(id),
                MixedMember(epoch=each.epoch, target=each.target, described=each.assigned),
            )
            for id, each in (group.members or {}).items()
        )
        return MixedView(
            _CONSUMER, "none", group.group_epoch, group.assignment_epoch, members, frozenset()
        )

    def _classic_view(self) -> MixedView:
        group = describe_group(self._broker.coordinator, self._group.group_id)
        if group.error_code or group.group_state in _NOT_SHOWN:
            error = error_name(group.error_code)
            raise SystemFailed(f"No group has members: {error}, state {group.group_state!r}")
        is_shown = group.group_state == _STABLE
        members = _by_name(
            (
                self._classic.name_of(each.member_id),
                MixedMember(
                    described=self._numbers_of(each.member_assignment) if is_shown else None
                ),
            )
            for each in group.members
        )
        return MixedView(_CLASSIC, group.group_state, None, 0, members, frozenset())

    def _listed_classic(self, group_id: str) -> list[str]:
        group = describe_group(self._broker.coordinator, group_id)
        return [member.member_id for member in group.members]

    @property
    def _topic_names(self) -> dict[str, str]:
        """The broker's names, by the model's."""
        return {topic.of_model.name: topic.topic for topic in self._group.topics}

    def _by_topic(self, partitions: Partitions) -> dict[str, frozenset[int]]:
        names = self._topic_names
        return {names[name]: of for name, of in self._settings.by_topic(partitions).items()}

    def _numbers_of(self, assignment: bytes) -> Partitions:
        if not assignment:
            return frozenset()
        names = {theirs: ours for ours, theirs in self._topic_names.items()}
        return frozenset(
            self._settings.numbers(names[topic], place)
            for topic, place in read_assignment(assignment)
        )


def _by_name(members: Iterable[tuple[str, MixedMember]]) -> dict[str, MixedMember]:
    result: dict[str, MixedMember] = {}
    for name, member in members:
        if name in result:
            raise SystemFailed(f"The group is described with two members of {name}")
        result[name] = member
    return result
