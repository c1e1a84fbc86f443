"""One group of KIP-848 of one test: its members, and what its coordinator shows of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.member import LEAVE_EPOCH, Commit, Heartbeat, WireMember
from conformance.systems.wire.consumer.observation import group_values, member_values
from conformance.systems.wire.consumer.reach import ConsumerSettings
from conformance.systems.wire.consumer.requests import (
    Description,
    MemberGroup,
    commit,
    describe,
    heartbeat,
)
from conformance.systems.wire.consumer.running_timers import RunningConsumerTimers
from conformance.systems.wire.pace import Pace
from conformance.tla import Value


class DrivenConsumerGroup:
    """A group id that nobody has used, and new members. `description`: the group as it is now."""

    def __init__(
        self,
        settings: ConsumerSettings,
        broker: WireBroker,
        group: MemberGroup,
        description: Description,
        pace: Pace,
        timers: RunningConsumerTimers,
    ) -> None:
        self._broker = broker
        self._group = group
        self._pace = pace
        self.timers = timers
        names = settings.names_while_reconciling
        self.members = {
            name: WireMember(name, instance, names_while_reconciling=names)
            for name, instance in settings.instances.items()
        }
        self._description: Description | None = description
        self._before_first: int | None = None
        """The broker's epoch before the group's first one, which is the specification's 1."""
        self._commits = 0

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
        theirs = replace(sent, epoch=self._their_epoch(sent.epoch))
        asked = time.monotonic()  # its timers begin later
        answer = heartbeat(port, self._group, self._id(member), member.instance, theirs, rebalance)
        self._describe()
        member.channel = replace(answer, epoch=self._our_epoch(answer.epoch))
        self.timers.begin(member, answer, asked)

    def send_commit(self, name: str) -> None:
        """What is committed is this commit's number, so that OffsetFetch tells which it was."""
        member = self.members[name]
        sent = member.commit
        if not isinstance(sent, Commit):
            raise ActionRefused(f"no commit of {name} is under way")
        self._commits += 1
        theirs = replace(sent, epoch=self._their_epoch(sent.epoch))
        port, id = self._broker.coordinator, self._id(member)
        member.commit = commit(port, self._group, id, member.instance, theirs, self._commits)

    def forget(self) -> None:
        """A timer may have changed the group."""
        self._description = None

    def values(self) -> Mapping[str, Value]:
        """What can be seen now; what nothing can have changed is not asked for again."""
        group = self._description or self._describe()
        members = group.members or {}
        known = {self._id(member): name for name, member in self.members.items()}
        strangers = sorted({*members} - {*known})
        if strangers:
            raise SystemFailed(f"ConsumerGroupDescribe shows members that nobody sent: {strangers}")
        shown = {known[id]: member for id, member in members.items()}
        of_group = group_values(group, shown, self.members, self._our_epoch)
        return {**of_group, **member_values(self.members.values())}

    def _describe(self) -> Description:
        """A new group's first epoch is the specification's 1: Kafka has begun with 1, and begins
        with 2 since the field of a new group holds 1 (ModernGroup, seen in 4.4.0)."""
        group = self._description = describe(self._broker.coordinator, self._group)
        self._pace.seen_at = time.monotonic()
        if self._before_first is None and group.members is not None:
            self._before_first = group.group_epoch - 1
        return group

    def _our_epoch(self, theirs: int) -> int:
        return theirs - (self._before_first or 0) if theirs > 0 else theirs

    def _their_epoch(self, ours: int) -> int:
        return ours + (self._before_first or 0) if ours > 0 else ours

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
