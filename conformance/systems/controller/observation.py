"""What the objects hold, as the spec's values: the mapping of ControllerState.tla's table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from conformance.systems.controller.connection import ControllerConnection
from conformance.systems.controller.controllers import ElectedController, type_of
from conformance.systems.controller.node import TOPIC_PARTITION, ControllerNode
from conformance.tla import Fn, Value, make_function
from impl.control_requests import (
    LEADER_DURING_DELETE,
    ControlRequest,
    ControlResponse,
    StopReplicaRequest,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from impl.controller.zookeeper_state import ZooKeeperState
from impl.errors import Errors
from impl.partition_state import LeaderAndIsrPartitionState
from impl.types import NO_LEADER

NO_EPOCH = -1
NO_TOPIC = 0


class ControllerNames:
    """The spec's names of brokers and topics, and the implementation's."""

    def __init__(self, brokers: tuple[str, ...]) -> None:
        self.ids = {name: number for number, name in enumerate(brokers, 1)}
        self._names: dict[int, Value] = {number: name for name, number in self.ids.items()}
        self._leaders = {**self._names, NO_LEADER: "none", LEADER_DURING_DELETE: "deleting"}

    def leader(self, broker_id: int | None) -> Value:
        """Of a leader, of none and of that of a topic that goes."""
        return "none" if broker_id is None else self._leaders.get(broker_id, broker_id)

    def brokers(self, ids: Iterable[int]) -> frozenset[Value]:
        """A set of brokers."""
        return frozenset(self._names.get(id_, id_) for id_ in ids)

    def by_broker(self, values: Mapping[int, Value]) -> Value:
        """A function on brokers."""
        return make_function({self._names[id_]: value for id_, value in values.items()})


def topic_id(number: int) -> str:
    """The id of the topic as it was created for that time."""
    return f"{number}"


def _topic_number(id_: str | None) -> int:
    return NO_TOPIC if id_ is None else int(id_)


class ControllerObserver:
    """Makes values of the objects."""

    def __init__(self, names: ControllerNames) -> None:
        self._names = names
        decision: dict[Value, Value] = {
            "leader": "none",
            "leaderEpoch": NO_EPOCH,
            "isr": frozenset(),
        }
        self._no_state = Fn({"present": False, **decision, "topicId": NO_TOPIC, "isNew": False})
        self._no_info = Fn({"present": False, **decision, "topicId": NO_TOPIC})
        self._no_partition = Fn(
            {"present": False, **decision, "topicId": NO_TOPIC, "fetching": False}
        )
        self._no_stop = Fn({"present": False, "leaderEpoch": NO_EPOCH, "delete": False})
        self._no_request: dict[Value, Value] = {
            "type": "None",
            "controllerEpoch": 0,
            "brokerEpoch": NO_EPOCH,
            **decision,
            "topicId": NO_TOPIC,
            "isNew": False,
            "delete": False,
            "partitions": False,
            "live": frozenset(),
        }

    # ---- ZooKeeper -------------------------------------------------------------------------

    def registration(self, zookeeper: ZooKeeperState) -> Fn:
        """The partition as ZooKeeper has it."""
        topic = TOPIC_PARTITION.topic
        state = zookeeper.partition_states.get(TOPIC_PARTITION)
        return Fn(
            {
                "topicId": _topic_number(zookeeper.topic_ids.get(topic)),
                "leader": self._names.leader(None if state is None else state.leader),
                "leaderEpoch": NO_EPOCH if state is None else state.leader_epoch,
                "isr": self._names.brokers(() if state is None else state.isr),
                "deleting": topic in zookeeper.topics_to_be_deleted,
            }
        )

    # ---- controllers -----------------------------------------------------------------------

    def controller(self, controller: ElectedController | None) -> dict[str, Value]:
        """The variables that are functions of the controllers, of one of them."""
        return {name: value(self, controller) for name, value in OF_CONTROLLERS.items()}

    def context(self, controller: ElectedController | None) -> Fn:
        """What a controller believes; nothing before it is elected and after it resigned."""
        state = "None" if controller is None else controller.state
        if controller is None or state == "Resigned":
            return self._context_without_view(state)
        context, topic = controller.kafka.context, TOPIC_PARTITION.topic
        known = context.partition_leadership_info.get(TOPIC_PARTITION)
        epochs = context.live_broker_epochs
        return Fn(
            {
                "state": state,
                "topicId": _topic_number(context.topic_ids.get(topic)),
                "leader": self._names.leader(None if known is None else known.leader),
                "leaderEpoch": NO_EPOCH if known is None else known.leader_epoch,
                "isr": self._names.brokers(() if known is None else known.isr),
                "deleting": context.is_topic_queued_up_for_deletion(topic),
                "live": self._by_broker(epochs, NO_EPOCH),
                "shuttingDown": self._names.brokers(context.shutting_down_broker_ids),
                "deletedOn": self._names.brokers(
                    controller.kafka.deleted_replicas(TOPIC_PARTITION)
                ),
            }
        )

    def _context_without_view(self, state: str) -> Fn:
        return Fn(
            {
                "state": state,
                "topicId": NO_TOPIC,
                "leader": "none",
                "leaderEpoch": NO_EPOCH,
                "isr": frozenset(),
                "deleting": False,
                "live": self._by_broker({}, NO_EPOCH),
                "shuttingDown": frozenset(),
                "deletedOn": frozenset(),
            }
        )

    def _by_broker(self, values: Mapping[int, Value], otherwise: Value) -> Value:
        return self._names.by_broker(
            {id_: values.get(id_, otherwise) for id_ in self._names.ids.values()}
        )

    def batch(self, controller: ElectedController | None) -> Fn:
        """A batch's registries."""
        if controller is None:
            return Fn(
                {
                    "leaderAndIsr": self._by_broker({}, self._no_state),
                    "updateMetadata": frozenset(),
                    "partitionInfo": self._no_info,
                    "stopReplica": self._by_broker({}, self._no_stop),
                }
            )
        batch = controller.batch
        report: dict[int, Value] = {
            broker: self._leader_and_isr(states[TOPIC_PARTITION])
            for broker, states in batch.leader_and_isr_request_map.items()
        }
        stopped: dict[int, Value] = {
            broker: Fn(
                {
                    "present": True,
                    "leaderEpoch": states[TOPIC_PARTITION].leader_epoch,
                    "delete": states[TOPIC_PARTITION].delete_partition,
                }
            )
            for broker, states in batch.stop_replica_request_map.items()
        }
        info = batch.update_metadata_request_partition_info_map.get(TOPIC_PARTITION)
        known = controller.kafka.context.topic_ids.get(TOPIC_PARTITION.topic)
        return Fn(
            {
                "leaderAndIsr": self._by_broker(report, self._no_state),
                "updateMetadata": self._names.brokers(batch.update_metadata_request_broker_set),
                "partitionInfo": self._partition_info(info, known),
                "stopReplica": self._by_broker(stopped, self._no_stop),
            }
        )

    def _leader_and_isr(self, state: LeaderAndIsrPartitionState) -> Fn:
        return Fn(
            {
                "present": True,
                "leader": self._names.leader(state.leader),
                "leaderEpoch": state.leader_epoch,
                "isr": self._names.brokers(state.isr),
                "topicId": _topic_number(state.topic_id),
                "isNew": state.is_new,
            }
        )

    def _partition_info(self, state: UpdateMetadataPartitionState | None, id_: str | None) -> Fn:
        """The topic's id goes into the request when it is sent: the batch itself has none."""
        if state is None:
            return self._no_info
        return Fn(
            {
                "present": True,
                "leader": self._names.leader(state.leader),
                "leaderEpoch": state.leader_epoch,
                "isr": self._names.brokers(state.isr),
                "topicId": _topic_number(id_),
            }
        )

    # ---- the network -----------------------------------------------------------------------

    def queue(self, controller: ElectedController | None) -> Value:
        """What each broker is still to be told."""
        queued: dict[int, Value] = {
            broker: ()
            if controller is None
            else tuple(self.request(id_) for id_ in controller.requests(broker))
            for broker in self._names.ids.values()
        }
        return self._names.by_broker(queued)

    def request(self, request: ControlRequest | None) -> Fn:
        """A request as the spec has it."""
        if request is None:
            return Fn(self._no_request)
        fields: dict[Value, Value] = {
            "type": type_of(request),
            "controllerEpoch": request.controller_epoch,
            "brokerEpoch": request.broker_epoch,
        }
        match request:
            case UpdateMetadataRequest():
                fields |= self._of_metadata(request)
            case StopReplicaRequest():
                stop = request.partition_states[TOPIC_PARTITION]
                fields |= {"leaderEpoch": stop.leader_epoch, "delete": stop.delete_partition}
            case _:
                (state,) = request.partition_states
                fields |= self._leader_and_isr(state)
                del fields["present"]
        return Fn({**self._no_request, **fields})

    def _of_metadata(self, request: UpdateMetadataRequest) -> dict[Value, Value]:
        report: dict[Value, Value] = {
            "live": self._names.brokers(broker.id for broker in request.live_brokers)
        }
        id_ = request.topic_ids.get(TOPIC_PARTITION.topic)
        for state in request.partition_states:
            report |= self._partition_info(state, id_)
            report["partitions"] = report.pop("present")
        return report

    def channels(self, controller: ElectedController | None) -> Value:
        """What the heads of the queues have come to."""
        connections = {} if controller is None else controller.connections
        return self._names.by_broker(
            {id_: _channel(connections.get(id_)) for id_ in self._names.ids.values()}
        )

    # ---- brokers ---------------------------------------------------------------------------

    def node(self, node: ControllerNode) -> dict[str, Value]:
        """The variables that are functions of the brokers, of one of them."""
        return {name: value(self, node) for name, value in OF_BROKERS.items()}

    def partition(self, node: ControllerNode) -> Fn:
        """The partition as a broker has it."""
        partition = node.partition
        if partition is None:
            return self._no_partition
        return Fn(
            {
                "present": True,
                "leader": self._names.leader(partition.leader_replica_id),
                "leaderEpoch": partition.leader_epoch,
                "isr": self._names.brokers(partition.in_sync_replica_ids),
                "topicId": _topic_number(partition.topic_id),
                "fetching": node.is_fetching,
            }
        )

    def metadata(self, node: ControllerNode) -> Fn:
        """What a broker tells clients."""
        snapshot = node.metadata
        state = snapshot.partition_states.get(TOPIC_PARTITION)
        known = self._partition_info(state, snapshot.topic_ids.get(TOPIC_PARTITION.topic))
        return Fn({**known, "live": self._names.brokers(snapshot.alive_brokers)})


