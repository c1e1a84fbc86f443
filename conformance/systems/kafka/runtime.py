"""The system under test: Kafka's own CoordinatorRuntime, driven by CoordinatorStore.tla's actions.

The runtime, its snapshots, its loader, the adapter of its watermark's listener and the publisher of
elections are Kafka's. The partition's log, its replication and the shard's values are played in the
bridge (java/runtime); nothing runs before an action names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value, make_function

_KEYS = ("k1", "k2")
_NO_BROKER = "none"
_STEPS: BridgeSteps = MappingProxyType(
    {
        "Write": ("runtime_write", ("broker", "kind", "result")),
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

_Entry = tuple[str, int, int]
_Values = tuple[int, ...]


class _BridgeShard(msgspec.Struct, frozen=True, array_like=True):
    """An active shard as the bridge writes it; values are in the order of `_KEYS`."""

    memory: _Values
    snapshots: tuple[tuple[int, _Values], ...]
    written: int
    committed: int
    batch: tuple[_Entry, ...]
    joined: tuple[int, ...]
    deferred: tuple[tuple[int, tuple[int, ...]], ...]


class _BridgeRuntime(msgspec.Struct, frozen=True, array_like=True):
    """A broker as the bridge writes it: RuntimeBroker.java."""

    log: tuple[tuple[str, int, int, int, bool], ...]
    hw: int
    roles: tuple[tuple[bool, int], ...]
    state: str
    tenure: int
    loads: tuple[int, ...]
    shard: _BridgeShard | None
    listener: tuple[str, int]


class _BridgePartition(msgspec.Struct, frozen=True, array_like=True):
    """All of it: Runtimes.java."""

    leader: int
    epoch: int
    deleted: bool
    answers: tuple[str, ...]
    brokers: tuple[_BridgeRuntime, ...]


_as_view = msgspec.json.Decoder(_BridgePartition).decode


@cache
def _observed(names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
    return Observation(
        {
            "leader": names[view.leader - 1] if view.leader else _NO_BROKER,
            "epoch": view.epoch,
            "deleted": view.deleted,
            "answers": view.answers,
            **{
                name: make_function(
                    {broker: of(seen) for broker, seen in zip(names, view.brokers, strict=True)}
                )
                for name, of in _OF_BROKER.items()
            },
        }
    )


def _log(broker: _BridgeRuntime) -> Value:
    return tuple(
        Fn(_record((key, value, write)) | {"epoch": epoch, "last": last})
        for key, value, write, epoch, last in broker.log
    )


def _record(entry: _Entry) -> dict[Value, Value]:
    return dict(zip(("key", "value", "write"), entry, strict=True))


def _store(values: Sequence[int]) -> Value:
    return make_function(dict(zip(_KEYS, values, strict=True)))


_FRESH = _BridgeShard((0, 0), ((0, (0, 0)),), 0, 0, (), (), ())
"""Nobody asks a shard that is not active; a fresh one stands for it."""


def _shard(broker: _BridgeRuntime) -> Value:
    shard = broker.shard or _FRESH
    return Fn(
        {
            "memory": _store(shard.memory),
            "snapshots": make_function({at: _store(values) for at, values in shard.snapshots}),
            "written": shard.written,
            "committed": shard.committed,
            "batch": tuple(Fn(_record(entry)) for entry in shard.batch),
            "joined": frozenset(shard.joined),
            "deferred": frozenset(
                Fn({"at": at, "write": write}) for at, writes in shard.deferred for write in writes
            ),
        }
    )


_OF_BROKER: Mapping[str, Callable[[_BridgeRuntime], Value]] = MappingProxyType(
    {
        "log": _log,
        "hw": lambda broker: broker.hw,
        "roles": lambda broker: tuple(
            Fn({"load": load, "epoch": epoch}) for load, epoch in broker.roles
        ),
        "state": lambda broker: broker.state,
        "tenure": lambda broker: broker.tenure,
        "loads": lambda broker: frozenset(broker.loads),
        "shard": _shard,
        "listener": lambda broker: Fn(dict(zip(("kind", "number"), broker.listener, strict=True))),
    }
)


class KafkaRuntimeSystem(BridgedSystem):
    """Brokers of Kafka's coordinator runtime in a JVM, and one partition around them."""

    variables = ("leader", "epoch", "deleted", *_OF_BROKER, "answers")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "runtime_view", _observed)
        self._max_batch = constants["MaxBatch"]

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty logs that nobody leads."""
        self._run("runtime_reset", {"brokers": len(self._names), "max_batch": self._max_batch})
