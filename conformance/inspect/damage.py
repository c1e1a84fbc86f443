"""What is wrong with the files themselves: within one, and where one does not fit the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from conformance.inspect.copies import Copies
from conformance.inspect.evidence import DAMAGE_KINDS, Evidence
from conformance.inspect.findings import Discovery, Unjudged
from conformance.inspect.history import Controller, Key
from conformance.inspect.partitions import (
    Differing,
    Irregularity,
    differing,
    read_blocks,
    unequal_blocks,
)
from conformance.inspect.subjects import Held, Subject

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
    }
)

METADATA_LOG: Key = ("__cluster_metadata", 0)
_HARMLESS = frozenset({"index-stale"})
_NOT_DECODED = frozenset({"unknown-record"})
_AT_THE_END = frozenset({"torn-tail", "zero-tail"})


def damaged(
    evidence: Evidence, subjects: Mapping[Key, Subject], copies: Copies
) -> Iterator[Discovery | Unjudged]:
    """What the reader found within files."""
    for row in evidence.rows("damage"):
        subject = subjects.get((row["topic"], row["partition"]))
        name = f"{row['broker']}: {row['path']}"
        if row["kind"] in _HARMLESS:
            continue
        if row["kind"] in _NOT_DECODED:
            yield Unjudged(name, KINDS[row["kind"]], row["detail"], matters=True)
            continue
        if row["kind"] in _AT_THE_END and subject is not None:
            reason = _recovery_cuts_it(subject, row["broker"], row["path"], copies)
            if reason:
                yield Unjudged(name, KINDS[row["kind"]], reason)
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


def _recovery_cuts_it(subject: Subject, broker: str, path: str, copies: Copies) -> str:
    """Why a torn end is what a running or killed broker leaves; '' where it is not."""
    held = subject.held.get(broker)
    if held is None or copies[broker].is_clean(held.directory):
        return ""
    if not path.endswith(f"{held.base:020}.log"):
        return ""
    if held.high_watermark is not None and held.end < held.high_watermark:
        return ""
    return (
        f"{broker} was not shut down in order, and nothing below the high watermark is missing: "
        "the broker cuts such an end when it starts"
    )


def irregular(subject: Subject) -> Iterator[Discovery]:
    """Gaps, overlaps and disorder between the batches of one log."""
    for held in subject.held.values():
        for one in held.log.irregularities if held.log else ():
            if one.kind == "gap" and (subject.compacted or one.end <= (held.cleaned or 0)):
                continue
            if one.offset < held.start and one.end <= held.start:
                continue
            yield _irregular(subject, held, one)


def _irregular(subject: Subject, held: Held, one: Irregularity) -> Discovery:
    title = {
        "gap": f"{held.broker} lacks offsets {one.offset} to {one.end - 1}",
        "overlap": f"on {held.broker} two batches hold offsets {one.offset} to {one.end - 1}",
        "out-of-order": f"on {held.broker} offset {one.offset} comes after {one.end - 1}",
    }[one.kind]
    return Discovery(
        one.kind,
        subject.name,
        f"{subject.name}: {title}",
        f"{KINDS[one.kind][0].upper()}{KINDS[one.kind][1:]}: {one.segment} at byte {one.position}.",
        offsets=(one.offset, one.end),
        brokers=(held.broker,),
        sources=(f"{held.broker}: {one.segment}",),
        topic=subject.key[0],
        partition=subject.key[1],
    )


def contents_differ(evidence: Evidence, subjects: Mapping[Key, Subject]) -> Iterator[Discovery]:
    """Batches that should be copies of each other, and are not."""
    wanted: dict[Key, set[int]] = {}
    for key, subject in subjects.items():
        blocks = unequal_blocks(subject.logs, subject.cleaned)
        if blocks:
            wanted[key] = blocks
    for key, places, checksums in read_blocks(evidence, wanted):
        subject = subjects[key]
        for one in _told_once(differing(places, checksums, subject.cleaned)):
            yield _contents_differ(subject, one)


def _told_once(found: Sequence[Differing]) -> Iterator[Differing]:
    """Of three replicas of which one differs, two pairs tell the same: both are kept, in order."""
    yield from sorted(found, key=lambda one: (one.offset, one.brokers))


def _contents_differ(subject: Subject, one: Differing) -> Discovery:
    first, second = one.brokers
    return Discovery(
        "contents-differ",
        subject.name,
        f"{subject.name}: {first} and {second} hold different bytes at offset {one.offset}",
        f"What {first} and {second} hold of epoch {one.epoch} from offset {one.offset} to "
        f"{one.end - 1} should be copies of each other; the checksums or ends of {one.batches} of "
        "the batches differ.",
        offsets=(one.offset, one.end),
        brokers=one.brokers,
        topic=subject.key[0],
        partition=subject.key[1],
    )


def metadata_differs(controller: Controller) -> Iterator[Discovery]:
    """Committed records of the metadata log that are not the same in all copies."""
    for one in controller.disagreements:
        yield Discovery(
            "metadata-differs",
            "__cluster_metadata-0",
            f"__cluster_metadata-0: copies disagree at offset {one.offset}",
            f"{one.detail}.",
            offsets=(one.offset, one.offset + 1),
            topic="__cluster_metadata",
            partition=0,
        )


def misplaced(
    evidence: Evidence, subjects: Mapping[Key, Subject], copies: Copies
) -> Iterator[Discovery | Unjudged]:
    """Folders that should be there and are not; folders of another topic of the same name."""
    ids = _topic_ids(evidence)
    for subject in subjects.values():
        if subject.elections is None:
            continue
        for node in subject.elections.last.replicas:
            broker = copies.name(node)
            if broker not in copies.copies:
                yield Unjudged(subject.name, f"the replica on {broker}", "its files are not here")
            elif broker not in subject.held and broker not in subject.unread:
                yield _missing_log(subject, broker, copies)
        for broker, held in subject.held.items():
            found = ids.get((broker, held.path), subject.elections.topic_id)
            if found != subject.elections.topic_id:
                yield Discovery(
                    "other-topic",
                    subject.name,
                    f"{subject.name}: the folder on {broker} is of another topic",
                    f"Its topic id is {found}; the controller's topic of that name has "
                    f"{subject.elections.topic_id}.",
                    brokers=(broker,),
                    sources=(f"{broker}: {held.path}/partition.metadata",),
                    topic=subject.key[0],
                    partition=subject.key[1],
                )


def _topic_ids(evidence: Evidence) -> dict[tuple[str, str], str]:
    return {
        (row["broker"], row["path"].rpartition("/")[0]): row["value"]
        for row in evidence.rows("identities")
        if row["kind"] == "partition.metadata" and row["key"] == "topic_id"
    }


def _missing_log(subject: Subject, broker: str, copies: Copies) -> Discovery:
    found = Discovery(
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
        return found.softened("the partition may be younger than the copy.")
    return found
