"""What is observed of a cluster: each broker is read again only when an action has named it."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.systems.protocol import Observation
from conformance.systems.replication.cluster import ReplicationCluster
from conformance.systems.replication.storage import StorageChecks
from conformance.systems.replication.view import running, stopped
from conformance.systems.shared.replication.observation import ReplicationObserver
from conformance.systems.shared.replication.views import BrokerView


class ClusterView:
    """The observed variables. No two brokers share an object: other brokers' code has not run."""

    def __init__(self, cluster: ReplicationCluster) -> None:
        self._cluster = cluster
        self._observer = ReplicationObserver(cluster.model.names)
        self._storage = StorageChecks()
        self._views: dict[int, BrokerView] = {}

    @property
    def remembered(self) -> tuple[object, ...]:
        """What is true in every state: not a part of any snapshot."""
        return (self._observer, self._storage.started_on)

    def begin(self) -> None:
        """Other brokers come."""
        self._views.clear()
        self._storage.forget()

    def forget(self, brokers: Iterable[int]) -> None:
        """An action has changed these."""
        for broker in brokers:
            self._views.pop(broker, None)

    def forget_all(self) -> None:
        """An action has changed brokers that it does not name."""
        self._views.clear()

    def observe(self) -> Observation:
        """The observed variables as the brokers' objects have them now."""
        cluster, views = self._cluster, self._views
        cluster.concurrency.demand_started()
        for broker in cluster.brokers:
            if broker not in views:
                views[broker] = self._view(broker)
        return self._observer.observe(
            cluster.controller.registration, tuple([views[broker] for broker in cluster.brokers])
        )

    def _view(self, broker_id: int) -> BrokerView:
        cluster = self._cluster
        broker, trip = cluster.brokers[broker_id], cluster.channels[broker_id].trip
        look = running if cluster.online[broker_id] else stopped
        log = cluster.log(broker_id)
        # Of an interrupted step the state is judged; what is offline is not what the files hold.
        if not (cluster.is_interruptible or broker_id in cluster.offline_logs):
            self._storage.check(broker, log)
        return look(broker, log, trip, cluster.model.brokers)
