"""Makes the spec's values of views: the mapping of GroupState.tla's table.

A state of the spec is a few dozen small records that come again and again, so each value is
made once per view and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from conformance.systems.protocol import Observation
from conformance.systems.shared.group.exchange import GroupMessageView, HeartbeatView, partitions
from conformance.systems.shared.group.settings import NO_INSTANCE, GroupSettings
from conformance.systems.shared.group.views import GroupView, MemberRecord, ProcessView, RecordView
from conformance.tla import Fn, Value

_TIMERS = {None: "None", "initial join": "Initial", "join": "Rebalance"}
_REMEMBERED = 200_000


class GroupObserver:
    """Values for views. Member ids that the spec does not know are shown as they are."""

    def __init__(self, settings: GroupSettings) -> None:
        self._names = settings.members
        self._ids = {real: id for id, real in settings.real_ids().items()}
        self._instances = [instance or NO_INSTANCE for instance in settings.instances.values()]
        self._nothing: dict[Value, Value] = dict.fromkeys(settings.ids, frozenset())
        self._groups: dict[GroupView, tuple[Value, ...]] = {}
        self._rows: dict[ProcessView, tuple[Value, ...]] = {}
        self._states: dict[tuple[object, ...], Observation] = {}

    def observe(self, group: GroupView, processes: tuple[ProcessView, ...]) -> Observation:
        """The observed variables; immutable, as it is shared by all equal observations."""
        key = (group, processes)
        known = self._states.get(key)
        if known is None:
            if len(self._states) >= _REMEMBERED:
                self._states.clear()
                self._groups.clear()
                self._rows.clear()
            known = self._states[key] = self._state(group, processes)
        return known

    def _state(self, group: GroupView, processes: tuple[ProcessView, ...]) -> Observation:
        head = dict(zip(OF_COORDINATOR, self._group(group), strict=True))
        return Observation({**head, **self.of_processes(processes)})

    def of_processes(self, processes: tuple[ProcessView, ...]) -> dict[str, Value]:
        """The variables of the members' side."""
        columns = zip(*map(self._row, processes), strict=True)
        values = [Fn(dict(zip(self._names, column, strict=True))) for column in columns]
        return dict(zip(OF_PROCESSES, values, strict=True))

    # ---- the coordinator -------------------------------------------------------------------

    def _group(self, view: GroupView) -> tuple[Value, ...]:
        known = self._groups.get(view)
        if known is None:
            known = tuple(value(self, view) for value in OF_COORDINATOR.values())
            self._groups[view] = known
        return known

    def record(self, record: RecordView | None) -> Fn:
        """The group's record in the log."""
        members: tuple[MemberRecord, ...] = () if record is None else record.members
        protocol = None if record is None else record.protocol
        static = [(each.instance, each.member_id) for each in members if each.instance is not None]
        return Fn(
            {
                "present": record is not None,
                "generation": 0 if record is None else record.generation,
                "protocol": protocol or NO_INSTANCE,
                "leader": self.id(None if record is None else record.leader),
                "members": self.id_set(each.member_id for each in members),
                "staticMembers": self.by_instance(static),
                "supported": self.by_id(
                    (each.member_id, frozenset({protocol or NO_INSTANCE})) for each in members
                ),
                "assignment": self.by_id(
                    (each.member_id, partitions(each.assignment)) for each in members
                ),
            }
        )

    # ---- the processes ---------------------------------------------------------------------

    def _row(self, view: ProcessView) -> tuple[Value, ...]:
        row = self._rows.get(view)
        if row is None:
            row = self._rows[view] = tuple(value(self, view) for value in OF_PROCESSES.values())
        return row

    def message(self, value: GroupMessageView) -> Fn:
        """A request to join, sync or commit, or its answer."""
        return Fn(
            {
                "type": value.type,
                "sentMemberId": self.id(value.sent_member_id),
                "sentGeneration": value.sent_generation,
                "abandoned": value.abandoned,
                "protocols": value.protocols,
                "assignments": self.by_id(value.assignments),
                "error": value.error,
                "memberId": self.id(value.member_id),
                "generation": value.generation,
                "protocol": value.protocol or NO_INSTANCE,
                "leader": self.id(value.leader),
                "members": self.id_set(value.members),
                "assignment": value.assignment,
                "skipAssignment": value.skip_assignment,
            }
        )

    def heartbeat(self, value: HeartbeatView) -> Fn:
        """A heartbeat, or its answer."""
        return Fn(
            {
                "type": value.type,
                "memberId": self.id(value.member_id),
                "generation": value.generation,
                "error": value.error,
            }
        )

    # ---- names -----------------------------------------------------------------------------

    def id(self, real: str | None) -> str:
        """The spec's member id; the empty one of nobody."""
        return self._ids.get(real, real) if real else ""

    def id_set(self, real: Iterable[str]) -> frozenset[Value]:
        """A set of the spec's ids."""
        return frozenset([self.id(each) for each in real])

    def by_id(self, values: Iterable[tuple[str, Value]]) -> Fn:
        """A function on all ids; an empty set where there is nothing."""
        return Fn({**self._nothing, **{self.id(real): value for real, value in values}})

    def by_instance(self, static: Iterable[tuple[str, str]]) -> Fn:
        """A function on all instances; no member id where there is nothing."""
        mapped: dict[Value, Value] = dict.fromkeys(self._instances, "")
        mapped.update({instance: self.id(real) for instance, real in static})
        return Fn(mapped)


