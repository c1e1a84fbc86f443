"""Which formulas hold of a specification as a release's deviations override it."""

from __future__ import annotations

import msgspec
import pytest

from conformance.stages import weakened as stage
from conformance.stages.context import Context, one_model
from conformance.stages.weakened import weakened
from conformance.verdict import Verdict
from tests.e2e.adapters.conftest import MODEL
from tests.e2e.adapters.releases import FORGETS

pytestmark = pytest.mark.tlc

FIRST = "tests.e2e.adapters.releases:first"


def test_each_formula_that_breaks_is_found_and_the_others_are_checked(context: Context) -> None:
    [shown] = weakened(context, [one_model(str(MODEL))], FIRST)

    broken = {one.formula for one in shown.broken}
    declared = one_model(str(MODEL)).check
    assert broken == {"TypeOK", "EveryWriteHasItsVersion"}
    assert {*shown.holds} == {*declared.invariants, *declared.properties} - broken
    assert (shown.verdict, shown.deviations) == (Verdict.PASS, ("FORGETS",))
    assert all(one.length > 1 for one in shown.broken)


def test_a_break_of_which_the_table_says_nothing_fails(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = msgspec.structs.replace(FORGETS, breaks=())
    monkeypatch.setattr(stage, "expected_of", lambda *_: (silent,))

    [shown] = weakened(context, [one_model(str(MODEL))], FIRST)

    assert shown.verdict is Verdict.FAIL
    assert "which the table does not say" in shown.line()


def test_without_deviations_everything_holds(context: Context) -> None:
    second = "tests.e2e.adapters.releases:second"

    [shown] = weakened(context, [one_model(str(MODEL))], second)

    assert (shown.broken, shown.deviations, shown.verdict) == ((), (), Verdict.PASS)
