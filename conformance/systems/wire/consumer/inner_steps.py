"""Steps of a coordinator of KIP-848 that no request brings, beside its members' timers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.tla import Value

RUN_RESOLUTION, WRITE_RESOLUTION = "RunResolution", "WriteResolution"
"""The executor resolves a group's regular expressions, and its result is written."""
PASS_INTERVAL, PASS_MIN_INTERVAL = "PassAssignmentInterval", "PassMinInterval"
PASS_REFRESH_INTERVAL = "PassRefreshInterval"
ASSIGNMENT_INTERVAL_MS = 1_000
"""group.consumer.assignment.interval.ms, of models that have one."""
FIRST_WITH_INTERVAL = (4, 3, 0)
WITHOUT_INTERVAL = "before 4.3 there is no assignment interval (KAFKA-20291)"
PAUSES_MS: Mapping[str, int] = MappingProxyType(
    {
        PASS_INTERVAL: ASSIGNMENT_INTERVAL_MS,
        PASS_MIN_INTERVAL: 10_001,
        PASS_REFRESH_INTERVAL: 600_001,
    }
)
"""The time that a step lets pass. The last two: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS, and the
default of group.consumer.regex.refresh.interval.ms."""
REGEX_REFRESH_MS = 14_000
"""group.consumer.regex.refresh.interval.ms of brokers that are started for models in which it
passes: some steps longer than REGEX_BATCH_REFRESH_MIN_INTERVAL_MS."""
UNSHOWN: Mapping[str, str] = MappingProxyType(
    {"MoveLeader": "of a partition's other leader a group shows nothing"}
)
"""What no port shows, and why."""
_REFRESHED_LATE = (
    "it takes ten minutes as delivered: if your broker's is shorter, say regex-refresh="
)


def beyond_reach(regex_refresh: int) -> Mapping[str, str]:
    """What is not driven at a broker with such an interval (ms; 0: it is not said), and why."""
    late = {} if regex_refresh else {PASS_REFRESH_INTERVAL: _REFRESHED_LATE}
    return {**UNSHOWN, **late}


def resolves_next(state: Mapping[str, Value]) -> frozenset[str]:
    """The step that an executor takes at once in a state of ConsumerGroup; empty if there is none,
    or of another specification."""
    steps = {"Scheduled": RUN_RESOLUTION, "Run": WRITE_RESOLUTION}
    step = steps.get(str(state.get("resolution", "")))
    return frozenset() if step is None else frozenset({step})


INNER_STEPS = frozenset({RUN_RESOLUTION, WRITE_RESOLUTION, *PAUSES_MS})
