"""Visits from arrays: the same as walking along each trace, malformed ones too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.audit import visited
from conformance.audit.visited import (
    INITIAL,
    KEY,
    SCHEMA,
    Visited,
    distinct_visits,
    merged,
    visits_of,
)
from conformance.errors import DataError

Entries = Sequence[int | None] | None
Visit = tuple[int | None, int | None, int | None]
TYPES = {"states": pa.list_(pa.int64()), "actions": pa.list_(pa.int32())}


def expected(states: Entries, actions: Entries) -> list[Visit]:
    """One trace's visits, as a reader of the format would count them."""
    if actions is None:
        return []

    def state(step: int) -> int | None:
        return states[step] if states is not None and step < len(states) else None

    steps = [(state(number), action, state(number + 1)) for number, action in enumerate(actions)]
    return [(0, INITIAL, state(0)), *steps]


NUMBERS = st.integers(1, 3)
WHOLE = st.integers(0, 3).flatmap(
    lambda length: st.tuples(
        st.lists(NUMBERS, min_size=length + 1, max_size=length + 1),
        st.lists(NUMBERS, min_size=length, max_size=length),
    )
)
ANY_LIST = st.none() | st.lists(st.none() | NUMBERS, max_size=4)
TRACES = st.lists(WHOLE, max_size=6) | st.lists(WHOLE | st.tuples(ANY_LIST, ANY_LIST), max_size=6)


def columns(traces: Sequence[tuple[Entries, Entries]]) -> tuple[pa.ListArray, pa.ListArray]:
    states, actions = ([pair[place] for pair in traces] for place in (0, 1))
    return pa.array(states, TYPES["states"]), pa.array(actions, TYPES["actions"])


def rows(table: pa.Table) -> list[Visit]:
    return list(zip(*(table.column(name).to_pylist() for name in KEY), strict=True))


@settings(deadline=None)
@given(TRACES, st.integers(0, 2))
def test_arrays_say_what_walking_says(
    traces: Sequence[tuple[Entries, Entries]], skipped: int
) -> None:
    states, actions = columns(traces)
    found = rows(visits_of(states.slice(skipped), actions.slice(skipped)))
    assert found == [visit for trace in traces[skipped:] for visit in expected(*trace)]


def write(path: Path, traces: Sequence[tuple[Entries, Entries]]) -> Path:
    states, actions = columns(traces)
    count = len(traces)
    ends, problems = pa.array(["length"] * count), pa.array([None] * count, pa.string())
    table = pa.table({"states": states, "actions": actions, "end": ends, "problem": problems})
    pq.write_table(table, path, write_page_checksum=True)
    return path


@pytest.mark.parametrize("limit", [1, 1_000_000])
def test_equal_visits_of_several_files_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(visited, "_MERGED", limit)
    monkeypatch.setattr(visited, "_BATCH", 2)
    traces = [([1, 2, 1], [5, 6]), ([1, 2], [5]), ([2], []), ([1], [5]), (None, None)]
    files = [write(tmp_path / f"{number}.parquet", traces) for number in range(3)]
    found = distinct_visits(files).visits
    counted = dict(zip(rows(found), found.column("visits").to_pylist(), strict=True))
    once = Counter(visit for trace in traces for visit in expected(*trace))
    assert counted == {visit: 3 * count for visit, count in once.items()}
    assert found.schema == SCHEMA


def test_of_no_file_there_is_no_visit() -> None:
    assert distinct_visits([]) == Visited.nothing() == Visited(SCHEMA.empty_table(), 0)


def test_what_two_shares_hold_is_added_up(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{number}.parquet", [([1, 2], [5])]) for number in range(2)]
    both = merged(*(distinct_visits([path]) for path in files))
    assert sorted(both.visits.to_pylist(), key=str) == sorted(
        distinct_visits(files).visits.to_pylist(), key=str
    )


def test_traces_with_a_flag_are_counted(tmp_path: Path) -> None:
    table = pa.table(
        {
            "states": pa.array([[1]] * 5, TYPES["states"]),
            "actions": pa.array([[]] * 5, TYPES["actions"]),
            "end": ["diverged", "length", "diverged", "deadlock", None],
            "problem": [None, "a problem", "another", None, None],
        }
    )
    pq.write_table(table, tmp_path / "ends.parquet")
    assert distinct_visits([tmp_path / "ends.parquet"]).flagged == 3


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "torn.parquet", [([1, 2], [5])] * 50)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"torn\.parquet cannot be read"):
        distinct_visits([path])
