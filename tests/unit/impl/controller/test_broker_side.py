"""A broker between two controllers: which requests it obeys, and what it tells clients."""

from __future__ import annotations

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.control_plane import ControlPlane
from impl.control_requests import (
    LEADER_DURING_DELETE,
    StopReplicaRequest,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.log_manager import LogManager
from impl.metadata_cache import ZkMetadataCache
from impl.replica_manager import ReplicaManager
from impl.replica_requests import (
    LeaderAndIsrRequest,
    ReplicaManagerConfig,
    StopReplicaPartitionState,
)
from impl.scheduler import ImmediateScheduler
from impl.types import BrokerEndPoint
from tests.unit.impl.brokers import TP, HeldAlterPartitions, RecordedFetchers, state

BROKER, BROKER_EPOCH = 0, 5


def broker(disk: MemoryDisk | None = None) -> ControlPlane:
    threads = NoConcurrency()
    cache = ZkMetadataCache(threads)
    logs = LogManager(disk or MemoryDisk(), ("logs",), ImmediateScheduler(), threads)
    manager = ReplicaManager(
        ReplicaManagerConfig(BROKER, BROKER_EPOCH),
        MockClock(),
        logs,
        HeldAlterPartitions(),
        cache,
        threads,
        BrokerEndPoint,
        lambda _: RecordedFetchers(),
    )
    return ControlPlane(manager, cache)


def metadata(
    leader: int = 1, *, controller_epoch: int = 1, broker_epoch: int = BROKER_EPOCH
) -> UpdateMetadataRequest:
    told = UpdateMetadataPartitionState(TP, controller_epoch, leader, 3, (0, 1), 0, (0, 1))
    live = (UpdateMetadataBroker(0), UpdateMetadataBroker(1))
    return UpdateMetadataRequest(9, controller_epoch, (told,), live, {"topic": "id"}, broker_epoch)


def leads(*, controller_epoch: int = 1, broker_epoch: int = BROKER_EPOCH) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(9, controller_epoch, (state(BROKER, 3),), broker_epoch)


def stop(
    leader_epoch: int = 3,
    *,
    delete: bool = False,
    controller_epoch: int = 1,
    broker_epoch: int = BROKER_EPOCH,
) -> StopReplicaRequest:
    states = {TP: StopReplicaPartitionState(leader_epoch, delete)}
    return StopReplicaRequest(9, controller_epoch, states, broker_epoch)


@pytest.mark.parametrize("make", [metadata, leads, stop])
def test_a_replaced_controller_and_a_former_life_are_refused(make: object) -> None:
    assert callable(make)
    plane = broker()
    assert plane.handle(make(controller_epoch=2)).error is Errors.NONE
    assert plane.handle(make(controller_epoch=1)).error is Errors.STALE_CONTROLLER_EPOCH
    assert plane.handle(make(controller_epoch=2)).error is Errors.NONE
    old = make(controller_epoch=3, broker_epoch=BROKER_EPOCH - 1)
    assert plane.handle(old).error is Errors.STALE_BROKER_EPOCH
    assert plane.replica_manager.controller_epoch == 2


def test_the_cache_tells_of_partitions_until_they_are_deleted() -> None:
    plane = broker()
    plane.handle(metadata())
    known = plane.metadata_cache.get_partition_info(TP)
    assert known is not None
    assert known.leader == 1
    assert plane.metadata_cache.snapshot.topic_ids == {"topic": "id"}
    assert plane.metadata_cache.has_alive_broker(1)
    plane.handle(metadata(LEADER_DURING_DELETE))
    assert plane.metadata_cache.get_partition_info(TP) is None
    assert plane.metadata_cache.snapshot.topic_ids == {}


def test_a_cache_without_partitions_to_tell_of_still_learns_who_is_alive() -> None:
    plane = broker()
    plane.handle(metadata())
    plane.handle(UpdateMetadataRequest(9, 1, (), (UpdateMetadataBroker(0),), {}, BROKER_EPOCH))
    assert not plane.metadata_cache.has_alive_broker(1)
    assert plane.metadata_cache.get_alive_broker_epoch(1) is None
    assert plane.metadata_cache.get_alive_broker_epoch(0) == -1
    assert plane.metadata_cache.get_partition_info(TP) is not None


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (2, Errors.FENCED_LEADER_EPOCH),
        (3, Errors.NONE),
        (4, Errors.NONE),
        (-1, Errors.NONE),
        (-2, Errors.NONE),
    ],
)
def test_a_stop_that_is_too_late_is_fenced(epoch: int, error: Errors) -> None:
    plane = broker()
    plane.handle(leads())
    answer = plane.replica_manager.handle_stop_replica(stop(epoch))
    assert dict(answer.partitions) == {TP: error}
    assert plane.replica_manager.get_partition(TP) is not None


def test_a_replica_of_which_only_the_log_is_left_is_deleted() -> None:
    disk = MemoryDisk()
    broker(disk).handle(leads())
    again = broker(disk)
    assert again.replica_manager.log_manager.get_log(TP) is not None
    again.handle(stop(-2, delete=True))
    assert again.replica_manager.log_manager.get_log(TP) is None
    assert broker(disk).replica_manager.log_manager.get_log(TP) is None
