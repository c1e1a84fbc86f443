"""What the traces exercised, and why a pass of them would mean nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conformance.audit.result import TraceCoverage
from conformance.audit.visited import INITIAL
from conformance.compared import ComparedStates
from conformance.errors import DataError
from conformance.modelcheck.graph import StateGraph
from conformance.tla import Action
from conformance.traces.states import FINGERPRINT
from conformance.traces.store import TraceStore, read_file


@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """The transitions that a model allows, as arrays: the fast path of refinement.

    `action` holds codes of the store's dictionary; `source` and `target` are fingerprints.
    """

    states: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    action: npt.NDArray[np.int32]
    target: npt.NDArray[np.int64]

    @staticmethod
    def empty() -> ModelTable:
        """Of no model: the formulas decide everything."""
        none = np.zeros(0, np.int64)
        return ModelTable(none, none, none.astype(np.int32), none)

    @staticmethod
    def of_graph(graph: StateGraph, actions: Sequence[Action]) -> ModelTable:
        """A model's state graph, its actions recoded as the store's dictionary has them.

        DataError if the graph has an action that the dictionary lacks.
        """
        codes = {action: code for code, action in enumerate(actions)}
        lacking = [action for action in graph.actions if action not in codes]
        if lacking:
            raise DataError(
                f"The store's dictionary lacks the model's action {lacking[0]}: the store was "
                "recorded with another model. Audit it with the model that its manifest names."
            )
        recoded = np.array([codes[action] for action in graph.actions], np.int32)
        prints = graph.fingerprints
        return ModelTable(prints, prints[graph.source], recoded[graph.action], prints[graph.target])

    def rows(self, initial: Collection[int]) -> pa.Table:
        """The visits that are known to be legal: these, and those of initial states."""
        starts = np.array(sorted(initial), np.int64)
        return pa.table(
            {
                "source": np.concatenate([np.zeros(len(starts), np.int64), self.source]),
                "action": np.concatenate([np.full(len(starts), INITIAL, np.int32), self.action]),
                "target": np.concatenate([starts, self.target]),
            }
        )


def covered_states(store: TraceStore, model: ModelTable) -> int:
    """How many of the model's states occur in the store."""
    files = store.files("states")
    parts = [read_file(path, [FINGERPRINT])[FINGERPRINT].to_numpy() for path in files]
    seen = np.concatenate([np.zeros(0, np.int64), *parts])
    return int(np.isin(np.unique(model.states), seen).sum())


def vacuous(
    traces: int,
    coverage: TraceCoverage,
    optional: Sequence[str] = (),
    compared: ComparedStates | None = None,
) -> tuple[str, ...]:
    """Why a pass would mean nothing; `optional` names actions that need not fire.

    `compared`: of a system that was driven, what of its states was held against the
    specification's.
    """
    if not traces:
        return ("the store holds no trace",)
    reasons = [
        f"the action {name} never fired" for name in coverage.never_fired if name not in optional
    ]
    reasons += [f"the formula {name} had a value nowhere" for name in coverage.never_judged]
    if compared is not None and compared.gap:
        reasons.append(f"when it was recorded, {compared.gap}")
    return tuple(reasons)


def fired(actions: Sequence[Action], steps: dict[int, int]) -> dict[str, int]:
    """The steps of each action of the dictionary, also of those that never fired."""
    return {str(action): steps.get(code, 0) for code, action in enumerate(actions)}
