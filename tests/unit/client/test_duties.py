"""What answers make a client owe, and when it is done, put off or forgotten."""

from __future__ import annotations

import pytest

from conformance.client.answers import GOOD, WISHES
from conformance.client.duties import KINDS, Act, Duties, DutyKind, duty_kind, not_exercised
from tests.unit.client.readings import Readings

JOINS = DutyKind("Heartbeat", "REBALANCE_IN_PROGRESS", Act.JOIN)
SYNCS = DutyKind("JoinGroup", "NONE, leader", Act.SYNC)
ENDS = DutyKind("Heartbeat", "FENCED_INSTANCE_ID", Act.END)


@pytest.mark.parametrize(
    ("api", "answer", "owes"),
    [
        ("JoinGroup", "MEMBER_ID_REQUIRED", Act.JOIN),
        ("JoinGroup", "NONE, follower", Act.SYNC),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", Act.JOIN),
        ("SyncGroup", "NONE", Act.HEARTBEAT),
        ("SyncGroup", "ILLEGAL_GENERATION", Act.JOIN),
        ("Heartbeat", "REBALANCE_IN_PROGRESS", Act.JOIN),
        ("Heartbeat", "UNKNOWN_MEMBER_ID", Act.JOIN),
        ("OffsetCommit", "ILLEGAL_GENERATION", Act.JOIN),
        ("OffsetCommit", "FENCED_INSTANCE_ID", Act.END),
        ("OffsetCommit", "NOT_COORDINATOR", Act.LOOK_UP),
        ("Heartbeat", "COORDINATOR_NOT_AVAILABLE", Act.LOOK_UP),
        ("Heartbeat", "NONE", None),
        ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", None),
        ("LeaveGroup", "NONE", None),
    ],
)
def test_each_answer_asks_for_something_or_for_nothing(
    api: str, answer: str, owes: Act | None
) -> None:
    kind = duty_kind(api, answer)
    assert (kind.owes if kind else None) == owes
    assert kind is None or kind in KINDS


def test_every_answer_that_the_loop_gives_is_of_a_kind_or_asks_for_nothing() -> None:
    answers = {(api, one) for api, errors in WISHES.items() for one in errors}
    answers |= {("JoinGroup", one) for one in GOOD if one != "NONE"} | {("SyncGroup", "NONE")}
    kinds = {(kind.api, kind.answer) for kind in KINDS}
    assert answers - kinds == {("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS")}


def test_what_was_done_is_counted_and_what_came_between_is_not() -> None:
    duties = Duties(Readings().clock)
    duties.owe(JOINS, 1.0)
    duties.owe(SYNCS, 1.0)
    duties.meet(Act.JOIN)
    duties.release(Act.SYNC)
    assert duties.open == []
    assert (dict(duties.made), dict(duties.done)) == ({JOINS: 1, SYNCS: 1}, {JOINS: 1})
    assert JOINS not in not_exercised(duties.done)
    assert SYNCS in not_exercised(duties.done)
    assert set(not_exercised({})) == set(KINDS)


def test_a_duty_is_overdue_after_its_bound_whatever_comes_meanwhile() -> None:
    readings = Readings()
    duties = Duties(readings.clock)
    duties.owe(JOINS, 9.5)
    readings.in_time(9.0)
    duties.owe(JOINS, 9.5)
    assert duties.overdue() is None
    readings.in_time(1.0)
    late = duties.overdue()
    assert late is not None
    assert (late.kind, late.at) == (JOINS, 0.0)


def test_a_delay_of_the_loop_puts_off_a_duty_and_makes_no_answer_older() -> None:
    readings = Readings()
    duties = Duties(readings.clock)
    duties.owe(JOINS, 9.5)
    readings.late(60.0)
    assert duties.overdue() is None
    duties.forget(1.5)  # the client has not had 1.5 s to read the answer
    assert not duties.open


def test_an_answer_that_went_with_its_connection_asks_for_nothing_but_an_end() -> None:
    readings = Readings()
    duties = Duties(readings.clock)
    duties.owe(JOINS, 9.5)
    readings.in_time(2.0)
    duties.owe(SYNCS, 9.5)
    duties.owe(ENDS, 9.5)
    duties.forget(1.5)
    assert [one.kind for one in duties.open] == [JOINS, ENDS]


def test_what_is_put_off_begins_anew_and_the_rest_does_not() -> None:
    readings = Readings()
    duties = Duties(readings.clock)
    duties.owe(JOINS, 9.5)
    duties.owe(SYNCS, 9.5)
    readings.in_time(9.0)
    duties.put_off(Act.JOIN)
    readings.in_time(1.0)
    late = duties.overdue()
    assert late is not None
    assert late.kind == SYNCS
    duties.meet(Act.SYNC)
    assert duties.overdue() is None
    readings.in_time(9.0)
    late = duties.overdue()
    assert late is not None
    assert late.kind == JOINS
