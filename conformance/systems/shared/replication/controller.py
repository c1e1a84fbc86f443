"""The environment's controller: decides what it is told to, judges ISR changes by Kafka's rules.

The implementation under test is the broker. What a controller decides (whom it elects, whom it
takes for dead) are the arguments of the spec's actions; whether it accepts an ISR change follows
`ReplicationControlManager.validateAlterPartitionData`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, cast

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.replication.model import PartitionModel
from conformance.tla import Fn, Value

NO_LEADER = -1
UNKNOWN_BROKER_EPOCH = -1
"""Of a member of the ISR whose life the leader does not know (KIP-903)."""
NO_ERROR = "NONE"


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """The controller's view of the partition (PartitionRegistration)."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]
    partition_epoch: int


class ProposedIsr(Protocol):
    """An ISR with the broker epochs of its members (KIP-903), as a leader proposes it."""

    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...
    @property
    def isr_with_broker_epoch(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def isr(self) -> frozenset[int]: ...


@dataclass(frozen=True, slots=True)
class DecidedIsr:
    """What the controller has registered, or by Kafka's name the error why it has not."""

    leader: int
    leader_epoch: int
    isr_with_broker_epoch: tuple[tuple[int, int], ...]
    partition_epoch: int
    error: str = NO_ERROR


@dataclass(slots=True)
class AlterPartitionItem:
    """The one AlterPartition of a broker that is in flight; `decision` once it is answered.

    `on_complete` hands the decision to the broker.
    """

    proposed: ProposedIsr
    on_complete: Callable[[DecidedIsr], None]
    decision: DecidedIsr | None = None

    def complete(self) -> None:
        """The answer arrives. Raises ActionRefused before HandleAlterPartition."""
        if self.decision is None:
            raise ActionRefused("no answer to an AlterPartition has arrived")
        self.on_complete(self.decision)


class Controller:
    """One partition's registration, and what was registered in every leader epoch.

    `counts_partition_epochs`: whether each decision raises the partition epoch.
    """

    registration: PartitionRegistration

    def __init__(self, model: PartitionModel, *, counts_partition_epochs: bool) -> None:
        self._model = model
        self.replicas = model.brokers
        self._counts = counts_partition_epochs
        self._decisions: dict[int, PartitionRegistration] = {}
        self.online: set[int] = set()
        self.broker_epochs: dict[int, int] = {}

    def reset(self, initial: Mapping[str, Value]) -> PartitionRegistration:
        """The registration of the specification's `Init`; all brokers run, in their first life."""
        value = cast("Fn", initial["registration"])
        leader, epoch = self._model.ids[str(value["leader"])], cast("int", value["leaderEpoch"])
        self.registration = PartitionRegistration(leader, epoch, frozenset(self.replicas), 0)
        self._decisions = {epoch: self.registration}
        self.online = set(self.replicas)
        self.broker_epochs = dict.fromkeys(self.replicas, 0)
        return self.registration

    def restart(self, broker: int) -> int:
        """The broker registers again; its new broker epoch."""
        self.online.add(broker)
        self.broker_epochs[broker] += 1
        return self.broker_epochs[broker]

    def register(self, leader: int, leader_epoch: int, isr: frozenset[int]) -> None:
        """Decide; the latest decision of a leader epoch is what its LeaderAndIsr carries."""
        partition_epoch = self.registration.partition_epoch + (1 if self._counts else 0)
        self.registration = PartitionRegistration(leader, leader_epoch, isr, partition_epoch)
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

    def registered(self, leader_epoch: int) -> PartitionRegistration:
        """What the LeaderAndIsr request of this leader epoch carries."""
        return self._decisions[leader_epoch]

    def alter_partition(self, leader: int, proposed: ProposedIsr) -> DecidedIsr:
        """Judge an ISR change, and register it if it passes."""
        now, error = self.registration, self._validate(proposed)
        if error != NO_ERROR:
            return DecidedIsr(leader, now.leader_epoch, (), 0, error)
        self.register(now.leader, now.leader_epoch, proposed.isr)
        members = tuple((member, self.broker_epochs[member]) for member in sorted(proposed.isr))
        return DecidedIsr(leader, now.leader_epoch, members, self.registration.partition_epoch)

    def handle(self, leader: int, item: AlterPartitionItem | None) -> None:
        """Decide on what is in flight. Raises ActionRefused if nothing is."""
        if item is None or item.decision is not None:
            raise ActionRefused("no AlterPartition is in flight")
        item.decision = self.alter_partition(leader, item.proposed)

    def accepts(self, proposed: ProposedIsr) -> bool:
        """Whether an ISR change would be registered now."""
        return self._validate(proposed) == NO_ERROR

    def _validate(self, proposed: ProposedIsr) -> str:
        now = self.registration
        if proposed.leader_epoch != now.leader_epoch:
            return "FENCED_LEADER_EPOCH"
        if proposed.partition_epoch != now.partition_epoch:
            return "INVALID_UPDATE_VERSION"
        if not all(map(self._is_eligible, proposed.isr_with_broker_epoch)):
            return "INELIGIBLE_REPLICA"
        return NO_ERROR

    def _is_eligible(self, member: tuple[int, int]) -> bool:
        """KIP-903: a member must live, in the life that the leader knows of."""
        broker, epoch = member
        known = epoch in (UNKNOWN_BROKER_EPOCH, self.broker_epochs[broker])
        return broker in self.online and known


DECISIONS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        "ElectLeader": lambda controller, epoch, leader: controller.elect(leader, epoch),
        "FenceBroker": lambda controller, epoch, broker, to: controller.fence(broker, to, epoch),
        "TakeOffline": lambda controller, epoch, broker: controller.take_offline(broker, epoch),
        "ElectUncleanLeader": lambda controller, epoch, to: controller.elect_unclean(to, epoch),
    }
)
"""The specification's steps of the controller, with their arguments."""
