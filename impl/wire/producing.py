"""Requests of idempotent producers: InitProducerId, Produce, and DescribeProducers.

What KafkaApis and ReplicaManager do of them for partitions with one replica. There is no
transaction coordinator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any

from ..errors import Errors
from ..producer_state.producer_state_entry import ProducerStateEntry
from ..types import TopicPartition
from .entities import NO_TIME, Entity, Received, make, module_of
from .group_responses import code
from .logs import PartitionLogs

_ACKS = (-1, 0, 1)
_NO_ANSWER = 0
"""The acks of a producer that waits for no answer."""
_NOTHING = -1
_FIRST_PRODUCER_ID = 1000


class Producing:
    """Handlers of a broker; `find` gives a partition that exists, or the error."""

    def __init__(
        self, logs: PartitionLogs, find: Callable[[Any, int], TopicPartition | Errors]
    ) -> None:
        self._logs = logs
        self._find = find
        self._producer_ids = itertools.count(_FIRST_PRODUCER_ID)

    def init_producer_id(self, received: Received) -> Entity:
        """A new producer id, which begins with epoch 0."""
        module = module_of("init_producer_id", received.version, "response")
        refused = received.body.transactional_id is not None
        return make(
            module.InitProducerIdResponse,
            throttle_time=NO_TIME,
            error_code=code(Errors.INVALID_REQUEST if refused else Errors.NONE),
            producer_id=_NOTHING if refused else next(self._producer_ids),
            producer_epoch=_NOTHING if refused else 0,
        )

    def produce(self, received: Received) -> Entity | None:
        """Append to each partition by itself; no answer where none is waited for."""
        module = module_of("produce", received.version, "response")
        acks = received.body.acks
        topics = tuple(
            make(
                module.TopicProduceResponse,
                name=getattr(topic, "name", None),
                topic_id=getattr(topic, "topic_id", None),
                partition_responses=tuple(
                    self._append(topic, asked, acks, module) for asked in topic.partition_data
                ),
            )
            for topic in received.body.topic_data
        )
        if acks == _NO_ANSWER:
            return None
        return make(module.ProduceResponse, throttle_time=NO_TIME, responses=topics)

    def _append(self, topic: Any, asked: Any, acks: int, module: Any) -> Entity:
        error, offset = self._appended(self._find(topic, asked.index), asked, acks)
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
        self, partition: TopicPartition | Errors, asked: Any, acks: int
    ) -> tuple[Errors, int]:
        if isinstance(partition, Errors):
            return partition, _NOTHING
        if acks not in _ACKS:
            return Errors.INVALID_REQUIRED_ACKS, _NOTHING
        return self._logs.append(partition, bytes(asked.records or b""))

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
                    coordinator_epoch=_NOTHING,
                    current_txn_start_offset=_NOTHING,
                )
                for entry in entries
            ),
        )
