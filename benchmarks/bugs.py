"""Processor seconds until `kconform bugs --patch` answers, of the faults of the catalogues.

Each fault that the specification sees is judged as a change of which nothing else is known: no
system, no model, a budget of a minute. The seconds are of all processes but TLC's, whose state
graphs are made ready before; confirming the kill on the clean tree is part of them.

    python -m benchmarks.bugs [--every N] [--seed N] [ID...]      every N-th row; default: all
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator
from statistics import median

from conformance.bugs.bench import BugEffort, nearest_job, search, touched
from conformance.bugs.fault import (
    Catalogue,
    Fault,
    built_in_catalogues,
    load_catalogue,
    relocated,
)
from conformance.bugs.worker import FaultSearchResult

MINUTE = 60.0
LAYOUT = "{:<6} {:<9} {:>7} {:<22} {}"


def main() -> None:
    options = arguments()
    catalogues = [load_catalogue(path) for path in built_in_catalogues()]
    rows = list(seen(catalogues, options.ids))[:: options.every]
    print(LAYOUT.format("bug", "", "seconds", "oracle", "model"))
    seconds = []
    for fault in rows:
        before = processor_seconds()
        result = judged(fault, catalogues, options.seed)
        seconds.append(processor_seconds() - before)
        print_row(fault, result, seconds[-1])
    print(
        f"{len(rows)} faults: median {median(seconds):.1f} s, longest {max(seconds):.1f} s, "
        f"{sum(number > 20 for number in seconds)} over 20 s, "
        f"{sum(number > 120 for number in seconds)} over 120 s"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def seen(catalogues: list[Catalogue], ids: list[str]) -> Iterator[Fault]:
    for catalogue in catalogues:
        yield from (fault for fault in catalogue.seen if not ids or fault.id in ids)


def judged(fault: Fault, catalogues: list[Catalogue], seed: int) -> FaultSearchResult:
    with relocated(fault) as folder:
        job = nearest_job(touched(catalogues, folder), BugEffort(seed, budget=MINUTE))
        return search(job, folder, 3_600.0)


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def print_row(fault: Fault, result: FaultSearchResult, seconds: float) -> None:
    fate = "killed" if result.killed else "open" if result.note else "survived"
    adapter = " (the adapter raised)" if result.by_adapter else ""
    alarms = "".join(f" CLEAN FAILS: {failure}" for failure in result.clean_failures)
    line = LAYOUT.format(fault.id, fate, f"{seconds:.1f}", result.oracle, result.model)
    print(line + adapter + alarms, flush=True)


if __name__ == "__main__":
    main()
