"""All invariants of a model in one scan: native columns, Python inside Spark, and DuckDB.

Run: python benchmarks/spark_formulas.py kip320-coarse-3b --rows 400000
The rows are the model's states, breadth first, repeated; every engine reads the same Parquet
files with two cores and says how many verdicts of each invariant are false, and undefined. The
first run of native columns includes analysis, code generation and the JVM's compilation of what
was generated; the others read the same query again. DuckDB is no dependency of kconform: install
it first (`pip install duckdb`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.duckdb_dialect import query
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.spark.session import spark_session
from conformance.tla import (
    EvaluationError,
    Schema,
    State,
    StateFormula,
    bind,
    find_tools,
    infer_schema,
)
from conformance.tla.arrow import read_states, write_states
from conformance.tla.search import reachable_states
from conformance.tla.spark import SparkFormula, compile_state_formulas, with_verdicts

Counts = tuple[int, ...]
Batches = Iterator[pa.RecordBatch]
CORES = 2


def verdict(formula: StateFormula, state: State) -> bool | None:
    try:
        return formula(state)
    except EvaluationError:
        return None


def in_python(
    prepared: PreparedModel, names: Sequence[str], schema: Schema
) -> Callable[[Batches], Batches]:
    """For mapInArrow: the compiled evaluator, bound once per task."""
    dump = cast("Callable[[object], bytes]", cloudpickle.dumps)
    pickled = dump((prepared.module, prepared.spec.config))

    def evaluate(batches: Batches) -> Batches:
        spec = bind(*cloudpickle.loads(pickled))
        formulas = [spec.state_formula(name) for name in names]
        for batch in batches:
            states = read_states(schema, pa.Table.from_batches([batch]))
            columns = [pa.array([verdict(f, s) for s in states], pa.bool_()) for f in formulas]
            yield pa.RecordBatch.from_arrays(columns, list(names))

    return evaluate


def counted(verdicts: DataFrame, names: Sequence[str]) -> Counts:
    """False and undefined verdicts, so that each one is needed."""
    failing = [F.count_if(~F.col(name)) for name in names]
    unknown = [F.count_if(F.col(name).isNull()) for name in names]
    return tuple(verdicts.select(*failing, *unknown).collect()[0])


def counted_by_duckdb(formulas: Sequence[SparkFormula], files: str) -> Counts:
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {CORES}")
        failing = (f"count_if(NOT {f.name})" for f in formulas)
        unknown = (f"count_if({f.name} IS NULL)" for f in formulas)
        rows = query(formulas, f"read_parquet('{files}')")
        result = connection.execute(f"SELECT {', '.join((*failing, *unknown))} FROM ({rows})")
        return tuple(result.fetchone() or ())


def measure(name: str, rows: int, run: Callable[[], Counts], times: int) -> tuple[float, Counts]:
    """Prints each run; the best one's seconds and what was counted."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    shown = ", ".join(f"{second:.2f}" for second in seconds)
    best = min(seconds)
    print(f"{name:8} {shown} s; best {rows / best:,.0f} rows/s", flush=True)
    return best, result


def write(folder: Path, schema: Schema, states: Sequence[State], rows: int) -> int:
    """As many files as cores; the number of rows."""
    copies = max(1, rows // (CORES * len(states)))
    table = pa.concat_tables([write_states(schema, states)] * copies)
    for number in range(CORES):
        pq.write_table(table, folder / f"{number}.parquet")
    return CORES * copies * len(states)


def compare(spark: SparkSession, arguments: argparse.Namespace, folder: Path) -> None:
    prepared = prepare(find_models([arguments.model])[0], find_tools())
    names = prepared.model.check.invariants
    states = list(islice(reachable_states(prepared.spec), arguments.states))
    schema = infer_schema(prepared.spec.variables, states)
    rows = write(folder, schema, states, arguments.rows)
    formulas = compile_state_formulas(prepared.spec.program, names, schema)
    types = ", ".join(f"{name} boolean" for name in names)
    evaluate = in_python(prepared, names, schema)

    def read() -> DataFrame:
        return spark.read.parquet(str(folder))

    print(f"{prepared.model.name}: {rows} states, {len(names)} invariants", flush=True)
    native, first = measure(
        "native", rows, lambda: counted(with_verdicts(read(), formulas), names), arguments.runs
    )
    duck, second = measure(
        "DuckDB", rows, lambda: counted_by_duckdb(formulas, f"{folder}/*.parquet"), arguments.others
    )
    python, third = measure(
        "Python", rows, lambda: counted(read().mapInArrow(evaluate, types), names), arguments.others
    )
    if not first == second == third:
        raise AssertionError(f"the verdicts differ: {first}, {second} and {third}")
    print(f"native columns against Python in Spark {python / native:.1f}")
    print(f"native columns against DuckDB          {duck / native:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="kip320-coarse-3b")
    parser.add_argument("--states", type=int, default=7_000, help="distinct ones")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=4, help="of the native columns")
    parser.add_argument("--others", type=int, default=2, help="runs of the others")
    arguments = parser.parse_args()
    # Small files too are read by as many tasks as there are cores.
    settings = {"spark.sql.files.openCostInBytes": "64", "spark.driver.memory": "3g"}
    with (
        tempfile.TemporaryDirectory() as folder,
        spark_session(f"local[{CORES}]", settings=settings) as spark,
    ):
        compare(spark, arguments, Path(folder))


if __name__ == "__main__":
    main()
