"""Makes every incident on real brokers, and tables what `kconform inspect` tells from the files.

    python experiments/inspect_incidents.py -o COPIES [--kafka 3.8.1,4.4.0] [--seed 1]

Copies that are in the folder already are read as they are. Exit code 1 if something else is told
than what happened.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from conformance.inspect.inspection import Inspection, inspect
from conformance.inspect.reading.inputs import Inputs
from conformance.inspect.reading.reader import read
from conformance.kafka.incidents import INCIDENTS, make
from conformance.kafka.jars import KafkaJars, kafka_jars
from conformance.printable import counted

BROKERS = ("b1", "b2", "b3")
TOLD = {
    "clean": set[str](),
    "zombie": set[str](),
    "unclean-election": {"lost-by-unclean-election"},
    "re-elected-leader": {"CommittedNeverLost"},
}
"""The kinds of findings that each incident must give."""
SOMETIMES = {"re-elected-leader": {"OneExposedRecordPerOffset"}}
"""What it may give besides: if the new leader had written down its high watermark when its files
were copied, they show that the lost offsets were exposed a second time."""


def judged(copies: Path, jars: KafkaJars) -> Inspection:
    """What data directories and server logs together tell."""
    folders = {broker: (str(copies / broker / "data"),) for broker in BROKERS}
    logs = tuple(f"{broker}={copies / broker / 'server.log'}" for broker in BROKERS)
    with tempfile.TemporaryDirectory(prefix="kconform-incident-") as work:
        return inspect(read(Inputs(folders, logs), Path(work), jars.classpath))


def row(name: str, version: str, inspection: Inspection) -> str:
    """A line of the table."""
    kinds = sorted(
        f"{discovery.kind} at {discovery.offsets[0]}..{discovery.offsets[1] - 1}"
        if discovery.offsets
        else discovery.kind
        for discovery in inspection.discoveries
    )
    cuts = [cut for part in inspection.partitions.values() for cut in part.truncations]
    exposed = sum(cut.cuts_exposed for cut in cuts)
    words = f"{counted(len(cuts), 'truncation')}, {exposed} of exposed records"
    return f"{name:18} {version:6} {inspection.verdict!s:5} {words:40} {', '.join(kinds) or '-'}"


def as_it_happened(name: str, inspection: Inspection) -> bool:
    """Whether the files tell what happened, and nothing else."""
    kinds = {discovery.kind for discovery in inspection.discoveries}
    return TOLD[name] <= kinds <= TOLD[name] | SOMETIMES.get(name, set())


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--kafka", default="3.8.1,4.4.0")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    for version in options.kafka.split(","):
        jars = kafka_jars(version)
        for name in INCIDENTS:
            copies = options.output / f"{name}-{version}"
            if not copies.exists():
                make(name, jars, copies, seed=options.seed)
            inspection = judged(copies, jars)
            print(row(name, version, inspection), flush=True)
            wrong += not as_it_happened(name, inspection)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
