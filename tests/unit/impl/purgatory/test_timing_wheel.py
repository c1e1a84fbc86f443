"""Timers: when each task runs, and what a timer counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.deterministic_scheduler import DeterministicScheduler
from impl.purgatory.atomic import AtomicInteger
from impl.purgatory.deadline_timer import DeadlineTimer, TimerShare
from impl.purgatory.delay_queue import DelayQueue
from impl.purgatory.system_timer import SingleThreadExecutor, SystemTimer
from impl.purgatory.timer_task import TimerTask
from impl.purgatory.timing_wheel import TimerTaskEntry, TimerTaskList
from impl.scheduler import DeferredScheduler, ImmediateScheduler

NO_THREADS = NoConcurrency()


class Task(TimerTask):
    """Tells when it ran."""

    def __init__(self, delay_ms: int, ran: Callable[[Task], None] = lambda _: None) -> None:
        super().__init__(delay_ms, NO_THREADS)
        self._ran = ran

    def run(self) -> bool:
        self._ran(self)
        return True


def make_timer(clock: MockClock, wheel_size: int = 3, tick_ms: int = 1) -> SystemTimer:
    return SystemTimer(
        "test",
        clock,
        NO_THREADS,
        tick_ms=tick_ms,
        wheel_size=wheel_size,
        executor=ImmediateScheduler(),
    )


def test_t01_what_is_due_already_runs_as_it_is_added() -> None:
    ran: list[int] = []
    timer = make_timer(MockClock())
    for delay in range(-5, 1):
        timer.add(Task(delay, lambda task: ran.append(task.delay_ms)))
    assert ran == [-5, -4, -3, -2, -1, 0]
    assert timer.size == 0


def test_t03_the_counter_follows_entries_from_list_to_list() -> None:
    counter = AtomicInteger(NO_THREADS.lock("counter"))
    first, second, third = (TimerTaskList(counter, NO_THREADS) for _ in range(3))
    tasks = [Task(0) for _ in range(10)]
    for count, task in enumerate(tasks, start=1):
        first.add(TimerTaskEntry(task, 10))
        assert counter.get() == count

    def sizes() -> tuple[int, ...]:
        return len(first), len(second), len(third), counter.get()

    for task in tasks[:4]:
        second.add(TimerTaskEntry(task, 10))
    assert sizes() == (6, 4, 0, 10)
    for task in tasks[4:]:
        third.add(TimerTaskEntry(task, 10))
    assert sizes() == (0, 4, 6, 10)
    for task in tasks[:4]:
        task.cancel()
    assert sizes() == (0, 0, 6, 6)
    for task in tasks[4:]:
        task.cancel()
    assert sizes() == (0, 0, 0, 0)


@pytest.mark.parametrize("wheel_size", [2, 3, 20])
@pytest.mark.parametrize("tick_ms", [1, 7])
def test_tasks_of_all_wheels_run_in_time_and_in_order(wheel_size: int, tick_ms: int) -> None:
    """Never earlier than the tick of the deadline, and at the first look after it."""
    clock = MockClock(1_000_003)
    timer = make_timer(clock, wheel_size, tick_ms)
    ran: list[tuple[int, int]] = []
    delays = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 500, 1234]
    for delay in delays:
        timer.add(Task(delay, lambda task: ran.append((task.delay_ms, clock.milliseconds()))))
    start = clock.milliseconds()
    for _ in range(max(delays) + tick_ms):
        clock.sleep(1)
        timer.advance_clock(0)
    assert [delay for delay, _ in ran] == [delay for delay in delays if delay >= 1]
    for delay, at in ran:
        assert start + delay - tick_ms < at <= start + delay
    assert timer.size == 0


def test_a_cancelled_task_leaves_every_wheel() -> None:
    clock = MockClock()
    timer = make_timer(clock)
    ran: list[Task] = []
    tasks = [Task(delay, ran.append) for delay in (1, 5, 50)]
    for task in tasks:
        timer.add(task)
    for task in tasks:
        task.cancel()
    assert timer.size == 0
    clock.sleep(100)
    timer.advance_clock(0)
    assert ran == []


def test_what_has_been_handed_over_runs_even_if_it_is_cancelled_then() -> None:
    """That is why an operation's completion is decided by its own flag, not by the timer."""
    clock, executor = MockClock(), DeferredScheduler()
    timer = SystemTimer("test", clock, NO_THREADS, executor=executor)
    ran: list[Task] = []
    task = Task(5, ran.append)
    timer.add(task)
    clock.sleep(5)
    assert timer.advance_clock(0)
    assert (executor.pending(), ran) == (("executor-test",), [])
    task.cancel()
    executor.run_pending()
    assert ran == [task]


