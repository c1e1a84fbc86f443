"""What a batch sends to whom: ControllerChannelManagerTest's cases, and the rules behind them."""

from __future__ import annotations

import logging

import pytest

from impl.control_requests import (
    LEADER_DURING_DELETE,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from impl.controller.events import (
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from impl.controller.metadata_version import MetadataVersion as V
from impl.errors import Errors, IllegalStateException
from impl.replica_requests import LeaderAndIsrRequest
from tests.unit.impl.controller.cluster import (
    BAR_0,
    BAR_1,
    CONTROLLER,
    CONTROLLER_EPOCH,
    FOO_0,
    FOO_1,
    Batch,
    leadership,
    new_context,
)

THREE = {FOO_0: leadership(1, (1, 2)), FOO_1: leadership(2, (2, 3)), BAR_1: leadership(3, (1, 3))}


def test_leader_and_isr_is_one_request_for_all_partitions_of_a_broker() -> None:
    context = new_context()
    context.partition_leadership_info.update(THREE)
    batch = Batch(context)
    batch.new_batch()
    for partition, state in THREE.items():
        batch.add_leader_and_isr_request_for_brokers([2], partition, state, is_new=False)
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)

    (request,) = batch.leader_and_isr(2)
    states = {one.topic_partition: (one.leader, one.isr) for one in request.partition_states}
    assert states == {FOO_0: (1, (1, 2)), FOO_1: (2, (2, 3)), BAR_1: (3, (1, 3))}
    assert (request.controller_id, request.controller_epoch) == (CONTROLLER, CONTROLLER_EPOCH)
    assert request.broker_epoch == 102
    assert [one.id for one in request.live_leaders] == [1, 2, 3]
    assert {one.topic_id for one in request.partition_states} == {"id-foo", "id-bar"}
    assert [len(batch.update_metadata(broker)) for broker in (1, 2, 3)] == [1, 1, 1]

    batch.answer()
    answered = [one for one in batch.events if isinstance(one, LeaderAndIsrResponseReceived)]
    assert [one.broker_id for one in answered] == [2]
    assert set(answered[0].response.partitions) == set(THREE)


@pytest.mark.parametrize("second", [True, False])
def test_a_replica_that_is_new_stays_so_within_a_batch(second: bool) -> None:
    context = new_context()
    batch = Batch(context)
    batch.new_batch()
    for is_new in (not second, second):
        batch.add_leader_and_isr_request_for_brokers(
            [2], FOO_0, leadership(1, (1, 2)), is_new=is_new
        )
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    assert [one.is_new for one in batch.leader_and_isr(2)[0].partition_states] == [True]


def test_nothing_is_sent_to_dead_brokers_nor_to_no_broker() -> None:
    context = new_context()
    context.shutting_down_broker_ids.add(2)
    context.remove_live_broker(3)
    context.partition_leadership_info[FOO_0] = leadership(1, (1, 2))
    batch = Batch(context)
    batch.add_leader_and_isr_request_for_brokers(
        [-1, 1, 2, 3], FOO_0, leadership(1, (1, 2)), is_new=False
    )
    batch.add_stop_replica_request_for_brokers([-1, 2, 3], BAR_0, delete_partition=False)
    assert sorted(batch.leader_and_isr_request_map) == [1, 2, 3]
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)

    sent = [(broker, type(request)) for broker, request, _ in batch.sent]
    assert sent == [
        (1, LeaderAndIsrRequest),
        (2, LeaderAndIsrRequest),
        (1, UpdateMetadataRequest),
        (2, UpdateMetadataRequest),
        (2, StopReplicaRequest),
    ]
    assert batch.events == []
    (state,) = batch.update_metadata(1)[0].partition_states
    assert state.offline_replicas == (2, 3)
    batch.new_batch()


def test_update_metadata_tells_who_is_alive_even_without_partitions() -> None:
    batch = Batch(new_context())
    batch.add_update_metadata_request_for_brokers([2], [])
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    (request,) = batch.update_metadata(2)
    assert request.partition_states == ()
    assert [broker.id for broker in request.live_brokers] == [1, 2, 3]


