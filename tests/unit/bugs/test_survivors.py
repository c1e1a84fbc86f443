"""Survivors with a reason: found again by the text of their line, not by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.bugs.mutants import mutants_of
from conformance.bugs.survivors import function_at, read_survivors
from conformance.errors import UserError
from conformance.resources import resource_root

LISTED = """
[[survivor]]
file = "a.py"
function = "f"
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
    elsewhere = text.replace("f(", "g(")
    assert not any(reasons.of(one, elsewhere) for one in mutants_of("a.py", elsewhere))
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


def test_every_reason_that_is_shipped_is_of_a_mutant_that_there_is() -> None:
    listed = read_survivors().by_change
    package = resource_root() / "impl"
    found = set()
    for file in {change[0] for change in listed}:
        text = (package / file).read_text(encoding="utf-8")
        found |= {
            (file, function_at(text, one.line), text.splitlines()[one.line - 1].strip(), one.kind)
            for one in mutants_of(file, text)
        }
    assert {change[:4] for change in listed} <= found
