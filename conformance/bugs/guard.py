"""Ends a step of the implementation that would never end, so that a fault can be seen by it."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from conformance.replay.engine import close
from conformance.systems.protocol import Offers, SystemUnderTest
from conformance.tla.values import Action, Value

STEP_SECONDS = 2.0
"""Of the processor's time, however busy the machine: a thousand times what any step takes."""


class StepNeverEnds(Exception):
    """Raised in the middle of the implementation; the step is a divergence like any that raises."""


class _Guarded:
    """The same system, no step of which takes longer than `STEP_SECONDS`."""

    def __init__(self, system: SystemUnderTest) -> None:
        self._system = system
        self.variables = system.variables

    def reset(self, initial: Mapping[str, Value]) -> None:
        """See `SystemUnderTest.reset`."""
        with _limited():
            self._system.reset(initial)

    def apply(self, action: Action) -> None:
        """See `SystemUnderTest.apply`."""
        with _limited():
            self._system.apply(action)

    def observe(self) -> Mapping[str, Value]:
        """See `SystemUnderTest.observe`."""
        return self._system.observe()

    def close(self) -> None:
        """See `Closeable.close`."""
        close(self._system)


class _GuardedOffers(_Guarded):
    """The same for a system that tells what it would do by itself."""

    def __init__(self, system: SystemUnderTest, offers: Offers) -> None:
        super().__init__(system)
        self._offers = offers
        self.offerable = offers.offerable

    def offers(self) -> frozenset[Action]:
        """See `Offers.offers`."""
        return self._offers.offers()


def guarded(system: SystemUnderTest) -> SystemUnderTest:
    """A system that does the same; to be used in a main thread, where signals arrive."""
    return _GuardedOffers(system, system) if isinstance(system, Offers) else _Guarded(system)


@contextmanager
def _limited() -> Iterator[None]:
    # Again and again: the implementation may catch what is raised, and loop on.
    signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, STEP_SECONDS, STEP_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise StepNeverEnds(f"the step has not ended after {STEP_SECONDS:g} s of the processor's time")
