"""Transactions at the port: the coordinator, its log, its markers, and the requests of clients.

What KafkaApis does of them. The coordinator and all partitions are of one broker: what it appends
is replicated at once, and markers are in their partitions before a request is answered.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ..clock import Clock
from ..concurrency import NoConcurrency
from ..disk import MemoryDisk
from ..end_transaction_marker import EndTransactionMarker
from ..errors import ApiException, Errors
from ..group.group_coordinator import GroupCoordinator
from ..group.messages import TxnOffsetCommitRequest
from ..group.offset_handler import CommitCallback, commit_error
from ..group.offsets_topic import GROUP_METADATA_TOPIC_NAME
from ..log import Log
from ..log_loader import load_log
from ..producer_state.producer_append_info import AppendOrigin
from ..producer_state.transactions import SENTINEL
from ..record_format import ProducerInfo, Record
from ..records import MemoryRecords, RecordBatch
from ..scheduler import ImmediateScheduler
from ..transaction.add_partitions_to_txn_manager import (
    AddPartitionsToTxnManager,
    TransactionSupportedOperation,
)
from ..transaction.transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator
from ..transaction.transaction_log import TOPIC
from ..transaction.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
    TxnMarkerEntry,
    WriteTxnMarkers,
)
from ..transaction.transaction_metadata import NO_TIMESTAMP, TxnTransitMetadata
from ..transaction.transaction_state import TransactionState
from ..transaction.transaction_state_manager import (
    AppendCallback,
    TransactionConfig,
    TransactionStateManager,
)
from ..types import LogOffsetMetadata, TopicPartition
from .entities import NO_TIME, Entity, Received, in_milliseconds, make, milliseconds, module_of
from .group_requests import committed_partitions
from .group_responses import code
from .logs import LEADER_EPOCH, PartitionLogs

FIRST_PRODUCER_ID = 1000
SCAN_MS = 10_000
"""transaction.abort.timed.out.transaction.cleanup.interval.ms."""
_OFFSETS = TopicPartition(GROUP_METADATA_TOPIC_NAME, 0)
_PARTITION = 0
_VERSION_1, _VERSION_2 = 0, 2
_ENDS_WITH_EPOCH = 5
"""From this EndTxn version on each end raises the epoch."""
_KNOWS_FENCED = {
    "init_producer_id": 4,
    "add_partitions_to_txn": 2,
    "add_offsets_to_txn": 2,
    "end_txn": 2,
}
"""From these versions on PRODUCER_FENCED is known; INVALID_PRODUCER_EPOCH before."""
_OFFSETS_ADD, _OFFSETS_ABORTABLE = 5, 4
"""From these TxnOffsetCommit versions on the offsets partition is added by the broker;
TRANSACTION_ABORTABLE is known."""
_NOBODY = -1
_EPOCH = datetime.fromtimestamp(0, UTC)

Answer = Callable[[Entity], None]
TxnCommits = Callable[[TxnOffsetCommitRequest, CommitCallback], None]


def _log_of(partition: TopicPartition, clock: Clock) -> Log:
    return load_log(
        partition,
        f"{partition.topic}-{partition.partition}",
        MemoryDisk(),
        ImmediateScheduler(),
        NoConcurrency(),
        clock=clock,
    )


class LocalTransactionLog:
    """`TransactionStateLog` of one partition, whose leader has no followers."""

    def __init__(self, clock: Clock) -> None:
        self._log = _log_of(TopicPartition(TOPIC, _PARTITION), clock)

    def append_records(
        self, _partition: int, records: MemoryRecords, _timeout_ms: int, callback: AppendCallback
    ) -> None:
        """See `TransactionStateLog.append_records`: it is replicated at once."""
        self._log.append_as_leader(records, LEADER_EPOCH, AppendOrigin.COORDINATOR)
        self._log.maybe_increment_high_watermark(LogOffsetMetadata(self._log.log_end_offset))
        callback(Errors.NONE)

    def log(self, _partition: int) -> Log:
        """See `TransactionStateLog.log`."""
        return self._log


class Transactions:
    """Handlers of a broker; `find` gives a partition that exists, or the error."""

    def __init__(
        self,
        logs: PartitionLogs,
        groups: GroupCoordinator,
        find: Callable[[Any, int], TopicPartition | Errors],
        is_there: Callable[[TopicPartition], bool],
        clock: Clock,
        transaction_version: int,
    ) -> None:
        self._logs = logs
        self._groups = groups
        self._find = find
        self._clock = clock
        self._offsets_producers = _log_of(_OFFSETS, clock)
        """The producers of the groups' offsets: the coordinator's own log knows none."""
        self._scanned_at = clock.milliseconds()
        scheduler = ImmediateScheduler()
        state_manager = TransactionStateManager(
            LocalTransactionLog(clock),
            scheduler,
            NoConcurrency(),
            clock,
            TransactionConfig(transaction_version, num_partitions=1),
        )
        self._channel = TransactionMarkerChannelManager(
            state_manager,
            lambda partition: 0 if partition == _OFFSETS or is_there(partition) else None,
            scheduler,
            NoConcurrency(),
        )
        producer_ids = itertools.count(FIRST_PRODUCER_ID)
        self.coordinator = TransactionCoordinator(
            state_manager, self._channel, lambda: next(producer_ids), scheduler, clock
        )
        self.add_partitions = AddPartitionsToTxnManager(self.coordinator)
        self.coordinator.on_election(_PARTITION, LEADER_EPOCH)

    def expire_due(self) -> None:
        """Abort what has taken too long, as often as a broker looks for it."""
        now = self._clock.milliseconds()
        if now - self._scanned_at >= SCAN_MS:
            self._scanned_at = now
            self.coordinator.abort_timed_out_transactions()
            self._send_markers()

    # ---- producer ids ----------------------------------------------------------------------

    def init_producer_id(self, received: Received, _host: str, answer: Answer) -> None:
        """A producer id and an epoch of its own."""
        body = received.body
        module = module_of("init_producer_id", received.version, "response")

        answered = _with_epoch(module.InitProducerIdResponse, received, answer)
        expected_id = getattr(body, "producer_id", _NOBODY)
        expected_epoch = getattr(body, "producer_epoch", _NOBODY)
        if (expected_id == _NOBODY) != (expected_epoch == _NOBODY):
            answered(Errors.INVALID_REQUEST, _NOBODY, _NOBODY)
            return
        expected = ProducerIdAndEpoch(expected_id, expected_epoch)
        self.coordinator.handle_init_producer_id(
            body.transactional_id,
            in_milliseconds(body.transaction_timeout),
            answered,
            None if expected_id == _NOBODY else expected,
        )
        self._send_markers()

    # ---- partitions of a transaction -------------------------------------------------------

    def add_partitions_to_txn(self, received: Received) -> Entity:
        """Of a client: an unknown partition keeps the others out."""
        body = received.body
        topics = body.v3_and_below_topics
        errors = {
            (topic.name, index): self._find(topic, index)
            for topic in topics
            for index in topic.partitions
        }
        unknown = [error for error in errors.values() if isinstance(error, Errors)]
        added = self._added(
            body.v3_and_below_transactional_id,
            ProducerIdAndEpoch(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch),
            frozenset(each for each in errors.values() if not isinstance(each, Errors)),
            nothing=bool(unknown),
        )
        module = module_of("add_partitions_to_txn", received.version, "response")

        def result(topic: Any, index: int) -> Entity:
            error = errors[topic.name, index]
            error = error if isinstance(error, Errors) else _as_known(added, received)
            return module.AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=code(error)
            )

        return make(
            module.AddPartitionsToTxnResponse,
            throttle_time=NO_TIME,
            results_by_topic_v3_and_below=tuple(
                module.AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=tuple(result(topic, index) for index in topic.partitions),
                )
                for topic in topics
            ),
        )

    def add_offsets_to_txn(self, received: Received) -> Entity:
        """The offsets partition of a group."""
        body = received.body
        error = Errors.INVALID_GROUP_ID
        if body.group_id:
            error = self._added(
                body.transactional_id,
                ProducerIdAndEpoch(body.producer_id, body.producer_epoch),
                frozenset({_OFFSETS}),
            )
        return make(
            module_of("add_offsets_to_txn", received.version, "response").AddOffsetsToTxnResponse,
            throttle_time=NO_TIME,
            error_code=code(_as_known(error, received)),
        )

    def _added(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        nothing: bool = False,
    ) -> Errors:
        if nothing:
            return Errors.OPERATION_NOT_ATTEMPTED
        answers: list[Errors] = []
        self.coordinator.handle_add_partitions_to_transaction(
            transactional_id, producer, partitions, _VERSION_1, answers.append
        )
        (error,) = answers
        return error

    def txn_offset_commit(self, received: Received, commit: TxnCommits, answer: Answer) -> None:
        """Positions that show once the transaction is committed."""
        module = module_of("txn_offset_commit", received.version, "response")
        request = _offsets_of(received)

        def answered(response: Any) -> None:
            errors = {one.topic_partition: one.error_code for one in response.partitions}
            topics = tuple(
                module.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        module.TxnOffsetCommitResponsePartition(
                            partition_index=one.partition_index,
                            error_code=code(
                                errors[TopicPartition(topic.name, one.partition_index)]
                            ),
                        )
                        for one in topic.partitions
                    ),
                )
                for topic in received.body.topics
            )
            answer(make(module.TxnOffsetCommitResponse, throttle_time=NO_TIME, topics=topics))

        error = self._appended(request, received.version)
        if error is Errors.NONE:
            commit(request, answered)
        else:
            answered(commit_error(request.partitions, error))

    def _appended(self, request: TxnOffsetCommitRequest, version: int) -> Errors:
        """Note the producer, as a transactional write of the coordinator does it (no sequence)."""
        if not request.group_id:
            return Errors.INVALID_GROUP_ID
        producer_id, epoch = request.producer_id, request.producer_epoch
        log, operation = self._offsets_producers, _operation(version)
        adds = operation is TransactionSupportedOperation.ADD_PARTITION
        try:
            guard = log.maybe_start_transaction_verification(producer_id, _NOBODY, epoch, adds)
            if guard is not SENTINEL:
                error = self.add_partitions.add_or_verify_transaction(
                    request.transactional_id,
                    ProducerIdAndEpoch(producer_id, epoch),
                    _OFFSETS,
                    operation,
                )
                # as clients of a coordinator understand it
                if error is Errors.NOT_ENOUGH_REPLICAS:
                    return Errors.COORDINATOR_NOT_AVAILABLE
                if error is not Errors.NONE:
                    return error
            batch = RecordBatch.create(
                (Record(request.group_id.encode()),),
                producer=ProducerInfo(producer_id, epoch, 0),
                is_transactional=True,
            )
            log.append_as_leader(
                MemoryRecords((batch,)),
                LEADER_EPOCH,
                AppendOrigin.COORDINATOR,
                verification_guard=guard,
            )
        except ApiException as raised:
            return raised.error
        return Errors.NONE

    # ---- ends ------------------------------------------------------------------------------

    def end_txn(self, received: Received, _host: str, answer: Answer) -> None:
        """Commit or abort; the version says by which rules."""
        body = received.body
        bumps = received.version >= _ENDS_WITH_EPOCH
        module = module_of("end_txn", received.version, "response")

        self.coordinator.handle_end_transaction(
            body.transactional_id,
            ProducerIdAndEpoch(body.producer_id, body.producer_epoch),
            body.committed,
            _VERSION_2 if bumps else _VERSION_1,
            _with_epoch(module.EndTxnResponse, received, answer),
        )
        self._send_markers()

    def _send_markers(self) -> None:
        """Until nothing is queued: all leaders are here."""
        while requests := self._channel.generate_requests():
            for request in requests:
                self._channel.on_complete(request, self._written(request))

    def _written(self, request: WriteTxnMarkers) -> Mapping[int, Mapping[TopicPartition, Errors]]:
        return {
            marker.producer_id: {
                partition: self._write(marker, partition) for partition in marker.partitions
            }
            for _, marker in request.entries
        }

    def _write(self, marker: TxnMarkerEntry, partition: TopicPartition) -> Errors:
        records = EndTransactionMarker(marker.is_commit, marker.coordinator_epoch).memory_records(
            self._clock.milliseconds(), marker.producer_id, marker.producer_epoch
        )
        version = marker.transaction_version
        if partition != _OFFSETS:
            return self._logs.write_marker(partition, records, version)
        try:
            self._offsets_producers.append_as_leader(
                records, LEADER_EPOCH, AppendOrigin.COORDINATOR, transaction_version=version
            )
        except ApiException as raised:
            return raised.error
        self._groups.handle_txn_completion(
            marker.producer_id, (partition.partition,), marker.is_commit
        )
        return Errors.NONE

    def write_txn_markers(self, received: Received) -> Entity:
        """Of another broker, or of an administrator (KIP-664): whoever may ask is believed."""
        module = module_of("write_txn_markers", received.version, "response")

        def written(marker: Any, topic: Any, index: int) -> Errors:
            partition = self._find(topic, index)
            if topic.name == _OFFSETS.topic and index == _OFFSETS.partition:
                partition = _OFFSETS
            if isinstance(partition, Errors):
                return partition
            entry = TxnMarkerEntry(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                frozenset({partition}),
                getattr(marker, "transaction_version", _VERSION_1),
            )
            return self._write(entry, partition)

        return make(
            module.WriteTxnMarkersResponse,
            markers=tuple(
                module.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        module.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                module.WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=code(written(marker, topic, index)),
                                )
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in received.body.markers
            ),
        )

    # ---- describe and list -----------------------------------------------------------------

    def describe_transactions(self, received: Received) -> Entity:
        """What is acknowledged of each id."""
        module = module_of("describe_transactions", received.version, "response")
        return make(
            module.DescribeTransactionsResponse,
            throttle_time=NO_TIME,
            transaction_states=tuple(
                self._described(transactional_id, module)
                for transactional_id in received.body.transactional_ids
            ),
        )

    def _described(self, transactional_id: str, module: Any) -> Entity:
        error, state_name = Errors.NONE, ""
        known = TxnTransitMetadata(0, 0, NO_TIMESTAMP, producer_epoch=0, txn_start_timestamp=0)
        try:
            known = self.coordinator.handle_describe_transaction(transactional_id)
            state_name = known.txn_state.state_name
        except ApiException as raised:
            error = raised.error
        topics: dict[str, list[int]] = {}
        for partition in sorted(known.topic_partitions):
            topics.setdefault(partition.topic, []).append(partition.partition)
        return make(
            module.TransactionState,
            error_code=code(error),
            transactional_id=transactional_id,
            transaction_state=state_name,
            transaction_timeout=milliseconds(known.txn_timeout_ms),
            transaction_start_time=_EPOCH + timedelta(milliseconds=known.txn_start_timestamp),
            producer_id=known.producer_id,
            producer_epoch=known.producer_epoch,
            topics=tuple(
                module.TopicData(topic=name, partitions=tuple(indexes))
                for name, indexes in topics.items()
            ),
        )

    def list_transactions(self, received: Received) -> Entity:
        """The ids that pass the filters."""
        body = received.body
        module = module_of("list_transactions", received.version, "response")
        names = {state.state_name for state in TransactionState}
        error, listed = Errors.NONE, dict[str, TxnTransitMetadata]()
        try:
            pattern = re.compile(getattr(body, "transactional_id_pattern", None) or ".*", re.DOTALL)
            listed = {
                transactional_id: known
                for transactional_id, known in self.coordinator.handle_list_transactions().items()
                if pattern.fullmatch(transactional_id) and self._passes(known, body)
            }
        except re.error:
            error = Errors.INVALID_REGULAR_EXPRESSION
        except ApiException as raised:
            error = raised.error
        return make(
            module.ListTransactionsResponse,
            throttle_time=NO_TIME,
            error_code=code(error),
            unknown_state_filters=tuple(name for name in body.state_filters if name not in names),
            transaction_states=tuple(
                module.TransactionState(
                    transactional_id=transactional_id,
                    producer_id=known.producer_id,
                    transaction_state=known.txn_state.state_name,
                )
                for transactional_id, known in listed.items()
            ),
        )

    def _passes(self, known: TxnTransitMetadata, body: Any) -> bool:
        ids, states = body.producer_id_filters, body.state_filters
        longest = getattr(body, "duration_filter", _NOBODY)
        lasted = self._clock.milliseconds() - known.txn_start_timestamp
        return (
            (not ids or known.producer_id in ids)
            and (not states or known.txn_state.state_name in states)
            and (longest < 0 or lasted > longest)
        )


def _as_known(error: Errors, received: Received) -> Errors:
    """An error as a client of this version knows it."""
    is_known = received.version >= _KNOWS_FENCED[received.api]
    return (
        Errors.INVALID_PRODUCER_EPOCH if error is Errors.PRODUCER_FENCED and not is_known else error
    )


def _with_epoch(
    kind: Any, received: Received, answer: Answer
) -> Callable[[Errors, int, int], None]:
    """Answers with an error, a producer id and an epoch, in a response of this kind."""

    def answered(error: Errors, producer_id: int, epoch: int) -> None:
        answer(
            make(
                kind,
                throttle_time=NO_TIME,
                error_code=code(_as_known(error, received)),
                producer_id=producer_id,
                producer_epoch=epoch,
            )
        )

    return answered


def _operation(version: int) -> TransactionSupportedOperation:
    if version >= _OFFSETS_ADD:
        return TransactionSupportedOperation.ADD_PARTITION
    if version >= _OFFSETS_ABORTABLE:
        return TransactionSupportedOperation.GENERIC_ERROR_SUPPORTED
    return TransactionSupportedOperation.DEFAULT_ERROR


def _offsets_of(received: Received) -> TxnOffsetCommitRequest:
    body = received.body
    return TxnOffsetCommitRequest(
        body.group_id,
        committed_partitions(body),
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        getattr(body, "generation_id", _NOBODY),
        getattr(body, "member_id", ""),
        getattr(body, "group_instance_id", None),
    )
