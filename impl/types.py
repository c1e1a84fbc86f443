"""The values that requests, answers and internal calls carry; all of them immutable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .errors import Errors
from .records import MemoryRecords, Records

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1
NO_PARTITION_LEADER_EPOCH = -1
UNKNOWN_OFFSET = -1
NO_TIMESTAMP = -1
UNKNOWN_BROKER_EPOCH = -1

LATEST_TIMESTAMP = -1
"""ListOffsets: ask for the latest offset."""
EARLIEST_TIMESTAMP = -2
"""ListOffsets: ask for the earliest offset."""
MAX_TIMESTAMP = -3
"""ListOffsets: ask for the youngest record (KIP-734)."""
EARLIEST_LOCAL_TIMESTAMP = -4
"""ListOffsets: ask for the earliest offset on the leader's local disk (KIP-405)."""

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Topic id of a topic that has none (Uuid.ZERO_UUID in base64url)."""

CONSUMER_REPLICA_ID = -1
FUTURE_LOCAL_REPLICA_ID = -3
NO_LEADER = -1


class TopicPartition(NamedTuple):
    """A partition's name; a tuple, because it is the key of every hot dictionary."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition by its topic's id (base64url, as Uuid.toString has it)."""

    topic_id: str
    partition: int


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """A leader epoch and the first offset written in it (EpochEntry)."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class OffsetAndEpoch:
    """An offset together with a leader epoch (OffsetAndEpoch)."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class EpochData:
    """One partition of an OffsetsForLeaderEpoch request."""

    current_leader_epoch: int | None
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """One partition of an OffsetsForLeaderEpoch answer, or a fetch answer's diverging epoch."""

    error: Errors = Errors.NONE
    leader_epoch: int = UNDEFINED_EPOCH
    end_offset: int = UNDEFINED_EPOCH_OFFSET


@dataclass(frozen=True, slots=True)
class OffsetTruncationState:
    """Where to truncate, and whether that completes the truncation."""

    offset: int
    truncation_completed: bool = True


@dataclass(frozen=True, slots=True)
class FetchPartitionRequest:
    """One partition of a Fetch request (FetchRequest.PartitionData)."""

    topic_id: str
    fetch_offset: int
    log_start_offset: int
    max_bytes: int
    current_leader_epoch: int | None
    last_fetched_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class FetchPartitionData:
    """One partition of a Fetch answer; `diverging_epoch` implies empty records (KIP-595)."""

    error: Errors
    high_watermark: int
    log_start_offset: int
    records: Records = MemoryRecords.EMPTY
    diverging_epoch: EpochEndOffset | None = None


@dataclass(frozen=True, slots=True)
class LogAppendInfo:
    """What an append did; `first_offset` is -1 and `valid_bytes` 0 when nothing was appended."""

    first_offset: int
    last_offset: int
    last_leader_epoch: int | None
    valid_bytes: int
    log_start_offset: int
    max_timestamp: int = NO_TIMESTAMP
    batch_count: int = 0


@dataclass(frozen=True, slots=True)
class FileTimestampAndOffset:
    """A ListOffsets answer: timestamp (ms), offset and the leader epoch of that offset."""

    timestamp: int
    offset: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class ProtocolConfig:
    """The three switches by which the inter-broker protocol version changes replication.

    truncation_on_fetch: fetches carry the last fetched epoch, answers the diverging one (KIP-595).
    leader_epoch_request_supported: OffsetsForLeaderEpoch exists (KIP-101).
    old_epoch_response: the leader answers without an epoch, as before KIP-279.
    """

    truncation_on_fetch: bool = True
    leader_epoch_request_supported: bool = True
    old_epoch_response: bool = False


@dataclass(frozen=True, slots=True)
class BrokerEndPoint:
    """Where a broker listens."""

    id: int
    host: str = "localhost"
    port: int = 9092


@dataclass(frozen=True, slots=True)
class InitialFetchState:
    """What a fetcher needs to start on a partition; `init_offset` < 0 asks the leader first."""

    topic_id: str | None
    leader: BrokerEndPoint
    current_leader_epoch: int
    init_offset: int


class LogOffsetMetadata(NamedTuple):
    """An offset, and where it lies: base offset of its segment and bytes from its start."""

    message_offset: int
    segment_base_offset: int = UNKNOWN_OFFSET
    relative_position_in_segment: int = -1


UNKNOWN_OFFSET_METADATA = LogOffsetMetadata(UNKNOWN_OFFSET)
