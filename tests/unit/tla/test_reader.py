"""Modules as SANY understands them: names, places, INSTANCE, and what does not parse."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from conformance.tla import (
    ModelConfig,
    SpecError,
    UnsupportedError,
    bind,
    library_path,
    load_module,
    parse_config,
)
from conformance.tla.front import syntax as s
from tests.unit.tla.small import module, spec

pytestmark = pytest.mark.tlc

INNER = r"""
CONSTANT Step
VARIABLE v
LOCAL Twice == Step * 2
Add == v' = v + Twice
Positive == v > 0
Max(a) == IF a > v THEN a ELSE v
"""

OUTER = r"""
VARIABLES x, y
X == INSTANCE Inner WITH v <- x, Step <- 3
P(w) == INSTANCE Inner WITH v <- w, Step <- w
Q(k) == INSTANCE Inner WITH v <- y, Step <- k
Init == x = 1 /\ y = 5
Next == X!Add /\ Q(10)!Add
Both == X!Positive /\ P(y)!Positive
Largest == <<X!Max(4), P(y)!Max(4)>>
Sum == x + y
S == INSTANCE Inner WITH v <- Sum, Step <- 1
SumPositive == S!Positive
SumEnabled == S!Next
"""


def test_a_folder_that_the_tools_cannot_read_is_named(tmp_path: Path) -> None:
    folder = tmp_path / f"a{os.pathsep}b"
    with pytest.raises(SpecError, match=re.escape(str(folder))):
        library_path(folder / "M.tla", ())


def test_nodes_know_their_place(tmp_path: Path) -> None:
    parsed = module(tmp_path, "VARIABLE x\nBig ==\n  x > 100 /\\ x < 200")
    big = parsed.operator("Big")
    assert big is not None
    assert isinstance(big.body, s.Builtin)
    assert big.body.operator == r"\land"
    assert str(big.body.args[1].location) == "Small:5:14"
    assert big.body.args[1].location.end_column == 20


def test_declarations_keep_the_order_of_the_text(tmp_path: Path) -> None:
    parsed = module(tmp_path, "CONSTANTS Zoo, Ape(_)\nVARIABLES z, a, m\nASSUME Named == Zoo > 0")
    assert [(c.name, c.arity) for c in parsed.constants] == [("Zoo", 0), ("Ape", 1)]
    assert [variable.name for variable in parsed.variables] == ["z", "a", "m"]
    assert [assumption.name for assumption in parsed.assumptions] == ["Named"]


def test_conjunctions_are_flat_and_instances_resolved(tmp_path: Path) -> None:
    module(tmp_path, INNER, name="Inner")
    parsed = module(tmp_path, OUTER.replace("SumEnabled == S!Next\n", ""))
    add = parsed.operator("X!Add")
    assert add is not None
    assert add.substituted
    names = {part.name for part in s.walk(add.body) if isinstance(part, s.Variable)}
    assert names == {"x"}
    assert not [d for d in parsed.definitions.values() if d.name == "Sum" and d.params]


def test_substitution_reaches_local_definitions_and_parameters(tmp_path: Path) -> None:
    module(tmp_path, INNER, name="Inner")
    found = spec(tmp_path, OUTER.replace("SumEnabled == S!Next\n", ""))
    assert [state for _, state in found.successors((1, 5))] == [(7, 25)]
    assert found.state_formula("Both")((1, 5))
    assert not found.state_formula("Both")((1, 0))
    assert found.state_function("Largest")((9, 2)) == (9, 4)
    assert not found.state_formula("SumPositive")((3, -3))


def test_enabled_is_not_substituted_into(tmp_path: Path) -> None:
    module(tmp_path, "VARIABLE v\nAdd == v' = v + 1\nCan == ENABLED Add", name="Inner")
    found = spec(
        tmp_path,
        "VARIABLES x, y\nRenamed == INSTANCE Inner WITH v <- x\n"
        "Sum == INSTANCE Inner WITH v <- x + y\nOk == Renamed!Can\nNotOk == Sum!Can",
    )
    assert found.state_formula("Ok")((1, 1))
    with pytest.raises(UnsupportedError, match=r"Inner:5:8: ENABLED under an INSTANCE"):
        found.state_formula("NotOk")


def test_other_folders_are_searched(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    module(library, "Answer == 42", name="Lib", header="")
    (tmp_path / "Main.tla").write_text("---- MODULE Main ----\nEXTENDS Lib\nA == Answer\n====\n")
    parsed = load_module(tmp_path / "Main.tla", search=[library])
    assert bind(parsed, ModelConfig()).value("A") == 42
    assert parsed.sources["Lib"] == library / "Lib.tla"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("Bad == 1 +", r"does not parse. SANY says:(.|\n)*Parse Error"),
        ("Bad == missing + 1", r"Unknown operator: `missing'"),
        ("Bad == INSTANCE Nowhere", r"Nowhere"),
        # Errors that SANY's exporter tells of, and exports the module all the same.
        ("RECURSIVE Bad(_, _)\nBad(s, P(_)) == P(s) /\\ Bad(s, P)", r"different arity"),
        ("VARIABLE x\nRECURSIVE Bad(_)\nBad(e) == e' = 1 \\/ Bad(e)\nUse == Bad(x)", r"is primed"),
    ],
)
def test_what_does_not_parse_is_told_in_sanys_words(
    tmp_path: Path, body: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        module(tmp_path, body)


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no TLA\+ module .*Absent\.tla"):
        load_module(tmp_path / "Absent.tla")


def test_specification_is_taken_apart(tmp_path: Path) -> None:
    found = spec(
        tmp_path,
        "VARIABLE x\nInit == x = 0\nUp == x' = x + 1\nFair == WF_x(Up)\n"
        "Spec == Init /\\ [][Up]_x /\\ Fair\nOdd == <>(x = 1)",
        "SPECIFICATION Spec",
    )
    assert list(found.initial_states()) == [(0,)]
    assert [str(action) for action in found.actions] == ["Up"]
    with pytest.raises(UnsupportedError, match="not of the form Init"):
        spec(tmp_path, "VARIABLE x\nOdd == <>(x = 1)", "SPECIFICATION Odd").initial_states()


def test_assumptions_are_checked_on_demand(tmp_path: Path) -> None:
    parsed = module(tmp_path, "CONSTANT N\nASSUME N > 0\nASSUME Small == N < 5")
    found = bind(parsed, parse_config("CONSTANT N = 7"))
    assert [assumption.name for assumption in found.false_assumptions()] == ["Small"]


def test_a_number_that_python_does_not_read_is_refused_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "Long.tla"
    path.write_text(f"---- MODULE Long ----\nA == {'9' * 5000}\n====\n")
    with pytest.raises(UnsupportedError, match=r"Long:2:6: a number of 5,000 digits"):
        load_module(path)


def test_a_module_of_megabytes_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "Large.tla"
    path.write_text(f"---- MODULE Large ----\n\\* {'x' * 6_000_000}\n====\n")
    with pytest.raises(SpecError, match="more than 5,000,000 bytes is not parsed"):
        load_module(path)
