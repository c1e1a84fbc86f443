"""A producer that is played at a port, and what a broker's answers show of its partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from conformance.kafka.batches import keyed_batch
from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.wire.produce.producer import SentBatch, WireProducer
from conformance.systems.wire.produce.reach import beyond_a_port
from conformance.systems.wire.produce.requests import LoggedBatch, ProducerPartition, _batches
from conformance.systems.wire.produce.system import WireProduceSystem
from conformance.tla import Action

ONE, TWO = SentBatch(0, 0, 1, 1), SentBatch(0, 1, 2, 2)
OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


def waiting() -> WireProducer:
    """A producer with two batches that are not acknowledged."""
    producer = WireProducer()
    producer.send(1)
    producer.send(2)
    return producer


def test_sequences_count_records() -> None:
    assert waiting().pending == [ONE, TWO]
    assert waiting().next == 3


def test_a_bump_numbers_all_that_is_pending_anew() -> None:
    producer = waiting()
    producer.bump(ONE, OUT_OF_ORDER)
    assert producer.pending == [SentBatch(1, 0, 1, 1), SentBatch(1, 1, 2, 2)]
    assert (producer.next, producer.last_acked) == (3, -1)
    assert producer.sent[0, 1] == ONE, "the old copy may still arrive"


@pytest.mark.parametrize(("batch", "error"), [(TWO, OUT_OF_ORDER), (ONE, "NONE")])
def test_any_other_answer_is_a_reason_to_send_again(batch: SentBatch, error: str) -> None:
    with pytest.raises(ActionRefused, match="again after"):
        waiting().bump(batch, error)


@pytest.mark.parametrize(
    ("brokers", "window", "batches", "reason"),
    [
        (1, 5, 6, ""),
        (1, 2, 2, ""),
        (1, 2, 3, "Kafka keeps 5 batches"),
        (2, 5, 6, "replicas fetch when the model says so"),
    ],
)
def test_a_port_takes_one_replica_and_kafkas_window(
    brokers: int, window: int, batches: int, reason: str
) -> None:
    names = frozenset({"b1", "b2"} if brokers == 2 else {"b1"})
    constants = {"Brokers": names, "Window": window, "MaxBatches": batches}
    assert reason in beyond_a_port(constants)
    assert bool(reason) is bool(beyond_a_port(constants))


def test_batches_are_read_as_they_were_written() -> None:
    data = keyed_batch(
        [(None, b"2")] * 2,
        first_ms=1_700_000_000_000,
        base_offset=7,
        leader_epoch=3,
        producer_id=9,
        producer_epoch=4,
        base_sequence=1,
    )
    read = _batches(data + data[:20], first_epoch=4)
    assert read == (LoggedBatch(TWO, 7, 3),), "what is cut off at the end is left out"
    broken = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(SystemFailed, match="cannot be read"):
        _batches(broken, first_epoch=4)


# ---- what is seen -----------------------------------------------------------------------------


@dataclass
class PlayedPartition:
    """A partition that answers as it is told."""

    log: tuple[LoggedBatch, ...] = ()
    described: tuple[int, int] | None = None
    port: Any = field(default_factory=lambda: cast("Any", _OffersAll()))

    def new_producer_id(self) -> tuple[int, int]:
        return 9, 0

    def latest(self) -> int:
        return 10 + sum(batch.sent.size for batch in self.log)

    def fetch(self, _offset: int, _producer: tuple[int, int]) -> tuple[LoggedBatch, ...]:
        return self.log

    def describe(self, _producer_id: int) -> tuple[int, int] | None:
        return self.described


class _OffersAll:
    def offers(self, _api: str) -> bool:
        return True


def entry_of(*log: LoggedBatch, described: tuple[int, int] | None) -> Any:
    """What is seen of the producer's entry, if it is seen; the log of the test begins at 10."""
    system = object.__new__(WireProduceSystem)
    system._name = "b1"
    played = PlayedPartition()
    system._partition = cast("ProducerPartition", played)
    system.reset({})
    played.log, played.described = log, described
    seen = system.look_again(0.0)
    assert seen["hw"]["b1"] == sum(batch.sent.size for batch in log)  # type: ignore[index,call-overload]
    return seen.get("producer")


FIRST, SECOND = LoggedBatch(ONE, 10, 0), LoggedBatch(TWO, 11, 0)


def known(first: int, last: int, offset: int) -> dict[str, int]:
    return {"first": first, "last": last, "offset": offset}


@pytest.mark.parametrize(
    ("log", "described", "batches"),
    [
        ((), None, []),
        ((FIRST,), (0, 0), [known(0, 0, 0)]),
        ((FIRST, SECOND), (0, 0), [known(0, 0, -1)]),  # it contradicts the log
        ((FIRST,), None, []),
    ],
)
def test_an_entry_is_shown_where_nothing_is_hidden(
    log: tuple[LoggedBatch, ...], described: tuple[int, int] | None, batches: list[Any]
) -> None:
    entry = entry_of(*log, described=described)["b1"]
    assert [dict(batch) for batch in entry["batches"]] == batches
    assert entry["epoch"] == (-1 if described is None else described[0])


def test_an_entry_with_batches_before_the_last_one_is_left_out() -> None:
    assert entry_of(FIRST, SECOND, described=(0, 2)) is None


def test_a_step_that_a_port_has_not_is_refused() -> None:
    system = object.__new__(WireProduceSystem)
    system._steps = {}
    with pytest.raises(ActionRefused, match="no action Elect"):
        system.apply(Action("Elect", ("b2",)))
