"""The spec's evaluator on Spark's workers: formulas and steps, judged where the rows are.

The Python that was compiled from the spec's text is bound once per worker process. It decides
whether a step is one that its action allows; and it judges invariants and action properties
unless the audit was asked for native columns. Analysing the SQL of a large specification takes
Spark minutes, however few rows there are, while the evaluator needs about 0.2 ms for a state.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from conformance.audit.rules import NEXT, following
from conformance.audit.scan import KEY
from conformance.errors import SpecError
from conformance.tla.config import ModelConfig
from conformance.tla.spec import ActionFormula, Spec, bind
from conformance.tla.syntax import Module
from conformance.tla.values import Action, State
from conformance.traces.model import PartialState, complete
from conformance.traces.states import FINGERPRINT, StateColumns

_STATES = f"{FINGERPRINT} long, violations array<string>, doubts array<string>"
_STEPS = (
    "source long, action int, target long, "
    "illegal array<string>, violations array<string>, doubts array<string>"
)
_LISTS = pa.list_(pa.string())

Judgement = tuple[list[str], list[str]]
"""The formulas that are false, and those without a value with the reason."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What travels."""

    module: Module
    config: ModelConfig
    columns: StateColumns
    actions: tuple[Action, ...]
    invariants: tuple[str, ...]
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The spec as workers get it: generated code does not travel, its source does."""

    payload: bytes
    variables: tuple[str, ...]

    @staticmethod
    def of(
        spec: Spec,
        columns: StateColumns,
        actions: Sequence[Action],
        invariants: Sequence[str] = (),
        properties: Sequence[str] = (),
    ) -> Evaluator:
        """An evaluator of these formulas; `actions` by code of the store."""
        parts = _Parts(
            spec.module,
            spec.config,
            columns,
            tuple(actions),
            tuple(invariants),
            tuple(properties),
        )
        dumps: Callable[[object], bytes] = cloudpickle.dumps
        return Evaluator(dumps(parts), spec.variables)

    def judged_states(self, states: DataFrame) -> DataFrame:
        """Fingerprint, violations and doubts of each state; all variables must be there."""
        chosen = states.select(FINGERPRINT, *(F.col(f"`{name}`") for name in self.variables))
        payload = self.payload

        def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield _worker(payload).judge_states(batch)

        return chosen.mapInArrow(judge, _STATES)

    def judged_steps(self, rows: DataFrame) -> DataFrame:
        """The key of each row with `illegal`, violations and doubts.

        `rows` have the variables before and after the step, and `asked`: whether the action's
        own formula is to be asked too.
        """
        names = [name for variable in self.variables for name in (variable, following(variable))]
        chosen = rows.select(*KEY, "asked", *(F.col(f"`{name}`") for name in names))
        payload = self.payload

        def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield _worker(payload).judge_steps(batch)

        return chosen.mapInArrow(judge, _STEPS)


@lru_cache(maxsize=2)
def _worker(payload: bytes) -> _Worker:
    # A Python worker serves many tasks; compiling the spec takes longer than most of them.
    return _Worker(payload)


class _Worker:
    """One process's bound spec."""

    def __init__(self, payload: bytes) -> None:
        parts: _Parts = pickle.loads(payload)
        self._columns = parts.columns
        self._actions = parts.actions
        self._spec = bind(parts.module, parts.config)
        self._invariants = [(n, self._spec.state_formula(n)) for n in parts.invariants]
        self._properties = [(n, self._spec.action_formula(n)) for n in parts.properties]

    def judge_states(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        states = self._states(pa.Table.from_batches([batch]), after=False)
        found = [self._judge_state(complete(state)) for state in states]
        return pa.RecordBatch.from_arrays(
            [batch.column(FINGERPRINT), *_lists(found)],
            names=[FINGERPRINT, "violations", "doubts"],
        )

    def judge_steps(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        table = pa.Table.from_batches([batch])
        steps = zip(
            table.column("action").to_pylist(),
            table.column("asked").to_pylist(),
            self._states(table, after=False),
            self._states(table, after=True),
            strict=True,
        )
        legal: list[Judgement] = []
        found: list[Judgement] = []
        for code, asked, before, after in steps:
            state, target = complete(before), complete(after)
            judged = self._judge_action(code, state, target) if asked else ([], [])
            rest = self._judge_step(state, target)
            legal.append(judged)
            found.append((rest[0], judged[1] + rest[1]))
        illegal, _ = _lists(legal)
        return pa.RecordBatch.from_arrays(
            [*(batch.column(name) for name in KEY), illegal, *_lists(found)],
            names=[*KEY, "illegal", "violations", "doubts"],
        )

    def _states(self, table: pa.Table, *, after: bool) -> list[PartialState]:
        names = [name for name, _ in self._columns.schema.variables]
        chosen = table.select([following(name) if after else name for name in names])
        found: list[PartialState] = self._columns.states(chosen.rename_columns(names))
        return found

    def _judge_state(self, state: State) -> Judgement:
        false, undefined = [], []
        for name, formula in self._invariants:
            try:
                if not formula(state):
                    false.append(name)
            except SpecError as error:
                undefined.append(f"{name}: {error}")
        return false, undefined

    def _judge_step(self, state: State, target: State) -> Judgement:
        return _judge_pair(self._properties, state, target)

    def _judge_action(self, code: int, state: State, target: State) -> Judgement:
        return _judge_pair([(NEXT, self._spec.action_formula(self._actions[code]))], state, target)


def _judge_pair(
    formulas: Iterable[tuple[str, ActionFormula]], state: State, target: State
) -> Judgement:
    false, undefined = [], []
    for name, formula in formulas:
        try:
            if not formula(state, target):
                false.append(name)
        except SpecError as error:
            undefined.append(f"{name}: {error}")
    return false, undefined


def _lists(found: Sequence[Judgement]) -> tuple[pa.Array, pa.Array]:
    return (
        pa.array([false for false, _ in found], _LISTS),
        pa.array([undefined for _, undefined in found], _LISTS),
    )
