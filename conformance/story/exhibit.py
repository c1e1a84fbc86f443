"""Makes a behaviour ready to be looked at: texts and one drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.events import Exhibit, ShownStep
from conformance.printable import printable
from conformance.story.behaviour import Behaviour, Locate, Seen, heading_without_action
from conformance.story.changes import changes
from conformance.story.picture import Picture
from conformance.story.scene import scene_of
from conformance.story.svg import draw
from conformance.tla import differing, format_value


def nowhere(_action: object) -> str:
    """A `Locate` that knows no place."""
    return ""


def exhibit(
    behaviour: Behaviour, picture: Picture | None, title: str, locate: Locate = nowhere
) -> Exhibit:
    """The behaviour in texts, with its space-time diagram."""
    return Exhibit(
        tuple(_steps(behaviour, locate)),
        draw(scene_of(behaviour, picture), title),
        behaviour.reasons,
        behaviour.ending,
        _observed(behaviour),
    )


def _observed(behaviour: Behaviour) -> dict[str, str]:
    names = differing(behaviour.variables, behaviour.steps[-1].state, behaviour.observed)
    return {name: printable(format_value(behaviour.observed[name])) for name in names}


def _steps(behaviour: Behaviour, locate: Locate) -> Iterator[ShownStep]:
    before: Seen | None = None
    for number, step in enumerate(behaviour.steps):
        report = () if before is None else changes(behaviour.variables, before, step.state)
        yield ShownStep(
            _heading(behaviour, number),
            tuple(printable(str(change)) for change in report),
            _values(behaviour.variables, before, step.state),
            "" if step.action is None else locate(step.action),
        )
        before = step.state


def _heading(behaviour: Behaviour, number: int) -> str:
    """The step's action; nothing for the initial state, whose heading is the page's."""
    step = behaviour.steps[number]
    if step.action is not None:
        return printable(f"{step.action}{step.note}")
    return heading_without_action(behaviour, number) if number else ""


def _values(variables: Sequence[str], before: Seen | None, after: Seen) -> dict[str, str]:
    """The variables whose value is new, as TLC prints it; a space where nothing was seen."""
    old = before or (None,) * len(after)
    return {
        name: " " if value is None else printable(format_value(value))
        for name, was, value in zip(variables, old, after, strict=True)
        if before is None or was != value
    }
