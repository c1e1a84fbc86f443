"""An example's clock stands still while the loop has no processor. Its readings are given."""

from __future__ import annotations

import pytest

from conformance.client.clock import BEAT, WORK
from tests.unit.client.readings import Readings


def test_a_loop_in_time_counts_every_second() -> None:
    readings = Readings()
    readings.in_time(2.0)
    assert readings.clock.now() == pytest.approx(2.0)
    readings.busy(BEAT / 2)
    assert readings.clock.now() == pytest.approx(2.0 + BEAT / 2)
    assert readings.clock.late_by == pytest.approx(0.0)


@pytest.mark.parametrize("seconds", [2 * BEAT, 1.0, 3_600.0])
def test_a_delay_counts_as_one_beat_while_it_lasts_and_after_it(seconds: float) -> None:
    readings = Readings()
    readings.in_time(1.0)
    readings.busy(seconds)
    assert readings.clock.now() == pytest.approx(1.0 + BEAT)
    readings.late(0.0)
    assert readings.clock.now() == pytest.approx(1.0 + BEAT)
    readings.in_time(0.5)
    assert readings.clock.now() == pytest.approx(1.5 + BEAT)
    assert readings.clock.late_by == pytest.approx(seconds - BEAT)


@pytest.mark.parametrize(
    ("working", "counted"), [(0.0, 0.0), (0.3, 0.3), (WORK, WORK), (WORK + 0.1, WORK), (2.5, WORK)]
)
def test_the_loop_s_own_work_counts_to_a_bound(working: float, counted: float) -> None:
    readings = Readings()
    readings.busy(3.0, working=working)
    assert readings.clock.now() == pytest.approx(BEAT + counted)
    readings.late(0.0)
    assert readings.clock.now() == pytest.approx(BEAT + counted)
    assert readings.clock.late_by == pytest.approx(3.0 - BEAT)


def test_work_of_several_threads_counts_no_more_than_has_passed() -> None:
    readings = Readings()
    readings.late(0.4, working=0.7)
    assert readings.clock.now() == pytest.approx(0.4)


def test_the_worst_delay_is_kept_and_the_others_are_left_out_too() -> None:
    readings = Readings()
    for seconds in (0.5, 3.0, 1.0):
        readings.late(seconds)
    assert readings.clock.late_by == pytest.approx(3.0 - BEAT)
    assert readings.clock.now() == pytest.approx(3 * BEAT)


def test_a_loop_that_is_early_counts_what_has_passed() -> None:
    readings = Readings()
    readings.late(BEAT / 4)
    assert readings.clock.now() == pytest.approx(BEAT / 4)
    assert readings.clock.late_by == 0.0
