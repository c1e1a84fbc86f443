"""A broker as a whole: what the controller and other brokers ask of it."""

from __future__ import annotations

import pytest

from impl.errors import ApiException, Errors
from impl.network import (
    INITIAL_METADATA,
    FetchMetadata,
    FetchRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    TopicIdPartition,
)
from impl.replica_requests import (
    EPOCH_DURING_DELETE,
    LeaderAndIsrRequest,
    StopReplicaPartitionState,
)
from impl.types import (
    LATEST_TIMESTAMP,
    ZERO_UUID,
    EpochData,
    EpochEndOffset,
    FetchPartitionRequest,
    ProtocolConfig,
    TopicPartition,
)
from tests.unit.impl.brokers import TP, records, state
from tests.unit.impl.cluster import Cluster

TRUNCATE_ON_FETCH = ProtocolConfig()
ASK_FOR_EPOCHS = ProtocolConfig(truncation_on_fetch=False)
BOTH = pytest.mark.parametrize(
    "protocol", [TRUNCATE_ON_FETCH, ASK_FOR_EPOCHS], ids=["truncate-on-fetch", "ask-for-epochs"]
)
OTHER = TopicPartition("other", 0)
SESSIONLESS = FetchMetadata(0, -1)


def a_fetch(
    offset: int,
    metadata: FetchMetadata = SESSIONLESS,
    *,
    replica_id: int = 1,
    epoch: int | None = 0,
    partition: TopicPartition = TP,
    topic_id: str = ZERO_UUID,
    removed: tuple[TopicIdPartition, ...] = (),
    nothing_new: bool = False,
) -> FetchRequest:
    asked = FetchPartitionRequest(topic_id, offset, 0, 1 << 20, epoch)
    to_send = {} if nothing_new else {partition: asked}
    return FetchRequest(16, replica_id, -1, 0, 1, 1 << 20, metadata, to_send, removed)


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "expected"),
    [
        pytest.param(4, 100, Errors.STALE_CONTROLLER_EPOCH, id="older-leader-epoch"),
        pytest.param(5, 50, Errors.STALE_CONTROLLER_EPOCH, id="the-same-again"),
        pytest.param(5, 49, Errors.STALE_CONTROLLER_EPOCH, id="older-partition-epoch"),
        pytest.param(5, 51, Errors.NONE, id="newer-partition-epoch"),
        pytest.param(6, 60, Errors.NONE, id="newer-leader-epoch"),
    ],
)
def test_stale_decisions_are_ignored(
    leader_epoch: int, partition_epoch: int, expected: Errors
) -> None:
    cluster = Cluster()
    broker = cluster.brokers[0]
    broker.become_leader_or_follower(
        LeaderAndIsrRequest(0, 0, (state(0, 5, replicas=(0, 1), isr=(0, 1)),))
    )

    decision = state(1, leader_epoch, replicas=(0, 1), isr=(1,), partition_epoch=partition_epoch)
    response = broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (decision,)))

    assert response.partitions == {TP: expected}
    partition = broker.get_partition_or_exception(TP)
    assert partition.is_leader is (expected is not Errors.NONE)


@pytest.mark.parametrize(
    ("controller_epoch", "broker_epoch", "expected"),
    [
        pytest.param(2, 7, Errors.STALE_CONTROLLER_EPOCH, id="older-controller"),
        pytest.param(3, 6, Errors.STALE_BROKER_EPOCH, id="meant-for-an-earlier-life"),
        pytest.param(3, 7, Errors.NONE, id="current"),
        pytest.param(4, -1, Errors.NONE, id="newer-controller-without-broker-epochs"),
    ],
)
def test_requests_of_the_past_are_refused(
    controller_epoch: int, broker_epoch: int, expected: Errors
) -> None:
    cluster = Cluster()
    cluster.start(0, broker_epoch=7)
    broker = cluster.brokers[0]
    broker.become_leader_or_follower(LeaderAndIsrRequest(0, 3, ()))

    decision = (state(0, 1, replicas=(0, 1), isr=(0,)),)
    request = LeaderAndIsrRequest(0, controller_epoch, decision, broker_epoch)

    assert broker.become_leader_or_follower(request).error is expected
    assert len(broker.partitions()) == (expected is Errors.NONE)


def test_a_decision_on_a_partition_of_other_brokers_is_refused() -> None:
    broker = Cluster().brokers[0]
    foreign = state(1, 1, replicas=(1, 2), isr=(1,))

    response = broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (foreign,)))

    assert response.partitions == {TP: Errors.UNKNOWN_TOPIC_OR_PARTITION}


