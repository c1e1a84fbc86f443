"""The application's consumer over its coordinator and its positions (ClassicKafkaConsumer)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import IllegalStateException
from ..group.client.consumer_coordinator import CommitCallback, ConsumerCoordinator, Offsets
from ..group.client.network_client import ConsumerNetworkClient
from ..group.client.subscription_state import (
    FetchPosition,
    OffsetAndMetadata,
    OffsetResetStrategy,
    SubscriptionState,
)
from ..group.client.timer import Timer
from ..types import NO_PARTITION_LEADER_EPOCH, TopicPartition
from .consumer_metadata import ConsumerMetadata
from .fetcher import ConsumerRecord, Fetcher
from .offset_fetcher import OffsetFetcher


@dataclass(frozen=True, slots=True)
class Fetching:
    """What a consumer needs to read records."""

    metadata: ConsumerMetadata
    offset_fetcher: OffsetFetcher
    fetcher: Fetcher


class ClassicKafkaConsumer:
    """Only the application's thread calls it; another one may call `wakeup`.

    Without `fetching` it reads nothing: whoever drives it moves its positions.
    """

    def __init__(
        self,
        coordinator: ConsumerCoordinator,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        fetching: Fetching | None = None,
    ) -> None:
        self.coordinator = coordinator
        self.network = network
        self.subscriptions = subscriptions
        self._fetching = fetching

    # What it reads.

    def subscribe(self, topics: Iterable[str]) -> None:
        """Let the group assign. Raises IllegalStateException after `assign`."""
        self.subscriptions.subscribe(topics)

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Let the group assign partitions of topics that match, also of those to come.

        Raises IllegalStateException after `subscribe` and after `assign`.
        """
        self.subscriptions.subscribe_pattern(pattern)
        self.coordinator.update_pattern_subscription()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Own these, without a group; what was consumed is committed if the interval is over.

        Raises IllegalStateException after `subscribe`.
        """
        wanted = tuple(partitions)
        if self._fetching is not None:
            self._fetching.fetcher.clear_buffered_data_for_unassigned_partitions(wanted)
        self.coordinator.maybe_auto_commit_offsets_async()
        self.subscriptions.assign(wanted)

    def unsubscribe(self) -> None:
        """Give everything up, and leave the group. Nothing is committed (KAFKA-4234)."""
        if self._fetching is not None:
            self._fetching.fetcher.clear_buffered_data_for_unassigned_partitions(())
        self.coordinator.on_leave_prepare()
        self.coordinator.maybe_leave_group("the consumer unsubscribed from all topics")
        self.subscriptions.unsubscribe()

    # The loop.

    def poll(self, timer: Timer) -> list[ConsumerRecord]:
        """One turn. Raises IllegalStateException if there is nothing to read."""
        self.network.maybe_trigger_wakeup()
        if not self.subscriptions.has_subscription:
            raise IllegalStateException("the consumer is subscribed to nothing: subscribe first")
        is_assigned = self.coordinator.poll(timer)
        if self._fetching is None:
            return []
        if is_assigned:
            self._update_fetch_positions(self._fetching, timer)
        return self._poll_for_fetches(self._fetching, timer)

    def _update_fetch_positions(self, fetching: Fetching, timer: Timer) -> None:
        """Validate, look up what was committed, reset: what is not at hand comes later."""
        fetching.offset_fetcher.validate_positions_if_needed()
        if self.subscriptions.has_all_fetch_positions():
            return
        if not self._init_with_committed_offsets_if_needed(fetching, timer):
            return
        self.subscriptions.reset_initializing_positions()
        fetching.offset_fetcher.reset_positions_if_needed()

    def _init_with_committed_offsets_if_needed(self, fetching: Fetching, timer: Timer) -> bool:
        """False: the committed positions are not known in time."""
        initializing = self.subscriptions.initializing_partitions()
        committed = self.coordinator.fetch_committed_offsets(initializing, timer)
        if committed is None:
            return False
        for partition, offset in committed.items():
            if partition in self.subscriptions.assigned_partitions:
                if offset.leader_epoch != NO_PARTITION_LEADER_EPOCH:
                    fetching.metadata.update_last_seen_epoch_if_newer(
                        partition, offset.leader_epoch
                    )
                self._seek(fetching, partition, offset)
        return True

    def _poll_for_fetches(self, fetching: Fetching, timer: Timer) -> list[ConsumerRecord]:
        """What is in the buffer, else what comes in time; the next fetch is under way then."""
        records = fetching.fetcher.collect_fetch()
        if not records:
            self._send_fetches(fetching)
            self.network.poll_until_answered(timer)
            records = fetching.fetcher.collect_fetch()
        if records:
            self._send_fetches(fetching)
            self.network.transmit_sends()
        return records

    def _send_fetches(self, fetching: Fetching) -> None:
        fetching.offset_fetcher.validate_positions_on_metadata_change()
        fetching.fetcher.send_fetches()

    def wakeup(self) -> None:
        """Let the call that waits now, or the next one, raise WakeupException."""
        self.network.wakeup()

    # Positions.

    def seek(self, partition: TopicPartition, offset: OffsetAndMetadata) -> None:
        """The next record to read; with an epoch the leader is asked about it first."""
        fetching = self._reads()
        if offset.leader_epoch != NO_PARTITION_LEADER_EPOCH:
            fetching.metadata.update_last_seen_epoch_if_newer(partition, offset.leader_epoch)
        self._seek(fetching, partition, offset)

    def _seek(
        self, fetching: Fetching, partition: TopicPartition, offset: OffsetAndMetadata
    ) -> None:
        known = offset.leader_epoch != NO_PARTITION_LEADER_EPOCH
        position = FetchPosition(
            offset.offset,
            offset.leader_epoch if known else None,
            fetching.metadata.current_leader(partition),
        )
        self.subscriptions.seek_unvalidated(partition, position)

    def seek_to_beginning(self, partition: TopicPartition) -> None:
        """From the next poll on, read from the log's start."""
        self.subscriptions.request_offset_reset(partition, OffsetResetStrategy.EARLIEST)

    def seek_to_end(self, partition: TopicPartition) -> None:
        """From the next poll on, read what comes new."""
        self.subscriptions.request_offset_reset(partition, OffsetResetStrategy.LATEST)

    def _reads(self) -> Fetching:
        if self._fetching is None:
            raise IllegalStateException("this consumer was made without `fetching`")
        return self._fetching

    # Commits.

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Commit without waiting."""
        self.coordinator.commit_offsets_async(offsets, callback)

    def commit_sync(self, offsets: Offsets, timer: Timer) -> None:
        """Commit, and wait. Raises TimeoutException if time runs out."""
        if not self.coordinator.commit_offsets_sync(offsets, timer):
            raise CommitTimeoutException("the commit was not answered in time; it may be taken yet")

    def close(self, timer: Timer) -> None:
        """Commit, leave, and wait for what is in flight."""
        self.coordinator.close(timer)


class CommitTimeoutException(Exception):
    """commitSync has waited in vain (TimeoutException)."""
