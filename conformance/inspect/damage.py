"""What is wrong with the files themselves: within one, and where one does not fit the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from conformance.inspect.copies import Copies, Copy
from conformance.inspect.evidence import DAMAGE_KINDS, Evidence
from conformance.inspect.findings import Discovery, UnjudgedSubject
from conformance.inspect.history import Key, MetadataHistory, Registration
from conformance.inspect.partitions import (
    DifferingBatches,
    Irregularity,
    differing,
    read_blocks,
    unequal_blocks,
)
from conformance.inspect.subjects import InspectedPartition, ReplicaCopy

KINDS: Mapping[str, str] = MappingProxyType(
    {
        **DAMAGE_KINDS,
        "gap": "offsets that no batch of the log holds, in a topic that is not compacted",
        "overlap": "a batch that begins at or below the end of the batch before it",
        "out-of-order": "a batch whose offsets lie below those of the batch before it",
        "contents-differ": "batches of one epoch at one offset whose bytes differ between replicas",
        "metadata-differs": "copies of the metadata log with different committed records",
        "missing-log": "a replica that the controller knows, of which its broker has no folder",
        "other-topic": "a folder whose topic id is not that of the topic with its name",
        "two-logs": "one partition in two log directories of a broker",
        "not-a-replica": "a log on a broker that the controller never had among the replicas",
        "without-epoch": "records without a leader epoch where the other replicas have one",
        "head-gone": "the first records of a log are gone, which retention did not remove",
        "log-start-beyond-end": "a checkpointed log start beyond the log's end",
        "recovery-point-beyond-end": "a recovery point beyond the log's end",
        "recovery-point-behind": "a clean stop, and a recovery point that is not the log's end",
        "cleaned-beyond-end": "the cleaner's checkpoint is beyond the log's end",
        "snapshot-beyond-end": "a producer snapshot beyond the log's end",
        "snapshot-behind": "a clean stop, and no producer snapshot of the log's end",
        "snapshot-contents": "a producer snapshot whose producers the log does not bear out",
        "orphan-index": "an index file without its segment",
        "no-epoch-checkpoint": "records with leader epochs, and no leader-epoch-checkpoint",
        "no-topic-id": "a partition's folder without partition.metadata",
        "no-high-watermark": "a clean stop, and no checkpointed high watermark",
        "high-watermark-below-start": "a clean stop, and a high watermark below the log's start",
        "older-than-its-log": "a replica's log ends below what its broker's server log says",
        "older-than-the-controller": "a replica's log ends below what the controller attests",
        "older-than-its-registration": "a copy from before its broker registered last",
        "foreign-marker": "a mark of a clean stop that is not of this broker's last run",
        "other-cluster": "a folder of another cluster",
        "other-node": "a log directory that another broker has registered",
        "unknown-directory": "a log directory that its broker never registered",
        "same-node-id": "two brokers with one node id",
        "same-directory": "two log directories with one directory id",
        "identity-differs": "log directories of one broker with different node or cluster ids",
        "no-meta-properties": "a log directory without meta.properties",
        "empty-folder": "a broker's folder that holds nothing of a broker",
        "no-metadata-log": "a broker's folder without __cluster_metadata, which others have",
        "no-metadata-snapshot": "a metadata log that begins above every snapshot beside it",
        "quorum-state-behind": "a quorum-state that is older than the metadata log beside it",
        "two-quorum-leaders": "nodes that name two leaders of the controllers' quorum in one epoch",
        "other-directory": "a log in another directory than the controller has assigned",
    }
)

METADATA_LOG: Key = ("__cluster_metadata", 0)
_HARMLESS = frozenset({"index-stale"})
_NOT_DECODED = frozenset({"unknown-record"})
_MENDED = {
    "torn-tail": "the broker cuts such an end when it starts",
    "zero-tail": "the broker cuts such an end when it starts",
    "txnindex-missing": "the broker makes the entries of its last segment anew when it starts",
}
"""What a broker that was not stopped in order does at its next start."""


def damaged(
    evidence: Evidence, subjects: Mapping[Key, InspectedPartition], copies: Copies
) -> Iterator[Discovery | UnjudgedSubject]:
    """What the reader found within files."""
    for row in evidence.rows("damage"):
        subject = subjects.get((row["topic"], row["partition"]))
        name = f"{row['broker']}: {row['path']}"
        if row["kind"] in _HARMLESS:
            continue
        if row["kind"] in _NOT_DECODED:
            yield UnjudgedSubject(name, KINDS[row["kind"]], row["detail"], matters=True)
            continue
        mended = _MENDED.get(row["kind"], "")
        if mended and subject is not None:
            reason = _recovery_mends_it(subject, row["broker"], row["path"], copies)
            if reason:
                yield UnjudgedSubject(name, KINDS[row["kind"]], f"{reason}: {mended}")
                continue
        yield _damage(row, name)


def _damage(row: Mapping[str, object], name: str) -> Discovery:
    kind, offset = str(row["kind"]), row["offset"]
    where = "" if row["position"] is None else f" at byte {row['position']}"
    return Discovery(
        kind,
        name,
        f"{name}: {kind}{where}",
        f"{KINDS[kind][0].upper()}{KINDS[kind][1:]}: {row['detail']}.",
        offsets=(offset, offset + 1) if isinstance(offset, int) and offset >= 0 else None,
        brokers=(str(row["broker"]),),
        sources=(name,),
        topic=str(row["topic"] or ""),
        partition=row["partition"] if isinstance(row["partition"], int) else -1,
    )


def _recovery_mends_it(subject: InspectedPartition, broker: str, path: str, copies: Copies) -> str:
    """Why a torn end is what a running or killed broker leaves; '' where it is not."""
    copy = subject.copies.get(broker)
    if copy is None or copies[broker].is_clean(copy.directory):
        return ""
    if not path.endswith(f"{copy.base:020}.log"):
        return ""
    if copy.high_watermark is not None and copy.end < copy.high_watermark:
        return ""
    return f"{broker} was not shut down in order, and nothing below the high watermark is missing"


def irregular(subject: InspectedPartition) -> Iterator[Discovery]:
    """Gaps, overlaps and disorder between the batches of one log."""
    cleaned = max(subject.cleaned.values(), default=0)  # followers copy the holes of their leader
    for copy in subject.copies.values():
        for irregularity in copy.log.irregularities if copy.log else ():
            if irregularity.kind == "gap" and (subject.compacted or irregularity.end <= cleaned):
                continue
            if irregularity.offset < copy.start and irregularity.end <= copy.start:
                continue
            yield _irregular(subject, copy, irregularity)


def _irregular(
    subject: InspectedPartition, copy: ReplicaCopy, irregularity: Irregularity
) -> Discovery:
    first, last = irregularity.offset, irregularity.end - 1
    title = {
        "gap": f"{copy.broker} lacks offsets {first} to {last}",
        "overlap": f"on {copy.broker} two batches hold offsets {first} to {last}",
        "out-of-order": f"on {copy.broker} offset {first} comes after {last}",
    }[irregularity.kind]
    return Discovery(
        irregularity.kind,
        subject.name,
        f"{subject.name}: {title}",
        f"{KINDS[irregularity.kind][0].upper()}{KINDS[irregularity.kind][1:]}: "
        f"{irregularity.segment} at byte {irregularity.position}.",
        offsets=(irregularity.offset, irregularity.end),
        brokers=(copy.broker,),
        sources=(f"{copy.broker}: {irregularity.segment}",),
        topic=subject.key[0],
        partition=subject.key[1],
    )


def without_epoch(subject: InspectedPartition) -> Iterator[Discovery]:
    """Replicas whose batches are of another format than the copies of the same records."""
    records = subject.without_epoch
    if records is None:
        return
    odd, others = " and ".join(records.odd), " and ".join(records.others)
    equal = len(records.odd) == len(records.others)
    yield Discovery(
        "without-epoch",
        subject.name,
        f"{subject.name}: {odd} and {others} hold records of different formats from offset "
        f"{records.start} on",
        f"Between offsets {records.start} and {records.end - 1} some hold records with a leader "
        "epoch "
        "(magic 2) and some without (magic 0 or 1, or epoch -1). Followers copy batches as they "
        f"are. Nothing else is said of the log of {odd}.",
        offsets=(records.start, records.end),
        brokers=(*records.odd, *records.others) if equal else records.odd,
        topic=subject.key[0],
        partition=subject.key[1],
    )


def contents_differ(
    evidence: Evidence, subjects: Mapping[Key, InspectedPartition]
) -> Iterator[Discovery]:
    """Batches that should be copies of each other, and are not."""
    wanted: dict[Key, set[int]] = {}
    for key, subject in subjects.items():
        blocks = unequal_blocks(subject.logs, subject.cleaned)
        if blocks and subject.is_of_one_topic:
            wanted[key] = blocks
    for key, places, checksums in read_blocks(evidence, wanted):
        subject = subjects[key]
        for batches in _told_once(differing(places, checksums, subject.cleaned)):
            yield _contents_differ(subject, batches)


def _told_once(batches: Sequence[DifferingBatches]) -> Iterator[DifferingBatches]:
    """Of three replicas of which one differs, two pairs tell the same: both are kept, in order."""
    yield from sorted(batches, key=lambda batches: (batches.offset, batches.brokers))


def _contents_differ(subject: InspectedPartition, batches: DifferingBatches) -> Discovery:
    first, second = batches.brokers
    return Discovery(
        "contents-differ",
        subject.name,
        f"{subject.name}: {first} and {second} hold different bytes at offset {batches.offset}",
        f"What {first} and {second} hold of epoch {batches.epoch} from offset {batches.offset} to "
        f"{batches.end - 1} should be copies of each other; the checksums or ends of "
        f"{batches.batches} of "
        "the batches differ.",
        offsets=(batches.offset, batches.end),
        brokers=batches.brokers,
        topic=subject.key[0],
        partition=subject.key[1],
    )


def metadata_differs(controller: MetadataHistory) -> Iterator[Discovery]:
    """Committed records of the metadata log that are not the same in all copies."""
    for disagreement in controller.disagreements:
        yield Discovery(
            "metadata-differs",
            "__cluster_metadata-0",
            f"__cluster_metadata-0: copies disagree at offset {disagreement.offset}",
            f"{disagreement.detail}.",
            offsets=(disagreement.offset, disagreement.offset + 1),
            topic="__cluster_metadata",
            partition=0,
        )


def misplaced(
    subjects: Mapping[Key, InspectedPartition], copies: Copies
) -> Iterator[Discovery | UnjudgedSubject]:
    """Folders that should be there and are not, or are not what the controller knows."""
    for subject in subjects.values():
        if subject.elections is None:
            if not subject.is_of_one_topic:
                yield _several_topics(subject)
            continue
        for node in subject.elections.last.replicas:
            broker = copies.name(node)
            if broker not in copies.copies:
                yield UnjudgedSubject(
                    subject.name, f"the replica on {broker}", "its files are not here"
                )
            elif broker not in subject.copies and broker not in subject.unread:
                yield _missing_log(subject, broker, copies)
        for broker, copy in subject.copies.items():
            own = copies[broker].node
            if own is not None and own not in subject.elections.ever:
                yield _not_a_replica(subject, broker, copy)
            elsewhere = _assigned(subject.elections.last, copies[broker])
            if elsewhere is not None and elsewhere != copy.directory:
                yield _other_directory(subject, copy, elsewhere)
            if copy.topic_id not in ("", subject.elections.topic_id):
                yield Discovery(
                    "other-topic",
                    subject.name,
                    f"{subject.name}: the folder on {broker} is of another topic",
                    f"Its topic id is {copy.topic_id}; the controller's topic of that name has "
                    f"{subject.elections.topic_id}.",
                    brokers=(broker,),
                    sources=(f"{broker}: {copy.path}/partition.metadata",),
                    topic=subject.key[0],
                    partition=subject.key[1],
                )


def _several_topics(subject: InspectedPartition) -> Discovery:
    """Of folders of which no controller says whose topic is the partition's."""
    ids = ", ".join(f"{broker} has {topic_id}" for broker, topic_id in subject.topic_ids.items())
    return Discovery(
        "other-topic",
        subject.name,
        f"{subject.name}: the folders are of different topics",
        f"Their topic ids differ: {ids}. The logs are no copies of each other, and are not "
        "compared.",
        brokers=tuple(subject.topic_ids),
        sources=tuple(
            f"{broker}: {subject.copies[broker].path}/partition.metadata"
            for broker in subject.topic_ids
        ),
        topic=subject.key[0],
        partition=subject.key[1],
    )


