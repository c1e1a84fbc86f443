"""The epoch cache against a naive model: a list of entries and the rules word by word."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from impl.checkpoint import LeaderEpochCheckpointFile
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk
from impl.leader_epoch_file_cache import LeaderEpochFileCache
from impl.scheduler import ImmediateScheduler

Entry = tuple[int, int]
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("assign"), st.integers(0, 6), st.integers(0, 12)),
        st.tuples(st.just("from_end"), st.integers(-1, 13), st.just(0)),
        st.tuples(st.just("from_start"), st.integers(-1, 13), st.just(0)),
    ),
    max_size=12,
)


def assigned(entries: list[Entry], epoch: int, start: int) -> list[Entry]:
    if entries and epoch == entries[-1][0] and start >= entries[-1][1]:
        return entries
    kept = list(entries)
    while kept and not (kept[-1][0] < epoch and kept[-1][1] < start):
        kept = kept[:-1]
    return [*kept, (epoch, start)]


def cut_from_start(entries: list[Entry], offset: int) -> list[Entry]:
    before = [entry for entry in entries if entry[1] <= offset]
    after = [entry for entry in entries if entry[1] > offset]
    return [(before[-1][0], offset), *after] if before else entries


def cut_from_end(entries: list[Entry], offset: int) -> list[Entry]:
    return entries if offset < 0 else [entry for entry in entries if entry[1] < offset]


def end_of(entries: list[Entry], asked: int, log_end_offset: int) -> Entry:
    if asked == -1:
        return (-1, -1)
    if entries and entries[-1][0] == asked:
        return (asked, log_end_offset)
    later = [entry for entry in entries if entry[0] > asked]
    if not later:
        return (-1, -1)
    earlier = [entry for entry in entries if entry[0] <= asked]
    return (earlier[-1][0] if earlier else asked, later[0][1])


def open_cache(disk: MemoryDisk) -> LeaderEpochFileCache:
    checkpoint = LeaderEpochCheckpointFile(disk, "t-0")
    return LeaderEpochFileCache(checkpoint, ImmediateScheduler(), NoConcurrency().lock("epochs"))


def entries_of(cache: LeaderEpochFileCache) -> list[Entry]:
    return [(entry.epoch, entry.start_offset) for entry in cache.epoch_entries()]


@settings(derandomize=True, max_examples=300)
@given(OPERATIONS)
def test_cache_is_its_model_in_memory_and_on_disk(operations: list[tuple[str, int, int]]) -> None:
    disk = MemoryDisk()
    cache, model = open_cache(disk), list[Entry]()
    for name, first, second in operations:
        if name == "assign":
            cache.assign(first, second)
            model = assigned(model, first, second)
        elif name == "from_end":
            cache.truncate_from_end(first)
            model = cut_from_end(model, first)
        else:
            cache.truncate_from_start(first)
            model = cut_from_start(model, first)
        assert entries_of(cache) == model
        assert entries_of(open_cache(disk)) == model
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(model))


@settings(derandomize=True, max_examples=300)
@given(OPERATIONS, st.integers(-1, 8), st.integers(0, 5))
def test_lookups_are_the_models(
    operations: list[tuple[str, int, int]], asked: int, beyond: int
) -> None:
    cache, model = open_cache(MemoryDisk()), list[Entry]()
    for name, first, second in operations:
        if name == "assign":
            cache.assign(first, second)
            model = assigned(model, first, second)
    log_end_offset = (model[-1][1] if model else 0) + beyond

    found = cache.end_offset_for(asked, log_end_offset)

    assert (found.leader_epoch, found.offset) == end_of(model, asked, log_end_offset)
    assert found.offset <= log_end_offset
    holders = [epoch for epoch, start in model if start <= asked]
    assert cache.epoch_for_offset(asked) == (holders[-1] if holders else None)
    later = [epoch for epoch, _ in model if epoch > asked]
    assert cache.next_epoch(asked) == (later[0] if later else None)
    earlier = [epoch for epoch, _ in model if epoch < asked]
    previous = cache.previous_entry(asked)
    assert (previous.epoch if previous else None) == (earlier[-1] if earlier else None)
