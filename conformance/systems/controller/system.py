"""The system under test: controllers and brokers, driven by ControllerRequests.tla's actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import cast

from conformance.errors import UserError
from conformance.systems.controller.connection import ControllerConnection
from conformance.systems.controller.controllers import ElectedController, elect
from conformance.systems.controller.node import TOPIC_PARTITION, ControllerNode
from conformance.systems.controller.observation import (
    OF_BROKERS,
    OF_CONTROLLERS,
    VARIABLES,
    ControllerNames,
    ControllerObserver,
    topic_id,
)
from conformance.systems.protocol import ActionRefused, CannotSnapshot, Observation
from conformance.systems.rewinding import Rewinder, Snapshot
from conformance.systems.threads import InterruptibleThreads, StartedThreads
from conformance.tla import Action, Value, make_function
from impl.control_requests import ControlRequest
from impl.controller.context import ReplicaAssignment
from impl.controller.zookeeper_state import ZooKeeperState
from impl.disk import MemoryDisk

_HANDLERS = frozenset({"HandleRequest", "HandleLateRequest"})
"""Steps of a broker's request handlers, each of which may have a thread of its own."""

_OF_BROKERS = frozenset({"RestartBroker", "HandleLateRequest"})
"""Steps in which no controller takes part."""


class ControllerSystem:
    """Controllers, named by their epochs, and brokers; nothing moves but by an action."""

    variables = VARIABLES
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        replicas = constants["Replicas"]
        epochs = constants["ControllerEpochs"]
        if not isinstance(replicas, tuple) or not isinstance(epochs, frozenset):
            raise UserError("Replicas must be a sequence of brokers, ControllerEpochs a set.")
        self._names = ControllerNames(tuple(str(name) for name in replicas))
        self._brokers = tuple(self._names.ids.values())
        self._epochs = sorted(cast("int", epoch) for epoch in epochs)
        self._late_requests = constants["LateRequests"] is True
        self._observer = ControllerObserver(self._names)
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self._actions: dict[str, Callable[..., None]] = {
            "CreateTopic": self._create_topic,
            "ElectLeader": self._elect_leader,
            "DeleteTopic": self._delete_topic,
            "CompleteDeletion": self._complete_deletion,
            "RemoveReplica": self._remove_replica,
            "AddReplica": self._add_replica,
            "OnBrokerFailure": self._on_broker_failure,
            "OnBrokerStartup": self._on_broker_startup,
            "ControlledShutdown": self._controlled_shutdown,
            "CrashBroker": self._crash_broker,
            "RestartBroker": self._restart_broker,
            "SendRequestsToBrokers": lambda epoch: self._controller(epoch).send(),
            "FailToSend": self._fail_to_send,
            "Resign": self._resign,
            "FailOver": self._fail_over,
            "SendRequest": self._send_request,
            "HandleRequest": self._handle_request,
            "ProcessResponse": self._process_response,
            "LoseConnection": self._lose_connection,
            "HandleLateRequest": self._handle_late_request,
        }
        self._rewinder = Rewinder(self, apart=(self._observer, self._names, self._actions))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """The first controller is elected, and all brokers have heard who is alive."""
        self._rewinder.forget()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        self.close()
        self._zookeeper = ZooKeeperState(broker_epochs=dict.fromkeys(self._brokers, 0))
        self._nodes = {broker: self._start(broker, 0, MemoryDisk()) for broker in self._brokers}
        self._online = dict.fromkeys(self._brokers, True)
        self._late: dict[int, ControlRequest | None] = dict.fromkeys(self._brokers)
        self._topics_created = 0
        self._seen_controllers: dict[int, dict[str, Value]] = {}
        self._seen_nodes: dict[int, dict[str, Value]] = {}
        first = elect(self._zookeeper)
        first.send()
        self._controllers = {first.kafka.context.epoch: first}
        for broker in self._brokers:
            self._send_request(1, broker)
            self._handle_request(1, broker)
            self._process_response(1, broker)

    def close(self) -> None:
        """End the threads that wait for an answer."""
        for controller in getattr(self, "_controllers", {}).values():
            for connection in controller.connections.values():
                connection.end()

    def _start(self, broker: int, epoch: int, disk: MemoryDisk) -> ControllerNode:
        return ControllerNode(broker, epoch, disk, self._concurrency)

    def apply(self, action: Action) -> None:
        """Make the controllers, their threads or the brokers take one step."""
        step = self._actions.get(action.name)
        if step is None:
            raise ActionRefused(f"the adapter knows no action {action.name}")
        arguments = [self._names.ids.get(str(value), value) for value in action.args]
        self._forget(action.name, arguments)
        step(*arguments)

    def _forget(self, action: str, arguments: list[Value]) -> None:
        """Read again what the action's objects hold; others share none with them."""
        if action in ("CrashBroker", "Resign") or self._interruptible:
            self._seen_controllers.clear()
            self._seen_nodes.clear()
        elif action not in _OF_BROKERS:
            self._seen_controllers.pop(cast("int", arguments[0]), None)
        if action in _OF_BROKERS or action == "HandleRequest":
            self._seen_nodes.pop(cast("int", arguments[-1]), None)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        self._concurrency.demand_started()
        for controller in self._controllers.values():
            controller.threads.demand_started()
        controllers = {epoch: self._see_controller(epoch) for epoch in self._epochs}
        nodes = {broker: self._see_node(broker) for broker in self._brokers}
        late = {broker: self._observer.request(self._late[broker]) for broker in self._brokers}
        values: dict[str, Value] = {
            "registration": self._observer.registration(self._zookeeper),
            "activeController": self._zookeeper.controller_epoch,
            "assigned": self._names.brokers(self._assigned),
            "online": self._names.by_broker(self._online),
            "late": self._names.by_broker(late),
        }
        for name in OF_CONTROLLERS:
            values[name] = make_function(
                {broker: seen[name] for broker, seen in controllers.items()}
            )
        for name in OF_BROKERS:
            values[name] = self._names.by_broker(
                {broker: seen[name] for broker, seen in nodes.items()}
            )
        return Observation(values)

    def _see_controller(self, epoch: int) -> dict[str, Value]:
        seen = self._seen_controllers.get(epoch)
        if seen is None:
            seen = self._observer.controller(self._controllers.get(epoch))
            self._seen_controllers[epoch] = seen
        return seen

    def _see_node(self, broker: int) -> dict[str, Value]:
        seen = self._seen_nodes.get(broker)
        if seen is None:
            seen = self._seen_nodes[broker] = self._observer.node(self._nodes[broker])
        return seen

    # ---- Snapshots -------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Controllers, brokers, ZooKeeper and what is under way between them."""
        connections = (controller.connections.values() for controller in self._controllers.values())
        if any(connection.waits for connection in chain.from_iterable(connections)):
            raise CannotSnapshot("a sending thread waits for an answer")
        return self._rewinder.take()

    def restore(self, snapshot: Snapshot) -> None:
        """All of it as it was."""
        self.close()
        self._rewinder.restore(snapshot)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What sending threads do by themselves."""
        return frozenset({"SendRequest"})

    def offers(self) -> frozenset[Action]:
        """The requests that would be sent now."""
        return frozenset(
            Action("SendRequest", (epoch, name))
            for epoch, controller in self._controllers.items()
            for name, broker in self._names.ids.items()
            if self._online[broker]
            and controller.requests(broker)
            and not controller.connections[broker].is_sent
        )

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on brokers have locks at which their handlers can be stopped."""
        self._interruptible = True
        return True

    @property
    def voluntary(self) -> frozenset[str]:
        """None: what is handled was sent."""
        return frozenset()

    @property
    def unconditional(self) -> frozenset[str]:
        """None: no bound of a model disables a handler."""
        return frozenset()

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two handlers of one broker take these."""
        both = {running.name, between.name} <= _HANDLERS and running != between
        return both and running.args[-1] == between.args[-1]

    def in_parts(self, _running: Action, _between: Action) -> bool:
        """Nothing that a broker makes of these requests is known to be seen in parts."""
        return False

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one handler of a broker stand still while another takes its action."""
        threads = self._concurrency
        if not isinstance(threads, InterruptibleThreads):
            raise ActionRefused("the steps of these brokers cannot be interrupted")
        return threads.interrupt(lambda: self.apply(running), point, lambda: self.apply(between))

    # ---- state changes ---------------------------------------------------------------------

    def _controller(self, epoch: int) -> ElectedController:
        controller = self._controllers.get(epoch)
        if controller is None:
            raise ActionRefused(f"there is no controller {epoch}")
        return controller

    def _gathering(self, epoch: int) -> ElectedController:
        controller = self._controller(epoch)
        controller.begin()
        return controller

    def _create_topic(self, epoch: int) -> None:
        self._topics_created += 1
        topic = TOPIC_PARTITION.topic
        assignment = {TOPIC_PARTITION: ReplicaAssignment(self._brokers)}
        self._zookeeper.create_topic(topic, topic_id(self._topics_created), assignment)
        self._gathering(epoch).kafka.on_new_partition_creation(topic)

    def _elect_leader(self, epoch: int, leader: int) -> None:
        self._gathering(epoch).kafka.elect_leader(TOPIC_PARTITION, leader)

    def _delete_topic(self, epoch: int) -> None:
        self._gathering(epoch).kafka.delete_topic(TOPIC_PARTITION.topic)

    def _complete_deletion(self, epoch: int) -> None:
        kafka = self._controller(epoch).kafka
        if not kafka.is_deletion_complete(TOPIC_PARTITION.topic):
            raise ActionRefused("replicas are left")
        kafka.complete_delete_topic(TOPIC_PARTITION.topic)

    @property
    def _assigned(self) -> tuple[int, ...]:
        """Who has a replica; where there is no topic, who will have one."""
        assignment = self._zookeeper.assignments.get(TOPIC_PARTITION)
        return self._brokers if assignment is None else assignment.replicas

    def _remove_replica(self, epoch: int, broker: int) -> None:
        target = tuple(id_ for id_ in self._assigned if id_ != broker)
        self._gathering(epoch).kafka.on_partition_reassignment(TOPIC_PARTITION, target)

    def _add_replica(self, epoch: int, broker: int) -> None:
        had = {*self._assigned, broker}
        target = tuple(broker for broker in self._brokers if broker in had)
        self._gathering(epoch).kafka.on_partition_reassignment(TOPIC_PARTITION, target)

    def _on_broker_failure(self, epoch: int, broker: int) -> None:
        controller = self._gathering(epoch)
        self._still_under_way(controller.connections.get(broker), broker)
        controller.kafka.on_broker_failure(broker)
        self._end_connection(controller, broker)

    def _on_broker_startup(self, epoch: int, broker: int) -> None:
        controller = self._gathering(epoch)
        self._still_under_way(controller.connections.get(broker), broker)
        controller.kafka.on_broker_startup(broker)

    def _controlled_shutdown(self, epoch: int, broker: int) -> None:
        self._gathering(epoch).kafka.do_controlled_shutdown(broker)

    @staticmethod
    def _end_connection(controller: ElectedController, broker: int) -> None:
        connection = controller.connections.pop(broker, None)
        if connection is not None:
            connection.end()

    # ---- processes -------------------------------------------------------------------------

    def _crash_broker(self, broker: int) -> None:
        node = self._nodes[broker]
        self._online[broker] = False
        del self._zookeeper.broker_epochs[broker]
        self._nodes[broker] = self._start(broker, node.epoch, node.disk)
        for controller in self._controllers.values():
            connection = controller.connections.get(broker)
            if connection is not None:
                connection.lose()

    def _restart_broker(self, broker: int) -> None:
        node = self._nodes[broker]
        self._online[broker] = True
        self._zookeeper.broker_epochs[broker] = node.epoch + 1
        self._nodes[broker] = self._start(broker, node.epoch + 1, node.disk)

    def _fail_to_send(self, epoch: int, kind: str, broker: int) -> None:
        self._controller(epoch).send(unsendable=(kind, broker))

    def _resign(self, epoch: int) -> None:
        controller = self._controller(epoch)
        for broker, connection in controller.connections.items():
            self._still_under_way(connection, broker)
        controller.resign()

    def _fail_over(self, epoch: int) -> None:
        self._controllers[epoch] = elect(self._zookeeper)

    # ---- the network -----------------------------------------------------------------------

    def _send_request(self, epoch: int, broker: int) -> None:
        controller = self._controller(epoch)
        info = controller.info(broker)
        controller.connections[broker].send(info)

    def _handle_request(self, epoch: int, broker: int) -> None:
        connection = self._controller(epoch).connections[broker]
        if connection.request is None or not connection.is_sent:
            raise ActionRefused("no request is under way")
        connection.response = self._nodes[broker].handle(connection.request)

    def _process_response(self, epoch: int, broker: int) -> None:
        self._controller(epoch).deliver(broker)

    def _lose_connection(self, epoch: int, broker: int) -> None:
        connection = self._controller(epoch).connections[broker]
        self._still_under_way(connection, broker)
        connection.lose()

    def _still_under_way(self, connection: ControllerConnection | None, broker: int) -> None:
        """What was sent and not yet handled may arrive although its connection breaks."""
        if connection is None or not connection.is_sent or connection.response is not None:
            return
        if self._late_requests and self._late[broker] is None:
            self._late[broker] = connection.request

    def _handle_late_request(self, broker: int) -> None:
        request = self._late[broker]
        if request is None:
            raise ActionRefused("no request is late")
        self._late[broker] = None
        self._nodes[broker].handle(request)


def create(constants: Mapping[str, Value]) -> ControllerSystem:
    """The system for a model's constants."""
    return ControllerSystem(constants)
