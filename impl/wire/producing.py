"""Requests of producers, and what is kept of them: Produce, DescribeProducers, DeleteRecords.

What KafkaApis and ReplicaManager do of them for partitions with one replica.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..errors import ApiException, Errors
from ..log import Log
from ..producer_state.producer_state_entry import ProducerStateEntry
from ..producer_state.transactions import SENTINEL, VerificationGuard
from ..records import RecordBatch, decode_batches
from ..transaction.add_partitions_to_txn_manager import (
    AddPartitionsToTxnManager,
    TransactionSupportedOperation,
)
from ..transaction.transaction_coordinator import ProducerIdAndEpoch
from ..types import TopicPartition
from .entities import NO_TIME, Entity, Received, make, module_of
from .group_responses import code
from .logs import PartitionLogs

_ACKS = (-1, 0, 1)
_NO_ANSWER = 0
"""The acks of a producer that waits for no answer."""
_NOTHING = -1
_ADDS, _IS_ABORTABLE = 12, 11
"""From these Produce versions on the leader adds the partition; TRANSACTION_ABORTABLE is known."""


class Producing:
    """Handlers of a broker; `find` gives a partition that exists, or the error."""

    def __init__(
        self,
        logs: PartitionLogs,
        find: Callable[[Any, int], TopicPartition | Errors],
        add_partitions: AddPartitionsToTxnManager,
    ) -> None:
        self._logs = logs
        self._find = find
        self._add_partitions = add_partitions

    def produce(self, received: Received) -> Entity | None:
        """Append to each partition by itself; no answer where none is waited for."""
        module = module_of("produce", received.version, "response")
        body = received.body
        refused = _refusal(body)
        topics = tuple(
            make(
                module.TopicProduceResponse,
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partition_responses=tuple(
                    self._append(topic, asked, received, refused) for asked in topic.partition_data
                ),
            )
            for topic in received.body.topic_data
        )
        if body.acks == _NO_ANSWER:
            return None
        return make(module.ProduceResponse, throttle_time=NO_TIME, responses=topics)

    def _append(self, topic: Any, asked: Any, received: Received, refused: Errors) -> Entity:
        module = module_of("produce", received.version, "response")
        error, offset = (
            (refused, _NOTHING)
            if refused is not Errors.NONE
            else self._appended(self._find(topic, asked.index), asked, received)
        )
        return make(
            module.PartitionProduceResponse,
            index=asked.index,
            error_code=code(error),
            base_offset=offset,
            log_append_time=None,
            log_start_offset=0,
            record_errors=(),
            error_message=None,
        )

    def _appended(
        self, partition: TopicPartition | Errors, asked: Any, received: Received
    ) -> tuple[Errors, int]:
        if isinstance(partition, Errors):
            return partition, _NOTHING
        if received.body.acks not in _ACKS:
            return Errors.INVALID_REQUIRED_ACKS, _NOTHING

        def guard_of(log: Log, batch: RecordBatch) -> VerificationGuard:
            return self._guard(log, batch, partition, received)

        return self._logs.append(partition, bytes(asked.records or b""), guard_of)

    def _guard(
        self, log: Log, batch: RecordBatch, partition: TopicPartition, received: Received
    ) -> VerificationGuard:
        """Ask the coordinator where nothing is open yet (ReplicaManager.handleProduceAppend)."""
        transactional_id = received.body.transactional_id
        if transactional_id is None or not batch.is_transactional:
            return SENTINEL
        producer_id, epoch, sequence = batch.producer
        guard = log.maybe_start_transaction_verification(
            producer_id, sequence, epoch, received.version >= _ADDS
        )
        if guard is SENTINEL:
            return guard
        error = self._add_partitions.add_or_verify_transaction(
            transactional_id,
            ProducerIdAndEpoch(producer_id, epoch),
            partition,
            _operation(received.version),
        )
        if error is not Errors.NONE:
            raise error.exception()
        return guard

    def delete_records(self, received: Received) -> Entity:
        """Raise the log start of each partition."""
        module = module_of("delete_records", received.version, "response")
        topics = tuple(
            module.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(self._deleted(topic, one, module) for one in topic.partitions),
            )
            for topic in received.body.topics
        )
        return make(module.DeleteRecordsResponse, throttle_time=NO_TIME, topics=topics)

    def _deleted(self, topic: Any, asked: Any, module: Any) -> Entity:
        partition = self._find(topic, asked.partition_index)
        error, start = (
            (partition, _NOTHING)
            if isinstance(partition, Errors)
            else self._logs.delete_records(partition, asked.offset)
        )
        return make(
            module.DeleteRecordsPartitionResult,
            partition_index=asked.partition_index,
            low_watermark=start,
            error_code=code(error),
        )

    def describe_producers(self, received: Received) -> Entity:
        """What each partition remembers of its producers."""
        module = module_of("describe_producers", received.version, "response")
        topics = tuple(
            make(
                module.TopicResponse,
                name=topic.name,
                partitions=tuple(
                    self._described(topic, index, module) for index in topic.partition_indexes
                ),
            )
            for topic in received.body.topics
        )
        return make(module.DescribeProducersResponse, throttle_time=NO_TIME, topics=topics)

    def _described(self, topic: Any, index: int, module: Any) -> Entity:
        partition, error = self._find(topic, index), Errors.NONE
        entries: Collection[ProducerStateEntry] = ()
        if isinstance(partition, Errors):
            error = partition
        else:
            entries = self._logs.producers(partition)
        return make(
            module.PartitionResponse,
            partition_index=index,
            error_code=code(error),
            error_message=None,
            active_producers=tuple(
                make(
                    module.ProducerState,
                    producer_id=entry.producer_id,
                    producer_epoch=entry.producer_epoch,
                    last_sequence=entry.last_seq,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=_or_nothing(entry.current_txn_first_offset),
                )
                for entry in entries
            ),
        )


def _operation(version: int) -> TransactionSupportedOperation:
    if version >= _ADDS:
        return TransactionSupportedOperation.ADD_PARTITION
    if version >= _IS_ABORTABLE:
        return TransactionSupportedOperation.GENERIC_ERROR_SUPPORTED
    return TransactionSupportedOperation.DEFAULT_ERROR


def _refusal(body: Any) -> Errors:
    """Of a whole request: transactional batches need one transactional id, and one producer."""
    producers = _transactional_producers(body)
    if producers and body.transactional_id is None:
        return Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if len(producers) > 1:
        return Errors.INVALID_PRODUCER_ID_MAPPING
    return Errors.NONE


def _transactional_producers(body: Any) -> set[tuple[int, int]]:
    producers = set()
    for topic in body.topic_data:
        for asked in topic.partition_data:
            try:
                batches = decode_batches(bytes(asked.records or b""))
            except ApiException:
                continue  # its partition is answered so
            producers |= {batch.producer[:2] for batch in batches if batch.is_transactional}
    return producers


def _or_nothing(offset: int | None) -> int:
    return _NOTHING if offset is None else offset
