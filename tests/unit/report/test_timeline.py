"""The time line of a run: what ran beside what."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conformance.events import StageFinished
from conformance.report import json_report, page
from conformance.report.collect import Collector, Report
from conformance.report.page.timeline import time_line
from conformance.verdict import Verdict


def run(*ended: tuple[str, float, float]) -> Report:
    """A run whose stages (name, seconds, end) end at these seconds after its beginning."""
    ticks: Iterator[float] = iter([100.0, *(100.0 + end for _, _, end in ended)])
    collector = Collector(clock=lambda: next(ticks))
    for name, seconds, _ in ended:
        collector(StageFinished(name, "m", Verdict.PASS, seconds))
    return collector.report("gate", 10.0, {})


def test_what_runs_at_the_same_time_is_in_different_lanes() -> None:
    line = time_line(run(("check", 4, 4), ("check", 6, 6), ("replay", 4, 8), ("audit", 2, 10)))
    assert line is not None
    rows = sorted((bar.kind, bar.x, bar.y) for bar in line.bars)
    assert rows == [("audit", 800.0, 0.0), ("check", 0.0, 0.0), ("check", 0.0, 20.0),
                    ("replay", 400.0, 20.0)]  # fmt: skip
    assert line.kinds == (("check", 10.0), ("replay", 4.0), ("audit", 2.0))
    assert line.busy == (80.0, 80.0)


def test_a_stage_told_of_late_does_not_begin_before_the_run() -> None:
    report = run(("check", 9, 3), ("check", 1, 4))
    assert [(span.start, span.end) for span in report.spans] == [(0.0, 3.0), (3.0, 4.0)]


def test_a_stage_that_ended_before_it_was_told_stands_where_it_ended() -> None:
    ticks = iter([100.0, 109.0])
    collector = Collector(clock=lambda: next(ticks))
    collector(StageFinished("replay", "m", Verdict.PASS, 2.0, at=105.0))
    collector(StageFinished("audit", "m", Verdict.PASS, 4.0))
    spans = collector.report("gate", 10.0, {}).spans
    assert [(span.start, span.end) for span in spans] == [(3.0, 5.0), (5.0, 9.0)]


def test_one_stage_needs_no_drawing() -> None:
    report = run(("check", 1, 1))
    assert time_line(report) is None
    assert '<h2 id="time">' not in page.dumps(report)


def test_page_and_json_show_it() -> None:
    report = run(("check", 4, 4), ("replay", 4, 8))
    assert "replay m: 4.0 s, from 4.0 s" in page.dumps(report)
    told = json.loads(json_report.dumps(report))["time_line"]
    assert told[1] == {"stage": "replay", "subject": "m", "start": 4.0, "end": 8.0}
