"""Watches operations under their keys until an event or their time-out completes them.

Source: DelayedOperationPurgatory and its ExpiredOperationReaper.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Generic

from ..concurrency import Concurrency
from ..errors import IllegalStateException
from ..fetcher.shutdownable_thread import ShutdownableThread
from ..metrics import MetricName, MetricsRegistry
from .atomic import AtomicInteger
from .delayed_operation import DelayedOperation
from .timer_task import Timer
from .watchers import Key, OperationT, WatcherLists

_log = logging.getLogger(__name__)

DEFAULT_PURGE_INTERVAL = 1000
"""How many completed operations may stay in the lists (purgatory.purge.interval.requests)."""
DEFAULT_SHARDS = 512
REAPER_POLL_MS = 200
"""How long the reaper waits at most for something to be due."""


class DelayedOperationPurgatory(Generic[OperationT]):
    """Operations that wait, each under one or more keys and in the timer.

    A completed operation leaves the timer at once, its lists when one of its keys is checked, or
    when `purge_interval` operations have completed since the last purge. Without a reaper the
    owner calls `advance_clock` itself.
    """

    def __init__(
        self,
        name: str,
        timer: Timer,
        concurrency: Concurrency,
        *,
        broker_id: int = 0,
        purge_interval: int = DEFAULT_PURGE_INTERVAL,
        shards: int = DEFAULT_SHARDS,
        reaper_enabled: bool = True,
        timer_enabled: bool = True,
        metrics: MetricsRegistry | None = None,
    ) -> None:
        self.name = name
        self._timer = timer
        self._purge_interval = purge_interval
        self._timer_enabled = timer_enabled
        self._watcher_lists: WatcherLists[OperationT] = WatcherLists(name, shards, concurrency)
        self._estimated_total_operations = AtomicInteger(concurrency.lock(f"{name} estimated"))
        self._metrics = metrics
        self._register_metrics()
        self._reaper: ExpiredOperationReaper[OperationT] | None = None
        if reaper_enabled:
            self._reaper = ExpiredOperationReaper(self, broker_id, concurrency)
            self._reaper.start()

    # ---- operations ------------------------------------------------------------------------

    def try_complete_else_watch(self, operation: OperationT, keys: Sequence[Key]) -> bool:
        """Complete the operation, or keep it under all its keys. True iff this call completed it.

        Raises `IllegalStateException` without a key: nothing but time could complete it.
        """
        if not keys:
            raise IllegalStateException("the watch keys of a delayed operation must not be empty")

        def watch() -> None:
            for key in keys:
                self._watcher_lists.of(key).watch(key, operation)
            self._estimated_total_operations.add(1)

        if operation.safe_try_complete_or_else(watch):
            return True
        self._add_to_timer(operation)
        return False

    def _add_to_timer(self, operation: OperationT) -> None:
        if self._timer_enabled and not operation.is_completed:
            self._timer.add(operation)
            # Whoever has completed it meanwhile may have found no entry to remove.
            _cancel_if_completed(operation)

    def check_and_complete(self, key: Key) -> int:
        """An event of this key has come: try all that watch it; how many this call completed."""
        shard = self._watcher_lists.of(key)
        watchers = shard.get(key)
        if watchers is None:
            return 0
        completed = watchers.try_complete_watched()
        if watchers.is_empty:
            shard.remove_if_empty(key, watchers)
        if completed:
            _log.debug("[%s]: %s unblocked %d operations", self.name, key, completed)
        return completed

    def cancel_for_key(self, key: Key) -> tuple[OperationT, ...]:
        """Forget all that watch this key, timers included, and give what was not complete.

        Nothing is completed; under their other keys the operations stay watched.
        """
        watchers = self._watcher_lists.of(key).remove(key)
        return () if watchers is None else watchers.cancel()

    # ---- size ------------------------------------------------------------------------------

    @property
    def watched(self) -> int:
        """Entries in all lists: one operation counts once for each key, also a completed one."""
        return self._watcher_lists.count_watched()

    @property
    def num_delayed(self) -> int:
        """Operations that the timer holds: none of them is complete."""
        return self._timer.size

    @property
    def estimated_total_operations(self) -> int:
        """How many operations began to wait since the last purge, with those that waited then."""
        return self._estimated_total_operations.get()

    def watchers(self) -> dict[Key, tuple[OperationT, ...]]:
        """Who watches which key now, completed ones that are still in the lists included."""
        return self._watcher_lists.by_key()

    # ---- time ------------------------------------------------------------------------------

    def advance_clock(self, timeout_ms: int) -> None:
        """Let expire what is due, after waiting at most `timeout_ms`, and purge if it is time."""
        self._timer.advance_clock(timeout_ms)
        self.maybe_purge()

    def maybe_purge(self) -> None:
        """Drop completed operations from all lists, if more than `purge_interval` may be there."""
        delayed = self.num_delayed
        if self._estimated_total_operations.get() - delayed > self._purge_interval:
            # Before the purge: what completes meanwhile counts for the next one.
            self._estimated_total_operations.set(delayed)
            purged = self._watcher_lists.purge_completed()
            _log.debug("[%s]: purged %d entries", self.name, purged)

    def shutdown(self) -> None:
        """Stop the reaper and the timer. What is watched stays so and is never completed."""
        if self._reaper is not None:
            self._reaper.shutdown()
        self._timer.shutdown()
        if self._metrics is not None:
            for metric in self._metric_names():
                self._metrics.remove(metric)

    # ---- metrics ---------------------------------------------------------------------------

    def _metric_names(self) -> tuple[MetricName, MetricName]:
        tags = (("delayedOperation", self.name),)
        type_ = "DelayedOperationPurgatory"
        return (
            MetricName(type_, "PurgatorySize", tags),
            MetricName(type_, "NumDelayedOperations", tags),
        )

    def _register_metrics(self) -> None:
        if self._metrics is not None:
            size, delayed = self._metric_names()
            self._metrics.new_gauge(size, lambda: self.watched)
            self._metrics.new_gauge(delayed, lambda: self.num_delayed)


def _cancel_if_completed(operation: DelayedOperation) -> None:
    if operation.is_completed:
        operation.cancel()


class ExpiredOperationReaper(ShutdownableThread, Generic[OperationT]):
    """Moves a purgatory's clock on, at least every 200 ms."""

    def __init__(
        self,
        purgatory: DelayedOperationPurgatory[OperationT],
        broker_id: int,
        concurrency: Concurrency,
    ) -> None:
        super().__init__(f"ExpirationReaper-{broker_id}-{purgatory.name}", concurrency)
        self._purgatory = purgatory

    def do_work(self) -> None:
        """Wait for something to be due, and let it expire."""
        self._purgatory.advance_clock(REAPER_POLL_MS)
