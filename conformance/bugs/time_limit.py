"""A pytest plugin: no test runs for ever.

The bug bench takes it where ordinary tests judge a faulty copy: a fault may make a test wait, or
go round, without end. A test that reaches a limit fails. If it goes on all the same, since its
code catches what is raised, or waits where no signal is heard, the process ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from conformance.systems.protocol import EndedFromOutside

PROCESSOR_SECONDS = 60.0
"""Of this process, for each phase of a test: many times what the longest test takes."""
CLOCK_SECONDS = 600.0
"""For a test that waits; beside others' work, at the lowest priority, tests are slow."""
GRACE_SECONDS = 20.0
"""By the clock, for a test to end after it was told to."""
ENDED = 70
"""The exit code of a process whose test could not be ended: to pytest it means nothing else."""


class TestHangs(EndedFromOutside):
    """A test has reached its limit. No `except Exception` of the tested code catches it."""

    __test__ = False


def _raise(_signal: int, _frame: FrameType | None) -> None:
    raise TestHangs("the test has not ended within its time limit")


@contextmanager
def _limited() -> Iterator[None]:
    last = threading.Timer(CLOCK_SECONDS + GRACE_SECONDS, os._exit, [ENDED])
    last.daemon = True
    before = {number: signal.signal(number, _raise) for number in (signal.SIGALRM, signal.SIGPROF)}
    signal.setitimer(signal.ITIMER_REAL, CLOCK_SECONDS, GRACE_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS, GRACE_SECONDS)
    last.start()
    try:
        yield
    finally:
        last.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


# Not the whole protocol of a test: what pytest reports after a phase must not be interrupted.


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """The fixtures of a test."""
    with _limited():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """The test itself."""
    with _limited():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """What its fixtures clean up."""
    with _limited():
        return (yield)
