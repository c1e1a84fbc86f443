"""What a process keeps of how late it was woken."""

from __future__ import annotations

import time

import pytest

from conformance.systems.wire.lateness import Pulse


@pytest.mark.parametrize(
    ("since", "worst"),
    [(0.0, 0.49), (1.5, 0.09), (2.2, 0.0)],
    ids=["all", "the later one", "nothing since"],
)
def test_the_longest_delay_since_a_moment(
    since: float, worst: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 3.0)
    pulse = Pulse()
    pulse.slept(0.5, 1.0)
    pulse.slept(2.0, 2.1)
    pulse.slept(2.2, 2.212)  # every sleep is a little too long
    assert pulse.worst_since(since) == pytest.approx(worst)


def test_a_delay_that_goes_on_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda _: now.__setitem__(0, 1.01))
    pulse = Pulse()
    pulse.beat()
    assert pulse.worst_since(0.0) == pytest.approx(0.0)
    now[0] = 4.01  # and the thread has not been woken
    assert pulse.worst_since(0.0) == pytest.approx(3.0)
