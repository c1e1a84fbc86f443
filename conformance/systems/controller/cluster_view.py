"""What is observed: a controller or a broker is read again only when an action has changed it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from conformance.systems.controller.cluster import ControllerCluster
from conformance.systems.controller.observation import (
    OF_BROKERS,
    OF_CONTROLLERS,
    ControllerNames,
    ControllerObserver,
)
from conformance.systems.protocol import Observation
from conformance.tla import Value, make_function

_OF_BROKERS = frozenset({"RestartBroker", "HandleLateRequest"})
"""Steps in which no controller takes part."""


class ControllerView:
    """The observed variables of a cluster."""

    def __init__(
        self, cluster: ControllerCluster, names: ControllerNames, epochs: Sequence[int]
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._epochs = epochs
        self.observer = ControllerObserver(names)
        self._controllers: dict[int, dict[str, Value]] = {}
        self._nodes: dict[int, dict[str, Value]] = {}

    def begin(self) -> None:
        """Other controllers and brokers come."""
        self._controllers.clear()
        self._nodes.clear()

    def forget(self, action: str, arguments: Sequence[Value]) -> None:
        """Read again what the action's objects hold; others share none with them."""
        if action in ("CrashBroker", "Resign") or self._cluster.is_interruptible:
            self.begin()
        elif action not in _OF_BROKERS:
            self._controllers.pop(cast("int", arguments[0]), None)
        if action in _OF_BROKERS or action == "HandleRequest":
            self._nodes.pop(cast("int", arguments[-1]), None)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        cluster, names = self._cluster, self._names
        cluster.concurrency.demand_started()
        for controller in cluster.controllers.values():
            controller.threads.demand_started()
        controllers = {epoch: self._controller(epoch) for epoch in self._epochs}
        nodes = {broker: self._node(broker) for broker in cluster.replicas}
        late = {broker: self.observer.request(cluster.late[broker]) for broker in cluster.replicas}
        values: dict[str, Value] = {
            "registration": self.observer.registration(cluster.zookeeper),
            "activeController": cluster.zookeeper.controller_epoch,
            "assigned": names.brokers(cluster.assigned),
            "online": names.by_broker(cluster.online),
            "late": names.by_broker(late),
        }
        for name in OF_CONTROLLERS:
            values[name] = make_function(
                {broker: seen[name] for broker, seen in controllers.items()}
            )
        for name in OF_BROKERS:
            values[name] = names.by_broker({broker: seen[name] for broker, seen in nodes.items()})
        return Observation(values)

    def _controller(self, epoch: int) -> dict[str, Value]:
        seen = self._controllers.get(epoch)
        if seen is None:
            seen = self.observer.controller(self._cluster.controllers.get(epoch))
            self._controllers[epoch] = seen
        return seen

    def _node(self, broker: int) -> dict[str, Value]:
        seen = self._nodes.get(broker)
        if seen is None:
            seen = self._nodes[broker] = self.observer.node(self._cluster.nodes[broker])
        return seen
