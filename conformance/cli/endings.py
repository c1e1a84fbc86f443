"""A user's code must not end the process that judges it: its exit code would be the verdict."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from conformance.errors import ExitCode


@contextmanager
def endings_seen() -> Iterator[None]:
    """Let `os._exit` in this process be what `sys.exit` is: SystemExit, a system's divergence.

    A process that was forked from this one ends as it likes. A thread cannot tell the one that
    judges, so it ends the process with USAGE and says why.
    """
    real, owner = os._exit, os.getpid()

    def end(status: int) -> NoReturn:
        if os.getpid() != owner:
            real(status)
        if threading.current_thread() is not threading.main_thread():
            text = (
                f"A thread of the system ended the process (os._exit: {status}), "
                "and there is no verdict."
            )
            print(f"kconform: {text}", file=sys.stderr, flush=True)
            real(ExitCode.USAGE)
        raise SystemExit(status)

    vars(os)["_exit"] = end
    try:
        yield
    finally:
        vars(os)["_exit"] = real
