"""Expressions become SQL in which nothing is evaluated twice."""

from __future__ import annotations

from conformance.tla.spark import sql
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.writer import ProjectionChain, expression, staged

X, LOG = sql.column("`x`"), sql.field_of(sql.column("`log`"), "b1")


def sum_of(terms: int, start: Sql = X) -> Sql:
    """A sum with so many additions."""
    for number in range(terms):
        start = sql.compare("+", start, sql.integer(number))
    return start


def written(plan: ProjectionChain) -> str:
    texts = [text for stage in plan.stages for _, text in stage.added]
    return " ".join((*texts, *plan.results))


def test_equal_expressions_are_one_value() -> None:
    assert sum_of(3) == sum_of(3)
    assert hash(sum_of(3)) == hash(sum_of(3))
    assert sum_of(3) != sum_of(4)


def test_doubling_does_not_double_the_text() -> None:
    doubled = sum_of(9)
    for _ in range(40):
        doubled = sql.compare("*", sum_of(3, doubled), doubled)
    assert len(expression(doubled)) < 6_000
    assert len(written(staged([doubled]))) < 4_000


def test_what_two_expressions_share_gets_one_column() -> None:
    shared = sum_of(9)
    plan = staged([sql.equal(shared, sql.integer(n)) for n in range(2)])
    assert written(plan).count("8L") == 1


def test_a_stage_keeps_only_what_later_ones_need() -> None:
    early = sql.equal(sum_of(9), sum_of(9, LOG))
    late = early
    for _ in range(6):
        late = sql.call("`and`", sql.equal(sum_of(9, sql.size(LOG)), X), sql.negation(late))
    plan = staged([early, late, late])
    mentioned = {name for stage in plan.stages[1:] for name in stage.columns}
    added = {name for stage in plan.stages for name, _ in stage.added}
    assert mentioned <= added
    assert len(plan.stages[-1].columns) < len(added)


def test_what_a_loop_does_not_change_is_evaluated_before_it() -> None:
    body = sql.compare("<", sql.variable("x0_"), sum_of(9))
    plan = staged([sql.each("forall", LOG, "x0_", body)])
    loops = [text for stage in plan.stages for _, text in stage.added if "forall" in text]
    assert len(loops) == 1
    assert "8L" not in loops[0]


def test_what_a_loop_repeats_is_bound_within_it() -> None:
    twice = sum_of(12, sql.variable("x0_"))
    body = sql.call("`and`", sql.compare("<", twice, X), sql.compare(">", twice, X))
    made = expression(sql.each("forall", LOG, "x0_", body))
    assert made.count("11L") == 1
    assert made.startswith("forall(`log`.`b1`, x0_ -> get(transform(array(")
