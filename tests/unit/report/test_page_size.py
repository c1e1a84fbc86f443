"""A page stays small enough for a CI artifact: of expected counterexamples those that fit."""

from __future__ import annotations

import re

import pytest

from conformance.events import Exhibit, JsonValue, ShownStep, StageFinished
from conformance.report import page
from conformance.report.collect import Collector
from conformance.verdict import Verdict


def drawn(size: int) -> Exhibit:
    """A behaviour whose drawing has about so many characters."""
    return Exhibit(svg=f"<svg>{'x' * size}</svg>", steps=(ShownStep("", (), {"v": '"a" |-> 1'}),))


def page_of(sizes: dict[str, int], *failing: str) -> str:
    collector = Collector()
    for name, size in sizes.items():
        verdict = Verdict.FAIL if name in failing else Verdict.PASS
        figures: dict[str, JsonValue] = {"model": name, "result": "violated", "violated": "Inv"}
        collector(StageFinished("check", name, verdict, 1.0, "", figures, exhibit=drawn(size)))
    return page.dumps(collector.report("gate", 1.0, {}), now=0)


def drawings(text: str) -> list[int]:
    return [len(found) for found in re.findall(r"<svg>(x+)</svg>", text)]


def test_what_fits_is_drawn() -> None:
    text = page_of({"a": 10, "b": 20})
    assert drawings(text) == [10, 20]
    assert "under 3 MB" not in text


def test_the_longest_expected_counterexamples_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = len(page_of({"a": 10, "b": 20, "c": 30}).encode())
    monkeypatch.setattr(page, "MOST_BYTES", small + 5_000)
    text = page_of({"a": 10, "b": 900_000, "c": 30, "d": 800_000})
    assert drawings(text) == [10, 30]
    assert len(text.encode()) <= small + 5_000
    assert "2 behaviours that were expected are not drawn" in text


def test_a_model_that_should_have_held_is_drawn_however_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page, "MOST_BYTES", 50_000)
    assert drawings(page_of({"a": 100_000, "b": 200}, "a")) == [100_000]


def test_text_between_tags_is_escaped_where_it_must_be() -> None:
    collector = Collector()
    steps = (ShownStep("", (), {"v": '<script>"&'}), ShownStep("A", ("</li><b>",), {"v": "1"}))
    exhibit = Exhibit(svg="<svg></svg>", steps=steps)
    collector(StageFinished("check", "m", Verdict.PASS, 1.0, "", {}, exhibit=exhibit))
    text = page.dumps(collector.report("gate", 1.0, {}), now=0)
    assert 'v = &lt;script>"&amp;' in text
    assert "&lt;/li>&lt;b>" in text
    assert "<b>" not in text.split('class="steps"')[1].split("</ol>")[0]
