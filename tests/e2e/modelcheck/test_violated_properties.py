"""A violated property has its name, its line and its reason, whichever engine finds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tlc

MODULE = """\
---- MODULE Count ----
EXTENDS Naturals
VARIABLE x
Init == x = 0
Next == x' = x + 1 /\\ x < 5
Spec == Init /\\ [][Next]_x
Small == x < 3 /\\ x >= 0
Always == []Small
Grows == [][x' > x /\\ x' # 2]_x
Both == [](x \\in 0..9) /\\ [][x' # 4]_x
====
"""


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("Always", 8, "Count:7:10: x < 3 is FALSE"),
        ("Grows", 9, "Count:9:23: x' # 2 is FALSE"),
        ("Both", 10, "Count:10:30: x' # 4 is FALSE"),
    ],
)
def test_a_violated_property_is_told_with_its_reason(
    tmp_path: Path, engine: str, name: str, line: int, reason: str
) -> None:
    (tmp_path / "Count.tla").write_text(MODULE)
    config = f"SPECIFICATION Spec\nPROPERTY {name}\nCHECK_DEADLOCK FALSE\n"
    (tmp_path / "Count.cfg").write_text(config)
    ended = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "check", "Count.tla", "--engine", engine],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert f"Count: {name} is violated" in ended.stdout
    assert f"formula {name}, Count.tla:{line}:1" in ended.stdout
    assert reason in ended.stdout
