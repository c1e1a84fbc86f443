"""What a broker of KIP-848 does by itself while a test runs: intervals, and resolutions."""

from __future__ import annotations

import time

import pytest

from conformance.systems.wire.address import parse_address
from conformance.systems.wire.consumer.inner_steps import beyond_reach
from conformance.systems.wire.consumer.interval import RunningInterval
from conformance.systems.wire.consumer.resolutions import RunningResolutions, unsettled, waits
from conformance.systems.wire.pace import Pace
from conformance.tla import Action

PACE_OF = parse_address("localhost:9092")


def path(text: str) -> list[Action]:
    return [Action(name) for name in text.split()]


RESOLVED = "SendHeartbeat HandleHeartbeat RunResolution WriteResolution ReceiveAnswer"


def test_a_group_is_not_looked_at_while_a_result_is_under_way() -> None:
    running = RunningResolutions(unsettled(path(RESOLVED)), Pace(PACE_OF), 0)

    seen = []
    for _ in range(5):
        running.step()
        seen.append(running.shows_group)

    assert seen == [True, False, False, True, True]


@pytest.mark.parametrize(
    ("steps", "is_driven"),
    [
        (RESOLVED, True),
        ("SendHeartbeat HandleHeartbeat RunResolution", True),
        ("SendHeartbeat HandleHeartbeat ReceiveAnswer", True),
        ("HandleHeartbeat ReceiveAnswer RunResolution WriteResolution", False),
        ("HandleHeartbeat RunResolution ReceiveAnswer WriteResolution", False),
    ],
)
def test_a_broker_does_not_wait_with_a_resolution(steps: str, is_driven: bool) -> None:
    assert (waits(path(steps)) == "") is is_driven


def test_ten_seconds_after_a_resolution_it_may_be_resolved_again() -> None:
    pace = Pace(PACE_OF)
    running = RunningResolutions(unsettled(path(RESOLVED)), pace, 0)
    for _ in range(4):
        running.step()
    running.take("WriteResolution")

    assert running.over == ""
    pace.seen_at = time.monotonic() + 11
    assert running.over == "10 seconds since the last resolution were over"


def test_what_is_old_is_resolved_again_where_the_interval_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    pace = Pace(PACE_OF)
    running = RunningResolutions(unsettled(path(RESOLVED)), pace, 13_000)
    for _ in range(4):
        running.step()
    running.take("WriteResolution")
    running.take("PassMinInterval")

    pace.seen_at = time.monotonic() + 11
    assert running.over == "", "that was waited for"
    pace.seen_at = time.monotonic() + 14
    assert running.over == "13 seconds since the last resolution were over"
    running.take("PassRefreshInterval")
    assert running.over == ""
    assert [round(seconds) for seconds in slept[-2:]] == [10, 13]


@pytest.mark.parametrize(("refresh", "is_driven"), [(0, False), (13_000, True)])
def test_ten_minutes_are_not_waited_for(refresh: int, is_driven: bool) -> None:
    reasons = beyond_reach(refresh)

    assert ("PassRefreshInterval" not in reasons) is is_driven
    assert "MoveLeader" in reasons


def test_an_interval_begins_with_a_target() -> None:
    pace = Pace(PACE_OF)
    running = RunningInterval(200, pace)
    pace.seen_at = time.monotonic() + 1
    assert running.over == "", "there is no target"

    begun = time.monotonic()
    running.target_seen(2, begun)
    assert running.over == "the assignment interval was over"
    pace.seen_at = time.monotonic()
    assert running.over == ""

    running.target_seen(2, begun + 1)  # it is the same one
    running.wait()
    assert time.monotonic() - begun >= 0.2
    pace.seen_at = time.monotonic()
    assert running.over == "", "it was waited for"


def test_a_broker_without_an_interval_is_never_late_by_it() -> None:
    pace = Pace(PACE_OF)
    running = RunningInterval(0, pace)
    running.target_seen(2, time.monotonic() - 5)
    pace.seen_at = time.monotonic()

    assert running.over == ""
