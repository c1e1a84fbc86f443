"""LeaderEpochFileCache: the cases of Kafka's LeaderEpochFileCacheTest, by their ids."""

from __future__ import annotations

import pytest

from impl.checkpoint import LeaderEpochCheckpointFile
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk, nothing
from impl.errors import IllegalArgumentException
from impl.leader_epoch_file_cache import LeaderEpochFileCache
from impl.scheduler import DeferredScheduler, ImmediateScheduler
from impl.types import EpochEntry
from tests.unit.impl.brokers import batch, epochs_of, make_log

Pair = tuple[int, int]
UNDEFINED = (-1, -1)
BASE = [(2, 6), (3, 8), (4, 11)]


def a_cache(*entries: Pair, disk: MemoryDisk | None = None) -> LeaderEpochFileCache:
    checkpoint = LeaderEpochCheckpointFile(disk or MemoryDisk(), "logs/topic-0")
    cache = LeaderEpochFileCache(checkpoint, ImmediateScheduler(), NoConcurrency().lock("epochs"))
    for epoch, start_offset in entries:
        cache.assign(epoch, start_offset)
    return cache


def pairs(cache: LeaderEpochFileCache) -> list[Pair]:
    return [(entry.epoch, entry.start_offset) for entry in cache.epoch_entries()]


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        pytest.param([(2, 9), (2, 10)], [(2, 9)], id="E05-start-of-an-epoch-is-not-overwritten"),
        pytest.param([(2, 6)], [(2, 6)], id="E13-epochs-need-not-start-at-zero"),
        pytest.param([(1, 5), (2, 6), (1, 7)], [(1, 7)], id="E15-older-epoch-wins-over-newer"),
        pytest.param([(0, 0), (1, 0)], [(1, 0)], id="E17-epoch-without-records-is-replaced"),
        pytest.param([(0, 0), (1, 0), (2, 5)], [(1, 0), (2, 5)], id="E17-leaders-change"),
        pytest.param([(3, 7), (4, 3)], [(4, 3)], id="newer-epoch-with-smaller-start-wins"),
        pytest.param([(3, 7), (3, 5)], [(3, 5)], id="same-epoch-with-smaller-start-wins"),
    ],
)
def test_assign(assigned: list[Pair], expected: list[Pair]) -> None:
    assert pairs(a_cache(*assigned)) == expected


@pytest.mark.parametrize(
    ("assigned", "log_end_offset", "asked", "expected"),
    [
        pytest.param([(2, 11), (2, 12)], 14, 2, (2, 14), id="E03-latest-epoch-ends-at-log-end"),
        pytest.param([], 0, 0, UNDEFINED, id="E07-empty"),
        pytest.param([], 73, -1, UNDEFINED, id="E07-undefined-epoch"),
        pytest.param([(0, 5)], 73, -1, UNDEFINED, id="A4-undefined-epoch-with-entries"),
        pytest.param([], 73, 7, UNDEFINED, id="E07-unknown-epoch"),
        pytest.param([(5, 11), (6, 12), (7, 13)], 14, 4, (4, 11), id="epoch-before-all-known"),
        pytest.param([(5, 11), (6, 12), (7, 12)], 17, 5, (5, 12), id="E09-epoch-5"),
        pytest.param([(5, 11), (6, 12), (7, 12)], 17, 6, (5, 12), id="E09-epoch-6"),
        pytest.param([(0, 10), (2, 13), (4, 17)], 20, 1, (0, 13), id="E11-epoch-1"),
        pytest.param([(0, 10), (2, 13), (4, 17)], 20, 2, (2, 17), id="E11-epoch-2"),
        pytest.param([(0, 10), (2, 13), (4, 17)], 20, 3, (2, 17), id="E11-epoch-3"),
        pytest.param([(0, 10), (2, 13), (4, 17)], 20, 5, UNDEFINED, id="later-than-all-known"),
        pytest.param([(2, 6)], 7, 2, (2, 7), id="E13"),
        pytest.param([(1, 5), (2, 6), (1, 7)], 8, 1, (1, 8), id="E15-epoch-1"),
        pytest.param([(1, 5), (2, 6), (1, 7)], 8, 2, UNDEFINED, id="E15-epoch-2"),
        pytest.param([(0, 0), (1, 0)], 0, 1, (1, 0), id="E17-empty-log-epoch-1"),
        pytest.param([(0, 0), (1, 0)], 0, 0, (0, 0), id="E17-empty-log-epoch-0"),
        pytest.param([(0, 0), (1, 0)], 5, 1, (1, 5), id="E17-epoch-1"),
        pytest.param([(0, 0), (1, 0)], 5, 0, (0, 0), id="E17-epoch-0"),
        pytest.param([(0, 0), (1, 0), (2, 5)], 10, 2, (2, 10), id="E17-later-epoch-2"),
        pytest.param([(0, 0), (1, 0), (2, 5)], 10, 1, (1, 5), id="E17-later-epoch-1"),
        pytest.param([(0, 0), (1, 0), (2, 5)], 10, 0, (0, 0), id="E17-later-epoch-0"),
    ],
)
def test_end_offset_for(
    assigned: list[Pair], log_end_offset: int, asked: int, expected: Pair
) -> None:
    end = a_cache(*assigned).end_offset_for(asked, log_end_offset)

    assert (end.leader_epoch, end.offset) == expected


