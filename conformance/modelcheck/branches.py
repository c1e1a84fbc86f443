"""Counts how often steps took each disjunct of a specification's actions."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conformance.errors import SpecError
from conformance.modelcheck.graph import StateGraph
from conformance.tla import Action, Location, Spec, State


class BranchCounts:
    """Steps by the disjuncts that they took. What has no value counts nowhere."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._taken: Counter[tuple[str, int]] = Counter()

    def asks(self, name: str) -> bool:
        """Whether an action has disjuncts: of the others nothing needs to be asked."""
        return bool(self._spec.branch_places(name))

    def taken(self, action: Action, state: State, next_state: State) -> int:
        """The disjuncts that a step takes, as `ActionBranches` gives them."""
        if not self.asks(action.name):
            return 0
        try:
            return max(0, self._spec.branches(action)(state, next_state))
        except SpecError:
            return 0

    def add(self, name: str, count: int, steps: int = 1) -> None:
        """Count steps of an action that took these disjuncts."""
        if count:
            self._taken[name, count] += steps

    def count(self, state: State, action: Action, next_state: State) -> None:
        """Count one step."""
        self.add(action.name, self.taken(action, state, next_state))

    def places(self, names: Iterable[str]) -> BranchPlaces:
        """What the bits of these actions stand for."""
        return {name: [key(place) for place in self._spec.branch_places(name)] for name in names}

    def by_place(self) -> dict[str, int]:
        """Steps by the disjunct's `key`; what was never taken is left out."""
        result: Counter[str] = Counter()
        for (name, count), steps in self._taken.items():
            for number, place in enumerate(self._spec.branch_places(name)):
                if count >> number & 1:
                    result[key(place)] += steps
        return dict(result)


def key(place: Location) -> str:
    """A disjunct's name in reports: its place, with its end, since disjuncts may be nested."""
    return f"{place}-{place.end_line}:{place.end_column}"


@dataclass(frozen=True, slots=True, eq=False)
class EdgeBranches:
    """The disjuncts that each edge of a graph takes.

    They follow from the specification and the graph alone, whatever is driven along it.
    """

    kind: npt.NDArray[np.int32]
    """By edge: an index of `taken`, -1 where nobody asked."""
    taken: tuple[int, ...]
    """Sets of disjuncts as bits."""

    @staticmethod
    def of(counts: BranchCounts, graph: StateGraph, wanted: npt.NDArray[np.bool_]) -> EdgeBranches:
        """Ask the specification about the wanted edges of actions that have disjuncts."""
        kind = np.full(len(graph.source), -1, np.int32)
        chosen = np.flatnonzero(wanted & asked_edges(counts, graph))
        states = list(graph.states) if len(chosen) else []
        columns = graph.action, graph.source, graph.target
        kinds: dict[int, int] = {}
        steps = zip(*(column[chosen].tolist() for column in columns), strict=True)
        kind[chosen] = [
            kinds.setdefault(
                counts.taken(graph.actions[code], states[source], states[target]), len(kinds)
            )
            for code, source, target in steps
        ]
        return EdgeBranches(kind, tuple(kinds))

    def count(self, counts: BranchCounts, graph: StateGraph, visits: npt.NDArray[np.int64]) -> None:
        """Count the steps along the graph; `visits` says for each edge how many there were."""
        went = np.flatnonzero((visits > 0) & (self.kind >= 0))
        both, place = np.unique(
            np.stack([graph.action[went], self.kind[went]]), axis=1, return_inverse=True
        )
        totals = np.bincount(place.ravel(), weights=visits[went], minlength=both.shape[1])
        for (code, kind), steps in zip(both.T.tolist(), totals.tolist(), strict=True):
            counts.add(graph.actions[code].name, self.taken[kind], int(steps))

    def to_bytes(self, places: BranchPlaces) -> bytes:
        """As an npz archive, with the places that the bits stand for."""
        head = json.dumps({"places": places, "taken": [f"{bits:x}" for bits in self.taken]})
        buffer = io.BytesIO()
        np.savez(buffer, head=np.frombuffer(head.encode(), np.uint8), kind=self.kind)
        return buffer.getvalue()

    @staticmethod
    def from_bytes(blob: bytes, places: BranchPlaces, edges: int) -> EdgeBranches | None:
        """What `to_bytes` wrote; None if it is of other disjuncts or another graph."""
        try:
            with np.load(io.BytesIO(blob), allow_pickle=False) as data:
                head, kind = json.loads(data["head"].tobytes()), data["kind"]
            steps = tuple(int(bits, 16) for bits in head["taken"])
            fits = head["places"] == places and kind.shape == (edges,)
        except (ValueError, KeyError, TypeError):
            return None
        return EdgeBranches(kind, steps) if fits else None


BranchPlaces = dict[str, list[str]]
"""By an action's name the `key` of each of its disjuncts, in the order of their bits."""


def asked_edges(counts: BranchCounts, graph: StateGraph) -> npt.NDArray[np.bool_]:
    """The edges of actions that have disjuncts."""
    asked = np.array([counts.asks(action.name) for action in graph.actions], bool)
    edges: npt.NDArray[np.bool_] = asked[graph.action]
    return edges
