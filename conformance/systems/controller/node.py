"""One broker under test: a replica manager and a metadata cache, on a disk of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.control_plane import ControlPlane
from impl.control_requests import ControlRequest, ControlResponse
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.log_manager import LogManager
from impl.metadata_cache import MetadataSnapshot, ZkMetadataCache
from impl.partition import Partition
from impl.partition_state import AlterPartitionCallback, LeaderAndIsr
from impl.replica_manager import ReplicaManager
from impl.replica_requests import ReplicaManagerConfig
from impl.scheduler import ImmediateScheduler
from impl.types import NO_LEADER, BrokerEndPoint, InitialFetchState, TopicPartition

TOPIC_PARTITION = TopicPartition("topic", 0)
_LOG_DIRECTORY = "data"


def _end_point(broker_id: int) -> BrokerEndPoint | None:
    """Where a leader listens; there is no broker -1 (NO_LEADER)."""
    return None if broker_id == NO_LEADER else BrokerEndPoint(broker_id)


class FollowedPartitions:
    """Which partitions a broker fetches; nothing is fetched, as nothing is ever appended."""

    def __init__(self) -> None:
        self.followed: set[TopicPartition] = set()

    def add_fetcher_for_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState], /
    ) -> None:
        """Follow these."""
        self.followed.update(initial_fetch_states)

    def remove_fetcher_for_partitions(self, partitions: Collection[TopicPartition], /) -> object:
        """Follow these no more."""
        self.followed.difference_update(partitions)
        return None

    def mark_partitions_for_truncation(
        self, _broker_id: int, _partition: TopicPartition, _truncation_offset: int, /
    ) -> None:
        """No log is ever truncated here."""

    def shutdown(self) -> None:
        """No thread runs."""


class _NoAlterPartitions:
    """Nobody proposes an ISR: no follower ever fetches."""

    def submit(
        self,
        _topic_partition: TopicPartition,
        _proposed: LeaderAndIsr,
        on_complete: AlterPartitionCallback,
        /,
    ) -> None:
        """Refuse."""
        on_complete(Errors.INVALID_REQUEST)


class ControllerNode:
    """A broker's process; a restart is a new object on the same disk."""

    def __init__(self, broker_id: int, epoch: int, disk: MemoryDisk, threads: Concurrency) -> None:
        self.id = broker_id
        self.epoch = epoch
        self.disk = disk
        self.fetchers = FollowedPartitions()
        cache = ZkMetadataCache(threads)
        self._plane = ControlPlane(
            ReplicaManager(
                ReplicaManagerConfig(broker_id, epoch),
                MockClock(1_000_000),
                LogManager(disk, (_LOG_DIRECTORY,), ImmediateScheduler(), threads),
                _NoAlterPartitions(),
                cache,
                threads,
                _end_point,
                lambda _: self.fetchers,
            ),
            cache,
        )

    def handle(self, request: ControlRequest) -> ControlResponse:
        """Answer a controller's request."""
        return self._plane.handle(request)

    @property
    def partition(self) -> Partition | None:
        """The partition, if the broker hosts it."""
        return self._plane.replica_manager.get_partition(TOPIC_PARTITION)

    @property
    def has_log(self) -> bool:
        """Whether there is a log of the partition."""
        return self._plane.replica_manager.log_manager.get_log(TOPIC_PARTITION) is not None

    @property
    def is_fetching(self) -> bool:
        """Whether the partition is followed."""
        return TOPIC_PARTITION in self.fetchers.followed

    @property
    def controller_epoch(self) -> int:
        """The newest that this process has heard of."""
        return self._plane.replica_manager.controller_epoch

    @property
    def metadata(self) -> MetadataSnapshot:
        """What the broker tells clients."""
        return self._plane.metadata_cache.snapshot
