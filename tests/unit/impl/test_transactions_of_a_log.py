"""Transactions in one log: guards, markers, the last stable offset, the abort index, loading."""

from __future__ import annotations

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.consumer.completed_fetch import CompletedFetch
from impl.disk import MemoryDisk, everything, nothing
from impl.end_transaction_marker import EndTransactionMarker, deserialize
from impl.errors import (
    InvalidProducerEpochException,
    InvalidRecordException,
    InvalidTxnStateException,
    OutOfOrderSequenceException,
    TransactionCoordinatorFencedException,
)
from impl.log import Log
from impl.log_loader import load_log
from impl.log_types import FetchDataInfo, FetchIsolation, LogConfig
from impl.producer_state.producer_append_info import AppendOrigin
from impl.producer_state.producer_state_entry import MAX_EPOCH
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.producer_state.transactions import SENTINEL, AbortedTxn, VerificationGuard
from impl.records import MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.scheduler import ImmediateScheduler
from impl.types import LogAppendInfo, TopicPartition

A, B = 1, 2
EXPIRATION_MS = 100
STRICT = 2


class World:
    """A log, its disk and its clock."""

    def __init__(self, *, verifies: bool = False, segment_bytes: int = 1 << 20) -> None:
        self.disk = MemoryDisk()
        self.clock = MockClock()
        self.producers = ProducerStateManagerConfig(
            EXPIRATION_MS, transaction_verification_enabled=verifies
        )
        self.config = LogConfig(segment_bytes=segment_bytes)
        self.log = self.load(clean=True)

    def load(self, *, clean: bool) -> Log:
        return load_log(
            TopicPartition("t", 0),
            "t-0",
            self.disk,
            ImmediateScheduler(),
            NoConcurrency(),
            config=self.config,
            had_clean_shutdown=clean,
            clock=self.clock,
            producers=self.producers,
        )

    def restart(self, *, clean: bool) -> None:
        """The process ends, in order or not, and its successor loads the log."""
        watermark = self.log.high_watermark
        if clean:
            self.log.flush(force=True)
            self.log.close()
        else:
            self.disk.crash(everything)
        self.log = self.load(clean=clean)
        self.log.update_high_watermark(watermark)

    def data(
        self,
        producer: int,
        sequence: int,
        epoch: int = 0,
        *,
        guard: VerificationGuard = SENTINEL,
        transactional: bool = True,
    ) -> LogAppendInfo:
        batch = RecordBatch.create(
            (Record(b"v", timestamp=self.clock.milliseconds()),),
            producer=ProducerInfo(producer, epoch, sequence),
            is_transactional=transactional,
        )
        return self.log.append_as_leader(MemoryRecords((batch,)), 0, verification_guard=guard)

    def end(
        self,
        producer: int,
        *,
        commits: bool,
        epoch: int = 0,
        coordinator: int = 0,
        version: int = 0,
    ) -> LogAppendInfo:
        marker = EndTransactionMarker(commits, coordinator)
        records = marker.memory_records(self.clock.milliseconds(), producer, epoch)
        return self.log.append_as_leader(
            records, 0, AppendOrigin.COORDINATOR, transaction_version=version
        )

    def replicate(self) -> None:
        self.log.update_high_watermark(self.log.log_end_offset)

    def read(self, offset: int = 0, max_bytes: int = 1 << 20) -> FetchDataInfo:
        return self.log.read(offset, max_bytes, FetchIsolation.TXN_COMMITTED)


def offsets(info: FetchDataInfo, start: int = 0) -> list[int]:
    """The offsets that a read_committed application gets."""
    fetch = CompletedFetch(start, info.records.batches(), info.aborted_transactions)
    return [offset for offset, _ in fetch.fetch_records()]


# ---- markers, the last stable offset, the abort index -----------------------------------------


def test_a_marker_names_its_coordinator_and_its_outcome() -> None:
    for marker in (EndTransactionMarker(True, 3), EndTransactionMarker(False, 4)):
        (batch,) = marker.memory_records(5, A, 6).batches()
        assert batch.is_control_batch
        assert batch.is_transactional
        assert batch.producer == (A, 6, -1)
        assert deserialize(batch) == marker
    with pytest.raises(InvalidRecordException):
        deserialize(RecordBatch.create((Record(b"v", b"\0\0\0\2"),)))


