"""What a rebalance listener is told has to fit what it was told before, and the subscription."""

from __future__ import annotations

import pytest

from conformance.systems.group.callbacks import ImpossibleCallback, RebalanceCallbacks
from impl.types import TopicPartition

NONE: frozenset[TopicPartition] = frozenset()
FIRST, SECOND = (frozenset({TopicPartition("topic", number)}) for number in (0, 1))


def test_partitions_are_assigned_and_revoked() -> None:
    told = RebalanceCallbacks(lambda: False)
    told.listener.on_partitions_assigned(FIRST)
    told.check(FIRST)
    told.listener.on_partitions_revoked(FIRST)
    told.check(NONE)


def test_partitions_are_assigned_and_lost() -> None:
    told = RebalanceCallbacks(lambda: True)
    told.listener.on_partitions_assigned(FIRST)
    told.listener.on_partitions_lost(FIRST)
    told.check(NONE)


@pytest.mark.parametrize(
    ("is_out", "call", "message"),
    [
        (False, "on_partitions_assigned", "before"),
        (True, "on_partitions_revoked", "are called revoked"),
        (False, "on_partitions_lost", "are called lost"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(is_out: bool, call: str, message: str) -> None:
    told = RebalanceCallbacks(lambda: is_out)
    told.listener.on_partitions_assigned(FIRST)
    with pytest.raises(ImpossibleCallback, match=message):
        getattr(told.listener, call)(FIRST)


def test_what_was_never_assigned_is_not_taken() -> None:
    told = RebalanceCallbacks(lambda: False)
    told.listener.on_partitions_assigned(FIRST)
    with pytest.raises(ImpossibleCallback, match="are taken of"):
        told.listener.on_partitions_revoked(SECOND)


def test_the_subscription_has_what_was_told() -> None:
    with pytest.raises(ImpossibleCallback, match="was told"):
        RebalanceCallbacks(lambda: False).check(FIRST)


def test_where_threads_meet_nobody_listens() -> None:
    told = RebalanceCallbacks(None)
    told.listener.on_partitions_lost(FIRST)
    told.check(FIRST)
