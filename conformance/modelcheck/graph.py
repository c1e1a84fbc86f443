"""The state graph of a model, in arrays: every state, every transition with its action."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt

from conformance.tla import Action, Fingerprinter, State, Value


@dataclass(frozen=True, slots=True, eq=False)
class StateTable(Sequence[State]):
    """States as rows of small integers into one table of values per variable.

    `values[v][columns[s, v]]` is the value of variable v in state s. A value that many states
    share exists once; a state's tuple is made when asked for.
    """

    values: tuple[tuple[Value, ...], ...]
    columns: npt.NDArray[np.int32]

    def __len__(self) -> int:
        """The number of states."""
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> State: ...
    @overload
    def __getitem__(self, index: slice) -> StateTable: ...
    def __getitem__(self, index: int | slice) -> State | StateTable:
        """One state as a tuple, or a part of the table."""
        if isinstance(index, slice):
            return StateTable(self.values, self.columns[index])
        row = self.columns[index].tolist()
        return tuple([values[i] for values, i in zip(self.values, row, strict=True)])

    def __iter__(self) -> Iterator[State]:
        """The states in order, much faster than one by one."""
        by_variable = [
            map(values.__getitem__, self.columns[:, number].tolist())
            for number, values in enumerate(self.values)
        ]
        return zip(*by_variable, strict=True) if by_variable else iter([()] * len(self))


@dataclass(frozen=True, slots=True, eq=False)
class StateGraph:
    """A lossless directed multigraph: transitions that differ only by action are all kept.

    States stand in TLC's breadth-first order. Edge e leads from `source[e]` by
    `actions[action[e]]` to `target[e]`; edges are sorted by source, action and target, and those
    of state s are `offsets[s]` to `offsets[s + 1] - 1`.
    """

    variables: tuple[str, ...]
    states: StateTable
    initial: npt.NDArray[np.int32]
    actions: tuple[Action, ...]
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    action: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    fingerprints: npt.NDArray[np.int64]
    digest: str = field(init=False)
    """SHA-256 of all that the graph says: binds suites to it."""

    def __post_init__(self) -> None:
        """Compute the digest and make the arrays read-only: the graph is shared."""
        for array in self._arrays():
            array.setflags(write=False)
        object.__setattr__(self, "digest", self._digest())

    def _arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        return (
            self.initial,
            self.source,
            self.target,
            self.action,
            self.offsets,
            self.fingerprints,
        )

    def _digest(self) -> str:
        digest = hashlib.sha256(repr((self.variables, [str(a) for a in self.actions])).encode())
        for array in self._arrays():
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def fingerprints_of(states: StateTable) -> npt.NDArray[np.int64]:
    """The fingerprint of each state; the parts that states share are hashed once."""
    fingerprint = Fingerprinter()
    return np.fromiter((fingerprint(state) for state in states), np.int64, count=len(states))


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Parallel int32 arrays of transitions, in any order, possibly with repetitions."""

    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    action: npt.NDArray[np.int32]


def build_graph(
    variables: Sequence[str],
    states: StateTable,
    initial: Sequence[int],
    actions: Sequence[Action],
    edges: Edges,
) -> StateGraph:
    """Sort the edges, drop exact repetitions of one (source, action, target), index them.

    An action whose choice inside the formula gives the same successor twice is listed twice by
    TLC; that is one transition.
    """
    count, kinds = len(states), max(len(actions), 1)
    key = (edges.source.astype(np.int64) * kinds + edges.action) * count + edges.target
    key = np.unique(key)
    rest, target = np.divmod(key, max(count, 1))
    source, action = np.divmod(rest, kinds)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=count), out=offsets[1:])
    return StateGraph(
        variables=tuple(variables),
        states=states,
        initial=np.array(initial, np.int32),
        actions=tuple(actions),
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        action=action.astype(np.int32),
        offsets=offsets,
        fingerprints=fingerprints_of(states),
    )
