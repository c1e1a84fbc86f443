"""The system under test: brokers whose requests wait, driven by Acknowledgement.tla's actions.

The replication protocol's own steps are those of `systems.replication`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from conformance.systems.acknowledgement.clients import NOWHERE, FetchingConsumer, Producer
from conformance.systems.acknowledgement.observation import OF_REQUESTS, VARIABLES, RequestsView
from conformance.systems.acknowledgement.requests import NOBODY, BrokerRequests
from conformance.systems.acknowledgement.threads import (
    BY_REQUEST,
    OUTCOMES,
    concurrent,
    in_parts,
    replication_step,
    request_step,
)
from conformance.systems.protocol import ActionRefused, Observation
from conformance.systems.replication.broker import RECORD, TOPIC_PARTITION, CrashableDisk
from conformance.systems.replication.system import ReplicationSystem
from conformance.systems.rewinding import Rewinder, Snapshot
from conformance.tla import Action, Value
from impl.delayed.delayed_produce import ProducePartitionResponse
from impl.disk import MemoryDisk
from impl.partition import ACKS_ALL
from impl.types import FetchPartitionData, TopicPartition

_ACKS = {"all": ACKS_ALL, "1": 1}
_BROKEN = "NETWORK_EXCEPTION"
_STATE_CHANGES = frozenset({"Leads", "Follows", "UpdatesIsr"})
_REMEMBERED = 200_000


class AcknowledgementSystem:
    """Brokers with purgatories; an environment of producers and consumers."""

    variables = VARIABLES
    repeatable = True

    def __init__(
        self, constants: Mapping[str, Value], make_disk: Callable[[str], CrashableDisk]
    ) -> None:
        self._names = _sorted(constants["Brokers"])
        self._producer_names = _sorted(constants["Producers"])
        self._consumer_names = _sorted(constants["Consumers"])
        self._replication = ReplicationSystem(
            constants,
            make_disk,
            min_insync_replicas=cast("int", constants["MinInsync"]),
            make_requests=BrokerRequests,
        )
        self._cluster = self._replication.cluster
        self._restarts = constants["Crashes"] is True
        self._producers: dict[str, Producer] = {}
        self._consumers: dict[str, FetchingConsumer] = {}
        self._actions: dict[str, Callable[..., None]] = {
            "Produce": self._produce,
            "RefuseProduce": self._produce,
            "ExpireProduce": self._expire_produce,
            "ExpireFetch": self._expire_fetch,
            "FetchAsConsumer": self._fetch_as_consumer,
            "ExpireConsumerFetch": self._expire_consumer_fetch,
            "CheckWaiting": self._check_waiting,
            "BreaksDown": self._break_down,
        }
        self._known: dict[tuple[object, ...], tuple[Observation, Mapping[str, Value]]] = {}
        apart = (*self._replication.remembered, self._known, self._actions)
        self._rewinder = Rewinder(self, apart)

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, initial: Mapping[str, Value]) -> None:
        """New brokers, as `ReplicationSystem.reset` says; nobody has asked for anything.

        How the brokers came to know of their first leader is over: nothing waited, nobody looks.
        """
        self._rewinder.forget()
        self._replication.reset(initial)
        for name in self._names:
            self._requests_of(name).actions.forget()
        self._producers = {name: Producer() for name in self._producer_names}
        self._consumers = {name: FetchingConsumer() for name in self._consumer_names}

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        own = self._actions.get(action.name)
        if own is not None:
            own(*action.args)
            self._replication.look_again()
        elif action.name in _STATE_CHANGES:
            self._change_state(str(action.args[0]), replication_step(action))
        else:
            self._replication.apply(replication_step(action))

    def observe(self) -> Mapping[str, Value]:
        """The observed variables; one object for each distinct state."""
        replication = self._replication.observe()
        own = self._observe_requests()
        key = (id(replication), own)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            values = dict(zip(OF_REQUESTS, own, strict=True))
            # With what it is made of: nothing else may take the place of that in memory.
            known = self._known[key] = (Observation({**replication, **values}), replication)
        return known[0]

    def _observe_requests(self) -> tuple[Value, ...]:
        view = RequestsView(
            self._producers,
            self._cluster.channels_by_name(),
            self._consumers,
            {name: self._requests_of(name) for name in self._names},
        )
        return tuple(value(view) for value in OF_REQUESTS.values())

    def _requests_of(self, name: str) -> BrokerRequests:
        requests = self._cluster.broker(name).requests
        assert isinstance(requests, BrokerRequests)
        return requests

    # ---- Snapshots -------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """As `ReplicationSystem.snapshot`, with those who asked and what waits."""
        return self._rewinder.take()

    def restore(self, snapshot: Snapshot) -> None:
        """All of it as it was."""
        self._cluster.end_threads()
        self._rewinder.restore(snapshot)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What brokers start by themselves, looks at what waits included."""
        return frozenset({"CheckWaiting", *map(request_step, self._replication.offerable)})

    def offers(self) -> frozenset[Action]:
        """As `ReplicationSystem.offers`, and the looks that somebody is about to take."""
        looks = [
            Action("CheckWaiting", (name,))
            for name in self._names
            if self._requests_of(name).actions.by != NOBODY
        ]
        own = [Action(request_step(offer.name), offer.args) for offer in self._replication.offers()]
        return frozenset([*own, *looks])

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on brokers have locks at which their steps can be stopped."""
        return self._replication.make_interruptible()

    @property
    def voluntary(self) -> frozenset[str]:
        """What brokers start by themselves."""
        return self.offerable

    @property
    def unconditional(self) -> frozenset[str]:
        """Requests of which something else may come than the action says."""
        return OUTCOMES

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of one broker take these."""
        return concurrent(running, between, restarts=self._restarts)

    def in_parts(self, running: Action, between: Action) -> bool:
        """Whether one is a single step of the spec that the other may see in parts."""
        return in_parts(running, between)

    @property
    def in_entries(self) -> frozenset[str]:
        """Requests are looked at one by one."""
        return BY_REQUEST

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of a broker stand still while another takes its action."""
        return self._replication.interrupt_calls(
            lambda: self.apply(running), point, lambda: self.apply(between)
        )

    # ---- brokers ---------------------------------------------------------------------------

    def _change_state(self, broker: str, step: Action) -> None:
        """Up to the look at what waits, which the same thread takes before it ends."""
        with self._requests_of(broker).changing_state():
            self._replication.apply(step)

    def _check_waiting(self, leader: str) -> None:
        self._requests_of(leader).actions.let_look()

    def _break_down(self, broker: str, log_end: int, high_watermark: int) -> None:
        """What waits at the broker goes with its process; clients see the connection break."""
        self._replication.apply(Action("Crash", (broker, log_end, high_watermark)))
        self._cluster.lose_parked_at(broker)
        clients: list[Producer | FetchingConsumer] = [
            *self._producers.values(),
            *self._consumers.values(),
        ]
        for client in clients:
            if client.leader == broker and client.operation is not None:
                client.leader, client.error, client.operation = NOWHERE, _BROKEN, None

    # ---- requests --------------------------------------------------------------------------

    def _produce(self, leader: str, producer: str, acks: str) -> None:
        item, broker = self._producers[producer], self._cluster.broker(leader)
        item.leader, item.acks = leader, acks

        def answer(responses: Mapping[TopicPartition, ProducePartitionResponse]) -> None:
            item.operation = None
            item.answer(responses[TOPIC_PARTITION])

        item.operation = self._requests_of(leader).produce(
            broker.replica_manager, TOPIC_PARTITION, RECORD, _ACKS[acks], answer
        )

    def _expire_produce(self, producer: str) -> None:
        item = self._producers[producer]
        self._requests_of(_waits_at(item)).expire(item.operation)

    def _fetch_as_consumer(self, leader: str, consumer: str) -> None:
        fetching_consumer, broker = self._consumers[consumer], self._cluster.broker(leader)
        fetching_consumer.leader = leader

        def answer(partitions: Mapping[TopicPartition, FetchPartitionData]) -> None:
            fetching_consumer.operation = None
            fetching_consumer.answer(partitions[TOPIC_PARTITION])

        fetching_consumer.operation = self._requests_of(leader).fetch_as_consumer(
            broker.replica_manager, TOPIC_PARTITION, fetching_consumer.offset, answer
        )

    def _expire_consumer_fetch(self, consumer: str) -> None:
        fetching_consumer = self._consumers[consumer]
        self._requests_of(_waits_at(fetching_consumer)).expire(fetching_consumer.operation)

    def _expire_fetch(self, follower: str) -> None:
        leader = self._cluster.parked_at(follower)
        requests, follower_id = self._requests_of(leader), self._cluster.broker(follower).id
        requests.expire(requests.parked.get(follower_id))


def _waits_at(client: Producer | FetchingConsumer) -> str:
    if client.leader == NOWHERE:
        raise ActionRefused("this client's request waits nowhere")
    return client.leader


def _sorted(value: Value) -> tuple[str, ...]:
    return tuple(sorted(str(value) for value in cast("frozenset[Value]", value)))


class Factory:
    """Makes systems on disks in memory, which lose in a crash what real ones would."""

    def __call__(self, constants: Mapping[str, Value]) -> AcknowledgementSystem:
        return AcknowledgementSystem(constants, lambda _name: MemoryDisk())

    def taken_elsewhere(self) -> Mapping[str, str]:
        """Steps of Replication that leave requests as they are."""
        return dict.fromkeys(_OF_REPLICATION, "Replication")


_OF_REPLICATION = (
    "TakesOffline",
    "ElectsUncleanly",
    "SendsEpochRequest",
    "HandlesEpochRequest",
    "ProcessesEpochs",
    "HandlesListOffsets",
    "ProcessesListOffsets",
)

create = Factory()
