"""What is read of a log that is damaged: all before the damage, and nothing behind it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.kafka.batches import keyed_batch, sealed
from conformance.load.partition import read_partition

FIRST, SECOND = "00000000000000000000.log", "00000000000000000003.log"
BATCHES = [
    sealed(keyed_batch([(b"key", b"value")], first_ms=0, base_offset=offset)) for offset in range(6)
]


@pytest.mark.parametrize("magic", [0, 1, 2, 3])
def test_behind_another_format_nothing_is_read(magic: int, tmp_path: Path) -> None:
    data = bytearray(b"".join(BATCHES[:3]))
    data[len(BATCHES[0]) + 16] = magic
    (tmp_path / FIRST).write_bytes(data)

    log = read_partition(tmp_path, whole=True)

    assert [record.offset for record in log.records] == ([0, 1, 2] if magic == 2 else [0])
    assert bool(log.damage) == (magic != 2)


def test_behind_a_damaged_segment_no_other_is_read(tmp_path: Path) -> None:
    """What a later record says rests on the records that are missing: a finding of it was wrong."""
    data = bytearray(b"".join(BATCHES[:3]))
    data[-1] ^= 1
    (tmp_path / FIRST).write_bytes(data)
    (tmp_path / SECOND).write_bytes(b"".join(BATCHES[3:]))

    log = read_partition(tmp_path, whole=True)

    assert [record.offset for record in log.records] == [0, 1]
    assert [(damage.segment, damage.detail) for damage in log.damage] == [
        (FIRST, "batch at offset 2: its checksum is wrong")
    ]
    assert log.size == sum(map(len, BATCHES))


@pytest.mark.parametrize(
    ("segments", "read", "detail"),
    [
        ({FIRST: [2, 1, 0]}, [2], "batch at offset 1: it stands where offset 3"),
        ({FIRST: [0, 1, 1]}, [0, 1], "batch at offset 1: it stands where offset 2"),
        ({FIRST: [0, 1, 2, 3], SECOND: [3]}, [0, 1, 2, 3], "batch at offset 3: it stands where"),
        ({FIRST: [0], SECOND: [1]}, [0], "batch at offset 1: it stands where offset 3"),
        ({FIRST: [0, 2], SECOND: [4, 5]}, [0, 2, 4, 5], ""),
    ],
)
def test_offsets_that_fall_are_no_log_of_one_moment(
    tmp_path: Path, segments: dict[str, list[int]], read: list[int], detail: str
) -> None:
    for name, offsets in segments.items():
        (tmp_path / name).write_bytes(b"".join(BATCHES[offset] for offset in offsets))

    log = read_partition(tmp_path, whole=True)

    assert [record.offset for record in log.records] == read
    assert [damage.detail[: len(detail)] for damage in log.damage] == [detail] * bool(detail)


@pytest.mark.parametrize(
    ("further", "damage"),
    [
        ({f"{SECOND[:-4]}.index": "", "leader-epoch-checkpoint": "0\n1\n4 3\n"}, []),
        ({f"{FIRST[:-4]}.index": ""}, [(FIRST, "it is missing, and its index is here")]),
        ({"00000000000000000005.timeindex": ""}, [("00000000000000000005.log", "it is missing")]),
        (
            {"leader-epoch-checkpoint": "0\n2\n0 0\n4 3\n"},
            [("leader-epoch-checkpoint", "its epochs begin at offset 0, the first segment at 3")],
        ),
        ({"leader-epoch-checkpoint": "garbage"}, []),
        ({"leader-epoch-checkpoint": ""}, []),
    ],
)
def test_a_segment_of_which_the_folder_tells_is_missed(
    tmp_path: Path, further: dict[str, str], damage: list[tuple[str, str]]
) -> None:
    (tmp_path / SECOND).write_bytes(b"".join(BATCHES[3:]))
    for name, text in further.items():
        (tmp_path / name).write_text(text)
    told = [(item.segment, item.detail) for item in read_partition(tmp_path, whole=True).damage]
    assert [name for name, _ in told] == [name for name, _ in damage]
    assert all(text.startswith(begin) for (_, text), (_, begin) in zip(told, damage, strict=True))


def test_a_swap_that_was_interrupted_is_not_what_a_start_loads(tmp_path: Path) -> None:
    (tmp_path / FIRST).write_bytes(b"".join(BATCHES))
    (tmp_path / f"{FIRST}.swap").write_bytes(BATCHES[0])

    log = read_partition(tmp_path, whole=True)

    assert len(log.records) == len(BATCHES)
    assert [damage.segment for damage in log.damage] == [f"{FIRST}.swap"]


def test_a_pipe_is_no_empty_segment(tmp_path: Path) -> None:
    (tmp_path / FIRST).write_bytes(BATCHES[0])
    os.mkfifo(tmp_path / SECOND)

    log = read_partition(tmp_path, whole=True)

    assert [record.offset for record in log.records] == [0]
    assert [damage.segment for damage in log.damage] == [SECOND]
