"""Every operator, as Spark evaluates it and as Python does: the same on random states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark user knows

from conformance.errors import UnsupportedError
from conformance.tla import (
    BOOLEAN,
    INTEGER,
    STRING,
    EvaluationError,
    Fn,
    MapOf,
    Schema,
    SequenceOf,
    SetOf,
    Spec,
    State,
    StructOf,
    bind,
    load_module,
    make_function,
    parse_config,
)
from conformance.tla.arrow import write_states
from conformance.tla.spark import SparkFormula, compile_state_formulas, with_verdicts

pytestmark = [pytest.mark.spark, pytest.mark.tlc]

SCHEMA = Schema(
    (
        ("i", INTEGER),
        ("j", INTEGER),
        ("b", BOOLEAN),
        ("s", STRING),
        ("q", SequenceOf(INTEGER)),
        ("Z", SetOf(INTEGER)),
        ("N", SetOf(STRING)),
        ("f", StructOf((("a", INTEGER), ("b", INTEGER), ("c", INTEGER)))),
        ("m", MapOf(INTEGER, STRING)),
        ("R", SetOf(StructOf((("k", INTEGER), ("v", STRING))))),
        ("T", SetOf(SetOf(INTEGER))),
    )
)

FORMULAS = r"""
(i < j /\ i <= j) \/ (i > j /\ i >= j)
i + j * 2 - 3 = j
i \div 2 = j
i % 3 = 1
i % j = 0
i \div j >= 0
2 ^ 3 = 8 /\ i ^ 2 > 3
-i < j
i \in Nat /\ j \in Int
i \in -1..2
i \in j..3
b <=> i = 1
b => j > 0
~b \/ s = "a"
s \in {"a", "b"} /\ s # "c"
s \in STRING /\ b \in BOOLEAN
q = <<>>
Len(q) = 2
Head(q) = 1
Tail(q) = <<1>>
q[i] = 1
i \in DOMAIN q /\ q[i] > 0
i \in DOMAIN q => q[i] > 0
q[i] = 1 /\ FALSE
FALSE /\ q[i] = 1
q[i] = 1 \/ TRUE
TRUE \/ q[i] = 1
Append(q, i) = <<i>>
q \o <<j>> = <<1, j>>
SubSeq(q, i, j) = <<1>>
SubSeq(q, 1, Len(q)) = q
SelectSeq(q, LAMBDA x : x > 0) = q
[q EXCEPT ![1] = @ + 1] = <<i>>
[q EXCEPT ![i] = 7][1] = 7
\A k \in 1..Len(q) : q[k] >= 0
\E k \in 1..3 : q[k] = 2
\A k \in DOMAIN q : k < Len(q) => q[k] <= q[k + 1]
q \in Seq(Nat)
q \in [1..2 -> 0..2]
i \in Z
Z = {}
Z = {1, 2}
{i, j} \subseteq Z
Z \union {i} = Z
Z \intersect {i, j} = {i}
Z \ {i} = {j}
Cardinality(Z) = 2
Cardinality({x \in Z : x > 0}) = 1
{x + 1 : x \in Z} = {2}
{x \in Z : q[x] = 1} = {1}
Z \in SUBSET (0..2)
\E X \in SUBSET Z : Cardinality(X) = 2
UNION T = Z
Z \in T
UNION {{x, i} : x \in Z} = {1, 2}
(CHOOSE x \in Z : x > 0) = 1
(CHOOSE x \in Z : \A y \in Z : x <= y) = i
(CHOOSE x \in {1, 2, 3} : x > i) = 2
\A x, y \in Z : x + y # 3
\E x \in Z, y \in N : x = 1 /\ y = s
<<i, s>> \in Z \X N
\A <<x, y>> \in Z \X {1, 2} : x # y
N \subseteq {"a", "b"}
f["a"] = 1 /\ f.b = f["c"]
f[s] = 1
[f EXCEPT !.a = i, !.b = @ + 1] = f
[f EXCEPT ![s] = i].a = i
DOMAIN f = {"a", "b", "c"}
f \in [{"a", "b", "c"} -> 0..2]
f \in [a : Nat, b : Int, c : 0..1]
[x \in {"a", "b", "c"} |-> i] = f
[a |-> 1, b |-> j, c |-> i] = f
\A x \in DOMAIN f : f[x] >= 0
\E n \in N : f[n] = 1
m[i] = s
i \in DOMAIN m
DOMAIN m = Z
[m EXCEPT ![i] = "a"] = m
\A x \in DOMAIN m : m[x] = "a"
m \in [Z -> STRING]
[k |-> i, v |-> s] \in R
\A r \in R : r.k > 0 /\ r.v = "a"
{r.k : r \in R} = Z
\A r1, r2 \in R : r1.k = r2.k => r1 = r2
(CHOOSE r \in R : TRUE).v = "a"
IF b THEN q[1] = 1 ELSE i = 1
(IF i = 1 THEN {} ELSE Z) = {}
(IF b THEN f ELSE [f EXCEPT !.a = 1]).a = 1
(CASE i = 0 -> 1 [] i = 1 -> 2) = 2
(CASE i = 0 -> 1 [] OTHER -> j) = 1
LET x == i + j  y == x * x IN x = y \/ y > 4
LET g[n \in 0..3] == IF n = 0 THEN 1 ELSE n * g[n - 1] IN g[3] + i = 7
LET Twice(Op(_), x) == Op(Op(x)) IN Twice(LAMBDA y : y + j, i) = 3
<<i, j>> = <<1, 1>>
<<i, s>>[2] = "a"
{1, 2, i} = {1, 2}
IsFiniteSet(Z)
(i = 1) = b
s \o "x" = "ax"
[x \in 1..Len(q) |-> q[x] + 1] = <<2>>
[x \in 1..i |-> x] = q
\A X \in T : X # {} /\ \E x \in X : x > 0
Cardinality(T) = 1
(1 :> i @@ 2 :> j) = q
\E n \in N : IF n = "a" THEN Head(q) = 1 ELSE n = "c"
\A n \in N : IF n = "c" THEN m[i] = "a" ELSE n = "b"
\E k \in {1, 2, 3} : IF k = 2 THEN Head(q) = 1 ELSE k = j
\A k \in i..j : IF k = 1 THEN Head(q) > 0 ELSE k < 2
\A n \in N, k \in Z : IF k = 1 THEN m[i] = n ELSE k > 0
\A k \in Z, l \in {Head(q)} : k > l
BagToSet(m) = Z
BagToSet(q) = {1, 2}
BagToSet(EmptyBag) = Z
BagIn(i, m) /\ m # EmptyBag
BagIn(s, f)
BagIn("d", f) \/ BagIn("a", f)
BagIn(i, q) => q[i] > 0
CopiesIn(s, f) = 1
CopiesIn("d", f) = i
CopiesIn("a", f) + CopiesIn("b", f) = 2
CopiesIn(i, q) > 1
CopiesIn(i, q) = j
CopiesIn(Head(q), q) = 1
\A x \in Z : CopiesIn(x, q) <= j
{x \in Z : CopiesIn(x, q) = 0} = {}
CopiesIn(i, [x \in Z |-> x + 1]) = 2
CopiesIn(i, (1 :> j @@ 3 :> 2)) = 2
BagToSet([x \in Z |-> x]) = {i}
BagIn(i, EmptyBag) \/ CopiesIn(s, EmptyBag) = i
""".strip().splitlines()


def random_state(random: Random) -> State:
    """Small values, so that formulas hold and fail."""

    def number() -> int:
        return random.choice((-1, 0, 1, 1, 2, 3))

    def word() -> str:
        return random.choice("abc")

    def numbers() -> list[int]:
        return [number() for _ in range(random.randrange(4))]

    return (
        number(),
        number(),
        random.random() < 0.5,
        word(),
        tuple(numbers()),
        frozenset(numbers()),
        frozenset(word() for _ in range(random.randrange(3))),
        Fn({key: number() for key in "abc"}),
        make_function({number(): word() for _ in range(random.randrange(4))}),
        frozenset(Fn({"k": number(), "v": word()}) for _ in range(random.randrange(3))),
        frozenset(frozenset(numbers()) for _ in range(random.randrange(3))),
    )


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    definitions = "\n".join(f"F{n} == {text}" for n, text in enumerate(FORMULAS))
    names = ", ".join(SCHEMA.names())
    path = tmp_path_factory.mktemp("spec") / "Operators.tla"
    path.write_text(
        "---- MODULE Operators ----\nEXTENDS Integers, Sequences, FiniteSets, Bags, TLC\n"
        f"VARIABLES {names}\n{definitions}\nUnsupported == \\E x \\in STRING : x = s\n"
        "Init == TRUE\nNext == FALSE\n====\n"
    )
    return bind(load_module(path), parse_config(""))


def in_python(spec: Spec, name: str, state: State) -> bool | None:
    try:
        return spec.state_formula(name)(state)
    except EvaluationError:
        return None


def alone(rows: DataFrame, formulas: Sequence[SparkFormula]) -> DataFrame:
    """Each formula as one expression."""
    return rows.select(*[F.expr(formula.value).alias(formula.name) for formula in formulas])


Verdicts = Callable[[DataFrame, Sequence[SparkFormula]], DataFrame]


def in_spark(
    spark: SparkSession,
    spec: Spec,
    names: Sequence[str],
    states: Sequence[State],
    folder: Path,
    verdicts: Verdicts,
) -> list[list[bool | None]]:
    path = folder / "states.parquet"
    pq.write_table(write_states(SCHEMA, states), path)
    formulas = compile_state_formulas(spec.program, names, SCHEMA)
    rows = spark.read.parquet(str(path)).coalesce(1)
    return [list(column) for column in zip(*verdicts(rows, formulas).collect(), strict=True)]


@pytest.mark.parametrize("verdicts", [alone, with_verdicts], ids=["alone", "together"])
def test_operators_mean_the_same_in_spark_as_in_python(
    spark: SparkSession, spec: Spec, tmp_path: Path, verdicts: Verdicts
) -> None:
    random = Random(5)
    states = [random_state(random) for _ in range(400)]
    names = [f"F{n}" for n in range(len(FORMULAS))]
    found = in_spark(spark, spec, names, states, tmp_path, verdicts)
    differing = {}
    for name, text, values in zip(names, FORMULAS, found, strict=True):
        expected = [in_python(spec, name, state) for state in states]
        wrong = [i for i, (a, b) in enumerate(zip(expected, values, strict=True)) if a != b]
        if wrong:
            first = wrong[0]
            differing[text] = (len(wrong), expected[first], values[first], states[first])
    assert differing == {}


def test_what_spark_cannot_do_is_refused_before_any_row_is_read(spec: Spec) -> None:
    with pytest.raises(UnsupportedError, match=r"Operators:\d+:\d+.*the Spark back end"):
        compile_state_formulas(spec.program, ["Unsupported"], SCHEMA)
