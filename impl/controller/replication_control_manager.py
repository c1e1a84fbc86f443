"""KRaft's controller, as far as it decides on the replicas and the ISR of partitions.

Source: ReplicationControlManager, PartitionChangeBuilder, PartitionReassignmentReplicas,
ClusterControlManager and BrokerHeartbeatManager of 3.8. Each change takes the next metadata offset.
No leader is elected here: a partition's leader is neither fenced nor shut down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ..errors import Errors
from ..partition_state import LeaderAndIsr
from ..types import UNKNOWN_BROKER_EPOCH


class BrokerControlState(Enum):
    """How the controller counts a broker."""

    FENCED = "Fenced"
    UNFENCED = "Active"
    CONTROLLED_SHUTDOWN = "ShuttingDown"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker's present life; its epoch is the metadata offset of the registration."""

    epoch: int
    state: BrokerControlState = BrokerControlState.UNFENCED


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """What is decided of a partition."""

    leader: int
    replicas: frozenset[int]
    isr: frozenset[int]
    adding_replicas: frozenset[int] = frozenset()
    removing_replicas: frozenset[int] = frozenset()
    leader_epoch: int = 0
    partition_epoch: int = 0

    @property
    def is_reassigning(self) -> bool:
        """Whether the replicas are being changed (PartitionReassignmentReplicas)."""
        return bool(self.adding_replicas or self.removing_replicas)


class ReplicationControlManager:
    """The controller of one partition and its brokers."""

    def __init__(self, partition: PartitionRegistration, brokers: Iterable[int]) -> None:
        self.partition = partition
        self.brokers: dict[int, BrokerRegistration] = {
            id_: BrokerRegistration(0) for id_ in brokers
        }
        self.offset = 0
        self._controlled_shutdown_offsets: dict[int, int] = {}
        self._metadata_offsets: dict[int, int] = {}

    # ---- brokers ---------------------------------------------------------------------------

    def register_broker(self, broker_id: int) -> None:
        """Another life of the broker: what the former one was in sync with counts no longer."""
        epoch = self.brokers[broker_id].epoch + 1
        self._set_broker(broker_id, BrokerRegistration(epoch))
        self._remove_from_isr(broker_id)

    def handle_broker_fenced(self, broker_id: int) -> None:
        """No heartbeat came in time."""
        self._set_state(broker_id, BrokerControlState.FENCED)
        self._remove_from_isr(broker_id)

    def handle_broker_unfenced(self, broker_id: int) -> None:
        """The broker has caught up with the metadata."""
        self._set_state(broker_id, BrokerControlState.UNFENCED)

    def handle_broker_in_controlled_shutdown(self, broker_id: int) -> None:
        """The broker asks to stop (KIP-841)."""
        self._set_state(broker_id, BrokerControlState.CONTROLLED_SHUTDOWN)
        self._remove_from_isr(broker_id)
        self._controlled_shutdown_offsets[broker_id] = self.offset

    def touch(self, broker_id: int, metadata_offset: int) -> None:
        """A heartbeat: up to where the broker has applied the metadata log."""
        self._metadata_offsets[broker_id] = metadata_offset

    def may_shut_down(self, broker_id: int) -> bool:
        """Whether the leader has heard that the broker stops (calculateNextBrokerState)."""
        asked = self._controlled_shutdown_offsets.get(broker_id)
        return asked is not None and self._metadata_offsets.get(self.partition.leader, 0) >= asked

    def shut_down(self, broker_id: int) -> None:
        """The broker is told to stop."""
        self._set_state(broker_id, BrokerControlState.FENCED)

    def _set_state(self, broker_id: int, state: BrokerControlState) -> None:
        self._set_broker(broker_id, replace(self.brokers[broker_id], state=state))

    def _set_broker(self, broker_id: int, registration: BrokerRegistration) -> None:
        self.offset += 1
        self.brokers[broker_id] = registration
        self._controlled_shutdown_offsets.pop(broker_id, None)

    def _remove_from_isr(self, broker_id: int) -> None:
        if broker_id in self.partition.isr:
            self._change(self.partition, self.partition.isr - {broker_id})

    # ---- partitions ------------------------------------------------------------------------

    def alter_partition_reassignments(self, target: frozenset[int]) -> None:
        """Begin a reassignment (KIP-455)."""
        old = self.partition
        begun = replace(
            old,
            replicas=old.replicas | target,
            adding_replicas=target - old.replicas,
            removing_replicas=old.replicas - target,
        )
        self._change(begun, old.isr)

    def alter_partition(self, proposed: LeaderAndIsr) -> LeaderAndIsr | Errors:
        """Decide on an ISR that the leader proposes."""
        error = self._validate_alter_partition_data(proposed)
        if error is not Errors.NONE:
            return error
        self._change(self.partition, proposed.isr)
        now = self.partition
        members = tuple((id_, self.brokers[id_].epoch) for id_ in sorted(now.isr))
        return LeaderAndIsr(now.leader, now.leader_epoch, members, now.partition_epoch)

    def _validate_alter_partition_data(self, proposed: LeaderAndIsr) -> Errors:
        if proposed.leader_epoch < self.partition.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH
        if proposed.partition_epoch < self.partition.partition_epoch:
            return Errors.INVALID_UPDATE_VERSION
        if not self._are_eligible(dict(proposed.isr_with_broker_epoch)):
            return Errors.INELIGIBLE_REPLICA
        return Errors.NONE

    def _are_eligible(self, epochs: Mapping[int, int]) -> bool:
        """KIP-841, KIP-903."""
        return all(
            self.brokers[id_].state is BrokerControlState.UNFENCED
            and epoch in (UNKNOWN_BROKER_EPOCH, self.brokers[id_].epoch)
            for id_, epoch in epochs.items()
        )

    def _change(self, partition: PartitionRegistration, isr: frozenset[int]) -> None:
        """Take another ISR over; it may be what a reassignment has waited for."""
        self.offset += 1
        changed = replace(partition, isr=isr, partition_epoch=partition.partition_epoch + 1)
        self.partition = self._maybe_complete_reassignment(changed)

    @staticmethod
    def _maybe_complete_reassignment(partition: PartitionRegistration) -> PartitionRegistration:
        removing = partition.removing_replicas
        target = partition.replicas - removing
        if not partition.is_reassigning or not target <= partition.isr - removing:
            return partition
        return replace(
            partition,
            replicas=target,
            isr=partition.isr - removing,
            adding_replicas=frozenset(),
            removing_replicas=frozenset(),
            # Who is a replica no longer is fenced, though the leader stays.
            leader_epoch=partition.leader_epoch + bool(removing),
        )
