"""One name for one concept: no class name stands twice; variables, fields and methods are nouns."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

TWICE: frozenset[str] = frozenset()
"""Class names that may stand more than once, each with its reason in a comment beside it."""

NO_NAMES = frozenset({"one", "found", "told", "held", "taken", "said"})
"""Words that say how a thing is, not what it is."""

ARITHMETIC = frozenset(
    {
        "conformance/tla/spark/functions.py",
        "conformance/tla/spark/numbers.py",
    }
)
"""Files in which `one` is the number 1, beside `zero`."""


LEFT = (
    "conformance/audit/",
    "conformance/client/",
    "conformance/judge/",
    "conformance/modelcheck/",
    "conformance/replay/parallel.py",
    "conformance/stages/client.py",
)
"""Where fields and methods with such names are left; variables are checked there as well."""


@cache
def parsed() -> list[tuple[str, ast.Module]]:
    """Each file of the package and its syntax tree."""
    return [
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_bytes()))
        for path in sorted((ROOT / "conformance").rglob("*.py"))
    ]


def classes() -> dict[str, list[str]]:
    """The files that define a class, by its name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, module in parsed():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    return places


def variables(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of variables and parameters where they are bound, each with its line."""
    fields = {
        node.target
        for body in ast.walk(module)
        if isinstance(body, ast.ClassDef)
        for node in body.body
        if isinstance(node, ast.AnnAssign)
    }
    for node in ast.walk(module):
        if node in fields:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


def test_a_class_name_stands_once() -> None:
    twice = {name: places for name, places in classes().items() if len(places) > 1}

    assert {name: places for name, places in twice.items() if name not in TWICE} == {}
    assert set(twice) == TWICE, "a name that stands once now needs no exception"


def test_a_class_is_a_noun() -> None:
    participles = {"One", *(name.capitalize() for name in NO_NAMES)}
    bare = {name: places for name, places in classes().items() if name.strip("_") in participles}

    assert bare == {}


def test_a_variable_is_a_noun() -> None:
    places = [
        f"{path}:{line}: {name}"
        for path, module in parsed()
        for name, line in variables(module)
        if name in NO_NAMES and not (name == "one" and path in ARITHMETIC)
    ]

    assert places == []


def members(body: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Fields and methods of a class where they are defined, each with its line."""
    for node in ast.walk(body):
        is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_set and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.attr, node.lineno
    for node in body.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.lineno
        elif isinstance(node, ast.Assign):
            yield from ((t.id, t.lineno) for t in node.targets if isinstance(t, ast.Name))


def functions(module: ast.Module) -> Iterator[tuple[str, int]]:
    """A module's functions, each with its line."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


@cache
def misnamed_members() -> frozenset[str]:
    return frozenset(
        f"{path}:{line}: {name}"
        for path, module in parsed()
        for names in (functions(module), *map(members, classes_of(module)))
        for name, line in names
        if name.strip("_") in NO_NAMES
    )


def classes_of(module: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]


def test_a_field_or_method_is_named_by_a_noun_or_a_verb() -> None:
    assert {place for place in misnamed_members() if not place.startswith(LEFT)} == set()


def test_each_place_that_is_left_needs_to_be() -> None:
    assert {left for left in LEFT if any(p.startswith(left) for p in misnamed_members())} == {*LEFT}
