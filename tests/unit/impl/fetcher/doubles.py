"""A mock leader and a mock follower with the rules that Kafka's own fetcher tests assume.

They are simpler than the real log: a fetch brings one batch, and the latest epoch's end is
undefined. Source: MockLeaderEndPoint and MockFetcherThread of Kafka's test sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from impl.clock import MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.errors import Errors, IllegalStateException
from impl.fetcher.abstract_fetcher_thread import AbstractFetcherThread, FetcherRuntime
from impl.fetcher.failed_partitions import FailedPartitions
from impl.fetcher.leader_endpoint import BuiltFetch, ReplicaFetch
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.metrics import MetricsRegistry
from impl.network import INITIAL_METADATA, FetchRequest
from impl.records import MemoryRecords, Record, RecordBatch
from impl.types import (
    BrokerEndPoint,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    InitialFetchState,
    LogAppendInfo,
    OffsetAndEpoch,
    OffsetTruncationState,
    TopicPartition,
)

LEADER = BrokerEndPoint(1)

both_variants = pytest.mark.parametrize(
    "truncate_on_fetch", [True, False], ids=["truncate_on_fetch", "truncate_first"]
)


def answer(error: Errors = Errors.NONE, **changes: object) -> FetchPartitionData:
    """A partition's answer at offset 0 with these records, or with a diverging epoch."""
    records = changes.pop("records", MemoryRecords.EMPTY)
    diverging = changes.pop("diverging", None)
    assert isinstance(records, MemoryRecords)
    assert diverging is None or isinstance(diverging, EpochEndOffset)
    assert not changes
    return FetchPartitionData(error, 0, 0, records, diverging)


def batch(base_offset: int, epoch: int, size: int = 1) -> RecordBatch:
    """A batch of `size` records whose values differ by offset and epoch."""
    records = [Record(f"{epoch}:{base_offset + i}".encode()) for i in range(size)]
    return RecordBatch.create(records, base_offset, epoch)


def log_of(*entries: tuple[int, int]) -> list[RecordBatch]:
    """One-record batches, each given by (base offset, epoch)."""
    return [batch(base, epoch) for base, epoch in entries]


@dataclass
class ReplicaLog:
    """One replica of a partition."""

    log: list[RecordBatch] = field(default_factory=list)
    leader_epoch: int = 0
    high_watermark: int = 0
    log_start_offset: int = 0
    log_end_offset: int = -1

    def __post_init__(self) -> None:
        if self.log and self.log_start_offset == 0:
            self.log_start_offset = self.log[0].base_offset
        if self.log_end_offset < 0:
            self.log_end_offset = self.log[-1].next_offset if self.log else self.log_start_offset

    def check_epoch(self, current_leader_epoch: int | None) -> Errors:
        if current_leader_epoch is None or current_leader_epoch == -1:
            return Errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH
        if current_leader_epoch > self.leader_epoch:
            return Errors.UNKNOWN_LEADER_EPOCH
        return Errors.NONE

    def end_offset_for(self, epoch: int) -> EpochEndOffset:
        lower_bound = -1
        for entry in self.log:
            if entry.partition_leader_epoch > epoch:
                found = entry.partition_leader_epoch if lower_bound == -1 else lower_bound
                return EpochEndOffset(Errors.NONE, found, entry.base_offset)
            lower_bound = entry.partition_leader_epoch
        return EpochEndOffset()

    def truncate_to(self, offset: int) -> None:
        self.log = [entry for entry in self.log if entry.last_offset < offset]
        self.log_end_offset = self.log[-1].next_offset if self.log else self.log_start_offset
        self.high_watermark = min(self.high_watermark, self.log_end_offset)


