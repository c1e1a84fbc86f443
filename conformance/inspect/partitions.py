"""What each replica's log holds, in memory that does not grow with it.

One scan of the batches makes of every replica runs of offsets with one leader epoch, the places
where it is not what a log may be, and a sum for each block of offsets. A second scan reads by row
only the blocks whose sums differ between replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conformance.inspect.evidence import Evidence
from conformance.inspect.history import Key

BLOCK = 1 << 14
"""Offsets of a block."""
_COLUMNS = (
    "broker", "directory", "topic", "partition", "state", "segment", "position", "size", "magic",
    "base_offset", "last_offset", "leader_epoch", "stored_crc", "max_timestamp", "crc_ok",
)  # fmt: skip
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EpochRun:
    """Offsets from `start` to before `end` that a log holds from one leader epoch."""

    start: int
    end: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Irregularity:
    """Two neighbouring batches that no log holds side by side."""

    kind: str
    """gap, overlap, or out-of-order."""
    offset: int
    end: int
    segment: str
    position: int


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """Where a batch begins, for the commands that show its bytes."""

    segment: str
    position: int
    size: int
    base_offset: int
    last_offset: int
    epoch: int
    time: int


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One replica's log as its segments tell it."""

    broker: str
    directory: str
    start: int
    """Where the first segment begins."""
    end: int
    runs: tuple[EpochRun, ...]
    irregularities: tuple[Irregularity, ...]
    sums: Mapping[int, int] = field(compare=False, repr=False)
    batches: int = 0
    oldest_magic: int = 2
    last_time: int = -1
    """The newest timestamp of a record."""
    doubtful: str = ""
    """A batch whose offsets may not be what it says, and why; '' if there is none."""

    def epoch_at(self, offset: int) -> int | None:
        """The leader epoch of the record at an offset; None where there is none."""
        return next((run.epoch for run in self.runs if run.start <= offset < run.end), None)


@dataclass(frozen=True, slots=True)
class DifferingBatches:
    """Batches with the same offsets and leader epoch, and different contents, on two replicas."""

    brokers: tuple[str, str]
    offset: int
    end: int
    epoch: int
    batches: int


@dataclass(slots=True)
class _Piece:
    """Neighbouring batches of one segment, summed up."""

    segment: str
    position: int
    first: int
    last: int
    """Base offset of the first batch, last offset of the last one."""
    runs: list[EpochRun]
    odd: list[Irregularity]
    blocks: dict[int, int]
    batches: int
    magic: int
    time: int
    doubtful: str


@dataclass(slots=True)
class Logs:
    """The logs of every partition, as they come out of the scan."""

    pieces: dict[tuple[Key, str, str], list[_Piece]] = field(default_factory=dict)
    other_states: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """(broker, topic-partition, state) -> batches, of folders and files that no log consists of."""

    def add(self, table: pa.RecordBatch) -> None:
        """Rows in the order of the table: neighbours of one segment are in order."""
        if table.num_rows == 0:
            return
        for begin, end in _groups(table):
            rows = table.slice(begin, end - begin)
            head = {name: rows.column(name)[0].as_py() for name in _COLUMNS[:6]}
            key = (head["topic"], head["partition"])
            if head["state"]:
                name = (head["broker"], f"{key[0]}-{key[1]}", head["state"])
                self.other_states[name] = self.other_states.get(name, 0) + rows.num_rows
                continue
            place = (key, head["broker"], head["directory"])
            self.pieces.setdefault(place, []).append(_piece(head["segment"], rows))

    def logs(self) -> dict[Key, tuple[ReplicaLog, ...]]:
        """Every partition's logs, by broker; two of one broker lie in two of its directories."""
        logs: dict[Key, list[ReplicaLog]] = {}
        for (key, broker, directory), pieces in sorted(self.pieces.items()):
            logs.setdefault(key, []).append(_log(broker, directory, pieces))
        return {key: tuple(logs) for key, logs in logs.items()}


def read_logs(evidence: Evidence) -> Logs:
    """The first scan, of the batches in this evidence."""
    logs = Logs()
    for batch in evidence.dataset("batches").to_batches(columns=list(_COLUMNS)):
        logs.add(batch)
    return logs


