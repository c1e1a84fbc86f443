"""A consumer as a member: assignments, commits before joins, and answers to commits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from impl.errors import Errors, IllegalStateException, KafkaException
from impl.group.client.assignors.assignor import RebalanceProtocol
from impl.group.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.assignors.round_robin import RoundRobinAssignor
from impl.group.client.buffer import ByteBuffer
from impl.group.client.config import GroupRebalanceConfig
from impl.group.client.consumer_config import RebalanceListener
from impl.group.client.consumer_protocol import (
    Assignment,
    Subscription,
    deserialize_assignment,
    serialize_assignment,
    serialize_subscription,
)
from impl.group.client.errors import (
    CommitFailedException,
    CoordinatorLoadInProgressException,
    FencedInstanceIdException,
    NotCoordinatorException,
    RebalanceInProgressException,
    RetriableCommitFailedException,
    TopicAuthorizationException,
    UnstableOffsetCommitException,
    WakeupException,
)
from impl.group.client.generation import Generation, MemberState
from impl.group.client.subscription_state import OffsetAndMetadata
from impl.group.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    SyncGroupRequest,
    SyncGroupResponse,
)
from impl.types import TopicPartition
from tests.unit.impl.group_client.world import CONFIG, MEMBER, ConsumerWorld, found, left, static

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = {T0: OffsetAndMetadata(5)}


def joined(generation_id: int = 1, leader: str = "other", name: str = "range") -> JoinGroupResponse:
    members = ()
    if leader == MEMBER:
        subscription = serialize_subscription(Subscription(("t",)))
        members = tuple(JoinGroupResponseMember(m, None, subscription) for m in (MEMBER, "other"))
    return JoinGroupResponse(
        Errors.NONE, MEMBER, generation_id, "consumer", name, leader, members=members
    )


def synced(*partitions: TopicPartition, name: str = "range") -> SyncGroupResponse:
    assignment = serialize_assignment(Assignment(partitions))
    return SyncGroupResponse(Errors.NONE, "consumer", name, assignment)


def committed(error: Errors = Errors.NONE) -> OffsetCommitResponse:
    return OffsetCommitResponse((OffsetCommitResponsePartition(T0, error),))


def stable(world: ConsumerWorld | None = None, generation_id: int = 1) -> ConsumerWorld:
    world = world or ConsumerWorld(auto_commit=False)
    world.prepare(found(), joined(generation_id), synced(T0))
    assert world.consumer.poll(world.timer(50))
    return world


def test_a_follower_owns_what_it_is_given() -> None:
    assigned: list[frozenset[TopicPartition]] = []
    world = stable(
        ConsumerWorld(listener=RebalanceListener(on_partitions_assigned=assigned.append))
    )
    assert world.subscriptions.assigned_partitions == {T0}
    assert assigned == [frozenset({T0})]


def test_the_leader_divides_the_partitions() -> None:
    world = ConsumerWorld()
    world.prepare(found(), joined(leader=MEMBER), synced(T0))
    assert world.consumer.poll(world.timer(50))
    (sync,) = world.requests(SyncGroupRequest)
    shares = {
        a.member_id: deserialize_assignment(ByteBuffer(a.assignment)).partitions
        for a in sync.assignments
    }
    assert shares == {MEMBER: (T0,), "other": (T1,)}


@pytest.mark.parametrize("joined_before", [False, True], ids=["never found", "lost"])
def test_a_poll_without_a_coordinator_says_that_the_member_is_not_ready(
    joined_before: bool,
) -> None:
    world = stable() if joined_before else ConsumerWorld()
    world.consumer.mark_coordinator_unknown("test")
    assert not world.consumer.poll(world.timer(1_000))
    world.answer(found())
    assert world.consumer.poll(world.timer(0)) is joined_before


def test_the_join_names_every_assignor_in_order() -> None:
    world = ConsumerWorld((RoundRobinAssignor(), RangeAssignor()))
    world.prepare(found())
    assert not world.consumer.poll(world.timer(0))
    world.consumer.poll(world.timer(0))
    (join,) = world.requests(JoinGroupRequest)
    assert [p.name for p in join.protocols] == ["roundrobin", "range"]


def test_an_assignor_nobody_offered_is_an_error() -> None:
    world = ConsumerWorld()
    world.prepare(found(), joined(name="sticky"), synced(T0, name="sticky"))
    with pytest.raises(IllegalStateException, match="sticky"):
        world.consumer.poll(world.timer(50))


def test_an_empty_assignment_is_the_leaders_error() -> None:
    world = ConsumerWorld()
    world.prepare(found(), joined(), SyncGroupResponse(Errors.NONE, "consumer", "range", b""))
    with pytest.raises(IllegalStateException, match="left this member out"):
        world.consumer.poll(world.timer(50))


def rejoins(world: ConsumerWorld) -> bool:
    return world.consumer.rejoin_needed_or_pending()


def test_a_new_subscription_calls_for_a_rejoin() -> None:
    world = stable()
    assert not rejoins(world)
    world.subscriptions.subscribe(["t", "u"])
    assert rejoins(world)
    assert world.consumer.rejoin_reason == "subscription has changed"


@pytest.mark.parametrize(("leader", "notices"), [(MEMBER, True), ("other", False)])
def test_only_the_leader_watches_the_number_of_partitions(leader: str, notices: bool) -> None:
    world = ConsumerWorld()
    world.prepare(found(), joined(leader=leader), synced(T0))
    assert world.consumer.poll(world.timer(50))
    world.counts = {"t": 3}
    assert rejoins(world) is notices


def test_an_assignment_for_an_old_subscription_is_not_taken() -> None:
    world = ConsumerWorld()
    world.prepare(found(), joined(), synced(TopicPartition("old", 0)))
    assert not world.consumer.poll(world.timer(50))
    assert world.subscriptions.assigned_partitions == frozenset()
    assert "does not match" in world.consumer.rejoin_reason


@pytest.mark.parametrize(
    ("reset", "event"), [(False, "revoked"), (True, "lost")], ids=["rebalance", "put out"]
)
def test_partitions_are_revoked_or_lost_before_a_join(reset: bool, event: str) -> None:
    events: list[str] = []
    listener = RebalanceListener(
        on_partitions_revoked=lambda _: events.append("revoked"),
        on_partitions_lost=lambda _: events.append("lost"),
    )
    world = stable(ConsumerWorld(listener=listener, auto_commit=False))
    if reset:
        world.consumer.reset_generation_on_response_error("Heartbeat", Errors.ILLEGAL_GENERATION)
    world.consumer.request_rejoin("test")
    assert not world.consumer.poll(world.timer(0))
    assert events == [event]
    assert world.subscriptions.assigned_partitions == frozenset()


@pytest.mark.parametrize(
    ("raised", "seen"), [(ValueError("mine"), KafkaException), (WakeupException(), WakeupException)]
)
def test_a_failing_listener_gets_the_assignment_again(
    raised: Exception, seen: type[Exception]
) -> None:
    calls: list[frozenset[TopicPartition]] = []

    def fail_first(partitions: frozenset[TopicPartition]) -> None:
        calls.append(partitions)
        if len(calls) == 1:
            raise raised

    world = ConsumerWorld(listener=RebalanceListener(on_partitions_assigned=fail_first))
    world.prepare(found(), joined(), synced(T0))
    with pytest.raises(seen):
        world.consumer.poll(world.timer(50))
    assert world.consumer.poll(world.timer(0))
    # The member owns it already, so nothing is new the second time.
    assert calls == [frozenset({T0}), frozenset()]


def test_the_protocol_is_the_latest_that_all_assignors_support() -> None:
    cooperative, eager = CooperativeStickyAssignor(), RangeAssignor()
    assert ConsumerWorld((cooperative,)).consumer.protocol is RebalanceProtocol.COOPERATIVE
    assert ConsumerWorld((eager, cooperative)).consumer.protocol is RebalanceProtocol.EAGER


def test_a_cooperative_member_goes_on_with_its_partitions_while_it_commits_before_a_join() -> None:
    world = ConsumerWorld((CooperativeStickyAssignor(),))
    world.prepare(found(), joined(name="cooperative-sticky"), synced(T0, name="cooperative-sticky"))
    assert world.consumer.poll(world.timer(50))
    world.subscriptions.seek(T0, 5)
    world.consumer.request_rejoin("test")
    world.consumer.poll(world.timer(0))
    assert not world.subscriptions.is_pending_revocation(T0)
    assert world.subscriptions.assigned_partitions == {T0}


def test_a_pattern_excludes_topics_and_partitions() -> None:
    world = ConsumerWorld()
    with pytest.raises(IllegalStateException):
        world.subscriptions.subscribe_pattern(re.compile("t.*"))
    world.subscriptions.unsubscribe()
    world.subscriptions.subscribe_pattern(re.compile("t.*"))
    for subscribe in (world.subscriptions.subscribe, lambda _: world.subscriptions.assign([T0])):
        with pytest.raises(IllegalStateException):
            subscribe(["t"])
    world.consumer.update_pattern_subscription()
    assert world.subscriptions.subscription == {"t"}


# Commit before a join (KAFKA-14024).


def rejoining(config: GroupRebalanceConfig = CONFIG) -> ConsumerWorld:
    world = stable(ConsumerWorld(config=config))
    world.subscriptions.seek(T0, 5)
    world.consumer.request_rejoin("test")
    return world


def test_e29_one_commit_is_waited_for_over_many_polls() -> None:
    world = rejoining()
    for _ in range(5):
        assert not world.consumer.poll(world.timer(0))
    assert len(world.requests(OffsetCommitRequest)) == 1
    assert not world.subscriptions.is_fetchable(T0)
    assert len(world.requests(JoinGroupRequest)) == 1
    world.answer(committed())
    assert not world.consumer.poll(world.timer(0))
    assert len(world.requests(JoinGroupRequest)) == 2


def test_e29_a_commit_that_never_ends_does_not_hold_the_join_for_ever() -> None:
    world = rejoining(replace(CONFIG, rebalance_timeout_ms=30_000))
    assert not world.consumer.poll(world.timer(29_999))
    assert len(world.requests(JoinGroupRequest)) == 1
    world.clock.sleep(1)
    assert not world.consumer.poll(world.timer(0))
    assert len(world.requests(OffsetCommitRequest)) == 1
    assert len(world.requests(JoinGroupRequest)) == 2


@pytest.mark.parametrize(
    ("error", "commits"), [(Errors.COORDINATOR_LOAD_IN_PROGRESS, 2), (Errors.ILLEGAL_GENERATION, 1)]
)
def test_only_a_retriable_failure_is_committed_again(error: Errors, commits: int) -> None:
    world = rejoining()
    world.prepare(committed(error))
    world.consumer.poll(world.timer(0))
    world.consumer.poll(world.timer(0))
    assert len(world.requests(OffsetCommitRequest)) == commits


def test_without_a_time_limit_a_member_tries_its_commit_again_and_then_joins() -> None:
    world = rejoining()
    world.prepare(committed(Errors.COORDINATOR_LOAD_IN_PROGRESS), committed())
    world.prepare(joined(2), synced(T1))
    assert world.consumer.ensure_active_group()
    assert world.consumer.generation.generation_id == 2
    assert world.subscriptions.assigned_partitions == {T1}


# Answers to a commit.


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Errors.GROUP_AUTHORIZATION_FAILED, KafkaException),
        (Errors.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationException),
        (Errors.OFFSET_METADATA_TOO_LARGE, KafkaException),
        (Errors.COORDINATOR_LOAD_IN_PROGRESS, CoordinatorLoadInProgressException),
        (Errors.NOT_COORDINATOR, NotCoordinatorException),
        (Errors.FENCED_INSTANCE_ID, FencedInstanceIdException),
        (Errors.REBALANCE_IN_PROGRESS, RebalanceInProgressException),
        (Errors.UNKNOWN_MEMBER_ID, CommitFailedException),
        (Errors.ILLEGAL_GENERATION, CommitFailedException),
        (Errors.UNKNOWN_SERVER_ERROR, KafkaException),
    ],
)
def test_errors_of_a_commit(error: Errors, raised: type[Exception]) -> None:
    world = stable(ConsumerWorld(config=static(), auto_commit=False))
    future = world.consumer.send_offset_commit_request(OFFSETS)
    world.answer(committed(error))
    assert isinstance(future.exception, raised)
    assert world.consumer.coordinator_unknown() is (error is Errors.NOT_COORDINATOR)


def test_e13_a_commit_during_a_rebalance_resets_nothing() -> None:
    world = stable()
    world.consumer.send_offset_commit_request(OFFSETS)
    world.answer(committed(Errors.REBALANCE_IN_PROGRESS))
    assert world.consumer.rejoin_needed
    assert world.consumer.state is MemberState.STABLE
    assert world.consumer.generation == Generation(1, MEMBER, "range")


@pytest.mark.parametrize(
    ("error", "kept"), [(Errors.UNKNOWN_MEMBER_ID, ""), (Errors.ILLEGAL_GENERATION, MEMBER)]
)
def test_a_commit_of_a_member_put_out_resets_its_generation(error: Errors, kept: str) -> None:
    world = stable()
    world.consumer.send_offset_commit_request(OFFSETS)
    world.answer(committed(error))
    assert world.consumer.generation == Generation(-1, kept, None)


@pytest.mark.parametrize(
    "error", [Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION, Errors.FENCED_INSTANCE_ID]
)
@pytest.mark.parametrize(
    ("state", "raised"),
    [
        (MemberState.PREPARING_REBALANCE, RebalanceInProgressException),
        (MemberState.STABLE, CommitFailedException),
    ],
)
def test_a_commit_of_an_old_generation(
    error: Errors, state: MemberState, raised: type[Exception]
) -> None:
    world = stable(ConsumerWorld(config=static(), auto_commit=False))
    future = world.consumer.send_offset_commit_request(OFFSETS)
    world.consumer.generation = Generation(2, "newId", "range")
    world.consumer.state = state
    world.answer(committed(error))
    assert isinstance(future.exception, raised)
    if state is MemberState.PREPARING_REBALANCE:
        assert world.consumer.generation.member_id == "newId"


def test_no_commit_leaves_outside_a_stable_generation() -> None:
    world = stable()
    world.consumer.request_rejoin("test")
    world.consumer.poll(world.timer(0))
    rebalancing = world.consumer.send_offset_commit_request(OFFSETS)
    assert isinstance(rebalancing.exception, RebalanceInProgressException)
    world.consumer.reset_generation()
    unjoined = world.consumer.send_offset_commit_request(OFFSETS)
    assert isinstance(unjoined.exception, CommitFailedException)
    assert world.requests(OffsetCommitRequest) == []


def test_a_consumer_without_subscription_commits_outside_any_generation() -> None:
    world = ConsumerWorld(auto_commit=False)
    world.subscriptions.unsubscribe()
    world.subscriptions.assign([T0])
    world.prepare(found(), committed())
    assert world.consumer.commit_offsets_sync(OFFSETS, world.timer(50))
    (commit,) = world.requests(OffsetCommitRequest)
    assert (commit.generation_id, commit.member_id) == (-1, "")
    assert not rejoins(world)


# Commits by the application and by the interval.


def test_a_synchronous_commit_is_repeated_until_it_is_through() -> None:
    world = stable()
    world.prepare(committed(Errors.COORDINATOR_LOAD_IN_PROGRESS), committed())
    assert world.consumer.commit_offsets_sync(OFFSETS, world.timer(1_000))
    assert len(world.requests(OffsetCommitRequest)) == 2
    assert 80 <= world.clock.milliseconds() <= 120
    world.prepare(*[committed(Errors.COORDINATOR_LOAD_IN_PROGRESS)] * 9)
    assert not world.consumer.commit_offsets_sync(OFFSETS, world.timer(500))
    world.transport.prepared.clear()
    world.prepare(committed(Errors.UNKNOWN_MEMBER_ID))
    with pytest.raises(CommitFailedException):
        world.consumer.commit_offsets_sync(OFFSETS, world.timer(1_000))


def test_an_asynchronous_commit_looks_for_the_coordinator_and_calls_back_in_poll() -> None:
    world = stable()
    world.consumer.mark_coordinator_unknown("test")
    errors: list[Exception | None] = []
    world.prepare(found(), committed())
    world.consumer.commit_offsets_async(OFFSETS, lambda _, error: errors.append(error))
    world.network.poll_no_wakeup()
    world.network.poll_no_wakeup()
    assert errors == []
    world.consumer.poll(world.timer(0))
    assert errors == [None]
    world.consumer.mark_coordinator_unknown("test")
    world.transport.no_brokers = True
    world.consumer.commit_offsets_async(OFFSETS, lambda _, error: errors.append(error))
    world.consumer.poll(world.timer(0))
    assert isinstance(errors[1], RetriableCommitFailedException)


def test_positions_are_committed_once_per_interval() -> None:
    world = stable(ConsumerWorld())
    world.subscriptions.seek(T0, 5)
    world.prepare(*[committed()] * 3)
    for _ in range(10):
        world.clock.sleep(1_000)
        world.consumer.poll(world.timer(0))
    commits = world.requests(OffsetCommitRequest)
    assert [c.partitions[0].committed_offset for c in commits] == [5, 5]


def test_closing_commits_and_leaves() -> None:
    revoked: list[frozenset[TopicPartition]] = []
    world = stable(ConsumerWorld(listener=RebalanceListener(on_partitions_revoked=revoked.append)))
    world.subscriptions.seek(T0, 5)
    world.prepare(committed(), left())
    world.consumer.close(world.timer(1_000))
    assert len(world.requests(OffsetCommitRequest)) == 1
    assert len(world.requests(LeaveGroupRequest)) == 1
    assert revoked == [frozenset({T0})]
    assert world.requests(HeartbeatRequest) == []


# OffsetFetch.


def fetched(error: Errors, offset: int = 5) -> OffsetFetchResponse:
    partition = OffsetFetchResponsePartition(T0, offset, error_code=error)
    return OffsetFetchResponse(Errors.NONE, (partition,))


@pytest.mark.parametrize(("offset", "expected"), [(5, {T0: OffsetAndMetadata(5)}), (-1, {})])
def test_committed_offsets(offset: int, expected: dict[TopicPartition, OffsetAndMetadata]) -> None:
    world = stable()
    world.prepare(OffsetFetchResponse(Errors.COORDINATOR_LOAD_IN_PROGRESS))
    world.prepare(fetched(Errors.UNSTABLE_OFFSET_COMMIT), fetched(Errors.NONE, offset))
    assert world.consumer.fetch_committed_offsets([T0], world.timer(1_000)) == expected


@pytest.mark.parametrize(
    ("response", "raised"),
    [
        (OffsetFetchResponse(Errors.GROUP_AUTHORIZATION_FAILED), KafkaException),
        (OffsetFetchResponse(Errors.NOT_COORDINATOR), NotCoordinatorException),
        (fetched(Errors.TOPIC_AUTHORIZATION_FAILED), TopicAuthorizationException),
        (fetched(Errors.UNSTABLE_OFFSET_COMMIT), UnstableOffsetCommitException),
        (fetched(Errors.UNKNOWN_TOPIC_OR_PARTITION), KafkaException),
        (fetched(Errors.UNKNOWN_SERVER_ERROR), KafkaException),
    ],
)
def test_errors_of_an_offset_fetch(response: OffsetFetchResponse, raised: type[Exception]) -> None:
    world = stable()
    future = world.consumer.send_offset_fetch_request([T0])
    world.answer(response)
    assert isinstance(future.exception, raised)


def test_a_fenced_asynchronous_commit_ends_the_consumer_for_good() -> None:
    world = stable(ConsumerWorld(config=replace(CONFIG, group_instance_id="i"), auto_commit=False))
    world.prepare(committed(Errors.FENCED_INSTANCE_ID))
    world.consumer.commit_offsets_async(OFFSETS)
    world.network.poll_no_wakeup()
    for call in (
        lambda: world.consumer.poll(world.timer(0)),
        lambda: world.consumer.commit_offsets_async(OFFSETS),
        lambda: world.consumer.commit_offsets_sync(OFFSETS, world.timer(50)),
    ):
        with pytest.raises(FencedInstanceIdException):
            call()


def test_a_commit_outside_of_the_group_is_of_no_instance() -> None:
    world = ConsumerWorld(config=replace(CONFIG, group_instance_id="i"), auto_commit=False)
    world.subscriptions.unsubscribe()
    world.subscriptions.assign([T0])
    world.prepare(found(), committed())
    assert world.consumer.commit_offsets_sync(OFFSETS, world.timer(50))
    (commit,) = world.requests(OffsetCommitRequest)
    assert commit.group_instance_id is None


def test_closing_sends_what_waits_for_the_coordinator() -> None:
    world = stable(ConsumerWorld(auto_commit=False))
    world.consumer.mark_coordinator_unknown("test")
    errors: list[Exception | None] = []
    world.consumer.commit_offsets_async(OFFSETS, lambda _, error: errors.append(error))
    (look_up,) = world.network.in_flight()
    world.network.respond(look_up, found())
    world.prepare(committed(), left())
    world.consumer.close(world.timer(1_000))
    assert errors == [None]
