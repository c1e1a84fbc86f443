"""The leader's view of its followers: the ISR and the high watermark.

Source: Partition (KIP-497, KIP-841, KIP-903). Requests to the controller are sent without the lock,
as their completion takes it.
"""

from __future__ import annotations

from impl.errors import Errors
from impl.log import Log
from impl.partition_core import PartitionCore
from impl.partition_state import (
    CommittedPartitionState,
    LeaderAndIsr,
    PendingExpandIsr,
    PendingPartitionChange,
    PendingShrinkIsr,
)
from impl.replica import Replica
from impl.types import UNKNOWN_BROKER_EPOCH, LogOffsetMetadata


class PartitionIsr(PartitionCore):
    """Follower positions, ISR changes, high watermark."""

    # ---- leader: followers, ISR, high watermark --------------------------------------------

    def update_follower_fetch_state(
        self,
        replica: Replica,
        fetch_offset_metadata: LogOffsetMetadata,
        follower_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        broker_epoch: int = UNKNOWN_BROKER_EPOCH,
        read_in_epoch: int | None = None,
    ) -> None:
        """Note where a follower is; it may join the ISR, and the high watermark may rise.

        A read of an earlier leader epoch says nothing of this one (stricter than Kafka, where
        a new epoch may begin between the read and this call).
        """
        with self._lock:
            if read_in_epoch not in (None, self.leader_epoch):
                return
            previous_end_offset = replica.state.log_end_offset
            # Only for a deletion that waits for this follower: KIP-107.
            deletes = follower_start_offset > replica.state.log_start_offset and self.is_leader
            low_watermark = self.low_watermark_if_leader() if deletes else 0
            replica.update_fetch_state_or_throw(
                fetch_offset_metadata,
                follower_start_offset,
                fetch_time_ms,
                leader_end_offset,
                broker_epoch,
            )
        self.maybe_expand_isr(replica)
        incremented = False
        with self._lock:
            log = self.leader_log_if_local()
            if log is not None and previous_end_offset != replica.state.log_end_offset:
                incremented = self._maybe_increment_leader_hw(log, fetch_time_ms)
            if log is not None and deletes and self.low_watermark_if_leader() > low_watermark:
                incremented = True
        if incremented:
            self._try_complete_delayed_requests(self.topic_partition)

    def low_watermark_if_leader(self) -> int:
        """The smallest log start offset of the live replicas; unknown ones count as -1."""
        starts = [
            replica.state.log_start_offset
            for replica in self._remote_replicas.values()
            if self._metadata_cache.get_alive_broker_epoch(replica.broker_id) is not None
        ]
        return min([self.local_log_or_exception().log_start_offset, *starts])

    def maybe_expand_isr(self, replica: Replica) -> None:
        """Propose the follower for the ISR if it may and has caught up."""
        with self._lock:
            state = self.partition_state
            if not isinstance(state, CommittedPartitionState) or not self._needs_expand_isr(
                replica
            ):
                return
            proposed = self._prepare_isr_expand(state, replica.broker_id)
        self._submit_alter_partition(proposed)

    def _needs_expand_isr(self, replica: Replica) -> bool:
        return self._can_add_replica_to_isr(replica.broker_id) and self._is_follower_in_sync(
            replica
        )

    def _can_add_replica_to_isr(self, broker_id: int) -> bool:
        return broker_id not in self.partition_state.isr and self._is_replica_isr_eligible(
            broker_id
        )

    def _is_follower_in_sync(self, replica: Replica) -> bool:
        log = self.leader_log_if_local()
        end_offset = replica.state.log_end_offset
        return (
            log is not None
            and end_offset >= log.high_watermark
            # KAFKA-7128: it must also have reached this leader's epoch.
            and self.leader_epoch_start_offset is not None
            and end_offset >= self.leader_epoch_start_offset
        )

    def _is_replica_isr_eligible(self, broker_id: int) -> bool:
        replica = self._remote_replicas.get(broker_id)
        return (
            replica is not None
            and not self._metadata_cache.is_broker_fenced(broker_id)
            and not self._metadata_cache.is_broker_shutting_down(broker_id)
            and self._is_broker_epoch_isr_eligible(replica)
        )

    def _is_broker_epoch_isr_eligible(self, replica: Replica) -> bool:
        """KIP-903: what is known of the follower must stem from its present life."""
        stored = replica.state.broker_epoch
        current = self._metadata_cache.get_alive_broker_epoch(replica.broker_id)
        if stored is None or current is None:
            return False
        return stored in (UNKNOWN_BROKER_EPOCH, current)

    def maybe_shrink_isr(self) -> None:
        """Propose to drop the ISR members that lag too long."""
        with self._lock:
            state = self.partition_state
            out_of_sync = self.get_out_of_sync_replicas(self._replica_lag_time_max_ms)
            if not isinstance(state, CommittedPartitionState) or not out_of_sync:
                return
            proposed = self._prepare_isr_shrink(state, out_of_sync)
        self._submit_alter_partition(proposed)

    def get_out_of_sync_replicas(self, max_lag_ms: int) -> frozenset[int]:
        """ISR members not at the log end now and not within `max_lag_ms`; none on a follower."""
        log = self.leader_log_if_local()
        if log is None or self.partition_state.is_inflight:
            return frozenset()
        now_ms = self._clock.milliseconds()
        end_offset = log.log_end_offset
        members = self.partition_state.isr - {self.broker_id}
        return frozenset(
            id_
            for id_ in members
            if self._is_follower_out_of_sync(id_, end_offset, now_ms, max_lag_ms)
        )

    def _is_follower_out_of_sync(
        self, broker_id: int, leader_end_offset: int, now_ms: int, max_lag_ms: int
    ) -> bool:
        replica = self._remote_replicas.get(broker_id)
        return replica is None or not replica.state.is_caught_up(
            leader_end_offset, now_ms, max_lag_ms
        )

    def _maybe_increment_leader_hw(self, log: Log, now_ms: int) -> bool:
        """High watermark := least log end offset of all that are, or may soon be, in sync."""
        if len(self.partition_state.isr) < self._effective_min_isr(log):
            return False
        leader_end_offset = log.log_end_offset
        new_high_watermark = log.convert_to_offset_metadata(leader_end_offset)
        for replica in self._remote_replicas.values():
            position = replica.state.log_end_offset_metadata
            if position.message_offset < new_high_watermark.message_offset and (
                replica.broker_id in self.partition_state.maximal_isr
                or self._should_wait_for_replica_to_join_isr(replica, leader_end_offset, now_ms)
            ):
                new_high_watermark = position
        return log.maybe_increment_high_watermark(new_high_watermark) is not None

    def _should_wait_for_replica_to_join_isr(
        self, replica: Replica, leader_end_offset: int, now_ms: int
    ) -> bool:
        return replica.state.is_caught_up(
            leader_end_offset, now_ms, self._replica_lag_time_max_ms
        ) and self._is_replica_isr_eligible(replica.broker_id)

    def _effective_min_isr(self, log: Log) -> int:
        return min(log.config.min_insync_replicas, len(self.assignment))

    # ---- leader: ISR changes in flight -----------------------------------------------------

    def _prepare_isr_expand(
        self, state: CommittedPartitionState, broker_id: int
    ) -> PendingExpandIsr:
        isr = state.isr | {broker_id}
        pending = PendingExpandIsr(broker_id, self._leader_and_isr(isr), state, isr)
        self.partition_state = pending
        return pending

    def _prepare_isr_shrink(
        self, state: CommittedPartitionState, out_of_sync: frozenset[int]
    ) -> PendingShrinkIsr:
        pending = PendingShrinkIsr(
            out_of_sync, self._leader_and_isr(state.isr - out_of_sync), state
        )
        self.partition_state = pending
        return pending

    def _leader_and_isr(self, isr: frozenset[int]) -> LeaderAndIsr:
        members = tuple((id_, self._broker_epoch_of(id_)) for id_ in sorted(isr))
        return LeaderAndIsr(self.broker_id, self.leader_epoch, members, self.partition_epoch)

    def _broker_epoch_of(self, broker_id: int) -> int:
        if broker_id == self.broker_id:
            return self._local_broker_epoch()
        replica = self._remote_replicas.get(broker_id)
        stored = None if replica is None else replica.state.broker_epoch
        return UNKNOWN_BROKER_EPOCH if stored is None else stored

    def _submit_alter_partition(self, proposed: PendingPartitionChange) -> None:
        self._alter_partition_manager.submit(
            self.topic_partition,
            proposed.sent_leader_and_isr,
            lambda decision: self._complete_alter_partition(proposed, decision),
        )

    def _complete_alter_partition(
        self, proposed: PendingPartitionChange, decision: LeaderAndIsr | Errors
    ) -> None:
        incremented = retry = False
        with self._lock:
            if self.partition_state is not proposed:
                return  # a LeaderAndIsr came first; this answer is out of date
            if isinstance(decision, Errors):
                retry = self._handle_alter_partition_error(proposed, decision)
            else:
                incremented = self._handle_alter_partition_update(decision)
        if incremented:
            self._try_complete_delayed_requests(self.topic_partition)
        if retry:
            self._submit_alter_partition(proposed)

    def _handle_alter_partition_error(
        self, proposed: PendingPartitionChange, error: Errors
    ) -> bool:
        """Whether to send the same change again.

        Only of two errors it is certain that the change was not made. After the others that
        are final the change stays pending until the controller's next LeaderAndIsr.
        """
        if error in (Errors.OPERATION_NOT_ATTEMPTED, Errors.INELIGIBLE_REPLICA):
            self.partition_state = proposed.last_committed_state
            return False
        return error not in _FINAL_ALTER_PARTITION_ERRORS

    def _handle_alter_partition_update(self, decision: LeaderAndIsr) -> bool:
        """Take the controller's decision over; True iff the high watermark rose."""
        if decision.leader_epoch != self.leader_epoch:
            return False
        if decision.partition_epoch < self.partition_epoch:
            return False
        self.partition_state = CommittedPartitionState(decision.isr)
        self.partition_epoch = decision.partition_epoch
        # KAFKA-13091: the ISR may be smaller now, the high watermark free to rise.
        log = self.leader_log_if_local()
        return log is not None and self._maybe_increment_leader_hw(log, self._clock.milliseconds())


_FINAL_ALTER_PARTITION_ERRORS = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.FENCED_LEADER_EPOCH,
        Errors.INVALID_UPDATE_VERSION,
        Errors.INVALID_REQUEST,
        Errors.NEW_LEADER_ELECTED,
    }
)
