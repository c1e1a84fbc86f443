"""Class files that can be initialized again: which are rewritten, and what becomes of them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from conformance.modelcheck.restartable import RESTART, restartable, write_restartable
from conformance.tla import find_tools


@pytest.fixture(scope="module")
def jar() -> zipfile.ZipFile:
    return zipfile.ZipFile(find_tools().jar)


@pytest.mark.parametrize(
    ("name", "rewritten"),
    [
        ("util/UniqueString", True),
        ("tlc2/TLCGlobals", True),
        pytest.param("tlc2/tool/ToolGlobals", True, id="an interface with constants made at start"),
        pytest.param("tlc2/TLC$RunMode", False, id="an enum"),
        pytest.param("tlc2/tool/CallStack", False, id="a class without static fields"),
        pytest.param("tlc2/output/EC", False, id="constants of the compiler's alone"),
    ],
)
def test_classes_with_state_are_rewritten(
    jar: zipfile.ZipFile, name: str, *, rewritten: bool
) -> None:
    given = jar.read(f"{name}.class")
    assert (restartable(given) != given) is rewritten
    assert (b"$restart" in restartable(given)) is rewritten


def test_an_older_class_file_is_refused(jar: zipfile.ZipFile) -> None:
    given = jar.read("util/UniqueString.class")
    older = given[:6] + (50).to_bytes(2) + given[8:]
    with pytest.raises(ValueError, match="version 50: 51 is needed"):
        restartable(older)


def test_all_else_of_the_jar_is_kept(jar: zipfile.ZipFile, tmp_path: Path) -> None:
    written = tmp_path / "restartable.jar"
    write_restartable(Path(str(jar.filename)), written)
    with zipfile.ZipFile(written) as copy:
        assert copy.namelist() == [*jar.namelist(), f"{RESTART.replace('.', '/')}.class"]
        others = [name for name in jar.namelist() if not name.endswith(".class")]
        assert others
        assert [copy.read(name) for name in others] == [jar.read(name) for name in others]
