"""Runs a process and tells what it and everything that it started took of the processor.

A process that outlives the one that started it, as Spark's Python daemon outlives the JVM, is
adopted by this process (PR_SET_CHILD_SUBREAPER), so that its time is counted too.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took, in seconds, and the most memory that one of its processes held."""

    processor: float
    """Of all of its processes, user and system."""
    wall: float
    megabytes: float
    output: str = ""
    """What it wrote to its standard output, unless that went to a file."""


def run(command: Sequence[str], output: Path | None = None, *, codes: Sequence[int] = (0,)) -> Cost:
    """Run a process to its end, and wait for all that it left behind; other exit codes end us."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors, _standard_output(output) as report:
        process = subprocess.Popen(command, stdout=report, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        if process.returncode not in codes:
            errors.seek(0)
            words = errors.read().decode(errors="replace")[-2000:]
            sys.exit(f"{command[0]} ended with {process.returncode}: {words}")
        report.seek(0)
        text = "" if output else report.read().decode(errors="replace")
    usages = [usage, *_the_rest()]
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return Cost(seconds, wall, max(usage.ru_maxrss for usage in usages) / 1024, text)


def _standard_output(output: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile() if output is None else output.open("wb")


def _the_rest() -> Iterator[resource.struct_rusage]:
    """Of processes that were left behind, as they end."""
    while True:
        try:
            yield os.wait4(-1, 0)[2]
        except ChildProcessError:
            return
