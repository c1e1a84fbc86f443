"""Catalogues of faults: what is read, what is refused, and that the built-in ones fit today."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import pytest

from conformance.bugs.fault import (
    Fault,
    Patch,
    built_in_catalogues,
    choose,
    copied,
    load_catalogue,
    patched_by_file,
    relocated,
)
from conformance.errors import UserError
from conformance.modelcheck.manifest import find_models
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


def a_fault(*patches: Patch) -> Fault:
    return Fault("X1", "KAFKA-1", "a fault", ("seq",), patches)


def built_in() -> list[Fault]:
    found = [fault for path in built_in_catalogues() for fault in load_catalogue(path).faults]
    assert found
    return found


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
        pytest.param("system = ", "is no catalogue of faults", id="no TOML"),
        pytest.param(ONE_FAULT.replace("seq", "odd"), "is no catalogue of faults", id="a tag"),
        pytest.param(ONE_FAULT + "when = 1\n", "is no catalogue of faults", id="a key"),
        pytest.param(ONE_FAULT.replace("jira", "issue"), "is no catalogue", id="missing key"),
        pytest.param(
            ONE_FAULT + ONE_FAULT[ONE_FAULT.index("[[fault]]") :], "X1 stands twice", id="an id"
        ),
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


def test_chooses_by_id() -> None:
    one, two = a_fault(), Fault("X2", "KAFKA-2", "another", ("seq",), ())

    assert choose([one, two], []) == [one, two]
    assert choose([one, two], ["X2"]) == [two]
    with pytest.raises(UserError, match=r"no fault X3\. Known: X1, X2"):
        choose([one, two], ["X3"])


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
        pytest.param(Patch("no.py", "a", "b"), "which does not exist", id="no such file"),
        pytest.param(Patch("clock.py", "no such text", "b"), "0 times", id="no such text"),
        pytest.param(Patch("clock.py", "import", "b"), "times instead of once", id="not unique"),
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


def clock_diff(before: str = "") -> str:
    clock = (resource_root() / "impl" / "clock.py").read_text()
    return diff_of("impl/clock.py", before + clock, "# faulty\n" + clock)


def test_a_users_diff_is_applied_to_the_copy(tmp_path: Path) -> None:
    diff = tmp_path / "my.diff"
    diff.write_text(clock_diff())

    with patched_by_file(diff) as folder:
        assert (folder / "impl" / "clock.py").read_text().startswith("# faulty\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "There is no patch", id="no such file"),
        pytest.param("nonsense\n", "does not apply", id="no diff"),
        pytest.param(clock_diff("# elsewhere\n"), "does not apply", id="another version"),
        pytest.param(diff_of("docs/new.md", "", "a\n"), "changes nothing", id="not of impl"),
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
        assert [found.feeds_suite for found in find_models([model])] == [True]
    for test in fault.unseen.tests if fault.unseen else ():
        file, _, function = test.partition("::")
        assert f"def {function}(" in (resource_root() / file).read_text()


def test_every_row_of_the_replication_bugs_is_there() -> None:
    numbers = (
        "1 2 4 5 7 8 10 11 13 14 16 17 19 20 22 23 25 26 28 29 31 32 34 35 37 38 40 41 43 44 46 47"
    )
    wanted = {f"A{number}" for number in numbers.split()}

    assert wanted <= {fault.id for fault in built_in()}
