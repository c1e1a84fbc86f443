"""The client's messages as events of spec/GroupClient.tla, and its answers as Kafka's messages.

Requests and answers are kio's, in the newest version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from kio.schema.errors import ErrorCode
from msgspec.structs import replace

from conformance.client.answers import ActionStep, Lane, Reader
from conformance.client.requests import MemberRequest
from conformance.client.subject import (
    CLIENT,
    PARTITIONS,
    JoiningClient,
    MemberNames,
    assignment_bytes,
    assignments_of,
    ids_of,
)
from conformance.judge.events import Event
from conformance.kafka.consumer_protocol import subscription_bytes
from conformance.kafka.entities import NO_TIME, Entity, make, newest
from conformance.tla import ActionPattern, Fn, ObservedPart, Place, State, Value, format_value

__all__ = [
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

_CONSUMER = "consumer"
_SKIP_ASSIGNMENT = 9
"""From this JoinGroup version on, the answer may tell a leader to skip its assignment (KIP-814)."""

_GROUP = (
    *("groupState", "generation", "protocolName", "leader", "members", "pendingMembers"),
    *("staticMembers", "supported", "awaitingJoin", "awaitingSync", "newMembers", "pendingSync"),
    *("assignment", "joinTimer", "initialDelays", "newMemberAdded", "groupRecord"),
)
"""The coordinator's variables: what it does is known in full."""


def lane_of(request: MemberRequest) -> Lane:
    """Where the specification has a request of this kind."""
    return "heartbeat" if request.api in ("heartbeat", "offset_commit") else "channel"


def _event(
    source: str,
    actions: Sequence[str],
    after: Mapping[Place, Value] | None = None,
    before: Mapping[Place, Value] | None = None,
) -> Event:
    """An event of the client."""
    return Event(
        actions=tuple(ActionPattern(name, (CLIENT,)) for name in actions),
        before=tuple(ObservedPart(*pair) for pair in (before or {}).items()),
        after=tuple(ObservedPart(*pair) for pair in (after or {}).items()),
        process=CLIENT,
        source=source,
    )


def _of(variable: str, *path: Value) -> Place:
    return Place(variable, (CLIENT, *path))


def _fields(variable: str, values: Mapping[str, Value]) -> dict[Place, Value]:
    return {_of(variable, name): value for name, value in values.items()}


def given_up_event(partitions: frozenset[int], source: str) -> Event:
    """onPartitionsRevoked or onPartitionsLost; with nothing to tell it shows that nothing is."""
    entries: dict[Place, Value] = {_of("owned"): frozenset(partitions)}
    if not partitions:
        return _event(source, (), entries)
    return _event(source, ["GivesUpPartitions"], {_of("owned"): frozenset()}, entries)


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


