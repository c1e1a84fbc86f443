"""The application's consumer over its coordinator and its positions (ClassicKafkaConsumer)."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import IllegalStateException
from ..group.client.consumer_coordinator import CommitCallback, ConsumerCoordinator, Offsets
from ..group.client.network_client import ConsumerNetworkClient
from ..group.client.subscription_state import SubscriptionState
from ..group.client.timer import Timer
from ..types import TopicPartition


class ClassicKafkaConsumer:
    """Only the application's thread calls it; another one may call `wakeup`."""

    def __init__(
        self,
        coordinator: ConsumerCoordinator,
        network: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
    ) -> None:
        self.coordinator = coordinator
        self.network = network
        self.subscriptions = subscriptions

    # What it reads.

    def subscribe(self, topics: Iterable[str]) -> None:
        """Let the group assign. Raises IllegalStateException after `assign`."""
        self.subscriptions.subscribe(topics)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Own these, without a group; what was consumed is committed if the interval is over.

        Raises IllegalStateException after `subscribe`.
        """
        self.coordinator.maybe_auto_commit_offsets_async()
        self.subscriptions.assign(partitions)

    def unsubscribe(self) -> None:
        """Give everything up, and leave the group. Nothing is committed (KAFKA-4234)."""
        self.coordinator.on_leave_prepare()
        self.coordinator.maybe_leave_group("the consumer unsubscribed from all topics")
        self.subscriptions.unsubscribe()

    # The loop.

    def poll(self, timer: Timer) -> None:
        """One turn. Raises IllegalStateException if there is nothing to read."""
        self.network.maybe_trigger_wakeup()
        if not self.subscriptions.has_subscription:
            raise IllegalStateException("the consumer is subscribed to nothing: subscribe first")
        self.coordinator.poll(timer)

    def wakeup(self) -> None:
        """Let the call that waits now, or the next one, raise WakeupException."""
        self.network.wakeup()

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
