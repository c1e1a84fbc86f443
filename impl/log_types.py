"""Settings, results and errors of a log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .errors import ApiException, Errors, IllegalArgumentException
from .producer_state.transactions import AbortedTxn
from .records import MAGIC_VALUE_V2, MemoryRecords
from .types import LogOffsetMetadata


class FetchIsolation(Enum):
    """Up to where a read may see: followers to the log end, consumers to the high watermark.

    With isolation.level=read_committed consumers see as far as the last stable offset.
    """

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    TXN_COMMITTED = "last stable offset"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A topic's settings: sizes in bytes; `retention_bytes` and `retention_ms` None keep all.

    `compact` is cleanup.policy; `delete_retention_ms` and the ratio are for what is compacted.
    """

    segment_bytes: int = 1 << 30
    retention_bytes: int | None = None
    retention_ms: int | None = None
    message_format: int = MAGIC_VALUE_V2
    min_insync_replicas: int = 1
    compact: bool = False
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class FetchDataInfo:
    """What a read found, and where the read began.

    `aborted_transactions` are those that concern the records; None unless they were asked for.
    """

    fetch_offset_metadata: LogOffsetMetadata
    records: MemoryRecords
    aborted_transactions: tuple[AbortedTxn, ...] | None = None


class OffsetsOutOfOrderException(IllegalArgumentException):
    """The offsets within one follower append do not rise."""


class UnexpectedAppendOffsetException(ApiException):
    """A follower's append begins below the log end offset (UnexpectedAppendOffsetException)."""

    code = Errors.UNKNOWN_SERVER_ERROR

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            f"append of [{first_offset}, {last_offset}] below the log end offset {log_end_offset}"
        )
        self.first_offset = first_offset
        self.last_offset = last_offset
