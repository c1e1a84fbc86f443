"""Faults planted in copies of real directories, to see that each is found.

A fault changes files of one broker (of all of them, where a consistent lie is wanted) as bad disks,
restores from the wrong backup and careless hands do. What a fault is says which findings tell it;
at which broker, and where it has one at which offset.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType

from conformance.inspect.reading import records
from conformance.kafka.batches import sealed
from tests.planted.faults_between import between
from tests.planted.sites import (
    REPLICATION,
    Batch,
    Fault,
    Planted,
    Site,
    overwrite,
    read_cache,
    write_cache,
)

# --- faults of one log -----------------------------------------------------------------------


def _cut_between(site: Site, broker: str) -> Planted:
    cut = site.some_batch(broker)
    with site.log(broker).open("r+b") as file:
        file.truncate(cut.position)
    return Planted("cut-between-batches", (broker,), cut.base, f"cut at byte {cut.position}")


def _cut_within(site: Site, broker: str) -> Planted:
    cut = site.some_batch(broker)
    at = cut.position + site.draw.randrange(1, cut.size)
    with site.log(broker).open("r+b") as file:
        file.truncate(at)
    return Planted("cut-within-a-batch", (broker,), cut.base, f"cut at byte {at}")


def _flip(site: Site, broker: str) -> Planted:
    hit = site.some_batch(broker)
    at = hit.position + site.draw.randrange(21, hit.size)
    byte = site.log(broker).read_bytes()[at]
    overwrite(site.log(broker), at, bytes([byte ^ 1 << site.draw.randrange(8)]))
    return Planted("flipped-bit", (broker,), hit.base, f"byte {at}")


def _epoch_of_batch(site: Site, broker: str) -> Planted:
    hit = site.some_batch(broker)
    other = site.draw.choice([e for e in (*range(6), 40) if e != hit.epoch])
    overwrite(site.log(broker), hit.position + 12, struct.pack(">i", other))
    return Planted("changed-epoch", (broker,), hit.base, f"epoch {hit.epoch} became {other}")


def _base_offset(site: Site, broker: str) -> Planted:
    hit = site.some_batch(broker)
    other = hit.base + site.draw.choice([-3, -1, 1, 2, 1000])
    overwrite(site.log(broker), hit.position, struct.pack(">q", max(other, 0)))
    return Planted("changed-base-offset", (broker,), None, f"offset {hit.base} became {other}")


def _spliced(
    site: Site, broker: str, kind: str, change: Callable[[bytes, bytes, bytes], bytes]
) -> Planted:
    """The segment with two neighbouring batches changed."""
    every = site.batches(broker)
    number = site.draw.randrange(1, len(every) - 2)
    one, two = every[number], every[number + 1]
    data = site.log(broker).read_bytes()
    first = data[one.position : one.position + one.size]
    second = data[two.position : two.position + two.size]
    middle = change(first, second, b"")
    site.log(broker).write_bytes(data[: one.position] + middle + data[two.position + two.size :])
    return Planted(kind, (broker,), None, f"batches at offsets {one.base} and {two.base}")


def _removed(site: Site, broker: str) -> Planted:
    return _spliced(site, broker, "removed-batch", lambda first, _second, _none: first)


def _doubled(site: Site, broker: str) -> Planted:
    return _spliced(
        site, broker, "doubled-batch", lambda first, second, _none: first + first + second
    )


def _swapped(site: Site, broker: str) -> Planted:
    return _spliced(site, broker, "swapped-batches", lambda first, second, _none: second + first)


def _zeros(site: Site, broker: str) -> Planted:
    hit = site.some_batch(broker)
    size = site.log(broker).stat().st_size
    overwrite(site.log(broker), hit.position, bytes(size - hit.position))
    return Planted("zero-filled-tail", (broker,), hit.base, f"zeros from byte {hit.position}")


def _other_contents(site: Site, broker: str) -> Planted:
    hit = site.some_batch(broker)
    data = site.log(broker).read_bytes()[hit.position : hit.position + hit.size]
    at = data.index(b"order") if b"order" in data else hit.size - 2
    overwrite(site.log(broker), hit.position, sealed(data[:at] + b"OTHER"[:5] + data[at + 5 :]))
    return Planted("other-contents", (broker,), hit.base, "a valid batch with another record")


def _foreign_segment(site: Site, broker: str) -> Planted:
    shutil.copyfile(site.log(broker, "__consumer_offsets"), site.log(broker))
    return Planted("segment-of-another-partition", (broker,), None, "of __consumer_offsets-0")


def _swapped_segments(site: Site, broker: str) -> Planted:
    """Segments of two replicas change places: each is whole, and is another partition's."""
    other = site.draw.choice([one for one in site.brokers if one != broker])
    mine, theirs = site.log(broker), site.log(other, "__consumer_offsets")
    held = mine.read_bytes()
    shutil.copyfile(theirs, mine)
    theirs.write_bytes(held)
    return Planted(
        "swapped-segments", (broker, other), None, f"with __consumer_offsets-0 of {other}"
    )


