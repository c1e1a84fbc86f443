"""How a partition comes to a valid position: reset by ListOffsets, validated by leader epochs.

Source: OffsetFetcher with OffsetFetcherUtils. Its answers may be called back in any thread that
polls; what they change is one section of SubscriptionState. A request is of one partition.
"""

from __future__ import annotations

from typing import TypeVar

from ..clock import Clock
from ..errors import Errors
from ..group.client.errors import exception_of, is_retriable
from ..group.client.network_client import ConsumerNetworkClient
from ..group.client.request_future import RequestFuture
from ..group.client.subscription_state import (
    FetchPosition,
    LeaderAndEpoch,
    OffsetResetStrategy,
    SubscriptionState,
)
from ..network import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from ..types import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_PARTITION_LEADER_EPOCH,
    EpochData,
    TopicPartition,
)
from .consumer_metadata import ConsumerMetadata

CONSUMER_REPLICA_ID = -1
_LIST_OFFSETS_VERSION = 7
_LEADER_EPOCH_VERSION = 4
_TIMESTAMPS = {
    OffsetResetStrategy.EARLIEST: EARLIEST_TIMESTAMP,
    OffsetResetStrategy.LATEST: LATEST_TIMESTAMP,
}
STALE_METADATA_ERRORS = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.REPLICA_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.OFFSET_NOT_AVAILABLE,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_LEADER_EPOCH,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Another try may find the leader."""


class OffsetFetcher:
    """Asks for positions without waiting: the answers set them."""

    def __init__(
        self,
        network: ConsumerNetworkClient,
        metadata: ConsumerMetadata,
        subscriptions: SubscriptionState,
        clock: Clock,
        retry_backoff_ms: int,
    ) -> None:
        self._network = network
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._clock = clock
        self._retry_backoff_ms = retry_backoff_ms
        self._validated_version = -1
        self._reset_failure: Exception | None = None
        self._validation_failure: Exception | None = None

    # Reset.

    def reset_positions_if_needed(self) -> None:
        """Ask where to begin. Raises, once, what the answer before said that no retry cures."""
        failure, self._reset_failure = self._reset_failure, None
        if failure is not None:
            raise failure
        for partition in self._subscriptions.partitions_needing_reset(self._clock.milliseconds()):
            leader = self._metadata.current_leader(partition)
            state = self._subscriptions.state(partition)
            if leader.leader is None:
                self._metadata.request_update()
            elif state is not None and state.reset_strategy is not None:
                self._send_list_offsets(partition, leader, state.reset_strategy)

    def _send_list_offsets(
        self, partition: TopicPartition, leader: LeaderAndEpoch, strategy: OffsetResetStrategy
    ) -> None:
        assert leader.leader is not None
        self._await_answer(partition)
        epoch = NO_PARTITION_LEADER_EPOCH if leader.epoch is None else leader.epoch
        request = ListOffsetsRequest(
            _LIST_OFFSETS_VERSION, CONSUMER_REPLICA_ID, partition, epoch, _TIMESTAMPS[strategy]
        )
        self._network.send(leader.leader, request, ListOffsetsResponse).add_listener(
            lambda done: self._on_list_offsets(partition, strategy, done)
        )

    def _on_list_offsets(
        self,
        partition: TopicPartition,
        strategy: OffsetResetStrategy,
        done: RequestFuture[ListOffsetsResponse],
    ) -> None:
        error = _error_of(done, done.value.error if done.succeeded else Errors.NONE)
        if error is not None:
            self._retry_later(partition)
            if not _is_transient(error):
                self._reset_failure = self._reset_failure or error
            return
        position = FetchPosition(done.value.offset, None, self._metadata.current_leader(partition))
        if done.value.leader_epoch != NO_PARTITION_LEADER_EPOCH:
            self._metadata.update_last_seen_epoch_if_newer(partition, done.value.leader_epoch)
        self._subscriptions.maybe_seek_unvalidated(partition, position, strategy)

    # Validation.

    def validate_positions_if_needed(self) -> None:
        """Ask new leaders about positions. Raises, once, what the answer before found."""
        failure, self._validation_failure = self._validation_failure, None
        if failure is not None:
            raise failure
        self.validate_positions_on_metadata_change()
        now_ms = self._clock.milliseconds()
        for partition in self._subscriptions.partitions_needing_validation(now_ms):
            position = self._subscriptions.position(partition)
            assert position is not None
            if position.current_leader.leader is None:
                self._metadata.request_update()
            else:
                self._send_offsets_for_leader_epoch(partition, position)

    def validate_positions_on_metadata_change(self) -> None:
        """Metadata that is new may name new leaders."""
        version = self._metadata.update_version
        if version != self._validated_version:
            self._validated_version = version
            for partition in self._subscriptions.assigned_partitions:
                self._subscriptions.maybe_validate_position_for_current_leader(
                    partition, self._metadata.current_leader(partition)
                )

    def _send_offsets_for_leader_epoch(
        self, partition: TopicPartition, position: FetchPosition
    ) -> None:
        leader = position.current_leader
        assert leader.leader is not None
        assert position.offset_epoch is not None
        self._await_answer(partition)
        asked = {partition: EpochData(leader.epoch, position.offset_epoch)}
        request = OffsetsForLeaderEpochRequest(_LEADER_EPOCH_VERSION, CONSUMER_REPLICA_ID, asked)
        self._network.send(leader.leader, request, OffsetsForLeaderEpochResponse).add_listener(
            lambda done: self._on_offsets_for_leader_epoch(partition, position, done)
        )

    def _on_offsets_for_leader_epoch(
        self,
        partition: TopicPartition,
        asked: FetchPosition,
        done: RequestFuture[OffsetsForLeaderEpochResponse],
    ) -> None:
        end = done.value.partitions[partition] if done.succeeded else None
        error = _error_of(done, Errors.NONE if end is None else end.error)
        if error is not None:
            self._retry_later(partition)
            if not _is_transient(error):
                self._validation_failure = self._validation_failure or error
        elif end is not None:
            truncation = self._subscriptions.maybe_complete_validation(partition, asked, end)
            self._validation_failure = self._validation_failure or truncation

    def _await_answer(self, partition: TopicPartition) -> None:
        timeout_ms = self._network.default_request_timeout_ms
        self._subscriptions.set_next_allowed_retry(
            partition, self._clock.milliseconds() + timeout_ms
        )

    def _retry_later(self, partition: TopicPartition) -> None:
        retry_time_ms = self._clock.milliseconds() + self._retry_backoff_ms
        self._subscriptions.set_next_allowed_retry(partition, retry_time_ms)
        self._metadata.request_update()


AnswerT = TypeVar("AnswerT", ListOffsetsResponse, OffsetsForLeaderEpochResponse)


def _error_of(done: RequestFuture[AnswerT], code: Errors) -> Exception | None:
    """Why there is no answer, or what its error code stands for."""
    if done.failed:
        return done.exception
    return None if code is Errors.NONE else exception_of(code)


def _is_transient(error: Exception) -> bool:
    return is_retriable(error) or getattr(error, "error", None) in STALE_METADATA_ERRORS
