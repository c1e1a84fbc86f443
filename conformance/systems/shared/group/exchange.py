"""A request of a process and what has become of it: under way, parked, answered.

Messages are impl's or kio's, as the member is. Both have the names of Kafka's schemas, for classes
and for fields, so a message is read here by these names, and this module needs neither.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from conformance.kafka.consumer_protocol import assigned_partitions as partitions

__all__ = [
    "NO_GENERATION",
    "Exchange",
    "GroupMessageView",
    "HeartbeatView",
    "heartbeat_view",
    "message_view",
    "partitions",
]

NO_GENERATION = -1

Message = Any
"""A request or an answer of the group protocol."""


class GroupMessageView(NamedTuple):
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


NO_MESSAGE = GroupMessageView()
NO_HEARTBEAT = HeartbeatView()


class SentIn(Protocol):
    """Who the member was as it sent a request: a generation of whoever's consumer."""

    @property
    def generation_id(self) -> int: ...
    @property
    def member_id(self) -> str: ...


class Exchange:
    """One request; `abandoned`: nobody waits for its answer, but it may still arrive.

    `request` is by what the member's own network knows the message, if it has such a thing.
    """

    __slots__ = ("abandoned", "message", "parked_under", "request", "response", "sent")

    def __init__(
        self, message: Message, sent: SentIn, *, abandoned: bool, request: Any = None
    ) -> None:
        self.message = message
        self.request = request
        self.sent = sent
        self.abandoned = abandoned
        self.parked_under: str | None = None
        self.response: Message = None
        """None until it is answered."""

    @property
    def is_under_way(self) -> bool:
        """Whether the coordinator has not had it yet."""
        return self.parked_under is None and self.response is None

    def answer(self, response: Message) -> None:
        """The coordinator's callback."""
        self.parked_under = None
        self.response = response


def kind_of(message: Message) -> str:
    """The name of Kafka's schema; "" of no message."""
    return "" if message is None else type(message).__name__


def error_name(error: Any) -> str:
    """An error's name as Kafka has it: kio writes it in small letters."""
    name: str = error.name
    return name if name.isupper() else name.upper()


def commit_error(answer: Message) -> str:
    """What an OffsetCommit of one partition was answered: impl's message is flat, kio's nested."""
    (partition,) = getattr(answer, "partitions", None) or answer.topics[0].partitions
    return error_name(partition.error_code)


def message_view(exchange: Exchange | None) -> GroupMessageView:
    """A JoinGroup, SyncGroup or LeaveGroup; a Kafka answer does not repeat what was asked."""
    if exchange is None:
        return NO_MESSAGE
    asked, answer = exchange.message, exchange.response
    match kind_of(asked), kind_of(answer):
        case "JoinGroupRequest", "JoinGroupResponse":
            return _join_answer(exchange, answer)
        case "SyncGroupRequest", "SyncGroupResponse":
            return _sync_answer(exchange, asked, answer)
        case "JoinGroupRequest" | "SyncGroupRequest" as kind, "":
            return _asked(exchange, kind, asked)
        case "LeaveGroupRequest", "":
            leaving = asked.members[0].member_id
            return GroupMessageView("LeaveGroupRequest", leaving, abandoned=exchange.abandoned)
    raise AssertionError(f"{answer} does not answer {asked}")


def _asked(exchange: Exchange, kind: str, asked: Message) -> GroupMessageView:
    sent, parked_under = exchange.sent.generation_id, exchange.parked_under
    if parked_under is not None:
        parked = "JoinGroupParked" if kind == "JoinGroupRequest" else "SyncGroupParked"
        return GroupMessageView(parked, asked.member_id, sent, member_id=parked_under)
    if kind == "JoinGroupRequest":
        names = frozenset([protocol.name for protocol in asked.protocols])
        return GroupMessageView(kind, asked.member_id, sent, exchange.abandoned, names)
    assigned = tuple([(each.member_id, partitions(each.assignment)) for each in asked.assignments])
    return GroupMessageView(
        kind,
        asked.member_id,
        asked.generation_id,
        exchange.abandoned,
        assignments=assigned,
        protocol=asked.protocol_name,
    )


def _join_answer(exchange: Exchange, answer: Message) -> GroupMessageView:
    return GroupMessageView(
        "JoinGroupResponse",
        exchange.sent.member_id,
        exchange.sent.generation_id,
        error=error_name(answer.error_code),
        member_id=answer.member_id,
        generation=answer.generation_id,
        protocol=answer.protocol_name or None,
        leader=answer.leader,
        members=frozenset([member.member_id for member in answer.members]),
        skip_assignment=answer.skip_assignment,
    )


def _sync_answer(exchange: Exchange, asked: Message, answer: Message) -> GroupMessageView:
    error = error_name(answer.error_code)
    return GroupMessageView(
        "SyncGroupResponse",
        exchange.sent.member_id,
        exchange.sent.generation_id,
        error=error,
        member_id=asked.member_id,
        generation=asked.generation_id if error == "NONE" else NO_GENERATION,
        protocol=answer.protocol_name,
        assignment=partitions(answer.assignment),
    )


def heartbeat_view(exchange: Exchange | None) -> HeartbeatView:
    """A Heartbeat or OffsetCommit."""
    if exchange is None:
        return NO_HEARTBEAT
    asked, answer = exchange.message, exchange.response
    match kind_of(asked), kind_of(answer):
        case "HeartbeatRequest" | "OffsetCommitRequest" as kind, "":
            return HeartbeatView(kind, asked.member_id, _generation(asked))
        case "HeartbeatRequest", "HeartbeatResponse" as kind:
            error = error_name(answer.error_code)
        case "OffsetCommitRequest", "OffsetCommitResponse" as kind:
            error = commit_error(answer)
        case _:
            raise AssertionError(f"{answer} does not answer {asked}")
    return HeartbeatView(kind, asked.member_id, _generation(asked), error)


def _generation(asked: Message) -> int:
    """An OffsetCommit has it under a name of two meanings since KIP-848."""
    generation = getattr(asked, "generation_id", None)
    return int(asked.generation_id_or_member_epoch if generation is None else generation)
