"""What the traces exercised, and why a pass of them would mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.audit.result import Coverage
from conformance.audit.scan import INITIAL
from conformance.tla.values import Action
from conformance.traces.states import FINGERPRINT
from conformance.traces.store import TraceStore


@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """The transitions that a model allows, as arrays: the fast path of refinement.

    `action` holds codes of the store's dictionary; `source` and `target` are fingerprints.
    """

    states: npt.NDArray[np.int64]
    initial: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    action: npt.NDArray[np.int32]
    target: npt.NDArray[np.int64]

    def rows(self) -> pa.Table:
        """The distinct visits that the model allows, those of initial states included."""
        starts = len(self.initial)
        return pa.table(
            {
                "source": np.concatenate([np.zeros(starts, np.int64), self.source]),
                "action": np.concatenate([np.full(starts, INITIAL, np.int32), self.action]),
                "target": np.concatenate([self.initial, self.target]),
            }
        )


def covered_states(store: TraceStore, model: ModelTable) -> int:
    """How many of the model's states occur in the store."""
    files = store.files("states")
    parts = [pq.read_table(path, columns=[FINGERPRINT])[FINGERPRINT].to_numpy() for path in files]
    seen = np.concatenate([np.zeros(0, np.int64), *parts])
    return int(np.isin(np.unique(model.states), seen).sum())


def vacuous(traces: int, coverage: Coverage, optional: Sequence[str] = ()) -> tuple[str, ...]:
    """Why a pass would mean nothing; `optional` names actions that need not fire."""
    if not traces:
        return ("the store holds no trace",)
    reasons = [
        f"the action {name} never fired" for name in coverage.never_fired if name not in optional
    ]
    reasons += [f"the formula {name} had a value nowhere" for name in coverage.never_judged]
    return tuple(reasons)


def fired(actions: Sequence[Action], steps: dict[int, int]) -> dict[str, int]:
    """The steps of each action of the dictionary, also of those that never fired."""
    return {str(action): steps.get(code, 0) for code, action in enumerate(actions)}
