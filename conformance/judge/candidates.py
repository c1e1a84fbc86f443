"""Sets of states in which the specification may be, and where events lead from them.

Recordings of one system come to the same states again and again. So what the search asks is
answered once: a state, a set of candidate states and what an event shows are objects, found by
identity, and keep what was computed of them. It is the subset construction of a nondeterministic
automaton, made as far as recordings need it.

A set is known by its states in the order in which they were found. So no answer depends on which
recordings came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from conformance.errors import SpecError
from conformance.judge.budget import Budget, JudgeLimits
from conformance.judge.events import Event
from conformance.judge.independence import Independence
from conformance.judge.patience import Patience
from conformance.judge.steps import Step, Steps
from conformance.tla import (
    Action,
    ActionPattern,
    ObservedPart,
    State,
    TooManyInstances,
    Value,
    equal,
)

__all__ = ["Arrival", "Candidate", "CandidateSet", "Candidates", "Origin", "Sight", "SilentClosure"]


@dataclass(frozen=True, slots=True, eq=False)
class SuccessorSteps:
    """The steps that some actions allow in a state; `problem` says why some may be missing."""

    steps: tuple[tuple[Action, Candidate], ...]
    problem: str = ""


class Candidate:
    """A state, with the steps that were asked for; equal to itself only."""

    __slots__ = ("state", "ways")

    def __init__(self, state: State) -> None:
        self.state = state
        self.ways: dict[int, SuccessorSteps] = {}
        """By the number of the actions: see `Sight`."""


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """The observations of an event, independent of its place in a recording."""

    actions: tuple[ActionPattern, ...]
    before: tuple[ObservedPart, ...]
    after: tuple[ObservedPart, ...]
    number: int
    """Of the actions; events that name the same have the same."""
    shows_before: Callable[[State], bool]
    """Whether a candidate's state agrees with the observation before the event, or after it."""
    shows_after: Callable[[State], bool]
    owner: str | None = None
    """The process, where that decides what may happen unseen directly before the event."""


_UNSEEN = -1
"""The number of the actions that may happen unseen; other owners have numbers below it."""


class Origin(NamedTuple):
    """One way to a candidate: from which one, by which unseen steps, by which action at last."""

    candidate: Candidate
    unseen: tuple[tuple[Action, Candidate], ...]
    action: Action | None
    """None of a snapshot."""


Path = tuple[Candidate, tuple[tuple[Action, Candidate], ...]]
"""From which candidate, by which unseen steps."""

Load = frozenset[tuple[Value, int]]
"""How many steps each process has taken unseen, where that is bounded."""

NO_LOAD: Load = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class SilentClosure:
    """The states that at most `silent` unseen steps lead to, fewest steps first.

    Of each, one candidate that it was reached from, and the unseen steps on the way.
    """

    reached: Mapping[Candidate, Path]
    problems: tuple[str, ...] = ()


Taken = tuple[Action | None, Candidate]
"""A step that an event may have been: its action (None for a snapshot) and the state after it."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """Where an event leads from a set of candidates."""

    candidates: CandidateSet
    origins: Mapping[Candidate, Origin]
    sources: Mapping[Candidate, tuple[Candidate, ...]]
    """Every state in which the event may have happened, by the state after it."""
    tried: int
    problems: tuple[str, ...] = ()
    owner: str | None = None
    """As of the event's sight."""


@dataclass(slots=True, eq=False)
class CandidateSet:
    """Candidates in the order in which they were found, each once."""

    members: tuple[Candidate, ...]
    closures: dict[str | None, SilentClosure] = field(default_factory=dict)
    """By the owner of the event that follows."""
    arrivals: dict[Sight, Arrival] = field(default_factory=dict)

    @property
    def states(self) -> tuple[State, ...]:
        """The states themselves."""
        return tuple(candidate.state for candidate in self.members)


