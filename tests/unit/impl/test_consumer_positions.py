"""States of a position, leader epochs in metadata, and what of a fetch is handed out."""

from __future__ import annotations

import pytest

from impl.consumer.completed_fetch import CompletedFetch
from impl.consumer.consumer_metadata import ConsumerMetadata
from impl.errors import IllegalStateException
from impl.group.client.subscription_state import (
    FetchPosition,
    FetchState,
    LeaderAndEpoch,
    OffsetResetStrategy,
    SubscriptionState,
)
from impl.records import Record, RecordBatch
from impl.types import BrokerEndPoint, TopicPartition

T0 = TopicPartition("topic", 0)
BROKER = BrokerEndPoint(1)


def leader(epoch: int) -> LeaderAndEpoch:
    return LeaderAndEpoch(BROKER, epoch)


def subscribed() -> SubscriptionState:
    subscriptions = SubscriptionState(OffsetResetStrategy.EARLIEST)
    subscriptions.assign([T0])
    return subscriptions


@pytest.mark.parametrize("state", FetchState)
@pytest.mark.parametrize("new", FetchState)
def test_transitions(state: FetchState, new: FetchState) -> None:
    allowed = new is not FetchState.INITIALIZING and (state, new) != (
        FetchState.AWAIT_RESET,
        FetchState.AWAIT_VALIDATION,
    )
    assert state.is_valid_transition(new) is allowed


@pytest.mark.parametrize(
    ("position", "state"),
    [
        pytest.param(FetchPosition(3, 1, leader(2)), FetchState.AWAIT_VALIDATION, id="asks"),
        pytest.param(FetchPosition(3, None, leader(2)), FetchState.FETCHING, id="no-epoch"),
        pytest.param(FetchPosition(3, 1), FetchState.FETCHING, id="no-leader-epoch"),
    ],
)
def test_a_position_is_validated_if_both_epochs_are_known(
    position: FetchPosition, state: FetchState
) -> None:
    subscriptions = subscribed()
    subscriptions.seek_unvalidated(T0, position)
    tps = subscriptions.state(T0)
    assert tps is not None
    assert (tps.fetch_state, tps.position) == (state, position)
    assert bool(subscriptions.all_consumed()) is (state is FetchState.FETCHING)


def test_a_partition_that_is_not_owned_has_no_position() -> None:
    with pytest.raises(IllegalStateException, match="not assigned"):
        SubscriptionState().position(T0)


def test_metadata_keeps_the_newest_epoch() -> None:
    metadata = ConsumerMetadata()
    metadata.update({T0: leader(2)})
    metadata.update({T0: leader(1)})
    assert metadata.current_leader(T0) == leader(2)


def test_a_newer_epoch_of_another_answer_hides_the_leader() -> None:
    metadata = ConsumerMetadata()
    metadata.update({T0: leader(1)})
    metadata.update_last_seen_epoch_if_newer(T0, 2)
    assert metadata.current_leader(T0) == LeaderAndEpoch(None, 2)
    assert metadata.update_requested


def test_a_fetch_is_handed_out_in_parts() -> None:
    batches = [
        RecordBatch.create((Record(value=b"a"), Record(value=b"b")), 0, 1),
        RecordBatch.create((Record(value=b"c"),), 2, 2),
    ]
    fetch = CompletedFetch(1, batches, None)
    assert [offset for offset, _ in fetch.fetch_records(1)] == [1]
    assert (fetch.next_fetch_offset, fetch.last_epoch, fetch.is_consumed) == (2, 1, False)
    assert [offset for offset, _ in fetch.fetch_records()] == [2]
    assert (fetch.next_fetch_offset, fetch.last_epoch, fetch.is_consumed) == (3, 2, True)
