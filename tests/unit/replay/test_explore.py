"""Hypothesis finds a fault that random walks meet rarely, and tells it without a spare step."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

from conformance.replay.explore import attempt, explore
from conformance.replay.machine import Exploration
from conformance.replay.minimise import minimise
from conformance.replay.oracle import SpecOracle
from conformance.replay.profile import Profile
from conformance.replay.reach import ways_to
from conformance.replay.weights import Frequencies, calibrate, copies
from conformance.tla import Action, State, Value
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
    assert result.never_taken == ()
    assert result.frequencies.steps["Rotate"] > 0


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


def counter(state: State) -> list[tuple[Action, State]]:
    """Up to 40 by Inc; Reset undoes all, Ring is enabled at 40 only, Never nowhere."""
    (count,) = state
    assert isinstance(count, int)
    steps: list[tuple[Action, State]] = [(Action("Reset", ()), (0,))]
    if count < 40:
        steps.append((Action("Inc", ()), (count + 1,)))
    else:
        steps.append((Action("Ring", ()), (0,)))
    return steps


class Counter:
    """With `broken`, the step after Ring counts twice."""

    variables = ("count",)

    def __init__(self, *, broken: bool = False) -> None:
        self.count, self.rung, self.broken = 0, False, broken

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.count, self.rung = 0, False

    def apply(self, action: Action) -> None:
        step = 2 if self.rung and self.broken else 1
        self.count = self.count + step if action.name == "Inc" else 0
        self.rung = action.name == "Ring"

    def observe(self) -> Mapping[str, Value]:
        return {"count": self.count}


COUNTING = SpecOracle(("count",), [(0,)], counter)
COUNTING_NAMES = ("Inc", "Reset", "Ring", "Never")


def test_examples_are_led_to_an_action_that_chance_does_not_meet() -> None:
    result = explore(Exploration(COUNTING, Counter), COUNTING_NAMES, examples=30, steps=20)
    assert result.guided == {"Ring": 41}
    assert result.frequencies.steps["Ring"] > 0
    assert (result.disabled, result.never_taken) == (("Never",), ())


def test_what_lies_beyond_a_rare_action_is_explored_too() -> None:
    exploration = Exploration(COUNTING, lambda: Counter(broken=True))
    result = explore(exploration, COUNTING_NAMES, examples=30, steps=20)
    assert result.divergence is not None
    assert [action.name for action in result.divergence.actions][-2:] == ["Ring", "Inc"]
    assert result.divergence.step == 42


def test_a_search_that_ends_early_says_so() -> None:
    reach = ways_to(COUNTING, ["Ring", "Never"], limit=10)
    assert (dict(reach.ways), reach.exhausted) == ({}, False)


def test_examples_are_those_that_ran_to_their_end() -> None:
    result = explore(Exploration(ORACLE, Stack), NAMES, examples=50, steps=10)
    assert result.examples == 50


def test_a_deadlock_of_the_spec_ends_an_example_in_peace() -> None:
    once = SpecOracle(("items",), [((),)], lambda state: [] if state[0] else stack(state))
    result = explore(Exploration(once, Stack), ("Push",), examples=5, steps=5)
    assert result.verdict is Verdict.PASS


def test_without_a_profile_the_active_hypothesis_profile_holds() -> None:
    settings.register_profile("seven", max_examples=7, stateful_step_count=3, database=None)
    before = settings.get_current_profile_name()
    settings.load_profile("seven")
    try:
        result = explore(Exploration(ORACLE, Stack), NAMES[:2], profile=None)
    finally:
        settings.load_profile(before)
    assert result.examples == 7
    assert result.steps <= 7 * 3


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_repeats_the_run(seed: int) -> None:
    runs = [
        explore(
            Exploration(ORACLE, Stack), NAMES, profile=Profile.DEV, examples=10, steps=10, seed=seed
        )
        for _ in range(2)
    ]
    assert runs[0].frequencies == runs[1].frequencies


def test_a_seed_repeats_the_run_whatever_else_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself Hypothesis draws constants of loaded modules for its chances of 0 to 254."""

    def steps() -> Frequencies:
        machine = Exploration(ORACLE, Stack)
        run = explore(machine, NAMES, profile=Profile.DEV, examples=60, steps=10, seed=3)
        return run.frequencies

    before = steps()
    (tmp_path / "of_the_user.py").write_text(f"SOME = {list(range(101, 255))}\n")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("of_the_user")
    assert steps() == before


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
