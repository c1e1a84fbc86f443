"""A TCP proxy in front of brokers: decodes what passes, writes it down, and disturbs it by rule.

Bytes are passed on as they came: a message that cannot be decoded passes all the same, and is
told. Rules delay, drop, hold or cut; `cut` links stay cut until they are mended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, TextIO

from conformance.errors import UserError
from conformance.kafka.frames import Conversation, ObservedMessage, Splitter, framed, plain
from conformance.kafka.schemas import DecodeError, Schemas

ACTIONS = ("delay", "drop", "hold", "cut")
_PORTION = 1 << 16
_ADDRESSES = {
    "Metadata": "brokers",
    "DescribeCluster": "brokers",
    "FindCoordinator": "coordinators",
}
"""Answers that tell brokers' addresses, and in which array (old FindCoordinators: at the top)."""


@dataclass(frozen=True, slots=True)
class TapRule:
    """What happens to messages that match. What is left out matches everything."""

    action: str
    """delay (by `seconds`), drop (the message), hold (until released) or cut (the connection)."""
    api: str = ""
    direction: str = ""
    client: str = ""
    """A prefix of the client id."""
    link: str = ""
    """A prefix of the link's name, `client->1` or `2->1:broker`."""
    seconds: float = 0.0
    skip: int = 0
    """How many messages that match are left alone first."""
    times: int = 1
    """How many messages it is applied to; 0: all."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise UserError(f"A rule's action is one of {', '.join(ACTIONS)}, not {self.action!r}.")

    def matches(self, seen: ObservedMessage, link: str) -> bool:
        """Whether the rule is about this message."""
        return (
            self.api in ("", seen.api)
            and self.direction in ("", seen.direction)
            and (seen.client or "").startswith(self.client)
            and link.startswith(self.link)
        )


@dataclass(slots=True)
class _Counted:
    """A rule and how many messages matched it."""

    rule: TapRule
    matched: int = 0

    def applies(self, seen: ObservedMessage, link: str) -> bool:
        if not self.rule.matches(seen, link):
            return False
        self.matched += 1
        nth = self.matched - self.rule.skip
        return nth > 0 and (self.rule.times == 0 or nth <= self.rule.times)


@dataclass(frozen=True, slots=True)
class TapLink:
    """One port of the tap and the broker's port behind it."""

    name: str
    listen: int
    """A port of 127.0.0.1; 0: any that is free."""
    port: int
    host: str = "127.0.0.1"
    by_client: bool = False
    """Whether connections of brokers are told apart by their client ids (`broker-2-fetcher-0`)."""


@dataclass(slots=True, eq=False)
class _Channel:
    """A connection that passes."""

    number: int
    link: str
    conversation: Conversation
    streams: list[asyncio.StreamWriter] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


Write = Callable[[dict[str, Any]], None]


