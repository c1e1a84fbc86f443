"""Which action was taken, as far as it is known: a name, and perhaps some of the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from conformance.tla.values import Action, ModelValue, Value, equal, format_value
from conformance.tla.values.observation import PartialRecord
from conformance.tla.values.text import parse_action

__all__ = ["ActionPattern", "SeenArgument", "parse_pattern"]

_ANY = ModelValue("_")

SeenArgument: TypeAlias = "Value | PartialRecord"
"""An argument as far as it was seen."""


@dataclass(frozen=True, slots=True)
class ActionPattern:
    """An action of which some arguments are not known (None), or all of them (`args` is None)."""

    name: str
    args: tuple[SeenArgument | None, ...] | None = None

    def admits(self, action: Action) -> bool:
        """Whether it may have been this action."""
        if action.name != self.name:
            return False
        if self.args is None:
            return True
        return len(self.args) == len(action.args) and all(
            known is None or _may_be(known, value)
            for known, value in zip(self.args, action.args, strict=True)
        )

    def __str__(self) -> str:
        if not self.args:
            return self.name
        return f"{self.name}({', '.join(map(_text, self.args))})"


def _may_be(seen: SeenArgument, value: Value) -> bool:
    return seen.admits(value) if isinstance(seen, PartialRecord) else equal(seen, value)


def _text(seen: SeenArgument | None) -> str:
    if seen is None:
        return "_"
    return str(seen) if isinstance(seen, PartialRecord) else format_value(seen)


def parse_pattern(text: str) -> ActionPattern:
    """`Fetch`, `Fetch("b1", _)`: an underscore stands for any argument. DataError if it is none."""
    action = parse_action(text)
    if not action.args:
        return ActionPattern(action.name)
    return ActionPattern(
        action.name, tuple([None if value is _ANY else value for value in action.args])
    )
