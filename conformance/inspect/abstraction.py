"""From offsets to the specification's: a partition's evidence as values of spec/Replication.tla.

The offsets of all replicas are cut wherever anything changes on any of them: a leader epoch, an
end, a high watermark, an entry of an epoch cache. What lies between two cuts is the same on every
replica, so it becomes one record, and offsets become numbers of cuts. Leader epochs are numbered in
their order. The formulas compare offsets and epochs, and count neither.

Long logs are judged in windows of cuts. Windows overlap by one record: two logs that agree on a
record of one window agree on its first one, which is the last one of the window before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from conformance.inspect.partitions import EpochRun
from conformance.tla import Value, make_function

NOBODY = "none"
"""The specification's NoLeader."""
NO_EPOCH = -1
WINDOW = 48
"""Records of a window: some formulas look at all pairs and triples of them."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A line of leader-epoch-checkpoint."""

    epoch: int
    start: int


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica as it is judged: its log without holes."""

    start: int
    end: int
    runs: tuple[EpochRun, ...]
    high_watermark: int
    epoch_cache: tuple[CacheEntry, ...]
    latest_epoch: int = NO_EPOCH
    """The newest leader epoch that it has heard of."""
    present: bool = True
    leads: bool = False


ABSENT = ReplicaState(0, 0, (), 0, (), present=False)


@dataclass(frozen=True, slots=True)
class RegisteredPartition:
    """The controller's registration, with brokers by name."""

    leader: str
    leader_epoch: int
    isr: frozenset[str]
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class PartitionMoment:
    """What is judged together: the replicas at one time, the registration, what was exposed."""

    registered: RegisteredPartition
    replicas: Mapping[str, ReplicaState]
    exposed: tuple[EpochRun, ...] = ()
    """Records that were below a leader's high watermark and are owed to consumers."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a moment as values, and what its offsets and epochs stand for."""

    values: Mapping[str, Value]
    cuts: tuple[int, ...]
    """Real offset of each abstract one."""
    epochs: tuple[int, ...]
    """Real leader epoch of each abstract one."""

    @property
    def scale(self) -> str:
        """What abstract offsets and epochs stand for, in words."""
        offsets = ", ".join(f"{number} is {real}" for number, real in enumerate(self.cuts))
        epochs = ", ".join(f"{number} is {real}" for number, real in enumerate(self.epochs))
        return f"offset {offsets}; leader epoch {epochs}"


def windows(
    moment: PartitionMoment, *, size: int = WINDOW, merged: bool = True
) -> Iterator[Window]:
    """The moment's windows; one with every offset for itself where `merged` is False."""
    epochs = _epochs(moment)
    cuts = _cuts(moment) if merged else _all_offsets(moment)
    if not merged or len(cuts) <= size + 1:
        yield _window(moment, cuts, epochs)
        return
    for begin in range(0, len(cuts) - 1, size - 1):
        part = cuts[begin : begin + size + 1]
        if len(part) > 1:
            yield _window(_clipped(moment, part[0], part[-1]), part, epochs)


def _epochs(moment: PartitionMoment) -> tuple[int, ...]:
    result = {moment.registered.leader_epoch, 0}
    result |= {run.epoch for run in moment.exposed}
    for replica in moment.replicas.values():
        result |= {run.epoch for run in replica.runs}
        result |= {entry.epoch for entry in replica.epoch_cache}
        result.add(replica.latest_epoch)
    return tuple(sorted(result - {NO_EPOCH}))


def _cuts(moment: PartitionMoment) -> tuple[int, ...]:
    result = {run.start for run in moment.exposed} | {run.end for run in moment.exposed}
    for replica in moment.replicas.values():
        if replica.present:
            result |= {replica.start, replica.end, replica.high_watermark}
            result |= {offset for run in replica.runs for offset in (run.start, run.end)}
            result |= {entry.start for entry in replica.epoch_cache}
    return tuple(sorted(result)) or (0,)


def _all_offsets(moment: PartitionMoment) -> tuple[int, ...]:
    cuts = _cuts(moment)
    return tuple(range(cuts[0], cuts[-1] + 1))