def _suffix_of_another_history(site: Site, broker: str) -> Planted:
    """Swapped segments: from an offset on the log is that of another leader, checksums valid."""
    hit = site.some_batch(broker, margin=3)
    data = bytearray(site.log(broker).read_bytes())
    for batch in site.batches(broker):
        if batch.base >= hit.base:
            part = bytes(data[batch.position : batch.position + batch.size])
            part = part[:12] + struct.pack(">i", 3 + batch.epoch) + part[16:]
            data[batch.position : batch.position + batch.size] = part
    site.log(broker).write_bytes(data)
    return Planted("swapped-suffix", (broker,), hit.base, f"later epochs from offset {hit.base}")


def _no_folder(site: Site, broker: str) -> Planted:
    shutil.rmtree(site.log(broker).parent)
    return Planted("missing-folder", (broker,), None, "the partition's folder is gone")


def _empty_segment(site: Site, broker: str) -> Planted:
    site.log(broker).write_bytes(b"")
    return Planted("emptied-segment", (broker,), 0, "the segment is empty")


# --- faults of what stands beside the log -----------------------------------------------------


def _old_cache(site: Site, broker: str) -> Planted:
    path, entries = read_cache(site, broker)
    end = site.batches(broker)[-1].last + 1
    written = [entry for entry in entries if entry[1] < end]
    left = site.draw.randrange(1, len(written))
    write_cache(path, written[:left])
    return Planted(
        "epoch-checkpoint-of-before", (broker,), written[left][1], f"{left} entries left"
    )


def _moved_cache(site: Site, broker: str) -> Planted:
    path, entries = read_cache(site, broker)
    end = site.batches(broker)[-1].last + 1
    number = site.draw.randrange(1, len([entry for entry in entries if entry[1] < end]))
    epoch, start = entries[number]
    entries[number] = (epoch, start - site.draw.randrange(1, 5))
    write_cache(path, entries)
    return Planted(
        "epoch-checkpoint-moved", (broker,), None, f"epoch {epoch} at {entries[number][1]}"
    )


def _later_cache(site: Site, broker: str) -> Planted:
    path, entries = read_cache(site, broker)
    end = site.batches(broker)[-1].last + 1
    newest = max(entries)[0] + site.draw.randrange(5, 20)
    kept = [entry for entry in entries if entry[1] < end - 2]
    write_cache(path, [*kept, (newest, end - 1)])
    return Planted("epoch-checkpoint-of-later", (broker,), None, f"epoch {newest} at {end - 1}")


def _high_watermark(site: Site, broker: str) -> Planted:
    path = site.data(broker) / REPLICATION
    old, more = site.high_watermark(broker), site.draw.randrange(1, 500)
    text = path.read_text("utf-8")
    path.write_text(text.replace(f"{site.topic} 0 {old}", f"{site.topic} 0 {old + more}"), "utf-8")
    return Planted("high-watermark-beyond-end", (broker,), old, f"{old} became {old + more}")


def _checkpoint_text(site: Site, broker: str) -> Planted:
    path = site.data(broker) / site.draw.choice([REPLICATION, "recovery-point-offset-checkpoint"])
    text = path.read_text("utf-8")
    path.write_text(text.replace("\n", "\nx", 2), "utf-8")
    return Planted("unreadable-checkpoint", (broker,), None, path.name)


