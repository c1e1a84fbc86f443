"""Drives implementations side by side, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.synchronize import Event as Flag
from typing import Final, Protocol, TypeVar

from conformance.events import Emit, Event
from conformance.modelcheck.graph import StateGraph
from conformance.replay.interruptions import InterruptionResult, interrupt_steps
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.suites.suite import Suite
from conformance.systems.registry import load_factory
from conformance.tla import Value

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Job(Protocol[Result_co]):
    """Work for another process, which all of it can be sent to."""

    @property
    def weight(self) -> int:
        """About how many steps it takes: the longest is begun first."""

    def run(self, emit: Emit) -> Result_co:
        """Do it; `emit` raises when nobody wants the result any more."""


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """A suite to drive."""

    graph: StateGraph
    suite: Suite
    factory: str
    """`module:function`, importable in every process."""
    constants: Mapping[str, Value]

    @property
    def weight(self) -> int:
        """The suite's steps."""
        return self.suite.steps

    def run(self, emit: Emit) -> ReplayResult:
        """Replay it."""
        factory = load_factory(self.factory)
        return replay_suite(self.graph, self.suite, lambda: factory(self.constants), emit=emit)


@dataclass(frozen=True, slots=True)
class InterleaveJob:
    """A model whose steps are to be interrupted."""

    graph: StateGraph
    factory: str
    constants: Mapping[str, Value]
    samples: int
    seed: int

    @property
    def weight(self) -> int:
        """Some ten steps for each state that is drawn, for some hundred pairs of actions."""
        return 1_000 * self.samples

    def run(self, emit: Emit) -> InterruptionResult:
        """Interrupt them."""
        factory = load_factory(self.factory)
        return interrupt_steps(
            self.graph,
            lambda: factory(self.constants),
            samples=self.samples,
            seed=self.seed,
            emit=emit,
        )


class _Stopped(BaseException):
    """Whoever waits for the result has gone: no failure, which Hypothesis would shrink."""


_STOP: Final[list[Flag]] = []
"""In a worker process: raised when its work is no longer wanted."""


def side_by_side(jobs: Sequence[Job[Result]], processes: int) -> Iterator[tuple[int, Result]]:
    """Each job's number and result, as they end.

    Closing the iterator, or an interrupt, stops what still runs.
    """
    order = sorted(range(len(jobs)), key=lambda number: -jobs[number].weight)
    if min(processes, len(jobs)) < 2:
        yield from ((number, _run(jobs[number])) for number in order)
        return
    spawning = multiprocessing.get_context("spawn")
    stop = spawning.Event()
    pool = ProcessPoolExecutor(
        min(processes, len(jobs)), mp_context=spawning, initializer=_prepare, initargs=(stop,)
    )
    try:
        pending: dict[Future[Result], int] = {
            pool.submit(_run, jobs[number]): number for number in order
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


def _run(job: Job[Result]) -> Result:
    return job.run(_stop_if_unwanted)


def _stop_if_unwanted(_event: Event) -> None:
    if any(stop.is_set() for stop in _STOP):
        raise _Stopped
