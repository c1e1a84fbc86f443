"""A partition's state on one broker: its logs, its leader, and the check of a request's epoch.

Source: Partition. Lock order: partition, then log manager, then log, then epoch cache.
"""

from __future__ import annotations

from collections.abc import Callable

from impl.clock import Clock
from impl.concurrency import Concurrency
from impl.errors import Errors, NotLeaderOrFollowerException
from impl.log import Log
from impl.log_manager import LogManager
from impl.partition_state import AlterPartitionManager, CommittedPartitionState, PartitionState
from impl.replica import MetadataCache, Replica
from impl.types import UNKNOWN_BROKER_EPOCH, TopicPartition


class PartitionCore:
    """Everything a partition holds; the constructor's time is replica.lag.time.max.ms."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        broker_id: int,
        clock: Clock,
        log_manager: LogManager,
        alter_partition_manager: AlterPartitionManager,
        metadata_cache: MetadataCache,
        concurrency: Concurrency,
        *,
        replica_lag_time_max_ms: int = 30_000,
        local_broker_epoch: Callable[[], int] = lambda: UNKNOWN_BROKER_EPOCH,
        high_watermark_checkpoint: Callable[[Log], int] = lambda _: 0,
        try_complete_delayed_requests: Callable[[TopicPartition], None] = lambda _: None,
    ) -> None:
        self.topic_partition = topic_partition
        self.broker_id = broker_id
        self.topic_id: str | None = None
        self.log: Log | None = None
        self.future_log: Log | None = None
        self.leader_replica_id: int | None = None
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = -1
        self.partition_state: PartitionState = CommittedPartitionState(frozenset())
        self.assignment: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self._remote_replicas: dict[int, Replica] = {}
        self._clock = clock
        self._log_manager = log_manager
        self._alter_partition_manager = alter_partition_manager
        self._metadata_cache = metadata_cache
        self._replica_lag_time_max_ms = replica_lag_time_max_ms
        self._local_broker_epoch = local_broker_epoch
        self._high_watermark_checkpoint = high_watermark_checkpoint
        self._try_complete_delayed_requests = try_complete_delayed_requests
        self._lock = concurrency.lock(f"leader-isr-update-{topic_partition}")

    # ---- who is who ------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads."""
        return self.leader_replica_id == self.broker_id

    @property
    def in_sync_replica_ids(self) -> frozenset[int]:
        """The committed ISR as this leader knows it; empty on a follower."""
        return self.partition_state.isr

    @property
    def is_reassigning(self) -> bool:
        """Whether the replicas are being changed."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def is_adding_local_replica(self) -> bool:
        """Whether this broker is being added."""
        return self.broker_id in self.adding_replicas

    def get_replica(self, broker_id: int) -> Replica | None:
        """The follower, if it is assigned and this broker leads."""
        return self._remote_replicas.get(broker_id)

    def remote_replicas(self) -> tuple[Replica, ...]:
        """All followers, while this broker leads."""
        return tuple(self._remote_replicas.values())

    def local_log_or_exception(self) -> Log:
        """The log. Raises `NotLeaderOrFollowerException` if this broker has none."""
        if self.log is None:
            raise NotLeaderOrFollowerException(f"no log of {self.topic_partition} here")
        return self.log

    def future_local_log_or_exception(self) -> Log:
        """The future log. Raises `NotLeaderOrFollowerException` if there is none."""
        if self.future_log is None:
            raise NotLeaderOrFollowerException(f"no future log of {self.topic_partition} here")
        return self.future_log

    def leader_log_if_local(self) -> Log | None:
        """The log if this broker leads."""
        return self.log if self.is_leader else None

    def create_log_if_not_exists(self, directory: str | None = None) -> Log:
        """Load or make the log; its high watermark comes from the checkpoint, within the log."""
        with self._lock:
            if self.log is None:
                log = self._log_manager.get_or_create_log(self.topic_partition, directory)
                log.update_high_watermark(self._high_watermark_checkpoint(log))
                self.log = log
            return self.log

    # ---- epoch check -----------------------------------------------------------------------

    def _check_current_leader_epoch(self, current_leader_epoch: int | None) -> Errors:
        if current_leader_epoch is None:
            return Errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH
        if current_leader_epoch > self.leader_epoch:
            return Errors.UNKNOWN_LEADER_EPOCH
        return Errors.NONE

    def _get_local_log(
        self, current_leader_epoch: int | None, require_leader: bool
    ) -> Log | Errors:
        """Epoch errors come before NOT_LEADER_OR_FOLLOWER (KIP-320)."""
        error = self._check_current_leader_epoch(current_leader_epoch)
        if error is not Errors.NONE:
            return error
        if require_leader and not self.is_leader:
            return Errors.NOT_LEADER_OR_FOLLOWER
        return Errors.NOT_LEADER_OR_FOLLOWER if self.log is None else self.log

    def local_log_with_epoch_or_throw(
        self, current_leader_epoch: int | None, require_leader: bool
    ) -> Log:
        """The log, if the request's epoch is this broker's. Raises the error's exception."""
        log = self._get_local_log(current_leader_epoch, require_leader)
        if isinstance(log, Errors):
            raise log.exception(
                f"{self.topic_partition}: request with epoch {current_leader_epoch},"
                f" leader {self.leader_replica_id} with epoch {self.leader_epoch}"
            )
        return log
