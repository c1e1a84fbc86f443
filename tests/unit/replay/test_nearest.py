"""The search for a shorter counterexample, on a walk over a grid."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.replay.engine import Divergence, Driver, run_path
from conformance.replay.nearest import Nearest, nearest_failure
from conformance.replay.oracle import SpecOracle
from conformance.tla.values import Action, State, Value

RIGHT, UP = Action("Right", ()), Action("Up", ())
SIZE = 5


def allowed(state: State) -> list[tuple[Action, State]]:
    """From (0, 0), to the right and up within the grid."""
    x, y = state
    assert isinstance(x, int)
    assert isinstance(y, int)
    steps: list[tuple[Action, State]] = []
    if x < SIZE:
        steps.append((RIGHT, (x + 1, y)))
    if y < SIZE:
        steps.append((UP, (x, y + 1)))
    return steps


ORACLE = SpecOracle(("x", "y"), [(0, 0)], allowed)


class Walker:
    """Goes astray on a step up from the given column on."""

    variables = ("x", "y")

    def __init__(self, astray_from: int) -> None:
        self.astray_from = astray_from
        self.place = (0, 0)

    def reset(self, _initial: Mapping[str, Value]) -> None:
        self.place = (0, 0)

    def apply(self, action: Action) -> None:
        x, y = self.place
        if action == RIGHT:
            self.place = (x + 1, y)
        else:
            self.place = (x, y + (2 if x >= self.astray_from else 1))

    def observe(self) -> Mapping[str, Value]:
        return dict(zip(self.variables, self.place, strict=True))


def search(astray_from: int, *path: Action, budget: int = 1_000) -> tuple[Divergence, Nearest]:
    driver = Driver(Walker(astray_from), ORACLE)
    found = run_path(driver, (0, 0), path).divergence
    assert found is not None
    assert found.step == len(path)
    return found, nearest_failure(driver, ORACLE, found, budget)


def test_finds_the_fault_where_it_is_nearest() -> None:
    _, nearest = search(2, UP, UP, RIGHT, UP, RIGHT, UP)

    assert nearest.complete
    assert nearest.divergence.actions == (RIGHT, RIGHT, UP)


def test_keeps_the_shortest() -> None:
    found, nearest = search(2, RIGHT, RIGHT, UP)

    assert nearest.divergence is found
    assert nearest.complete


def test_says_when_it_has_not_looked_at_everything_shorter() -> None:
    found, nearest = search(4, UP, UP, UP, RIGHT, RIGHT, RIGHT, RIGHT, UP, budget=10)

    assert nearest.divergence is found
    assert not nearest.complete
    assert nearest.steps < 30
