"""The spec's evaluator where the rows are: formulas and steps, judged by whoever has them.

The Python that was compiled from the spec's text is bound once per process. Rows carry fingerprints
only; a process reads the states that they name from the store. Moving states of dozens of nested
columns, or analysing the SQL of a large specification, takes Spark minutes however few rows there
are, while the evaluator needs about 0.2 ms for a state.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from conformance import pickled
from conformance.audit.rules import NEXT
from conformance.audit.visited import INITIAL, KEY
from conformance.errors import SpecError
from conformance.judge.patience import Patience
from conformance.modelcheck.branches import BranchCounts
from conformance.tla import Action, ActionFormula, ModelConfig, Module, Spec, State, bind, shows
from conformance.traces.model import PartialState, complete, is_complete
from conformance.traces.states import FINGERPRINT, StateColumns
from conformance.traces.store import TraceStore, read_file

UNKNOWN_STATE = "the store lacks a state that the trace refers to"
UNKNOWN_ACTION = "the trace has an action that the store's dictionary lacks"
UNOBSERVED = "a state has variables that were not observed"

_LISTS = pa.list_(pa.string())
_REMEMBERED = 300_000
_PATIENCE = Patience(60.0)
"""For one formula on one state or step; what takes longer has no value."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What travels: generated code does not, its source does."""

    module: Module
    config: ModelConfig
    columns: StateColumns
    files: tuple[Path, ...]
    actions: tuple[Action, ...]
    invariants: tuple[str, ...]
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StateRows:
    """Neighbouring rows of a file of states."""

    path: Path
    first: int
    count: int
    only: pa.Array | None = None
    """The fingerprints that are asked about; all if None."""

    def read(self) -> pa.Table:
        """The rows. DataError names a file that is damaged."""
        rows = read_file(self.path).slice(self.first, self.count)
        if self.only is None:
            return rows
        return rows.filter(pc.is_in(rows.column(FINGERPRINT), value_set=self.only))


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The spec and the store, as workers get them. The store must be where they can read it."""

    payload: bytes

    @staticmethod
    def of(
        spec: Spec, store: TraceStore, invariants: Sequence[str], properties: Sequence[str]
    ) -> Evaluator:
        """An evaluator of these formulas, and of every action of the store's dictionary."""
        parts = _Parts(
            spec.module,
            spec.config,
            store.columns,
            tuple(path.resolve() for path in store.files("states")),
            store.actions,
            tuple(invariants),
            tuple(properties),
        )
        return Evaluator(pickled.dumps(parts))


def bound_worker(evaluator: Evaluator) -> _AuditWorker:
    """The spec bound in this process."""
    return _worker(evaluator.payload)


@lru_cache(maxsize=2)
def _worker(payload: bytes) -> _AuditWorker:
    # A Python worker serves many tasks; compiling the spec takes longer than most of them.
    return _AuditWorker(pickle.loads(payload))


@dataclass(slots=True)
class _Verdict:
    """On one row."""

    ready: bool
    illegal: bool
    violations: list[str]
    doubts: list[str]
    taken: int = 0


