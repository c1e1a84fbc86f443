"""`kconform check` takes the modules and configurations that plain TLC takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load

pytestmark = pytest.mark.tlc

COUNTER = r"""
VARIABLE x
LOCAL Init == x = 0
LOCAL Next == x' = (x + 1) % 3
Spec == Init /\ [][Next]_x /\ WF_x(Next)
Few == 0 .. 1
Safe == x < 3 /\ 5 \notin Nat
Live == x = 0 /\ [][x' # x]_x /\ []<>(x = 0)
Free == Init /\ [][Next]_x
Ends == <>[](x = 0)
Moves == []<>(x = 2)
"""


@dataclass(frozen=True)
class Case:
    body: str
    config: str
    tlc: tuple[int, str]
    python: tuple[int, str]


HOLDS = (0, "holds, 3 distinct states")
CASES = {
    "local": Case(
        COUNTER, "CONSTANTS Nat <- Few a1 = a1\nINIT Init NEXT Next INVARIANT Safe", HOLDS, HOLDS
    ),
    "temporal": Case(
        COUNTER,
        "CONSTANT Nat <- Few\nSPECIFICATION Spec INVARIANT Safe PROPERTY Live",
        HOLDS,
        HOLDS,
    ),
    "temporal, a cycle": Case(
        COUNTER,
        "CONSTANT Nat <- Few\nSPECIFICATION Spec PROPERTY Ends",
        (1, "it goes round for ever, back to step 0."),
        (1, "This is the state of step 0 again: it goes round for ever."),
    ),
    "temporal, nothing moves": Case(
        COUNTER,
        "CONSTANT Nat <- Few\nSPECIFICATION Free PROPERTY Moves",
        (1, "From here nothing needs to happen any more (stuttering)."),
        (1, "From here nothing needs to happen any more (stuttering)."),
    ),
    "assumptions": Case(
        "ASSUME 1 + 1 = 2",
        "",
        (0, "the assumptions hold; there are no behaviours"),
        (0, "the assumptions hold; there are no behaviours"),
    ),
    "operators written with signs": Case(
        r"""
VARIABLE x
a \oplus b == a
Nine(a, b) == 9
Safe == <<1 + 2, 1 \oplus 2, 5 - 2>> = <<9, 9, 10>>
Init == x = 0
Next == x' \in {0, 1}
""",
        r"CONSTANT + <- [Naturals]Nine \oplus <- Nine - <- * INIT Init NEXT Next "
        "INVARIANT Safe",
        (0, "holds, 2 distinct states"),
        (0, "holds, 2 distinct states"),
    ),
    "an operator that the generated text uses": Case(
        r"""
VARIABLE x
Nine(a, b) == {9}
Safe == [i \in 1..2 |-> i][9] = 9 /\ x \in 1..3
Init == x = 9
Next == \E y \in 1..3 : x' = y
""",
        r"CONSTANT .. <- Nine INIT Init NEXT Next INVARIANT Safe",
        (0, "holds, 1 distinct state"),
        (0, "holds, 1 distinct state"),
    ),
    "an operator of the language": Case(
        "VARIABLE x\nMy(a, b) == TRUE\nInit == x = 0\nNext == UNCHANGED x",
        r"CONSTANT \in <- My",
        (2, r"names \in, which the module Own does not have"),
        (2, r"names \in, which the module Own does not have"),
    ),
    "another spelling": Case(
        "VARIABLE x\na (+) b == a\nMy(a, b) == TRUE\nInit == x = 0\nNext == UNCHANGED x",
        "CONSTANT (+) <- My",
        (2, r"Did you mean \oplus?"),
        (2, r"Did you mean \oplus?"),
    ),
    "a postcondition": Case(
        COUNTER + "Counted == Safe\n",
        "INIT Init NEXT Next INVARIANT Safe CONSTANT Nat <- Few POSTCONDITION Counted",
        (3, "holds, 3 distinct states; not checked: POSTCONDITION Counted"),
        (3, "holds, 3 distinct states; not checked: POSTCONDITION Counted"),
    ),
    "a postcondition that is not there": Case(
        COUNTER,
        "INIT Init NEXT Next INVARIANT Safe CONSTANT Nat <- Few POSTCONDITION Count",
        (2, "`POSTCONDITION` names Count, which the module Own does not have"),
        (2, "`POSTCONDITION` names Count, which the module Own does not have"),
    ),
    "nothing": Case(
        "Two == 2", "", (2, "there is nothing to check"), (2, "there is nothing to check")
    ),
}


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_checked(
    case: Case, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KCONFORM_CACHE", str(tmp_path / "cache"))
    text = f"---- MODULE Own ----\nEXTENDS Integers\n{case.body}\n====\n"
    Path("Own.tla").write_text(text)
    Path("Own.cfg").write_text(case.config + "\nALIAS Shown\n")
    result = CliRunner().invoke(load("check"), ["Own.tla", "--engine", engine])
    code, said = case.tlc if engine == "tlc" else case.python
    output = " ".join(result.output.split())
    assert (result.exit_code, said in output) == (code, True), output
    assert "ALIAS Shown is left out" in output or code == 2


ASSUMED = """---- MODULE Own ----
EXTENDS Integers
CONSTANT N
VARIABLE x
ASSUME Small == N < 3
ASSUME \\A i \\in 1..N : i < 5 /\\
          i # 2
Init == x = 0
Next == x' = x
====
"""
"""An assumption with a name, and one without."""


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize(
    ("constant", "key", "title", "place", "why"),
    [
        (4, "Small:violated", "the assumption Small is false", "Own.tla:5:1", "N is 4"),
        (2, "ASSUME:violated", "the ASSUME at Own:6:1 is false", "Own.tla:6:1", "i # 2 is FALSE"),
    ],
    ids=["named", "nameless"],
)
def test_a_false_assumption_is_a_finding_with_its_reason(
    engine: str,
    constant: int,
    key: str,
    title: str,
    place: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KCONFORM_CACHE", str(tmp_path / "cache"))
    Path("Own.tla").write_text(ASSUMED)
    Path("Own.cfg").write_text(f"CONSTANT N = {constant}\nINIT Init\nNEXT Next\n")
    result = CliRunner().invoke(load("check"), ["Own.tla", "--engine", engine, "--json"])
    (finding,) = json.loads(result.stdout)["findings"]
    assert result.exit_code == 1
    assert (finding["key"], finding["location"]) == (key, place)
    assert finding["title"] == f"Own: {title}"
    assert any(why in line for line in finding["story"])
