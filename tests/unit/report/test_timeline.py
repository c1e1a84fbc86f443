"""The time line of a run: what ran beside what."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conformance.events import StageFinished, Work
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


def shared(*stages: tuple[str, *tuple[Work, ...]]) -> Report:
    """A run of ten seconds, whose stages these workers were at."""
    collector = Collector(clock=lambda: 100.0)
    for name, *work in stages:
        collector(StageFinished(name, "m", Verdict.PASS, 1.0, work=tuple(work)))
    return collector.report("gate", 10.0, {})


def test_each_worker_has_a_lane() -> None:
    line = time_line(
        shared(
            ("check", Work("TLC 2", 100, 106)),
            ("check", Work("TLC 1", 100, 104)),
            ("record", Work("process 10", 106, 108), Work("process 9", 106, 107)),
            ("audit", Work("kconform", 108, 110)),
            ("replay", Work("process 9", 107, 110)),
        )
    )
    assert line is not None
    workers = {lane.y: lane.worker for lane in line.lanes}
    assert list(workers.values()) == ["kconform", "TLC 1", "TLC 2", "process 9", "process 10"]
    assert [(workers[bar.y], bar.kind, bar.x, bar.width) for bar in line.bars] == [
        ("kconform", "audit", 800.0, 200.0),
        ("TLC 1", "check", 0.0, 400.0),
        ("TLC 2", "check", 0.0, 600.0),
        ("process 9", "record", 600.0, 100.0),
        ("process 9", "replay", 700.0, 300.0),
        ("process 10", "record", 600.0, 200.0),
    ]
    assert [lane.busy for lane in line.lanes] == [20.0, 40.0, 60.0, 40.0, 20.0]
    assert dict(line.kinds) == {"check": 10.0, "record": 3.0, "audit": 2.0, "replay": 3.0}


def test_a_worker_that_seems_to_do_two_things_at_once_is_shown_so() -> None:
    line = time_line(run(("check", 4, 4), ("check", 6, 6)))
    assert line is not None
    assert [lane.worker for lane in line.lanes] == ["kconform", "kconform"]


def test_a_stage_told_of_late_does_not_begin_before_the_run() -> None:
    report = run(("check", 9, 3), ("check", 1, 4))
    assert [(span.start, span.end) for span in report.spans] == [(0.0, 3.0), (3.0, 4.0)]


def test_a_stage_that_ended_before_it_was_told_stands_where_it_ended() -> None:
    ticks = iter([100.0, 105.5, 109.0])
    collector = Collector(clock=lambda: next(ticks))
    replayed = (Work("process 1", 103.0, 105.0),)
    collector(StageFinished("replay", "m", Verdict.PASS, 2.0, work=replayed))
    collector(StageFinished("audit", "m", Verdict.PASS, 4.0))
    spans = collector.report("gate", 10.0, {}).spans
    assert [(span.start, span.end) for span in spans] == [(3.0, 5.0), (5.0, 9.0)]


def test_one_stage_needs_no_drawing() -> None:
    report = run(("check", 1, 1))
    assert time_line(report) is None
    assert '<h2 id="time">' not in page.dumps(report)


def test_page_and_json_show_it() -> None:
    report = run(("check", 4, 4), ("replay", 4, 8))
    assert "replay m: 4.0 s, from 4.0 s, by kconform" in page.dumps(report)
    told = json.loads(json_report.dumps(report))["time_line"]
    known = {"stage": "replay", "subject": "m", "worker": "kconform"}
    assert told[1] == known | {"start": 4.0, "end": 8.0}