def _clipped(moment: PartitionMoment, low: int, high: int) -> PartitionMoment:
    """What of the moment lies between two offsets."""
    return replace(
        moment,
        replicas={name: _cut(replica, low, high) for name, replica in moment.replicas.items()},
        exposed=_between(moment.exposed, low, high),
    )


def _cut(replica: ReplicaState, low: int, high: int) -> ReplicaState:
    """As ReplicationLog's AdvanceLogStart and TruncateTo would leave it.

    A high watermark outside of the log stays outside on the side where it was.
    """
    if not replica.present:
        return replica
    start, end = min(max(replica.start, low), high), max(min(replica.end, high), low)
    return replace(
        replica,
        start=start,
        end=max(start, end),
        runs=_between(replica.runs, low, high),
        high_watermark=min(max(replica.high_watermark, low), high),
        epoch_cache=_cache_between(replica, low, high),
    )


def _cache_between(replica: ReplicaState, low: int, high: int) -> tuple[CacheEntry, ...]:
    kept = [
        entry for entry in replica.epoch_cache if low < entry.start < high or entry.start == high
    ]
    if replica.end > high or replica.end < low:
        kept = [entry for entry in kept if entry.start < high]
    before = [entry for entry in replica.epoch_cache if entry.start <= low]
    if before and replica.end > low:
        kept.insert(0, CacheEntry(before[-1].epoch, max(low, before[-1].start)))
    elif before and before[-1].start == low == replica.end:
        kept.insert(0, before[-1])
    return tuple(kept)


def _between(runs: Sequence[EpochRun], low: int, high: int) -> tuple[EpochRun, ...]:
    return tuple(
        EpochRun(max(run.start, low), min(run.end, high), run.epoch)
        for run in runs
        if run.start < high and run.end > low
    )


def _window(moment: PartitionMoment, cuts: tuple[int, ...], epochs: tuple[int, ...]) -> Window:
    scale = _Scale(cuts, epochs)
    names, states = list(moment.replicas), moment.replicas
    registered = moment.registered

    def each(value: Mapping[str, Value]) -> Value:
        return make_function(dict(value.items()))

    log = {name: scale.log(states[name]) for name in names}
    values: dict[str, Value] = {
        "registration": make_function(
            {
                "leader": registered.leader,
                "leaderEpoch": scale.epoch(registered.leader_epoch),
                "isr": registered.isr,
                "partitionEpoch": registered.partition_epoch,
            }
        ),
        "online": each({name: states[name].present for name in names}),
        "leaderEpoch": each({name: scale.epoch(states[name].latest_epoch) for name in names}),
        "leader": each({name: name if states[name].leads else NOBODY for name in names}),
        "log": each(log),
        "logStartOffset": each({name: scale.offset(states[name].start) for name in names}),
        "highWatermark": each({name: scale.offset(states[name].high_watermark) for name in names}),
        "epochCache": each({name: scale.cache(states[name]) for name in names}),
        "fetchState": each(dict.fromkeys(names, "None")),  # of a process, not of its files
        "fetchOffset": each(dict.fromkeys(names, 0)),
        "exposed": frozenset(scale.records(moment.exposed)),
    }
    return Window(MappingProxyType(values), cuts, epochs)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Real offsets and epochs to abstract ones."""

    cuts: tuple[int, ...]
    epochs: tuple[int, ...]

    def offset(self, real: int) -> int:
        return bisect_left(self.cuts, real)

    def epoch(self, real: int) -> int:
        return NO_EPOCH if real == NO_EPOCH else bisect_left(self.epochs, real)

    def log(self, replica: ReplicaState) -> Value:
        """One record for each part between two cuts."""
        records: list[Value] = []
        for run in replica.runs:
            records += [self.epoch(run.epoch)] * (self.offset(run.end) - self.offset(run.start))
        return tuple(records)

    def cache(self, replica: ReplicaState) -> Value:
        return tuple(
            make_function({"epoch": self.epoch(entry.epoch), "start": self.offset(entry.start)})
            for entry in replica.epoch_cache
        )

    def records(self, runs: Sequence[EpochRun]) -> Iterator[Value]:
        for run in runs:
            for offset in range(self.offset(run.start), self.offset(run.end)):
                yield make_function({"offset": offset, "epoch": self.epoch(run.epoch)})
