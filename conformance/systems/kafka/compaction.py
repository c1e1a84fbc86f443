"""The system under test: Kafka's own logs and cleaners, driven by LogCompaction.tla's actions.

UnifiedLog, LogCleanerManager and Cleaner are Kafka's (java/compaction). Who cleans and who fetches
when are the actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from types import MappingProxyType

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value, make_function

_STEPS: BridgeSteps = MappingProxyType(
    {
        "AppendRecord": ("compaction_append", ("kind", "key")),
        "AppendInTransaction": ("compaction_append_in_transaction", ("producer", "key")),
        "AppendMarker": ("compaction_append_marker", ("producer", "kind")),
        "Roll": ("compaction_roll", ("replica",)),
        "AdvanceHighWatermark": ("compaction_advance", ("offset",)),
        "Fetch": ("compaction_fetch", ("replica",)),
        "Clean": ("compaction_clean", ("replica",)),
        "DayPasses": ("compaction_day_passes", ()),
    }
)
_NO_PRODUCER = "none"


class _BridgeReplica(msgspec.Struct, frozen=True, array_like=True):
    """A replica as the bridge writes it: CompactedLogs.java."""

    batches: tuple[tuple[int, str, int, bool, str], ...]
    bases: tuple[int, ...]
    end: int
    high_watermark: int
    abort_index: tuple[tuple[int, int, int, int], ...]
    last_data: int
    checkpoint: int


_as_view = msgspec.json.Decoder(tuple[_BridgeReplica, ...]).decode


@cache
def _observed(producer: str, names: tuple[str, ...], text: bytes) -> Observation:
    replicas = dict(zip(names, _as_view(text), strict=True))

    def batch(shown: tuple[int, str, int, bool, str]) -> Value:
        offset, kind, key, is_of_producer, horizon = shown
        return Fn(
            {
                "offset": offset,
                "kind": kind,
                "key": key,
                "producer": producer if is_of_producer else _NO_PRODUCER,
                "horizon": horizon,
            }
        )

    def entry(shown: tuple[int, int, int, int]) -> Value:
        _, first, last, stable = shown
        return Fn({"producer": producer, "first": first, "last": last, "stable": stable})

    def of(values: Mapping[Value, Value]) -> Value:
        return make_function(dict(values))

    return Observation(
        {
            "log": of({b: tuple(map(batch, each.batches)) for b, each in replicas.items()}),
            "bases": of({b: each.bases for b, each in replicas.items()}),
            "end": of({b: each.end for b, each in replicas.items()}),
            "hw": of({b: each.high_watermark for b, each in replicas.items()}),
            "abortIndex": of(
                {b: tuple(map(entry, each.abort_index)) for b, each in replicas.items()}
            ),
            "lastData": of({b: each.last_data for b, each in replicas.items()}),
            "checkpoint": of({b: each.checkpoint for b, each in replicas.items()}),
        }
    )


class KafkaCompactionSystem(BridgedSystem):
    """Replicas of a compacted partition in a JVM; replicas are known by their numbers."""

    numbered = "Replicas"
    variables = ("log", "bases", "end", "hw", "abortIndex", "lastData", "checkpoint")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        producers = constants["Producers"]
        assert isinstance(producers, frozenset), "a set in every model"
        producer = str(next(iter(producers), _NO_PRODUCER))
        super().__init__(
            channel, constants, _STEPS, "compaction_view", partial(_observed, producer)
        )
        self._leader = constants["Leader"]

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty logs."""
        settings = {"replicas": len(self._names), "leader": self._argument(self._leader)}
        self._run("compaction_reset", settings)


def not_driven(constants: Mapping[str, Value]) -> str:
    """What of the specification the bridge has no class for; empty: nothing."""
    if constants["Truncations"] != 0:
        return "LogManager, which cuts the checkpoint of the cleaner, is not driven"
    if constants["Loads"] is True:
        return "a coordinator's load of a log is driven by `kconform load`"
    return ""
