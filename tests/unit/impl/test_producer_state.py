"""A log with producers: sequences, duplicates, epochs, snapshots, starts.

The numbers of duplicates, of the wrap and of the table are those of Kafka's UnifiedLogTest
(testDuplicateAppends) and ProducerStateManagerTest (testBasicIdMapping).
"""

from __future__ import annotations

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk, everything
from impl.errors import (
    ApiException,
    CorruptRecordException,
    InvalidProducerEpochException,
    OutOfOrderSequenceException,
)
from impl.log import Log
from impl.log_loader import load_log
from impl.log_types import LogConfig
from impl.producer.transaction_manager import TransactionManager
from impl.producer_state.producer_append_info import AppendOrigin
from impl.producer_state.producer_snapshot import snapshot_path
from impl.producer_state.producer_state_entry import MAX_SEQUENCE
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.records import NO_PRODUCER, MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.scheduler import ImmediateScheduler
from impl.types import LogAppendInfo, TopicPartition

PRODUCER = 23
EXPIRATION_MS = 100


class World:
    """A log, its disk and its clock."""

    def __init__(self, segment_bytes: int = 1 << 20) -> None:
        self.disk = MemoryDisk()
        self.clock = MockClock()
        self.config = LogConfig(segment_bytes=segment_bytes)
        self.log = self.load(clean=True)

    def load(self, *, clean: bool) -> Log:
        """The log as a new process finds it."""
        return load_log(
            TopicPartition("t", 0),
            "t-0",
            self.disk,
            ImmediateScheduler(),
            NoConcurrency(),
            config=self.config,
            had_clean_shutdown=clean,
            clock=self.clock,
            producers=ProducerStateManagerConfig(EXPIRATION_MS),
        )

    def append(
        self,
        sequence: int,
        size: int = 1,
        *,
        epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> LogAppendInfo:
        """A batch of the producer, of `size` records."""
        records = batch(sequence, size, epoch, self.clock.milliseconds())
        return self.log.append_as_leader(records, 0, origin)

    @property
    def window(self) -> list[tuple[int, int]]:
        """First and last sequence of the batches that are remembered."""
        entry = self.log.producer_state_manager.active_producers.get(PRODUCER)
        known = () if entry is None else entry.batch_metadata
        return [(cached.first_seq, cached.last_seq) for cached in known]


def batch(sequence: int, size: int, epoch: int, timestamp: int = 0) -> MemoryRecords:
    records = [Record(b"v", timestamp=timestamp)] * size
    producer = ProducerInfo(PRODUCER, epoch, sequence)
    return MemoryRecords((RecordBatch.create(records, producer=producer),))


def test_the_producer_survives_the_wire() -> None:
    (sent,) = batch(7, 2, 3).batches()
    assert sent.producer == ProducerInfo(PRODUCER, 3, 7)
    assert RecordBatch.create([Record(b"v")]).producer == NO_PRODUCER
    assert RecordBatch.create([Record(b"v")], magic=1).producer == NO_PRODUCER


def test_a_batch_in_the_window_is_answered_as_it_was() -> None:
    world = World()
    for sequence in range(6):
        world.append(sequence)
    world.append(6, 3)

    answered = world.append(6, 3)
    assert (answered.first_offset, answered.last_offset, answered.valid_bytes) == (6, 8, 0)
    assert world.append(2).first_offset == 2
    assert world.log.log_end_offset == 9

    for sequence, size in ((7, 2), (1, 1)):
        with pytest.raises(OutOfOrderSequenceException):
            world.append(sequence, size)
    assert world.log.log_end_offset == 9


@pytest.mark.parametrize(
    ("sequence", "epoch", "error"),
    [
        (2, 1, None),
        (3, 1, OutOfOrderSequenceException),
        (MAX_SEQUENCE, 1, OutOfOrderSequenceException),
        (0, 2, None),
        (1, 2, OutOfOrderSequenceException),
        (2, 0, InvalidProducerEpochException),
        (1, 0, InvalidProducerEpochException),
    ],
)
def test_what_follows_sequence_1_of_epoch_1(
    sequence: int, epoch: int, error: type[ApiException] | None
) -> None:
    world = World()
    world.append(0, 2, epoch=1)
    if error is None:
        world.append(sequence, epoch=epoch)
    else:
        with pytest.raises(error):
            world.append(sequence, epoch=epoch)
        assert world.log.log_end_offset == 2
        assert world.window == [(0, 1)]


def test_an_unknown_producer_may_begin_anywhere() -> None:
    world = World()
    world.append(5)
    assert world.window == [(5, 5)]


def test_sequences_go_on_with_0() -> None:
    world = World()
    world.append(MAX_SEQUENCE - 1)
    world.append(MAX_SEQUENCE, 2)
    assert world.window[-1] == (MAX_SEQUENCE, 0)
    assert world.append(MAX_SEQUENCE, 2).first_offset == 1
    with pytest.raises(OutOfOrderSequenceException):
        world.append(0)
    world.append(1)


def test_an_append_of_two_batches_is_taken_whole_or_not() -> None:
    world = World()
    first, second = batch(0, 1, 0).batches() + batch(2, 1, 0).batches()
    with pytest.raises(OutOfOrderSequenceException):
        world.log.append_as_leader(MemoryRecords((first, second)), 0)
    assert world.log.log_end_offset == 0
    assert world.window == []


def test_sequences_of_a_coordinator_are_not_checked_and_its_epoch_is() -> None:
    world = World()
    world.append(0, epoch=1, origin=AppendOrigin.COORDINATOR)
    world.append(0, epoch=1, origin=AppendOrigin.COORDINATOR)
    assert world.log.log_end_offset == 2
    with pytest.raises(InvalidProducerEpochException):
        world.append(0, epoch=0, origin=AppendOrigin.COORDINATOR)


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_start_the_window_has_one_batch(clean: bool) -> None:
    world = World()
    for sequence in range(3):
        world.append(sequence)
    if clean:
        world.log.close()
    else:
        world.disk.crash(everything)
    world.log = world.load(clean=clean)
    assert world.window == [(2, 2)]
    assert world.append(2).first_offset == 2
    world.append(3)


def test_a_truncation_reads_the_snapshot_and_the_log_behind_it() -> None:
    world = World()
    world.append(0)
    world.append(1)
    world.log.close()
    world.log = world.load(clean=True)
    for sequence in range(2, 5):
        world.append(sequence)
    world.log.truncate_to(4)
    assert world.window == [(1, 1), (2, 2), (3, 3)]
    assert world.log.producer_state_manager.snapshots == (2, 4)
    world.log.truncate_to(1)
    assert world.window == [(0, 0)]
    assert world.log.producer_state_manager.snapshots == (1,)


def test_a_new_segment_begins_with_a_snapshot_that_goes_with_the_segment_before() -> None:
    world = World(segment_bytes=1)
    for sequence in range(3):
        world.append(sequence)
    assert world.log.producer_state_manager.snapshots == (1, 2)
    world.log.update_high_watermark(3)
    world.log.maybe_increment_log_start_offset(2)
    world.log.delete_old_segments()
    assert world.log.producer_state_manager.snapshots == (2,)
    assert world.append(1).first_offset == 1  # since Kafka 2.4 deleted batches stay known


def test_a_snapshot_that_is_cut_off_is_passed_over() -> None:
    world = World(segment_bytes=1)
    for sequence in range(3):
        world.append(sequence)
    world.log.close()
    path = snapshot_path("t-0", 3)
    world.disk.open(path).truncate(5)
    with pytest.raises(CorruptRecordException):
        world.log.producer_state_manager.snapshot(3)
    world.log = world.load(clean=True)
    assert world.window == [(1, 1), (2, 2)]


def test_a_silent_producer_is_forgotten() -> None:
    world = World()
    world.append(0)
    world.clock.sleep(EXPIRATION_MS - 1)
    world.log.remove_expired_producers()
    assert world.window == [(0, 0)]
    world.clock.sleep(1)
    world.log.close()
    world.log = world.load(clean=True)
    assert world.window == []
    world.append(0)
    assert world.log.log_end_offset == 2


def test_a_log_without_producers_has_no_snapshots() -> None:
    world = World(segment_bytes=1)
    for _ in range(3):
        world.log.append_as_leader(MemoryRecords.with_records(Record(b"v")), 0)
    world.log.truncate_to(2)
    world.log.close()
    assert [name for name in world.disk.names("t-0") if name.endswith(".snapshot")] == []


def test_a_bump_numbers_what_is_in_flight_anew() -> None:
    client = TransactionManager(PRODUCER)
    done = client.add_in_flight_batch([Record(b"a")])
    client.add_in_flight_batch([Record(b"b")] * 2)
    client.add_in_flight_batch([Record(b"c")])
    client.handle_completed_batch(done)
    assert client.is_next_sequence(1)
    assert not client.is_next_sequence(3)
    assert [
        (b.producer_epoch, b.base_sequence) for b in client.bump_idempotent_producer_epoch()
    ] == [
        (1, 0),
        (1, 2),
    ]
    assert client.next_sequence == 3
