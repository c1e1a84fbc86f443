"""Mutants of a text: which there are, which are not made, and what a run of them is told as."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.bugs.mutants import LOCK, Mutant, differs, draw, mutants_of, named
from conformance.bugs.reach import (
    ReachOfEachTest,
    Statement,
    StatementReach,
    note_reached,
    statements_of,
)
from conformance.bugs.scope import changed_files, files_of, systems_of
from conformance.errors import DataError, UserError
from conformance.resources import resource_root

IMPL = resource_root() / "impl"
FUNCTION = """\
def f(a):
    if a > 1:
        a += 1
    return a - 1
"""


def changes(text: str) -> set[tuple[str, str]]:
    """Kind, and the whole text after the change."""
    return {(one.kind, one.apply(text)) for one in mutants_of("a.py", text) if differs(one, text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b < c\n", {("comparison", "a = b <= c\n")}),
        ("a = b is not c\n", {("comparison", "a = b is c\n")}),
        ("a = b not in c\n", {("comparison", "a = b in c\n")}),
        ("a = b + c\n", {("operator", "a = b - c\n")}),
        ("a = min(b)\n", {("operator", "a = max(b)\n")}),
        ("a = b and c\n", {("operator", "a = b or c\n")}),
        ("a = not b\n", {("not removed", "a = (b)\n")}),
        ("a = 1\n", {("constant", "a = 2\n")}),
        ("a = True\n", {("constant", "a = False\n")}),
        ("a = f(b, c)\n", {("arguments swapped", "a = f(c, b)\n")}),
        ("self.a = b\n", {("statement removed", "pass\n")}),
        ("a += b\n", {("statement removed", "pass\n")}),
        ("if a:\n    b()\n", {
            ("condition negated", "if not (a):\n    b()\n"),
            ("statement removed", "if a:\n    pass\n"),
        }),
        ("with self._lock:\n    a = b\n", {
            (LOCK, "if True:\n    with self._lock:\n        pass\n    a = b\n"),
        }),
        ("ä = 'ö' + b\n", {("operator", "ä = 'ö' - b\n")}),
    ],
)  # fmt: skip
def test_every_kind_changes_exactly_its_place(text: str, expected: set[tuple[str, str]]) -> None:
    assert changes(text) == expected


def test_without_its_lock_a_section_can_be_entered_before_each_of_its_statements() -> None:
    text = (
        "def f():\n    with self.lock:\n        # why\n        for a in b:\n            c = a\n"
        "        return a\n"
    )
    (unlocked,) = [one for one in mutants_of("a.py", text) if one.kind == LOCK]
    assert unlocked.apply(text).splitlines() == [
        "def f():",
        "    if True:",
        "        # why",
        "        with self.lock:",
        "            pass",
        "        for a in b:",
        "            with self.lock:",
        "                pass",
        "            c = a",
        "        with self.lock:",
        "            pass",
        "        return a",
    ]
    assert str(unlocked) == "a.py:2 lock removed: 'with self.lock' before '# why'"


@pytest.mark.parametrize(
    "text",
    [
        "import a\n",
        "_log.warning('a', 1, 2)\n",
        "raise Error(a, 1 + 2)\n",
        "class A(Protocol):\n    def f(self) -> int:\n        return 1\n",
        "def f(a: 'x' = None) -> None:\n    '''Text.'''\n",
        "a = f(b, b)\n",
    ],
)
def test_what_nobody_could_see_is_not_made(text: str) -> None:
    assert changes(text) == set()


def test_a_longer_draw_begins_with_a_shorter_one_of_its_seed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = b < c\nd = e + 1\nif f:\n    g(h, 2)\n")
    short = draw(tmp_path, ["a.py"], 2, seed=3)
    every = draw(tmp_path, ["a.py"], 100, seed=3)
    assert every.mutants[:2] == short.mutants
    assert len(every.mutants) == short.population
    assert draw(tmp_path, ["a.py"], 100, seed=4).mutants != every.mutants


def test_a_mutant_is_found_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(FUNCTION)
    every = mutants_of("a.py", FUNCTION)
    wanted = [every[2].id, every[0].id]
    assert [one.id for one in named(tmp_path, wanted)] == wanted
    for unknown in (f"{every[0].id}0", every[0].id.replace("a.py", "b.py"), ""):
        with pytest.raises(UserError, match="There is no mutant"):
            named(tmp_path, [unknown])


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, list[Mutant]]]:
    """A package with notes, importable as `noted`, and the mutants of its module `a`."""
    package = tmp_path / "noted"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = (
        '"""Text."""\n\nfrom __future__ import annotations\n\nONE = 1\n"""Of a constant."""\n\n\n'
        + FUNCTION
    )
    (package / "a.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield package, mutants_of("a.py", text)
    for name in [name for name in sys.modules if name.partition(".")[0] == "noted"]:
        del sys.modules[name]


def test_a_copy_notes_which_statements_each_test_runs(noted: tuple[Path, list[Mutant]]) -> None:
    package, mutants = noted
    statements = statements_of(package.parent, ["noted/a.py"])
    statements = tuple(Statement("a.py", one.start) for one in statements)
    lines = {Statement(one.file, one.statement): one.line for one in mutants}
    note_reached(package, statements)
    function = importlib.import_module("noted.a").f
    noting = ReachOfEachTest("noted", len(statements))
    for argument, result in ((1, 0), (2, 2)):
        noting.begin()
        assert function(argument) == result
        noting.end()
    content = noting.reach().to_bytes()
    reach = StatementReach.from_bytes(content, len(statements))
    by_line = {lines[one]: reach.tests(number) for number, one in enumerate(statements)}
    assert by_line == {5: [0, 1], 10: [0, 1], 11: [1], 12: [0, 1]}, "what imports run, all run"
    assert reach.statements == frozenset(range(len(statements)))
    with pytest.raises(DataError, match="no notes of 90 statements"):
        StatementReach.from_bytes(content, 90)


def test_nothing_reaches_nothing() -> None:
    assert len(StatementReach.of_nothing()) == 0
    assert StatementReach.of_nothing().statements == frozenset()


def test_a_systems_files_are_those_that_its_adapter_imports() -> None:
    controller = files_of("controller", IMPL)
    assert {"controller/request_batch.py", "replica_manager.py", "log.py"} <= controller
    assert "group/group_coordinator.py" not in controller
    # An adapter that is built on another one runs what that one runs.
    assert files_of("replication", IMPL) < files_of("acknowledgement", IMPL)
    systems = ["controller", "group", "replication"]
    assert systems_of(["controller/context.py"], IMPL, systems) == ["controller"]
    assert systems_of(["partition.py"], IMPL, systems) == ["controller", "replication"]
    assert systems_of(["log.py"], IMPL, systems) == systems
    assert systems_of(["group/join_group.py"], IMPL, systems) == ["group"]


def test_changed_files_are_those_that_differ_or_are_gone(tmp_path: Path) -> None:
    for folder in ("clean", "copy"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text("a\n")
        (tmp_path / folder / "other.py").write_text(folder)
    (tmp_path / "clean" / "gone.py").write_text("")
    assert changed_files(tmp_path / "copy", tmp_path / "clean") == ["gone.py", "other.py"]
