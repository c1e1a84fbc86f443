"""What each action of ControllerRequests.tla does to the controllers and brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from conformance.systems.controller.cluster import ControllerCluster
from conformance.systems.controller.controllers import elect
from conformance.systems.controller.node import TOPIC_PARTITION
from conformance.systems.controller.observation import topic_id
from conformance.systems.protocol import ActionRefused
from impl.controller.context import ReplicaAssignment

# ---- topics --------------------------------------------------------------------------------


def _create_topic(cluster: ControllerCluster, epoch: int) -> None:
    cluster.topics_created += 1
    topic = TOPIC_PARTITION.topic
    assignment = {TOPIC_PARTITION: ReplicaAssignment(cluster.replicas)}
    cluster.zookeeper.create_topic(topic, topic_id(cluster.topics_created), assignment)
    cluster.gathering(epoch).kafka.on_new_partition_creation(topic)


def _elect_leader(cluster: ControllerCluster, epoch: int, leader: int) -> None:
    cluster.gathering(epoch).kafka.elect_leader(TOPIC_PARTITION, leader)


def _delete_topic(cluster: ControllerCluster, epoch: int) -> None:
    cluster.gathering(epoch).kafka.delete_topic(TOPIC_PARTITION.topic)


def _complete_deletion(cluster: ControllerCluster, epoch: int) -> None:
    kafka = cluster.controller(epoch).kafka
    if not kafka.is_deletion_complete(TOPIC_PARTITION.topic):
        raise ActionRefused("replicas are left")
    kafka.complete_delete_topic(TOPIC_PARTITION.topic)


def _remove_replica(cluster: ControllerCluster, epoch: int, broker: int) -> None:
    target = tuple(replica for replica in cluster.assigned if replica != broker)
    cluster.gathering(epoch).kafka.on_partition_reassignment(TOPIC_PARTITION, target)


def _add_replica(cluster: ControllerCluster, epoch: int, broker: int) -> None:
    had = {*cluster.assigned, broker}
    target = tuple(replica for replica in cluster.replicas if replica in had)
    cluster.gathering(epoch).kafka.on_partition_reassignment(TOPIC_PARTITION, target)


# ---- brokers -------------------------------------------------------------------------------


def _on_broker_failure(cluster: ControllerCluster, epoch: int, broker: int) -> None:
    controller = cluster.gathering(epoch)
    cluster.keep_late(controller.connections.get(broker), broker)
    controller.kafka.on_broker_failure(broker)
    connection = controller.connections.pop(broker, None)
    if connection is not None:
        connection.end()


def _on_broker_startup(cluster: ControllerCluster, epoch: int, broker: int) -> None:
    controller = cluster.gathering(epoch)
    cluster.keep_late(controller.connections.get(broker), broker)
    controller.kafka.on_broker_startup(broker)


def _controlled_shutdown(cluster: ControllerCluster, epoch: int, broker: int) -> None:
    cluster.gathering(epoch).kafka.do_controlled_shutdown(broker)


# ---- controllers ---------------------------------------------------------------------------


def _send_requests_to_brokers(cluster: ControllerCluster, epoch: int) -> None:
    cluster.controller(epoch).send()


def _fail_to_send(cluster: ControllerCluster, epoch: int, kind: str, broker: int) -> None:
    cluster.controller(epoch).send(unsendable=(kind, broker))


def _resign(cluster: ControllerCluster, epoch: int) -> None:
    controller = cluster.controller(epoch)
    for broker, connection in controller.connections.items():
        cluster.keep_late(connection, broker)
    controller.resign()


def _fail_over(cluster: ControllerCluster, epoch: int) -> None:
    cluster.controllers[epoch] = elect(cluster.zookeeper)


STEPS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        "CreateTopic": _create_topic,
        "ElectLeader": _elect_leader,
        "DeleteTopic": _delete_topic,
        "CompleteDeletion": _complete_deletion,
        "RemoveReplica": _remove_replica,
        "AddReplica": _add_replica,
        "OnBrokerFailure": _on_broker_failure,
        "OnBrokerStartup": _on_broker_startup,
        "ControlledShutdown": _controlled_shutdown,
        "CrashBroker": ControllerCluster.crash,
        "RestartBroker": ControllerCluster.restart,
        "SendRequestsToBrokers": _send_requests_to_brokers,
        "FailToSend": _fail_to_send,
        "Resign": _resign,
        "FailOver": _fail_over,
        "SendRequest": ControllerCluster.send_request,
        "HandleRequest": ControllerCluster.handle_request,
        "ProcessResponse": ControllerCluster.process_response,
        "LoseConnection": ControllerCluster.lose_connection,
        "HandleLateRequest": ControllerCluster.handle_late_request,
    }
)
"""By action; arguments are the cluster and the action's own, with numbers for brokers."""
