"""Which examples with a client count: what departs must be seen again, by a coordinator in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.client.breaches import Breach
from conformance.client.duties import KINDS
from conformance.client.example import QUIET, Ending, ExampleResult, has_instance
from conformance.client.subject import JoiningClient
from conformance.client.wishes import aims_of
from conformance.errors import UserError
from conformance.events import Finding
from conformance.judge.verdict import Judgement
from conformance.modelcheck.prepare import bound
from conformance.stages import client as stage
from conformance.stages.context import Context, with_constants
from conformance.tla import find_tools
from conformance.verdict import Verdict
from experiments.planted_clients import FAULTS, Fault, named

DONE = KINDS[0]
RIGHT = ExampleResult(
    1, Ending.WHOLE, "", None, (), (), {}, told=True, seconds=1.0, owed={DONE: 2}, done={DONE: 1}
)
WRONG = replace(RIGHT, ending=Ending.OWING)
LATE = replace(WRONG, ending=Ending.DEPARTED, late_by=3.0)
BREAKS_LATE = replace(RIGHT, breaches=(Breach("sends this", "Rule 1", "00"),), late_by=3.0)
AGREES, DEPARTS, DEPARTS_LATE = "agrees", "departs", "departs late"
OWES_LATE, BREACH_LATE = "owes late", "breaks a rule late"
RUNS = {
    AGREES: RIGHT,
    DEPARTS: replace(WRONG, ending=Ending.DEPARTED),
    DEPARTS_LATE: LATE,
    OWES_LATE: replace(WRONG, late_by=3.0),
    BREACH_LATE: BREAKS_LATE,
}


def finding(key: str) -> Finding:
    return Finding(key=key, stage="client", title=key, message="")


def judged(monkeypatch: pytest.MonkeyPatch, *runs: str) -> stage.ExampleTally:
    """What comes of one example whose runs come out so."""
    left: Iterator[str] = iter(runs)

    async def quiet(*_: Any, **__: Any) -> ExampleResult:
        return RIGHT

    async def one(*_: Any) -> tuple[ExampleResult, tuple[Finding, ...]]:
        what = next(left)
        return RUNS[what], () if what == AGREES else (finding("OWING"),)

    monkeypatch.setattr(stage, "run_example", quiet)
    monkeypatch.setattr(stage._ClientBench, "_judged", one)
    tally = stage.client(Context(), stage.ClientTestRequest("x", "java", 1, 15, 1, 8.0))
    assert next(left, "") == "", "a run too few"
    return tally


@pytest.mark.parametrize(
    ("runs", "verdict", "spoiled"),
    [
        ([AGREES], Verdict.PASS, 0),
        ([DEPARTS, DEPARTS], Verdict.FAIL, 0),
        ([DEPARTS, AGREES, DEPARTS], Verdict.FAIL, 0),
        ([DEPARTS, AGREES, AGREES], Verdict.INCONCLUSIVE, 0),
        # A run that was late says nothing against the client: it is made again.
        ([DEPARTS_LATE, AGREES], Verdict.PASS, 0),
        ([DEPARTS_LATE, DEPARTS, DEPARTS], Verdict.FAIL, 0),
        ([DEPARTS, DEPARTS_LATE, DEPARTS], Verdict.FAIL, 0),
        ([DEPARTS_LATE] * 4, Verdict.INCONCLUSIVE, 1),
        # Nor does it count as a second time.
        ([DEPARTS, *[DEPARTS_LATE] * 8], Verdict.INCONCLUSIVE, 0),
        # What is owed is counted without the delay, and a breach is no matter of time.
        ([OWES_LATE, OWES_LATE], Verdict.FAIL, 0),
        ([BREACH_LATE, BREACH_LATE], Verdict.FAIL, 0),
    ],
)
def test_what_departs_must_be_seen_again_in_time(
    runs: list[str], verdict: Verdict, spoiled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = judged(monkeypatch, *runs)

    assert (tally.verdicts, tally.spoiled) == ({verdict: 1}, spoiled)


@pytest.mark.parametrize(
    ("running", "delays"), [(1, [0.3, 5.0, 0.1]), (7, [0.0]), (0, [])], ids=str
)
def test_an_example_begins_when_the_loop_keeps_up_or_nothing_runs(
    running: int, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(delays)

    class Clock:
        """One that is late as the test says."""

        def __init__(self) -> None:
            self.late_by = left.pop(0)

        def beat(self) -> None:
            pass

    monkeypatch.setattr(stage, "LoopClock", Clock)
    monkeypatch.setattr(stage, "BEAT", 0.0)
    request = stage.ClientTestRequest("x", "java", 1, 15, 8, 8.0)
    variant = stage.BoundVariant(Context(), stage.variant_model("java"))
    bench = stage._ClientBench(Context(), request, variant, _running=running)
    asyncio.run(bench._in_time())
    assert left == []


def test_a_long_story_leaves_out_only_what_a_later_line_repeats() -> None:
    answer = "  1.000 s  broker: JoinGroup answered REBALANCE_IN_PROGRESS"
    fetches = [f"{second:7.3f} s  client: Fetch" for second in range(2, 90)]
    told = list(stage.shortened([answer, *fetches]))
    assert told[:2] == [answer, "... 58 lines that later ones repeat"]
    assert told[2:] == fetches[-30:]
    assert list(stage.shortened(fetches[:30])) == fetches[:30]


def tally_of(monkeypatch: pytest.MonkeyPatch, result: ExampleResult) -> stage.ExampleTally:
    """What comes of one example, with all that the stage itself makes of it."""

    async def runs(*_: Any, **__: Any) -> ExampleResult:
        return result

    monkeypatch.setattr(stage, "run_example", runs)
    return stage.client(Context(), stage.ClientTestRequest("x", "java", 1, 15, 1, 8.0))


def test_a_run_in_which_nothing_owed_was_done_is_inconclusive_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tally = tally_of(monkeypatch, replace(RIGHT, done={}))
    assert (tally.verdicts, tally.verdict) == ({Verdict.PASS: 1}, Verdict.INCONCLUSIVE)
    assert len([one for one in stage.coverage_lines(tally) if "not exercised" in one]) == len(KINDS)


def test_a_verdict_names_what_was_done_and_what_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = tally_of(monkeypatch, RIGHT)
    lines = "\n".join(stage.coverage_lines(tally))
    assert tally.verdict is Verdict.PASS
    assert f"{DONE}: 1 of 2 done" in lines
    assert f"not exercised {DONE}" not in lines
    assert f"not exercised {KINDS[1]}" in lines


def test_a_breach_is_a_finding_whatever_the_example_came_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaches = (Breach("sends this", "Rule 1", "00"), Breach("sends that", "Rule 2", "01"))
    tally = tally_of(monkeypatch, replace(RIGHT, breaches=breaches))
    assert tally.verdict is Verdict.FAIL
    titles = [one.title for one in tally.findings.values()]
    assert titles == ["the client sends this", "the client sends that"]
    assert all("Rule" in one.message for one in tally.findings.values())


@pytest.mark.parametrize("ending", [Ending.LIMITED, Ending.ABSENT, Ending.RESTLESS])
def test_what_the_loop_or_the_machine_lacks_is_no_finding(
    ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = replace(RIGHT, ending=ending, detail="the loop serves Fetch 4 to 18 only")
    tally = tally_of(monkeypatch, result)
    assert (tally.verdict, tally.findings) == (Verdict.INCONCLUSIVE, {})
    assert "the loop serves Fetch 4 to 18 only" in tally.once[0]


@pytest.mark.parametrize(
    ("ending", "verdict", "unjudged"),
    [
        (Ending.WHOLE, Verdict.PASS, False),
        (Ending.WHOLE, Verdict.FAIL, False),
        (Ending.WHOLE, Verdict.INCONCLUSIVE, True),
        (Ending.FATAL, Verdict.INCONCLUSIVE, True),
        (Ending.DEPARTED, Verdict.FAIL, False),
        (Ending.DEPARTED, Verdict.INCONCLUSIVE, True),
        (Ending.DEPARTED, Verdict.PASS, True),
        (Ending.OWING, Verdict.INCONCLUSIVE, False),
        (Ending.DIED, Verdict.INCONCLUSIVE, False),
    ],
)
def test_a_judge_at_its_limits_accuses_nobody(
    ending: Ending, verdict: Verdict, unjudged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the same limit is no finding that was seen again."""
    subject = JoiningClient("topic", frozenset({"range"}), None, True)
    judgement = Judgement("example 1", "seed 1", verdict, "30 s were not enough", 5, 4)
    judge = SimpleNamespace(judge=lambda _: judgement)
    monkeypatch.setattr(stage.BoundVariant, "judge", lambda *_, **__: judge)
    tally = tally_of(monkeypatch, replace(RIGHT, ending=ending, subject=subject))
    assert any("30 s were not enough" in line for line in tally.once) is unjudged
    if unjudged:
        assert (tally.verdict, tally.findings) == (Verdict.INCONCLUSIVE, {})
    else:
        assert bool(tally.findings) is (verdict is not Verdict.PASS)


