"""A broker's queue and its thread: in order, one at a time, until each is answered."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency, RealConcurrency
from impl.control_requests import (
    ControlRequest,
    ControlResponse,
    StopReplicaRequest,
    UpdateMetadataBroker,
)
from impl.controller.channel_manager import ControllerChannelManager
from impl.controller.request_batch import ControllerConfig
from impl.controller.state_change_logger import StateChangeLogger
from impl.errors import Errors
from tests.unit.impl.controller.cluster import answer_to

CONFIG = ControllerConfig(1, retry_back_off_ms=100)


class Client:
    """A connection that does as the script says: "no" connection, "lost" answer, or all right."""

    def __init__(self, script: Sequence[str]) -> None:
        self.script = list(script)
        self.did: list[str] = []
        self.is_open = False

    def is_ready(self) -> bool:
        return self.is_open

    def await_ready(self, timeout_ms: int, /) -> bool:
        self.did.append("connect")
        assert timeout_ms == CONFIG.controller_socket_timeout_ms
        self.is_open = not (self.script and self.script[0] == "no")
        if not self.is_open:
            self.script.pop(0)
        return self.is_open

    def send_and_receive(self, request: ControlRequest, /) -> ControlResponse:
        assert self.is_open
        self.did.append(f"send {request.controller_epoch}")
        if self.script and self.script.pop(0) == "lost":
            raise ConnectionError("lost")
        return answer_to(request, Errors.NONE)

    def close(self) -> None:
        self.is_open = False


def manager(client: Client, clock: MockClock) -> ControllerChannelManager:
    made = ControllerChannelManager(
        CONFIG, lambda: 1, lambda _: client, clock, NoConcurrency(), StateChangeLogger(1)
    )
    made.add_broker(UpdateMetadataBroker(2))
    return made


def request(number: int) -> StopReplicaRequest:
    return StopReplicaRequest(1, number, {})


@pytest.mark.parametrize(
    ("script", "did", "waited_ms"),
    [
        pytest.param([], ["connect", "send 1"], 0, id="at once"),
        pytest.param(["no", "no"], ["connect", "connect", "connect", "send 1"], 200, id="down"),
        pytest.param(["lost"], ["connect", "send 1", "connect", "send 1"], 100, id="answer lost"),
    ],
)
def test_a_request_is_sent_until_it_is_answered(
    script: list[str], did: list[str], waited_ms: int
) -> None:
    client, clock = Client(script), MockClock()
    channels = manager(client, clock)
    answers: list[ControlResponse] = []
    channels.send_request(2, request(1), answers.append)
    channels.broker_state_info[2].thread.do_work()
    assert client.did == did
    assert len(answers) == 1
    assert clock.milliseconds() == waited_ms


def test_requests_keep_their_order_over_one_connection() -> None:
    client = Client([])
    channels = manager(client, MockClock())
    for number in (1, 2, 3):
        channels.send_request(2, request(number), lambda _: None)
    assert len(channels.broker_state_info[2].queue.items()) == 3
    for _ in range(3):
        channels.broker_state_info[2].thread.do_work()
    assert client.did == ["connect", "send 1", "send 2", "send 3"]


def test_a_request_to_a_removed_broker_is_dropped() -> None:
    client = Client([])
    channels = manager(client, MockClock())
    info = channels.broker_state_info[2]
    channels.send_request(2, request(1), lambda _: None)
    channels.remove_broker(2)
    channels.send_request(2, request(2), lambda _: None)
    info.thread.do_work()
    assert client.did == []


def test_a_callback_that_fails_costs_the_connection_and_nothing_else() -> None:
    client = Client([])
    channels = manager(client, MockClock())

    def fail(_: ControlResponse) -> None:
        raise RuntimeError("callback")

    channels.send_request(2, request(1), fail)
    channels.send_request(2, request(2), lambda _: None)
    for _ in range(2):
        channels.broker_state_info[2].thread.do_work()
    assert client.did == ["connect", "send 1", "connect", "send 2"]


def test_real_threads_send_and_end() -> None:
    client = Client([])
    concurrency = RealConcurrency()
    answered = concurrency.event("answered")
    channels = ControllerChannelManager(
        CONFIG, lambda: 1, lambda _: client, MockClock(), concurrency, StateChangeLogger(1)
    )
    channels.add_broker(UpdateMetadataBroker(2))
    info = channels.broker_state_info[2]
    channels.send_request(2, request(1), lambda _: answered.set())
    assert answered.wait(10_000)
    channels.shutdown()
    assert info.thread.is_shutdown_complete
    assert not info.thread.is_thread_failed