def test_topic_id_of_another_topic_is_refused() -> None:
    broker = Cluster().brokers[0]
    first = state(0, 1, replicas=(0, 1), isr=(0,), topic_id="A" * 21 + "Q")
    broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (first,)))
    second = state(0, 2, replicas=(0, 1), isr=(0,), topic_id="B" * 22)

    response = broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (second,)))

    assert response.partitions == {TP: Errors.INCONSISTENT_TOPIC_ID}
    answer = broker.fetch(a_fetch(0, topic_id="B" * 22)).partitions[TP]
    assert answer.error is Errors.INCONSISTENT_TOPIC_ID


@BOTH
def test_follower_begins_at_its_log_end_or_at_its_high_watermark(protocol: ProtocolConfig) -> None:
    cluster = Cluster(protocol=protocol)
    cluster.elect(0, (0, 1))
    cluster.append(0, 3)
    cluster.settle()
    cluster.log(1).update_high_watermark(1)

    offset = cluster.brokers[1].initial_fetch_offset(cluster.log(1))

    assert offset == (3 if protocol.truncation_on_fetch else 1)


def test_follower_without_epochs_begins_at_its_high_watermark() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1))

    assert cluster.brokers[1].initial_fetch_offset(cluster.log(1)) == 0


def epoch_answer(cluster: Cluster, partition: TopicPartition, asked: EpochData) -> EpochEndOffset:
    request = OffsetsForLeaderEpochRequest(4, 1, {partition: asked})
    return cluster.brokers[0].offsets_for_leader_epoch(request).partitions[partition]


def test_p19_offsets_for_leader_epoch() -> None:
    cluster = Cluster()
    cluster.elect(0, (0,), tell=(0,))
    cluster.append(0, 2)

    assert epoch_answer(cluster, TP, EpochData(0, 0)) == EpochEndOffset(Errors.NONE, 0, 2)
    assert epoch_answer(cluster, TP, EpochData(None, 5)) == EpochEndOffset(Errors.NONE, -1, -1)
    assert epoch_answer(cluster, TP, EpochData(1, 0)) == EpochEndOffset(Errors.UNKNOWN_LEADER_EPOCH)
    assert epoch_answer(cluster, OTHER, EpochData(0, 0)) == EpochEndOffset(
        Errors.UNKNOWN_TOPIC_OR_PARTITION
    )
    cluster.brokers[0].get_partition_or_exception(TP).log = None
    assert epoch_answer(cluster, TP, EpochData(0, 0)) == EpochEndOffset(
        Errors.NOT_LEADER_OR_FOLLOWER
    )


@pytest.mark.parametrize(
    ("old_epoch_response", "version"), [(True, 4), (False, 0)], ids=["switch", "request-version"]
)
def test_old_answers_carry_no_epoch(old_epoch_response: bool, version: int) -> None:
    cluster = Cluster(protocol=ProtocolConfig(old_epoch_response=old_epoch_response))
    cluster.elect(0, (0,), tell=(0,))
    cluster.append(0, 2)

    request = OffsetsForLeaderEpochRequest(version, 1, {TP: EpochData(0, 0)})
    answer = cluster.brokers[0].offsets_for_leader_epoch(request)

    assert answer.partitions == {TP: EpochEndOffset(Errors.NONE, -1, 2)}


@pytest.mark.parametrize(
    ("replica_id", "epoch", "expected"),
    [
        (1, 0, (Errors.NONE, 2)),
        (-1, 0, (Errors.NONE, 0)),
        (1, -1, (Errors.NONE, 2)),
        (1, 1, (Errors.UNKNOWN_LEADER_EPOCH, -1)),
    ],
    ids=["replica", "client", "without-epoch", "newer-epoch"],
)
def test_list_latest_offset(replica_id: int, epoch: int, expected: tuple[Errors, int]) -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1), tell=(0,))
    cluster.append(0, 2)

    answer = cluster.brokers[0].list_offsets(
        ListOffsetsRequest(8, replica_id, TP, epoch, LATEST_TIMESTAMP)
    )

    assert (answer.error, answer.offset) == expected


def test_list_offsets_of_an_unknown_partition_or_time() -> None:
    cluster = Cluster()
    cluster.elect(0, (0,), tell=(0,))

    unknown = cluster.brokers[0].list_offsets(ListOffsetsRequest(8, 1, OTHER, 0, LATEST_TIMESTAMP))
    future = cluster.brokers[0].list_offsets(ListOffsetsRequest(8, 1, TP, 0, 10**9))

    assert unknown.error is Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert (future.error, future.offset) == (Errors.NONE, -1)


