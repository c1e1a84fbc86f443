"""Regular expressions of a model of ConsumerGroup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.tla import Fn, Value

REGEX_VARIABLES = ("resolved", "resolution")
"""What is seen inside of a group with regular expressions; a heartbeat shows their age."""
_UNRESOLVED: frozenset[Value] = frozenset({"unresolved"})

Resolved = tuple[tuple[str, frozenset[str]], ...]
"""Regular expressions of a group, each with the topics that it matched when it was resolved."""


def regexes_of(constants: Mapping[str, Value]) -> frozenset[str]:
    """The regular expressions of a model: they are what consumers send."""
    matches = constants["Matches"]
    return frozenset(map(str, matches)) if isinstance(matches, Fn) else frozenset()


def refreshes(constants: Mapping[str, Value]) -> bool:
    """Whether group.consumer.regex.refresh.interval.ms passes in a model."""
    return constants["RefreshesByTime"] is True


def resolved_value(regexes: Iterable[str], resolved: Resolved) -> Fn:
    """As the specification's `resolved`."""
    topics = dict(resolved)
    return Fn(
        {regex: _names(topics[regex]) if regex in topics else _UNRESOLVED for regex in regexes}
    )


def _names(names: Iterable[str]) -> frozenset[Value]:
    return frozenset(names)
