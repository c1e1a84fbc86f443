"""What each action of Replication.tla does to Kafka's brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from conformance.systems.kafka.cluster import BridgedCluster
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.replication.controller import DECISIONS


def _decide(decision: Callable[..., None], cluster: BridgedCluster, *args: int) -> None:
    decision(cluster.controller, *args)


def _become(cluster: BridgedCluster, broker: int, epoch: int) -> None:
    cluster.brokers.hear(broker, cluster.controller.registered(epoch))


def _append_as_leader(cluster: BridgedCluster, leader: int, offset: int) -> None:
    appended = cluster.brokers.append(leader)
    if appended != offset:
        raise ActionRefused(f"the record was appended at {appended}")


def _advance_log_start_offset(cluster: BridgedCluster, leader: int, offset: int) -> None:
    cluster.brokers.step("delete_records", leader, offset=offset)


def _process_alter_partition(cluster: BridgedCluster, leader: int) -> None:
    item = cluster.items.pop(leader, None)
    if item is None:
        raise ActionRefused("no AlterPartition is in flight")
    item.complete()


def _read_fetch(cluster: BridgedCluster, leader: int, follower: int) -> None:
    """The first section of a fetch's handling (ReplicationInterruptedFetches)."""
    if not cluster.brokers.read_fetch(leader, follower):
        raise ActionRefused("the fetch was answered, and not counted")
    cluster.uncounted.add(follower)


def _count_fetch(cluster: BridgedCluster, leader: int, follower: int) -> None:
    """The second one."""
    cluster.brokers.count_fetch(leader, follower)
    cluster.uncounted.discard(follower)


def _of_follower(command: str) -> Callable[[BridgedCluster, int], None]:
    def step(cluster: BridgedCluster, follower: int) -> None:
        cluster.brokers.step(command, follower)

    return step


def _round_trip(*commands: str) -> Callable[[BridgedCluster, int, int], None]:
    def step(cluster: BridgedCluster, leader: int, follower: int) -> None:
        cluster.brokers.round_trip(leader, follower, commands)

    return step


_handle, _process = _round_trip("handle"), _of_follower("process")

STEPS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        **{name: partial(_decide, decision) for name, decision in DECISIONS.items()},
        "BecomeLeader": _become,
        "BecomeFollower": _become,
        "UpdateIsr": _become,
        "AppendAsLeader": _append_as_leader,
        "AdvanceLogStartOffset": _advance_log_start_offset,
        "ExpandIsr": partial(BridgedCluster.change_isr, expand=True),
        "ShrinkIsr": partial(BridgedCluster.change_isr, expand=False),
        "SubmitExpandIsr": partial(BridgedCluster.change_isr, expand=True),
        "SubmitShrinkIsr": partial(BridgedCluster.change_isr, expand=False),
        "HandleAlterPartition": BridgedCluster.handle_alter_partition,
        "ProcessAlterPartition": _process_alter_partition,
        "TruncateToHighWatermark": _of_follower("truncate"),
        "SendEpochRequest": _of_follower("send_epoch_request"),
        "SendFetch": _of_follower("send_fetch"),
        "HandleEpochRequest": _handle,
        "HandleFetch": _handle,
        "HandleListOffsets": _handle,
        "ReadFetch": _read_fetch,
        "CountFetch": _count_fetch,
        "ProcessEpochResponse": _process,
        "ProcessFetchResponse": _process,
        "ProcessListOffsetsResponse": _process,
        "LoseMessage": _of_follower("lose"),
        "EpochRoundTrip": _round_trip("send_epoch_request", "handle", "process"),
        "FetchRoundTrip": _round_trip("send_fetch", "handle", "process"),
        "ListOffsetsRoundTrip": _round_trip("handle", "process"),
        "Crash": BridgedCluster.crash,
        "Restart": BridgedCluster.restart,
    }
)
"""By action; arguments are the cluster and the action's own, with numbers for brokers."""
