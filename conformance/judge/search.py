"""Looks for the behaviours of a specification that explain the events of a recording.

A *level* is what is possible after so many events: for each cut of the order, the set of states
in which the specification may be, having shown all events of the cut. From level to level every
event that may be next is tried from every state that at most `silent` unseen steps lead to. So
the search is exhaustive, unless a limit cuts it short; it then says so, and no failure follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from conformance.errors import SpecError
from conformance.judge.events import Event
from conformance.judge.order import Cut, Order
from conformance.judge.steps import Steps
from conformance.tla import Action, Part, State, TooManyInstances, Value, canonical_key

__all__ = ["Blocked", "Found", "Limits", "Move", "Node", "Search"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How far the search goes. All but `silent` end it without a verdict."""

    silent: int = 0
    """At most so many steps in a row go unseen."""
    candidates: int = 20_000
    """Of so many states at once the search keeps track."""
    seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class Move:
    """How a state was reached: an event (None: unseen), and the action (None: a snapshot)."""

    event: int | None
    action: Action | None
    state: State


@dataclass(frozen=True, slots=True)
class Node:
    """A candidate: a state after the events of a cut, and one way to it from the one before."""

    cut: Cut
    state: State
    moves: tuple[Move, ...] = ()
    before: Node | None = None
    sources: list[State] = field(default_factory=list)
    """The states from which the last event led here, on every way that was found."""

    def path(self) -> Iterator[Node]:
        """The candidates from the first one to this."""
        nodes = [self]
        while (previous := nodes[-1].before) is not None:
            nodes.append(previous)
        return reversed(nodes)


