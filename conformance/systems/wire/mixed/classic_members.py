"""The classic members of one group behind a port: their ids, and their JoinGroups under way."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from conformance.kafka.entities import Entity
from conformance.systems.protocol import SystemFailed, SystemHangs
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.shared.mixed.coordinator import MixedAnswer
from conformance.systems.shared.mixed.requests import ClassicSender, Timeouts, join_request
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.connection import Pending
from conformance.systems.wire.port import decoded

REBALANCE_MS = 300_000
"""No rebalance of a test runs out."""
_NO_ID_YET = "MEMBER_ID_REQUIRED"


class _SentJoin(NamedTuple):
    """On a connection of its own."""

    sender: ClassicSender
    metadata: bytes
    session_ms: int
    pending: Pending


class ClassicMembers:
    """Of one group. Each JoinGroup has a connection of its own: it may wait for others."""

    def __init__(
        self, broker: WireBroker, group_id: str, instances: Mapping[str, str | None]
    ) -> None:
        self._broker = broker
        self._group_id = group_id
        self._instances = instances
        self._ids: dict[str, str] = {}
        """As the coordinator has given them, by name."""
        self._owners: dict[str, str] = {}
        """Of all ids that it has ever given."""
        self._joins: dict[str, _SentJoin] = {}
        self._answers: dict[str, MixedAnswer] = {}

    def sender(self, name: str) -> ClassicSender:
        """As the member's requests name it."""
        return ClassicSender(self._group_id, self._ids.get(name, ""), self._instances[name])

    def forget(self, name: str) -> None:
        """The next process of this name knows no id."""
        self._ids.pop(name, None)

    def name_of(self, member_id: str) -> str:
        """Whose id it is; the id itself if it is nobody's."""
        return self._owners.get(member_id, member_id)

    @property
    def parked(self) -> frozenset[str]:
        """Whose JoinGroup is not answered."""
        return frozenset(self._joins)

    def send_join(self, name: str, metadata: bytes, session_ms: int) -> None:
        """JoinGroup under the id that the member has, if it has one."""
        self._send(name, self.sender(name), metadata, session_ms)

    def _send(self, name: str, sender: ClassicSender, metadata: bytes, session_ms: int) -> None:
        request = join_request(sender, metadata, Timeouts(session_ms, REBALANCE_MS))
        pending = self._broker.coordinator.submit(request, name)
        self._joins[name] = _SentJoin(sender, metadata, session_ms, pending)

    def take_answers(self) -> Mapping[str, MixedAnswer]:
        """What has arrived since this was last asked."""
        self._receive(0.0)
        answers, self._answers = self._answers, {}
        return answers

    def await_answers(self, seconds: float) -> None:
        """Until no JoinGroup is parked. SystemHangs if that takes longer."""
        until = time.monotonic() + seconds
        while self._joins:
            left = until - time.monotonic()
            if left <= 0:
                names = ", ".join(sorted(self._joins))
                raise SystemHangs(f"JoinGroup of {names} was not answered within {seconds:.0f} s")
            self._receive(left)

    def _receive(self, seconds: float) -> None:
        self._broker.coordinator.receive(seconds)
        for name, sent in tuple(self._joins.items()):
            if sent.pending.body is not None:
                del self._joins[name]
                self._take(name, sent, decoded(sent.pending))

    def _take(self, name: str, sent: _SentJoin, answer: Entity) -> None:
        error = error_name(answer.error_code)
        if answer.member_id:
            self._ids[name] = answer.member_id
            self._owners[answer.member_id] = name
        if error != _NO_ID_YET:
            self._answers[name] = MixedAnswer(error, int(answer.generation_id))
            return
        if sent.sender.member_id:
            raise SystemFailed(f"JoinGroup with a member id was answered {error}")
        self.send_join(name, sent.metadata, sent.session_ms)
