"""Searches a model's states for interrupted steps that do not come out as the two in turn."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice, permutations
from typing import TypeAlias

import numpy as np

from conformance.compared import ComparedStates
from conformance.events import Emit, Progress, ignore
from conformance.modelcheck.graph import StateGraph
from conformance.replay.engine import Divergence, Driver, PathResult, StepTrail, close, run_path
from conformance.replay.interleave import (
    InterruptedSystem,
    SerialOrders,
    interrupted,
    interrupted_system,
    together,
)
from conformance.replay.oracle import GraphOracle
from conformance.replay.suite import MakeSystem
from conformance.suites.situations import ShortestPaths, shortest_paths
from conformance.systems.capabilities import Capabilities
from conformance.tla import Action, State
from conformance.verdict import Verdict

_ALL = 200
"""A model is searched whole if it has at most so many meetings for each sample that is asked for:
with the 3 samples of tier ci 600 meetings, which cost about as much as samples of a large model."""
_NEAREST = 2_000
"""Pairs that are tried for a counterexample nearer to the beginning than the one found."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two actions that threads of one process may take in a state, and which is interrupted."""

    state: int
    depth: int
    """Steps of a shortest way to the state."""
    running: Action
    between: Action

    @property
    def names(self) -> tuple[str, str]:
        """Of the interrupted action, and of the one that interrupts it."""
        return self.running.name, self.between.name


@dataclass(frozen=True, slots=True)
class InterruptionResult:
    """What interrupting showed.

    `interruptions`: driven, by `together`; 0 for a pair of which no sample could be
    interrupted. `missed`: paths on which the implementation took another branch.
    `meetings`: pairs of actions in a state that there are; `exhaustive`: all of them were taken,
    so that nothing hangs on the samples.
    """

    interruptions: Mapping[str, int]
    paths: int
    steps: int
    missed: int
    seconds: float
    divergences: tuple[Divergence, ...]
    """One of each pair of names at most."""
    compared: ComparedStates
    meetings: int = 0
    exhaustive: bool = False

    @property
    def verdict(self) -> Verdict:
        """FAIL on a divergence; INCONCLUSIVE if nothing was interrupted, a path was missed, or too
        little was compared."""
        if self.divergences:
            return Verdict.FAIL
        if self.missed or not any(self.interruptions.values()) or self.compared.gap:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS


def interrupt_steps(
    graph: StateGraph,
    make_system: MakeSystem,
    *,
    samples: int,
    seed: int,
    emit: Emit = ignore,
) -> InterruptionResult:
    """Interrupt each action by each that may come between, at every point, in `samples` states.

    A model with few meetings is searched whole. Else the states are drawn by the seed among those
    that enable both actions, evenly among what the two would change there. They are reached the
    shortest way; for a pair that fails, the nearest such state is looked for.
    UserError if the system knows no interruption.
    """
    system = interrupted_system(make_system())
    try:
        shortest = shortest_paths(graph)
        pairs = _pairs(graph, shortest, system) if system.possible else {}
        search = _InterruptionSearch(graph, shortest, system, emit)
        return search.run(pairs, samples, random.Random(seed))
    finally:
        system.close()


def can_interrupt(graph: StateGraph, make_system: MakeSystem) -> bool:
    """Whether any two actions of the model are those of two threads that can meet."""
    system = make_system()
    try:
        able = Capabilities(system).interruptible
        if able is None or not able.make_interruptible():
            return False
        return any(able.concurrent(a, b) for a, b in permutations(graph.actions, 2))
    finally:
        close(system)


PairKind: TypeAlias = tuple[str, str, int, int]
"""Pairs of one kind: the names of both actions, and which variables each would change alone."""


def _pairs(
    graph: StateGraph, shortest: ShortestPaths, system: InterruptedSystem
) -> dict[PairKind, list[Pair]]:
    """All that can meet, by their kind; states in breadth-first order."""
    pairs: dict[PairKind, list[Pair]] = {}
    offsets, codes, changed = graph.offsets.tolist(), graph.action.tolist(), _changed(graph)
    meet = {
        (a, b): system.concurrent(first, second)
        for (a, first), (b, second) in permutations(enumerate(graph.actions), 2)
    }
    depth = shortest.depth.tolist()
    for state in shortest.order.tolist():
        edges = range(offsets[state], offsets[state + 1])
        first_edges = {codes[edge]: edge for edge in reversed(edges)}
        for a, b in permutations(sorted(first_edges), 2):
            if meet[a, b]:
                pair = Pair(state, depth[state], graph.actions[a], graph.actions[b])
                kind = (*pair.names, changed[first_edges[a]], changed[first_edges[b]])
                pairs.setdefault(kind, []).append(pair)
    return pairs


