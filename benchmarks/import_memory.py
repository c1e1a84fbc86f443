"""How much memory `kconform import` takes, by the length of the file.

    python -m benchmarks.import_memory [--megabytes 10,50,100]

The events are those of random behaviours of group/dynamic-2m, six of 30 variables shown. Each line
says where it comes from, so no two are alike and no line helps to read another. Each length is
imported in a process of its own, without Spark. Its memory is the most that was resident; the first
row, of a single event, is what everything but the file takes.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import count, cycle
from pathlib import Path

from benchmarks.judge import View, lines_of, recordings, shown, walk
from benchmarks.processes import run
from conformance.config import Settings
from conformance.judge.mapping import Mapping
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import bound
from conformance.stages.context import Context
from conformance.stages.judging import JudgeRequest, judge_files
from conformance.tla import find_tools

MODEL = "group/dynamic-2m"
WALKS, LENGTH = 500, 20
MEGABYTE = 10**6


@cache
def behaviours() -> tuple[tuple[str, ...], ...]:
    """The lines of each trace."""
    spec = bound(find_models([MODEL])[0], find_tools()).spec
    successors = cache(spec.successors)
    walks = [walk(spec, LENGTH, seed, successors) for seed in range(WALKS)]
    view = View(shown(spec, 0.2), frozenset())
    return tuple(
        tuple(lines_of(recording).splitlines()) for recording in recordings(spec, walks, view)
    )


def lines() -> Iterator[bytes]:
    """Lines without end: the behaviours again and again, each time as another trace."""
    places = count(1)
    for trace, behaviour in enumerate(cycle(behaviours())):
        for line in behaviour:
            event = {**json.loads(line), "trace": f"t{trace}", "source": f"app.log:{next(places)}"}
            yield json.dumps(event).encode() + b"\n"


def write(path: Path, size: int) -> None:
    """A file of at least so many bytes."""
    with path.open("wb") as file:
        for line in lines():
            if file.tell() >= size:
                return
            file.write(line)


def imported(path: Path) -> None:
    """Import a file in this process, and print what came of it and the memory that it took."""
    request = JudgeRequest((path,), find_models([MODEL])[0], Mapping(declared=True))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(jobs=1)
        tally = judge_files(Context(settings), request, Path(folder) / "store", name="import")
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([tally.traces, tally.events, str(tally.verdict), kilobytes / 1000]))


def main() -> None:
    """Write a file of each length, import it in a process of its own, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", default="10,50,100")
    parser.add_argument("--imported", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.imported:
        imported(options.imported)
        return
    sizes = [0, *(int(megabytes) for megabytes in options.megabytes.split(","))]
    print("file        traces     events   verdict   memory   processor")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.ndjson"
        for megabytes in sizes:
            write(path, max(megabytes * MEGABYTE, 1))
            command = [sys.executable, "-m", "benchmarks.import_memory", "--imported", str(path)]
            cost = run(command)
            traces, events, verdict, memory = json.loads(cost.output)
            print(
                f"{path.stat().st_size / MEGABYTE:5.1f} MB {traces:9,} {events:10,} "
                f"{verdict:>9} {memory:5.0f} MB {cost.processor:8.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
