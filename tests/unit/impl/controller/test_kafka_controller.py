"""What a controller decides when brokers come and go and topics are made: who is told, and once."""

from __future__ import annotations

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.control_requests import StopReplicaRequest, UpdateMetadataBroker
from impl.controller.channel_manager import ControllerChannelManager
from impl.controller.context import ReplicaAssignment
from impl.controller.events import (
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
)
from impl.controller.kafka_controller import KafkaController
from impl.controller.request_batch import ControllerConfig
from impl.controller.state_change_logger import StateChangeLogger
from impl.controller.zookeeper_state import ControllerMovedException, ZooKeeperState
from impl.errors import Errors
from impl.replica_requests import LeaderAndIsrResponse
from impl.types import NO_LEADER
from tests.unit.impl.controller.cluster import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    FOO_0,
    FOO_1,
    Batch,
    leadership,
    new_context,
)
from tests.unit.impl.controller.test_channel_manager import Client


class Controlling:
    """A controller with connections to brokers 1, 2 and 3, which have foo-0; 1 leads it."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.context = new_context()
        self.context.partition_leadership_info[FOO_0] = leadership(isr[0], isr, leader_epoch=4)
        self.zookeeper = ZooKeeperState(controller_epoch=CONTROLLER_EPOCH)
        self.zookeeper.broker_epochs = {1: 101, 2: 102, 3: 103}
        self.batch = Batch(self.context)
        self.channels = ControllerChannelManager(
            ControllerConfig(CONTROLLER),
            lambda: CONTROLLER_EPOCH,
            lambda _: Client([]),
            MockClock(),
            NoConcurrency(),
            StateChangeLogger(CONTROLLER),
        )
        for broker in (1, 2, 3):
            self.channels.add_broker(UpdateMetadataBroker(broker))
        self.controller = KafkaController(self.zookeeper, self.context, self.channels, self.batch)

    def starts(self, broker: int) -> None:
        self.controller.begin()
        self.controller.on_broker_startup(broker)
        self.controller.send()

    def fails(self, broker: int) -> None:
        self.zookeeper.broker_epochs.pop(broker)
        self.controller.begin()
        self.controller.on_broker_failure(broker)
        self.controller.send()

    @property
    def decided(self) -> tuple[int, tuple[int, ...], int]:
        """Leader, ISR and leader epoch of foo-0, as ZooKeeper has them."""
        state = self.zookeeper.partition_states[FOO_0]
        return state.leader, state.isr, state.leader_epoch


def test_a_broker_that_registers_anew_gets_a_new_connection_and_nothing_that_was_queued() -> None:
    bed = Controlling()
    before = bed.channels.broker_state_info[2]
    bed.channels.send_request(2, StopReplicaRequest(CONTROLLER, 1, {}), lambda _: None)
    bed.context.replicas_on_offline_dirs[2] = {FOO_0}
    bed.zookeeper.broker_epochs[2] = 112
    bed.starts(2)
    after = bed.channels.broker_state_info[2]
    assert after.queue is not before.queue
    assert after.client is not before.client
    assert bed.context.live_broker_epochs[2] == 112
    assert bed.context.is_replica_online(2, FOO_0), "directories that had failed may be back"


def test_a_broker_that_starts_hears_everything_and_the_others_hear_of_it() -> None:
    bed = Controlling()
    bed.starts(2)
    ((state,),) = [one.partition_states for one in bed.batch.leader_and_isr(2)]
    assert (state.topic_partition, state.leader, state.is_new) == (FOO_0, 1, False)
    assert [len(one.partition_states) for one in bed.batch.update_metadata(2)] == [1]
    (heard,) = bed.batch.update_metadata(3)
    assert {broker.id for broker in heard.live_brokers} == {1, 2, 3}
    assert bed.batch.leader_and_isr(3) == []


def test_a_leader_that_dies_is_followed_by_the_first_replica_in_sync() -> None:
    bed = Controlling(isr=(1, 3, 2))
    bed.fails(1)
    assert bed.decided == (2, (3, 2), 5)
    assert 1 not in bed.channels.broker_state_info
    assert bed.context.live_broker_ids == {2, 3}


def test_a_follower_that_dies_leaves_the_isr() -> None:
    bed = Controlling()
    bed.fails(3)
    assert bed.decided == (1, (1, 2), 5)


def test_the_last_in_sync_stays_in_the_isr_and_leads_again_when_it_is_back() -> None:
    bed = Controlling(isr=(1,))
    bed.fails(1)
    assert bed.decided == (NO_LEADER, (1,), 5)
    bed.zookeeper.broker_epochs[1] = 111
    bed.starts(1)
    assert bed.decided == (1, (1,), 6)


def test_a_broker_that_wants_to_stop_hands_over_what_others_can_lead() -> None:
    bed = Controlling()
    bed.context.partition_leadership_info[FOO_1] = leadership(2, (2, 1), leader_epoch=7)
    bed.controller.begin()
    bed.controller.do_controlled_shutdown(1)
    bed.controller.send()
    assert bed.decided == (2, (2, 3), 5)
    (stopped,) = bed.batch.stop_replica(1)
    assert {tp: one.delete_partition for tp, one in stopped.partition_states.items()} == {
        FOO_1: False
    }
    assert bed.context.live_broker_ids == {2, 3}


def test_a_new_topics_first_isr_are_the_live_replicas_in_their_order() -> None:
    bed = Controlling()
    bed.context.remove_live_broker(3)
    bed.zookeeper.topic_ids["foo"] = "id-foo"
    bed.zookeeper.assignments[FOO_0] = ReplicaAssignment((3, 2, 1))
    bed.controller.begin()
    bed.controller.on_new_partition_creation("foo")
    bed.controller.send()
    assert bed.decided == (2, (2, 1), 0)
    assert [one.is_new for one in bed.batch.leader_and_isr(2)[0].partition_states] == [True]
    assert bed.batch.leader_and_isr(3) == []


def test_a_controller_whose_epoch_is_over_writes_nothing() -> None:
    bed = Controlling()
    bed.zookeeper.controller_epoch = CONTROLLER_EPOCH + 1
    bed.controller.begin()
    with pytest.raises(ControllerMovedException):
        bed.controller.elect_leader(FOO_0, 2)
    with pytest.raises(ControllerMovedException):
        bed.zookeeper.delete_topic("foo", CONTROLLER_EPOCH)
    assert bed.zookeeper.partition_states == {}


def test_who_takes_over_knows_what_zookeeper_has_and_tells_everybody() -> None:
    bed = Controlling()
    bed.zookeeper.assignments[FOO_0] = ReplicaAssignment((1, 2, 3))
    bed.zookeeper.partition_states[FOO_0] = leadership(2, (2, 3), leader_epoch=9)
    bed.zookeeper.topic_ids["foo"] = "id-of-zookeeper"
    bed.zookeeper.topics_to_be_deleted.add("bar")
    bed.controller.begin()
    bed.controller.on_controller_failover()
    bed.controller.send()
    assert bed.controller.is_active
    assert bed.context.epoch == bed.zookeeper.controller_epoch == CONTROLLER_EPOCH + 1
    assert bed.context.topic_ids["foo"] == "id-of-zookeeper"
    assert bed.context.is_topic_queued_up_for_deletion("bar")
    for broker in (1, 2, 3):
        assert [one.leader for one in bed.batch.leader_and_isr(broker)[0].partition_states] == [2]
        assert len(bed.batch.update_metadata(broker)[0].partition_states) == 1


@pytest.mark.parametrize(
    ("request_error", "error", "deleted"),
    [
        pytest.param(Errors.NONE, Errors.NONE, True, id="done"),
        pytest.param(Errors.NONE, Errors.KAFKA_STORAGE_ERROR, False, id="disk-failed"),
        pytest.param(Errors.STALE_BROKER_EPOCH, Errors.NONE, False, id="meant-for-a-former-life"),
        pytest.param(
            Errors.STALE_CONTROLLER_EPOCH,
            Errors.STALE_CONTROLLER_EPOCH,
            False,
            id="from-a-former-controller",
        ),
    ],
)
def test_a_topic_is_deleted_when_every_broker_has_said_so(
    request_error: Errors, error: Errors, deleted: bool
) -> None:
    """A broker that has not deleted its replica is asked again when it starts."""
    bed = Controlling()
    bed.controller.begin()
    bed.controller.delete_topic("foo")
    bed.controller.send()
    done = dict.fromkeys((FOO_0, FOO_1), Errors.NONE)
    for broker in (1, 3):
        bed.controller.process(TopicDeletionStopReplicaResponseReceived(broker, Errors.NONE, done))
    assert not bed.controller.is_deletion_complete("foo")

    answer = TopicDeletionStopReplicaResponseReceived(2, request_error, {**done, FOO_0: error})
    bed.controller.process(answer)

    assert bed.controller.deleted_replicas(FOO_0) == ({1, 2, 3} if deleted else {1, 3})
    assert bed.controller.is_deletion_complete("foo") is deleted
    bed.batch.sent.clear()
    bed.starts(2)
    asked_again = [one for request in bed.batch.stop_replica(2) for one in request.partition_states]
    assert (FOO_0 in asked_again) is not deleted


@pytest.mark.parametrize(
    ("request_error", "error", "online"),
    [
        pytest.param(Errors.NONE, Errors.NONE, True, id="taken-over"),
        pytest.param(Errors.NONE, Errors.KAFKA_STORAGE_ERROR, False, id="disk-failed"),
        pytest.param(Errors.NONE, Errors.STALE_CONTROLLER_EPOCH, True, id="known-already"),
        pytest.param(
            Errors.STALE_BROKER_EPOCH,
            Errors.KAFKA_STORAGE_ERROR,
            True,
            id="meant-for-a-former-life",
        ),
    ],
)
def test_a_replica_is_offline_when_its_broker_says_that_the_disk_failed(
    request_error: Errors, error: Errors, online: bool
) -> None:
    bed = Controlling()
    answer = LeaderAndIsrResponse(request_error, {FOO_0: error, FOO_1: Errors.NONE})

    bed.controller.process(LeaderAndIsrResponseReceived(answer, 2))

    assert bed.context.is_replica_online(2, FOO_0) is online
    assert bed.context.is_replica_online(2, FOO_1), "other partitions of the broker"
    assert bed.context.is_replica_online(3, FOO_0), "other brokers of the partition"
