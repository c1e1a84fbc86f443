"""One group of KIP-848 of one test: its members, and what its coordinator shows of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.member import LEAVE_EPOCH, Commit, Heartbeat, WireMember
from conformance.systems.wire.consumer.observation import group_values, member_values
from conformance.systems.wire.consumer.reach import DELETE_TOPIC, ConsumerSettings
from conformance.systems.wire.consumer.requests import (
    Description,
    MemberGroup,
    commit,
    describe,
    heartbeat,
)
from conformance.systems.wire.consumer.resolutions import RunningResolutions
from conformance.systems.wire.consumer.running_timers import RunningConsumerTimers
from conformance.systems.wire.consumer.topics import ChangingTopics
from conformance.systems.wire.pace import Pace
from conformance.tla import Action, Value


class GroupTest(NamedTuple):
    """What belongs to one test: what its group reads, and what runs by itself while it runs."""

    topics: ChangingTopics
    timers: RunningConsumerTimers
    resolutions: RunningResolutions


class DrivenConsumerGroup:
    """A group id that nobody has used, and new members. `description`: the group as it is now."""

    def __init__(
        self,
        settings: ConsumerSettings,
        broker: WireBroker,
        test: GroupTest,
        description: Description,
        pace: Pace,
    ) -> None:
        self._broker = broker
        self._pace = pace
        self.topics, self.timers, self.resolutions = test
        names = settings.names_while_reconciling
        self.members = {
            name: WireMember(
                name,
                instance,
                settings.reads[name],
                names_while_reconciling=names,
                assignor=settings.named_assignors[name],
            )
            for name, instance in settings.instances.items()
        }
        self._description: Description | None = description
        self._commits = 0
        self._not_described_until = 0
        """Of a topic that was deleted the target is not shown, as long as it has that."""

    @property
    def _group(self) -> MemberGroup:
        return self.topics.group

    def _id(self, member: WireMember) -> str:
        """Members are sorted by it, as their names are."""
        return f"{member.name}-{self._broker.run}"

    def send_heartbeat(self, name: str) -> None:
        """The member's heartbeat goes to the coordinator, and is answered at once."""
        member = self.members[name]
        sent = member.channel
        if not isinstance(sent, Heartbeat):
            raise ActionRefused(f"no request of {name} is under way")
        self.timers.set_session()
        port, rebalance = self._broker.coordinator, self.timers.rebalance_of(member)
        asked = time.monotonic()  # its timers begin later
        answer = heartbeat(port, self._group, self._id(member), member.instance, sent, rebalance)
        group = self._describe()
        member.channel = answer
        if group.members:  # of a group that is empty no interval runs (KAFKA-20442)
            self.timers.interval.target_seen(group.assignment_epoch, asked)
        self.timers.begin(member, answer, asked)

    def send_commit(self, name: str) -> None:
        """What is committed is this commit's number, so that OffsetFetch tells which it was."""
        member = self.members[name]
        sent = member.commit
        if not isinstance(sent, Commit):
            raise ActionRefused(f"no commit of {name} is under way")
        self._commits += 1
        port, id = self._broker.coordinator, self._id(member)
        member.commit = commit(port, self._group, id, member.instance, sent, self._commits)

    def change_topic(self, action: Action) -> None:
        """A topic changes, and the coordinator hears of it."""
        if action.name == DELETE_TOPIC:
            self._not_described_until = (self._description or self._describe()).assignment_epoch + 1
        self.topics.change(action)
        self.forget()

    def forget(self) -> None:
        """A timer may have changed the group."""
        self._description = None

    def values(self) -> Mapping[str, Value]:
        """What can be seen now; what nothing can have changed is not asked for again."""
        of_members = member_values(self.members.values())
        if not self.resolutions.shows_group:
            return of_members
        group = self._description or self._describe()
        members = group.members or {}
        known = {self._id(member): name for name, member in self.members.items()}
        strangers = sorted({*members} - {*known})
        if strangers:
            raise SystemFailed(f"ConsumerGroupDescribe shows members that nobody sent: {strangers}")
        shown = {known[id]: member for id, member in members.items()}
        of_group = group_values(group, shown, self.members)
        if group.assignment_epoch < self._not_described_until:
            del of_group["target"]
        return {**of_group, **of_members}

    def _describe(self) -> Description:
        group = self._description = describe(self._broker.coordinator, self._group)
        self._pace.seen_at = time.monotonic()
        return group

    def leave_behind(self) -> None:
        """Let all members leave, so that the group can be deleted."""
        port = self._broker.coordinator
        names = {self._id(member): member for member in self.members.values()}
        group = describe(port, self._group)
        for id in group.members or ():
            instance = names[id].instance if id in names else None
            heartbeat(port, self._group, id, instance, Heartbeat(LEAVE_EPOCH))
        if group.members is not None:
            self._broker.delete_group(self._group.group_id)
