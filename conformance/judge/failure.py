"""Why an event cannot have happened: in the specification's words, for each candidate state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.errors import SpecError
from conformance.events import Difference
from conformance.judge.events import Event
from conformance.judge.search import Blocked, Found
from conformance.judge.steps import SpecSteps
from conformance.judge.verdict import Blocker, Failure
from conformance.story.why import obstacles, reason_lines
from conformance.tla import Part, Spec, State, TooManyInstances, format_value

_STATES = 40
"""From so many candidate states the reasons are looked for."""
_ACTIONS = 12
"""Of so many instances of an action."""
_SHOWN = 3


def failure_of(spec: Spec, steps: SpecSteps, events: Sequence[Event], found: Found) -> Failure:
    """The event that comes first in the recording among those that nothing explains."""
    first, *rest = sorted(found.blocked, key=lambda blocked: blocked.event)
    event = events[first.event]
    blockers = sorted(_blockers(spec, steps, event, first), key=_severity)
    return Failure(
        number=first.event,
        event=str(event),
        action=str(event.actions[0]) if event.actions else "",
        source=event.source,
        candidates=first.tried,
        seen=event.after,
        blockers=tuple(_distinct(blockers)[:_SHOWN]),
        others=tuple(f"{events[one.event]} ({events[one.event].source})" for one in rest[:_SHOWN]),
    )


def _severity(blocker: Blocker) -> tuple[int, int]:
    """The nearest first: a step that is enabled and differs in few places."""
    if blocker.differences:
        return 0, len(blocker.differences)
    return 1, len(blocker.lines)


def _distinct(blockers: Sequence[Blocker]) -> list[Blocker]:
    kept = {(one.action, one.lines, one.differences): one for one in reversed(blockers)}
    return list(reversed(kept.values()))


def _blockers(spec: Spec, steps: SpecSteps, event: Event, blocked: Blocked) -> Iterator[Blocker]:
    for state in blocked.states[:_STATES]:
        before = _differing(spec, state, event.before)
        if before:
            yield _unlike(state, "the state before it differs", before)
        elif event.is_snapshot:
            yield _unlike(state, "the state differs", _differing(spec, state, event.after))
        else:
            yield from _of_actions(spec, steps, event, state)


def _unlike(state: State, told: str, differences: tuple[Difference, ...]) -> Blocker:
    """A state that is none in which the event was seen, whatever step follows."""
    return Blocker(state, "", (told, *_hints(differences)), differences)


def _of_actions(spec: Spec, steps: SpecSteps, event: Event, state: State) -> Iterator[Blocker]:
    try:
        actions = steps.selection(event.actions).actions
        taken = steps.taken(state, event.actions)
    except (SpecError, TooManyInstances) as error:
        yield Blocker(state, str(event.actions[0]), (str(error),))
        return
    if not actions:
        text = f"the spec has no instance {event}: its constants do not have such arguments"
        yield Blocker(state, str(event.actions[0]), (text,))
    for action, after in taken:
        differences = _differing(spec, after, event.after)
        if differences:
            yield Blocker(state, str(action), _hints(differences), differences, after)
    enabled = {action for action, _ in taken}
    for action in [one for one in actions if one not in enabled][:_ACTIONS]:
        told = reason_lines(obstacles(spec, action, state))
        yield Blocker(state, str(action), told or (f"the spec does not enable {action}",))


def _hints(differences: Sequence[Difference]) -> tuple[str, ...]:
    """For whoever wrote a model value as a string: they print alike but for the quotes."""
    names = [one.expected for one in differences if one.actual == f'"{one.expected}"']
    return tuple(
        f'{name} is a model value: in an event it is written {{"#unserializable": "{name}"}}'
        for name in dict.fromkeys(names)
        if name.isidentifier() and name not in ("TRUE", "FALSE")
    )


def _differing(spec: Spec, state: State, parts: Sequence[Part]) -> tuple[Difference, ...]:
    """The parts that were seen and that the state does not show."""
    positions = {name: n for n, name in enumerate(spec.variables)}
    found: list[Difference] = []
    for part in parts:
        position = positions[part.place.variable]
        if not part.shown_by(state, position):
            expected = part.place.within(state[position])
            text = "(no such entry)" if expected is None else format_value(expected)
            found.append(Difference(str(part.place), text, format_value(part.value)))
    return tuple(found)
