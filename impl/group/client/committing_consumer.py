"""When a consumer commits: on call, at intervals, before each join and as it closes.

Source: ConsumerCoordinator, the commit side of it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from impl.errors import KafkaException
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig
from impl.group.client.errors import RetriableCommitFailedException, is_retriable
from impl.group.client.network_client import ConsumerNetworkClient
from impl.group.client.offset_commits import OffsetCommitter, Offsets
from impl.group.client.request_future import RequestFuture
from impl.group.client.subscription_state import OffsetAndMetadata, SubscriptionState
from impl.group.client.timer import Timer
from impl.types import TopicPartition

_log = logging.getLogger(__name__)

CommitCallback = Callable[[Offsets, Exception | None], None]
ResultT = TypeVar("ResultT")


class CommittingConsumer(OffsetCommitter):
    """The part of ConsumerCoordinator that decides when to commit."""

    def __init__(
        self,
        config: GroupRebalanceConfig,
        consumer: ConsumerConfig,
        network: ConsumerNetworkClient,
        runtime: MemberRuntime,
        subscriptions: SubscriptionState,
    ) -> None:
        super().__init__(config, network, runtime, subscriptions)
        self._consumer = consumer
        self._join_prepare_timer: Timer | None = None
        self._auto_commit_future: RequestFuture[None] | None = None
        self._next_auto_commit = runtime.timer(consumer.auto_commit_interval_ms)
        self._completed_commits: deque[Callable[[], None]] = deque()

    def commit_before_join(self, timer: Timer) -> bool:
        """True: go on with the join, the offsets are committed or cannot be (KAFKA-14024).

        One commit at a time over all calls, and for at most the rebalance time-out.
        """
        if self._join_prepare_timer is None:
            self._join_prepare_timer = self._runtime.timer(self.config.rebalance_timeout_ms)
        limit = self._join_prepare_timer
        limit.update()
        if self._consumer.enable_auto_commit and self._auto_commit_future is None:
            self.subscriptions.mark_pending_revocation(self.subscriptions.assigned_partitions)
            self._auto_commit_future = self._auto_commit()
        commit = self._auto_commit_future
        if commit is None:
            return True
        shorter = min(timer, limit, key=lambda each: each.remaining_ms)
        self.network.poll(commit, shorter)
        limit.update()
        if limit.is_expired or (commit.is_done and not (commit.failed and commit.is_retriable)):
            return True
        if commit.is_done:
            self._auto_commit_future = None
        shorter.sleep(self.config.retry_backoff_ms)
        timer.update()
        return False

    def commit_before_join_done(self) -> None:
        """The next rebalance starts with a new commit and a new time limit."""
        self._join_prepare_timer = None
        self._auto_commit_future = None

    def restart_auto_commit_interval(self) -> None:
        """New partitions are committed after a whole interval."""
        self._next_auto_commit.update_and_reset(self._consumer.auto_commit_interval_ms)

    def maybe_auto_commit_offsets_async(self) -> None:
        """Commit the positions if the interval is over."""
        if not self._consumer.enable_auto_commit:
            return
        self._next_auto_commit.update()
        if self._next_auto_commit.is_expired:
            self._next_auto_commit.reset(self._consumer.auto_commit_interval_ms)
            self._auto_commit()

    def _auto_commit(self) -> RequestFuture[None]:
        return self.commit_offsets_async(self.subscriptions.all_consumed(), self._on_auto_commit)

    def _on_auto_commit(self, _offsets: Offsets, error: Exception | None) -> None:
        if isinstance(error, RetriableCommitFailedException):
            # Soon again, not only after a whole interval.
            self._next_auto_commit.update_and_reset(self.config.retry_backoff_ms)
        elif error is not None:
            _log.warning("Asynchronous auto-commit of offsets failed: %s", error)

    def commit_offsets_async(
        self, offsets: Offsets, callback: CommitCallback | None = None
    ) -> RequestFuture[None]:
        """Commit without waiting; `callback` runs in a later poll of the application's thread."""
        if self.coordinator_unknown():
            future: RequestFuture[None] = RequestFuture()
            self.lookup_coordinator().add_listener(
                lambda found: self._commit_once_found(found, offsets, future)
            )
        else:
            future = self.send_offset_commit_request(offsets)
        future.add_listener(lambda done: self._queue_callback(done, offsets, callback))
        self.network.poll_no_wakeup()
        return future

    def _commit_once_found(
        self, found: RequestFuture[None], offsets: Offsets, future: RequestFuture[None]
    ) -> None:
        if found.failed:
            future.fail(found.exception)
        else:
            self.send_offset_commit_request(offsets).chain(future)

    def _queue_callback(
        self, done: RequestFuture[None], offsets: Offsets, callback: CommitCallback | None
    ) -> None:
        if callback is not None:
            error = _commit_error(done)
            self._completed_commits.append(lambda: callback(offsets, error))

    def invoke_completed_offset_commit_callbacks(self) -> None:
        """Call back for asynchronous commits that are through, in their order."""
        while self._completed_commits:
            self._completed_commits.popleft()()

    def commit_offsets_sync(self, offsets: Offsets, timer: Timer) -> bool:
        """Commit and wait; False if time ran out. Raises what another try would not cure."""
        if not offsets:
            return True
        attempts = 0
        while True:
            if not self.ensure_coordinator_ready(timer):
                return False
            future = self.send_offset_commit_request(offsets)
            self.network.poll(future, timer)
            self.invoke_completed_offset_commit_callbacks()
            if future.succeeded:
                return True
            _raise_unless_retriable(future)
            timer.sleep(self.retry_backoff.backoff(attempts))
            attempts += 1
            if timer.is_expired:
                return False

    def fetch_committed_offsets(
        self, partitions: Iterable[TopicPartition], timer: Timer
    ) -> dict[TopicPartition, OffsetAndMetadata] | None:
        """The committed positions; None if time ran out. Raises what another try cannot cure."""
        wanted = tuple(partitions)
        attempts = 0
        while wanted:
            if not self.ensure_coordinator_ready(timer):
                return None
            future = self.send_offset_fetch_request(wanted)
            self.network.poll(future, timer)
            if future.succeeded:
                return future.value
            _raise_unless_retriable(future)
            timer.sleep(self.retry_backoff.backoff(attempts))
            attempts += 1
            if timer.is_expired:
                return None
        return {}

    def close(self, timer: Timer) -> None:
        """Commit what was consumed, leave, wait for what is in flight."""
        try:
            if self._consumer.enable_auto_commit and not self.coordinator_unknown():
                self._commit_on_close(timer)
        finally:
            super().close(timer)
            self.invoke_completed_offset_commit_callbacks()

    def _commit_on_close(self, timer: Timer) -> None:
        try:
            self.commit_offsets_sync(self.subscriptions.all_consumed(), timer)
        except KafkaException as error:
            _log.warning("Synchronous auto-commit of offsets failed: %s", error)


def _commit_error(done: RequestFuture[None]) -> Exception | None:
    if not done.failed:
        return None
    if is_retriable(done.exception):
        return RetriableCommitFailedException(str(done.exception))
    return done.exception


def _raise_unless_retriable(future: RequestFuture[ResultT]) -> None:
    if future.failed and not future.is_retriable:
        raise future.exception
