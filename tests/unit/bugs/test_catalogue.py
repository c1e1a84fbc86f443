"""Catalogues of faults: what is read, what is refused, and that the built-in ones fit today."""

from __future__ import annotations

import ast
import difflib
import re
from pathlib import Path

import pytest

from conformance.bugs.diffs import _Hunk
from conformance.bugs.fault import (
    BlindSpot,
    Catalogue,
    Fault,
    InapplicableBug,
    Patch,
    built_in_catalogues,
    copied,
    load_catalogue,
    patched_by_file,
    relocated,
    select,
)
from conformance.errors import UserError
from conformance.modelcheck.manifest import find_models
from conformance.registry import BUILT_IN
from conformance.resources import resource_root

ONE_FAULT = """
system = "replication"
models = ["a", "b.toml"]

[[fault]]
id = "X1"
jira = "KAFKA-1"
title = "one is two"
tags = ["seq"]

[[fault.patches]]
file = "clock.py"
old = "one"
new = "two"
"""
UNSEEN = """
[fault.unseen]
reason = "a number"
tests = ["tests/test_numbers.py::test_one"]
"""
NOT_APPLICABLE = """
[[not_applicable]]
id = "X2"
jira = "KAFKA-2"
title = "three is four"
reason = "there is no three"
"""


def a_fault(*patches: Patch) -> Fault:
    return Fault("X1", "KAFKA-1", "a fault", ("seq",), patches)


def built_in() -> list[Fault]:
    found = [fault for catalogue in catalogues() for fault in catalogue.faults]
    assert found
    return found


def catalogues() -> list[Catalogue]:
    return [load_catalogue(path) for path in built_in_catalogues()]


def test_reads_a_catalogue(tmp_path: Path) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(ONE_FAULT)

    catalogue = load_catalogue(file)

    assert (catalogue.system, catalogue.models) == ("replication", ("a", str(tmp_path / "b.toml")))
    assert catalogue.faults == (
        Fault("X1", "KAFKA-1", "one is two", ("seq",), (Patch("clock.py", "one", "two"),)),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("system = ", "is not a catalogue of faults", id="no TOML"),
        pytest.param(ONE_FAULT.replace("seq", "odd"), "is not a catalogue of faults", id="a tag"),
        pytest.param(ONE_FAULT + "when = 1\n", "is not a catalogue of faults", id="a key"),
        pytest.param(ONE_FAULT.replace("jira", "issue"), "is not a catalogue", id="missing key"),
        pytest.param(
            ONE_FAULT + ONE_FAULT[ONE_FAULT.index("[[fault]]") :], "X1 stands twice", id="an id"
        ),
        pytest.param(
            ONE_FAULT + NOT_APPLICABLE.replace("X2", "X1"),
            "X1 stands twice",
            id="an id that is not applicable",
        ),
        pytest.param(
            'short = ["X2"]' + ONE_FAULT + NOT_APPLICABLE,
            "`short` names X2",
            id="short, not a fault",
        ),
        pytest.param('short = ["X1"]' + ONE_FAULT + UNSEEN, "`short` names X1", id="short, unseen"),
    ],
)
def test_refuses_what_is_no_catalogue(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(text)

    with pytest.raises(UserError, match=message):
        load_catalogue(file)


def test_refuses_a_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_catalogue(tmp_path / "faults.toml")


def two_catalogues() -> list[Catalogue]:
    """One with X1, X2 and X3, which the spec does not see; one with Y1, and Y2 beyond it."""
    two = Fault("X2", "KAFKA-2", "another", ("seq",), ())
    three = Fault("X3", "KAFKA-3", "a metric", ("seq",), (), unseen=BlindSpot("a metric", ("t",)))
    other = Fault("Y1", "KAFKA-4", "of another system", ("seq",), ())
    beyond = InapplicableBug("Y2", "KAFKA-5", "of a conversion", "there is none")
    return [
        Catalogue("one", (), (a_fault(), two, three), short=("X2",)),
        Catalogue("other", (), (other,), not_applicable=(beyond,)),
    ]


@pytest.mark.parametrize(
    ("ids", "short", "faults", "not_applicable"),
    [
        pytest.param([], False, ["X1", "X2", "X3", "Y1"], ["Y2"], id="all"),
        pytest.param(["Y1", "X3"], False, ["X3", "Y1"], [], id="by id"),
        pytest.param([], True, ["X2", "Y1"], [], id="short"),
        pytest.param(["X1", "X3"], True, ["X1"], [], id="short by id"),
    ],
)
def test_selects_faults(
    ids: list[str], short: bool, faults: list[str], not_applicable: list[str]
) -> None:
    selected = select(two_catalogues(), ids, short=short)

    assert [fault.id for one in selected for fault in one.faults] == faults
    assert [bug.id for one in selected for bug in one.not_applicable] == not_applicable
    assert all(one.faults for one in selected)


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("X9", r"no fault X9\. Known: X1, X2, X3, Y1"),
        ("Y2", r"Y2 \(KAFKA-5\) cannot be put into this implementation, as there is none"),
    ],
)
def test_refuses_to_select_what_is_no_fault(id: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        select(two_catalogues(), [id])


def test_the_faulty_copy_differs_in_the_patch_alone() -> None:
    old = "import time\n"
    fault = a_fault(Patch("clock.py", old, "import time  # faulty\n"))

    with copied() as clean, relocated(fault) as faulty:
        sources = {path.relative_to(clean) for path in clean.rglob("*.py")}
        differing = [
            str(path)
            for path in sources
            if (clean / path).read_text() != (faulty / path).read_text()
        ]
        assert {path.relative_to(faulty) for path in faulty.rglob("*.py")} == sources
    assert differing == ["impl/clock.py"]
    assert not faulty.exists()


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(Patch("no.py", "a", "b"), "this file does not exist", id="no such file"),
        pytest.param(Patch("clock.py", "no such text", "b"), "0 times", id="no such text"),
        pytest.param(Patch("clock.py", "import", "b"), "times in place of once", id="not unique"),
        pytest.param(
            Patch("clock.py", "import time\n", "import time\n"), "changes nothing", id="no change"
        ),
    ],
)
def test_a_patch_that_puts_in_no_fault_is_refused(patch: Patch, message: str) -> None:
    with pytest.raises(UserError, match=message), relocated(a_fault(patch)):
        pass


