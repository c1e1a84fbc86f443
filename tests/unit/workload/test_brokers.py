"""Brokers that are away when a workload begins."""

from __future__ import annotations

import pytest

from conformance.errors import UserError
from conformance.workload import brokers


class LatePort:
    """Its broker answers at the third attempt."""

    attempts = 0

    def __init__(self, address: object, _security: object) -> None:
        LatePort.attempts += 1
        if LatePort.attempts < 3:
            raise UserError(f"No broker answers at {address}.")


def test_brokers_that_are_away_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "Port", LatePort)
    said: list[str] = []
    brokers._reached("127.0.0.1:1,127.0.0.1:2", said.append)
    assert LatePort.attempts == 3
    assert said == ["no broker answers at 127.0.0.1:1,127.0.0.1:2 yet"]
