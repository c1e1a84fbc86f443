"""A system that can be told how to choose goes where a path was planned to go, and only then."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.replay.engine import Driver, StepTrail, run_path
from conformance.replay.suite import replay_suite
from conformance.suites.postman import transition_cover
from conformance.tla import Action, Value
from conformance.verdict import Verdict
from tests.unit.replay.machines import Table, actions, graph, moves, oracle_of

START, LEFT, RIGHT, END = range(4)
EDGES = [
    (START, RIGHT, "Fork"),
    (START, LEFT, "Fork"),
    (LEFT, END, "GoLeft"),
    (RIGHT, END, "GoRight"),
    (LEFT, END, "Stop"),
    (RIGHT, END, "Stop"),
]
ORACLE = oracle_of(EDGES)


class Walker(Table):
    """Goes to the left at the fork."""

    def __init__(self) -> None:
        super().__init__(moves(EDGES))
        self.asked: list[Value] = []
        """The places that it was told to go to."""


class Led(Walker):
    """Goes where it is told to."""

    def choose(self, wanted: Mapping[str, Value]) -> None:
        self.asked.append(wanted["x"])

    def apply(self, action: Action) -> None:
        super().apply(action)
        if action.name == "Fork" and self.asked:
            self.x = RIGHT if self.asked[-1] == RIGHT else LEFT


def test_a_path_that_only_one_choice_can_take_is_taken_to_its_end() -> None:
    led = Led()

    result = run_path(Driver(led, ORACLE), (START,), actions("Fork GoRight"))

    assert (result.divergence, result.disabled, led.asked) == (None, "", [RIGHT])


def test_without_being_told_the_path_ends_where_the_system_went_elsewhere() -> None:
    result = run_path(Driver(Walker(), ORACLE), (START,), actions("Fork GoRight"))

    assert (result.divergence, result.disabled) == (None, "GoRight")


def test_where_any_choice_will_do_it_is_the_systems_own() -> None:
    led = Led()

    result = run_path(Driver(led, ORACLE), (START,), actions("Fork Stop"))

    assert (result.divergence, result.disabled, led.asked) == (None, "", [])


def test_the_states_of_a_path_say_which_choice_is_meant() -> None:
    led = Led()
    driver = Driver(led, ORACLE)

    result = run_path(driver, (START,), actions("Fork"), states=[(RIGHT,)])

    assert result.divergence is None
    assert (driver.candidates, led.asked) == (((RIGHT,),), [RIGHT])


@pytest.mark.parametrize(
    ("system", "verdict", "asked"),
    [(Led, Verdict.PASS, {LEFT, RIGHT}), (Walker, Verdict.INCONCLUSIVE, set())],
)
def test_a_suite_takes_every_transition_of_a_system_that_can_be_told(
    system: type[Walker], verdict: Verdict, asked: set[int]
) -> None:
    made: list[Walker] = []

    def make() -> Walker:
        made.append(system())
        return made[-1]

    whole = graph(EDGES)
    result = replay_suite(whole, transition_cover(whole), make)

    assert result.verdict is verdict
    assert [{*walker.asked} for walker in made] == [asked]


class LedOnce(Walker):
    """Goes where it is told to for the next step, else to the left; repeats itself."""

    def choose(self, wanted: Mapping[str, Value]) -> None:
        self.asked.append(wanted["x"])

    def apply(self, action: Action) -> None:
        super().apply(action)
        if action.name == "Fork":
            self.x = self.asked.pop() if self.asked else LEFT
        self.asked.clear()


@pytest.mark.parametrize(
    "paths",
    [
        ("Fork GoLeft", "Fork GoRight"),  # one beginning, two targets
        ("Fork GoRight", "Fork GoLeft"),
        ("Fork GoRight", "Fork GoRight"),  # a beginning that is taken again, by the same choice
        ("Fork GoRight", "Fork Stop", "Fork GoRight"),
    ],
)
def test_a_beginning_is_kept_only_if_its_choice_leads_on(paths: tuple[str, ...]) -> None:
    driver, trail, start = Driver(LedOnce(), ORACLE), StepTrail(), (START,)
    for path in paths:
        result = run_path(driver, start, actions(path), trail)
        assert (result.divergence, result.disabled, result.steps) == (None, "", 2), path
