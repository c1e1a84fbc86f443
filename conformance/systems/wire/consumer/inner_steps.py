"""Steps of a coordinator of KIP-848 that no request brings, beside its members' timers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.tla import Value

RUN_RESOLUTION, WRITE_RESOLUTION = "RunResolution", "WriteResolution"
"""The executor resolves a group's regular expressions, and its result is written."""
PASS_INTERVAL, PASS_MIN_INTERVAL = "PassAssignmentInterval", "PassMinInterval"
ASSIGNMENT_INTERVAL_MS = 1_000
"""group.consumer.assignment.interval.ms, of models that have one."""
FIRST_WITH_INTERVAL = (4, 3, 0)
WITHOUT_INTERVAL = "before 4.3 there is no assignment interval (KAFKA-20291)"
PAUSES_MS: Mapping[str, int] = MappingProxyType(
    {
        PASS_INTERVAL: ASSIGNMENT_INTERVAL_MS,
        PASS_MIN_INTERVAL: 10_001,
        "PassRefreshInterval": 600_001,
    }
)
"""The time that a step lets pass. The last two: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS, and the
default of group.consumer.regex.refresh.interval.ms."""
BEYOND_REACH: Mapping[str, str] = MappingProxyType(
    {
        "PassRefreshInterval": (
            "group.consumer.regex.refresh.interval.ms, ten minutes as delivered, is not waited for"
        ),
        "MoveLeader": "of a partition's other leader a group shows nothing",
    }
)
"""What no port brings about or shows, and why."""


def resolves_next(state: Mapping[str, Value]) -> frozenset[str]:
    """The step that an executor takes at once in a state of ConsumerGroup; empty if there is none,
    or of another specification."""
    steps = {"Scheduled": RUN_RESOLUTION, "Run": WRITE_RESOLUTION}
    step = steps.get(str(state.get("resolution", "")))
    return frozenset() if step is None else frozenset({step})


INNER_STEPS = frozenset({RUN_RESOLUTION, WRITE_RESOLUTION, *PAUSES_MS})
