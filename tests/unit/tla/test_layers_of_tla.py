"""conformance.tla is a library of its own: its layers, its doors, and no import in a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import conformance.tla

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = "conformance.tla"

LAYERS = {
    "errors": 0,
    "values": 1,
    "arrow": 2,
    "front": 2,
    "semantics": 3,
    "python": 4,
    "spark": 4,
    "search": 5,
    "show": 6,
}
BESIDE = {"python": "spark", "spark": "python", "front": "arrow", "arrow": "front"}
DOORS = {LIBRARY, *(f"{LIBRARY}.{part}" for part in ("search", "show", "arrow", "spark"))}
INSIDE = {f"{LIBRARY}.spark.sql", f"{LIBRARY}.errors"}
"""What callers may import besides: how Spark's names are quoted; the errors, which are theirs."""


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if is_module(inner) else node.module


def is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def part(name: str) -> str:
    return name.split(".")[2]


LIBRARY_FILES = [path for path in files("conformance/tla") if dotted(path) != LIBRARY]
CALLERS = [path for path in files("conformance") if LIBRARY not in dotted(path)]


@pytest.mark.parametrize("path", LIBRARY_FILES, ids=dotted)
def test_a_part_imports_what_is_below_it(path: Path) -> None:
    own = part(dotted(path))
    for name in imports(path):
        if name.startswith(f"{LIBRARY}."):
            assert LAYERS[part(name)] <= LAYERS[own], f"{dotted(path)} imports {name}"
            assert BESIDE.get(own) != part(name), f"{dotted(path)} imports {name}, beside it"


@pytest.mark.parametrize("path", LIBRARY_FILES, ids=dotted)
def test_nothing_of_the_rest_is_imported(path: Path) -> None:
    foreign = [name for name in imports(path) if name.split(".")[0] in ("conformance", "impl")]
    assert [name for name in foreign if not name.startswith(LIBRARY)] == []


def test_no_import_goes_in_a_circle() -> None:
    graph = {dotted(path): set(imports(path)) - {dotted(path)} for path in LIBRARY_FILES}
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("path", CALLERS, ids=dotted)
def test_callers_come_through_a_door(path: Path) -> None:
    used = {name for name in imports(path) if name.startswith(LIBRARY)}
    assert used <= DOORS | INSIDE


def test_every_name_of_the_front_door_is_there() -> None:
    assert all(getattr(conformance.tla, name) is not None for name in conformance.tla.__all__)
    assert set(conformance.tla.__all__) == set(conformance.tla._HOME)


def test_the_errors_alone_load_nothing_else() -> None:
    code = "import sys, conformance.tla.errors; print(*(m for m in sys.modules if '.tla.' in m))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["conformance.tla.errors"]


@pytest.mark.parametrize("door", sorted(DOORS - {f"{LIBRARY}.arrow"}))
def test_a_door_needs_neither_arrow_nor_spark(door: str) -> None:
    names = "from conformance.tla import *" if door == LIBRARY else f"import {door}"
    code = f"import sys; {names}; print(*(m for m in ('pyarrow', 'pyspark') if m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
