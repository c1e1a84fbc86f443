"""Standard streams that the caller has closed, or that take no more: no verdict comes of that."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


def open_standard_streams() -> None:
    """Open to nowhere each standard stream that is closed (`>&-`).

    Without that Python has None there, and the next file that is opened, by a JVM too, would get
    the output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def configure_encodings() -> None:
    """Let a verdict not depend on the encoding: not every terminal's has a story's signs."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Send what is still buffered nowhere, or Python's exit would complain about it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())


@contextmanager
def prints_to_standard_error(wanted: bool) -> Iterator[None]:
    """Meanwhile standard output is standard error, for child processes too, if it is wanted.

    What an adapter prints must not stand beside the object of `--json`.
    """
    if not wanted:
        yield
        return
    kept = os.dup(1) if sys.stdout is sys.__stdout__ else None
    sys.stdout.flush()
    try:
        if kept is not None:
            os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)
