"""What a share coordinator stores, refuses and loads: cases of ShareCoordinatorShardTest."""

from __future__ import annotations

from itertools import permutations

import pytest

from impl.errors import Errors
from impl.share.in_flight_state import RecordState
from impl.share.persister_state_batch_combiner import combine_state_batches
from impl.share.share_coordinator_shard import (
    ShareCoordinatorResult,
    ShareCoordinatorShard,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    WriteStateRequest,
)
from impl.share.share_partition import PersisterStateBatch

KEY = "group:topic:0"
ACCEPTED = PersisterStateBatch(0, RecordState.ACKNOWLEDGED, 1)


class Stored:
    """A shard with its log."""

    def __init__(self, updates_per_snapshot: int = 2) -> None:
        self.updates_per_snapshot = updates_per_snapshot
        self.shard = ShareCoordinatorShard(updates_per_snapshot)
        self.log: list[ShareRecord] = []

    def append(self, result: ShareCoordinatorResult) -> Errors:
        for record in result.records:
            self.shard.replay(len(self.log), record)
            self.log.append(record)
        return result.error

    def initialize(self, epoch: int = 1, start: int = 0) -> Errors:
        return self.append(self.shard.initialize_state(KEY, epoch, start))

    def read(self, leader: int) -> Errors:
        return self.append(self.shard.read_state_and_maybe_update_leader_epoch(KEY, leader))

    def write(
        self, leader: int = 1, epoch: int = 1, start: int = 0, *batches: PersisterStateBatch
    ) -> Errors:
        request = WriteStateRequest(KEY, leader, epoch, start, 0, batches)
        return self.append(self.shard.write_state(request))

    def loaded(self, first: int = 0) -> ShareCoordinatorShard:
        shard = ShareCoordinatorShard(self.updates_per_snapshot)
        for offset, record in enumerate(self.log[first:], first):
            shard.replay(offset, record)
        return shard


@pytest.fixture
def stored() -> Stored:
    """A state of epoch 1 that leader 1 has read."""
    stored = Stored()
    stored.initialize()
    stored.read(1)
    return stored


@pytest.mark.parametrize(
    ("leader", "epoch", "error"),
    [
        (1, 0, Errors.FENCED_STATE_EPOCH),
        (0, 1, Errors.FENCED_LEADER_EPOCH),
        (-1, 1, Errors.INVALID_REQUEST),
        (1, -1, Errors.INVALID_REQUEST),
        (1, 1, Errors.NONE),
        (2, 2, Errors.NONE),
    ],
)
def test_a_write_of_before_is_fenced_and_moves_no_epoch(
    stored: Stored, leader: int, epoch: int, error: Errors
) -> None:
    assert stored.write(leader, epoch) is error
    assert stored.shard.leader_epoch_map == {KEY: 1}
    assert stored.shard.state_epoch_map == {KEY: 1}


def test_what_was_never_initialised_is_neither_read_nor_written() -> None:
    stored = Stored()
    assert stored.read(1) is Errors.INVALID_REQUEST
    assert stored.write() is Errors.INVALID_REQUEST
    assert not stored.log


def test_only_the_first_read_of_a_leader_epoch_writes(stored: Stored) -> None:
    before = len(stored.log)
    assert stored.read(2) is Errors.NONE
    assert stored.read(2) is Errors.NONE
    assert len(stored.log) == before + 1
    assert stored.write(1) is Errors.FENCED_LEADER_EPOCH


def test_two_updates_then_a_snapshot() -> None:
    stored = Stored(updates_per_snapshot=2)
    stored.initialize()
    stored.read(1)
    for _ in range(3):
        stored.write()
    kinds = [type(record) for record in stored.log]
    assert kinds == [ShareSnapshot, ShareUpdate, ShareUpdate, ShareSnapshot, ShareUpdate]


def test_a_request_to_initialise_that_comes_again_changes_nothing(stored: Stored) -> None:
    stored.write(1, 1, 0, ACCEPTED)
    before = stored.shard.share_state_map[KEY]
    assert stored.initialize() is Errors.NONE
    assert stored.shard.share_state_map[KEY] == before
    assert stored.initialize(epoch=0) is Errors.FENCED_STATE_EPOCH


def test_a_state_that_begins_anew_is_empty_and_knows_its_leader(stored: Stored) -> None:
    stored.read(3)
    stored.write(3, 1, 1, ACCEPTED)
    assert stored.initialize(epoch=2, start=0) is Errors.NONE
    state = stored.shard.share_state_map[KEY]
    assert (state.start_offset, state.state_batches, state.leader_epoch) == (0, (), 3)
    first = stored.shard.last_redundant_offset()
    assert first is not None
    assert stored.loaded(first).leader_epoch_map == {KEY: 3}


def test_a_write_that_was_overtaken_moves_nothing_back(stored: Stored) -> None:
    later = WriteStateRequest(KEY, 1, 1, 2, 1)
    stored.append(stored.shard.write_state(later))
    stored.write(1, 1, 0, ACCEPTED)
    state = stored.shard.share_state_map[KEY]
    assert (state.start_offset, state.delivery_complete_count) == (2, 1)
    assert state.state_batches == ()


def test_a_deleted_state_leaves_nothing_and_may_be_deleted_again(stored: Stored) -> None:
    assert stored.append(stored.shard.delete_state(KEY)) is Errors.NONE
    assert stored.append(stored.shard.delete_state(KEY)) is Errors.NONE
    assert stored.write() is Errors.INVALID_REQUEST
    assert stored.shard == ShareCoordinatorShard(stored.updates_per_snapshot)


def test_a_cold_state_has_one_snapshot(stored: Stored) -> None:
    stored.append(stored.shard.snapshot_cold_partitions())
    before = len(stored.log)
    stored.append(stored.shard.snapshot_cold_partitions())
    assert len(stored.log) == before
    assert stored.shard.last_redundant_offset() == before - 1


BATCHES = [
    PersisterStateBatch(0, RecordState.AVAILABLE, 1),
    PersisterStateBatch(0, RecordState.ACKNOWLEDGED, 1),
    PersisterStateBatch(1, RecordState.ARCHIVED, 1),
    PersisterStateBatch(1, RecordState.AVAILABLE, 2),
]


@pytest.mark.parametrize("order", list(permutations(BATCHES)))
def test_states_are_combined_in_any_order_and_again(order: list[PersisterStateBatch]) -> None:
    best = (BATCHES[1], BATCHES[3])
    assert combine_state_batches(order[:2], order[2:], 0) == best
    assert combine_state_batches(best, order, 0) == best
    assert combine_state_batches(best, order, 1) == best[1:]
