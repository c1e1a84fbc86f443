"""Who moves the coordinator: the user's command, or kconform itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire import failover
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.failover import fail_over
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import Security


class Silent(Port):
    """Closes, and says nothing."""

    def __init__(self, *_: object) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_a_command_is_run(tmp_path: Path) -> None:
    done = tmp_path / "done"
    fail_over(parse_address(f"127.0.0.1:1?fail-over=touch {done}"), Security())
    assert done.exists()


def test_a_command_that_fails_is_told_with_its_words() -> None:
    with pytest.raises(UserError, match=r"ended with 3.*\n.*no broker moved"):
        fail_over(
            parse_address("127.0.0.1:1?fail-over=echo no broker moved >%262; exit 3"), Security()
        )


def test_move_asks_for_other_leaders_of_the_offsets_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Port, str]] = []
    monkeypatch.setattr(failover, "Port", Silent)
    monkeypatch.setattr(failover, "move_leaders", lambda *of: asked.append(of))
    fail_over(parse_address("127.0.0.1:1?fail-over=move"), Security())
    ((port, topic),) = asked
    assert topic == "__consumer_offsets"
    assert isinstance(port, Silent)
    assert port.closed


def test_a_broker_that_breaks_off_is_a_mistake_of_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off(_port: Port, _topic: str) -> None:
        raise SystemFailed("the broker closed the connection")

    monkeypatch.setattr(failover, "Port", Silent)
    monkeypatch.setattr(failover, "move_leaders", breaks_off)
    with pytest.raises(UserError, match="cannot be moved: the broker closed the connection"):
        fail_over(parse_address("127.0.0.1:1?fail-over=move"), Security())
