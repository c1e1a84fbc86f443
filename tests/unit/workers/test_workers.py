"""Workers give the results in the order of the items, wherever they work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.workers import (
    MANY_TRACES,
    ForkedProcesses,
    Here,
    WorkerEnded,
    Workers,
    is_small,
    processes,
    workers_for,
)

PLACES = pytest.mark.parametrize(
    "workers", [Here(), ForkedProcesses(2), ForkedProcesses(3)], ids=lambda workers: workers.place
)


def children() -> list[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return [int(child) for child in listed.split()]


def slowest_first(number: int) -> tuple[int, int]:
    time.sleep(0.02 if number == 0 else 0)
    return number, os.getpid()


@PLACES
def test_results_come_in_the_order_of_the_items(workers: Workers) -> None:
    results = list(workers.map(slowest_first, range(20)))
    assert [number for number, _ in results] == list(range(20))
    elsewhere = {process for _, process in results} - {os.getpid()}
    assert bool(elsewhere) is not isinstance(workers, Here)
    assert list(workers.map(slowest_first, [])) == []


@PLACES
def test_results_are_merged_into_one(workers: Workers) -> None:
    assert workers.reduce(partial(pow, 2), range(10), int.__add__, 1) == 2**10
    assert workers.reduce(partial(pow, 2), [], int.__add__, 7) == 7


def test_no_item_is_taken_before_a_result_is_asked_for() -> None:
    taken: list[int] = []
    results = ForkedProcesses(2).map(abs, (taken.append(n) or n for n in range(9)))
    assert not taken
    assert [*results] == taken == list(range(9))


def test_a_function_may_keep_what_its_process_knows() -> None:
    known: list[int] = []

    def remember(number: int) -> int:
        known.append(number)
        return len(known)

    results = list(ForkedProcesses(2).map(remember, range(10)))
    assert max(results) > 1
    assert not known  # here


def test_closing_ends_the_processes() -> None:
    before = children()
    results = ForkedProcesses(2).map(abs, range(1000))
    next(results)
    assert len(children()) == len(before) + 2
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert children() == before


def failing(number: int) -> int:
    if number == 5:
        raise UserError("the sixth is wrong")
    return number


@PLACES
def test_what_a_function_raises_is_raised(workers: Workers) -> None:
    before = children()
    with pytest.raises(UserError, match="the sixth is wrong") as caught:
        list(workers.map(failing, range(10)))
    assert children() == before
    if not isinstance(workers, Here):
        assert "in failing" in caught.value.__notes__[0]


def killed(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_that_is_ended_from_outside_is_no_result() -> None:
    with pytest.raises(WorkerEnded, match=r"by SIGKILL.*jobs = 1") as caught:
        list(ForkedProcesses(2).map(killed, range(10)))
    assert (caught.value.item, caught.value.exit_code) == (5, 2)


@pytest.mark.parametrize(
    ("traces", "steps", "processes", "place"),
    [
        (MANY_TRACES - 1, 10, 2, "in this process"),
        (1, 10**9, 1, "in this process"),
        (1, 10**9, 2, "in 2 processes"),
    ],
)
def test_the_size_decides_where(traces: int, steps: int, processes: int, place: str) -> None:
    with workers_for(traces, steps, master=None, processes=processes) as workers:
        assert workers.place == place


def test_spark_is_for_a_million_traces_and_for_a_master() -> None:
    assert is_small(MANY_TRACES - 1, None)
    assert not is_small(MANY_TRACES, None)
    assert not is_small(1, "local[1]")


def test_whoever_may_need_spark_imports_none() -> None:
    modules = "conformance.gate, conformance.cli.audit, conformance.cli.inspect"
    program = f"import sys, {modules}; print(*(m for m in sys.modules if 'pyspark' in m))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert not done.stdout.strip()


@PLACES
def test_results_that_nobody_asks_for_any_more_can_be_given_up(workers: Workers) -> None:
    results = workers.map(slowest_first, range(20))
    assert next(results)[0] == 0
    with closing(results):  # type: ignore[type-var]  # Workers.map promises that it can be closed
        pass
    assert list(results) == []


def test_an_interrupt_waits_while_a_process_is_forked() -> None:
    reached = []
    before = signal.getsignal(signal.SIGINT)

    def fork() -> None:
        with processes._signals_deferred():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end of the block")

    with pytest.raises(KeyboardInterrupt):
        fork()
    assert reached
    assert signal.getsignal(signal.SIGINT) is before
