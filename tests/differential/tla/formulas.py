"""Small formulas over one state, and what TLC 2.15 makes of each: pass, fail or error.

The table is `formulas.txt`, a verdict and a formula a line. `python -m tests.differential.tla.
formulas` asks TLC again: those that have a value together, those that have none in a JVM each,
which takes minutes. `... formulas Cardinality` asks it of the formulas that have this word.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from conformance.tla import Spec, bind, load_module, parse_config
from tests.differential.tla.against_tlc import Workspace, write_workspace

MODULE = """---- MODULE SmallFormulas ----
EXTENDS Integers, Sequences, FiniteSets, Bags, TLC
CONSTANT m
VARIABLES x, s, f, r
Init == x = 0 /\\ s = <<1, 2>> /\\ f = [i \\in {0, 2} |-> i] /\\ r = [a |-> 1, b |-> <<1>>]
Next == UNCHANGED <<x, s, f, r>>
Inc(a) == a + 1
Less(a, b) == a < b
RECURSIVE Fact(_)
Fact(n) == IF n = 0 THEN 1 ELSE n * Fact(n - 1)
g[n \\in 0..5] == IF n = 0 THEN 1 ELSE n * g[n - 1]
RECURSIVE even
odd[n \\in 0..5] == IF n = 0 THEN FALSE ELSE even[n - 1]
even[n \\in 0..5] == IF n = 0 THEN TRUE ELSE odd[n - 1]
"""
CONFIG = "CONSTANT m = m\nINIT Init\nNEXT Next\n"
_WIDTH = 6


def read(table: str = "formulas.txt") -> list[tuple[str, str]]:
    """The verdict and the text of each formula."""
    lines = Path(__file__).with_name(table).read_text().splitlines()
    return [(line[:_WIDTH].strip(), line[_WIDTH:]) for line in lines]


def write(folder: Path, formulas: Sequence[str], invariants: Sequence[int] = ()) -> Workspace:
    """A module in which the formulas have the names `name(0)`, `name(1)` ..."""
    definitions = [f"{name(i)} == {text}" for i, text in enumerate(formulas)]
    checked = [f"INVARIANT {name(i)}" for i in invariants]
    text = "\n".join([MODULE, *definitions, "====", ""])
    return write_workspace(folder, "SmallFormulas", text, "\n".join([CONFIG, *checked, ""]))


def name(index: int) -> str:
    """The operator of a formula."""
    return f"Formula{index}"


def bound(folder: Path, formulas: Sequence[str]) -> Spec:
    """The formulas for our evaluator and for Spark."""
    return bind(load_module(write(folder, formulas).module), parse_config(CONFIG))


def tlc_outcome(formulas: Sequence[str]) -> str:
    """pass if all hold; fail if one is violated first, error if one has no value first."""
    with tempfile.TemporaryDirectory() as folder:
        result = write(Path(folder), formulas, range(len(formulas))).run_tlc()
    if result.exit_code == 0:
        return "pass"
    return "fail" if result.transcript.violation is not None else "error"


def wrong(
    formulas: Sequence[str], ask: Callable[[Sequence[str]], str] = tlc_outcome
) -> Iterator[tuple[str, str]]:
    """Those of the formulas that do not pass, each with what TLC says of it."""
    said = ask(formulas) if formulas else "pass"
    if said == "pass":
        return
    if len(formulas) == 1:
        yield said, formulas[0]
        return
    half = len(formulas) // 2
    yield from wrong(formulas[:half], ask)
    yield from wrong(formulas[half:], ask)


def compare(
    table: Sequence[tuple[str, str]], ask: Callable[[Sequence[str]], str] = tlc_outcome
) -> int:
    """Print the lines of a table that TLC does not agree with; 1 if there are any."""
    differing = list(wrong([text for said, text in table if said == "pass"], ask))
    differing += list(wrong([f"~({text})" for said, text in table if said == "fail"], ask))
    for said, text in table:
        if said == "error" and (outcome := ask([text])) != "error":
            differing.append((outcome, text))
    for outcome, text in differing:
        print(f"{outcome:<{_WIDTH}}{text}", flush=True)
    print(f"{len(table)} formulas, {len(differing)} wrong")
    return 1 if differing else 0


def main(arguments: Sequence[str]) -> int:
    """Compare the table with TLC, or those lines that have one of the words; 1 if it is wrong."""
    return compare(
        [line for line in read() if not arguments or any(one in line[1] for one in arguments)]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
