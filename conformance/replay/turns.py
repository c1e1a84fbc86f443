"""Turns of a thread's own loop: each has to come out as the specification's steps in its order.

A turn is an action of its own, `DoWork(thread)`, that a wrapped system takes by letting the real
loop run once, and a wrapped oracle knows by composing the specification's steps as the loop is
said to. `DoWorkInVain(thread)` is a turn of which no message arrives, `BackOffPasses(thread)` lets
an error be over. What a turn asked, whether it waited and whether it backs off is one more
variable, `turns`: so a path with turns is driven, compared and told like any other.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from conformance.compared import ComparedStates
from conformance.errors import UserError
from conformance.events import Emit, Progress, ignore
from conformance.replay.engine import Divergence, Driver, PathResult, close, run_path
from conformance.replay.oracle import Oracle, Successors
from conformance.replay.suite import MakeSystem
from conformance.systems.capabilities import Capabilities
from conformance.systems.protocol import Loop, SystemUnderTest, Turn
from conformance.tla import Action, Fn, State, Value
from conformance.verdict import Verdict

DO_WORK: Final = "DoWork"
IN_VAIN: Final = "DoWorkInVain"
PASSES: Final = "BackOffPasses"
TURNS: Final = "turns"


def is_turn(action: Action) -> bool:
    """Whether the action is a turn."""
    return action.name in (DO_WORK, IN_VAIN, PASSES)


def _value(turn: Turn) -> Fn:
    return Fn({"asked": turn.asked, "waited": turn.waited, "delayed": turn.delayed})


class LoopingSystem:
    """A system that also takes turns, and describes the last one."""

    def __init__(self, system: SystemUnderTest) -> None:
        looping = Capabilities(system).looping
        if looping is None or not looping.make_looping():
            close(system)
            raise UserError(
                "The loops of this system's threads cannot be driven here: its adapter lacks what "
                "conformance.systems.protocol.Looping asks for, or the model takes a round trip as "
                "one step. Name a model of fine granularity."
            )
        self.adapter = system
        self.looping = looping
        self._turn: tuple[str, Turn] | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.adapter.variables, TURNS)

    @property
    def sometimes(self) -> frozenset[str]:
        return Capabilities(self.adapter).may_lack

    def reset(self, initial: Mapping[str, Value]) -> None:
        self._turn = None
        self.adapter.reset({name: value for name, value in initial.items() if name != TURNS})

    def apply(self, action: Action) -> None:
        self._turn = None
        if not is_turn(action):
            self.adapter.apply(action)
            return
        thread = str(action.args[0])
        if action.name == PASSES:
            self.looping.end_back_off(thread)
        else:
            turn = self.looping.take_turn(thread, lost=action.name == IN_VAIN)
            self._turn = thread, turn

    def observe(self) -> Mapping[str, Value]:
        turns: dict[Value, Value] = {
            thread: _value(self._turn_of(thread)) for thread in self.looping.threads
        }
        return {**self.adapter.observe(), TURNS: Fn(turns)}

    def close(self) -> None:
        close(self.adapter)

    def _turn_of(self, thread: str) -> Turn:
        if self._turn is not None and self._turn[0] == thread:
            return self._turn[1]
        return Turn(delayed=self.looping.backs_off(thread))


class LoopOracle:
    """An oracle that also knows turns; its states have one more variable."""

    def __init__(self, oracle: Oracle, loop: Loop, threads: Sequence[str]) -> None:
        self._oracle, self._loop, self._threads = oracle, loop, tuple(threads)
        self._known: dict[tuple[State, Action], Successors] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self._oracle.variables, TURNS)

    def initial_states(self) -> Sequence[State]:
        return [self._extended(state, {}) for state in self._oracle.initial_states()]

    def enabled(self, state: State) -> Sequence[Action]:
        """The steps that no turn takes, and the turns."""
        plain = [a for a in self._oracle.enabled(state[:-1]) if a.name not in self._loop.steps]
        turns = [
            action
            for thread in self._threads
            for name in (DO_WORK, IN_VAIN, PASSES)
            if self.successors(state, action := Action(name, (thread,)))
        ]
        return [*plain, *turns]

    def successors(self, state: State, action: Action) -> Successors:
        key = state, action
        if key not in self._known:
            self._known[key] = self._after(state, action)
        return self._known[key]

    def _after(self, state: State, action: Action) -> Successors:
        spec, delayed = state[:-1], _delayed(state)
        if not is_turn(action):
            if action.name in self._loop.forgetting:
                delayed = delayed - {str(action.args[0])}
            waiting = {thread: Turn(delayed=True) for thread in delayed}
            return [self._extended(s, waiting) for s in self._oracle.successors(spec, action)]
        thread = str(action.args[0])
        waiting = {thread: Turn(delayed=True) for thread in delayed - {thread}}
        if action.name == PASSES:
            return [self._extended(spec, waiting)] if thread in delayed else []
        lost = action.name == IN_VAIN
        result = self._loop.turn(self._oracle, spec, thread, delayed=thread in delayed, lost=lost)
        if result is None or (lost and not result[1].asked):
            return []  # nothing that could be lost
        return [self._extended(result[0], {**waiting, thread: result[1]})]

    def _extended(self, state: State, turns: Mapping[str, Turn]) -> State:
        values: dict[Value, Value] = {
            thread: _value(turns.get(thread, Turn())) for thread in self._threads
        }
        return (*state, Fn(values))


def _delayed(state: State) -> frozenset[str]:
    turns = cast("Fn", state[-1])
    return frozenset(str(thread) for thread in turns if cast("Fn", turns[thread])["delayed"])


def can_take_turns(make_system: MakeSystem) -> bool:
    """Whether the loops of this model's system can be driven."""
    system = make_system()
    try:
        looping = Capabilities(system).looping
        return looping is not None and looping.make_looping()
    finally:
        close(system)