def test_examples_can_be_chosen_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[int] = []

    async def runs(_: Any, number: int, *__: Any, **___: Any) -> ExampleResult:
        run.append(number)
        return RIGHT

    monkeypatch.setattr(stage, "run_example", runs)
    request = stage.ClientTestRequest("x", "java", 1, 15, 1, 8.0, numbers=(7, 3))
    assert stage.client(Context(), request).verdicts.total() == 2
    assert run == [QUIET, 7, 3]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_a_planted_fault_is_found_by_a_finding_that_names_it_and_is_its_own(fault: Fault) -> None:
    signs = {
        "ignores-rebalance": "9 s after Heartbeat was answered REBALANCE_IN_PROGRESS the client "
        "owes JoinGroup.",
        "old-generation": "OffsetCommit as m1-01, generation 1: the specification does not allow "
        "it here",
        "ignores-refusals": "9 s after Heartbeat was answered ILLEGAL_GENERATION the client owes "
        "JoinGroup.",
        "stale-member-id": "Heartbeat as m1-01, generation 2: the specification does not allow it "
        "here",
        "forgets-member-id": "JoinGroup as no id (protocols range): the specification does not "
        "allow it here",
        "commits-ahead": "the client commits a position behind all records that it was given",
    }
    findings = {name: finding(title) for name, title in signs.items()}
    nothing, all_of_them = stage.ExampleTally(), stage.ExampleTally(findings=findings)
    assert named(fault, nothing, nothing) is None
    assert named(fault, all_of_them, nothing) is findings[fault.name]
    assert named(fault, all_of_them, all_of_them) is None, "the clean copy shows it as well"
    for number in fault.numbers(4):
        assert aims_of(number, is_static=has_instance(number))[0].answer == fault.cause[1]


