"""Timers and delayed operations: listing, firing one by one, and completing exactly once."""

from __future__ import annotations

import dataclasses

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.errors import Errors
from impl.purgatory.deadline_timer import DeadlineTimer
from impl.purgatory.delayed_operation import DelayedOperation
from impl.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from tests.unit.impl.group.driver import CONFIG, Driver

KEY = ("key", "")


class Operation(DelayedOperation):
    """Completes when its event has come; remembers what happened to it."""

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms, NoConcurrency())
        self.event = False
        self.happened: list[str] = []

    def try_complete(self) -> bool:
        return self.event and self.force_complete()

    def on_complete(self) -> None:
        self.happened.append("completed")

    def on_expiration(self) -> None:
        self.happened.append("expired")


def make() -> tuple[MockClock, DeadlineTimer, DelayedOperationPurgatory[Operation]]:
    clock = MockClock()
    timer = DeadlineTimer(clock, NoConcurrency())
    return (
        clock,
        timer,
        DelayedOperationPurgatory("test", timer, NoConcurrency(), reaper_enabled=False),
    )


@pytest.mark.parametrize(("now", "fires"), [(99, False), (100, False), (101, True)])
def test_a_timer_fires_after_its_deadline(now: int, fires: bool) -> None:
    clock, timer, purgatory = make()
    operation = Operation(100)
    assert not purgatory.try_complete_else_watch(operation, [KEY])
    clock.sleep(now)
    assert timer.expire_due() == fires
    assert operation.happened == (["completed", "expired"] if fires else [])


@pytest.mark.parametrize("delay", [0, -5])
def test_without_a_delay_it_fires_at_the_next_tick(delay: int) -> None:
    _, timer, purgatory = make()
    operation = Operation(delay)
    purgatory.try_complete_else_watch(operation, [KEY])
    assert operation.happened == []
    assert timer.expire_due() == 1


def test_what_is_complete_already_is_not_watched() -> None:
    _, timer, purgatory = make()
    operation = Operation(100)
    operation.event = True
    assert purgatory.try_complete_else_watch(operation, [KEY])
    assert (operation.happened, purgatory.watched, timer.size) == (["completed"], 0, 0)


def test_an_event_completes_and_removes() -> None:
    clock, timer, purgatory = make()
    waiting, due = Operation(100), Operation(100)
    for operation in (waiting, due):
        purgatory.try_complete_else_watch(operation, [KEY])
    due.event = True
    assert purgatory.check_and_complete(KEY) == 1
    assert (purgatory.watched, timer.pending()) == (1, (waiting,))
    waiting.event = True
    assert purgatory.check_and_complete(KEY) == 1
    assert (purgatory.watched, timer.size, timer.next_deadline_ms()) == (0, 0, None)
    clock.sleep(200)
    assert timer.expire_due() == 0
    assert due.happened == ["completed"]


def test_it_completes_once_whoever_comes_first() -> None:
    _, _, purgatory = make()
    operation = Operation(100)
    purgatory.try_complete_else_watch(operation, [KEY])
    assert operation.run()
    assert not operation.force_complete()
    assert not operation.run()
    assert operation.happened == ["completed", "expired"]
    assert (purgatory.check_and_complete(KEY), purgatory.watched) == (0, 0)


def test_a_cancelled_operation_never_completes() -> None:
    clock, timer, purgatory = make()
    operation = Operation(100)
    purgatory.try_complete_else_watch(operation, [KEY])
    purgatory.cancel_for_key(KEY)
    clock.sleep(200)
    assert timer.expire_due() == 0
    assert (operation.happened, purgatory.watched) == ([], 0)


def test_timers_fire_in_the_order_of_their_deadlines() -> None:
    clock, timer, purgatory = make()
    operations = [Operation(delay) for delay in (30, 10, 20, 10)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, [KEY])
    expected = [operations[1], operations[3], operations[2], operations[0]]
    assert list(timer.pending()) == expected
    assert timer.next_deadline_ms() == 10
    clock.sleep(21)
    assert timer.expire_due() == 3
    assert timer.pending() == (operations[0],)


def test_without_a_delay_it_fires_behind_what_was_due_before() -> None:
    clock, timer, purgatory = make()
    due, at_once = Operation(10), Operation(0)
    purgatory.try_complete_else_watch(due, [KEY])
    clock.sleep(11)
    purgatory.try_complete_else_watch(at_once, [KEY])
    assert timer.pending() == (due, at_once)
    assert timer.expire_due() == 2


def test_many_restarts_leave_nothing_behind() -> None:
    driver = Driver()
    member_id = driver.stable()
    for _ in range(1000):
        driver.advance(1)
        assert driver.heartbeat(member_id) is Errors.NONE
    assert driver.timers() == [("heartbeat", member_id)]


def test_restarts_without_any_passing_of_time_leave_nothing_behind_either() -> None:
    clock, timer, purgatory = make()
    for _ in range(500):
        purgatory.cancel_for_key(KEY)
        purgatory.try_complete_else_watch(Operation(100), [KEY])
    (last,) = timer.pending()
    clock.sleep(101)
    assert timer.expire_due() == 1
    assert last.is_completed


def test_an_operation_must_say_when_it_completes() -> None:
    with pytest.raises(TypeError):
        DelayedOperation(1, NoConcurrency()).try_complete()


def test_every_timer_of_a_group_can_be_listed_and_fired() -> None:
    driver = Driver()
    first = driver.join()
    (session, initial) = sorted(driver.coordinator.timers(), key=lambda timer: timer.kind)
    assert (session.kind, initial.kind) == ("heartbeat", "initial join")
    assert (initial.group_id, initial.member_id) == ("groupId", None)
    assert driver.coordinator.fire(initial)
    assert first.response.generation_id == 1
    assert not driver.coordinator.fire(initial)
    member_id = first.response.member_id
    assert {kind for kind, _ in driver.timers()} == {"heartbeat", "sync"}
    sync = next(timer for timer in driver.coordinator.timers() if timer.kind == "sync")
    assert repr(sync) == "<sync of groupId, deadline 500>"
    assert driver.coordinator.fire(sync)
    assert driver.heartbeat(member_id) is Errors.UNKNOWN_MEMBER_ID
    assert driver.timers() == []


def test_a_session_of_a_parked_member_fires_without_effect() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    join = driver.join(leader)
    session = next(t for t in driver.coordinator.timers() if t.member_id == leader)
    assert driver.coordinator.fire(session)
    assert driver.group.has(leader)
    driver.join(follower)
    assert join.response.generation_id == 2
    assert {m for kind, m in driver.timers() if kind == "heartbeat"} == {leader, follower}


def test_a_rebalance_time_out_fires_without_the_clock() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    join = driver.join(leader)
    (rebalance,) = (t for t in driver.coordinator.timers() if t.kind == "join")
    assert driver.coordinator.fire(rebalance)
    assert join.response.generation_id == 2
    assert not driver.group.has(follower)


def test_without_an_initial_delay_the_next_tick_completes() -> None:
    driver = Driver(dataclasses.replace(CONFIG, group_initial_rebalance_delay_ms=0))
    join = driver.join()
    assert not join.done
    driver.advance(0)
    assert join.response.error_code is Errors.NONE
