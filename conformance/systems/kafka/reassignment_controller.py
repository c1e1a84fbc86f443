"""A controller for the leader under test: what it decides of one partition and its brokers.

Source: ReplicationControlManager (alterPartition, alterPartitionReassignments, handleBroker*),
PartitionReassignmentReplicas, BrokerHeartbeatManager, as Reassignment.tla has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from conformance.systems.protocol import ActionRefused

_NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class PlayedRegistration:
    """The partition (PartitionRegistration)."""

    replicas: frozenset[int]
    isr: frozenset[int]
    adding: frozenset[int] = frozenset()
    removing: frozenset[int] = frozenset()
    leader_epoch: int = 0
    partition_epoch: int = 0

    def changed(self, isr: frozenset[int]) -> PlayedRegistration:
        """With another ISR; a reassignment whose replicas are all in sync ends with it, and fences
        those that leave (PartitionChangeBuilder)."""
        is_reassigned = bool(self.adding | self.removing)
        left = self.replicas - self.removing
        if not (is_reassigned and left <= isr - self.removing):
            return replace(self, isr=isr, partition_epoch=self.partition_epoch + 1)
        return PlayedRegistration(
            left,
            isr - self.removing,
            leader_epoch=self.leader_epoch + bool(self.removing),
            partition_epoch=self.partition_epoch + 1,
        )


@dataclass(frozen=True, slots=True)
class PlayedBroker:
    """A broker's registration: Active, Fenced or ShuttingDown, and the epoch of its life."""

    state: str = "Active"
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class PlayedProposal:
    """AlterPartition: the ISR with the broker epochs of its members."""

    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]


class PlayedController:
    """`heard`: brokers that shut down, of which the leader has heard; `stopped`: those whose
    shutdown was granted."""

    def __init__(self, leader: int, replicas: frozenset[int], brokers: Iterable[int]) -> None:
        self.registration = PlayedRegistration(replicas, replicas)
        self.brokers = dict.fromkeys(brokers, PlayedBroker())
        self.heard: frozenset[int] = frozenset()
        self.stopped: frozenset[int] = frozenset()
        self._leader = leader

    def start_reassignment(self, target: frozenset[int]) -> None:
        """alterPartitionReassignments."""
        now = self.registration
        begun = replace(
            now,
            replicas=now.replicas | target,
            adding=target - now.replicas,
            removing=now.replicas - target,
        )
        self.registration = begun.changed(begun.isr)

    def _leaves_isr(self, broker: int) -> None:
        if broker in self.registration.isr:
            self.registration = self.registration.changed(self.registration.isr - {broker})

    def _becomes(self, broker: int, state: str) -> None:
        self.brokers[broker] = replace(self.brokers[broker], state=state)

    def fence(self, broker: int) -> None:
        """handleBrokerFenced: no heartbeat came."""
        self._becomes(broker, "Fenced")
        self._leaves_isr(broker)

    def unfence(self, broker: int) -> None:
        """handleBrokerUnfenced."""
        self._becomes(broker, "Active")

    def restart(self, broker: int) -> None:
        """The broker registers with a new epoch."""
        self.brokers[broker] = PlayedBroker(epoch=self.brokers[broker].epoch + 1)
        self._leaves_isr(broker)
        self.heard -= {broker}
        self.stopped -= {broker}

    def ask_to_stop(self, broker: int) -> None:
        """handleBrokerInControlledShutdown."""
        self._becomes(broker, "ShuttingDown")
        self._leaves_isr(broker)

    def grant_stop(self, broker: int) -> None:
        """BrokerHeartbeatManager.calculateNextBrokerState. Refused before the leader has heard."""
        if broker not in self.heard:
            raise ActionRefused("the leader has not heard that the broker stops")
        self.heard -= {broker}
        self.stopped |= {broker}
        self._becomes(broker, "Fenced")

    def hear(self, cache: Mapping[int, tuple[str, int]]) -> None:
        """The leader's metadata offset has reached what it was told of the brokers."""
        self.heard |= {
            id_
            for id_, broker in self.brokers.items()
            if broker.state == "ShuttingDown" and cache[id_] == (broker.state, broker.epoch)
        }

    def alter_partition(self, proposal: PlayedProposal) -> PlayedRegistration | str:
        """The registration as it is then, or an error (validateAlterPartitionData)."""
        now = self.registration
        if proposal.leader_epoch < now.leader_epoch:
            return "FENCED_LEADER_EPOCH"
        if proposal.partition_epoch < now.partition_epoch:
            return "INVALID_UPDATE_VERSION"
        if not all(self._is_eligible(id_, epoch) for id_, epoch in proposal.isr.items()):
            return "INELIGIBLE_REPLICA"
        self.registration = now.changed(frozenset(proposal.isr))
        return self.registration

    def _is_eligible(self, broker: int, epoch: int) -> bool:
        known = self.brokers[broker]
        return known.state == "Active" and epoch in (_NO_EPOCH, known.epoch)