def test_fetch_errors_carry_no_offsets() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1), tell=(0,))

    answer = cluster.brokers[0].fetch(a_fetch(1)).partitions[TP]
    unknown = cluster.brokers[0].fetch(a_fetch(0, partition=OTHER)).partitions[OTHER]

    assert (answer.error, answer.high_watermark, answer.log_start_offset) == (
        Errors.OFFSET_OUT_OF_RANGE,
        -1,
        -1,
    )
    assert unknown.error is Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_fetch_limit_is_shared_but_something_is_always_returned() -> None:
    cluster = Cluster()
    broker = cluster.brokers[0]
    decisions = tuple(
        state(0, 0, replicas=(0, 1), isr=(0,), partition=partition) for partition in (TP, OTHER)
    )
    broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, decisions))
    cluster.append(0)
    broker.append_records(OTHER, cluster.log(0).read(0, 1000).records)
    asked = FetchPartitionRequest(ZERO_UUID, 0, 0, 1 << 20, 0)

    request = FetchRequest(16, 1, -1, 0, 1, 1, FetchMetadata(0, -1), {TP: asked, OTHER: asked})
    answer = broker.fetch(request)

    sizes = [data.records.size_in_bytes for data in answer.partitions.values()]
    assert sizes[0] > 0
    assert sizes[1] == 0


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        pytest.param(0.5, [1, 0, 0], id="for-half-a-batch"),
        pytest.param(1, [1, 0, 0], id="for-one"),
        pytest.param(1.5, [1, 0, 0], id="for-one-and-a-half"),
        pytest.param(2, [1, 1, 0], id="for-two"),
        pytest.param(2.5, [1, 1, 0], id="for-two-and-a-half"),
        pytest.param(3, [1, 1, 1], id="for-all"),
    ],
)
def test_a_fetch_goes_on_to_the_next_partitions_while_there_is_room(
    room: float, expected: list[int]
) -> None:
    """`room` in batches; each of the partitions has one."""
    cluster = Cluster()
    broker = cluster.brokers[0]
    partitions = (TP, OTHER, TopicPartition("third", 0))
    decisions = tuple(
        state(0, 0, replicas=(0, 1), isr=(0,), partition=partition) for partition in partitions
    )
    broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, decisions))
    for partition in partitions:
        broker.append_records(partition, records())
    asked = FetchPartitionRequest(ZERO_UUID, 0, 0, 1 << 20, 0)
    max_bytes = int(room * cluster.log(0).size)

    request = FetchRequest(
        16, 1, -1, 0, 1, max_bytes, SESSIONLESS, dict.fromkeys(partitions, asked)
    )
    answer = broker.fetch(request)

    assert [len(answer.partitions[one].records.batches()) for one in partitions] == expected


def test_a_session_answers_only_what_is_new_and_validates_every_fetch() -> None:
    """KIP-227; KAFKA-9338: the session remembers the leader epoch too."""
    cluster = Cluster()
    cluster.elect(0, (0, 1), tell=(0,))
    broker = cluster.brokers[0]
    full = broker.fetch(a_fetch(0, INITIAL_METADATA))
    assert (full.session_id, set(full.partitions)) == (1, {TP})

    def repeat(session_epoch: int) -> dict[TopicPartition, Errors]:
        answer = broker.fetch(a_fetch(0, FetchMetadata(1, session_epoch), nothing_new=True))
        assert answer.error is Errors.NONE
        return {partition: data.error for partition, data in answer.partitions.items()}

    assert repeat(1) == {}
    cluster.append(0)
    assert repeat(2) == {TP: Errors.NONE}
    cluster.elect(0, (0, 1), tell=(0,))
    assert repeat(3) == {TP: Errors.FENCED_LEADER_EPOCH}
    assert repeat(4) == {TP: Errors.FENCED_LEADER_EPOCH}


