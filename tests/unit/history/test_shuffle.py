"""Rows that are sorted out into parts on disk: each comes back, and an empty one takes no space."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from conformance.history.shuffle import read_part, together, write_parts


def rows(count: int) -> pa.Table:
    """Rows with columns of every kind that histories have."""
    numbers = np.arange(count)
    return pa.table(
        {
            "key": pa.array([f"k{n % 3}" for n in numbers], pa.string()).dictionary_encode(),
            "value": pa.array([f"v{n}" for n in numbers], pa.string()),
            "offset": pa.array(numbers, pa.int64()),
            "moved": pa.array(numbers % 2 == 0, pa.bool_()),
        }
    )


@pytest.mark.parametrize("parts", [1, 3, 50])
@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_each_part_comes_back(parts: int, count: int, tmp_path: Path) -> None:
    table, part = rows(count), np.arange(count) % min(parts, 7)
    write_parts(table, part, parts, tmp_path / "rows")
    for number in range(parts):
        read = together(read_part([tmp_path / "rows"], number), table.schema)
        assert read.to_pylist() == table.filter(pa.array(part == number)).to_pylist()


def test_empty_parts_take_no_space(tmp_path: Path) -> None:
    table, part = rows(100_000), np.arange(100_000) % 4
    write_parts(table, part, 4, tmp_path / "few")
    write_parts(table, part, 1_000, tmp_path / "many")
    few, many = ((tmp_path / name).stat().st_size for name in ("few", "many"))
    assert many < few + 1_000 * 2_000
