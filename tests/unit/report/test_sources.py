"""A finding's reasons lead to the lines of the specification that the page shows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from conformance.events import (
    ComparedModel,
    Exhibit,
    Finding,
    ModuleText,
    Reason,
    ShownStep,
    StageFinished,
)
from conformance.report import page
from conformance.report.collect import Collector, Report
from conformance.report.page.sources import line_of
from conformance.verdict import Verdict

SPEC = ModuleText("Spec", "spec/Spec.tla", "Send ==\n  TRUE\nNever == 2\n")
LOGS = ModuleText("Logs", "spec/Logs.tla", "Grow ==\n  <half>\n")
HELD = ComparedModel(
    spec="Spec",
    protocol="p",
    model="m",
    variant="V",
    system="s",
    version="",
    actions=("Send",),
    modules=(SPEC,),
    places={"Send": ("Spec", 1, 2)},
)
EXHIBIT = Exhibit(
    steps=(ShownStep("", (), {"v": "1"}),),
    svg="<svg></svg>",
    reasons=(
        Reason(0, "Why:"),
        Reason(1, "TRUE", "is FALSE", "Spec:2:3"),
        Reason(1, "half", "is FALSE", "Logs:2:3"),
        Reason(1, "far", "is FALSE", "Elsewhere:9:1"),
    ),
    texts=(LOGS,),
)
FOUND = Finding("k", "title", "replay", "", location="spec/Spec.tla:1:1", exhibit=EXHIBIT)


def report(*findings: Finding) -> Report:
    collector = Collector()
    collector(HELD)
    collector(
        StageFinished("replay", "m", Verdict.FAIL, 1.0, "", {"model": "m", "actions": {"Send": 1}})
    )
    for finding in findings:
        collector(finding)
    return collector.report("gate", 1.0, {})


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ("Spec:2:3", ("Spec", 2)),
        ("spec/Spec.tla:33:1", ("Spec", 33)),
        (r"C:\spec\Spec.tla:33:1", ("Spec", 33)),
        ("models/m.toml", None),
        ("", None),
    ],
)
def test_places_are_read_as_they_are_written(location: str, line: tuple[str, int] | None) -> None:
    assert line_of(location) == line


def test_each_place_whose_text_is_here_has_a_link_to_one_line() -> None:
    text = page.dumps(report(FOUND), now=0)
    links = re.findall(r'<a class="dim mono" href="#([^"]+)">', text)
    assert sorted(links) == ["text-Logs-2", "text-Spec-1", "text-Spec-2"]
    for link in links:
        assert text.count(f'id="{link}"') == 1
    assert '<span class="dim mono">Elsewhere:9:1</span>' in text
    assert text.index('id="text-Logs-2"') > text.index('<h2 id="text">Specification')
    assert "&lt;half>" in text


def test_a_page_without_findings_has_no_text_of_its_own() -> None:
    text = page.dumps(report(), now=0)
    assert 'id="text-' not in text
    assert "Specification</h2>" not in text


def test_what_was_only_model_checked_is_on_the_first_screen_too() -> None:
    collector = Collector()
    collector(HELD)
    for spec in ("Spec", "Other"):
        collector(StageFinished("check", spec, Verdict.PASS, 1.0, "", {"spec": spec}))
    text = page.dumps(collector.report("gate", 1.0, {}), now=0)
    about = text.split('<dl class="about">')[1].split("</dl>")[0]
    assert re.findall(r"<div>(.*?)</div>", about)[:2] == [
        "Spec: p (V)",
        "Other: model checked only",
    ]


def test_a_stage_shows_the_behaviour_that_it_was_expected_to_find() -> None:
    collector = Collector()
    collector(replace(HELD, system="s, one fault at a time"))
    collector(StageFinished("fault", "A8", Verdict.PASS, 1.0, "found", exhibit=EXHIBIT))
    collector(StageFinished("bugs", "all", Verdict.PASS, 1.0, "1 of 1 faults killed"))
    text = page.dumps(collector.report("bugs", 1.0, {}), now=0)
    assert '<p class="sentence">1 of 1 faults killed.</p>' in text
    assert "s, one fault at a time, against Spec" in text
    anchor = re.search(r'<a href="#(stage-\w+)">A8</a>', text)
    assert anchor is not None
    assert f'<details id="{anchor[1]}"' in text
