"""The requests of one partition's producer and readers, in the versions that were agreed on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from kio.records.readers import read_batch
from kio.static.primitive import Records

from conformance.kafka.batches import header_at, keyed_batch
from conformance.kafka.entities import NO_TIME, make, milliseconds
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.wire.produce.producer import SentBatch
from conformance.systems.wire.topic import TopicRequests

_TIMEOUT_MS = 10_000
_BYTES = 1 << 20
_LATEST = -1
"""ListOffsets' timestamp that stands for the end of what may be read."""
_LEADER_SECONDS = 30.0
_NOBODY = -1
"""A replica id: who asks is no broker."""


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """A batch of the log, its first offset, and the epoch of its leader."""

    sent: SentBatch
    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerPartition(TopicRequests):
    """Partition 0 of a topic at its leader's port."""

    def await_leader(self) -> None:
        """Wait until the new partition can be read: a broker hears of its own topics late."""
        until = time.monotonic() + _LEADER_SECONDS
        while True:
            try:
                self.fetch(0, (0, 0))
                return
            except SystemFailed:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def new_producer_id(self) -> tuple[int, int]:
        """A producer id that nobody has, and its first epoch."""
        request = make(
            self.module("init_producer_id").InitProducerIdRequest,
            transactional_id=None,
            transaction_timeout=milliseconds(_TIMEOUT_MS),
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = self.port.ask_body(request)
        _expect_none("InitProducerId", answer.error_code)
        return int(answer.producer_id), int(answer.producer_epoch)

    def produce(self, producer: tuple[int, int], batch: SentBatch, acks: int) -> tuple[str, int]:
        """Send a copy of a batch; the error and the offset of the answer."""
        producer_id, first_epoch = producer
        module = self.module("produce")
        records = keyed_batch(
            [(None, str(batch.value).encode())] * batch.size,
            first_ms=int(time.time() * 1000),
            producer_id=producer_id,
            producer_epoch=first_epoch + batch.epoch,
            base_sequence=batch.seq,
        )
        partition = make(module.PartitionProduceData, index=0, records=Records(records))
        request = make(
            module.ProduceRequest,
            transactional_id=None,
            acks=acks,
            timeout=milliseconds(_TIMEOUT_MS),
            topic_data=(self.named(module.TopicProduceData, partition_data=(partition,)),),
        )
        (topic,) = self.port.ask_body(request).responses
        (answer,) = topic.partition_responses
        return error_name(answer.error_code), int(answer.base_offset)

    def latest(self) -> int:
        """The high watermark, as ListOffsets shows it."""
        module = self.module("list_offsets")
        partition = make(module.ListOffsetsPartition, partition_index=0, timestamp=_LATEST)
        request = make(
            module.ListOffsetsRequest,
            replica_id=_NOBODY,
            isolation_level=0,
            topics=(self.named(module.ListOffsetsTopic, partitions=(partition,)),),
            timeout=milliseconds(_TIMEOUT_MS),
        )
        (topic,) = self.port.ask_body(request).topics
        (answer,) = topic.partitions
        _expect_none("ListOffsets", answer.error_code)
        return int(answer.offset)

    def fetch(self, offset: int, producer: tuple[int, int]) -> tuple[LoggedBatch, ...]:
        """The batches from this offset on."""
        module = self.module("fetch")
        partition = make(
            module.FetchPartition, partition=0, fetch_offset=offset, partition_max_bytes=_BYTES
        )
        request = make(
            module.FetchRequest,
            replica_id=_NOBODY,
            max_wait=NO_TIME,
            min_bytes=0,
            topics=(self.named(module.FetchTopic, partitions=(partition,)),),
            forgotten_topics_data=(),
        )
        answer = self.port.ask_body(request)
        _expect_none("Fetch", answer.error_code)
        (topic,) = answer.responses
        (fetched,) = topic.partitions
        _expect_none("Fetch", fetched.error_code)
        return _batches(bytes(fetched.records or b""), producer[1])

    def describe(self, producer_id: int) -> tuple[int, int] | None:
        """Epoch and last sequence of a producer by DescribeProducers; None if it is unknown."""
        module = self.module("describe_producers")
        topic = make(module.TopicRequest, name=self.topic, partition_indexes=(0,))
        answer = self.port.ask_body(make(module.DescribeProducersRequest, topics=(topic,)))
        ((partition,),) = (described.partitions for described in answer.topics)
        _expect_none("DescribeProducers", partition.error_code)
        for state in partition.active_producers:
            if state.producer_id == producer_id:
                return int(state.producer_epoch), int(state.last_sequence)
        return None


def _expect_none(request: str, error: Any) -> None:
    if error:
        raise SystemFailed(f"{request} was answered {error_name(error)}")


def _batches(data: bytes, first_epoch: int) -> tuple[LoggedBatch, ...]:
    """Whole batches. A broker may answer with some that begin before the asked offset."""
    result = []
    position = 0
    while (header := header_at(data, position)) and position + header.size <= len(data):
        try:
            batch, size = read_batch(memoryview(data), position)
            value = int(batch.records[0].value or b"")
        except (ValueError, IndexError) as error:
            raise SystemFailed(
                f"Fetch was answered with a batch that cannot be read: {error}"
            ) from error
        position += size
        sent = SentBatch(
            batch.producer_epoch - first_epoch, batch.base_sequence, len(batch.records), value
        )
        result.append(LoggedBatch(sent, batch.base_offset, batch.partition_leader_epoch))
    return tuple(result)
