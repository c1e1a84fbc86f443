"""What was compared decides whether a pass is one."""

from __future__ import annotations

import pytest

from conformance.compared import ComparedStates, total

NAMES = ("log", "leader", "ghost")


@pytest.mark.parametrize(
    ("states", "gap"),
    [
        ({}, "no variable was compared in any state"),
        ({"log": 0, "leader": 0}, "no variable was compared in any state"),
        ({"log": 5, "leader": 0}, "declares leader and never showed it"),
        ({"log": 5, "leader": 1}, ""),
    ],
)
def test_a_variable_that_was_never_compared_is_a_gap(states: dict[str, int], gap: str) -> None:
    found = ComparedStates(states, NAMES).gap
    assert gap in found
    assert bool(gap) == bool(found)


def test_the_summary_says_how_many_variables_in_how_many_states() -> None:
    compared = ComparedStates({"log": 1200, "leader": 7}, NAMES)
    assert compared.summary() == "2 of 3 variables compared in 1,200 states"
    assert compared.figures() == {
        "states": {"log": 1200, "leader": 7},
        "unobserved": ["ghost"],
    }


def test_parts_add_up() -> None:
    parts = [
        ComparedStates({"log": 1, "leader": 0}, NAMES),
        ComparedStates({"log": 2, "leader": 3}, NAMES),
    ]
    assert total(parts) == ComparedStates({"log": 3, "leader": 3}, NAMES)
    assert total([]).gap


def test_a_part_may_leave_to_the_others_what_it_never_shows() -> None:
    first = ComparedStates({"log": 1, "leader": 0}, NAMES, part=True)
    assert not first.gap
    assert ComparedStates({"log": 0, "leader": 0}, NAMES, part=True).gap
    assert not total([first, ComparedStates({"log": 1, "leader": 1}, NAMES, part=True)]).gap
    assert "never showed it" in total([first, first]).gap
