"""The environment's controller: decides what it is told to, judges ISR changes by Kafka's rules.

The implementation under test is the broker. What a controller decides (whom it elects, whom it
takes for dead) are the arguments of the spec's actions; whether it accepts an ISR change follows
`ReplicationControlManager.validateAlterPartitionData`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from conformance.tla import Action

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

    `on_complete` is the broker's own callback, if it has one.
    """

    proposed: ProposedIsr
    on_complete: Callable[[Any], None] | None = None
    decision: DecidedIsr | None = None


class Controller:
    """One partition's registration, and what was registered in every leader epoch."""

    def __init__(
        self,
        replicas: tuple[int, ...],
        initial: PartitionRegistration,
        *,
        counts_partition_epochs: bool,
    ) -> None:
        self.replicas = replicas
        self._counts = counts_partition_epochs
        self._decisions: dict[int, PartitionRegistration] = {}
        self.online = set(replicas)
        self.broker_epochs = dict.fromkeys(replicas, 0)
        self.registration = initial
        self._decisions[initial.leader_epoch] = initial

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

_ROUND_TRIPS = {"SendEpochRequest": "EpochRoundTrip", "SendFetch": "FetchRoundTrip"}
"""What a request is called where the whole round trip is one step."""


@dataclass(frozen=True, slots=True)
class OfferedSteps:
    """What brokers start by themselves, as a model's actions. `fine`: a request is a step of its
    own; `two_step`: an ISR change is sent in one, and answered in others."""

    names: Sequence[str]
    fine: bool
    two_step: bool

    @property
    def kinds(self) -> frozenset[str]:
        """ISR changes and the fetchers' next requests."""
        requests = _ROUND_TRIPS.keys() if self.fine else _ROUND_TRIPS.values()
        changes = (self._named("ExpandIsr"), self._named("ShrinkIsr"))
        return frozenset(("TruncateToHighWatermark", *requests, *changes))

    def _named(self, change: str) -> str:
        return f"Submit{change}" if self.two_step else change

    def isr_change(self, change: str, leader: int, follower: int) -> Action:
        """ExpandIsr or ShrinkIsr, or the sending of it."""
        return Action(self._named(change), (self.names[leader - 1], self.names[follower - 1]))

    def requests(
        self, broker: int, steps: Sequence[str], leader: int | None, *, leader_runs: bool
    ) -> list[Action]:
        """A fetcher's next steps; a round trip only if the leader is there to answer."""
        name = self.names[broker - 1]
        if self.fine or leader is None:
            return [Action(step, (name,)) for step in steps]
        return [
            Action(_ROUND_TRIPS[step], (self.names[leader - 1], name))
            if step in _ROUND_TRIPS
            else Action(step, (name,))
            for step in steps
            if step not in _ROUND_TRIPS or leader_runs
        ]
