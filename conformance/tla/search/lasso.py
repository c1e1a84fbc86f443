"""Looks for a behaviour of a state graph that satisfies a temporal formula: a path into a cycle.

1. Conjuncts `[]<>claim` (so is weak fairness) and `<>[]claim \\/ []<>claim` (strong fairness) are
   conditions on the cycle alone; what else there is goes through `tableau`.
2. The product of graph and tableau is explored breadth first. In TLA+ every state may stutter.
3. A strongly connected part with a step for each condition is a cycle. If only a strong condition
   lacks its step, the steps that demand it are taken away, and the parts of the rest are looked at
   (Emerson and Lei, Modalities for model checking, 1987).

The product may be far larger than the graph, so the caller bounds its steps, and the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.tla.search.tableau import Choice, Obligation, choices
from conformance.tla.semantics.behaviours import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Claim,
    Temporal,
    Unless,
    Until,
    negation,
)

ClaimHolds = Callable[[Claim, int, int], bool]
"""Whether a claim holds in the step between the states of two numbers."""

Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lasso:
    """States by number: from an initial one, and the cycle from the last one back to it."""

    path: Path
    cycle: Path
    """Without its beginning; empty if the last state of the path stays for ever."""


@dataclass(frozen=True, slots=True)
class StepGraph:
    """The numbers of each state's successors, without itself; those of the initial states."""

    initial: Sequence[int]
    successors: Sequence[Sequence[int]]
    holds: ClaimHolds


Going = Callable[[int], None]
"""Called again and again with the steps that the product has; its exception ends the work."""


def lasso(graph: StepGraph, formula: Temporal, going: Going = lambda _steps: None) -> Lasso | None:
    """A behaviour that satisfies the formula; None if there is none."""
    return _ProductGraph(graph, _demand(formula), going).lasso()


@dataclass(frozen=True, slots=True)
class _Demand:
    """A formula, its conditions on the cycle set apart."""

    recurring: tuple[Claim, ...]
    strong: tuple[tuple[Claim, Claim], ...]
    """If the first is true again and again, so is the second."""
    rest: Obligation


def _demand(formula: Temporal) -> _Demand:
    recurring: list[Claim] = []
    strong: list[tuple[Claim, Claim]] = []
    rest: list[Temporal] = []
    for part in formula.parts if isinstance(formula, AllOf) else (formula,):
        match part:
            case Unless(freed, Until(meanwhile, Claim() as claim)) if (
                freed == FALSE and meanwhile == TRUE
            ):
                recurring.append(claim)
            case AnyOf(
                (
                    Until(meanwhile, Unless(freed, Claim() as quiet)),
                    Unless(never, Until(until, Claim() as claim)),
                )
            ) if meanwhile == until == TRUE and freed == never == FALSE:
                strong.append((_opposite(quiet), claim))
            case _:
                rest.append(part)
    return _Demand(tuple(recurring), tuple(strong), frozenset(rest))


def _opposite(claim: Claim) -> Claim:
    other = negation(claim)
    assert isinstance(other, Claim)
    return other


@dataclass(frozen=True, slots=True)
class _LassoStep:
    """A step of the product, between its nodes and between the states of the graph."""

    source: int
    target: int
    before: int
    after: int
    put_off: frozenset[Until]


_Part = Mapping[int, Sequence[_LassoStep]]
"""Some nodes of the product, and steps between them."""
_Condition = Callable[[_LassoStep], bool]


