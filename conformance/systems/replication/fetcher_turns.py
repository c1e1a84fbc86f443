"""Turns of the fetchers' own loops: leaders answer at once, and errors are waited out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from conformance.systems.protocol import ActionRefused, Turn
from conformance.systems.replication.broker import TOPIC_PARTITION
from conformance.systems.replication.cluster import ReplicationCluster
from conformance.systems.replication.live import BACK_OFF_MS, CountedWaits, LiveConnection, Network
from impl.replica_manager import ReplicaManager


class FetcherTurns:
    """The loops of a cluster's fetchers, each by its broker's number."""

    def __init__(self, cluster: ReplicationCluster) -> None:
        self._cluster = cluster
        self._network = Network(self._handlers)
        self._waits = CountedWaits()

    def begin(self) -> None:
        """From the next reset on the brokers' connections and locks are those of turns."""
        cluster = self._cluster
        cluster.connect = partial(LiveConnection, network=self._network)
        cluster.concurrency = self._waits
        cluster.settings = replace(cluster.settings, fetch_back_off_ms=BACK_OFF_MS)

    def take(self, follower: int, *, lost: bool) -> Turn:
        """AbstractFetcherThread.doWork of this broker's fetcher, once."""
        fetcher = self._cluster.brokers[follower].fetcher()
        if fetcher is None or self._cluster.concurrency is not self._waits:
            raise ActionRefused("no fetcher follows the partition")
        self._network.lost, self._waits.count = lost, 0
        self._network.asked.clear()
        fetcher.do_work()
        return Turn(tuple(self._network.asked), self._waits.count > 0, self.backs_off(follower))

    def backs_off(self, follower: int) -> bool:
        """Whether the partition is delayed in the fetcher."""
        broker = self._cluster.brokers[follower]
        fetcher = broker.fetcher() if self._cluster.online[follower] else None
        state = None if fetcher is None else fetcher.fetch_state(TOPIC_PARTITION)
        return state is not None and state.is_delayed(broker.clock.milliseconds())

    def end_back_off(self, follower: int) -> None:
        """Let the broker's clock go on by as much."""
        self._cluster.brokers[follower].clock.sleep(BACK_OFF_MS)

    def _handlers(self, leader: int) -> ReplicaManager | None:
        broker = self._cluster.brokers[leader]
        return broker.replica_manager if self._cluster.online[leader] else None
