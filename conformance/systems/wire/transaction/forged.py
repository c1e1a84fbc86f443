"""Requests that no client sends: each is right but for what its name in the specification says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from conformance.kafka.batches import keyed_batch
from conformance.systems.wire.topic import expect
from conformance.systems.wire.transaction.look import BrokerPartition, DrivenId
from conformance.systems.wire.transaction.requests import (
    CONTROL,
    NOBODY,
    TRANSACTIONAL,
    TransactionRequests,
    marker_record,
)

_ANOTHER = 1_000_000
"""So far away nobody has a producer id."""
_LATER = 1
_FIRST_SEQUENCE, _NO_SEQUENCE = 0, -1

Producer = tuple[int, int]
"""Producer id and epoch."""


class ForgedRequests:
    """Of one test; `epoch` is that of the transaction."""

    def __init__(self, requests: TransactionRequests, driven: DrivenId) -> None:
        self._requests = requests
        self._driven = driven
        self._to_coordinator: Mapping[str, Callable[[Producer], str]] = {
            "EndOfAnotherId": lambda now: self._end(_another(now)),
            "EndOfLaterEpoch": lambda now: self._end(_later(now)),
            "AddPartitionsOfAnotherId": lambda now: self._add(_another(now)),
            "AddPartitionsOfLaterEpoch": lambda now: self._add(_later(now)),
            "InitProducerIdOfAnotherId": lambda now: self._init(_another(now)),
            "InitProducerIdOfLaterEpoch": lambda now: self._init(_later(now)),
            "InitProducerIdWithoutEpoch": lambda now: self._init((now[0], NOBODY)),
        }
        self._to_leader: Mapping[str, Callable[[BrokerPartition, Producer], str]] = {
            "BatchOfAnotherId": lambda place, now: self._produce(place, _another(now)),
            "BatchWithoutTransactionalId": lambda place, now: self._produce(
                place, now, transactional_id=None
            ),
            "BatchWithoutSequence": lambda place, now: self._produce(
                place, now, sequence=_NO_SEQUENCE
            ),
            "BatchOfMarkers": lambda place, now: self._produce(place, now, is_marker=True),
        }

    def to_coordinator(self, kind: str, error: str, epoch: int) -> None:
        """Raises ActionRefused unless the answer is this error."""
        answered = self._to_coordinator[kind]((self._driven.producer_id, epoch))
        expect(kind, answered, error)

    def to_leader(self, place: BrokerPartition, kind: str, error: str, epoch: int) -> None:
        """Raises ActionRefused unless the answer is this error."""
        answered = self._to_leader[kind](place, (self._driven.producer_id, epoch))
        expect(kind, answered, error)

    def marker(
        self, place: BrokerPartition, error: str, epoch: int, coordinator_epoch: int
    ) -> None:
        """A commit of an earlier coordinator. Raises as the others do."""
        producer = (self._driven.producer_id, epoch + _LATER)
        answered = self._requests.write_marker(place, producer, coordinator_epoch - 1, commits=True)
        expect("WriteTxnMarkers", answered, error)

    def _end(self, producer: Producer) -> str:
        driven = self._driven
        error, _ = self._requests.end(driven.coordinator, driven.name, producer, commits=True)
        return error

    def _add(self, producer: Producer) -> str:
        return self._requests.add_partition(
            self._driven.coordinator, self._driven.name, producer, 0
        )

    def _init(self, producer: Producer) -> str:
        error, _, _ = self._requests.init_producer_id(
            self._driven.coordinator, self._driven.name, producer
        )
        return error

    def _produce(
        self,
        place: BrokerPartition,
        producer: Producer,
        *,
        transactional_id: str | None = "",
        sequence: int = _FIRST_SEQUENCE,
        is_marker: bool = False,
    ) -> str:
        records = keyed_batch(
            [marker_record(commits=True) if is_marker else (None, b"forged")],
            first_ms=int(time.time() * 1000),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            attributes=TRANSACTIONAL | (CONTROL if is_marker else 0),
        )
        named = self._driven.name if transactional_id == "" else transactional_id
        return self._requests.produce_batch(named, records, place.number)


def _another(producer: Producer) -> Producer:
    return producer[0] + _ANOTHER, producer[1]


def _later(producer: Producer) -> Producer:
    return producer[0], producer[1] + _LATER
