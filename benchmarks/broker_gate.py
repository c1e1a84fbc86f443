"""How long the gate of one broker at its port takes, and how fast its suites go.

The gate starts a broker of the release. Goals, on two cores: the whole gate within 15 minutes, 500
steps/s on Kafka. The slowest suites come first; some wait for timers of the broker.

Run: python -m benchmarks.broker_gate [--release 4.4.0] [--minutes 15] [MODEL...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

GOAL_MINUTES = 15
GOAL_STEPS = 500
KINDS = ("pass", "again", "fail", "inconclusive", "spoiled", "not_driven", "not_run")
"""How tests ended; `again` are those that passed when they were driven once more."""
ENDED = (0, 3)
"""Exit codes of a gate that has run whole: it passed, or not every action was taken."""


def gated(release: str, minutes: float | None, models: list[str], folder: Path) -> Any:
    """The report of the gate. The process ends if the gate did not run whole."""
    command = [sys.executable, "-m", "conformance.cli", "gate", *models, "-o", str(folder)]
    command += ["--system", f"broker-{release}"]
    command += [] if minutes is None else ["--minutes", str(minutes)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in ENDED:
        sys.exit(f"the gate ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return json.loads((folder / "report.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--release", default="4.4.0")
    parser.add_argument("--minutes", type=float, help="only suites that take so long in all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = gated(options.release, options.minutes, options.models, Path(folder))
    replay = report["stages"]["replay"]
    suites = sorted(replay.get("models", [replay]), key=lambda suite: -suite["seconds"])
    print("| suite | steps | s | steps/s |\n|---|---|---|---|")
    for suite in suites:
        pace = suite["steps"] / suite["seconds"]
        cells = (suite["model"], f"{suite['steps']:,}", f"{suite['seconds']:.0f}", f"{pace:,.0f}")
        print(f"| {' | '.join(cells)} |")
    steps, seconds = (sum(suite[what] for suite in suites) for what in ("steps", "seconds"))
    tests = {kind: sum(suite["tests"][kind] for suite in suites) for kind in KINDS}
    print(", ".join(f"{count:,} tests {kind.replace('_', ' ')}" for kind, count in tests.items()))
    minutes = report["seconds"] / 60
    print(
        f"{len(suites)} suites, {steps:,} steps, {steps / seconds:,.0f} steps/s "
        f"(goal: {GOAL_STEPS}); the gate took {minutes:.1f} min (goal: {GOAL_MINUTES})"
    )


if __name__ == "__main__":
    main()
