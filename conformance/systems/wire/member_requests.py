"""What a group's members have sent, and the answers as they come; whose id is which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from conformance.kafka.entities import Entity
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import Exchange, error_name, kind_of
from conformance.systems.shared.group.port_member import PortMember
from conformance.systems.shared.group.settings import GroupSettings
from conformance.systems.wire.admin import fetch_offsets
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.connection import Pending
from conformance.systems.wire.ids import MemberIds
from conformance.systems.wire.port import decoded


class SentRequest(NamedTuple):
    """A request on a connection of its own."""

    process: PortMember
    exchange: Exchange
    pending: Pending


class MemberRequests:
    """Of one group. `topic` is the broker's name for the topic whose offsets are committed."""

    def __init__(
        self, settings: GroupSettings, broker: WireBroker, group_id: str, topic: str
    ) -> None:
        self.ids = MemberIds(settings)
        self._real_ids = settings.real_ids()
        self._broker = broker
        self._group_id = group_id
        self._topic = topic
        self._waiting: list[SentRequest] = []
        self._joined_last = ""
        self._new_ids: dict[str, str] = {}

    def submit(self, process: PortMember, exchange: Exchange, message: Entity) -> None:
        """Send `message` for this exchange."""
        if kind_of(message) == "JoinGroupRequest":
            self._joined_last = process.name
            self._new_ids.pop(process.name, None)
        outgoing = self.ids.outgoing(message, self._group_id, self._topic)
        pending = self._broker.coordinator.submit(outgoing, process.name, process.at_most(message))
        if exchange.abandoned:
            process.channel = None
        else:
            exchange.parked_under = ""  # until it is known
            self._waiting.append(SentRequest(process, exchange, pending))

    def receive(self) -> list[tuple[str, Entity]]:
        """Take in the answers that have arrived; the answers to joins, each with its process.

        Those come first: they name ids that others use.
        """
        for port in self._broker.ports:
            port.receive()
        arrived = [sent for sent in self._waiting if sent.pending.body is not None]
        self._waiting = [sent for sent in self._waiting if sent.pending.body is None]
        answers = [(sent, decoded(sent.pending)) for sent in arrived]
        joins = [
            (sent.process.name, answer)
            for sent, answer in answers
            if kind_of(answer) == "JoinGroupResponse"
        ]
        for process, answer in joins:
            if answer.member_id and not self.ids.knows(answer.member_id):
                self.ids.give(answer.member_id, process)
        for sent, answer in answers:
            self._hand_over(sent, answer)
        return joins

    def _hand_over(self, sent: SentRequest, answer: Entity) -> None:
        process, exchange = sent.process, sent.exchange
        if kind_of(answer) == "OffsetCommitResponse":
            self._fetch_what_was_committed(exchange, answer)
        if exchange in (process.channel, process.heartbeat):
            exchange.answer(_as_asked(exchange, self.ids.incoming(answer)))

    def learn(self, theirs: str) -> None:
        """An id that DescribeGroups shows: a new one is that of the process that joined last."""
        if self._joined_last and not self.ids.knows(theirs):
            self._new_ids[self._joined_last] = self.ids.give(theirs, self._joined_last)

    def park(self) -> None:
        """Say under which id a request without an answer is parked, once that can be seen."""
        for process, exchange, _ in self._waiting:
            if exchange.parked_under == "":
                member_id = getattr(exchange.message, "member_id", "")
                exchange.parked_under = member_id or self._new_id(process.name)

    def _new_id(self, process: str) -> str:
        """Ours for the id under which a process's first JoinGroup is parked: DescribeGroups shows
        it; where there is none, it is the one that comes next."""
        if self._broker.coordinator.offers("describe_groups"):
            return self._new_ids.get(process, "")
        return self._real_ids.get(self.ids.of_the_spec("", process), "")

    def _fetch_what_was_committed(self, exchange: Exchange, answer: Entity) -> None:
        """OffsetFetch must give what a commit was told is stored."""
        coordinator = self._broker.coordinator
        if not coordinator.offers("offset_fetch"):
            return
        (asked,), (report,) = exchange.message.topics, answer.topics
        stored = {
            int(each.partition_index): int(each.committed_offset)
            for each, result in zip(asked.partitions, report.partitions, strict=True)
            if result.error_code is ErrorCode.none
        }
        if not stored:
            return
        error, result = fetch_offsets(coordinator, self._group_id, self._topic, stored)
        if result != stored:
            raise SystemFailed(
                f"OffsetCommit of {self._offsets(stored)} was answered NONE, and OffsetFetch gives "
                f"{self._offsets(result)} ({error_name(error)})"
            )

    def _offsets(self, offsets: Mapping[int, int]) -> str:
        named = [f"{self._topic}-{partition}: {offset}" for partition, offset in offsets.items()]
        return ", ".join(named) or "nothing"


def _as_asked(exchange: Exchange, answer: Entity) -> Entity:
    """A SyncGroup answer before version 5 does not name the protocol: the request's it is."""
    if (
        kind_of(answer) == "SyncGroupResponse"
        and answer.error_code is ErrorCode.none
        and answer.protocol_name is None
    ):
        return replace(answer, protocol_name=exchange.message.protocol_name)
    return answer