def test_the_last_stable_offset_waits_for_the_marker_to_be_replicated() -> None:
    world = World()
    world.data(A, 0)
    world.replicate()
    assert world.log.last_stable_offset == 0
    world.end(A, commits=True)
    assert world.log.last_stable_offset == 0
    world.replicate()
    assert world.log.last_stable_offset == 2


def test_consumers_get_what_is_committed_however_it_is_interleaved() -> None:
    world = World()
    world.data(A, 0)
    world.data(B, 0)
    world.end(A, commits=False)
    world.data(A, 1)
    world.end(B, commits=True)
    world.end(A, commits=True)
    world.replicate()
    assert world.log.all_aborted_txns == (AbortedTxn(A, 0, 2, 1),)
    assert offsets(world.read()) == [1, 3]
    assert offsets(world.read(1), 1) == [1, 3]
    assert world.read(3).aborted_transactions == ()
    uncommitted = world.log.read(0, 1 << 20, FetchIsolation.HIGH_WATERMARK)
    assert uncommitted.aborted_transactions is None
    assert offsets(uncommitted) == [0, 1, 3]


def test_a_marker_of_another_segment_is_looked_up() -> None:
    world = World(segment_bytes=1)
    world.data(A, 0)
    world.data(B, 0)
    world.end(A, commits=False)
    world.end(B, commits=False)
    world.replicate()
    info = world.read()
    assert len(info.records.batches()) == 1
    assert [aborted.producer_id for aborted in info.aborted_transactions or ()] == [A]
    assert offsets(info) == []


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_finds_what_is_open_and_what_was_aborted(clean: bool) -> None:
    world = World()
    world.data(A, 0)
    world.end(A, commits=False, coordinator=5)
    world.data(B, 0)
    index = world.log.all_aborted_txns
    assert len(index) == 1
    world.restart(clean=clean)
    world.replicate()
    assert world.log.all_aborted_txns == index
    assert world.log.first_unstable_offset == world.log.last_stable_offset == 2
    with pytest.raises(TransactionCoordinatorFencedException):
        world.end(A, commits=False, coordinator=4)
    world.end(B, commits=True)
    world.replicate()
    assert offsets(world.read()) == [2]


def test_an_index_that_a_crash_has_lost_is_written_again() -> None:
    world = World()
    world.data(A, 0)
    world.end(A, commits=False)
    index = world.log.all_aborted_txns
    path = next(name for name in world.disk.names("t-0") if name.endswith(".txnindex"))
    world.log.flush(force=True)
    world.disk.open(f"t-0/{path}").truncate(3)
    world.restart(clean=False)
    assert world.log.all_aborted_txns == index


def test_unflushed_transactions_are_lost_together_with_their_index() -> None:
    world = World()
    world.data(A, 0)
    world.end(A, commits=False)
    world.disk.crash(nothing)
    world.log = world.load(clean=False)
    assert world.log.all_aborted_txns == ()
    assert world.log.first_unstable_offset is None


def test_a_truncation_opens_the_transaction_again() -> None:
    world = World()
    world.data(A, 0)
    world.end(A, commits=False)
    world.log.truncate_to(1)
    world.replicate()
    assert world.log.all_aborted_txns == ()
    assert world.log.last_stable_offset == 0


def test_the_files_of_the_index_go_with_their_segment_and_their_directory() -> None:
    world = World(segment_bytes=1)
    world.data(A, 0)
    world.end(A, commits=False)
    world.data(A, 1)
    world.log.rename_directory("moved")
    assert sum(name.endswith(".txnindex") for name in world.disk.names("moved")) == 1
    world.replicate()
    world.log.maybe_increment_log_start_offset(2)
    world.log.delete_old_segments()
    assert not any(name.endswith(".txnindex") for name in world.disk.names("moved"))


def test_what_is_deleted_of_an_open_transaction_holds_nobody_up() -> None:
    world = World()
    world.data(A, 0)
    world.data(A, 1)
    world.replicate()
    world.log.maybe_increment_log_start_offset(1)
    assert world.log.last_stable_offset == 1


# ---- who may append ---------------------------------------------------------------------------


