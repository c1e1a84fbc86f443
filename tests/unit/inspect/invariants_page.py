"""The tables of docs/disk-invariants.md, made of the code's own.

`python -m tests.unit.inspect.invariants_page` writes them into the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from conformance.inspect.invariants import INVARIANTS, Invariant, InvariantScope
from tests.planted.faults import FAULTS

PAGE = Path(__file__).parents[3] / "docs" / "disk-invariants.md"


def marks(scope: InvariantScope) -> tuple[str, str]:
    """Between which lines of the page a table stands."""
    return f"<!-- {scope}: begin -->", f"<!-- {scope}: end -->"


def table(scope: InvariantScope) -> str:
    """The rows of a scope, in Markdown: a heading and a list for each."""
    return "\n\n".join(_row(one) for one in INVARIANTS if one.scope is scope)


def _row(one: Invariant) -> str:
    faults = sum(fault.invariant == one.name for fault in FAULTS.values())
    kinds = ", ".join(f"`{kind}`" for kind in one.kinds)
    return "\n".join(
        (
            f"### `{one.name}`",
            "",
            f"{one.says}",
            "",
            f"- Between: {one.files}",
            f"- Kept by: {one.keeper}",
            f"- Broken: {_sentences(one.broken)}",
            f"- May be broken: {_sentences(one.legal)}",
            f"- Findings: {kinds}",
            f"- Verdict: {one.severity}",
            f"- Faults planted: {faults}",
        )
    )


def _sentences(text: str) -> str:
    """One sentence a line, as on every page (tests/unit/test_prose.py)."""
    return re.sub(r"(?<=\.) (?=[A-Z])", "\n  ", text)


def shown(page: str, scope: InvariantScope) -> str:
    """The table that the page shows."""
    begin, end = marks(scope)
    return page.partition(f"{begin}\n\n")[2].partition(f"\n\n{end}")[0]


def main() -> None:
    """Write the tables."""
    page = PAGE.read_text("utf-8")
    for scope in InvariantScope:
        begin, end = marks(scope)
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n\n{table(scope)}\n\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
