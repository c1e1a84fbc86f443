"""Formulas at the edge of definedness, and what TLC 2.15 makes of each: pass, fail or error.

`python -m tests.differential.tla.undefined` asks TLC again, one JVM each.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.differential.tla.against_tlc import Workspace, write_workspace

INVARIANTS = {
    "a record of a string in a set of records": ('[a |-> "b"] \\in [a : {0}]', "error"),
    "the head of an empty sequence": ("Head(s) = 1", "error"),
    "a function outside its domain": ("f[7] = 1", "error"),
    "a sequence beyond its length": ("<<1, x>>[3] = 1", "error"),
    "a record without the field": ("[a |-> x].b = 1", "error"),
    "a boolean and an integer": ("x = TRUE", "error"),
    "a string and an integer": ('"a" = x', "error"),
    "a set and an integer": ("{1} = x", "error"),
    "a sequence and an integer": ("s = x", "error"),
    "a function and a sequence": ("f = s", "fail"),
    "a string in a set of integers": ('"a" \\in {1, x}', "error"),
    "a string in Nat": ('"a" \\in Nat /\\ x = 0', "error"),
    "membership in an integer": ("1 \\in x", "error"),
    "one to choose": ("(CHOOSE y \\in {1} : y > x) = 1", "pass"),
    "none to choose": ("(CHOOSE y \\in {1} : y < x) = 1", "error"),
    "no case": ("CASE x = 1 -> TRUE", "error"),
    "an assertion": ('Assert(x = 1, "x is one")', "error"),
    "all naturals": ("\\A n \\in Nat : n >= x", "error"),
    "the size of an infinite set": ("Cardinality(Nat) = x", "error"),
    "an integer as condition": ("IF x THEN TRUE ELSE TRUE", "error"),
    "an integer as formula": ("x /\\ TRUE", "error"),
    "a sum of booleans": ("TRUE + x = 1", "error"),
    "a union with an integer": ("{1} \\cup x = {}", "error"),
    "division by zero": ("1 \\div x = 1", "error"),
    "the remainder of zero": ("1 % x = 1", "error"),
    "a subsequence beyond the end": ("SubSeq(<<x>>, 1, 2) = <<1>>", "error"),
    "an empty subsequence": ("SubSeq(<<x>>, 2, 1) = <<>>", "pass"),
    "EXCEPT outside the domain": ("[f EXCEPT ![7] = 1] = f", "pass"),
    "EXCEPT of a missing field": ("[[a |-> x] EXCEPT !.b = 1] = [a |-> x]", "pass"),
    "an undefined part that does not matter": ("x = 0 \\/ Head(s) = 1", "pass"),
    "the same the other way round": ("Head(s) = 1 \\/ x = 0", "error"),
    "an unused undefined definition": ("LET bad == Head(s) IN x = 0", "pass"),
    "an unused undefined argument": ("LET K(a, b) == a IN K(x, Head(s)) = 0", "pass"),
    "a quantifier over nothing": ("\\A y \\in s : Head(y) = 1", "error"),
    "a quantifier over the empty set": ("\\A y \\in DOMAIN s : Head(s) = y", "pass"),
    "a quantifier that ends early": ("\\E i \\in {1, 2} : i > x \\/ f[7] = 1", "pass"),
    "a model value and an integer": ("m = x", "fail"),
    "the first of constant integers is undefined": (
        "\\E i \\in {1, 2} : IF i = 1 THEN f[7] = 1 ELSE x = 0",
        "error",
    ),
    "the first of an interval is undefined": (
        "\\E i \\in 1 .. x + 2 : IF i = 1 THEN f[7] = 1 ELSE x = 0",
        "error",
    ),
    "an empty sequence and an empty function": ("s = [i \\in {} |-> i]", "pass"),
    "a false invariant": ("x = 1", "fail"),
    "a record and a sequence": ("[a |-> x] = <<x>>", "error"),
    "a record in Seq": ("[a |-> x] \\in Seq(Nat)", "error"),
    "functions of different arguments": ("[a |-> x] = (0 :> x)", "error"),
    "a string as a sequence": (
        'Head("abc") = "a" /\\ Tail("abc") = "bc" /\\ Append("a", "b") = "ab" /\\ x = 0',
        "pass",
    ),
    "strings in Seq": ('"abc" \\in Seq({"a", "b", "c"}) /\\ "" \\in Seq(Nat)', "pass"),
    "the head of the empty string": ('Head("") = "a"', "error"),
    "TRUE and 1 in sequences": ("<<x + 1>> = <<TRUE>>", "error"),
    "TRUE and 1 in records": ("[a |-> x + 1] = [a |-> x = 0]", "error"),
    "TRUE and 1 in sets": ("{x + 1} = {x = 0}", "error"),
    "TRUE and 1 as arguments": ("[i \\in {x} |-> 5] = [i \\in {x = 1} |-> 5]", "error"),
    "TRUE among integers": ("(x = 0) \\in {1}", "error"),
    "TRUE among integers of the state": ("TRUE \\in {x + 1, 2}", "error"),
    "an integer among the booleans": ("x \\in BOOLEAN", "error"),
    "a sequence of TRUE among those of integers": ("<<x + 1>> \\in {<<TRUE>>}", "error"),
    "a record of TRUE in a set of records": ("[a |-> x = 0] \\in [a : {0, 1}]", "error"),
    "a sequence of TRUE in Seq": ("<<x = 0>> \\in Seq({1})", "error"),
    "a function to TRUE": ("[i \\in {3} |-> x = 0] \\in [{3} -> {0, 1}]", "error"),
    "a function to 1 among those to booleans": (
        "[f EXCEPT ![2] = 1] \\in [{0, 2} -> BOOLEAN]",
        "error",
    ),
    "a pair with TRUE": ("<<x = 0, 1>> \\in {0, 1} \\X {0, 1}", "error"),
    "a subset with TRUE": ("{x = 0} \\subseteq {0, 1}", "error"),
    "an element with TRUE of a power set": ("{x = 0} \\in SUBSET {0, 1}", "error"),
    "a function of integers at TRUE": ("f[x = 1] = 0", "error"),
    "EXCEPT of a function of integers at FALSE": ("[f EXCEPT ![x = 1] = 5] = f", "error"),
    "sets of different kinds": ('{x} = {"a"}', "error"),
    "sets of different kinds and sizes": ('{x} = {"a", "b"}', "fail"),
    "a set of a string and an integer": ('{x, "a"} = {}', "error"),
    "a set of a string and an integer without a state": ('Cardinality({1, "a"}) = 2', "error"),
    "a set of TRUE and 1": ("Cardinality({x + 1, x = 0}) = 1", "error"),
    "a set of TRUE and 2": ("Cardinality({x + 2, x = 0}) = 2", "error"),
    "a set of sequences of TRUE and of 1": ("Cardinality({<<x + 1>>, <<x = 0>>}) = 1", "error"),
    "a set of records of TRUE and of 1": (
        "Cardinality({[a |-> x + 1], [a |-> x = 0]}) = 1",
        "error",
    ),
    "a set of the sets of TRUE and of 1": ("Cardinality({{x + 1}, {x = 0}}) = 1", "error"),
    "a set of model value and integer": ("Cardinality({m, x}) = 2", "pass"),
    "images of TRUE and 1": (
        "Cardinality({IF y = 1 THEN y ELSE x = 0 : y \\in {1, 2}}) = 1",
        "error",
    ),
    "images, sequences of TRUE and of 1": (
        "Cardinality({<<IF y = z THEN 1 ELSE x = 0>> : y, z \\in {1, 2}}) = 1",
        "error",
    ),
    "a union with TRUE": ("{1} \\cup {x = 0} = {1}", "error"),
    "a union of sequences with TRUE": ("{<<1>>} \\cup {<<x = 0>>} = {<<1>>}", "error"),
    "a union with TRUE and a model value": (
        "Cardinality({m, x + 1} \\cup {m, x = 0}) = 2",
        "error",
    ),
    "an intersection with TRUE": ("{x + 1} \\cap {x = 0} = {1}", "error"),
    "an intersection of a rule with TRUE": (
        "{y \\in Nat : y < 2} \\cap {x = 0} = {1}",
        "error",
    ),
    "a difference with TRUE": ("{x + 1} \\ {x = 0} = {}", "error"),
    "the UNION of 1 and TRUE": ("Cardinality(UNION {{x + 1, 5}, {x = 0}}) = 2", "error"),
    "the UNION of images 1 and TRUE": (
        "Cardinality(UNION {{IF y = 1 THEN y ELSE x = 0} : y \\in {1, 2}}) = 1",
        "error",
    ),
    "no subset, with TRUE": ("{x = 1} \\subseteq {1, 2}", "error"),
    "a function of TRUE and 1": ("[i \\in {x + 1, x = 0} |-> 5] = f", "error"),
    "a function of BOOLEAN among those of 0 and 1": (
        "[b \\in BOOLEAN |-> x] \\in [{0, 1} -> {0}]",
        "error",
    ),
    "functions of 1 and TRUE together": ("Cardinality(DOMAIN (3 :> x @@ TRUE :> x)) = 2", "error"),
    "a quantifier over 1 and TRUE": ("\\E y \\in {x + 1, x = 0} : y = 1", "error"),
    "to choose of 1 and TRUE": ("(CHOOSE y \\in {x = 0, x + 1} : y = 1) = 1", "error"),
    "a case of 1 and TRUE": ("CASE x + 1 = (x = 0) -> TRUE [] OTHER -> TRUE", "error"),
}

LAX = {
    "the first of some strings is undefined": (
        '\\E y \\in {"z", "a"} : IF y = "a" THEN f[7] = 1 ELSE x = 0',
        True,
    ),
    "the first of a set of the state's is undefined": (
        "\\A i \\in {x + 1, x + 2} : IF i = 1 THEN f[7] = 1 ELSE x = 1",
        False,
    ),
}
"""Where TLC refuses and we give a value: an element that decides is enough, because the order of
other sets than those above is TLC's own."""