def diff_of(file: str, before: str, after: str) -> str:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"a/{file}", f"b/{file}"))


def clock_lines(number: int) -> str:
    clock = (resource_root() / "impl" / "clock.py").read_text()
    return "".join(clock.splitlines(keepends=True)[:number])


def clock_diff(before: str = "", after: str = "") -> str:
    clock = (resource_root() / "impl" / "clock.py").read_text()
    return diff_of("impl/clock.py", before + clock, "# faulty\n" + clock + after)


NEW_PAGE = """--- /dev/null
+++ b/docs/new.md
@@ -0,0 +1 @@
+a
"""


def test_a_users_diff_is_applied_to_the_copy(tmp_path: Path) -> None:
    diff = tmp_path / "my.diff"
    diff.write_text(clock_diff())

    with patched_by_file(diff) as folder:
        assert (folder / "impl" / "clock.py").read_text().startswith("# faulty\n")


@pytest.mark.parametrize("moved", [-30, -1, 0, 1, 2, 500])
def test_a_hunk_is_taken_where_its_lines_stand_now(tmp_path: Path, moved: int) -> None:
    clock = (resource_root() / "impl" / "clock.py").read_text()
    last = clock.splitlines(keepends=True)[-1]
    diff = diff_of("impl/clock.py", clock, clock.removesuffix(last) + "# faulty\n")
    line = int(diff.partition("@@ -")[2].partition(",")[0])
    file = tmp_path / "my.diff"
    file.write_text(diff.replace(f"@@ -{line},", f"@@ -{max(1, line + moved)},"))

    with patched_by_file(file) as folder:
        assert (folder / "impl" / "clock.py").read_text().endswith("# faulty\n")


def test_of_equal_places_a_hunk_takes_the_nearest(tmp_path: Path) -> None:
    hunk = _Hunk(line=6, old=("a",), new=("b",))
    assert hunk.place(list("axxxaxxxxxa"), moved=0) == 4
    assert hunk.place(list("axxxaxxxxxa"), moved=3) == 10


@pytest.mark.parametrize("prefix", ["a/", "", "some/checkout/", "/old/"])
def test_a_diff_may_call_what_is_above_the_package_as_it_likes(tmp_path: Path, prefix: str) -> None:
    file = tmp_path / "my.diff"
    file.write_text(clock_diff().replace("a/impl", f"{prefix}impl").replace("b/impl", "new/impl"))

    with patched_by_file(file) as folder:
        assert (folder / "impl" / "clock.py").read_text().startswith("# faulty\n")


def test_a_diff_may_change_tests_of_the_package_too(tmp_path: Path) -> None:
    file = tmp_path / "my.diff"
    file.write_text(clock_diff() + diff_of("tests/unit/impl/test_clock.py", "b\n", "a\n"))

    with patched_by_file(file) as folder:
        assert (folder / "impl/clock.py").read_text().startswith("# faulty\n")


