"""Five symptoms of one bug are one cause; what is new and what is gone comes first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.errors import DataError, UserError
from conformance.events import Difference, Finding, JsonValue, StageFinished
from conformance.report import json_report, page
from conformance.report.causes import causes
from conformance.report.collect import Collector, Report
from conformance.report.files import reports
from conformance.report.text import printable
from conformance.report.trend import load_earlier, trend
from conformance.verdict import Verdict


def found(
    key: str,
    action: str = "",
    variables: str = "",
    stage: str = "replay",
    step: int | None = 5,
    formula: str = "",
) -> Finding:
    differing = tuple(Difference(name, "1", "2") for name in variables.split())
    return Finding(
        key, key, stage, "", action=action, differences=differing, step=step, formula=formula
    )


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        (found("a", "Fetch(1)", 'log["b1"]'), found("b", "Fetch(2)", "log hw"), True),
        (found("a", "Fetch(1)", "log"), found("b", "Fetch(2)", "hw"), False),
        (found("a", "Fetch(1)", "log"), found("b", "Append(1)", "log isr"), False),
        (found("a", "Fetch(1)", "log.x isr"), found("b", "Append(1)", "isr log"), True),
        (found("A:raised:cut:KeyError", "A"), found("B:raised:cut:KeyError", "B"), True),
        (found("A:raised:cut:KeyError", "A"), found("A:raised:cut:IndexError", "A"), False),
        (found("Fetch:refused", "Fetch(1)"), found("Fetch:endless", "Fetch(2)"), True),
        (found("A:not_enabled", "Fetch(1)"), found("A:not_enabled", "A(2)", "x"), True),
        (found("A+B:not_enabled", "Fetch"), found("B:not_enabled", "B(2)", "x", "audit"), True),
        (found("A:not_enabled", "Fetch"), found("B:not_enabled", "Fetch"), False),
        (found("F:violated", stage="check"), found("F:violated", stage="audit"), True),
        (found("F:violated", stage="check"), found("G:violated", stage="check"), False),
        (found("bugs:A1", stage="bugs"), found("bugs:A2", stage="bugs"), False),
        (found("a"), found("b"), False),
    ],
)
def test_symptoms_are_joined_by_what_they_share(one: Finding, other: Finding, joined: bool) -> None:
    assert len(causes([one, other])) == (1 if joined else 2)


def test_a_chain_of_symptoms_is_one_cause_and_its_shortest_way_comes_first() -> None:
    chain = [
        found("a", "Fetch(1)", "log", step=9),
        found("x", "Crash", "up"),
        found("b", "Fetch(1)", "log hw", step=4),
        found("c", "Fetch(1)", "hw", stage="audit", step=None),
    ]
    first, second = causes(chain)
    assert [one.key for one in first.symptoms] == ["b", "a", "c"]
    assert first.stages == ("replay", "audit")
    assert [one.key for one in second.symptoms] == ["x"]


def report(*findings: Finding, stages: tuple[StageFinished, ...] = ()) -> Report:
    collector = Collector()
    for stage in stages:
        collector(stage)
    for finding in findings:
        collector(finding)
    return collector.report("gate", 1.0, {})


def test_stages_that_meet_one_cause_stay_visible_and_models_stay_apart() -> None:
    one = found("F:violated", stage="replay")
    told = report(
        one,
        one,
        replace(one, stage="audit"),
        *(replace(one, stage="check", about=name) for name in "ab"),
    )
    counts = [(each.stage, each.about, each.count) for each in told.findings]
    assert counts == [("replay", "", 2), ("audit", "", 1), ("check", "a", 1), ("check", "b", 1)]
    (cause,) = causes(told.findings)
    assert cause.stages == ("replay", "audit", "check")


def test_new_and_gone_findings_since_an_earlier_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json_report.dumps(report(found("old"), found("kept"))))
    since = trend(report(found("kept"), found("fresh")), load_earlier(path))
    assert (since.new, [one.key for one in since.gone], since.known) == (
        frozenset({"fresh"}),
        ["old"],
        1,
    )
    text = page.dumps(report(found("kept"), found("fresh")), trend=since)
    assert text.index(">fresh</a>") < text.index(">kept</a>")
    assert "Gone since the earlier report" in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema_version": 1}',
        '{"schema_version": 2}',
        '{"schema_version": 99}',
        '{"schema_version": 2, "verdict": "pass", "verdict": "fail"}',
    ],
)
def test_what_is_no_report_is_not_compared_with(tmp_path: Path, text: str) -> None:
    (tmp_path / "earlier.json").write_text(text)
    with pytest.raises(DataError, match=r"earlier\.json"):
        load_earlier(tmp_path / "earlier.json")


def test_an_unwritable_folder_is_noticed_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="nothing was run"):
        reports(tmp_path / "file" / "out")


def test_three_files_of_one_run_are_written_whole(tmp_path: Path) -> None:
    files, since = reports(tmp_path / "new" / "out").write(report(found("a")))
    assert [path.name for path in files] == ["report.json", "report.html", "junit.xml"]
    assert since is None
    assert json.loads(files[0].read_text())["findings"][0]["key"] == "a"
    assert [
        path.name for path in (tmp_path / "new" / "out").iterdir() if path.suffix == ".tmp"
    ] == []


def test_the_consequence_of_stopping_is_told_once_and_as_such() -> None:
    tests: dict[str, JsonValue] = {"not_run": 771, "inconclusive": 0}
    stages = tuple(
        StageFinished("replay", name, Verdict.FAIL, 1.0, "", {"tests": tests}) for name in "ab"
    )
    text = page.dumps(report(found("x"), stages=stages))
    assert text.count("tests were not run") == 1
    assert "1,542 tests were not run" in text


def test_a_report_of_half_a_run_does_not_look_whole() -> None:
    half = replace(report(), header={"incomplete": True}, verdict=Verdict.INCONCLUSIVE)
    assert "did not come to its end" in page.dumps(half)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é ✗", "plain é ✗"),
        ("two\nlines\tand tabs", "two\nlines\tand tabs"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("\x9b31m\x7f\r", "\\x9b31m\\x7f\\r"),
        ("a\u202eb\u2028", "a\\u202eb\\u2028"),
    ],
)
def test_foreign_text_steers_no_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
