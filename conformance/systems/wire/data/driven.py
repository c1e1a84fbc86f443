"""One partition of a broker along DataPathAtPort.tla's actions, at a port or in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from conformance.kafka.batches import keyed_batch
from conformance.systems.protocol import Observation, step_of
from conformance.systems.wire.data.requests import (
    EARLIEST,
    LATEST,
    NO_ANSWER,
    NO_EPOCH,
    DataRequests,
    Listed,
)
from conformance.systems.wire.port import COORDINATOR_SECONDS, Asked
from conformance.systems.wire.topic import expect
from conformance.systems.wire.transaction.requests import NONE, FetchedRecord
from conformance.tla import Action, Fn, Value

SPECIFICATION = "DataPathAtPort"
"""The root module that says what the actions are."""
SIGN = "Isolations"
"""A constant that its models have, and others have not."""
VARIABLES = ("answer", "visible")
_AGE_MS = 3_600_000
"""So much older than now are clients' records: a marker is younger than each of them."""
_TIME_MS = 1_000
"""Between two of the specification's times."""
_TRANSACTIONAL = 0x10
_CLIENT, _NOBODY = "t", "none"
_UNKNOWN_EPOCH = -2
"""Older than a leader's first epoch; -1 says that the client knows none."""
_WRITTEN_SECONDS = 10.0
_PAUSE_SECONDS = 0.001
_NO_ANSWER: dict[Value, Value] = {
    "request": "none",
    "asked": -1,
    "isolation": "none",
    "epoch": "none",
    "error": NONE,
    "offset": -1,
    "time": -1,
    "leader": -1,
    "records": frozenset(),
}


class WallClock(Protocol):
    """The time by which clients and the broker date records; the module `time` is one."""

    def time(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float, /) -> None:
        """Let them pass."""


def marker_time(batches: Value) -> int:
    """The specification's MarkerTime, of its constant Batches."""
    assert isinstance(batches, frozenset), "TypeOK of the specification"
    times = [each for batch in batches if isinstance(batch, tuple) for each in batch]
    return 1 + max(each for each in times if isinstance(each, int))


