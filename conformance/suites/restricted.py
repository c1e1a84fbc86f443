"""The transition cover of what a system can be driven along: of a part of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite, Test

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph
    from conformance.tla import State


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """What no test may contain: actions by name, and states, each with the reason why."""

    actions: Mapping[str, str]
    state: Callable[[State], str]
    """Why no test may pass through this state; empty if it may."""


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
    tests = tuple(Test(test.initial, kept[test.edges], test.name) for test in cover)
    return RestrictedSuite(Suite(cover.kind, tests, graph.digest), reachable, dict(left_out))


def _reasons(graph: StateGraph, limits: SuiteLimits) -> list[str]:
    """By edge: why no test may take it; empty if one may."""
    of_action = [_with_reason(action.name, limits.actions) for action in graph.actions]
    of_state = [limits.state(state) for state in graph.states]
    pairs = zip(graph.action.tolist(), graph.target.tolist(), strict=True)
    return [of_action[action] or of_state[target] for action, target in pairs]


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
