"""Read-write locks of every make of concurrency."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from impl.concurrency import Concurrency, LockSide, NoConcurrency, RealConcurrency
from impl.deterministic_scheduler import DeterministicScheduler

PATIENCE_S = 10.0


def section(side: LockSide, then: Callable[[], None] = lambda: None) -> Callable[[], None]:
    def run() -> None:
        with side:
            then()

    return run


@pytest.mark.parametrize("make", [NoConcurrency, RealConcurrency, DeterministicScheduler])
def test_a_writer_may_read_and_each_side_can_be_taken_again(
    make: Callable[[], Concurrency],
) -> None:
    lock = make().read_write_lock("state")
    for _ in range(2):
        with lock.write, lock.write, lock.read, lock.read:
            pass
        with lock.read, lock.read:
            pass


@pytest.mark.parametrize(
    ("holder", "other", "passes"),
    [
        ("read", "read", True),
        ("read", "write", False),
        ("write", "read", False),
        ("write", "write", False),
    ],
)
def test_readers_share_it_and_a_writer_is_alone(holder: str, other: str, passes: bool) -> None:
    scheduler = DeterministicScheduler()
    lock, inner = scheduler.read_write_lock("state"), scheduler.lock("inner")
    sides = {"read": lock.read, "write": lock.write}
    scheduler.spawn("holder", section(sides[holder], section(inner)))
    scheduler.spawn("other", section(sides[other]))
    scheduler.run_until("holder", "lock inner")
    assert scheduler.step("other") == f"lock state to {other}"
    assert ("other" in scheduler.runnable()) is passes
    scheduler.step("holder")
    assert "other" in scheduler.runnable()


def test_a_reader_that_would_write_waits_for_itself() -> None:
    scheduler = DeterministicScheduler()
    lock = scheduler.read_write_lock("state")
    scheduler.spawn("reader", section(lock.read, section(lock.write)))
    scheduler.run_until("reader", "lock state to write")
    assert scheduler.runnable() == ()


def test_a_real_writer_waits_for_readers() -> None:
    lock = RealConcurrency().read_write_lock("state")
    seen: list[str] = []
    writer = threading.Thread(target=section(lock.write, lambda: seen.append("written")))
    with lock.read:
        reader = threading.Thread(target=section(lock.read, lambda: seen.append("read")))
        reader.start()
        reader.join(PATIENCE_S)
        writer.start()
        writer.join(0.05)
        assert seen == ["read"]
    writer.join(PATIENCE_S)
    assert seen == ["read", "written"]
