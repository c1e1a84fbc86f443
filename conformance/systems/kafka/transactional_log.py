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


@cache
def _observed(names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
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
    variables = (
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