def test_an_error_answer_to_update_metadata_is_an_event() -> None:
    context = new_context()
    context.partition_leadership_info.update(THREE)
    batch = Batch(context)
    batch.add_update_metadata_request_for_brokers([2], list(THREE))
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    assert len(batch.update_metadata(2)[0].partition_states) == 3
    batch.answer(Errors.STALE_BROKER_EPOCH)
    (event,) = batch.events
    assert isinstance(event, UpdateMetadataResponseReceived)
    assert (event.broker_id, event.response.error) == (2, Errors.STALE_BROKER_EPOCH)


def test_metadata_of_a_topic_that_goes_has_no_leader_but_its_isr() -> None:
    context = new_context()
    context.partition_leadership_info.update(THREE)
    context.queue_topic_deletion("foo")
    batch = Batch(context)
    batch.add_update_metadata_request_for_brokers([2], list(THREE))
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    told = {
        one.topic_partition: (one.leader, one.isr)
        for one in batch.update_metadata(2)[0].partition_states
    }
    assert told == {
        FOO_0: (LEADER_DURING_DELETE, (1, 2)),
        FOO_1: (LEADER_DURING_DELETE, (2, 3)),
        BAR_1: (3, (1, 3)),
    }


def test_a_partition_without_a_leader_yet_is_left_out() -> None:
    batch = Batch(new_context())
    batch.add_update_metadata_request_for_brokers([2], [FOO_0])
    assert batch.update_metadata_request_broker_set == {2}
    assert batch.update_metadata_request_partition_info_map == {}


@pytest.mark.parametrize(
    ("version", "leader_and_isr", "update_metadata", "stop_replica"),
    [
        (V.IBP_0_8_0, 0, 0, 0),
        (V.IBP_0_9_0, 0, 1, 0),
        (V.IBP_0_10_0_IV0, 0, 1, 0),
        (V.IBP_0_10_0_IV1, 0, 2, 0),
        (V.IBP_0_10_2_IV0, 0, 3, 0),
        (V.IBP_0_11_0_IV0, 0, 3, 0),
        (V.IBP_1_0_IV0, 1, 4, 0),
        (V.IBP_2_2_IV0, 2, 5, 1),
        (V.IBP_2_4_IV0, 3, 5, 1),
        (V.IBP_2_4_IV1, 4, 6, 2),
        (V.IBP_2_6_IV0, 4, 6, 3),
        (V.IBP_2_8_IV1, 5, 7, 3),
        (V.IBP_3_2_IV0, 6, 7, 3),
        (V.IBP_3_4_IV0, 7, 8, 4),
        (V.IBP_3_8_IV0, 7, 8, 4),
    ],
)
def test_versions_follow_the_inter_broker_protocol(
    version: V, leader_and_isr: int, update_metadata: int, stop_replica: int
) -> None:
    context = new_context()
    context.partition_leadership_info[FOO_0] = leadership(1, (1, 2))
    batch = Batch(context, version)
    batch.add_leader_and_isr_request_for_brokers([2], FOO_0, leadership(1, (1, 2)), is_new=False)
    batch.add_stop_replica_request_for_brokers([2], FOO_0, delete_partition=False)
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    assert batch.leader_and_isr(2)[0].version == leader_and_isr
    assert batch.update_metadata(2)[0].version == update_metadata
    assert batch.stop_replica(2)[0].version == stop_replica
    has_id = batch.leader_and_isr(2)[0].partition_states[0].topic_id is not None
    assert has_id is (leader_and_isr >= 5)
    assert bool(batch.update_metadata(2)[0].topic_ids) is (update_metadata >= 7)


def test_a_replica_that_is_to_be_deleted_stays_so_within_a_batch() -> None:
    batch = Batch(new_context())
    batch.add_stop_replica_request_for_brokers([2], FOO_0, delete_partition=True)
    batch.add_stop_replica_request_for_brokers([2], FOO_0, delete_partition=False)
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    (request,) = batch.stop_replica(2)
    assert request.partition_states[FOO_0].delete_partition


@pytest.mark.parametrize(
    ("led", "goes", "epoch"), [(True, False, 7), (False, False, -1), (True, True, -2)]
)
def test_stop_replica_carries_the_epoch_that_it_is_about(led: bool, goes: bool, epoch: int) -> None:
    context = new_context()
    if led:
        context.partition_leadership_info[FOO_0] = leadership(1, (1, 2), leader_epoch=7)
    if goes:
        context.queue_topic_deletion("foo")
    batch = Batch(context)
    batch.add_stop_replica_request_for_brokers([2], FOO_0, delete_partition=goes)
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    assert batch.stop_replica(2)[0].partition_states[FOO_0].leader_epoch == epoch


