"""Spark against Python on damaged states and transitions: the verdicts must be equal.

Run: python benchmarks/spark_differential.py kip320-fine-2b --rows 100000 --seed 1
     python benchmarks/spark_differential.py kip320-fine-2b --every
Asked are all invariants and properties that any model of the same specification names, and all
actions of Next. Half of the rows or more are damaged at random; with `--every` they are all states
and steps of the model as they are, and for each action as many other steps. Exit code 1 if a
verdict differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance.audit.session import spark_session
from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import prepare
from conformance.tla.tools import find_tools
from tests.spark.tla.compare import Comparison, Count


def show(kind: str, counts: Iterable[Count]) -> tuple[int, int]:
    """Prints a line per formula; the number of verdicts, and of those that differ."""
    asked = differing = 0
    for count in counts:
        asked += count.true + count.false + count.undefined
        differing += count.differing
        print(
            f"{kind:10} {count.formula:32} {count.true:7} true {count.false:7} false "
            f"{count.undefined:6} undefined {count.differing:4} differ",
            flush=True,
        )
    return asked, differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a model of this project, by name or path")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--states", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="all states and steps, undamaged")
    parser.add_argument("--invariant", action="append", help="this one only, and nothing else")
    arguments = parser.parse_args()
    every: bool = arguments.every
    rows = None if every else arguments.rows
    model = find_models([arguments.model])[0]
    prepared = prepare(model, find_tools())
    family = [other for other in find_models() if other.spec_path == model.spec_path]
    invariants = dict.fromkeys(name for other in family for name in other.check.invariants)
    named = dict.fromkeys(name for other in family for name in other.check.properties)
    module = prepared.module
    safety = [name for name in named if is_safety_property(module, name)]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, spark_session("local[2]") as spark:
        compare = Comparison(
            spark,
            prepared.spec,
            Path(folder),
            states=None if every else arguments.states,
            steps=None if every else 3_000,
            seed=arguments.seed,
        )
        found = [
            show("invariant", compare.invariants(arguments.invariant or list(invariants), rows))
        ]
        if not arguments.invariant:
            found.append(show("property", compare.properties(safety, rows)))
            found.append(show("action", compare.actions(rows)))
    asked, differing = (sum(part) for part in zip(*found, strict=True))
    seconds = time.perf_counter() - start
    print(f"{model.name}: {asked} verdicts, {differing} differ, {seconds:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
