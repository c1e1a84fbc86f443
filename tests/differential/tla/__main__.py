"""Prints the table of differential results: `python -m tests.differential.tla [MODULE ...]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tests.differential.tla.against_tlc import (
    CASES,
    Space,
    differences,
    load_case,
    our_space,
    tlc_space,
)

HEADER = ("module", "", "generated", "states", "transitions", "violated (length)", "agree")
ROW = "{:<20} {:<5} {:>10} {:>8} {:>12}  {:<28} {}"


def _row(name: str, engine: str, space: Space, agree: str) -> str:
    violated = ", ".join(f"{formula} ({n})" for formula, n in sorted(space.violations.items()))
    return ROW.format(
        name,
        engine,
        space.generated,
        len(space.states),
        len(space.transitions),
        violated or "-",
        agree,
    ).rstrip()


def table(cases: Iterable[str]) -> tuple[list[str], bool]:
    """The lines of the table, TLC's figures over ours, and whether all agree."""
    lines, all_agree = [ROW.format(*HEADER)], True
    for case in cases:
        spec = load_case(case)
        tlc, ours = tlc_space(case, spec.variables), our_space(case, spec)
        differing = differences(case, tlc, ours)
        all_agree &= not differing
        lines += [_row(case, "TLC", tlc, ""), _row("", "ours", ours, "no" if differing else "yes")]
        lines += [f"    {difference}" for difference in differing]
    return lines, all_agree


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if anything differs."""
    lines, all_agree = table(arguments or CASES)
    print("\n".join(lines))
    return 0 if all_agree else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
