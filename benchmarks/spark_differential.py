"""Spark against Python on damaged states and transitions: the verdicts must be equal.

Run: python benchmarks/spark_differential.py SPEC.tla CONFIG.cfg --rows 100000 --seed 1
Invariants and properties are those of the configuration; every action that fires is one more
formula. Half of the rows or more are damaged at random. Exit code 1 if a verdict differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "spark" / "tla"))

from corrupt import Corrupter
from spark_formulas import reachable

from conformance.audit.session import spark_session
from conformance.tla.arrow import write_states
from conformance.tla.config import parse_config
from conformance.tla.evaluate.errors import EvaluationError
from conformance.tla.reader import load_module
from conformance.tla.schema import Schema, infer_schema
from conformance.tla.spark import SparkFormula, compile_action_formulas, compile_state_formulas
from conformance.tla.spec import Spec, bind
from conformance.tla.values import Action, State

Pair = tuple[State, State]


class Comparison:
    """Evaluates each formula in both back ends and prints what it saw."""

    def __init__(self, spark: SparkSession, schema: Schema, folder: Path) -> None:
        self._spark, self._schema, self._path = spark, schema, folder / "rows.parquet"
        self.differing = 0

    def __call__(
        self, formula: SparkFormula, python: Callable[[State, State], bool], pairs: Sequence[Pair]
    ) -> None:
        expected = [self._verdict(python, pair) for pair in pairs]
        before = write_states(self._schema, [pair[0] for pair in pairs])
        after = write_states(self._schema, [pair[1] for pair in pairs])
        names = [*before.column_names, *(f"next_{name}" for name in after.column_names)]
        pq.write_table(pa.table([*before.columns, *after.columns], names=names), self._path)
        rows = self._spark.read.parquet(str(self._path)).coalesce(1)
        found = [row[0] for row in rows.select(F.expr(formula.value)).collect()]
        wrong = sum(a != b for a, b in zip(expected, found, strict=True))
        self.differing += wrong
        print(
            f"{formula.name:40} {expected.count(True):7} true {expected.count(False):7} false "
            f"{expected.count(None):6} undefined {wrong:6} differ",
            flush=True,
        )

    def _verdict(self, python: Callable[[State, State], bool], pair: Pair) -> bool | None:
        try:
            return python(*pair)
        except EvaluationError:
            return None


def run(spec: Spec, arguments: argparse.Namespace, spark: SparkSession, folder: Path) -> int:
    random = Random(arguments.seed)
    states = list(islice(reachable(spec), arguments.states))
    schema = infer_schema(spec.variables, states)
    damage = Corrupter(schema, random.sample(states, min(500, len(states))), arguments.seed)
    compare = Comparison(spark, schema, folder)
    damaged = [
        damage(s, random.choice((0, 1, 2, 4))) for s in random.choices(states, k=arguments.rows)
    ]
    steps: dict[Action, list[Pair]] = {}
    for state in random.sample(states, min(3_000, len(states))):
        for action, after in spec.successors(state):
            steps.setdefault(action, []).append((state, after))
    every = [pair for pairs in steps.values() for pair in pairs]

    def transitions(real: Sequence[Pair], count: int) -> list[Pair]:
        made = []
        for before, after in random.choices(real, k=count):
            kind = random.randrange(4)
            made.append(
                (
                    damage(before) if kind == 1 else before,
                    damage(after) if kind == 2 else random.choice(every)[1] if kind == 3 else after,
                )
            )
        return made

    for name in spec.config.invariants:
        of_state = spec.state_formula(name)
        (formula,) = compile_state_formulas(spec.program, [name], schema)
        compare(formula, lambda s, _, f=of_state: f(s), [(s, s) for s in damaged])
    some = transitions(every, arguments.rows)
    for name in spec.config.properties:
        (formula,) = compile_action_formulas(spec.program, [name], schema)
        compare(formula, spec.action_formula(name), some)
    for action, real in steps.items():
        (formula,) = compile_action_formulas(spec.program, [action], schema)
        count = max(100, arguments.rows // len(steps))
        compare(formula, spec.action_formula(action), transitions(real, count))
    print(f"{compare.differing} verdicts differ")
    return 1 if compare.differing else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path)
    parser.add_argument("config", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--states", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    spec = bind(load_module(arguments.spec), parse_config(arguments.config.read_text()))
    settings = {"spark.sql.analyzer.maxIterations": "1000", "spark.sql.codegen.wholeStage": "false"}
    with (
        tempfile.TemporaryDirectory() as folder,
        spark_session("local[2]", settings=settings) as spark,
    ):
        return run(spec, arguments, spark, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