class _ProductGraph:
    """Nodes are pairs of a state and an obligation, numbered breadth first."""

    def __init__(self, graph: StepGraph, demand: _Demand, going: Going) -> None:
        self.graph = graph
        self.demand = demand
        self.going = going
        self.size = 0
        """Steps."""
        self.numbers: dict[tuple[int, Obligation], int] = {}
        self.nodes: list[tuple[int, Obligation]] = []
        self.steps: list[list[_LassoStep]] = []
        self.parent: list[_LassoStep | None] = []
        self.known: dict[Obligation, tuple[Choice, ...]] = {}

    def lasso(self) -> Lasso | None:
        """What the module's docstring says, 2 and 3."""
        for state in self.graph.initial:
            self._number(state, self.demand.rest)
        self.parent += [None] * len(self.nodes)
        for source, (state, obligation) in enumerate(self.nodes):  # grows meanwhile
            self._expand(source, state, obligation)
        conditions = self._conditions()
        pending = self._parts(dict(enumerate(self.steps)))[::-1]
        while pending:
            part = pending.pop()
            if not all(any(map(holds, _steps(part))) for holds in conditions):
                continue
            missing = [
                self._gives(asks)
                for asks, gives in self.demand.strong
                if not any(map(self._gives(gives), _steps(part)))
            ]
            kept = {
                node: [step for step in steps if not any(asks(step) for asks in missing)]
                for node, steps in part.items()
            }
            if sum(map(len, kept.values())) == sum(map(len, part.values())):
                return self._through(part, conditions)
            pending += self._parts(kept)[::-1]
        return None

    def _go_on(self) -> None:
        self.going(self.size)

    def _expand(self, source: int, state: int, obligation: Obligation) -> None:
        self._go_on()
        ways = self.known.get(obligation)
        if ways is None:
            ways = self.known[obligation] = choices(obligation, self._go_on)
        for way in ways:
            of_state = [claim for claim in way.claims if not claim.of_steps]
            if not self._all(of_state, state, state):
                continue
            of_steps = [claim for claim in way.claims if claim.of_steps]
            for after in (state, *self.graph.successors[state]):
                if self._all(of_steps, state, after):
                    target = self._number(after, way.rest)
                    step = _LassoStep(source, target, state, after, way.put_off)
                    self.steps[source].append(step)
                    self.size += 1
                    if target == len(self.parent):
                        self.parent.append(step)

    def _all(self, claims: Iterable[Claim], before: int, after: int) -> bool:
        return all(self.graph.holds(claim, before, after) is claim.wanted for claim in claims)

    def _number(self, state: int, obligation: Obligation) -> int:
        number = self.numbers.setdefault((state, obligation), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append((state, obligation))
            self.steps.append([])
        return number

    def _conditions(self) -> list[_Condition]:
        """A cycle must have a step that satisfies the first, one that satisfies the second ..."""
        put_off = {until: None for item in self.steps for step in item for until in step.put_off}
        return [*map(_not_put_off, put_off), *map(self._gives, self.demand.recurring)]

    def _parts(self, graph: _Part) -> list[_Part]:
        """The strongly connected parts that have a step, by their lowest nodes."""
        result = []
        for members in _components(graph, self._go_on):
            inside = {
                node: [step for step in graph[node] if step.target in members]
                for node in sorted(members)
            }
            if any(inside.values()):
                result.append(inside)
        return sorted(result, key=min)

    def _gives(self, claim: Claim) -> _Condition:
        return lambda step: self._all((claim,), step.before, step.after)

    def _through(self, part: _Part, conditions: Sequence[_Condition]) -> Lasso:
        """The way to the first node of the part, and round it through a step of each condition."""
        start = min(part)
        path, step = [self.nodes[start][0]], self.parent[start]
        while step is not None:
            path.append(step.before)
            step = self.parent[step.source]
        strong = [self._gives(gives) for _, gives in self.demand.strong]
        present = [item for item in strong if any(map(item, _steps(part)))]
        cycle: list[_LassoStep] = []
        at = start
        for holds in (*conditions, *present):
            cycle += _way(part, at, {step.source for step in _steps(part) if holds(step)})
            at = cycle[-1].target if cycle else start
            cycle.append(next(filter(holds, part[at])))
            at = cycle[-1].target
        cycle += _way(part, at, {start})
        return _unstuttered(path[::-1], [step.after for step in cycle])


def _not_put_off(until: Until) -> _Condition:
    return lambda step: until not in step.put_off


def _unstuttered(path: Sequence[int], cycle: Sequence[int]) -> Lasso:
    """Without steps that change nothing, of which a formula of TLA+ takes no notice."""
    short = [item for item, before in zip(path, (None, *path), strict=False) if item != before]
    round_ = [
        item for item, before in zip(cycle, (path[-1], *cycle), strict=False) if item != before
    ]
    return Lasso(tuple(short), tuple(round_))


def _steps(part: _Part) -> Iterator[_LassoStep]:
    return (step for steps in part.values() for step in steps)


def _way(part: _Part, start: int, wanted: set[int]) -> list[_LassoStep]:
    """A shortest way within the part to one of the nodes."""
    came: dict[int, _LassoStep | None] = {start: None}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node in wanted:
            way = []
            while (step := came[node]) is not None:
                way.append(step)
                node = step.source
            return way[::-1]
        for step in part[node]:
            if step.target not in came:
                came[step.target] = step
                queue.append(step.target)
    raise AssertionError("a strongly connected part connects its nodes")


def _components(graph: _Part, go_on: Callable[[], None]) -> Iterator[set[int]]:
    """The strongly connected components (Tarjan, Depth-first search, 1972), without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: dict[int, None] = {}
    for root in graph:
        work = [] if root in index else [root]
        ahead: dict[int, Iterator[_LassoStep]] = {}
        while work:
            node = work[-1]
            if node not in index:
                go_on()
                index[node] = low[node] = len(index)
                open_[node] = None
                ahead[node] = iter(graph[node])
            for target in (step.target for step in ahead[node]):
                if target not in index:
                    work.append(target)
                    break
                if target in open_:
                    low[node] = min(low[node], low[target])
            else:
                work.pop()
                if work:
                    low[work[-1]] = min(low[work[-1]], low[node])
                if low[node] == index[node]:
                    yield _closed(open_, node)


def _closed(open_: dict[int, None], last: int) -> set[int]:
    members: set[int] = set()
    while last not in members:
        members.add(open_.popitem()[0])
    return members
