"""Controllers, brokers and ZooKeeper of one topic, and what is under way between them."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.systems.controller.connection import ControllerConnection
from conformance.systems.controller.controllers import ElectedController, elect
from conformance.systems.controller.node import TOPIC_PARTITION, ControllerNode
from conformance.systems.protocol import ActionRefused
from conformance.systems.threads import InterruptibleThreads, StartedThreads
from impl.control_requests import ControlRequest
from impl.controller.zookeeper_state import ZooKeeperState
from impl.disk import MemoryDisk


class ControllerCluster:
    """Controllers by their epochs, brokers by their numbers. `late`: of each broker the request
    that may arrive although its connection broke."""

    def __init__(self, brokers: Sequence[int], *, late_requests: bool) -> None:
        self.replicas = tuple(brokers)
        self.concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self.is_interruptible = False
        self.zookeeper = ZooKeeperState()
        self.nodes: dict[int, ControllerNode] = {}
        self.online: dict[int, bool] = {}
        self.late: dict[int, ControlRequest | None] = {}
        self.controllers: dict[int, ElectedController] = {}
        self.topics_created = 0
        self._late_requests = late_requests

    def reset(self) -> None:
        """The first controller is elected, and all brokers have heard who is alive."""
        if self.is_interruptible:
            self.concurrency = InterruptibleThreads()
        self.end_threads()
        self.zookeeper = ZooKeeperState(broker_epochs=dict.fromkeys(self.replicas, 0))
        self.nodes = {broker: self._start(broker, 0, MemoryDisk()) for broker in self.replicas}
        self.online = dict.fromkeys(self.replicas, True)
        self.late = dict.fromkeys(self.replicas)
        self.topics_created = 0
        first = elect(self.zookeeper)
        first.send()
        self.controllers = {first.kafka.context.epoch: first}
        for broker in self.replicas:
            self.send_request(1, broker)
            self.handle_request(1, broker)
            self.process_response(1, broker)

    def end_threads(self) -> None:
        """End the threads that wait for an answer."""
        for controller in self.controllers.values():
            for connection in controller.connections.values():
                connection.end()

    # ---- controllers -----------------------------------------------------------------------

    def controller(self, epoch: int) -> ElectedController:
        """Raises ActionRefused if there is none of this epoch."""
        controller = self.controllers.get(epoch)
        if controller is None:
            raise ActionRefused(f"there is no controller {epoch}")
        return controller

    def gathering(self, epoch: int) -> ElectedController:
        """A controller whose batch has begun."""
        controller = self.controller(epoch)
        controller.begin()
        return controller

    @property
    def assigned(self) -> tuple[int, ...]:
        """Who has a replica; where there is no topic, who will have one."""
        assignment = self.zookeeper.assignments.get(TOPIC_PARTITION)
        return self.replicas if assignment is None else assignment.replicas

    # ---- processes -------------------------------------------------------------------------

    def _start(self, broker: int, epoch: int, disk: MemoryDisk) -> ControllerNode:
        return ControllerNode(broker, epoch, disk, self.concurrency)

    def crash(self, broker: int) -> None:
        """The broker's process ends; its connections break."""
        node = self.nodes[broker]
        self.online[broker] = False
        del self.zookeeper.broker_epochs[broker]
        self.nodes[broker] = self._start(broker, node.epoch, node.disk)
        for controller in self.controllers.values():
            connection = controller.connections.get(broker)
            if connection is not None:
                connection.lose()

    def restart(self, broker: int) -> None:
        """A new process on the same disk, in the next broker epoch."""
        node = self.nodes[broker]
        self.online[broker] = True
        self.zookeeper.broker_epochs[broker] = node.epoch + 1
        self.nodes[broker] = self._start(broker, node.epoch + 1, node.disk)

    # ---- the network -----------------------------------------------------------------------

    def send_request(self, epoch: int, broker: int) -> None:
        """The sending thread takes the next request from its queue."""
        controller = self.controller(epoch)
        info = controller.info(broker)
        controller.connections[broker].send(info)

    def handle_request(self, epoch: int, broker: int) -> None:
        """The broker answers."""
        connection = self.controller(epoch).connections[broker]
        if connection.request is None or not connection.is_sent:
            raise ActionRefused("no request is under way")
        connection.response = self.nodes[broker].handle(connection.request)

    def process_response(self, epoch: int, broker: int) -> None:
        """The answer arrives at the controller."""
        self.controller(epoch).deliver(broker)

    def lose_connection(self, epoch: int, broker: int) -> None:
        """The connection breaks."""
        connection = self.controller(epoch).connections[broker]
        self.keep_late(connection, broker)
        connection.lose()

    def keep_late(self, connection: ControllerConnection | None, broker: int) -> None:
        """What was sent and not yet handled may arrive although its connection breaks."""
        if connection is None or not connection.is_sent or connection.response is not None:
            return
        if self._late_requests and self.late[broker] is None:
            self.late[broker] = connection.request

    def handle_late_request(self, broker: int) -> None:
        """The broker gets what it was sent on a connection that broke."""
        request = self.late[broker]
        if request is None:
            raise ActionRefused("no request is late")
        self.late[broker] = None
        self.nodes[broker].handle(request)
