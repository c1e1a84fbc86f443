"""When a broker resolves the regular expressions of a group of KIP-848, while a test runs.

A heartbeat schedules it, an executor does it and writes the result, within milliseconds and without
being asked. Nothing shows how far it has come. So of a path that has these steps the group is not
looked at between the heartbeat and the result, which is given its time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from conformance.systems.wire.consumer.inner_steps import (
    PASS_MIN_INTERVAL,
    PASS_REFRESH_INTERVAL,
    PAUSES_MS,
    RUN_RESOLUTION,
    WRITE_RESOLUTION,
)
from conformance.systems.wire.pace import Pace
from conformance.tla import Action

RESOLUTION_STEPS = frozenset(
    {RUN_RESOLUTION, WRITE_RESOLUTION, PASS_MIN_INTERVAL, PASS_REFRESH_INTERVAL}
)
_SCHEDULES = "HandleHeartbeat"
_RESOLVED_SECONDS = 0.05
"""An executor that has nothing else to do takes a few milliseconds: a result that changes nothing
is not seen."""
_REST_SECONDS = PAUSES_MS[PASS_MIN_INTERVAL] / 1000
_MARGIN_SECONDS = 0.01


def unsettled(actions: Sequence[Action]) -> frozenset[int]:
    """The steps of a path, by number, after which a result is under way."""
    runs = [at for at, action in enumerate(actions) if action.name == RUN_RESOLUTION]
    return frozenset(step for at in runs for step in (at - 1, at))


def waits(actions: Sequence[Action]) -> str:
    """Why no broker takes a path: its executor would have to wait; empty if it need not."""
    names = ["", *(action.name for action in actions), WRITE_RESOLUTION]
    for before, name, after in zip(names, names[1:], names[2:], strict=False):
        if name == RUN_RESOLUTION and (before, after) != (_SCHEDULES, WRITE_RESOLUTION):
            return f"{name}: a broker does not wait with it, and here another step comes between"
    return ""


class RunningResolutions:
    """Of one test, on whose path a result is under way after the steps `unsettled`. `refresh`:
    group.consumer.regex.refresh.interval.ms, 0 if it does not pass."""

    def __init__(self, unsettled: frozenset[int], pace: Pace, refresh: int) -> None:
        self._unsettled = unsettled
        self._pace = pace
        self._step = -1
        self._begun: tuple[float, float] | None = None
        """Before the last resolution, and after it (monotonic, s)."""
        self._refresh_seconds = refresh / 1000
        self._due = 0.0
        """How old (s) the last resolution becomes before something comes of its age; 0: nothing."""
        self._asked = 0.0

    def step(self) -> None:
        """The path's next step begins."""
        self._step += 1
        if self._is_under_way and self._step - 1 not in self._unsettled:
            self._asked = time.monotonic()

    @property
    def _is_under_way(self) -> bool:
        return self._step in self._unsettled

    @property
    def shows_group(self) -> bool:
        """Whether the group is at rest, so that what is described belongs to this step."""
        return not self._is_under_way

    def take(self, step: str) -> None:
        """One of `RESOLUTION_STEPS`."""
        if step == WRITE_RESOLUTION:
            time.sleep(_RESOLVED_SECONDS)
            self._pace.wait_for(0)
            self._begun, self._due = (self._asked, time.monotonic()), _REST_SECONDS
        elif step == PASS_MIN_INTERVAL:
            self._wait()
            self._due = self._refresh_seconds
        elif step == PASS_REFRESH_INTERVAL:
            self._wait()
            self._due = 0.0

    def _wait(self) -> None:
        """Until the last resolution is as old as is due."""
        if self._begun is not None:
            _, ended = self._begun
            time.sleep(max(ended + self._due + _MARGIN_SECONDS - time.monotonic(), 0.0))

    @property
    def over(self) -> str:
        """Why regular expressions may be resolved again though nobody waited for that."""
        if self._begun is None or not self._due:
            return ""
        asked, _ = self._begun
        if self._pace.seen_at <= asked + self._due:
            return ""
        return f"{self._due:.0f} seconds since the last resolution were over"
