"""What expressions evaluate to, and what has no value: tables in TLA+."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import EvaluationError, Spec, UnsupportedError, format_value
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

VALUES = [
    # logic
    (r"(TRUE /\ FALSE) \/ TRUE => FALSE", "FALSE"),
    (r"(1 = 2) <=> (2 = 1)", "TRUE"),
    (r"~TRUE \/ (FALSE /\ Head(<<>>))", "FALSE"),
    (r"IF 1 = 2 THEN Head(<<>>) ELSE 3", "3"),
    (r"CASE 1 = 2 -> 1 [] 2 = 2 -> 2 [] OTHER -> 3", "2"),
    (r"CASE FALSE -> 1 [] OTHER -> 3", "3"),
    (r"\A x \in {1, 2}, y \in {3} : x < y", "TRUE"),
    (r"\E x, y \in {1, 2} : x + y = 4 /\ x = y", "TRUE"),
    (r"\A <<a, b>> \in {<<1, 2>>, <<2, 3>>} : b = a + 1", "TRUE"),
    (r"\A x \in {} : x", "TRUE"),
    (r"\E x \in 1..3 : \A y \in 1..3 : y <= x", "TRUE"),
    # sets
    (r"({1, 2} \cup {3}) \ ({1} \cap {2})", "{1, 2, 3}"),
    (r"{x \in 1..5 : x % 2 = 1}", "{1, 3, 5}"),
    (r"{x * y : x \in 1..2, y \in 3..4}", "{3, 4, 6, 8}"),
    (r"{<<a, b>> \in {<<1, 2>>, <<2, 1>>} : a < b}", "{<<1, 2>>}"),
    (r"{a + b : <<a, b>> \in {<<1, 2>>, <<2, 2>>}}", "{3, 4}"),
    (r"SUBSET {1, 2}", "{{}, {1}, {1, 2}, {2}}"),
    (r"UNION {{1}, {2, 3}, {}}", "{1, 2, 3}"),
    (r"{1} \X {2, 3}", "{<<1, 2>>, <<1, 3>>}"),
    (r"Cardinality(SUBSET (1..20))", "1048576"),
    (r"{{1}, {2}} \subseteq SUBSET Nat", "TRUE"),
    (r"-1 \in Int \ Nat", "TRUE"),
    (r"-1 \in Nat \cup {-1}", "TRUE"),
    (r"<<1, 2>> \in Seq(Nat)", "TRUE"),
    (r"5 \in 1..3", "FALSE"),
    (r"CHOOSE x \in {3, 1, 2} : x > 1", "2"),
    (r"CHOOSE <<a, b>> \in {<<2, 1>>, <<1, 2>>} : TRUE", "<<1, 2>>"),
    (r"IsFiniteSet(1..3)", "TRUE"),
    (r"{1, 2, 3} = 1..3", "TRUE"),
    # functions and records
    (r"[x \in {2, 3} |-> x * x]", "(2 :> 4 @@ 3 :> 9)"),
    (r"[x \in 1..3 |-> x * x]", "<<1, 4, 9>>"),
    (r"[x \in 1..2, y \in 1..2 |-> x + y][1, 2]", "3"),
    (r"[a |-> 1, b |-> <<2>>].b[1]", "2"),
    (r"[[a |-> 1, b |-> 2] EXCEPT !.a = @ + 10, !.b = 0]", "[a |-> 11, b |-> 0]"),
    (r"[<<1, <<2, 3>>>> EXCEPT ![2][1] = @ * 5, ![1] = 0]", "<<0, <<10, 3>>>>"),
    (r"[[x \in {<<1, 2>>} |-> 0] EXCEPT ![1, 2] = 7][<<1, 2>>]", "7"),
    (r"[[a |-> 1] EXCEPT !.missing = Head(<<>>)]", "[a |-> 1]"),
    (r"DOMAIN [a |-> 1, b |-> 2]", '{"a", "b"}'),
    (r"DOMAIN <<5, 6>>", "{1, 2}"),
    (r"[1..2 -> {0, 1}]", "{<<0, 0>>, <<0, 1>>, <<1, 0>>, <<1, 1>>}"),
    (r"[a : {1, 2}, b : {3}]", "{[a |-> 1, b |-> 3], [a |-> 2, b |-> 3]}"),
    (r"[a |-> 1, b |-> 2] \in [a : Nat, b : Nat]", "TRUE"),
    (r"[x \in Nat |-> x + 1][41]", "42"),
    (r"<<1>> = [x \in {1} |-> 1]", "TRUE"),
    # sequences and strings
    (r"Append(<<1>>, 2) \o <<3>>", "<<1, 2, 3>>"),
    (r"<<Head(<<1, 2>>), Tail(<<1, 2>>), Len(<<1, 2>>)>>", "<<1, <<2>>, 2>>"),
    (r"SubSeq(<<1, 2, 3, 4>>, 2, 3)", "<<2, 3>>"),
    (r"SubSeq(<<1, 2>>, 2, 1)", "<<>>"),
    (r"SelectSeq(<<1, 2, 3>>, LAMBDA e : e # 2)", "<<1, 3>>"),
    (r'"a" \o "b"', '"ab"'),
    (r'Len("abc")', "3"),
    # integers
    (r"<<7 \div 2, (0 - 7) \div 2, 7 % 3, (0 - 7) % 3, 2^10, -(3)>>", "<<3, -4, 1, 2, 1024, -3>>"),
    # definitions
    (r"Fact(5)", "120"),
    (r"Even(10)", "TRUE"),
    (r"Fib[10]", "55"),
    (r"Twice(LAMBDA n : n * 3, 2)", "18"),
    (r"Fold(+, 0, <<1, 2, 3>>)", "6"),
    (r"LET a == 2 f(b) == a * b IN f(f(3))", "12"),
    (r"LET unused == Head(<<>>) IN 1", "1"),
    (r"LET bad == Head(<<>>) IN IF TRUE THEN 1 ELSE bad", "1"),
    (r"Second(Head(<<>>), 2)", "2"),
    (r"LET RECURSIVE S(_) S(T) == IF T = {} THEN 0 ELSE LET x == CHOOSE x \in T : TRUE"
     r" IN x + S(T \ {x}) IN S({1, 2, 3})", "6"),
    (r"LET g[i \in 1..3] == IF i = 1 THEN 1 ELSE 2 * g[i - 1] IN g", "<<1, 2, 4>>"),
    # TLC and Bags
    (r"(1 :> 2) @@ ((1 :> 3) @@ (2 :> 4))", "<<2, 4>>"),
    (r"Cardinality(Permutations({1, 2, 3}))", "6"),
    (r"SortSeq(<<3, 1, 2>>, <)", "<<1, 2, 3>>"),
    (r"ToString(<<1, {2}>>)", '"<<1, {2}>>"'),
    (r'<<Assert(TRUE, "x"), Print("x", 5), PrintT("x")>>', "<<TRUE, 5, TRUE>>"),
    (r"SetToBag({1, 2}) (+) SetToBag({2})", "<<1, 2>>"),
    (r"BagCardinality(EmptyBag (+) SetToBag({1})) + CopiesIn(2, SetToBag({1}))", "1"),
]  # fmt: skip

ERRORS = [
    (r"Head(<<>>)", "Head of the empty sequence"),
    (r"<<1, 2>>[3]", "not in its domain"),
    (r"[a |-> 1].b", "not in its domain"),
    (r"[x \in {5} |-> 1][6]", "not in its domain"),
    (r"CHOOSE x \in {1} : x > 1", "CHOOSE"),
    (r"TRUE = 1", "of different kinds"),
    (r'"a" = 1', "of different kinds"),
    (r'1 + "a"', "an integer is needed"),
    (r"<<1>>.b", "it is not a record"),
    (r"1 /\ TRUE", "a boolean is needed"),
    (r"CASE FALSE -> 1", "no guard of this CASE"),
    (r"{x \in Nat : x < 3}", "infinite set {x"),
    (r"Cardinality({x \in SUBSET (1..40) : x = {}})", "more than the limit"),
    (r'Assert(1 = 2, "told you")', "told you"),
    (r"1 \div 0", "division by zero"),
    (r"SubSeq(<<1>>, 1, 2)", "SubSeq from 1 to 2"),
    (r"Loop(0)", "too deep"),
    (r"LET f[i \in 1..2] == f[i] IN f[1]", "its own value"),
]

OPERATORS = r"""
RECURSIVE Fact(_)
Fact(n) == IF n = 0 THEN 1 ELSE n * Fact(n - 1)
RECURSIVE Even(_), Odd(_)
Even(n) == n = 0 \/ Odd(n - 1)
Odd(n) == n # 0 /\ Even(n - 1)
RECURSIVE Loop(_)
Loop(n) == Loop(n + 1) + 1
RECURSIVE Fold(_, _, _)
Fold(Op(_, _), base, s) == IF s = <<>> THEN base ELSE Op(Head(s), Fold(Op, base, Tail(s)))
Fib[n \in Nat] == IF n < 2 THEN n ELSE Fib[n - 1] + Fib[n - 2]
Twice(F(_), x) == F(F(x))
Second(a, b) == b
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    rows = [f"V{i} == {text}" for i, (text, _) in enumerate(VALUES)]
    rows += [f"E{i} == {text}" for i, (text, _) in enumerate(ERRORS)]
    return spec(tmp_path_factory.mktemp("table"), OPERATORS + "\n".join(rows))


