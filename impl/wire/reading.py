"""Requests of consumers for records and offsets: Fetch, ListOffsets, OffsetForLeaderEpoch.

What KafkaApis and ReplicaManager do of them for partitions with one replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from kio.static.primitive import Records

from ..errors import Errors
from ..fetch_session import FetchContext, FetchSessionCache
from ..network import FetchResponse
from ..types import FetchPartitionRequest, FileTimestampAndOffset, OffsetAndEpoch, TopicPartition
from . import fetch_requests
from .entities import NO_TIME, Entity, Received, in_milliseconds, make, module_of
from .fetch_requests import NamedTopic
from .group_responses import code
from .logs import PartitionLogs, ReadRecords

_READ_COMMITTED = 1
_NOTHING = -1


class Reading:
    """Handlers of a broker; `find` gives a partition that exists, or the error.

    `delay` runs a function so many milliseconds later; `sessions` are the consumers' (KIP-227).
    """

    def __init__(
        self,
        logs: PartitionLogs,
        find: Callable[[Any, int], TopicPartition | Errors],
        delay: Callable[[int, Callable[[], None]], None],
        sessions: FetchSessionCache,
    ) -> None:
        self._logs = logs
        self._find = find
        self._delay = delay
        self._sessions = sessions

    # ---- ListOffsets, OffsetForLeaderEpoch -------------------------------------------------

    def list_offsets(self, received: Received) -> Entity:
        """Of each partition the offset for a time, up to where the isolation level lets read."""
        module = module_of("list_offsets", received.version, "response")
        committed = _is_committed(received)
        topics = tuple(
            module.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    self._listed(topic, one, committed, module) for one in topic.partitions
                ),
            )
            for topic in received.body.topics
        )
        return make(module.ListOffsetsResponse, throttle_time=NO_TIME, topics=topics)

    def _listed(self, topic: Any, asked: Any, committed: bool, module: Any) -> Entity:
        partition = self._led(topic, asked.partition_index, asked)
        error, known = Errors.NONE, None
        if isinstance(partition, Errors):
            error = partition
        else:
            known = self._logs.offset_for(partition, asked.timestamp, committed=committed)
        known = known or FileTimestampAndOffset(_NOTHING, _NOTHING, None)
        return make(
            module.ListOffsetsPartitionResponse,
            partition_index=asked.partition_index,
            error_code=code(error),
            timestamp=known.timestamp,
            offset=known.offset,
            leader_epoch=_NOTHING if known.leader_epoch is None else known.leader_epoch,
        )

    def offset_for_leader_epoch(self, received: Received) -> Entity:
        """Where a leader epoch ends (Partition.lastOffsetForLeaderEpoch)."""
        module = module_of("offset_for_leader_epoch", received.version, "response")
        topics = tuple(
            module.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(self._ended(topic, one, module) for one in topic.partitions),
            )
            for topic in received.body.topics
        )
        return make(module.OffsetForLeaderEpochResponse, throttle_time=NO_TIME, topics=topics)

    def _ended(self, topic: Any, asked: Any, module: Any) -> Entity:
        partition = self._led(topic, asked.partition, asked)
        error, end = Errors.NONE, None
        if isinstance(partition, Errors):
            error = partition
        else:
            end = self._logs.end_offset_for_epoch(partition, asked.leader_epoch)
        end = end or OffsetAndEpoch(_NOTHING, _NOTHING)
        return make(
            module.EpochEndOffset,
            error_code=code(error),
            partition=asked.partition,
            leader_epoch=end.leader_epoch,
            end_offset=end.offset,
        )

    def _led(self, topic: Any, index: int, asked: Any) -> TopicPartition | Errors:
        """The partition, if the reader knows its leader (Partition.checkCurrentLeaderEpoch)."""
        partition = self._find(topic, index)
        if isinstance(partition, Errors):
            return partition
        error = _epoch_error(asked, self._logs.leader_epoch(partition))
        return partition if error is Errors.NONE else error

    # ---- Fetch -----------------------------------------------------------------------------

    def fetch(self, received: Received, _host: str, answer: Callable[[Entity], None]) -> None:
        """Records that are there, or after a while (DelayedFetch)."""
        context = self._sessions.new_context(fetch_requests.from_entity(received))
        if isinstance(context, Errors):
            answer(self._response(received, FetchResponse({}, context), ()))
            return
        asked = [
            (partition, one.fetch_offset)
            for key, one in context.partitions.items()
            if isinstance(partition := self._named(key, one), TopicPartition)
        ]
        longest = in_milliseconds(received.body.max_wait)
        wait = self._logs.wait_ms(asked, longest, committed=_is_committed(received))
        self._delay(wait, lambda: answer(self._fetched(received, context)))

    def _named(self, key: TopicPartition, asked: FetchPartitionRequest) -> TopicPartition | Errors:
        return self._find(fetch_requests.topic_of(key, asked), key.partition)

    def _fetched(self, received: Received, context: FetchContext) -> Entity:
        committed = _is_committed(received)
        reads = {
            key: self._read(key, one, committed=committed)
            for key, one in context.partitions.items()
        }
        response = context.respond({key: read.data() for key, read in reads.items()})
        topics = [
            (fetch_requests.topic_of(key, context.partitions[key]), key.partition, reads[key])
            for key in response.partitions
        ]
        return self._response(received, response, topics)

    def _read(
        self, key: TopicPartition, asked: FetchPartitionRequest, *, committed: bool
    ) -> ReadRecords:
        partition = self._led(fetch_requests.topic_of(key, asked), key.partition, asked)
        if isinstance(partition, Errors):
            return ReadRecords(partition)
        return self._logs.read(partition, asked.fetch_offset, committed=committed)

    def _response(
        self,
        received: Received,
        response: FetchResponse,
        reads: Iterable[tuple[NamedTopic, int, ReadRecords]],
    ) -> Entity:
        module = module_of("fetch", received.version, "response")
        return make(
            module.FetchResponse,
            throttle_time=NO_TIME,
            error_code=code(response.error),
            session_id=response.session_id,
            responses=tuple(
                make(
                    module.FetchableTopicResponse,
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=tuple(_partition_data(index, read, module) for _, index, read in of),
                )
                for topic, of in groupby(reads, lambda each: each[0])
            ),
        )


def _partition_data(index: int, read: ReadRecords, module: Any) -> Entity:
    aborted = read.aborted and tuple(
        module.AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
        for one in read.aborted
    )
    return make(
        module.PartitionData,
        partition_index=index,
        error_code=code(read.error),
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=aborted,
        preferred_read_replica=_NOTHING,
        records=Records(read.records),  # not null for a fetch that brings nothing
    )


def _is_committed(received: Received) -> bool:
    """Whether the reader's isolation.level is read_committed; ListOffsets 1 does not say."""
    return getattr(received.body, "isolation_level", 0) == _READ_COMMITTED


def _epoch_error(asked: Any, leader_epoch: int) -> Errors:
    epoch = getattr(asked, "current_leader_epoch", _NOTHING)
    is_none = epoch is None or epoch == _NOTHING
    if is_none or epoch == leader_epoch:
        return Errors.NONE
    return Errors.FENCED_LEADER_EPOCH if epoch < leader_epoch else Errors.UNKNOWN_LEADER_EPOCH
