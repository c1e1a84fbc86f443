"""What a replica manager is configured with and asked, and what it needs of a fetcher manager."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .errors import Errors
from .partition_state import LeaderAndIsrPartitionState
from .types import (
    UNKNOWN_BROKER_EPOCH,
    BrokerEndPoint,
    InitialFetchState,
    ProtocolConfig,
    TopicPartition,
)

NO_EPOCH = -1
EPOCH_DURING_DELETE = -2


class FetcherManager(Protocol):
    """Who fetches for the partitions that this broker follows."""

    def add_fetcher_for_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState], /
    ) -> None:
        """Start fetching."""
        ...

    def remove_fetcher_for_partitions(self, partitions: Collection[TopicPartition], /) -> object:
        """Stop fetching, and forget that the partitions failed."""
        ...

    def mark_partitions_for_truncation(
        self, broker_id: int, partition: TopicPartition, truncation_offset: int, /
    ) -> None:
        """The log that is fetched from was truncated."""
        ...

    def shutdown(self) -> None:
        """Stop all threads."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicaManagerConfig:
    """A broker's settings; times in ms."""

    broker_id: int
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    replica_lag_time_max_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest:
    """The controller's decisions on partitions of this broker."""

    controller_id: int
    controller_epoch: int
    partition_states: tuple[LeaderAndIsrPartitionState, ...]
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    version: int = 7
    live_leaders: tuple[BrokerEndPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponse:
    """What became of a LeaderAndIsr request."""

    error: Errors
    partitions: Mapping[TopicPartition, Errors]


@dataclass(frozen=True, slots=True)
class StopReplicaPartitionState:
    """Stop (and delete) a replica; the epoch may be `NO_EPOCH` or `EPOCH_DURING_DELETE`."""

    leader_epoch: int
    delete_partition: bool
