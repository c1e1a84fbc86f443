"""What is read of a segment that is damaged: all before the damage, and nothing behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.kafka.batches import keyed_batch, sealed
from conformance.load.partition import read_partition

BATCHES = [
    sealed(keyed_batch([(b"key", b"value")], first_ms=0, base_offset=offset)) for offset in range(3)
]


@pytest.mark.parametrize("magic", [0, 1, 2, 3])
def test_behind_another_format_nothing_is_read(magic: int, tmp_path: Path) -> None:
    data = bytearray(b"".join(BATCHES))
    data[len(BATCHES[0]) + 16] = magic
    (tmp_path / "00000000000000000000.log").write_bytes(data)

    log = read_partition(tmp_path, whole=True)

    assert [record.offset for record in log.records] == ([0, 1, 2] if magic == 2 else [0])
    assert bool(log.damage) == (magic != 2)
