"""What the files of one replica say of each other: its segments, and what stands beside them.

The rows of `invariants.INVARIANTS` between the files of a folder are asked here, but for those that
are formulas of the specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from conformance.inspect.copies import Copies
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery
from conformance.inspect.history import Key
from conformance.inspect.reading.names import CLUSTER_METADATA
from conformance.inspect.subjects import InspectedPartition, ReplicaCopy

_PRODUCERS = ("broker", "topic", "partition", "producer_id", "last_offset")


def misfits(subject: InspectedPartition, copies: Copies) -> Iterator[Discovery]:
    """Files of each replica that do not fit each other."""
    for copy in subject.copies.values():
        clean = copies[copy.broker].is_clean(copy.directory)
        replica = _Replica(subject, copy, clean)
        yield from replica.log_start()
        yield from replica.beyond_end()
        yield from replica.lacking()
        if clean and subject.key[0] != CLUSTER_METADATA:
            yield from replica.after_a_clean_stop()


@dataclass(frozen=True, slots=True)
class _Replica:
    """One broker's folder of a partition."""

    subject: InspectedPartition
    copy: ReplicaCopy
    clean: bool
    """Whether the broker had stopped in order: then all files of the directory fit together."""

    def discovery(
        self,
        kind: str,
        title: str,
        message: str,
        source: str,
        *,
        offsets: tuple[int, int] | None = None,
        crash: str = "",
    ) -> Discovery:
        """A finding about this replica. `crash`: how an unclean stop explains it, '' if not."""
        subject, copy = self.subject, self.copy
        finding = Discovery(
            kind,
            subject.name,
            f"{subject.name}: {title}",
            message,
            offsets=offsets,
            brokers=(copy.broker,),
            sources=(f"{copy.broker}: {source}",),
            topic=subject.key[0],
            partition=subject.key[1],
        )
        if self.clean or not crash:
            return finding
        return finding.softened(f"{copy.broker} was not shut down in order, and {crash}.")

    def in_directory(self, name: str) -> str:
        """A checkpoint of the log directory."""
        return f"{self.copy.directory}/{name}" if self.copy.directory else name

    # --- where the log begins -----------------------------------------------------------------

    def log_start(self) -> Iterator[Discovery]:
        """The first batches, the first segment and the checkpointed log start."""
        copy, log = self.copy, self.copy.log
        if log is None:
            return
        first = log.runs[0].start
        may_have_holes = self.subject.compacted or first <= (copy.cleaned or 0)
        if first > copy.first and not may_have_holes and log.runs[0].epoch >= 0:
            yield self.discovery(
                "head-gone",
                f"the first batches of {copy.broker} are gone",
                f"The first segment is named for offset {copy.first}, and its first batch begins "
                f"at {first}. A segment is named for its first record, and retention removes whole "
                "segments only.",
                f"{copy.path}/{copy.first:020}.log",
                offsets=(copy.first, first),
            )
        if self.clean and copy.log_start is not None and copy.log_start < copy.first:
            yield self.discovery(
                "head-gone",
                f"the first segments of {copy.broker} are gone",
                f"The log began at {copy.log_start} when the broker stopped in order, and the "
                f"first segment begins at {copy.first}.",
                f"{self.in_directory('log-start-offset-checkpoint')} says {copy.log_start}",
                offsets=(copy.log_start, copy.first),
            )

    # --- what lies beyond the log's end --------------------------------------------------------

    def beyond_end(self) -> Iterator[Discovery]:
        """Checkpoints and producer snapshots that tell of a longer log."""
        copy = self.copy
        for kind, name, offset, meaning, crash in (
            (
                "log-start-beyond-end", "log-start-offset-checkpoint", copy.log_start,
                "Kafka deletes the whole log at the next start, and begins there",
                "the checkpoint is not rewritten when a whole log is truncated",
            ),
            (
                "recovery-point-beyond-end", "recovery-point-offset-checkpoint",
                copy.recovery_point,
                "records below a recovery point were on disk, and are not there any more",
                "a crash between a truncation and the checkpoint leaves it so",
            ),
            (
                "cleaned-beyond-end", "cleaner-offset-checkpoint", copy.cleaned,
                "the cleaner had cleaned records that are not there any more",
                "a crash between a truncation and the checkpoint leaves it so",
            ),
        ):  # fmt: skip
            if offset is not None and offset > copy.end:
                nowhere = all(offset > copy.end for copy in self.subject.copies.values())
                proved = nowhere and kind == "log-start-beyond-end"
                yield self.discovery(
                    kind,
                    f"{name} of {copy.broker} says {offset}, beyond the log's end {copy.end}",
                    f"The log of {copy.broker} ends at {copy.end}: {meaning}.",
                    f"{self.in_directory(name)} says {offset}",
                    offsets=(copy.end, offset),
                    crash="" if proved else crash,
                )
        newest = max(copy.snapshots, default=0)
        if newest > copy.end:
            yield self.discovery(
                "snapshot-beyond-end",
                f"{copy.broker} has a producer snapshot of offset {newest}, beyond the log's end "
                f"{copy.end}",
                "A producer snapshot is taken where the log ends, and a truncation removes those "
                "above it: the log had more than it holds now.",
                f"{copy.path}/{newest:020}.snapshot",
                offsets=(copy.end, newest),
                crash="a crash within a truncation leaves it so",
            )

    # --- what must stand beside a log that holds records -----------------------------------------

    def lacking(self) -> Iterator[Discovery]:
        """Files that every log with records has, and index files without their segment."""
        copy, elections = self.copy, self.subject.elections
        for path in copy.orphans:
            yield self.discovery(
                "orphan-index",
                f"{copy.broker} has an index file without its segment",
                f"{path} stands alone. The records of that segment are gone.",
                path,
                crash="a crash within a deletion leaves it so",
            )
        if copy.log is None:
            return
        if copy.epoch_cache is None and any(run.epoch >= 0 for run in copy.log.runs):
            yield self.discovery(
                "no-epoch-checkpoint",
                f"the leader-epoch-checkpoint of {copy.broker} is missing or empty",
                f"The log of {copy.broker} holds records with leader epochs, and an epoch is "
                "written down before its first record. Kafka starts without any epoch, and "
                "truncates to its high watermark instead of comparing histories.",
                f"{copy.path}/leader-epoch-checkpoint",
            )
        if not copy.topic_id and elections is not None:
            yield self.discovery(
                "no-topic-id",
                f"the folder on {copy.broker} has no partition.metadata",
                f"The topic's id is {elections.topic_id}, which is written down before the first "
                "record. Kafka takes such a folder for a stray one, and sets it aside.",
                f"{copy.path}/partition.metadata",
            )

    # --- what holds once the broker has stopped in order -----------------------------------------

    def after_a_clean_stop(self) -> Iterator[Discovery]:
        """A broker that stops in order flushes everything, and writes each checkpoint anew."""
        copy = self.copy
        end = f"the log ends at {copy.end}"
        if (copy.recovery_point or 0) < copy.end:
            text = "no entry" if copy.recovery_point is None else str(copy.recovery_point)
            finding = self.discovery(
                "recovery-point-behind",
                f"{copy.broker} stopped in order, and its recovery point is not the log's end",
                f"recovery-point-offset-checkpoint has {text}, and {end}: the checkpoint or the "
                "mark of the clean stop is not of this log's time.",
                self.in_directory("recovery-point-offset-checkpoint"),
                offsets=(copy.recovery_point or 0, copy.end),
            )
            if copy.recovery_point is not None:
                yield finding
            else:
                yield finding.softened("the broker may have stopped while it loaded its logs.")
        if copy.log is None:
            return
        if copy.high_watermark is None:
            if self.subject.elections is not None:
                yield self.discovery(
                    "no-high-watermark",
                    f"{copy.broker} stopped in order, and wrote down no high watermark",
                    f"replication-offset-checkpoint has no entry, and {end}: Kafka starts with the "
                    "high watermark at the log's start.",
                    self.in_directory("replication-offset-checkpoint"),
                )
        elif copy.high_watermark < copy.start:
            yield self.discovery(
                "high-watermark-below-start",
                f"the high watermark of {copy.broker} is {copy.high_watermark}, and its log "
                f"begins at {copy.start}",
                "Nothing at or above a high watermark is ever deleted.",
                self.in_directory("replication-offset-checkpoint"),
                offsets=(copy.high_watermark, copy.start),
            )
        newest = max(copy.snapshots, default=None)
        if newest is None or newest < copy.end:
            text = "none is there" if newest is None else f"the newest is of offset {newest}"
            yield self.discovery(
                "snapshot-behind",
                f"{copy.broker} stopped in order without a producer snapshot of the log's end",
                f"A broker takes one when it closes a log; {text}, and {end}. Kafka starts with "
                "what the newest one knows of producers.",
                copy.path,
            )


