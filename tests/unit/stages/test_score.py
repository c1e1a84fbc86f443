"""Score cards out of report.json: what each suite and each area is said to be."""

from __future__ import annotations

import copy
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from conformance.cli.main import load
from conformance.errors import DataError, ExitCode, UserError
from conformance.report import card as cards
from conformance.report.card import ScoreCard, Standing
from conformance.stages.score import card_of
from conformance.verdict import Verdict


def suite(model: str, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    """What `replay` says of a model."""
    tests = {"in": 10, "pass": 10 if verdict == "pass" else 7, "fail": 3 * (verdict == "fail")}
    return {
        "subject": model,
        "model": model,
        "verdict": verdict,
        "tests": tests,
        "steps": 99,
        **more,
    }


GATE: dict[str, Any] = {
    "command": "gate",
    "system": "wire:localhost:9092?JoinGroup=5",
    "verdict": "pass",
    "schema_version": 3,
    "seed": 7,
    "tier": "ci",
    "version": "0.1.0",
    "left_out": {
        "group/maximum-size-2m": "the broker has another limit",
        "consumer/dynamic-2m": "The broker does not offer ConsumerGroupHeartbeat.",
        "delayed/chain": "it is driven by GroupMembership",
    },
    "stages": {
        "budget": {"no_time_for": {"group/fail-over-2m": 18.7}},
        "replay": {
            "models": [
                suite("group/dynamic-2m"),
                suite("group/static-restart-2m", deviations=["kept", "not-here"]),
                suite("group/commits-2m", "inconclusive"),
            ]
        },
        "deviations": {"deviations": {"kept": "seen", "not-here": "gone"}, "verdict": "pass"},
    },
    "findings": [],
}


def changed(**stages: Any) -> dict[str, Any]:
    """The report with other stages besides."""
    report = copy.deepcopy(GATE)
    report["stages"] |= stages
    return report


def card(folder: Path, report: dict[str, Any]) -> ScoreCard:
    file = folder / "report.json"
    file.write_text(json.dumps(report))
    return card_of(file)


def standings(made: ScoreCard) -> dict[str, Standing]:
    return {item.name: item.standing for area in made.areas for item in area.suites}


def test_each_suite_has_its_standing(tmp_path: Path) -> None:
    made = card(tmp_path, GATE)

    assert standings(made) == {
        "group/dynamic-2m": Standing.AGREES,
        "group/static-restart-2m": Standing.DECLARED,
        "group/commits-2m": Standing.UNDECIDED,
        "group/maximum-size-2m": Standing.NOT_OFFERED,
        "consumer/dynamic-2m": Standing.NOT_OFFERED,
        "delayed/chain": Standing.NOT_DRIVEN,
        "group/fail-over-2m": Standing.NOT_DRIVEN,
    }
    (static,) = (area for area in made.areas if area.id == "static-membership")
    # What the run showed to be gone is no departure.
    assert [item.title for item in static.suites[0].departures] == ["kept"]
    assert "JoinGroup 5" in static.requests
    assert (made.verdict, made.score) == (
        Verdict.INCONCLUSIVE, "2 of 3 areas, 1 with declared departures",
    )  # fmt: skip


def failing(model: str = "group/dynamic-2m", stage: str = "replay") -> dict[str, Any]:
    report = changed(**{stage: {"models": [suite("group/commits-2m"), suite(model, "fail")]}})
    if stage != "replay":
        report["stages"][stage] = suite(model, "fail", summary="3 of 5 fail")
    report["verdict"] = "fail"
    report["findings"] = [
        {
            "stage": stage, "title": "it forgets", "count": 3, "formula": "NeverLost",
            "key": "NeverLost:violated",
            "artifact": "out/divergences/group-dynamic-2m-Fetch-1.itf.json",
        }
    ]  # fmt: skip
    return report


@pytest.mark.parametrize("stage", ["replay", "explore", "interleave", "audit", "turns"])
def test_a_departure_in_any_stage_is_one_of_its_suite(stage: str, tmp_path: Path) -> None:
    made = card(tmp_path, failing(stage=stage))

    assert standings(made)["group/dynamic-2m"] is Standing.DEPARTS
    (area,) = (area for area in made.areas if area.standing is Standing.DEPARTS)
    assert area.worst == "violates NeverLost"
    (departure,) = area.suites[0].departures
    assert (departure.title, departure.count, departure.declared) == ("it forgets", 3, False)
    assert made.verdict is Verdict.FAIL
    text = cards.markdown(made)
    assert "it forgets: violates NeverLost, met 3 times, in 1 suite" in text
    assert "([story](out/divergences/group-dynamic-2m-Fetch-1.itf.json))" in text


@pytest.mark.parametrize("stage", ["deviations", "explore", "coverage", "check"])
def test_a_failure_that_belongs_to_no_suite_is_not_left_out(stage: str, tmp_path: Path) -> None:
    failed = {"subject": "elsewhere", "verdict": "fail", "summary": "one is gone"}
    made = card(tmp_path, changed(**{stage: failed}))

    assert standings(made)[f"{stage} elsewhere"] is Standing.DEPARTS
    assert made.verdict is Verdict.FAIL
    assert "one is gone" in cards.markdown(made)


def test_a_finding_that_names_no_suite_is_not_left_out(tmp_path: Path) -> None:
    report = copy.deepcopy(GATE)
    report["findings"] = [{"stage": "turns", "title": "odd", "count": 1, "artifact": ""}]
    assert standings(card(tmp_path, report))["findings"] is Standing.DEPARTS


@pytest.mark.parametrize(
    ("verdict", "standing", "outcome"),
    [
        ("fail", Standing.DEPARTS, Verdict.FAIL),
        ("inconclusive", Standing.UNDECIDED, Verdict.INCONCLUSIVE),
        ("error", Standing.UNDECIDED, Verdict.INCONCLUSIVE),
    ],
)
def test_a_run_that_did_not_pass_gives_no_card_that_does(
    verdict: str, standing: Standing, outcome: Verdict, tmp_path: Path
) -> None:
    """The suites alone had made the card: an action that no suite took was not on it."""
    made = card(tmp_path, {**changed(replay=suite("group/dynamic-2m")), "verdict": verdict})
    assert standings(made)["run"] is standing
    assert made.verdict is outcome
    assert f"the run ended with {verdict}" in cards.markdown(made)


def test_nothing_driven_is_no_pass(tmp_path: Path) -> None:
    report = copy.deepcopy(GATE)
    report["stages"] = {}
    made = card(tmp_path, report)
    assert (made.verdict, made.score) == (Verdict.INCONCLUSIVE, "0 of 0 areas")


def test_half_a_run_is_no_pass(tmp_path: Path) -> None:
    report = changed(replay=suite("group/dynamic-2m"))
    assert card(tmp_path, report).verdict is Verdict.PASS
    made = card(tmp_path, {**report, "incomplete": True})
    assert made.verdict is Verdict.INCONCLUSIVE
    assert "The run is incomplete." in cards.markdown(made)


def test_a_client_has_its_examples_and_the_duties_that_nobody_asked_for(tmp_path: Path) -> None:
    report = {
        "schema_version": 3,
        "command": "consumer {bootstrap}",
        "variant": "java",
        "verdict": "fail",
        "examples": {"pass": 8, "fail": 2},
        "duties": {"rejoin": {"owed": 3, "done": 3}},
        "not_exercised": ["leave"],
        "seed": 1,
        "findings": [{"stage": "client", "title": "it commits too late", "count": 2,
                      "reproduce": "kconform client --example 4"}],
    }  # fmt: skip
    made = card(tmp_path, report)

    assert standings(made) == {
        "client/duty leave": Standing.NOT_DRIVEN,
        "client/java": Standing.DEPARTS,
    }
    assert made.system == "consumer {bootstrap}"
    assert "it commits too late: met 2 times" in cards.markdown(made)
    assert "(`kconform client --example 4`)" in cards.markdown(made)


def test_the_report_of_another_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="says nothing of one system"):
        card(tmp_path, {"command": "check"})
    with pytest.raises(UserError, match="is no report of kconform"):
        card(tmp_path, {})
    with pytest.raises(UserError, match="says nothing of one system"):
        card(tmp_path, {**GATE, "system": None})


