"""What a port shows of one transactional id and its partitions, as TransactionsAtPort.tla's values.

The specification numbers transactions, and a record tells whose request it comes from. A port shows
neither: records carry the number in their value, and who drives notes the rest (`RecordOrigin`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.wire.port import Port
from conformance.systems.wire.transaction.requests import (
    DescribedProducer,
    DescribedTransaction,
    FetchedRecord,
    ReadPartition,
    TransactionRequests,
    described_producers,
    described_transaction,
    expect_none,
    fetched_offset,
    listed_offsets,
    offsets_partition,
    read_partitions,
)
from conformance.tla import Fn, Value, make_function

_PRODUCER = "t"
_IN_CONFLICT = -1
"""Stands for what two requests show differently: no state is so."""
_POSITIONS = 100
"""A position is the number of a transaction so many times, and a sequence."""
_FIRST_TENURE = 1
_UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
_NO_ENTRY = DescribedProducer(-1, -1, -1, -1)


@dataclass(frozen=True, slots=True)
class DrivenId:
    """A transactional id with its producer id, its coordinator, and the group of its offsets."""

    name: str
    producer_id: int
    coordinator: Port
    group_id: str


class BrokerPartition(NamedTuple):
    """A partition of the broker."""

    topic: str
    number: int


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """What a record of the coordinator's log has besides what is described: the transaction, the
    instance that asked for an epoch, the transaction whose EndTxn was handled."""

    txn: int = 0
    client: str = "none"
    request: int = 0


@dataclass(frozen=True, slots=True)
class _TransactionLook:
    transaction: DescribedTransaction | None
    producers: Mapping[int, DescribedProducer] | None
    uncommitted: Mapping[int, ReadPartition]
    committed: Mapping[int, ReadPartition]
    ends: Mapping[int, int]
    stable: Mapping[int, int]
    position: tuple[str, int]
    stable_position: tuple[str, int]


class Look:
    """Of one test. What was seen is kept until it is forgotten."""

    def __init__(
        self,
        requests: TransactionRequests,
        driven: DrivenId,
        places: Mapping[str, BrokerPartition],
        offsets: Sequence[str],
    ) -> None:
        self._requests = requests
        self._id, self._producer_id = driven.name, driven.producer_id
        self._places = dict(places)
        self._offsets = offsets
        self._group = driven.group_id
        ends, _ = self.bounds(requests)
        self._bases = [ends[index] for index in range(requests.count)]
        self._marked: dict[str, list[int]] = {name: [] for name in (*places, *offsets)}
        self._seen: _TransactionLook | None = None
        self._first_coordinator_epoch: int | None = None
        self.state, self.epoch = "Empty", 0
        """Of the transaction, as it was last seen."""

    @staticmethod
    def bounds(requests: TransactionRequests) -> tuple[dict[int, int], dict[int, int]]:
        """High watermarks and last stable offsets, by partition."""
        ends, stable = requests.port.ask_all(
            [requests.list_offsets(committed=False), requests.list_offsets(committed=True)]
        )
        return listed_offsets(ends), listed_offsets(stable)

    @classmethod
    def is_stable(cls, requests: TransactionRequests) -> bool:
        """Whether no partition has an open transaction."""
        ends, stable = cls.bounds(requests)
        return ends == stable

    @staticmethod
    def position_of(batch: TransactionBatch) -> int:
        """The position by which a commit is known."""
        return batch.txn * _POSITIONS + batch.sequence

    @property
    def coordinator_epoch(self) -> int:
        """That of the coordinator, as its markers tell it; 0 where none was seen."""
        return self._first_coordinator_epoch or 0

    def note_marker(self, partition: str, txn: int) -> None:
        """A marker of this transaction comes into the partition's log."""
        self._marked[partition].append(txn)

    def place_of(self, partition: str) -> BrokerPartition:
        """Where the partition is. Raises ActionRefused if that of offsets was never described."""
        if partition not in self._places:
            raise ActionRefused("DescribeTransactions has not shown the offsets' partition")
        return self._places[partition]

    def forget(self) -> None:
        """Something may have changed."""
        self._seen = None

    # ---- asking ----------------------------------------------------------------------------

    def _ask(self) -> _TransactionLook:
        requests, port = self._requests, self._requests.port
        bodies: list[Any] = [
            requests.fetch(self._bases, committed=False),
            requests.fetch(self._bases, committed=True),
            requests.list_offsets(committed=False),
            requests.list_offsets(committed=True),
        ]
        offered = [api for api in _OPTIONAL if port.offers(api)]
        bodies += [self._optional(api) for api in offered]
        if self._offsets:
            bodies += [
                requests.fetch_offset(self._group, stable=stable) for stable in (False, True)
            ]
        uncommitted, committed, ends, stable, *rest = port.ask_all(bodies)
        optional = dict(zip(offered, rest, strict=False))
        positions = [fetched_offset(answer) for answer in rest[len(offered) :]] or [("", -1)] * 2
        return _TransactionLook(
            self._transaction(optional),
            described_producers(optional[_PRODUCERS], self._producer_id)
            if _PRODUCERS in optional
            else None,
            read_partitions(uncommitted),
            read_partitions(committed),
            listed_offsets(ends),
            listed_offsets(stable),
            *positions,
        )

    def _optional(self, api: str) -> Any:
        requests = self._requests
        if api == _DESCRIBED:
            return requests.describe_transaction(self._id)
        if api == _LISTED:
            return requests.list_transactions(self._producer_id)
        return requests.describe_producers()

    def _transaction(self, answers: Mapping[str, Any]) -> DescribedTransaction | None:
        if _DESCRIBED not in answers:
            return None
        described = described_transaction(answers[_DESCRIBED])
        if described is None:
            raise SystemFailed(f"DescribeTransactions does not know {self._id}")
        if _LISTED not in answers:
            return described
        answer = answers[_LISTED]
        expect_none("ListTransactions", answer.error_code)
        listed = [
            str(state.transaction_state)
            for state in answer.transaction_states
            if state.transactional_id == self._id
        ]
        if listed != [described.state]:
            return DescribedTransaction(
                f"{described.state}, listed as {listed}", described.epoch, described.partitions
            )
        return described

    # ---- values ----------------------------------------------------------------------------

    def values(self, coordinator: str, origin: RecordOrigin) -> dict[str, Value]:
        """What is seen, as far as it can be."""
        if self._seen is None:
            self._seen = self._ask()
        seen = self._seen
        values: dict[str, Value] = {
            "reads": make_function(
                {
                    **{name: self._read(seen, place.number) for name, place in self._data()},
                    **{name: _positions(seen) for name in self._offsets},
                }
            )
        }
        logs = {name: self._records(seen, place.number) for name, place in self._data()}
        if not self._offsets:
            values["log"] = make_function(
                {name: self._log(name, records) for name, records in logs.items()}
            )
            values["highWatermark"] = make_function(
                {name: self._watermark(seen, place.number) for name, place in self._data()}
            )
        if seen.producers is not None and not self._offsets:
            values["producers"] = make_function(
                {
                    name: self._entry(seen.producers.get(place.number, _NO_ENTRY), place.number)
                    for name, place in self._data()
                }
            )
        if seen.transaction is not None:
            values["coordinators"] = make_function(
                {coordinator: self._known(seen.transaction, origin)}
            )
        return values

    def _data(self) -> list[tuple[str, BrokerPartition]]:
        return [item for item in self._places.items() if item[0] not in self._offsets]

    def _known(self, described: DescribedTransaction, origin: RecordOrigin) -> Value:
        self.state, self.epoch = described.state, described.epoch
        now = Fn(
            {
                "state": described.state,
                "epoch": described.epoch,
                "parts": frozenset(map(self._name_of, described.partitions)),
                "txn": origin.txn,
                "client": origin.client,
                "request": origin.request,
            }
        )
        return Fn({"tenure": _FIRST_TENURE, "loaded": True, "now": now, "pending": "None"})

    def _name_of(self, where: tuple[str, int]) -> str:
        if offsets_partition(where) and self._offsets:
            self._places[self._offsets[0]] = BrokerPartition(*where)
        for name, place in self._places.items():
            if place == where:
                return name
        return f"{where[0]}-{where[1]}"

    def _records(self, seen: _TransactionLook, index: int) -> list[FetchedRecord]:
        """From where the test began. A broker may answer with batches before that."""
        base = self._bases[index]
        return [record for record in seen.uncommitted[index].records if record.offset >= base]

    def _log(self, name: str, records: Sequence[FetchedRecord]) -> Value:
        marked = iter(self._marked[name])
        return tuple(self._logged(record, marked) for record in records)

    def _logged(self, record: FetchedRecord, marked: Any) -> Value:
        kind, coordinator_epoch = "data", 0
        if record.commits is None:
            txn, sequence = _numbers(record.value)
        else:
            kind = "Committed" if record.commits else "Aborted"
            txn, sequence = next(marked, _IN_CONFLICT), record.sequence
            coordinator_epoch = self._tenure(record.coordinator_epoch)
        return Fn(
            {
                "kind": kind,
                "producer": _PRODUCER if record.producer_id == self._producer_id else "another",
                "epoch": record.epoch,
                "coordinatorEpoch": coordinator_epoch,
                "sequence": sequence,
                "txn": txn,
            }
        )

    def _tenure(self, coordinator_epoch: int) -> int:
        """The specification's terms count from 1; the first marker has that of the first."""
        if self._first_coordinator_epoch is None:
            self._first_coordinator_epoch = coordinator_epoch
        return coordinator_epoch - self._first_coordinator_epoch + _FIRST_TENURE

    def _watermark(self, seen: _TransactionLook, index: int) -> int:
        watermark = seen.uncommitted[index].high_watermark
        agree = watermark == seen.ends[index]
        return watermark - self._bases[index] if agree else _IN_CONFLICT

    def _entry(self, entry: DescribedProducer, index: int) -> Value:
        is_open = entry.start >= 0
        was_marked = entry.coordinator_epoch >= 0
        return Fn(
            {
                "epoch": entry.epoch,
                "sequence": entry.sequence,
                "coordinatorEpoch": self._tenure(entry.coordinator_epoch) if was_marked else 0,
                "start": entry.start - self._bases[index] if is_open else -1,
            }
        )

    def _read(self, seen: _TransactionLook, index: int) -> Value:
        read = seen.committed[index]
        agree = read.last_stable_offset == seen.stable[index]
        stable = read.last_stable_offset - self._bases[index] if agree else _IN_CONFLICT
        records = frozenset(_numbers(record.value) for record in visible(read, self._bases[index]))
        return Fn({"stable": stable, "records": records})


