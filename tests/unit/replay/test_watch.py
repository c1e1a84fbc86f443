"""A step that never ends: it is cut off, and seen as what the implementation raises."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping

import pytest

from conformance.bugs import guard
from conformance.bugs.guard import StepNeverEnds, guarded
from conformance.systems.protocol import Offers
from conformance.tla.values import Action, Value

COUNT, LOOP, CATCH = (Action(name, ()) for name in ("Count", "Loop", "Catch"))


class Counter:
    """Counts; loops for ever if told so, and in `Catch` also if it is interrupted once."""

    variables = ("count",)

    def __init__(self) -> None:
        self.count = 0
        self.closed = False

    def reset(self, initial: Mapping[str, Value]) -> None:
        assert initial == {"count": 0}
        self.count = 0

    def apply(self, action: Action) -> None:
        self.count += 1
        if action == CATCH:
            try:
                self._loop()
            except StepNeverEnds:
                self._loop()
        if action == LOOP:
            self._loop()

    def _loop(self) -> None:
        while self.count:
            pass

    def observe(self) -> Mapping[str, Value]:
        return {"count": self.count}

    def close(self) -> None:
        self.closed = True


class OfferingCounter(Counter):
    """Would always count."""

    offerable = frozenset({"Count"})

    def offers(self) -> frozenset[Action]:
        return frozenset({COUNT})


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(guard, "STEP_SECONDS", 0.05)
    handler = signal.getsignal(signal.SIGVTALRM)
    yield
    signal.signal(signal.SIGVTALRM, handler)


@pytest.mark.parametrize("action", [LOOP, CATCH], ids=str)
def test_a_step_that_never_ends_raises(action: Action) -> None:
    with pytest.raises(StepNeverEnds, match="has not ended"):
        guarded(Counter()).apply(action)


def test_steps_that_end_are_not_cut_off() -> None:
    system = guarded(Counter())
    system.reset({"count": 0})
    until = time.process_time() + 0.2
    while time.process_time() < until:
        system.apply(COUNT)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert system.variables == ("count",)
    assert system.observe() != {"count": 0}


def test_only_who_offers_steps_is_asked_for_them() -> None:
    offering = guarded(OfferingCounter())

    assert not isinstance(guarded(Counter()), Offers)
    assert isinstance(offering, Offers)
    assert (offering.offerable, offering.offers()) == (frozenset({"Count"}), frozenset({COUNT}))


def test_closing_closes_the_system() -> None:
    counter = Counter()
    system = guarded(counter)
    assert hasattr(system, "close")
    system.close()
    assert counter.closed
