"""TLC judges given behaviours: what is false, what has no value, and where first."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from conformance.errors import SpecError, UserError
from conformance.modelcheck import behaviours as subject
from conformance.modelcheck.behaviours import (
    BehaviourJudgement,
    IndexedBehaviour,
    TlcJudgements,
    judge_behaviours,
)
from conformance.modelcheck.form import Check
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.modelcheck.tlc import Processes, TlcOptions
from conformance.tla import Action, ModelValue, State, find_tools

pytestmark = pytest.mark.tlc

MODULES = Path(__file__).parent / "modules"
P1, P2, NOWHERE = (ModelValue(name) for name in ("p1", "p2", "Nowhere"))
GO1, GO2, JUMP = range(3)
ACTIONS = (Action("Go", (P1,)), Action("Go", (P2,)), Action("Jump"))
START: State = (NOWHERE, 0)


@cache
def prepared() -> PreparedModel:
    spec = MODULES / "Chain.tla"
    model = Model(
        name="chain",
        origin=spec,
        spec_path=spec,
        check=Check(init="Init", next="Next", invariants=("Small", "Somewhere")),
        literals={"Places": frozenset({P1, P2}), "Nowhere": NOWHERE},
    )
    return prepare(model, find_tools())


def judge(*behaviours: IndexedBehaviour, actions: tuple[Action, ...] = ACTIONS) -> TlcJudgements:
    options = TlcOptions(heap="512m", timeout=300)
    with Processes() as processes:
        return judge_behaviours(prepared(), actions, behaviours, find_tools(), options, processes)


def path(first: State, *steps: tuple[int, State]) -> IndexedBehaviour:
    return IndexedBehaviour(
        (first, *(state for _, state in steps)), tuple(code for code, _ in steps)
    )


LEGAL = path(START, (GO1, (P1, 1)), (GO2, (P2, 2)))
STILL = path(START)
ILLEGAL = path(START, (GO1, (P1, 1)), (GO1, (P1, 2)), (GO2, (P2, 3)))
TOO_FAR = path(START, (GO1, (P1, 1)), (GO2, (P2, 2)), (GO1, (P1, 3)))
TWICE = path(START, (GO1, (NOWHERE, 4)))
ELSEWHERE = path((P1, 0), (GO2, (P2, 1)))
UNDEFINED_STEP = path(START, (JUMP, START), (GO1, (P1, 1)), (JUMP, START), (GO2, (P1, 7)))
UNDEFINED_STATE = path(START, (GO2, (P2, 9)), (GO2, (P1, 7)))
UNDEFINED_START = path((P1, 9), (GO2, (P2, 10)))
FALSE_BEFORE = path(START, (GO1, (P1, 5)), (JUMP, START))


def test_one_run_judges_all_up_to_their_first_false_formula() -> None:
    said = judge(LEGAL, STILL, ILLEGAL, TOO_FAR, TWICE, ELSEWHERE, FALSE_BEFORE)
    assert said.judgements == (
        BehaviourJudgement(),
        BehaviourJudgement(),
        BehaviourJudgement(2, ("Next",)),
        BehaviourJudgement(3, ("Small",)),
        BehaviourJudgement(1, ("Next", "Small", "Somewhere")),
        BehaviourJudgement(0, ("Init",)),
        BehaviourJudgement(1, ("Next", "Small")),
    )
    assert said.steps == 2 + 0 + 3 + 3 + 1 + 1 + 2


def test_what_has_no_value_is_cut_off_and_the_others_are_judged() -> None:
    step, state, start, legal, illegal = judge(
        UNDEFINED_STEP, UNDEFINED_STATE, UNDEFINED_START, LEGAL, ILLEGAL
    ).judgements
    for found, where in ((step, 3), (state, 1), (start, 0)):
        assert found is not None
        assert (found.step, found.false) == (where, ())
        assert found.undefined
    assert (legal, illegal) == (BehaviourJudgement(), BehaviourJudgement(2, ("Next",)))


def test_nothing_is_left_to_run_where_no_initial_state_has_a_value() -> None:
    (start,) = judge(UNDEFINED_START).judgements
    assert start is not None
    assert (start.step, bool(start.undefined)) == (0, True)


def test_too_many_undefined_visits_leave_all_without_a_judgement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject, "_RUNS", 1)
    assert judge(UNDEFINED_STATE, LEGAL).judgements == (None, None)


def test_what_tlc_cannot_read_is_a_mistake() -> None:
    with pytest.raises(SpecError, match="Leap"):
        judge(path(START, (0, START)), actions=(Action("Leap"),))


def test_a_specification_without_a_named_initial_predicate_is_a_mistake() -> None:
    spec = MODULES / "Lock.tla"
    model = Model(
        name="lock",
        origin=spec,
        spec_path=spec,
        check=Check(specification="FairSpec"),
        constants={"Processes": '{"a"}', "Turns": "1"},
    )
    with pytest.raises(UserError, match="`init` and"), Processes() as processes:
        judge_behaviours(
            prepare(model, find_tools()), (), (STILL,), find_tools(), TlcOptions(), processes
        )
