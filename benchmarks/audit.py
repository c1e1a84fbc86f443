"""Audits a large synthetic store and prints the ratios that the harness promises.

The protocol is a walk in a cube: three counters, six actions. With the default side it has
157,464 states and 927,000 transitions.

    python -m benchmarks.audit [--traces N]
    python -m benchmarks.audit --against CHECKOUT    the ratio to another commit's audit

The goal of the second: 60 % of the processor time of commit fc5f3fc, whose checkout is installed in
its own `.venv`. The two take turns.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks import audit_cost
from conformance.audit.coverage import ModelTable
from conformance.audit.engine import FEW, Options, audit
from conformance.audit.rules import compile_rules
from conformance.audit.scan import read_traces, visited
from conformance.audit.session import spark_session
from conformance.audit.workers import Evaluator
from conformance.tla import Action, State, bind, fingerprint, load_module, parse_config
from conformance.traces.manifest import Identity
from conformance.traces.rows import TraceRows
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import open_writer, traces_per_file, write_chunk

CUBE = r"""---- MODULE Cube ----
EXTENDS Integers
CONSTANT Side
VARIABLES x, y, z
Init == x = 0 /\ y = 0 /\ z = 0
Up(v) == v < Side - 1
Right == Up(x) /\ x' = x + 1 /\ UNCHANGED <<y, z>>
Left  == x > 0 /\ x' = x - 1 /\ UNCHANGED <<y, z>>
North == Up(y) /\ y' = y + 1 /\ UNCHANGED <<x, z>>
South == y > 0 /\ y' = y - 1 /\ UNCHANGED <<x, z>>
Rise  == Up(z) /\ z' = z + 1 /\ UNCHANGED <<x, y>>
Sink  == z > 0 /\ z' = z - 1 /\ UNCHANGED <<x, y>>
Next == Right \/ Left \/ North \/ South \/ Rise \/ Sink
Within == x \in 0..(Side - 1) /\ y \in 0..(Side - 1) /\ z \in 0..(Side - 1)
Near == [][(x' - x) \in -1..1 /\ (y' - y) \in -1..1 /\ (z' - z) \in -1..1]_<<x, y, z>>
====
"""
Ints = npt.NDArray[np.int64]
ACTIONS = tuple(map(Action, ("Right", "Left", "North", "South", "Rise", "Sink")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--side", type=int, default=54)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--no-table", action="store_true", help="let the formulas decide all")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="with a .venv of its own")
    parser.add_argument("--rounds", type=int, default=3, help="of --against")
    options = parser.parse_args()
    if options.against is not None:
        against(options.against.absolute(), options.traces, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "Cube.tla").write_text(CUBE)
        config = parse_config(f"CONSTANT Side = {options.side} INIT Init NEXT Next")
        spec = bind(load_module(Path(folder) / "Cube.tla"), config)
        states, prints = cube(options.side)
        path = Path(folder) / "store"
        begun = time.monotonic()
        write(path, options.traces, options.length, options.side, states, prints)
        print(f"store written in {time.monotonic() - begun:.1f} s")
        begun = time.monotonic()
        store = TraceStore.open(path)
        print(f"hashes verified in {time.monotonic() - begun:.2f} s")
        rules = compile_rules(spec, store.columns.schema, ACTIONS, ["Within"], ["Near"])
        model = None if options.no_table else table(options.side, prints)
        with spark_session(options.master) as spark:
            warm_up(spark, store)
            evaluator = Evaluator.of(spec, store, ["Within"], ["Near"])
            result = audit(spark, store, rules, evaluator, model=model, options=Options())
            again = scan_seconds(spark, store)
            bare = min(bare_scan(spark, store) for _ in range(3))
            memory = heap_peak(spark)
    print(f"verdict               {result.verdict}  {result.figures()['traces']}")
    print(f"steps                 {result.steps:,}")
    print(f"distinct transitions  {result.distinct_transitions:,}")
    print(f"scan                  {result.scan_seconds:.2f} s")
    print(f"                      {result.steps / result.scan_seconds:,.0f} steps/s")
    print(f"the same scan again   {again:.2f} s")
    print(f"                      {result.steps / again:,.0f} steps/s")
    print(f"bare scan             {bare:.2f} s, ratio {result.scan_seconds / bare:.2f}")
    print(f"                      of the same scan again {again / bare:.2f}")
    print(f"formulas              {result.formula_seconds:.2f} s")
    print(f"audit in all          {result.seconds:.2f} s")
    print(f"driver's heap, peak   {memory / 2**20:,.0f} MiB (all pools)")
    print(f"driver's Python, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


def against(checkout: Path, traces: int, rounds: int) -> None:
    """Print what the audit takes here and there, and the ratios."""
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    print(f"{'':<20}{'processor s':>12}{'wall s':>8}")
    for _ in range(rounds):
        for costs, root, python in (
            (ours, Path.cwd(), Path(sys.executable)),
            (theirs, checkout, checkout / ".venv" / "bin" / "python"),
        ):
            costs.append(cost_of_audit(root, python, traces))
            print(f"{root.name:<20}{costs[-1][0]:12.1f}{costs[-1][1]:8.1f}", flush=True)
    for what, here, there in zip(
        ("processor", "by the clock"),
        zip(*ours, strict=True),
        zip(*theirs, strict=True),
        strict=True,
    ):
        print(f"{what}, sums: {sum(here) / sum(there):.2f}")


def cost_of_audit(root: Path, python: Path, traces: int) -> tuple[float, float]:
    """Processor seconds and seconds by the clock of a checkout's audit, the JVM's included."""
    words = ["env", *(f"{name}={python}" for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"))]
    words += [str(python), audit_cost.__file__, "--traces", str(traces)]
    done = subprocess.run(words, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return audit_cost.read(done.stdout)


def cube(side: int) -> tuple[list[State], Ints]:
    states: list[State] = [(x, y, z) for x in range(side) for y in range(side) for z in range(side)]
    return states, np.array([fingerprint(state) for state in states])


DELTAS = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])


def write(
    path: Path,
    traces: int,
    length: int,
    side: int,
    states: list[State],
    prints: Ints,
) -> None:
    """Walks from the origin that step towards a place of their own, so that all is visited."""
    identity = Identity(
        spec="Cube", spec_hash="0", model="cube", constants={"Side": str(side)},
        variables=["x", "y", "z"], actions=[str(action) for action in ACTIONS],
        system="synthetic", system_version="1",
    )  # fmt: skip
    columns = infer_columns(("x", "y", "z"), states)
    rng = np.random.default_rng(1)
    size = traces_per_file(traces)
    with open_writer(path, identity, columns) as writer:
        for number, first in enumerate(range(0, traces, size)):
            rows = TraceRows()
            count = min(size, traces - first)
            here = np.zeros((count, 3), np.int64)
            visited, taken = [prints[cell(here, side)]], []
            bias = rng.dirichlet([0.7] * 6, count).cumsum(axis=1)
            for _ in range(length):
                action = choose(rng, bias, here, side)
                here = here + DELTAS[action]
                visited.append(prints[cell(here, side)])
                taken.append(action)
            for offset, (path_, codes) in enumerate(
                zip(np.stack(visited, 1).tolist(), np.stack(taken, 1).tolist(), strict=True)
            ):
                rows.add(first + offset, 0, path_, codes, "length")
            writer.add_chunk(write_chunk(writer.folder, number, rows))
        writer.write_states(prints, states)


def cell(here: Ints, side: int) -> Ints:
    return (here[:, 0] * side + here[:, 1]) * side + here[:, 2]


def choose(rng: np.random.Generator, bias: npt.NDArray[np.float64], here: Ints, side: int) -> Ints:
    """One action per walk that stays within the cube."""
    action = (rng.random((len(here), 1)) > bias).sum(axis=1).clip(0, 5)
    outside = ((here + DELTAS[action] < 0) | (here + DELTAS[action] >= side)).any(axis=1)
    chosen: Ints = np.where(outside, action ^ 1, action)
    return chosen


def table(side: int, prints: Ints) -> ModelTable:
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    parts = []
    for code, delta in enumerate(DELTAS):
        after = grid + delta
        inside = ((after >= 0) & (after < side)).all(axis=1)
        codes = np.full(inside.sum(), code)
        parts.append((cell(grid[inside], side), codes, cell(after[inside], side)))
    source, action, target = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ModelTable(prints, prints[source], action.astype(np.int32), prints[target])


def warm_up(spark: SparkSession, store: TraceStore) -> None:
    """Start the executor's threads and compile Spark's own classes, on one file."""
    read_traces(spark, store.files("traces")[:1]).selectExpr("explode(states)").count()


def scan_seconds(spark: SparkSession, store: TraceStore) -> float:
    """Seconds of the audit's scan in a session whose JVM has compiled it: a second store's."""
    begun = time.monotonic()
    visited(spark, store.files("traces"), FEW)
    return time.monotonic() - begun


def bare_scan(spark: SparkSession, store: TraceStore) -> float:
    """Seconds of a Parquet scan that reads every element of both arrays."""
    begun = time.monotonic()
    traces = read_traces(spark, store.files("traces"))
    traces.select(F.explode("states").alias("x")).agg(F.expr("bit_xor(x)")).collect()
    traces.select(F.explode("actions").alias("x")).agg(F.expr("bit_xor(x)")).collect()
    return time.monotonic() - begun


def heap_peak(spark: SparkSession) -> int:
    """Bytes: the sum of the peaks of the JVM's heap pools."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    beans = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    pools = [bean for bean in beans if bean.getType().name() == "HEAP"]
    return sum(int(pool.getPeakUsage().getUsed()) for pool in pools)


if __name__ == "__main__":
    main()
