"""The error of a formula that has no value, as in TLC."""

from __future__ import annotations

from conformance.tla.errors import SpecError
from conformance.tla.front.syntax import Location
from conformance.tla.values import Fn, ModelValue, abridged_value

LONGEST = 200
"""Characters of a value in a message."""


class EvaluationError(SpecError):
    """A formula that TLC could not evaluate either: undefined, or of incompatible types.

    `location` is the place in the specification once it is known; `reason` the text without it.
    """

    def __init__(self, reason: str, location: Location | None = None) -> None:
        super().__init__(reason if location is None else f"{location}: {reason}")
        self.reason = reason
        self.location = location


def shown(value: object) -> str:
    """A value or set, shortened, for a message: however large it is, the message is not."""
    if isinstance(value, bool | int | str | ModelValue | frozenset | tuple | Fn):
        return abridged_value(value, LONGEST)
    text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."
