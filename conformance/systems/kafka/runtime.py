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

from conformance.errors import UserError
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.protocol import Observation, step_of
from conformance.tla import Action, Fn, Value, make_function

_KEYS = ("k1", "k2")
_NO_BROKER = "none"
_STEPS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
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


class KafkaRuntimeSystem:
    """Brokers of Kafka's coordinator runtime in a JVM, and one partition around them."""

    variables = ("leader", "epoch", "deleted", *_OF_BROKER, "answers")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        names = constants["Brokers"]
        if not isinstance(names, frozenset):
            raise UserError("Brokers must be a set.")
        self._channel = channel
        self._names = tuple(sorted(map(str, names)))
        self._reset = {"brokers": len(names), "max_batch": constants["MaxBatch"]}

    # ---- SystemUnderTest -------------------------------------------------------------------

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty logs that nobody leads."""
        self._run("runtime_reset", self._reset)

    def apply(self, action: Action) -> None:
        """Let a client, the log, the controller or a queued event take one step."""
        step = step_of(_STEPS, action)
        command, members = step
        self._run(command, dict(zip(members, map(self._argument, action.args), strict=True)))

    def _argument(self, value: Value) -> Value:
        return self._names.index(value) + 1 if value in self._names else value

    def _run(self, command: str, members: Mapping[str, object]) -> None:
        steps: list[Mapping[str, object]] = [
            {"command": command, **members},
            {"command": "runtime_view"},
        ]
        self._view = _observed(self._names, bytes(self._channel.call(steps)[-1]))

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        return self._view

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)
