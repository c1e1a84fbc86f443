"""What the reader tells of segments and their indexes, sound and damaged."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.inspect.evidence import DAMAGE_KINDS, Evidence
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of
from conformance.inspect.reading.reader import read
from tests.segment_files import Batch, Written, partition_folder, run_of, write_segment


def evidence_of(root: Path, **options: Any) -> Evidence:
    return read(Inputs(brokers_of([f"b1={root}"]), **options), root.parent / "out", ())


def told(evidence: Evidence) -> list[tuple[str, int | None, int | None]]:
    rows = evidence.rows("damage")
    return [(row["kind"], row["position"], row["offset"]) for row in rows]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "b1"


def test_a_sound_segment_gives_its_headers_and_no_damage(root: Path) -> None:
    batches = [
        Batch(5, ((None, b"a"), (b"k", None)), leader_epoch=3, timestamp=10, producer_id=7),
        Batch(7, leader_epoch=4, timestamp=20, attributes=0x30),
    ]
    write_segment(partition_folder(root, "t", 2), batches)
    evidence = evidence_of(root)
    first, second = evidence.rows("batches")
    assert told(evidence) == []
    assert (first["broker"], first["topic"], first["partition"], first["state"]) == (
        "b1",
        "t",
        2,
        "",
    )
    assert (first["base_offset"], first["last_offset"], first["leader_epoch"]) == (5, 6, 3)
    assert (first["records"], first["producer_id"], first["crc_ok"]) == (2, 7, True)
    assert second["position"] == first["size"] == len(batches[0].encoded())
    assert (second["max_timestamp"], second["attributes"]) == (20, 0x30)
    assert first["segment"] == "t-2/00000000000000000005.log"


def test_a_large_segment_on_the_disk_is_streamed_with_the_same_result(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(300, size=40_000))
    content = bytearray(written.path.read_bytes())
    content[written.positions[200] + 100] ^= 1
    written.path.write_bytes(content)
    with written.path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    found = evidence_of(root)
    monkeypatch.setattr("conformance.inspect.reading.streaming.WORTH", 1 << 40)
    mapped = read(Inputs(brokers_of([f"b1={root}"])), root.parent / "mapped", ())
    assert told(found) == told(mapped) == [("checksum", written.positions[200], 200)]
    assert list(found.rows("batches")) == list(mapped.rows("batches"))


def cut(written: Written, data: bytearray) -> bytes:
    return bytes(data[:-5])


def zero_tail(written: Written, data: bytearray) -> bytes:
    return bytes(data) + bytes(5000)


def flip_payload(written: Written, data: bytearray) -> bytes:
    data[written.positions[3] + 65] ^= 1
    return bytes(data)


def break_length(written: Written, data: bytearray) -> bytes:
    data[written.positions[3] + 8 : written.positions[3] + 12] = struct.pack(">i", 1 << 30)
    return bytes(data)


def break_magic(written: Written, data: bytearray) -> bytes:
    data[written.positions[3] + 16] = 9
    return bytes(data)


def lose_bytes(written: Written, data: bytearray) -> bytes:
    return bytes(data[: written.positions[3] + 20] + data[written.positions[5] :])


def rubbish_tail(written: Written, data: bytearray) -> bytes:
    return bytes(data) + b"rubbish" * 20


def lower_offset(written: Written, data: bytearray) -> bytes:
    data[written.positions[3] : written.positions[3] + 8] = struct.pack(">q", 2)
    return bytes(data)


def negative_delta(written: Written, data: bytearray) -> bytes:
    data[written.positions[3] + 23 : written.positions[3] + 27] = struct.pack(">i", -4)
    return bytes(data)


Break = Callable[[Written, bytearray], bytes]


@pytest.mark.parametrize(
    ("damage", "kind", "batch", "left"),
    [
        (cut, "torn-tail", 9, 9),
        (zero_tail, "zero-tail", 10, 10),
        (flip_payload, "checksum", 3, 10),
        (break_length, "unreadable", 3, 9),
        (break_magic, "unreadable", 3, 9),
        (lose_bytes, "unreadable", None, None),
        (rubbish_tail, "unreadable", 10, 10),
        (lower_offset, "before-segment", 3, 10),
        (negative_delta, "header", 3, 10),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_damage_is_told_where_it_is_and_the_rest_is_read(
    root: Path, damage: Break, kind: str, batch: int | None, left: int | None
) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(10, first=100))
    for beside in (".index", ".timeindex"):
        written.path.with_suffix(beside).unlink()
    data = bytearray(written.path.read_bytes())
    ends = (*written.positions, len(data))
    written.path.write_bytes(damage(written, data))
    evidence = evidence_of(root)
    found = told(evidence)
    assert kind in {entry[0] for entry in found} <= set(DAMAGE_KINDS)
    if batch is not None:
        assert (kind, ends[batch]) in {entry[:2] for entry in found}
    rows = evidence.table("batches").num_rows
    assert rows == left if left is not None else rows >= 8


def test_the_offset_behind_the_last_good_batch_is_told_of_a_torn_tail(root: Path) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(10, first=100))
    written.path.write_bytes(written.path.read_bytes()[:-1])
    for beside in (".index", ".timeindex"):
        written.path.with_suffix(beside).unlink()
    assert told(evidence_of(root)) == [("torn-tail", written.positions[9], 109)]


def test_checksums_may_be_left_out(root: Path) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(3))
    data = bytearray(written.path.read_bytes())
    data[-1] ^= 1
    written.path.write_bytes(data)
    evidence = evidence_of(root, verify=False)
    assert told(evidence) == []
    assert {row["crc_ok"] for row in evidence.rows("batches")} == {None}


def legacy(offset: int, magic: int, time: int = 50) -> bytes:
    import zlib

    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", time) if magic else b"")
    body += struct.pack(">ii", -1, 3) + b"abc"
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_old_formats_are_labelled_and_their_checksums_verified(root: Path) -> None:
    folder = partition_folder(root, "t")
    data = legacy(0, 0) + legacy(1, 1) + Batch(2).encoded() + legacy(3, 0)
    (folder / f"{0:020d}.log").write_bytes(data)
    evidence = evidence_of(root)
    rows = list(evidence.rows("batches"))
    assert [(row["magic"], row["base_offset"], row["crc_ok"]) for row in rows] == [
        (0, 0, True),
        (1, 1, True),
        (2, 2, True),
        (0, 3, True),
    ]
    assert [row["max_timestamp"] for row in rows[:2]] == [-1, 50]
    assert told(evidence) == []


def test_an_empty_segment_is_read_and_has_no_batches(root: Path) -> None:
    write_segment(partition_folder(root, "t"), [])
    evidence = evidence_of(root)
    assert evidence.table("batches").num_rows == 0
    assert {row["status"] for row in evidence.rows("files")} == {"read"}


@pytest.mark.parametrize(
    ("suffix", "entry", "kind"),
    [
        (".index", struct.pack(">ii", 5, 3), "index-position"),
        (".index", struct.pack(">ii", 700, 61 * 4), "index-position"),
        (".index", struct.pack(">ii", 9, 1 << 20), "index-beyond-end"),
        (".timeindex", struct.pack(">qi", 12345, 5), "timeindex-timestamp"),
        (".timeindex", struct.pack(">qi", 1_700_000_000_005, 99), "timeindex-beyond-end"),
        (".index", b"abc", "index-size"),
    ],
)
def test_an_index_that_disagrees_is_told(root: Path, suffix: str, entry: bytes, kind: str) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(10), interval=100)
    index = written.path.with_suffix(suffix)
    index.write_bytes(index.read_bytes() + entry)
    assert kind in {entry[0] for entry in told(evidence_of(root))}


def test_an_offset_in_the_index_that_is_another_batchs_is_told(root: Path) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(10))
    index = written.path.with_suffix(".index")
    entries = [list(entry) for entry in struct.iter_unpack(">ii", index.read_bytes())]
    entries[4][0] -= 3
    index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))
    kinds = {entry[0] for entry in told(evidence_of(root))}
    assert kinds == {"index-offset", "index-order"}


def test_an_entry_that_a_follower_made_of_several_batches_is_sound(root: Path) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(10))
    last_of_three = struct.pack(">ii", 5, written.positions[3])
    written.path.with_suffix(".index").write_bytes(last_of_three)
    assert told(evidence_of(root)) == []


def test_what_a_truncation_left_in_an_index_is_stale_and_not_wrong(root: Path) -> None:
    written = write_segment(partition_folder(root, "t"), run_of(10))
    written.path.write_bytes(written.path.read_bytes()[: written.positions[6]])
    for suffix in (".index", ".timeindex"):
        index = written.path.with_suffix(suffix)
        index.write_bytes(index.read_bytes() + bytes(1200))
    assert {entry[0] for entry in told(evidence_of(root))} == {"index-stale"}


def test_an_aborted_transaction_needs_its_marker(root: Path) -> None:
    control = Batch(4, attributes=0x30, producer_id=9)
    written = write_segment(partition_folder(root, "t"), [*run_of(4), control])
    entries = [(0, 9, 1, 4, 1), (0, 9, 1, 3, 1), (0, 9, 5, 4, 1)]
    data = b"".join(struct.pack(">hqqqq", *entry) for entry in entries)
    written.path.with_suffix(".txnindex").write_bytes(data)
    assert [entry[0] for entry in told(evidence_of(root))] == ["txnindex", "txnindex"]


def test_the_time_asked_for_decides_which_checksums_are_verified(root: Path) -> None:
    """Given batches out of order in time, those between are verified too."""
    times = [10, 20, 30, 5, 40, 50]
    batches = [Batch(i, timestamp=time) for i, time in enumerate(times)]
    write_segment(partition_folder(root, "t"), batches)
    write_segment(partition_folder(root, "t"), [Batch(6, timestamp=90)])
    evidence = evidence_of(root, filters=Filters(since=20, until=40))
    verified = {row["base_offset"]: row["crc_ok"] for row in evidence.rows("batches")}
    assert verified == {0: None, 1: True, 2: True, 3: True, 4: True, 5: None, 6: None}
    assert {row["status"] for row in evidence.rows("files")} == {"read"}


def abort(offset: int, producer: int = 7, *, kind: int = 0) -> Batch:
    """A control batch that ends a transaction; kind 1 is a commit."""
    key = b"\0\0" + kind.to_bytes(2, "big")
    return Batch(offset, ((key, b"\0" * 6),), attributes=0x30, producer_id=producer)


def in_transaction(offset: int, producer: int = 7) -> Batch:
    return Batch(offset, attributes=0x10, producer_id=producer)


def aborted(producer: int, first: int, last: int) -> bytes:
    return struct.pack(">hqqqq", 0, producer, first, last, first)


ABORTS: dict[str, tuple[list[Batch], bytes | None, list[str]]] = {
    "with its entry": ([in_transaction(0), abort(1)], aborted(7, 0, 1), []),
    "without the file": ([in_transaction(0), abort(1)], None, ["txnindex-missing"]),
    "without an entry": ([in_transaction(0), abort(1)], b"", ["txnindex-missing"]),
    "with another producer's entry": (
        [in_transaction(0), abort(1)], aborted(8, 0, 1), ["txnindex", "txnindex-missing"]
    ),
    "with an entry that ends elsewhere": (
        [in_transaction(0), abort(1)], aborted(7, 0, 0), ["txnindex", "txnindex-missing"]
    ),
    "two producers, one entry": (
        [in_transaction(0), in_transaction(1, 8), abort(2), abort(3, 8)],
        aborted(7, 0, 2), ["txnindex-missing"],
    ),
    "a commit has none": ([in_transaction(0), abort(1, kind=1)], None, []),
    "nor has an abort without records": ([Batch(0), abort(1)], None, []),
    "nor one behind a commit": (
        [in_transaction(0), abort(1, kind=1), abort(2)], None, []
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ABORTS)
def test_each_aborted_transaction_is_in_the_index(tmp_path: Path, name: str) -> None:
    batches, index, expected = ABORTS[name]
    root = tmp_path / "b1"
    written = write_segment(partition_folder(root, "t"), batches)
    if index is not None:
        written.path.with_suffix(".txnindex").write_bytes(index)
    assert sorted(entry[0] for entry in told(evidence_of(root))) == expected
