"""The loopback server that a client takes for a broker: what the specification knows goes to
a handler, all the rest is answered by `broker`.

As in Kafka, one request of a connection is under way at a time (SocketServer mutes a channel).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kio.schema.errors import ErrorCode

from conformance.client.breaches import Breach, in_hex
from conformance.client.broker import OFFERED, LoopBroker, api_versions
from conformance.client.logs import RecordLogs
from conformance.client.requests import MemberRequest, member_request
from conformance.kafka.entities import (
    Entity,
    MalformedFrame,
    Received,
    TrailingBytes,
    frame_size,
    has_request,
    in_version,
    read_request,
    requested,
    response_frame,
)

_MAX_FRAME = 10 * 1024 * 1024


class _UnservedRequest(Exception):
    """A request of Kafka's that the loop does not serve."""


@dataclass(slots=True)
class ServerRequest:
    """A request that has come; `member` is what the specification knows of it, if it does."""

    received: Received
    member: MemberRequest | None


@dataclass(slots=True)
class ClientLink:
    """One connection of the client: requests that have come, and whether it has ended."""

    requests: asyncio.Queue[ServerRequest | bytes | None] = field(default_factory=asyncio.Queue)
    """Bytes are an answer that is ready; None is the end."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def waiting(self) -> list[MemberRequest]:
        """The members' requests that came behind the one under way; they are taken out."""
        result = []
        while not self.requests.empty():
            waiting_request = self.requests.get_nowait()
            if isinstance(waiting_request, ServerRequest) and waiting_request.member is not None:
                result.append(waiting_request.member)
        return result


class Handler(Protocol):
    """What a server does with a member's requests."""

    def arrived(self, request: MemberRequest) -> None:
        """It has come; requests before it on its connection may wait for their answers."""

    async def exchange(self, request: MemberRequest, link: ClientLink) -> Entity | None:
        """The answer, when it is given; None: cut the connection."""

    def dropped(self, requests: Sequence[MemberRequest], link: ClientLink) -> None:
        """The connection is over, and with it these requests that had come."""

    def passed(self, received: Received) -> None:
        """A request came that the specification does not know."""

    def breach(self, breach: Breach) -> None:
        """The client has sent bytes that Kafka's schemas do not allow."""

    def no_request(self, text: str) -> None:
        """The client's bytes are no request: the connection is cut, as Kafka does."""

    def limited(self, text: str) -> None:
        """The client asks for what the loop does not serve: the connection is cut."""


class Server:
    """Listens on a free port of 127.0.0.1; use it as an asynchronous context manager."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._broker: LoopBroker | None = None
        self.port = 0

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._broker = LoopBroker("127.0.0.1", self.port, _later)
        return self

    @property
    def logs(self) -> RecordLogs:
        """The records that the client reads."""
        assert self._broker is not None, "the server does not run"
        return self._broker.logs

    async def __aexit__(self, *_error: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        link = ClientLink()
        reading = asyncio.create_task(self._read(reader, link))
        try:
            while (request := await link.requests.get()) is not None:
                answer = (
                    request if isinstance(request, bytes) else await self._answer(request, link)
                )
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the example is over
        finally:
            reading.cancel()
            self._handler.dropped(link.waiting(), link)
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, link: ClientLink) -> None:
        """Requests as they come, until the client ends the connection or sends what is none."""
        frame = b""
        try:
            while True:
                frame = await reader.readexactly(4)
                size = frame_size(frame)
                if not 0 <= size <= _MAX_FRAME:
                    raise MalformedFrame(f"a request of {size} bytes")
                frame = await reader.readexactly(size)
                link.requests.put_nowait(self._request(frame))
        except MalformedFrame as error:
            self._breach("sends bytes that are no request", str(error), frame)
            self._handler.no_request(str(error))
        except _UnservedRequest as limit:
            self._handler.limited(str(limit))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            link.ended.set()
            link.requests.put_nowait(None)

    def _breach(self, title: str, what: str, frame: bytes) -> None:
        rule = f"Kafka's schemas (KIP-482 has the encoding): {what}"
        self._handler.breach(Breach(title, rule, in_hex(frame)))

    def _request(self, frame: bytes) -> ServerRequest | bytes:
        api, version = requested(frame)
        _, low, high = OFFERED.get(api, (0, 0, -1))
        if not low <= version <= high:
            if api != "api_versions":
                raise _not_served(api, version, frame)
            correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
            return response_frame(api_versions(0, ErrorCode.unsupported_version), correlation_id)
        try:
            received = read_request(frame)
        except TrailingBytes as error:  # over which Kafka's AbstractRequest.parseRequest passes
            self._breach("sends a request with bytes behind its last field", str(error), frame)
            received = error.received
        member = member_request(received)
        if member is None:
            self._handler.passed(received)
        else:
            self._handler.arrived(member)
        return ServerRequest(received, member)

    async def _answer(self, request: ServerRequest, link: ClientLink) -> bytes | None:
        received = request.received
        if request.member is None:
            return response_frame(await self._as_broker(received), received.correlation_id)
        answer = await self._handler.exchange(request.member, link)
        if answer is None:
            return None
        self._commit(request.member, answer)
        return response_frame(in_version(answer, received.version), received.correlation_id)

    def _commit(self, request: MemberRequest, answer: Entity) -> None:
        """Keep positions whose commit was answered NONE: the next OffsetFetch brings them."""
        if request.api != "offset_commit":
            return
        assert self._broker is not None
        errors = [partition.error_code for topic in answer.topics for partition in topic.partitions]
        if not any(errors):
            self._broker.commit(request.body.group_id, request.committed())

    async def _as_broker(self, received: Received) -> Entity:
        assert self._broker is not None
        answered: asyncio.Future[Entity] = asyncio.get_running_loop().create_future()

        def answer(body: Entity) -> None:
            if not answered.done():
                answered.set_result(body)

        self._broker.handle(received, answer)
        return await answered


def narrower() -> str:
    """The APIs of a consumer that the loop serves up to a version that is not Kafka's newest."""
    shown = [
        f"{_name_of(api)} {low} to {high}"
        for api, (_, low, high) in OFFERED.items()
        if has_request(api, high + 1)
    ]
    return (
        f"{', '.join(shown)}, and of {len(OFFERED)} APIs in all the other versions that Kafka has"
    )


def _name_of(api: str) -> str:
    return "".join(part.capitalize() for part in api.split("_"))


def _not_served(api: str, version: int, frame: bytes) -> Exception:
    """What to raise for a request that is not offered: the loop's limit, or no API of Kafka's."""
    name = _name_of(api)
    if not api or not has_request(api, version):
        what = f"{name} {version}" if api else f"the API key {int.from_bytes(frame[:2], 'big')}"
        return MalformedFrame(f"{what} is none of Kafka's")
    if api not in OFFERED:
        return _UnservedRequest(
            f"the client sends {name} {version}; the loop does not serve {name}"
        )
    _, low, high = OFFERED[api]
    return _UnservedRequest(
        f"the client sends {name} {version}; the loop serves {name} {low} to {high} only"
    )


def _later(milliseconds: int, call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(milliseconds / 1000, call)
