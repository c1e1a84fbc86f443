"""The system under test: Kafka's own logs and producer, driven by IdempotentProduce.tla's actions.

UnifiedLog, ProducerStateManager and the Java client's TransactionManager are Kafka's. The network,
elections and who fetches when are the actions (java/produce).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps, record
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value, make_function

_STEPS: BridgeSteps = MappingProxyType(
    {
        "Send": ("produce_send", ("size",)),
        "Produce": ("produce_append", ("epoch", "value")),
        "Acknowledge": ("produce_acknowledge", ("value", "arrives")),
        "Bump": ("produce_bump", ("value",)),
        "Elect": ("produce_elect", ("broker",)),
        "Fetch": ("produce_fetch", ("broker",)),
        "Truncate": ("produce_truncate", ("broker",)),
        "Restart": ("produce_restart", ("broker", "clean")),
        "Expire": ("produce_expire", ("broker",)),
    }
)
_ANSWER = ("epoch", "seq", "error", "offset")
_SENT = ("epoch", "seq", "size", "value")
_LOGGED = (*_SENT, "offset", "leaderEpoch")
_KNOWN = ("first", "last", "offset")

_Entry = tuple[int, tuple[tuple[int, int, int], ...]]


class _BridgeProducer(msgspec.Struct, frozen=True, array_like=True):
    """The producer as the bridge writes it; batches are in the order of `_SENT`."""

    epoch: int
    next: int
    last_acked: int
    pending: tuple[tuple[int, int, int, int], ...]
    values: int


class _BridgeLog(msgspec.Struct, frozen=True, array_like=True):
    """A replica as the bridge writes it; batches are in the order of `_LOGGED`."""

    batches: tuple[tuple[int, int, int, int, int, int], ...]
    hw: int
    producer: _Entry | None
    snapshots: tuple[tuple[int, _Entry | None], ...]


class _BridgeProduce(msgspec.Struct, frozen=True, array_like=True):
    """All of it: Produces.java."""

    leader: int
    epoch: int
    answers: tuple[tuple[int, int, str, int], ...]
    client: _BridgeProducer
    logs: tuple[_BridgeLog, ...]


_as_view = msgspec.json.Decoder(_BridgeProduce).decode


def _entry(entry: _Entry | None) -> Value:
    epoch, batches = entry or (-1, ())
    return Fn({"epoch": epoch, "batches": tuple(record(_KNOWN, known) for known in batches)})


@cache
def _observed(names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
    client = view.client
    logs = dict(zip(names, view.logs, strict=True))
    return Observation(
        {
            "leader": names[view.leader - 1],
            "epoch": view.epoch,
            "log": make_function(
                {
                    name: tuple(record(_LOGGED, batch) for batch in log.batches)
                    for name, log in logs.items()
                }
            ),
            "hw": make_function({name: log.hw for name, log in logs.items()}),
            "producer": make_function({name: _entry(log.producer) for name, log in logs.items()}),
            "snapshots": make_function(
                {
                    name: make_function({at: _entry(entry) for at, entry in log.snapshots})
                    for name, log in logs.items()
                }
            ),
            "answers": frozenset(record(_ANSWER, answer) for answer in view.answers),
            "client": Fn(
                {
                    "epoch": client.epoch,
                    "next": client.next,
                    "lastAcked": client.last_acked,
                    "pending": tuple(record(_SENT, batch) for batch in client.pending),
                    "values": client.values,
                }
            ),
        }
    )


class KafkaProduceSystem(BridgedSystem):
    """Replicas of a partition and a producer in a JVM, and the network between them."""

    variables = ("leader", "epoch", "log", "hw", "producer", "snapshots", "answers", "client")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "produce_view", _observed)

    def reset(self, initial: Mapping[str, Value]) -> None:
        """Empty logs; the leader is the initial state's."""
        leader = self._argument(initial["leader"])
        self._run("produce_reset", {"brokers": len(self._names), "leader": leader})
