"""A replica's files as the state that the formulas judge: one log without holes, one cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.inspect.abstraction import NO_EPOCH, CacheEntry, ReplicaState
from conformance.inspect.lines import ServerLogLine
from conformance.inspect.partitions import EpochRun
from conformance.inspect.subjects import ReplicaCopy


def state_of(
    copy: ReplicaCopy, lines: Sequence[ServerLogLine], epochs_from: int = 0
) -> ReplicaState:
    """The replica. What is not known is what contradicts nothing: see `Unjudged`.

    Records below `epochs_from` have no leader epoch on some replica: the log is judged from there.
    """
    end = max(copy.end, copy.start)
    start = min(max(copy.start, epochs_from), end)
    runs = tuple(_from(_filled(copy), start))
    cache = _cache_from(copy.epoch_cache, start) if copy.epoch_cache is not None else None
    heard = [line.epoch for line in lines if line.broker == copy.broker and line.kind == "started"]
    epochs = [run.epoch for run in runs] + [entry.epoch for entry in cache or ()]
    return ReplicaState(
        start,
        end,
        runs,
        max(copy.high_watermark or 0, start),  # Kafka raises one that is below the log's start
        cache if cache is not None else tuple(_cache_of(runs)),
        max([*epochs, *heard], default=NO_EPOCH),
    )


def _filled(copy: ReplicaCopy) -> Iterator[EpochRun]:
    """The runs one behind the other. What a cleaner removed had an epoch: the cache tells it.

    Overlaps and gaps of other logs are irregularities, which are told as such; here the earlier
    batch counts, and a gap belongs to the epoch before it.
    """
    if copy.log is None:
        return
    cursor, last = copy.log.start, None
    for run in copy.log.runs:
        if run.end <= cursor:
            continue
        if run.start > cursor:
            yield from _gap(cursor, run, last, copy.epoch_cache or ())
        yield EpochRun(max(run.start, cursor), run.end, run.epoch)
        cursor, last = run.end, run.epoch
    if copy.end > cursor and last is not None:
        yield EpochRun(cursor, copy.end, last)


def _gap(
    start: int, following: EpochRun, before: int | None, cache: Sequence[CacheEntry]
) -> Iterator[EpochRun]:
    """The epochs of a gap, by the cache's entries within it."""
    epoch = before
    for entry in cache:
        if entry.start <= start:
            epoch = entry.epoch
        elif entry.start < following.start and entry.epoch <= following.epoch:
            if epoch is not None:
                yield EpochRun(start, entry.start, epoch)
            start, epoch = entry.start, entry.epoch
    yield EpochRun(start, following.start, following.epoch if epoch is None else epoch)


def _from(runs: Iterator[EpochRun], start: int) -> Iterator[EpochRun]:
    """The runs from the log start on, neighbours of one epoch joined."""
    last: EpochRun | None = None
    for run in runs:
        if run.end <= start or run.end <= run.start:
            continue
        run = EpochRun(max(run.start, start), run.end, run.epoch)
        if last is not None and last.epoch == run.epoch:
            last = EpochRun(last.start, run.end, run.epoch)
        else:
            if last is not None:
                yield last
            last = run
    if last is not None:
        yield last


def _cache_from(cache: Sequence[CacheEntry], start: int) -> tuple[CacheEntry, ...]:
    """As LeaderEpochFileCache.truncateFromStart leaves it, which is done again at every start."""
    before = [entry for entry in cache if entry.start <= start]
    kept = [entry for entry in cache if entry.start > start]
    return (CacheEntry(before[-1].epoch, start), *kept) if before else tuple(kept)


def _cache_of(runs: Sequence[EpochRun]) -> Iterator[CacheEntry]:
    for run in runs:
        yield CacheEntry(run.epoch, run.start)
