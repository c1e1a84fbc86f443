"""Processor seconds of the gate, cold and with its results cached.

    python -m benchmarks.gate             the models that the gate had when its goal was set
    python -m benchmarks.gate --all       all models of the ci tier
    python -m benchmarks.gate MODEL...    these

The goal: 600 processor seconds for the models of then, which took 965, nothing checked less; 60 s
by the clock with cached state graphs. The same models have more formulas and counts of disjuncts to
be checked today, and the gate more stages.
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--all", action="store_true", help="all models of the ci tier")
    options = parser.parse_args()
    then = not options.all and not options.models
    models = THEN.read_text().split() if then else options.models
    print(f"{'':8}{'processor s':>12}{'wall s':>8}{'verdict':>10}")
    with tempfile.TemporaryDirectory() as folder:
        costs = [gate(models, Path(folder), what) for what in ("cold", "cached")]
    if then:
        share = costs[0].processor / PROCESSOR_THEN
        print(f"cold, against the {PROCESSOR_THEN:.0f} s of then: {share:.2f}")


def gate(models: list[str], folder: Path, what: str) -> Cost:
    """One run of the gate; `folder` has the cache that the second run finds."""
    kconform = str(Path(sys.executable).with_name("kconform"))
    command = [kconform, "gate", *models, "-o", str(folder / what)]
    # A cache that the user names would come before ours, and nothing would be cold.
    ours = ["env", "-u", "KCONFORM_CACHE", f"XDG_CACHE_HOME={folder / 'cache'}"]
    cost = run([*ours, *command], codes=(0, INCONCLUSIVE))
    verdict = cost.output.strip().splitlines()[-1][:40] if cost.output.strip() else ""
    print(f"{what:8}{cost.processor:12.1f}{cost.wall:8.1f}  {verdict}", flush=True)
    return cost


if __name__ == "__main__":
    main()
