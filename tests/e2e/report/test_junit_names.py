"""CI follows a test case by its name: it is the same in whatever folder the reports go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest


def names_of(folder: Path) -> list[tuple[str | None, str | None]]:
    """The class and name of each test case of a small gate whose reports go to this folder."""
    command = f"gate delayed/cancelled-key --traces 20 --no-canary -o {folder}"
    subprocess.run(
        [sys.executable, "-m", "conformance.cli", *command.split()],
        capture_output=True,
        check=False,
        cwd=folder.parent,
    )
    cases = ET.parse(folder / "junit.xml").iter("testcase")
    return sorted((case.get("classname"), case.get("name")) for case in cases)


@pytest.mark.tlc
def test_the_names_do_not_depend_on_the_output_folder(tmp_path: Path) -> None:
    one, other = names_of(tmp_path / "one"), names_of(tmp_path / "other")

    assert one == other
    assert ("kconform.audit", "delayed/cancelled-key") in one
    assert len(one) >= 7
    assert not [name for _, name in one if str(tmp_path) in str(name)]
