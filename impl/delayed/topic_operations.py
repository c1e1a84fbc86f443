"""Topic creations and deletions that wait for this broker to hear of them.

Source: DelayedCreatePartitions, DelayedDeleteTopics, ZkAdminManager's topic purgatory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..concurrency import Concurrency
from ..errors import Errors
from ..purgatory.delayed_operation import DelayedOperation
from ..purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from ..types import TopicPartition

TopicCallback = Callable[[dict[str, Errors]], None]


class TopicMetadata(Protocol):
    """What this broker knows of topics (MetadataCache)."""

    def contains(self, topic: str, /) -> bool:
        """Whether the topic is known here."""

    def has_leader(self, topic_partition: TopicPartition, /) -> bool:
        """Whether a leader of the partition is known here."""


@dataclass(frozen=True, slots=True)
class CreatePartitionsMetadata:
    """A topic whose partitions the controller has been asked to create, and how that went."""

    topic: str
    partitions: frozenset[int]
    error: Errors = Errors.NONE


class DelayedCreatePartitions(DelayedOperation):
    """Answered once every new partition has a leader that this broker knows."""

    __slots__ = ("_callback", "_created", "_metadata")

    def __init__(
        self,
        timeout_ms: int,
        created: tuple[CreatePartitionsMetadata, ...],
        metadata: TopicMetadata,
        callback: TopicCallback,
        concurrency: Concurrency,
    ) -> None:
        super().__init__(timeout_ms, concurrency, name="delayed create partitions")
        self._created = created
        self._metadata = metadata
        self._callback = callback

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`; what failed at once is not waited for."""
        waits = any(self._is_leaderless(each) for each in self._created)
        return not waits and self.force_complete()

    def _is_leaderless(self, created: CreatePartitionsMetadata) -> bool:
        return created.error is Errors.NONE and not all(
            self._metadata.has_leader(TopicPartition(created.topic, partition))
            for partition in created.partitions
        )

    def on_complete(self) -> None:
        """A topic with a partition that still has no leader has timed out."""
        self._callback(
            {
                each.topic: Errors.REQUEST_TIMED_OUT if self._is_leaderless(each) else each.error
                for each in self._created
            }
        )


class DelayedDeleteTopics(DelayedOperation):
    """Answered once this broker knows none of the topics any more."""

    __slots__ = ("_callback", "_deleted", "_metadata")

    def __init__(
        self,
        timeout_ms: int,
        deleted: Mapping[str, Errors],
        metadata: TopicMetadata,
        callback: TopicCallback,
        concurrency: Concurrency,
    ) -> None:
        super().__init__(timeout_ms, concurrency, name="delayed delete topics")
        self._deleted = deleted
        self._metadata = metadata
        self._callback = callback

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`; what failed at once is not waited for."""
        waits = any(self._is_there(topic) for topic in self._deleted)
        return not waits and self.force_complete()

    def _is_there(self, topic: str) -> bool:
        return self._deleted[topic] is Errors.NONE and self._metadata.contains(topic)

    def on_complete(self) -> None:
        """A topic that is still there has timed out."""
        self._callback(
            {
                topic: Errors.REQUEST_TIMED_OUT if self._is_there(topic) else error
                for topic, error in self._deleted.items()
            }
        )


class TopicRequests:
    """The topic purgatory of a broker: requests to create or delete wait in it by topic."""

    def __init__(
        self,
        metadata: TopicMetadata,
        purgatory: DelayedOperationPurgatory[DelayedOperation],
        concurrency: Concurrency,
    ) -> None:
        self._metadata = metadata
        self._purgatory = purgatory
        self._concurrency = concurrency

    def create_partitions(
        self,
        timeout_ms: int,
        created: tuple[CreatePartitionsMetadata, ...],
        callback: TopicCallback,
    ) -> None:
        """Answer once the controller's creations are known here, or the time is over.

        Without a time-out, or if nothing was created, at once: the error then is
        REQUEST_TIMED_OUT where a creation went well.
        """
        if timeout_ms <= 0 or all(each.error is not Errors.NONE for each in created):
            callback({each.topic: _at_once(each.error) for each in created})
            return
        operation = DelayedCreatePartitions(
            timeout_ms, created, self._metadata, callback, self._concurrency
        )
        self._purgatory.try_complete_else_watch(operation, [each.topic for each in created])

    def delete_topics(
        self, timeout_ms: int, deleted: Mapping[str, Errors], callback: TopicCallback
    ) -> None:
        """Answer once the deletions are known here, or the time is over; as for creations."""
        if timeout_ms <= 0 or all(error is not Errors.NONE for error in deleted.values()):
            callback({topic: _at_once(error) for topic, error in deleted.items()})
            return
        operation = DelayedDeleteTopics(
            timeout_ms, deleted, self._metadata, callback, self._concurrency
        )
        self._purgatory.try_complete_else_watch(operation, list(deleted))

    def try_complete_delayed_topic_operations(self, topic: str) -> int:
        """This broker has heard something of the topic."""
        return self._purgatory.check_and_complete(topic)


def _at_once(error: Errors) -> Errors:
    return Errors.REQUEST_TIMED_OUT if error is Errors.NONE else error
