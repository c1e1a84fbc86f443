"""Makes the spec's values of views: the mapping of GroupState.tla's table.

A state of the spec is a few dozen small records that come again and again, so each value is
made once per view and kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from conformance.systems.group.exchange import HeartbeatView, MessageView, partitions
from conformance.systems.group.settings import NO_INSTANCE, Settings
from conformance.systems.group.view import GroupView, ProcessView
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value
from impl.group.group_records import GroupMember, GroupMetadataValue

_GROUP = (
    "groupState",
    "generation",
    "protocolName",
    "leader",
    "members",
    "pendingMembers",
    "staticMembers",
    "supported",
    "awaitingJoin",
    "awaitingSync",
    "newMembers",
    "pendingSync",
    "assignment",
    "joinTimer",
    "initialDelays",
    "newMemberAdded",
    "groupRecord",
)
OF_PROCESSES = (
    "memberState",
    "memberGeneration",
    "rejoinNeeded",
    "needsJoinPrepare",
    "joinFuture",
    "isLeader",
    "owned",
    "protocols",
    "failed",
    "channel",
    "heartbeat",
)
"""The variables of the members' side."""
VARIABLES = (*_GROUP, *OF_PROCESSES)
"""Observed: all but the ghosts `idsGiven` and `failures`."""

_TIMERS = {None: "None", "initial join": "Initial", "join": "Rebalance"}
_REMEMBERED = 200_000


class Observer:
    """Values for views. Member ids that the spec does not know are shown as they are."""

    def __init__(self, settings: Settings) -> None:
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
        head = dict(zip(_GROUP, self._group(group), strict=True))
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
            known = self._groups[view] = self._make_group(view)
        return known

    def _make_group(self, view: GroupView) -> tuple[Value, ...]:
        members = view.members
        return (
            view.state,
            view.generation,
            view.protocol or NO_INSTANCE,
            self._id(view.leader),
            self.id_set(member.member_id for member in members),
            self.id_set(view.pending),
            self._by_instance(view.static),
            self.by_id((each.member_id, frozenset(each.protocols)) for each in members),
            self.id_set(member.member_id for member in members if member.awaits_join),
            self.id_set(member.member_id for member in members if member.awaits_sync),
            self.id_set(member.member_id for member in members if member.is_new),
            self.id_set(view.pending_sync),
            self.by_id((each.member_id, partitions(each.assignment)) for each in members),
            _TIMERS[view.join_timer],
            view.initial_delays,
            view.new_member_added,
            self._record(view.record),
        )

    def _record(self, record: GroupMetadataValue | None) -> Fn:
        members: tuple[GroupMember, ...] = () if record is None else record.members
        protocol = None if record is None else record.protocol
        static = [
            (each.group_instance_id, each.member_id)
            for each in members
            if each.group_instance_id is not None
        ]
        return Fn(
            {
                "present": record is not None,
                "generation": 0 if record is None else record.generation,
                "protocol": protocol or NO_INSTANCE,
                "leader": self._id(None if record is None else record.leader),
                "members": self.id_set(each.member_id for each in members),
                "staticMembers": self._by_instance(static),
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
            row = self._rows[view] = self._make_row(view)
        return row

    def _make_row(self, view: ProcessView) -> tuple[Value, ...]:
        return (
            view.state,
            Fn(
                {
                    "generation": view.generation,
                    "memberId": self._id(view.member_id),
                    "protocol": view.protocol or NO_INSTANCE,
                }
            ),
            view.rejoin_needed,
            view.needs_join_prepare,
            Fn({"state": view.future, "assignment": view.future_assignment}),
            view.is_leader,
            view.owned,
            view.protocols,
            view.failed,
            self._message(view.channel),
            self._heartbeat(view.heartbeat),
        )

    def _message(self, value: MessageView) -> Fn:
        return Fn(
            {
                "type": value.type,
                "sentMemberId": self._id(value.sent_member_id),
                "sentGeneration": value.sent_generation,
                "abandoned": value.abandoned,
                "protocols": value.protocols,
                "assignments": self.by_id(value.assignments),
                "error": value.error,
                "memberId": self._id(value.member_id),
                "generation": value.generation,
                "protocol": value.protocol or NO_INSTANCE,
                "leader": self._id(value.leader),
                "members": self.id_set(value.members),
                "assignment": value.assignment,
                "skipAssignment": value.skip_assignment,
            }
        )

    def _heartbeat(self, value: HeartbeatView) -> Fn:
        return Fn(
            {
                "type": value.type,
                "memberId": self._id(value.member_id),
                "generation": value.generation,
                "error": value.error,
            }
        )

    # ---- names -----------------------------------------------------------------------------

    def _id(self, real: str | None) -> str:
        return self._ids.get(real, real) if real else ""

    def id_set(self, real: Iterable[str]) -> frozenset[Value]:
        """A set of the spec's ids."""
        return frozenset([self._id(each) for each in real])

    def by_id(self, values: Iterable[tuple[str, Value]]) -> Fn:
        """A function on all ids; an empty set where there is nothing."""
        return Fn({**self._nothing, **{self._id(real): value for real, value in values}})

    def _by_instance(self, static: Iterable[tuple[str, str]]) -> Fn:
        """A function on all instances; no member id where there is nothing."""
        mapped: dict[Value, Value] = dict.fromkeys(self._instances, "")
        mapped.update({instance: self._id(real) for instance, real in static})
        return Fn(mapped)