def _assigned(last: Registration, copy: Copy) -> str | None:
    """The log directory that the controller has assigned to a broker's replica, if it is here."""
    given = dict(zip(last.replicas, last.directories, strict=False))
    wanted = None if copy.node is None else given.get(copy.node)
    result = [directory for directory, id_ in copy.directory_ids.items() if id_ == wanted]
    return result[0] if len(result) == 1 else None


def _other_directory(subject: InspectedPartition, copy: ReplicaCopy, assigned: str) -> Discovery:
    return Discovery(
        "other-directory",
        subject.name,
        f"{subject.name}: {copy.broker} has it in another log directory than the controller",
        f"It lies in {copy.directory or '.'}, and is assigned to {assigned or '.'}: if the first "
        "one failed, the controller would keep the replica.",
        brokers=(copy.broker,),
        sources=(f"{copy.broker}: {copy.path}",),
        topic=subject.key[0],
        partition=subject.key[1],
    ).softened("a move between directories may not have been finished (KIP-858).")


def _not_a_replica(subject: InspectedPartition, broker: str, copy: ReplicaCopy) -> Discovery:
    assert subject.elections is not None
    replicas = ", ".join(map(str, subject.elections.last.replicas))
    discovery = Discovery(
        "not-a-replica",
        subject.name,
        f"{subject.name}: {broker} has a log of it, and was never one of its replicas",
        f"The controller's replicas are {replicas}. The folder is of another broker, or of another "
        "cluster.",
        brokers=(broker,),
        sources=(f"{broker}: {copy.path}",),
        topic=subject.key[0],
        partition=subject.key[1],
    )
    if subject.elections.whole:
        return discovery
    return discovery.softened("the metadata log that is here does not reach back to its creation.")


def _missing_log(subject: InspectedPartition, broker: str, copies: Copies) -> Discovery:
    discovery = Discovery(
        "missing-log",
        subject.name,
        f"{subject.name}: {broker} has no folder of it",
        f"The controller has {broker} among the partition's replicas.",
        brokers=(broker,),
        topic=subject.key[0],
        partition=subject.key[1],
    )
    assert subject.elections is not None
    created, copy = subject.elections.registrations[0].time, copies[broker]
    if created > copy.copied_at - copy.window:
        return discovery.softened("the partition may be younger than the copy.")
    return discovery
