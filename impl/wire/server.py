"""A TCP server over one broker: real consumers can join its groups.

    python -m impl.wire --port 9092 --topic orders=6

One event loop is the broker's only thread; one request of a connection is under way at a time, as
in Kafka (SocketServer mutes a channel until its response is sent).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from ..clock import SystemClock
from ..errors import Errors
from .broker import OFFERED, Broker, BrokerConfig, api_versions
from .entities import (
    Entity,
    MalformedFrame,
    frame_size,
    read_request,
    requested,
    response_frame,
)

TICK_SECONDS = 0.005
"""How late a timer may be."""
MAX_FRAME = 100 * 1024 * 1024
"""socket.request.max.bytes."""


class Server:
    """The server while it listens; use it as an asynchronous context manager."""

    def __init__(self, config: BrokerConfig, tls: ssl.SSLContext | None = None) -> None:
        self._config = config
        self._tls = tls
        self.broker = Broker(config, SystemClock(), _later)
        self._connections: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Server:
        endpoint = self._config.endpoint
        self._server = await asyncio.start_server(
            self._connected, endpoint.host, endpoint.port, ssl=self._tls
        )
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._server is not None:
            self._server.close()
        tasks = [*self._connections, *([self._ticking] if self._ticking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.broker.expire_due()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        host = str(writer.get_extra_info("peername")[0])
        try:
            while (frame := await _read_frame(reader)) is not None:
                writer.write(await self._answer(frame, f"/{host}"))
                await writer.drain()
        except (MalformedFrame, ConnectionError, asyncio.IncompleteReadError):
            pass  # as Kafka does, close the connection: there is nobody to tell
        except asyncio.CancelledError:
            pass  # the server ends; asyncio's streams would report it as an error
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, frame: bytes, host: str) -> bytes:
        api, version = requested(frame)
        _, low, high = OFFERED.get(api, (0, 0, -1))
        if not low <= version <= high:
            if api != "api_versions":
                raise MalformedFrame(f"{api or 'this API'} {version} is not offered")
            correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
            return response_frame(api_versions(0, Errors.UNSUPPORTED_VERSION), correlation_id)
        received = read_request(frame)
        answered: asyncio.Future[Entity | None] = asyncio.get_running_loop().create_future()

        def answer(body: Entity | None) -> None:
            if not answered.done():  # its connection may be gone
                answered.set_result(body)

        self.broker.handle(received, host, answer)
        body = await answered
        return b"" if body is None else response_frame(body, received.correlation_id)


def _later(milliseconds: int, call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(milliseconds / 1000, call)


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """One request without its size; None where the client has closed its side."""
    try:
        size = frame_size(await reader.readexactly(4))
    except asyncio.IncompleteReadError:
        return None
    if not 0 <= size <= MAX_FRAME:
        raise MalformedFrame(f"a request of {size} bytes")
    return await reader.readexactly(size)
