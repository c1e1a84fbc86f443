"""A saved divergence, as what is written for maintainers asks for it: JUnit tests, scripts."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.errors import UserError
from conformance.story.behaviour import Behaviour
from conformance.tla import Action, Fn, Value


class Unsayable(UserError):
    """A behaviour that no test, and no script for a port, can be written of."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"No such test or script can be written of this file: {reason}. Take a divergence "
            "that kconform has saved, for --junit of a system kafka-VERSION, for --script of a "
            "broker at its port; `kconform story FILE` tells any other file."
        )


class DepartingPath:
    """A behaviour that ends with a departure, by step and variable."""

    def __init__(self, behaviour: Behaviour) -> None:
        if not (behaviour.departs and len(behaviour.steps) > 1):
            raise Unsayable("it does not end where an implementation departs")
        self._behaviour = behaviour

    def __len__(self) -> int:
        return len(self._behaviour.steps)

    def action(self, number: int) -> Action:
        """The step's."""
        action = self._behaviour.steps[number].action
        if action is None:
            raise Unsayable(f"its step {number} names no action")
        return action

    def value(self, number: int, variable: str) -> Value:
        """A variable after the step, as the specification has it."""
        position = self._behaviour.variables.index(variable)
        value = self._behaviour.steps[number].state[position]
        if value is None:
            raise Unsayable(f"its step {number} does not say what {variable} is")
        return value

    def of(self, number: int, variable: str, subject: Value) -> Value:
        """The variable's value of a broker, a member."""
        return fn(self.value(number, variable))[subject]

    def differing(self) -> Iterator[tuple[str, Value, Value]]:
        """Variable, expected and actual value, of those that differ at the end."""
        for name in self._behaviour.variables:
            if name in self._behaviour.observed:
                expected = self.value(len(self) - 1, name)
                if expected != self._behaviour.observed[name]:
                    yield name, expected, self._behaviour.observed[name]


def fn(value: Value) -> Fn:
    """A function or record. Unsayable if it is none."""
    if not isinstance(value, Fn):
        raise Unsayable("it is of another model: a value of a broker or a member is missing")
    return value
