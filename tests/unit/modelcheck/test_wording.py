"""What was found of a formula, as sentences have it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from conformance.modelcheck.form import Check, Expect
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.outcome import EngineOutcome, KeptStep
from conformance.modelcheck.result import CheckResult, judge
from conformance.modelcheck.tlc_output import ViolationKind
from conformance.verdict import Verdict

STATES = (KeptStep("", (), "x = 0"), KeptStep("Up", (), "x = 1"))


JUDGING = Check(init="Init", next="Next", invariants=("Inv",))


def judged(
    outcome: EngineOutcome,
    expect: Expect | None = None,
    check: Check = JUDGING,
    *,
    system: str = "",
    feeds_suite: bool = False,
) -> CheckResult:
    model = Model("Own", Path("Own.cfg"), Path("Own.tla"), check, expect)
    driven = replace(model, system=system, feeds_suite=feeds_suite)
    return judge(driven, outcome, "", 0.0, cached=False)


def violated(name: str, kind: str, steps: tuple[KeptStep, ...] = STATES) -> EngineOutcome:
    return EngineOutcome("violated", 12, "", name, kind, variables=("x",), steps=steps)


DEADLOCK = violated("deadlock", "deadlock")
HOLDS = Expect("holds", distinct_states=2)
HELD = EngineOutcome("holds", 0, "", distinct_states=2)


@pytest.mark.parametrize(
    ("outcome", "expect", "told"),
    [
        (DEADLOCK, None, "a deadlock was reached"),
        (DEADLOCK, HOLDS, "a deadlock was reached after 2 states, but the model holds"),
        (DEADLOCK, Expect("violated", violated="Inv"), "reaches a deadlock, expected Inv"),
        (
            DEADLOCK,
            Expect("violated", violated="deadlock", counterexample_length=2),
            "reaches a deadlock after 2 states",
        ),
        (violated("Inv", "invariant"), None, "Inv is violated"),
        (
            violated("Inv", "invariant", STATES[:1]),
            HOLDS,
            "Inv is violated after 1 state, but the model holds",
        ),
        (violated("Small", "assumption", ()), None, "the assumption Small is false"),
        (
            violated("Small", "assumption", ()),
            HOLDS,
            "the assumption Small is false, but the model holds",
        ),
    ],
)
def test_what_was_found_reads_as_a_sentence(
    outcome: EngineOutcome, expect: Expect | None, told: str
) -> None:
    assert judged(outcome, expect).summary() == told


@pytest.mark.parametrize(
    ("outcome", "expect", "line"),
    [
        (EngineOutcome("holds", 0, "", distinct_states=358), Expect(), "distinct_states = 358"),
        (DEADLOCK, Expect("violated", violated="deadlock"), "counterexample_length = 2"),
    ],
)
def test_a_number_that_is_not_stated_is_a_note_and_no_failure(
    outcome: EngineOutcome, expect: Expect, line: str
) -> None:
    result = judged(outcome, expect)
    assert result.verdict is Verdict.PASS
    assert result.problems == ()
    assert result.summary().endswith(f"; write `{line}` below `[expect]` of Own.cfg to keep it")


def test_a_model_without_a_formula_is_no_pass_unless_a_system_is_driven_by_it() -> None:
    nothing = Check(init="Init", next="Next")
    assert judged(HELD, HOLDS, nothing).verdict is Verdict.INCONCLUSIVE
    assert (
        judged(HELD, HOLDS, nothing).summary() == "holds, 2 distinct states; no formula was judged"
    )
    assert (
        judged(HELD, HOLDS, Check(init="Init", next="Next", deadlock=True)).verdict is Verdict.PASS
    )
    assert judged(HELD, HOLDS, nothing, system="store").verdict is Verdict.PASS
    assert judged(HELD, None, nothing).verdict is Verdict.INCONCLUSIVE
    assert judged(HELD, None, nothing, feeds_suite=True).verdict is Verdict.PASS
    assert "no formula was judged" in judged(HELD, None, nothing).summary()


def test_formulas_that_read_no_variable_judge_no_state() -> None:
    formulas = Check(init="Init", next="Next", invariants=("Small", "Bounded"))
    alone = Check(init="Init", next="Next", invariants=("Small",))
    outcome = msgspec.structs.replace(HELD, constant_formulas=("Small",))
    some, none = (judged(outcome, HOLDS, check) for check in (formulas, alone))
    assert some.verdict is Verdict.PASS
    assert some.summary() == "holds, 2 distinct states; reads no variable: Small"
    assert none.verdict is Verdict.INCONCLUSIVE
    assert "; no formula was judged; reads no variable: Small" in none.summary()


def test_actions_that_are_never_taken_are_named_until_the_manifest_states_a_number() -> None:
    idle = EngineOutcome("holds", 0, "", distinct_states=2, never_fired=("Crash", "Elect"))
    assert "; never taken: Crash, Elect" in judged(idle, Expect()).summary()
    assert "never taken" in judged(idle, None).summary()
    assert "never taken" not in judged(idle, HOLDS).summary()


def test_what_no_manifest_could_state_is_not_asked_for() -> None:
    lasso = violated("Live", ViolationKind.TEMPORAL_PROPERTY)
    for outcome, expect in (
        (HELD, HOLDS),
        (HELD, None),
        (lasso, Expect("violated", violated="Live")),
    ):
        assert "write" not in judged(outcome, expect).summary()


def test_a_deadlock_that_must_be_reached() -> None:
    holds = EngineOutcome("holds", 0, "", distinct_states=2)
    told = judged(holds, Expect("violated", violated="deadlock")).summary()
    assert told.startswith("holds, but must reach a deadlock:")


def test_a_false_assumption_is_a_finding_where_it_stands() -> None:
    outcome = EngineOutcome("violated", 10, "", "ASSUME", "assumption", violated_at="Own:6:1")
    result = judged(outcome)
    (finding,) = result.findings()
    assert result.verdict is Verdict.FAIL
    assert finding.key == "ASSUME:violated"
    assert finding.title == "Own: the ASSUME at Own:6:1 is false"
    assert finding.location == "Own:6:1"  # there is no such file
    assert finding.message.startswith("The ASSUME at Own:6:1 is false for the constants of Own.cfg")
