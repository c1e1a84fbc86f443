"""The tap in front of a small server in this process: what passes, is written, is disturbed."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from conformance.errors import UserError
from conformance.kafka.frames import framed
from conformance.kafka.tap import TapLink, TapRule, TapThread, link_of
from tests.unit.kafka.small import SMALL


class Broker(socketserver.ThreadingTCPServer):
    """Answers Ask with the length of its text, Metadata with its own address."""

    allow_reuse_address = True
    daemon_threads = True

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Broker)
        while head := self.rfile.read(4):
            request = SMALL.decode_request(self.rfile.read(struct.unpack(">i", head)[0]))
            body: dict[str, Any] = {"error": len(request.body.get("text", ""))}
            if request.api == "Metadata":
                body = {"brokers": [{"nodeId": 1, "host": "127.0.0.1", "port": self.server.port}]}
            answer = SMALL.encode_response(
                request.api, request.version, request.correlation_id, body
            )
            self.wfile.write(framed(answer))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def tapped(
    broker: Broker,
    *rules: TapRule,
    follow: bool = False,
    name: str = "client->1",
    by_client: bool = False,
) -> Iterator[tuple[TapThread, list[dict[str, Any]]]]:
    events: list[dict[str, Any]] = []
    link = TapLink(name, 0, broker.port, by_client=by_client)
    with TapThread(SMALL, [link], events.append, follow=follow) as tap:
        tap.add_rules(rules)
        yield tap, events


class Client:
    def __init__(self, port: int, name: str = "me") -> None:
        self.name = name
        self.socket = socket.create_connection(("127.0.0.1", port), 5.0)
        self.stream = self.socket.makefile("rb")

    def send(self, text: str, number: int = 1, api: str = "Ask") -> None:
        body = {"text": text} if api == "Ask" else {}
        self.socket.sendall(framed(SMALL.encode_request(api, 0, number, self.name, body)))

    def answer(self, key: int = 1) -> tuple[int, dict[str, Any]] | None:
        """The next answer; None if the connection was closed."""
        try:
            head = self.stream.read(4)
            if not head:
                return None
            frame = self.stream.read(struct.unpack(">i", head)[0])
        except ConnectionError:
            return None
        return SMALL.decode_response(key, 0, frame)

    def ask(self, text: str, number: int = 1) -> tuple[int, dict[str, Any]] | None:
        self.send(text, number)
        return self.answer()


def await_held(tap: TapThread) -> None:
    deadline = time.monotonic() + 10
    while not tap.waiting and time.monotonic() < deadline:
        time.sleep(0.001)
    assert tap.waiting == 1


def messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if "api" in event]


def test_messages_pass_and_are_written(broker: Broker) -> None:
    with tapped(broker) as (tap, events):
        client = Client(tap.ports[0])
        assert client.ask("hello", 7) == (7, {"error": 5})
        assert client.ask("", 8) == (8, {"error": 0})
    request, response, *_ = messages(events)
    assert (request["direction"], request["api"], request["body"]) == (
        "request",
        "Ask",
        {"text": "hello"},
    )
    assert (request["client"], request["correlation"], request["link"]) == ("me", 7, "client->1")
    assert (response["direction"], response["correlation"], response["body"]) == (
        "response",
        7,
        {"error": 5},
    )
    assert request["connection"] == response["connection"]
    assert request["time"] <= request["left"] <= response["time"]
    assert len(messages(events)) == 4
    assert (tap.passed, tap.undecoded) == (4, 0)


def test_a_message_is_dropped(broker: Broker) -> None:
    with tapped(broker, TapRule("drop", api="Ask", direction="request", skip=1)) as (tap, events):
        client = Client(tap.ports[0])
        assert client.ask("a", 1) == (1, {"error": 1})
        client.send("bb", 2)  # dropped: never answered
        assert client.ask("ccc", 3) == (3, {"error": 3})
    assert [event.get("rule") for event in messages(events)] == [
        None,
        None,
        "drop",
        None,
        None,
    ]


def test_answers_are_held_until_they_are_released(broker: Broker) -> None:
    with tapped(broker, TapRule("hold", direction="response", client="me")) as (tap, events):
        client = Client(tap.ports[0])
        client.send("held", 1)
        other = Client(tap.ports[0], "other")
        assert other.ask("free", 2) == (2, {"error": 4})
        await_held(tap)
        tap.release()
        assert client.answer() == (1, {"error": 4})
    assert [event["rule"] for event in messages(events) if "rule" in event] == ["hold"]


def test_a_message_is_delayed(broker: Broker) -> None:
    with tapped(broker, TapRule("delay", direction="request", seconds=0.05)) as (tap, events):
        assert Client(tap.ports[0]).ask("x") == (1, {"error": 1})
    delayed = messages(events)[0]
    assert delayed["left"] - delayed["time"] >= 50_000_000


def test_a_rule_cuts_the_connection_and_the_next_one_works(broker: Broker) -> None:
    with tapped(broker, TapRule("cut", direction="response")) as (tap, _):
        assert Client(tap.ports[0]).ask("x") is None
        assert Client(tap.ports[0]).ask("x") == (1, {"error": 1})


def test_a_link_is_cut_until_it_is_mended(broker: Broker) -> None:
    with tapped(broker) as (tap, events):
        client = Client(tap.ports[0])
        assert client.ask("x") is not None
        tap.cut("client->1")
        assert client.answer() is None
        assert Client(tap.ports[0]).answer() is None
        tap.mend()
        assert Client(tap.ports[0]).ask("x") is not None
    assert [event["tap"] for event in events if "tap" in event] == ["cut", "mend"]


def test_brokers_behind_one_port_are_told_apart_by_their_client_ids(broker: Broker) -> None:
    with tapped(broker, name="?->1:broker", by_client=True) as (tap, events):
        tap.cut("2->1")
        assert Client(tap.ports[0], "broker-2-fetcher-0").ask("x") is None
        assert Client(tap.ports[0], "broker-3-fetcher-0").ask("x") == (1, {"error": 1})
    assert {event["link"] for event in messages(events)} == {"3->1:broker"}


@pytest.mark.parametrize("action", ["delay", "drop", "hold", "cut"])
def test_a_rule_is_about_one_brokers_message_to_another(broker: Broker, action: str) -> None:
    rule = TapRule(action, api="Ask", direction="request", link="2->1", seconds=0.01)
    with tapped(broker, rule, name="?->1:broker", by_client=True) as (tap, events):
        assert Client(tap.ports[0], "broker-3-fetcher-0").ask("x") == (1, {"error": 1})
        second = Client(tap.ports[0], "broker-2-fetcher-0")
        second.send("x", 1)
        if action == "hold":
            await_held(tap)
            tap.release()
        if action == "cut":
            assert second.answer() is None
        else:  # once only: the next one passes
            second.send("xx", 2)
            assert second.answer() == ((2, {"error": 2}) if action == "drop" else (1, {"error": 1}))
    first = next(event for event in messages(events) if event["link"].startswith("2->1"))
    assert first["rule"] == action


def test_nothing_is_left_on_the_loop(broker: Broker) -> None:
    """Also not of what is held, of a connection that is open, and of one that is just accepted."""
    rules = [TapRule("hold", api="Ask", direction="request")]
    with tapped(broker, *rules) as (tap, _):
        clients = [Client(tap.ports[0]) for _ in range(4)]
        clients[0].send("held")
        await_held(tap)
        clients.append(Client(tap.ports[0]))
        tap._run(tap._tap.close())
        left = asyncio.run_coroutine_threadsafe(_others(), tap._loop).result(5.0)
    assert left == []


async def _others() -> list[str]:
    current = asyncio.current_task()
    return [str(task) for task in asyncio.all_tasks() if task is not current]


def test_clients_stay_on_the_tap_whatever_the_broker_advertises(broker: Broker) -> None:
    with tapped(broker, follow=True) as (tap, events):
        client = Client(tap.ports[0])
        client.send("", 1, "Metadata")
        answer = client.answer(3)
        assert answer is not None
        (told,) = answer[1]["brokers"]
        assert told["port"] in tap.ports
        assert told["port"] != broker.port
    seen = messages(events)[1]["body"]["brokers"][0]
    assert seen["port"] == broker.port  # written is what the broker said


def test_bytes_that_are_no_frames_end_the_connection(broker: Broker) -> None:
    with tapped(broker) as (tap, events):
        client = Client(tap.ports[0])
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert client.answer() is None
    assert "not Kafka's protocol" in events[0]["problem"]


def test_nobody_behind_the_tap() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        link = TapLink("client->1", 0, unused.getsockname()[1])
        with TapThread(SMALL, [link], lambda _: None) as tap:
            assert Client(tap.ports[0]).answer() is None


def test_a_port_that_is_taken(broker: Broker) -> None:
    with (
        pytest.raises(UserError, match="cannot listen"),
        TapThread(SMALL, [TapLink("client->1", broker.port, broker.port)], lambda _: None),
    ):
        pass


def test_an_unknown_action() -> None:
    with pytest.raises(UserError, match="delay, drop, hold, cut"):
        TapRule("explode")


@pytest.mark.parametrize(
    ("client", "link"),
    [
        ("broker-2-fetcher-0", "2->1:broker"),
        ("raft-client-3", "3->1:broker"),
        ("2", "2->1:broker"),
        ("rdkafka", "client->1:broker"),
        (None, "client->1:broker"),
    ],
)
def test_names_of_links(client: str | None, link: str) -> None:
    assert link_of("?->1:broker", client) == link


def test_closing_does_not_wait_for_what_is_held(broker: Broker) -> None:
    began = time.monotonic()
    with tapped(broker, TapRule("hold")) as (tap, _):
        Client(tap.ports[0]).send("never")
    assert time.monotonic() - began < 20
