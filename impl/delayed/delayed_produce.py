"""A produce with acks=all that waits for its replicas (DelayedProduce)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ..concurrency import Concurrency
from ..errors import ApiException, Errors
from ..partition import Partition
from ..purgatory.delayed_operation import DelayedOperation
from ..types import UNKNOWN_OFFSET, TopicPartition


@dataclass(frozen=True, slots=True)
class ProducePartitionResponse:
    """One partition of a Produce answer."""

    error: Errors
    base_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET


@dataclass(frozen=True, slots=True)
class ProducePartitionStatus:
    """One partition after the local append; `required_offset` is what all have to reach."""

    required_offset: int
    response: ProducePartitionResponse


ProduceCallback = Callable[[dict[TopicPartition, ProducePartitionResponse]], None]


class ProducedReplicas(Protocol):
    """What a waiting produce needs of the replica manager."""

    def get_partition_or_exception(self, topic_partition: TopicPartition, /) -> Partition:
        """The partition. Raises `UnknownTopicOrPartitionException`."""


class DelayedProduce(DelayedOperation):
    """Answered once no partition waits for acknowledgements; those that still do at its time-out
    are answered REQUEST_TIMED_OUT, and `on_expired` is told each of them.
    """

    __slots__ = ("_callback", "_on_expired", "_pending", "_replicas", "_responses")

    def __init__(
        self,
        timeout_ms: int,
        statuses: Mapping[TopicPartition, ProducePartitionStatus],
        replicas: ProducedReplicas,
        callback: ProduceCallback,
        concurrency: Concurrency,
        on_expired: Callable[[TopicPartition], None] = lambda _: None,
    ) -> None:
        super().__init__(timeout_ms, concurrency, name="delayed produce")
        self._replicas = replicas
        self._callback = callback
        self._on_expired = on_expired
        self._pending = {
            tp: status.required_offset
            for tp, status in statuses.items()
            if status.response.error is Errors.NONE
        }
        self._responses = {
            tp: replace(status.response, error=Errors.REQUEST_TIMED_OUT)
            if tp in self._pending
            else status.response
            for tp, status in statuses.items()
        }

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`."""
        for topic_partition, required_offset in tuple(self._pending.items()):
            decided = self._decided(topic_partition, required_offset)
            if decided is not None:
                self._responses[topic_partition] = replace(
                    self._responses[topic_partition], error=decided
                )
                del self._pending[topic_partition]
        return not self._pending and self.force_complete()

    def _decided(self, topic_partition: TopicPartition, required_offset: int) -> Errors | None:
        """How the partition is answered, None while its replicas have not got there."""
        try:
            partition = self._replicas.get_partition_or_exception(topic_partition)
        except ApiException as error:
            return error.error
        return partition.check_enough_replicas_reach_offset(required_offset)

    def on_expiration(self) -> None:
        """See `DelayedOperation.on_expiration`."""
        for topic_partition in self._pending:
            self._on_expired(topic_partition)

    def on_complete(self) -> None:
        """See `DelayedOperation.on_complete`."""
        self._callback(dict(self._responses))
