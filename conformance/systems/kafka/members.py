"""Members whose consumer is Kafka's: ConsumerCoordinator and its heartbeat thread in the JVM."""

from __future__ import annotations

import base64

import msgspec

from conformance.kafka.entities import (
    NEWEST,
    SIZE_BYTES,
    Entity,
    Received,
    in_version,
    read_request,
    response_frame,
)
from conformance.systems.external import AdapterChannel
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.exchange import (
    Exchange,
    heartbeat_view,
    kind_of,
    message_view,
    partitions,
)
from conformance.systems.shared.group.port_member import MemberGeneration
from conformance.systems.shared.group.settings import SESSION_TIMEOUT_MS, GroupSettings
from conformance.systems.shared.group.views import ProcessView


class _BridgeClient(msgspec.Struct, frozen=True, array_like=True):
    """A member as the bridge writes it: Member.java. Requests are (number, frame)."""

    state: str
    generation: int
    member_id: str
    protocol: str | None
    rejoin_needed: bool
    needs_join_prepare: bool
    future: str
    future_assignment: bytes
    is_leader: bool
    owned: tuple[int, ...]
    failed: bool
    sent: tuple[tuple[int, bytes], ...]
    in_flight: tuple[int, ...]


_as_member = msgspec.json.Decoder(_BridgeClient).decode


class KafkaProcess:
    """One process of the spec, through restarts, as `steps.MemberProcess` asks for.

    What the consumer sends is read off its frames; what becomes of a request is an Exchange here,
    and only its answer, or its loss, goes back to the JVM.
    """

    def __init__(self, channel: AdapterChannel, name: str, settings: GroupSettings) -> None:
        self._jvm = channel
        self.name = name
        self._settings = settings
        self.protocols = settings.protocols_of[name]
        self.channel: Exchange | None = None
        self._start()

    def _start(self) -> None:
        self.heartbeat: Exchange | None = None
        self._requests: dict[Exchange, tuple[int, Received]] = {}
        self._run(
            "start",
            instance=self._settings.instances[self.name],
            protocols=sorted(self.protocols),
            session_ms=SESSION_TIMEOUT_MS,
            rebalance_ms=self._settings.rebalance_timeout_ms,
            join_version=self._settings.join_version(self.name),
            partitions=self._settings.partitions,
        )

    @property
    def failed(self) -> bool:
        """Whether a fatal error was thrown to the user."""
        return self._seen.failed

    def _run(self, step: str, **members: object) -> None:
        command = {"command": f"member_{step}", "member": self.name, **members}
        self._seen = _as_member(self._jvm.call([command])[0])
        for number, frame in self._seen.sent:
            self._note(number, read_request(frame))
        self._forget_disconnected()

    def _note(self, number: int, received: Received) -> None:
        message = in_version(received.body, NEWEST[received.api])
        kind = kind_of(message)
        sent = MemberGeneration(self._seen.generation, self._seen.member_id, self._seen.protocol)
        exchange = Exchange(message, sent, abandoned=kind == "LeaveGroupRequest")
        self._requests[exchange] = number, received
        if kind in ("HeartbeatRequest", "OffsetCommitRequest"):
            self.heartbeat = exchange
        else:
            self.channel = exchange

    def _forget_disconnected(self) -> None:
        """What the client has given up with its connection is not answered any more."""
        if self.heartbeat is not None and not self._is_awaited(self.heartbeat):
            self.heartbeat = None
        channel = self.channel
        if channel is not None and not channel.abandoned and not self._is_awaited(channel):
            self.channel = None

    def _is_awaited(self, exchange: Exchange) -> bool:
        return self._requests[exchange][0] in self._seen.in_flight

    # ---- the application ---------------------------------------------------------------------

    def send_join_group(self) -> None:
        """AbstractCoordinator.joinGroupIfNeeded up to the request."""
        if self.channel is not None or self._seen.future != "None":
            raise ActionRefused(f"{self.name} is joining already")
        self._run("join")
        if self.channel is None:
            raise ActionRefused(f"{self.name} did not join")

    def complete_join(self) -> None:
        """AbstractCoordinator.joinGroupIfNeeded sees the completed future."""
        self._run("complete_join")

    def send_offset_commit(self) -> None:
        """The application commits a position."""
        self._run("commit")
        if self.heartbeat is None:
            raise ActionRefused(f"{self.name} did not commit")

    def leave_group(self) -> None:
        """Unsubscribe, and subscribe again: AbstractCoordinator.maybeLeaveGroup."""
        self._run("leave")

    def request_rejoin(self) -> None:
        """AbstractCoordinator.requestRejoin."""
        self._run("rejoin")

    def change_protocols(self, names: frozenset[str]) -> None:
        """From its next join on the consumer tells of other assignors."""
        self.protocols = names
        self._run("protocols", protocols=sorted(names))

    def end(self) -> None:
        """The process is gone; its heartbeat thread ends when the next one takes its place."""

    def restart(self) -> None:
        """A new process; what the old one has sent may still arrive."""
        left = self.channel
        if left is not None and left.is_under_way and self._settings.late_requests:
            left.abandoned = True
        if left is not None and not left.abandoned:
            self.channel = None
        self._start()

    def send_heartbeat(self) -> None:
        """HeartbeatThread.run, once the interval is over."""
        if self.heartbeat is not None:
            raise ActionRefused(f"{self.name} has a heartbeat in flight")
        self._run("heartbeat")

    # ---- answers -----------------------------------------------------------------------------

    def process(self, exchange: Exchange | None) -> None:
        """Hand the answer in, and call back."""
        if exchange is None or exchange.response is None:
            raise ActionRefused(f"no answer has arrived at {self.name}")
        _, received = self._requests[exchange]
        entity = in_version(exchange.response, received.version)
        self._answer(exchange, response_frame(entity, received.correlation_id)[SIZE_BYTES:])

    def lose(self, exchange: Exchange | None) -> None:
        """The request or its answer is lost: the connection broke."""
        if exchange is None:
            raise ActionRefused(f"nothing of {self.name} is in flight")
        if exchange.abandoned:
            self.channel = None
        else:
            self._answer(exchange, None)

    def abandon(self) -> None:
        """The client gives up on its request, which arrives nevertheless."""
        exchange = self.channel
        if exchange is None or not exchange.is_under_way or exchange.abandoned:
            raise ActionRefused(f"{self.name} waits for no request")
        self.lose(exchange)
        exchange.abandoned = True
        self.channel = exchange

    def _answer(self, exchange: Exchange, frame: bytes | None) -> None:
        number, _ = self._requests.pop(exchange)
        if exchange is self.channel:
            self.channel = None
        else:
            self.heartbeat = None
        text = None if frame is None else base64.b64encode(frame).decode("ascii")
        self._run("answer", number=number, frame=text)

    def at_most(self, message: Entity) -> int | None:
        """The version in which the consumer itself has sent it."""
        joins = kind_of(message) == "JoinGroupRequest"
        return self._settings.join_version(self.name) if joins else None

    # ---- what is seen ------------------------------------------------------------------------

    def view(self) -> ProcessView:
        """The process as the specification's variables see it."""
        seen = self._seen
        return ProcessView(
            seen.state,
            seen.generation,
            seen.member_id,
            seen.protocol,
            seen.rejoin_needed,
            seen.needs_join_prepare,
            seen.future,
            partitions(seen.future_assignment),
            seen.is_leader,
            frozenset(seen.owned),
            self.protocols,
            seen.failed,
            message_view(self.channel),
            heartbeat_view(self.heartbeat),
        )
