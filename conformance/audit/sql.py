"""Asks Spark SQL, compiled from the spec, which states and steps of a store are in order.

A formula that is false or has no value on a row, a row with a variable that was not observed, and a
step whose states the store lacks are *left*: the evaluator judges them. Actions with disjuncts are
not asked: the evaluator says which disjuncts a step took.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from conformance.audit.choice import FEW, EvaluatorChoice, Part, Question, Share, few, shared
from conformance.audit.evaluator import Evaluator, StateRows, bound_worker
from conformance.audit.judge import Verdict
from conformance.audit.rules import NEXT
from conformance.errors import DataError, UnsupportedError
from conformance.spark.workers import OnSpark
from conformance.tla.spark import (
    SparkFormula,
    compile_action_formulas,
    compile_state_formulas,
    with_verdicts,
)
from conformance.tla.spark.sql import name as quoted
from conformance.traces.states import FINGERPRINT
from conformance.traces.store import TraceStore
from conformance.workers import Workers

SAMPLE = 500
"""Rows that both evaluators judge."""
_WARM = 50
"""Rows that Python judges before its time is taken."""
_PART = 500_000
"""Steps that SQL judges at once: they pass through the driver."""
_ROW, _CODE, _WHOLE = "visit:row", "visit:action", "all:observed"
"""Columns beside those of the variables; no variable has such a name."""


@dataclass(slots=True)
class SqlJudge:
    """Spark SQL as the first to be asked, in one audit."""

    workers: Workers
    """Of Spark."""
    store: TraceStore
    evaluator: Evaluator
    invariants: tuple[str, ...]
    properties: tuple[str, ...]
    sql: bool | None = None
    """Whether SQL judges; None: where it was measured to be faster."""
    choices: list[EvaluatorChoice] = field(default_factory=list)
    disputes: list[str] = field(default_factory=list)
    """On what the two evaluators disagree, with both answers."""
    _answers: dict[int, dict[str, bool | None]] = field(default_factory=dict)
    """Of rows that are left, what SQL says: formulas that are false for it."""

    # --- states -----------------------------------------------------------------------------------

    def states(self, files: Sequence[StateRows]) -> tuple[list[StateRows], int]:
        """Which states of these files the evaluator is to judge, and how many others are in
        order."""
        if not self.invariants or not files or not files[0].count:
            return list(files), 0
        if self._few("invariants", "states", sum(rows.count for rows in files)):
            return list(files), 0
        first, worker = files[0], bound_worker(self.evaluator)
        worker.judge_rows(replace(first, count=min(first.count, _WARM)))
        sample = replace(first, count=min(first.count, SAMPLE))
        begun = time.perf_counter()
        judged = worker.judge_rows(sample).to_pylist()
        python = (time.perf_counter() - begun) / sample.count / self._cores
        rows = [row for row in judged if row[FINGERPRINT] is not None]
        bad = [(row[FINGERPRINT], row["violations"], row["doubts"]) for row in rows]
        known = sample.read().column(FINGERPRINT).to_pylist()

        def compiled() -> Callable[[StateRows], pa.Table]:
            formulas = compile_state_formulas(
                worker.spec.program, self.invariants, self.store.columns.schema
            )
            return lambda part: self._left_states(formulas, part)

        share = self._shared(
            Question(
                "invariants",
                "states",
                [(rows, rows.count) for rows in files],
                python,
                compiled,
                sample,
                lambda left: self._compare(known, left, FINGERPRINT, bad, "the state"),
            )
        )
        left = []
        for part, table in share.judged:
            self._remember(table, FINGERPRINT)
            if len(table):
                only = table.column(FINGERPRINT).combine_chunks()
                left.append(replace(part, only=only))
        fine = share.choice.by_sql - sum(len(table) for _, table in share.judged)
        return [*left, *share.rest], fine

    def _left_states(self, formulas: Sequence[SparkFormula], part: StateRows) -> pa.Table:
        """The fingerprints of a file's states that are not in order, with each formula's value.

        A file's states are in the order of their fingerprints, so its first ones are those up to
        some fingerprint."""
        last = part.read().column(FINGERPRINT)[-1].as_py()
        states = self._states([part.path]).where(F.col(FINGERPRINT) <= last)
        rows = states.withColumn(_WHOLE, self._observed())
        judged = with_verdicts(rows, formulas, keep=[FINGERPRINT, _WHOLE])
        return self._left(judged, FINGERPRINT, [formula.name for formula in formulas])

    # --- steps ------------------------------------------------------------------------------------

    def steps(self, visits: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Of the visits (`judge.asked`) those that the evaluator is to judge, and the others:
        steps that are in order, of actions without disjuncts."""
        if self._few("actions", "transitions", len(visits)):
            return visits, visits.slice(0, 0)
        worker = bound_worker(self.evaluator)
        codes = [code for code, action in enumerate(self.store.actions) if not worker.asks(action)]
        suited = visits.filter(pc.is_in(visits.column("action"), pa.array(codes, pa.int32())))
        if not len(suited):
            return visits, suited.slice(0, 0)
        python = self._python_seconds(suited)
        fine = suited
        if self.properties:
            fine = self._fine(suited, "action properties", python, self._properties)
            if not self.choices[-1].by_sql:
                reason = "Python judges the action properties of the same transitions"
                self.choices.append(EvaluatorChoice("actions", len(suited), 0, reason))
        wanted = fine.filter(fine.column("asked"))
        done = [fine.filter(pc.invert(fine.column("asked")))]
        by_name: dict[str, list[int]] = {}
        for code in codes:
            by_name.setdefault(self.store.actions[code].name, []).append(code)
        for name, own in by_name.items():
            of_action = wanted.filter(pc.is_in(wanted.column("action"), pa.array(own, pa.int32())))
            if len(of_action):
                compiled = partial(self._action, own)
                done.append(self._fine(of_action, name, python, compiled))
        passed = pc.is_in(visits.column("row"), pa.concat_tables(done).column("row"))
        return visits.filter(pc.invert(passed)), visits.filter(passed)

    def _python_seconds(self, visits: pa.Table) -> float:
        """The evaluator's seconds for a visit whose states it has read, with all workers."""
        few = _every(visits, SAMPLE)
        (batch,) = few.combine_chunks().to_batches()
        bound_worker(self.evaluator).judge_visits(batch)
        begun = time.perf_counter()
        bound_worker(self.evaluator).judge_visits(batch)
        return (time.perf_counter() - begun) / len(few) / self._cores

    def _fine(
        self,
        visits: pa.Table,
        formulas: str,
        python: float,
        compiled: Callable[[], Sequence[SparkFormula]],
    ) -> pa.Table:
        """The visits that SQL finds in order."""
        sample = _every(visits, SAMPLE)
        share = self._shared(
            Question(
                formulas,
                "transitions",
                [
                    (visits.slice(first, _PART), min(_PART, len(visits) - first))
                    for first in range(0, len(visits), _PART)
                ],
                python,
                lambda: self._ask(compiled()),
                sample,
                lambda left: self._compare_steps(sample, left),
            )
        )
        fine = []
        for part, table in share.judged:
            left = pc.is_in(part.column("row"), table.column(_ROW))
            fine.append(part.filter(pc.invert(left)))
            # Where the model lists a step, the two are compared as table and formula.
            known = part.filter(part.column("listed")).column("row")
            self._remember(table.filter(pc.invert(pc.is_in(table.column(_ROW), known))), _ROW)
        return pa.concat_tables(fine) if fine else visits.slice(0, 0)

    def _properties(self) -> Sequence[SparkFormula]:
        program = bound_worker(self.evaluator).spec.program
        return compile_action_formulas(program, self.properties, self.store.columns.schema)

    def _action(self, codes: Sequence[int]) -> Sequence[SparkFormula]:
        program = bound_worker(self.evaluator).spec.program
        actions = [self.store.actions[code] for code in codes]
        return compile_action_formulas(program, actions, self.store.columns.schema)

    def _ask(self, formulas: Sequence[SparkFormula]) -> Callable[[pa.Table], pa.Table]:
        names = self.store.columns.schema.names()
        if hidden := {f"next_{name}" for name in names} & set(names):
            raise UnsupportedError(f"the variable {min(hidden)} has the name of a next state's")
        return lambda visits: self._left_steps(formulas, visits)

    def _left_steps(self, formulas: Sequence[SparkFormula], visits: pa.Table) -> pa.Table:
        """The rows of the visits that are not in order, with each formula's value: of the formulas
        of an action that of the visit's own action, as `Next`."""
        columns = [visits.column(name) for name in ("row", "action", "source", "target")]
        keys = pa.table(columns, names=[_ROW, _CODE, "visit:source", "visit:target"])
        before = self._states(self._files).withColumn(_WHOLE, self._observed())
        after = before.withColumnsRenamed(
            {name: f"next_{name}" for name in [*self.store.columns.schema.names(), _WHOLE]}
        )
        # A broadcast of states would need the memory for all of them in one place.
        steps = (
            self._session.createDataFrame(keys)
            .join(before.hint("merge"), F.col("`visit:source`") == F.col(FINGERPRINT), "left")
            .drop(FINGERPRINT)
            .join(after.hint("merge"), F.col("`visit:target`") == F.col(FINGERPRINT), "left")
            .withColumn(_WHOLE, F.expr(f"{quoted(_WHOLE)} AND {quoted('next_' + _WHOLE)}"))
        )
        judged = with_verdicts(steps, formulas, keep=[_ROW, _CODE, _WHOLE])
        by_action = {str(action): code for code, action in enumerate(self.store.actions)}
        own = [f for f in formulas if f.name in by_action and f.name not in self.properties]
        if own:
            arms = (f"WHEN {by_action[f.name]} THEN {quoted(f.name)}" for f in own)
            value = F.expr(f"CASE {quoted(_CODE)} {' '.join(arms)} END").alias(NEXT)
            judged = judged.select(F.col(quoted(_ROW)), F.col(quoted(_WHOLE)), value)
        names = [NEXT] if own else [formula.name for formula in formulas]
        return self._left(judged, _ROW, names)

    def _compare_steps(self, sample: pa.Table, left: pa.Table) -> None:
        (batch,) = sample.combine_chunks().to_batches()
        rows = bound_worker(self.evaluator).judge_visits(batch).to_pylist()
        numbers = sample.column("row").to_pylist()
        bad = [
            (number, [*([NEXT] if row["illegal"] else []), *row["violations"]], row["doubts"])
            for number, row in zip(numbers, rows, strict=True)
        ]
        self._compare(numbers, left, _ROW, bad, "the transition")

    # --- both -------------------------------------------------------------------------------------

    def confirm(self, judged: Collection[Verdict], what: str) -> None:
        """Compare what SQL says of the rows that it left with what the evaluator says."""
        bad = {key: (set(violations), doubts) for key, violations, doubts in judged}
        for key, answers in self._answers.items():
            violations, _ = bad.get(key, (set(), ()))
            for name, value in answers.items():
                if value is False and name not in violations:
                    self._dispute(what, key, name, "FALSE", "not FALSE")
        self._answers.clear()

    def _compare(
        self,
        keys: Sequence[int],
        left: pa.Table,
        key: str,
        judged: Sequence[Verdict],
        what: str,
    ) -> None:
        """Of sampled rows: a formula is false for both, or for none; what is in order for SQL is
        in order for the evaluator."""
        sql = {row.pop(key): row for row in left.to_pylist()}
        bad = {value: (violations, doubts) for value, violations, doubts in judged}
        names = [name for name in left.column_names if name != key]
        for value in keys:
            violations, doubts = bad.get(value, ((), ()))
            undefined = {doubt.partition(": ")[0] for doubt in doubts}
            for name in names:
                answer = sql.get(value, {}).get(name, True if value not in sql else None)
                python = False if name in violations else None if name in undefined else True
                if answer is not None and answer is not python:
                    self._dispute(what, value, name, _word(answer), _word(python))

    def _dispute(self, what: str, key: int, name: str, sql: str, python: str) -> None:
        self.disputes.append(f"{name} on {what} {key}: {sql} by Spark SQL, {python} by Python")

    def _remember(self, left: pa.Table, key: str) -> None:
        for row in left.to_pylist():
            self._answers.setdefault(row.pop(key), {}).update(row)

    def _few(self, formulas: str, what: str, rows: int) -> bool:
        """Whether nothing is measured, since SQL cannot pay for so few rows."""
        if self.sql is not None or rows > FEW:
            return False
        self.choices.append(few(formulas, what, rows))
        return True

    def _shared(self, question: Question[Part]) -> Share[Part]:
        share = shared(question, sql=self.sql)
        self.choices.append(share.choice)
        return share

    @property
    def _session(self) -> SparkSession:
        assert isinstance(self.workers, OnSpark)
        return self.workers.session

    @property
    def _cores(self) -> int:
        return max(1, self._session.sparkContext.defaultParallelism)

    @property
    def _files(self) -> list[Path]:
        return [path.resolve() for path in self.store.files("states")]

    def _states(self, files: Sequence[Path]) -> DataFrame:
        # Given the schema, Spark starts no job to find it. A name is no pattern (`[1]`, `{a,b}`).
        reader = self._session.read.schema(from_arrow_schema(self.store.columns.arrow))
        return reader.option("__globPaths__", "false").parquet(*map(_named, files))

    def _observed(self) -> Column:
        """Whether all variables of a state were observed, and have values of their types."""
        names = self.store.columns.schema.names()
        return F.expr(" AND ".join(f"{quoted(name)} IS NOT NULL" for name in names) or "true")

    def _left(self, rows: DataFrame, key: str, names: Sequence[str]) -> pa.Table:
        """Of judged rows those that are not in order. No formula has a value on a row that was
        not observed whole."""
        whole, values = F.expr(f"coalesce({quoted(_WHOLE)}, false)"), map(quoted, names)
        true = " AND ".join(f"coalesce({value}, false)" for value in values) or "true"
        left = rows.where(~(whole & F.expr(true)))
        columns = [F.when(whole, F.col(quoted(name))).alias(name) for name in names]
        with _readable(self.store):
            return left.select(F.col(quoted(key)), *columns).toArrow()


def _named(path: Path) -> str:
    """A file that the driver and its workers share. Hadoop's Path takes names as they are: one
    with the escapes of a URI (`%20`) would be another file's."""
    return f"file:{path}"


def _every(rows: pa.Table, about: int) -> pa.Table:
    """So many of the rows, from all over the table."""
    return rows.take(pa.array(range(0, len(rows), -(-len(rows) // about)), pa.int64()))


def _word(value: bool | None) -> str:
    return {True: "TRUE", False: "FALSE", None: "without a value"}[value]


@contextmanager
def _readable(store: TraceStore) -> Iterator[None]:
    """Turn Spark's failure to read a file of the store into an error that names the file."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        named = re.search(r"states/part-\d+\.parquet", str(error))
        if named is None:
            raise
        raise DataError(
            f"{store.path / named.group()} cannot be read: it is damaged, or was changed while it "
            "was audited. Restore the store from a copy, or record it again."
        ) from error