class _AuditWorker:
    """One process's bound spec, and the states that it has read."""

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts
        self._spec = bind(parts.module, parts.config)
        self._invariants = [(n, self._spec.state_formula(n)) for n in parts.invariants]
        self._properties = [(n, self._spec.action_formula(n)) for n in parts.properties]
        self._branches = BranchCounts(self._spec)
        self._known: dict[int, PartialState] = {}
        self._formulas: dict[int, ActionFormula] = {}
        """Of the actions that were asked about, by code."""

    @property
    def spec(self) -> Spec:
        """The specification, bound."""
        return self._spec

    def asks(self, action: Action) -> bool:
        """Whether the disjuncts that a step of this action took are counted."""
        return self._branches.asks(action.name)

    # ---- states ----------------------------------------------------------------------------

    def _judge_all(self, states: Iterable[tuple[int, PartialState]]) -> pa.RecordBatch:
        whole = [(print_, complete(state)) for print_, state in states if is_complete(state)]
        with _PATIENCE.for_many():
            result = [self._judge_state(state) for _, state in whole]
        return pa.RecordBatch.from_arrays(
            [
                pa.array([print_ for print_, _ in whole], pa.int64()),
                pa.array([false for false, _ in result], _LISTS),
                pa.array([undefined for _, undefined in result], _LISTS),
            ],
            names=[FINGERPRINT, "violations", "doubts"],
        )

    def judge_rows(self, of: StateRows) -> pa.RecordBatch:
        """Fingerprint, violations and doubts of each of these states that is not in order, and a
        row without a fingerprint for all the others: `states` says for how many a row stands."""
        rows = of.read()
        prints, states = rows.column(FINGERPRINT).to_pylist(), self._parts.columns.states(rows)
        if len(self._known) + len(prints) <= _REMEMBERED:
            self._known.update(zip(prints, states, strict=True))
        judged = self._judge_all(zip(prints, states, strict=True))
        silent = (pc.list_value_length(judged.column(name)) for name in ("violations", "doubts"))
        good = pc.equal(pc.add(*silent), 0)
        bad = judged.filter(pc.invert(good))
        fine: int = pc.sum(good).as_py() or 0
        rest = pa.RecordBatch.from_pylist(
            [{FINGERPRINT: None, "violations": [], "doubts": []}] * bool(fine), judged.schema
        )
        both = pa.concat_batches([bad, rest])
        counts = pa.array([1] * len(bad) + [fine] * len(rest), pa.int64())
        return pa.RecordBatch.from_arrays([*both.columns, counts], [*both.schema.names, "states"])

    def _judge_state(self, state: State) -> tuple[list[str], list[str]]:
        false, undefined = [], []
        for name, formula in self._invariants:
            try:
                with _PATIENCE:
                    holds = formula(state)
                if not holds:
                    false.append(name)
            except SpecError as error:
                undefined.append(f"{name}: {error}")
        return false, undefined

    def _states(self, prints: Iterable[int]) -> dict[int, PartialState]:
        """The states of these fingerprints, as far as the store has them."""
        wanted = set(prints)
        missing = wanted - self._known.keys()
        if missing:
            if len(self._known) + len(missing) > _REMEMBERED:
                self._known.clear()
                missing = wanted
            self._read(missing)
        return self._known

    def _read(self, prints: set[int]) -> None:
        values = pa.array(sorted(prints))
        for path in self._parts.files:
            keys = read_file(path, [FINGERPRINT]).column(FINGERPRINT)
            mask = pc.is_in(keys, value_set=values)
            if pc.any(mask).as_py():
                rows = read_file(path).filter(mask)
                states = self._parts.columns.states(rows)
                result = rows.column(FINGERPRINT).to_pylist()
                self._known.update(zip(result, states, strict=True))

    # ---- visits ----------------------------------------------------------------------------

    def judge_visits(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch.column(name).to_pylist() for name in (*KEY, "asked")]
        sources, codes, targets, asked = columns
        starts = [code == INITIAL for code in codes]
        named = [s for s, start in zip(sources, starts, strict=True) if not start]
        states = self._states(p for p in (*named, *targets) if p is not None)
        with _PATIENCE.for_many():
            result = [
                self._judge_visit(states.get(source), states.get(target), code, ask, start)
                for source, code, target, ask, start in zip(
                    sources, codes, targets, asked, starts, strict=True
                )
            ]
        names = [*KEY, "visits", "listed", "asked"]
        return pa.RecordBatch.from_arrays(
            [
                *(batch.column(name) for name in names),
                pa.array([v.ready for v in result], pa.bool_()),
                pa.array([v.illegal for v in result], pa.bool_()),
                pa.array([v.violations for v in result], _LISTS),
                pa.array([v.doubts for v in result], _LISTS),
                pa.array([f"{v.taken:x}" for v in result], pa.string()),
            ],
            names=[*names, "ready", "illegal", "violations", "doubts", "taken"],
        )

    def _judge_visit(
        self,
        before: PartialState | None,
        after: PartialState | None,
        code: int | None,
        asked: bool,
        start: bool,
    ) -> _Verdict:
        doubts = []
        if after is None or (before is None and not start):
            doubts.append(UNKNOWN_STATE)
        elif not is_complete(after) or not (start or is_complete(before or ())):
            doubts.append(UNOBSERVED)
        known = start or (code is not None and 0 <= code < len(self._parts.actions))
        if not known:
            doubts.append(UNKNOWN_ACTION)
        ready = UNKNOWN_STATE not in doubts and UNOBSERVED not in doubts
        if start or not ready or before is None or after is None or code is None:
            return _Verdict(ready, False, [], doubts)
        state, target = complete(before), complete(after)
        illegal, undefined = (
            self._judge_action(code, state, target) if asked and known else ([], [])
        )
        false, unknown = _judge_pair(self._properties, state, target)
        step = 0 if illegal or not known else self._taken(code, state, target)
        return _Verdict(True, bool(illegal), false, doubts + undefined + unknown, step)

    def _taken(self, code: int, state: State, target: State) -> int:
        action = self._parts.actions[code]
        if not self._branches.asks(action.name):
            return 0
        with _PATIENCE:
            return self._branches.taken(action, state, target)

    def _judge_action(self, code: int, state: State, target: State) -> tuple[list[str], list[str]]:
        """Where the formula has no value, a value of the wrong kind perhaps, the spec's own
        successors decide: none of them shows such a value."""
        action = self._parts.actions[code]
        if code not in self._formulas:
            self._formulas[code] = self._spec.action_formula(action)
        false, undefined = _judge_pair([(NEXT, self._formulas[code])], state, target)
        if undefined:
            try:
                allowed = self._spec.successors_by(action, state)
            except SpecError:
                return false, undefined
            if not any(shows(item, target) for item in allowed):
                return [NEXT], []
        return false, undefined


def _judge_pair(
    formulas: Iterable[tuple[str, ActionFormula]], state: State, target: State
) -> tuple[list[str], list[str]]:
    false, undefined = [], []
    for name, formula in formulas:
        try:
            with _PATIENCE:
                holds = formula(state, target)
            if not holds:
                false.append(name)
        except SpecError as error:
            undefined.append(f"{name}: {error}")
    return false, undefined
