"""The replay engine against a counter that can be wrong in each way a system can be wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.errors import UserError
from conformance.replay.engine import Disabled, Driver, run_path
from conformance.replay.oracle import SpecOracle
from conformance.replay.watch import StepNeverEnds
from conformance.story.comparison import differences
from conformance.story.kind import BehaviourKind
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action, State, Value

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
        if self.fault == "never ends" and self.count == 1:
            raise StepNeverEnds("2 s")
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
        ("wrong start", BehaviourKind.WRONG_INITIAL, 0),
        ("skips", BehaviourKind.NOT_ALLOWED, 2),
        ("refuses", BehaviourKind.REFUSED, 2),
        ("raises", BehaviourKind.RAISED, 2),
        ("never ends", BehaviourKind.ENDLESS, 2),
    ],
)
def test_each_fault_is_found_at_its_first_step(fault: str, kind: BehaviourKind, step: int) -> None:
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
    found = run_path(Driver(Counter("skips"), ORACLE), (0, 0), [INC, INC]).divergence
    assert found is not None
    (difference,) = differences(ORACLE.variables, found.allowed, found.observed)
    assert (difference.variable, difference.expected, difference.actual) == ("count", "2", "3")


def test_a_divergence_holds_the_whole_path_and_both_sides() -> None:
    driver = Driver(Counter("skips"), ORACLE)
    run_path(driver, (0, 0), [INC])  # what was driven before leaves no trace
    divergence = run_path(driver, (0, 0), [FLIP, INC, INC]).divergence
    assert divergence is not None
    assert divergence.initial == (0, 0)
    assert (divergence.actions, divergence.action) == ((FLIP, INC, INC), INC)
    assert (divergence.before, divergence.allowed) == (((1, 1),), ((2, 2),))
    assert (divergence.observed, divergence.detail) == ({"count": 3}, "")


def test_a_wrong_start_was_allowed_and_has_no_action() -> None:
    divergence = Driver(Counter("wrong start"), ORACLE).reset((2, 2))
    assert divergence is not None
    assert (divergence.initial, divergence.actions, divergence.action) == ((2, 2), (), None)
    assert (divergence.before, divergence.allowed) == ((), ((2, 2),))
    assert divergence.observed == {"count": 7}


def test_a_refusal_says_why_and_an_exception_where() -> None:
    refused = run_path(Driver(Counter("refuses"), ORACLE), (0, 0), [INC, FLIP]).divergence
    assert refused is not None
    assert (refused.detail, refused.observed) == ("no more", {})
    assert (refused.before, refused.allowed) == (((1, 1),), ((0, 1), (1, 1)))
    raised = run_path(Driver(Counter("raises"), ORACLE), (0, 0), [INC, FLIP]).divergence
    assert raised is not None
    assert raised.detail.endswith("ZeroDivisionError: boom\n")
    assert (raised.before, raised.allowed, raised.observed) == (
        ((1, 1),),
        ((0, 1), (1, 1)),
        {},
    )


class Unready(Counter):
    """Cannot even start."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def reset(self, initial: Mapping[str, Value]) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (ActionRefused("not today"), BehaviourKind.REFUSED, "not today"),
        (ValueError("boom"), BehaviourKind.RAISED, "ValueError: boom"),
        (StepNeverEnds("2 s"), BehaviourKind.ENDLESS, "StepNeverEnds: 2 s"),
    ],
)
def test_a_system_that_cannot_start_diverges_at_once(
    error: Exception, kind: BehaviourKind, detail: str
) -> None:
    result = run_path(Driver(Unready(error), ORACLE), (2, 2), [INC])
    divergence = result.divergence
    assert result.steps == 0
    assert divergence is not None
    assert (divergence.kind, divergence.step) == (kind, 0)
    assert (divergence.before, divergence.allowed) == (((2, 2),), ((2, 2),))
    assert divergence.detail.strip().endswith(detail)


def test_a_deep_traceback_is_told_from_its_inner_end() -> None:
    class Deep(Counter):
        def apply(self, action: Action) -> None:
            self.sink(40)

        def sink(self, depth: int) -> None:
            if not depth:
                raise ZeroDivisionError("at the bottom")
            self.deeper(depth - 1)

        def deeper(self, depth: int) -> None:  # a traceback folds a function that calls itself
            self.sink(depth)

    divergence = run_path(Driver(Deep(), ORACLE), (0, 0), [INC]).divergence
    assert divergence is not None
    assert divergence.detail.count("  File ") == 12
    assert divergence.detail.splitlines()[-2].strip() == 'raise ZeroDivisionError("at the bottom")'


def test_a_path_ends_where_the_spec_does_not_enable_its_action() -> None:
    result = run_path(Driver(Counter(), ORACLE), (1, 1), [INC, INC, INC, FLIP])
    assert (result.steps, result.divergence, result.disabled) == (2, None, "Inc")


