"""How much longer the bench's counterexamples are than the shortest ones there are.

    python experiments/bug_counterexamples.py [FAULT ...] [--limit STEPS]

For each fault that the spec sees, a breadth-first search over pairs of spec state and
implementation state gives the length of the shortest counterexample; beside it what `kconform
bugs` reports. An implementation's state is all that its objects hold, but for times, locks and
metrics. The search ends at the length reported: it says how much shorter a counterexample could
be. After `--limit` steps of the implementation it gives up and says what it has excluded.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Mapping
from enum import Enum

from conformance.bugs.bench import BugEffort, environment, run_fault
from conformance.bugs.fault import (
    Catalogue,
    Fault,
    built_in_catalogues,
    load_catalogue,
    relocated,
    select,
)
from conformance.bugs.worker import INTERRUPTED
from conformance.replay.engine import Driver, run_path
from conformance.replay.oracle import GraphOracle
from conformance.stages.context import Context, one_model, workbench
from conformance.tla import Action, State, fingerprint

_SKIPPED_TYPES = frozenset(
    {"MockClock", "MetricsRegistry", "FetcherStats", "FetcherLagStats", "greenlet", "Observer"}
)
"""Time, metrics, suspended code (its request is in the channel), and the adapter's cache."""


def main() -> None:
    """Print a row per fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--limit", type=int, default=300_000)
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        model, system, longest = options.inside
        print(*search(model, system, int(longest), options.limit))
        return
    print(f"{'bug':<5} {'reported':>8} {'shortest':>8} {'steps driven':>12}")
    catalogues = [load_catalogue(path) for path in built_in_catalogues()]
    for catalogue in select(catalogues, options.faults):
        for fault in catalogue.seen:
            print(row(catalogue, fault, options.limit), flush=True)


def row(catalogue: Catalogue, fault: Fault, limit: int) -> str:
    """What the bench reports and what the search finds, in a process with the faulty copy."""
    result = run_fault(catalogue, fault, BugEffort(traces=0)).search
    reported = result.counterexample_length
    if reported is None:
        return f"{fault.id:<5} survived"
    if result.oracle == INTERRUPTED:
        return f"{fault.id:<5} {reported:>8}  an interrupted step: its states were tried in order"
    with relocated(fault) as folder:
        command = [sys.executable, __file__, "--limit", str(limit)]
        inside = ["--inside", result.model, catalogue.system, str(reported)]
        run = subprocess.run(
            [*command, *inside],
            env=environment(folder),
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    shortest, steps = run.stdout.split()
    return f"{fault.id:<5} {reported:>8} {shortest:>8} {int(steps):>12,}"


def search(model: str, system: str, longest: int, limit: int) -> tuple[str, int]:
    """The shortest length, or `>n` if the search gave up at length n; and the steps driven."""
    bench = workbench(Context(), one_model(model), system)
    oracle = GraphOracle(bench.graph)
    under_test = bench.make_system()
    driver = Driver(under_test, oracle)
    level: list[tuple[State, State, tuple[Action, ...]]] = []
    seen: set[tuple[State, int]] = set()
    for initial in oracle.initial_states():
        if run_path(driver, initial, ()).divergence is not None:
            return "0", 0
        level.append((initial, initial, ()))
    steps = 0
    for length in range(1, longest):
        following: list[tuple[State, State, tuple[Action, ...]]] = []
        for state, initial, way in level:
            for action in oracle.enabled(state):
                result = run_path(driver, initial, (*way, action))
                steps += result.steps
                if result.divergence is not None:
                    return str(length), steps
                for reached in driver.candidates:
                    key = (reached, fingerprint(tuple(contents(under_test))))
                    if key not in seen:
                        seen.add(key)
                        following.append((reached, initial, (*way, action)))
            if steps > limit:
                return f">{length - 1}", steps
        level = following
    return str(longest), steps


def contents(value: object) -> Iterable[str | int]:
    """All that an object holds, in a fixed order; an object met again is its number."""
    numbers: dict[int, int] = {}
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if item is None or isinstance(item, str | int | float | bytes | Enum):
            yield repr(item)
            continue
        name = type(item).__name__
        if callable(item) or name in _SKIPPED_TYPES or "Lock" in name:
            continue
        if id(item) in numbers:
            yield numbers[id(item)]
            continue
        numbers[id(item)] = len(numbers)
        yield name
        if isinstance(item, Mapping):
            for key, content in item.items():
                stack += (content, key)
        elif isinstance(item, frozenset | set):
            stack += sorted(item, key=repr)
        elif isinstance(item, tuple | list):
            stack += item
        else:
            stack += attributes(item)


def attributes(value: object) -> list[object]:
    """The values of an object's attributes, but for times."""
    names = list(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return [
        getattr(value, name, None)
        for name in sorted(set(names))
        if not name.endswith("_ms") and not name.startswith("__")
    ]


if __name__ == "__main__":
    main()
