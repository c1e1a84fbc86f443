"""What a replay says of its steps: those that a snapshot spared are not counted as taken."""

from __future__ import annotations

import pytest

from conformance.replay.suite import ReplayResult
from conformance.stages.replay import _summary


@pytest.mark.parametrize(
    ("steps", "taken", "says"),
    [
        (40_000, 1_000, "40,000 steps, 1,000 of them taken, 500/s"),
        (1_000, 1_000, "1,000 steps, 500/s"),
    ],
)
def test_the_headline_tells_steps_that_were_taken_from_those_that_were_restored(
    steps: int, taken: int, says: str
) -> None:
    result = ReplayResult(3, 0, 0, 0, steps, 2.0, {"Put": steps}, steps_taken=taken)
    assert list(_summary(result)) == ["3 tests passed, 0 failed, 0 inconclusive", says]
