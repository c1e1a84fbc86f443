"""A trace that was recorded elsewhere is stepped along to where it leaves the spec."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.replay.engine import Divergence
from conformance.replay.oracle import SpecOracle
from conformance.replay.recorded import judge
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, State
from conformance.traces.model import PartialState, Trace, TraceEnd, TraceStep

UP, DOWN = Action("Up"), Action("Down")


def successors(state: State) -> list[tuple[Action, State]]:
    """A counter `x` up to 3, which a ghost `left` may keep from going up."""
    x, left = state
    assert isinstance(x, int)
    assert isinstance(left, int)
    up = [(UP, (x + 1, left - 1))] if left and x < 3 else []
    return [*up, *([(DOWN, (x - 1, left))] if x else [])]


ORACLE = SpecOracle(("x", "left"), [(0, 1), (0, 2)], successors)


def trace(actions: str, *states: PartialState) -> Trace:
    named = [UP if sign == "+" else DOWN for sign in actions]
    steps = tuple(map(TraceStep, named, states[1:]))
    return Trace(5, 0, states[0], steps, TraceEnd.IMPORTED)


def seen(*values: int) -> Sequence[PartialState]:
    """States of which only `x` was seen."""
    return [(value, None) for value in values]


@pytest.mark.parametrize(
    "legal",
    [
        trace("", (0, 1)),
        trace("+-", (0, 1), (1, 0), (0, 0)),
        trace("+-", *seen(0, 1, 0)),
        # Only with left = 2 at the start, which comes second.
        trace("++", *seen(0, 1, 2)),
        trace("+", (0, None), (1, 1)),
    ],
    ids=repr,
)
def test_what_the_spec_allows_is_no_divergence(legal: Trace) -> None:
    assert judge(ORACLE, legal) is None


def first(oddity: Trace) -> Divergence:
    found = judge(ORACLE, oddity)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("oddity", "kind", "step"),
    [
        (trace("", (1, 1)), BehaviourKind.WRONG_INITIAL, 0),
        (trace("+", (0, 1), (2, 0)), BehaviourKind.NOT_ALLOWED, 1),
        (trace("++", *seen(0, 1, 3)), BehaviourKind.NOT_ALLOWED, 2),
        (trace("-+-", *seen(0, 0, 1, 0)), BehaviourKind.NOT_ENABLED, 1),
        # Twice with left = 2, and there is no third time.
        (trace("+++", *seen(0, 1, 2, 3)), BehaviourKind.NOT_ENABLED, 3),
    ],
    ids=repr,
)
def test_the_first_step_that_the_spec_does_not_allow_is_told(
    oddity: Trace, kind: BehaviourKind, step: int
) -> None:
    found = first(oddity)
    assert (found.kind, found.step) == (kind, step)
    assert found.actions == tuple(one.action for one in oddity.steps[:step])


def test_a_step_that_is_not_enabled_has_the_states_before_it_and_none_after() -> None:
    found = first(trace("+++", *seen(0, 1, 2, 3)))
    assert found == Divergence(BehaviourKind.NOT_ENABLED, (0, 2), (UP, UP, UP), ((2, 0),), (), {})


def test_what_was_seen_in_some_states_only_counts_there() -> None:
    assert judge(ORACLE, trace("++", (0, 2), (1, None), (2, 0))) is None
    found = first(trace("++", (0, 2), (1, 0), (2, None)))
    assert (found.kind, found.step, found.observed) == (
        BehaviourKind.NOT_ALLOWED,
        1,
        {"x": 1, "left": 0},
    )


def test_true_is_not_one_though_it_is_for_python() -> None:
    found = first(trace("+", (0, None), (True, None)))
    assert (found.kind, found.step) == (BehaviourKind.NOT_ALLOWED, 1)