TABLE = """
[[deviation]]
id = "keeps-its-member-id"
title = "a member that was fenced joins with its old member id"
severity = "harmless"
definitions = { "Ours_KeepsMemberId(error)" = 'error = "UNKNOWN_MEMBER_ID"' }
overrides = { KeepsMemberId = "Ours_KeepsMemberId" }
"""


def request_with(table: Path) -> stage.ClientTestRequest:
    return stage.ClientTestRequest("x", "java", 1, 15, 1, 8.0, deviations=table)


def test_departures_that_are_declared_override_the_variant(tmp_path: Path) -> None:
    table = tmp_path / "ours.toml"
    table.write_text(TABLE)
    variant = stage.variant_model("java")

    model = stage.declared_model(request_with(table))

    assert model.overrides == {**variant.overrides, "KeepsMemberId": "Ours_KeepsMemberId"}
    assert variant.definitions.items() <= model.definitions.items()
    state = next(iter(bound(with_constants(model, {}), find_tools()).spec.initial_states()))
    assert state, "TLC's parser takes the override"


def test_what_a_client_does_not_show_cannot_be_declared(tmp_path: Path) -> None:
    table = tmp_path / "ours.toml"
    before, _, _ = TABLE.partition("definitions")
    table.write_text(before + 'hidden = ["memberState"]\n')

    with pytest.raises(UserError, match="keeps-its-member-id overrides no operator"):
        stage.declared_model(request_with(table))