class DrivenPartition:
    """A partition that nobody has used. `coordinator` answers requests of the transactional id;
    `elect` makes another leader, and gives the partition's requests at that one."""

    def __init__(
        self,
        requests: DataRequests,
        coordinator: Callable[[str], Asked],
        transactional_id: str,
        latest_time: int,
        elect: Callable[[DataRequests], DataRequests],
        clock: WallClock = time,
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._find_coordinator = coordinator
        self._elect = elect
        self._transactional_id = transactional_id
        self._latest_time = latest_time
        self._began_ms = int(clock.time()) * 1_000 - _AGE_MS  # kio reads whole seconds
        self._epochs = [max(requests.list_offsets(LATEST).leader_epoch, 0)]
        """The broker's epochs, in the specification's order: those in which a leader was met."""
        self._producer: tuple[int, int] | None = None
        self._coordinator: Asked = requests.port
        self._sequence, self._is_open = 0, False
        self._answer: dict[Value, Value] = _NO_ANSWER
        self._steps: Mapping[str, Callable[..., None]] = {
            "Produce": self._produce,
            "ProduceInTransaction": self._produce_in_transaction,
            "EndTransaction": self._end_transaction,
            "DeleteRecords": self._delete_records,
            "Fetch": self._fetch,
            "ListOffsets": self._list_offsets,
            "OffsetForLeaderEpoch": self._offset_for_leader_epoch,
            "ChangeLeader": self._change_leader,
            "TakeAnswer": self._take_answer,
        }
        self._look()

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        step_of(self._steps, action)(*action.args)

    def observe(self) -> Observation:
        """The last answer, and what was to be read after the last step that writes."""
        return Observation({"answer": Fn(self._answer), "visible": self._visible})

    @property
    def producer(self) -> tuple[int, int]:
        """Id and epoch of the transactional producer, asked for at its first use."""
        if self._producer is None:
            self._coordinator = self._find_coordinator(self._transactional_id)
            self._producer = self._requests.of_transactions().await_producer_id(
                self._coordinator, self._transactional_id, COORDINATOR_SECONDS
            )
        return self._producer

    def leave(self) -> None:
        """End what is open."""
        if self._is_open:
            self._end_transaction(False)

    # ---- requests that write ---------------------------------------------------------------

    def _batch(self, times: Sequence[int], producer_id: int = -1, epoch: int = 0) -> bytes:
        step = times[1] - times[0] if len(times) > 1 else 1
        return keyed_batch(
            [(None, b"v")] * len(times),
            first_ms=self._began_ms + times[0] * _TIME_MS,
            step_ms=step * _TIME_MS,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self._sequence,
            attributes=0 if producer_id < 0 else _TRANSACTIONAL,
        )

    def _produce(self, acks: int, times: Sequence[int]) -> None:
        end = self._requests.list_offsets(LATEST).offset
        done = self._requests.produce(self._batch(times), acks)
        if acks == NO_ANSWER:
            self._await_end(end + len(times))
        else:
            self._answered("Produce", done)
        self._look()

    def _produce_in_transaction(self, times: Sequence[int]) -> None:
        producer = self.producer
        if not self._is_open:
            added = self._requests.of_transactions().add_partition(
                self._coordinator, self._transactional_id, producer, self._requests.index
            )
            expect("AddPartitionsToTxn", added)
            self._is_open = True
        done = self._requests.produce(self._batch(times, *producer), -1, self._transactional_id)
        self._sequence += len(times)
        self._answered("Produce", done)
        self._look()

    def _end_transaction(self, commits: bool) -> None:
        end = self._requests.list_offsets(LATEST).offset
        self._clock.sleep(2 * _PAUSE_SECONDS)  # no two markers have one time
        error, _ = self._requests.of_transactions().end(
            self._coordinator, self._transactional_id, self.producer, commits=commits
        )
        expect("EndTxn", error)
        self._is_open = False
        self._await_end(end + 1)
        self._look()

    def _await_end(self, end: int) -> None:
        """What was sent is written by and by; if it is not, the look shows it."""
        until = self._clock.time() + _WRITTEN_SECONDS
        while self._requests.list_offsets(LATEST).offset < end and self._clock.time() < until:
            self._clock.sleep(_PAUSE_SECONDS)

    def _delete_records(self, offset: int) -> None:
        self._answered("DeleteRecords", self._requests.delete_records(offset))
        self._look()

    # ---- leader epochs ---------------------------------------------------------------------

    def _change_leader(self) -> None:
        self._requests = self._elect(self._requests)
        self._epochs.append(self._requests.list_offsets(LATEST).leader_epoch)
        self._look()

    def _epoch(self, name: str) -> int:
        """The broker's number of an epoch that a client knows."""
        *before, current = self._epochs
        old = before[-1] if before else current - 1 if current else _UNKNOWN_EPOCH
        return {"none": NO_EPOCH, "old": old, "current": current, "future": current + 1}[name]

    def _number(self, epoch: int) -> Value:
        """The specification's number of a broker's epoch, if it has one."""
        if epoch == NO_EPOCH:
            return epoch
        return self._epochs.index(epoch) if epoch in self._epochs else f"epoch {epoch}"

    # ---- requests that read ----------------------------------------------------------------

    def _fetch(self, isolation: str, offset: int, epoch: str) -> None:
        done = self._requests.fetch(
            offset, committed=_is_committed(isolation), epoch=self._epoch(epoch)
        )
        self._answer = {
            **_NO_ANSWER,
            "request": "Fetch",
            "asked": offset,
            "isolation": isolation,
            "epoch": epoch,
            "error": done.error,
            "offset": done.fetchable,
            "records": frozenset(record.offset for record in done.kept),
        }

    def _list_offsets(self, isolation: str, target: int, epoch: str) -> None:
        done = self._requests.list_offsets(
            target if target < 0 else self._began_ms + target * _TIME_MS,
            committed=_is_committed(isolation),
            epoch=self._epoch(epoch),
        )
        self._answered("ListOffsets", done, isolation, epoch)
        self._answer = {**self._answer, "time": self._time(done.timestamp)}

    def _offset_for_leader_epoch(self, of: str, epoch: str) -> None:
        done = self._requests.end_of_epoch(self._epoch(of), epoch=self._epoch(epoch))
        self._answered("OffsetForLeaderEpoch", done, "none", epoch)
        asked = len(self._epochs) - 1 + {"old": -1, "current": 0, "future": 1}[of]
        self._answer = {**self._answer, "asked": asked}

    def _answered(
        self, request: str, done: Listed, isolation: str = "none", epoch: str = "none"
    ) -> None:
        self._answer = {
            **_NO_ANSWER,
            "request": request,
            "isolation": isolation,
            "epoch": epoch,
            "error": done.error,
            "offset": done.offset if done.error == NONE else -1,
            "leader": self._number(done.leader_epoch) if done.error == NONE else -1,
        }

    def _take_answer(self) -> None:
        self._answer = _NO_ANSWER

    # ---- what is seen ----------------------------------------------------------------------

    def _look(self) -> None:
        """Ask for all that a reader of everything sees."""
        start = self._requests.list_offsets(EARLIEST).offset
        fetched = self._requests.fetch(start)
        self._visible = Fn(
            {
                "start": start,
                "end": self._requests.list_offsets(LATEST).offset,
                "records": tuple(map(self._record, fetched.records)),
            }
        )

    def _record(self, record: FetchedRecord) -> Value:
        kinds = {None: "data", True: "Committed", False: "Aborted"}
        return Fn(
            {
                "kind": kinds[record.commits],
                "producer": _CLIENT if record.is_transactional else _NOBODY,
                "time": self._time(record.timestamp_ms),
                "base": record.base_offset,
                "epoch": self._number(record.leader_epoch),
            }
        )

    def _time(self, timestamp_ms: int) -> int:
        """The specification's time; a marker is written later than any record says."""
        if timestamp_ms < 0:
            return timestamp_ms
        return min((timestamp_ms - self._began_ms) // _TIME_MS, self._latest_time)


def _is_committed(isolation: str) -> bool:
    return isolation == "read_committed"
