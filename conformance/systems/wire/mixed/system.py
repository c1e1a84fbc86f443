"""Drives any broker's coordinator along MixedGroup.tla's actions: a group of both protocols.

The consumers are ours. Answers are compared, and what ConsumerGroupDescribe shows of a consumer
group, DescribeGroups of a classic one. Nothing shows a member's state, what it is to revoke, nor a
classic group's generation before a member is told it: there the specification's states remain as
candidates. The target assignment is the coordinator's choice, which is followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.deviations.tolerance import Tolerance
from conformance.systems.shared.mixed.settings import MixedSettings
from conformance.systems.shared.mixed.system import MixedGroupSystem
from conformance.systems.wire.address import Address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.group_broker import GroupBroker
from conformance.systems.wire.consumer.settings import GroupSession
from conformance.systems.wire.mixed.coordinator import MixedTest, WireMixedCoordinator
from conformance.systems.wire.mixed.reach import SPECIFICATION, lacking, observed
from conformance.systems.wire.mixed.timers import (
    EXPIRY,
    MixedTimers,
    RunningMixedTimers,
    foresight,
)
from conformance.systems.wire.pace import Pace
from conformance.systems.wire.security import Security
from conformance.tla import Action, Value

_NOT_ALWAYS = frozenset({"epoch", "described"})
"""A classic group's generation is not described, its assignment in the state Stable only."""


class WireMixedSystem(MixedGroupSystem):
    """One group of a broker at a time; a new one for each test."""

    def __init__(
        self, settings: MixedSettings, address: Address, security: Security, tolerance: Tolerance
    ) -> None:
        self.tolerance = tolerance
        self.variables = observed(settings)
        self.sometimes = _NOT_ALWAYS & {*self.variables}
        self._address = address
        port = WireBroker(address, security)
        port.require(SPECIFICATION, lacking(port.entry))
        self._broker = GroupBroker(port, settings.topics, address)
        self._pace = Pace(address)
        self._path = MixedTimers()
        self._at_port = WireMixedCoordinator(port, settings, self._pace)
        super().__init__(settings, self._at_port)

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """The group of the beginning; what was before is left behind."""
        self._at_port.leave_behind()
        group, _ = self._broker.new_group()
        self._pace.begin()
        session = GroupSession(self._broker.sessions, group.group_id)
        timers = RunningMixedTimers(self._path, session, self._pace)
        self._at_port.begin(MixedTest(group, timers))
        self._begin()
        self._broker.port.coordinator.slowest = 0.0

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        self._at_port.timers.step()
        self._pace.step()
        super().apply(action)
        self._pace.window = self._pace.patience

    def foresee(self, actions: Sequence[Action]) -> str:
        """Which sessions the next test lets expire; why it cannot be driven, if it cannot."""
        path = self._path = foresight(actions, self._settings.classic, self._address)
        if path.heartbeats and not self._broker.sets_sessions:
            return (
                f"{EXPIRY}: a group's session timeout is set by IncrementalAlterConfigs, which is "
                "not offered"
            )
        return ""

    # ---- Patient, Closeable ----------------------------------------------------------------

    @property
    def lanes(self) -> int:
        """Groups side by side."""
        return self._address.groups

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._pace.be_alone()

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again."""
        return self._pace.patience

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe when an answer has arrived; at the latest after a pause that doubles each time:
        a session that is over shows in descriptions only."""
        self._at_port.look_again(min(seconds, self._pace.next_pause()))
        return self.observe()

    @property
    def late(self) -> str:
        """Which session may be over although the path has not come to it, or why too little time
        was left for what was looked for."""
        port = self._broker.port
        slow = self._pace.slow(port.coordinator.slowest)
        return self._at_port.over or slow or port.leaders.changed()

    def close(self) -> None:
        """Delete what was made, and close the connections."""
        with self._broker.port.closing():
            self._at_port.leave_behind()
            self._broker.sessions.forget()
            self._broker.delete_topics()