def test_candidates_are_followed_until_what_is_seen_tells_them_apart() -> None:
    """A coin that lies hidden until it is shown: both sides stay possible, each once."""
    toss, spin, show = (Action(name) for name in ("Toss", "Spin", "Show"))

    def steps(state: State) -> list[tuple[Action, State]]:
        seen, side = state
        if seen == "hidden":
            turned = [(spin, ("hidden", other)) for other in ("heads", "tails")]
            return [*turned, (show, (side, side))]
        return [(toss, ("hidden", "heads")), (toss, ("hidden", "tails"))]

    class Coin:
        variables = ("seen",)
        seen: str

        def __init__(self, shows: str) -> None:
            self.shows = shows

        def reset(self, initial: Mapping[str, Value]) -> None:
            self.seen = str(initial["seen"])

        def apply(self, action: Action) -> None:
            self.seen = self.shows if action == show else "hidden"

        def observe(self) -> Mapping[str, Value]:
            return {"seen": self.seen}

    oracle = SpecOracle(("seen", "side"), [("heads", "heads")], steps)
    driver = Driver(Coin("tails"), oracle)
    assert run_path(driver, ("heads", "heads"), [toss, spin]).divergence is None
    assert driver.candidates == (("hidden", "heads"), ("hidden", "tails"))
    assert driver.step(show) is None
    assert driver.candidates == (("tails", "tails"),)

    edge = run_path(Driver(Coin("edge"), oracle), ("heads", "heads"), [toss, show]).divergence
    assert edge is not None
    assert edge.before == (("hidden", "heads"), ("hidden", "tails"))
    assert edge.allowed == (("heads", "heads"), ("tails", "tails"))


def test_a_mapping_that_can_change_is_compared_every_time() -> None:
    class Reused(Counter):
        """Always gives the same dictionary, and counts wrongly the second time round."""

        def __init__(self) -> None:
            super().__init__()
            self.shown: dict[str, Value] = {}
            self.resets = 0

        def reset(self, initial: Mapping[str, Value]) -> None:
            super().reset(initial)
            self.resets += 1

        def observe(self) -> Mapping[str, Value]:
            wrong = self.resets == 2 and self.count == 1
            self.shown["count"] = 2 if wrong else self.count
            return self.shown

    driver = Driver(Reused(), ORACLE)
    assert run_path(driver, (0, 0), [INC]).divergence is None
    divergence = run_path(driver, (0, 0), [INC]).divergence
    assert divergence is not None
    assert divergence.observed == {"count": 2}


class Kept(Counter):
    """Gives the same observation whenever it counts the same."""

    def __init__(self) -> None:
        super().__init__()
        self.known = {count: Observation({"count": count}) for count in range(9)}

    def observe(self) -> Mapping[str, Value]:
        return self.known[self.count]


def test_an_observation_that_agreed_with_one_state_does_not_agree_with_another() -> None:
    system = Kept()
    driver = Driver(system, ORACLE)
    assert run_path(driver, (0, 0), [INC, INC, INC]).divergence is None
    assert run_path(driver, (0, 0), [INC, INC, INC]).divergence is None
    system.fault = "skips"
    divergence = run_path(driver, (0, 0), [INC, INC]).divergence
    assert divergence is not None
    assert (divergence.step, divergence.observed["count"]) == (2, 3)
    system.fault = "wrong start"
    assert driver.reset((0, 0)) is not None


def test_an_observation_that_agreed_before_leaves_open_only_what_it_shows() -> None:
    driver = Driver(Kept(), ORACLE)
    for _ in range(3):
        assert run_path(driver, (0, 0), [FLIP]).divergence is None
        assert driver.candidates == ((0, 0),)


def test_one_is_not_taken_for_true() -> None:
    """Python holds True == 1; the spec does not."""
    system, start = Kept(), (0, 0)
    system.known = {count: Observation({"count": count}) for count in range(9)}
    system.known[1] = Observation({"count": True})
    divergence = run_path(Driver(system, ORACLE), start, [INC, INC]).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.step) == (BehaviourKind.NOT_ALLOWED, 1)
    assert divergence.observed == {"count": True}


def test_what_agreed_once_is_not_compared_again() -> None:
    """Comparing costs more than many a step of an implementation: a replay lives by this."""
    compared: list[int] = []

    class Watched(int):
        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            compared.append(int(self))
            return int(self) == other

    system, start = Kept(), (0, 0)
    system.known = {count: Observation({"count": Watched(count)}) for count in range(9)}
    driver = Driver(system, ORACLE)
    for _ in range(3):
        assert run_path(driver, start, [INC, INC, INC]).divergence is None
        assert compared == [0, 1, 2, 3]
