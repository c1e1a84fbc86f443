"""The group as DescribeGroups and ListGroups show it; not asked for again until it may differ."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from conformance.kafka.entities import Entity, make, newest
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name, partitions
from conformance.systems.shared.group.observation import GroupObserver
from conformance.systems.shared.group.settings import NO_INSTANCE
from conformance.systems.wire.admin import describe_group, listed_state
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.member_requests import MemberRequests
from conformance.systems.wire.pace import Pace
from conformance.tla import Value

_STABLE, _DEAD = "Stable", "Dead"
_WITHOUT_MEMBERS = frozenset({_DEAD, "Empty"})


def _description(group_id: str, state: str) -> Entity:
    """A group without members, as DescribeGroups would tell of it."""
    return make(
        newest("describe_groups", "response").DescribedGroup,
        error_code=ErrorCode.none,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
    )


_UNSEEN = _description("", "")
"""Of a broker that describes no groups."""


class DescribedGroup:
    """One group. `phase` is the state in which it was last seen, since when (monotonic clock, s) at
    the earliest; empty as long as it was not seen, or ListGroups says something else."""

    def __init__(
        self, broker: WireBroker, requests: MemberRequests, pace: Pace, group_id: str
    ) -> None:
        self.id = group_id
        self.phase = ""
        self.phase_since = pace.seen_at
        self._broker = broker
        self._requests = requests
        self._pace = pace
        self._description: Entity | None = None
        self._listed = ""

    def forget(self) -> None:
        """Something may have changed it."""
        self._description = None

    @property
    def is_without_members(self) -> bool:
        """Whether it is known to be so."""
        known = self._description
        return known is not None and known.group_state in _WITHOUT_MEMBERS

    def look(self) -> None:
        """Describe it, unless it is known."""
        if self._description is None:
            self._description = self._describe()

    def member_ids(self) -> tuple[str, ...] | None:
        """Who is in it now, by our ids; None if it is not there, or nobody can tell."""
        group = self._describe()
        if group.group_state == _DEAD or group is _UNSEEN:
            return None
        return tuple(member.member_id for member in group.members)

    def values(self, observer: GroupObserver) -> dict[str, Value]:
        """The specification's variables that its description shows."""
        group, other = self._description, self._listed
        if group is None or group is _UNSEEN:
            return {}
        state = f"{group.group_state}, and ListGroups says {other}" if other else group.group_state
        seen: dict[str, Value] = {
            "groupState": state,
            "members": observer.id_set(member.member_id for member in group.members),
        }
        if group.group_state == _STABLE:
            seen["protocolName"] = group.protocol_data or NO_INSTANCE
            seen["assignment"] = observer.by_id(
                (member.member_id, partitions(member.member_assignment)) for member in group.members
            )
        return seen

    def _describe(self) -> Entity:
        coordinator = self._broker.coordinator
        if not coordinator.offers("describe_groups"):
            return _UNSEEN
        group = describe_group(coordinator, self.id)
        if group.error_code is ErrorCode.group_id_not_found:
            group = _description(self.id, _DEAD)
        if group.error_code is not ErrorCode.none:
            raise SystemFailed(f"DescribeGroups was answered {error_name(group.error_code)}")
        for member in group.members:
            self._requests.learn(member.member_id)
        if group.group_state != self.phase:
            self._listed = self._listed_otherwise(group)
            self.phase_since = self._pace.looked_at
            self.phase = "" if self._listed else group.group_state
        return self._requests.ids.described(group)

    def _listed_otherwise(self, group: Entity) -> str:
        """What ListGroups says of a Stable group, if that is not what DescribeGroups says.

        Only of Stable groups: it lists those of all tests that run, which takes its time.
        """
        coordinator = self._broker.coordinator
        if group.group_state != _STABLE or not coordinator.offers("list_groups"):
            return ""
        listed = listed_state(coordinator, group.group_id)
        if listed is None:
            return "no such group"
        return "" if listed in ("", group.group_state) else listed
