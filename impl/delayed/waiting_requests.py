"""A broker's requests that may wait: Fetch, Produce and DeleteRecords with their purgatories.

Source: the purgatories of ReplicaManager (fetchMessages, appendRecords, deleteRecords).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ..clock import Clock
from ..concurrency import Concurrency
from ..errors import ApiException, Errors
from ..metrics import Meter, MetricName, MetricsRegistry
from ..network import FetchRequest, FetchResponse
from ..partition import ACKS_ALL, FetchParams
from ..purgatory.action_queue import ActionQueue, Actions
from ..purgatory.delayed_operation_purgatory import DEFAULT_SHARDS, DelayedOperationPurgatory
from ..purgatory.system_timer import SystemTimer
from ..purgatory.timer_task import Timer
from ..purgatory.watchers import OperationT
from ..records import MemoryRecords
from ..replica_manager import ReplicaManager, fetch_params
from ..scheduler import Scheduler
from ..types import FetchPartitionRequest, TopicPartition
from .delayed_delete_records import (
    DelayedDeleteRecords,
    DeleteRecordsCallback,
    DeleteRecordsPartitionResponse,
    DeleteRecordsPartitionStatus,
)
from .delayed_fetch import (
    DelayedFetch,
    FetchCallback,
    FetchPartitionStatus,
    FetchWait,
)
from .delayed_produce import (
    DelayedProduce,
    ProduceCallback,
    ProducePartitionResponse,
    ProducePartitionStatus,
)

_FETCH_PURGE_INTERVAL = 1000
_DELETE_PURGE_INTERVAL = 1


class WaitingRequests:
    """Answers through callbacks, at once or later. One for each broker.

    The replica manager tells `try_complete_delayed_requests` of every change of a partition.
    With real threads the purgatories have reapers and executors of their own; a single caller
    gives an `executor`, moves its clock and calls `advance_clock`, or gives the `timers` and the
    `actions` that it steps itself.
    """

    def __init__(
        self,
        clock: Clock,
        concurrency: Concurrency,
        metrics: MetricsRegistry,
        *,
        broker_id: int = 0,
        executor: Scheduler | None = None,
        timers: Callable[[str], Timer] | None = None,
        actions: Actions | None = None,
        shards: int = DEFAULT_SHARDS,
    ) -> None:
        self._clock = clock
        self._concurrency = concurrency
        self._metrics = metrics
        self._broker_id = broker_id
        self._is_stepped = executor is not None or timers is not None
        self._timers = timers or (
            lambda name: SystemTimer(name, clock, concurrency, executor=executor)
        )
        self._actions: Actions = actions or ActionQueue(concurrency)
        self._shards = shards
        self._fetch: DelayedOperationPurgatory[DelayedFetch] = self._purgatory("Fetch")
        self._produce: DelayedOperationPurgatory[DelayedProduce] = self._purgatory("Produce")
        self._delete_records: DelayedOperationPurgatory[DelayedDeleteRecords] = self._purgatory(
            "DeleteRecords", _DELETE_PURGE_INTERVAL
        )
        self._expired_produces = metrics.new_meter(
            MetricName("DelayedProduceMetrics", "ExpiresPerSec")
        )
        self._expired_fetches: dict[bool, Meter] = {
            is_follower: metrics.new_meter(
                MetricName("DelayedFetchMetrics", "ExpiresPerSec", (("fetcherType", fetcher),))
            )
            for is_follower, fetcher in ((True, "follower"), (False, "consumer"))
        }

    def _purgatory(
        self, name: str, purge_interval: int = _FETCH_PURGE_INTERVAL
    ) -> DelayedOperationPurgatory[OperationT]:
        return DelayedOperationPurgatory(
            name,
            self._timers(name),
            self._concurrency,
            broker_id=self._broker_id,
            purge_interval=purge_interval,
            shards=self._shards,
            reaper_enabled=not self._is_stepped,
            metrics=self._metrics,
        )

    # ---- requests --------------------------------------------------------------------------

    def handle_fetch(
        self,
        replicas: ReplicaManager,
        request: FetchRequest,
        respond: Callable[[FetchResponse], None],
    ) -> None:
        """Answer a Fetch request of a follower or a client in its session, at once or later."""
        context = replicas.new_fetch_context(request)
        if isinstance(context, Errors):
            respond(FetchResponse({}, context))
            return
        wait = FetchWait(request.max_wait_ms, request.min_bytes, request.max_bytes)
        self.fetch_messages(
            replicas,
            fetch_params(request),
            wait,
            context.partitions,
            lambda answer: respond(context.respond(answer)),
        )

    def fetch_messages(
        self,
        replicas: ReplicaManager,
        params: FetchParams,
        wait: FetchWait,
        partitions: Mapping[TopicPartition, FetchPartitionRequest],
        callback: FetchCallback,
    ) -> None:
        """Answer with what there is, if it is enough or must not wait; else wait for more."""
        reads = replicas.read_partitions(params, partitions, wait.max_bytes)
        answer = {tp: read.data for tp, read in reads.items()}
        size = sum(data.records.size_in_bytes for data in answer.values())
        has_news = any(
            data.error is not Errors.NONE or data.diverging_epoch is not None
            for data in answer.values()
        )
        if wait.max_wait_ms <= 0 or not partitions or size >= wait.min_bytes or has_news:
            callback(answer)
        else:
            statuses = {
                tp: FetchPartitionStatus(reads[tp].fetch_offset_metadata, request)
                for tp, request in partitions.items()
            }
            operation = DelayedFetch(
                params,
                wait,
                statuses,
                replicas,
                callback,
                self._concurrency,
                lambda is_follower: self._expired_fetches[is_follower].mark(),
            )
            self._fetch.try_complete_else_watch(operation, list(partitions))
        self._actions.try_complete_actions()

    def append_records(
        self,
        replicas: ReplicaManager,
        timeout_ms: int,
        required_acks: int,
        entries: Mapping[TopicPartition, MemoryRecords],
        callback: ProduceCallback,
    ) -> None:
        """Append to the logs that this broker leads; with acks=all wait for the replicas.

        INVALID_REQUIRED_ACKS for acks other than -1, 0 and 1, without any append.
        """
        if required_acks not in (ACKS_ALL, 0, 1):
            invalid = ProducePartitionResponse(Errors.INVALID_REQUIRED_ACKS)
            callback(dict.fromkeys(entries, invalid))
            return
        statuses = {
            tp: self._append(replicas, tp, records, required_acks)
            for tp, records in entries.items()
        }
        appended = [tp for tp, each in statuses.items() if each.response.error is Errors.NONE]
        for topic_partition in appended:
            self._actions.add(partial(self.try_complete_delayed_requests, topic_partition))
        if required_acks == ACKS_ALL and appended:
            operation = DelayedProduce(
                timeout_ms,
                statuses,
                replicas,
                callback,
                self._concurrency,
                lambda _: self._expired_produces.mark(),
            )
            self._produce.try_complete_else_watch(operation, list(entries))
        else:
            callback({tp: status.response for tp, status in statuses.items()})
        self._actions.try_complete_actions()

    def _append(
        self,
        replicas: ReplicaManager,
        topic_partition: TopicPartition,
        records: MemoryRecords,
        required_acks: int,
    ) -> ProducePartitionStatus:
        try:
            info = replicas.append_records(topic_partition, records, required_acks)
        except ApiException as error:
            return ProducePartitionStatus(-1, ProducePartitionResponse(error.error))
        response = ProducePartitionResponse(Errors.NONE, info.first_offset, info.log_start_offset)
        return ProducePartitionStatus(info.last_offset + 1, response)

    def delete_records(
        self,
        replicas: ReplicaManager,
        timeout_ms: int,
        offsets: Mapping[TopicPartition, int],
        callback: DeleteRecordsCallback,
    ) -> None:
        """Move log starts forward, and wait until the live replicas have done so."""
        statuses = {tp: self._delete(replicas, tp, offset) for tp, offset in offsets.items()}
        lagging = any(
            status.response.error is Errors.NONE
            and status.response.low_watermark < status.required_offset
            for status in statuses.values()
        )
        if not lagging:
            callback({tp: status.response for tp, status in statuses.items()})
            return
        operation = DelayedDeleteRecords(
            timeout_ms, statuses, replicas, callback, self._concurrency
        )
        self._delete_records.try_complete_else_watch(operation, list(offsets))

    def _delete(
        self, replicas: ReplicaManager, topic_partition: TopicPartition, offset: int
    ) -> DeleteRecordsPartitionStatus:
        try:
            partition = replicas.get_partition_or_exception(topic_partition)
            deleted = partition.delete_records(offset)
        except ApiException as error:
            return DeleteRecordsPartitionStatus(-1, DeleteRecordsPartitionResponse(error.error))
        response = DeleteRecordsPartitionResponse(Errors.NONE, deleted.low_watermark)
        return DeleteRecordsPartitionStatus(deleted.requested_offset, response)

    # ---- events ----------------------------------------------------------------------------

    def try_complete_delayed_requests(self, topic_partition: TopicPartition) -> None:
        """An append, a new high watermark or log start, or this broker leads no longer."""
        self._fetch.check_and_complete(topic_partition)
        self._produce.check_and_complete(topic_partition)
        self._delete_records.check_and_complete(topic_partition)

    def advance_clock(self) -> None:
        """Let expire what the clock has passed, for a single caller without reapers."""
        for purgatory in (self._fetch, self._produce, self._delete_records):
            purgatory.advance_clock(0)

    @property
    def num_delayed(self) -> int:
        """How many requests wait."""
        waiting = (self._fetch, self._produce, self._delete_records)
        return sum(purgatory.num_delayed for purgatory in waiting)

    def shutdown(self) -> None:
        """Stop all threads; who waits is not answered, as its connection goes down too."""
        for purgatory in (self._fetch, self._produce, self._delete_records):
            purgatory.shutdown()
