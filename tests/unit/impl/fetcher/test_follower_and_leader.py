"""Followers and leaders together: real logs, partitions, sessions and fetcher threads."""

from __future__ import annotations

import pytest

from impl.errors import UnknownLeaderEpochException
from impl.fetcher.state import ReplicaState
from impl.types import InitialFetchState, ProtocolConfig
from tests.unit.impl.fetcher.cluster import TP, Broker, Cluster

both_protocols = pytest.mark.parametrize(
    "protocol",
    [ProtocolConfig(), ProtocolConfig(truncation_on_fetch=False)],
    ids=["truncate_on_fetch", "truncate_first"],
)


def pair(protocol: ProtocolConfig) -> tuple[Cluster, Broker, Broker]:
    cluster = Cluster(2, protocol)
    cluster.elect(1)
    return cluster, cluster.brokers[1], cluster.brokers[2]


def work(broker: Broker, rounds: int) -> None:
    for _ in range(rounds):
        broker.thread.do_work()


@both_protocols
def test_follower_copies_records_and_then_learns_the_high_watermark(
    protocol: ProtocolConfig,
) -> None:
    _, leader, follower = pair(protocol)
    leader.append("a", "b")
    work(follower, 1)
    assert (follower.log.log_end_offset, follower.log.high_watermark) == (2, 0)
    work(follower, 2)
    assert (leader.log.high_watermark, follower.log.high_watermark) == (2, 2)
    assert follower.contents() == leader.contents()
    assert follower.fetchers.max_lag == 0


@both_protocols
def test_high_watermark_is_taken_over_after_the_append(protocol: ProtocolConfig) -> None:
    """It is bounded by the log end: taken over first, it would lag one round behind."""
    cluster = Cluster(3, protocol)
    cluster.elect(1, isr=(1, 2))
    cluster.clock.sleep(60_000)  # broker 3 has not been caught up for long
    cluster.brokers[1].append("a", "b")
    work(cluster.brokers[2], 2)
    assert cluster.brokers[1].log.high_watermark == 2
    work(cluster.brokers[3], 1)
    late = cluster.brokers[3].log
    assert (late.log_end_offset, late.high_watermark) == (2, 2)


@both_protocols
def test_follower_of_a_new_leader_loses_what_only_it_had(protocol: ProtocolConfig) -> None:
    cluster, one, two = pair(protocol)
    one.append("shared")
    work(two, 2)
    one.append("only on one")
    cluster.elect(2)
    two.append("only on two")
    work(one, 4)
    assert one.contents() == two.contents() == [(0, 0), (1, 1)]


@both_protocols
def test_fast_failover_leaves_no_divergence(protocol: ProtocolConfig) -> None:
    """KIP-279: one round of truncation is not enough when epochs are missing on either side."""
    cluster, one, two = pair(protocol)
    one.append("0")
    work(two, 2)
    cluster.unreachable = {1, 2}
    cluster.elect(2)
    two.append("1b")
    cluster.elect(1)
    for value in ("1a", "2a", "3a"):
        one.append(value)
    cluster.elect(2)
    two.append("2b")
    cluster.elect(1)
    one.append("4a")
    cluster.unreachable = set()
    work(two, 12)
    assert two.contents() == one.contents()


@both_protocols
def test_follower_that_is_fenced_waits_for_the_new_epoch(protocol: ProtocolConfig) -> None:
    cluster, one, two = pair(protocol)
    one.append("a")
    work(two, 2)
    thread = two.thread
    cluster.elect(1, told=(1,))
    thread.do_work()
    assert two.fetchers.failed_partitions.contains(TP)
    cluster.elect(1, told=(2,))
    assert not two.fetchers.failed_partitions.contains(TP)
    assert two.thread.partitions() == (TP,)


@both_protocols
def test_unreachable_leader_changes_nothing_but_the_session(protocol: ProtocolConfig) -> None:
    cluster, one, two = pair(protocol)
    one.append("a")
    cluster.unreachable = {1}
    work(two, 3)
    assert two.log.log_end_offset == 0
    cluster.unreachable = set()
    work(two, 3)
    assert two.contents() == one.contents()


@pytest.mark.parametrize("fetch_sessions", [True, False])
def test_fetching_with_and_without_sessions(fetch_sessions: bool) -> None:
    cluster = Cluster(2, fetch_sessions=fetch_sessions)
    cluster.elect(1)
    leader, follower = cluster.brokers[1], cluster.brokers[2]
    for value in "abc":
        leader.append(value)
        work(follower, 2)
    assert follower.contents() == leader.contents()
    fetch = follower.thread.build_fetch()
    assert fetch is not None
    assert (fetch.request.metadata.session_id != 0) is fetch_sessions


