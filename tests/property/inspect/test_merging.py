"""Merged offsets and windows change no verdict: the formulas say the same of every offset alone."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import event, given, settings
from hypothesis import strategies as st

from conformance.inspect.abstraction import (
    CacheEntry,
    PartitionMoment,
    RegisteredPartition,
    ReplicaState,
    windows,
)
from conformance.inspect.exposure import merged as merged_runs
from conformance.inspect.formulas import ReplicationFormulas
from conformance.inspect.models import REPLICATION
from conformance.inspect.partitions import EpochRun
from conformance.modelcheck.specifications import Specifications

SPECIFICATION = Specifications()[REPLICATION]
FORMULAS = ReplicationFormulas(SPECIFICATION)


@st.composite
def runs(draw: st.DrawFn, start: int) -> tuple[EpochRun, ...]:
    """A log of few epochs, mostly in order, in runs of one to four records."""
    lengths = draw(st.lists(st.integers(1, 4), max_size=6))
    found, epoch = [], draw(st.integers(0, 2))
    for length in lengths:
        if found and found[-1].epoch == epoch:
            found[-1] = EpochRun(found[-1].start, found[-1].end + length, epoch)
        else:
            found.append(EpochRun(start, start + length, epoch))
        start += length
        epoch = max(epoch + draw(st.sampled_from([0, 1, 1, 2, -1])), 0)
    return tuple(found)


@st.composite
def replicas(draw: st.DrawFn, common: tuple[EpochRun, ...]) -> ReplicaState:
    """A prefix of a common log, often with another end; its cache is mostly the log's."""
    start = draw(st.integers(0, 3))
    if draw(st.booleans()) and common:
        kept = draw(st.integers(0, common[-1].end))
        log = tuple(
            EpochRun(max(run.start, start), min(run.end, kept), run.epoch)
            for run in common
            if max(run.start, start) < min(run.end, kept)
        )
    else:
        log = draw(runs(start))
    end = log[-1].end if log else start
    cache = [CacheEntry(run.epoch, run.start) for run in log]
    if draw(st.integers(0, 3)) == 0 and cache:
        cache.pop(draw(st.integers(0, len(cache) - 1)))
    if draw(st.integers(0, 3)) == 0:
        newest = max((entry.epoch for entry in cache), default=0)
        cache.append(CacheEntry(newest + draw(st.integers(0, 2)), end))
    epochs = [run.epoch for run in log] + [entry.epoch for entry in cache]
    return ReplicaState(
        start,
        end,
        log,
        draw(st.integers(start, end + 1)),
        tuple(cache),
        max(epochs, default=-1),
    )


@st.composite
def moments(draw: st.DrawFn) -> PartitionMoment:
    common = draw(runs(0))
    states = {name: draw(replicas(common)) for name in ("b1", "b2", "b3")}
    leader = draw(st.sampled_from(["b1", "b2", "none"]))
    epoch = max(state.latest_epoch for state in states.values()) + draw(st.integers(-1, 1))
    epoch = max(epoch, 0)
    if leader != "none":
        state = states[leader]
        states[leader] = ReplicaState(
            state.start, state.end, state.runs, state.high_watermark, state.epoch_cache,
            max(state.latest_epoch, epoch), leads=True,
        )  # fmt: skip
    exposed = merged_runs(
        EpochRun(run.start, min(run.end, limit), run.epoch)
        for name in draw(st.lists(st.sampled_from(sorted(states)), max_size=2))
        for limit in [draw(st.integers(0, 12))]
        for run in states[name].runs
        if run.start < limit
    )
    isr = frozenset(draw(st.sets(st.sampled_from(sorted(states)))))
    return PartitionMoment(RegisteredPartition(leader, epoch, isr, 1), states, exposed)


@settings(max_examples=150)
@given(moments(), st.integers(2, 5))
def test_merged_and_windowed_verdicts_are_those_of_every_offset(
    moment: PartitionMoment, size: int
) -> None:
    alone = FORMULAS.judge(SPECIFICATION.invariants, moment, merged=False)
    merged = FORMULAS.judge(SPECIFICATION.invariants, moment, size=100)
    windowed = FORMULAS.judge(SPECIFICATION.invariants, moment, size=size)
    for formula in SPECIFICATION.invariants:
        truth = alone[formula].holds
        assert (formula, merged[formula].holds) == (formula, truth)
        assert (formula, windowed[formula].holds) == (formula, truth)
        event(f"{formula} {truth}")


@given(moments(), st.integers(2, 5))
def test_windows_leave_no_record_out(moment: PartitionMoment, size: int) -> None:
    """Every cut is in a window, and neighbours share a record."""
    whole = next(windows(moment, size=1_000)).cuts
    parts = [window.cuts for window in windows(moment, size=size)]
    assert sorted({cut for part in parts for cut in part}) == list(whole)
    for one, other in pairwise(parts):
        assert one[-2:] == other[:2]
