"""The judgement of a temporal property is bounded in time and memory; the bound is no pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.tla.search import SearchEnd, SearchLimits, SearchVerdict, problem_of, search
from conformance.tla.search.lasso import StepGraph, _ProductGraph, lasso
from conformance.tla.semantics.behaviours import (
    TRUE,
    Claim,
    all_of,
    always,
    any_of,
    eventually,
)
from tests.unit.tla.small import spec

BODY = r"""
VARIABLE x
Init == x = 0
Next == x' = (x + 1) % 40
Spec == Init /\ [][Next]_x /\ WF_x(Next)
Small == x < 40
Live == []<>(x = 0)
Ends == []<>(x = 1)
"""
CONFIG = "SPECIFICATION Spec INVARIANT Small PROPERTY Live PROPERTY Ends"


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (SearchLimits(behaviour_steps=30), "have more than 30 steps together"),
        (SearchLimits(seconds=1e6), "the 1e+06 seconds of the search were over"),
        (SearchLimits(), "the search was cancelled"),
    ],
)
def test_a_property_that_takes_too_much_is_inconclusive(
    limits: SearchLimits, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states are all searched, so that the invariant holds."""
    problem = problem_of(spec(tmp_path, BODY, CONFIG))
    judging = False

    def begin(self: _ProductGraph, *rest: object) -> None:
        nonlocal judging
        judging = True
        usual(self, *rest)
        if limits.seconds is not None:
            monkeypatch.setattr(time, "monotonic", lambda: 1e12)

    usual: Callable[..., None] = _ProductGraph.__init__
    monkeypatch.setattr(_ProductGraph, "__init__", begin)
    cancelled = "cancelled" in why
    result = search(problem, limits, cancelled=lambda: judging and cancelled)
    monkeypatch.undo()
    verdicts = {item.name: item.verdict for item in result.formulas}
    assert result.end is SearchEnd.EXHAUSTED
    assert verdicts["Small"] is SearchVerdict.PASS
    assert verdicts["Live"] is verdicts["Ends"] is SearchVerdict.INCONCLUSIVE
    assert list(result.given_up) == ["Live", "Ends"]
    assert all(why in reason for reason in result.given_up.values())


def test_within_the_limits_the_properties_hold(tmp_path: Path) -> None:
    result = search(problem_of(spec(tmp_path, BODY, CONFIG)), SearchLimits(seconds=1e6))
    assert not result.given_up
    assert {item.verdict for item in result.formulas} == {SearchVerdict.PASS}


CLAIMS = [Claim(number, lambda *_: True, False) for number in range(8)]


def test_the_ways_through_a_large_formula_can_be_given_up() -> None:
    formula = all_of([any_of([eventually(claim), always(claim)]) for claim in CLAIMS])
    graph = StepGraph([0], [()], lambda _claim, _before, _after: True)
    calls = 0

    def going(steps: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 20:
            assert steps == 0  # the first state is not even left
            raise TimeoutError

    with pytest.raises(TimeoutError):
        lasso(graph, formula, going)


def test_the_parts_of_a_large_graph_can_be_given_up() -> None:
    size = 100
    ring = [((state + 1) % size,) for state in range(size)]
    calls: list[int] = []
    graph = StepGraph([0], ring, lambda claim, _before, _after: not claim.wanted)
    assert lasso(graph, all_of([TRUE, always(eventually(CLAIMS[0]))]), calls.append) is None
    assert calls.count(calls[-1]) >= size  # each state again, after the last step is known
