"""What each action of Replication.tla does to the brokers: one function of the cluster for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from conformance.systems.protocol import ActionRefused
from conformance.systems.replication.broker import RECORD, TOPIC_PARTITION
from conformance.systems.replication.cluster import ReplicationCluster
from conformance.systems.replication.disk_failures import DISK_FAILURES
from conformance.systems.replication.storage import check_append
from conformance.systems.shared.replication.controller import DECISIONS
from impl.errors import Errors

# ---- controller ----------------------------------------------------------------------------


def _decide(decision: Callable[..., None], cluster: ReplicationCluster, *args: int) -> None:
    decision(cluster.controller, *args)


def _receive_leader_and_isr(cluster: ReplicationCluster, broker: int, epoch: int) -> None:
    answer = cluster.brokers[broker].receive_leader_and_isr(epoch)
    # Of two decisions that meet in an interrupted step the older one may come second.
    if answer is not Errors.NONE and not cluster.is_interruptible:
        raise ActionRefused(f"the controller is answered {answer.name}")


# ---- leader --------------------------------------------------------------------------------


def _append_as_leader(cluster: ReplicationCluster, leader: int, offset: int) -> None:
    broker = cluster.brokers[leader]
    info = broker.replica_manager.append_records(TOPIC_PARTITION, RECORD)
    if broker.partition is not None:
        check_append(cluster.log(leader), info, broker.partition.leader_epoch)
    if info.first_offset != offset:
        raise ActionRefused(f"the record was appended at {info.first_offset}")


def _advance_log_start_offset(cluster: ReplicationCluster, leader: int, offset: int) -> None:
    if cluster.is_interruptible:
        # As retention does (UnifiedLog.deleteOldSegments): it takes no lock of the partition's.
        cluster.log(leader).maybe_increment_log_start_offset(offset)
        return
    answers = cluster.brokers[leader].replica_manager.delete_records({TOPIC_PARTITION: offset})
    if answers != {TOPIC_PARTITION: Errors.NONE}:
        raise ActionRefused(f"the client is answered {answers}")


def _expand_isr(cluster: ReplicationCluster, leader: int, follower: int) -> None:
    cluster.brokers[leader].expand_isr(follower)


def _shrink_isr(cluster: ReplicationCluster, leader: int, follower: int) -> None:
    cluster.brokers[leader].shrink_isr(follower)


def _handle_alter_partition(cluster: ReplicationCluster, leader: int) -> None:
    cluster.controller.handle(leader, cluster.brokers[leader].alter_partition)


def _process_alter_partition(cluster: ReplicationCluster, leader: int) -> None:
    cluster.brokers[leader].complete_alter_partition()


# ---- follower ------------------------------------------------------------------------------


def _truncate_to_high_watermark(cluster: ReplicationCluster, follower: int) -> None:
    cluster.channels[follower].truncate_to_high_watermark()


def _send_epoch_request(cluster: ReplicationCluster, follower: int) -> None:
    cluster.channels[follower].send_epoch_request()


def _send_fetch(cluster: ReplicationCluster, follower: int) -> None:
    cluster.channels[follower].send_fetch()


def _handle(cluster: ReplicationCluster, leader: int, follower: int) -> None:
    cluster.channels[follower].handle(cluster.brokers[leader])


def _process(cluster: ReplicationCluster, follower: int) -> None:
    cluster.channels[follower].process()


def _lose_message(cluster: ReplicationCluster, follower: int) -> None:
    cluster.channels[follower].lose()


def _epoch_round_trip(cluster: ReplicationCluster, leader: int, follower: int) -> None:
    _send_epoch_request(cluster, follower)
    _list_offsets_round_trip(cluster, leader, follower)


def _fetch_round_trip(cluster: ReplicationCluster, leader: int, follower: int) -> None:
    _send_fetch(cluster, follower)
    _list_offsets_round_trip(cluster, leader, follower)


def _list_offsets_round_trip(cluster: ReplicationCluster, leader: int, follower: int) -> None:
    _handle(cluster, leader, follower)
    _process(cluster, follower)


STEPS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        **{name: partial(_decide, decision) for name, decision in DECISIONS.items()},
        "BecomeLeader": _receive_leader_and_isr,
        "BecomeFollower": _receive_leader_and_isr,
        "UpdateIsr": _receive_leader_and_isr,
        "AppendAsLeader": _append_as_leader,
        "AdvanceLogStartOffset": _advance_log_start_offset,
        "ExpandIsr": _expand_isr,
        "ShrinkIsr": _shrink_isr,
        "SubmitExpandIsr": _expand_isr,
        "SubmitShrinkIsr": _shrink_isr,
        "HandleAlterPartition": _handle_alter_partition,
        "ProcessAlterPartition": _process_alter_partition,
        "TruncateToHighWatermark": _truncate_to_high_watermark,
        "SendEpochRequest": _send_epoch_request,
        "SendFetch": _send_fetch,
        "HandleEpochRequest": _handle,
        "HandleFetch": _handle,
        "HandleListOffsets": _handle,
        "ProcessEpochResponse": _process,
        "ProcessFetchResponse": _process,
        "ProcessListOffsetsResponse": _process,
        "LoseMessage": _lose_message,
        "EpochRoundTrip": _epoch_round_trip,
        "FetchRoundTrip": _fetch_round_trip,
        "ListOffsetsRoundTrip": _list_offsets_round_trip,
        "Crash": ReplicationCluster.crash,
        "Restart": ReplicationCluster.restart,
        **DISK_FAILURES,
    }
)
"""By action; arguments are the cluster and the action's own, with numbers for brokers."""
