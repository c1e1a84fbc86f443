"""A finding is a story: the operations that show it, no more and no less, with a drawing."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.history import stories
from conformance.history.judgement import HistoryJudgement
from conformance.history.rules import RULES
from conformance.report.page import behaviour_page
from tests.unit.history.histories import Operation, judged, polled, sent
from tests.unit.history.test_rules import LIES, Lie

CASES = [(case, name) for case in LIES for name in case.broken]
NOISE = [
    sent("a", ("n", 100, 0)),
    *(polled(process, ("n", 100, 0), moved=["n"]) for process in "abcd"),
]
"""What every process does beside: each is seen somewhere before its lie."""


def broken(judgement: HistoryJudgement) -> set[str]:
    return {tally.rule.name for tally in judgement.broken()}


def named_operations(history: list[Operation], rule: str, folder: Path) -> list[Operation]:
    """The operations that the story of a rule's finding names."""
    findings = stories.findings(judged(history), folder, "-")
    (finding,) = (each for each in findings if each.formula == rule)
    lines = [line for line in finding.story if line.startswith("history.ndjson:")]
    drawing = (folder / f"{rule}.svg").read_text("utf-8")
    assert finding.exhibit
    assert all(line.split(": ")[1] in drawing for line in lines)
    return [history[int(line.split(":")[1]) - 1] for line in lines]


@pytest.mark.parametrize(
    ("case", "rule"), CASES, ids=[f"{rule}-{case.name.replace(' ', '-')}" for case, rule in CASES]
)
def test_the_operations_of_a_finding_show_it_and_none_can_be_left_out(
    case: Lie, rule: str, tmp_path: Path
) -> None:
    history = [*NOISE, *case.lie]
    operations = named_operations(history, rule, tmp_path)
    assert rule in broken(judged(operations))
    for place in range(len(operations)):
        fewer = [*operations[:place], *operations[place + 1 :]]
        assert rule not in broken(judged(fewer)), operations[place]


@pytest.mark.parametrize("case", LIES[:1], ids=lambda case: case.name)
def test_the_page_has_the_rule_and_no_box_for_states(case: Lie, tmp_path: Path) -> None:
    (finding, *_) = stories.findings(judged([*NOISE, *case.lie]), tmp_path, "-")
    assert finding.exhibit
    page = behaviour_page(finding.exhibit, finding.title)
    assert 'class="scroll now"' not in page
    assert "Initial state" not in page
    assert '<a class="dim mono" href="#text-ClientHistory-' in page


def test_each_rule_has_such_a_story() -> None:
    assert {rule for _, rule in CASES} == {rule.name for rule in RULES if rule.decides}
