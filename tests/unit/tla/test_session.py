"""What TLC's operators show and remember: printed lines, registers, chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import EvaluationError, Spec, SpecError
from conformance.tla.search import SearchEnd, SearchError, problem_of, search
from conformance.workers import ForkedProcesses
from tests.unit.tla.small import spec

STEPS = """VARIABLE x
ASSUME PrintT("assumed")
Init == x = 0 /\\ Print("begun", TRUE)
Next == x < 2 /\\ x' = x + 1 /\\ PrintT(<<x, x'>>)
"""


def printed(bound: Spec, *, processes: int = 1) -> list[str]:
    lines: list[str] = []
    bound.session.show = lines.append
    search(problem_of(bound), elsewhere=ForkedProcesses(processes))
    return lines


@pytest.mark.parametrize("processes", [1, 2])
def test_lines_come_once_and_in_order(tmp_path: Path, processes: int) -> None:
    bound = spec(tmp_path, STEPS, "INIT Init\nNEXT Next\n")
    told = ['"assumed"', '"begun"  TRUE', "<<0, 1>>", "<<1, 2>>"]
    assert printed(bound, processes=processes) == told


def test_a_second_attempt_prints_nothing_twice(tmp_path: Path) -> None:
    # The first attempt meets 1 \\div 0 before -1, which decides in the order of TLC.
    text = STEPS + 'Odd == PrintT("asked") /\\ \\E e \\in {0, -1} : 1 \\div e < 0\n'
    bound = spec(tmp_path, text, "INIT Init\nNEXT Next\n")
    lines: list[str] = []
    bound.session.show = lines.append
    assert bound.state_formula("Odd")((0,))
    bound.session.settle()
    assert lines == ['"asked"']


def test_an_explanation_prints_nothing(tmp_path: Path) -> None:
    text = STEPS + 'Low == PrintT("asked") /\\ x < 1\n'
    bound = spec(tmp_path, text, "INIT Init\nNEXT Next\nINVARIANT Low\n")
    lines = printed(bound)
    before = len(lines)
    bound.explain("Low", (0,), (1,))
    bound.session.settle()
    assert lines.count('"asked"') == 2
    assert len(lines) == before


def test_what_is_printed_must_have_a_value(tmp_path: Path) -> None:
    bound = spec(tmp_path, 'VARIABLE x\nBad == PrintT("a" \\in Nat)')
    with pytest.raises(EvaluationError, match="Nat is not defined"):
        bound.state_formula("Bad")((0,))


def test_registers_count_and_the_search_can_be_ended(tmp_path: Path) -> None:
    text = """VARIABLE x
Init == x = 0 /\\ TLCSet(1, 0)
Next == x' = x + 1 /\\ TLCSet(1, TLCGet(1) + 1) /\\ (x < 4 \\/ TLCSet("exit", TRUE))
"""
    bound = spec(tmp_path, text, "INIT Init\nNEXT Next\n")
    found = search(problem_of(bound))
    assert found.end is SearchEnd.CANCELLED
    assert bound.session.tlc_get(1) == 5


def test_chance_has_a_seed_and_a_constant_is_drawn_once(tmp_path: Path) -> None:
    text = """CONSTANT C
VARIABLE x
Drawn == TLCEval(RandomElement(1..1000))
Init == x \\in {RandomElement(1..1000), RandomElement(1..1000)}
Next == UNCHANGED x
Same == C = C /\\ C \\in 1..1000
"""
    config = "INIT Init\nNEXT Next\nCONSTANT C <- Drawn\nINVARIANT Same\n"
    first, second = (search(problem_of(spec(tmp_path, text, config))).states for _ in range(2))
    assert first == second
    assert len(first) == 2


def test_a_definition_of_a_module_draws_once_and_that_of_a_let_each_time(tmp_path: Path) -> None:
    """As TLC, which computes a module's constants before it looks for states."""
    text = """VARIABLES x, n
Drawn == RandomElement(1..100000)
Again == Drawn
Of(a) == Drawn
Anew == LET Here == RandomElement(1..100000) IN Here
Init == x = Drawn /\\ n = 0
Next == x' = Drawn /\\ n' = (n + 1) % 3
Same == x = Drawn /\\ x = Again /\\ x = Of(1)
"""
    bound = spec(tmp_path, text, "INIT Init\nNEXT Next\nINVARIANT Same\n")
    found = search(problem_of(bound))
    assert found.end is SearchEnd.EXHAUSTED
    assert len(found.states) == 3