@pytest.mark.parametrize(
    ("session_id", "session_epoch", "topic_id", "expected"),
    [
        (9, 1, ZERO_UUID, Errors.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, ZERO_UUID, Errors.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, "B" * 22, Errors.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_session_errors(
    session_id: int, session_epoch: int, topic_id: str, expected: Errors
) -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1), tell=(0,))
    cluster.brokers[0].fetch(a_fetch(0, INITIAL_METADATA))

    answer = cluster.brokers[0].fetch(
        a_fetch(0, FetchMetadata(session_id, session_epoch), topic_id=topic_id)
    )

    assert (answer.error, answer.partitions) == (expected, {})


def test_a_session_ends_with_its_last_partition() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1), tell=(0,))
    broker = cluster.brokers[0]
    broker.fetch(a_fetch(0, INITIAL_METADATA))
    gone = (TopicIdPartition(ZERO_UUID, TP),)

    last = broker.fetch(a_fetch(0, FetchMetadata(1, 1), removed=gone, nothing_new=True))

    assert (last.session_id, last.partitions) == (0, {})
    again = broker.fetch(a_fetch(0, FetchMetadata(1, 2)))
    assert again.error is Errors.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(1, Errors.NONE), (0, Errors.FENCED_LEADER_EPOCH), (EPOCH_DURING_DELETE, Errors.NONE)],
)
def test_stop_replica(epoch: int, expected: Errors) -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1))
    cluster.elect(0, (0, 1))
    broker = cluster.brokers[1]

    errors = broker.stop_replicas({TP: StopReplicaPartitionState(epoch, delete_partition=True)})

    assert errors == {TP: expected}
    assert (broker.get_partition(TP) is None) is (expected is Errors.NONE)
    assert (cluster.fetchers[1].get_fetcher(TP) is None) is (expected is Errors.NONE)
    if expected is Errors.NONE:
        assert not cluster.disks[1].exists("logs/topic-0")


def test_a_deleted_replica_leaves_no_high_watermark_to_the_next_of_its_name() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1))
    cluster.append(0, 3)
    cluster.settle()
    broker = cluster.brokers[0]
    broker.checkpoint_high_watermarks()

    broker.stop_replicas({TP: StopReplicaPartitionState(EPOCH_DURING_DELETE, True)})

    assert cluster.disks[0].contents()["logs/replication-offset-checkpoint"] == b"0\n0\n"


def test_delete_records_reaches_followers() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1))
    cluster.append(0, 3)
    cluster.settle()

    errors = cluster.brokers[0].delete_records({TP: 2, OTHER: 0})
    cluster.settle()

    assert errors == {TP: Errors.NONE, OTHER: Errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert [cluster.log(broker).log_start_offset for broker in (0, 1)] == [2, 2]


def test_move_to_another_directory() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1))
    cluster.append(0, 3)
    cluster.settle()
    source = cluster.log(1).directory
    target = "other" if source.startswith("logs") else "logs"

    cluster.brokers[1].alter_replica_log_dir(TP, target)
    assert cluster.brokers[1].future_log_exists(TP)
    cluster.append(0)
    cluster.settle()

    assert not cluster.brokers[1].future_log_exists(TP)
    assert cluster.log(1).directory == f"{target}/topic-0"
    assert cluster.log(1).batches() == cluster.log(0).batches()
    assert not cluster.disks[1].exists(source)
    with pytest.raises(ApiException):
        cluster.brokers[1].alter_replica_log_dir(TP, "elsewhere")


class ExceededQuota:
    """A quota that is always exceeded, for every partition."""

    def __init__(self) -> None:
        self.recorded: list[int] = []

    def is_throttled(self, _partition: TopicPartition, /) -> bool:
        return True

    def is_quota_exceeded(self) -> bool:
        return True

    def record(self, size_in_bytes: int, /) -> None:
        self.recorded.append(size_in_bytes)


@pytest.mark.parametrize(
    ("replica_id", "isr", "served"),
    [
        pytest.param(1, (0,), False, id="out-of-sync-replica-waits"),
        pytest.param(1, (0, 1), True, id="A46-in-sync-replica-never-waits"),
        pytest.param(-1, (0,), True, id="consumers-have-another-quota"),
    ],
)
def test_leader_quota(replica_id: int, isr: tuple[int, ...], served: bool) -> None:
    quota = ExceededQuota()
    cluster = Cluster(quota=quota)
    cluster.elect(0, (0,), tell=(0,))
    cluster.append(0)
    cluster.elect(0, isr, tell=(0,))
    assert cluster.log(0).high_watermark == 1

    fetch = a_fetch(0, replica_id=replica_id, epoch=1)
    size = cluster.brokers[0].fetch(fetch).partitions[TP].records.size_in_bytes

    assert (size > 0) is served
    assert quota.recorded == ([size] if replica_id >= 0 and served else [])
