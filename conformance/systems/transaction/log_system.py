"""The system under test: one partition that transactions write, and a read_committed consumer.

Driven by TransactionalLog.tla. Records are replicated, deleted and fetched when an action says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    WholeSections,
    interrupted,
)
from conformance.systems.transaction.replica import follower_of, load_replica
from conformance.tla import Action, Fn, Value, make_function
from impl.consumer.completed_fetch import CompletedFetch
from impl.end_transaction_marker import EndTransactionMarker, deserialize
from impl.errors import OffsetOutOfRangeException
from impl.log import Log
from impl.log_types import FetchIsolation
from impl.producer_state.producer_append_info import AppendOrigin
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.records import MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.types import LogOffsetMetadata

UNVERIFIED = ProducerStateManagerConfig(transaction_verification_enabled=False)
"""Who may begin a transaction is the business of Transactions.tla."""
_NO_PRODUCER = "none"
_NO_OFFSET = -1
_LEADER_EPOCH = 0
_EPOCH = 0
_COORDINATOR_EPOCH = 0


_CONSUMER = frozenset({"Fetch", "ResetPosition"})
_APPENDS = frozenset({"AppendPlain", "AppendData", "AppendMarker"})
_REQUESTS = _APPENDS | {"AdvanceHighWatermark", "DeleteRecords"}
"""Of producers and coordinators, of followers that fetch, of administrators: each has a thread of
its own. All requests of the consumer have one."""


class TransactionalLogSystem(WholeSections, RewindingSystem):
    """A leader's log, and the position of a consumer that reads it in pieces."""

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
    repeatable = True
    _now = 0
    """The timestamp of markers, in milliseconds."""

    def __init__(self, constants: Mapping[str, Value]) -> None:
        producers = constants["Producers"]
        if not isinstance(producers, frozenset):
            raise UserError("Producers must be a set.")
        self._ids = {str(name): number for number, name in enumerate(sorted(map(str, producers)))}
        self._names = {-1: _NO_PRODUCER} | {number: name for name, number in self._ids.items()}
        self._actions: dict[str, Callable[..., None]] = {
            "AppendPlain": self._append_plain,
            "AppendData": self._append_data,
            "AppendMarker": self._append_marker,
            "AdvanceHighWatermark": self._advance,
            "DeleteRecords": self._delete,
            "ElectFollower": self._elect,
            "Fetch": self._fetch,
            "ResetPosition": self._reset_position,
        }
        self._threads: StartedThreads | InterruptibleThreads = StartedThreads()
        self._interruptible = False
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, and a consumer at its start."""
        self._rewinder.forget()
        if self._interruptible:
            self._threads = InterruptibleThreads()
        self._log = self._empty_log()
        self._position = 0
        self._delivered: frozenset[int] = frozenset()

    def _empty_log(self) -> Log:
        return load_replica(UNVERIFIED, concurrency=self._threads)

    def apply(self, action: Action) -> None:
        """Let a producer, the partition or the consumer take one step."""
        step = step_of(self._actions, action)
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        state = self._log.producer_state_manager
        ongoing: dict[Value, Value] = dict.fromkeys(self._ids, _NO_OFFSET)
        ongoing |= {self._names[txn.producer_id]: txn.first_offset for txn in state.ongoing_txns}
        return Observation(
            {
                "log": tuple(map(self._record, self._log.batches())),
                "highWatermark": self._log.high_watermark,
                "logStart": self._log.log_start_offset,
                "ongoing": make_function(ongoing),
                "unreplicated": frozenset(
                    Fn({"first": txn.first_offset, "last": txn.last_offset or _NO_OFFSET})
                    for txn in state.unreplicated_txns
                ),
                "abortIndex": tuple(
                    Fn(
                        {
                            "producer": self._names[aborted.producer_id],
                            "first": aborted.first_offset,
                            "last": aborted.last_offset,
                            "stable": aborted.last_stable_offset,
                        }
                    )
                    for aborted in self._log.all_aborted_txns
                ),
                "position": self._position,
                "delivered": self._delivered,
            }
        )

    def _record(self, batch: RecordBatch) -> Value:
        return Fn({"kind": kind_of(batch), "producer": self._names[batch.producer.producer_id]})

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on the log has locks at which steps can be stopped."""
        self._interruptible = True
        return True

    @property
    def unconditional(self) -> frozenset[str]:
        """A model bounds the log's length."""
        return _APPENDS

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of the leader take these."""
        names = {running.name, between.name}
        return names <= _REQUESTS | _CONSUMER and not names <= _CONSUMER

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of the leader stand still while another takes its action."""
        return interrupted(self._threads, self.apply, running, point, between)

    # ---- the partition ---------------------------------------------------------------------

    def _append_plain(self) -> None:
        self._log.append_as_leader(MemoryRecords.with_records(Record(b"plain")), _LEADER_EPOCH)

    def _append_data(self, name: str) -> None:
        log = self._log
        producer = ProducerInfo(self._ids[name], _EPOCH, self._next_sequence(log, name))
        batch = RecordBatch.create((Record(b"data"),), producer=producer, is_transactional=True)
        log.append_as_leader(MemoryRecords((batch,)), _LEADER_EPOCH)

    def _next_sequence(self, log: Log, name: str) -> int:
        """What an election has cut off is sent again."""
        own = (b for b in log.batches() if b.producer.producer_id == self._ids[name])
        return sum(not batch.is_control_batch for batch in own)

    def _append_marker(self, name: str, kind: str) -> None:
        marker = EndTransactionMarker(kind == "Committed", _COORDINATOR_EPOCH)
        records = marker.memory_records(self._now, self._ids[name], _EPOCH)
        self._log.append_as_leader(records, _LEADER_EPOCH, origin=AppendOrigin.COORDINATOR)

    def _advance(self, offset: int) -> None:
        self._log.maybe_increment_high_watermark(LogOffsetMetadata(offset))

    def _delete(self, offset: int) -> None:
        self._log.maybe_increment_log_start_offset(offset)

    def _elect(self, end: int, watermark: int) -> None:
        """A replica leads that has appended as a follower; or, where no watermark lags, one that
        has had all and truncates."""
        if watermark == self._log.high_watermark:
            self._log.truncate_to(end)
        else:
            self._log = follower_of(self._log, end, UNVERIFIED, concurrency=self._threads)
        self._log.update_high_watermark(watermark)

    # ---- the consumer ----------------------------------------------------------------------

    def _fetch(self, size: int) -> None:
        following = [b for b in self._log.batches() if b.base_offset >= self._position]
        max_bytes = sum(batch.size_in_bytes for batch in following[:size])
        info = self._log.read(self._position, max_bytes, FetchIsolation.TXN_COMMITTED)
        if not info.records.batches():
            raise ActionRefused(f"nothing is readable at {self._position}")
        fetch = CompletedFetch(self._position, info.records.batches(), info.aborted_transactions)
        self._delivered |= {offset + 1 for offset, _ in fetch.fetch_records()}
        self._position = fetch.next_fetch_offset

    def _reset_position(self) -> None:
        try:
            self._log.read(self._position, 1, FetchIsolation.TXN_COMMITTED)
        except OffsetOutOfRangeException:
            self._position = self._log.log_start_offset
        else:
            raise ActionRefused(f"{self._position} is in range")


def kind_of(batch: RecordBatch) -> str:
    """A record's kind: data, or how its marker ends a transaction."""
    if not batch.is_control_batch:
        return "data"
    return "Committed" if deserialize(batch).is_commit else "Aborted"
