"""Drives the tutorial's store in this process and behind the adapter protocol, and prints how fast.

One suite, the minimal one that covers every transition, with step equality after each action. The
adapters in other languages are those of docs/adapters; one whose compiler is not here is left out.
Run: python benchmarks/adapters.py [--rounds N]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.modelcheck.check import graph_and_spec
from conformance.modelcheck.graph import StateGraph
from conformance.registry import load_factory
from conformance.replay.suite import replay_suite
from conformance.stages.context import constants_of, one_model
from conformance.suites.postman import transition_cover
from conformance.systems.external import CHANNELS
from conformance.systems.protocol import SystemFactory, SystemUnderTest
from conformance.tla import Value

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "tutorial"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    graph, prepared = graph_and_spec(one_model(str(TUTORIAL / "models" / "store.toml")))
    constants = constants_of(prepared)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, best of {options.rounds} rounds")
    rate = best_rate(graph, in_process(), constants, options.rounds)
    print(f"{'in process':14} {rate:9,.0f} steps/s")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in adapters(Path(folder)):
            factory = load_factory(f"exec:{command}")
            started = time.perf_counter()
            factory(constants)
            start = time.perf_counter() - started
            through = best_rate(graph, factory, constants, options.rounds)
            print(
                f"{name:14} {through:9,.0f} steps/s  {rate / through:4.1f} times as long; "
                f"{1e6 / through:5.0f} us a step, started in {start:4.2f} s"
            )
        CHANNELS.close()


def best_rate(
    graph: StateGraph, factory: SystemFactory, constants: Mapping[str, Value], rounds: int
) -> float:
    """Steps per second of the best round."""
    suite = transition_cover(graph)
    rates = []
    for _ in range(rounds):
        result = replay_suite(graph, suite, lambda: factory(constants))
        if result.failed or result.inconclusive:
            sys.exit(f"the suite does not pass: {result.divergences[:1]}")
        rates.append(result.steps / result.seconds)
    return max(rates)


def in_process() -> SystemFactory:
    """The tutorial's own adapter, with its store mended as the tutorial mends it."""
    spec = importlib.util.spec_from_file_location("store", TUTORIAL / "store.py")
    assert spec is not None
    assert spec.loader is not None
    store = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(store)

    def remove(self: Any, key: str) -> None:
        self.entries[key] = (None, self.version(key) + 1)

    store.Store.remove = remove

    def create(constants: Mapping[str, Value]) -> SystemUnderTest:
        system: SystemUnderTest = store.create(constants)
        return system

    return create


def adapters(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and command of each adapter that can be had here."""
    yield "exec, Python", f"{sys.executable} {ROOT / 'tests' / 'adapters' / 'store.py'}"
    examples = ROOT / "docs" / "adapters"
    if javac := shutil.which("javac"):
        source = examples / "java" / "StoreAdapter.java"
        subprocess.run([javac, "-d", str(folder), str(source)], check=True)
        yield "exec, Java", f"java -cp {folder} StoreAdapter"
    if go := shutil.which("go"):
        binary, source = folder / "store", examples / "go" / "store.go"
        subprocess.run([go, "build", "-o", str(binary), str(source)], check=True)
        yield "exec, Go", str(binary)


if __name__ == "__main__":
    main()
