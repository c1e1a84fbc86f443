"""A behaviour for a story, independent of its origin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import TypeAlias

from conformance.events import Reason
from conformance.printable import counted
from conformance.story.changes import changes
from conformance.story.comparison import differences
from conformance.story.why import reason_lines
from conformance.tla import Action, Value, format_value

Seen: TypeAlias = "tuple[Value | None, ...]"
"""The values of the spec's variables in the spec's order; None where nothing is known."""

Locate = Callable[[Action], str]
"""Where an action is defined: `file:line:column`, or nothing."""

TOLD_STEPS = 40
"""The number of steps, from the end of a long behaviour, that a story shows."""


@dataclass(frozen=True, slots=True)
class Step:
    """A state and the action that led to it; None at the start."""

    action: Action | None
    state: Seen
    note: str = ""
    """The note after the action's name, for example that the step is silent."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What happened, step by step, from an initial state on.

    The states are the specification's. A behaviour that `departs` ends with what the
    specification expected after its last action, and something else came: `observed` is what an
    implementation showed there, by variable (nothing after an exception). `ending` is for the
    end of the story, `reasons` say why the formula is false there.
    """

    variables: tuple[str, ...]
    steps: tuple[Step, ...]
    observed: Mapping[str, Value] = field(default_factory=dict)
    ending: str = ""
    reasons: tuple[Reason, ...] = ()
    departs: bool = False
    format_action: Callable[[Action], str] = str
    """How an action is written."""
    earlier: int = 0
    """How many steps were before the first of these, and are not told."""

    @property
    def actual(self) -> Seen | None:
        """The last state as the implementation showed it; None if there is nothing to compare."""
        if not self.observed:
            return None
        pairs = zip(self.variables, self.steps[-1].state, strict=True)
        return tuple(self.observed.get(name, value) for name, value in pairs)


def last_steps(behaviour: Behaviour, most: int = TOLD_STEPS) -> Behaviour:
    """The end of a long behaviour, which begins with the state that was reached before it."""
    left_out = len(behaviour.steps) - 1 - most
    if left_out <= 0:
        return behaviour
    first, *rest = behaviour.steps[left_out:]
    steps = (replace(first, action=None), *rest)
    return replace(behaviour, steps=steps, earlier=behaviour.earlier + left_out)


def lines(behaviour: Behaviour) -> tuple[str, ...]:
    """The story, line by line; what a step changed is indented below its action.

    An implementation's story begins with its first action and ends with how it departs: what
    differs there is told beside it.
    """
    ending = behaviour.ending.splitlines()
    return (*step_lines(behaviour), *ending, *reason_lines(behaviour.reasons))


def step_lines(behaviour: Behaviour) -> tuple[str, ...]:
    """The steps alone."""
    report = [f"... {counted(behaviour.earlier, 'step')} before"] if behaviour.earlier else []
    for number in range(len(behaviour.steps)):
        report += _step_lines(behaviour, number)
    return tuple(report)


def end_lines(behaviour: Behaviour) -> tuple[str, ...]:
    """The end of the story: the reasons, and the expected state beside the observed one."""
    ending = dedent(behaviour.ending).splitlines()
    return (*ending, *_departure(behaviour), *reason_lines(behaviour.reasons))


def _departure(behaviour: Behaviour) -> tuple[str, ...]:
    if not (behaviour.departs and behaviour.observed):
        return ()
    last = behaviour.steps[-1].state
    result = differences(behaviour.variables, (last,), behaviour.observed)
    report = [
        line
        for difference in result
        for line in (
            f"  {difference.variable}",
            f"    the specification has  {difference.expected}",
            f"    the implementation     {difference.actual}",
        )
    ]
    return ("Where they differ:", *report) if report else ()


def heading_without_action(behaviour: Behaviour, number: int) -> str:
    """How a step is headed that has no action: the first, or any of a file that names none."""
    if number:
        return "(the file names no action)"
    return "State after these" if behaviour.earlier else "Initial state"


def _step_lines(behaviour: Behaviour, number: int) -> Iterator[str]:
    step = behaviour.steps[number]
    if number == 0 and step.action is None and behaviour.departs:
        return
    if step.action is None:
        action = heading_without_action(behaviour, number)
    else:
        action = behaviour.format_action(step.action)
    yield f"{behaviour.earlier + number}. {action}{step.note}"
    if number == 0:
        yield from (f"     {line}" for line in state_lines(behaviour.variables, step.state))
    elif not (behaviour.departs and number == len(behaviour.steps) - 1):
        before = behaviour.steps[number - 1].state
        result = changes(behaviour.variables, before, step.state)
        known = any(value is not None for value in step.state)
        nothing = "(nothing changes)" if known else "(the state is not known)"
        yield from (f"     {line}" for line in result or (nothing,))


def state_lines(variables: Sequence[str], state: Seen) -> list[str]:
    """A state, one variable a line, without the variables that were not observed."""
    pairs = zip(variables, state, strict=True)
    return [f"{name} = {format_value(value)}" for name, value in pairs if value is not None]
