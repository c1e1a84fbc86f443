"""Drives any broker's coordinator of KIP-848's consumer groups along ConsumerGroup.tla's actions.

The members are ours. Where the specification lets the coordinator handle a heartbeat, it goes out
and is answered at once; what ConsumerGroupDescribe shows afterwards is compared, and what the
members know. The target assignment is the coordinator's choice, which is followed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from conformance.deviations.tolerance import Tolerance
from conformance.systems.protocol import ActionRefused
from conformance.systems.wire.address import Address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.driven_group import DrivenConsumerGroup, GroupTest
from conformance.systems.wire.consumer.group_broker import GroupBroker
from conformance.systems.wire.consumer.inner_steps import INNER_STEPS, PASS_INTERVAL, UNSHOWN
from conformance.systems.wire.consumer.member import REQUESTS, is_of_a_member, step_of_member
from conformance.systems.wire.consumer.observation import VARIABLES, not_always
from conformance.systems.wire.consumer.reach import (
    SPECIFICATION,
    TOPIC_CHANGES,
    ConsumerSettings,
    lacking,
)
from conformance.systems.wire.consumer.resolutions import (
    RESOLUTION_STEPS,
    RunningResolutions,
    unsettled,
    waits,
)
from conformance.systems.wire.consumer.running_timers import RunningConsumerTimers
from conformance.systems.wire.consumer.settings import GroupSession
from conformance.systems.wire.consumer.timers import EXPIRIES, ConsumerTimers, foresight
from conformance.systems.wire.pace import LONGEST_PAUSE, Pace
from conformance.systems.wire.security import Security
from conformance.tla import Action, Value


class WireConsumerSystem:
    """One group of a broker at a time; a new one for each test."""

    variables = VARIABLES

    def __init__(
        self, settings: ConsumerSettings, address: Address, security: Security, tolerance: Tolerance
    ) -> None:
        self.tolerance = tolerance
        self._settings = settings
        self._address = address
        self._broker = WireBroker(address, security)
        self._broker.require(SPECIFICATION, lacking(self._broker.entry, settings))
        self.sometimes = not_always(settings)
        self._groups = GroupBroker(self._broker, settings.topics, address, settings.regexes)
        self._foresight = ConsumerTimers()
        self._unsettled: frozenset[int] = frozenset()
        self._pace = Pace(address)
        self._driven: DrivenConsumerGroup | None = None

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A group id that nobody has used, new members; what was before is left behind."""
        self._leave_behind()
        topics, description = self._groups.new_topics()
        self._pace.begin()
        session = GroupSession(self._groups.sessions, topics.group.group_id)
        test = GroupTest(
            topics,
            RunningConsumerTimers(self._foresight, session, self._pace, self._address),
            RunningResolutions(self._unsettled, self._pace, self._address.regex_refresh),
        )
        self._driven = DrivenConsumerGroup(
            self._settings, self._broker, test, description, self._pace
        )
        self._broker.coordinator.slowest = 0.0

    @property
    def _driven_group(self) -> DrivenConsumerGroup:
        assert self._driven is not None, "the harness resets a system first"
        return self._driven

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        group = self._driven_group
        group.timers.step()
        group.resolutions.step()
        self._pace.step()
        if action.name in TOPIC_CHANGES - UNSHOWN.keys():
            group.change_topic(action)
        elif action.name in INNER_STEPS:
            self._go_on(group, action.name)
        else:
            self._step_of(group, str(action.args[0]), action)
        self._pace.window = self._pace.patience

    def _go_on(self, group: DrivenConsumerGroup, step: str) -> None:
        group.forget()
        if step == PASS_INTERVAL:
            group.timers.interval.wait()
        elif step in RESOLUTION_STEPS:
            group.resolutions.take(step)
        else:
            raise ActionRefused(f"{step} cannot be brought about through a port")

    def _step_of(self, group: DrivenConsumerGroup, member: str, action: Action) -> None:
        if is_of_a_member(action):
            step_of_member(group.members[member], action)
        elif action.name in REQUESTS:
            group.send_heartbeat(member)
        elif action.name == "HandleCommit":
            group.send_commit(member)
        elif action.name in EXPIRIES:
            group.forget()
            group.timers.wait_for(action.name, member)
        else:
            raise ActionRefused(f"{action.name} cannot be brought about through a port")

    def observe(self) -> Mapping[str, Value]:
        """What can be seen now; what nothing can have changed is not asked for again."""
        return self._driven_group.values()

    def foresee(self, actions: Sequence[Action]) -> str:
        """Which timers the next test lets expire; why it cannot be driven, if it cannot."""
        if not self._groups.sets_sessions and any(action.name in EXPIRIES for action in actions):
            return "a group's session timeout is set by IncrementalAlterConfigs: it is not offered"
        self._foresight = foresight(actions, self._address)
        self._unsettled = unsettled(actions)
        return waits(actions)

    # ---- Patient, Closeable ----------------------------------------------------------------

    @property
    def lanes(self) -> int:
        """Groups side by side."""
        return self._address.groups

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._pace.be_alone()
        self._groups.be_alone()

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again: an answer comes after its effect, so only
        timers are waited for."""
        return self._pace.patience

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe after a moment: a timer shows in ConsumerGroupDescribe only."""
        time.sleep(min(seconds, LONGEST_PAUSE))
        self._driven_group.forget()
        return self.observe()

    @property
    def late(self) -> str:
        """Which timer may be over although the path has not come to it, or why too little time was
        left for what was looked for."""
        driven = self._driven
        over = "" if driven is None else driven.timers.over or driven.resolutions.over
        slow = self._pace.slow(self._broker.coordinator.slowest)
        return over or slow or self._broker.leaders.changed()

    def close(self) -> None:
        """Delete what was made, and close the connections."""
        with self._broker.closing():
            self._leave_behind()
            self._groups.sessions.forget()
            self._groups.delete_topics()

    def _leave_behind(self) -> None:
        group, self._driven = self._driven, None
        if group is not None:
            group.leave_behind()
            self._groups.put_back(group.topics)
