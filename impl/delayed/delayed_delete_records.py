"""A DeleteRecords that waits until every live replica has deleted (DelayedDeleteRecords)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..concurrency import Concurrency
from ..errors import ApiException, Errors
from ..purgatory.delayed_operation import DelayedOperation
from ..types import UNKNOWN_OFFSET, TopicPartition
from .delayed_produce import ProducedReplicas


@dataclass(frozen=True, slots=True)
class DeleteRecordsPartitionResponse:
    """One partition of a DeleteRecords answer."""

    error: Errors
    low_watermark: int = UNKNOWN_OFFSET


@dataclass(frozen=True, slots=True)
class DeleteRecordsPartitionStatus:
    """One partition after the leader has deleted up to `required_offset`."""

    required_offset: int
    response: DeleteRecordsPartitionResponse


DeleteRecordsCallback = Callable[[dict[TopicPartition, DeleteRecordsPartitionResponse]], None]


class DelayedDeleteRecords(DelayedOperation):
    """Answered once the low watermark of each partition has reached what was asked for."""

    __slots__ = ("_callback", "_pending", "_replicas", "_responses")

    def __init__(
        self,
        timeout_ms: int,
        statuses: Mapping[TopicPartition, DeleteRecordsPartitionStatus],
        replicas: ProducedReplicas,
        callback: DeleteRecordsCallback,
        concurrency: Concurrency,
    ) -> None:
        super().__init__(timeout_ms, concurrency, name="delayed delete records")
        self._replicas = replicas
        self._callback = callback
        self._pending = {
            tp: status.required_offset
            for tp, status in statuses.items()
            if status.response.error is Errors.NONE
        }
        self._responses = {
            tp: DeleteRecordsPartitionResponse(
                Errors.REQUEST_TIMED_OUT, status.response.low_watermark
            )
            if tp in self._pending
            else status.response
            for tp, status in statuses.items()
        }

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`."""
        for topic_partition, required_offset in tuple(self._pending.items()):
            response = self._look_at(topic_partition, required_offset)
            if response.error is not Errors.REQUEST_TIMED_OUT:
                del self._pending[topic_partition]
            self._responses[topic_partition] = response
        return not self._pending and self.force_complete()

    def _look_at(
        self, topic_partition: TopicPartition, required_offset: int
    ) -> DeleteRecordsPartitionResponse:
        """What is answered as it stands now: REQUEST_TIMED_OUT while replicas lag behind."""
        try:
            partition = self._replicas.get_partition_or_exception(topic_partition)
            low_watermark = partition.low_watermark_of_leader()
        except ApiException as error:
            return DeleteRecordsPartitionResponse(error.error)
        reached = low_watermark >= required_offset
        return DeleteRecordsPartitionResponse(
            Errors.NONE if reached else Errors.REQUEST_TIMED_OUT, low_watermark
        )

    def on_complete(self) -> None:
        """See `DelayedOperation.on_complete`."""
        self._callback(dict(self._responses))