@both_protocols
def test_one_partitions_life_in_three_steps(protocol: ProtocolConfig) -> None:
    """The pieces of a fetch, called by a driver: build, handle, process."""
    _, leader, follower = pair(protocol)
    leader.append("a")
    thread = follower.thread
    thread.maybe_truncate()
    fetch = thread.build_fetch()
    assert fetch is not None
    response = leader.replicas.fetch(fetch.request)
    leader.append("b")  # the answer in flight does not see it
    thread.process_fetch_response(
        fetch.partition_data, thread.remote_leader.handle_fetch_response(response)
    )
    assert follower.log.log_end_offset == 1
    state = thread.fetch_state(TP)
    assert state is not None
    assert (state.fetch_offset, state.state) == (1, ReplicaState.FETCHING)


def test_log_moves_to_another_directory() -> None:
    """KIP-113: the future log follows the current one and then replaces it."""
    _, leader, _ = pair(ProtocolConfig())
    leader.append("a", "b")
    leader.log.roll()  # the copy will have other segments (KAFKA-8002)
    leader.append("c")
    before = leader.contents()
    target = "b" if leader.log.directory.startswith("a") else "a"
    leader.replicas.alter_replica_log_dir(TP, target)
    mover = leader.log_dir_fetchers.get_fetcher(TP)
    assert mover is not None
    for _ in range(4):
        mover.do_work()
    assert not leader.replicas.future_log_exists(TP)
    assert leader.log.directory.startswith(target)
    assert leader.contents() == before
    assert mover.partitions() == ()
    assert not leader.log_dir_fetchers.failed_partitions.contains(TP)
    assert mover.fetcher_lag_stats.lag(TP) is None


def test_move_that_has_completed_meanwhile_is_not_followed() -> None:
    """KAFKA-9750: the future log is gone before its fetcher starts."""
    _, leader, _ = pair(ProtocolConfig())
    leader.append("a")
    leader.replicas.alter_replica_log_dir(TP, "b" if leader.log.directory.startswith("a") else "a")
    mover = leader.log_dir_fetchers.get_fetcher(TP)
    assert mover is not None
    mover.remove_all_partitions()
    leader.replicas.get_partition_or_exception(TP).remove_future_local_replica()
    end_point = mover.leader.broker_end_point()
    mover.add_partitions({TP: InitialFetchState(None, end_point, 0, 0)})
    assert mover.partitions() == ()


@both_protocols
def test_follower_starts_over_where_the_leaders_log_starts(protocol: ProtocolConfig) -> None:
    cluster = Cluster(2, protocol)
    cluster.elect(1, isr=(1,))
    leader, follower = cluster.brokers[1], cluster.brokers[2]
    for value in "abc":
        leader.append(value)
    leader.replicas.delete_records({TP: 2})
    work(follower, 3)
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (2, 3)
    assert follower.contents() == [(2, 0)]


def test_follower_beyond_the_leaders_end_truncates_to_it() -> None:
    _cluster, leader, follower = pair(ProtocolConfig(truncation_on_fetch=False))
    for value in "abc":
        leader.append(value)
    work(follower, 3)
    leader.replicas.get_partition_or_exception(TP).truncate_to(1, False)
    assert follower.log.log_end_offset == 3
    work(follower, 1)
    assert follower.contents() == [(0, 0)]
    state = follower.thread.fetch_state(TP)
    assert state is not None
    assert (state.fetch_offset, state.lag) == (1, 0)


@both_protocols
def test_unreadable_offsets_of_the_leader_are_asked_for_again(protocol: ProtocolConfig) -> None:
    _cluster, leader, follower = pair(protocol)
    leader.append("a")
    thread = follower.thread
    with pytest.raises(UnknownLeaderEpochException):
        thread.fetch_offset_and_truncate(TP, None, 7)
    assert thread.remote_leader.fetch_earliest_local_offset(TP, 0).offset == 0
    assert thread.remote_leader.fetch_latest_offset(TP, 0).offset == 1


@both_protocols
def test_move_between_directories_is_truncated_with_its_log(protocol: ProtocolConfig) -> None:
    """A future log must not keep what its current log has lost."""
    cluster = Cluster(2, protocol, partition_max_bytes=1)  # one batch in a fetch
    cluster.elect(1, isr=(1,))
    one, two = cluster.brokers[1], cluster.brokers[2]
    for value in "abcd":
        one.append(value)
    work(two, 6)
    two.replicas.alter_replica_log_dir(TP, "b" if two.log.directory.startswith("a") else "a")
    mover = two.log_dir_fetchers.get_fetcher(TP)
    assert mover is not None
    for _ in range(3):
        mover.do_work()
    future = two.replicas.future_local_log_or_exception(TP)
    assert future.log_end_offset == 3

    one.replicas.get_partition_or_exception(TP).truncate_to(1, False)  # an unclean election
    cluster.elect(1)
    one.append("x")
    work(two, 4)
    for _ in range(5):
        mover.do_work()
    assert not two.replicas.future_log_exists(TP)
    assert two.contents() == one.contents() == [(0, 0), (1, 1)]


def test_managers_shut_their_threads_down() -> None:
    _, _, follower = pair(ProtocolConfig())
    thread = follower.thread
    follower.fetchers.shutdown()
    follower.log_dir_fetchers.shutdown()
    assert not thread.is_running
    assert follower.fetchers.fetcher_threads() == {}
