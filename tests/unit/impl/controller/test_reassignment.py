"""Replicas move: who is told what, and by which leader epoch a late request is known (KIP-570)."""

from __future__ import annotations

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.controller.channel_manager import ControllerChannelManager, ControllerNetworkClient
from impl.controller.context import ControllerContext, ReplicaAssignment
from impl.controller.kafka_controller import KafkaController
from impl.controller.request_batch import ControllerConfig
from impl.controller.state_change_logger import StateChangeLogger
from impl.controller.zookeeper_state import ControllerMovedException, ZooKeeperState
from tests.unit.impl.controller.cluster import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    FOO_0,
    Batch,
    leadership,
    new_context,
)


def nobody(broker: object) -> ControllerNetworkClient:
    raise AssertionError(f"nothing is sent to {broker} here")


class Reassigning:
    """A controller of the partition foo-0, which broker 1 leads; 1 and 2 are in sync."""

    def __init__(self, replicas: tuple[int, ...] = (1, 2, 3)) -> None:
        self.context: ControllerContext = new_context()
        self.context.partition_assignments[FOO_0] = ReplicaAssignment(replicas)
        self.context.partition_leadership_info[FOO_0] = leadership(1, (1, 2), leader_epoch=4)
        self.zookeeper = ZooKeeperState(controller_epoch=CONTROLLER_EPOCH)
        self.batch = Batch(self.context)
        channels = ControllerChannelManager(
            ControllerConfig(CONTROLLER),
            lambda: CONTROLLER_EPOCH,
            nobody,
            MockClock(),
            NoConcurrency(),
            StateChangeLogger(CONTROLLER),
        )
        self.controller = KafkaController(self.zookeeper, self.context, channels, self.batch)

    def to(self, *target: int) -> None:
        """One batch."""
        self.controller.begin()
        self.controller.on_partition_reassignment(FOO_0, target)
        self.controller.send()

    def told(self, broker: int) -> list[tuple[int, int, bool]]:
        """Leader, leader epoch and whether the replica is new, as the broker hears it."""
        return [
            (state.leader, state.leader_epoch, state.is_new)
            for request in self.batch.leader_and_isr(broker)
            for state in request.partition_states
        ]

    def stopped(self, broker: int) -> list[tuple[int, bool]]:
        """Leader epoch and whether the replica is to be deleted."""
        return [
            (state.leader_epoch, state.delete_partition)
            for request in self.batch.stop_replica(broker)
            for state in request.partition_states.values()
        ]


def test_a_follower_that_loses_its_replica_is_told_to_delete_it_with_the_new_epoch() -> None:
    bed = Reassigning()
    bed.to(1, 3)
    assert bed.stopped(2) == [(5, True)]
    assert bed.told(2) == []
    assert bed.told(1) == bed.told(3) == [(1, 5, False)]
    assert bed.context.partition_leadership_info[FOO_0].isr == (1,)
    assert bed.zookeeper.assignments[FOO_0].replicas == (1, 3)


def test_a_leader_that_loses_its_replica_hands_over_to_who_is_in_sync() -> None:
    bed = Reassigning()
    bed.to(3, 2)
    assert bed.told(2) == bed.told(3) == [(2, 5, False)]
    assert (bed.told(1), bed.stopped(1)) == ([], [(5, True)])


def test_who_was_not_in_sync_leaves_without_an_election() -> None:
    bed = Reassigning()
    bed.to(1, 2)
    assert bed.stopped(3) == [(4, True)]
    assert bed.told(1) == bed.told(2) == []


def test_who_gets_a_replica_hears_that_it_is_new_and_all_of_a_later_epoch() -> None:
    bed = Reassigning(replicas=(1, 2))
    bed.to(1, 2, 3)
    assert bed.told(3) == [(1, 5, True)]
    assert bed.told(1) == bed.told(2) == [(1, 5, False)]
    assert bed.stopped(3) == []


def test_a_replica_that_comes_back_has_a_later_epoch_than_what_stopped_it() -> None:
    bed = Reassigning()
    bed.to(1, 3)
    bed.to(1, 2, 3)
    ((stopped, _),) = bed.stopped(2)
    ((_, given, is_new),) = bed.told(2)
    assert stopped < given
    assert is_new


def test_another_order_of_preference_concerns_no_broker() -> None:
    bed = Reassigning()
    bed.to(3, 2, 1)
    assert bed.batch.sent == []
    assert bed.zookeeper.assignments[FOO_0].replicas == (3, 2, 1)


def test_a_former_controller_reassigns_nothing() -> None:
    bed = Reassigning()
    bed.zookeeper.controller_epoch += 1
    bed.controller.begin()
    with pytest.raises(ControllerMovedException):
        bed.controller.on_partition_reassignment(FOO_0, (1, 3))
    assert bed.context.partition_replica_assignment(FOO_0) == (1, 2, 3)