@pytest.mark.parametrize(("operator", "fine"), [("x + 1", False), ("IF 1 < 2 THEN 7 ELSE x", True)])
def test_a_constant_is_replaced_by_what_has_a_value_before_any_state(
    tmp_path: Path, operator: str, fine: bool
) -> None:
    text = f"CONSTANT C\nVARIABLE x\nFoo == {operator}\nInit == x = C\nNext == x' = C\n"
    config = "INIT Init\nNEXT Next\nCONSTANT C <- Foo\n"
    if fine:
        assert spec(tmp_path, text, config).initial_states() == ((7,),)
        return
    with pytest.raises(SpecError, match=r"replaces the CONSTANT C by Foo.*depends on x"):
        spec(tmp_path, text, config)


def test_an_initial_state_that_is_found_in_two_ways_is_counted_twice(tmp_path: Path) -> None:
    text = "VARIABLE x\nInit == \\E i \\in 1..5 : i > 2 /\\ x = 0\nNext == UNCHANGED x\n"
    bound = spec(tmp_path, text, "INIT Init\nNEXT Next\n")
    assert search(problem_of(bound)).generated == 3 + 1
    assert bound.initial_states() == ((0,),)


@pytest.mark.parametrize(
    ("elements", "fine"),
    [
        ('{1, "a"}', False),
        ('{"a", TRUE}', False),
        ("{1, {}}", False),
        ('{TLCModelValue("A_a"), TLCModelValue("B_a")}', False),
        ('{TLCModelValue("A_a"), 1}', False),
        ('{TLCModelValue("A_a"), TLCModelValue("A_b"), TLCModelValue("c")}', True),
        ('{TLCModelValue("c"), 1, 2}', True),
        ("{<<1>>, <<>>, [i \\in {1} |-> 2]}", True),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_a_state_has_no_set_that_tlc_cannot_sort(
    tmp_path: Path, elements: str, fine: bool, later: bool
) -> None:
    first, after = ("{}", elements) if later else (elements, "{}")
    text = f"VARIABLE v\nInit == v = {first}\nNext == v' = {after}\n"
    header = "EXTENDS Integers, TLCExt\n"
    problem = problem_of(spec(tmp_path, text, "INIT Init\nNEXT Next\n", header=header))
    if fine:
        assert len(search(problem).states) == 2
        return
    with pytest.raises((EvaluationError, SearchError), match="compare"):
        search(problem)


@pytest.mark.parametrize(
    ("declared", "instance", "name", "once"),
    [
        ("", "I == INSTANCE Inner", "I!Drawn", True),
        ("", "INSTANCE Inner", "Drawn", True),
        ("CONSTANT K", "I == INSTANCE Inner WITH K <- 1", "I!Drawn", True),
        ("CONSTANT K", "K == 1 I == INSTANCE Inner", "I!Drawn", True),
        ("CONSTANT K", "INSTANCE Inner WITH K <- 1", "Drawn", True),
        ("CONSTANT K", "I == INSTANCE Inner WITH K <- 1 Mine == I!Drawn", "Mine", True),
        ("VARIABLE v", "I == INSTANCE Inner WITH v <- x", "I!Drawn", True),
        ("CONSTANT K", "I(K) == INSTANCE Inner", "I(1)!Drawn", False),
    ],
)
def test_a_definition_of_an_instance_draws_as_in_tlc(
    declared: str, instance: str, name: str, once: bool, tmp_path: Path
) -> None:
    """Once, like one of the module itself; each time if the instance has parameters."""
    drawn = "Drawn == RandomElement(1..100000)"
    (tmp_path / "Inner.tla").write_text(
        f"---- MODULE Inner ----\nEXTENDS TLC, Integers\n{declared}\n{drawn}\n====\n"
    )
    text = f"VARIABLE x\n{instance}\nInit == x = 0\nNext == x' = x\nSame == {name} = {name}\n"
    bound = spec(tmp_path, text, "INIT Init\nNEXT Next\n", header="EXTENDS TLC, Integers\n")
    assert bound.state_formula("Same")((0,)) is once
