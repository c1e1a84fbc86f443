"""Prints the table of differential results: `python -m tests.differential.tla [MODULE ...]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.differential.table import Figures, Table
from tests.differential.tla.against_tlc import (
    CASES,
    Space,
    differences,
    load_case,
    our_space,
    tlc_space,
)


def _figures(space: Space) -> Figures:
    return Figures(space.generated, len(space.states), len(space.transitions), space.violations)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="names of small modules; all if none")
    cases = parser.parse_args(arguments).modules or CASES
    if unknown := [case for case in cases if case not in CASES]:
        parser.error(f"there is no small module {unknown[0]}; there are {', '.join(CASES)}")
    table, agree = Table("module", list(cases)), True
    print(table.header())
    for case in cases:
        spec = load_case(case)
        tlc, ours = tlc_space(case, spec.variables), our_space(case, spec)
        differing = differences(case, tlc, ours)
        agree &= not differing
        print("\n".join(table.rows(case, _figures(tlc), _figures(ours), differing)), flush=True)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
