"""How many random walks take every action: by hand, and against walks that are really taken."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from conformance.suites.walks import MISSED, walks_that_take_all
from tests.unit.suites.graphs import Edge, graph_of

RARE: Sequence[Edge] = [(0, 0, "Stay"), (0, 1, "Go"), (1, 0, "Back"), (1, 1, "Rare")]
"""Within two steps Rare is taken by a quarter of the walks."""


@pytest.mark.parametrize(
    ("edges", "length", "walks"),
    [
        ([], 5, 1),
        ([(0, 1, "Go")], 5, 1),  # every walk takes it
        ([(0, 0, "Stay"), (0, 1, "Go")], 1, 10),  # a half of them: 0.5 ** 10 < 0.001
        (RARE, 2, 25),  # 0.75 ** 25 < 0.001
        ([(0, 1, "Go"), (0, 2, "Go"), (1, 1, "Rare")], 2, 10),  # two results of one action
        ([(0, 1, "Go"), (1, 2, "Far")], 1, 1),  # Far is out of reach of a walk so short
    ],
)
def test_the_number_by_hand(edges: Sequence[Edge], length: int, walks: int) -> None:
    """The rarest action decides; one that no walk reaches is not waited for."""
    assert walks_that_take_all(graph_of(3, edges), length) == walks


def test_walks_that_are_taken_miss_as_many() -> None:
    """A third of the walks misses the rarest action with the third root of the chance."""
    third, times, rng = walks_that_take_all(graph_of(2, RARE), 2) // 3, 20_000, random.Random(1)
    missed = sum(not any(takes_rare(rng, 2) for _ in range(third)) for _ in range(times))
    assert missed / times == pytest.approx(MISSED ** (1 / 3), rel=0.1)


def takes_rare(rng: random.Random, length: int) -> bool:
    """Whether one walk along RARE takes its rarest action."""
    state, taken = 0, False
    for _ in range(length):
        _, state, name = rng.choice([edge for edge in RARE if edge[0] == state])
        taken = taken or name == "Rare"
    return taken
