"""An event that strikes all tests happens when all that run are ready for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.systems.wire.turns import Turns


def test_the_event_happens_once_all_wait() -> None:
    told: list[str] = []
    turns = Turns(lambda: told.append("event"))

    def waits(name: str) -> None:
        turns.begin(late=False)
        told.append(f"{name} waits")
        turns.wait()
        told.append(f"{name} goes on")
        turns.end()

    turns.begin(late=False)  # one that does not wait
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(waits, name) for name in ("a", "b")]
        while len(told) < 2:
            pass
        assert "event" not in told
        turns.end()
        for one in both:
            one.result(10)
    assert told.count("event") == 1
    assert {told.index("a waits"), told.index("b waits")} == {0, 1}
    assert told[2] == "event"


def test_a_test_that_must_not_wait_begins_when_all_others_wait() -> None:
    told: list[str] = []
    turns = Turns(lambda: told.append("event"))

    def late() -> None:
        turns.begin(late=True)
        told.append("late begins")
        turns.wait()
        turns.end()

    turns.begin(late=False)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(late)
        turns.wait()
        turns.end()
        running.result(10)
    assert told in (["late begins", "event"], ["event", "late begins", "event"])


def test_what_the_event_raises_every_test_is_told() -> None:
    def event() -> None:
        raise RuntimeError("no broker moved")

    turns = Turns(event)
    turns.begin(late=False)
    with pytest.raises(RuntimeError, match="no broker moved"):
        turns.wait()
