"""Beside a pass stands what of the protocol it did not take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.events import ComparedModel, ModuleText, StageFinished
from conformance.report.collect import Collector, Report
from conformance.report.exercised import exercised_json, exercised_lines
from conformance.report.json_report import to_json
from conformance.verdict import Verdict

HELD = ComparedModel(
    spec="Group",
    protocol="p",
    model="m",
    variant="V",
    system="s",
    version="",
    actions=("Join", "Sync", "Heartbeat"),
    modules=(ModuleText("Group", "spec/Group.tla", "Join ==\n  \\/ A\n  \\/ B\n"),),
    places={"Join": ("Group", 1, 3)},
    branches={"Group:2:3": ("Group", 2), "Group:3:3": ("Group", 3)},
)
TAKEN = {"Join": 3, "Sync": 2}


def report(
    actions: dict[str, int], *, verdict: Verdict = Verdict.PASS, held: ComparedModel = HELD
) -> Report:
    collector = Collector()
    collector(held)
    figures = {"model": "m", "actions": {**actions}, "branches": {"Group:2:3": 3}}
    collector(StageFinished("replay", "m", verdict, 1.0, "", figures))
    return collector.report("replay", 1.0, {})


def test_a_pass_names_the_actions_and_counts_the_disjuncts_that_it_did_not_take() -> None:
    assert list(exercised_lines(report(TAKEN))) == [
        "not exercised of Group: 1 of 3 actions (Heartbeat); 1 of 2 disjuncts of the actions"
    ]


def test_the_json_report_has_all_of_them() -> None:
    expected = {
        "Group": {
            "actions": 2,
            "all_actions": 3,
            "actions_not_taken": ["Heartbeat"],
            "disjuncts": 1,
            "all_disjuncts": 2,
            "disjuncts_not_taken": ["Group:3:3"],
        }
    }
    assert exercised_json(report(TAKEN)) == expected
    assert to_json(report(TAKEN))["exercised"] == expected


def test_of_many_actions_the_first_are_named() -> None:
    many = replace(HELD, actions=("Join", *(f"A{number}" for number in range(10))), branches={})
    (line,) = exercised_lines(report({"Join": 1}, held=many))
    assert line.endswith("10 of 11 actions (A0, A1, A2, A3, A4, A5, A6, A7, and 2 more)")


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.ERROR])
def test_a_run_that_failed_says_nothing_of_what_it_left_out(verdict: Verdict) -> None:
    assert not list(exercised_lines(report(TAKEN, verdict=verdict)))


def test_a_run_that_counted_no_steps_says_nothing() -> None:
    assert not exercised_json(report({}))
    assert "exercised" not in to_json(report({}))