def _topic_id(site: Site, broker: str) -> Planted:
    path = site.log(broker).parent / "partition.metadata"
    text = path.read_text("utf-8")
    head, _, _ = text.partition("topic_id: ")
    path.write_text(f"{head}topic_id: AAAAAAAAAAAAAAAAAAAAAQ\n", "utf-8")
    return Planted("topic-id", (broker,), None, "another topic's")


# --- faults of the internal topics ------------------------------------------------------------


def _metadata(site: Site, broker: str) -> Planted:
    """A committed metadata record with a valid checksum that is not what the others have."""
    path = site.log(broker, "__cluster_metadata")
    data = path.read_bytes()
    names = [b for b in site.batches(broker, "__cluster_metadata")
             if site.topic.encode() in data[b.position : b.position + b.size]]  # fmt: skip
    hit = names[0]
    part = data[hit.position : hit.position + hit.size]
    changed = part.replace(site.topic.encode(), site.topic.upper().encode())
    overwrite(path, hit.position, sealed(changed))
    return Planted("metadata-record", (broker,), None, f"offset {hit.base}")


def _generation(site: Site, _broker: str) -> Planted:
    """A group record of an older generation, on all brokers."""
    every = site.batches(site.brokers[0], "__consumer_offsets")
    records = [b for b in every if _generation_at(site, site.brokers[0], b) is not None]
    hit = site.draw.choice(records[1:])
    for broker in site.brokers:
        path = site.log(broker, "__consumer_offsets")
        data = path.read_bytes()
        at = _generation_at(site, broker, hit)
        assert at is not None
        changed = data[:at] + struct.pack(">i", 0) + data[at + 4 :]
        overwrite(path, hit.position, sealed(changed[hit.position : hit.position + hit.size]))
    return Planted("generation-fell", site.brokers, hit.base, f"generation 0 at offset {hit.base}")


def _generation_at(site: Site, broker: str, batch: Batch) -> int | None:
    """Where the generation of a group record stands, behind the protocol type."""
    data = site.log(broker, "__consumer_offsets").read_bytes()
    found = data.find(b"\x00\x08consumer", batch.position, batch.position + batch.size)
    return None if found < 0 else found + 10


def _assignment(site: Site, _broker: str) -> Planted:
    """A generation in which a partition is nobody's, on all brokers."""
    topic = site.topic.encode()
    pattern = struct.pack(">h", len(topic)) + topic + struct.pack(">ii", 1, 0)
    every = site.batches(site.brokers[0], "__consumer_offsets")
    first = site.log(site.brokers[0], "__consumer_offsets").read_bytes()
    able = [b for b in every if pattern in first[b.position : b.position + b.size]]
    hit = site.draw.choice(able)
    for broker in site.brokers:
        path = site.log(broker, "__consumer_offsets")
        part = path.read_bytes()[hit.position : hit.position + hit.size]
        other = pattern[:-4] + struct.pack(">i", 7)
        overwrite(path, hit.position, sealed(part.replace(pattern, other)))
    return Planted("partition-of-nobody", site.brokers, hit.base, f"offset {hit.base}")


# --- faults of consumer groups (KIP-848) ------------------------------------------------------

_GROUP, _TARGET, _CURRENT = 3, 7, 8
"""Keys of ConsumerGroupMetadata, ...TargetAssignmentMember and ...CurrentMemberAssignment."""
_TOPIC_ID, _INT = 16, 4
_EPOCH = 2
"""Where an epoch lies in a value, behind its version."""
_BEFORE_PARTITIONS = {_TARGET: 2, _CURRENT: 11}
"""Bytes of a value before its array of topics."""


@dataclass(frozen=True, slots=True)
class _Value:
    """The value of a record of a consumer group, in the first broker's copy."""

    batch: Batch
    position: int
    """In the file."""
    key: bytes
    data: bytes

    def partitions(self, kind: int) -> list[tuple[int, int]]:
        """The first topic's partitions: where each number lies in the file, and the number."""
        start = _BEFORE_PARTITIONS[kind]
        if not self.data or self.data[start] <= 1:  # the array's length and one
            return []
        first = start + 1 + _TOPIC_ID + 1
        places = (first + _INT * index for index in range(self.data[first - 1] - 1))
        return [(self.position + at, *struct.unpack_from(">i", self.data, at)) for at in places]


