"""When the regular expressions of a group are resolved, and what the group makes of the result.

Source: GroupMetadataManager.maybeUpdateRegularExpressions and handleRegularExpressionsResult.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

from ...clock import Clock
from ..coordinator_executor import CoordinatorExecutor
from ..coordinator_shard import CoordinatorRecord, CoordinatorResult
from .assignors import TopicsImage
from .config import ConsumerGroupConfig
from .consumer_group import ConsumerGroup
from .member import ConsumerGroupMember
from .metadata_hash import metadata_hash
from .records import (
    new_consumer_group_epoch_record,
    new_regular_expression_record,
    tombstone_of_regular_expression,
)
from .regular_expressions import (
    ResolvedRegularExpressions,
    resolve_regular_expressions,
    throw_if_regular_expression_is_invalid,
)

REGEX_BATCH_REFRESH_MIN_INTERVAL_MS = 10_000
"""The regular expressions of a group are not resolved more often."""


class UpdateRegularExpressionStatus(Enum):
    """What a heartbeat says of its sender's regular expression."""

    NO_CHANGE = "no change"
    REGEX_UPDATED = "updated, and it is not known yet what it matches"
    REGEX_UPDATED_AND_RESOLVED = "updated, and what the member reads is known"


class RegularExpressionManager:
    """The regular expressions of all groups of one partition; one task at a time for each group."""

    def __init__(
        self,
        config: ConsumerGroupConfig,
        topics: TopicsImage,
        clock: Clock,
        executor: CoordinatorExecutor,
        group_of: Callable[[str], ConsumerGroup | None],
    ) -> None:
        self._config = config
        self._topics = topics
        self._clock = clock
        self._executor = executor
        self._group_of = group_of
        self._last_version_with_new_topics = topics.version

    def on_new_topics(self) -> None:
        """Topics were created (lastMetadataImageWithNewTopics): expressions may match them."""
        self._last_version_with_new_topics = self._topics.version

    def on_unloaded(self) -> None:
        """Nobody wants the results any more."""
        self._executor.cancel_all()

    # ---- heartbeats --------------------------------------------------------------------------

    def maybe_update_regular_expressions(
        self, group: ConsumerGroup, member: ConsumerGroupMember, updated: ConsumerGroupMember
    ) -> tuple[UpdateRegularExpressionStatus, list[CoordinatorRecord]]:
        """Schedule a resolution if it is due; a tombstone for what nobody subscribes to any more.

        Raises INVALID_REGULAR_EXPRESSION.
        """
        status = _status_of(group, member, updated)
        regexes = self._to_be_resolved(group, member, updated)
        if regexes:
            self._executor.schedule(
                resolution_key(group.group_id),
                lambda: self._resolve(regexes),
                lambda result, error: self._handle_result(group.group_id, result, error),
            )
        former = member.subscribed_topic_regex
        is_given_up = former not in ("", updated.subscribed_topic_regex)
        if is_given_up and group.num_subscribed_members(former) == 1:
            return status, [tombstone_of_regular_expression(group.group_id, former)]
        return status, []

    def _to_be_resolved(
        self, group: ConsumerGroup, member: ConsumerGroupMember, updated: ConsumerGroupMember
    ) -> frozenset[str]:
        """All regular expressions of the group after the heartbeat; none if they are not due."""
        is_new = _is_new(group, member, updated)
        resolved = group.resolved_regular_expressions()
        if not (is_new or group.subscribed_regular_expressions()):
            return frozenset()
        if self._executor.is_scheduled(resolution_key(group.group_id)):
            return frozenset()
        now_ms = self._clock.milliseconds()
        last = next(iter(resolved.values()), None)  # all were resolved together
        if last and now_ms <= last.timestamp + REGEX_BATCH_REFRESH_MIN_INTERVAL_MS:
            return frozenset()
        subscribed = group.subscribed_regular_expressions(updated)
        is_due = (
            is_new
            or last is None
            or len(subscribed) != len(resolved)
            or last.version < self._last_version_with_new_topics
            or now_ms > last.timestamp + self._config.regex_refresh_interval_ms
        )
        return subscribed if is_due else frozenset()

    # ---- results -----------------------------------------------------------------------------

    def _resolve(self, regexes: Collection[str]) -> ResolvedRegularExpressions:
        """By the topics that there are when the executor comes to it."""
        names, now_ms = self._topics.topic_names(), self._clock.milliseconds()
        return resolve_regular_expressions(regexes, names, self._topics.version, now_ms)

    def _handle_result(
        self, group_id: str, result: ResolvedRegularExpressions, error: Exception | None
    ) -> CoordinatorResult:
        """The group is another one if they match other topics. A failure changes nothing."""
        group = self._group_of(group_id)
        if group is None or error is not None:
            return CoordinatorResult()
        former = group.resolved_regular_expressions()
        read = {regex: one for regex, one in result.items() if group.num_subscribed_members(regex)}
        records = [new_regular_expression_record(group_id, *item) for item in read.items()]
        of_topics = metadata_hash(group.members().values(), {**former, **read}, self._topics)
        match_others = any(
            one.topics != (former[regex].topics if regex in former else frozenset())
            for regex, one in read.items()
        )
        if match_others or of_topics != group.metadata().metadata_hash:
            epoch = group.group_epoch + 1
            records.append(new_consumer_group_epoch_record(group_id, epoch, of_topics))
            group.has_metadata_expired = False
        return CoordinatorResult(tuple(records))


def resolution_key(group_id: str) -> str:
    """Of the group's task at the executor."""
    return f"{group_id}-regex"


def _is_new(
    group: ConsumerGroup, member: ConsumerGroupMember, updated: ConsumerGroupMember
) -> bool:
    """Whether the heartbeat brings a regular expression that nobody in the group has."""
    regex = updated.subscribed_topic_regex
    is_another = regex not in ("", member.subscribed_topic_regex)
    return is_another and not group.num_subscribed_members(regex)


def _status_of(
    group: ConsumerGroup, member: ConsumerGroupMember, updated: ConsumerGroupMember
) -> UpdateRegularExpressionStatus:
    regex = updated.subscribed_topic_regex
    if regex == member.subscribed_topic_regex:
        return UpdateRegularExpressionStatus.NO_CHANGE
    if not regex:  # what is left of its subscription is known (KAFKA-19891)
        return UpdateRegularExpressionStatus.REGEX_UPDATED_AND_RESOLVED
    if _is_new(group, member, updated):
        throw_if_regular_expression_is_invalid(regex)
    if regex in group.resolved_regular_expressions():
        return UpdateRegularExpressionStatus.REGEX_UPDATED_AND_RESOLVED
    return UpdateRegularExpressionStatus.REGEX_UPDATED