@pytest.mark.parametrize(
    ("version", "requests"),
    [
        (V.IBP_2_4_IV1, [{FOO_0: True, FOO_1: True}, {BAR_0: False, BAR_1: False}]),
        (V.IBP_2_6_IV0, [{FOO_0: True, FOO_1: True, BAR_0: False, BAR_1: False}]),
    ],
)
def test_delete_flags_are_mixed_from_2_6_on(version: V, requests: list[dict[object, bool]]) -> None:
    context = new_context()
    context.partition_leadership_info.update(THREE)
    batch = Batch(context, version)
    for partition, delete in ((FOO_0, True), (BAR_0, False), (FOO_1, True), (BAR_1, False)):
        batch.add_stop_replica_request_for_brokers([2], partition, delete)
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    flags = [
        {tp: state.delete_partition for tp, state in one.partition_states.items()}
        for one in batch.stop_replica(2)
    ]
    assert flags == requests
    epochs = {
        s.leader_epoch for one in batch.stop_replica(2) for s in one.partition_states.values()
    }
    assert (epochs == {-1}) is (version < V.IBP_2_6_IV0)


def test_only_the_deletion_of_topics_waits_for_stop_replica() -> None:
    context = new_context()
    context.queue_topic_deletion("foo")
    context.begin_topic_deletion("foo")
    batch = Batch(context)
    for partition in (FOO_0, FOO_1, BAR_0):
        batch.add_stop_replica_request_for_brokers([2], partition, delete_partition=True)
    batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    batch.answer()
    (event,) = batch.events
    assert isinstance(event, TopicDeletionStopReplicaResponseReceived)
    assert event.replica_id == 2
    assert set(event.partition_errors) == {FOO_0, FOO_1}


@pytest.mark.parametrize(
    ("fails", "left"),
    [
        (LeaderAndIsrRequest, "Some LeaderAndIsr state changes"),
        (UpdateMetadataRequest, "Some StopReplica state changes"),
        (StopReplicaRequest, "Some StopReplica state changes"),
    ],
)
def test_what_was_not_sent_is_kept_and_keeps_the_next_batch_from_beginning(
    fails: type, left: str
) -> None:
    batch = Batch(new_context())
    batch.add_leader_and_isr_request_for_brokers([2], FOO_0, leadership(1, (1, 2)), is_new=False)
    batch.add_stop_replica_request_for_brokers([2], BAR_0, delete_partition=False)
    batch.refuses = fails
    with pytest.raises(IllegalStateException) as raised:
        batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    assert "cannot be sent" in str(raised.value.__cause__)
    assert bool(batch.leader_and_isr_request_map) is (fails is LeaderAndIsrRequest)
    assert bool(batch.update_metadata_request_broker_set) is (fails is not StopReplicaRequest)
    with pytest.raises(IllegalStateException, match=left):
        batch.new_batch()
    batch.clear()
    batch.new_batch()


def test_brokers_that_wait_for_metadata_keep_a_batch_from_beginning() -> None:
    batch = Batch(new_context())
    batch.add_update_metadata_request_for_brokers([2], [])
    with pytest.raises(IllegalStateException, match="Some UpdateMetadata state changes"):
        batch.new_batch()


def test_the_state_change_log_has_kafkas_lines(caplog: pytest.LogCaptureFixture) -> None:
    context = new_context()
    context.partition_leadership_info[FOO_0] = leadership(1, (1, 2))
    batch = Batch(context)
    with caplog.at_level(logging.INFO, "impl.state_change"):
        batch.add_leader_and_isr_request_for_brokers([2], FOO_0, leadership(1, (1, 2)), False)
        batch.add_stop_replica_request_for_brokers([2], FOO_0, delete_partition=False)
        batch.send_requests_to_brokers(CONTROLLER_EPOCH)
    assert [record.getMessage() for record in caplog.records] == [
        "[Controller id=1 epoch=1] Sending LeaderAndIsr request to broker 2 with 0 become-leader"
        " and 1 become-follower partitions",
        "[Controller id=1 epoch=1] Sending UpdateMetadata request to brokers [1, 2, 3] for 1"
        " partitions",
        "[Controller id=1 epoch=1] Sending StopReplica request for 1 replicas to broker 2",
    ]
