"""What a workload does, drawn from a seed: who sends what, commits, aborts, seeks, dies, and when.

The plan settles what clients decide. When they get answers is the cluster's matter, so two runs of
one seed are alike, not equal. A client that dies comes back as another instance with values of its
own; a transactional one keeps its transactional id, and so fences what it was.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle

import msgspec

LIBRARIES = ("confluent-kafka", "kafka-python", "aiokafka", "java")
"""Clients that a workload drives."""
CONSUMER_PROTOCOL_LIBRARIES = ("confluent-kafka", "java")
"""Those that can join a group with `group.protocol=consumer` (KIP-848)."""
STUCK_AFTER_REFUSAL = ("aiokafka", "kafka-python")
"""Those whose idempotent producer can send no more, or not all, after a broker refused a record.

kafka-python 3.0.12 answers each later send with the same error. aiokafka 0.14.0 counts the sequence
numbers of the refused batch, so the broker says OUT_OF_ORDER_SEQUENCE_NUMBER from then on.
"""
END = "end"
"""How values begin that are sent last: a reader that has one of each partition has read it all."""
MAX_MESSAGE_BYTES = 8_192
"""`max.message.bytes` of the workload's topics: far above every batch but the oversized ones."""


class ProducerKind(StrEnum):
    """How producers send."""

    PLAIN = "plain"
    """Batches are not numbered."""
    IDEMPOTENT = "idempotent"
    TRANSACTIONAL = "transactional"


class ClientRole(StrEnum):
    """What a client is for."""

    PRODUCER = "producer"
    TRANSACTIONS = "transactions"
    TRANSFORMER = "transformer"
    """Consumes, transforms and produces, with the offsets in the transaction."""
    MEMBER = "member"
    """A member of a consumer group that commits."""
    READER = "reader"
    """Reads partitions that it chose, and seeks."""
    CLOSER = "closer"
    """Ends what the dead left open, and sends the last value of each partition."""
    FINAL_READER = "final"
    """Reads everything once more, up to the last values."""


class GroupProtocol(StrEnum):
    """`group.protocol`: how a consumer joins its group."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """The coordinator assigns partitions (KIP-848)."""


class PlannedAction(StrEnum):
    """What a step does."""

    SEND = "send"
    TRANSACTION = "transaction"
    TRANSFORM = "transform"
    POLL = "poll"
    COMMIT = "commit"
    FETCH = "fetch"
    SEEK = "seek"
    SUBSCRIBE = "subscribe"
    FENCE = "fence"
    DRAIN = "drain"


class PlannedRecord(msgspec.Struct, frozen=True):
    """A record to send; each value is sent once in a workload."""

    topic: str
    partition: int
    value: str
    key_bytes: int = 0
    """The length of its key."""

    @property
    def is_oversized(self) -> bool:
        """Whether every broker must refuse it."""
        return self.key_bytes > MAX_MESSAGE_BYTES


class PlannedStep(msgspec.Struct, frozen=True):
    """One thing that a client does, `rest` seconds after the one before."""

    rest: float
    do: PlannedAction
    records: tuple[PlannedRecord, ...] = ()
    value: str = ""
    """Of a transformation: how the values begin that it sends."""
    commits: bool = True
    """Whether a transaction commits."""
    most: int = 0
    """Records of a poll; those by which a seek goes back."""
    ids: tuple[str, ...] = ()
    """Transactional ids to fence."""


class InstancePlan(msgspec.Struct, frozen=True):
    """One instance of a client: a process, with a file of its own."""

    process: str
    client: str
    role: ClientRole
    kind: ProducerKind
    library: str
    starts: float
    """Seconds after the workload's begin."""
    dies: float | None
    """When it is killed, if it is."""
    steps: tuple[PlannedStep, ...]
    topics: tuple[str, ...]
    partitions: int
    acks: str = "all"
    isolation: str = "read_committed"
    group: str = ""
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    transactional_id: str = ""
    output: str = ""
    """The topic that a transformer sends to; it reads the others."""


