"""Steps in which a broker's disk fails, what comes after them, and the start on what is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from conformance.systems.protocol import ActionRefused
from conformance.systems.replication.broker import LOG_DIRECTORY, RECORD, TOPIC_PARTITION, Broker
from conformance.systems.replication.cluster import ReplicationCluster
from conformance.systems.replication.failing_disk import FailingDisk
from conformance.systems.replication.storage import log_after_start
from impl.errors import Errors, KafkaStorageException


def _fail_to_append(cluster: ReplicationCluster, leader: int, high_watermark: int) -> None:
    replicas = _with_failing_disk(cluster, leader, high_watermark).replica_manager
    try:
        replicas.append_records(TOPIC_PARTITION, RECORD)
    except KafkaStorageException:
        _load_offline_log(cluster, leader)
    else:
        raise ActionRefused("an append succeeds on a disk that fails")


def _fail_to_lead(
    cluster: ReplicationCluster, broker_id: int, epoch: int, high_watermark: int
) -> None:
    _with_failing_disk(cluster, broker_id, high_watermark)
    _refuse_decision(cluster, broker_id, epoch)
    _load_offline_log(cluster, broker_id)


def _refuse_decision(cluster: ReplicationCluster, broker_id: int, epoch: int) -> None:
    answer = cluster.brokers[broker_id].receive_leader_and_isr(epoch)
    if answer is not Errors.KAFKA_STORAGE_ERROR:
        raise ActionRefused(f"the controller is answered {answer.name} by a disk that fails")


def _fail_to_process(cluster: ReplicationCluster, follower: int, high_watermark: int) -> None:
    """Once the partition has failed, LogDirFailureHandler hears of the directory."""
    broker = _with_failing_disk(cluster, follower, high_watermark)
    cluster.channels[follower].process()
    if not broker.fetcher_manager.failed_partitions.contains(TOPIC_PARTITION):
        raise ActionRefused("the fetcher goes on although its disk fails")
    broker.replica_manager.handle_log_dir_failure(LOG_DIRECTORY)
    _load_offline_log(cluster, follower)


def _fail_to_checkpoint(cluster: ReplicationCluster, broker_id: int, high_watermark: int) -> None:
    broker = _with_failing_disk(cluster, broker_id, high_watermark)
    broker.replica_manager.checkpoint_high_watermarks()
    _load_offline_log(cluster, broker_id)


def _start_again(cluster: ReplicationCluster, broker_id: int) -> None:
    disk = cluster.brokers[broker_id].disk
    if isinstance(disk, FailingDisk):
        disk.repair()
    del cluster.offline_logs[broker_id]
    cluster.channels[broker_id].drop()
    cluster.restart(broker_id)


def _with_failing_disk(cluster: ReplicationCluster, broker_id: int, high_watermark: int) -> Broker:
    """From its next write on the disk fails; its checkpoint has this mark."""
    broker = cluster.brokers[broker_id]
    broker.checkpoint_high_watermark(high_watermark)
    if not isinstance(broker.disk, FailingDisk):
        raise ActionRefused("the disk of this broker does not fail")
    broker.disk.fail_at(1, once=False)
    return broker


def _load_offline_log(cluster: ReplicationCluster, broker_id: int) -> None:
    broker = cluster.brokers[broker_id]
    if not broker.is_offline:
        raise ActionRefused("the log directory stays online although its disk has failed")
    cluster.offline_logs[broker_id] = log_after_start(broker.disk.contents(), broker.log_config)


DISK_FAILURES: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        "FailToAppend": _fail_to_append,
        "FailToLead": _fail_to_lead,
        "FailToProcess": _fail_to_process,
        "FailToCheckpoint": _fail_to_checkpoint,
        "RefuseDecision": _refuse_decision,
        "StartAgain": _start_again,
    }
)
"""By action, as `steps.STEPS`."""
