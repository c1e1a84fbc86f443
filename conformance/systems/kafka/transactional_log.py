"""The system under test: Kafka's own log and consumer, driven by TransactionalLog.tla's actions.

UnifiedLog, its ProducerStateManager and TransactionIndex and the Java consumer's CompletedFetch are
Kafka's (java/transactions). Producers are numbered from 0 in the order of their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value, make_function

_STEPS: BridgeSteps = MappingProxyType(
    {
        "AppendPlain": ("log_append_plain", ()),
        "AppendData": ("log_append_data", ("producer",)),
        "AppendMarker": ("log_append_marker", ("producer", "kind")),
        "AdvanceHighWatermark": ("log_advance", ("offset",)),
        "DeleteRecords": ("log_delete", ("offset",)),
        "ElectFollower": ("log_elect", ("end", "watermark")),
        "Fetch": ("log_fetch", ("size",)),
        "ResetPosition": ("log_reset_position", ()),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

_STORED_STEPS: BridgeSteps = MappingProxyType(
    {
        "Produce": ("log_append_data", ("producer",)),
        "EndTransaction": ("log_append_marker", ("producer", "kind")),
        "Replicate": ("log_advance", ("offset",)),
        "Roll": ("log_roll", ()),
        "Truncate": ("log_truncate", ("end",)),
        "Stop": ("log_stop", ("watermark",)),
        "Kill": ("log_kill", ("watermark",)),
        "KillAmidAppend": ("log_kill_amid_append", ("producer", "kind", "watermark")),
        "KillAmidTruncation": ("log_kill_amid_truncation", ("target", "end", "watermark")),
    }
)
"""The same of TransactionalLogRestarts.tla."""
_EXPIRY_STEPS: BridgeSteps = MappingProxyType(
    {
        **{name: _STORED_STEPS[name] for name in ("Produce", "EndTransaction", "Replicate")},
        "Truncate": ("log_truncate", ("end",)),
        "ExpireProducers": ("log_expire", ()),
        "Restart": ("log_stop", ("watermark",)),
        "Read": ("log_fetch", ("size",)),
    }
)
"""The same of TransactionalLogExpiry.tla."""

_NO_PRODUCER = "none"
_NO_OFFSET = -1

_Transaction = tuple[int, int, int]
"""Producer, first and last offset."""


class _BridgeTransactionalLog(msgspec.Struct, frozen=True, array_like=True):
    """All of it: TransactionalLogs.java."""

    records: tuple[tuple[str, int], ...]
    high_watermark: int
    log_start: int
    ongoing: tuple[_Transaction, ...]
    unreplicated: tuple[_Transaction, ...]
    abort_index: tuple[tuple[int, int, int, int], ...]
    position: int
    delivered: frozenset[int]


_as_view = msgspec.json.Decoder(_BridgeTransactionalLog).decode


class _BridgeFiles(msgspec.Struct, frozen=True, array_like=True):
    """What lies on the disk: StoredLog.java. A snapshot has producers and what is open of them."""

    segments: tuple[int, ...]
    snapshots: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


_as_stored_view = msgspec.json.Decoder(tuple[_BridgeTransactionalLog, _BridgeFiles]).decode


@cache
def _observed(names: tuple[str, ...], text: bytes) -> Observation:
    return _observation(names, _as_view(text))


@cache
def _stored(names: tuple[str, ...], text: bytes) -> Observation:
    view, files = _as_stored_view(text)
    snapshots: dict[Value, Value] = {at: _open_of(names, known) for at, known in files.snapshots}
    return Observation(
        {
            **_observation(names, view),
            "segments": files.segments,
            "snapshots": make_function(snapshots),
        }
    )


_as_expiry_view = msgspec.json.Decoder(tuple[_BridgeTransactionalLog, tuple[int, ...]]).decode


@cache
def _expiring(names: tuple[str, ...], text: bytes) -> Observation:
    view, producers = _as_expiry_view(text)
    known = frozenset(names[number - 1] for number in producers)
    return Observation({**_observation(names, view), "known": known})


def _open_of(names: tuple[str, ...], known: tuple[tuple[int, int], ...]) -> Value:
    """By producer, where its open transaction begins."""
    first = dict(known)
    offsets: dict[Value, Value] = {
        name: first.get(number, _NO_OFFSET) for number, name in enumerate(names, 1)
    }
    return make_function(offsets)


def _observation(names: tuple[str, ...], view: _BridgeTransactionalLog) -> Observation:
    of_number = dict(enumerate(names, 1))
    ongoing: dict[Value, Value] = dict.fromkeys(names, _NO_OFFSET)
    ongoing |= {of_number[producer]: first for producer, first, _ in view.ongoing}
    return Observation(
        {
            "log": tuple(
                Fn({"kind": kind, "producer": of_number.get(producer, _NO_PRODUCER)})
                for kind, producer in view.records
            ),
            "highWatermark": view.high_watermark,
            "logStart": view.log_start,
            "ongoing": make_function(ongoing),
            "unreplicated": frozenset(
                Fn({"first": first, "last": last}) for _, first, last in view.unreplicated
            ),
            "abortIndex": tuple(
                Fn(
                    {
                        "producer": of_number[producer],
                        "first": first,
                        "last": last,
                        "stable": stable,
                    }
                )
                for producer, first, last, stable in view.abort_index
            ),
            "position": view.position,
            "delivered": view.delivered,
        }
    )


class KafkaTransactionalLogSystem(BridgedSystem):
    """A leader's log in a JVM, and the position of a consumer that reads it in pieces."""

    numbered = "Producers"
    variables: tuple[str, ...] = (
        "log",
        "highWatermark",
        "logStart",
        "ongoing",
        "unreplicated",
        "abortIndex",
        "position",
        "delivered",
    )

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "log_view", _observed)

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, and a consumer at its start."""
        self._run("log_reset", {})


class KafkaStoredLogSystem(KafkaTransactionalLogSystem):
    """The log in a JVM whose process stops or dies; the JVM goes on and loads it again."""

    variables = (*KafkaTransactionalLogSystem.variables, "segments", "snapshots")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        BridgedSystem.__init__(self, channel, constants, _STORED_STEPS, "log_stored_view", _stored)


class KafkaExpiringLogSystem(KafkaTransactionalLogSystem):
    """The log in a JVM that forgets producers which were silent for too long."""

    variables = (*KafkaTransactionalLogSystem.variables, "known")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        BridgedSystem.__init__(
            self, channel, constants, _EXPIRY_STEPS, "log_expiry_view", _expiring
        )
