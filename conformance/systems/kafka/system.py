"""The system under test: one partition's brokers of Kafka itself, driven by Replication.tla.

What the controller decides and what is observed is as for `impl` (`systems/replication`); the
brokers are processes' worth of Kafka's objects in a JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.brokers import IsrChange
from conformance.systems.kafka.cluster import BridgedCluster
from conformance.systems.kafka.steps import STEPS
from conformance.systems.protocol import ActionRefused, Turn
from conformance.systems.shared.replication.fetcher_loop import FetcherLoop
from conformance.systems.shared.replication.model import partition_model
from conformance.systems.shared.replication.observation import VARIABLES, ReplicationObserver
from conformance.systems.shared.replication.offers import IsrProposal, OfferedSteps
from conformance.systems.shared.replication.threads import in_parts
from conformance.tla import Action, Value

_MEETS_FETCHES = frozenset({"BecomeLeader", "BecomeFollower", "UpdateIsr", "AppendAsLeader"})
"""What may come between the parts of a fetch's handling, and is one command."""


class KafkaSystem:
    """Kafka's brokers in a JVM, an environment that does what the actions say."""

    variables = VARIABLES
    sometimes: frozenset[str] = frozenset({"channel"})
    """Not where a fetch is read and not counted: what was read is in a handler's hands."""
    unconditional: frozenset[str] = frozenset()
    loop = FetcherLoop()

    def __init__(
        self, channel: AdapterChannel, constants: Mapping[str, Value], metadata_version: str | None
    ) -> None:
        self._channel = channel
        self._model = partition_model(constants)
        self._cluster = BridgedCluster(channel, self._model, metadata_version)
        self._observer = ReplicationObserver(self._model.names)
        self._steps = OfferedSteps(self._model, self._cluster.controller)

    # ---- SystemUnderTest -------------------------------------------------------------------

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, initial: Mapping[str, Value]) -> None:
        """As `BridgedCluster.reset`."""
        self._cluster.reset(initial)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if Kafka cannot."""
        STEPS[action.name](self._cluster, *self._model.arguments(action))

    def observe(self) -> Mapping[str, Value]:
        """The observed variables as the brokers' objects have them."""
        cluster = self._cluster
        views = tuple(map(cluster.view, self._model.brokers))
        seen = self._observer.observe(cluster.registration, views)
        if not cluster.uncounted:
            return seen
        return {name: value for name, value in seen.items() if name not in self.sometimes}

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What brokers start by themselves: ISR changes and the fetchers' next requests."""
        return self._steps.kinds

    def offers(self) -> frozenset[Action]:
        """The ISR changes that leaders would propose, the requests that fetchers would send."""
        running = [broker for broker in self._model.brokers if self._cluster.view(broker).online]
        changes = [change for leader in running for change in self._conceivable(leader)]
        requests, proposals = self._cluster.brokers.intentions(running, changes)
        return frozenset(
            [
                *self._steps.isr_changes(
                    IsrProposal(change.name, change.leader, change.follower, proposed)
                    for change, proposed in zip(changes, proposals, strict=True)
                    if proposed
                ),
                *(
                    step
                    for broker, steps in zip(running, requests, strict=True)
                    for step in self._next_requests(broker, steps)
                ),
            ]
        )

    def _next_requests(self, broker: int, steps: Sequence[str]) -> list[Action]:
        leader = self._cluster.view(broker).leader
        runs = leader in self._model.brokers and self._cluster.view(leader).online
        return self._steps.requests(broker, steps, leader, leader_runs=runs)

    def _conceivable(self, leader: int) -> list[IsrChange]:
        """Changes that a leader may look at; AlterPartitionManager has one in flight at most."""
        if self._cluster.view(leader).leader != leader or leader in self._cluster.items:
            return []
        followers = [broker for broker in self._model.brokers if broker != leader]
        return [
            IsrChange(leader, follower, expand)
            for follower in followers
            for expand in (True, False)
        ]

    # ---- Looping ---------------------------------------------------------------------------

    @property
    def threads(self) -> tuple[str, ...]:
        """Every broker has a fetcher, as long as it follows."""
        return self._model.names

    def make_looping(self) -> bool:
        """The bridge needs no preparation; a model must have the steps apart."""
        return self._model.fine

    def take_turn(self, thread: str, *, lost: bool) -> Turn:
        """ReplicaFetcherThread.doWork of this broker's fetcher, once."""
        follower = self._model.ids[thread]
        leader = self._cluster.view(follower).leader
        if leader not in self._model.brokers:
            raise ActionRefused("no fetcher follows the partition")
        asked, waited = self._cluster.brokers.do_work(leader, follower, lost=lost)
        return Turn(asked, waited, self.backs_off(thread))

    def backs_off(self, thread: str) -> bool:
        """Whether the partition is delayed in the fetcher."""
        return self._cluster.brokers.backs_off(self._model.ids[thread])

    def end_back_off(self, thread: str) -> None:
        """As if replica.fetch.backoff.ms had passed."""
        self._cluster.brokers.step("end_back_off", self._model.ids[thread])

    # ---- Interruptible ---------------------------------------------------------------------

    @property
    def voluntary(self) -> frozenset[str]:
        """What brokers start by themselves."""
        return self.offerable

    def make_interruptible(self) -> bool:
        """A fetch must be handled in a step of its own."""
        return self._model.fine

    def concurrent(self, running: Action, between: Action) -> bool:
        """A fetch that a leader handles can meet what else that broker does in one command."""
        handles = running.name == "HandleFetch" and running.args[:1] == between.args[:1]
        return handles and between.name in _MEETS_FETCHES

    def in_parts(self, running: Action, between: Action) -> bool:
        """The read and the count are one step of the specification: as for `impl`."""
        return in_parts(running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """The one point: between Partition.fetchRecords' read and updateFollowerFetchState."""
        brokers = self._cluster.brokers
        leader, follower = (self._model.ids[str(name)] for name in running.args)
        if point == 1 and brokers.read_fetch(leader, follower):
            self.apply(between)
            brokers.count_fetch(leader, follower)
            return "updateFollowerFetchState"
        if point > 1:
            self.apply(running)
        self.apply(between)
        return ""
