"""How an audit's rows are dealt out, and what reading them loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.audit.evaluator import StateRows
from conformance.audit.judge import state_rows
from conformance.traces.states import FINGERPRINT

ONE, TWO = Path("one.parquet"), Path("two.parquet")


def test_the_states_of_a_single_file_are_shared_by_all_tasks() -> None:
    parts = list(state_rows([StateRows(ONE, 0, 10_000)], 8))
    assert [(part.first, part.count) for part in parts] == [
        (first, 1250) for first in range(0, 10_000, 1250)
    ]


def test_a_part_is_of_one_file_and_has_enough_rows_for_a_process_to_begin() -> None:
    only = pa.array([7], pa.int64())
    parts = list(state_rows([StateRows(ONE, 0, 1500), StateRows(TWO, 0, 10, only)], 8))
    assert parts == [
        StateRows(ONE, 0, 1000),
        StateRows(ONE, 1000, 500),
        StateRows(TWO, 0, 10, only),
    ]


def test_rows_are_those_that_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "part-00000.parquet"
    pq.write_table(pa.table({FINGERPRINT: pa.array([1, 3, 5, 7], pa.int64())}), path)
    rows = StateRows(path, 1, 2, pa.array([1, 5, 7], pa.int64())).read()
    assert rows.column(FINGERPRINT).to_pylist() == [5]


def test_to_read_a_file_of_states_loads_no_pandas(tmp_path: Path) -> None:
    path = tmp_path / "part-00000.parquet"
    pq.write_table(pa.table({FINGERPRINT: pa.array([1], pa.int64())}), path)
    text = (
        "import sys; from pathlib import Path; from conformance.traces.store import read_file;"
        "read_file(Path(sys.argv[1])); print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, str(path)], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "False\n"
