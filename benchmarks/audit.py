"""Audits a large synthetic store here, in processes and on Spark; prints the cost and the ratios.

The protocol is a walk in a cube: three counters, six actions. With the default side it has 6,859
states, and the store shows some 38,000 distinct transitions.

    python -m benchmarks.audit [--traces N] [--side N]
    python -m benchmarks.audit --against CHECKOUT    also the audit of another commit, on Spark

The goals for a million traces of 20 steps: at most 15 s of processor time here, at most 25 s on
Spark. Each audit is a process of its own; its imports and the start of Spark are part of the cost.
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
import pyarrow as pa

from benchmarks import audit_cost
from conformance.audit.coverage import ModelTable
from conformance.audit.visited import batches, visits_of
from conformance.tla import Action, State, fingerprint
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
    parser.add_argument("--side", type=int, default=19)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another commit's tree")
    parser.add_argument("ways", nargs="*", default=[*audit_cost.WAYS])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        states, prints = cube(options.side)
        store, quarter = Path(folder) / "store", Path(folder) / "quarter"
        (Path(folder) / "Cube.tla").write_text(CUBE)
        write(store, options.traces, options.length, options.side, states, prints)
        write(quarter, options.traces // 4, options.length, options.side, states, prints)
        bare = group_by(store)
        print(f"{'':34}{'processor s':>12}{'ratio':>7}{'wall s':>8}{'peak MiB':>10}")
        print(f"{'one group-by of the columns':34}{bare:12.1f}")
        first = None
        for way in options.ways:
            cost = shown(way, store, way, options.side, Path.cwd(), first)
            first = first or cost
        if options.against is not None:
            root = options.against.absolute()
            shown("the other commit, on Spark", store, "local[2]", options.side, root, first)
        shown("here, a quarter of the traces", quarter, "here", options.side, Path.cwd(), first)


def shown(
    what: str, store: Path, way: str, side: int, root: Path, first: audit_cost.Cost | None
) -> audit_cost.Cost:
    """Audit the store with the code in `root`, and print what it took."""
    words = [sys.executable, audit_cost.__file__, str(store), way, str(side)]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        words, cwd=root, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    cost = audit_cost.read(done.stdout)
    ratio = cost.processor / (first or cost).processor
    print(f"{what:34}{cost.processor:12.1f}{ratio:7.2f}{cost.wall:8.1f}{cost.peak:10d}", flush=True)
    if first is not None and store.name == "store" and cost.said != first.said:
        sys.exit(f"the audits differ: {first.said} and {cost.said}")
    return cost


def group_by(path: Path) -> float:
    """Processor seconds to count equal visits, which an audit cannot do without."""
    begun, parts = time.process_time(), []
    for batch in batches(
        TraceStore.open(path, verify=False).files("traces"), ["states", "actions"]
    ):
        visits = visits_of(batch.column("states"), batch.column("actions"))
        keys = ["source", "action", "target"]
        parts.append(visits.group_by(keys, use_threads=False).aggregate([([], "count_all")]))
    assert len(pa.concat_tables(parts))
    return time.process_time() - begun


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


if __name__ == "__main__":
    main()
