"""The requests of one partition's clients on the data path, in the versions that were agreed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kio.static.primitive import Records

from conformance.kafka.entities import NO_TIME, make, milliseconds, module_of
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.wire.topic import TopicRequests
from conformance.systems.wire.transaction.look import visible
from conformance.systems.wire.transaction.requests import (
    NONE,
    FetchedRecord,
    TransactionRequests,
    read_partitions,
)

_WAIT_MS = 10_000
_BYTES = 1 << 20
_NOBODY = -1
NO_EPOCH = -1
LATEST, EARLIEST = -1, -2
NO_ANSWER = 0
"""The acks of a producer that waits for no answer."""
_OF_TRANSACTIONS = 11
"""The newest Produce whose partitions the client adds to its transaction."""


class Listed(NamedTuple):
    """What ListOffsets and OffsetForLeaderEpoch answer; -1 for what there is not."""

    error: str
    offset: int
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


class FetchedPartition(NamedTuple):
    """What Fetch answers: all records from the asked offset on, and those that a client keeps."""

    error: str
    fetchable: int = -1
    records: tuple[FetchedRecord, ...] = ()
    kept: tuple[FetchedRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class DataRequests(TopicRequests):
    """Of one partition of a topic, at its leader."""

    index: int

    def of_transactions(self) -> TransactionRequests:
        """The requests of a transactional producer of this topic, by version 1's rules."""
        return TransactionRequests(
            self.port, self.topic, self.topic_id, self.index + 1, is_version_2=False
        )

    def produce(self, batch: bytes, acks: int, transactional_id: str | None = None) -> Listed:
        """Append a batch; with acks=0 nothing is answered."""
        version = self.version("produce")
        if transactional_id is not None:
            version = min(version, _OF_TRANSACTIONS)
        module = module_of("produce", version, "request")
        data = make(module.PartitionProduceData, index=self.index, records=Records(batch))
        body = make(
            module.ProduceRequest,
            transactional_id=transactional_id,
            acks=acks,
            timeout=milliseconds(_WAIT_MS),
            topic_data=(self.named(module.TopicProduceData, partition_data=(data,)),),
        )
        if acks == NO_ANSWER:
            self.port.tell(body)
            return Listed(NONE, -1)
        ((answer,),) = (each.partition_responses for each in self.port.ask_body(body).responses)
        return Listed(error_name(answer.error_code), int(answer.base_offset))

    def delete_records(self, offset: int) -> Listed:
        """Raise the log start; its new value."""
        module = self.module("delete_records")
        partition = module.DeleteRecordsPartition(partition_index=self.index, offset=offset)
        topic = module.DeleteRecordsTopic(name=self.topic, partitions=(partition,))
        body = make(module.DeleteRecordsRequest, topics=(topic,), timeout=milliseconds(_WAIT_MS))
        ((answer,),) = (each.partitions for each in self.port.ask_body(body).topics)
        return Listed(error_name(answer.error_code), int(answer.low_watermark))

    def list_offsets(
        self, timestamp: int, *, committed: bool = False, epoch: int = NO_EPOCH
    ) -> Listed:
        """The first record that is not older; `epoch` is of the leader that the client knows."""
        module = self.module("list_offsets")
        partition = make(
            module.ListOffsetsPartition,
            partition_index=self.index,
            current_leader_epoch=epoch,
            timestamp=timestamp,
        )
        body = make(
            module.ListOffsetsRequest,
            replica_id=_NOBODY,
            isolation_level=int(committed),
            topics=(self.named(module.ListOffsetsTopic, partitions=(partition,)),),
            timeout=milliseconds(_WAIT_MS),
        )
        ((answer,),) = (each.partitions for each in self.port.ask_body(body).topics)
        return Listed(
            error_name(answer.error_code),
            int(answer.offset),
            int(answer.timestamp),
            int(getattr(answer, "leader_epoch", NO_EPOCH)),
        )

    def end_of_epoch(self, of: int, *, epoch: int = NO_EPOCH) -> Listed:
        """Where the leader epoch `of` ends."""
        module = self.module("offset_for_leader_epoch")
        partition = make(
            module.OffsetForLeaderPartition,
            partition=self.index,
            current_leader_epoch=epoch,
            leader_epoch=of,
        )
        topic = module.OffsetForLeaderTopic(topic=self.topic, partitions=(partition,))
        body = make(module.OffsetForLeaderEpochRequest, replica_id=_NOBODY, topics=(topic,))
        ((answer,),) = (each.partitions for each in self.port.ask_body(body).topics)
        return Listed(
            error_name(answer.error_code),
            int(answer.end_offset),
            leader_epoch=int(answer.leader_epoch),
        )

    def fetch(
        self, offset: int, *, committed: bool = False, epoch: int = NO_EPOCH
    ) -> FetchedPartition:
        """What can be read from this offset on, now and without a session."""
        module = self.module("fetch")
        partition = make(
            module.FetchPartition,
            partition=self.index,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            partition_max_bytes=_BYTES,
        )
        body = make(
            module.FetchRequest,
            replica_id=_NOBODY,
            max_wait=NO_TIME,
            min_bytes=0,
            isolation_level=int(committed),
            topics=(self.named(module.FetchTopic, partitions=(partition,)),),
            forgotten_topics_data=(),
        )
        answer = self.port.ask_body(body)
        ((part,),) = (each.partitions for each in answer.responses)
        if part.error_code:
            return FetchedPartition(error_name(part.error_code))
        read = read_partitions(answer)[self.index]
        return FetchedPartition(
            NONE,
            read.last_stable_offset if committed else read.high_watermark,
            tuple(record for record in read.records if record.offset >= offset),
            tuple(visible(read, offset)),
        )
