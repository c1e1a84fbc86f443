"""What a member remembers of a failed look-up, and how long it lets a join take at most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.group.client.abstract_coordinator import INT_MAX
from tests.unit.impl.group_client.world import CONFIG, World


@pytest.mark.parametrize(
    ("rebalance_ms", "join_ms"),
    [
        pytest.param(INT_MAX - 5_000, INT_MAX, id="the lapse just fits"),
        pytest.param(INT_MAX - 4_999, INT_MAX, id="the lapse is cut"),
        pytest.param(INT_MAX, INT_MAX, id="no lapse"),
    ],
)
def test_e28_no_join_takes_longer_than_32_bits_of_milliseconds(
    rebalance_ms: int, join_ms: int
) -> None:
    world = World(replace(CONFIG, rebalance_timeout_ms=rebalance_ms))
    assert world.member.join_group_timeout_ms == join_ms


def test_e22_the_next_look_up_asks_a_broker_that_has_come_back() -> None:
    world = World()
    world.transport.no_brokers = True
    assert world.member.lookup_coordinator().failed
    world.transport.no_brokers = False
    assert not world.member.lookup_coordinator().is_done
