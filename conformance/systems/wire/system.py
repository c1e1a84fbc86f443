"""Drives any broker's group coordinator through its port, along GroupMembership.tla's actions.

The members are ours (those of `systems/group`): a step of a member is taken in this process, and
where the specification lets the coordinator handle a request, it goes out on a connection of its
own. Seen are the answers, which requests are parked, and DescribeGroups.

Requests on two connections may overtake one another, and an answer takes its time: so an
observation that the specification does not allow is made again for a while (`patience`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from conformance.deviations.tolerance import Tolerance
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.shared.group.observation import OF_PROCESSES, GroupObserver
from conformance.systems.shared.group.settings import TOPIC, GroupSettings
from conformance.systems.shared.group.steps import (
    OF_A_PROCESS,
    REQUESTS_OF_CHANNEL,
    REQUESTS_OF_HEARTBEAT,
)
from conformance.systems.wire.address import Address
from conformance.systems.wire.admin import delete_group
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.coordination import Coordination
from conformance.systems.wire.driven_group import DrivenGroup
from conformance.systems.wire.failover import turns
from conformance.systems.wire.pace import Pace
from conformance.systems.wire.security import Security
from conformance.systems.wire.timers import (
    REBALANCES,
    SESSIONS,
    PathTimers,
    foresight,
    not_drivable,
)
from conformance.tla import Action, Value

SPECIFICATION = "GroupMembership"
"""The root module that says what the actions are."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What a model asks of a broker besides its groups."""

    commits: bool
    """A topic, whose offsets are committed."""
    fail_overs: bool
    """Another broker, to which the user's command moves the coordinator."""
    store_failures: bool
    """A log that refuses an append."""


class WireSystem:
    """One group of a broker at a time; a new one for each test."""

    variables = ("groupState", "members", "protocolName", "assignment", *OF_PROCESSES)
    sometimes = frozenset({"groupState", "members", "protocolName", "assignment"})
    """DescribeGroups tells the last two of a Stable group only; a broker may lack it altogether."""

    def __init__(
        self,
        settings: GroupSettings,
        address: Address,
        security: Security,
        demands: Demands,
        tolerance: Tolerance,
    ) -> None:
        self.tolerance = tolerance
        self._settings = settings
        self._address = address
        self._demands = demands
        self._observer = GroupObserver(settings)
        self._broker = WireBroker(address, security)
        self._coordination = Coordination(
            self._broker, turns(address, security) if demands.fail_overs else None
        )
        made = self._broker.make_topic(settings.partitions) if demands.commits else None
        self._topic = TOPIC if made is None else made[0]
        self._foresight = PathTimers()
        self._pace = Pace(address)
        self._driven: DrivenGroup | None = None
        self._others: Mapping[str, Callable[[DrivenGroup], None]] = {
            "ExpireInitialDelay": lambda group: group.timers.wait_for_initial_delay(),
            "DeleteGroup": self._delete_group,
            "FailOver": lambda _: self._coordination.fail_over(),
            **dict.fromkeys(REBALANCES, lambda group: group.timers.wait_for_rebalance()),
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A group id that nobody has used, new processes; what was before is left behind."""
        self._leave_behind()
        group_id = self._broker.new_group_id()
        self._coordination.begin(group_id)
        self._pace.begin()
        self._driven = DrivenGroup(
            self._settings,
            self._broker,
            self._pace,
            self._foresight,
            group_id=group_id,
            topic=self._topic,
        )
        self._broker.coordinator.slowest = 0.0

    @property
    def _group(self) -> DrivenGroup:
        assert self._driven is not None, "the harness resets a system first"
        return self._driven

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        name, args = action
        group = self._group
        self._pace.step()
        if name in OF_A_PROCESS:
            OF_A_PROCESS[name](group.processes[str(args[0])], args)
        elif name in REQUESTS_OF_CHANNEL:
            group.send_channel(str(args[0]))
        elif name in REQUESTS_OF_HEARTBEAT:
            group.send_heartbeat(str(args[0]))
        elif name in SESSIONS:
            group.description.forget()
            group.timers.wait_for_session(str(args[0]), seen=name == "ExpireSession")
        elif name == "FailToStoreAssignment":
            group.send_while_appends_fail(str(args[0]))
        elif name in self._others:
            group.description.forget()
            self._others[name](group)
        else:
            raise ActionRefused(f"{name} cannot be brought about through a port")
        group.timers.keep_alive()
        self._pace.window = self.patience

    def observe(self) -> Mapping[str, Value]:
        """What can be seen now; what nothing can have changed is not asked for again."""
        looking = time.monotonic()
        self._group.receive()
        self._group.description.look()
        self._pace.looked_at, self._pace.seen_at = looking, time.monotonic()
        return self._group.values(self._observer)

    def foresee(self, actions: Sequence[Action]) -> str:
        """Which timers the next test lets expire; why it cannot be driven, if it cannot."""
        self._foresight = foresight(actions, self._address)
        self._coordination.foresee(actions)
        return not_drivable(actions, self._address)

    # ---- Patient, Closeable ----------------------------------------------------------------

    @property
    def lanes(self) -> int:
        """Groups side by side; one where the whole log is made to refuse appends."""
        return 1 if self._demands.store_failures else self._address.groups

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._pace.be_alone()

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again."""
        return self._pace.patience if self._driven is None else self._driven.timers.patience

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe when an answer has arrived; at the latest after a pause that doubles each time.

        DescribeGroups may have overtaken a request that is parked now: nothing will arrive then.
        """
        self._group.timers.keep_alive()
        self._broker.coordinator.receive(min(seconds, self._pace.next_pause()))
        self._group.description.forget()
        return self.observe()

    @property
    def late(self) -> str:
        """Which timer of the broker may have run out, although the path had not come to it, when
        it was last looked; that too little time was left for what was looked for; or that the
        coordinator moved by itself."""
        slow = self._pace.slow(self._broker.coordinator.slowest)
        over = "" if self._driven is None else self._driven.timers.over
        return slow or over or self._coordination.moved_by_itself

    def close(self) -> None:
        """Delete what was made, and close the connections."""
        try:
            with self._broker.closing():
                self._leave_behind()
        finally:
            self._coordination.end()

    def _leave_behind(self) -> None:
        group, self._driven = self._driven, None
        if group is not None:
            group.leave_behind()

    def _delete_group(self, group: DrivenGroup) -> None:
        error = delete_group(self._broker.coordinator, group.description.id)
        if error is not ErrorCode.none:
            raise ActionRefused(f"DeleteGroups was answered {error_name(error)}")
