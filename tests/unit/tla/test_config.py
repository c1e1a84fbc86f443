"""What a .cfg says, and the errors of one that says it wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import (
    ModelConfig,
    ModelValue,
    Override,
    SpecError,
    bind,
    format_value,
    parse_config,
)
from tests.unit.tla.small import module

FULL = r"""
\* a comment
CONSTANTS
  N = 3            Debt = -1
  Name = "b\"1"
  Nodes = {n1, n2} (* nested (* comment *) here *)
  Mixed = {{1}, {}}
  Nat <- SmallNat
  Op <- [Inner] Other
CONSTANT Flag = TRUE
SPECIFICATION Spec
INVARIANT TypeOK
INVARIANTS Safe Sound
PROPERTIES Live
CONSTRAINT Bounded
ACTION_CONSTRAINT Short
SYMMETRY Symmetric
VIEW Seen
CHECK_DEADLOCK FALSE
"""


def test_every_section_is_read() -> None:
    config = parse_config(FULL, source="Full.cfg")
    assert dict(config.constants) == {
        "N": 3,
        "Debt": -1,
        "Name": 'b"1',
        "Nodes": frozenset([ModelValue("n1"), ModelValue("n2")]),
        "Mixed": frozenset([frozenset([1]), frozenset()]),
        "Flag": True,
    }
    assert config.overrides == (Override("Nat", "SmallNat"), Override("Op", "Other", "Inner"))
    assert (config.specification, config.init, config.next) == ("Spec", None, None)
    assert config.invariants == ("TypeOK", "Safe", "Sound")
    assert config.properties == ("Live",)
    assert (config.constraints, config.action_constraints) == (("Bounded",), ("Short",))
    assert (config.symmetry, config.view, config.check_deadlock) == ("Symmetric", "Seen", False)


def test_a_constant_may_bear_the_name_of_a_section() -> None:
    config = parse_config("CONSTANT VIEW = 1 INIT <- Other INVARIANT Safe")
    assert dict(config.constants) == {"VIEW": 1}
    assert config.overrides == (Override("INIT", "Other"),)
    assert config.invariants == ("Safe",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CONSTANT\n N 3", r"x\.cfg:2: = or <- is expected after N"),
        ("CONSTANT N = ", "ends where a value"),
        ("CONSTANT N = 1 N = 2", "N is given twice"),
        ("INVARIANT Safe;", r"x\.cfg:1: ';' means nothing"),
        ("Safe", "a keyword such as CONSTANT"),
        ("TYPE_CONSTRAINT A", "TYPE_CONSTRAINT is not supported"),
        ("CONSTANT N <- [A]M N <- [A]K", "N is given twice"),
        ("INIT A INIT B", "INIT is given twice"),
        ("SPECIFICATION S INIT I", "both SPECIFICATION and INIT"),
        ("CONSTANT N = {1, TRUE}", "cannot hold a boolean and an integer"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_config(text, source="x.cfg")


BODY = r"""
CONSTANTS N, F(_)
VARIABLE x
Double(n) == n * 2
Two(a, b) == a
Limit == 5
Next == x' = F(N)
Init == x = 0
Shadow == 7
"""


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CONSTANT F <- Double", "gives no value to the CONSTANT N"),
        ("CONSTANT N = 1 F <- Two", "F takes 1 argument, what it is replaced by takes 2"),
        ("CONSTANT N = 1 F <- Nothing", "replaces F by Nothing"),
        ("CONSTANT N = 1 F <- Double M <- Limit", "gives a value to M"),
        ("CONSTANT N = 1 F <- Double Limit <- [Nowhere]Shadow", "the module Nowhere has neither"),
        ("CONSTANT N = 1 F <- Double INVARIANT Safe", "names Safe as an invariant"),
        ("CONSTANT N = 1 F <- Double INIT Start", "names Start as the initial predicate"),
    ],
)
def test_what_does_not_fit_the_module_is_named(tmp_path: Path, text: str, message: str) -> None:
    parsed = module(tmp_path, BODY)
    with pytest.raises(SpecError, match=message):
        bind(parsed, parse_config(text, source="x.cfg"))


OPERATORS = r"""
CONSTANT _\otimes_
VARIABLE x
a \odot b == a
a ^+ == a
Nine(a, b) == 9
OneToNine(a, b) == {9}
Minus(a) == 9
Two == <<1 + 2, 1 \odot 2, 1 \otimes 2, 2^+>>
Domain == [i \in 1..2 |-> i]
Less == <<5 - 2, -1, 2 < 1>>
Always(a, b) == TRUE
Init == x = 0
Next == UNCHANGED x
"""


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (r"+ <- Nine", "Two", "<<9, 1, 9, 2>>"),
        (r"\odot <- Nine", "Two", "<<3, 9, 9, 2>>"),
        (r"+ <- \odot", "Two", "<<1, 1, 9, 2>>"),
        (r"+ <- [Naturals]Nine", "Two", "<<9, 1, 9, 2>>"),
        (r"\odot <- [Small]Nine", "Two", "<<3, 9, 9, 2>>"),
        (r"^+ <- Minus", "Two", "<<3, 1, 9, 9>>"),
        (r"\odot = 7", "Two", "<<3, 7, 9, 2>>"),
        (r".. <- OneToNine", "Domain", "(9 :> 9)"),
        (r"- <- +", "Less", "<<7, -1, FALSE>>"),
        (r"-. <- Minus < <- Always", "Less", "<<3, 9, TRUE>>"),
    ],
)
def test_operators_written_with_signs_are_overridden(
    text: str, name: str, value: str, tmp_path: Path
) -> None:
    parsed = module(tmp_path, OPERATORS)
    config = parse_config(rf"CONSTANT \otimes <- Nine {text}", source="x.cfg")
    assert format_value(bind(parsed, config).value(name)) == value


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r"+ <- Minus", r"\+ takes 2 arguments, what it is replaced by, Minus, takes 1"),
        (r"^+ <- Nine", r"\^\+ takes 1 argument, what it is replaced by, Nine, takes 2"),
        (r"Len <- Nine", "Len takes 1 argument"),
        (r"\in <- Always", r"gives a value to \\in"),  # of the language: TLC refuses it too
        (r"+ <- [Nowhere]Nine", "the module Nowhere has neither"),
        (r"= <- Always", "a name is expected, not ="),
    ],
)
def test_what_tlc_does_not_override_is_refused(text: str, message: str, tmp_path: Path) -> None:
    parsed = module(tmp_path, OPERATORS)
    with pytest.raises(SpecError, match=message):
        bind(parsed, parse_config(rf"CONSTANT \otimes <- Nine {text}", source="x.cfg"))


@pytest.mark.tlc
def test_overrides_replace_constants_operators_and_builtins(tmp_path: Path) -> None:
    parsed = module(tmp_path, BODY + "Small == 0..2\nAll == Nat\nUses == <<Limit, Double(N)>>")
    config = parse_config("CONSTANT N = 4 F <- Double Limit <- Shadow Nat <- Small", source="x.cfg")
    spec = bind(parsed, config)
    assert spec.value("All") == frozenset([0, 1, 2])
    assert spec.value("Uses") == (7, 8)
    assert [state for _, state in spec.successors((0,))] == [(8,)]


def test_what_nobody_follows_is_read_and_told() -> None:
    config = parse_config("INIT I ALIAS Shown NEXT N POSTCONDITION Counted Ended")
    assert (config.init, config.next) == ("I", "N")
    assert config.ignored == ("ALIAS Shown",)
    assert config.postconditions == ("Counted", "Ended")


def test_a_name_has_a_meaning_everywhere_and_one_in_a_module() -> None:
    config = parse_config("CONSTANT B <- All B <-[Voting] Few None = [Voting] none")
    assert config.overrides == (Override("B", "All"), Override("B", "Few", "Voting"))
    (scoped,) = config.scoped_values
    assert (scoped.name, scoped.value, scoped.module) == ("None", ModelValue("none"), "Voting")


@pytest.mark.tlc
def test_a_constant_that_the_module_lacks_is_no_mistake(tmp_path: Path) -> None:
    parsed = module(tmp_path, BODY)
    config = parse_config("CONSTANT N = 1 F <- Double a1 = a1 Nodes = {a1}")
    assert bind(parsed, config).value("N") == 1


@pytest.mark.tlc
def test_a_definition_may_be_given_a_value(tmp_path: Path) -> None:
    parsed = module(tmp_path, "Limit == 5\nBeyond == Limit + 1")
    assert bind(parsed, parse_config("CONSTANT Limit = 9")).value("Beyond") == 10
    assert bind(parsed, ModelConfig()).value("Beyond") == 6
