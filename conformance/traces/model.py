"""What a recorded trace is: an initial state and the steps that followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from conformance.tla import Action, Fingerprinter, Fn, State, Value

PartialState: TypeAlias = "tuple[Value | None, ...]"
"""The values of the spec's variables in the spec's order; None where nothing was observed."""


class TraceEnd(StrEnum):
    """Why a trace ends."""

    LENGTH = "length"
    """It reached the length that was asked for."""
    DEADLOCK = "deadlock"
    """The spec enables no action in its last state."""
    AMBIGUOUS = "ambiguous"
    """No action is enabled in every state that the observations allow."""
    DIVERGED = "diverged"
    """The implementation showed a state that the spec does not allow, or refused an action."""
    IMPORTED = "imported"
    """It was imported and says no more."""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step: the action and the state after it."""

    action: Action
    state: PartialState


@dataclass(frozen=True, slots=True)
class Trace:
    """A behaviour of an implementation, in the spec's terms.

    `problem` says why the trace cannot be judged whole (an import that could not be read);
    `source` where an imported trace came from.
    """

    trace_id: int
    seed: int
    initial: PartialState
    steps: tuple[TraceStep, ...]
    end: TraceEnd
    problem: str | None = None
    source: str | None = None

    @property
    def states(self) -> tuple[PartialState, ...]:
        """All n + 1 states."""
        return (self.initial, *(step.state for step in self.steps))


def is_complete(state: PartialState) -> bool:
    """Whether every variable has a value."""
    return None not in state


def complete(state: PartialState) -> State:
    """The state itself, typed as complete; ValueError if it is not."""
    values = [value for value in state if value is not None]
    if len(values) != len(state):
        raise ValueError("the state has unobserved variables")
    return tuple(values)


def values_of(variables: Sequence[str], state: PartialState) -> dict[str, Value]:
    """The observed variables of a state, by name."""
    pairs = zip(variables, state, strict=True)
    return {name: value for name, value in pairs if value is not None}


def state_fingerprint(
    state: PartialState, variables: tuple[str, ...], fingerprint: Fingerprinter
) -> int:
    """The fingerprint of a state; a partial one's is that of the record of what it holds.

    A tuple and a record never encode alike, so a partial state is never taken for a whole one.
    """
    observed: dict[Value, Value] = {
        name: value for name, value in zip(variables, state, strict=True) if value is not None
    }
    if len(observed) == len(variables):
        return fingerprint(tuple(observed.values()))
    return fingerprint(Fn(observed))
