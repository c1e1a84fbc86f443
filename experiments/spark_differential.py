"""Spark against Python: the verdicts must be equal, on damaged states and transitions or on all.

Run: python experiments/spark_differential.py kip320-fine-2b --rows 100000 --seed 1
     python experiments/spark_differential.py --every [MODEL ...]
Asked are all invariants and properties that any model of the same specification names, and all
actions of Next, or those `--kinds` that are named. The first form damages half of the rows or more
at random. With `--every` the rows are all states and steps of each model as they are, of all ci
models that hold if none is named, and every action is asked of every step. Exit code 1 if a
verdict differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.parser import Parser
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.spark.session import spark_session
from conformance.tla import UnsupportedError, find_tools
from tests.spark.tla.compare import Comparison, Count

KINDS = ("invariant", "property", "action")
NO_LONG_COMPILATION = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Each query runs once: HotSpot's second compiler would never earn back what it costs."""
FEW = 10_000
"""States up to which generated code would take longer to compile than it saves."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Verdicts, how many of them were false or undefined, and on how many Spark said otherwise."""

    asked: int
    false: int
    undefined: int
    differing: int


def sums(counts: Iterable[Count]) -> Sums:
    """Over all formulas."""
    result = list(counts)
    false, undefined = sum(c.false for c in result), sum(c.undefined for c in result)
    return Sums(
        sum(count.true for count in result) + false + undefined,
        false,
        undefined,
        sum(count.differing for count in result),
    )


def formulas_of(prepared: PreparedModel) -> tuple[list[str], list[str]]:
    """The invariants and the safety properties that any model of the specification names."""
    family = [other for other in find_models() if other.spec_path == prepared.model.spec_path]
    invariants = dict.fromkeys(name for other in family for name in other.check.invariants)
    named = dict.fromkeys(name for other in family for name in other.check.properties)
    return list(invariants), [name for name in named if is_safety_property(prepared.module, name)]


def shown(kind: str, counts: Iterable[Count]) -> list[Count]:
    """A line per formula is printed as it is found."""
    result = []
    for count in counts:
        print(
            f"{kind:10} {count.formula:32} {count.true:7} true {count.false:7} false "
            f"{count.undefined:6} undefined {count.differing:4} differ",
            flush=True,
        )
        result.append(count)
    return result


def damaged(spark: SparkSession, model: Model, options: argparse.Namespace) -> int:
    """Prints a line per formula; the number of verdicts that differ."""
    start = time.perf_counter()
    prepared = prepare(model, find_tools())
    invariants, properties = formulas_of(prepared)
    rows: int = options.rows
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        compare = Comparison(
            spark, prepared.spec, Path(folder), states=options.states, seed=options.seed
        )
        if "invariant" in options.kinds:
            counts += shown("invariant", compare.invariants(invariants, rows))
        if "property" in options.kinds:
            counts += shown("property", compare.properties(properties, rows))
        if "action" in options.kinds:
            counts += shown("action", compare.actions(rows))
    result, seconds = sums(counts), time.perf_counter() - start
    print(f"{model.name}: {result.asked} verdicts, {result.differing} differ, {seconds:.0f} s")
    return result.differing


def every(spark: SparkSession, models: Sequence[Model], kinds: Sequence[str], seed: int) -> int:
    """Prints a line per model, and one per formula that differs; the number that differ."""
    width = max(len(model.name) for model in models)
    line = f"{{:<{width}}} {{:>7}} {{:>7}} {{:>8}} {{:>9}} {{:>9}} {{:>9}} {{:>6}}"
    head = ("model", "states", "steps", "formulas", "verdicts", "false", "undefined", "differ")
    print(line.format(*head), flush=True)
    differing, parser = 0, Parser()
    parser.announce(models)
    for model in models:
        prepared = prepare(model, find_tools(), parser)
        try:
            size, counts = on_every_state(spark, prepared, kinds, seed)
        except UnsupportedError as error:  # the audit then asks the evaluator
            print(f"{model.name:<{width}} not compiled to Spark: {error}", flush=True)
            continue
        result = sums(counts)
        differing += result.differing
        figures = (len(counts), result.asked, result.false, result.undefined, result.differing)
        print(line.format(model.name, *size, *figures), flush=True)
        shown("", (count for count in counts if count.differing))
    return differing


def on_every_state(
    spark: SparkSession, prepared: PreparedModel, kinds: Sequence[str], seed: int
) -> tuple[tuple[int, int], list[Count]]:
    """The numbers of states and steps, and what was found."""
    expect = prepared.model.expect
    few = expect is not None and expect.distinct_states <= FEW
    spark.conf.set("spark.sql.codegen.wholeStage", str(not few).lower())
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if few else "FALLBACK")
    invariants, properties = formulas_of(prepared)
    steps = 0 if set(kinds) == {"invariant"} else None
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        compare = Comparison(
            spark, prepared.spec, Path(folder), states=None, steps=steps, seed=seed
        )
        if "invariant" in kinds:
            counts += compare.invariants(invariants, None)
        if "property" in kinds:
            counts += compare.properties(properties, None)
        if "action" in kinds:
            counts += compare.actions_on_every_step()
    return compare.size, counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="models of this project, by name or path")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--states", type=int, default=20_000, help="of which rows are made")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="all states and steps, undamaged")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    if not (options.models or options.every):
        parser.error("name a model, or ask --every")
    models = find_models(options.models, tier=None if options.models else "ci")
    with spark_session("local[2]", settings=NO_LONG_COMPILATION) as spark:
        if options.every:
            hold = [model for model in models if model.expect and model.expect.result == "holds"]
            differing = every(spark, hold, options.kinds, options.seed)
        else:
            differing = sum(damaged(spark, model, options) for model in models)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
