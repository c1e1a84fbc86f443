"""Replays a partition's log into a shard.

Source: CoordinatorLoaderImpl, branch 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..end_transaction_marker import deserialize
from ..errors import NotLeaderOrFollowerException
from ..log import Log
from ..records import Record, RecordBatch
from .coordinator_shard import CoordinatorRecord
from .snapshottable_coordinator import SnapshottableCoordinator

COMMIT_INTERVAL_OFFSETS = 16384
"""A long load below the watermark lets snapshots go this often (KAFKA-19716)."""

LoadCallback = Callable[[Exception | None], None]
"""Called once when the load has ended: with what it failed with, or None."""


class CoordinatorLoader(Protocol):
    """Loads, sooner or later; one load of a broker at a time."""

    def load(self, coordinator: SnapshottableCoordinator, callback: LoadCallback) -> None:
        """Replay all records of the log into the coordinator, then call back."""


def do_load(
    log_of: Callable[[], Log | None], coordinator: SnapshottableCoordinator, buffer_size: int
) -> None:
    """Read from the log start to the log end, not only to the watermark.

    `log_of` gives the log of the partition that this broker leads. Raises
    NotLeaderOrFollowerException if it gives none.
    """
    log = log_of()
    offset = -1 if log is None else log.log_start_offset
    while log is not None and offset < log.log_end_offset:
        for batch in log.read(offset, buffer_size, min_one_message=True).records.batches():
            if batch.is_control_batch:
                _replay_control_batch(batch, coordinator)
            else:
                _replay_batch(batch, coordinator)
            offset = batch.next_offset
            _update_offsets(coordinator, offset, log.high_watermark)
        log = log_of()
    if log is None:
        raise NotLeaderOrFollowerException("the partition is not led by this broker any more")


def _replay_batch(batch: RecordBatch, coordinator: SnapshottableCoordinator) -> None:
    producer_id, producer_epoch, _ = batch.producer
    for record in batch.records:
        offset = batch.base_offset + record.offset_delta
        coordinator.replay(offset, producer_id, producer_epoch, _coordinator_record(record))


def _replay_control_batch(batch: RecordBatch, coordinator: SnapshottableCoordinator) -> None:
    """A batch without records is what the cleaner left of a marker."""
    if batch.records:
        producer_id, producer_epoch, _ = batch.producer
        coordinator.replay_end_transaction_marker(
            producer_id, producer_epoch, is_commit=deserialize(batch).is_commit
        )


def _coordinator_record(record: Record) -> CoordinatorRecord:
    assert record.key is not None, "a record of a coordinator has a key"
    return CoordinatorRecord(record.key, record.value)


def _update_offsets(
    coordinator: SnapshottableCoordinator, current: int, high_watermark: int
) -> None:
    """Below the watermark no snapshots are kept; from there on one for each batch."""
    if current >= high_watermark:
        coordinator.update_last_written_offset(current)
        if high_watermark > coordinator.last_committed_offset:
            coordinator.update_last_committed_offset(high_watermark)
    elif current - coordinator.last_committed_offset >= COMMIT_INTERVAL_OFFSETS:
        coordinator.update_last_written_offset(current)
        coordinator.update_last_committed_offset(current)
