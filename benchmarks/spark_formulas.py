"""All invariants in one Spark scan: native columns against compiled Python inside Spark.

Run: python benchmarks/spark_formulas.py SPEC.tla CONFIG.cfg --states N --copies K
The invariants are those of the configuration; states are taken breadth first, K times over.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from conformance.audit.session import spark_session
from conformance.tla.arrow import read_states, write_states
from conformance.tla.config import parse_config
from conformance.tla.evaluate.errors import EvaluationError
from conformance.tla.reader import load_module
from conformance.tla.schema import Schema, infer_schema
from conformance.tla.spark import compile_state_formulas
from conformance.tla.spec import Spec, StateFormula, bind
from conformance.tla.values import State


def reachable(spec: Spec) -> Iterator[State]:
    """The states, breadth first."""
    seen = dict.fromkeys(spec.initial_states())
    queue = list(seen)
    for state in queue:
        yield state
        for _, following in spec.successors(state):
            if following not in seen:
                seen[following] = None
                queue.append(following)


def verdict(formula: StateFormula, state: State) -> bool | None:
    try:
        return formula(state)
    except EvaluationError:
        return None


def python_in_spark(
    spec_path: Path, config: str, names: tuple[str, ...], schema: Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec = bind(load_module(spec_path), parse_config(config))
        formulas = [spec.state_formula(name) for name in names]
        for batch in batches:
            states = read_states(schema, pa.Table.from_batches([batch]))
            columns = [pa.array([verdict(f, s) for s in states], pa.bool_()) for f in formulas]
            yield pa.RecordBatch.from_arrays(columns, list(names))

    return evaluate


def counts(verdicts: DataFrame, names: tuple[str, ...]) -> tuple[int, ...]:
    """False and undefined verdicts, so that each one is needed."""
    failing = [F.count_if(~F.col(name)) for name in names]
    unknown = [F.count_if(F.col(name).isNull()) for name in names]
    return tuple(verdicts.select(*failing, *unknown).collect()[0])


def measure(run: Callable[[], tuple[int, ...]]) -> tuple[float, float, tuple[int, ...]]:
    """Seconds of the first run (with its compilation) and of the better of two more."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return times[0], min(times[1:]), result


def compare(spark: SparkSession, arguments: argparse.Namespace, folder: Path) -> None:
    config = arguments.config.read_text()
    spec = bind(load_module(arguments.spec), parse_config(config))
    names = tuple(spec.config.invariants)
    states = list(islice(reachable(spec), arguments.states))
    schema = infer_schema(spec.variables, states)
    path = folder / "states.parquet"
    pq.write_table(
        pa.concat_tables([write_states(schema, states)] * arguments.copies),
        path,
        row_group_size=max(1, len(states) * arguments.copies // 4),
    )
    rows = spark.read.parquet(str(path))
    formulas = compile_state_formulas(spec.program, names, schema)
    native = rows.select(*[F.expr(f.value).alias(f.name) for f in formulas])
    types = ", ".join(f"{name} boolean" for name in names)
    python = rows.mapInArrow(
        python_in_spark(arguments.spec.resolve(), config, names, schema), types
    )
    size = len(states) * arguments.copies
    cold, native_seconds, first = measure(lambda: counts(native, names))
    cold_python, python_seconds, second = measure(lambda: counts(python, names))
    if first != second:
        raise AssertionError(f"the verdicts differ: {first} and {second}")
    print(f"{size} states, {len(names)} invariants")
    print(f"native  {native_seconds:8.2f} s  (first run {cold:.2f} s)")
    print(f"Python  {python_seconds:8.2f} s  (first run {cold_python:.2f} s)")
    print(f"ratio   {python_seconds / native_seconds:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path)
    parser.add_argument("config", type=Path)
    parser.add_argument("--states", type=int, default=20_000)
    parser.add_argument("--copies", type=int, default=4)
    arguments = parser.parse_args()
    settings = {"spark.sql.analyzer.maxIterations": "1000", "spark.sql.codegen.wholeStage": "false"}
    with (
        tempfile.TemporaryDirectory() as folder,
        spark_session("local[2]", settings=settings) as spark,
    ):
        compare(spark, arguments, Path(folder))


if __name__ == "__main__":
    main()
