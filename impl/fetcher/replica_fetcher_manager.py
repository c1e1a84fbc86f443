"""The fetcher managers of a broker: for remote leaders, and for moves between directories."""

from __future__ import annotations

from typing import Protocol

from ..metrics import BrokerTopicStats
from ..network import BlockingSend, FetchConfig
from ..types import BrokerEndPoint
from .abstract_fetcher_manager import AbstractFetcherManager
from .abstract_fetcher_thread import FetcherRuntime
from .fetch_session_handler import FetchSessionHandler
from .local_leader_endpoint import LocalFetch, LocalLeaderEndPoint
from .remote_leader_endpoint import RemoteLeaderEndPoint
from .replica_alter_log_dirs_thread import ReplicaAlterLogDirsThread
from .replica_fetcher_thread import ReplicaFetcherThread
from .replicas import (
    AlterLogDirsManager,
    DirectoryEventHandler,
    FollowerReplicas,
    ReplicaQuota,
)


class SenderFactory(Protocol):
    """Opens a connection to a leader; each fetcher thread has its own."""

    def __call__(self, leader: BrokerEndPoint, fetcher_id: int, /) -> BlockingSend: ...


class ReplicaFetcherManager(AbstractFetcherManager[ReplicaFetcherThread]):
    """Fetcher threads for the partitions that this broker follows (ReplicaFetcherManager)."""

    def __init__(
        self,
        config: FetchConfig,
        replicas: FollowerReplicas,
        quota: ReplicaQuota,
        connect: SenderFactory,
        runtime: FetcherRuntime,
        num_fetchers: int = 1,
        fetch_back_off_ms: int = 1_000,
        alter_log_dirs_manager: AlterLogDirsManager | None = None,
    ) -> None:
        name = f"ReplicaFetcherManager on broker {config.replica_id}"
        super().__init__(name, "Replica", num_fetchers, runtime)
        self._config = config
        self._replicas = replicas
        self._quota = quota
        self._connect = connect
        self._fetch_back_off_ms = fetch_back_off_ms
        self._alter_log_dirs_manager = alter_log_dirs_manager
        self._topic_stats = BrokerTopicStats(runtime.metrics)

    def create_fetcher_thread(
        self, fetcher_id: int, source_broker: BrokerEndPoint
    ) -> ReplicaFetcherThread:
        """A thread with its own connection and fetch session."""
        leader = RemoteLeaderEndPoint(
            source_broker,
            self._connect(source_broker, fetcher_id),
            FetchSessionHandler(self._config.fetch_sessions),
            self._replicas,
            self._quota,
            self._runtime.clock,
            self._config,
        )
        return ReplicaFetcherThread(
            f"ReplicaFetcherThread-{fetcher_id}-{source_broker.id}",
            leader,
            self._config,
            self.failed_partitions,
            self._replicas,
            self._quota,
            self._topic_stats,
            self._runtime,
            self._fetch_back_off_ms,
            self._alter_log_dirs_manager,
        )

    def shutdown(self) -> None:
        """Stop every thread."""
        self.close_all_fetchers()


class ReplicaAlterLogDirsManager(AbstractFetcherManager[ReplicaAlterLogDirsThread]):
    """Fetcher threads for logs that move between directories (ReplicaAlterLogDirsManager)."""

    def __init__(
        self,
        config: FetchConfig,
        replicas: FollowerReplicas,
        local_fetch: LocalFetch,
        quota: ReplicaQuota,
        runtime: FetcherRuntime,
        num_fetchers: int = 1,
        fetch_back_off_ms: int = 1_000,
        directory_event_handler: DirectoryEventHandler | None = None,
    ) -> None:
        name = f"ReplicaAlterLogDirsManager on broker {config.replica_id}"
        super().__init__(name, "ReplicaAlterLogDirs", num_fetchers, runtime)
        self._config = config
        self._replicas = replicas
        self._local_fetch = local_fetch
        self._quota = quota
        self._fetch_back_off_ms = fetch_back_off_ms
        self._directory_event_handler = directory_event_handler

    def create_fetcher_thread(
        self, fetcher_id: int, source_broker: BrokerEndPoint
    ) -> ReplicaAlterLogDirsThread:
        """A thread whose leader is this broker itself."""
        leader = LocalLeaderEndPoint(
            source_broker,
            self._replicas,
            self._local_fetch,
            self._quota,
            self._runtime.clock,
            self._config,
        )
        return ReplicaAlterLogDirsThread(
            f"ReplicaAlterLogDirsThread-{fetcher_id}",
            leader,
            self.failed_partitions,
            self._replicas,
            self._quota,
            self._runtime,
            self._fetch_back_off_ms,
            self._directory_event_handler,
        )

    def shutdown(self) -> None:
        """Stop every thread."""
        self.close_all_fetchers()
