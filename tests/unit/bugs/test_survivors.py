"""Survivors with a reason: found again by the text of their line, not by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.bugs.mutants import mutants_of
from conformance.bugs.survivors import read_survivors
from conformance.errors import UserError

LISTED = """
[[survivor]]
file = "a.py"
line = "return b + 1"
kind = "constant"
new = "2"
reason = "nobody adds"
"""


def test_a_reason_is_of_one_change_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "survivors.toml"
    path.write_text(LISTED)
    reasons = read_survivors(path)
    text = "# a comment that was put in since\ndef f(b):\n    return b + 1\n"
    told = {one.kind: reasons.of(one, text) for one in mutants_of("a.py", text)}
    assert told == {"constant": "nobody adds", "operator": ""}
    assert all(not reasons.of(one, text) for one in mutants_of("b.py", text))


def test_the_list_that_is_shipped_can_be_read() -> None:
    read_survivors()


def test_a_damaged_list_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "survivors.toml"
    path.write_text("[[survivor]]\nfile = 3\n")
    with pytest.raises(UserError, match="no list of survivors"):
        read_survivors(path)
