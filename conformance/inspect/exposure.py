"""What was exposed to consumers: every high watermark that the files tell, and its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.inspect.abstraction import ReplicaState
from conformance.inspect.history import Elections, Registration
from conformance.inspect.lines import UNKNOWN, ServerLogLine
from conformance.inspect.partitions import EpochRun
from conformance.inspect.subjects import InspectedPartition


@dataclass(frozen=True, slots=True)
class Exposure:
    """Records below `below` were below a high watermark, and so exposed to consumers.

    `epoch` bounds when: no leader of a later epoch had begun on that broker yet.
    """

    broker: str
    below: int
    epoch: int
    time: int
    source: str
    checkpointed: bool = False


def exposures(
    subject: InspectedPartition, states: Mapping[str, ReplicaState]
) -> tuple[Exposure, ...]:
    """All high watermarks that are known of a partition."""
    return (*_checkpointed(subject, states), *_logged(subject.lines))


def _checkpointed(
    subject: InspectedPartition, states: Mapping[str, ReplicaState]
) -> Iterator[Exposure]:
    for broker, copy in subject.copies.items():
        if copy.high_watermark is not None:
            yield Exposure(
                broker,
                copy.high_watermark,
                states[broker].latest_epoch,
                copy.high_watermark_at,
                f"{broker}: replication-offset-checkpoint says {copy.high_watermark}",
                checkpointed=True,
            )


def _logged(lines: Sequence[ServerLogLine]) -> Iterator[Exposure]:
    """A line about a new epoch tells a high watermark of the time before it.

    That was in the epoch of the broker's line before, or, if no such line is here, perhaps in the
    new epoch itself: a broker that restarts begins the same epoch again.
    """
    epochs: dict[str, int] = {}
    for line in lines:
        before = epochs.get(line.broker)
        if line.kind == "started":
            epochs[line.broker] = line.epoch
            before = line.epoch if before is None else before
        if line.high_watermark != UNKNOWN and before is not None:
            yield _exposure(line, before)


def _exposure(line: ServerLogLine, epoch: int) -> Exposure:
    source = f"{line.source}: {line.text}"
    return Exposure(line.broker, line.high_watermark, epoch, line.time, source)


def epoch_starts(subject: InspectedPartition, states: Mapping[str, ReplicaState]) -> dict[int, int]:
    """The offset at which each epoch began: where its leader's log ended when it was elected.

    By the leader's own line, else by the epoch caches, else by the first record of the epoch. A
    cache's first entry moves with the log start and does not count unless that is 0.
    """
    result: dict[int, int] = {}
    for state in states.values():
        for run in state.runs:
            if run.start > state.start or state.start == 0:
                result[run.epoch] = min(run.start, result.get(run.epoch, run.start))
    for state in states.values():
        for entry in state.epoch_cache:
            if entry.start > state.start or state.start == 0:
                result[entry.epoch] = min(entry.start, result.get(entry.epoch, entry.start))
    for line in subject.lines:
        if line.kind == "started" and line.leads:
            result[line.epoch] = line.offset
    return result


def explained_by(
    elections: Elections | None, starts: Mapping[int, int], lost: int, epoch: int
) -> Registration | None:
    """The unclean election that lost the records from `lost` on, exposed up to `epoch`, if one did.

    It came later, and its leader's log ended at or below them.
    """
    if elections is None:
        return None
    for registration in elections.unclean:
        if (
            registration.leader_epoch > epoch
            and starts.get(registration.leader_epoch, lost) <= lost
        ):
            return registration
    return None


def held_below(state: ReplicaState, offset: int) -> tuple[EpochRun, ...]:
    """What a replica holds below an offset."""
    return tuple(
        EpochRun(run.start, min(run.end, offset), run.epoch)
        for run in state.runs
        if run.start < offset
    )


def merged(runs: Iterable[EpochRun]) -> tuple[EpochRun, ...]:
    """Runs in order, those of one epoch that touch or overlap made one."""
    epoch_runs: list[EpochRun] = []
    for run in sorted(runs, key=lambda epoch_run: (epoch_run.epoch, epoch_run.start)):
        last = epoch_runs[-1] if epoch_runs else None
        if last is not None and last.epoch == run.epoch and run.start <= last.end:
            epoch_runs[-1] = EpochRun(last.start, max(last.end, run.end), run.epoch)
        else:
            epoch_runs.append(run)
    return tuple(sorted(epoch_runs, key=lambda epoch_run: (epoch_run.start, epoch_run.epoch)))
