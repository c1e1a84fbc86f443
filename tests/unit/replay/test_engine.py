"""The replay engine against a counter that can be wrong in each way a system can be wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.errors import UserError
from conformance.replay.engine import Disabled, Driver, Kind, run_path
from conformance.replay.oracle import SpecOracle
from conformance.replay.story import differences
from conformance.systems.protocol import ActionRefused
from conformance.tla.values import Action, State, Value

INC, FLIP = Action("Inc", ()), Action("Flip", ())


def allowed(state: State) -> list[tuple[Action, State]]:
    """A counter to 3 with a ghost that remembers its highest value; Flip may set 0 or 1."""
    count, ghost = state
    assert isinstance(count, int)
    assert isinstance(ghost, int)
    steps: list[tuple[Action, State]] = [(FLIP, (0, ghost)), (FLIP, (1, max(1, ghost)))]
    if count < 3:
        steps.append((INC, (count + 1, max(count + 1, ghost))))
    return steps


ORACLE = SpecOracle(("count", "highest"), [(0, 0)], allowed)


class Counter:
    """Observes `count` only: `highest` is a ghost. Faults are given by name."""

    variables = ("count",)

    def __init__(self, fault: str = "", flips_to: int = 0) -> None:
        self.count, self.fault, self.flips_to = 0, fault, flips_to

    def reset(self, initial: Mapping[str, Value]) -> None:
        count = initial["count"]
        assert isinstance(count, int)
        self.count = 7 if self.fault == "wrong start" else count

    def apply(self, action: Action) -> None:
        if self.fault == "refuses" and self.count == 1:
            raise ActionRefused("no more")
        if self.fault == "raises" and self.count == 1:
            raise ZeroDivisionError("boom")
        if action == FLIP:
            self.count = self.flips_to
        else:
            self.count += 2 if self.fault == "skips" and self.count == 1 else 1

    def observe(self) -> Mapping[str, Value]:
        return {"count": self.count}


def test_a_system_that_follows_the_spec_passes_and_the_ghost_is_completed() -> None:
    driver = Driver(Counter(), ORACLE)
    result = run_path(driver, (0, 0), [INC, INC, INC])
    assert (result.steps, result.divergence) == (3, None)
    assert driver.candidates == ((3, 3),)


@pytest.mark.parametrize(
    ("fault", "kind", "step"),
    [
        ("wrong start", Kind.WRONG_INITIAL, 0),
        ("skips", Kind.NOT_ALLOWED, 2),
        ("refuses", Kind.REFUSED, 2),
        ("raises", Kind.RAISED, 2),
    ],
)
def test_each_fault_is_found_at_its_first_step(fault: str, kind: Kind, step: int) -> None:
    result = run_path(Driver(Counter(fault), ORACLE), (0, 0), [INC, INC, INC])
    assert result.divergence is not None
    assert (result.divergence.kind, result.divergence.step) == (kind, step)


def test_nondeterminism_follows_the_branch_that_the_system_took() -> None:
    driver = Driver(Counter(flips_to=1), ORACLE)
    assert run_path(driver, (0, 0), [FLIP]).divergence is None
    assert driver.candidates == ((1, 1),)


def test_an_action_that_the_taken_branch_disables_is_not_the_systems_fault() -> None:
    driver = Driver(Counter(), ORACLE)
    assert run_path(driver, (3, 3), [INC]).disabled == "Inc"
    driver.reset((3, 3))
    with pytest.raises(Disabled):
        driver.step(INC)


def test_a_system_that_observes_what_the_spec_lacks_is_told_at_once() -> None:
    class Other(Counter):
        variables = ("count", "colour")

    with pytest.raises(UserError, match="colour"):
        Driver(Other(), ORACLE)


def test_differences_show_expected_and_actual_of_the_nearest_allowed_state() -> None:
    result = run_path(Driver(Counter("skips"), ORACLE), (0, 0), [INC, INC])
    assert result.divergence is not None
    (difference,) = differences(ORACLE.variables, result.divergence)
    assert (difference.variable, difference.expected, difference.actual) == ("count", "2", "3")
