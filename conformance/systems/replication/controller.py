"""The environment's controller: decides what it is told to, judges ISR changes by Kafka's rules.

The implementation under test is the broker. What a controller decides (whom it elects, whom it
takes for dead) are the arguments of the spec's actions; whether it accepts an ISR change follows
`ReplicationControlManager.validateAlterPartitionData`.
"""

from __future__ import annotations

from dataclasses import dataclass

from impl.errors import Errors
from impl.partition_state import AlterPartitionCallback, LeaderAndIsr, LeaderAndIsrPartitionState
from impl.types import NO_LEADER, UNKNOWN_BROKER_EPOCH, TopicPartition


@dataclass(frozen=True, slots=True)
class Registration:
    """The controller's view of the partition (PartitionRegistration)."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]
    partition_epoch: int


@dataclass(slots=True)
class AlterPartitionItem:
    """The one AlterPartition of a broker that is in flight; `decision` once it is answered."""

    proposed: LeaderAndIsr
    on_complete: AlterPartitionCallback
    decision: LeaderAndIsr | Errors | None = None


class Controller:
    """One partition's registration, and the LeaderAndIsr request of every leader epoch."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        replicas: tuple[int, ...],
        initial: Registration,
        *,
        counts_partition_epochs: bool,
        topic_id: str | None = None,
    ) -> None:
        self._topic_partition = topic_partition
        self._replicas = replicas
        self._counts = counts_partition_epochs
        self._topic_id = topic_id
        self._decisions: dict[int, Registration] = {}
        self.online = set(replicas)
        self.broker_epochs = dict.fromkeys(replicas, 0)
        self.registration = initial
        self._decisions[initial.leader_epoch] = initial

    def register(self, leader: int, leader_epoch: int, isr: frozenset[int]) -> None:
        """Decide; the latest decision of a leader epoch is what its LeaderAndIsr carries."""
        partition_epoch = self.registration.partition_epoch + (1 if self._counts else 0)
        self.registration = Registration(leader, leader_epoch, isr, partition_epoch)
        self._decisions[leader_epoch] = self.registration

    def elect(self, leader: int, leader_epoch: int) -> None:
        """A clean election: the ISR stays."""
        self.register(leader, leader_epoch, self.registration.isr)

    def fence(self, broker: int, leader: int, leader_epoch: int) -> None:
        """Take a broker for dead: out of the ISR."""
        self.register(leader, leader_epoch, self.registration.isr - {broker})

    def take_offline(self, broker: int, leader_epoch: int) -> None:
        """No leader; the last ISR member stays in the ISR."""
        isr = self.registration.isr
        self.register(NO_LEADER, leader_epoch, isr if isr == {broker} else isr - {broker})

    def elect_unclean(self, leader: int, leader_epoch: int) -> None:
        """A replica outside the ISR leads and is the ISR."""
        self.register(leader, leader_epoch, frozenset({leader}))

    def partition_state(self, leader_epoch: int) -> LeaderAndIsrPartitionState:
        """The LeaderAndIsr request that the controller sent in this leader epoch."""
        decision = self._decisions[leader_epoch]
        return LeaderAndIsrPartitionState(
            self._topic_partition,
            decision.leader,
            leader_epoch,
            tuple(sorted(decision.isr)),
            decision.partition_epoch,
            self._replicas,
            topic_id=self._topic_id,
        )

    def alter_partition(self, leader: int, proposed: LeaderAndIsr) -> LeaderAndIsr | Errors:
        """Judge an ISR change, and register it if it passes."""
        error = self._validate(proposed)
        if error is not Errors.NONE:
            return error
        now = self.registration
        self.register(now.leader, now.leader_epoch, proposed.isr)
        members = tuple((member, self.broker_epochs[member]) for member in sorted(proposed.isr))
        return LeaderAndIsr(leader, now.leader_epoch, members, self.registration.partition_epoch)

    def accepts(self, proposed: LeaderAndIsr) -> bool:
        """Whether an ISR change would be registered now."""
        return self._validate(proposed) is Errors.NONE

    def _validate(self, proposed: LeaderAndIsr) -> Errors:
        now = self.registration
        if proposed.leader_epoch != now.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH
        if proposed.partition_epoch != now.partition_epoch:
            return Errors.INVALID_UPDATE_VERSION
        if not all(map(self._is_eligible, proposed.isr_with_broker_epoch)):
            return Errors.INELIGIBLE_REPLICA
        return Errors.NONE

    def _is_eligible(self, member: tuple[int, int]) -> bool:
        """KIP-903: a member must live, in the life that the leader knows of."""
        broker, epoch = member
        known = epoch in (UNKNOWN_BROKER_EPOCH, self.broker_epochs[broker])
        return broker in self.online and known
