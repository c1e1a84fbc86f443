"""The console script: an interrupt ends it with exit code 130 from the first import on."""

from __future__ import annotations

import sys

from conformance.errors import INTERRUPTED, ExitCode
from conformance.garbage import collect_seldom


def run() -> None:
    """Import the command line, which takes a moment, and run it."""
    collect_seldom()
    try:
        from conformance.cli.main import run as run_command
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        raise SystemExit(ExitCode.INTERRUPTED) from None
    run_command()