@dataclass(frozen=True, slots=True)
class Blocked:
    """An event that no candidate explains, and the states from which it was tried."""

    event: int
    states: tuple[State, ...]
    """Those without an unseen step first."""
    tried: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the search came to. The levels hold, for each number of events, the candidates."""

    levels: tuple[tuple[Node, ...], ...]
    explained: bool
    exhaustive: bool
    blocked: tuple[Blocked, ...] = ()
    limits: tuple[str, ...] = ()
    """Why it is not exhaustive."""
    tried: int = 0
    """Candidates and states between them that were looked at."""

    @property
    def last(self) -> tuple[Node, ...]:
        """The candidates after as many events as can be explained."""
        return self.levels[-1] if self.levels else ()


_States = dict[State, Node]
_Reached = dict[State, tuple[Node, tuple[Move, ...]]]
"""States with the candidate that they were reached from, and the unseen steps on the way."""


@dataclass(slots=True)
class Search:
    """One recording's search."""

    steps: Steps
    events: Sequence[Event]
    order: Order
    limits: Limits
    _limits: dict[str, None] = field(default_factory=dict)
    _tried: int = 0
    _deadline: float = 0.0
    _positions: dict[str, int] = field(default_factory=dict)
    _compared: dict[tuple[int, int], tuple[Value, bool]] = field(default_factory=dict)
    """Of a part and a value, by identity, whether the value shows it; the value is kept alive."""

    def __post_init__(self) -> None:
        """Where each variable is in a state."""
        self._positions = {name: n for n, name in enumerate(self.steps.variables)}

    def run(
        self, initial: Iterable[State], progress: Callable[[int], None] = lambda _: None
    ) -> Found:
        """Explain the events from these states on."""
        self._deadline = time.monotonic() + self.limits.seconds
        start = self.order.start
        level: dict[Cut, _States] = {start: {state: Node(start, state) for state in initial}}
        levels = [_nodes(level)]
        for done in range(len(self.events)):
            closed = {cut: self._closure(states) for cut, states in level.items()}
            following = self._next_level(closed)
            if not following:
                return self._found(levels, closed)
            self._compared.clear()
            level = self._within_limit(following, done + 1)
            levels.append(_nodes(level))
            progress(done + 1)
        return self._found(levels, {})

    def _found(self, levels: list[tuple[Node, ...]], closed: dict[Cut, _Reached]) -> Found:
        explained = bool(levels[-1]) and len(levels) == len(self.events) + 1
        return Found(
            tuple(levels),
            explained,
            not self._limits,
            () if explained else self._blocked(closed),
            tuple(self._limits),
            self._tried,
        )

    def _blocked(self, closed: dict[Cut, _Reached]) -> tuple[Blocked, ...]:
        states: dict[int, list[State]] = {}
        for cut, reached in closed.items():
            for event in self.order.ready(cut):
                states.setdefault(event, []).extend(reached)
        return tuple(
            Blocked(event, tuple(tried[:_KEPT]), len(tried)) for event, tried in states.items()
        )

    # --- from level to level --------------------------------------------------------------------

    def _closure(self, states: _States) -> _Reached:
        """The states that at most `silent` unseen steps lead to, fewest steps first."""
        reached: _Reached = {state: (node, ()) for state, node in states.items()}
        ahead = list(states)
        for _ in range(self.limits.silent):
            found: list[State] = []
            for before in ahead:
                node, moves = reached[before]
                for action, state in self._silent(before):
                    if state not in reached:
                        reached[state] = node, (*moves, Move(None, action, state))
                        found.append(state)
            ahead = found
            if self._crowded(reached) or self._late() or not ahead:
                break
        self._tried += len(reached)
        return reached

    def _crowded(self, reached: _Reached) -> bool:
        limit = self.limits.candidates
        if len(reached) > limit:
            self._limit(f"unseen steps lead to more than {limit:,} states at once")
        return len(reached) > limit

    def _next_level(self, closed: dict[Cut, _Reached]) -> dict[Cut, _States]:
        following: dict[Cut, _States] = {}
        for cut, reached in closed.items():
            for event in self.order.ready(cut):
                after = self.order.after(cut, event)
                states = following.get(after, {})
                self._take(event, after, reached, states)
                if states:
                    following[after] = states
        return following

    def _take(self, number: int, after: Cut, reached: _Reached, states: _States) -> None:
        """Add the candidates in which the event has happened."""
        event = self.events[number]
        for before, (node, moves) in reached.items():
            if self._late():
                return
            for action, state in self._explain(event, before):
                known = states.get(state)
                if known is None:
                    move = Move(number, action, state)
                    known = states[state] = Node(after, state, (*moves, move), node)
                if action is not None:
                    known.sources.append(before)

    def _explain(self, event: Event, state: State) -> Iterator[tuple[Action | None, State]]:
        """The ways in which the event may have happened in a state."""
        if not self._shows(state, event.before):
            return
        if event.is_snapshot:
            if self._shows(state, event.after):
                yield None, state
            return
        for action, after in self._taken(event, state):
            if self._shows(after, event.after):
                yield action, after

    def _shows(self, state: State, parts: Sequence[Part]) -> bool:
        """Compared once for each value of a variable: candidates have most of them in common."""
        positions, known = self._positions, self._compared
        for part in parts:
            position = positions[part.place.variable]
            value = state[position]
            key = id(part), id(value)
            compared = known.get(key)
            if compared is None:
                compared = known[key] = value, part.shown_by(state, position)
            if not compared[1]:
                return False
        return True

    # --- limits -----------------------------------------------------------------------------------

    def _taken(self, event: Event, state: State) -> Sequence[tuple[Action, State]]:
        try:
            return self.steps.taken(state, event.actions)
        except TooManyInstances as many:
            self._limit(f"{many}: its arguments were not seen")
        except SpecError as error:
            self._limit(str(error))
        return ()

    def _silent(self, state: State) -> Sequence[tuple[Action, State]]:
        try:
            return self.steps.silent(state)
        except SpecError as error:
            self._limit(str(error))
        return ()

    def _late(self) -> bool:
        if time.monotonic() > self._deadline:
            self._limit(f"{self.limits.seconds:g} seconds were not enough")
            return True
        return False

    def _limit(self, why: str) -> None:
        self._limits[why] = None

    def _within_limit(self, level: dict[Cut, _States], done: int) -> dict[Cut, _States]:
        """The level itself, or as much of it as may be kept: what needed fewest unseen steps."""
        count = sum(map(len, level.values()))
        if count <= self.limits.candidates:
            return level
        self._limit(f"more than {self.limits.candidates:,} candidates after {done} events")
        nodes = sorted(_nodes(level), key=_fewest)[: self.limits.candidates]
        kept: dict[Cut, _States] = {}
        for node in nodes:
            kept.setdefault(node.cut, {})[node.state] = node
        return kept


_KEPT = 200
"""Of so many states it is kept that an event was tried from them."""


def _fewest(node: Node) -> tuple[int, object]:
    return len(node.moves), canonical_key(node.state)


def _nodes(level: dict[Cut, _States]) -> tuple[Node, ...]:
    return tuple(node for states in level.values() for node in states.values())
