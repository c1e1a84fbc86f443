"""What is counted of enabled and taken actions, and how often each stands in the lottery."""

from __future__ import annotations

import pytest

from conformance.replay.oracle import SpecOracle
from conformance.replay.weights import ActionTally, Frequencies, calibrate, copies
from conformance.tla import Action, State
from tests.unit.replay.machines import oracle_of

# A line of three states; Rare has two instances in the last one.
LINE = [(0, 1, "Go"), (1, 2, "Go"), (2, 0, "Back")]


def test_a_tally_counts_names_once_for_each_state() -> None:
    tally = ActionTally()
    tally.visit(frozenset({"A", "B"}))
    tally.visit(frozenset({"A"}))
    tally.take("A")
    tally.take("B")
    tally.take("A")
    assert tally.frequencies() == Frequencies({"A": 2, "B": 1}, {"A": 2, "B": 1})


def test_calibration_walks_the_spec_as_often_and_as_far_as_it_is_told() -> None:
    counted = calibrate(oracle_of(LINE), walks=5, length=6, seed=1)
    assert counted == Frequencies({"Go": 20, "Back": 10}, {"Go": 20, "Back": 10})


def test_a_walk_that_ends_early_is_no_matter() -> None:
    assert calibrate(oracle_of(LINE[:2]), walks=3, length=9, seed=1).steps == {"Go": 6}


def test_each_walk_begins_anew_and_anywhere() -> None:
    counted = calibrate(oracle_of(LINE, initial=(1, 2)), walks=60, length=1, seed=1)
    assert counted.enabled == counted.steps
    assert 10 < counted.steps["Go"] < 50
    assert counted.steps["Go"] + counted.steps["Back"] == 60


def test_names_are_chosen_evenly_and_then_their_instances() -> None:
    """Nine instances of Many weigh as much as one of One, and each leads somewhere else."""
    many = [Action("Many", (number,)) for number in range(9)]

    def steps(state: State) -> list[tuple[Action, State]]:
        if state == (0,):
            return [*((one, (number + 1,)) for number, one in enumerate(many)), (ONE, (0,))]
        return [(Action(f"At{state[0]}"), (0,))]

    counted = calibrate(SpecOracle(("x",), [(0,)], steps), walks=300, length=2, seed=1)
    assert counted.steps["Many"] == pytest.approx(counted.steps["One"], rel=0.3)
    assert {f"At{number}" for number in range(1, 10)} < set(counted.steps)
    assert counted.enabled["Many"] == counted.enabled["One"]


ONE = Action("One")


def test_every_successor_is_gone_to() -> None:
    fork = oracle_of([(0, 1, "Fork"), (0, 2, "Fork"), (1, 0, "A"), (2, 0, "B")])
    taken = calibrate(fork, walks=20, length=2, seed=1).steps
    assert set(taken) == {"Fork", "A", "B"}


def test_a_seed_repeats_the_count() -> None:
    ways = range(1, 10)  # so many that two seeds do not agree by chance
    fork = oracle_of([*((0, n, "Fork") for n in ways), *((n, 0, f"At{n}") for n in ways)])
    counts = [calibrate(fork, walks=50, length=9, seed=seed) for seed in (1, 1, 2)]
    assert counts[0] == counts[1] != counts[2]


@pytest.mark.parametrize(
    ("enabled", "lottery"),
    [
        ({}, {}),
        ({"A": 7}, {"A": 1}),
        ({"A": 100, "B": 25, "C": 11, "D": 6}, {"A": 1, "B": 2, "C": 3, "D": 4}),
        ({"A": 10_000, "B": 1}, {"A": 1, "B": 4}),
        ({"A": 100, "B": 45, "C": 44}, {"A": 1, "B": 1, "C": 2}),
    ],
)
def test_the_rarer_an_action_the_more_often_it_stands_in_the_lottery(
    enabled: dict[str, int], lottery: dict[str, int]
) -> None:
    assert copies(Frequencies(enabled, {})) == lottery


def test_the_lottery_has_a_limit() -> None:
    assert copies(Frequencies({"A": 10_000, "B": 1, "C": 400}, {}), most=7) == {
        "A": 1,
        "B": 7,
        "C": 5,
    }
