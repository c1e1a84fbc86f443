"""The system under test: Kafka's own CoordinatorRuntime, driven by CoordinatorRuntime.tla.

The runtime, its snapshots, its loader, the adapter of its watermark's listener and the publisher of
elections are Kafka's. The partition's log and its replication are played in the bridge
(java/runtime); nothing runs before an action names it. The shard of CoordinatorStore.tla is played
as well, and that of CoordinatorTransactions.tla; that of CoordinatorGroups.tla is Kafka's
GroupCoordinatorShard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import msgspec

from conformance.conversion import convert
from conformance.systems.external import AdapterChannel
from conformance.systems.kafka import runtime_groups
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps
from conformance.systems.protocol import Observation
from conformance.systems.shared.shard import fresh_shard
from conformance.tla import Fn, Value, make_function, make_record

HAS_GROUPS = "FirstEpoch"
"""The constant that only models of a runtime with groups have."""

_HAS_TRANSACTIONS = "Producers"
_HAS_SESSIONS = "Sessions"
KEYS = ("k1", "k2")
_NO_BROKER = "none"
STEPS: BridgeSteps = MappingProxyType(
    {
        "Write": ("runtime_write", ("broker", "kind", "result")),
        "TransactionalWrite": ("runtime_write", ("broker", "producer", "kind", "result")),
        "CompleteTransaction": (
            "runtime_complete_transaction",
            ("broker", "producer", "end", "result"),
        ),
        "FlushBatch": ("runtime_flush", ("broker", "result")),
        "TimeOut": ("runtime_time_out", ("write",)),
        "AdvanceWatermark": ("runtime_advance", ("broker", "offset")),
        "Replicate": ("runtime_replicate", ("broker",)),
        "ApplyWatermark": ("runtime_apply_watermark", ("broker",)),
        "Elect": ("runtime_elect", ("broker",)),
        "DeleteTopic": ("runtime_delete", ()),
        "RunRole": ("runtime_run_role", ("broker",)),
        "CompleteLoad": ("runtime_complete_load", ("broker", "epoch")),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

_Entry = tuple[Any, int, int, bool, int]
"""A record of the shard, as `BridgedShards.record` reads it, its write, the producer of its batch,
whether it is a marker, and its offset."""


class _Pending(msgspec.Struct, frozen=True, array_like=True):
    """TransactionalStoreShard.java."""

    values: tuple[tuple[str, int, int], ...]
    """In force."""
    pending: tuple[tuple[int, str, int, int], ...]


@dataclass(frozen=True, slots=True)
class BridgedShards:
    """How the bridge's records and states of a shard are read."""

    record: Callable[[Any, int], Mapping[Value, Value]]
    """Key and value of a record of a write."""
    memory: Callable[[Any], Value]
    empty: Value
    """The state of a shard whose log is empty."""
    placed: bool = False
    """Whether a record shows its producer, whether it is a marker, and its offset."""


class _BridgeShard(msgspec.Struct, frozen=True, array_like=True):
    """An active shard as the bridge writes it."""

    memory: Any
    snapshots: tuple[tuple[int, Any], ...]
    written: int
    committed: int
    batch: tuple[_Entry, ...]
    joined: tuple[int, ...]
    deferred: tuple[tuple[int, tuple[int, ...]], ...]


_BridgeTimers = tuple[
    tuple[tuple[str, int], ...], tuple[int, ...], tuple[tuple[int, str, int], ...]
]
"""By name kind and value of its timer, late events by name, and the writes of timers that wait."""


class BridgeRuntime(msgspec.Struct, frozen=True, array_like=True):
    """A broker as the bridge writes it: RuntimeBroker.java."""

    log: tuple[tuple[Any, int, int, bool, int, int, bool], ...]
    hw: int
    roles: tuple[tuple[bool, int], ...]
    state: str
    tenure: int
    loads: tuple[int, ...]
    shard: _BridgeShard | None
    listener: tuple[str, int]
    timers: _BridgeTimers
    executor: tuple[str, int, int]


class _BridgePartition(msgspec.Struct, frozen=True, array_like=True):
    """All of it: Runtimes.java."""

    leader: int
    epoch: int
    deleted: bool
    answers: tuple[str, ...]
    brokers: tuple[BridgeRuntime, ...]


_as_view = msgspec.json.Decoder(_BridgePartition).decode


ReadBroker = Callable[[BridgedShards, BridgeRuntime], Value]
"""Reads a variable of a broker."""


@cache
def _observed(
    shards: BridgedShards,
    variables: tuple[tuple[str, ReadBroker], ...],
    names: tuple[str, ...],
    text: bytes,
) -> Observation:
    view = _as_view(text)
    return Observation(
        {
            "leader": names[view.leader - 1] if view.leader else _NO_BROKER,
            "epoch": view.epoch,
            "deleted": view.deleted,
            "answers": view.answers,
            **{
                name: make_function(
                    {
                        broker: of(shards, seen)
                        for broker, seen in zip(names, view.brokers, strict=True)
                    }
                )
                for name, of in variables
            },
        }
    )