def _channel(connection: ControllerConnection | None) -> Fn:
    if connection is None or not connection.is_sent:
        return Fn({"state": "None", "error": "NONE", "partitionError": "NONE"})
    if connection.response is None:
        return Fn({"state": "Sent", "error": "NONE", "partitionError": "NONE"})
    response = connection.response
    return Fn(
        {
            "state": "Answered",
            "error": response.error.name,
            "partitionError": _partition_error(response).name,
        }
    )


def _partition_error(response: ControlResponse) -> Errors:
    if isinstance(response, UpdateMetadataResponse):
        return Errors.NONE
    return response.partitions.get(TOPIC_PARTITION, Errors.NONE)


OF_CONTROLLERS: dict[str, Callable[[ControllerObserver, ElectedController | None], Value]] = {
    "context": ControllerObserver.context,
    "batch": ControllerObserver.batch,
    "queue": ControllerObserver.queue,
    "channel": ControllerObserver.channels,
}
"""Each variable that is a function of the controllers' epochs, and how a controller shows it."""

OF_BROKERS: dict[str, Callable[[ControllerObserver, ControllerNode], Value]] = {
    "partition": ControllerObserver.partition,
    "hasLog": lambda _, node: node.has_log,
    "seenController": lambda _, node: node.controller_epoch,
    "metadata": ControllerObserver.metadata,
    "brokerEpoch": lambda _, node: node.epoch,
}
"""Each variable that is a function of the brokers, and how a broker shows it."""

VARIABLES = (
    "registration",
    "activeController",
    "assigned",
    "online",
    "late",
    *OF_CONTROLLERS,
    *OF_BROKERS,
)
"""Observed: all but the ghosts."""