@pytest.mark.parametrize(
    ("end_offset", "expected"),
    [
        pytest.param(8, [(2, 6)], id="E19-on-the-boundary"),
        pytest.param(9, [(2, 6), (3, 8)], id="between-epochs"),
        pytest.param(-1, BASE, id="E21-undefined-offset-changes-nothing"),
        pytest.param(12, BASE, id="after-the-last-start"),
        pytest.param(0, [], id="everything"),
    ],
)
def test_truncate_from_end(end_offset: int, expected: list[Pair]) -> None:
    cache = a_cache(*BASE)

    cache.truncate_from_end(end_offset)

    assert pairs(cache) == expected


@pytest.mark.parametrize(
    ("start_offset", "expected"),
    [
        pytest.param(9, [(3, 9), (4, 11)], id="E23-between-epochs"),
        pytest.param(8, [(3, 8), (4, 11)], id="on-the-boundary"),
        pytest.param(11, [(4, 11)], id="E25-latest-epoch-is-kept"),
        pytest.param(15, [(4, 15)], id="E27-latest-epoch-is-kept-and-moved"),
        pytest.param(6, BASE, id="at-the-first-start"),
        pytest.param(5, BASE, id="before-the-first-start"),
        pytest.param(-1, BASE, id="undefined-offset"),
    ],
)
def test_truncate_from_start(start_offset: int, expected: list[Pair]) -> None:
    cache = a_cache(*BASE)

    cache.truncate_from_start(start_offset)

    assert pairs(cache) == expected


def test_e01_previous_epoch() -> None:
    cache = a_cache()
    assert cache.previous_epoch() is None
    cache.assign(2, 10)
    assert cache.previous_epoch() is None
    cache.assign(4, 15)
    assert cache.previous_epoch() == 2
    cache.assign(10, 20)
    assert cache.previous_epoch() == 4
    cache.truncate_from_end(18)
    assert cache.previous_epoch() == 2


def test_e29_empty_cache_is_safe() -> None:
    cache = a_cache()

    cache.truncate_from_start(7)
    cache.truncate_from_end(7)

    assert cache.latest_epoch() is None
    assert cache.latest_entry() is None
    assert cache.earliest_entry() is None
    assert cache.epoch_for_offset(0) is None
    assert cache.is_empty()


def test_e31_previous_entry() -> None:
    cache = a_cache((2, 10))
    assert cache.previous_entry(2) is None
    cache.assign(4, 15)
    assert cache.previous_entry(4) == EpochEntry(2, 10)
    cache.assign(10, 20)
    assert cache.previous_entry(10) == EpochEntry(4, 15)
    cache.truncate_from_end(18)
    assert cache.previous_entry(4) == EpochEntry(2, 10)


def test_e33_truncation_reaches_the_file() -> None:
    disk = MemoryDisk()
    cache = a_cache(*BASE, disk=disk)

    cache.truncate_from_end(11)
    cache.truncate_from_start(8)

    assert disk.contents()["logs/topic-0/leader-epoch-checkpoint"] == b"0\n1\n3 8\n"
    assert pairs(a_cache(disk=disk)) == [(3, 8)]


def test_lookups_between_entries() -> None:
    cache = a_cache(*BASE)

    assert cache.latest_entry() == EpochEntry(4, 11)
    assert cache.earliest_entry() == EpochEntry(2, 6)
    assert [cache.next_epoch(epoch) for epoch in (1, 2, 3, 4)] == [2, 3, 4, None]
    assert [cache.epoch_for_offset(offset) for offset in (5, 6, 7, 8, 11, 99)] == [
        None,
        2,
        2,
        3,
        4,
        4,
    ]


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_negative_values_are_refused(epoch: int, offset: int) -> None:
    with pytest.raises(IllegalArgumentException):
        a_cache().assign(epoch, offset)


def test_clear_keeps_the_file_and_clear_and_flush_empties_it() -> None:
    disk = MemoryDisk()
    a_cache(*BASE, disk=disk).clear()
    assert pairs(a_cache(disk=disk)) == BASE
    a_cache(disk=disk).clear_and_flush()
    assert pairs(a_cache(disk=disk)) == []


def test_conflicting_lines_of_a_file_give_way_to_the_last() -> None:
    disk = MemoryDisk()
    file = disk.open("logs/topic-0/leader-epoch-checkpoint")
    file.append(b"0\n3\n1 5\n3 9\n2 7\n")

    assert pairs(a_cache(disk=disk)) == [(1, 5), (2, 7)]


def test_truncation_lost_in_a_crash_is_healed_when_the_log_is_loaded() -> None:
    disk, scheduler = MemoryDisk(), DeferredScheduler()
    log = make_log(disk, scheduler=scheduler)
    for offset, epoch in enumerate((0, 1, 2)):
        log.append_as_follower(batch(offset, epoch))
    log.flush()
    log.truncate_to(1)
    log.flush(0)
    assert scheduler.pending() == ("leader-epoch-cache-flush",)
    disk.open("logs/topic-0/00000000000000000000.log").flush()
    disk.crash(nothing)
    on_disk = LeaderEpochCheckpointFile(disk, "logs/topic-0").read()
    assert [entry.epoch for entry in on_disk] == [0, 1, 2]

    healed = make_log(disk)

    assert healed.log_end_offset == 1
    assert epochs_of(healed) == [(0, 0)]
