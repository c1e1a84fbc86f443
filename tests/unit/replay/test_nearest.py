"""The search for a shorter counterexample, on walks over a grid from (0, 0)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.replay.engine import Divergence, Driver, run_path
from conformance.replay.nearest import nearest_failure
from conformance.replay.oracle import SpecOracle
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, State, Value

ACTIONS = {"R": Action("Right", ()), "U": Action("Up", ())}
LETTERS = {action: letter for letter, action in ACTIONS.items()}
SIZE = 5

Fault = tuple[int, int, str]
"""Where, and by which step, the walker goes two fields at once."""


def allowed(state: State) -> list[tuple[Action, State]]:
    """To the right and up within the grid."""
    x, y = state
    assert isinstance(x, int)
    assert isinstance(y, int)
    steps: list[tuple[Action, State]] = []
    if x < SIZE:
        steps.append((ACTIONS["R"], (x + 1, y)))
    if y < SIZE:
        steps.append((ACTIONS["U"], (x, y + 1)))
    return steps


ORACLE = SpecOracle(("x", "y"), [(0, 0)], allowed)


class Walker:
    """Remembers the paths that it was driven along."""

    variables = ("x", "y")

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        self.paths: list[str] = []
        self.place = (0, 0)

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.paths.append("")
        self.place = (0, 0)

    def apply(self, action: Action) -> None:
        x, y = self.place
        letter = LETTERS[action]
        self.paths[-1] += letter
        size = 2 if (x, y, letter) in self.faults else 1
        self.place = (x + size, y) if letter == "R" else (x, y + size)

    def observe(self) -> Mapping[str, Value]:
        return dict(zip(self.variables, self.place, strict=True))


def search(path: str, *faults: Fault, budget: int = 1_000) -> tuple[str, list[str]]:
    """The path of the nearest failure, and all that were tried to find it."""
    walker = Walker(*faults)
    driver = Driver(walker, ORACLE)
    found = run_path(driver, (0, 0), [ACTIONS[letter] for letter in path]).divergence
    assert found is not None
    assert found.step == len(path)
    walker.paths.clear()
    nearest = nearest_failure(driver, ORACLE, found, budget)
    assert nearest is found or len(nearest.actions) < len(found.actions)
    return "".join(LETTERS[action] for action in nearest.actions), walker.paths


@pytest.mark.parametrize(
    ("path", "faults", "nearest"),
    [
        ("UURURU", [(2, 3, "U"), (2, 0, "U")], "RRU"),
        ("RRU", [(2, 0, "U")], "RRU"),
        ("UUUU", [(0, 3, "U")], "UUUU"),
        # By another step than by the one that showed it first.
        ("RRRU", [(3, 0, "U"), (0, 1, "R")], "UR"),
        ("RRRRU", [(4, 0, "U"), (1, 1, "U"), (0, 1, "R")], "UR"),
        ("RRRRU", [(4, 0, "U"), (0, 0, "U")], "U"),
    ],
)
def test_a_fault_is_shown_where_it_is_nearest(path: str, faults: list[Fault], nearest: str) -> None:
    assert search(path, *faults)[0] == nearest


def test_every_step_out_of_every_state_is_tried_first_by_the_action_that_failed() -> None:
    found, tried = search("RRU", (2, 0, "U"))
    assert found == "RRU"
    by_the_action, by_all = ["U", "RU", "UU"], ["R", "U", "RR", "RU", "UR", "UU"]
    assert tried == [*by_the_action, *by_all]


def test_a_state_is_left_only_on_the_first_way_that_reached_it() -> None:
    _, tried = search("RRRU", (3, 0, "U"))
    by_the_action = ["RRU", "RUU", "UUU"]
    by_all = ["RRR", "RRU", "RUR", "RUU", "UUR", "UUU"]
    assert [path for path in tried if len(path) == 3] == [*by_the_action, *by_all]


@pytest.mark.parametrize(
    ("budget", "tried"),
    [
        (0, []),
        (1, ["U", "R"]),
        (2, ["U", "RU", "R", "U"]),
        (3, ["U", "RU", "R", "U", "RR"]),
        (4, ["U", "RU", "UU", "R", "U", "RR"]),
    ],
)
def test_each_search_ends_when_its_steps_are_spent(budget: int, tried: list[str]) -> None:
    assert search("RRRRU", (4, 0, "U"), budget=budget) == ("RRRRU", tried)


def test_the_failing_action_is_found_with_steps_that_would_not_do_for_all() -> None:
    faults = [(4, 0, "U"), (2, 0, "U")]
    assert search("RRRRU", *faults, budget=6)[0] == "RRU"


def test_nothing_is_nearer_than_a_wrong_start() -> None:
    walker = Walker((0, 0, "R"))
    wrong = Divergence(BehaviourKind.WRONG_INITIAL, (0, 0), (), (), ((0, 0),), {"x": 1, "y": 0})
    assert nearest_failure(Driver(walker, ORACLE), ORACLE, wrong, 1_000) is wrong
    assert walker.paths == []
