"""Plants faults in copies of real, clean directories, and tables which `kconform inspect` finds.

    python -m experiments.inspect_faults COPIES ... [--each 7] [--seed 1] [--kafka 4.4.0]

COPIES are folders that `kconform cluster incident clean` wrote. A fault counts as found if a
finding of the right kind names the broker that it was planted at; as proved if that finding fails,
and is not only inconclusive. The first column is the invariant between files that it breaks
(docs/disk-invariants.md). The clean copies themselves must give no finding. Exit code 1 if one
fault was missed, or a clean copy accused.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from conformance.inspect.findings import Discovery
from conformance.inspect.inspection import inspect
from conformance.inspect.reading.inputs import Inputs
from conformance.inspect.reading.reader import read
from conformance.kafka.incidents import TOPIC
from conformance.kafka.jars import NEWEST, kafka_jars
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict, merge
from tests.planted.faults import FAULTS
from tests.planted.sites import Planted, Site

BROKERS = ("b1", "b2", "b3")
_SPECIFICATIONS = Specifications()


def findings(copies: Path, work: Path, jars: tuple[Path, ...]) -> tuple[Discovery, ...]:
    """What an inspection of the data directories and server logs finds."""
    folders = {broker: (str(copies / broker / "data"),) for broker in BROKERS}
    texts = [(broker, copies / broker / "server.log") for broker in BROKERS]
    logs = tuple(f"{broker}={path}" for broker, path in texts if path.exists())
    shutil.rmtree(work, ignore_errors=True)
    return inspect(
        read(Inputs(folders, logs), work, jars), specifications=_SPECIFICATIONS
    ).discoveries


def told_as(planted: Planted, discoveries: tuple[Discovery, ...]) -> Verdict | None:
    """The verdict of the findings of the fault's kind at its broker; None if there is none."""
    wanted = FAULTS[planted.kind].told_by
    verdicts = [
        discovery.verdict
        for discovery in discoveries
        if discovery.kind in wanted
        and (not discovery.brokers or set(discovery.brokers) & set(planted.brokers))
    ]
    return merge(verdicts) if verdicts else None


def plant(source: Path, target: Path, kind: str, seed: int) -> Planted:
    """A copy of the source with one fault."""
    shutil.rmtree(target, ignore_errors=True)
    for broker in BROKERS:
        shutil.copytree(source / broker, target / broker)
    draw = random.Random(f"{kind} {seed}")
    site = Site(target, TOPIC, BROKERS, draw)
    fault = FAULTS[kind]
    return fault.plant(site, fault.at(site, draw.choice(BROKERS)))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("copies", nargs="+", type=Path)
    parser.add_argument("--each", type=int, default=7, help="faults of each kind and copy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=FAULTS, default=list(FAULTS), metavar="KIND")
    parser.add_argument("--kafka", default=NEWEST, help="whose schemas decode the records")
    options = parser.parse_args()
    jars = kafka_jars(options.kafka).classpath
    planted, named, proved, bad = Counter[str](), Counter[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="kconform-faults-") as folder:
        copy, work = Path(folder) / "copy", Path(folder) / "work"
        for source in options.copies:
            accused = findings(source, work, jars)
            print(f"{source}: {len(accused)} findings without a fault")
            bad += len(accused)
            site = Site(source, TOPIC, BROKERS, random.Random(options.seed))
            left_out = [kind for kind in FAULTS if not FAULTS[kind].needs(site)]
            print(f"  not planted, as nothing of the kind is there: {', '.join(left_out) or '-'}")
            for kind in (kind for kind in options.kinds if kind not in left_out):
                for number in range(options.each):
                    fault = plant(source, copy, kind, options.seed * 1000 + number)
                    discoveries = findings(copy, work, jars)
                    planted[kind] += 1
                    verdict = told_as(fault, discoveries)
                    named[kind] += verdict is not None
                    proved[kind] += verdict is Verdict.FAIL
                    if verdict is None:
                        kinds = sorted(
                            {f"{discovery.kind} ({discovery.verdict})" for discovery in discoveries}
                        )
                        where = f"{kind} {number} at {', '.join(fault.brokers)}"
                        print(f"missed: {where}: {fault.what}; told: {kinds}", flush=True)
    print(f"\n{'invariant':38} {'fault':38} planted  found proved")
    for kind, count in sorted(planted.items(), key=lambda pair: FAULTS[pair[0]].invariant):
        row = FAULTS[kind].invariant or "-"
        print(f"{row:38} {kind:38} {count:7} {named[kind]:6} {proved[kind]:6}")
    print(f"{'all':77} {planted.total():7} {named.total():6} {proved.total():6}")
    return 1 if bad or named.total() < planted.total() else 0


if __name__ == "__main__":
    sys.exit(main())
