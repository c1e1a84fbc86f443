"""The verdicts on distinct states and visits, and what is counted over them.

Where there are few they are tables in the driver: Spark would compile a query for each count. Many
stay on Spark. Both have the same columns: of states fingerprint, violations, doubts and `states`
(for how many the row stands); of visits those of `audit.judge.judge_visits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from conformance.audit import judge
from conformance.audit.rules import Rulebook, literal
from conformance.audit.verdicts import has_value
from conformance.audit.visited import INITIAL


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of distinct states and steps."""

    listed: int
    """Steps that the model's table has."""
    cross_checked: int
    """Of these, how many the formula was asked about."""
    disputed: int
    """Listed visits to which the formula says no."""
    bad: int
    """Rows of states and visits that are not in order."""
    valued: Mapping[str, int]
    """By formula, on how many it had a value."""


class Judged(Protocol):
    """What was found."""

    def figures(self, rules: Rulebook) -> Figures:
        """What is counted."""

    def taken(self) -> Counter[tuple[int, int]]:
        """Steps by the action's code and the disjuncts that they took, as bits."""

    def suspects(self) -> DataFrame:
        """See `audit.judge.suspects`."""


@dataclass(frozen=True, slots=True)
class JudgedHere:
    """Few, as tables."""

    spark: SparkSession
    states: pa.Table
    visits: pa.Table

    def figures(self, rules: Rulebook) -> Figures:
        """Counted in this process."""
        states = self.states.select(["violations", "doubts", "states"]).to_pylist()
        visits = self.visits.select(_COUNTED).to_pylist()
        steps = [row for row in visits if row["action"] != INITIAL and row["action"] is not None]
        valued = {
            rule.name: sum(row["states"] for row in states if has_value(rule.name, row["doubts"]))
            for rule in rules.invariants
        }
        ready = [row["doubts"] for row in steps if row["ready"]]
        valued |= {
            rule.name: sum(has_value(rule.name, doubts) for doubts in ready)
            for rule in rules.properties
        }
        return Figures(
            listed=sum(row["listed"] for row in steps),
            cross_checked=sum(row["listed"] and row["asked"] for row in steps),
            disputed=sum(row["disputed"] for row in visits),
            bad=sum(bool(row["violations"] or row["doubts"]) for row in (*states, *visits)),
            valued=valued,
        )

    def taken(self) -> Counter[tuple[int, int]]:
        """Counted in this process."""
        found: Counter[tuple[int, int]] = Counter()
        for row in self.visits.select(["action", "taken", "visits"]).to_pylist():
            if row["taken"] != "0":
                found[row["action"], int(row["taken"], 16)] += row["visits"]
        return found

    def suspects(self) -> DataFrame:
        """On Spark, where the traces are."""
        frames = map(self.spark.createDataFrame, (self.visits, self.states))
        return judge.suspects(*frames)


_COUNTED = ["action", "listed", "asked", "ready", "disputed", "violations", "doubts"]


_BAD = "size(violations) > 0 OR size(doubts) > 0"
_STEP = f"action <> {INITIAL}"
_VALUED = "valued:"


@dataclass(frozen=True, slots=True)
class JudgedOnSpark:
    """Many, as frames; `counting` surrounds each count."""

    states: DataFrame
    visits: DataFrame
    counting: Callable[[], AbstractContextManager[None]]

    def figures(self, rules: Rulebook) -> Figures:
        """One query for the states, one for the visits: every Spark job has its price."""
        invariants = [rule.name for rule in rules.invariants]
        properties = [rule.name for rule in rules.properties]
        of_states = {"bad": _BAD, **_valued(invariants, "true")}
        of_visits = {
            "listed": f"listed AND {_STEP}",
            "cross_checked": f"listed AND asked AND {_STEP}",
            "disputed": "disputed",
            "bad": _BAD,
            **_valued(properties, f"ready AND {_STEP}"),
        }
        with self.counting():
            states = _count(self.states, of_states, "states")
            visits = _count(self.visits, of_visits, "1")
        valued = {name: states[_VALUED + name] for name in invariants}
        valued |= {name: visits[_VALUED + name] for name in properties}
        return Figures(
            visits["listed"],
            visits["cross_checked"],
            visits["disputed"],
            states["bad"] + visits["bad"],
            valued,
        )

    def taken(self) -> Counter[tuple[int, int]]:
        """One query."""
        with self.counting():
            some = self.visits.where("taken <> '0'").groupBy("action", "taken")
            rows = some.agg(F.sum("visits")).collect()
        return Counter({(code, int(bits, 16)): steps for code, bits, steps in rows})

    def suspects(self) -> DataFrame:
        """As they are."""
        return judge.suspects(self.visits, self.states)


def _valued(names: Iterable[str], condition: str) -> dict[str, str]:
    """Conditions that a formula had a value on a row, by the names that `_count` gives them."""
    return {
        _VALUED + name: f"{condition} AND NOT "
        f"exists(doubts, d -> startswith(d, {literal(name + ': ')}))"
        for name in names
    }


def _count(frame: DataFrame, conditions: Mapping[str, str], weight: str) -> dict[str, int]:
    """Of the rows on which each condition holds, the sum of the weights."""
    counts = [
        F.expr(f"coalesce(sum(if({text}, {weight}, 0)), 0)").alias(name)
        for name, text in conditions.items()
    ]
    row = frame.agg(*counts).first()
    return {} if row is None else row.asDict()