@pytest.mark.parametrize(("row", "text", "expected"), [(i, *v) for i, v in enumerate(VALUES)])
def test_expression_has_the_value(table: Spec, row: int, text: str, expected: str) -> None:
    assert format_value(table.value(f"V{row}")) == expected


@pytest.mark.parametrize(("row", "text", "reason"), [(i, *e) for i, e in enumerate(ERRORS)])
def test_expression_is_undefined(table: Spec, row: int, text: str, reason: str) -> None:
    with pytest.raises(EvaluationError, match=reason) as caught:
        table.value(f"E{row}")
    assert str(caught.value).startswith("Small:")
    assert "Small:" not in caught.value.reason


STATE = r"""
VARIABLES log, n
Safe == n < Len(log) => log[n + 1] >= 0
Broken ==
  /\ n = n
  /\ log[n] = 0
Lazy == LET first == Head(log) IN log # <<>> => first = 1
Hoisted == \A i \in 1..n : LET top == Head(log) IN i <= top
Nested == \A i \in 1..Len(log) : \E j \in 1..Len(log) : log[j] = i
Temporal == [](n = 0)
Primed == n' = n
Init == n = 0 /\ log = <<>>
Next == n' = n + 1 /\ UNCHANGED log
Rises == [][n' > n]_n
Names(v) == v' = v
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("small"), STATE)


def test_variables_stand_in_the_order_of_the_text(small: Spec) -> None:
    assert small.variables == ("log", "n")


def test_state_formula_is_lazy_as_tlc(small: Spec) -> None:
    assert small.state_formula("Safe")(((1, -1), 0))
    assert not small.state_formula("Safe")(((1, -1), 1))
    assert small.state_formula("Lazy")(((), 0))
    assert not small.state_formula("Lazy")(((2,), 0))
    assert small.state_formula("Hoisted")(((), 0))
    assert small.state_formula("Nested")(((2, 1), 0))
    assert not small.state_formula("Nested")(((2, 2), 0))


def test_error_names_the_place_in_the_module(small: Spec) -> None:
    with pytest.raises(EvaluationError, match="not in its domain") as caught:
        small.state_formula("Broken")(((5,), 3))
    assert caught.value.location is not None
    assert (caught.value.location.module, caught.value.location.line) == ("Small", 8)


def test_error_inside_of_a_lazy_value_is_raised_where_it_is_needed(small: Spec) -> None:
    with pytest.raises(EvaluationError, match="Head of the empty sequence"):
        small.state_formula("Hoisted")(((), 1))


def test_action_formula_judges_pairs_of_states(small: Spec) -> None:
    step, rises = small.action_formula("Next"), small.action_formula("Rises")
    assert step(((), 0), ((), 1))
    assert not step(((), 0), ((1,), 1))
    assert rises(((), 0), ((), 0))
    assert not rises(((), 1), ((), 0))


@pytest.mark.parametrize("name", ["Temporal", "Primed"])
def test_formulas_of_another_kind_are_refused(small: Spec, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"Small:.*{name}"):
        small.state_formula(name)


def test_code_does_not_grow_with_the_paths_through_it(tmp_path: Path) -> None:
    depth = 24
    lets = "\n".join(
        f"  a{i} == IF n > {i} THEN a{i - 1} + 1 ELSE a{i - 1} - 1 + 0 * n" for i in range(1, depth)
    )
    body = f"VARIABLE n\nDeep ==\n  LET\n  a0 == n\n{lets}\n  IN a{depth - 1} = 44\n"
    found = spec(tmp_path, body)
    assert found.state_formula("Deep")((23,))  # 23, then 22 times + 1 and once - 1
    assert sum(len(one.source) for one in found.machine.take_listings()) < 200_000