@dataclass(frozen=True, slots=True)
class TurnsResult:
    """What walks with turns showed."""

    walks: int
    steps: int
    turns: Mapping[str, int]
    """Of each kind: by what was asked in order, or `waits`."""
    seconds: float
    divergence: Divergence | None
    compared: ComparedStates

    @property
    def verdict(self) -> Verdict:
        """FAIL on a divergence; INCONCLUSIVE if no turn was taken, or too little compared."""
        if self.divergence is not None:
            return Verdict.FAIL
        enough = self.turns and not self.compared.gap
        return Verdict.PASS if enough else Verdict.INCONCLUSIVE


def take_turns(
    oracle: Oracle,
    make_system: MakeSystem,
    *,
    walks: int,
    length: int,
    seed: int,
    emit: Emit = ignore,
) -> tuple[LoopOracle, TurnsResult]:
    """Walk at random through steps and turns until one diverges; the oracle, and what came.

    Every second step is a turn where one is possible. UserError if the system takes no turns.
    """
    system = LoopingSystem(make_system())
    judge = LoopOracle(oracle, system.looping.loop, system.looping.threads)
    driver, started = Driver(system, judge), time.perf_counter()
    kinds: Counter[str] = Counter()
    steps = number = 0
    result = PathResult(0)
    try:
        for number in range(1, walks + 1):
            initial, path = _walk(judge, random.Random(f"{seed}:{number}"), length, kinds)
            result = run_path(driver, initial, path)
            steps += result.steps
            emit(Progress("turns", number, walks))
            if result.divergence is not None:
                break
    finally:
        close(system)
    seconds = time.perf_counter() - started
    compared = driver.take_compared()
    return judge, TurnsResult(number, steps, dict(kinds), seconds, result.divergence, compared)


def _walk(
    oracle: LoopOracle, chance: random.Random, length: int, kinds: Counter[str]
) -> tuple[State, list[Action]]:
    """One path that the oracle allows; its turns are counted by kind."""
    initial = state = chance.choice(oracle.initial_states())
    path: list[Action] = []
    while len(path) < length and (enabled := oracle.enabled(state)):
        turns = [action for action in enabled if is_turn(action)]
        action = chance.choice(turns if turns and chance.random() < _TURNS else enabled)
        (state,) = oracle.successors(state, action)
        path.append(action)
        if action.name in (DO_WORK, IN_VAIN):
            kinds[_kind(cast("Fn", cast("Fn", state[-1])[action.args[0]]))] += 1
    return initial, path


_TURNS = 0.5


def _kind(turn: Fn) -> str:
    asked = cast("tuple[str, ...]", turn["asked"])
    words = [
        *asked,
        *(["waits"] if turn["waited"] else []),
        *(["backs off"] if turn["delayed"] else []),
    ]
    return ", ".join(words)