@pytest.mark.parametrize("version", [None, 2, 99])
def test_a_report_of_another_schema_is_refused(tmp_path: Path, version: int | None) -> None:
    with pytest.raises(DataError, match="this kconform reads 3"):
        card(tmp_path, {**GATE, "schema_version": version})


@pytest.mark.parametrize("damage", [{"findings": "none"}, {"findings": None}])
def test_a_report_without_its_findings_is_damaged(tmp_path: Path, damage: dict[str, Any]) -> None:
    report = {**changed(), **damage}
    left = {key: value for key, value in report.items() if key != "findings"}

    for each in (report, left):
        with pytest.raises(DataError, match="damaged"):
            card(tmp_path, each)


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = card(tmp_path, failing())
    assert cards.load(cards.dumps(made)) == made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema": 1', '"schema": 2, "schema": 1'),
        ('"tests": ', '"tests": -'),
        ('"schema": 1', '"schema": ' + "[" * 100_000),
    ],
    ids=["a key twice", "a count below 0", "lists that lie deep"],
)
def test_a_damaged_card_is_none(tmp_path: Path, old: str, new: str) -> None:
    text = cards.dumps(card(tmp_path, GATE))
    assert old in text
    with pytest.raises((DataError, msgspec.ValidationError)):
        cards.load(text.replace(old, new, 1))


def test_the_same_run_at_another_pace_gives_the_same_card(tmp_path: Path) -> None:
    slow = changed()
    slow["seconds"], slow["time_line"] = 99.0, [{"start": 1}]
    slow["stages"]["replay"]["models"] = [
        {**entry, "seconds": 7.0} for entry in reversed(GATE["stages"]["replay"]["models"])
    ]
    first, second = (cards.dumps(card(tmp_path, report)) for report in (GATE, slow))
    assert first == second


