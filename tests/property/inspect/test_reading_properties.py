"""Whatever the bytes: hints change nothing, what was written reads back, damage is told."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.inspect.reading import headers, streaming
from conformance.inspect.reading.inputs import Inputs, brokers_of
from conformance.inspect.reading.reader import read
from conformance.inspect.reading.records import BatchHeader as Header
from conformance.inspect.reading.records import records
from conformance.inspect.reading.segments import MappedSegment
from tests.segment_files import Batch, partition_folder, run_of, write_checkpoint, write_segment

SIZES = st.lists(st.integers(0, 300), min_size=80, max_size=200)


def segment(sizes: list[int]) -> bytes:
    batches = (Batch(i, ((None, bytes(size)),)) for i, size in enumerate(sizes))
    return b"".join(batch.encoded() for batch in batches)


def described(walk: headers.SegmentWalk) -> tuple[list[int], tuple[headers.Stretch, ...]]:
    return walk.positions.tolist(), walk.stretches


@given(SIZES, st.randoms(use_true_random=False), st.integers(0, 6), st.booleans())
def test_hops_in_lockstep_find_what_hopping_one_by_one_finds(
    sizes: list[int], random: Random, damages: int, cut: bool
) -> None:
    """Given true hints, false ones, and damage; the hints are never believed."""
    data = bytearray(segment(sizes))
    true = headers.walk(bytes(data)).positions
    for _ in range(damages):
        at = random.randrange(len(data))
        data[at] = random.randrange(256)
    if cut:
        del data[-random.randrange(1, 100) :]
    false = [random.randrange(len(data) + 50) for _ in range(20)]
    plain = headers.walk(bytes(data))
    for hints in (true, true[::3], np.concatenate((true, false)), np.array(false * 9)):
        assert described(headers.walk(bytes(data), np.sort(hints))) == described(plain)


@given(
    st.lists(st.integers(0, 2500), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from([8192, 65536]),
)
def test_a_streamed_segment_gives_what_a_mapped_one_gives(
    sizes: list[int], random: Random, damages: int, hinted: bool, window: int
) -> None:
    """Given windows smaller and larger than the segment; or nothing, if its framing is damaged."""
    data = bytearray(segment(sizes))
    true = headers.walk(bytes(data)).positions
    for _ in range(damages):
        at = random.randrange(len(data))
        data[at] = random.randrange(256)
    mapped = MappedSegment(bytes(data), headers.walk(bytes(data)))
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        found = streaming.scan(file.fileno(), len(data), true[::2] if hinted else None, window)
    if mapped.walk.stretches or (headers.magics(data, mapped.walk.positions) != 2).any():
        assert found is None
        return
    assert found is not None
    (expected,), (chunk,) = mapped.columns(), found.columns()
    assert {name: chunk[name].tolist() for name in chunk.arrays} == {
        name: expected[name].tolist() for name in expected.arrays
    }
    for batches, _ in (*expected.split((0, len(data))), *expected.split((1, int(true[-1])))):
        assert found.verified(batches).tolist() == mapped.verified(batches).tolist()


@given(SIZES)
def test_without_damage_every_batch_is_found_where_it_was_written(sizes: list[int]) -> None:
    data = segment(sizes)
    ends = np.cumsum([len(Batch(i, ((None, bytes(n)),)).encoded()) for i, n in enumerate(sizes)])
    walk = headers.walk(data)
    assert walk.positions.tolist() == [0, *ends[:-1].tolist()]
    assert walk.stretches == ()


@given(st.integers(0, 400), st.integers(0, 400), st.binary(max_size=200))
def test_reading_goes_on_behind_any_rubbish(before: int, after: int, rubbish: bytes) -> None:
    """Every whole batch on either side is found, and what lies between is told."""
    left = segment([before, before])
    right = b"".join(Batch(i, ((None, bytes(after)),)).encoded() for i in (7, 8))
    walk = headers.walk(left + rubbish + right)
    start = len(left) + len(rubbish)
    assert {0, len(left) // 2, start, start + len(right) // 2} <= set(walk.positions.tolist())
    told = sum(stretch.end - stretch.start for stretch in walk.stretches)
    inside = [p for p in walk.positions.tolist() if len(left) <= p < start]
    assert told == len(rubbish) or inside


KEYS = st.none() | st.binary(max_size=40)


@given(st.lists(st.tuples(KEYS, KEYS), max_size=20), st.integers(0, 1 << 40))
def test_records_read_back_as_they_were_written(
    pairs: list[tuple[bytes | None, bytes | None]], base: int
) -> None:
    batch = Batch(base, tuple(pairs))
    found = list(records(Header(base, batch.timestamp, 0, len(pairs)), batch.encoded()))
    assert [(record.key, record.value) for record in found] == pairs
    assert [record.offset for record in found] == list(range(base, base + len(pairs)))


@settings(max_examples=40)
@given(st.data())
def test_no_damage_to_any_file_stops_the_reading_or_goes_untold(data: st.DataObject) -> None:
    """Bytes of any file changed, cut off or added: each file is accounted for, once."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "b1"
        folder = partition_folder(root, "t")
        write_segment(folder, run_of(70, size=30))
        write_checkpoint(root / "replication-offset-checkpoint", "t 0 60")
        write_checkpoint(folder / "leader-epoch-checkpoint", "0 0", "1 30")
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: abc\n")
        (folder / f"{7:020d}.snapshot").write_bytes(bytes(range(40)))
        (folder / f"{0:020d}.txnindex").write_bytes(bytes(range(68)))
        files = sorted(path for path in root.rglob("*") if path.is_file())
        target = data.draw(st.sampled_from(files))
        content = bytearray(target.read_bytes())
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        match data.draw(st.sampled_from(["change", "cut", "insert"])):
            case "change":
                content[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del content[at:]
            case _:
                content[at:at] = data.draw(st.binary(min_size=1, max_size=30))
        changed = bytes(content) != target.read_bytes()
        target.write_bytes(content)
        evidence = read(Inputs(brokers_of([f"b1={root}"])), Path(name) / "out", ())
        accounted = [row["path"] for row in evidence.rows("files")]
        assert sorted(accounted) == [str(path.relative_to(root)) for path in files]
        if changed and target.suffix == ".log" and len(content) > at:
            told = evidence.table("damage").num_rows
            outside = {row["leader_epoch"] for row in evidence.rows("batches")} != {0}
            assert told or outside or starts_a_batch(evidence, at, len(content))


def starts_a_batch(evidence: object, at: int, size: int) -> bool:
    """A checksum does not cover a base offset; and a file may be cut off just before a batch."""
    rows = list(evidence.rows("batches"))
    starts = {row["position"] for row in rows}
    return any(start <= at < start + 8 for start in starts) or at == size
