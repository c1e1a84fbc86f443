"""The system under test: replicas of a compacted partition, driven by LogCompaction.tla."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.errors import UserError
from conformance.systems.compaction.replica import (
    DAY_MS,
    NUMBERS,
    CompactedReplica,
    is_of_producer,
)
from conformance.systems.protocol import Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.tla import Action, Fn, Value, make_function
from impl.clock import MockClock
from impl.end_transaction_marker import deserialize
from impl.producer_state.transactions import AbortedTxn
from impl.records import RecordBatch
from impl.types import LogOffsetMetadata

_BEGINNING_MS = 1_700_000_000_000
_NO_OFFSET, _NO_KEY, _NO_PRODUCER = -1, 0, "none"
_NOTHING: Value = ()


class CompactionSystem(RewindingSystem):
    """Replicas on disks of their own; who fetches and who cleans when are the actions."""

    variables = (
        "log",
        "bases",
        "end",
        "hw",
        "abortIndex",
        "lastData",
        "checkpoint",
        "answer",
    )
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._names = tuple(sorted(_strings(constants, "Replicas")))
        self._producer = next(iter(_strings(constants, "Producers")), _NO_PRODUCER)
        self._leader = str(constants["Leader"])
        self._keys = tuple(range(1, len(_members(constants, "Keys")) + 1))
        self._retains_last_batch = constants["KeepsLastBatch"] is True
        self._actions: dict[str, Callable[..., None]] = {
            "AppendRecord": lambda kind, key: self._leading.append(
                key, is_deleted=kind == "tombstone"
            ),
            "AppendInTransaction": lambda _producer, key: self._leading.append_in_transaction(key),
            "AppendMarker": lambda _producer, kind: self._leading.append_marker(
                commits=kind == "Committed"
            ),
            "Roll": lambda name: self._replicas[name].roll(),
            "AdvanceHighWatermark": self._advance,
            "Fetch": lambda name: self._replicas[name].fetch_from(self._leading.log),
            "Clean": lambda name: self._replicas[name].clean(),
            "DayPasses": self._day_passes,
            "Truncate": self._truncate,
            "Load": self._load,
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty logs."""
        self._rewinder.forget()
        self._clock = MockClock(_BEGINNING_MS)
        self._replicas = {
            name: CompactedReplica(self._clock, retains_last_batch=self._retains_last_batch)
            for name in self._names
        }
        self._answer = _NOTHING

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        step = step_of(self._actions, action)
        self._answer = _NOTHING
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects and the files have them now."""
        show: dict[str, Callable[[CompactedReplica], Value]] = {
            "log": lambda replica: tuple(map(self._batch, replica.log.batches())),
            "bases": _bases,
            "end": lambda replica: replica.log.log_end_offset,
            "hw": lambda replica: replica.log.high_watermark,
            "abortIndex": lambda replica: tuple(map(self._entry, replica.log.all_aborted_txns)),
            "lastData": lambda replica: _or_none(replica.last_data_offset),
            "checkpoint": lambda replica: _or_none(replica.checkpoint),
        }
        values: dict[str, Value] = {
            name: make_function({b: value(replica) for b, replica in self._replicas.items()})
            for name, value in show.items()
        }
        return Observation(values | {"answer": self._answer})

    # ---- steps -----------------------------------------------------------------------------

    @property
    def _leading(self) -> CompactedReplica:
        return self._replicas[self._leader]

    def _advance(self, offset: int) -> None:
        self._leading.log.maybe_increment_high_watermark(LogOffsetMetadata(offset))

    def _day_passes(self) -> None:
        self._clock.sleep(DAY_MS)
        for replica in self._replicas.values():
            replica.log.remove_expired_producers()

    def _truncate(self, name: str, offset: int) -> None:
        replica = self._replicas[name]
        replica.logs.truncate_to(replica.log, offset)

    def _load(self, name: str) -> None:
        offsets = self._replicas[name].load()
        values = make_function({key: offsets.get(key, _NO_OFFSET) for key in self._keys})
        self._answer = Fn({"of": name, "found": values})

    # ---- what is seen ------------------------------------------------------------------------

    def _batch(self, batch: RecordBatch) -> Value:
        key = batch.records[0].key if batch.records else None
        return Fn(
            {
                "offset": batch.base_offset,
                "kind": _kind(batch),
                "key": NUMBERS.get(key or b"", _NO_KEY),
                "producer": self._producer if is_of_producer(batch) else _NO_PRODUCER,
                "horizon": self._horizon(batch),
            }
        )

    def _horizon(self, batch: RecordBatch) -> str:
        horizon = batch.delete_horizon_ms
        if horizon is None:
            return "none"
        return "due" if horizon <= self._clock.milliseconds() else "set"

    def _entry(self, txn: AbortedTxn) -> Value:
        return Fn(
            {
                "producer": self._producer,
                "first": txn.first_offset,
                "last": txn.last_offset,
                "stable": txn.last_stable_offset,
            }
        )


def _kind(batch: RecordBatch) -> str:
    if batch.is_control_batch:
        if not batch.records:
            return "EmptyMarker"
        return "Committed" if deserialize(batch).is_commit else "Aborted"
    if not batch.records:
        return "Empty"
    return "tombstone" if batch.records[0].value is None else "value"


def _bases(replica: CompactedReplica) -> Value:
    log = replica.log
    return tuple(segment.base_offset for segment in log.log_segments(0, log.log_end_offset + 1))


def _or_none(offset: int | None) -> int:
    return _NO_OFFSET if offset is None else offset


def _members(constants: Mapping[str, Value], name: str) -> frozenset[Value]:
    value = constants[name]
    if not isinstance(value, frozenset):
        raise UserError(f"{name} must be a set.")
    return value


def _strings(constants: Mapping[str, Value], name: str) -> frozenset[str]:
    return frozenset(map(str, _members(constants, name)))


def create(constants: Mapping[str, Value]) -> CompactionSystem:
    """The system for a model's constants."""
    return CompactionSystem(constants)
