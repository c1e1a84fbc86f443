"""Each statement of a .cfg counts in the verdict, or the verdict says that it does not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load
from conformance.stages import python_engine
from conformance.tla.front.config import _NOT_OURS, _SECTIONS
from conformance.tla.search import SearchLimits

pytestmark = pytest.mark.tlc

MODULE = r"""---- MODULE Own ----
EXTENDS Integers, TLC
CONSTANTS N, P
VARIABLES x, y
Init == x = 0 /\ y \in P
Late == x = 2 /\ y \in P
Next == x < N /\ x' = x + 1 /\ y' = y
Twice == x + 2 <= N /\ x' = x + 2 /\ y' = y
Spec == Init /\ [][Next]_<<x, y>>
Low == x < 2
Slow == x' < 3
Still == [][x' = x]_x
Swaps == Permutations(P)
Never == x = 77
Often == []<>(x = 0)
One == [n |-> x]
Seen == y
Counts == x >= 0
====
"""
P = "P = {p, q}"
BASE = {
    "INIT": "INIT Init",
    "NEXT": "NEXT Next",
    "CHECK_DEADLOCK": "CHECK_DEADLOCK FALSE",
    "CONSTANT": f"CONSTANT N = 3 {P}",
    "INVARIANT": "INVARIANT Counts",  # without a formula nothing would be judged
}
ALL = "holds, 8 distinct states"


def counted(number: int) -> tuple[int, str]:
    return 0, f"holds, {number} distinct states"


def unchecked(entry: str) -> tuple[int, str]:
    return 3, f"{ALL}; not checked: {entry}"


def unfollowed(entry: str) -> tuple[int, str]:
    return 0, f"{entry} is left out"


STATEMENTS = {
    "CONSTANT": (f"CONSTANT N = 1 {P}", counted(4)),
    "CONSTANTS": (f"CONSTANTS N = 1 {P}", counted(4)),
    "SPECIFICATION": ("SPECIFICATION Spec", counted(8)),
    "INIT": ("INIT Late", counted(4)),
    "NEXT": ("NEXT Twice", counted(4)),
    "INVARIANT": ("INVARIANT Low", (1, "Low")),
    "INVARIANTS": ("INVARIANTS Low", (1, "Low")),
    "PROPERTY": ("PROPERTY Still", (1, "Still")),
    "PROPERTIES": ("PROPERTIES Still", (1, "Still")),
    "CONSTRAINT": ("CONSTRAINT Low", counted(4)),
    "CONSTRAINTS": ("CONSTRAINTS Low", counted(4)),
    "ACTION_CONSTRAINT": ("ACTION_CONSTRAINT Slow", counted(6)),
    "ACTION_CONSTRAINTS": ("ACTION_CONSTRAINTS Slow", counted(6)),
    "SYMMETRY": ("SYMMETRY Swaps", counted(4)),
    "VIEW": ("VIEW Seen", counted(2)),
    "CHECK_DEADLOCK": ("CHECK_DEADLOCK TRUE", (1, "deadlock")),
    "POSTCONDITION": ("POSTCONDITION Never", unchecked("POSTCONDITION Never")),
    "POSTCONDITIONS": ("POSTCONDITIONS Never", unchecked("POSTCONDITION Never")),
    "_POSSIBLE": ("_POSSIBLE Never", unchecked("_POSSIBLE Never")),
    "_PERIODIC": ("_PERIODIC Never", unchecked("_PERIODIC Never")),
    "ALIAS": ("ALIAS One", unfollowed("ALIAS One")),
    "_RL_REWARD": ("_RL_REWARD One", unfollowed("_RL_REWARD One")),
    "TYPE": ("TYPE Low", (2, "TYPE is not supported")),
    "TYPE_CONSTRAINT": ("TYPE_CONSTRAINT Low", (2, "TYPE_CONSTRAINT is not supported")),
}


@pytest.mark.parametrize("keyword", STATEMENTS)
def test_it_counts_or_is_named(
    keyword: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement, (code, said) = STATEMENTS[keyword]
    base = dict(BASE)
    for replaced in ("INIT", "NEXT") if keyword == "SPECIFICATION" else (keyword.rstrip("S"),):
        base.pop(replaced, None)
    monkeypatch.chdir(tmp_path)
    Path("Own.tla").write_text(MODULE)
    Path("Own.cfg").write_text("\n".join([*base.values(), statement]))
    result = CliRunner().invoke(load("check"), ["Own.tla", "--engine", "python"])
    output = " ".join(result.output.split())
    assert (result.exit_code, said in output) == (code, True), output


def test_a_property_that_is_given_up_leaves_the_verdict_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = partial(SearchLimits, behaviour_steps=3)
    monkeypatch.setattr(python_engine, "SearchLimits", few)
    monkeypatch.chdir(tmp_path)
    Path("Own.tla").write_text(MODULE)
    Path("Own.cfg").write_text("\n".join([*BASE.values(), "PROPERTY Often"]))
    result = CliRunner().invoke(load("check"), ["Own.tla", "--engine", "python"])
    output = " ".join(result.output.split())
    assert result.exit_code == 3
    assert f"{ALL}; not checked: PROPERTY Often" in output
    assert "PROPERTY Often is left out: the states and the property have more than 3" in output


def test_every_statement_has_its_test_and_its_row() -> None:
    assert set(STATEMENTS) == {*_SECTIONS, *_NOT_OURS}
    page = (Path(__file__).parents[3] / "docs" / "tla-support.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("|")]
    assert not [name for name in STATEMENTS if not any(f"`{name}`" in row for row in rows)]
