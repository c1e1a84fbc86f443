"""What benchmarks count of the processor: also what runs below a process that waits for nobody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.processes import run

BUSY = "import time\nwhile time.process_time() < 1.5: pass\n"
UNWAITED = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's Python daemon
if os.fork() == 0:
    exec({BUSY!r})
    os._exit(0)
try:
    os.wait()  # until no child is left; it learns nothing of what they took
except ChildProcessError:
    pass
"""


@pytest.mark.parametrize("program", [BUSY, UNWAITED], ids=["a process", "below one that waits not"])
def test_the_time_of_every_process_is_counted(program: str) -> None:
    assert run([sys.executable, "-c", program]).processor >= 1.0


def test_a_process_that_was_there_before_is_not_waited_for() -> None:
    """A test's worker has JVMs as children, which end with it: the tests waited for ever."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        run([sys.executable, "-c", "pass"])

        assert other.poll() is None
