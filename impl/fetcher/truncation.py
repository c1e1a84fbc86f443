"""How a follower cuts its log back to what it shares with the leader (KIP-101, 279, 320, 595)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from impl.errors import Errors, IllegalStateException
from impl.fetcher.followed_partitions import FollowedPartitions
from impl.types import (
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    EpochData,
    EpochEndOffset,
    FetchPartitionRequest,
    OffsetTruncationState,
    TopicPartition,
)

_log = logging.getLogger(__name__)

_NOTHING_REQUESTED: Mapping[TopicPartition, EpochData] = {}
_NOTHING_FETCHED: Mapping[TopicPartition, FetchPartitionRequest] = {}


class TruncatingPartitions(NamedTuple):
    """Truncating partitions: the question to ask for each, or that there is none to ask."""

    with_epoch: dict[TopicPartition, EpochData]
    without_epoch: tuple[TopicPartition, ...]


class TruncationResult(NamedTuple):
    """Where logs were truncated, and which partitions must ask again after a back-off."""

    offsets: dict[TopicPartition, OffsetTruncationState]
    partitions_with_error: tuple[TopicPartition, ...]


class TruncatingFetcher(FollowedPartitions):
    """The part of AbstractFetcherThread that truncates."""

    def maybe_truncate(self) -> None:
        """Truncate what needs it: by the leader's epochs where possible, else to the watermark."""
        partitions = self.fetch_truncating_partitions()
        if partitions.with_epoch:
            self.truncate_to_epoch_end_offsets(partitions.with_epoch)
        if partitions.without_epoch:
            self.truncate_to_high_watermark(partitions.without_epoch)

    def fetch_truncating_partitions(self) -> TruncatingPartitions:
        """What has to be asked for the truncating partitions that are not delayed."""
        with_epoch: dict[TopicPartition, EpochData] = {}
        without_epoch: list[TopicPartition] = []
        with self._lock:
            now_ms = self._clock.milliseconds()
            for partition, state in self._partition_states.items():
                if not state.is_truncating(now_ms):
                    continue
                latest_epoch = self.latest_epoch(partition)
                if latest_epoch is not None and self.is_offset_for_leader_epoch_supported:
                    with_epoch[partition] = EpochData(state.current_leader_epoch, latest_epoch)
                else:
                    without_epoch.append(partition)
        return TruncatingPartitions(with_epoch, tuple(without_epoch))

    def truncate_to_epoch_end_offsets(self, requests: Mapping[TopicPartition, EpochData]) -> None:
        """Ask the leader where the followers' latest epochs end, and truncate accordingly."""
        self._checkpoint("epoch request sent")
        answers = self.leader.fetch_epoch_end_offsets(requests)
        self._checkpoint("epoch request answered")
        self.process_epoch_end_offsets(requests, answers)

    def process_epoch_end_offsets(
        self,
        requests: Mapping[TopicPartition, EpochData],
        answers: Mapping[TopicPartition, EpochEndOffset],
    ) -> None:
        """Truncate by the answers to `requests`; a dropped answer leaves its partition truncating.

        Raises IllegalStateException for an answer that nobody asked for.
        """
        with self._lock:
            current = self._answers_of_current_epoch(requests, answers)
            result = self.maybe_truncate_to_epoch_end_offsets(current, requests)
            self.handle_partitions_with_errors(result.partitions_with_error)
            self.update_fetch_offset_and_maybe_mark_truncation_complete(result.offsets)

    def _answers_of_current_epoch(
        self,
        requests: Mapping[TopicPartition, EpochData],
        answers: Mapping[TopicPartition, EpochEndOffset],
    ) -> dict[TopicPartition, EpochEndOffset]:
        current = {}
        for partition, answer in answers.items():
            request = requests.get(partition)
            if request is None:
                raise IllegalStateException(f"an answer for {partition}, which was not asked for")
            state = self._partition_states.state_value(partition)
            if state is not None and state.current_leader_epoch == request.current_leader_epoch:
                current[partition] = answer
        return current

    def truncate_on_fetch_response(
        self,
        epoch_end_offsets: Mapping[TopicPartition, EpochEndOffset],
        session_partitions: Mapping[TopicPartition, FetchPartitionRequest] = _NOTHING_FETCHED,
    ) -> None:
        """Truncate by the diverging epochs of a fetch answer (KIP-595).

        `session_partitions` is what was asked: an answer to another leader epoch is dropped.
        """
        with self._lock:
            current = {
                partition: answer
                for partition, answer in epoch_end_offsets.items()
                if not self._has_another_epoch(partition, session_partitions.get(partition))
            }
            result = self.maybe_truncate_to_epoch_end_offsets(current, _NOTHING_REQUESTED)
            self.handle_partitions_with_errors(result.partitions_with_error)
            self.update_fetch_offset_and_maybe_mark_truncation_complete(result.offsets)

    def _has_another_epoch(
        self, partition: TopicPartition, requested: FetchPartitionRequest | None
    ) -> bool:
        state = self._partition_states.state_value(partition)
        if state is None or requested is None:
            return False
        return state.current_leader_epoch != requested.current_leader_epoch

    def maybe_truncate_to_epoch_end_offsets(
        self,
        answers: Mapping[TopicPartition, EpochEndOffset],
        requests: Mapping[TopicPartition, EpochData],
    ) -> TruncationResult:
        """Truncate the partitions that are still followed (KAFKA-13207). Called under the lock."""
        offsets: dict[TopicPartition, OffsetTruncationState] = {}
        with_error: list[TopicPartition] = []
        for partition, answer in answers.items():
            if not self._partition_states.contains(partition):
                continue
            if answer.error is Errors.NONE:
                truncation = self.get_offset_truncation_state(partition, answer)
                if self.do_truncate(partition, truncation):
                    offsets[partition] = truncation
            elif answer.error is Errors.FENCED_LEADER_EPOCH:
                request = requests.get(partition)
                epoch = None if request is None else request.current_leader_epoch
                if self.on_partition_fenced(partition, epoch):
                    with_error.append(partition)
            else:
                with_error.append(partition)
        return TruncationResult(offsets, tuple(with_error))

    def truncate_to_high_watermark(self, partitions: Collection[TopicPartition]) -> None:
        """Truncate to the fetch offset, which is the high watermark since the partition was added.

        The way of before KIP-101: loses committed records (KAFKA-3410) where epochs are missing.
        """
        with self._lock:
            offsets: dict[TopicPartition, OffsetTruncationState] = {}
            for partition in partitions:
                state = self._partition_states.state_value(partition)
                if state is None:  # removed meanwhile (KAFKA-8012)
                    continue
                truncation = OffsetTruncationState(state.fetch_offset, truncation_completed=True)
                if self.do_truncate(partition, truncation):
                    offsets[partition] = truncation
            self.update_fetch_offset_and_maybe_mark_truncation_complete(offsets)

    def do_truncate(self, partition: TopicPartition, truncation: OffsetTruncationState) -> bool:
        """Truncate; a failure fails the partition, not the thread (KIP-461). True on success."""
        try:
            self.truncate(partition, truncation)
        except Exception as error:  # noqa: BLE001 - kept as the failed partition's cause
            self.mark_partition_failed(partition, error)
            return False
        return True

    def get_offset_truncation_state(
        self, partition: TopicPartition, leader: EpochEndOffset
    ) -> OffsetTruncationState:
        """Where to truncate, given the leader's answer to the follower's latest epoch (KIP-279).

        Never beyond the local log end, except when the leader knows nothing: then the initial
        fetch offset is used as it is. Called under the lock, for a followed partition.
        """
        if leader.end_offset == UNDEFINED_EPOCH_OFFSET:
            return self._truncate_to_initial_offset(partition)
        log_end_offset = self.log_end_offset(partition)
        if leader.leader_epoch == UNDEFINED_EPOCH:  # an answer of before KIP-279
            return OffsetTruncationState(min(leader.end_offset, log_end_offset))
        local = self.end_offset_for_epoch(partition, leader.leader_epoch)
        if local is None:
            return OffsetTruncationState(min(leader.end_offset, log_end_offset))
        if local.leader_epoch != leader.leader_epoch:
            # The leader's epoch is unknown here: ask again, with the epoch that is latest then.
            offset = min(local.offset, log_end_offset)
            return OffsetTruncationState(offset, truncation_completed=False)
        return OffsetTruncationState(min(local.offset, leader.end_offset, log_end_offset))

    def _truncate_to_initial_offset(self, partition: TopicPartition) -> OffsetTruncationState:
        state = self._partition_states.state_value(partition)
        if state is None:
            raise IllegalStateException(f"{partition} is truncated but not followed")
        return OffsetTruncationState(state.fetch_offset)
