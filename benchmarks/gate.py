"""Processor seconds of the gate, cold and with its results cached.

    python -m benchmarks.gate             the models that the gate had when its goal was set
    python -m benchmarks.gate --all       all models of the ci tier
    python -m benchmarks.gate MODEL...    these
    python -m benchmarks.gate --against CHECKOUT    and those of another commit, on this machine

The goal: 600 processor seconds for the models of then, which took 965, nothing checked less; 60 s
by the clock with cached state graphs. The same models have more formulas and counts of disjuncts to
be checked today, and the gate more stages. The figure of then is another machine's: `--against` a
checkout of commit fc5f3fc, installed in its own `.venv`, gives the ratios of one machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.processes import Cost, run

THEN = Path(__file__).with_name("gate_models.txt")
"""The 64 models of the ci tier at commit fc5f3fc."""
INCONCLUSIVE = 3
"""The exit code where some models alone do not take every action: the table shows the verdict."""
PROCESSOR_THEN = 965.0
"""Seconds, cold, on the machine of that day."""
WHAT = ("cold", "cached")
PYTHON = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--all", action="store_true", help="all models of the ci tier")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="with a .venv of its own")
    options = parser.parse_args()
    then = not options.all and not options.models
    models = THEN.read_text().split() if then else options.models
    print(f"{'':8}{'processor s':>12}{'wall s':>8}{'verdict':>10}")
    costs = both(models, Path.cwd(), Path(sys.executable).parent)
    if then:
        share = costs[0].processor / PROCESSOR_THEN
        print(f"cold, against the {PROCESSOR_THEN:.0f} s of then, another machine's: {share:.2f}")
    if options.against is not None:
        other = options.against.absolute()
        print(other.name)
        others = both(models, other, other / ".venv" / "bin")
        for what, ours, theirs in zip(WHAT, costs, others, strict=True):
            processor, wall = ours.processor / theirs.processor, ours.wall / theirs.wall
            print(f"{what}, against it: processor {processor:.2f}, by the clock {wall:.2f}")


def both(models: list[str], checkout: Path, programs: Path) -> list[Cost]:
    """The checkout's gate, without a cache and with the one that it then has left."""
    with tempfile.TemporaryDirectory() as folder:
        # Child processes import from the current folder first.
        env = ["env", "-C", str(checkout)]
        # A cache that the user names would come before ours, and nothing would be cold.
        env += ["-u", "KCONFORM_CACHE", f"XDG_CACHE_HOME={Path(folder) / 'cache'}"]
        # Spark's workers are to be of the same installation.
        env += [f"{name}={programs / 'python'}" for name in PYTHON]
        command = [*env, str(programs / "kconform"), "gate", *models]
        return [gate(command, Path(folder), what) for what in WHAT]


def gate(command: list[str], folder: Path, what: str) -> Cost:
    """One run of the gate."""
    cost = run([*command, "-o", str(folder / what)], codes=(0, INCONCLUSIVE))
    verdict = cost.output.strip().splitlines()[-1][:40] if cost.output.strip() else ""
    print(f"{what:8}{cost.processor:12.1f}{cost.wall:8.1f}  {verdict}", flush=True)
    return cost


if __name__ == "__main__":
    main()