STEPS = {
    "a variable without a value": ("x' = 1 /\\ f' = f", "error"),
    "a primed variable before its value": ("x' = s' /\\ s' = <<>> /\\ f' = f", "error"),
    "a disjunct that is undefined": (
        "(s = <<>> \\/ Head(s) = 1) /\\ UNCHANGED <<x, s, f>>",
        "error",
    ),
    "a guard that protects": ("s # <<>> /\\ Head(s) = 1 /\\ UNCHANGED <<x, s, f>>", "pass"),
    "infinitely many successors": ("x' \\in Nat /\\ UNCHANGED <<s, f>>", "error"),
    "no successor": ("x' \\in {} /\\ UNCHANGED <<s, f>>", "pass"),
    "an assignment under a negation": ("~(x' = 1) /\\ UNCHANGED <<s, f>>", "error"),
}

MODULE = """---- MODULE {name} ----
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANT m
VARIABLES x, s, f
Init == x = 0 /\\ s = <<>> /\\ f = [i \\in {{0, 2}} |-> i]
{definitions}
====
"""
CONFIG = "CONSTANT m = m\nINIT Init\n"


def write(folder: Path, definitions: list[str], config: str) -> Workspace:
    """A module with these definitions over x = 0, s = <<>>, f = (0 :> 0 @@ 2 :> 2)."""
    text = MODULE.format(name="Formulas", definitions="\n".join(definitions))
    return write_workspace(folder, "Formulas", text, CONFIG + config)


def tlc_outcome(invariant: str, step: str = "UNCHANGED <<x, s, f>>") -> str:
    """What TLC makes of an invariant, or of a step under the invariant x >= 0."""
    with tempfile.TemporaryDirectory() as folder:
        definitions = [f"Next == {step}", f"Inv == {invariant}"]
        result = write(Path(folder), definitions, "NEXT Next\nINVARIANT Inv\n").run_tlc()
    if result.exit_code == 0:
        return "pass"
    return "fail" if result.transcript.violation is not None else "error"


def main() -> int:
    """Compare the tables with TLC; 1 if they are wrong."""
    wrong = 0
    asked = [(formula, "UNCHANGED <<x, s, f>>", said) for formula, said in INVARIANTS.values()]
    asked += [(formula, "UNCHANGED <<x, s, f>>", "error") for formula, _ in LAX.values()]
    asked += [("x >= 0", step, said) for step, said in STEPS.values()]
    for invariant, step, said in asked:
        outcome = tlc_outcome(invariant, step)
        wrong += outcome != said
        print(f"{outcome:<6} {said:<6} {invariant}   {step}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