def test_two_cards_are_compared_suite_by_suite(tmp_path: Path) -> None:
    before, after = card(tmp_path, GATE), card(tmp_path, failing("group/static-restart-2m"))
    assert cards.changes(before, before) == []
    assert cards.changes(before, after) == [
        "findings: not in this card -> departs; new: it forgets",
        "group/commits-2m: undecided -> agrees",
        "group/dynamic-2m: agrees -> not in this card",
        "group/static-restart-2m: departs as declared -> departs; gone: kept",
    ]


class _Tags(HTMLParser):
    """Counts what a page has, and notes what it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = 0
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.cells += tag == "td"
        self.loads += [str(value) for name, value in attrs if name == "src" or tag == "link"]


def test_a_page_holds_cards_side_by_side_and_loads_nothing(tmp_path: Path) -> None:
    evil = failing()
    evil["system"] = "<script>alert(1)</script>"
    both = [card(tmp_path, GATE), card(tmp_path, evil)]
    page = cards.page(both)
    tags = _Tags()
    tags.feed(page)

    areas = {area.id for made in both for area in made.areas}
    assert (tags.cells, tags.loads) == (3 * len(areas), [])
    assert "<script>" not in page
    assert "<script>" not in cards.markdown(both[1])
    assert "<script>" not in cards.badge_of(both[1])


COLOURS = {Verdict.PASS: "#2e7d32", Verdict.FAIL: "#c62828", Verdict.INCONCLUSIVE: "#757575"}


def test_what_nobody_declared_is_not_shown_as_declared(tmp_path: Path) -> None:
    """A replay that goes on behind a difference says so beside its findings."""
    went_on = "version is 1 where the specification has 2"
    report = failing()
    for entry in report["stages"]["replay"]["models"]:
        entry["set_aside"] = [went_on]
    report["findings"][0] |= {
        "key": "Fetch:not_allowed:hw", "formula": "Fetch", "differences": [{"variable": "hw"}],
    }  # fmt: skip
    made = card(tmp_path, report)
    departed, passed = (
        next(item for area in made.areas for item in area.suites if item.name == name)
        for name in ("group/dynamic-2m", "group/commits-2m")
    )
    assert [item.declared for item in departed.departures] == [False]
    assert departed.departures[0].consequence == "differs in hw"
    # In a suite that passed it is what a table says of the system.
    assert [(item.title, item.declared) for item in passed.departures] == [(went_on, True)]
    assert passed.standing is Standing.DECLARED


def test_a_story_is_linked_as_seen_from_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = card(tmp_path, failing())
    story = Path("out/divergences/group-dynamic-2m-Fetch-1.itf.json")
    story.parent.mkdir(parents=True)
    story.write_text("{}")
    moved = cards.relative_to(made, Path("cards/1"))
    assert "([story](../../out/divergences/group-dynamic-2m-Fetch-1.itf.json))" in cards.markdown(
        moved
    )
    assert 'href="../../out/divergences/group-dynamic-2m-Fetch-1.itf.json"' in cards.page([moved])


def test_the_badge_has_the_colour_of_the_verdict(tmp_path: Path) -> None:
    reports = [changed(replay=suite("group/dynamic-2m")), failing(), GATE]
    made = [card(tmp_path, report) for report in reports]
    assert [item.verdict for item in made] == [*COLOURS]
    for item in made:
        assert COLOURS[item.verdict] in cards.badge_of(item)
        assert item.score in cards.badge_of(item)


def score(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(load("score"), list(args))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout + result.stderr


def test_the_command_says_what_is_wrong_with_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = cards.dumps(card(tmp_path, GATE))
    Path("card.json").write_text(text.replace('"tests": ', '"tests": -', 1))

    code, said = score("card.json")

    assert code == ExitCode.USAGE
    assert "neither a card.json nor a report.json: Expected `int` >= 0" in " ".join(said.split())


def test_the_command_writes_cards_of_reports_and_compares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.json").write_text(json.dumps({**GATE, "system": ""} | {"system": "group"}))
    Path("new.json").write_text(json.dumps({**failing(), "system": "group"}))

    code, _ = score("old.json", "-o", "old")
    assert code == 3
    assert {path.name for path in Path("old").iterdir()} == {
        "card.md", "card.json", "card.html", "badge.svg",
    }  # fmt: skip
    code, said = score("old", "new.json", "--compare", "-o", "both")
    assert code == 1
    assert "group/dynamic-2m: agrees -> departs; new: it forgets" in said
    assert Path("both/2/card.md").read_text().count("it forgets") == 1


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["old.json", "--compare"], "--compare takes two cards"),
        (["missing.json"], "missing.json"),
        (["none.json"], "says nothing of one system"),
        (["bad.json"], "neither a card.json nor a report.json"),
    ],
)
def test_mistakes_of_the_user_are_told(
    args: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.json").write_text(json.dumps(GATE))
    Path("none.json").write_text("{}")
    Path("bad.json").write_text("[1]")
    code, said = score(*args)
    assert code == 2
    assert complaint in " ".join(said.split())