_DESCRIBED, _LISTED = "describe_transactions", "list_transactions"
_PRODUCERS = "describe_producers"
_OPTIONAL = (_DESCRIBED, _LISTED, _PRODUCERS)


def visible(read: ReadPartition, base: int) -> list[FetchedRecord]:
    """What a consumer keeps that fetched from `base` on (CompletedFetch.nextFetchedRecord)."""
    begun = sorted((first, producer) for producer, first in read.aborted)
    skipped: set[int] = set()
    kept = []
    for record in read.records:
        while begun and begun[0][0] <= record.offset:
            skipped.add(begun.pop(0)[1])
        if record.commits is not None:
            if not record.commits:
                skipped.discard(record.producer_id)
        elif record.producer_id not in skipped and record.offset >= base:
            kept.append(record)
    return kept


def _positions(seen: _TransactionLook) -> Value:
    error, position = seen.position
    if error != "NONE":
        raise SystemFailed(f"OffsetFetch was answered {error}")
    is_stable = seen.stable_position[0] != _UNSTABLE
    records = frozenset({divmod(position, _POSITIONS)}) if position >= 0 else frozenset()
    return Fn({"stable": int(is_stable), "records": records})


def _numbers(value: str) -> tuple[int, int]:
    """Transaction and sequence of a record of ours."""
    try:
        txn, sequence = map(int, value.split())
    except ValueError as error:
        raise SystemFailed(f"a record has the value {value!r}, which nobody sent") from error
    return txn, sequence
