"""Gathers what the tables hold of each partition, for the judgement of one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pyarrow.dataset as ds

from conformance.inspect.abstraction import CacheEntry
from conformance.inspect.evidence import Evidence, about
from conformance.inspect.history import Elections, Key, MetadataHistory, Registration
from conformance.inspect.lines import ServerLogLine
from conformance.inspect.partitions import EpochRun, ReplicaLog
from conformance.inspect.reading.folders import UNREAD_FOLDER
from conformance.inspect.reading.names import INDEXES, NO_SEGMENT, place_of

Place = tuple[str, str]
"""Broker and log directory."""


@dataclass(frozen=True, slots=True)
class ReplicaCopy:
    """What one broker's directory holds of a partition."""

    broker: str
    directory: str
    log: ReplicaLog | None
    """None where the segments hold no batch."""
    base: int
    """Base offset of the last segment: an empty log ends there."""
    written_at: int
    """When a segment was written last, in milliseconds since 1970."""
    path: str
    """The partition's folder below the one that was named for the broker."""
    high_watermark: int | None = None
    high_watermark_at: int = -1
    log_start: int | None = None
    cleaned: int | None = None
    """The cleaner's first dirty offset: below it batches are its own."""
    epoch_cache: tuple[CacheEntry, ...] | None = None
    unread: str = ""
    """A segment that could not be read, or proves nothing, and why; '' if there is none."""
    first: int = 0
    """Base offset of the first segment."""
    recovery_point: int | None = None
    snapshots: tuple[int, ...] = ()
    """Offsets of the producer snapshots, in order."""
    orphans: tuple[str, ...] = ()
    """Index files without a segment."""
    topic_id: str = ""
    """Of partition.metadata; '' where there is none."""

    @property
    def start(self) -> int:
        """The log start offset: checkpointed, or where the first segment begins.

        A checkpoint beyond the log's end is damage, and says nothing of the log.
        """
        first = self.base if self.log is None else self.log.start
        if self.log_start is None or self.log_start > self.end:
            return first
        return max(first, self.log_start)

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.base if self.log is None else max(self.base, self.log.end)


@dataclass(frozen=True, slots=True)
class EpochlessRecords:
    """Records that have a leader epoch on some replicas and none on others: no log of Kafka's."""

    odd: tuple[str, ...]
    """The brokers that differ from the others, or from the one other."""
    others: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class InspectedPartition:
    """One partition, with all that the copies hold of it."""

    key: Key
    copies: Mapping[str, ReplicaCopy]
    """By broker."""
    doubled: tuple[ReplicaCopy, ...]
    """Further logs of the same partition on one of these brokers, in another directory."""
    elections: Elections | None
    snapshots: tuple[Registration, ...]
    """What metadata snapshots say that the metadata log does not."""
    lines: tuple[ServerLogLine, ...]
    compacted: bool
    unread: Mapping[str, str] = field(default_factory=dict)
    """By broker a segment that could not be read, and why: nothing is said of its log."""
    without_epoch: EpochlessRecords | None = None

    @property
    def epochs_from(self) -> int:
        """The offset from which on all records have a leader epoch: older formats have none."""
        ends = [run.end for log in self.logs for run in log.runs if run.epoch < 0]
        return max(ends, default=0)

    @property
    def name(self) -> str:
        """`orders-0`."""
        return f"{self.key[0]}-{self.key[1]}"

    @property
    def topic_ids(self) -> dict[str, str]:
        """By broker, where the folder has one. Several ids: logs of different topics."""
        return {name: copy.topic_id for name, copy in self.copies.items() if copy.topic_id}

    @property
    def is_of_one_topic(self) -> bool:
        """Whether its folders may be copies of each other."""
        return len(set(self.topic_ids.values())) < 2

    @property
    def logs(self) -> tuple[ReplicaLog, ...]:
        """The logs that hold something."""
        return tuple(copy.log for copy in self.copies.values() if copy.log is not None)

    @property
    def cleaned(self) -> dict[str, int]:
        """By broker the offset below which its cleaner has rewritten batches."""
        return {
            name: copy.cleaned for name, copy in self.copies.items() if copy.cleaned is not None
        }


