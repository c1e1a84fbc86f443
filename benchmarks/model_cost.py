"""Processor seconds that a small model costs, whatever it checks: a JVM's share, parsing, loading.

    python -m benchmarks.model_cost                       models of fewer than 100 states
    python -m benchmarks.model_cost --against CHECKOUT    and those of another commit

`kconform check` runs cold on a quarter of the models and on all of them, each specification in
both. The difference, for each model more, is the fixed cost of a model: what a run of the command
and the parse of a specification cost once is not in it. It uses processor time, because other
programs may load the machine. Both commits run in this interpreter's environment.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from benchmarks.processes import run
from conformance.modelcheck.manifest import Model, find_models

SMALL = 100
"""Distinct states. A model that must fail states none: its search ends early."""
LEAST = 8
"""Models of a specification, so that a quarter of them is at least two."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    options = parser.parse_args()
    families = small()
    ours = fixed_cost(families, Path.cwd())
    if options.against is not None:
        theirs = fixed_cost(families, options.against.absolute())
        print(f"against the other commit: {ours / theirs:.2f}")


def small() -> list[list[str]]:
    """The names of the small models of the ci tier, by specification."""
    models = [model for model in find_models((), "ci") if is_small(model)]
    models.sort(key=lambda model: model.spec)
    names = [[m.name for m in group] for _, group in groupby(models, lambda model: model.spec)]
    return [family for family in names if len(family) >= LEAST]


def is_small(model: Model) -> bool:
    """Whether TLC sees few states of it."""
    expect = model.expect
    if expect is None or model.feeds_suite:
        return False
    return expect.distinct_states < SMALL and expect.counterexample_length < LEAST


def fixed_cost(families: list[list[str]], checkout: Path) -> float:
    """Processor seconds for each model more."""
    some = [name for family in families for name in family[: len(family) // 4]]
    every = [name for family in families for name in family]
    few, many = (seconds(names, checkout) for names in (some, every))
    cost = (many - few) / (len(every) - len(some))
    print(
        f"{len(some)} models {few:6.1f} s, {len(every)} models {many:6.1f} s of processor time: "
        f"{cost:.2f} s for each model more",
        flush=True,
    )
    return cost


def seconds(models: list[str], checkout: Path) -> float:
    """Processor seconds of a cold check."""
    with tempfile.TemporaryDirectory() as folder:
        environment = ["env", "-C", str(checkout), f"KCONFORM_CACHE={folder}"]
        command = [sys.executable, "-m", "conformance.cli", "check", "--jobs", "1", *models]
        return run([*environment, *command]).processor


if __name__ == "__main__":
    main()
