"""Replicas compared: where their logs differ, what one lacks, what a cache tells otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from conformance.inspect.abstraction import ReplicaState
from conformance.inspect.partitions import EpochRun


@dataclass(frozen=True, slots=True)
class EpochDifference:
    """Offsets from `start` to before `end` in which replicas hold records of different epochs."""

    start: int
    end: int
    epochs: Mapping[str, int | None]
    """By broker the leader epoch of its records; None where it holds none there."""

    @property
    def conflicting(self) -> bool:
        """Whether two replicas hold different records; else one only lacks some."""
        return len({epoch for epoch in self.epochs.values() if epoch is not None}) > 1


def missing(state: ReplicaState, exposed: Sequence[EpochRun]) -> list[EpochRun]:
    """Of exposed records those that a replica's log does not hold; below its start it had them."""
    epoch_runs: list[EpochRun] = []
    for run in exposed:
        cursor = max(run.start, state.start)
        for epoch_run in state.runs:
            if epoch_run.end <= cursor or epoch_run.start >= run.end:
                continue
            if epoch_run.epoch == run.epoch:
                if epoch_run.start > cursor:
                    epoch_runs.append(EpochRun(cursor, epoch_run.start, run.epoch))
                cursor = epoch_run.end
        if cursor < run.end:
            epoch_runs.append(EpochRun(cursor, run.end, run.epoch))
    return epoch_runs


def differences(states: Mapping[str, ReplicaState]) -> Iterator[EpochDifference]:
    """Where the logs of a partition differ; not where one merely began later."""
    edges = sorted(
        {edge for state in states.values() for run in state.runs for edge in (run.start, run.end)}
    )
    last: EpochDifference | None = None
    for start, end in pairwise(edges):
        epochs = {name: _epoch_at(state, start) for name, state in states.items()}
        here = {name: epoch for name, epoch in epochs.items() if start >= states[name].start}
        if len(set(here.values())) < 2:
            continue
        if last is not None and last.end == start and last.epochs == here:
            last = EpochDifference(last.start, end, here)
            continue
        if last is not None:
            yield last
        last = EpochDifference(start, end, here)
    if last is not None:
        yield last


def _epoch_at(state: ReplicaState, offset: int) -> int | None:
    return next((run.epoch for run in state.runs if run.start <= offset < run.end), None)


def mismatches(states: Mapping[str, ReplicaState]) -> Iterator[tuple[str, str, EpochDifference]]:
    """Pairs of replicas, and where they differ below a record on which they agree."""
    names = sorted(states)
    for number, name in enumerate(names):
        for other in names[number + 1 :]:
            pair = {name: states[name], other: states[other]}
            agreed = max(
                (
                    min(a.end, b.end)
                    for a in states[name].runs
                    for b in states[other].runs
                    if a.epoch == b.epoch and max(a.start, b.start) < min(a.end, b.end)
                ),
                default=-1,
            )
            for part in differences(pair):
                if part.conflicting and part.start < agreed:
                    yield name, other, part


def cache_difference(state: ReplicaState) -> tuple[int, str]:
    """The first offset at which a cache tells another epoch than the log, and in words."""
    cache = {entry.start: entry.epoch for entry in state.epoch_cache}
    true = {run.start: run.epoch for run in state.runs}
    for offset in sorted({*cache, *true}):
        if cache.get(offset) != true.get(offset):
            if offset not in cache:
                return offset, (
                    f"Epoch {true[offset]} begins at offset {offset} in the log, which the "
                    "checkpoint does not say."
                )
            if offset not in true:
                return offset, (
                    f"The checkpoint says that epoch {cache[offset]} begins at offset {offset}; "
                    "the "
                    "log has no such epoch there."
                )
            return offset, (
                f"The checkpoint says that epoch {cache[offset]} begins at offset {offset}; in the "
                f"log it is epoch {true[offset]}."
            )
    return state.end, "The checkpoint has entries that no log can have."


def only_the_end_differs(state: ReplicaState) -> bool:
    """Whether log and cache would fit but for the newest epoch, as amid an election."""
    cache = [(entry.epoch, entry.start) for entry in state.epoch_cache]
    true = [(run.epoch, run.start) for run in state.runs]
    return cache == true[:-1] or cache[:-1] == true or cache == [*true[:-1], *cache[-1:]]
