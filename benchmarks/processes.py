"""Runs a process and tells what it and everything that it started took of the processor.

A process that outlives the one that started it, as Spark's Python daemon outlives the JVM, is
adopted by this process (PR_SET_CHILD_SUBREAPER), so that its time is counted too. That daemon
ignores SIGCHLD, so nobody waits for its workers and the kernel adds their time to nobody's: they
are looked at while they run (`_Unwaited`).
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PR_SET_CHILD_SUBREAPER = 36
_EVERY = 0.2
"""Seconds between two looks at the processes that nobody waits for."""


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
    before = _children()
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors, _standard_output(output) as report:
        process = subprocess.Popen(command, stdout=report, stderr=errors)
        with _Unwaited(process.pid) as unwaited:
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        if process.returncode not in codes:
            errors.seek(0)
            words = errors.read().decode(errors="replace")[-2000:]
            sys.exit(f"{command[0]} ended with {process.returncode}: {words}")
        report.seek(0)
        text = "" if output else report.read().decode(errors="replace")
    usages = [usage, *_the_rest(before)]
    seconds = unwaited.seconds + sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return Cost(seconds, wall, max(usage.ru_maxrss for usage in usages) / 1024, text)


class _Unwaited:
    """The time of descendants whose parent ignores SIGCHLD, as it was seen last."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._ended = threading.Event()
        self._ticks: dict[tuple[int, int], int] = {}
        """By process, which is its number and when it started."""
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Unwaited:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    @property
    def seconds(self) -> float:
        """User and system."""
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _look(self) -> None:
        while not self._ended.wait(_EVERY):
            stats = dict(_stats())
            for number, (parent, ticks, started) in stats.items():
                if self._is_below(number, stats) and _ignores_children(parent):
                    self._ticks[number, started] = ticks

    def _is_below(self, number: int, stats: Mapping[int, tuple[int, int, int]]) -> bool:
        while number in stats and number != self._root:
            number = stats[number][0]
        return number == self._root


def _stats() -> Iterator[tuple[int, tuple[int, int, int]]]:
    """By process: its parent, its ticks of the processor, when it started (proc_pid_stat(5))."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        yield (
            int(path.parent.name),
            (int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[19])),
        )


def _ignores_children(number: int) -> bool:
    try:
        status = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)


def _standard_output(output: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile() if output is None else output.open("wb")


def _children() -> frozenset[int]:
    own = os.getpid()
    return frozenset(number for number, (parent, *_) in _stats() if parent == own)


def _the_rest(before: frozenset[int]) -> Iterator[resource.struct_rusage]:
    """Of processes that were left behind, as they end; not of those that were there before."""
    while left := _children() - before:
        yield os.wait4(min(left), 0)[2]