class Tap:
    """The proxy. Use as an asynchronous context manager."""

    def __init__(
        self, schemas: Schemas, links: Sequence[TapLink], write: Write, *, follow: bool = False
    ) -> None:
        """With `follow`, brokers' addresses in answers are replaced by ports of this tap, which are
        opened when they are first told: so clients stay on it, whatever the brokers advertise."""
        self.passed = 0
        """Messages that passed, both directions."""
        self.undecoded = 0
        self.waiting = 0
        """Messages that wait for `release` now."""
        self._schemas = schemas
        self._links = links
        self._follow = follow
        self._fronts: dict[tuple[str, int], int] = {}
        self._write = write
        self._servers: list[asyncio.Server] = []
        self._channels: set[_Channel] = set()
        self._handlers: set[asyncio.Task[Any]] = set()
        self._rules: list[_Counted] = []
        self._cut: set[str] = set()
        self._released = asyncio.Event()
        self._numbers = count(1)
        self._closed = False

    async def __aenter__(self) -> Tap:
        try:
            for link in self._links:
                self._fronts[link.host, link.port] = await self._listen(link)
        except OSError as error:
            await self.close()
            raise UserError(f"The tap cannot listen on a port of 127.0.0.1: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that the tap listens on, in the order in which they were opened."""
        return tuple(server.sockets[0].getsockname()[1] for server in self._servers)

    async def _listen(self, link: TapLink) -> int:
        server = await asyncio.start_server(partial(self._accept, link), "127.0.0.1", link.listen)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Close every connection and port; nothing of the tap is left on the loop."""
        self._closed = True
        for server in self._servers:
            server.close()
        while self._handlers:  # ending one takes turns of the loop, in which another may begin
            for channel in list(self._channels):
                self._drop(channel)
            handlers = list(self._handlers)
            for handler in handlers:
                handler.cancel()
            await asyncio.gather(*handlers, return_exceptions=True)

    def add_rules(self, rules: Iterable[TapRule]) -> None:
        """Apply these to messages from now on; the first that applies decides."""
        self._rules += [_Counted(rule) for rule in rules]

    def cut(self, *links: str) -> None:
        """Close the connections of these links and refuse new ones; `1->2` is every listener."""
        self._cut |= set(links)
        for channel in list(self._channels):
            if self._is_cut(channel.link):
                self._drop(channel)
        self._note("cut", links)

    def mend(self, *links: str) -> None:
        """Let these links work again; all of them if none is named."""
        self._cut -= set(links or self._cut)
        self._note("mend", links)

    def _is_cut(self, link: str) -> bool:
        return any(link == name or link.startswith(f"{name}:") for name in self._cut)

    def release(self) -> None:
        """Let held messages pass."""
        self._released.set()
        self._released = asyncio.Event()
        self._note("release", ())

    def _note(self, what: str, links: Sequence[str]) -> None:
        self._write({"time": time.monotonic_ns(), "tap": what, "links": list(links)})

    def _accept(
        self, link: TapLink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve a connection. Its task is known from the start, so that `close` ends it too."""
        if self._closed:
            writer.transport.abort()
            return
        handler = asyncio.create_task(self._connected(link, reader, writer))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)

    async def _connected(
        self, link: TapLink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await self._serve(link, reader, writer)
        finally:
            writer.transport.abort()

    async def _serve(
        self, link: TapLink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass both directions on until one of them ends."""
        channel = _Channel(next(self._numbers), link.name, Conversation(self._schemas), [writer])
        if self._is_cut(link.name):
            return
        try:
            server = await asyncio.open_connection(link.host, link.port)
        except OSError:
            return  # as the broker's own port would be: nobody listens there
        channel.streams.append(server[1])
        self._channels.add(channel)
        channel.tasks = [
            asyncio.create_task(self._pass(channel, link, reader, server[1], "request")),
            asyncio.create_task(self._pass(channel, link, server[0], writer, "response")),
        ]
        try:
            await asyncio.wait(channel.tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._drop(channel)
            await asyncio.gather(*channel.tasks, return_exceptions=True)
        for task in channel.tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    def _drop(self, channel: _Channel) -> None:
        if channel in self._channels:
            self._channels.discard(channel)
            for task in channel.tasks:
                task.cancel()
            for stream in channel.streams:
                stream.transport.abort()  # a cut: what is on its way does not arrive

    async def _pass(
        self,
        channel: _Channel,
        link: TapLink,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: str,
    ) -> None:
        """Pass on one direction of a connection until it ends."""
        splitter = Splitter()
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while data := await reader.read(_PORTION):
                try:
                    frames = list(splitter.feed(data))
                except DecodeError as error:
                    self.undecoded += 1
                    self._write(_event(channel, error=str(error)))
                    return
                for frame in frames:
                    passed = await self._message(channel, link, frame, direction)
                    if passed is not None:
                        writer.write(framed(passed))
                        await writer.drain()

    async def _message(
        self, channel: _Channel, link: TapLink, frame: bytes, direction: str
    ) -> bytes | None:
        """Decode, write down, disturb; what is passed on, or None."""
        arrived = time.monotonic_ns()
        seen = getattr(channel.conversation, direction)(frame)
        if direction == "request" and link.by_client:
            channel.link = link_of(link.name, seen.client)
            if self._is_cut(channel.link):
                raise ConnectionResetError
        self.passed += 1
        self.undecoded += seen.body is None
        rule = next((rule.rule for rule in self._rules if rule.applies(seen, channel.link)), None)
        passes = await self._disturbed(rule)
        event = _event(channel, seen, arrived=arrived, rule=rule.action if rule else "")
        self._write(event)
        if rule is not None and rule.action == "cut":
            raise ConnectionResetError
        if not passes:
            return None
        return await self._fronted(seen, frame) if self._follow else frame

    async def _fronted(self, seen: ObservedMessage, frame: bytes) -> bytes:
        """The frame with brokers' addresses replaced, if it is an answer that tells some."""
        if seen.direction != "response" or seen.body is None or seen.api not in _ADDRESSES:
            return frame
        places = seen.body.get(_ADDRESSES[seen.api], [seen.body])
        for place in places:
            if place["host"]:
                place["host"], place["port"] = "127.0.0.1", await self._front(place)
        assert seen.correlation is not None
        return self._schemas.encode_response(seen.api, seen.version, seen.correlation, seen.body)

    async def _front(self, place: Mapping[str, Any]) -> int:
        """Our port in front of a broker's address, opened at its first use."""
        address = (place["host"], place["port"])
        if address not in self._fronts:
            link = TapLink(f"client->{address[0]}:{address[1]}", 0, address[1], address[0])
            self._fronts[address] = await self._listen(link)
        return self._fronts[address]

    async def _disturbed(self, rule: TapRule | None) -> bool:
        if rule is None:
            return True
        if rule.action == "delay":
            await asyncio.sleep(rule.seconds)
        elif rule.action == "hold":
            self.waiting += 1
            try:
                await self._released.wait()
            finally:
                self.waiting -= 1
        return rule.action != "drop"


def link_of(name: str, client: str | None) -> str:
    """`?->1:broker` with a broker's client id is `2->1:broker`; another client's is `client->1`.

    Brokers call themselves `broker-2-fetcher-0` (fetchers), `2` or `broker-2-...` (channels to the
    controller and to coordinators), `raft-client-2`.
    """
    _, _, target = name.partition("->")
    for word in (client or "").split("-"):
        if word.isdigit():
            return f"{word}->{target}"
    return f"client->{target}"


def _event(
    channel: _Channel,
    seen: ObservedMessage | None = None,
    *,
    arrived: int = 0,
    rule: str = "",
    error: str = "",
) -> dict[str, Any]:
    """One line of the tap's file (docs/tap.md)."""
    event: dict[str, Any] = {
        "time": arrived or time.monotonic_ns(),
        "left": time.monotonic_ns(),
        "connection": channel.number,
        "link": channel.link,
    }
    if seen is None:
        return {**event, "problem": error}
    event |= {
        "direction": seen.direction,
        "api": seen.api,
        "version": seen.version,
        "correlation": seen.correlation,
        "client": seen.client,
        "body": plain(seen.body),
    }
    if seen.problem:
        event["problem"] = seen.problem
    if rule:
        event["rule"] = rule
    return event


def writer_to(file: TextIO) -> Write:
    """Writes each event as one line of JSON."""

    def write(event: Mapping[str, Any]) -> None:
        file.write(json.dumps(event, separators=(",", ":")) + "\n")

    return write


class TapThread:
    """A tap on an event loop in a thread of its own, for callers that block."""

    def __init__(
        self, schemas: Schemas, links: Sequence[TapLink], write: Write, *, follow: bool = False
    ) -> None:
        self._tap = Tap(schemas, links, write, follow=follow)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tap", daemon=True)

    def __enter__(self) -> TapThread:
        self._thread.start()
        try:
            self._run(self._tap.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._tap.close())
        self._end()

    @property
    def passed(self) -> int:
        """Messages that passed, both directions."""
        return self._tap.passed

    @property
    def undecoded(self) -> int:
        """Messages that passed without being understood."""
        return self._tap.undecoded

    @property
    def waiting(self) -> int:
        """Messages that wait for `release` now."""
        return self._tap.waiting

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that the tap listens on."""
        return self._tap.ports

    def cut(self, *links: str) -> None:
        """Close these links and keep them closed."""
        self._call(partial(self._tap.cut, *links))

    def mend(self, *links: str) -> None:
        """Open these links again, or all."""
        self._call(partial(self._tap.mend, *links))

    def add_rules(self, rules: Iterable[TapRule]) -> None:
        """Apply rules from now on."""
        self._call(partial(self._tap.add_rules, list(rules)))

    def release(self) -> None:
        """Let held messages pass."""
        self._call(self._tap.release)

    def _call(self, work: Callable[[], None]) -> None:
        async def call() -> None:
            work()

        self._run(call())

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30.0)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()