def gather(
    evidence: Evidence,
    keys: Iterable[Key],
    logs: Mapping[Key, tuple[ReplicaLog, ...]],
    controller: MetadataHistory,
    lines: Mapping[Key, list[ServerLogLine]],
) -> dict[Key, InspectedPartition]:
    """Those of the partitions of which a copy holds a folder, or which the controller knows."""
    folders = _folders(evidence, logs)
    whole = replace(evidence, parts=None)
    _checkpoints(whole, folders)
    _beside(evidence, folders)
    _topic_ids(whole, folders)
    return {
        key: _subject(key, folders.get(key, {}), controller, tuple(lines.get(key, ())))
        for key in sorted(keys)
        if key in folders or key in controller.partitions
    }


def _folders(
    evidence: Evidence, logs: Mapping[Key, tuple[ReplicaLog, ...]]
) -> dict[Key, dict[Place, ReplicaCopy]]:
    folders: dict[Key, dict[Place, ReplicaCopy]] = {}
    others: list[tuple[Key, ReplicaCopy]] = []
    for row in evidence.rows("files"):
        if row["kind"] != "segment" or row["status"] == "skipped":
            others += _without_segment(row)
            continue
        place = place_of(row["path"])
        if place.topic is None or place.partition is None or place.state:
            continue
        key, where = (place.topic, place.partition), (row["broker"], row["directory"])
        folder = str(PurePosixPath(row["path"]).parent)
        known = folders.setdefault(key, {}).get(where)
        base = first = place.base_offset
        mtime = row["mtime"]
        if known is not None:
            base, mtime = max(base, known.base), max(mtime, known.written_at)
            first = min(first, known.first)
        unread = f"{row['path']}: {row['reason']}" if row["status"] == "error" else ""
        unread = unread or (known.unread if known is not None else "")
        folders[key][where] = ReplicaCopy(
            *where, None, base, mtime, folder, unread=unread, first=first
        )
    for key, copy in others:
        folders.setdefault(key, {}).setdefault((copy.broker, copy.directory), copy)
    for key, of_partition in logs.items():
        for log in of_partition:
            where = (log.broker, log.directory)
            known = folders.get(key, {}).get(where)
            if known is not None:
                unread = known.unread or log.doubtful
                folders[key][where] = replace(known, log=log, unread=unread)
    return folders


def _without_segment(row: Mapping[str, Any]) -> Iterator[tuple[Key, ReplicaCopy]]:
    """What a file that is no segment tells of its partition's folder, or a folder of itself.

    Where nothing else is read of the folder, it is there, and its log was not read.
    """
    if row["kind"] in INDEXES and row["status"] != "error":
        return  # many, and never alone
    path = row["path"]
    is_folder = row["reason"].startswith(UNREAD_FOLDER)
    place = place_of(f"{path}/-") if is_folder else place_of(path)
    if place.topic is None or place.partition is None or place.state:
        return
    folder = path if is_folder else str(PurePosixPath(path).parent)
    why = f"{path}: {row['reason']}" if row["reason"] else f"{folder} holds no segment"
    copy = ReplicaCopy(row["broker"], row["directory"], None, 0, row["mtime"], folder, unread=why)
    yield (place.topic, place.partition), copy


def _checkpoints(evidence: Evidence, contents: dict[Key, dict[Place, ReplicaCopy]]) -> None:
    caches: dict[tuple[Key, Place], list[CacheEntry]] = {}
    for row in evidence.rows("checkpoints", about(contents)):
        key, where = (row["topic"], row["partition"]), (row["broker"], row["directory"])
        known = contents.get(key, {}).get(where)
        if known is None or row["state"]:
            continue
        match row["kind"]:
            case "replication-offset":
                known = replace(known, high_watermark=row["offset"], high_watermark_at=row["mtime"])
            case "log-start":
                known = replace(known, log_start=row["offset"])
            case "recovery-point":
                known = replace(known, recovery_point=row["offset"])
            case "cleaner":
                known = replace(known, cleaned=row["offset"])
            case "leader-epoch":
                caches.setdefault((key, where), []).append(CacheEntry(row["epoch"], row["offset"]))
        contents[key][where] = known
    for (key, where), entries in caches.items():
        contents[key][where] = replace(contents[key][where], epoch_cache=tuple(entries))


