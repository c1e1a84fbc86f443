"""Spark SQL judges what it was measured to judge faster; the choice comes with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from conformance.audit.choice import PLAN, Question, Share, few, shared
from conformance.errors import UnsupportedError

NOTHING = pa.table({"row": pa.array([], pa.int64())})
PARTS = [("first", 100_000), ("second", 100_000), ("third", 100_000)]


class Asked:
    """A question whose SQL takes so many seconds for the plan, and then for each part."""

    def __init__(self, *seconds: float, python: float, lacks: str = "") -> None:
        self.now, self.seconds, self.parts, self.compared = 0.0, iter(seconds), [], 0
        self.lacks = lacks
        self.question = Question(
            "invariants", "states", PARTS, python, self.compiled, "sample", self.agreed
        )

    def compiled(self) -> Callable[[str], pa.Table]:
        if self.lacks:
            raise UnsupportedError(self.lacks)
        return self.ask

    def ask(self, part: str) -> pa.Table:
        self.now += next(self.seconds)
        self.parts.append(part)
        return NOTHING

    def agreed(self, _left: pa.Table) -> None:
        self.compared += 1

    def share(self, sql: bool | None = None) -> Share[str]:
        return shared(self.question, sql=sql, clock=lambda: self.now)


def test_where_python_is_done_before_a_plan_is_compiled_sql_is_not_tried() -> None:
    asked = Asked(python=PLAN / 300_000)
    share = asked.share()
    assert (share.rest, share.choice.by_sql) == (["first", "second", "third"], 0)
    assert (asked.parts, asked.compared) == ([], 0)
    assert str(share.choice).startswith("invariants judged by Python: 300,000 distinct states take")


def test_sql_judges_where_it_is_faster_and_the_sample_is_judged_by_both() -> None:
    asked = Asked(10, 1, 1, 1, python=0.001)
    share = asked.share()
    assert [part for part, _ in share.judged] == ["first", "second", "third"]
    assert (share.rest, share.choice.by_sql, asked.compared) == ([], 300_000, 1)
    assert str(share.choice) == (
        "invariants judged by Spark SQL: 300,000 distinct states: "
        "plan 10.0 s, then 0.010 ms a row; Python 1.000 ms a row"
    )


def test_a_plan_that_takes_longer_than_python_s_judging_is_given_up() -> None:
    asked = Asked(301, python=0.001)
    share = asked.share()
    assert (share.choice.by_sql, asked.compared) == (0, 1)
    assert share.choice.reason.endswith("take Python about 300.0 s, and the plan took 301.0 s")


def test_the_rest_goes_to_python_once_sql_was_slower_for_a_part() -> None:
    share = Asked(10, 101, python=0.001).share()
    assert ([part for part, _ in share.judged], share.rest) == (["first"], ["second", "third"])
    assert share.choice.by_sql == 100_000
    assert "judged by Spark SQL (100,000 of 300,000) and Python: 1.010 ms" in str(share.choice)


def test_what_sql_cannot_compile_python_judges_and_the_reason_says_so() -> None:
    share = Asked(python=1.0, lacks="M:1:1: CHOOSE is not supported").share()
    assert share.choice.by_sql == 0
    assert "M:1:1: CHOOSE is not supported" in share.choice.reason


@pytest.mark.parametrize(("sql", "rows"), [(True, 300_000), (False, 0)])
def test_the_choice_can_be_forced_against_every_measurement(sql: bool, rows: int) -> None:
    seconds: Iterator[float] = iter([1000.0] * 4)
    asked = Asked(*seconds, python=1.0 if not sql else 1e-9)
    assert asked.share(sql).choice.by_sql == rows


def test_of_few_rows_the_reason_is_their_number() -> None:
    assert str(few("actions", "transitions", 5_000)) == (
        "actions judged by Python: 5,000 distinct transitions, "
        "and Spark SQL does not pay up to 100,000"
    )


def test_the_report_has_the_choice_with_its_costs() -> None:
    assert Asked(10, 1, 1, 1, python=0.001).share().choice.figures() == {
        "formulas": "invariants",
        "rows": 300_000,
        "by_sql": 300_000,
        "reason": "300,000 distinct states: "
        "plan 10.0 s, then 0.010 ms a row; Python 1.000 ms a row",
        "python_seconds_per_row": 0.001,
        "plan_seconds": 10.0,
        "sql_seconds_per_row": 0.00001,
    }