@dataclass(frozen=True, slots=True)
class WorkloadSettings:
    """What the user chose. `producers` is of each kind, `consumers` of each group."""

    seed: int
    seconds: float
    topics: tuple[str, ...]
    partitions: int = 3
    libraries: tuple[str, ...] = LIBRARIES
    kinds: tuple[ProducerKind, ...] = tuple(ProducerKind)
    acks: str = "all"
    producers: int = 1
    consumers: int = 2
    crash_every: float = 6.0
    """Seconds between the deaths of clients; 0: none dies."""
    consumer_protocol: tuple[str, ...] = ()
    """Libraries that may join groups with `group.protocol=consumer`; the seed draws who does."""

    @property
    def output(self) -> str:
        """The topic of transformers, or ""."""
        return f"{self.topics[0]}-out" if ProducerKind.TRANSACTIONAL in self.kinds else ""

    @property
    def all_topics(self) -> tuple[str, ...]:
        """Those that producers send to, and that of transformers."""
        return (*self.topics, self.output) if self.output else self.topics


@dataclass(frozen=True, slots=True)
class _PlannedClient:
    """A client, whatever instances it has."""

    name: str
    role: ClientRole
    kind: ProducerKind
    library: str
    isolation: str = "read_committed"


def workload_plan(settings: WorkloadSettings) -> tuple[InstancePlan, ...]:
    """All instances but those that end the workload, in the order of their starts."""
    clients = tuple(_clients(settings))
    lives = _lives(settings, clients)
    instances = [
        _instance(settings, client, number, starts, dies)
        for client in clients
        for number, (starts, dies) in enumerate(lives[client.name], 1)
    ]
    return tuple(sorted(instances, key=lambda instance: instance.starts))


def ending_plan(settings: WorkloadSettings) -> tuple[InstancePlan, ...]:
    """What comes after: the last values are sent, and everything is read once more."""
    libraries = cycle(_shuffled(settings))
    ids = tuple(
        _transactional_id(settings, client.name)
        for client in _clients(settings)
        if client.role in {ClientRole.TRANSACTIONS, ClientRole.TRANSFORMER}
    )
    last = tuple(
        PlannedRecord(topic, partition, f"{END}-{topic}-{partition}")
        for topic in settings.all_topics
        for partition in range(settings.partitions)
    )
    steps = (
        *((PlannedStep(0.0, PlannedAction.FENCE, ids=ids),) if ids else ()),
        PlannedStep(0.0, PlannedAction.SEND, last),
    )
    plain = settings.kinds == (ProducerKind.PLAIN,)
    kind = ProducerKind.PLAIN if plain else ProducerKind.IDEMPOTENT
    closer = _PlannedClient("closer", ClientRole.CLOSER, kind, next(libraries))
    readers = [
        _PlannedClient(
            f"final-{isolation}", ClientRole.FINAL_READER, kind, next(libraries), isolation
        )
        for isolation in ("read_committed", "read_uncommitted")
    ]
    drain = (PlannedStep(0.0, PlannedAction.DRAIN, most=500),)
    return (
        _with_steps(settings, closer, 1, 0.0, None, steps),
        *(_with_steps(settings, reader, 1, 0.0, None, drain) for reader in readers),
    )


