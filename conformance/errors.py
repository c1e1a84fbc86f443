"""The errors that are the user's to mend, and the exit codes that commands end with.

The errors are those of `conformance.tla`, which stands alone; a `UserError` ends with USAGE.
"""

from __future__ import annotations

from enum import IntEnum

from conformance.tla import DataError, EnvironmentProblem, SpecError, UnsupportedError, UserError

__all__ = [
    "INTERRUPTED",
    "DataError",
    "EnvironmentProblem",
    "ExitCode",
    "SpecError",
    "UnsupportedError",
    "UserError",
]


class ExitCode(IntEnum):
    """Exit codes of every command (documented in docs/cli.md)."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130
    READER_GONE = 141


class CommandEnded(SystemExit):
    """A command has ended by itself: with its verdict, or with the exit code of a mistake."""


INTERRUPTED = "\nkconform: interrupted. Nothing half-written was left."
"""What an interrupted command says, below the progress that stood there."""
