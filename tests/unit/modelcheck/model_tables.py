"""The tables of models in docs/model-*.md, from the manifests.

`python -m tests.unit.modelcheck.model_tables` writes tier, description and result of each row into
the pages. Bounds, and in which table a model stands, are the pages' own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from conformance.modelcheck.manifest import Model, find_models
from conformance.resources import resource_root

FAMILIES = (
    "replication",
    "group",
    "controller",
    "acknowledgement",
    "consumer",
    "mixed",
    "offsets",
    "positions",
    "runtime",
    "directories",
    "fetchers",
    "storage",
    "compaction",
    "load",
    "data",
    "sessions",
    "share",
    "persister",
    "produce",
    "producer",
    "reassignment",
    "transaction",
    "history",
)
ROW = re.compile(r"^\| `([\w/-]+)` \| ([^|]+) \| ((?:ci|nightly) \| .*) \|$", re.MULTILINE)


def page(family: str) -> Path:
    """The page about a specification's models."""
    return resource_root() / "docs" / f"model-{family}.md"


def described(family: str) -> dict[str, str]:
    """By a model's name below its family: tier, description and result, as cells of a row."""
    return dict(_cells(family))


def shown(family: str) -> list[tuple[str, str]]:
    """The same of each row on the page."""
    rows = ROW.findall(page(family).read_text(encoding="utf-8"))
    return [(name, cells) for name, _, cells in rows]


def _cells(family: str) -> Iterator[tuple[str, str]]:
    for model in find_models([family]):
        cells = (model.tier, model.description, _result(model))
        yield model.name.partition("/")[2], " | ".join(cells)


def _result(model: Model) -> str:
    expect = model.expect
    assert expect is not None
    if expect.result == "holds":
        states = expect.distinct_states
        return f"holds, {states:,} states" if states else "holds as expected; not run to the end"
    if (simulation := model.check.simulation) is not None:
        return f"not exhausted; {simulation.behaviours:,} random behaviours, no violation"
    if length := expect.counterexample_length:
        return f"`{expect.violated}`, {length} states"
    if expect.reason.startswith("not run"):
        return f"`{expect.violated}` expected; not run at these bounds"
    return f"`{expect.violated}`, a lasso"


def main() -> None:
    """Write the manifests' cells into the rows that are there."""
    for family in FAMILIES:
        wanted = described(family)

        def row(found: re.Match[str], wanted: dict[str, str] = wanted) -> str:
            return f"| `{found[1]}` | {found[2]} | {wanted.get(found[1], found[3])} |"

        text = page(family).read_text(encoding="utf-8")
        page(family).write_text(ROW.sub(row, text), encoding="utf-8")
        for name in sorted(wanted.keys() - dict(shown(family))):
            print(f"{page(family).name} has no row that begins with | `{name}` | BOUNDS | ci |")


if __name__ == "__main__":
    main()
