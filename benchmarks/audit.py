"""Audits many random walks here, in processes and on Spark; prints the cost and the ratios.

The walks are those of a model's state graph, so nothing need be driven to make the store.

    python -m benchmarks.audit [--traces N] [--model NAME] [WAY ...]
    python -m benchmarks.audit --against CHECKOUT    also the audit of another commit, on Spark

The goals for a million traces of 20 steps: at most 15 s of processor time here, at most 25 s on
Spark. Each audit is a process of its own; reading the model and its graph is not part of the cost,
the start of Spark is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import audit_cost
from conformance.audit.visited import KEY, batches, visits_of
from conformance.modelcheck.graph import StateGraph
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.stages.identity import identity
from conformance.traces.rows import TraceRows
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import open_writer, traces_per_file, write_chunk

Ints = npt.NDArray[np.int64]
STUCK = -1
"""The code of no action: the walk has ended."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--model", default="replication/bench/kip320-coarse-2b-4-epochs")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another commit's tree")
    parser.add_argument("ways", nargs="*", default=[*audit_cost.WAYS], metavar="WAY")
    options = parser.parse_args()
    bench = workbench(Context(), one_model(options.model), None)
    with tempfile.TemporaryDirectory() as folder:
        store, quarter = Path(folder) / "store", Path(folder) / "quarter"
        write(store, bench, options.traces, options.length)
        write(quarter, bench, options.traces // 4, options.length)
        print(f"{'':30}{'processor s':>12}{'ratio':>7}{'wall s':>8}{'audit s':>9}{'peak MiB':>10}")
        print(f"{'one group-by of the columns':30}{group_by(store):12.1f}", flush=True)
        here, *others = options.ways
        first = shown(here, store, here, options.model, Path.cwd(), None)
        for way in others:
            shown(way, store, way, options.model, Path.cwd(), first)
        if options.against is not None:
            root = options.against.absolute()
            shown("the other commit, local[2]", store, "local[2]", options.model, root, first)
        shown("here, a quarter of the traces", quarter, "here", options.model, Path.cwd(), first)
        print(f"steps                         {first.said['steps']:,}")
        print(f"distinct transitions          {first.said['distinct']:,}")


def shown(
    what: str, store: Path, way: str, model: str, root: Path, first: audit_cost.Cost | None
) -> audit_cost.Cost:
    """Audit the store with the code in `root`, and print what it took."""
    words = [sys.executable, audit_cost.__file__, str(store), way, model]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        words, cwd=root, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    cost = audit_cost.read(done.stdout)
    ratio = cost.processor / (first or cost).processor
    seconds = f"{cost.processor:12.1f}{ratio:7.2f}{cost.wall:8.1f}{cost.audit:9.1f}"
    print(f"{what:30}{seconds}{cost.peak:10d}", flush=True)
    if first is not None and store.name == "store" and cost.said != first.said:
        sys.exit(f"the audits differ: {first.said} and {cost.said}")
    return cost


def group_by(path: Path) -> float:
    """Processor seconds to count equal visits, which an audit cannot do without."""
    begun = time.process_time()
    files = TraceStore.open(path, verify=False).files("traces")
    for batch in batches(files, ["states", "actions"]):
        visits = visits_of(batch.column("states"), batch.column("actions"))
        visits.group_by(list(KEY), use_threads=False).aggregate([([], "count_all")])
    return time.process_time() - begun


def write(path: Path, bench: Workbench, traces: int, length: int) -> None:
    """Random walks along the model's state graph, each from an initial state."""
    graph, rng = bench.graph, np.random.default_rng(1)
    of = identity(bench.prepared, bench.factory, {"seed": "1", "length": str(length)})
    codes = {action: code for code, action in enumerate(of.parsed_actions())}
    recoded = np.array([codes[action] for action in graph.actions])
    states, visited = list(graph.states), np.zeros(0, np.int64)
    size = traces_per_file(traces)
    with open_writer(path, of, infer_columns(bench.prepared.spec.variables, states)) as writer:
        for number, first in enumerate(range(0, traces, size)):
            rows = TraceRows()
            walked = walks(graph, recoded, rng, min(size, traces - first), length)
            visited = np.union1d(visited, walked[0])
            for trace, (seen, step) in enumerate(zip(*(x.tolist() for x in walked), strict=True)):
                steps = step.index(STUCK) if STUCK in step else length
                rows.add(first + trace, 0, seen[: steps + 1], step[:steps], "length")
            writer.add_chunk(write_chunk(writer.folder, number, rows))
        known = np.flatnonzero(np.isin(graph.fingerprints, visited))
        writer.write_states(graph.fingerprints[known], [states[number] for number in known])


def walks(
    graph: StateGraph, codes: Ints, rng: np.random.Generator, count: int, length: int
) -> tuple[Ints, Ints]:
    """The fingerprints and the action codes of so many walks, a row for each."""
    order = np.argsort(graph.source, kind="stable")
    numbers = np.arange(len(graph.states))
    first = np.searchsorted(graph.source[order], numbers)
    degree = np.searchsorted(graph.source[order], numbers, side="right") - first
    here = rng.choice(np.asarray(graph.initial), count)
    seen, step = [graph.fingerprints[here]], []
    for _ in range(length):
        free = degree[here] > 0
        chosen = first[here] + (rng.random(count) * degree[here]).astype(np.int64)
        edge = order[np.where(free, chosen, 0)]
        step.append(np.where(free, codes[graph.action[edge]], STUCK))
        here = np.where(free, graph.target[edge], here)
        seen.append(graph.fingerprints[here])
    return np.stack(seen, 1), np.stack(step, 1)


if __name__ == "__main__":
    main()
