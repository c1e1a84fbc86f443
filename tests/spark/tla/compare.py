"""Puts formulas to Spark and to Python on the same damaged rows and counts the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from conformance.tla import Action, EvaluationError, Spec, State, infer, infer_schema
from conformance.tla.arrow import write_states, write_values
from conformance.tla.search import reachable_states
from conformance.tla.spark import (
    SparkFormula,
    compile_action,
    compile_action_formulas,
    compile_state_formulas,
    with_verdicts,
)
from conformance.tla.spark.sql import name as quoted
from tests.spark.tla.corrupt import Corrupter

Step = tuple[State, State]
Transition = tuple[State, Action, State]
Questions = Iterable[tuple[Callable[..., bool], tuple[State, ...]]]
"""For each row a formula of Python's, and the states that it is asked about."""


@dataclass(frozen=True, slots=True)
class Count:
    """What one formula said of the rows, in Python, and on how many Spark said otherwise."""

    formula: str
    true: int
    false: int
    undefined: int
    differing: int


def verdict(formula: Callable[..., bool], *states: State) -> bool | None:
    """The formula's value, None where it has none."""
    try:
        return formula(*states)
    except EvaluationError:
        return None


class Comparison:
    """Rows of one specification: so many, half of them damaged or more, all random from one seed;
    or, where `rows` is None, every state and every step as it is.

    `states` are the first states that are looked at, all if None; `steps` the number of those
    whose steps are.
    """

    def __init__(
        self,
        spark: SparkSession,
        spec: Spec,
        folder: Path,
        *,
        states: int | None,
        seed: int,
        steps: int | None = 3_000,
    ) -> None:
        self._spark, self._spec, self._folder = spark, spec, folder
        self._random = Random(seed)
        self._states = list(islice(reachable_states(spec), states))
        self._steps = [
            (state, action, after)
            for state in self._sample(self._states, steps)
            for action, after in spec.successors(state)
        ]
        every = [*self._states, *(after for _, _, after in self._steps)]
        self._schema = infer_schema(spec.variables, every)
        known = self._random.sample(every, min(500, len(every)))
        self._damage = Corrupter(self._schema, known, seed)

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of states and steps that rows are made of."""
        return len(self._states), len(self._steps)

    def _sample(self, states: list[State], count: int | None) -> list[State]:
        if count is None or count >= len(states):
            return states
        return self._random.sample(states, count)

    def invariants(self, names: Sequence[str], rows: int | None) -> list[Count]:
        """State formulas, all in one scan."""
        states = self._states
        if rows is not None:
            states = [
                self._damage(state, self._random.choice((0, 1, 2, 4)))
                for state in self._random.choices(self._states, k=rows)
            ]
        formulas = compile_state_formulas(self._spec.program, names, self._schema)
        of = [self._spec.state_formula(name) for name in names]
        asked = [zip(repeat(formula), zip(states)) for formula in of]
        return self._counts(formulas, write_states(self._schema, states), asked)

    def properties(self, names: Sequence[str], rows: int | None) -> list[Count]:
        """Action formulas without arguments, all in one scan."""
        steps = [(before, after) for before, _, after in self._steps]
        if rows is not None:
            steps = [self._step(*self._random.choice(steps)) for _ in range(rows)]
        formulas = compile_action_formulas(self._spec.program, names, self._schema)
        of = [self._spec.action_formula(name) for name in names]
        asked = [zip(repeat(formula), steps) for formula in of]
        return self._counts(formulas, self._table(steps), asked)

    def actions(self, rows: int, *, names: Sequence[str] = ()) -> Iterator[Count]:
        """Each action (or those named), its arguments in columns: on its own steps and others."""
        by_name = self._instances()
        for name in names or by_name:
            own = [step for step in self._steps if step[1].name == name]
            instances = by_name[name]
            asked, steps = self._some(name, own, instances, max(1, rows // len(names or by_name)))
            table, formula = self._asked(self._table(steps), name, instances, asked)
            yield self._counts([formula], table, [self._on(asked, steps)])[0]

    def actions_on_every_step(self) -> list[Count]:
        """Every action asked of every step, all in one scan: the arguments are the step's own
        where it is a step of this action, else those of some instance."""
        steps = [(before, after) for before, _, after in self._steps]
        table, formulas, questions = self._table(steps), [], []
        for name, instances in self._instances().items():
            asked = [
                action if action.name == name else self._random.choice(instances)
                for _, action, _ in self._steps
            ]
            table, formula = self._asked(table, name, instances, asked)
            formulas.append(formula)
            questions.append(self._on(asked, steps))
        return self._counts(formulas, table, questions)

    def _instances(self) -> dict[str, list[Action]]:
        by_name: dict[str, list[Action]] = {}
        for action in self._spec.actions:
            by_name.setdefault(action.name, []).append(action)
        return by_name

    def _some(
        self, name: str, own: list[Transition], instances: Sequence[Action], rows: int
    ) -> tuple[list[Action], list[Step]]:
        picked = [
            self._random.choice(own if own and self._random.random() < 0.8 else self._steps)
            for _ in range(rows)
        ]
        asked = [
            action
            if action.name == name and self._random.random() < 0.9
            else self._random.choice(instances)
            for _, action, _ in picked
        ]
        return asked, [self._step(before, after) for before, _, after in picked]

    def _asked(
        self, table: pa.Table, name: str, instances: Sequence[Action], asked: Sequence[Action]
    ) -> tuple[pa.Table, SparkFormula]:
        """The table with columns for the arguments, and the action's formula over them."""
        arguments = []
        for index, values in enumerate(zip(*(action.args for action in asked), strict=True)):
            kind = infer([action.args[index] for action in instances], f"argument {index}")
            assert kind is not None
            column = f"{name}_{index}"
            table = table.append_column(column, write_values(kind, list(values)))
            arguments.append((kind, quoted(column)))
        return table, compile_action(self._spec.program, name, self._schema, arguments)

    def _on(self, asked: Sequence[Action], steps: Sequence[Step]) -> Questions:
        formulas = {action: self._spec.action_formula(action) for action in set(asked)}
        return ((formulas[action], step) for action, step in zip(asked, steps, strict=True))

    def _step(self, before: State, after: State) -> Step:
        """The step as it is, one of its states damaged, or another state after it."""
        match self._random.randrange(4):
            case 1:
                return self._damage(before), after
            case 2:
                return before, self._damage(after)
            case 3:
                return before, self._random.choice(self._steps)[2]
        return before, after

    def _table(self, steps: Sequence[Step]) -> pa.Table:
        before = write_states(self._schema, [step[0] for step in steps])
        after = write_states(self._schema, [step[1] for step in steps])
        names = [*before.column_names, *(f"next_{name}" for name in after.column_names)]
        return pa.table([*before.columns, *after.columns], names=names)

    def _counts(
        self, formulas: Sequence[SparkFormula], table: pa.Table, questions: Sequence[Questions]
    ) -> list[Count]:
        numbers = pa.array(range(table.num_rows))
        pq.write_table(table.append_column("row_", numbers), self._folder / "rows.parquet")
        rows = self._spark.read.parquet(str(self._folder / "rows.parquet"))
        found = with_verdicts(rows, formulas, keep=["row_"]).toArrow().sort_by("row_")
        return [
            _count(formula.name, asked, found.column(formula.name).to_pylist())
            for formula, asked in zip(formulas, questions, strict=True)
        ]


def _count(name: str, questions: Questions, answers: Sequence[bool | None]) -> Count:
    values = [verdict(formula, *states) for formula, states in questions]
    differing = sum(value != answer for value, answer in zip(values, answers, strict=True))
    return Count(name, values.count(True), values.count(False), values.count(None), differing)