class MockLeader:
    """A leader whose answers come from `ReplicaLog`s; hooks run while a request is in flight."""

    def __init__(self, truncate_on_fetch: bool, clock: MockClock) -> None:
        self._truncate_on_fetch = truncate_on_fetch
        self._clock = clock
        self.states: dict[TopicPartition, ReplicaLog] = {}
        self.fetch_answer: Callable[[FetchRequest], Mapping[TopicPartition, FetchPartitionData]] = (
            self._fetch
        )
        self.epochs_answer: Callable[
            [Mapping[TopicPartition, EpochData]], Mapping[TopicPartition, EpochEndOffset]
        ] = self._epoch_end_offsets
        self.before_epochs: Callable[[], None] = lambda: None
        self.before_earliest: Callable[[], None] = lambda: None
        self.before_latest: Callable[[], None] = lambda: None

    @property
    def is_truncation_on_fetch_supported(self) -> bool:
        return self._truncate_on_fetch

    def broker_end_point(self) -> BrokerEndPoint:
        return LEADER

    def initiate_close(self) -> None: ...

    def close(self) -> None: ...

    def fetch(self, fetch_request: FetchRequest, /) -> Mapping[TopicPartition, FetchPartitionData]:
        return self.fetch_answer(fetch_request)

    def _fetch(self, request: FetchRequest) -> Mapping[TopicPartition, FetchPartitionData]:
        return {tp: self.answer(tp, asked) for tp, asked in request.to_send.items()}

    def answer(self, tp: TopicPartition, asked: FetchPartitionRequest) -> FetchPartitionData:
        state = self.states[tp]
        error = state.check_epoch(asked.current_leader_epoch)
        offset = asked.fetch_offset
        if error is Errors.NONE and not state.log_start_offset <= offset <= state.log_end_offset:
            error = Errors.OFFSET_OUT_OF_RANGE
        diverging = None
        records = MemoryRecords.EMPTY
        if error is Errors.NONE:
            diverging = self._diverging_epoch(state, asked)
        if error is Errors.NONE and diverging is None:
            found = next((entry for entry in state.log if entry.base_offset >= offset), None)
            records = MemoryRecords(() if found is None else (found,))
        return FetchPartitionData(
            error, state.high_watermark, state.log_start_offset, records, diverging
        )

    def _diverging_epoch(
        self, state: ReplicaLog, asked: FetchPartitionRequest
    ) -> EpochEndOffset | None:
        last_fetched = asked.last_fetched_epoch
        if last_fetched is None or not state.log:
            return None
        found = state.end_offset_for(last_fetched)
        undefined = found.leader_epoch == -1 or found.end_offset == -1
        if undefined or not (
            found.leader_epoch < last_fetched or found.end_offset < asked.fetch_offset
        ):
            return None
        return found

    def fetch_earliest_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        self.before_earliest()
        state = self._checked(partition, current_leader_epoch)
        return OffsetAndEpoch(state.log_start_offset, state.leader_epoch)

    def fetch_earliest_local_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        return self.fetch_earliest_offset(partition, current_leader_epoch)

    def fetch_latest_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        self.before_latest()
        state = self._checked(partition, current_leader_epoch)
        return OffsetAndEpoch(state.log_end_offset, state.leader_epoch)

    def _checked(self, partition: TopicPartition, current_leader_epoch: int) -> ReplicaLog:
        state = self.states[partition]
        error = state.check_epoch(current_leader_epoch)
        if error is not Errors.NONE:
            raise error.exception()
        return state

    def fetch_epoch_end_offsets(
        self, partitions: Mapping[TopicPartition, EpochData], /
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        self.before_epochs()
        return self.epochs_answer(partitions)

    def _epoch_end_offsets(
        self, partitions: Mapping[TopicPartition, EpochData]
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        return {tp: self._epoch_end_offset(tp, asked) for tp, asked in partitions.items()}

    def _epoch_end_offset(self, tp: TopicPartition, asked: EpochData) -> EpochEndOffset:
        state = self.states[tp]
        error = state.check_epoch(asked.current_leader_epoch)
        if error is not Errors.NONE:
            return EpochEndOffset(error)
        return state.end_offset_for(asked.leader_epoch)

    def build_fetch(
        self, partitions: Mapping[TopicPartition, PartitionFetchState], /
    ) -> BuiltFetch:
        now_ms = self._clock.milliseconds()
        wanted = {
            tp: FetchPartitionRequest(
                state.topic_id_or_zero,
                state.fetch_offset,
                0,
                1 << 20,
                state.current_leader_epoch,
                state.last_fetched_epoch if self._truncate_on_fetch else None,
            )
            for tp, state in partitions.items()
            if state.is_ready_for_fetch(now_ms)
        }
        if not wanted:
            return BuiltFetch(None, ())
        request = FetchRequest(16, 0, -1, 0, 1, 1 << 20, INITIAL_METADATA, wanted)
        return BuiltFetch(ReplicaFetch(wanted, request), ())


class MockFetcher(AbstractFetcherThread):
    """A follower whose logs are `ReplicaLog`s; it records its truncations."""

    def __init__(
        self,
        leader: MockLeader,
        failed_partitions: FailedPartitions,
        runtime: FetcherRuntime,
        fetch_back_off_ms: int,
    ) -> None:
        super().__init__(
            "mock-fetcher", "mock-fetcher", leader, failed_partitions, runtime, fetch_back_off_ms
        )
        self.logs: dict[TopicPartition, ReplicaLog] = {}
        self.truncations: list[tuple[TopicPartition, OffsetTruncationState]] = []
        self.epochs_supported = True
        self.after_append: Callable[[], None] = lambda: None
        self.append_failure: dict[TopicPartition, Exception] = {}
        self.truncate_failure: dict[TopicPartition, Exception] = {}
        self.epoch_of_empty_log: int | None = 0

    def follow(
        self, tp: TopicPartition, offset: int, epoch: int, force_truncation: bool = False
    ) -> None:
        """Add one partition; `force_truncation` hides the epoch of an empty log."""
        self.epoch_of_empty_log = None if force_truncation else 0
        self.add_partitions({tp: InitialFetchState(None, LEADER, epoch, offset)})
        self.epoch_of_empty_log = 0

    @property
    def is_offset_for_leader_epoch_supported(self) -> bool:
        return self.epochs_supported

    def latest_epoch(self, partition: TopicPartition) -> int | None:
        log = self.logs[partition].log
        return log[-1].partition_leader_epoch if log else self.epoch_of_empty_log

    def log_start_offset(self, partition: TopicPartition) -> int:
        return self.logs[partition].log_start_offset

    def log_end_offset(self, partition: TopicPartition) -> int:
        return self.logs[partition].log_end_offset

    def end_offset_for_epoch(self, partition: TopicPartition, epoch: int) -> OffsetAndEpoch | None:
        found = self.logs[partition].end_offset_for(epoch)
        if found.end_offset == -1:
            return None
        return OffsetAndEpoch(found.end_offset, found.leader_epoch)

    def truncate(self, partition: TopicPartition, state: OffsetTruncationState) -> None:
        self.truncations.append((partition, state))
        if partition in self.truncate_failure:
            raise self.truncate_failure[partition]
        self.logs[partition].truncate_to(state.offset)

    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int) -> None:
        self.logs[partition] = ReplicaLog(
            [], self.logs[partition].leader_epoch, offset, offset, offset
        )

    def process_partition_data(
        self, partition: TopicPartition, fetch_offset: int, data: FetchPartitionData
    ) -> LogAppendInfo | None:
        if partition in self.append_failure:
            raise self.append_failure[partition]
        if self._truncation_on_fetch and data.diverging_epoch is not None:
            raise IllegalStateException("data of a partition that diverges")
        state = self.logs[partition]
        if fetch_offset != state.log_end_offset:
            raise IllegalStateException(f"fetched {fetch_offset}, log end {state.log_end_offset}")
        last_offset, last_epoch = state.log_end_offset, None
        for entry in data.records.batches():
            entry.ensure_valid()
            state.log.append(entry)
            state.log_end_offset = entry.next_offset
            last_offset, last_epoch = entry.last_offset, entry.partition_leader_epoch
        state.log_start_offset = data.log_start_offset
        state.high_watermark = data.high_watermark
        size = data.records.size_in_bytes
        self.after_append()
        return LogAppendInfo(fetch_offset, last_offset, last_epoch, size, state.log_start_offset)


class FetcherFixture:
    """A mock leader and a mock follower of it in one world."""

    def __init__(
        self,
        truncate_on_fetch: bool = True,
        fetch_back_off_ms: int = 0,
        concurrency: Concurrency | None = None,
    ) -> None:
        self.clock = MockClock()
        self.metrics = MetricsRegistry(self.clock)
        runtime = FetcherRuntime(
            self.clock, NoConcurrency() if concurrency is None else concurrency, self.metrics
        )
        self.leader = MockLeader(truncate_on_fetch, self.clock)
        self.failed = FailedPartitions(runtime.concurrency)
        self.fetcher = MockFetcher(self.leader, self.failed, runtime, fetch_back_off_ms)

    def given(
        self,
        tp: TopicPartition,
        follower: ReplicaLog,
        leader: ReplicaLog,
        offset: int = 0,
        force_truncation: bool = False,
    ) -> None:
        """Both replicas, and the follower added at `offset` in its own leader epoch."""
        self.leader.states[tp] = leader
        self.fetcher.logs[tp] = follower
        self.fetcher.follow(tp, offset, follower.leader_epoch, force_truncation)

    def work(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.fetcher.do_work()

    def state(self, tp: TopicPartition) -> PartitionFetchState:
        state = self.fetcher.fetch_state(tp)
        assert state is not None, f"{tp} is not followed"
        return state

    def phase(self, tp: TopicPartition) -> ReplicaState:
        return self.state(tp).state

    def is_delayed(self, tp: TopicPartition) -> bool:
        return self.state(tp).is_delayed(self.clock.milliseconds())

    def is_tracked(self, tp: TopicPartition) -> bool:
        return self.fetcher.fetch_state(tp) is not None

    def logs_equal(self, *partitions: TopicPartition) -> bool:
        return all(self.fetcher.logs[tp].log == self.leader.states[tp].log for tp in partitions)


def epochs(log: Iterable[RecordBatch]) -> list[tuple[int, int]]:
    """(base offset, epoch) of each batch."""
    return [(entry.base_offset, entry.partition_leader_epoch) for entry in log]
