"""Kafka's DelayedOperationTest as tables: completing, watching under several keys, purging."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest

from impl.clock import MockClock, SystemClock
from impl.concurrency import NoConcurrency, RealConcurrency
from impl.deterministic_scheduler import DeterministicScheduler
from impl.errors import IllegalStateException
from impl.metrics import MetricName, MetricsRegistry
from impl.purgatory.action_queue import ActionQueue
from impl.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from impl.purgatory.system_timer import SystemTimer
from impl.scheduler import ImmediateScheduler
from tests.unit.impl.purgatory.operations import MockOperation, make_purgatory


def test_d01_an_operation_completes_when_its_key_is_checked() -> None:
    purgatory = make_purgatory()
    first, second = MockOperation(), MockOperation()
    assert purgatory.check_and_complete("test1") == 0
    assert not purgatory.try_complete_else_watch(first, ["test1"])
    assert purgatory.check_and_complete("test1") == 0
    assert not purgatory.try_complete_else_watch(second, ["test2"])
    assert purgatory.check_and_complete("test2") == 0
    for operation, key in ((first, "test1"), (second, "test2")):
        operation.completable = True
        assert [purgatory.check_and_complete(key) for _ in range(2)] == [1, 0]
        assert operation.happened == ["completed"]


def test_d03_watched_counts_entries_and_delayed_counts_operations() -> None:
    purgatory = make_purgatory()
    keys = ["t1", "t2", "t3"]
    operations = [MockOperation() for _ in keys]
    for number, operation in enumerate(operations, start=1):
        purgatory.try_complete_else_watch(operation, keys[:number])
    assert (purgatory.num_delayed, purgatory.watched) == (3, 6)
    operations[1].force_complete()
    assert (purgatory.num_delayed, purgatory.watched) == (2, 6)
    operations[2].force_complete()
    assert purgatory.num_delayed == 1
    left = []
    for key in keys:
        purgatory.check_and_complete(key)
        left.append(purgatory.watched)
    assert left == [4, 2, 1]


def test_d05_the_lock_is_held_while_it_is_tried_and_watched() -> None:
    scheduler = DeterministicScheduler()
    purgatory = make_purgatory(concurrency=scheduler)
    operation = MockOperation(concurrency=scheduler)

    def watch() -> None:
        purgatory.try_complete_else_watch(operation, ["k"])

    scheduler.spawn("watch", watch)
    scheduler.spawn("check", operation.safe_try_complete)
    scheduler.step("check")  # stands at the operation's lock, which is free
    seen = []
    while not scheduler.step("watch").startswith("lock executor"):
        seen.append((scheduler.point("watch").split()[1], scheduler.runnable()))
    assert seen == [
        ("op", ("watch", "check")),
        ("test", ("watch",)),
        ("watchers", ("watch",)),
        ("test", ("watch",)),
    ]


def test_d07_many_threads_lose_no_completion() -> None:
    purgatory = make_purgatory(SystemClock(), RealConcurrency())
    operations = [MockOperation(concurrency=RealConcurrency()) for _ in range(100)]
    for number, operation in enumerate(operations):
        purgatory.try_complete_else_watch(operation, [number])
    attempts = 20

    def try_all(seed: int) -> None:
        choose = Random(seed)
        for number in range(seed % 5, 100, 5):
            for attempt in range(attempts):
                if attempt == attempts - 1:
                    operations[number].completable = True
                if choose.random() < 0.02:
                    time.sleep(0.001)
                purgatory.check_and_complete(number)

    threads = [threading.Thread(target=try_all, args=(seed,)) for seed in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    purgatory.shutdown()
    assert [operation.happened for operation in operations] == [["completed"]] * 100


def test_an_operation_that_is_complete_is_neither_watched_nor_timed() -> None:
    purgatory = make_purgatory()
    operation = MockOperation()
    operation.completable = True
    assert purgatory.try_complete_else_watch(operation, ["k"])
    assert (purgatory.watched, purgatory.num_delayed) == (0, 0)


class CompletedWhileWatched(MockOperation):
    """Its event comes between the first look and the second."""

    def try_complete(self) -> bool:
        if super().try_complete():
            return True
        self.completable = True
        return False


def test_the_second_look_finds_what_came_before_the_watching() -> None:
    purgatory = make_purgatory()
    operation = CompletedWhileWatched()
    assert purgatory.try_complete_else_watch(operation, ["k"])
    assert operation.happened == ["completed"]
    assert purgatory.num_delayed == 0


def test_without_a_key_only_time_could_complete_it() -> None:
    with pytest.raises(IllegalStateException):
        make_purgatory().try_complete_else_watch(MockOperation(), [])


def test_cancelled_operations_are_given_back_uncompleted() -> None:
    clock = MockClock()
    purgatory = make_purgatory(clock)
    waiting, over = MockOperation(10), MockOperation(10)
    for operation in (waiting, over):
        purgatory.try_complete_else_watch(operation, ["k", "other"])
    over.force_complete()
    assert purgatory.cancel_for_key("k") == (waiting,)
    assert purgatory.cancel_for_key("k") == ()
    clock.sleep(100)
    purgatory.advance_clock(0)
    assert waiting.happened == []
    assert (purgatory.watched, purgatory.num_delayed) == (2, 0)


@pytest.mark.parametrize(("completed", "watched"), [(3, 10), (4, 6)])
def test_purging_begins_above_its_interval(completed: int, watched: int) -> None:
    purgatory = make_purgatory(purge_interval=3)
    operations = [MockOperation() for _ in range(10)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["k"])
    for operation in operations[:completed]:
        operation.force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == watched


def test_after_a_purge_the_next_one_waits_for_as_many_completions() -> None:
    """KAFKA-1952: a purge whose condition stays true takes place at every turn of the reaper."""
    purgatory = make_purgatory(purge_interval=1)
    operations = [MockOperation() for _ in range(5)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["k"])
    seen = []
    for operation in operations:
        operation.force_complete()
        purgatory.advance_clock(0)
        seen.append(purgatory.watched)
    assert seen == [5, 3, 3, 1, 1]


def test_an_expired_operation_completes_first_and_expires_then() -> None:
    clock = MockClock()
    purgatory = make_purgatory(clock)
    operation = MockOperation(10)
    purgatory.try_complete_else_watch(operation, ["k"])
    seen = []
    for _ in range(3):
        purgatory.advance_clock(0)
        seen.append(list(operation.happened))
        clock.sleep(5)
    assert seen == [[], [], ["completed", "expired"]]
    assert not operation.force_complete()
    assert not operation.run()


def test_sizes_are_metrics_until_shutdown() -> None:
    clock = MockClock()
    metrics = MetricsRegistry(clock)
    timer = SystemTimer("Fetch", clock, NoConcurrency(), executor=ImmediateScheduler())
    purgatory: DelayedOperationPurgatory[MockOperation] = DelayedOperationPurgatory(
        "Fetch", timer, NoConcurrency(), metrics=metrics, reaper_enabled=False
    )
    purgatory.try_complete_else_watch(MockOperation(), ["k1", "k2"])
    tags = (("delayedOperation", "Fetch"),)
    sizes = ("PurgatorySize", "NumDelayedOperations")
    names = [MetricName("DelayedOperationPurgatory", size, tags) for size in sizes]
    assert [metrics.value(name) for name in names] == [2, 1]
    purgatory.shutdown()
    assert not metrics.names()


def test_the_reaper_and_the_executor_are_threads() -> None:
    purgatory = make_purgatory(SystemClock(), RealConcurrency(), reaper_enabled=True)
    operation = MockOperation(1, RealConcurrency())
    purgatory.try_complete_else_watch(operation, ["k"])
    deadline = time.monotonic() + 10
    while len(operation.happened) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    purgatory.shutdown()
    assert operation.happened == ["completed", "expired"]
    assert not {"ExpirationReaper-0-test", "executor-test"} & {
        thread.name for thread in threading.enumerate()
    }


def test_queued_actions_are_done_later_and_those_they_add_later_still() -> None:
    queue = ActionQueue(NoConcurrency())
    done: list[str] = []

    def failing() -> None:
        queue.add(lambda: done.append("second"))
        raise ValueError("one action's failure")

    queue.add(failing)
    queue.add(lambda: done.append("first"))
    queue.try_complete_actions()
    assert (done, len(queue)) == (["first"], 1)
    queue.try_complete_actions()
    assert (done, len(queue)) == (["first", "second"], 0)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_schedule_it_completes_once_and_nothing_is_left(seed: int) -> None:
    """Registration, an event, the time-out, cancelling and a purge, at every lock."""
    clock = MockClock()
    scheduler = DeterministicScheduler(clock.sleep)
    purgatory = make_purgatory(clock, scheduler, purge_interval=0)
    operation = MockOperation(5, scheduler)

    def event() -> None:
        operation.completable = True
        purgatory.check_and_complete("k2")

    def watch() -> None:
        purgatory.try_complete_else_watch(operation, ["k1", "k2"])

    def expire() -> None:
        clock.sleep(6)
        purgatory.advance_clock(0)

    scheduler.spawn("watch", watch)
    scheduler.spawn("event", event)
    scheduler.spawn("expire", expire)
    scheduler.run_random(seed, 1000)
    assert operation.happened in (["completed"], ["completed", "expired"])
    purgatory.maybe_purge()
    assert (purgatory.num_delayed, purgatory.watched) == (0, 0)
