"""The requests of one transactional id and of who reads its partitions, by version of transactions.

The version of each request picks the rules (KIP-890): those of version 1 are sent in versions that
know no others.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kio.records.readers import read_batch
from kio.static.primitive import Records

from conformance.kafka.batches import header_at, keyed_batch, milliseconds_of
from conformance.kafka.entities import NO_TIME, make, milliseconds, module_of
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.wire.admin import OFFSETS_TOPIC
from conformance.systems.wire.port import Asked
from conformance.systems.wire.topic import TopicRequests

TIMEOUT_MS = 60_000
NONE = "NONE"
DUPLICATE = "DUPLICATE_SEQUENCE_NUMBER"
CONCURRENT = "CONCURRENT_TRANSACTIONS"
TRY_AGAIN = frozenset(
    {
        CONCURRENT,
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
    }
)
"""What a coordinator answers that is not ready yet."""
RETRY_SECONDS = 0.01
_NO_GROUP = "GROUP_ID_NOT_FOUND"
_WAIT_MS = 10_000
_BYTES = 1 << 20
_LATEST = -1
NOBODY = -1
_UNCOMMITTED, _COMMITTED = 0, 1
TRANSACTIONAL, CONTROL = 0x10, 0x20
"""Attributes of a batch."""
_OF_VERSION_1: Mapping[str, int] = MappingProxyType(
    {"produce": 11, "end_txn": 4, "txn_offset_commit": 4}
)
_MARKER_KEY, _MARKER_VALUE = struct.Struct(">hh"), struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1


@dataclass(frozen=True, slots=True)
class FetchedRecord:
    """A record of a partition's log; of a marker, which way it ends and its coordinator's epoch."""

    offset: int
    producer_id: int
    epoch: int
    sequence: int
    value: str
    commits: bool | None = None
    coordinator_epoch: int = 0
    timestamp_ms: int = -1
    is_transactional: bool = False
    base_offset: int = -1
    """Of its batch."""
    leader_epoch: int = -1
    """Of its batch: in which the leader appended it."""


@dataclass(frozen=True, slots=True)
class ReadPartition:
    """What Fetch shows of a partition; `aborted`: producer id and first offset."""

    high_watermark: int
    last_stable_offset: int
    records: tuple[FetchedRecord, ...]
    aborted: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DescribedProducer:
    """A producer's entry, as DescribeProducers shows it; -1 for what there is not."""

    epoch: int
    sequence: int
    coordinator_epoch: int
    start: int


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """As DescribeTransactions shows it; partitions by topic and number."""

    state: str
    epoch: int
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TransactionRequests(TopicRequests):
    """Of the partitions of one topic, all led by the broker of `port`."""

    count: int
    is_version_2: bool

    def version(self, api: str) -> int:
        """As of each topic; by version 1's rules none that knows others."""
        version = TopicRequests.version(self, api)
        return version if self.is_version_2 else min(version, _OF_VERSION_1.get(api, version))

    # ---- the coordinator -------------------------------------------------------------------

    def init_producer_id(
        self,
        port: Asked,
        transactional_id: str,
        producer: tuple[int, int] = (NOBODY, NOBODY),
    ) -> tuple[str, int, int]:
        """Error, producer id and epoch; `producer`: the client's own (KIP-360)."""
        body = make(
            self.module("init_producer_id").InitProducerIdRequest,
            transactional_id=transactional_id,
            transaction_timeout=milliseconds(TIMEOUT_MS),
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        answer = port.ask_body(body)
        return error_name(answer.error_code), int(answer.producer_id), int(answer.producer_epoch)

    def await_producer_id(
        self, port: Asked, transactional_id: str, seconds: float
    ) -> tuple[int, int]:
        """As a client asks for it: again while the coordinator is not ready, for so long."""
        until = time.monotonic() + seconds
        while True:
            error, producer_id, epoch = self.init_producer_id(port, transactional_id)
            if error == NONE:
                return producer_id, epoch
            if error not in TRY_AGAIN or time.monotonic() > until:
                raise SystemFailed(f"InitProducerId was answered {error}")
            time.sleep(RETRY_SECONDS)

    def add_partition(
        self, port: Asked, transactional_id: str, producer: tuple[int, int], partition: int
    ) -> str:
        """AddPartitionsToTxn of a client; the error."""
        module = self.module("add_partitions_to_txn")
        topic = module.AddPartitionsToTxnTopic(name=self.topic, partitions=(partition,))
        body = make(
            module.AddPartitionsToTxnRequest,
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=(topic,),
        )
        (added,) = port.ask_body(body).results_by_topic_v3_and_below
        (result,) = added.results_by_partition
        return error_name(result.partition_error_code)

    def add_offsets(
        self, port: Asked, transactional_id: str, producer: tuple[int, int], group_id: str
    ) -> str:
        """AddOffsetsToTxn; the error."""
        body = make(
            self.module("add_offsets_to_txn").AddOffsetsToTxnRequest,
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=group_id,
        )
        return error_name(port.ask_body(body).error_code)

    def end(
        self, port: Asked, transactional_id: str, producer: tuple[int, int], *, commits: bool
    ) -> tuple[str, int]:
        """EndTxn; the error, and the next epoch in version 2."""
        body = make(
            self.module("end_txn").EndTxnRequest,
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commits,
        )
        answer = port.ask_body(body)
        return error_name(answer.error_code), int(getattr(answer, "producer_epoch", NOBODY))

    # ---- writing ---------------------------------------------------------------------------

    def produce(
        self, transactional_id: str, producer_id: int, batch: TransactionBatch, partition: int
    ) -> str:
        """A batch of one record; the error."""
        records = keyed_batch(
            [(None, batch.value.encode())],
            first_ms=int(time.time() * 1000),
            producer_id=producer_id,
            producer_epoch=batch.epoch,
            base_sequence=batch.sequence,
            attributes=TRANSACTIONAL,
        )
        return self.produce_batch(transactional_id, records, partition)

    def produce_batch(self, transactional_id: str | None, records: bytes, partition: int) -> str:
        """Produce with these bytes; the error."""
        module = self.module("produce")
        data = make(module.PartitionProduceData, index=partition, records=Records(records))
        body = make(
            module.ProduceRequest,
            transactional_id=transactional_id,
            acks=-1,
            timeout=milliseconds(_WAIT_MS),
            topic_data=(self.named(module.TopicProduceData, partition_data=(data,)),),
        )
        (topic,) = self.port.ask_body(body).responses
        (answer,) = topic.partition_responses
        return error_name(answer.error_code)

    def commit_offset(
        self,
        port: Asked,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        group_id: str,
        offset: int,
    ) -> str:
        """TxnOffsetCommit for partition 0 of the topic, by no member of the group; the error."""
        module = self.module("txn_offset_commit")
        partition = make(
            module.TxnOffsetCommitRequestPartition,
            partition_index=0,
            committed_offset=offset,
            committed_metadata="",
        )
        topic = module.TxnOffsetCommitRequestTopic(name=self.topic, partitions=(partition,))
        body = make(
            module.TxnOffsetCommitRequest,
            transactional_id=transactional_id,
            group_id=group_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=(topic,),
        )
        ((answer,),) = (each.partitions for each in port.ask_body(body).topics)
        return error_name(answer.error_code)

    def write_marker(
        self,
        where: tuple[str, int],
        producer: tuple[int, int],
        coordinator_epoch: int,
        *,
        commits: bool,
    ) -> str:
        """WriteTxnMarkers, as a coordinator sends it; the error."""
        module = self.module("write_txn_markers")
        topic = module.WritableTxnMarkerTopic(name=where[0], partition_indexes=(where[1],))
        marker = make(
            module.WritableTxnMarker,
            producer_id=producer[0],
            producer_epoch=producer[1],
            transaction_result=commits,
            topics=(topic,),
            coordinator_epoch=coordinator_epoch,
            transaction_version=2 if self.is_version_2 else 0,
        )
        body = make(module.WriteTxnMarkersRequest, markers=(marker,))
        (answer,) = self.port.ask_body(body).markers
        ((result,),) = (each.partitions for each in answer.topics)
        return error_name(result.error_code)

    # ---- reading ---------------------------------------------------------------------------

    def describe_transaction(self, transactional_id: str) -> Any:
        """A request."""
        kind = self.module("describe_transactions").DescribeTransactionsRequest
        return make(kind, transactional_ids=(transactional_id,))

    def list_transactions(self, producer_id: int) -> Any:
        """A request."""
        kind = self.module("list_transactions").ListTransactionsRequest
        return make(kind, state_filters=(), producer_id_filters=(producer_id,))

    def describe_producers(self) -> Any:
        """A request."""
        module = self.module("describe_producers")
        topic = make(
            module.TopicRequest, name=self.topic, partition_indexes=tuple(range(self.count))
        )
        return make(module.DescribeProducersRequest, topics=(topic,))

    def fetch(self, offsets: Sequence[int], *, committed: bool) -> Any:
        """A request of all partitions, each from an offset on."""
        module = self.module("fetch")
        partitions = tuple(
            make(
                module.FetchPartition,
                partition=index,
                fetch_offset=offset,
                partition_max_bytes=_BYTES,
            )
            for index, offset in enumerate(offsets)
        )
        return make(
            module.FetchRequest,
            replica_id=NOBODY,
            max_wait=NO_TIME,
            min_bytes=0,
            isolation_level=_COMMITTED if committed else _UNCOMMITTED,
            topics=(self.named(module.FetchTopic, partitions=partitions),),
            forgotten_topics_data=(),
        )

    def list_offsets(self, *, committed: bool) -> Any:
        """A request for the ends of all partitions."""
        module = self.module("list_offsets")
        partitions = tuple(
            make(module.ListOffsetsPartition, partition_index=index, timestamp=_LATEST)
            for index in range(self.count)
        )
        return make(
            module.ListOffsetsRequest,
            replica_id=NOBODY,
            isolation_level=_COMMITTED if committed else _UNCOMMITTED,
            topics=(self.named(module.ListOffsetsTopic, partitions=partitions),),
            timeout=milliseconds(_WAIT_MS),
        )

    def fetch_offset(self, group_id: str, *, stable: bool) -> Any:
        """A request for the group's position in partition 0; `stable`: none while it may change."""
        module = module_of("offset_fetch", self.port.versions["offset_fetch"], "request")
        asked = {"name": self.topic, "partition_indexes": (0,)}
        if hasattr(module, "OffsetFetchRequestTopics"):
            topic = make(module.OffsetFetchRequestTopics, topic_id=self.topic_id, **asked)
            group = make(module.OffsetFetchRequestGroup, group_id=group_id, topics=(topic,))
            return make(module.OffsetFetchRequest, groups=(group,), require_stable=stable)
        topic = make(module.OffsetFetchRequestTopic, **asked)
        return make(
            module.OffsetFetchRequest, group_id=group_id, topics=(topic,), require_stable=stable
        )


def marker_record(*, commits: bool) -> tuple[bytes, bytes]:
    """Key and value of a marker, as a coordinator of epoch 0 writes it."""
    kind = _COMMIT if commits else _ABORT
    return _MARKER_KEY.pack(0, kind), _MARKER_VALUE.pack(0, 0)


def expect_none(request: str, error: Any) -> None:
    """Raises SystemFailed for a request that must not be refused."""
    if error:
        raise SystemFailed(f"{request} was answered {error_name(error)}")


def described_transaction(answer: Any) -> DescribedTransaction | None:
    """Of DescribeTransactions; None if the id is unknown."""
    (state,) = answer.transaction_states
    if error_name(state.error_code) == "TRANSACTIONAL_ID_NOT_FOUND":
        return None
    expect_none("DescribeTransactions", state.error_code)
    return DescribedTransaction(
        str(state.transaction_state),
        int(state.producer_epoch),
        tuple(
            (str(topic.topic), int(index)) for topic in state.topics for index in topic.partitions
        ),
    )


def described_producers(answer: Any, producer_id: int) -> dict[int, DescribedProducer]:
    """Of DescribeProducers, by partition."""
    known = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            expect_none("DescribeProducers", partition.error_code)
            for state in partition.active_producers:
                if state.producer_id == producer_id:
                    known[int(partition.partition_index)] = DescribedProducer(
                        int(state.producer_epoch),
                        int(state.last_sequence),
                        int(state.coordinator_epoch),
                        int(state.current_txn_start_offset),
                    )
    return known


def read_partitions(answer: Any) -> dict[int, ReadPartition]:
    """Of Fetch, by partition."""
    if error := getattr(answer, "error_code", 0):
        expect_none("Fetch", error)
    known = {}
    for topic in answer.responses:
        for partition in topic.partitions:
            expect_none("Fetch", partition.error_code)
            known[int(partition.partition_index)] = ReadPartition(
                int(partition.high_watermark),
                int(partition.last_stable_offset),
                records_of(bytes(partition.records or b"")),
                tuple(
                    (int(aborted.producer_id), int(aborted.first_offset))
                    for aborted in partition.aborted_transactions or ()
                ),
            )
    return known


def listed_offsets(answer: Any) -> dict[int, int]:
    """Of ListOffsets, by partition."""
    known = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            expect_none("ListOffsets", partition.error_code)
            known[int(partition.partition_index)] = int(partition.offset)
    return known


def fetched_offset(answer: Any) -> tuple[str, int]:
    """Of OffsetFetch: the error and the position; an unknown group has none."""
    of_group = answer.groups[0] if hasattr(answer, "groups") else answer
    if error_name(of_group.error_code) == _NO_GROUP:
        return NONE, NOBODY
    if not of_group.topics:
        return error_name(of_group.error_code), NOBODY
    ((partition,),) = (topic.partitions for topic in of_group.topics)
    return error_name(partition.error_code), int(partition.committed_offset)


def offsets_partition(where: tuple[str, int]) -> bool:
    """Whether a partition of a transaction is one of the groups' offsets."""
    return where[0] == OFFSETS_TOPIC


def records_of(data: bytes) -> tuple[FetchedRecord, ...]:
    """Those of whole batches."""
    result: list[FetchedRecord] = []
    position = 0
    while (header := header_at(data, position)) and position + header.size <= len(data):
        try:
            batch, size = read_batch(memoryview(data), position)
            for delta, record in enumerate(batch.records):
                result.append(_record(header, delta, record))
        except (ValueError, IndexError, struct.error) as error:
            raise SystemFailed(
                f"Fetch was answered with a batch that cannot be read: {error}"
            ) from error
        position += size
    return tuple(result)


def _record(header: Any, delta: int, record: Any) -> FetchedRecord:
    offset = header.base_offset + delta
    if not header.attributes & CONTROL:
        value = (record.value or b"").decode(errors="replace")
        sequence = header.base_sequence + delta
        return FetchedRecord(
            offset,
            header.producer_id,
            header.producer_epoch,
            sequence,
            value,
            timestamp_ms=milliseconds_of(record.timestamp),
            is_transactional=bool(header.attributes & TRANSACTIONAL),
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
        )
    _, kind = _MARKER_KEY.unpack_from(record.key)
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    return FetchedRecord(
        offset,
        header.producer_id,
        header.producer_epoch,
        -1,
        "",
        kind == _COMMIT,
        coordinator_epoch,
        milliseconds_of(record.timestamp),
        is_transactional=True,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
    )
