"""Damages recordings in plausible ways, to see whether a judge notices; and holds it to its proof.

A damaged recording may still be one that a behaviour explains: a heartbeat more, say. So what the
judge accepts is no miss if its explanation is a proof; `proves` checks that without the judge.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from msgspec import structs

from conformance.judge.events import Event, Recording
from conformance.judge.verdict import ExplainingBehaviour
from conformance.tla import Action, ActionPattern, ObservedPart, Place, Spec, State, Value, equal

__all__ = ["Kind", "Mutant", "mutants", "proves"]


class Kind(StrEnum):
    """What was done to one event."""

    CHANGED = "changed value"
    DROPPED = "dropped event"
    DOUBLED = "doubled event"
    MOVED = "moved event"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A recording with one lie in it. The events before number `at` are as they were."""

    kind: Kind
    at: int
    recording: Recording


def mutants(recordings: Sequence[Recording], count: int, seed: int) -> Iterator[Mutant]:
    """So many mutants of recordings of several events, the kinds in turn; the seed decides.

    A changed value is one that a recording shows at the same place elsewhere. Fewer, if
    the recordings do not have as many different events and values.
    """
    rng = random.Random(seed)
    usable = [one for one in recordings if len(one.events) > 2]
    values = _values(usable)
    made, tries = 0, 0
    while usable and made < count and tries < 100 * count:
        tries += 1
        kind = list(Kind)[made % len(Kind)]
        mutant = _mutant(rng.choice(usable), kind, values, rng)
        if mutant is not None:
            made += 1
            name = f"{made}: {mutant.recording.name}, {kind}"
            yield replace(mutant, recording=replace(mutant.recording, name=name))


def _values(recordings: Sequence[Recording]) -> dict[Place, list[Value]]:
    found: dict[Place, dict[Value, None]] = {}
    for one in recordings:
        for event in one.events:
            for part in event.after:
                found.setdefault(part.place, {})[part.value] = None
    return {place: list(values) for place, values in found.items()}


def _mutant(
    one: Recording, kind: Kind, values: dict[Place, list[Value]], rng: random.Random
) -> Mutant | None:
    events = list(one.events)
    at = rng.randrange(len(events) - 1)
    first = at
    match kind:
        case Kind.CHANGED:
            events[at] = _changed(events[at], values, rng)
        case Kind.DROPPED:
            del events[at]
        case Kind.DOUBLED:
            first = at + 1
            events.insert(first, events[at])
        case Kind.MOVED:
            to = rng.choice([place for place in range(len(events)) if place != at])
            first = min(at, to)
            events.insert(to, events.pop(at))
    if list(map(_content, events)) == list(map(_content, one.events)):
        return None  # nothing else was ever seen there, or the moved one passed its like
    return Mutant(kind, first, replace(one, events=tuple(events)))


def _content(event: Event) -> Event:
    return structs.replace(event, source="")


def _changed(event: Event, values: dict[Place, list[Value]], rng: random.Random) -> Event:
    """The event with another value at one place, if any other was ever seen there."""
    choices = [
        (number, value)
        for number, part in enumerate(event.after)
        for value in values[part.place]
        if not equal(value, part.value)
    ]
    if not choices:
        return event
    number, value = rng.choice(choices)
    parts = list(event.after)
    parts[number] = ObservedPart(parts[number].place, value)
    return structs.replace(event, after=tuple(parts))


def proves(
    spec: Spec,
    silent: Sequence[ActionPattern],
    steps: int,
    events: Sequence[Event],
    explanation: ExplainingBehaviour,
) -> bool:
    """Whether a behaviour explains events of a total order with at most so many unseen steps.

    From an initial state on, every step must be one of the specification's, and the events, none
    of which is a snapshot, must be shown by steps of their own, in their order.
    """
    if explanation.initial not in spec.initial_states():
        return False
    if [number for number in explanation.events if number is not None] != list(range(len(events))):
        return False
    state, row = explanation.initial, 0
    rows = zip(explanation.actions, explanation.states, explanation.events, strict=True)
    for action, after, number in rows:
        if (action, after) not in spec.successors(state):
            return False
        row = row + 1 if number is None else 0
        if number is None and (row > steps or not any(one.admits(action) for one in silent)):
            return False
        if number is not None and not _shown(spec, events[number], action, state, after):
            return False
        state = after
    return True


def _shown(spec: Spec, event: Event, action: Action, before: State, after: State) -> bool:
    positions = {name: number for number, name in enumerate(spec.variables)}
    return any(one.admits(action) for one in event.actions) and all(
        part.shown_by(state, positions[part.place.variable])
        for state, parts in ((before, event.before), (after, event.after))
        for part in parts
    )
