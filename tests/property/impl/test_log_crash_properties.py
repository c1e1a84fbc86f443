"""A log after a crash that keeps any prefix of what was not flushed, against its batches."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk, first
from impl.log import Log
from impl.log_manager import LogManager
from impl.log_types import LogConfig
from impl.records import MemoryRecords, Record, RecordBatch
from impl.scheduler import DeferredScheduler
from impl.types import TopicPartition

TP = TopicPartition("topic", 0)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2)),
        st.tuples(st.just("truncate"), st.integers(0, 10)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("checkpoint"), st.just(0)),
        st.tuples(st.just("delete"), st.just(0)),
        st.tuples(st.just("background"), st.just(0)),
    ),
    max_size=12,
)


def epochs_derived_from(batches: list[RecordBatch]) -> list[tuple[int, int]]:
    derived: list[tuple[int, int]] = []
    for entry in batches:
        if not derived or derived[-1][0] != entry.partition_leader_epoch:
            derived.append((entry.partition_leader_epoch, entry.base_offset))
    return derived


def open_logs(disk: MemoryDisk, scheduler: DeferredScheduler) -> tuple[LogManager, Log]:
    config = LogConfig(segment_bytes=200)
    logs = LogManager(disk, ("d",), scheduler, NoConcurrency(), default_config=config)
    return logs, logs.get_or_create_log(TP)


@settings(derandomize=True, max_examples=300)
@given(STEPS, st.integers(0, 30))
def test_recovered_log_is_whole(steps: list[tuple[str, int]], survivors: int) -> None:
    disk, scheduler = MemoryDisk(), DeferredScheduler()
    logs, log = open_logs(disk, scheduler)
    epoch, durable = 0, list[RecordBatch]()
    for name, value in steps:
        if name == "append":
            epoch += value
            log.append_as_leader(MemoryRecords.with_records(Record(b"x" * 10)), epoch)
        elif name == "truncate":
            logs.truncate_to(log, value)
            durable = [batch for batch in durable if batch.base_offset < value]
        elif name == "flush":
            log.flush()
            durable = log.batches()
        elif name == "checkpoint":
            logs.checkpoint_all()
        elif name == "delete":
            log.flush(force=True)
            logs.delete_log(log)
            log, epoch, durable = logs.get_or_create_log(TP), 0, []
        else:
            scheduler.run_pending()

    disk.crash(first(survivors))
    _, recovered = open_logs(disk, DeferredScheduler())
    batches = recovered.batches()

    assert recovered.leader_epoch_cache is not None
    cached = recovered.leader_epoch_cache.epoch_entries()
    assert [(entry.epoch, entry.start_offset) for entry in cached] == epochs_derived_from(batches)
    assert all(batch.is_valid() for batch in batches)
    ends = [0, *(batch.next_offset for batch in batches)]
    assert [batch.base_offset for batch in batches] == ends[:-1]
    assert batches[: len(durable)] == durable
    assert recovered.log_end_offset == ends[-1]
    assert recovered.recovery_point <= recovered.log_end_offset
