"""A request of a process and what has become of it: under way, parked, answered."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from impl.errors import Errors
from impl.group.client.buffer import ByteBuffer
from impl.group.client.consumer_protocol import deserialize_assignment
from impl.group.client.generation import Generation
from impl.group.client.network_client import ClientRequest, GroupResponse
from impl.group.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

NO_GENERATION = -1


class MessageView(NamedTuple):
    """What a process has in flight; a field that it lacks has the value of the spec's NoMessage.

    Member ids are the coordinator's, partitions are numbers.
    """

    type: str = "None"
    sent_member_id: str = ""
    sent_generation: int = NO_GENERATION
    abandoned: bool = False
    protocols: frozenset[str] = frozenset()
    assignments: tuple[tuple[str, frozenset[int]], ...] = ()
    error: str = "NONE"
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol: str | None = None
    leader: str = ""
    members: frozenset[str] = frozenset()
    assignment: frozenset[int] = frozenset()
    skip_assignment: bool = False


class HeartbeatView(NamedTuple):
    """A Heartbeat or OffsetCommit in flight, or its answer."""

    type: str = "None"
    member_id: str = ""
    generation: int = NO_GENERATION
    error: str = "NONE"


NO_MESSAGE = MessageView()
NO_HEARTBEAT = HeartbeatView()


class Exchange:
    """One request; `abandoned`: nobody waits for its answer, but it may still arrive."""

    __slots__ = ("abandoned", "parked_under", "request", "response", "sent")

    def __init__(self, request: ClientRequest, sent: Generation, *, abandoned: bool) -> None:
        self.request = request
        self.sent = sent
        self.abandoned = abandoned
        self.parked_under: str | None = None
        self.response: GroupResponse | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether the coordinator has not had it yet."""
        return self.parked_under is None and self.response is None

    def answer(self, response: GroupResponse) -> None:
        """The coordinator's callback."""
        self.parked_under = None
        self.response = response


def message_view(exchange: Exchange | None) -> MessageView:
    """A JoinGroup, SyncGroup or LeaveGroup; a Kafka answer does not repeat what was asked."""
    if exchange is None:
        return NO_MESSAGE
    match exchange.request.request, exchange.response:
        case JoinGroupRequest(), JoinGroupResponse() as answer:
            return _join_answer(exchange, answer)
        case SyncGroupRequest() as asked, SyncGroupResponse() as answer:
            return _sync_answer(exchange, asked, answer)
        case JoinGroupRequest() | SyncGroupRequest() as asked, None:
            return _asked(exchange, asked)
        case LeaveGroupRequest() as asked, None:
            leaving = asked.members[0].member_id
            return MessageView("LeaveGroupRequest", leaving, abandoned=exchange.abandoned)
        case other, answer:
            raise AssertionError(f"{answer} does not answer {other}")


def _asked(exchange: Exchange, asked: JoinGroupRequest | SyncGroupRequest) -> MessageView:
    sent, parked_under = exchange.sent.generation_id, exchange.parked_under
    if parked_under is not None:
        kind = "JoinGroup" if isinstance(asked, JoinGroupRequest) else "SyncGroup"
        return MessageView(f"{kind}Parked", asked.member_id, sent, member_id=parked_under)
    if isinstance(asked, JoinGroupRequest):
        names = frozenset([protocol.name for protocol in asked.protocols])
        return MessageView("JoinGroupRequest", asked.member_id, sent, exchange.abandoned, names)
    assigned = tuple([(each.member_id, partitions(each.assignment)) for each in asked.assignments])
    return MessageView(
        "SyncGroupRequest",
        asked.member_id,
        asked.generation_id,
        exchange.abandoned,
        assignments=assigned,
        protocol=asked.protocol_name,
    )


def _join_answer(exchange: Exchange, answer: JoinGroupResponse) -> MessageView:
    return MessageView(
        "JoinGroupResponse",
        exchange.sent.member_id,
        exchange.sent.generation_id,
        error=answer.error_code.name,
        member_id=answer.member_id,
        generation=answer.generation_id,
        protocol=answer.protocol_name,
        leader=answer.leader,
        members=frozenset([member.member_id for member in answer.members]),
        skip_assignment=answer.skip_assignment,
    )


def _sync_answer(
    exchange: Exchange, asked: SyncGroupRequest, answer: SyncGroupResponse
) -> MessageView:
    succeeded = answer.error_code is Errors.NONE
    return MessageView(
        "SyncGroupResponse",
        exchange.sent.member_id,
        exchange.sent.generation_id,
        error=answer.error_code.name,
        member_id=asked.member_id,
        generation=asked.generation_id if succeeded else NO_GENERATION,
        protocol=answer.protocol_name,
        assignment=partitions(answer.assignment),
    )


def heartbeat_view(exchange: Exchange | None) -> HeartbeatView:
    """A Heartbeat or OffsetCommit."""
    if exchange is None:
        return NO_HEARTBEAT
    asked = exchange.request.request
    match asked:
        case HeartbeatRequest():
            kind = "Heartbeat"
        case OffsetCommitRequest():
            kind = "OffsetCommit"
        case _:
            raise AssertionError(f"{asked} is no sign of life")
    match exchange.response:
        case None:
            return HeartbeatView(f"{kind}Request", asked.member_id, asked.generation_id)
        case HeartbeatResponse(error):
            name = error.name
        case OffsetCommitResponse((partition,)):
            name = partition.error_code.name
        case answer:
            raise AssertionError(f"{answer} does not answer {asked}")
    return HeartbeatView(f"{kind}Response", asked.member_id, asked.generation_id, name)


@lru_cache(maxsize=4096)
def partitions(assignment: bytes) -> frozenset[int]:
    """The partitions of a serialized assignment; a member left out has no bytes at all."""
    if not assignment:
        return frozenset()
    assigned = deserialize_assignment(ByteBuffer(assignment))
    return frozenset([each.partition for each in assigned.partitions])
