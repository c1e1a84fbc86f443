"""The deterministic scheduler: what a step is, who may take one, and what a schedule repeats."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from impl.concurrency import Concurrency, Event, NoConcurrency, RealConcurrency
from impl.deterministic_scheduler import DeadlockError, DeterministicScheduler, SchedulerError


def test_a_step_ends_at_each_lock_and_checkpoint() -> None:
    scheduler = DeterministicScheduler()
    lock = scheduler.lock("books")

    def work() -> None:
        with lock, lock:  # the inner one is no scheduling point
            pass
        scheduler.checkpoint("request sent")

    scheduler.spawn("a", work)
    assert scheduler.point("a") == "start"
    assert [scheduler.step("a") for _ in range(3)] == ["lock books", "request sent", "finished"]
    with pytest.raises(SchedulerError, match="finished"):
        scheduler.step("a")


def test_a_lock_keeps_two_tasks_of_one_thread_apart() -> None:
    scheduler = DeterministicScheduler()
    lock = scheduler.lock("books")

    def hold() -> None:
        with lock:
            scheduler.checkpoint("inside")

    scheduler.spawn("a", hold)
    scheduler.spawn("b", hold)
    scheduler.run_schedule(["a", "b", "a"])
    assert (scheduler.point("a"), scheduler.point("b")) == ("inside", "lock books")
    assert scheduler.runnable() == ("a",)
    with pytest.raises(SchedulerError, match="blocked at 'lock books'"):
        scheduler.step("b")
    with pytest.raises(SchedulerError, match="main task would block"):
        lock.acquire()
    scheduler.step("a")
    assert scheduler.step("b") == "inside"


@pytest.mark.parametrize("notified", [True, False])
def test_a_timed_wait_ends_by_notification_or_by_time(notified: bool) -> None:
    elapsed: list[int] = []
    scheduler = DeterministicScheduler(elapsed.append)
    lock = scheduler.lock("books")
    condition = lock.new_condition()
    results: list[bool] = []

    def wait() -> None:
        with lock:
            results.append(condition.wait(30))

    scheduler.spawn("waiter", wait)
    scheduler.run_until("waiter", "wait books")
    if notified:
        with lock:
            condition.notify_all()
    scheduler.step("waiter")
    assert results == [notified]
    assert elapsed == ([] if notified else [30])


def test_a_wait_without_time_out_needs_a_notification() -> None:
    scheduler = DeterministicScheduler()
    lock = scheduler.lock("books")
    condition = lock.new_condition()

    def wait() -> None:
        with lock:
            condition.wait()

    scheduler.spawn("waiter", wait)
    with pytest.raises(DeadlockError, match="waiter"):
        scheduler.run_random(seed=0, max_steps=10)
    with lock:
        condition.notify_all()
    scheduler.run_random(seed=0, max_steps=10)
    assert scheduler.point("waiter") == "finished"


def interleaving(scheduler: DeterministicScheduler) -> list[str]:
    out: list[str] = []

    def worker(name: str) -> Callable[[], None]:
        def work() -> None:
            for i in range(3):
                scheduler.checkpoint(f"before {i}")
                out.append(f"{name}{i}")

        return work

    for name in "ab":
        scheduler.spawn(name, worker(name))
    return out


def test_a_seed_fixes_the_schedule_and_the_schedule_fixes_the_execution() -> None:
    def run(seed: int) -> tuple[list[str], list[str]]:
        scheduler = DeterministicScheduler()
        out = interleaving(scheduler)
        return scheduler.run_random(seed, max_steps=100), out

    runs = {seed: run(seed) for seed in range(20)}
    assert all(run(seed) == result for seed, result in runs.items())
    assert len({tuple(out) for _, out in runs.values()}) > 5
    schedule, expected = runs[3]
    scheduler = DeterministicScheduler()
    out = interleaving(scheduler)
    scheduler.run_schedule(schedule)
    assert out == expected
    assert scheduler.history == schedule


def test_a_failing_task_tells_whoever_stepped_it() -> None:
    scheduler = DeterministicScheduler()

    def fail() -> None:
        raise ValueError("broken")

    scheduler.spawn("a", fail)
    with pytest.raises(ValueError, match="broken"):
        scheduler.step("a")
    assert scheduler.point("a") == "finished"


def waits_for(event: Event) -> None:
    event.wait()


def test_join_from_the_main_task_runs_the_others() -> None:
    scheduler = DeterministicScheduler()
    done = scheduler.event("done")
    first = scheduler.thread("first", lambda: waits_for(done))
    second = scheduler.thread("second", done.set)
    first.start()
    second.start()
    assert first.is_alive()
    first.join()
    assert not first.is_alive()


def test_main_detects_that_a_join_can_never_end() -> None:
    scheduler = DeterministicScheduler()
    never = scheduler.event("never")
    stuck = scheduler.thread("stuck", lambda: waits_for(never))
    stuck.start()
    with pytest.raises(DeadlockError, match="await never"):
        stuck.join()


@pytest.mark.parametrize("make", [RealConcurrency, NoConcurrency, DeterministicScheduler])
def test_every_make_offers_the_same_primitives(make: Callable[[], Concurrency]) -> None:
    world = make()
    lock = world.lock("books")
    with lock, lock:
        lock.acquire()
        lock.release()
        assert lock.new_condition().wait(0) is False
    event = world.event("done")
    assert not event.wait(0)
    thread = world.thread("worker", event.set)
    thread.start()
    thread.join()
    assert thread.name == "worker"
    assert not thread.is_alive()
    assert event.is_set() is (make is not NoConcurrency)
    world.checkpoint("anywhere")
