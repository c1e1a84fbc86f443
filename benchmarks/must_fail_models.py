"""Processor seconds of TLC on the models that must fail, with HotSpot's C2 compiler and without.

TLC stops at a violation, so such a run is short and its size unknown beforehand; the gate leaves
the optimizing compiler out for those of the ci tier. Each model runs both ways in turn, cold.

    python -m benchmarks.must_fail_models [MODEL...]
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

from conformance.modelcheck.cache import Cache
from conformance.modelcheck.check import CheckOptions, check
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.tlc import TlcOptions


def main() -> None:
    models = find_models(sys.argv[1:]) if sys.argv[1:] else find_models((), "ci")
    failing = [m for m in models if m.expect is not None and m.expect.result == "violated"]
    totals = [0.0, 0.0]
    print(f"{'model':56} {'without':>8} {'with':>8} {'ratio':>6}")
    for model in failing:
        seconds = [processor_seconds(model, optimize=optimize) for optimize in (False, True)]
        totals = [total + number for total, number in zip(totals, seconds, strict=True)]
        print_row(model.name, *seconds)
    print_row(f"{len(failing)} models", *totals)


def processor_seconds(model: Model, *, optimize: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        options = CheckOptions(
            tlc=TlcOptions(optimize=optimize), jobs=1, cold=True, cache=Cache(Path(folder))
        )
        before = children()
        check(model, options)
        return children() - before


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def print_row(name: str, without: float, with_it: float) -> None:
    print(f"{name:56} {without:8.1f} {with_it:8.1f} {without / with_it:6.2f}", flush=True)


if __name__ == "__main__":
    main()
