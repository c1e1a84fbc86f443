"""Scripts in which each action is a call of the template's object, with the action's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from conformance.systems.shared.departing import Unsayable
from conformance.systems.shared.group import words
from conformance.systems.wire.script.base import PortScript
from conformance.tla import Value

_TAKEN = "TakeAnswer"
"""A client goes on once it has its answer."""


class CalledScript(PortScript):
    """A step without a method is Unsayable."""

    names_answer = True
    receiver: ClassVar[str]
    """The template's object."""
    methods: ClassVar[Mapping[str, str]]
    """By action."""

    def _step(self, number: int) -> Iterator[str]:
        action = self.scene.action(number)
        if action.name == _TAKEN:
            return
        method = self.methods.get(action.name)
        if method is None:
            raise Unsayable(f"it has no words for the step {action}")
        yield words.call(f"{self.receiver}.{method}", *map(python, action.args))


def python(value: Value) -> str:
    """A value of the specification, as Python writes it."""
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(python, value))) + "}" if value else "set()"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(python, value)) + "]"
    return words.text(value) if isinstance(value, str) else str(value)