def _beside(evidence: Evidence, entries: dict[Key, dict[Place, ReplicaCopy]]) -> None:
    """Producer snapshots, and index files whose segment is gone."""
    kinds = ds.field("kind").isin(["producer-snapshot", *INDEXES])
    for row in evidence.rows("files", kinds):
        place = place_of(row["path"])
        if place.topic is None or place.partition is None or place.state:
            continue
        folder = entries.get((place.topic, place.partition), {})
        known = folder.get((row["broker"], row["directory"]))
        if known is None:
            continue
        if row["kind"] == "producer-snapshot":
            known = replace(known, snapshots=tuple(sorted((*known.snapshots, place.base_offset))))
        elif row["reason"] == NO_SEGMENT:
            known = replace(known, orphans=(*known.orphans, row["path"]))
        folder[known.broker, known.directory] = known


def _topic_ids(evidence: Evidence, entries: dict[Key, dict[Place, ReplicaCopy]]) -> None:
    ids = {
        (row["broker"], row["path"].rpartition("/")[0]): row["value"]
        for row in evidence.rows("identities", ds.field("kind") == "partition.metadata")
        if row["key"] == "topic_id"
    }
    for folder in entries.values():
        for where, known in folder.items():
            folder[where] = replace(known, topic_id=ids.get((known.broker, known.path), ""))


def _subject(
    key: Key,
    places: Mapping[Place, ReplicaCopy],
    controller: MetadataHistory,
    lines: tuple[ServerLogLine, ...],
) -> InspectedPartition:
    """Of two logs on one broker the longer one is judged."""
    by_broker: dict[str, ReplicaCopy] = {}
    doubled: list[ReplicaCopy] = []
    for _, copy in sorted(places.items()):
        if copy.unread:
            continue
        other = by_broker.get(copy.broker)
        if other is None or copy.end > other.end:
            by_broker[copy.broker] = copy
        if other is not None:
            doubled.append(other if copy.end > other.end else copy)
    differing = _without_epoch(by_broker)
    odd = frozenset(differing.odd if differing is not None else ())
    why = "its records are of another format than those of the other replicas"
    return InspectedPartition(
        key,
        MappingProxyType({name: copy for name, copy in by_broker.items() if name not in odd}),
        tuple(doubled),
        controller.partitions.get(key),
        controller.snapshots.get(key, ()),
        lines,
        key[0] in controller.compacted,
        {place.broker: place.unread for place in places.values() if place.unread}
        | dict.fromkeys(odd, why),
        differing,
    )


def _without_epoch(replica_copies: Mapping[str, ReplicaCopy]) -> EpochlessRecords | None:
    """Followers copy batches as they are: at one offset all replicas have an epoch, or none has."""
    bare = {
        name: [run for run in copy.log.runs if run.epoch < 0]
        for name, copy in replica_copies.items()
        if copy.log is not None
    }
    for name, runs in bare.items():
        for run in runs:
            others = [other for other in bare if _has_epoch(replica_copies[other], run)]
            if others:
                alike = [other for other in bare if other == name or _overlaps(bare[other], run)]
                odd, usual = (alike, others) if len(alike) <= len(others) else (others, alike)
                return EpochlessRecords(tuple(odd), tuple(usual), run.start, run.end)
    return None


def _has_epoch(copy: ReplicaCopy, run: EpochRun) -> bool:
    return copy.log is not None and _overlaps([o for o in copy.log.runs if o.epoch >= 0], run)


def _overlaps(runs: Iterable[EpochRun], run: EpochRun) -> bool:
    return any(epoch_run.start < run.end and run.start < epoch_run.end for epoch_run in runs)
