"""The loopback server that a client takes for a broker: what the specification knows goes to
`exchange`, all the rest is answered as impl's broker does.

As in Kafka, one request of a connection is under way at a time (SocketServer mutes a channel).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from conformance.systems.client.subject import PARTITIONS
from impl.clock import SystemClock
from impl.errors import Errors
from impl.types import BrokerEndPoint
from impl.wire import group_requests, group_responses
from impl.wire.broker import OFFERED, Broker, BrokerConfig, api_versions
from impl.wire.entities import (
    Entity,
    MalformedFrame,
    Received,
    frame_size,
    read_request,
    requested,
    response_frame,
)

_MEMBER_APIS = frozenset({"join_group", "sync_group", "heartbeat", "leave_group", "offset_commit"})
_MAX_FRAME = 10 * 1024 * 1024


@dataclass(slots=True)
class Link:
    """One connection of the client: frames that have come, and whether it has ended."""

    frames: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def waiting(self) -> list[bytes]:
        """The requests that came behind the one that is under way; they are taken out."""
        found = []
        while not self.frames.empty():
            frame = self.frames.get_nowait()
            if frame is not None:
                found.append(frame)
        return found


Exchange = Callable[[Any, Link], Awaitable[Any | None]]
"""A member's request of impl.group.messages to its answer; None: cut the connection."""
Unreadable = Callable[[str], None]


class Server:
    """Listens on a free port of 127.0.0.1; use it as an asynchronous context manager."""

    def __init__(self, exchange: Exchange, unreadable: Unreadable) -> None:
        self._exchange = exchange
        self._unreadable = unreadable
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._broker: Broker | None = None
        self.port = 0

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        endpoint = BrokerEndPoint(0, "127.0.0.1", self.port)
        config = BrokerConfig(endpoint, default_partitions=PARTITIONS)
        self._broker = Broker(config, SystemClock(), _later)
        return self

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
        link = Link()
        reading = asyncio.create_task(_read(reader, link))
        try:
            while (frame := await link.frames.get()) is not None:
                answer = await self._answer(frame, link)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except MalformedFrame as error:
            self._unreadable(str(error))
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the example is over
        finally:
            reading.cancel()
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, frame: bytes, link: Link) -> bytes | None:
        api, version = requested(frame)
        _, low, high = OFFERED.get(api, (0, 0, -1))
        if not low <= version <= high:
            if api != "api_versions":
                raise MalformedFrame(f"{api or 'an API that nobody knows'} {version} is not offered")
            correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
            return response_frame(api_versions(0, Errors.UNSUPPORTED_VERSION), correlation_id)
        received = read_request(frame)
        if received.api not in _MEMBER_APIS:
            body = await self._as_broker(received)
            return response_frame(body, received.correlation_id)
        answer = await self._exchange(group_requests.from_entity(received, "/127.0.0.1"), link)
        if answer is None:
            return None
        body = group_responses.to_entity(received.api, answer, received.version)
        return response_frame(body, received.correlation_id)

    async def _as_broker(self, received: Received) -> Entity:
        assert self._broker is not None
        answered: asyncio.Future[Entity] = asyncio.get_running_loop().create_future()

        def answer(body: Entity) -> None:
            if not answered.done():
                answered.set_result(body)

        self._broker.handle(received, "/127.0.0.1", answer)
        return await answered


def member_request(frame: bytes) -> Any | None:
    """The member's request in a frame, None if it is another one."""
    with contextlib.suppress(MalformedFrame):
        received = read_request(frame)
        if received.api in _MEMBER_APIS:
            return group_requests.from_entity(received, "/127.0.0.1")
    return None


async def _read(reader: asyncio.StreamReader, link: Link) -> None:
    """Frames as they come, until the client ends the connection."""
    try:
        while True:
            size = frame_size(await reader.readexactly(4))
            if not 0 <= size <= _MAX_FRAME:
                break
            link.frames.put_nowait(await reader.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        link.ended.set()
        link.frames.put_nowait(None)


def _later(milliseconds: int, call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(milliseconds / 1000, call)
