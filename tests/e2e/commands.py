"""Runs `kconform` as a user does, in a process of its own, and keeps how it ended."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.cli import main

HUNG = -1
"""The exit code of a command that did not end."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def paragraph(self) -> str:
        """What the user was told: one paragraph, and nothing of our code."""
        assert "Traceback" not in self.out + self.err
        *_, told = self.err.partition("kconform: ")
        assert told, self.err
        assert "kconform: " not in told
        assert "\n\n" not in told
        return told


def in_child(code: str, *arguments: str, environ: Mapping[str, str] | None = None) -> Ended:
    """Runs a command in a process of its own, after some code."""
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nfrom conformance.cli.main import run; run()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environ or {})},
    )
    return Ended(run.returncode, run.stdout, run.stderr)


def in_fork(
    arguments: Sequence[str | bytes], folder: Path, *, seconds: float = 60.0, memory: int = 4 << 30
) -> Ended:
    """Runs a command in a fork of this process, which has loaded already what takes seconds.

    It gets a limit on its time and, in bytes, on its memory. Arguments may be no UTF-8.
    """
    main.load(str(arguments[0]))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
                os.chdir(folder)
                sys.path[:0] = [str(folder)]
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os._exit(_run([os.fsdecode(argument) for argument in arguments]))
            finally:
                os._exit(99)
        code = _waited(child, seconds)
        for file in (out, err):
            file.seek(0)
        texts = [file.read().decode(errors="replace") for file in (out, err)]
        return Ended(code, *texts)


def _run(arguments: list[str]) -> int:
    sys.argv = ["kconform", *arguments]
    sys.stdout = sys.stderr = None  # type: ignore[assignment]
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", buffering=1)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
    try:
        main.run()
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _waited(child: int, seconds: float) -> int:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return HUNG