def test_a_batch_needs_a_guard_until_the_transaction_is_open() -> None:
    world = World(verifies=True)
    with pytest.raises(InvalidTxnStateException):
        world.data(A, 0)
    guard = world.log.maybe_start_transaction_verification(A, 0, 0, False)
    assert guard is world.log.maybe_start_transaction_verification(A, 0, 0, False)
    with pytest.raises(InvalidTxnStateException):
        world.data(A, 0, guard=VerificationGuard())
    world.data(A, 0, guard=guard)
    assert world.log.maybe_start_transaction_verification(A, 1, 0, False) is SENTINEL
    world.data(A, 1)


@pytest.mark.parametrize(
    ("supports_epoch_bump", "epoch", "stays"),
    [(False, 0, False), (True, 0, True), (True, 1, False)],
)
def test_a_marker_ends_verifications_but_of_the_next_transaction(
    supports_epoch_bump: bool, epoch: int, stays: bool
) -> None:
    """KAFKA-18654."""
    world = World(verifies=True)
    guard = world.log.maybe_start_transaction_verification(A, 0, 0, supports_epoch_bump)
    world.end(A, commits=True, epoch=epoch)
    entry = world.log.producer_state_manager.verification_state_entry(A)
    assert (entry is not None) is stays
    if entry is not None:
        assert entry.guard is guard


def test_a_later_batch_waits_for_the_one_that_was_verified_first() -> None:
    """KAFKA-14920: the later one was appended, and the first was out of order for ever."""
    world = World(verifies=True)
    guard = world.log.maybe_start_transaction_verification(A, 5, 0, False)
    world.log.maybe_start_transaction_verification(A, 3, 0, False)
    with pytest.raises(OutOfOrderSequenceException):
        world.data(A, 5, guard=guard)
    world.data(A, 3, guard=guard)


def test_version_2_begins_with_sequence_0() -> None:
    """KAFKA-18202."""
    world = World(verifies=True)
    guard = world.log.maybe_start_transaction_verification(A, 1, 0, True)
    with pytest.raises(OutOfOrderSequenceException):
        world.data(A, 1, guard=guard)


def test_an_epoch_that_is_over_verifies_nothing() -> None:
    world = World(verifies=True)
    world.end(A, commits=True, epoch=1)
    with pytest.raises(InvalidProducerEpochException):
        world.log.maybe_start_transaction_verification(A, 0, 0, True)
    with pytest.raises(InvalidProducerEpochException):
        world.data(A, 0)  # KAFKA-19690: before the guard is looked at


def test_a_verification_is_given_up_as_a_producer_is_and_an_open_transaction_is_not() -> None:
    world = World(verifies=True)
    world.data(B, 0, guard=world.log.maybe_start_transaction_verification(B, 0, 0, False))
    world.log.maybe_start_transaction_verification(A, 0, 0, False)
    world.clock.sleep(EXPIRATION_MS)
    world.log.remove_expired_producers()
    assert world.log.producer_state_manager.verification_state_entry(A) is None
    assert B in world.log.producer_state_manager.active_producers


def test_what_is_not_transactional_waits_for_the_end() -> None:
    world = World()
    world.data(A, 0)
    with pytest.raises(InvalidTxnStateException):
        world.data(A, 1, transactional=False)
    world.end(A, commits=True)
    world.data(A, 1, transactional=False)


@pytest.mark.parametrize(
    ("version", "stored", "is_open", "epoch", "accepted"),
    [
        (0, 1, True, 1, True),
        (0, 1, True, 0, False),
        (STRICT, 1, True, 1, False),
        (STRICT, 1, True, 2, True),
        (STRICT, 1, False, 1, True),
        (STRICT, 1, False, 0, False),
        (STRICT, MAX_EPOCH, True, MAX_EPOCH, True),
    ],
)
def test_the_epoch_of_a_marker(
    version: int, stored: int, is_open: bool, epoch: int, accepted: bool
) -> None:
    """KIP-1228: from version 2 on a marker has an epoch of its own (KAFKA-19446, KAFKA-19999)."""
    world = World()
    world.data(A, 0, stored)
    if not is_open:
        world.end(A, commits=True, epoch=stored)
    end = world.log.log_end_offset
    if accepted:
        world.end(A, commits=False, epoch=epoch, version=version)
        return
    with pytest.raises(InvalidProducerEpochException):
        world.end(A, commits=False, epoch=epoch, version=version)
    assert world.log.log_end_offset == end
    follower = World().log
    (batch,) = EndTransactionMarker(False, 0).memory_records(0, A, epoch).batches()
    follower.append_as_follower(MemoryRecords((batch,)))  # what a leader has is not refused