def _clients(settings: WorkloadSettings) -> Iterator[_PlannedClient]:
    """Libraries take turns, from a place in the list that the seed draws."""
    libraries = cycle(_shuffled(settings))
    for kind in settings.kinds:
        role = (
            ClientRole.TRANSACTIONS if kind is ProducerKind.TRANSACTIONAL else ClientRole.PRODUCER
        )
        for number in range(1, settings.producers + 1):
            yield _PlannedClient(f"{kind}-{number}", role, kind, next(libraries))
    for number in range(1, settings.consumers + 1):
        yield _PlannedClient(
            f"member-{number}", ClientRole.MEMBER, ProducerKind.PLAIN, next(libraries)
        )
    if ProducerKind.TRANSACTIONAL in settings.kinds:
        for number in range(1, settings.consumers + 1):
            yield _PlannedClient(
                f"transformer-{number}",
                ClientRole.TRANSFORMER,
                ProducerKind.TRANSACTIONAL,
                next(libraries),
            )
    for isolation in ("read_committed", "read_uncommitted"):
        name = f"reader-{isolation.removeprefix('read_')}"
        yield _PlannedClient(
            name, ClientRole.READER, ProducerKind.PLAIN, next(libraries), isolation
        )


def _shuffled(settings: WorkloadSettings) -> list[str]:
    libraries = list(settings.libraries)
    random.Random(f"{settings.seed}/libraries").shuffle(libraries)
    return libraries


FIRST_S = 0.5
"""Seconds within which the first instances start."""
_BACK = 1.0
"""Seconds after which a client that died is there again."""


def _lives(
    settings: WorkloadSettings, clients: Sequence[_PlannedClient]
) -> dict[str, list[tuple[float, float | None]]]:
    """Of each client its instances: when each starts, and when it dies or None."""
    source = random.Random(f"{settings.seed}/lives")
    lives: dict[str, list[tuple[float, float | None]]] = {
        client.name: [(round(source.uniform(0, 0.9 * FIRST_S), 3), None)] for client in clients
    }
    at = settings.crash_every * source.uniform(0.5, 1.0)
    while settings.crash_every and at + _BACK < settings.seconds:
        own = lives[source.choice(clients).name]
        if own[-1][0] + _BACK < at:
            own[-1] = (own[-1][0], round(at, 3))
            own.append((round(at + _BACK, 3), None))
        at += settings.crash_every
    return lives


def _instance(
    settings: WorkloadSettings,
    client: _PlannedClient,
    number: int,
    starts: float,
    dies: float | None,
) -> InstancePlan:
    # One that is to die must have something to do until then.
    seconds = settings.seconds - starts if dies is None else dies - starts + 2 * _BACK
    process = f"{client.name}.{number}"
    source = random.Random(f"{settings.seed}/{process}")
    steps = tuple(_timed(_STEPS[client.role](settings, process, source), source, seconds))
    return _with_steps(settings, client, number, starts, dies, steps)


def _with_steps(
    settings: WorkloadSettings,
    client: _PlannedClient,
    number: int,
    starts: float,
    dies: float | None,
    steps: tuple[PlannedStep, ...],
) -> InstancePlan:
    transforms = client.role is ClientRole.TRANSFORMER
    plain = client.role is ClientRole.PRODUCER and client.kind is ProducerKind.PLAIN
    transactional = transforms or client.role is ClientRole.TRANSACTIONS
    return InstancePlan(
        process=f"{client.name}.{number}",
        client=client.name,
        role=client.role,
        kind=client.kind,
        library=client.library,
        starts=starts,
        dies=dies,
        steps=steps,
        topics=settings.topics if transforms else settings.all_topics,
        partitions=settings.partitions,
        acks=settings.acks if plain else "all",
        isolation=client.isolation,
        group=_group(settings, client.role),
        group_protocol=_group_protocol(settings, client),
        transactional_id=_transactional_id(settings, client.name) if transactional else "",
        output=settings.output if transforms else "",
    )


def _group(settings: WorkloadSettings, role: ClientRole) -> str:
    return (
        f"{settings.topics[0]}-{role}s"
        if role in {ClientRole.MEMBER, ClientRole.TRANSFORMER}
        else ""
    )


def _group_protocol(settings: WorkloadSettings, client: _PlannedClient) -> GroupProtocol:
    """The same of all instances of a client. A group may have members of both protocols."""
    if not _group(settings, client.role) or client.library not in settings.consumer_protocol:
        return GroupProtocol.CLASSIC
    return random.Random(f"{settings.seed}/{client.name}/protocol").choice(list(GroupProtocol))


