"""What a fetcher thread asks of the leader, remote or on the same broker (LeaderEndPoint)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ..network import FetchRequest
from ..types import (
    BrokerEndPoint,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    OffsetAndEpoch,
    TopicPartition,
)
from .state import PartitionFetchState


class ReplicaFetch(NamedTuple):
    """A fetch to send, and every partition whose answer it may bring.

    `partition_data` may hold more than `request.to_send`: an incremental session repeats what it
    knows. It is a live view, valid until the next request is built.
    """

    partition_data: Mapping[TopicPartition, FetchPartitionRequest]
    request: FetchRequest


class BuiltFetch(NamedTuple):
    """Result of building a fetch: nothing to send is None."""

    replica_fetch: ReplicaFetch | None
    partitions_with_error: tuple[TopicPartition, ...]


class LeaderEndPoint(Protocol):
    """The leader, as one fetcher thread sees it. Every call may raise; none holds a lock."""

    @property
    def is_truncation_on_fetch_supported(self) -> bool:
        """Whether fetch answers carry the diverging epoch (KIP-595)."""
        ...

    def broker_end_point(self) -> BrokerEndPoint:
        """The leader's address."""
        ...

    def initiate_close(self) -> None:
        """Make blocked calls fail soon."""
        ...

    def close(self) -> None:
        """Release the connection."""
        ...

    def fetch(self, fetch_request: FetchRequest, /) -> Mapping[TopicPartition, FetchPartitionData]:
        """Send and wait; an answer that the fetch session rejects counts as empty."""
        ...

    def fetch_earliest_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The leader's log start offset. Raises the answer's error."""
        ...

    def fetch_earliest_local_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The first offset on the leader's local disk. Raises the answer's error."""
        ...

    def fetch_latest_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The leader's log end offset. Raises the answer's error."""
        ...

    def fetch_epoch_end_offsets(
        self, partitions: Mapping[TopicPartition, EpochData], /
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        """Where the asked leader epochs end; failures come as error codes."""
        ...

    def build_fetch(
        self, partitions: Mapping[TopicPartition, PartitionFetchState], /
    ) -> BuiltFetch:
        """The next fetch for the partitions that are ready. Called under the thread's lock."""
        ...
