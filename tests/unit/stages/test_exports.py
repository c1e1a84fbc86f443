"""Exported traces are those of the store, in the format that the file's name says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.errors import DataError, UserError
from conformance.judge.reading import read_recordings
from conformance.stages.context import Context
from conformance.stages.exports import export_traces
from conformance.traces.model import PartialState, Trace, TraceStep
from tests.unit.judge.paths import path_of
from tests.unit.traces.test_store import FREE, HELD, IDENTITY, TRACES, save, trace


def path(one: Trace) -> tuple[tuple[PartialState, ...], tuple[TraceStep, ...]]:
    return one.states, one.steps


def exported(folder: Path, name: str, *numbers: int) -> Sequence[object]:
    """The paths that are read from the exported file."""
    save(folder / "store", TRACES)
    export_traces(Context(), folder / "store", folder / name, numbers)
    return [path_of(one, IDENTITY.variables) for one in read_recordings([folder / name])]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("all.ndjson", ()), ("some.ndjson", (2, 0)), ("one.ndjson", (1,)), ("one.itf.json", (2,))],
)
def test_what_is_exported_is_what_was_asked_for(
    tmp_path: Path, name: str, numbers: tuple[int, ...]
) -> None:
    wanted = [TRACES[number] for number in numbers or range(len(TRACES))]
    assert exported(tmp_path, name, *numbers) == list(map(path, wanted))


@pytest.mark.parametrize(
    ("name", "numbers", "told"),
    [
        ("traces.txt", (), "says no format"),
        ("traces.itf.json", (), "holds one trace, not 3"),
        ("traces.itf.json", (0, 1), "holds one trace, not 2"),
        ("traces.ndjson", (0, 99), "no trace 99"),
    ],
)
def test_what_cannot_be_exported_leaves_no_file(
    tmp_path: Path, name: str, numbers: tuple[int, ...], told: str
) -> None:
    with pytest.raises((UserError, DataError), match=told):
        exported(tmp_path, name, *numbers)
    assert [left.name for left in tmp_path.iterdir()] == ["store"]


def test_a_state_that_was_not_seen_whole_is_no_itf(tmp_path: Path) -> None:
    save(tmp_path / "store", [trace(0, FREE, ("a", None))])
    with pytest.raises(DataError, match="Export it as NDJSON"):
        export_traces(Context(), tmp_path / "store", tmp_path / "one.itf.json", ())


def test_a_file_that_is_there_is_replaced_on_demand_only(tmp_path: Path) -> None:
    save(tmp_path / "store", [trace(0, FREE, HELD)])
    target = tmp_path / "all.ndjson"
    target.write_text("mine")
    with pytest.raises(UserError, match="--force"):
        export_traces(Context(), tmp_path / "store", target, ())
    assert target.read_text() == "mine"
    export_traces(Context(), tmp_path / "store", target, (), replace=True)
    assert len(target.read_text().splitlines()) == 2
