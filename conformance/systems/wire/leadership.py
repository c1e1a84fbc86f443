"""Who leads a topic's partitions, and whether that changed by itself; moves the leaders to other
replicas, as an administrator would: another replica becomes the preferred one (KIP-455), and is
elected (KIP-460); or the only replica is moved to another broker."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

from conformance.errors import UserError
from conformance.kafka.entities import Entity, make, milliseconds, module_of
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.wire.port import Port

_SECONDS = 30.0
_PREFERRED = 0


def move_leaders(port: Port, topic: str) -> dict[int, tuple[int, int]]:
    """Each partition's leader before and after. Raises UserError where nobody else can lead."""
    before = _partitions(port, topic)
    replicas = {index: _led_by_another(topic, placement) for index, placement in before.items()}
    _reassign(port, topic, replicas)
    _elect(port, topic, replicas)
    until = time.monotonic() + _SECONDS
    while True:
        now = {
            index: int(placement.leader_id) for index, placement in _partitions(port, topic).items()
        }
        if all(now[index] == wanted[0] for index, wanted in replicas.items()):
            return {
                index: (int(placement.leader_id), now[index]) for index, placement in before.items()
            }
        if time.monotonic() > until:
            raise UserError(
                f"The leaders of {topic} have not moved within {_SECONDS:.0f} s: {now}."
            )
        time.sleep(0.05)


def leader_of(port: Port, topic: str, index: int) -> tuple[str, int] | None:
    """Where the leader of a partition listens; None if the broker knows of none, or of no other
    broker. Raises UserError where it tells nothing of the topic."""
    placement = _partitions(port, topic)[index]
    nodes = _nodes(port)
    return nodes.get(int(placement.leader_id)) if len(nodes) > 1 else None


def move_replica(port: Port, topic: str, index: int) -> None:
    """Move the only replica of a partition to another broker, which will lead it. Raises UserError
    where there is none, or where it cannot be moved."""
    replicas = {int(node) for node in _partitions(port, topic)[index].replica_nodes}
    others = sorted(_nodes(port).keys() - replicas)
    if not others:
        raise UserError(
            f"No other broker can lead {topic}-{index}: all have it. Start a second broker."
        )
    _reassign(port, topic, {index: (others[0],)})


class Leaders:
    """Who led a topic's partitions at a moment, in which epoch.

    A broker that gets no time loses its leaderships for a while (its controller fences it) and
    answers NOT_COORDINATOR then, rightly. That is no answer to what a test asked.
    """

    def __init__(self, port: Port, topic: str) -> None:
        self._port, self._topic = port, topic
        self._known: Mapping[int, tuple[int, int]] = {}

    @property
    def count(self) -> int:
        """How many partitions there are, as far as is known."""
        return len(self._known)

    def look(self, *, again: bool) -> None:
        """Keep who leads now: `again`, or as long as nothing is known."""
        if again or not self._known:
            self._known = self._now()

    def changed(self) -> str:
        """What has changed since that was last asked; empty where a broker does not tell."""
        before = self._known
        if not before:
            return ""
        now = self._now()
        self._known = {**before, **now}  # a partition may have no leader for a while
        for index, (leader, epoch) in now.items():
            was = before.get(index)
            if was is not None and was != (leader, epoch):
                return (
                    f"the leader of {self._topic}-{index} changed from broker {was[0]} in epoch "
                    f"{was[1]} to broker {leader} in epoch {epoch}, and no step moved it"
                )
        return ""

    def _now(self) -> Mapping[int, tuple[int, int]]:
        """Leader and epoch (Metadata 7, KIP-320) of each partition that has a leader."""
        if not self._port.offers("metadata"):
            return {}
        try:
            partitions = _partitions(self._port, self._topic)
        except (SystemFailed, UserError):
            return {}
        return {
            index: (int(placement.leader_id), int(placement.leader_epoch))
            for index, placement in partitions.items()
            if placement.leader_id >= 0 and hasattr(placement, "leader_epoch")
        }


def beside(group_id: str, partitions: int) -> str:
    """Another group id, whose records lie in the same partition of the offsets topic.

    GroupMetadataManager.partitionFor: Java's hash of the id without its sign, modulo.
    """
    wanted = _hashed(group_id) % max(partitions, 1)
    others = (f"{group_id}-beside-{number}" for number in itertools.count())
    return next(
        placement for placement in others if _hashed(placement) % max(partitions, 1) == wanted
    )


def _hashed(text: str) -> int:
    """Java's String.hashCode of ASCII, by Kafka's Utils.abs."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


def _nodes(port: Port) -> dict[int, tuple[str, int]]:
    """Where the brokers listen."""
    brokers = _metadata(port, ()).brokers
    return {int(node.node_id): (str(node.host), int(node.port)) for node in brokers}


def _metadata(port: Port, topics: tuple[str, ...]) -> Entity:
    module = module_of("metadata", port.versions["metadata"], "request")
    request = make(
        module.MetadataRequest,
        topics=tuple(make(module.MetadataRequestTopic, name=topic) for topic in topics),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return port.ask_body(request, 2 * _SECONDS)


def _partitions(port: Port, topic: str) -> dict[int, Entity]:
    (result,) = _metadata(port, (topic,)).topics
    if result.error_code:
        raise UserError(
            f"The broker at {port.address} tells nothing of {topic}: "
            f"{error_name(result.error_code)}."
        )
    return {int(placement.partition_index): placement for placement in result.partitions}


def _led_by_another(topic: str, partition: Entity) -> tuple[int, ...]:
    """The replicas, with one in front that is in sync and does not lead."""
    replicas = [int(node) for node in partition.replica_nodes]
    fit = [node for node in map(int, partition.isr_nodes) if node != partition.leader_id]
    if not fit:
        raise UserError(
            f"No other replica of {topic}-{partition.partition_index} can lead: replicas "
            f"{replicas}, in sync {list(map(int, partition.isr_nodes))}. Start a second broker."
        )
    return (fit[0], *(node for node in replicas if node != fit[0]))


def _reassign(port: Port, topic: str, replicas: dict[int, tuple[int, ...]]) -> None:
    module = module_of("alter_partition_reassignments", 0, "request")
    partitions = tuple(
        make(module.ReassignablePartition, partition_index=index, replicas=wanted)
        for index, wanted in replicas.items()
    )
    request = make(
        module.AlterPartitionReassignmentsRequest,
        timeout=milliseconds(int(_SECONDS * 1000)),
        topics=(make(module.ReassignableTopic, name=topic, partitions=partitions),),
    )
    answer = port.ask_body(request, 2 * _SECONDS)
    if answer.error_code:
        raise UserError(f"{topic} cannot be reassigned: {error_name(answer.error_code)}.")


def _elect(port: Port, topic: str, replicas: dict[int, tuple[int, ...]]) -> None:
    module = module_of("elect_leaders", 2, "request")
    request = make(
        module.ElectLeadersRequest,
        election_type=_PREFERRED,
        topic_partitions=(make(module.TopicPartitions, topic=topic, partitions=tuple(replicas)),),
        timeout=milliseconds(int(_SECONDS * 1000)),
    )
    answer = port.ask_body(request, 2 * _SECONDS)
    if answer.error_code:
        raise UserError(f"No leader of {topic} is elected: {error_name(answer.error_code)}.")
