"""What one audit takes of the processor, with its JVM and its Python workers.

`benchmarks.audit` runs this file with the code of a checkout first on the path: its own, or that of
the commit before `conformance.workers`, whose audit on Spark took a session.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_MARK = "cost of the audit: "
_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""In /proc/PID/stat behind the name: of the process, and of its children that have ended."""

WAYS = ("here", "processes", "local[1]", "local[2]")
"""In this process, in two others, and on Spark with so many workers."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds of the whole family, seconds by the clock, MiB of the first process."""

    processor: float
    wall: float
    audit: float
    """Seconds of the audit by the clock, without the start of Spark."""
    peak: int
    said: Mapping[str, Any]
    """The audit's figures, but for its seconds."""


def main() -> None:
    print(_MARK + json.dumps(asdict(_audit(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))))


def read(output: str) -> Cost:
    """The cost from what a run printed."""
    (line,) = [line for line in output.splitlines() if line.startswith(_MARK)]
    return Cost(**json.loads(line.removeprefix(_MARK)))


def _audit(path: Path, way: str, model: str) -> Cost:
    from conformance.stages.audit import audit
    from conformance.stages.context import Context, one_model, workbench
    from conformance.stages.subject import AuditedStore
    from conformance.traces.store import TraceStore

    context = Context()
    bench = workbench(context, one_model(model), None)
    used, begun = _processor_seconds(), time.monotonic()
    subject = AuditedStore(TraceStore.open(path), bench.prepared, bench.graph)
    with _workers(way, subject.store.manifest.counts.steps) as workers:
        result = audit(context, subject, workers)
        used = _processor_seconds() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    text = {
        "steps": result.steps,
        "distinct": result.distinct_transitions,
        "traces": asdict(result.accounting),
        "coverage": asdict(result.coverage),
    }
    return Cost(used, time.monotonic() - begun, result.seconds, peak, text)


@contextlib.contextmanager
def _workers(way: str, steps: int) -> Iterator[Any]:
    if find_spec("conformance.workers") is None:
        # A checkout of an older commit (`--against`) runs this file too: its session lay there.
        # Here the module does not exist, so that mypy finds no types.
        from conformance.audit.session import (  # type: ignore[import-untyped]  # of the checkout
            spark_session as before,
        )

        with before(way, steps=steps) as session:
            yield session
        return
    from conformance.workers import ForkedProcesses, Here

    if not way.startswith("local"):
        yield Here() if way == "here" else ForkedProcesses(2)
        return
    from conformance.workers import workers_for

    with workers_for(0, steps, master=way, processes=2) as workers:
        yield workers


def _processor_seconds() -> float:
    """Of this process and all that descend from it, user and system."""
    table = _processes()
    family = result = {os.getpid()}
    while result:
        result = {pid for pid, stat in table.items() if int(stat[_PARENT]) in result}
        family = family | result
    ticks = sum(sum(map(int, table[pid][_TIMES])) for pid in family)
    return ticks / _TICKS


def _processes() -> Mapping[int, list[str]]:
    table = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            table[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return table


if __name__ == "__main__":
    main()
