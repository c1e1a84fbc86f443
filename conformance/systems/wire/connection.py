"""One TCP connection to a broker, which has at most one request under way.

Kafka answers the requests of a connection one after the other, so a parked JoinGroup blocks its
connection: every request under way has one of its own.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any

from conformance.kafka.entities import (
    Entity,
    MalformedFrame,
    api_of,
    class_of,
    frame_size,
    make,
    read_response,
    request_frame,
)
from conformance.systems.protocol import SystemFailed, SystemHangs
from conformance.systems.wire.scram import ScramError
from conformance.systems.wire.security import PLAIN, Login, Security

MAX_ANSWER = 100 * 1024 * 1024
_SHOWN = 256
"""Bytes of a message that a finding shows."""


class LoginFailed(Exception):
    """The broker does not accept the login; the message says why."""


class Pending:
    """A request that was sent; `body` is its answer once that is there."""

    __slots__ = ("api", "body", "received", "sent", "version")

    def __init__(self, api: str, version: int, sent: bytes) -> None:
        self.api = api
        self.version = version
        self.sent = sent
        self.received = b""
        self.body: Entity | None = None

    def __str__(self) -> str:
        return f"{self.api} version {self.version}"


class WireConnection:
    """Connected and logged in at once. Raises OSError where nobody listens or TLS fails,
    LoginFailed, and SystemFailed for whatever a broker does that the protocol does not know: with
    the bytes."""

    def __init__(self, host: str, port: int, timeout: float, security: Security) -> None:
        self._timeout = timeout
        self._socket = _connected(host, port, timeout, security)
        self._correlation_id = 0
        self._received = bytearray()
        self.pending: Pending | None = None
        self.ended = False
        """The broker has closed it, perhaps after a last answer."""
        if security.login is not None:
            try:
                self._log_in(security.login)
            except BaseException:
                self.close()
                raise

    def fileno(self) -> int:
        """The socket's number."""
        return self._socket.fileno()

    def send(self, body: Any, client_id: str) -> Pending:
        """Send a request; its answer comes through `receive`."""
        if self.pending is not None:
            raise AssertionError(f"{self.pending} is under way on this connection")
        self._correlation_id += 1
        frame = request_frame(body, self._correlation_id, client_id)
        self.pending = Pending(api_of(body), int(body.__version__), frame)
        try:
            self._send_all(frame)
        except OSError as error:
            raise self._failed(f"the connection broke as it was sent ({error})") from error
        return self.pending

    def tell(self, body: Any, client_id: str) -> None:
        """Send a request that has no answer."""
        self.send(body, client_id)
        self.pending = None

    def _send_all(self, frame: bytes) -> None:
        left = memoryview(frame)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                if not _ready([self._socket.fileno()], select.POLLOUT, self._timeout):
                    raise TimeoutError("the broker does not read") from None

    def receive(self) -> None:
        """Read what has arrived; complete the request under way if its answer is whole."""
        while True:
            try:
                data = self._socket.recv(65_536)
            except (BlockingIOError, ssl.SSLWantReadError):
                break  # of TLS: a record that is not whole yet, or one that is not for us
            except OSError as error:
                raise self._failed(f"the connection broke ({error})") from error
            if not data:
                self.ended = True
                break
            self._received += data
            if len(data) < 65_536 and not isinstance(self._socket, ssl.SSLSocket):
                break
        self._take_in()
        if self.ended and self.pending is not None:
            raise self._failed("the broker closed the connection")

    def _take_in(self) -> None:
        if len(self._received) < 4:
            return
        size = frame_size(self._received)
        if not 0 <= size <= MAX_ANSWER:
            raise self._failed(f"the answer says that it has {size} bytes")
        if len(self._received) < 4 + size:
            return
        frame = bytes(self._received[4 : 4 + size])
        pending = self.pending
        if pending is None:
            raise self._failed("bytes arrived that nobody asked for")
        if len(self._received) > 4 + size:
            raise self._failed("more than one answer arrived")
        pending.body = self._decode(pending, frame)
        pending.received = bytes(self._received)
        self._received.clear()
        self.pending = None

    def _decode(self, pending: Pending, frame: bytes) -> Entity:
        kind = class_of(pending.api, pending.version, "response")
        try:
            correlation_id, body = read_response(frame, kind)
        except MalformedFrame as error:
            raise self._failed(f"the answer cannot be read ({error})") from error
        if correlation_id != self._correlation_id:
            raise self._failed(f"the answer is to correlation id {correlation_id}")
        return body

    # ---- logging in (KIP-12, KIP-84, KIP-152) ------------------------------------------------

    def _log_in(self, login: Login) -> None:
        handshake = make(class_of("sasl_handshake", 1, "request"), mechanism=login.mechanism)
        offered = self._asked(handshake)
        if offered.error_code:
            known = ", ".join(offered.mechanisms)
            raise LoginFailed(f"it offers {known or 'no mechanism'}, not {login.mechanism}")
        if login.mechanism == PLAIN:
            self._authenticate(login.plain())
            return
        scram = login.scram()
        server_first = self._authenticate(scram.first())
        try:
            server_final = self._authenticate(scram.final(server_first))
            scram.verify(server_first, server_final)
        except ScramError as refused:
            raise LoginFailed(str(refused)) from refused

    def _authenticate(self, data: bytes) -> bytes:
        answer = self._asked(make(class_of("sasl_authenticate", 1, "request"), auth_bytes=data))
        if answer.error_code:
            raise LoginFailed(answer.error_message or f"error {int(answer.error_code)}")
        return bytes(answer.auth_bytes)

    def _asked(self, body: Any) -> Any:
        pending = self.send(body, "")
        until = time.monotonic() + self._timeout
        while pending.body is None:
            if not wait_for([self], until - time.monotonic()):
                raise SystemHangs(f"{pending} was not answered within {self._timeout:.0f} s")
            self.receive()
        return pending.body

    def _failed(self, what: str) -> SystemFailed:
        request = "" if self.pending is None else f"{self.pending}: "
        sent = b"" if self.pending is None else self.pending.sent
        return SystemFailed(f"{request}{what}.\n{both_ways(sent, bytes(self._received))}")

    def close(self) -> None:
        """Nothing that is under way is waited for."""
        self._socket.close()


