"""Random walks of a system along its spec, as a recorder takes them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from conformance.compared import ComparedStates
from conformance.replay.engine import Divergence, Driver
from conformance.replay.oracle import Oracle
from conformance.replay.witness import witness
from conformance.story.comparison import differences, variables_of
from conformance.story.kind import BehaviourKind
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Action, State, differing, fingerprint
from conformance.traces.model import PartialState, TraceEnd


@dataclass(frozen=True, slots=True)
class Walk:
    """The implementation's walk: n + 1 states, n actions, and the reason of its end."""

    states: tuple[PartialState, ...]
    actions: tuple[Action, ...]
    end: TraceEnd
    problem: str | None = None
    compared: ComparedStates = field(default_factory=ComparedStates, compare=False)
    """The observations that were compared with the specification after each step."""


def trace_seed(seed: int, trace_id: int) -> int:
    """The seed of one trace, a signed 64-bit integer, the same in every process."""
    digest = blake2b(f"{seed}:{trace_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Walker:
    """Drives one system along walks that choose among the actions which the spec enables.

    `oracle` is the fast one (a model's state graph); `wider`, if there is one, is asked where
    it does not allow what the implementation did, since a CONSTRAINT may have cut it off.
    """

    def __init__(
        self, system: SystemUnderTest, oracle: Oracle, wider: Oracle | None = None
    ) -> None:
        self._driver = Driver(system, oracle)
        self._oracle = oracle
        self._wider = wider
        self._initial = sorted(oracle.initial_states(), key=fingerprint)
        self._started: dict[State, object | None] = {}
        """By initial state, what leads back to a system that was set up in it."""

    def walk(self, seed: int, length: int) -> Walk:
        """One walk of at most `length` steps; the same for the same seed."""
        walk = self._walk(seed, length)
        if walk.end is TraceEnd.DIVERGED and self._driver.goes_back:
            # A divergence found after a restore is confirmed by a run from the initial state.
            self._driver.never_go_back()
            walk = self._walk(seed, length)
        return replace(walk, compared=self._driver.take_compared())

    def _walk(self, seed: int, length: int) -> Walk:
        choose = random.Random(seed).random
        driver = self._driver
        initial = self._initial[int(choose() * len(self._initial))]
        divergence = self._begin(initial)
        # Whether the initial state is looked at depends on the walks before: it is not counted.
        self._driver.take_compared()
        if divergence is not None:
            return self._diverged([], [], divergence)
        actions: list[Action] = []
        path: list[tuple[State, ...]] = [driver.candidates]
        end = TraceEnd.LENGTH
        while len(actions) < length:
            enabled = self._enabled(driver.candidates)
            if not enabled:
                end = TraceEnd.DEADLOCK if len(driver.candidates) == 1 else TraceEnd.AMBIGUOUS
                break
            action = enabled[int(choose() * len(enabled))]
            divergence = driver.step(action)
            if divergence is not None and not self._allowed_after_all(divergence):
                return self._diverged(path, [*actions, action], divergence)
            actions.append(action)
            path.append(driver.candidates)
        return Walk(self._witness(path, actions), tuple(actions), end)

    def _begin(self, initial: State) -> Divergence | None:
        """Set the system up, or go back to where it was set up before."""
        known = self._started.get(initial) if self._driver.goes_back else None
        if known is not None:
            return self._driver.go_back(known, initial, (), (initial,))
        divergence = self._driver.reset(initial)
        if divergence is None:
            self._started[initial] = self._driver.snapshot()
        return divergence

    def _enabled(self, candidates: Sequence[State]) -> Sequence[Action]:
        """The actions that every candidate enables: whichever is real, the system can take it."""
        first = self._oracle.enabled(candidates[0])
        if len(candidates) == 1:
            return first
        others = [set(self._oracle.enabled(state)) for state in candidates[1:]]
        return [action for action in first if all(action in other for other in others)]

    def _allowed_after_all(self, divergence: Divergence) -> bool:
        action = divergence.action
        if (
            self._wider is None
            or divergence.kind is not BehaviourKind.NOT_ALLOWED
            or action is None
        ):
            return False
        allowed = dict.fromkeys(
            state
            for before in divergence.before
            for state in self._wider.successors(before, action)
        )
        variables, observed = self._oracle.variables, divergence.observed
        result = tuple(state for state in allowed if not differing(variables, state, observed))
        if result:
            self._driver.candidates = result
        return bool(result)

    def _witness(
        self, path: Sequence[tuple[State, ...]], actions: Sequence[Action]
    ) -> tuple[State, ...]:
        """One behaviour of the spec that agrees with the observations."""
        if all(len(candidates) == 1 for candidates in path):
            return tuple(candidates[0] for candidates in path)
        last = min(path[-1], key=fingerprint)
        return tuple(witness(path[:-1], actions, last, self._after))

    def _after(self, state: State, action: Action) -> Sequence[State]:
        allowed = self._oracle.successors(state, action)
        return (
            allowed if self._wider is None else [*allowed, *self._wider.successors(state, action)]
        )

    def _diverged(
        self,
        path: Sequence[tuple[State, ...]],
        actions: Sequence[Action],
        divergence: Divergence,
    ) -> Walk:
        """The walk up to the divergence, with what was observed as its last state."""
        observed = divergence.observed
        last = tuple(observed.get(name) for name in self._oracle.variables)
        before = self._witness(path, actions[:-1])
        return Walk((*before, last), tuple(actions), TraceEnd.DIVERGED, self._problem(divergence))

    def _problem(self, divergence: Divergence) -> str:
        """The kind and the variables that differ on one line, for merging; then the values."""
        variables = self._oracle.variables
        result = differences(variables, divergence.allowed, divergence.observed)
        names = ", ".join(variables_of(result))
        lines = [f"{divergence.kind.value}{': ' if names else ''}{names}"]
        lines += [
            f"{difference.variable}: expected {difference.expected}, observed {difference.actual}"
            for difference in result
        ]
        return "\n".join([*lines, divergence.detail]).rstrip()