def test_a_diff_may_add_and_remove_files(tmp_path: Path) -> None:
    file = tmp_path / "my.diff"
    added = NEW_PAGE.replace("docs/new.md", "impl/new.py")
    clock = (resource_root() / "impl" / "clock.py").read_text()
    removed = diff_of("impl/clock.py", clock, "").replace("+++ b/impl/clock.py", "+++ /dev/null")
    file.write_text(added + removed)

    with patched_by_file(file) as folder:
        assert (folder / "impl" / "new.py").read_text() == "a\n"
        assert not (folder / "impl" / "clock.py").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "cannot be read", id="no such file"),
        pytest.param("nonsense\n", "is no unified diff", id="no diff"),
        pytest.param(clock_diff("# elsewhere\n"), "does not apply", id="another version"),
        pytest.param(diff_of("docs/no.md", "b\n", "a\n"), "changes nothing", id="not of impl"),
        pytest.param(diff_of("impl/no.py", "b\n", "a\n"), "no such file", id="no such file here"),
        pytest.param(
            re.sub(r"^@@ -[2-9]", "@@ -x", clock_diff(after="# faulty too\n"), flags=re.MULTILINE),
            "is damaged: 2 of its lines begin a hunk",
            id="a hunk that cannot be read",
        ),
        pytest.param(
            clock_diff() + "Binary files a/impl/errors.py and b/impl/errors.py differ\n",
            "as a binary file",
            id="binary",
        ),
        pytest.param(
            "diff --git a/impl/x.py b/impl/x.py\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZ\n\n"
            + clock_diff(),
            "as a binary file",
            id="git binary",
        ),
        pytest.param(
            diff_of("impl/clock.py", "", "a\n").replace("--- a/impl/clock.py", "--- /dev/null"),
            "Has it been applied already",
            id="a new file that is there",
        ),
        pytest.param(
            diff_of("impl/clock.py", clock_lines(3), "").replace(
                "+++ b/impl/clock.py", "+++ /dev/null"
            ),
            "has other lines",
            id="the removal of another text",
        ),
        pytest.param(NEW_PAGE, "changes nothing", id="a new file elsewhere"),
    ],
)
def test_a_diff_that_does_not_fit_is_refused(
    tmp_path: Path, text: str | None, message: str
) -> None:
    diff = tmp_path / "my.diff"
    if text is not None:
        diff.write_text(text)

    with pytest.raises(UserError, match=message), patched_by_file(diff):
        pass


@pytest.mark.parametrize("fault", built_in(), ids=lambda fault: fault.id)
def test_a_built_in_fault_fits_todays_implementation(fault: Fault) -> None:
    assert fault.patches
    with relocated(fault) as folder:
        for patch in fault.patches:
            ast.parse((folder / fault.package / patch.file).read_text())


@pytest.mark.parametrize("fault", built_in(), ids=lambda fault: fault.id)
def test_what_a_built_in_fault_names_exists(fault: Fault) -> None:
    for model in fault.models:
        (found,) = find_models([model])
        assert found.expect is not None
        assert (found.expect.result, found.check.symmetry) == ("holds", "")
    for test in fault.unseen.tests if fault.unseen else ():
        file, *_, function = test.split("::")
        assert f"def {function}(" in (resource_root() / file).read_text()


@pytest.mark.parametrize(
    ("section", "numbers"),
    [
        pytest.param(
            "A",
            "1 2 4 5 7 8 10 11 13 14 16 17 19 20 22 23 25 26 28 29 31 32 34 35 37 38 40 41 43 44 "
            "46 47 48",
            id="replication",
        ),
        pytest.param("B", "1 2 4 5 7 8 10 11 13 14 16 17 19 20", id="purgatory"),
        pytest.param("C", "1 2 4 5 7 8 10 11 12 13 14 15 16", id="controller"),
        pytest.param(
            "D",
            "1 2 4 5 7 8 10 11 13 14 16 17 19 20 22 23 25 26 28 29 31 32 34 35",
            id="group coordinator",
        ),
        pytest.param(
            "E", "1 2 4 5 7 8 10 11 13 14 16 17 19 20 22 23 25 26 28 29", id="group member"
        ),
    ],
)
def test_every_bug_has_one_row(section: str, numbers: str) -> None:
    rows = [fault.id for fault in built_in()]
    rows += [bug.id for catalogue in catalogues() for bug in catalogue.not_applicable]

    wanted = [f"{section}{number}" for number in numbers.split()]
    assert sorted(row for row in rows if row.startswith(section)) == sorted(wanted)


def test_every_system_has_a_catalogue() -> None:
    assert {catalogue.system for catalogue in catalogues()} == set(BUILT_IN)


def test_the_short_bench_has_faults_of_every_system() -> None:
    chosen = {one.system: len(one.faults) for one in select(catalogues(), short=True)}

    assert chosen.keys() == {one.system for one in catalogues()}
    assert min(chosen.values()) >= 1
