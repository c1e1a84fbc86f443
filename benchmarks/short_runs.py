"""Processor seconds of TLC's short runs: each in a JVM of its own, and one after the other in one.

JVMs that are used again run without HotSpot's optimizing compiler, as the gate's do for short runs,
and with it. The same models all three ways, cold; verdicts, lengths and numbers of states must be
equal.

    python -m benchmarks.short_runs [MODEL...]
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from conformance.modelcheck.cache import Cache
from conformance.modelcheck.check import CheckOptions, check, check_models
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.result import CheckResult
from conformance.modelcheck.tlc import TlcOptions

SMALL = 500
"""Distinct states; of models that must fail nobody states how many there are."""


def main() -> None:
    models = find_models(sys.argv[1:]) if sys.argv[1:] else small()
    alone = measured(lambda options: [check(model, options) for model in models])
    shared = measured(lambda options: check_models(models, options))
    optimized = measured(lambda options: check_models(models, options), optimize=True)
    if not told(alone[0]) == told(shared[0]) == told(optimized[0]):
        sys.exit("they differ")
    states = sum(result.outcome.distinct_states or 0 for result in shared[0])
    print(f"{len(models)} models, {states:,} states: processor seconds, ratio")
    for name, (_, seconds) in (
        ("a JVM of its own for each", alone),
        ("JVMs that are used again", shared),
        ("the same, optimized", optimized),
    ):
        print(f"{name:26} {seconds:7.1f} {seconds / shared[1]:6.2f}")


def small() -> list[Model]:
    """Every eighth of the ci tier's models that must fail or are small."""
    known = find_models((), "ci")
    return [m for m in known if m.expect and m.expect.distinct_states < SMALL][::8]


def measured(
    run: Callable[[CheckOptions], Sequence[CheckResult]], *, optimize: bool | None = None
) -> tuple[Sequence[CheckResult], float]:
    """What the models came to, and the processor time of the JVMs."""
    before = used()
    with tempfile.TemporaryDirectory() as folder:
        tlc = TlcOptions(optimize=optimize)
        results = run(CheckOptions(tlc=tlc, cold=True, cache=Cache(Path(folder)), jobs=2))
    return results, used() - before


def used() -> float:
    """Processor seconds of all processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def told(results: Sequence[CheckResult]) -> list[tuple[object, ...]]:
    """What must be equal."""
    return [(result.verdict, result.summary()) for result in results]


if __name__ == "__main__":
    main()
