"""Why an event cannot have happened: in the specification's words, for each candidate state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from conformance.errors import SpecError
from conformance.events import Difference
from conformance.judge.events import Event
from conformance.judge.search import BlockedEvent, EventSearchResult
from conformance.judge.steps import BoundSpecSteps
from conformance.judge.verdict import Blocker, Failure
from conformance.story.comparison import model_values_as_strings
from conformance.story.why import obstacles, reason_lines
from conformance.tla import (
    Fn,
    ObservedPart,
    Spec,
    State,
    TooManyInstances,
    Value,
    canonical_sorted,
    format_value,
    value_at,
)

_STATES = 40
"""The number of candidate states whose reasons are computed."""
_ACTIONS = 12
"""The number of instances of an action whose reasons are computed."""
_SHOWN = 3


def failure_of(
    spec: Spec, steps: BoundSpecSteps, events: Sequence[Event], result: EventSearchResult
) -> Failure:
    """The event that comes first in the recording among those that nothing explains."""
    first, *rest = sorted(result.blocked, key=lambda blocked: blocked.event)
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
        others=tuple(
            f"{events[event.event]} ({events[event.event].source})" for event in rest[:_SHOWN]
        ),
    )


def _severity(blocker: Blocker) -> tuple[int, int]:
    """The nearest first: a step that is enabled and differs in few places."""
    if blocker.differences:
        return 0, len(blocker.differences)
    return 1, len(blocker.lines)


def _distinct(blockers: Sequence[Blocker]) -> list[Blocker]:
    kept = {
        (blocker.action, blocker.lines, blocker.differences): blocker
        for blocker in reversed(blockers)
    }
    return list(reversed(kept.values()))


def _blockers(
    spec: Spec, steps: BoundSpecSteps, event: Event, blocked: BlockedEvent
) -> Iterator[Blocker]:
    for state in blocked.states[:_STATES]:
        before = _differing(spec, state, event.before)
        if before:
            lines = ("the state before it differs", *_entries_hints(spec, state, event.before))
            yield _unlike(state, lines, before)
        elif event.is_snapshot:
            lines = ("the state differs", *_entries_hints(spec, state, event.after))
            yield _unlike(state, lines, _differing(spec, state, event.after))
        else:
            yield from _of_actions(spec, steps, event, state)


def _unlike(state: State, lines: tuple[str, ...], differences: tuple[Difference, ...]) -> Blocker:
    """A state that is none in which the event was seen, whatever step follows."""
    return Blocker(state, "", (*lines, *_hints(differences)), differences)


def _of_actions(spec: Spec, steps: BoundSpecSteps, event: Event, state: State) -> Iterator[Blocker]:
    try:
        actions = steps.selection(event.actions).actions
        selection = steps.taken(state, event.actions)
    except (SpecError, TooManyInstances) as error:
        yield Blocker(state, str(event.actions[0]), (str(error),))
        return
    if not actions:
        text = f"the spec has no instance {event}: its constants do not have such arguments"
        yield Blocker(state, str(event.actions[0]), (text,))
    for action, after in selection:
        differences = _differing(spec, after, event.after)
        if differences:
            hints = (*_entries_hints(spec, after, event.after), *_hints(differences))
            yield Blocker(state, str(action), hints, differences, after)
    enabled = {action for action, _ in selection}
    for action in [action for action in actions if action not in enabled][:_ACTIONS]:
        lines = reason_lines(obstacles(spec, action, state))
        yield Blocker(state, str(action), lines or (f"the spec does not enable {action}",))


def _hints(differences: Sequence[Difference]) -> tuple[str, ...]:
    return tuple(
        f'{name} is a model value: in an event it is written {{"#unserializable": "{name}"}}'
        for name in model_values_as_strings(differences)
    )


def _entries_hints(spec: Spec, state: State, parts: Sequence[ObservedPart]) -> tuple[str, ...]:
    """For whoever wrote the entries that were seen as if they were the whole function."""
    return tuple(filter(None, (_entries_hint(spec, state, part) for part in parts)))


def _entries_hint(spec: Spec, state: State, part: ObservedPart) -> str:
    whole = value_at(state[spec.variables.index(part.place.variable)], part.place.path)
    seen, expected = _domain(part.value), _domain(whole)
    if not (isinstance(part.value, Fn) or part.value == ()) or not seen < expected:
        return ""
    names = ", ".join(map(format_value, canonical_sorted(seen)))
    others = ", ".join(map(format_value, canonical_sorted(expected - seen)))
    entry = str(part.place.entry(canonical_sorted(seen)[0])) if seen else f"{part.place}[...]"
    return (
        f"the event shows {part.place} as a whole function, of {names or 'nothing'} alone, where "
        f"the specification's has {others} too: if only some entries were seen, write each as a "
        f"place of its own, such as {json.dumps(entry)}"
    )


def _domain(value: Value | None) -> frozenset[Value]:
    """The arguments of a function that is no sequence: a shorter sequence is another value."""
    return frozenset(value) if isinstance(value, Fn) else frozenset()


def _differing(spec: Spec, state: State, parts: Sequence[ObservedPart]) -> tuple[Difference, ...]:
    """The parts that were seen and that the state does not show."""
    positions = {name: n for n, name in enumerate(spec.variables)}
    differences: list[Difference] = []
    for part in parts:
        position = positions[part.place.variable]
        if not part.shown_by(state, position):
            expected = part.place.within(state[position])
            text = "(no such entry)" if expected is None else format_value(expected)
            differences.append(Difference(str(part.place), text, format_value(part.value)))
    return tuple(differences)
