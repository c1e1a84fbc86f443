"""Why a formula is false, as an engineer reads it."""

from __future__ import annotations

import pytest

from conformance.tla import Spec, make_function
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

BODY = r"""
CONSTANT Brokers
VARIABLES log, hw
End(b) == Len(log[b])
Within == \A b \in Brokers : 0 <= hw[b] /\ hw[b] <= End(b)
Both ==
  /\ hw["b1"] = 0
  /\ LET n == End("b2") IN n > 3
None == \E b \in Brokers : hw[b] > 7
Undefined == log["b3"] = <<>>
Implied == hw["b1"] = 0 => hw["b2"] = 0
RECURSIVE Fib(_)
Fib(n) == n > 99 \/ (n < 18 /\ (Fib(n + 1) \/ Fib(n + 2)))
RECURSIVE Sum(_)
Sum(n) == IF n = 0 THEN 0 ELSE n + Sum(n - 1)
Endless == Fib(0)
Large == Sum(hw["b2"] + 180) > 0 /\ Sum(hw["b2"] + 180) = 0
Falls == [][\A b \in Brokers : hw'[b] >= hw[b]]_hw
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("explain"), BODY, 'CONSTANT Brokers = {"b1", "b2"}')


STATE = (make_function({"b1": (1,), "b2": ()}), make_function({"b1": 0, "b2": 2}))
LOWER = (STATE[0], make_function({"b1": 0, "b2": 1}))


def test_the_bound_value_and_the_conjunct_are_named(found: Spec) -> None:
    explanation = found.state_formula("Within").explain(STATE)
    assert explanation.value == "FALSE"
    (instance,) = explanation.parts
    assert instance.bound == (("b", '"b2"'),)
    (conjunct,) = instance.parts
    assert conjunct.text == "hw[b] <= End(b)"
    assert [(part.text, part.value) for part in conjunct.parts] == [("hw[b]", "2"), ("End(b)", "0")]
    assert str(conjunct.location) == "Small:7:44"


def test_rendered(found: Spec) -> None:
    assert found.state_formula("Both").explain(STATE).render().splitlines() == [
        r'Small:9:3: /\ hw["b1"] = 0 /\ LET n == End("b2") IN n > 3 is FALSE',
        '  Small:10:6: LET n == End("b2") IN n > 3 is FALSE',
        "    Small:10:28: n > 3 is FALSE",
        "      Small:10:28: n is 0",
    ]


def test_a_false_existential_shows_its_instances(found: Spec) -> None:
    explanation = found.state_formula("None").explain(STATE)
    assert [part.bound for part in explanation.parts] == [(("b", '"b1"'),), (("b", '"b2"'),)]


def test_an_undefined_part_is_told(found: Spec) -> None:
    explanation = found.state_formula("Undefined").explain(STATE)
    assert explanation.value == ""
    assert "not in its domain" in explanation.error
    assert explanation.parts[0].text == 'log["b3"]'
    assert "not in its domain" in explanation.parts[0].error


def test_an_implication_shows_both_sides(found: Spec) -> None:
    explanation = found.state_formula("Implied").explain(STATE)
    assert [(part.text, part.value) for part in explanation.parts] == [
        ('hw["b1"] = 0', "TRUE"),
        ('hw["b2"] = 0', "FALSE"),
    ]


def test_a_step_is_explained_with_both_states(found: Spec) -> None:
    falls = found.action_formula("Falls")
    assert not falls(STATE, LOWER)
    text = falls.explain(STATE, LOWER).render()
    assert 'for b = "b2"' in text
    assert "hw'[b] is 1" in text
    assert "hw[b] is 2" in text


def test_a_formula_that_holds_is_explained_too(found: Spec) -> None:
    longer = (make_function({"b1": (1,), "b2": (1, 2)}), STATE[1])
    explanation = found.state_formula("Within").explain(longer)
    assert (explanation.value, explanation.parts) == ("TRUE", ())


def test_a_long_recursion_is_cut_short(found: Spec) -> None:
    assert len(found.state_formula("Large").explain(STATE).render().splitlines()) == 3
    lines = found.state_formula("Endless").explain(STATE).render().splitlines()
    assert lines[0].endswith("Fib(0) is FALSE")
    assert 100 < len(lines) < 1_000
