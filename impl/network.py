"""The requests that a follower sends to its leader, their answers, and the injected sender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from .errors import Errors
from .types import (
    UNDEFINED_EPOCH,
    UNKNOWN_BROKER_EPOCH,
    UNKNOWN_OFFSET,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    ProtocolConfig,
    TopicPartition,
)

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_SESSION_EPOCH = 2**31 - 1

LATEST_FETCH_VERSION = 16
LATEST_OFFSETS_FOR_LEADER_EPOCH_VERSION = 4
LATEST_LIST_OFFSETS_VERSION = 8
_FETCH_VERSION_BEFORE_TOPIC_IDS = 11
_FETCH_VERSION_BEFORE_SESSIONS = 5


class FetchMetadata(NamedTuple):
    """Session id and session epoch of a fetch (FetchMetadata, KIP-227)."""

    session_id: int
    epoch: int

    @property
    def is_full(self) -> bool:
        """Whether the request lists every partition."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    def next_incremental(self) -> FetchMetadata:
        """The metadata after an accepted answer; the epoch wraps to 1."""
        return FetchMetadata(
            self.session_id, 1 if self.epoch == _MAX_SESSION_EPOCH else self.epoch + 1
        )

    def next_close_existing_attempt_new(self) -> FetchMetadata:
        """The metadata after a failure: close the session, ask for a new one."""
        return FetchMetadata(self.session_id, INITIAL_EPOCH)


INITIAL_METADATA = FetchMetadata(INVALID_SESSION_ID, INITIAL_EPOCH)
"""A full fetch that asks for a session."""
LEGACY_METADATA = FetchMetadata(INVALID_SESSION_ID, FINAL_EPOCH)
"""A full fetch that wants no session, as before KIP-227."""


class TopicIdPartition(NamedTuple):
    """A partition together with the topic id under which a session knows it."""

    topic_id: str
    topic_partition: TopicPartition


class FetchRequest(NamedTuple):
    """A Fetch request; `to_send` is a part of the session unless `metadata.is_full`.

    A tuple, as its answer is one: both are made in every round.
    """

    version: int
    replica_id: int
    broker_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    metadata: FetchMetadata
    to_send: Mapping[TopicPartition, FetchPartitionRequest]
    removed: tuple[TopicIdPartition, ...] = ()
    replaced: tuple[TopicIdPartition, ...] = ()

    @property
    def is_from_follower(self) -> bool:
        """Whether a replica asks, and not a consumer."""
        return self.replica_id >= 0


class FetchResponse(NamedTuple):
    """A Fetch answer; session id 0 means that the leader keeps no session."""

    partitions: Mapping[TopicPartition, FetchPartitionData]
    error: Errors = Errors.NONE
    session_id: int = INVALID_SESSION_ID
    throttle_time_ms: int = 0


@dataclass(frozen=True, slots=True)
class OffsetsForLeaderEpochRequest:
    """Asks where leader epochs end (KIP-101)."""

    version: int
    replica_id: int
    partitions: Mapping[TopicPartition, EpochData]


@dataclass(frozen=True, slots=True)
class OffsetsForLeaderEpochResponse:
    """Where leader epochs end. Version 0 carries no leader epoch."""

    partitions: Mapping[TopicPartition, EpochEndOffset]


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """Asks for one partition's offset; `timestamp` is a time in ms or one of the `*_TIMESTAMP`."""

    version: int
    replica_id: int
    partition: TopicPartition
    current_leader_epoch: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """One partition's offset and the leader epoch of that offset."""

    error: Errors = Errors.NONE
    offset: int = UNKNOWN_OFFSET
    leader_epoch: int = UNDEFINED_EPOCH


class BlockingSend(Protocol):
    """Sends one request to the leader and waits for its answer (BlockingSend).

    Any exception means that no answer came: the request may or may not have been handled.
    """

    def fetch(self, request: FetchRequest, /) -> FetchResponse: ...

    def offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest, /
    ) -> OffsetsForLeaderEpochResponse: ...

    def list_offsets(self, request: ListOffsetsRequest, /) -> ListOffsetsResponse: ...

    def initiate_close(self) -> None: ...

    def close(self) -> None: ...


class RequestHandlers(Protocol):
    """The broker that answers the three requests (ReplicaManager)."""

    def fetch(self, request: FetchRequest, /) -> FetchResponse: ...

    def offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest, /
    ) -> OffsetsForLeaderEpochResponse: ...

    def list_offsets(self, request: ListOffsetsRequest, /) -> ListOffsetsResponse: ...


class DirectSend:
    """A connection within one process; `reach` finds the broker or raises, for each request."""

    __slots__ = ("_reach",)

    def __init__(self, reach: Callable[[], RequestHandlers]) -> None:
        self._reach = reach

    def fetch(self, request: FetchRequest, /) -> FetchResponse:
        """Let the broker answer now."""
        return self._reach().fetch(request)

    def offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest, /
    ) -> OffsetsForLeaderEpochResponse:
        """Let the broker answer now."""
        return self._reach().offsets_for_leader_epoch(request)

    def list_offsets(self, request: ListOffsetsRequest, /) -> ListOffsetsResponse:
        """Let the broker answer now."""
        return self._reach().list_offsets(request)

    def initiate_close(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class RequestVersions:
    """Versions of the three requests, as the inter-broker protocol chooses them."""

    fetch: int = LATEST_FETCH_VERSION
    offsets_for_leader_epoch: int = LATEST_OFFSETS_FOR_LEADER_EPOCH_VERSION
    list_offsets: int = LATEST_LIST_OFFSETS_VERSION

    @classmethod
    def of(cls, config: ProtocolConfig) -> RequestVersions:
        """The versions that go with the three switches (MetadataVersion)."""
        if config.old_epoch_response:
            return cls(_FETCH_VERSION_BEFORE_SESSIONS, 0, 1)
        if not config.truncation_on_fetch:
            return cls(_FETCH_VERSION_BEFORE_TOPIC_IDS, 3, 5)
        return cls()


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """A follower's replica.fetch.* settings; sizes in bytes, times in ms.

    Without `fetch_sessions` every fetch is full: nothing is remembered between two requests.
    """

    replica_id: int
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    fetch_sessions: bool = True
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
