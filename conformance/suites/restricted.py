"""The transition cover of what a system can be driven along: of a part of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite, Test

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph
    from conformance.tla import State


def _stays(_state: State) -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """What no test may contain: actions by name, and states, each with the reason why."""

    actions: Mapping[str, str]
    state: Callable[[State], str]
    """Why no test may pass through this state; empty if it may."""
    goes_on: Callable[[State], frozenset[str]] = _stays
    """The actions of which the system takes one by itself in this state; empty if it stays. No test
    takes another one there, and none ends there."""


@dataclass(frozen=True, slots=True, eq=False)
class RestrictedSuite:
    """A suite over the whole graph that covers the transitions of `reachable` and no other."""

    suite: Suite
    reachable: npt.NDArray[np.bool_]
    """By edge of the graph: whether a test within the limits can take it."""
    left_out: Mapping[str, int]
    """How many transitions of the others are left out for which reason."""


def cover_within(graph: StateGraph, limits: SuiteLimits) -> RestrictedSuite:
    """The minimal cover of what of `graph` can be reached within the limits."""
    reasons = _reasons(graph, limits)
    ways = _ways_to_rest(graph, limits, [not reason for reason in reasons])
    reasons = [
        reason or (_DEAD_END if ways[target] is None else "")
        for reason, target in zip(reasons, graph.target.tolist(), strict=True)
    ]
    reachable = _reachable(graph, np.array([not reason for reason in reasons], bool))
    left_out = Counter(reason for reason in reasons if reason)
    cut_off = int((~reachable).sum()) - left_out.total()
    if cut_off:
        left_out["only what comes before them leads there"] = cut_off
    kept = np.flatnonzero(reachable).astype(np.int32)
    offsets = np.searchsorted(graph.source[kept], np.arange(len(graph.offsets)))
    part = replace(
        graph,
        source=graph.source[kept],
        target=graph.target[kept],
        action=graph.action[kept],
        offsets=offsets.astype(np.int64),
    )
    cover = transition_cover(part)
    tests = tuple(
        Test(test.initial, _until_rest(graph, kept[test.edges], ways), test.name) for test in cover
    )
    return RestrictedSuite(Suite(cover.kind, tests, graph.digest), reachable, dict(left_out))


_AT_REST = -1
_DEAD_END = "the system goes on there, and the model ends"


def _ways_to_rest(
    graph: StateGraph, limits: SuiteLimits, allowed: Sequence[bool]
) -> list[int | None]:
    """By state: the allowed edge by which a test goes on to where the system stays, by the shortest
    way; _AT_REST where it stays, None where no way leads there."""
    ways: list[int | None] = [None if limits.goes_on(state) else _AT_REST for state in graph.states]
    sources, targets = graph.source.tolist(), graph.target.tolist()
    edges = [edge for edge, source in enumerate(sources) if allowed[edge] and ways[source] is None]
    while new := {
        sources[edge]: edge
        for edge in edges
        if ways[sources[edge]] is None and ways[targets[edge]] is not None
    }:
        for source, edge in new.items():
            ways[source] = edge
    return ways


def _until_rest(
    graph: StateGraph, edges: npt.NDArray[np.int32], ways: Sequence[int | None]
) -> npt.NDArray[np.int32]:
    """The test, and what the system does by itself after its end."""
    more: list[int] = []
    state = int(graph.target[edges[-1]])
    while (way := ways[state]) is not None and way != _AT_REST:
        more.append(way)
        state = int(graph.target[way])
    return np.concatenate([edges, np.array(more, np.int32)])


def _reasons(graph: StateGraph, limits: SuiteLimits) -> list[str]:
    """By edge: why no test may take it; empty if one may."""
    names = [action.name for action in graph.actions]
    of_action = [_with_reason(name, limits.actions) for name in names]
    of_state = [limits.state(state) for state in graph.states]
    goes_on = [limits.goes_on(state) for state in graph.states]
    return [
        of_action[action] or of_state[target] or _with_haste(names[action], goes_on[source])
        for source, action, target in zip(
            graph.source.tolist(), graph.action.tolist(), graph.target.tolist(), strict=True
        )
    ]


def _with_haste(name: str, first: frozenset[str]) -> str:
    if not first or name in first:
        return ""
    return f"{' or '.join(sorted(first))} comes first: the system does not wait with it"


def _with_reason(name: str, reasons: Mapping[str, str]) -> str:
    return f"{name}: {reasons[name]}" if name in reasons else ""


def _reachable(graph: StateGraph, allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """By edge: whether a path of allowed edges takes it."""
    seen = np.zeros(len(graph.offsets) - 1, bool)
    seen[graph.initial] = True
    while True:
        entered = np.unique(graph.target[allowed & seen[graph.source]])
        if seen[entered].all():
            return allowed & seen[graph.source]
        seen[entered] = True
