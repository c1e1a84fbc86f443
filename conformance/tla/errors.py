"""The errors that are the user's to mend."""

from __future__ import annotations


class UserError(Exception):
    """A mistake in the user's input or environment.

    The message is one paragraph that names what is wrong, where, and what to do. A command line
    prints it without a traceback and ends with `exit_code`: usage, by the custom of Unix.
    """

    exit_code = 2


class SpecError(UserError):
    """A specification or configuration that cannot be read, bound or evaluated."""


class UnsupportedError(SpecError):
    """A TLA+ operator that a back end lacks; names operator, place and back end."""


class EnvironmentProblem(UserError):
    """Java, the TLA+ tools or Spark are missing, too old or not what they claim to be."""


class DataError(UserError):
    """A trace, suite or store that is damaged, incomplete or of another spec or schema."""
