"""Random actions: the successors that TLC finds, as often as it finds them, or an error in both."""

from __future__ import annotations

import pytest

from tests.differential.tla.random_actions import Actions, compare

pytestmark = pytest.mark.tlc


@pytest.mark.parametrize(
    ("seed", "depth", "count", "careless"), [(1, 2, 30, 0), (2, 3, 12, 0), (3, 1, 8, 0.2)]
)
def test_random_actions_have_tlcs_successors(seed, depth, count, careless):
    write = Actions(seed, careless)
    actions = [write.action(depth) for _ in range(count)]
    assert not compare(actions).differing, (
        f"python -m tests.differential.tla.random_actions --seed {seed} --depth {depth} "
        f"--count {count} --careless {careless}"
    )