def test_a_task_added_again_runs_once_at_its_new_time() -> None:
    clock = MockClock()
    timer = make_timer(clock)
    ran: list[int] = []
    task = Task(10, lambda _: ran.append(clock.milliseconds()))
    timer.add(task)
    clock.sleep(5)
    timer.add(task)
    assert timer.size == 1
    for _ in range(20):
        clock.sleep(1)
        timer.advance_clock(0)
    assert ran == [15]


def test_a_task_may_add_tasks() -> None:
    clock = MockClock()
    timer = make_timer(clock)
    ran: list[int] = []
    timer.add(Task(3, lambda _: timer.add(Task(4, lambda _: ran.append(clock.milliseconds())))))
    for _ in range(10):
        clock.sleep(1)
        timer.advance_clock(0)
    assert ran == [7]


def test_advancing_says_whether_a_bucket_was_due() -> None:
    clock = MockClock()
    timer = make_timer(clock)
    timer.add(Task(2))
    assert not timer.advance_clock(0)
    clock.sleep(2)
    assert timer.advance_clock(0)
    assert not timer.advance_clock(0)


def test_the_queue_hands_out_the_earliest_that_is_due() -> None:
    clock = MockClock()
    queue: DelayQueue[str] = DelayQueue(clock, NO_THREADS)
    for item, at in (("late", 20), ("early", 10), ("second", 10)):
        queue.offer(item, at)
    assert queue.poll(5) is None
    clock.sleep(10)
    assert [queue.poll() for _ in range(3)] == ["early", "second", None]


def test_who_waits_for_the_queue_takes_what_comes_due_before_that_in_time() -> None:
    clock = MockClock()
    scheduler = DeterministicScheduler(elapse=clock.sleep)
    queue: DelayQueue[str] = DelayQueue(clock, scheduler)
    queue.offer("late", 500)
    taken: list[tuple[str | None, int]] = []
    scheduler.spawn("reaper", lambda: taken.append((queue.poll(1_000), clock.milliseconds())))
    scheduler.run_until("reaper", "wait delay queue")
    queue.offer("early", 20)
    scheduler.run_until("reaper", "finished")
    assert taken == [("early", 20)]


def test_an_executor_survives_a_task_that_raises() -> None:
    executor = SingleThreadExecutor("executor-test", NO_THREADS)
    ran: list[int] = []
    executor.schedule_once("", lambda: ran.append(1 // 0))
    executor.schedule_once("", lambda: ran.append(2))
    for _ in range(3):
        executor.do_work()
    assert ran == [2]


def test_purgatories_that_share_a_timer_count_their_own() -> None:
    clock = MockClock()
    timer = DeadlineTimer(clock, NO_THREADS)
    one, other = TimerShare(timer), TimerShare(timer)
    task = Task(10)
    one.add(task)
    other.add(Task(5))
    other.add(Task(20))
    assert (one.size, other.size, timer.size) == (1, 2, 3)
    task.cancel()
    clock.sleep(6)
    assert one.advance_clock(0)
    assert (one.size, other.size, timer.size) == (0, 1, 1)
    timer.shutdown()
    assert (one.size, other.size, timer.size) == (0, 0, 0)
