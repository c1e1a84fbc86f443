"""Which unseen steps can matter to the next events, in a state and whatever follows it.

Our analysis goes like this:

1. Of each action it is known which places of the state it may read or change, in any state
   (`Spec.footprints`). Two actions of which neither changes what the other one reads can be taken
   in either order, with the same result.
2. In a state, the next events *matter*. With an action that matters and is possible, every action
   matters that may not be taken in either order with it. With one that is not possible, every
   action matters that may change what was read to see that: without these, it stays impossible.
3. So of any behaviour from this state on to one of the next events, the first step that matters
   can be taken first, and the others after it. It is possible now, since no step before it changed
   what it reads. So whoever looks for the next event has to take steps that matter, and no others.

These are stubborn sets (Valmari, "Stubborn sets for reduced state space generation", 1989).
An unseen step may so be taken after the event before which it was: whoever counts unseen steps has
to count those of all rows together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.tla import (
    Action,
    ActionPattern,
    Footprint,
    ObservedPart,
    Spec,
    State,
    StatePlace,
    TooManyInstances,
    TracedAction,
)

__all__ = ["Independence", "NextEvent"]

Actions = frozenset[Action]

_MOST = 5_000
"""Of so many instances of actions at most it is asked what they read and change."""


@dataclass(frozen=True, slots=True, eq=False)
class NextEvent:
    """An event that may be next, with what it may read or change and what its steps read."""

    places: Footprint
    traced: tuple[TracedAction, ...]
    seen: frozenset[StatePlace]
    """What was observed of the state before it or after it."""


@dataclass(slots=True)
class _Users:
    """The actions that use each variable, by the argument of its function."""

    by_place: dict[str, dict[object, set[Action]]] = field(default_factory=dict)

    def add(self, action: Action, places: Iterable[StatePlace]) -> None:
        for name, key in places:
            self.by_place.setdefault(name, {}).setdefault(key, set()).add(action)

    def of(self, places: Iterable[StatePlace]) -> set[Action]:
        """The actions that use something of these places."""
        result: set[Action] = set()
        for name, key in places:
            uses = self.by_place.get(name, {})
            if key is None:
                result.update(*uses.values())
            else:
                result |= uses.get(key, set()) | uses.get(None, set())
        return result


class Independence:
    """The unseen actions of a specification, and which of them matter to others."""

    def __init__(
        self, spec: Spec, places: Mapping[Action, Footprint], traced: Iterable[TracedAction]
    ) -> None:
        self._spec = spec
        self._places = places
        self._all = frozenset(places)
        self._traced: dict[Action, list[TracedAction]] = {}
        for instance in traced:
            self._traced.setdefault(instance.action, []).append(instance)
        self._writers, self._readers = _Users(), _Users()
        for action, footprint in places.items():
            self._writers.add(action, footprint.writes)
            self._readers.add(action, footprint.reads)
        self._dependent: dict[Action, Actions] = {}

    @classmethod
    def of(cls, spec: Spec, silent: Sequence[ActionPattern]) -> Independence | None:
        """Of the actions that may go unseen; None if nothing is known of them."""
        try:
            places = spec.footprints(silent, _MOST)
            return cls(spec, places, spec.traced(silent)) if places else None
        except TooManyInstances:
            return None

    def event(
        self, actions: Sequence[ActionPattern], parts: Iterable[ObservedPart]
    ) -> NextEvent | None:
        """An event of one of these actions, of which these parts were seen; None if too many."""
        try:
            places = self._spec.footprints(actions, _MOST)
        except TooManyInstances:
            return None
        if places is None:
            return None
        traced = self._spec.traced(actions)
        seen = frozenset(map(_place, parts))
        reads = seen.union(*(footprint.reads for footprint in places.values()))
        writes = frozenset[StatePlace]().union(*(each.writes for each in places.values()))
        return NextEvent(Footprint(reads, writes), traced, seen)

    def matter(
        self,
        state: State,
        events: Iterable[tuple[NextEvent, bool]],
        enabled: Collection[Action],
    ) -> Collection[Action]:
        """Those of the enabled unseen actions that matter to the next events.

        Each event with whether it is possible in the state.
        """
        result: set[Action] = set()
        ahead: list[Action] = []

        def add(actions: Iterable[Action]) -> None:
            for action in actions:
                if action not in result:
                    result.add(action)
                    ahead.append(action)

        for event, possible in events:
            if possible:
                add(self._dependents(event.places))
                continue
            reads = _reads(self._spec, event.traced, state)
            # Of a step that is possible, and shows something else, all is read that it may read.
            add(self._writers.of(event.places.reads if reads is None else reads | event.seen))
        while ahead:
            action = ahead.pop()
            if action in enabled:
                add(self._of(action))
                continue
            reads = _reads(self._spec, self._traced.get(action, ()), state)
            add(self._all if reads is None else self._writers.of(reads))
        return result.intersection(enabled)

    def _of(self, action: Action) -> Actions:
        dependent = self._dependent.get(action)
        if dependent is None:
            dependent = frozenset(self._dependents(self._places[action]))
            self._dependent[action] = dependent
        return dependent

    def _dependents(self, places: Footprint) -> set[Action]:
        """The actions that may not be taken in either order with one that has these places."""
        return self._writers.of(places.reads) | self._readers.of(places.writes)


def _place(part: ObservedPart) -> StatePlace:
    key = part.place.path[0] if part.place.path else None
    return part.place.variable, key if type(key) in (int, str) else None


def _reads(
    spec: Spec, instances: Iterable[TracedAction], state: State
) -> frozenset[StatePlace] | None:
    """What these actions read to see that none is possible; None if that is not known."""
    result: set[StatePlace] = set()
    for instance in instances:
        places = instance.refusal(state)
        if places is None:
            return None
        result.update((spec.variables[index], key) for index, key in places)
    return frozenset(result)