def _changed(graph: StateGraph) -> list[int]:
    """The variables that each edge changes, as a set of bits."""
    columns = graph.states.columns
    differs = columns[graph.source] != columns[graph.target]
    bits = 1 << np.arange(differs.shape[1], dtype=np.int64)
    masks: list[int] = (differs @ bits).tolist()
    return masks


def _drawn(kinds: Sequence[Sequence[Pair]], samples: int, rng: random.Random) -> list[Pair]:
    """A number of pairs, evenly from all kinds, or from as many kinds."""
    share = max(1, samples // len(kinds))
    chosen = rng.sample(kinds, min(samples, len(kinds)))
    return [pair for kind in chosen for pair in rng.sample(kind, min(share, len(kind)))]


def _nearest_first(kinds: Sequence[Sequence[Pair]]) -> Iterator[Pair]:
    """The pairs of all kinds in the order of their states, so many as are worth a try."""
    merged = sorted(chain.from_iterable(kinds), key=lambda pair: pair.depth)
    return islice(merged, _NEAREST)


class _InterruptionSearch:
    """One run's system, oracle and counters."""

    def __init__(
        self, graph: StateGraph, shortest: ShortestPaths, system: InterruptedSystem, emit: Emit
    ) -> None:
        self._graph, self._system, self._emit = graph, system, emit
        self._oracle = GraphOracle(graph)
        self._orders = SerialOrders(self._oracle, system)
        self._driver = Driver(system, self._orders)
        self._trail = StepTrail() if self._driver.repeats else None
        self._shortest = shortest
        self._interruptions: Counter[str] = Counter()
        self._paths = self._steps = self._missed = 0

    def run(
        self, pairs: Mapping[PairKind, Sequence[Pair]], samples: int, rng: random.Random
    ) -> InterruptionResult:
        """Samples of every pair of names, and of those that fail the nearest state."""
        started = time.monotonic()
        divergences: list[Divergence] = []
        named: dict[tuple[str, str], list[Sequence[Pair]]] = {}
        for kind, alike in sorted(pairs.items()):
            named.setdefault(kind[:2], []).append(alike)
        self._interruptions.update({together(*names): 0 for names in named})
        meetings = sum(map(len, pairs.values()))
        exhaustive = 0 < meetings <= _ALL * samples
        for number, kinds in enumerate(named.values()):
            self._emit(Progress("interleave", number, len(named)))
            drawn = chain.from_iterable(kinds) if exhaustive else _drawn(kinds, samples, rng)
            divergence = self._first(drawn)
            if divergence is not None:
                divergences.append(self._first(_nearest_first(kinds)) or divergence)
        return InterruptionResult(
            dict(self._interruptions),
            self._paths,
            self._steps,
            self._missed,
            time.monotonic() - started,
            tuple(divergences),
            self._driver.take_compared(),
            meetings,
            exhaustive,
        )

    def _first(self, pairs: Iterable[Pair]) -> Divergence | None:
        return next((point for pair in pairs for point in self._at_all_points(pair)), None)

    def _at_all_points(self, pair: Pair) -> Iterator[Divergence]:
        """The divergences of one pair, point by point, until `running` has no more."""
        if self._orders.bounded(self._oracle.state(pair.state), pair.running, pair.between):
            return
        initial, way = self._way(pair.state)
        marks = {0, len(way)}
        for point in count(1):
            step = interrupted(pair.running, point, pair.between)
            path = (*way, step)
            result = run_path(self._driver, initial, path, self._trail, marks)
            if result.divergence is not None and self._driver.goes_back:
                result = self._again(result, initial, path)
            self._count(result, step.name)
            if result.divergence is not None:
                yield self._placed(result.divergence, pair)
            if not self._system.stood_at:
                return

    def _again(self, result: PathResult, initial: State, path: tuple[Action, ...]) -> PathResult:
        """A divergence after going back counts if it comes without that, too."""
        afresh = run_path(self._driver, initial, path)
        if afresh.divergence is not None:
            return result
        self._driver.never_go_back()
        return afresh

    def _placed(self, divergence: Divergence, pair: Pair) -> Divergence:
        """With the point's name; an exception's traceback shows more."""
        if not self._system.stood_at:
            return divergence
        return replace(divergence, detail=f"{pair.running} stood at: {self._system.stood_at}")

    def _count(self, result: PathResult, name: str) -> None:
        self._paths += 1
        self._steps += result.steps
        self._missed += bool(result.disabled)
        self._interruptions[name] += bool(self._system.stood_at)

    def _way(self, state: int) -> tuple[State, tuple[Action, ...]]:
        graph = self._graph
        test = self._shortest.path(graph, state)
        codes = graph.action[test.edges].tolist()
        return self._oracle.state(test.initial), tuple(graph.actions[code] for code in codes)
