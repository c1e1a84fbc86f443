"""The client's messages as events of spec/GroupClient.tla, and its answers as Kafka's messages.

Requests and answers are those of impl.group.messages, which know no version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec.structs import replace

from conformance.judge.events import Event
from conformance.systems.client.answers import Lane, Reader, Taken
from conformance.systems.client.subject import (
    CLIENT,
    PARTITIONS,
    Names,
    Subject,
    assignment_bytes,
    assignments_of,
    ids_of,
)
from conformance.tla import ActionPattern, Fn, Part, Place, State, Value, format_value
from impl.errors import Errors
from impl.group.client.consumer_protocol import Subscription, serialize_subscription
from impl.group.messages import (
    CONSUMER_PROTOCOL_TYPE,
    JOIN_SKIP_ASSIGNMENT_VERSION,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = [
    "API",
    "SENDS",
    "Messages",
    "assigned_event",
    "given_up_event",
    "has_read_event",
    "lane_of",
    "lost_behind_event",
    "lost_event",
    "step_event",
]

API: Mapping[type, str] = {
    JoinGroupRequest: "JoinGroup",
    SyncGroupRequest: "SyncGroup",
    LeaveGroupRequest: "LeaveGroup",
    HeartbeatRequest: "Heartbeat",
    OffsetCommitRequest: "OffsetCommit",
}
"""The requests that the specification knows."""

_GROUP = (
    *("groupState", "generation", "protocolName", "leader", "members", "pendingMembers"),
    *("staticMembers", "supported", "awaitingJoin", "awaitingSync", "newMembers", "pendingSync"),
    *("assignment", "joinTimer", "initialDelays", "newMemberAdded", "groupRecord"),
)
"""The coordinator's variables: what it does is known in full."""


def lane_of(request: object) -> Lane:
    """Where the specification has a request of this kind."""
    return "heartbeat" if isinstance(request, HeartbeatRequest | OffsetCommitRequest) else "channel"


def _event(
    source: str,
    actions: Sequence[str],
    after: Mapping[Place, Value] | None = None,
    before: Mapping[Place, Value] | None = None,
) -> Event:
    """An event of the client."""
    return Event(
        actions=tuple(ActionPattern(name, (CLIENT,)) for name in actions),
        before=tuple(Part(*pair) for pair in (before or {}).items()),
        after=tuple(Part(*pair) for pair in (after or {}).items()),
        process=CLIENT,
        source=source,
    )


def _of(variable: str, *path: Value) -> Place:
    return Place(variable, (CLIENT, *path))


def _fields(variable: str, values: Mapping[str, Value]) -> dict[Place, Value]:
    return {_of(variable, name): value for name, value in values.items()}


def given_up_event(partitions: frozenset[int], source: str) -> Event:
    """onPartitionsRevoked or onPartitionsLost; with nothing to tell it shows that nothing is."""
    held: dict[Place, Value] = {_of("owned"): frozenset(partitions)}
    if not partitions:
        return _event(source, (), held)
    return _event(source, ["GivesUpPartitions"], {_of("owned"): frozenset()}, held)


def assigned_event(partitions: frozenset[int], source: str) -> Event:
    """onPartitionsAssigned."""
    return _event(source, ["CompletesJoin"], {_of("owned"): frozenset(partitions)})


def has_read_event(source: str, *, channel: bool) -> Event:
    """It is so long ago that the client must have read what it was told; `channel`: there too."""
    shown: dict[Place, Value] = {_of("aside"): frozenset(), _of("heartbeat", "type"): "None"}
    if channel:
        shown[_of("channel", "type")] = "None"
    return _event(source, (), shown)


def lost_behind_event(number: int, source: str) -> Event:
    """A heartbeat or commit is lost that was not taken up yet: the n-th of them, from 1."""
    return replace(_event(source, ()), actions=(ActionPattern("LosesBehind", (CLIENT, number)),))


def lost_event(lane: Lane, source: str) -> Event:
    """The request, or its answer, never arrives; the client sees its connection end."""
    lost = ["LosesMessage", "LosesSync"] if lane == "channel" else ["LosesHeartbeat"]
    return _event(source, lost)


def closed_event(source: str) -> Event:
    """The connection on which it was answered last in the channel ends: perhaps unread."""
    return _event(source, ["ClosesConnection"])


def step_event(before: State, taken: Taken, reader: Reader) -> Event:
    """A step that the harness takes: what it makes of the group, and of the client's messages."""
    after: list[Part] = []
    for name in _GROUP:
        value = cast("Value", reader.whole(taken.state, name))
        if value != reader.whole(before, name):
            after.append(Part(Place(name), value))
    for lane in ("channel", "heartbeat"):
        message = reader.of_client(taken.state, lane)
        old = reader.of_client(before, lane)
        after += [
            Part(_of(lane, field), message[field])
            for field in _ANSWERED
            if field in message and message[field] != old[field]
        ]
    return Event(
        actions=(ActionPattern(taken.action.name, taken.action.args),),
        after=tuple(after),
        process="coordinator",
        source="the coordinator's side",
    )


