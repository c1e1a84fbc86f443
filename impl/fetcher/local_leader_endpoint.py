"""The current log as leader of its own future copy in another directory (LocalLeaderEndPoint)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..clock import Clock
from ..errors import Errors, KafkaStorageException
from ..network import INITIAL_METADATA, FetchConfig, FetchRequest, RequestVersions
from ..types import (
    FUTURE_LOCAL_REPLICA_ID,
    NO_PARTITION_LEADER_EPOCH,
    UNDEFINED_EPOCH,
    BrokerEndPoint,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    OffsetAndEpoch,
    TopicPartition,
)
from .leader_endpoint import BuiltFetch, ReplicaFetch
from .replicas import FollowerReplicas, ReplicaQuota
from .state import PartitionFetchState


class LocalFetch(Protocol):
    """Reads this broker's own logs at once, as replica -3 (ReplicaManager.fetchMessages)."""

    def __call__(self, request: FetchRequest, /) -> Mapping[TopicPartition, FetchPartitionData]: ...


class LocalLeaderEndPoint:
    """Serves one partition at a time, the first by name, so that each move ends sooner."""

    def __init__(
        self,
        leader: BrokerEndPoint,
        replicas: FollowerReplicas,
        local_fetch: LocalFetch,
        quota: ReplicaQuota,
        clock: Clock,
        config: FetchConfig,
    ) -> None:
        self._leader = leader
        self._replicas = replicas
        self._local_fetch = local_fetch
        self._quota = quota
        self._clock = clock
        self._config = config
        self._version = RequestVersions.of(config.protocol).fetch
        self._in_progress: TopicPartition | None = None

    @property
    def is_truncation_on_fetch_supported(self) -> bool:
        """Never: a future replica always asks for the end of its epoch first."""
        return False

    def broker_end_point(self) -> BrokerEndPoint:
        """This broker."""
        return self._leader

    def initiate_close(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def fetch(self, fetch_request: FetchRequest, /) -> Mapping[TopicPartition, FetchPartitionData]:
        """Read the current log."""
        return self._local_fetch(fetch_request)

    def fetch_earliest_offset(
        self, partition: TopicPartition, _current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The current log's start."""
        log = self._replicas.local_log_or_exception(partition)
        return OffsetAndEpoch(log.log_start_offset, UNDEFINED_EPOCH)

    def fetch_earliest_local_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The current log's start: the whole log is local."""
        return self.fetch_earliest_offset(partition, current_leader_epoch)

    def fetch_latest_offset(
        self, partition: TopicPartition, _current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The current log's end."""
        log = self._replicas.local_log_or_exception(partition)
        return OffsetAndEpoch(log.log_end_offset, UNDEFINED_EPOCH)

    def fetch_epoch_end_offsets(
        self, partitions: Mapping[TopicPartition, EpochData], /
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        """Where the asked epochs end in the current log; failures as error codes."""
        return {tp: self._epoch_end_offset(tp, asked) for tp, asked in partitions.items()}

    def _epoch_end_offset(self, partition: TopicPartition, asked: EpochData) -> EpochEndOffset:
        epoch = asked.current_leader_epoch
        current = None if epoch == NO_PARTITION_LEADER_EPOCH else epoch
        try:
            return self._replicas.get_partition_or_exception(
                partition
            ).last_offset_for_leader_epoch(current, asked.leader_epoch, False)
        except Exception as error:  # noqa: BLE001 - the answer says it: the partition asks again
            return EpochEndOffset(Errors.for_exception(error))

    def build_fetch(
        self, partitions: Mapping[TopicPartition, PartitionFetchState], /
    ) -> BuiltFetch:
        """A fetch of one ready partition; nothing while the quota is exceeded."""
        if self._quota.is_quota_exceeded():
            return BuiltFetch(None, ())
        partition = self._select_partition_to_fetch(partitions)
        if partition is None:
            return BuiltFetch(None, ())
        return self._build_fetch_for_partition(partition, partitions[partition])

    def _select_partition_to_fetch(
        self, partitions: Mapping[TopicPartition, PartitionFetchState]
    ) -> TopicPartition | None:
        now_ms = self._clock.milliseconds()
        current = self._in_progress
        if current is not None:
            state = partitions.get(current)
            if state is not None and state.is_ready_for_fetch(now_ms):
                return current
        ready = (tp for tp, state in partitions.items() if state.is_ready_for_fetch(now_ms))
        self._in_progress = min(ready, default=None)
        return self._in_progress

    def _build_fetch_for_partition(
        self, partition: TopicPartition, state: PartitionFetchState
    ) -> BuiltFetch:
        try:
            log_start_offset = self._replicas.future_local_log_or_exception(
                partition
            ).log_start_offset
        except KafkaStorageException:
            return BuiltFetch(None, (partition,))
        asked = FetchPartitionRequest(
            state.topic_id_or_zero,
            state.fetch_offset,
            log_start_offset,
            self._config.partition_max_bytes,
            state.current_leader_epoch,
        )
        wanted = {partition: asked}
        # No waiting and no minimum: a future log that has caught up must be answered at once.
        request = FetchRequest(
            self._version,
            FUTURE_LOCAL_REPLICA_ID,
            self._config.broker_epoch,
            0,
            0,
            self._config.max_bytes,
            INITIAL_METADATA,
            wanted,
        )
        return BuiltFetch(ReplicaFetch(wanted, request), ())