def _connected(host: str, port: int, timeout: float, security: Security) -> socket.socket:
    """A socket that does not block, past the TLS handshake if there is one."""
    connected = socket.create_connection((host, port), timeout)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if security.tls is not None:
            connected = security.tls.wrap_socket(connected, server_hostname=host)
        connected.setblocking(False)
    except BaseException:
        connected.close()
        raise
    return connected


def both_ways(sent: bytes, received: bytes) -> str:
    """The bytes of a request and of its answer, as a finding shows them."""
    return f"sent     {_hex(sent)}\nreceived {_hex(received)}"


def _hex(data: bytes) -> str:
    shown = data[:_SHOWN].hex(" ")
    more = len(data) - _SHOWN
    return (shown or "nothing") + (f" ... and {more} bytes more" if more > 0 else "")


def wait_for(connections: list[WireConnection], seconds: float) -> list[WireConnection]:
    """Those on which something has arrived, after so long at most."""
    wire_connections = {connection.fileno(): connection for connection in connections}
    return [wire_connections[number] for number in _ready(wire_connections, select.POLLIN, seconds)]


def _ready(numbers: Iterable[int], event: int, seconds: float) -> list[int]:
    """Of these files those that have come to the event, or to their end. Not by `select`, which
    takes no file whose number is over a thousand."""
    poll = select.poll()
    for number in numbers:
        poll.register(number, event)
    return [number for number, _ in poll.poll(max(seconds, 0.0) * 1000)]