def _values(site: Site, kind: int) -> list[_Value]:
    """What holds at the end of a batch, tombstones left out: a batch is judged as a whole."""
    batches = groupby(_records(site, kind), key=lambda one: one.batch)
    last = ({value.key: value for value in batch} for _, batch in batches)
    return [value for batch in last for value in batch.values() if value.data]


def _records(site: Site, kind: int) -> list[_Value]:
    """The values of a kind; those of tombstones are empty."""
    broker, found = site.brokers[0], list[_Value]()
    whole = site.log(broker, "__consumer_offsets").read_bytes()
    for batch in site.batches(broker, "__consumer_offsets"):
        data = whole[batch.position : batch.position + batch.size]
        attributes, time, count = _head(data)
        for record in records.records(
            records.BatchHeader(batch.base, time, attributes, count), data
        ):
            key, value = record.key or b"", record.value or b""
            if key[:2] == struct.pack(">h", kind):
                at = data.index(value, data.index(key) + len(key))
                found.append(_Value(batch, batch.position + at, key, value))
    return found


def _head(data: bytes) -> tuple[int, int, int]:
    """Attributes, base timestamp and number of records."""
    (attributes,), (time,) = struct.unpack_from(">h", data, 21), struct.unpack_from(">q", data, 27)
    (count,) = struct.unpack_from(">i", data, 57)
    return attributes, time, count


def _has_consumer_groups(site: Site) -> bool:
    return bool(_values(site, _CURRENT))


def _everywhere(site: Site, batch: Batch, position: int, number: int) -> None:
    """Another number in a batch of the offsets topic, on all brokers, with a valid checksum."""
    for broker in site.brokers:
        path = site.log(broker, "__consumer_offsets")
        data = bytearray(path.read_bytes())
        data[position : position + _INT] = struct.pack(">i", number)
        part = bytes(data[batch.position : batch.position + batch.size])
        overwrite(path, batch.position, sealed(part))


def _group_epoch(site: Site, _broker: str) -> Planted:
    hit = site.draw.choice(_values(site, _GROUP)[1:])
    _everywhere(site, hit.batch, hit.position + _EPOCH, 0)
    return Planted("group-epoch-fell", site.brokers, hit.batch.base, "the group's epoch became 0")


def _member_epoch(site: Site, _broker: str) -> Planted:
    hit = site.draw.choice(_values(site, _CURRENT))
    (epoch,) = struct.unpack_from(">i", hit.data, _EPOCH)
    other = abs(epoch) + site.draw.randrange(20, 90)
    _everywhere(site, hit.batch, hit.position + _EPOCH, other)
    return Planted(
        "member-epoch-ahead", site.brokers, hit.batch.base, f"epoch {epoch} became {other}"
    )


def _held_twice(site: Site, _broker: str) -> Planted:
    """A member's record names a partition that another one holds after the same batch."""
    held: dict[bytes, set[int]] = {}
    able: list[tuple[_Value, int, int]] = []
    for _, batch in groupby(_records(site, _CURRENT), key=lambda one: one.batch):
        last = {value.key: value for value in batch}
        held |= {key: {n for _, n in one.partitions(_CURRENT)} for key, one in last.items()}
        for key, value in last.items():
            others = {n for other, parts in held.items() if other != key for n in parts}
            own = value.partitions(_CURRENT)
            able += [(value, own[0][0], other) for other in sorted(others) if own]
    hit, position, number = site.draw.choice(able)
    _everywhere(site, hit.batch, position, number)
    return Planted("partition-held-twice", site.brokers, hit.batch.base, f"partition {number}")


def _target_forgets(site: Site, _broker: str) -> Planted:
    able = [one for one in _values(site, _TARGET) if one.partitions(_TARGET)]
    hit = site.draw.choice(able)
    position, number = site.draw.choice(hit.partitions(_TARGET))
    _everywhere(site, hit.batch, position, 70 + number)
    return Planted("target-forgets", site.brokers, hit.batch.base, f"partition {number}")


