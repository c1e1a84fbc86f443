"""The spec's formulas as the audit asks them: total SQL conditions with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows


@dataclass(frozen=True, slots=True)
class Rule:
    """A formula. `holds` and `fails` are SQL conditions that are never NULL.

    Where neither is true the formula is undefined, and `reason`, an SQL string, says why.
    """

    name: str
    holds: str
    fails: str
    reason: str = "NULL"
    location: str = ""


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All that an audit asks of states and transitions.

    State rules read a column per variable, named as the variable; transition rules read in
    addition the value after the step, in the column named as the variable with a prime (`x'`).
    `actions` holds, by code of the store's dictionary, that the action allows a transition.
    """

    variables: tuple[str, ...]
    init: Rule
    actions: Mapping[int, Rule]
    invariants: Sequence[Rule] = ()
    properties: Sequence[Rule] = ()

    def location(self, name: str) -> str:
        """Where the spec states the formula of this name; empty if it is none of ours."""
        rules = (self.init, *self.actions.values(), *self.invariants, *self.properties)
        return next((rule.location for rule in rules if rule.name == name), "")


def primed(variable: str) -> str:
    """The column of a variable's value after the step."""
    return f"{variable}'"


def quoted(column: str) -> str:
    """A column's name in SQL."""
    return "`" + column.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def violations(rules: Sequence[Rule]) -> Column:
    """The names of the rules that fail: array<string>."""
    return strings([f"CASE WHEN {rule.fails} THEN {literal(rule.name)} END" for rule in rules])


def doubts(rules: Sequence[Rule]) -> Column:
    """Name and reason of the rules that have no value: array<string>."""
    return strings(
        [
            f"CASE WHEN NOT ({rule.holds} OR {rule.fails}) THEN concat("
            f"{literal(rule.name)}, ': ', coalesce({rule.reason}, 'undefined')) END"
            for rule in rules
        ]
    )


def strings(parts: Sequence[str]) -> Column:
    """An array of the SQL strings that are not NULL."""
    if not parts:
        return F.expr("CAST(array() AS array<string>)")
    return F.expr(f"array_compact(array({', '.join(parts)}))")
