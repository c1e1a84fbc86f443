"""Processor seconds of TLC's short runs: each in a JVM of its own, and one after the other in one.

The same models both ways, cold; verdicts, lengths and numbers of states must be equal.

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

SMALL = 500
"""Distinct states; of models that must fail nobody states how many there are."""


def main() -> None:
    models = find_models(sys.argv[1:]) if sys.argv[1:] else small()
    check_results, alone = measured(lambda options: check_models(models, options))
    other, shared = measured(lambda options: [check(model, options) for model in models])
    if list(map(told, check_results)) != list(map(told, other)):
        sys.exit("the two differ")
    print(
        f"{len(models)} models, {sum(r.outcome.distinct_states or 0 for r in check_results):,} "
        "states"
    )
    print(f"a JVM of its own for each   {shared:7.1f} s of processor time")
    print(f"JVMs that are used again    {alone:7.1f} s")
    print(f"saved for each model        {(shared - alone) / len(models):7.2f} s")


def small() -> list[Model]:
    """Every eighth of the ci tier's models that must fail or are small."""
    known = find_models((), "ci")
    return [m for m in known if m.expect and m.expect.distinct_states < SMALL][::8]


def measured(
    run: Callable[[CheckOptions], Sequence[CheckResult]],
) -> tuple[Sequence[CheckResult], float]:
    """What the models came to, and the processor time of the JVMs."""
    before = used()
    with tempfile.TemporaryDirectory() as folder:
        results = run(CheckOptions(cold=True, cache=Cache(Path(folder)), jobs=2))
    return results, used() - before


def used() -> float:
    """Processor seconds of all processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def told(result: CheckResult) -> tuple[object, ...]:
    """What must be equal."""
    return result.verdict, result.summary()


if __name__ == "__main__":
    main()
