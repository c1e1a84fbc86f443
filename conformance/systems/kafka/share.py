"""The system under test: Kafka's own SharePartition, driven by SharePartition.tla's actions.

The share partition, its batches in flight and its locks are Kafka's. The persister's answers, the
timer and the log are played in the bridge (java/share).
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

_NO_MEMBER = "none"
_STEPS: BridgeSteps = MappingProxyType(
    {
        "Acquire": ("share_acquire", ("member", "size")),
        "Acknowledge": ("share_acknowledge", ("member", "first", "last", "type")),
        "EndSession": ("share_end_session", ("member",)),
        "CompleteWrite": ("share_complete_write", ("write", "ok")),
        "ExpireLock": ("share_expire_lock", ("offset",)),
        "MoveLogStart": ("share_move_log_start", ("to",)),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

_NOT_CACHED = ("NONE", 0, "", "", "NONE")


class _BridgeShare(msgspec.Struct, frozen=True, array_like=True):
    """A share partition as the bridge writes it: SharePartitions.java."""

    start: int
    end: int
    flag: bool
    records: tuple[tuple[int, str, int, str, str, str], ...]
    """Of each cached record: offset, state, delivery count, member, owner before, timer."""
    writes: tuple[tuple[str, tuple[tuple[int, str, int], ...]], ...]
    log_start: int
    answer: str


_as_view = msgspec.json.Decoder(_BridgeShare).decode


@cache
def _observed(count: int, names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
    cached = {record[0]: record[1:] for record in view.records}
    return Observation(
        {
            "rec": make_function({o: _record(names, cached.get(o)) for o in range(count)}),
            "start": view.start,
            "end": view.end,
            "flag": view.flag,
            "writes": tuple(
                Fn({"kind": kind, "entries": frozenset(map(_entry, entries))})
                for kind, entries in view.writes
            ),
            "logStart": view.log_start,
            "answer": view.answer,
        }
    )


def _record(names: tuple[str, ...], record: tuple[str, int, str, str, str] | None) -> Value:
    state, deliveries, member, owner, timer = record or _NOT_CACHED
    return Fn(
        {
            "state": state,
            "count": deliveries,
            "member": _member(names, member),
            "owner": _member(names, owner),
            "timer": timer,
        }
    )


def _member(names: tuple[str, ...], identity: str) -> str:
    return names[int(identity) - 1] if identity else _NO_MEMBER


def _entry(entry: tuple[int, str, int]) -> Value:
    return Fn(dict(zip(("offset", "state", "count"), entry, strict=True)))


class KafkaShareSystem(BridgedSystem):
    """A partition of a share group in a JVM; its members are known by their numbers."""

    numbered = "Members"
    variables = ("rec", "start", "end", "flag", "writes", "logStart", "answer")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        records = constants["Records"]
        assert isinstance(records, int), "a number in every model"
        super().__init__(
            channel,
            constants,
            _STEPS,
            "share_view",
            lambda names, text: _observed(records, names, text),
        )
        self._settings = {
            "records": records,
            "max_in_flight": constants["MaxInFlight"],
            "delivery_limit": constants["DeliveryLimit"],
        }

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A share partition that has begun at the start of the log."""
        self._run("share_reset", self._settings)
