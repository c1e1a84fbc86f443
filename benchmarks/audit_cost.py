"""What an audit takes of the processor, with the JVM and Spark's Python workers.

`python -m benchmarks.audit --against CHECKOUT` runs this file with each checkout's interpreter, its
current folder the checkout: `benchmarks.audit` is then the checkout's own, and its call of `audit`
is measured. Writing the store and starting Spark are not part of it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_MARK = "cost of the audit:"
_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""In /proc/PID/stat behind the name: of the process, and of its children that have ended."""


def main() -> None:
    sys.path[0] = str(Path.cwd())
    from benchmarks import audit  # the checkout's

    measured = audit.audit  # type: ignore[attr-defined]  # it imports it
    audit.audit = _telling(measured)  # type: ignore[attr-defined]  # likewise
    audit.main()


def read(output: str) -> tuple[float, float]:
    """Processor seconds and seconds by the clock from what a run printed."""
    (line,) = [line for line in output.splitlines() if line.startswith(_MARK)]
    processor, wall = line.removeprefix(_MARK).split()
    return float(processor), float(wall)


def _telling(measured: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        used, begun = _processor_seconds(), time.monotonic()
        result = measured(*args, **options)
        wall = time.monotonic() - begun
        print(f"{_MARK} {_processor_seconds() - used:.2f} {wall:.2f}", flush=True)
        return result

    return call


def _processor_seconds() -> float:
    """Of this process and all that descend from it, user and system."""
    table = _processes()
    family = found = {os.getpid()}
    while found:
        found = {pid for pid, stat in table.items() if int(stat[_PARENT]) in found}
        family = family | found
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