def step_event(before: State, step: ActionStep, reader: Reader) -> Event:
    """A step that the harness takes: what it makes of the group, and of the client's messages."""
    after: list[ObservedPart] = []
    for name in _GROUP:
        value = cast("Value", reader.whole(step.state, name))
        if value != reader.whole(before, name):
            after.append(ObservedPart(Place(name), value))
    for lane in ("channel", "heartbeat"):
        message = reader.of_client(step.state, lane)
        old = reader.of_client(before, lane)
        after += [
            ObservedPart(_of(lane, field), message[field])
            for field in _ANSWERED
            if field in message and message[field] != old[field]
        ]
    return Event(
        actions=(ActionPattern(step.action.name, step.action.args),),
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
    pairs: list[tuple[int, str]] = [(k, id) for id, members in given.items() for k in members]
    holders: dict[Value, Value] = dict(pairs)
    complete = len(pairs) == len(holders) and set(holders) == set(range(PARTITIONS))
    return Fn(holders) if complete else None


@dataclass(frozen=True, slots=True)
class Messages:
    """Both directions, for one subject in one example."""

    subject: JoiningClient
    names: MemberNames
    told: bool
    """Whether the client tells of its callbacks."""

    # ---- what the client sends -------------------------------------------------------------

    def events(self, request: MemberRequest, source: str, behind: int) -> tuple[Event, ...]:
        """The events that a request is: one, or two where a leader assigns in its own way.

        `behind`: so many heartbeats and commits have come, and are not taken up yet.
        """
        match request.api:
            case "join_group":
                return (self._join(request, source),)
            case "sync_group":
                return self._sync(request, source)
            case "leave_group":
                shown = {"sentMemberId": self.names.spec(request.member_id)}
                return (_event(source, ["LeavesGroup"], _fields("channel", shown)),)
            case "heartbeat":
                actions = ["SendsHeartbeat"]
            case _:
                actions = ["SendsOffsetCommit"]
        shown_there = {
            _of("behind", behind + 1, name): value
            for name, value in self._membership(request).items()
        }
        return (_event(source, actions, shown_there),)

    def taken_up(self, request: MemberRequest, number: int, source: str) -> Event:
        """The coordinator reads a heartbeat or a commit: the n-th that has come, from 1."""
        shown = {"type": f"{request.name}Request", **self._membership(request)}
        event = _event(source, (), _fields("heartbeat", shown))
        return replace(event, actions=(ActionPattern("TakesUp", (CLIENT, number)),))

    def _membership(self, request: MemberRequest) -> dict[str, Value]:
        return {
            "memberId": self.names.spec(request.member_id),
            "generation": request.generation_id,
        }

    def _join(self, request: MemberRequest, source: str) -> Event:
        shown: dict[str, Value] = {
            "sentMemberId": self.names.spec(request.member_id),
            "protocols": frozenset(protocol.name for protocol in request.body.protocols),
        }
        entries: dict[Place, Value] = {_of("owned"): frozenset()} if self.told else {}
        return _event(source, ["SendsJoinGroup"], _fields("channel", shown), entries)

    def _sync(self, request: MemberRequest, source: str) -> tuple[Event, ...]:
        shown: dict[str, Value] = {
            "type": "SyncGroupRequest",
            "sentMemberId": self.names.spec(request.member_id),
            "sentGeneration": request.generation_id,
        }
        protocol = request.body.protocol_name
        if protocol is not None:
            shown["protocol"] = protocol
        given = assignments_of(request.assignments(), self.names)
        whole, holders = self._whole(given), _holders(given)
        sends = [ActionPattern("ProcessesJoinGroup", (CLIENT,))]
        if not given:
            sends.append(ActionPattern("ResendsAsFollower", (CLIENT,)))
        elif holders is not None:
            sends.append(ActionPattern("ResendsAsLeader", (CLIENT, holders)))
        only = next(iter(self.subject.protocols)) if len(self.subject.protocols) == 1 else "range"
        ranged = (protocol or only) == "range" or not given or holders is None
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

    def answer(
        self, request: MemberRequest, state: State, reader: Reader, replaced: str = ""
    ) -> Entity:
        """The answer that a state has for the request.

        `replaced`: the member id whose place the client took, if it is a static member.
        """
        message = reader.of_client(state, lane_of(request))
        error = ErrorCode[str(message["error"]).lower()]
        module = newest(request.api, "response")
        match request.api:
            case "join_group":
                return self._joined(request, message, error, replaced)
            case "sync_group":
                partitions = cast("frozenset[int]", message["assignment"])
                data = b"" if error else assignment_bytes(self.subject.topic, partitions)
                name = None if error else str(message["protocol"])
                return module.SyncGroupResponse(
                    throttle_time=NO_TIME,
                    error_code=error,
                    protocol_type=_CONSUMER if name else None,
                    protocol_name=name,
                    assignment=data,
                )
            case "leave_group":
                left = tuple(
                    make(
                        module.MemberResponse,
                        member_id=member.member_id,
                        group_instance_id=member.group_instance_id,
                        error_code=ErrorCode.none,
                    )
                    for member in request.body.members
                )
                return module.LeaveGroupResponse(
                    throttle_time=NO_TIME, error_code=ErrorCode.none, members=left
                )
            case "heartbeat":
                return module.HeartbeatResponse(throttle_time=NO_TIME, error_code=error)
        topics = tuple(
            module.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    module.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.body.topics
        )
        return module.OffsetCommitResponse(throttle_time=NO_TIME, topics=topics)

    def _joined(
        self, request: MemberRequest, message: Fn, error: ErrorCode, replaced: str
    ) -> Entity:
        protocol = None if error else str(message["protocol"])
        leader, skips = str(message["leader"]), message["skipAssignment"] is True
        members = sorted(cast("frozenset[str]", message["members"]))
        if skips and request.version < _SKIP_ASSIGNMENT:
            # KIP-814: to an older client the coordinator names the id that was replaced as leader.
            leader, skips, members = replaced, False, []
        module = newest("join_group", "response")
        return module.JoinGroupResponse(
            throttle_time=NO_TIME,
            error_code=error,
            generation_id=-1 if error else message["generation"],
            protocol_type=None if error else _CONSUMER,
            protocol_name=protocol,
            leader="" if error else self.names.real(leader),
            skip_assignment=skips and not error,
            member_id=self.names.real(str(message["memberId"])),
            members=()
            if protocol is None
            else tuple(self._member(request, id, protocol) for id in members),
        )

    def _member(self, request: MemberRequest, id: str, protocol: str) -> Entity:
        """A member as its leader is told of it: the client's own wish, or a plain one of ours."""
        instance, wish = None, subscription_bytes((self.subject.topic,), version=0)
        if id.startswith(f"{CLIENT}-"):
            body = request.body
            instance = body.group_instance_id
            wish = next(bytes(item.metadata) for item in body.protocols if item.name == protocol)
        return newest("join_group", "response").JoinGroupResponseMember(
            member_id=self.names.real(id), group_instance_id=instance, metadata=wish
        )

    # ---- in words --------------------------------------------------------------------------

    def said(self, request: MemberRequest) -> str:
        """A request for the story."""
        match request.api:
            case "join_group":
                protocols = ", ".join(protocol.name for protocol in request.body.protocols)
                known = self.names.spec(request.member_id) or "no id"
                return f"JoinGroup as {known} (protocols {protocols})"
            case "sync_group":
                given = assignments_of(request.assignments(), self.names)
                shown = ", ".join(f"{id} {format_value(members)}" for id, members in given.items())
                assigns = f", assigning {shown}" if given else ""
                return f"SyncGroup as {self._who(request)}{assigns}"
            case "leave_group":
                leaving = ", ".join(
                    self.names.spec(member.member_id) for member in request.body.members
                )
                return f"LeaveGroup of {leaving}"
        return f"{request.name} as {self._who(request)}"

    def _who(self, request: MemberRequest) -> str:
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

    def told_of(self, request: MemberRequest, state: State, reader: Reader) -> str:
        """An answer for the story."""
        message = reader.of_client(state, lane_of(request))
        if message["error"] != "NONE":
            named = f", member id {message['memberId']}" if message.get("leader") == "" else ""
            return f"{message['error']}{named if message['memberId'] else ''}"
        match request.api:
            case "join_group":
                return (
                    f"generation {message['generation']} as {message['memberId']}, leader "
                    f"{message['leader']}, protocol {message['protocol']}"
                )
            case "sync_group":
                return f"partitions {format_value(message['assignment'])}"
        return "NONE"
