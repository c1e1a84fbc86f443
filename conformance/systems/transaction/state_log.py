"""The partition of __transaction_state, and appends to it whose call-backs wait for an action."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused
from conformance.systems.transaction.epochs import ProducerEpochs
from conformance.systems.transaction.parts import FORGOTTEN, InFlightAppend, tombstones_in
from conformance.systems.transaction.replica import load_replica
from impl.errors import Errors
from impl.log import Log
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.records import MemoryRecords, Record
from impl.transaction.transaction_log import TOPIC, read_transaction_record
from impl.transaction.transaction_metadata import TxnTransitMetadata
from impl.transaction.transaction_state_manager import AppendCallback
from impl.types import LogOffsetMetadata


@dataclass(slots=True, eq=False)
class PendingAppend:
    """An append that its call-back has yet to come for."""

    broker: str
    tenure: int
    offset: int
    record: TxnTransitMetadata
    callback: AppendCallback
    is_late: bool = False
    """Whether the call-back has come in a later tenure."""


class StateLog:
    """The leader's log: an election cuts it to what the new leader has."""

    def __init__(self, leader: str, epochs: ProducerEpochs) -> None:
        self._epochs = epochs
        self.log: Log = load_replica(ProducerStateManagerConfig(), topic=TOPIC)
        self.leader, self.tenure = leader, 1
        self.appends: list[PendingAppend] = []
        epochs.follow(lambda: tombstones_in(self.records))

    @property
    def records(self) -> Sequence[TxnTransitMetadata]:
        """See `StatePartition.records`."""
        return [self.value(batch.records[0]) for batch in self.log.batches()]

    @property
    def high_watermark(self) -> int:
        """See `StatePartition.high_watermark`."""
        return self.log.high_watermark

    @property
    def in_flight(self) -> Sequence[InFlightAppend]:
        """See `StatePartition.in_flight`."""
        return [InFlightAppend(a.broker, a.tenure, a.offset, a.record) for a in self.appends]

    def value(self, record: Record) -> TxnTransitMetadata:
        """What a record says of the id."""
        return self._epochs.numbered(_value_of(record))

    def replicate(self) -> None:
        """See `StatePartition.replicate`."""
        self._replicate(self.log.log_end_offset)

    def _replicate(self, end: int) -> None:
        self.log.maybe_increment_high_watermark(LogOffsetMetadata(end))

    def elect(self, broker: str, end: int) -> None:
        """See `StatePartition.elect`."""
        self.log.truncate_to(end)
        self.leader, self.tenure = broker, self.tenure + 1

    def acknowledge(self, broker: str, tenure: int) -> None:
        """See `StatePartition.acknowledge`."""
        append = self._take(broker, tenure)
        self._replicate(append.offset + 1)
        append.callback(Errors.NONE)

    def fail(self, broker: str) -> None:
        """See `StatePartition.fail`."""
        self._take(broker, self.tenure).callback(Errors.REQUEST_TIMED_OUT)

    def _take(self, broker: str, tenure: int) -> PendingAppend:
        for append in self.appends:
            if (append.broker, append.tenure) == (broker, tenure):
                self.appends.remove(append)
                return append
        raise ActionRefused(f"{broker} appends nothing in tenure {tenure}")

    def call_back_late(self, broker: str) -> None:
        """What the broker has appended in earlier tenures is answered now, but for tombstones:
        they are acknowledged by an action."""
        for append in self.appends:
            is_tombstone = append.record is FORGOTTEN
            if (
                not is_tombstone
                and append.broker == broker
                and append.tenure < self.tenure
                and not append.is_late
            ):
                append.is_late = True
                append.callback(Errors.NONE)


@functools.lru_cache(maxsize=10_000)
def _value_of(record: Record) -> TxnTransitMetadata:
    """A state of the log is looked at again and again: no record is read twice."""
    known = read_transaction_record(record)
    assert known is not None, "the coordinator writes versions that it knows"
    return known.value or FORGOTTEN


class BrokerStateLog:
    """The partition as one broker sees it (TransactionStateLog).

    `tenure`: which election its coordinator has heard of. Between two elections of one broker
    another one has led: an append that was under way then has failed.
    """

    def __init__(self, partition: StateLog, broker: str) -> None:
        self._partition = partition
        self._broker = broker
        self.tenure = 0

    def append_records(
        self, _partition: int, records: MemoryRecords, _timeout_ms: int, callback: AppendCallback
    ) -> None:
        """See `TransactionStateLog.append_records`."""
        state = self._partition
        if (state.leader, state.tenure) != (self._broker, self.tenure):
            callback(Errors.NOT_LEADER_OR_FOLLOWER)
            return
        info = state.log.append_as_leader(records, state.tenure)
        (batch,) = records.batches()
        record = state.value(batch.records[0])
        state.appends.append(
            PendingAppend(self._broker, state.tenure, info.first_offset, record, callback)
        )

    def log(self, _partition: int) -> Log:
        """See `TransactionStateLog.log`."""
        return self._partition.log
