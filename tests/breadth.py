"""Tables that are too long for every run: `tox run -e breadth` runs the rows that others leave out.

Keep rows of one kind beside each other: where the place in the table decides, one of them runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

Row = TypeVar("Row")


def mostly_at_night(
    rows: Iterable[Row], each_time: Callable[[Row], bool]
) -> list[Row | ParameterSet]:
    """The table's rows; those that do not run each time are marked."""
    return [row if each_time(row) else _marked(row) for row in rows]


def every(number: int, rows: Iterable[Row], first: int = 0) -> list[Row | ParameterSet]:
    """Each time one row of so many, and the others at night."""
    return [row if place % number == first else _marked(row) for place, row in enumerate(rows)]


def _marked(row: object) -> ParameterSet:
    values = row if isinstance(row, tuple) else (row,)
    return pytest.param(*values, marks=pytest.mark.nightly)
