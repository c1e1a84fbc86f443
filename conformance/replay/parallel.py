"""Drives implementations at the same time, each in a separate process."""

from __future__ import annotations

import atexit
import gc
import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event as Flag
from typing import Final, Generic, Protocol, TypeVar

from conformance.children import end_with_parent
from conformance.errors import UserError
from conformance.events import OWN_PROCESS, Emit, Event, Work
from conformance.garbage import collect_seldom
from conformance.modelcheck.graph import StateGraph
from conformance.registry import is_of_somebody_else, make_system
from conformance.replay.interruptions import InterruptionResult, interrupt_steps
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.suites.suite import Suite
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
        return replay_suite(
            self.graph,
            self.suite,
            partial(make_system, self.factory, self.constants),
            emit=emit,
            going_on=is_of_somebody_else(self.factory),
        )


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
        return interrupt_steps(
            self.graph,
            partial(make_system, self.factory, self.constants),
            samples=self.samples,
            seed=self.seed,
            emit=emit,
        )


class _PoolStopped(BaseException):
    """Whoever waits for the result has gone: no failure, which Hypothesis would shrink."""


_STOP: Final[list[Flag]] = []
"""In a worker process: raised when its work is no longer wanted."""

_NAME: Final[list[str]] = []
"""In a worker process: the process's name."""


@dataclass(frozen=True, slots=True)
class JobOutcome(Generic[Result_co]):
    """A job's result, and the times at which each process worked on it."""

    number: int
    result: Result_co
    work: Work
    """All processes of a machine share `time.monotonic()`."""


class Running(Protocol[Result_co]):
    """Jobs that run in separate processes."""

    def ended(self) -> Iterator[JobOutcome[Result_co]]:
        """Those that ended since the last look; does not wait."""

    def rest(self) -> Iterator[JobOutcome[Result_co]]:
        """All that were not yet told, as they end; one may stop, and ask for the others later."""


class Crew:
    """Processes for jobs. They load what a job needs while their caller still makes the jobs ready.

    Leaving, also by an exception, stops what still runs.
    """

    def __init__(self, processes: int, loading: Sequence[str] = ()) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.processes = processes
        self._stop = spawning.Event()
        self._pool = ProcessPoolExecutor(
            processes,
            mp_context=spawning,
            initializer=_prepare,
            initargs=(self._stop, spawning.Value("i", 0), os.getpid()),
        )
        # Each call finds nobody idle yet, so each starts a process.
        for _ in range(processes if loading else 0):
            self._pool.submit(_load, tuple(loading))

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def begin(self, jobs: Sequence[Job[Result]], order: Sequence[int]) -> Running[Result]:
        """Begin them in this order."""
        return _ProcessJobs(
            {self._pool.submit(_run_in_crew, jobs[number], number) for number in order}
        )


@contextmanager
def begun(
    jobs: Sequence[Job[Result]], processes: int, crew: Crew | None = None
) -> Iterator[Running[Result]]:
    """Begin the jobs, the longest first, and leave the caller to other work meanwhile.

    Leaving, also by an exception, stops what still runs, or the owner of the `crew` does. With one
    process, or one job, nothing runs beside the caller: `rest` does it.
    """
    order = sorted(range(len(jobs)), key=lambda number: -jobs[number].weight)
    if min(processes, len(jobs)) < 2:
        yield _LocalJobs(jobs, order)
    elif crew is not None:
        yield crew.begin(jobs, order)
    else:
        with Crew(min(processes, len(jobs))) as own:
            yield own.begin(jobs, order)


def side_by_side(jobs: Sequence[Job[Result]], processes: int) -> Iterator[tuple[int, Result]]:
    """Each job's number and result, as they end.

    Closing the iterator, or an interrupt, stops what still runs.
    """
    with begun(jobs, processes) as running:
        for outcome in running.rest():
            yield outcome.number, outcome.result


class _LocalJobs(Generic[Result]):
    """Jobs that this process does itself, one after the other, as it is asked for them."""

    def __init__(self, jobs: Sequence[Job[Result]], order: Sequence[int]) -> None:
        self._jobs, self._left = jobs, deque(order)

    def ended(self) -> Iterator[JobOutcome[Result]]:
        return iter(())

    def rest(self) -> Iterator[JobOutcome[Result]]:
        while self._left:
            number = self._left.popleft()
            yield _run(self._jobs[number], number)


@dataclass(frozen=True, slots=True)
class _ProcessJobs(Generic[Result]):
    """Jobs of a pool that are not yet told."""

    pending: set[Future[JobOutcome[Result]]]

    def ended(self) -> Iterator[JobOutcome[Result]]:
        yield from self._told(timeout=0)

    def rest(self) -> Iterator[JobOutcome[Result]]:
        while self.pending:
            yield from self._told(timeout=None)

    def _told(self, timeout: float | None) -> Iterator[JobOutcome[Result]]:
        done, _ = wait(self.pending, timeout, return_when=FIRST_COMPLETED)
        for future in done:
            self.pending.discard(future)
            try:
                yield future.result()
            except BrokenProcessPool:
                raise UserError(
                    "A process that drove a system ended without an answer: native code crashed "
                    "there, or a signal or os._exit ended it. Nothing was judged by it. `kconform "
                    "replay MODEL --system SYSTEM` drives the system in one process, so that the "
                    "crash can be seen where it happens."
                ) from None


def _prepare(stop: Flag, named: Synchronized[int], parent: int) -> None:
    end_with_parent(parent)
    # Ctrl-C reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _STOP.append(stop)
    with named.get_lock():
        named.value += 1
        _NAME.append(f"process {named.value}")
    collect_seldom()
    # Registered first, called last: to take a process's objects apart one by one takes a second.
    atexit.register(_end)


def _end() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _load(modules: tuple[str, ...]) -> None:
    for module in modules:
        importlib.import_module(module)


def _run(job: Job[Result], number: int) -> JobOutcome[Result]:
    start = time.monotonic()
    result = job.run(_stop_if_unwanted)
    worker = _NAME[-1] if _NAME else OWN_PROCESS
    return JobOutcome(number, result, Work(worker, start, time.monotonic()))


def _run_in_crew(job: Job[Result], number: int) -> JobOutcome[Result]:
    # The graph and all else that is there now stays: nobody need look through it for garbage, nor,
    # as Hypothesis does once, for references.
    gc.freeze()
    try:
        return _run(job, number)
    finally:
        gc.unfreeze()


def _stop_if_unwanted(_event: Event) -> None:
    if any(stop.is_set() for stop in _STOP):
        raise _PoolStopped
