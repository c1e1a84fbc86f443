"""Since when a client owes what it owes: what it repeats first, and what it is doing already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.client.answers import WISHES
from conformance.client.duties import FATAL, REPEATED, Act, DutyKind
from conformance.client.example import ClientKind, ExamplePlan, _Example
from conformance.client.subject import JoiningClient
from conformance.kafka.entities import Received, make, newest
from tests.unit.client.readings import Readings

PLAN = ExamplePlan("x", 1)
JOINS = DutyKind("Heartbeat", "REBALANCE_IN_PROGRESS", Act.JOIN)


def no_kind(subject: JoiningClient) -> ClientKind:
    """Nobody joins here."""
    raise AssertionError(subject)


@pytest.fixture
def readings() -> Readings:
    return Readings()


@pytest.fixture
def example(readings: Readings, tmp_path: Path) -> Iterator[_Example]:
    result = _Example(PLAN, 1, no_kind, False, tmp_path, clock=readings.clock)
    yield result
    result._callbacks.close()


def find_coordinator() -> Received:
    body = make(newest("find_coordinator", "request").FindCoordinatorRequest)
    return Received("find_coordinator", 4, 1, "client", body)


@pytest.mark.parametrize(
    ("api", "error"), [(a, e) for a, es in WISHES.items() for e in es if e not in FATAL]
)
def test_a_refusal_after_which_a_request_is_repeated_puts_off_a_join_and_no_other_does(
    example: _Example, readings: Readings, api: str, error: str
) -> None:
    example._duties.owe(JOINS, 9.5)
    readings.in_time(9.0)
    example._owe(api, error)
    readings.in_time(1.0)
    late = [example._duties.overdue()] if example._duties.overdue() else []
    assert bool(late) is (error not in REPEATED)


def test_a_lost_connection_puts_off_a_join(example: _Example, readings: Readings) -> None:
    example._duties.owe(JOINS, 9.5)
    readings.in_time(9.0)
    example._forget_unread()
    readings.in_time(1.0)
    assert example._duties.overdue() is None
    readings.in_time(9.0)
    assert example._duties.overdue() is not None


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"])
def test_who_looks_for_its_coordinator_already_need_not_begin_again(
    example: _Example, readings: Readings, api: str
) -> None:
    example.passed(find_coordinator())
    readings.in_time(PLAN.read / 2)
    example._owe(api, "NOT_COORDINATOR")
    assert not example._duties.owes(Act.LOOK_UP)
    readings.in_time(PLAN.read)
    example._owe(api, "NOT_COORDINATOR")
    assert example._duties.owes(Act.LOOK_UP)
    example.passed(find_coordinator())
    assert not example._duties.owes(Act.LOOK_UP)