# --- producer snapshots against the records ------------------------------------------------------


def producers_without_records(
    evidence: Evidence, subjects: Mapping[Key, InspectedPartition]
) -> Iterator[Discovery]:
    """Producer snapshots that name a last record which is not its producer's in the log."""
    claims = {
        tuple(row[name] for name in _PRODUCERS): row["snapshot_offset"]
        for row in evidence.rows("producers")
        if not row["state"] and row["last_offset"] >= 0
    }
    if not claims:
        return
    ids, lasts = (sorted({claim[at] for claim in claims}) for at in (3, 4))
    where = pc.field("producer_id").isin(ids) & pc.field("last_offset").isin(lasts)
    where &= pc.field("state") == ""
    written = set(
        zip(*evidence.table("batches", _PRODUCERS, where).to_pydict().values(), strict=True)
    )
    for claim, snapshot in claims.items():
        broker, topic, partition, producer, last = claim
        subject = subjects.get((topic, partition))
        copy = subject.copies.get(broker) if subject is not None else None
        if subject is None or copy is None or not copy.start <= last < copy.end:
            continue
        may_be_cleaned = subject.compacted or last < (copy.cleaned or 0)
        if last < snapshot and (claim in written or may_be_cleaned):
            continue
        yield _Replica(subject, copy, clean=True).discovery(
            "snapshot-contents",
            f"a producer snapshot of {broker} is not of this log",
            f"By the snapshot of offset {snapshot} the last record of producer {producer} is at "
            f"offset {last}, and the log has no batch of that producer that ends there.",
            f"{copy.path}/{snapshot:020}.snapshot",
            offsets=(last, last + 1),
        )
