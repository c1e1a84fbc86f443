"""How a follower finds a valid fetch offset when its own lies outside the leader's log."""

from __future__ import annotations

import logging

from impl.errors import FencedLeaderEpochException
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.fetcher.truncation import TruncatingFetcher
from impl.types import OffsetTruncationState, TopicPartition

_log = logging.getLogger(__name__)


class OffsetResettingFetcher(TruncatingFetcher):
    """The part of AbstractFetcherThread that handles OFFSET_OUT_OF_RANGE."""

    def handle_out_of_range_error(
        self, partition: TopicPartition, state: PartitionFetchState, request_epoch: int | None
    ) -> bool:
        """Reset the fetch offset; True iff handled, False iff the partition must back off.

        Fenced although the local epoch has moved on counts as not handled. Kafka since 3.5
        retries that case without back-off (a side effect of KAFKA-13369).
        """
        try:
            new_state = self.fetch_offset_and_truncate(
                partition, state.topic_id, state.current_leader_epoch
            )
        except FencedLeaderEpochException:
            return not self.on_partition_fenced(partition, request_epoch)
        except Exception as error:  # noqa: BLE001 - whatever failed, it is tried again later
            _log.info("Error getting offset for partition %s", partition, exc_info=error)
            return False
        self._partition_states.update_and_move_to_end(partition, new_state)
        return True

    def fetch_offset_and_truncate(
        self, partition: TopicPartition, topic_id: str | None, current_leader_epoch: int
    ) -> PartitionFetchState:
        """A state that lies inside the leader's log, the local log truncated to fit it.

        The leader's log ends before ours: an unclean election; cut ours there. Otherwise ours is
        too old: go on at our end, or start over where the leader's log starts.
        Raises what the leader answers.
        """
        self._checkpoint("latest offset asked")
        leader_end = self.leader.fetch_latest_offset(partition, current_leader_epoch).offset
        log_end = self.log_end_offset(partition)
        if leader_end < log_end:
            self.truncate(partition, OffsetTruncationState(leader_end))
            return self._reset_state(partition, topic_id, current_leader_epoch, leader_end, 0)
        self._checkpoint("earliest offset asked")
        leader_start = self.leader.fetch_earliest_offset(partition, current_leader_epoch).offset
        if leader_start > log_end:
            self.truncate_fully_and_start_at(partition, leader_start)
        offset = max(leader_start, log_end)
        lag = leader_end - offset
        return self._reset_state(partition, topic_id, current_leader_epoch, offset, lag)

    def _reset_state(
        self,
        partition: TopicPartition,
        topic_id: str | None,
        current_leader_epoch: int,
        offset: int,
        lag: int,
    ) -> PartitionFetchState:
        self.fetcher_lag_stats.set_lag(partition, lag)
        return PartitionFetchState(
            topic_id,
            offset,
            lag,
            current_leader_epoch,
            None,
            ReplicaState.FETCHING,
            self.latest_epoch(partition),
        )