def _groups(table: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Where rows of one segment begin and end."""
    changes = np.zeros(table.num_rows, dtype=bool)
    changes[0] = True
    for name in ("broker", "directory", "state", "segment"):
        codes = table.column(name).dictionary_encode().indices.to_numpy()
        changes[1:] |= codes[1:] != codes[:-1]
    starts = np.flatnonzero(changes)
    ends = np.append(starts[1:], table.num_rows)
    yield from zip(starts.tolist(), ends.tolist(), strict=True)


def _numbers(rows: pa.RecordBatch, name: str) -> Int64:
    numbers: Int64 = rows.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _piece(segment: str, rows: pa.RecordBatch) -> _Piece:
    base, last = _numbers(rows, "base_offset"), _numbers(rows, "last_offset")
    epoch, crc = _numbers(rows, "leader_epoch"), _numbers(rows, "stored_crc")
    position = _numbers(rows, "position")
    wrong_crc = pc.equal(rows.column("crc_ok"), False).fill_null(False)
    return _Piece(
        segment,
        int(position[0]),
        int(base[0]),
        int(last[-1]),
        _runs(base, last, epoch),
        _odd(segment, base, last, position, _numbers(rows, "magic")),
        _block_sums(base, last, epoch, crc),
        len(base),
        int(_numbers(rows, "magic").min()),
        int(_numbers(rows, "max_timestamp").max()),
        _doubtful(segment, base, last, position, wrong_crc.to_numpy(zero_copy_only=False)),
    )


def _doubtful(
    segment: str, base: Int64, last: Int64, position: Int64, wrong_crc: npt.NDArray[np.bool_]
) -> str:
    """The first batch whose checksum is wrong, and which does not end where the next one begins.

    The checksum covers the last offset: what such a batch says of it proves nothing.
    """
    places = np.flatnonzero(wrong_crc[:-1] & (base[1:] != last[:-1] + 1))
    if not places.size:
        return ""
    return (
        f"{segment}: the batch at byte {int(position[places[0]])} has a wrong checksum, and does "
        "not end where the next one begins"
    )


def _runs(base: Int64, last: Int64, epoch: Int64) -> list[EpochRun]:
    """Neighbours that touch and have one epoch are one run."""
    breaks = (epoch[1:] != epoch[:-1]) | (base[1:] != last[:-1] + 1)
    starts = np.append(0, np.flatnonzero(breaks) + 1)
    ends = np.append(starts[1:] - 1, len(base) - 1)
    return [
        EpochRun(int(base[s]), int(last[e]) + 1, int(epoch[s]))
        for s, e in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _odd(
    segment: str, base: Int64, last: Int64, position: Int64, magic: Int64
) -> list[Irregularity]:
    """A compressed message of magic 0 or 1 has its last offset only: no gap before it is one."""
    following = base[1:] - last[:-1]
    wrong = np.flatnonzero((following < 1) | ((following > 1) & (magic[1:] > 1)))
    return [
        _between(int(base[i]), int(last[i]), int(base[i + 1]), segment, int(position[i + 1]))
        for i in wrong.tolist()
    ]


def _between(base: int, last: int, following: int, segment: str, position: int) -> Irregularity:
    """What is wrong where a batch is followed by one that does not begin behind it."""
    if following > last + 1:
        return Irregularity("gap", last + 1, following, segment, position)
    kind = "overlap" if following > base else "out-of-order"
    return Irregularity(kind, following, last + 1, segment, position)


def _block_sums(base: Int64, last: Int64, epoch: Int64, crc: Int64) -> dict[int, int]:
    """A sum of the batches that begin in each block, the same in any order of them."""
    first, second, third = (np.uint64(factor) for factor in _MIX)
    with np.errstate(over="ignore"):
        mixed = (base.astype(np.uint64) + first) * second
        mixed ^= (last.astype(np.uint64) + third) * first
        mixed = (mixed ^ (mixed >> np.uint64(29))) * third
        mixed += ((epoch.astype(np.uint64) << np.uint64(32)) ^ crc.astype(np.uint64)) * second
        mixed = (mixed ^ (mixed >> np.uint64(32))) * first
        blocks = base // BLOCK
        order = np.argsort(blocks, kind="stable")
        names, starts = np.unique(blocks[order], return_index=True)
        sums = np.add.reduceat(mixed[order], starts)
    return dict(zip(names.tolist(), sums.tolist(), strict=True))


def _log(broker: str, directory: str, pieces: list[_Piece]) -> ReplicaLog:
    pieces.sort(key=lambda piece: (_segment_base(piece.segment), piece.position))
    runs: list[EpochRun] = []
    odd: list[Irregularity] = []
    sums: dict[int, int] = {}
    before: _Piece | None = None
    for piece in pieces:
        bare = before is not None and piece.first > before.last and piece.magic < 2
        if before is not None and piece.first != before.last + 1 and not bare:
            odd.append(
                _between(before.first, before.last, piece.first, piece.segment, piece.position)
            )
        odd += piece.odd
        _extend(runs, piece.runs)
        for block, amount in piece.blocks.items():
            sums[block] = (sums.get(block, 0) + amount) & (2**64 - 1)
        before = piece
    start = min(_segment_base(pieces[0].segment), runs[0].start)
    return ReplicaLog(
        broker,
        directory,
        start,
        max(run.end for run in runs),
        tuple(runs),
        tuple(odd),
        sums,
        sum(piece.batches for piece in pieces),
        min(piece.magic for piece in pieces),
        max(piece.time for piece in pieces),
        next((piece.doubtful for piece in pieces if piece.doubtful), ""),
    )


def _extend(runs: list[EpochRun], more: Sequence[EpochRun]) -> None:
    if runs and more and runs[-1].end == more[0].start and runs[-1].epoch == more[0].epoch:
        runs[-1] = EpochRun(runs[-1].start, more[0].end, more[0].epoch)
        more = more[1:]
    runs.extend(more)


def _segment_base(path: str) -> int:
    stem = PurePosixPath(path).name.partition(".")[0]
    return int(stem) if stem.isdigit() else 0


# --- the second scan --------------------------------------------------------------------------


def unequal_blocks(logs: Sequence[ReplicaLog], above: Mapping[str, int]) -> set[int]:
    """Blocks in which two replicas hold something, and do not hold the same.

    `above`: by broker the offset up to which its cleaner has rewritten batches.
    """
    result: set[int] = set()
    for number, log in enumerate(logs):
        for other in logs[number + 1 :]:
            floor = max(above.get(log.broker, 0), above.get(other.broker, 0)) // BLOCK
            shared = log.sums.keys() & other.sums.keys()
            result |= {b for b in shared if b >= floor and log.sums[b] != other.sums[b]}
    return result


def read_blocks(
    evidence: Evidence, wanted: Mapping[Key, set[int]]
) -> Iterator[tuple[Key, dict[str, list[BatchPlace]], dict[str, dict[int, int]]]]:
    """The batches of the wanted blocks: per partition, by broker, their places and checksums."""
    if not wanted:
        return
    topics = pa.array(sorted({topic for topic, _ in wanted}))
    where = pc.field("topic").isin(topics) & (pc.field("state") == "")
    rows: dict[Key, dict[str, list[dict[str, Any]]]] = {}
    for batch in evidence.dataset("batches").to_batches(columns=list(_COLUMNS), filter=where):
        blocks = pc.cast(batch.column("base_offset"), pa.int64()).to_numpy() // BLOCK
        partitions = batch.column("partition").to_numpy()
        topic_names = batch.column("topic").to_pylist()
        for index, (topic, partition) in enumerate(zip(topic_names, partitions, strict=True)):
            key = (topic, int(partition))
            if key in wanted and int(blocks[index]) in wanted[key]:
                row = {name: batch.column(name)[index].as_py() for name in _COLUMNS}
                rows.setdefault(key, {}).setdefault(row["broker"], []).append(row)
    for key, by_broker in sorted(rows.items()):
        places = {broker: [_place(row) for row in result] for broker, result in by_broker.items()}
        checksums = {
            broker: {row["base_offset"]: row["stored_crc"] for row in result}
            for broker, result in by_broker.items()
        }
        yield key, places, checksums


def _place(row: Mapping[str, Any]) -> BatchPlace:
    return BatchPlace(
        row["segment"],
        row["position"],
        row["size"],
        row["base_offset"],
        row["last_offset"],
        row["leader_epoch"],
        row["max_timestamp"],
    )


def differing(
    places: Mapping[str, Sequence[BatchPlace]],
    checksums: Mapping[str, Mapping[int, int]],
    above: Mapping[str, int],
) -> list[DifferingBatches]:
    """Ranges in which two replicas have batches of one epoch at one offset that are not equal."""
    batches: list[DifferingBatches] = []
    brokers = sorted(places)
    for number, broker in enumerate(brokers):
        mine = {place.base_offset: place for place in places[broker]}
        for other in brokers[number + 1 :]:
            floor = max(above.get(broker, 0), above.get(other, 0))
            ranges: list[DifferingBatches] = []
            for theirs in sorted(places[other], key=lambda place: place.base_offset):
                ours = mine.get(theirs.base_offset)
                if ours is None or theirs.base_offset < floor or ours.epoch != theirs.epoch:
                    continue
                offset = theirs.base_offset
                if checksums[broker][offset] == checksums[other][offset] and (
                    ours.last_offset == theirs.last_offset
                ):
                    continue
                end = max(ours.last_offset, theirs.last_offset) + 1
                _merge(ranges, DifferingBatches((broker, other), offset, end, ours.epoch, 1))
            batches += ranges
    return batches


def _merge(ranges: list[DifferingBatches], more: DifferingBatches) -> None:
    last = ranges[-1] if ranges else None
    if last is not None and last.end == more.offset and last.epoch == more.epoch:
        ranges[-1] = DifferingBatches(
            last.brokers, last.offset, more.end, last.epoch, last.batches + more.batches
        )
    else:
        ranges.append(more)
