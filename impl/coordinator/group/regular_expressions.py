"""Regular expressions of consumer groups, and the topics that they match.

Source: ResolvedRegularExpression, TopicRegexResolver. Kafka's expressions are RE2/J's; here they
are those of Python's `re`, which knows nearly all of these and others beside.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ...errors import Errors
from .member import ConsumerGroupMember


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """The names that matched; the version of the image that was asked, and when (ms)."""

    topics: frozenset[str]
    version: int
    timestamp: int


ResolvedRegularExpressions = Mapping[str, ResolvedRegularExpression]
"""By regular expression."""


def throw_if_regular_expression_is_invalid(regex: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION."""
    try:
        re.compile(regex)
    except re.error as error:
        raise Errors.INVALID_REGULAR_EXPRESSION.exception(
            f"SubscribedTopicRegex {regex} is not a valid regular expression: {error}"
        ) from error


def resolve_regular_expressions(
    regexes: Iterable[str], topic_names: Collection[str], version: int, now_ms: int
) -> ResolvedRegularExpressions:
    """TopicRegexResolver.resolveRegularExpressions: a name has to match as a whole."""

    def resolved(regex: str) -> ResolvedRegularExpression:
        matches = re.compile(regex).fullmatch
        topics = frozenset(name for name in topic_names if matches(name))
        return ResolvedRegularExpression(topics, version, now_ms)

    return {regex: resolved(regex) for regex in regexes}


def names_read_by(
    member: ConsumerGroupMember, resolved: ResolvedRegularExpressions
) -> frozenset[str]:
    """What a member reads: the topics it names, and those that its regular expression matched."""
    known = resolved.get(member.subscribed_topic_regex)
    return member.subscribed_topic_names | (frozenset() if known is None else known.topics)
