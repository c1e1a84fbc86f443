"""Snapshots of timeline maps: reading, going back, forgetting."""

from __future__ import annotations

import random

import pytest

from impl.coordinator.timeline import SnapshotRegistry, TimelineHashMap
from impl.errors import IllegalStateException


def test_snapshots_are_what_the_map_was_in_any_order_of_changes() -> None:
    """Against copies of the map, over random changes, snapshots, reversions and deletions."""
    chance = random.Random(1)
    for _ in range(300):
        registry = SnapshotRegistry()
        timeline: TimelineHashMap[int, int] = TimelineHashMap(registry)
        copies: dict[int, dict[int, int]] = {}
        epoch = 0
        for step in range(30):
            match chance.randrange(5):
                case 0:
                    epoch += 1
                    registry.get_or_create_snapshot(epoch)
                    copies[epoch] = timeline.entries()
                case 1 if copies:
                    epoch = chance.choice(list(copies))
                    registry.revert_to_snapshot(epoch)
                    copies = {at: copy for at, copy in copies.items() if at <= epoch}
                    assert timeline.entries() == copies[epoch]
                case 2 if copies:
                    earliest = chance.choice(list(copies))
                    registry.delete_snapshots_up_to(earliest)
                    copies = {at: copy for at, copy in copies.items() if at >= earliest}
                case 3:
                    timeline.remove(chance.randrange(4))
                case _:
                    timeline.put(chance.randrange(4), step)
            assert registry.epochs_list() == list(copies)
            assert {at: timeline.entries(at) for at in copies} == copies


def test_epochs_without_a_snapshot_are_refused() -> None:
    registry = SnapshotRegistry()
    timeline: TimelineHashMap[int, int] = TimelineHashMap(registry)
    registry.get_or_create_snapshot(5)
    registry.get_or_create_snapshot(5)
    for refused in (
        lambda: registry.get_or_create_snapshot(4),
        lambda: registry.revert_to_snapshot(4),
        lambda: timeline.get(1, 6),
    ):
        with pytest.raises(IllegalStateException):
            refused()
