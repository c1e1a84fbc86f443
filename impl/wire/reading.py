"""Requests of consumers for records and offsets: Fetch, ListOffsets, OffsetForLeaderEpoch.

What KafkaApis and ReplicaManager do of them for partitions with one replica.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.static.primitive import Records

from ..errors import Errors
from ..types import FileTimestampAndOffset, OffsetAndEpoch, TopicPartition
from .entities import NO_TIME, Entity, Received, in_milliseconds, make, module_of
from .group_responses import code
from .logs import LEADER_EPOCH, PartitionLogs, ReadRecords

_READ_COMMITTED = 1
_NOTHING = -1


class Reading:
    """Handlers of a broker; `find` gives a partition that exists, or the error.

    `delay` runs a function so many milliseconds later.
    """

    def __init__(
        self,
        logs: PartitionLogs,
        find: Callable[[Any, int], TopicPartition | Errors],
        delay: Callable[[int, Callable[[], None]], None],
    ) -> None:
        self._logs = logs
        self._find = find
        self._delay = delay

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
        error = Errors.NONE if isinstance(partition, Errors) else _epoch_error(asked)
        return partition if error is Errors.NONE else error

    # ---- Fetch -----------------------------------------------------------------------------

    def fetch(self, received: Received, _host: str, answer: Callable[[Entity], None]) -> None:
        """Records that are there, or after a while (DelayedFetch)."""
        asked = [
            (partition, one.fetch_offset)
            for topic in received.body.topics
            for one in topic.partitions
            if isinstance(partition := self._find(topic, one.partition), TopicPartition)
        ]
        longest = in_milliseconds(received.body.max_wait)
        wait = self._logs.wait_ms(asked, longest, committed=_is_committed(received))
        self._delay(wait, lambda: answer(self._fetched(received)))

    def _fetched(self, received: Received) -> Entity:
        module = module_of("fetch", received.version, "response")
        committed = _is_committed(received)
        return make(
            module.FetchResponse,
            throttle_time=NO_TIME,
            error_code=code(Errors.NONE),
            session_id=0,
            responses=tuple(
                make(
                    module.FetchableTopicResponse,
                    topic=getattr(topic, "topic", None),
                    topic_id=getattr(topic, "topic_id", None),
                    partitions=tuple(
                        self._read(topic, one, committed, module) for one in topic.partitions
                    ),
                )
                for topic in received.body.topics
            ),
        )

    def _read(self, topic: Any, asked: Any, committed: bool, module: Any) -> Entity:
        partition = self._led(topic, asked.partition, asked)
        if isinstance(partition, Errors):
            read = ReadRecords(partition)
        else:
            read = self._logs.read(partition, asked.fetch_offset, committed=committed)
        aborted = read.aborted and tuple(
            module.AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
            for one in read.aborted
        )
        return make(
            module.PartitionData,
            partition_index=asked.partition,
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


def _epoch_error(asked: Any) -> Errors:
    """In a Fetch every negative epoch stands for none (FetchRequest.optionalEpoch)."""
    epoch = getattr(asked, "current_leader_epoch", _NOTHING)
    is_none = epoch < 0 if hasattr(asked, "fetch_offset") else epoch == _NOTHING
    if is_none or epoch == LEADER_EPOCH:
        return Errors.NONE
    return Errors.FENCED_LEADER_EPOCH if epoch < LEADER_EPOCH else Errors.UNKNOWN_LEADER_EPOCH
