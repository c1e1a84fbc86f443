"""Replays several suites side by side, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.synchronize import Event as Flag
from typing import Final

from conformance.events import Event
from conformance.modelcheck.graph import StateGraph
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.suites.suite import Suite
from conformance.systems.registry import load_factory
from conformance.tla.values import Value


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """A suite to drive; all of it can be sent to another process."""

    graph: StateGraph
    suite: Suite
    factory: str
    """`module:function`, importable in every process."""
    constants: Mapping[str, Value]


class _Stopped(Exception):
    """Whoever waits for the result has gone."""


_STOP: Final[list[Flag]] = []
"""In a worker process: raised when its work is no longer wanted."""


def replay_side_by_side(
    jobs: Sequence[ReplayJob], processes: int
) -> Iterator[tuple[int, ReplayResult]]:
    """Each job's number and result, as they end; the largest suites are begun first.

    Closing the iterator, or an interrupt, stops what still runs.
    """
    order = sorted(range(len(jobs)), key=lambda number: -jobs[number].suite.steps)
    if min(processes, len(jobs)) < 2:
        yield from ((number, _replay(jobs[number])) for number in order)
        return
    spawning = multiprocessing.get_context("spawn")
    stop = spawning.Event()
    pool = ProcessPoolExecutor(
        min(processes, len(jobs)), mp_context=spawning, initializer=_prepare, initargs=(stop,)
    )
    try:
        pending: dict[Future[ReplayResult], int] = {
            pool.submit(_replay, jobs[number]): number for number in order
        }
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare(stop: Flag) -> None:
    # Ctrl-C reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _STOP.append(stop)


def _replay(job: ReplayJob) -> ReplayResult:
    factory = load_factory(job.factory)
    return replay_suite(
        job.graph, job.suite, lambda: factory(job.constants), emit=_stop_if_unwanted
    )


def _stop_if_unwanted(_event: Event) -> None:
    if any(stop.is_set() for stop in _STOP):
        raise _Stopped