def _log(shards: BridgedShards, broker: BridgeRuntime) -> Value:
    return tuple(
        Fn(_record(shards, entry[:5]) | {"epoch": entry[5], "last": entry[6]})
        for entry in broker.log
    )


def _record(shards: BridgedShards, entry: _Entry) -> dict[Value, Value]:
    record, write, producer, control, at = entry
    seen: dict[Value, Value] = {**shards.record(record, write), "write": write}
    if shards.placed:
        seen |= {"producer": producer, "control": control, "at": at}
    return seen


def _shard(shards: BridgedShards, broker: BridgeRuntime) -> Value:
    """Nobody asks a shard that is not active; a fresh one stands for it."""
    shard = broker.shard
    if shard is None:
        return fresh_shard(shards.empty)
    return Fn(
        {
            "memory": shards.memory(shard.memory),
            "snapshots": make_function({at: shards.memory(seen) for at, seen in shard.snapshots}),
            "written": shard.written,
            "committed": shard.committed,
            "batch": tuple(Fn(_record(shards, entry)) for entry in shard.batch),
            "joined": frozenset(shard.joined),
            "deferred": frozenset(
                Fn({"at": at, "write": write}) for at, writes in shard.deferred for write in writes
            ),
        }
    )


_OF_BROKER: Mapping[str, ReadBroker] = MappingProxyType(
    {
        "log": _log,
        "hw": lambda _, broker: broker.hw,
        "roles": lambda _, broker: tuple(
            Fn({"load": load, "epoch": epoch}) for load, epoch in broker.roles
        ),
        "state": lambda _, broker: broker.state,
        "tenure": lambda _, broker: broker.tenure,
        "loads": lambda _, broker: frozenset(broker.loads),
        "shard": _shard,
        "listener": lambda _, broker: Fn(
            dict(zip(("kind", "number"), broker.listener, strict=True))
        ),
    }
)


def _store(values: list[int]) -> Value:
    return make_function(dict(zip(KEYS, values, strict=True)))


def _stored(entry: Sequence[Value], _write: int) -> Mapping[Value, Value]:
    return dict(zip(("key", "value"), entry, strict=True))


def _pending(sent: Any) -> Value:
    stored = convert(sent, _Pending)
    return make_record(
        offsets=make_function({key: _value_at(*entry) for key, *entry in stored.values}),
        pending=make_function(
            {(producer, key): _value_at(*entry) for producer, key, *entry in stored.pending}
        ),
    )


def _value_at(value: int, at: int) -> Value:
    return make_record(value=value, at=at)


_STORE = BridgedShards(_stored, _store, _store([0, 0]))
_TRANSACTIONS = BridgedShards(_stored, _pending, _pending(((), ())), placed=True)
_GROUPS = BridgedShards(runtime_groups.record, runtime_groups.memory, runtime_groups.EMPTY)


_SHARDS: Mapping[str, BridgedShards] = MappingProxyType(
    {"groups": _GROUPS, "sessions": _STORE, "transactions": _TRANSACTIONS, "values": _STORE}
)
"""By the name that the bridge knows them by."""


def _kind_of(constants: Mapping[str, Value]) -> str:
    if HAS_GROUPS in constants:
        return "groups"
    if _HAS_TRANSACTIONS in constants:
        return "transactions"
    return "sessions" if constants.get(_HAS_SESSIONS) is True else "values"


class KafkaRuntimeSystem(BridgedSystem):
    """Brokers of Kafka's coordinator runtime in a JVM, and one partition around them."""

    variables = ("leader", "epoch", "deleted", *_OF_BROKER, "answers")

    def __init__(
        self,
        channel: AdapterChannel,
        constants: Mapping[str, Value],
        steps: BridgeSteps = STEPS,
        more: Mapping[str, ReadBroker] = MappingProxyType({}),
    ) -> None:
        self._shards = _kind_of(constants)
        variables = (*_OF_BROKER.items(), *more.items())
        observed = partial(_observed, _SHARDS[self._shards], variables)
        super().__init__(channel, constants, steps, "runtime_view", observed)
        self._max_batch = constants["MaxBatch"]

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty logs that nobody leads."""
        self._run(
            "runtime_reset",
            {
                "brokers": len(self._names),
                "max_batch": self._max_batch,
                "shards": self._shards,
            },
        )

    def read_log(self, broker: str, epoch: int) -> None:
        """Beyond the model's steps: a load reads the log, and its event waits for CompleteLoad."""
        self._run("runtime_read_log", {"broker": self._argument(broker), "epoch": epoch})