def _transactional_id(settings: WorkloadSettings, name: str) -> str:
    return f"{settings.topics[0]}-{name}"


# --- steps ---------------------------------------------------------------------------------------


_RESTS = (0.01, 0.15)
"""Seconds between two steps, at least and at most."""
_OVERSIZED_SHARE = 0.04
"""Of the sends outside transactions, those of one record that brokers must refuse."""
_OVERSIZED_KEY_BYTES = MAX_MESSAGE_BYTES * 3 // 2


def _timed(
    steps: Iterator[PlannedStep], source: random.Random, seconds: float
) -> Iterator[PlannedStep]:
    left = seconds
    while True:
        rest = round(source.uniform(*_RESTS), 4)
        left -= rest
        if left < 0:
            return
        yield msgspec.structs.replace(next(steps), rest=rest)


def _records(
    settings: WorkloadSettings, process: str, source: random.Random, number: int, most: int
) -> tuple[PlannedRecord, ...]:
    return tuple(
        PlannedRecord(
            source.choice(settings.topics),
            source.randrange(settings.partitions),
            f"{process}-{number}-{place}",
        )
        for place in range(source.randint(1, most))
    )


def _sends(
    settings: WorkloadSettings, process: str, source: random.Random
) -> Iterator[PlannedStep]:
    number = 0
    while True:
        number += 1
        records = _records(settings, process, source, number, 8)
        if source.random() < _OVERSIZED_SHARE:
            # Alone: a broker refuses the whole batch, and only some clients split it then.
            records = (msgspec.structs.replace(records[0], key_bytes=_OVERSIZED_KEY_BYTES),)
        yield PlannedStep(0.0, PlannedAction.SEND, records)


def _transactions(
    settings: WorkloadSettings, process: str, source: random.Random
) -> Iterator[PlannedStep]:
    number = 0
    while True:
        number += 1
        records = _records(settings, process, source, number, 6)
        yield PlannedStep(0.0, PlannedAction.TRANSACTION, records, commits=source.random() < 0.75)


def _transforms(
    _settings: WorkloadSettings, process: str, source: random.Random
) -> Iterator[PlannedStep]:
    number = 0
    while True:
        number += 1
        yield PlannedStep(
            0.0,
            PlannedAction.TRANSFORM,
            value=f"{process}-{number}",
            commits=source.random() < 0.8,
            most=source.randint(1, 12),
        )


def _memberships(
    _settings: WorkloadSettings, _process: str, source: random.Random
) -> Iterator[PlannedStep]:
    yield PlannedStep(0.0, PlannedAction.SUBSCRIBE)
    weights = {
        PlannedAction.POLL: 72,
        PlannedAction.COMMIT: 20,
        PlannedAction.FETCH: 7,
        PlannedAction.SUBSCRIBE: 1,
    }
    while True:
        (action,) = source.choices(list(weights), list(weights.values()))
        yield PlannedStep(
            0.0, action, most=source.randint(1, 50) if action is PlannedAction.POLL else 0
        )


def _reads(
    _settings: WorkloadSettings, _process: str, source: random.Random
) -> Iterator[PlannedStep]:
    while True:
        action = PlannedAction.SEEK if source.random() < 0.06 else PlannedAction.POLL
        yield PlannedStep(0.0, action, most=source.randint(1, 60))


_STEPS = {
    ClientRole.PRODUCER: _sends,
    ClientRole.TRANSACTIONS: _transactions,
    ClientRole.TRANSFORMER: _transforms,
    ClientRole.MEMBER: _memberships,
    ClientRole.READER: _reads,
}


def partitions_of(instance: InstancePlan) -> tuple[tuple[str, int], ...]:
    """Every partition of the workload's topics."""
    return tuple(
        (topic, partition) for topic in instance.topics for partition in range(instance.partitions)
    )