def _member_generation(to: GroupObserver, view: ProcessView) -> Value:
    return Fn(
        {
            "generation": view.generation,
            "memberId": to.id(view.member_id),
            "protocol": view.protocol or NO_INSTANCE,
        }
    )


OF_COORDINATOR: dict[str, Callable[[GroupObserver, GroupView], Value]] = {
    "groupState": lambda _, view: view.state,
    "generation": lambda _, view: view.generation,
    "protocolName": lambda _, view: view.protocol or NO_INSTANCE,
    "leader": lambda to, view: to.id(view.leader),
    "members": lambda to, view: to.id_set(each.member_id for each in view.members),
    "pendingMembers": lambda to, view: to.id_set(view.pending),
    "staticMembers": lambda to, view: to.by_instance(view.static),
    "supported": lambda to, view: to.by_id(
        (each.member_id, frozenset(each.protocols)) for each in view.members
    ),
    "awaitingJoin": lambda to, view: to.id_set(
        each.member_id for each in view.members if each.awaits_join
    ),
    "awaitingSync": lambda to, view: to.id_set(
        each.member_id for each in view.members if each.awaits_sync
    ),
    "newMembers": lambda to, view: to.id_set(
        each.member_id for each in view.members if each.is_new
    ),
    "pendingSync": lambda to, view: to.id_set(view.pending_sync),
    "assignment": lambda to, view: to.by_id(
        (each.member_id, partitions(each.assignment)) for each in view.members
    ),
    "joinTimer": lambda _, view: _TIMERS[view.join_timer],
    "initialDelays": lambda _, view: view.initial_delays,
    "newMemberAdded": lambda _, view: view.new_member_added,
    "groupRecord": lambda to, view: to.record(view.record),
}
"""Each variable of the coordinator, and how its view shows it."""

OF_PROCESSES: dict[str, Callable[[GroupObserver, ProcessView], Value]] = {
    "memberState": lambda _, view: view.state,
    "memberGeneration": _member_generation,
    "rejoinNeeded": lambda _, view: view.rejoin_needed,
    "needsJoinPrepare": lambda _, view: view.needs_join_prepare,
    "joinFuture": lambda _, view: Fn({"state": view.future, "assignment": view.future_assignment}),
    "isLeader": lambda _, view: view.is_leader,
    "owned": lambda _, view: view.owned,
    "protocols": lambda _, view: view.protocols,
    "failed": lambda _, view: view.failed,
    "channel": lambda to, view: to.message(view.channel),
    "heartbeat": lambda to, view: to.heartbeat(view.heartbeat),
}
"""Each variable of the members' side, a function of the members, and how a process shows it."""

VARIABLES = (*OF_COORDINATOR, *OF_PROCESSES)
"""Observed: all but the ghosts `idsGiven` and `failures`."""
