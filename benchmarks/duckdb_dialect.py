"""The Spark back end's expressions in DuckDB's dialect, so that both run equivalent SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.tla.spark import SparkFormula
from conformance.tla.spark.columns import INDEX
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.writer import staged

INFIX = {"and", "or", "=", "<", "<=", ">", ">=", "+", "-", "*"}


def _get(array: str, index: str) -> str:
    return f"({array})[({index}) + 1]"


CALLS: Mapping[str, Callable[..., str]] = {
    "`not`": lambda a: f"(NOT {a})",
    "`<=>`": lambda a, b: f"({a} IS NOT DISTINCT FROM {b})",
    "`in`": lambda item, *values: f"({item} IN ({', '.join(values)}))",
    "if": lambda test, then, otherwise: f"(CASE WHEN {test} THEN {then} ELSE {otherwise} END)",
    "isnull": lambda a: f"({a} IS NULL)",
    "isnotnull": lambda a: f"({a} IS NOT NULL)",
    "between": lambda a, low, high: f"({a} BETWEEN {low} AND {high})",
    "size": lambda array: f"len({array})",
    "int": lambda a: f"CAST({a} AS INTEGER)",
    "bigint": lambda a: f"CAST({a} AS BIGINT)",
    "get": _get,
    "transform": lambda array, function: f"list_transform({array}, {function})",
    "filter": lambda array, function: f"list_filter({array}, {function})",
    "forall": lambda array, function: (
        f"coalesce(list_bool_and(list_transform({array}, {function})), true)"
    ),
    "exists": lambda array, function: (
        f"coalesce(list_bool_or(list_transform({array}, {function})), false)"
    ),
    "sequence": lambda low, high: f"generate_series({low}, {high})",
    "slice": lambda array, start, count: f"list_slice({array}, {start}, ({start}) + ({count}) - 1)",
    "array": lambda *items: f"[{', '.join(items)}]",
    "array_contains": lambda array, item: f"list_contains({array}, {item})",
    "array_distinct": lambda array: f"list_distinct({array})",
    "array_union": lambda a, b: f"list_distinct(list_concat({a}, {b}))",
    "array_intersect": lambda a, b: f"list_filter({a}, lambda i_: list_contains({b}, i_))",
    "array_except": lambda a, b: f"list_filter({a}, lambda i_: NOT list_contains({b}, i_))",
    "sort_array": lambda array: f"list_sort({array})",
    "named_struct": lambda *parts: (
        "{" + ", ".join(f"{k}: {v}" for k, v in zip(parts[::2], parts[1::2], strict=True)) + "}"
    ),
    "greatest": lambda *parts: f"greatest({', '.join(parts)})",
    "least": lambda *parts: f"least({', '.join(parts)})",
    "coalesce": lambda *parts: f"coalesce({', '.join(parts)})",
}


def duckdb_shape(node: Sql, parts: list[str]) -> str:
    """How DuckDB writes an expression whose parts are written; KeyError for what it lacks."""
    match node.form:
        case "field":
            return f"({parts[0]}).{_quoted(node.head)}"
        case "column":
            return _quoted(node.head)
        case "cast":
            return f"TRY_CAST({parts[0]} AS INTEGER)"
        case "lambda":
            return f"lambda {node.head}: {parts[0]}"
        case "literal":
            return _literal(node.head)
        case "variable":
            return f"({INDEX} - 1)" if node.head == INDEX else node.head  # DuckDB counts from 1
    operator = node.head.strip("`")
    if operator in INFIX:
        return f"({f' {operator} '.join(parts)})"
    return CALLS[node.head](*parts)


def _quoted(name: str) -> str:
    return name.replace('"', '""').replace("`", '"')


def _literal(text: str) -> str:
    if text.startswith("cast(array()"):
        return "CAST([] AS BIGINT[])" if "bigint" in text else "[]"
    return f"CAST({text[:-1]} AS BIGINT)" if text[-1] == "L" and text != "NULL" else text


def query(formulas: Sequence[SparkFormula], table: str) -> str:
    """A SELECT with a boolean column for each formula, staged as the Spark back end's."""
    plan = staged([formula.node for formula in formulas], shape=duckdb_shape)
    made = table
    for stage in plan.stages:
        added = [f"{text} AS {name}" for name, text in stage.added]
        made = f"(SELECT {', '.join((*stage.columns, *added))} FROM {made})"
    results = (f"{text} AS {f.name}" for f, text in zip(formulas, plan.results, strict=True))
    return f"SELECT {', '.join(results)} FROM {made}"
