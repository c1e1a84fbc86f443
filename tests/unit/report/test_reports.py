"""One run's events, told in each format: nothing is lost and nothing is dressed up."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from conformance.events import (
    Difference,
    Event,
    Finding,
    JsonValue,
    Progress,
    StageFinished,
    StageStarted,
)
from conformance.report import github, json_report, junit, page
from conformance.report.collect import Collector, Report
from conformance.report.terminal import Terminal
from conformance.verdict import Verdict

FINDING = Finding(
    key="replay:Fetch",
    title="Fetch: state not allowed <b1>",
    stage="replay",
    message="The implementation shows a state that the spec does not allow.",
    trace="12",
    step=3,
    action='Fetch("b1")',
    formula="Fetch",
    location="spec/Replication.tla:120:3",
    differences=(Difference('highWatermark["b1"]', "1", "2"),),
    story=('  1. Append("b1", 1)',),
    reproduce="kconform replay m --trace 12",
)


def finished_run() -> Report:
    collector = Collector()
    collector(StageStarted("check", "m"))
    collector(Progress("check", 1, 2))
    collector(
        StageFinished(
            "check",
            "m",
            Verdict.PASS,
            1.5,
            "1 of 1 as expected",
            {"model": "m", "verdict": "pass", "distinct_states": 1200},
        )
    )
    collector(FINDING)
    collector(FINDING)
    collector(StageFinished("replay", "m", Verdict.FAIL, 2.0, "1 divergence", {"steps": 10}))
    return collector.report("gate", 3.5, {"tier": "ci"})


def test_the_worst_stage_decides_and_duplicates_are_one_finding() -> None:
    report = finished_run()
    assert report.verdict is Verdict.FAIL
    assert [(f.key, f.count) for f in report.findings] == [("replay:Fetch", 2)]


def test_a_run_without_stages_is_no_pass() -> None:
    assert Collector().report("audit", 0.0, {}).verdict is Verdict.INCONCLUSIVE


def test_json_has_every_stage_and_every_field_of_a_finding() -> None:
    body = json.loads(json_report.dumps(finished_run()))
    assert body["schema_version"] == 3
    assert body["verdict"] == "fail"
    assert body["stages"]["check"]["models"][0]["distinct_states"] == 1200
    assert body["stages"]["replay"]["steps"] == 10
    assert body["findings"][0]["differences"] == [
        {"variable": 'highWatermark["b1"]', "expected": "1", "actual": "2"}
    ]


def test_junit_counts_what_it_holds() -> None:
    root = ET.fromstring(junit.dumps(finished_run()))
    replay = root.find("testsuite[@name='kconform.replay']")
    assert replay is not None
    assert (replay.get("tests"), replay.get("failures")) == ("2", "2")
    check = root.find("testsuite[@name='kconform.check']")
    assert check is not None
    assert (check.get("tests"), check.get("failures")) == ("1", "0")


def test_junit_skips_what_only_follows_from_a_failure_and_counts_the_rest_as_errors() -> None:
    collector = Collector()
    for subject, consequence in (("after a failure", True), ("for a reason of its own", False)):
        collector(
            StageFinished(
                "coverage",
                subject,
                Verdict.INCONCLUSIVE,
                0.1,
                "3 of 4 actions",
                consequence=consequence,
            )
        )
    root = ET.fromstring(junit.dumps(collector.report("gate", 1.0, {})))
    suite = root.find("testsuite[@name='kconform.coverage']")
    assert suite is not None
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == [*"2011"]
    skipped = suite.find("testcase[@name='after a failure']/skipped")
    assert skipped is not None
    assert skipped.get("message") == "3 of 4 actions"


def test_html_shows_the_finding_and_escapes_it() -> None:
    text = page.dumps(finished_run(), now=0.0)
    assert "Fetch: state not allowed &lt;b1&gt;" in text
    assert "1,200" in text
    assert "1970-01-01" in text


def test_github_annotation_points_at_the_spec_line_from_the_repositorys_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "protocol" / "spec" / "Replication.tla"
    spec.parent.mkdir(parents=True)
    spec.touch()
    monkeypatch.chdir(tmp_path / "protocol")
    out = io.StringIO()
    github.annotate(finished_run(), out, {"GITHUB_WORKSPACE": str(tmp_path)})
    assert out.getvalue().startswith(
        "::error file=protocol/spec/Replication.tla,line=120,title=Fetch%3A state"
    )


def test_github_annotation_names_no_file_outside_the_repository(tmp_path: Path) -> None:
    out = io.StringIO()
    github.annotate(finished_run(), out, {"GITHUB_WORKSPACE": str(tmp_path)})
    assert out.getvalue().startswith("::error title=Fetch%3A state")


def test_github_summary_is_appended_to_the_file_that_actions_names(tmp_path: Path) -> None:
    target = tmp_path / "summary.md"
    target.write_text("before\n")
    github.write_summary(finished_run(), {"GITHUB_STEP_SUMMARY": str(target)})
    assert target.read_text().startswith("before\n### kconform gate: fail")


ONLY_SPECIFICATIONS = "specifications only"
NOTHING_JUDGED = "Nothing was judged."


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        (["check"], [ONLY_SPECIFICATIONS]),
        (["check", "diff"], [ONLY_SPECIFICATIONS]),
        (["history"], ["<dt>Judged</dt>", "history of its subject: 12 things"]),
        (["inspect", "log"], ["<dt>Judged</dt>", "inspect of", "log of its subject: 12 things"]),
        (["workload"], ["<dt>Made</dt>", "workload of its subject: 12 things", NOTHING_JUDGED]),
        (["record"], ["<dt>Made</dt>", NOTHING_JUDGED]),
        (["cluster"], ["<dt>Made</dt>", NOTHING_JUDGED]),
        (["workload", "history"], ["<dt>Made</dt>", "<dt>Judged</dt>"]),
        ([], []),
    ],
)
def test_the_page_says_what_was_looked_at(stages: list[str], says: list[str]) -> None:
    collector = Collector()
    for name in stages:
        collector(StageFinished(name, "its subject", Verdict.PASS, 1.0, "12 things"))
    text = page.dumps(collector.report("command", 1.0, {}), now=0.0)
    assert [line for line in says if line not in text] == []
    for line in (ONLY_SPECIFICATIONS, NOTHING_JUDGED, "<dt>Made</dt>", "<dt>Judged</dt>"):
        assert line in says or line not in text


@pytest.mark.parametrize("live", [True, False])
def test_terminal_prints_stages_and_findings(live: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=160, force_terminal=live)
    with Terminal(console, live=live) as terminal:
        collector = Collector(terminal)
        collector(StageStarted("replay", "m", 10))
        collector(Progress("replay", 5, 10))
        collector(FINDING)
        collector(StageFinished("replay", "m", Verdict.FAIL, 2.0, "1 divergence"))
    text = out.getvalue()
    assert "expected 1" in text
    assert "Reproduce: kconform replay m --trace 12" in text
    assert "1 divergence" in text


def shown(*events: Event) -> list[str]:
    """The lines of a terminal, as far as they say what a stage or a finding is."""
    console = Console(file=io.StringIO(), width=200)
    with Terminal(console, live=False) as terminal:
        for event in events:
            terminal(event)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return [" ".join(line.split()[:3]) for line in lines if not line.startswith("    ")]


def ended(stage: str, subject: str, verdict: Verdict = Verdict.FAIL) -> StageFinished:
    return StageFinished(stage, subject, verdict, 1.0, "")


def test_findings_stand_below_the_line_of_their_stage() -> None:
    of_replay = replace(FINDING, title="A", stage="replay")
    of_audit = replace(FINDING, title="B", stage="audit")
    lines = shown(of_replay, of_audit, ended("replay", "m"), ended("audit", "m"))
    assert lines == ["fail replay m", "✗ A", "fail audit m", "✗ B"]


def test_of_models_that_are_checked_side_by_side_each_has_its_own_findings() -> None:
    first = replace(FINDING, title="A", stage="check", about="one")
    second = replace(FINDING, title="B", stage="check", about="two")
    lines = shown(first, second, ended("check", "two"), ended("check", "one"))
    assert lines == ["fail check two", "✗ B", "fail check one", "✗ A"]


def test_a_finding_of_a_stage_that_does_not_end_is_told_at_the_end() -> None:
    assert shown(FINDING, ended("check", "m", Verdict.PASS)) == [
        "pass check m",
        "✗ Fetch: state",
    ]


@pytest.mark.parametrize("value", [{}, [], "", None])
def test_what_a_run_has_nothing_to_say_of_is_not_on_its_page(value: JsonValue) -> None:
    report = replace(finished_run(), header={"tier": "ci", "left_out": value, "seed": 0})
    text = page.dumps(report, now=0.0)
    assert "left_out" not in text
    assert "seed 0" in text


def test_what_was_only_fetched_earns_no_pass() -> None:
    collector = Collector()
    collector(StageFinished("fetch", "kafka-3.9.2", Verdict.PASS, 80.1, checks=False))

    assert collector.report("versions", 80.1, {}).verdict is Verdict.INCONCLUSIVE
