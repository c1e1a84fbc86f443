"""The system under test: Kafka's classic consumer, driven by ConsumerPositions.tla's actions.

Positions, requests to leaders, the buffer and what is handed out are Kafka's. The application, the
network, the leaders and the group's coordinator are played (java/consumer).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps, record
from conformance.systems.kafka.consumer_commits import BACKOFF_MS
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value

_STEPS: BridgeSteps = MappingProxyType(
    {
        "Poll": ("positions_poll", ()),
        "Assign": ("positions_assign", ("partitions",)),
        "Seek": ("positions_seek", ("partition", "target")),
        "SeekToEdge": ("positions_seek_to_edge", ("partition", "strategy")),
        "Pause": ("positions_pause", ("partition",)),
        "Resume": ("positions_resume", ("partition",)),
        "PassBackoff": ("positions_pass_backoff", ()),
        "Answer": ("positions_answer", ("place",)),
        "Fail": ("positions_fail", ("place", "error")),
        "AnswerLookup": ("positions_answer_lookup", ("succeeds",)),
        "UpdateMetadata": ("positions_update_metadata", ("age",)),
        "Elect": ("positions_elect", ("partition", "kept")),
        "AppendRecord": ("positions_append_record", ("partition",)),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

_ERRORS = {
    "LogTruncationException": "LOG_TRUNCATION",
    "NoOffsetForPartitionException": "NO_OFFSET",
    "OffsetOutOfRangeException": "OFFSET_OUT_OF_RANGE",
}
"""What has no error code of its own, by its class."""


class _Tps(NamedTuple):
    """A TopicPartitionState."""

    state: str
    offset: int
    epoch: int
    leader: int
    known: bool
    strategy: str
    retry_ms: int
    paused: bool


class _Asked(NamedTuple):
    """A request to a leader."""

    kind: str
    partition: int
    offset: int
    epoch: int
    leader: int
    strategy: str


class _Fetched(NamedTuple):
    """A CompletedFetch."""

    partition: int
    offset: int
    records: tuple[int, ...]
    error: str
    ready: bool


class _BridgePositionsView(msgspec.Struct, frozen=True, array_like=True):
    """A consumer as the bridge writes it: ConsumerPositionsView.java."""

    tps: tuple[_Tps, ...]
    metadata: tuple[tuple[int, int], ...]
    outdated: bool
    refresh: bool
    lookup: tuple[frozenset[int], str]
    sent: tuple[_Asked, ...]
    buffer: tuple[_Fetched, ...]
    reset_failure: str
    validation_failure: str
    consumed: tuple[int, ...]
    records: tuple[tuple[int, int], ...]
    error: str


_as_view = msgspec.json.Decoder(_BridgePositionsView).decode


def _retry(ms: int) -> str:
    if ms <= 0:
        return "now"
    return "backoff" if ms <= BACKOFF_MS else "sent"


def _tp(tp: _Tps) -> Value:
    names = ("state", "offset", "epoch", "leader", "known", "strategy", "retry", "paused")
    position = (tp.state, tp.offset, tp.epoch, tp.leader, tp.known, tp.strategy)
    return record(names, (*position, _retry(tp.retry_ms), tp.paused))


def _error(name: str) -> str:
    return _ERRORS.get(name, name)


def _observed(_names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
    asked, answer = view.lookup
    records = tuple(Fn({"partition": p, "offset": offset}) for p, offset in view.records)
    return Observation(
        {
            "tps": tuple(map(_tp, view.tps)),
            "metadata": tuple(Fn({"epoch": epoch, "seen": seen}) for epoch, seen in view.metadata),
            "outdated": view.outdated,
            "refresh": view.refresh,
            "lookup": Fn({"asked": asked, "answer": answer}),
            "sent": tuple(record(each._fields, each) for each in view.sent),
            "buffer": tuple(record(each._fields, each) for each in view.buffer),
            "failure": Fn(
                {
                    "reset": _error(view.reset_failure),
                    "validation": _error(view.validation_failure),
                }
            ),
            "consumed": view.consumed,
            "result": Fn({"records": records, "error": _error(view.error)}),
        }
    )


def plain(value: Value) -> object:
    """A value as JSON has it."""
    if isinstance(value, Fn):
        return {str(name): plain(value[name]) for name in value}
    if isinstance(value, frozenset | tuple):
        return [plain(each) for each in value]
    return value


class KafkaPositionsSystem(BridgedSystem):
    """A consumer in a JVM."""

    numbered = ""
    variables = (
        *("tps", "metadata", "outdated", "refresh", "lookup", "sent"),
        *("buffer", "failure", "consumed", "result"),
    )

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "positions_view", _observed)
        self._settings = {
            "group_assigns": constants["GroupAssigns"],
            "log": plain(constants["InitialLog"]),
            "epoch": constants["InitialEpoch"],
            "committed": plain(constants["Committed"]),
            "policy": constants["Policy"],
            "max_fetch": constants["MaxFetch"],
            "max_poll": constants["MaxPoll"],
        }

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A consumer that was just constructed. There is one initial state."""
        self._run("positions_reset", self._settings)

    def _argument(self, value: Value) -> object:
        return plain(value)
