"""The errors that are the user's to mend, and the exit codes that they end with."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command (documented in docs/cli.md)."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130
    READER_GONE = 141


INTERRUPTED = "\nkconform: interrupted. Nothing half-written was left."
"""What an interrupted command says, below the progress that stood there."""


class UserError(Exception):
    """A mistake in the user's input or environment.

    The message is one paragraph that names what is wrong, where, and what to do.
    The command line prints it without a traceback and exits with `exit_code`.
    """

    exit_code = ExitCode.USAGE


class SpecError(UserError):
    """A specification or configuration that cannot be read, bound or evaluated."""


class UnsupportedError(SpecError):
    """A TLA+ operator that a back end lacks; names operator, place and back end."""


class EnvironmentProblem(UserError):
    """Java, the TLA+ tools or Spark are missing, too old or not what they claim to be."""


class DataError(UserError):
    """A trace, suite or store that is damaged, incomplete or of another spec or schema."""
