"""What of the specification's states an implementation was held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from conformance.events import JsonValue
from conformance.printable import counted


@dataclass(frozen=True, slots=True)
class ComparedStates:
    """In how many states each variable was compared that the adapter declares.

    A state counts each time that the system was looked at in it. `specified` are all variables of
    the specification.
    """

    states: Mapping[str, int] = field(default_factory=dict)
    specified: tuple[str, ...] = ()
    part: bool = False
    """Whether other runs drive the rest: what was never shown here may be shown there."""

    @property
    def never(self) -> tuple[str, ...]:
        """Variables that the adapter declares and never showed."""
        return tuple(name for name, count in self.states.items() if not count)

    @property
    def unobserved(self) -> tuple[str, ...]:
        """Variables of the specification that the adapter does not declare."""
        return tuple(name for name in self.specified if name not in self.states)

    @property
    def gap(self) -> str:
        """Why this supports no pass; empty if it does."""
        if not any(self.states.values()):
            return "no variable was compared in any state"
        if self.never and not self.part:
            names = ", ".join(self.never)
            return (
                f"the adapter declares {names} and never showed it: what is in it was not compared"
            )
        return ""

    def summary(self, unit: str = "state") -> str:
        """As `3 of 4 variables compared in 772 states`."""
        shown = sum(map(bool, self.states.values()))
        most = max(self.states.values(), default=0)
        of = f"{shown} of {counted(len(self.specified), 'variable')}"
        return f"{of} compared in {counted(most, unit)}"

    def figures(self) -> dict[str, JsonValue]:
        """The part of a stage's figures."""
        return {"states": {**self.states}, "unobserved": list(self.unobserved)}

    def __add__(self, other: ComparedStates) -> ComparedStates:
        names = dict.fromkeys((*self.states, *other.states))
        both = {name: self.states.get(name, 0) + other.states.get(name, 0) for name in names}
        return ComparedStates(both, self.specified or other.specified)


def total(parts: Iterable[ComparedStates]) -> ComparedStates:
    """All of them together."""
    return reduce(ComparedStates.__add__, parts, ComparedStates())
