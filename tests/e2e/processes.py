"""Which processes a test has started, found by a variable that they inherit."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

MARK = f"KCONFORM_TEST_MARK_{os.getpid()}"
"""Of this run: another run of the same tests may have processes on this machine too."""
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks into Linux's /proc"
)


def processes(mark: str) -> list[tuple[int, str]]:
    """The processes that inherited our mark, with their command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append((int(folder.name), command))
        except OSError:
            continue  # it ended meanwhile, or is not ours to look at
    return [one for one in found if one[1]]


def end_processes(mark: str) -> None:
    """Kill what a test has left running; it may end by itself while we look."""
    for process, _ in processes(mark):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
