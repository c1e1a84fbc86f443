"""Brokers that go away while a workload makes its topics."""

from __future__ import annotations

import pytest

from conformance.errors import UserError
from conformance.systems.protocol import SystemFailed
from conformance.workload import brokers

ADDRESSES = "127.0.0.1:1,127.0.0.1:2"


class AwayPort:
    """Its broker answers at the third attempt."""

    attempts = 0

    def __init__(self, address: object, _security: object) -> None:
        AwayPort.attempts += 1
        if AwayPort.attempts < 3:
            raise UserError(f"No broker answers at {address}.")

    def close(self) -> None: ...


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that a cluster has; its broker goes away after it has made the first one."""
    topics: list[str] = []

    def make_topic(_port: object, name: str, *_: object, **__: object) -> str:
        assert name not in topics
        topics.append(name)
        if len(topics) == 1:
            raise SystemFailed("the connection broke")
        return name

    AwayPort.attempts = 0
    monkeypatch.setattr(brokers, "Port", AwayPort)
    monkeypatch.setattr(brokers, "_brokers", lambda _port: 3)
    monkeypatch.setattr(brokers, "_features", lambda _port: {"group.version": 1})
    monkeypatch.setattr(brokers, "has_leaders", lambda _port, name, _count: name in topics)
    monkeypatch.setattr(brokers, "make_topic", make_topic)
    return topics


def test_brokers_that_are_away_are_asked_again(made: list[str]) -> None:
    said: list[str] = []
    features = brokers.prepared(ADDRESSES, ("a", "b"), 1, {}, said.append)
    assert features == {"group.version": 1}
    assert made == ["a", "b"]
    assert said == [f"the brokers at {ADDRESSES} do not make the topics yet"] * 3


def test_brokers_that_stay_away_are_named(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "_PATIENCE_S", -1.0)
    with pytest.raises(UserError, match=r"No broker answers at .*2"):
        brokers.prepared(ADDRESSES, ("a", "b"), 1, {}, lambda _: None)
    assert made == []
