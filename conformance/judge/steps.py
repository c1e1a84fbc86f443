"""The specification's steps for the search: the steps of an event, and the silent steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import Protocol

from conformance.judge.independence import Independence
from conformance.tla import (
    Action,
    ActionPattern,
    Fn,
    PartialRecord,
    SeenArgument,
    Selection,
    Spec,
    State,
    TooManyInstances,
    TracedAction,
    Value,
    format_value,
)

Step = tuple[Action, State]


class Steps(Protocol):
    """A next-state relation. Either raises EvaluationError where it has no value."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order of a state's values."""

    def taken(self, state: State, patterns: Sequence[ActionPattern]) -> Sequence[Step]:
        """Every step by one of these actions."""

    def silent(self, state: State, owner: str | None = None) -> Sequence[Step]:
        """Every step that may happen unseen before an event of this owner; None: of anybody."""

    def read(
        self, state: State, patterns: Sequence[ActionPattern], processes: frozenset[Value]
    ) -> frozenset[Value]:
        """The values that these actions, and the silent ones of these processes, read of a state.

        Of sets, sequences and functions their elements.
        """

    def owner(self, process: str, actions: Sequence[ActionPattern]) -> str | None:
        """Whose an event is, if that decides what may happen unseen directly before it."""

    @property
    def independence(self) -> Independence | None:
        """Which of the actions that may go unseen matter to others; None if that is not known."""


class BoundSpecSteps:
    """The steps of a bound spec, its actions found by their patterns, once for each pattern."""

    def __init__(
        self,
        spec: Spec,
        silent: Sequence[ActionPattern],
        directly: Sequence[ActionPattern] = (),
    ) -> None:
        self._spec = spec
        self._silent = spec.select(silent)
        self._directly_patterns = tuple(directly)
        self._directly = spec.select(directly) if directly else None
        self._of_owner: dict[str | None, Selection] = {}
        self._selections: dict[tuple[str, ...], Selection] = {}
        self._traced: dict[tuple[str, ...], tuple[TracedAction, ...]] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return self._spec.variables

    def taken(self, state: State, patterns: Sequence[ActionPattern]) -> Sequence[Step]:
        return self._spec.successors_in(self.selection(patterns), state)

    def selection(self, patterns: Sequence[ActionPattern]) -> Selection:
        """The instances of these patterns; SpecError and TooManyInstances as of `Spec.select`."""
        key = tuple(map(str, patterns))
        selection = self._selections.get(key)
        if selection is None:
            selection = self._selections[key] = self._spec.select(patterns)
        return selection

    def silent(self, state: State, owner: str | None = None) -> Sequence[Step]:
        steps = self._spec.successors_in(self._silent, state)
        if self._directly is None:
            return steps
        direct = self._spec.successors_in(self._direct(self._directly, owner), state)
        return [*steps, *(step for step in direct if _may_be_of(step[0], owner))]

    def _direct(self, directly: Selection, owner: str | None) -> Selection:
        """The instances that may be of this owner."""
        if owner is None:
            return directly
        if owner not in self._of_owner:
            self._of_owner[owner] = directly.only(lambda action: _may_be_of(action, owner))
        return self._of_owner[owner]

    def read(
        self, state: State, patterns: Sequence[ActionPattern], processes: frozenset[Value]
    ) -> frozenset[Value]:
        silent = (
            action
            for action in self._traceable((*self._silent.patterns, *self._directly_patterns))
            if action.action.args and action.action.args[0] in processes
        )
        actions = (*self._traceable(patterns), *silent)
        values = (value for action in actions for value in action.read(state))
        return frozenset(element for value in values for element in _elements(value))

    def _traceable(self, patterns: Sequence[ActionPattern]) -> tuple[TracedAction, ...]:
        """The instances of these patterns; nothing where they are too many."""
        key = tuple(map(str, patterns))
        if key not in self._traced:
            self._traced[key] = ()
            with suppress(TooManyInstances):
                self._traced[key] = self._spec.traced(patterns)
        return self._traced[key]

    def owner(self, process: str, actions: Sequence[ActionPattern]) -> str | None:
        if self._directly is None:
            return None
        return process or (process_of(actions[0].args or ()) if len(actions) == 1 else None)

    @cached_property
    def independence(self) -> Independence | None:
        return Independence.of(self._spec, (*self._silent.patterns, *self._directly_patterns))


def _elements(value: Value) -> Iterator[Value]:
    """The values without elements that a value is made of."""
    if isinstance(value, Fn):
        parts: Iterable[Value] = chain.from_iterable(value.items())
    elif isinstance(value, frozenset | tuple):
        parts = value
    else:
        yield value
        return
    for part in parts:
        yield from _elements(part)


def _may_be_of(action: Action, owner: str | None) -> bool:
    """Whether an action may be of a process; one that names no process is of any."""
    return owner is None or process_of(action.args) in (None, owner)


def process_of(args: Sequence[SeenArgument | None]) -> str | None:
    """The process that the first argument names, as an event would name it."""
    if not args or args[0] is None or isinstance(args[0], PartialRecord):
        return None
    return args[0] if isinstance(args[0], str) else format_value(args[0])