class Candidates:
    """All that is known of a specification's candidates. `remember` bounds it between recordings.

    It grows while a recording is judged, by no more than `limits.states` allow.
    """

    def __init__(
        self,
        steps: Steps,
        limits: JudgeLimits,
        *,
        remember: int = 200_000,
        patience: Patience | None = None,
    ) -> None:
        self._steps = steps
        self.limits = limits
        self._remember = remember
        self._positions = {name: n for n, name in enumerate(steps.variables)}
        self._patience = patience or Patience(limits.evaluation)
        self._known: dict[State, Candidate] = {}
        # One object for each value of a variable: what is compared with it is so once.
        self._values: tuple[dict[Value, Value], ...] = tuple({} for _ in steps.variables)
        self._sets: dict[tuple[Candidate, ...], CandidateSet] = {}
        self._numbers: dict[tuple[ActionPattern, ...], int] = {}
        self._sights: dict[tuple[object, ...], list[Sight]] = {}
        self._by_identity: dict[tuple[int, int, int, str | None], tuple[Sight, Event]] = {}
        # Events that many recordings share; they are kept by the table above.
        self._of_shared: dict[int, Sight] = {}
        self._start: tuple[Sequence[State], CandidateSet] | None = None
        self._unseen: dict[str | None, int] = {None: _UNSEEN}
        self.crowded = False
        """Whether memory ran out: nothing of it is worth keeping."""

    def apart(self, limits: JudgeLimits) -> Candidates:
        """Others of the same specification, within other limits, that share nothing with these."""
        return Candidates(self._steps, limits, patience=self._patience)

    def tidy(self) -> bool:
        """Forget everything if it is much, and say so: to be called between recordings."""
        content = len(self._known) + len(self._sets) + len(self._by_identity)
        if content <= self._remember and not self.crowded:
            return False
        self.crowded = False
        self._known, self._sets = {}, {}
        self._values = tuple({} for _ in self._values)
        self._sights, self._by_identity, self._numbers = {}, {}, {}
        self._of_shared, self._start = {}, None
        return True

    # --- one object for each ---------------------------------------------------------------------

    def sights(self, events: Sequence[Event]) -> tuple[Sight, ...]:
        """What events show. Those who read events share them: found by identity first."""
        known = list(map(self._of_shared.get, map(id, events)))
        if all(known):
            return tuple(cast("list[Sight]", known))
        return tuple(map(self.sight, events))

    def sight(self, event: Event) -> Sight:
        """What an event shows. Found by the identity of its parts, which events share, too."""
        owner = self._steps.owner(event.process, event.actions)
        identity = id(event.actions), id(event.before), id(event.after), owner
        known = self._by_identity.get(identity)
        if known is None:
            # With the event, so that nothing else gets its identity.
            known = self._by_identity[identity] = self._alike(event, owner), event
        if known[1] is event:
            self._of_shared[id(event)] = known[0]
        return known[0]

    def _alike(self, event: Event, owner: str | None) -> Sight:
        alike = self._sights.setdefault((event.actions, event.before, event.after, owner), [])
        for sight in alike:  # Python holds TRUE for 1
            if _same(sight.before, event.before) and _same(sight.after, event.after):
                return sight
        result = Sight(
            event.actions,
            event.before,
            event.after,
            self._numbers.setdefault(event.actions, len(self._numbers)),
            self._lens(event.before),
            self._lens(event.after),
            owner,
        )
        alike.append(result)
        return result

    def again(self, sight: Sight) -> Sight:
        """What others call a sight, as one of these."""
        return self._alike(Event(sight.actions, sight.before, sight.after), sight.owner)

    def of(self, states: Iterable[State]) -> CandidateSet:
        """The candidates with these states."""
        return self.among(dict.fromkeys(map(self._candidate, states)))

    def start(self, states: Sequence[State]) -> CandidateSet:
        """The same, quick for those that were asked for last: most recordings begin alike."""
        if self._start is None or self._start[0] is not states:
            self._start = states, self.of(states)
        return self._start[1]

    def among(self, candidates: Iterable[Candidate]) -> CandidateSet:
        """The set of these candidates, each given once."""
        members = tuple(candidates)
        candidate_set = self._sets.get(members)
        if candidate_set is None:
            candidate_set = self._sets[members] = CandidateSet(members)
        return candidate_set

    def _candidate(self, state: State) -> Candidate:
        candidate = self._known.get(state)
        if candidate is None:
            candidate = self._known[state] = Candidate(tuple(map(_the_one, self._values, state)))
        return candidate

    # --- steps ------------------------------------------------------------------------------------

    def closure(
        self, candidates: CandidateSet, budget: Budget, owner: str | None = None
    ) -> SilentClosure:
        """What unseen steps lead to, before an event of this owner. Spent as of `Budget`."""
        closure = candidates.closures.get(owner)
        if closure is None:
            closure = candidates.closures[owner] = self._closure(candidates, budget, owner)
        budget.holds(len(closure.reached), "after unseen steps")
        return closure

    def arrival(self, candidates: CandidateSet, sight: Sight, budget: Budget) -> Arrival:
        """Where an event leads, after what may have happened unseen. Spent as of `Budget`."""
        arrival = candidates.arrivals.get(sight)
        if arrival is None:
            arrival = candidates.arrivals[sight] = self._arrival(candidates, sight, budget)
        budget.holds(arrival.tried, "after unseen steps")
        return arrival

    def _closure(
        self, candidates: CandidateSet, budget: Budget, owner: str | None
    ) -> SilentClosure:
        reached: dict[Candidate, Path] = {member: (member, ()) for member in candidates.members}
        problems: dict[str, None] = {}
        ahead: dict[tuple[Candidate, Load], Path] = {
            (candidate, NO_LOAD): path for candidate, path in reached.items()
        }
        known = set(ahead)
        for _ in range(self.limits.silent):
            following: dict[tuple[Candidate, Load], Path] = {}
            for (before, load), (origin, unseen) in ahead.items():
                budget.in_time()
                ways = self.unseen(before, owner)
                if ways.problem:
                    problems[ways.problem] = None
                for step in ways.steps:
                    heavier = self.heavier(load, step[0])
                    if heavier is None or (step[1], heavier) in known:
                        continue
                    known.add((step[1], heavier))
                    path = following[step[1], heavier] = origin, (*unseen, step)
                    reached.setdefault(step[1], path)
            ahead = following
            budget.holds(len(reached), "after unseen steps")
            if len(known) > self.limits.candidates:
                problems[
                    f"unseen steps lead to more than {self.limits.candidates:,} states at once"
                ] = None
                break
        return SilentClosure(reached, tuple(problems))

    def heavier(self, load: Load, action: Action) -> Load | None:
        """The silent steps of each process, with one step more; None if the limit is exceeded.

        An action is of the process that its first argument names. Without a bound nothing counts.
        """
        each = self.limits.each
        if each is None or not action.args:
            return load
        counts = dict(load)
        process = action.args[0]
        counts[process] = counts.get(process, 0) + 1
        return None if counts[process] > each else frozenset(counts.items())

    def _arrival(self, candidates: CandidateSet, sight: Sight, budget: Budget) -> Arrival:
        closure = self.closure(candidates, budget, sight.owner)
        origins: dict[Candidate, Origin] = {}
        sources: dict[Candidate, list[Candidate]] = {}
        problems = dict.fromkeys(closure.problems)
        for before, (origin, unseen) in closure.reached.items():
            budget.in_time()
            for action, after in self.taken(before, sight, problems):
                if after in origins:
                    sources[after].append(before)
                else:
                    origins[after] = Origin(origin, unseen, action)
                    sources[after] = [before]
        return Arrival(
            self.among(origins),
            origins,
            {after: tuple(befores) for after, befores in sources.items()},
            len(closure.reached),
            tuple(problems),
            sight.owner,
        )

    def taken(self, before: Candidate, sight: Sight, problems: dict[str, None]) -> list[Taken]:
        """The steps that an event may have been in a state; notes why some may be missing."""
        if not sight.shows_before(before.state):
            return []
        steps: Iterable[Taken] = ((None, before),)
        if sight.actions:
            ways = self._ways(before, sight.number, sight.actions)
            steps = ways.steps
            if ways.problem:
                problems[ways.problem] = None
        return [step for step in steps if sight.shows_after(step[1].state)]

    def read(
        self, candidate: Candidate, sight: Sight, processes: frozenset[Value]
    ) -> frozenset[Value]:
        """The values that an event's actions and the silent ones of these processes read.

        Nothing where they have no value.
        """
        try:
            with self._patience:
                return self._steps.read(candidate.state, sight.actions, processes)
        except SpecError:  # whoever takes the step says so
            return frozenset()

    @property
    def independence(self) -> Independence | None:
        """Which unseen steps matter to events; None if that is not known."""
        return self._steps.independence

    def unseen(self, candidate: Candidate, owner: str | None) -> SuccessorSteps:
        """The steps that may happen unseen in a state, before an event of this owner."""
        number = self._unseen.get(owner)
        if number is None:
            number = self._unseen[owner] = _UNSEEN - len(self._unseen)
        steps = candidate.ways.get(number)
        if steps is None:
            steps = candidate.ways[number] = self._evaluated(
                lambda: self._steps.silent(candidate.state, owner)
            )
        return steps

    def _ways(
        self, candidate: Candidate, number: int, actions: tuple[ActionPattern, ...]
    ) -> SuccessorSteps:
        steps = candidate.ways.get(number)
        if steps is None:
            steps = candidate.ways[number] = self._evaluated(
                lambda: self._steps.taken(candidate.state, actions)
            )
        return steps

    def _evaluated(self, evaluate: Callable[[], Sequence[Step]]) -> SuccessorSteps:
        steps: Sequence[Step] = ()
        problem = ""
        try:
            with self._patience:
                steps = evaluate()
        except TooManyInstances as many:
            problem = f"{many}: its arguments were not seen"
        except SpecError as error:
            problem = str(error)
        return SuccessorSteps(
            tuple((action, self._candidate(after)) for action, after in steps), problem
        )

    def _lens(self, parts: Sequence[ObservedPart]) -> Callable[[State], bool]:
        """Whether a candidate's state shows the parts.

        Candidates share their values, so a part is compared once with each value.
        """
        if not parts:
            return _shows_anything
        # Which variables the spec lacks is said elsewhere, before anything is asked.
        placed: list[tuple[int, ObservedPart, dict[int, bool]]] = [
            (self._positions.get(part.place.variable, 0), part, {}) for part in parts
        ]

        def shows(state: State) -> bool:
            for position, part, compared in placed:
                value = state[position]
                known = compared.get(id(value))
                if known is None:
                    known = compared[id(value)] = part.shown_by(state, position)
                if not known:
                    return False
            return True

        return shows


def _the_one(known: dict[Value, Value], value: Value) -> Value:
    """The shared object of this value; TRUE and 1 have different ones."""
    result = known.setdefault(value, value)
    return result if equal(result, value) else value


def _shows_anything(_state: State) -> bool:
    return True


def _same(observed_parts: Sequence[ObservedPart], other: Sequence[ObservedPart]) -> bool:
    return all(equal(a.value, b.value) for a, b in zip(observed_parts, other, strict=True))
