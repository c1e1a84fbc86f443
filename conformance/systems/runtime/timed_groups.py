"""The system under test with a group whose members have timers: spec/CoordinatorGroupTimers.tla."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.errors import UserError
from conformance.systems.runtime.groups import GROUP, CoordinatedGroup
from conformance.systems.runtime.later import LaterWrites, ShardTimers
from conformance.systems.runtime.system import ShardMaker
from conformance.systems.runtime.timers import TimersSystem
from conformance.tla import Value
from impl.coordinator.coordinator_shard import ShardBuilder
from impl.coordinator.coordinator_timer import TimeoutTask
from impl.coordinator.group.consumer_group_manager import session_timeout_key


class TimedGroupsSystem(TimersSystem):
    """Brokers of a group whose members' sessions are over when an action says so."""

    def __init__(self, constants: Mapping[str, Value]) -> None:
        members = constants["TimedMembers"]
        if not isinstance(members, frozenset):
            raise UserError("TimedMembers must be a set.")
        keys = {name: session_timeout_key(GROUP, name) for name in sorted(map(str, members))}
        super().__init__(constants, keys, deletion="DeleteOffsetsTopic")

    @staticmethod
    def _shard_maker(_constants: Mapping[str, Value], _max_batch: int) -> ShardMaker:
        return CoordinatedGroup

    def _builder(self, later: LaterWrites) -> ShardBuilder:
        group = self._shard
        assert isinstance(group, CoordinatedGroup), "the model's shard has groups"
        return lambda registry: group.build(registry, later.timer)

    def _set_for(self, timers: ShardTimers, task: TimeoutTask) -> int:
        return timers.set_after(task)
