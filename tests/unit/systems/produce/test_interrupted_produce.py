"""Appends of one producer that take turns at one log."""

from __future__ import annotations

import pytest

from conformance.systems.produce import create
from conformance.systems.protocol import Interruptible
from conformance.tla import Action, Fn


def test_two_batches_stand_still_before_and_behind_the_append() -> None:
    system = create({"Brokers": frozenset({"b"}), "Window": 2})
    assert isinstance(system, Interruptible)
    assert system.make_interruptible()
    system.reset({"leader": "b"})
    for _ in range(2):
        system.apply(Action("Send", (1,)))
    start, seen, point = system.snapshot(), [], 1
    second = Action("Produce", (0, 2))
    while place := system.interrupt(Action("Produce", (0, 1)), point, second):
        log, watermark = system.observe()["log"], system.observe()["hw"]
        assert isinstance(log, Fn)
        assert isinstance(watermark, Fn)
        batches = log["b"]
        assert isinstance(batches, tuple)
        seen.append((place, len(batches), watermark["b"]))
        system.restore(start)
        point += 1
    # Alone the second one is out of sequence; behind the first it is appended.
    assert [each[1:] for each in seen] == [(1, 1), (2, 2), (2, 2)]
    assert [each[0] for each in seen] == ["lock log-log", "lock epochs-log", "lock log-log"]


@pytest.mark.parametrize(
    ("running", "between", "meet"),
    [
        (Action("Produce", (0, 1)), Action("Produce", (0, 2)), True),
        (Action("Produce", (0, 1)), Action("Expire", ("b",)), True),
        (Action("Fetch", ("b",)), Action("Truncate", ("b",)), False),
        (Action("Produce", (0, 1)), Action("Restart", ("b", True)), False),
        (Action("Send", (1,)), Action("Produce", (0, 1)), False),
    ],
)
def test_whose_threads_meet(running: Action, between: Action, meet: bool) -> None:
    system = create({"Brokers": frozenset({"b"}), "Window": 2})
    assert system.concurrent(running, between) is meet
