"""The tables of docs/bugs.md against the catalogues: every bug, its oracle and the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conformance.bugs.fault import Catalogue, built_in_catalogues, load_catalogue
from conformance.resources import resource_root

Row = tuple[str, str, str, str]
"""Id, JIRA, the kind of oracle, reason."""


def documented() -> list[Row]:
    """The rows of the page's tables; a reason stands in the line below its row."""
    page = (resource_root() / "docs" / "bugs.md").read_text(encoding="utf-8")
    tables = page.partition("## The tables")[2].partition("## A fault of your own")[0]
    found = re.findall(
        r"^(\w+\d+) +((?:KAFKA|KIP)-\d+|no JIRA) +(killed +tests of impl|killed|not applicable).*"
        r"(?:\n     (.*))?",
        tables,
        re.MULTILINE,
    )
    return [(id, jira, " ".join(oracle.split()), reason) for id, jira, oracle, reason in found]


def wanted(catalogue: Catalogue) -> Iterator[Row]:
    for fault in catalogue.faults:
        if fault.unseen is None:
            yield fault.id, fault.jira, "killed", ""
        else:
            yield fault.id, fault.jira, "killed tests of impl", fault.unseen.reason
    for bug in catalogue.not_applicable:
        yield bug.id, bug.jira, "not applicable", bug.reason


def test_the_page_has_every_row_as_the_catalogues_have_it() -> None:
    rows = [row for path in built_in_catalogues() for row in wanted(load_catalogue(path))]

    assert sorted(documented()) == sorted(rows)