_SENDS = (
    *("SendsJoinGroup", "ProcessesJoinGroup", "LeavesGroup"),
    *("SendsHeartbeat", "SendsOffsetCommit"),
)
"""The steps by which the client sends something."""
SENDS = tuple(ActionPattern(name, (CLIENT,)) for name in _SENDS)
_ANSWERED = ("type", "error", "memberId", "generation", "protocol", "leader", "members",
             "assignment", "skipAssignment")  # fmt: skip


def _holders(given: Mapping[str, frozenset[int]]) -> Fn | None:
    """Who has each partition; None unless each is somebody's, and nobody else's."""
    pairs: list[tuple[int, str]] = [(k, id) for id, held in given.items() for k in held]
    holders: dict[Value, Value] = dict(pairs)
    complete = len(pairs) == len(holders) and set(holders) == set(range(PARTITIONS))
    return Fn(holders) if complete else None


@dataclass(frozen=True, slots=True)
class Messages:
    """Both directions, for one subject in one example."""

    subject: Subject
    names: Names
    told: bool
    """Whether the client tells of its callbacks."""

    # ---- what the client sends -------------------------------------------------------------

    def events(self, request: Any, source: str, behind: int) -> tuple[Event, ...]:
        """The events that a request is: one, or two where a leader assigns in its own way.

        `behind`: so many heartbeats and commits have come, and are not taken up yet.
        """
        match request:
            case JoinGroupRequest():
                return (self._join(request, source),)
            case SyncGroupRequest():
                return self._sync(request, source)
            case LeaveGroupRequest():
                member = request.members[0].member_id if request.members else ""
                shown = {"sentMemberId": self.names.spec(member)}
                return (_event(source, ["LeavesGroup"], _fields("channel", shown)),)
            case HeartbeatRequest():
                actions = ["SendsHeartbeat"]
            case _:
                actions = ["SendsOffsetCommit"]
        shown_there = {
            _of("behind", behind + 1, name): value
            for name, value in self._membership(request).items()
        }
        return (_event(source, actions, shown_there),)

    def taken_up(self, request: Any, number: int, source: str) -> Event:
        """The coordinator reads a heartbeat or a commit: the n-th that has come, from 1."""
        shown = {"type": f"{API[type(request)]}Request", **self._membership(request)}
        event = _event(source, (), _fields("heartbeat", shown))
        return replace(event, actions=(ActionPattern("TakesUp", (CLIENT, number)),))

    def _membership(self, request: Any) -> dict[str, Value]:
        return {
            "memberId": self.names.spec(request.member_id),
            "generation": request.generation_id,
        }

    def _join(self, request: JoinGroupRequest, source: str) -> Event:
        shown: dict[str, Value] = {
            "sentMemberId": self.names.spec(request.member_id),
            "protocols": frozenset(one.name for one in request.protocols),
        }
        held: dict[Place, Value] = {_of("owned"): frozenset()} if self.told else {}
        return _event(source, ["SendsJoinGroup"], _fields("channel", shown), held)

    def _sync(self, request: SyncGroupRequest, source: str) -> tuple[Event, ...]:
        shown: dict[str, Value] = {
            "type": "SyncGroupRequest",
            "sentMemberId": self.names.spec(request.member_id),
            "sentGeneration": request.generation_id,
        }
        if request.protocol_name is not None:
            shown["protocol"] = request.protocol_name
        given = assignments_of(
            {one.member_id: one.assignment for one in request.assignments}, self.names
        )
        whole, holders = self._whole(given), _holders(given)
        sends = [ActionPattern("ProcessesJoinGroup", (CLIENT,))]
        if not given:
            sends.append(ActionPattern("ResendsAsFollower", (CLIENT,)))
        elif holders is not None:
            sends.append(ActionPattern("ResendsAsLeader", (CLIENT, holders)))
        only = next(iter(self.subject.protocols)) if len(self.subject.protocols) == 1 else "range"
        ranged = (request.protocol_name or only) == "range" or not given or holders is None
        if ranged:
            shown["assignments"] = whole
        sent = replace(_event(source, (), _fields("channel", shown)), actions=tuple(sends))
        if ranged:
            return (sent,)
        assigns = ActionPattern("AssignsPartitions", (CLIENT, holders))
        return sent, Event(actions=(assigns,), process=CLIENT, source=source)

    def _whole(self, given: Mapping[str, frozenset[int]]) -> Fn:
        """Assignments for every id, as the specification has them."""
        ids = [id for process in (CLIENT, *self.subject.others) for id in ids_of(process)]
        nothing: frozenset[int] = frozenset()
        return Fn({id: frozenset(given.get(id, nothing)) for id in (*ids, *given)})

    # ---- what it is answered ---------------------------------------------------------------

    def answer(self, request: Any, state: State, reader: Reader, replaced: str = "") -> Any:
        """The answer that a state has for the request.

        `replaced`: the member id whose place the client took, if it is a static member.
        """
        lane = lane_of(request)
        message = reader.of_client(state, lane)
        error = Errors[str(message["error"])]
        match request:
            case JoinGroupRequest():
                return self._joined(request, message, error, replaced)
            case SyncGroupRequest():
                partitions = cast("frozenset[int]", message["assignment"])
                data = b"" if error else assignment_bytes(self.subject.topic, partitions)
                name = None if error else str(message["protocol"])
                return SyncGroupResponse(
                    error, CONSUMER_PROTOCOL_TYPE if name else None, name, data
                )
            case LeaveGroupRequest():
                left = tuple(
                    LeaveGroupMemberResponse(one.member_id, one.group_instance_id, Errors.NONE)
                    for one in request.members
                )
                return LeaveGroupResponse(Errors.NONE, left)
            case HeartbeatRequest():
                return HeartbeatResponse(error)
            case _:
                return OffsetCommitResponse(
                    tuple(
                        OffsetCommitResponsePartition(one.topic_partition, error)
                        for one in request.partitions
                    )
                )

    def _joined(
        self, request: JoinGroupRequest, message: Fn, error: Errors, replaced: str
    ) -> JoinGroupResponse:
        if error:
            return JoinGroupResponse(error, self.names.real(str(message["memberId"])))
        protocol = str(message["protocol"])
        members = sorted(cast("frozenset[str]", message["members"]))
        if message["skipAssignment"] is True and request.version < JOIN_SKIP_ASSIGNMENT_VERSION:
            # KIP-814: to an older client the coordinator names the id that was replaced as leader.
            return JoinGroupResponse(
                error,
                self.names.real(str(message["memberId"])),
                cast("int", message["generation"]),
                CONSUMER_PROTOCOL_TYPE,
                protocol,
                self.names.real(replaced),
            )
        return JoinGroupResponse(
            error,
            self.names.real(str(message["memberId"])),
            cast("int", message["generation"]),
            CONSUMER_PROTOCOL_TYPE,
            protocol,
            self.names.real(str(message["leader"])),
            message["skipAssignment"] is True,
            tuple(self._member(request, id, protocol) for id in members),
        )

    def _member(self, request: JoinGroupRequest, id: str, protocol: str) -> JoinGroupResponseMember:
        """A member as its leader is told of it: the client's own wish, or a plain one of ours."""
        if id.startswith(f"{CLIENT}-"):
            wish = next(one.metadata for one in request.protocols if one.name == protocol)
            return JoinGroupResponseMember(self.names.real(id), request.group_instance_id, wish)
        plain = serialize_subscription(Subscription((self.subject.topic,)), version=0)
        return JoinGroupResponseMember(self.names.real(id), None, plain)

    # ---- in words --------------------------------------------------------------------------

    def said(self, request: Any) -> str:
        """A request for the story."""
        match request:
            case JoinGroupRequest():
                protocols = ", ".join(one.name for one in request.protocols)
                known = self.names.spec(request.member_id) or "no id"
                return f"JoinGroup as {known} (protocols {protocols})"
            case SyncGroupRequest():
                given = assignments_of(
                    {one.member_id: one.assignment for one in request.assignments}, self.names
                )
                shown = ", ".join(f"{id} {format_value(held)}" for id, held in given.items())
                assigns = f", assigning {shown}" if given else ""
                return f"SyncGroup as {self._who(request)}{assigns}"
            case LeaveGroupRequest():
                leaving = ", ".join(self.names.spec(one.member_id) for one in request.members)
                return f"LeaveGroup of {leaving}"
        return f"{API[type(request)]} as {self._who(request)}"

    def _who(self, request: Any) -> str:
        known = self.names.spec(request.member_id) or "no id"
        return f"{known}, generation {request.generation_id}"

    def may_send(self, action: str, state: State, reader: Reader) -> str:
        """For the story, what the client does by a step of the specification."""
        if action not in _SENDS:
            raise AssertionError(f"{action} sends nothing")
        message = reader.of_client(state, "channel")
        match action:
            case "SendsJoinGroup":
                return f"JoinGroup as {message['sentMemberId'] or 'no id'}"
            case "ProcessesJoinGroup":
                generation = message["sentGeneration"]
                sends = message["type"] == "SyncGroupRequest"
                return f"SyncGroup as {message['sentMemberId']}, generation {generation}" * sends
            case "LeavesGroup":
                return f"LeaveGroup of {message['sentMemberId']}"
        name = "OffsetCommit" if action == "SendsOffsetCommit" else "Heartbeat"
        last = cast("Sequence[Fn]", reader.of(state, "behind", CLIENT))[-1]
        return f"{name} as {last['memberId']}, generation {last['generation']}"

    def told_of(self, request: Any, state: State, reader: Reader) -> str:
        """An answer for the story."""
        message = reader.of_client(state, lane_of(request))
        if message["error"] != "NONE":
            named = f", member id {message['memberId']}" if message.get("leader") == "" else ""
            return f"{message['error']}{named if message['memberId'] else ''}"
        match request:
            case JoinGroupRequest():
                return (
                    f"generation {message['generation']} as {message['memberId']}, leader "
                    f"{message['leader']}, protocol {message['protocol']}"
                )
            case SyncGroupRequest():
                return f"partitions {format_value(message['assignment'])}"
        return "NONE"
