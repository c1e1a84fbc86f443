"""A model of Replication.tla as an adapter reads it: its brokers, and how large its steps are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.errors import UserError
from conformance.tla import Action, Value


@dataclass(frozen=True, slots=True)
class PartitionModel:
    """Brokers have the numbers from 1 on, in the order of their names.

    `fine`: a request is a step of its own. `two_step`: an ISR change is sent in one step, and
    answered in others.
    """

    names: tuple[str, ...]
    ids: Mapping[str, int]
    fine: bool
    two_step: bool

    @property
    def brokers(self) -> tuple[int, ...]:
        """The number of each broker."""
        return tuple(self.ids.values())

    def arguments(self, action: Action) -> list[Value]:
        """An action's arguments, with numbers for brokers."""
        return [self.ids[arg] if isinstance(arg, str) else arg for arg in action.args]


def partition_model(constants: Mapping[str, Value]) -> PartitionModel:
    """Read a model's constants. Raises UserError."""
    names = names_in(constants, "Brokers")
    return PartitionModel(
        names,
        {name: number for number, name in enumerate(names, 1)},
        fine=constants["Fine"] is True,
        two_step=constants["TwoStepIsr"] is True,
    )


def names_in(constants: Mapping[str, Value], constant: str) -> tuple[str, ...]:
    """A constant that is a set of names, sorted. Raises UserError."""
    value = constants[constant]
    if not isinstance(value, frozenset):
        raise UserError(f"The constant {constant} of the model must be a set of strings.")
    return tuple(sorted(map(str, value)))
