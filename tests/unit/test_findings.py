"""docs/findings.md is what its command makes, and it has every departure that a table knows."""

from __future__ import annotations

import pytest

from conformance.deviations.table import Deviation, load_deviations
from conformance.report.releases import records
from experiments import deviation_releases, findings

KNOWN = load_deviations(findings.TABLE)


@pytest.fixture(scope="module")
def page() -> str:
    """As the command makes it, which replays stories: once is enough."""
    return findings.page()


def test_the_page_is_what_the_command_makes(page: str) -> None:
    assert findings.PAGE.read_text(encoding="utf-8") == page, (
        "Type python -m experiments.findings to write docs/findings.md again."
    )


@pytest.mark.parametrize("deviation", KNOWN, ids=lambda deviation: deviation.id)
def test_every_departure_has_a_section(page: str, deviation: Deviation) -> None:
    assert f"\n## {deviation.id}\n" in page


@pytest.mark.parametrize("deviation", KNOWN, ids=lambda deviation: deviation.id)
def test_what_nobody_has_reported_says_where_that_was_looked_for(deviation: Deviation) -> None:
    if deviation.report.startswith("no report known"):
        assert deviation.searched[:4].isdecimal(), "searched begins with a date"


def test_what_loses_data_and_is_not_reported_comes_first(page: str) -> None:
    sections = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]

    assert sections[0] == "re-elected-leader"
    assert sections.index("stale-load") < sections.index("KAFKA-18991")
    assert sections.index("KAFKA-20845") < sections.index("created-group-stored")


def test_the_table_says_of_each_release_what_was_seen_of_it() -> None:
    text, seen = findings.TABLE.read_text(encoding="utf-8"), records(deviation_releases.RELEASES)

    assert deviation_releases.with_releases(text, seen) == text, (
        "Type python -m experiments.deviation_releases to write what docs/releases says."
    )
