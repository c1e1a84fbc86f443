"""Texts of the reports read well for one of something, and for several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.events import Exhibit, Finding, ShownStep, StageFinished
from conformance.printable import counted, plural, were
from conformance.report.collect import Collector
from conformance.report.page import dumps
from conformance.report.page.view import view_of
from conformance.report.trend import EarlierReport, trend
from conformance.verdict import Verdict

FINDING = Finding("k", "F is violated", "check", "")


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, ("0 tests", "tests", "0 tests were")),
        (1, ("1 test", "test", "1 test was")),
        (1_024, ("1,024 tests", "tests", "1,024 tests were")),
    ],
)
def test_a_number_and_its_noun_agree(count: int, told: tuple[str, str, str]) -> None:
    assert (counted(count, "test"), plural(count, "test"), were(count, "test")) == told


def test_a_noun_that_ends_with_an_s_has_its_own_plural() -> None:
    assert [counted(number, "process") for number in (1, 2)] == ["1 process", "2 processes"]


@pytest.mark.parametrize(("number", "label"), [(0, "findings"), (1, "finding"), (2, "findings")])
def test_the_figure_of_the_findings_has_its_label(number: int, label: str) -> None:
    collector = Collector()
    for one in range(number):
        collector(replace(FINDING, key=str(one)))
    facts = view_of(collector.report("check", 1.0, {})).facts
    assert (facts[-1].value, facts[-1].label) == (str(number), label)


def test_what_was_not_run() -> None:
    collector = Collector()
    tests = {"tests": {"not_run": 1}}
    collector(StageFinished("replay", "m", Verdict.FAIL, 1.0, "", dict(tests)))
    (gap,) = view_of(collector.report("replay", 1.0, {})).gaps
    assert gap.what == "1 test was not run"


def test_since_is_said_once() -> None:
    report = Collector().report("check", 1.0, {})
    since = trend(report, EarlierReport("earlier.json", "check", "pass", 1.0, {}))
    page = " ".join(dumps(report, trend=since).split())
    assert "<dt>Since</dt><dd>earlier.json (pass): 0 new" in page
    assert since.line().startswith("since earlier.json")


def test_a_deadlock_that_was_expected_is_no_formula_that_is_violated() -> None:
    figures = {"model": "m", "violated": "deadlock", "counterexample_length": 1}
    exhibit = Exhibit((ShownStep("", (), {"x": "0"}, ""),), "<svg></svg>")
    collector = Collector()
    collector(StageFinished("check", "m", Verdict.PASS, 1.0, "", dict(figures), exhibit=exhibit))
    page = dumps(collector.report("check", 1.0, {}))
    assert "m: a deadlock was reached, as expected, in 1 state</summary>" in page
    assert "1 step as text" in page
