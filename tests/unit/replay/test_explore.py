"""Hypothesis finds a fault that random walks meet rarely, and tells it without a spare step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.replay.explore import Profile, attempt, explore
from conformance.replay.machine import Exploration
from conformance.replay.minimise import minimise
from conformance.replay.oracle import SpecOracle
from conformance.replay.weights import calibrate, copies
from conformance.tla.values import Action, State, Value
from conformance.verdict import Verdict

NAMES = ("Push", "Pop", "Rotate")


def stack(state: State) -> list[tuple[Action, State]]:
    """A stack of at most 4 of the numbers 1 and 2; Rotate is enabled with three or more."""
    (items,) = state
    assert isinstance(items, tuple)
    steps: list[tuple[Action, State]] = []
    if len(items) < 4:
        steps += [(Action("Push", (n,)), ((*items, n),)) for n in (1, 2)]
    if items:
        steps.append((Action("Pop", ()), (items[:-1],)))
    if len(items) >= 3:
        steps.append((Action("Rotate", ()), ((*items[1:], items[0]),)))
    return steps


ORACLE = SpecOracle(("items",), [((),)], stack)


class Stack:
    """With `broken`, Rotate of <<2, 1, 1>> loses an element."""

    variables = ("items",)

    def __init__(self, *, broken: bool = False) -> None:
        self.items: tuple[Value, ...] = ()
        self.broken = broken

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.items = ()

    def apply(self, action: Action) -> None:
        match action.name:
            case "Push":
                self.items = (*self.items, *action.args)
            case "Pop":
                self.items = self.items[:-1]
            case "Rotate" if self.broken and self.items == (2, 1, 1):
                self.items = (1, 1)
            case "Rotate":
                self.items = (*self.items[1:], self.items[0])

    def observe(self) -> Mapping[str, Value]:
        return {"items": self.items}


def test_the_clean_system_passes_and_every_action_is_taken() -> None:
    result = explore(Exploration(ORACLE, Stack), NAMES, examples=60, steps=30)
    assert result.verdict is Verdict.PASS
    assert result.frequencies.never_taken == ()
    assert result.frequencies.taken["Rotate"] > 0


def test_the_fault_is_found_and_cannot_lose_a_step(tmp_path: Path) -> None:
    exploration = Exploration(ORACLE, lambda: Stack(broken=True))
    result = explore(exploration, NAMES, examples=400, steps=30, seed=3, database=tmp_path)
    assert result.divergence is not None
    assert [str(action) for action in result.divergence.actions] == [
        "Push(2)",
        "Push(1)",
        "Push(1)",
        "Rotate",
    ]
    assert any(tmp_path.iterdir()), "Hypothesis keeps the example for the next run"


def test_a_broken_invariant_is_a_failure_though_spec_and_system_agree() -> None:
    exploration = Exploration(ORACLE, Stack, {"Short": lambda state: len(str(state)) < 12})
    result = explore(exploration, NAMES, examples=50, steps=20)
    assert (result.verdict, result.invariant) == (Verdict.FAIL, "Short")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_repeats_the_run(seed: int) -> None:
    runs = [
        explore(
            Exploration(ORACLE, Stack), NAMES, profile=Profile.DEV, examples=10, steps=10, seed=seed
        )
        for _ in range(2)
    ]
    assert runs[0].frequencies == runs[1].frequencies


def test_rare_actions_stand_more_often_in_the_lottery() -> None:
    weights = copies(calibrate(ORACLE, walks=200, length=10, seed=1))
    assert weights["Rotate"] > weights["Push"] == 1


def test_minimise_deletes_every_step_that_the_failure_does_not_need() -> None:
    exploration = Exploration(ORACLE, lambda: Stack(broken=True))
    push1, push2, pop, rotate = (
        Action(*a) for a in [("Push", (1,)), ("Push", (2,)), ("Pop", ()), ("Rotate", ())]
    )
    long = [push1, push1, pop, pop, push2, push1, push2, pop, push1, rotate]
    first = attempt(exploration, ((),), long)
    assert first is not None
    least = minimise(first, lambda initial, actions: attempt(exploration, initial, actions))
    assert least.actions == (push2, push1, push1, rotate)
