"""Instances of actions, ready to be searched: together, a choice of them, or one that is traced."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

from conformance.tla.python.machine import Instance, Search, Successor
from conformance.tla.python.traced import (
    UNDEFINED,
    ChangedVariable,
    Read,
    Reads,
    TracedVariable,
    result_at,
)
from conformance.tla.values import Action, State, Value
from conformance.tla.values.patterns import ActionPattern

TracedSuccessor = tuple[Action, "tuple[Value | TracedVariable | ChangedVariable, ...]"]
"""An action and what it makes of each variable."""


@dataclass(frozen=True, slots=True)
class SharedSearch:
    """Action instances that share one formula, and so one generated function."""

    search: Search
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class TracedAction:
    """An action instance, as code that notes what it reads of a state and as the usual code."""

    instances: tuple[Instance]
    _traced: Search
    _plain: Search

    def successors(self, state: State) -> list[Successor]:
        """As `Spec.successors`, of this instance; errors are those of Python."""
        result: list[Successor] = []
        self._plain(state, result, self.instances)
        return result

    @property
    def action(self) -> Action:
        """The instance's name and arguments."""
        return cast("Action", self.instances[0][-1])

    def read(self, state: State) -> list[Value]:
        """The values that the instance reads of a state, up to where one is missing."""
        reads = Reads(state, frozenset())
        with suppress(*UNDEFINED):
            self.trace(reads)
        values = (
            state[index] if argument is None else result_at(state[index], argument)
            for index, argument in reads.order
        )
        return [value for value in values if value is not None]

    def refusal(self, state: State) -> Collection[Read] | None:
        """What the instance reads of a state in which it is not possible, to see that.

        None where it is possible, or where something that it needs has no value.
        """
        reads = Reads(state, frozenset())
        try:
            return None if self.trace(reads) else reads.order
        except UNDEFINED:
            return None

    def trace(self, reads: Reads) -> list[TracedSuccessor]:
        """The successors of `reads.state`, which then knows what was read."""
        result: list[TracedSuccessor] = []
        trace = cast("Callable[..., object]", self._traced)
        trace(reads.variables(), result, self.instances)
        return result


@dataclass(frozen=True, slots=True)
class Selection:
    """The action instances that some patterns admit, ready to be searched together."""

    patterns: tuple[ActionPattern, ...]
    searches: tuple[SharedSearch, ...]

    @property
    def actions(self) -> tuple[Action, ...]:
        """The instances, each once."""
        result = (instance[-1] for shared in self.searches for instance in shared.instances)
        return tuple(dict.fromkeys(action for action in result if isinstance(action, Action)))

    def only(self, wanted: Callable[[Action], bool]) -> Selection:
        """The same without instances that are not wanted.

        Where a formula has no value, `successors_in` may ask all instances of the patterns again.
        """
        kept = (
            replace(
                shared,
                instances=tuple(i for i in shared.instances if wanted(cast("Action", i[-1]))),
            )
            for shared in self.searches
        )
        return replace(self, searches=tuple(shared for shared in kept if shared.instances))