_LOST = frozenset({"HighWatermarkWithinLog", "CommittedNeverLost", "ElectableHasExposed"})
_ORDER = frozenset({"gap", "overlap", "out-of-order"})
_EPOCHS = frozenset({"EpochCacheMatchesLog", "EpochsNonDecreasing", "KnownEpochIsRegistered"})


_BROKEN = {
    "exposed-is-kept": "cut-between-batches cut-within-a-batch zero-filled-tail emptied-segment",
    "epochs-are-the-controllers": "changed-epoch swapped-suffix epoch-checkpoint-of-later",
    "segments-join": "changed-base-offset removed-batch doubled-batch swapped-batches",
    "same-records": "other-contents",
    "replicas-have-folders": "missing-folder",
    "epochs-of-the-log": "epoch-checkpoint-of-before epoch-checkpoint-moved",
    "high-watermark-in-log": "high-watermark-beyond-end",
    "topic-id": "topic-id",
    "metadata-agrees": "metadata-record",
}
_INVARIANTS = {name: row for row, names in _BROKEN.items() for name in names.split()}
"""The rows of `invariants.INVARIANTS` that some of them break."""

_OF_LOGS: Mapping[str, Fault] = MappingProxyType(
    {
        "cut-between-batches": Fault(_cut_between, _LOST),
        "cut-within-a-batch": Fault(_cut_within, _LOST),
        "flipped-bit": Fault(_flip, frozenset({"checksum"})),
        "changed-epoch": Fault(_epoch_of_batch, _EPOCHS),
        "changed-base-offset": Fault(_base_offset, _ORDER),
        "removed-batch": Fault(_removed, frozenset({"gap"})),
        "doubled-batch": Fault(_doubled, _ORDER),
        "swapped-batches": Fault(_swapped, _ORDER),
        "zero-filled-tail": Fault(_zeros, _LOST),
        "other-contents": Fault(_other_contents, frozenset({"contents-differ"})),
        "segment-of-another-partition": Fault(_foreign_segment, _LOST | {"contents-differ"}),
        "swapped-segments": Fault(_swapped_segments, _LOST | _EPOCHS | {"contents-differ"}),
        "swapped-suffix": Fault(_suffix_of_another_history, _EPOCHS),
        "missing-folder": Fault(_no_folder, frozenset({"missing-log"})),
        "emptied-segment": Fault(_empty_segment, _LOST),
        "epoch-checkpoint-of-before": Fault(_old_cache, _EPOCHS),
        "epoch-checkpoint-moved": Fault(_moved_cache, _EPOCHS | {"epoch-order"}),
        "epoch-checkpoint-of-later": Fault(_later_cache, _EPOCHS),
        "high-watermark-beyond-end": Fault(_high_watermark, _LOST),
        "unreadable-checkpoint": Fault(_checkpoint_text, frozenset({"checkpoint"})),
        "topic-id": Fault(_topic_id, frozenset({"other-topic"})),
        "metadata-record": Fault(_metadata, frozenset({"metadata-differs"})),
        "generation-fell": Fault(_generation, frozenset({"GenerationsNeverFall"})),
        "partition-of-nobody": Fault(_assignment, frozenset({"AssignmentIsComplete"})),
        "group-epoch-fell": Fault(
            _group_epoch, frozenset({"EpochsNeverFall"}), _has_consumer_groups
        ),
        "member-epoch-ahead": Fault(
            _member_epoch, frozenset({"EpochsInOrder"}), _has_consumer_groups
        ),
        "partition-held-twice": Fault(
            _held_twice, frozenset({"HeldByOneMember"}), _has_consumer_groups
        ),
        "target-forgets": Fault(
            _target_forgets,
            frozenset({"TargetIsComplete", "StableIsAssigned"}),
            _has_consumer_groups,
        ),
    }
)

FAULTS: Mapping[str, Fault] = MappingProxyType(
    {name: replace(fault, invariant=_INVARIANTS.get(name, "")) for name, fault in _OF_LOGS.items()}
    | between()
)
"""Every kind of fault that can be planted."""
