"""From how many distinct states on Spark SQL judges for less than Python, and how both scale.

    python -m benchmarks.spark_crossing [--states N,N...] [MODEL ...]
    python -m benchmarks.spark_crossing --workers [--states N] [MODEL]

The first form prints processor seconds of the formulas of an audit, by each evaluator, for growing
numbers of states and of transitions. Every figure is of a session of its own: a plan's compilation
and the JVM's warm-up are part of it, Spark's start is not. The second form prints seconds by the
clock on a cluster of one and of two workers, and their ratio; each worker is a process with one
core. The states are a model's, breadth first, and repeated under other fingerprints.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.audit_cost import _processor_seconds
from conformance.audit import judge
from conformance.audit.evaluator import Evaluator, StateRows
from conformance.audit.judge import StateJudge, Verdicts, VisitJudge
from conformance.audit.sql import SqlJudge
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.spark.session import spark_session
from conformance.spark.workers import OnSpark
from conformance.stages.audit import safety_properties
from conformance.tla import find_tools
from conformance.tla.search import reachable_states
from conformance.traces.manifest import Identity
from conformance.traces.rows import TraceRows
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import open_writer, write_chunk

MODELS = ["replication/kip320-fine-2b", "group/dynamic-2m"]
DISTINCT = 5_000
"""States of the model that are repeated."""
_MARK = "cost of the formulas: "


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--states", default="20000,100000,500000")
    parser.add_argument("--workers", action="store_true", help="one and two workers of a cluster")
    parser.add_argument("--judge", nargs=2, metavar=("MASTER", "EVALUATOR"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    numbers = [int(number) for number in options.states.split(",")]
    if options.judge:
        judged(options.models[0], numbers[0], *options.judge)
    elif options.workers:
        scaling(options.models[0], numbers[-1])
    else:
        crossing(options.models, numbers)


def crossing(models: list[str], numbers: list[int]) -> None:
    print(f"{'':28}{'states':>10}{'steps':>10}{'Python s':>10}{'SQL s':>8}{'ratio':>7}")
    for model in models:
        for number in numbers:
            python, sql = (cost(model, number, "local[2]", way) for way in ("python", "sql"))
            counts = f"{number:10,}{int(python['steps']):10,}"
            seconds = f"{python['processor']:10.1f}{sql['processor']:8.1f}"
            ratio = python["processor"] / sql["processor"]
            print(f"{model:28}{counts}{seconds}{ratio:7.2f}", flush=True)


def scaling(model: str, number: int) -> None:
    print(f"{model}, {number:,} states{'one worker s':>14}{'two workers s':>15}{'ratio':>7}")
    for way in ("python", "sql"):
        one, two = (cost(model, number, f"local-cluster[{n},1,1024]", way)["wall"] for n in (1, 2))
        print(f"{way:>28}{one:14.1f}{two:15.1f}{one / two:7.2f}", flush=True)


def cost(model: str, number: int, master: str, way: str) -> dict[str, float]:
    """What a process of its own measured."""
    words = ["-m", "benchmarks.spark_crossing", model, "--states", str(number)]
    done = subprocess.run(
        [sys.executable, *words, "--judge", master, way],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    seconds: dict[str, float] = json.loads(line.removeprefix(_MARK))
    return seconds


def judged(model: str, number: int, master: str, way: str) -> None:
    """Judge the states and steps by one evaluator, and print what it took."""
    prepared = prepare(find_models([model])[0], find_tools())
    with tempfile.TemporaryDirectory() as folder, spark_session(master) as session:
        store, visits = saved(Path(folder) / "store", prepared, number)
        workers = OnSpark(session)
        used, begun = _processor_seconds(), time.monotonic()
        formulas(workers, store, prepared, visits, sql=way == "sql")
        seconds = time.monotonic() - begun
        used = _processor_seconds() - used
    print(_MARK + json.dumps({"processor": used, "wall": seconds, "steps": len(visits)}))


def formulas(
    workers: OnSpark, store: TraceStore, prepared: PreparedModel, visits: pa.Table, *, sql: bool
) -> None:
    """The part of an audit that the evaluators share."""
    invariants, properties = prepared.model.check.invariants, safety_properties(prepared)
    evaluator = Evaluator.of(prepared.spec, store, invariants, properties)
    first = SqlJudge(workers, store, evaluator, tuple(invariants), properties, sql)
    paths = zip(store.files("states"), store.manifest.files, strict=False)
    rows, _ = first.states([StateRows(path.resolve(), 0, entry.rows) for path, entry in paths])
    states = StateJudge(evaluator, tuple(invariants))
    parts = judge.state_rows(rows, workers.tasks)
    of_states = workers.reduce(states, parts, judge.merged, Verdicts.nothing())
    left, _ = first.steps(visits)
    steps = VisitJudge(evaluator, properties, anywhere=False)
    slices = judge.slices(left, workers.tasks)
    of_steps = workers.reduce(steps, slices, judge.merged, Verdicts.nothing())
    if of_states.bad or of_steps.bad or first.disputes:
        raise AssertionError((of_states.bad[:3], of_steps.bad[:3], first.disputes[:3]))


def saved(path: Path, prepared: PreparedModel, number: int) -> tuple[TraceStore, pa.Table]:
    """So many states, each with its first step, and the steps as the audit asks about them."""
    spec = prepared.spec
    states = list(islice(reachable_states(spec), DISTINCT))
    place = {state: index for index, state in enumerate(states)}
    codes = {action: code for code, action in enumerate(spec.actions)}
    edges = [
        (place[state], codes[action], place[after])
        for state in states
        for action, after in islice(spec.successors(state), 1)
        if after in place
    ]
    copies = -(-number // len(states))
    prints = np.arange(copies * len(states), dtype=np.int64)
    columns = infer_columns(spec.variables, states)
    names = [str(action) for action in spec.actions]
    identity = Identity(spec.module.name, "", "m", {}, list(spec.variables), names, "toy", "1")
    with open_writer(path, identity, columns) as writer:
        writer.add_chunk(write_chunk(writer.folder, 0, TraceRows()))
        writer.write_states(prints, states * copies)
    first = np.repeat(np.arange(copies, dtype=np.int64) * len(states), len(edges))
    source, action, target = (
        np.tile(np.array(column), copies) for column in zip(*edges, strict=True)
    )
    visits = pa.table(
        {
            "source": first + source,
            "action": pa.array(action.astype(np.int32)),
            "target": first + target,
            "visits": np.ones(len(first), np.int64),
        }
    )
    nothing = visits.select(["source", "action", "target"]).slice(0, 0)
    return TraceStore.open(path), judge.asked(visits, nothing, 1)


if __name__ == "__main__":
    main()
