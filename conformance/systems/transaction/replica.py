"""Logs of one partition, each on a disk of its own."""

from __future__ import annotations

from impl.clock import Clock
from impl.concurrency import Concurrency, NoConcurrency
from impl.disk import Disk, MemoryDisk
from impl.log import Log
from impl.log_loader import load_log
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.records import MemoryRecords
from impl.scheduler import ImmediateScheduler
from impl.types import TopicPartition


def load_replica(
    config: ProducerStateManagerConfig,
    clock: Clock | None = None,
    topic: str = "t",
    concurrency: Concurrency | None = None,
    *,
    disk: Disk | None = None,
    recovery_point: int | None = None,
) -> Log:
    """The log on a disk, or an empty one; without `concurrency` its locks do nothing.

    With a `recovery_point` the process before has died, and what lies behind it is recovered.
    """
    return load_log(
        TopicPartition(topic, 0),
        "log",
        disk or MemoryDisk(),
        ImmediateScheduler(),
        concurrency or NoConcurrency(),
        recovery_point=recovery_point or 0,
        had_clean_shutdown=recovery_point is None,
        clock=clock,
        producers=config,
    )


def follower_of(
    leader: Log,
    end: int,
    config: ProducerStateManagerConfig,
    clock: Clock | None = None,
    concurrency: Concurrency | None = None,
) -> Log:
    """The log of a follower that has fetched up to `end`."""
    replica = load_replica(config, clock, leader.topic_partition.topic, concurrency)
    for batch in leader.batches():
        if batch.next_offset <= end:
            replica.append_as_follower(MemoryRecords((batch,)))
    if leader.log_start_offset <= end:
        replica.update_high_watermark(leader.log_start_offset)
        replica.maybe_increment_log_start_offset(leader.log_start_offset)
    return replica


def truncate_replica(log: Log, end: int) -> None:
    """Whoever truncates hears of the high watermark with its next fetch."""
    watermark = log.high_watermark
    log.truncate_to(end)
    log.update_high_watermark(watermark)
