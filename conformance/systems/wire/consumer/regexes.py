"""Regular expressions of a model of ConsumerGroup, and the steps that resolve them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from conformance.tla import Fn, Value

REGEX_VARIABLES = ("resolved", "resolution")
"""What is seen inside of a group with regular expressions; a heartbeat shows their age."""
RUN_RESOLUTION, WRITE_RESOLUTION = "RunResolution", "WriteResolution"
PAUSES_MS: Mapping[str, int] = MappingProxyType(
    {"PassMinInterval": 10_001, "PassRefreshInterval": 600_001}
)
"""The time that a step lets pass: REGEX_BATCH_REFRESH_MIN_INTERVAL_MS, and the default of
group.consumer.regex.refresh.interval.ms."""
REGEX_STEPS = frozenset({RUN_RESOLUTION, WRITE_RESOLUTION, *PAUSES_MS})
"""Steps of no member: of the executor, and of time."""
_UNRESOLVED: frozenset[Value] = frozenset({"unresolved"})

Resolved = tuple[tuple[str, frozenset[str]], ...]
"""Regular expressions of a group, each with the topics that it matched when it was resolved."""


def regexes_of(constants: Mapping[str, Value]) -> frozenset[str]:
    """The regular expressions of a model: they are what consumers send."""
    matches = constants["Matches"]
    return frozenset(map(str, matches)) if isinstance(matches, Fn) else frozenset()


def resolved_value(regexes: Iterable[str], resolved: Resolved) -> Fn:
    """As the specification's `resolved`."""
    topics = dict(resolved)
    return Fn(
        {regex: _names(topics[regex]) if regex in topics else _UNRESOLVED for regex in regexes}
    )


def _names(names: Iterable[str]) -> frozenset[Value]:
    return frozenset(names)
