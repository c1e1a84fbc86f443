"""The broker's member ids and ours: a broker makes its own, the specification has others.

Members see ids of a form of ours, in which the specification's are what is unique: the range
assignor sorts by them, so they must sort as the specification's do, whatever a broker makes up.
"""

from __future__ import annotations

from dataclasses import replace

from conformance.kafka.entities import Entity
from conformance.systems.shared.group.exchange import kind_of
from conformance.systems.shared.group.settings import TOPIC, GroupSettings


class MemberIds:
    """Both directions; an id that is not known stays as it is."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._real = settings.real_ids()
        self._spec = {ours: id for id, ours in self._real.items()}
        self._ours: dict[str, str] = {}
        self._theirs: dict[str, str] = {}
        self._given = dict.fromkeys(settings.members, 0)

    def knows(self, theirs: str) -> bool:
        """Whether the broker's id has been given to a process."""
        return theirs in self._ours

    def give(self, theirs: str, process: str) -> str:
        """A new id of the broker's is this process's next one; ours for it."""
        number = self._given[process]
        self._given[process] = number + 1
        ids = self._settings.member_ids[process]
        ours = self._real[ids[number]] if number < len(ids) else f"{process}-{number + 1}"
        self._ours[theirs] = ours
        self._theirs[ours] = theirs
        return ours

    def ours(self, theirs: str) -> str:
        """Our id for the broker's."""
        return self._ours.get(theirs, theirs)

    def theirs(self, ours: str) -> str:
        """The broker's id for ours."""
        return self._theirs.get(ours, ours)

    def of_the_spec(self, ours: str, process: str) -> str:
        """The specification's id: of a member without one, the id that it will be given."""
        if ours:
            return self._spec.get(ours, ours)
        number, ids = self._given[process], self._settings.member_ids[process]
        return ids[number] if number < len(ids) else ""

    # ---- messages --------------------------------------------------------------------------

    def outgoing(self, message: Entity, group_id: str, topic: str) -> Entity:
        """A member's request as the broker is to have it: its group, its ids, a topic it has."""
        match kind_of(message):
            case "SyncGroupRequest":
                message = replace(message, assignments=self._to_theirs(message.assignments))
            case "LeaveGroupRequest":
                members = self._to_theirs(message.members)
                return replace(message, group_id=group_id, members=members)
            case "OffsetCommitRequest":
                message = replace(message, topics=_renamed(message.topics, topic))
            case "JoinGroupRequest" | "HeartbeatRequest":
                pass
            case _:
                raise AssertionError(f"{message} is no request of a member")
        return replace(message, group_id=group_id, member_id=self.theirs(message.member_id))

    def _to_theirs(self, entries: tuple[Entity, ...]) -> tuple[Entity, ...]:
        return tuple(replace(each, member_id=self.theirs(each.member_id)) for each in entries)

    def _to_ours(self, entries: tuple[Entity, ...]) -> tuple[Entity, ...]:
        return tuple(replace(each, member_id=self.ours(each.member_id)) for each in entries)

    def incoming(self, answer: Entity) -> Entity:
        """An answer as the member is to have it."""
        match kind_of(answer):
            case "OffsetCommitResponse":
                return replace(answer, topics=_renamed(answer.topics, TOPIC))
            case "JoinGroupResponse":
                return replace(
                    answer,
                    member_id=self.ours(answer.member_id),
                    leader=self.ours(answer.leader),
                    members=self._to_ours(answer.members),
                )
        return answer

    def described(self, group: Entity) -> Entity:
        """A description with our ids."""
        return replace(group, members=self._to_ours(group.members))


def _renamed(topics: tuple[Entity, ...], name: str) -> tuple[Entity, ...]:
    """The same partitions of another topic."""
    return tuple(replace(each, name=name) for each in topics)
