"""Which evaluator judges the many: Spark SQL where it was measured to be faster, else Python.

SQL is compiled from the specification's text as Python is, but a plan costs seconds before the
first row is judged. So the audit measures, on rows of the store itself:

1. Python's seconds for a row, on a sample. Where Python is done with all rows before a plan usually
   is compiled, nothing more is tried, and of few rows nothing is measured.
2. The seconds until SQL has judged the same sample: the plan. The two evaluators must agree.
3. SQL's seconds for a row, on each part of the rows. The rest goes to Python if that is faster.

SQL only finds the rows that are in order. The evaluator judges all others again, so what a report
says of them is the same whoever was asked first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from conformance.errors import UnsupportedError
from conformance.events import JsonValue

FEW = 100_000
"""Rows up to which Python always judges: SQL's plan was never seen to pay for so few."""
PLAN = 20.0
"""Seconds that Spark usually needs for the first plan of a specification's formulas, and to warm
up: `python -m benchmarks.spark_crossing`."""

Part = TypeVar("Part")
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class EvaluatorChoice:
    """Who judged some formulas, and why."""

    formulas: str
    """What was asked: `invariants`, `action properties`, or an action's name."""
    rows: int
    """Distinct states, or distinct transitions."""
    by_sql: int
    """How many of them Spark SQL was asked about."""
    reason: str
    python: float | None = None
    """Seconds for a row, with all workers."""
    plan: float | None = None
    """Seconds until SQL had judged the sample."""
    sql: float | None = None
    """Seconds for a row of the other parts."""

    def __str__(self) -> str:
        """A line for the terminal."""
        who = {0: "Python", self.rows: "Spark SQL"}.get(
            self.by_sql, f"Spark SQL ({self.by_sql:,} of {self.rows:,}) and Python"
        )
        return f"{self.formulas} judged by {who}: {self.reason}"

    def figures(self) -> dict[str, JsonValue]:
        """Its part of the JSON report."""
        return {
            "formulas": self.formulas,
            "rows": self.rows,
            "by_sql": self.by_sql,
            "reason": self.reason,
            "python_seconds_per_row": self.python,
            "plan_seconds": self.plan,
            "sql_seconds_per_row": self.sql,
        }


def few(formulas: str, what: str, rows: int) -> EvaluatorChoice:
    """The choice where there are so few rows that nothing is measured."""
    reason = f"{rows:,} distinct {what}, and Spark SQL does not pay up to {FEW:,}"
    return EvaluatorChoice(formulas, rows, 0, reason)


@dataclass(frozen=True, slots=True)
class Question(Generic[Part]):
    """Some formulas, asked of many rows."""

    formulas: str
    what: str
    """What the rows are: `states` or `transitions`."""
    parts: Sequence[tuple[Part, int]]
    """The rows in parts, each with its number of rows."""
    python: float
    """Python's seconds for a row, with all workers."""
    compiled: Callable[[], Callable[[Part], pa.Table]]
    """Compiles the SQL, which gives of a part the rows that it does not find in order.
    UnsupportedError if it lacks an operator or a type."""
    sample: Part
    """Rows on which both evaluators must agree."""
    agreed: Callable[[pa.Table], None]
    """Compares what SQL said of the sample with what Python said."""


@dataclass(frozen=True, slots=True)
class Share(Generic[Part]):
    """Which parts were judged by SQL."""

    choice: EvaluatorChoice
    judged: Sequence[tuple[Part, pa.Table]]
    """The parts that SQL was asked about, with the rows that it does not find in order."""
    rest: Sequence[Part]
    """The parts that Python is to judge."""


def shared(
    question: Question[Part], *, sql: bool | None = None, clock: Clock = time.perf_counter
) -> Share[Part]:
    """Have SQL judge what it judges faster. `sql` forces the choice."""
    rows = sum(count for _, count in question.parts)
    python, what = question.python, f"{rows:,} distinct {question.what}"

    def share(
        reason: str,
        judged: Sequence[tuple[Part, pa.Table]] = (),
        plan: float | None = None,
        per_row: float | None = None,
    ) -> Share[Part]:
        asked = sum(count for _, count in question.parts[: len(judged)])
        choice = EvaluatorChoice(question.formulas, rows, asked, reason, python, plan, per_row)
        return Share(choice, judged, [part for part, _ in question.parts[len(judged) :]])

    if sql is False:
        return share("Python was asked for")
    if sql is None and rows * python <= PLAN:
        return share(
            f"{what} take Python about {rows * python:.1f} s, and a plan of Spark's alone "
            f"about {PLAN:.0f} s"
        )
    begun = clock()
    try:
        ask = question.compiled()
    except UnsupportedError as error:
        return share(f"Spark SQL cannot judge them ({error})")
    question.agreed(ask(question.sample))
    plan = clock() - begun
    if sql is None and plan > rows * python:
        return share(
            f"{what} take Python about {rows * python:.1f} s, and the plan took {plan:.1f} s",
            plan=plan,
        )
    judged: list[tuple[Part, pa.Table]] = []
    per_row: float | None = None
    for part, count in question.parts:
        if sql is None and per_row is not None and per_row > python:
            reason = f"{_milliseconds(per_row)} by SQL, {_milliseconds(python)} by Python"
            return share(reason, judged, plan, per_row)
        begun = clock()
        judged.append((part, ask(part)))
        per_row = (clock() - begun) / max(count, 1)
    cause = "Spark SQL was asked for" if sql else what
    costs = f"plan {plan:.1f} s, then {_milliseconds(per_row or 0.0)}; Python"
    return share(f"{cause}: {costs} {_milliseconds(python)}", judged, plan, per_row)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3f} ms a row"
