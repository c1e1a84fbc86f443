"""Reads a large state graph and cuts its minimal suite: seconds, peak memory, suite beside greedy.

Without arguments it writes a dump like TLC's of 160,000 states and 770,000 transitions (layers of
states with 21 variables, branches that meet again, dead ends); `--dump FILE` takes a real one,
as `java -cp tla2tools.jar tlc2.TLC -dump dot,actionlabels FILE ...` writes it.

    python -m benchmarks.graph_and_suite [--states N] [--transitions N] [--dump FILE]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from conformance.modelcheck.dump import read_dump
from conformance.modelcheck.graph_file import graph_from_bytes, graph_to_bytes
from conformance.suites.coverage import coverage
from conformance.suites.greedy import greedy_cover
from conformance.suites.postman import transition_cover
from conformance.suites.walks import random_walks
from conformance.tla import ValueReader

T = TypeVar("T")
_BROKERS = ("b1", "b2")
_LAYERS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=160_000)
    parser.add_argument("--transitions", type=int, default=770_000)
    parser.add_argument("--dump", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dump = options.dump
        if dump is None:
            dump = Path(folder) / "graph.dot"
            _timed("write a synthetic dump", lambda: _write(dump, options))
        print(f"{dump.stat().st_size / 1e6:.0f} MB of text")
        graph = _timed("read and parse", lambda: read_dump(dump, ValueReader(), {}))
    print(f"{len(graph.states)} states, {len(graph.source)} transitions")
    blob = _timed("to bytes", lambda: graph_to_bytes(graph))
    _timed("from bytes (as from the cache)", lambda: graph_from_bytes(blob))
    cover = _timed("minimal transition cover", lambda: transition_cover(graph))
    cover.require(graph)
    assert coverage(graph, cover).covered_transitions == len(graph.source)
    greedy = _timed("greedy cover", lambda: greedy_cover(graph))
    walks = _timed("100,000 random walks", lambda: random_walks(graph, 100_000, 20, seed=1))
    share = coverage(graph, walks).covered_transitions / len(graph.source)
    print(f"minimal: {len(cover)} tests, {cover.steps} steps")
    print(f"greedy:  {len(greedy)} tests, {greedy.steps} steps")
    ratio = (greedy.steps + len(greedy)) / (cover.steps + len(cover))
    print(f"greedy / minimal (steps and resets): {ratio:.3f}")
    print(f"transitions that the walks cover: {share:.1%}")


def _timed(what: str, work: Callable[[], T]) -> T:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # Linux counts kilobytes, macOS bytes.
    unit = 1024 if sys.platform == "darwin" else 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit / 1024
    print(f"{what}: {wall:.1f} s ({cpu:.1f} s of processor), peak {peak:.0f} MiB", flush=True)
    return result


def _write(path: Path, options: argparse.Namespace) -> None:
    """A breadth-first tree in layers, further transitions to the next layers and a few back."""
    random = np.random.default_rng(1)
    states, transitions = options.states, options.transitions
    layer = np.sort(np.minimum(random.geometric(0.08, states), _LAYERS))
    layer[0] = 0
    begin = np.searchsorted(layer, np.arange(_LAYERS + 2))
    tree = np.array([random.integers(begin[at - 1], begin[at]) for at in layer[1:]])
    extra = transitions - states + 1
    source = random.integers(0, states, extra)
    ahead = begin[np.minimum(layer[source] + 1, _LAYERS)]
    target = np.minimum(ahead + random.integers(0, states // 20, extra), states - 1)
    back = random.random(extra) < 0.1
    target[back] = random.integers(0, source[back] + 1)
    names = [f"Action{kind}__{number}" for kind in range(20) for number in range(7)]
    label = random.integers(0, len(names), transitions)
    with path.open("w") as file:
        file.write("strict digraph DiskGraph {\n")
        file.write(f'0 [label="{_state(0)}",style = filled]\n')
        for child, parent in enumerate(tree.tolist(), start=1):
            file.write(f'{parent} -> {child} [label="{names[label[child]]}",color="black"];\n')
            file.write(f'{child} [label="{_state(child)}"];\n')
        for number, (item, other) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
            name = names[label[states - 1 + number]]
            file.write(f'{item} -> {other} [label="{name}",color="black"];\n')
        file.write("}\n}")


def _state(number: int) -> str:
    """21 variables; one tells the states apart, the others repeat as in a real model."""
    lines = [f"/\\\\ channel = {_message(number)}"]
    for variable in range(20):
        value = (number // (variable + 1)) % (17 * (variable + 3))
        record = ", ".join(
            f'{broker} |-> <<[epoch |-> {value % 5}, state |-> \\"Fetching\\"], {value}>>'
            for broker in _BROKERS
        )
        lines.append(f"/\\\\ variable{variable} = [{record}]")
    return "\\n".join(lines)


def _message(number: int) -> str:
    return f'[b1 |-> [type |-> \\"Fetch\\", offset |-> {number % 2003}], b2 |-> {number // 2003}]'


if __name__ == "__main__":
    main()
