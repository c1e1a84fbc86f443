"""The rules whose loss made history in Kafka's client, one story each, and the heartbeat loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from impl.clock import MockClock
from impl.deterministic_scheduler import DeterministicScheduler
from impl.errors import Errors, KafkaException
from impl.group.client.coordinator_metrics import metric
from impl.group.client.errors import (
    FencedInstanceIdException,
    GroupAuthorizationException,
    IllegalGenerationException,
    UnjoinedGroupException,
    WakeupException,
)
from impl.group.client.generation import Generation, MemberState
from impl.group.client.timer import FOREVER_MS
from impl.group.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from tests.unit.impl.group_client.world import (
    CONFIG,
    COORDINATOR,
    MEMBER,
    NAME,
    Scripted,
    World,
    beaten,
    found,
    join_failed,
    joined,
    left,
    static,
    synced,
)

INTERVAL = CONFIG.heartbeat_interval_ms


def syncing() -> World:
    """A member whose join is answered and whose sync is in flight."""
    world = World()
    world.know_coordinator()
    world.member.start_heartbeat_thread_if_needed()
    assert not world.member.join_group_if_needed(world.timer(0))
    world.answer(joined())
    assert world.member.state is MemberState.COMPLETING_REBALANCE
    return world


# Joining.


def test_a_new_member_joins_again_with_the_id_it_is_given() -> None:
    world = World()
    world.know_coordinator()
    world.prepare(join_failed(Errors.MEMBER_ID_REQUIRED, "given"), joined(1, "given"), synced())
    assert world.member.ensure_active_group(world.timer(50))
    assert [join.member_id for join in world.requests(JoinGroupRequest)] == ["", "given"]
    assert world.member.calls == ["prepare", "complete"]
    measured = world.member.metrics.value
    assert measured(metric("failed-rebalance-total")) == 1
    assert measured(metric("rebalance-total")) == 1


def test_the_leader_sends_every_member_its_assignment() -> None:
    world = World()
    world.know_coordinator()
    world.prepare(joined(leader=MEMBER), synced())
    assert world.member.ensure_active_group(world.timer(50))
    (sync,) = world.requests(SyncGroupRequest)
    assert [(a.member_id, a.assignment) for a in sync.assignments] == [(MEMBER, b"assigned")]
    assert (sync.generation_id, sync.protocol_type, sync.protocol_name) == (1, "dummy", NAME)


def test_a_failing_assignor_fails_the_poll() -> None:
    world = World()
    world.know_coordinator()
    world.member.callback_raises = KafkaException("assignor")
    world.prepare(joined(leader=MEMBER))
    with pytest.raises(KafkaException, match="assignor"):
        world.member.ensure_active_group(world.timer(50))
    assert world.requests(SyncGroupRequest) == []


def test_a_join_answered_after_leaving_is_discarded() -> None:
    world = World()
    world.know_coordinator()
    future = world.member.initiate_join_group()
    world.member.reset_generation_on_leave_group()
    world.answer(joined())
    assert isinstance(future.exception, UnjoinedGroupException)
    assert world.requests(SyncGroupRequest) == []
    assert world.member.generation == Generation(-1, "", None)


def test_a_join_goes_on_where_an_expired_timer_left_it() -> None:
    world = syncing()
    assert not world.member.join_group_if_needed(world.timer(0))
    world.answer(synced())
    assert world.member.join_group_if_needed(world.timer(0))
    assert len(world.requests(JoinGroupRequest)) == 1
    assert world.member.calls == ["prepare", "complete"]


def test_prepare_that_is_not_ready_is_asked_again() -> None:
    world = World()
    world.know_coordinator()
    world.member.prepare_ready = False
    assert not world.member.ensure_active_group(world.timer(50))
    assert world.requests(JoinGroupRequest) == []
    world.member.prepare_ready = True
    world.join()
    assert world.member.calls == ["prepare", "prepare", "complete"]


def test_e4_a_retriable_failure_keeps_the_member_id() -> None:
    world = World()
    world.join()
    world.member.request_rejoin("test")
    world.prepare(join_failed(Errors.COORDINATOR_LOAD_IN_PROGRESS), joined(2), synced())
    assert world.member.ensure_active_group(world.timer(500))
    assert [j.member_id for j in world.requests(JoinGroupRequest)] == ["", MEMBER, MEMBER]


def test_e4_a_lost_coordinator_keeps_the_member_id() -> None:
    world = World()
    world.join()
    world.member.request_rejoin("test")
    world.prepare(join_failed(Errors.NOT_COORDINATOR), found(), joined(2), synced())
    assert world.member.ensure_active_group(world.timer(500))
    assert world.requests(JoinGroupRequest)[-1].member_id == MEMBER


def test_e5_a_member_put_out_prepares_again_before_it_joins() -> None:
    world = syncing()
    world.prepare(joined(2), synced())
    world.network.respond(world.network.in_flight()[0], synced(Errors.UNKNOWN_MEMBER_ID))
    assert world.member.ensure_active_group(world.timer(50))
    assert world.member.calls == ["prepare", "prepare", "complete"]


def test_e8_a_rebalance_during_the_join_is_joined_at_once() -> None:
    world = World()
    world.join()
    world.member.request_rejoin("test")
    world.prepare(join_failed(Errors.REBALANCE_IN_PROGRESS), joined(2), synced())
    before = world.clock.milliseconds()
    assert world.member.ensure_active_group(world.timer(50))
    assert world.clock.milliseconds() == before
    assert world.requests(JoinGroupRequest)[-1].member_id == MEMBER


def test_e10_an_assignment_after_a_reset_calls_for_a_rejoin_not_for_help() -> None:
    world = syncing()
    future = world.member.join_future
    assert future is not None
    world.member.reset_generation_on_response_error("Heartbeat", Errors.UNKNOWN_MEMBER_ID)
    world.answer(synced(name=NAME))
    assert isinstance(future.exception, IllegalGenerationException)


def test_e11_a_reset_before_delivery_starts_a_new_join() -> None:
    world = syncing()
    world.answer(synced(assignment=b"old"))
    assert world.member.state is MemberState.STABLE
    world.member.reset_generation_on_response_error("Heartbeat", Errors.ILLEGAL_GENERATION)
    world.prepare(joined(2), synced(assignment=b"new"))
    assert world.member.join_group_if_needed(world.timer(50))
    assert world.member.delivered == [b"new"]
    assert world.member.calls[-2:] == ["prepare", "complete"]
    assert len(world.requests(JoinGroupRequest)) == 2


@pytest.mark.parametrize("failure", [KafkaException("listener"), WakeupException()])
def test_e14_e17_an_assignment_whose_delivery_failed_is_delivered_again(
    failure: Exception,
) -> None:
    world = syncing()
    world.answer(synced(assignment=b"mine"))
    world.member.callback_raises = failure
    with pytest.raises(type(failure)):
        world.member.join_group_if_needed(world.timer(0))
    assert world.member.join_group_if_needed(world.timer(0))
    assert world.member.delivered == [b"mine", b"mine"]
    assert len(world.requests(JoinGroupRequest)) == 1


def test_e19_only_an_assignment_ends_the_need_to_join() -> None:
    world = syncing()
    assert world.member.rejoin_needed
    world.answer(synced())
    assert not world.member.rejoin_needed


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (join_failed(Errors.GROUP_AUTHORIZATION_FAILED), GroupAuthorizationException),
        (join_failed(Errors.UNKNOWN_SERVER_ERROR), KafkaException),
    ],
)
def test_a_join_error_no_retry_would_cure_is_raised(
    response: Scripted, error: type[Exception]
) -> None:
    world = World()
    world.know_coordinator()
    world.prepare(response)
    with pytest.raises(error):
        world.member.ensure_active_group(world.timer(500))
    assert world.member.rejoin_needed_or_pending()


# The coordinator.


def test_e16_giving_up_the_coordinator_fails_requests_in_a_later_poll() -> None:
    world = syncing()
    future = world.member.join_future
    assert future is not None
    world.member.mark_coordinator_unknown("test")
    assert not future.is_done
    world.network.poll_no_wakeup()
    assert future.failed
    assert future.is_retriable


def test_e22_the_heartbeat_thread_asks_a_broker_at_the_first_turn_that_there_is_one() -> None:
    world = World()
    world.join()
    world.member.mark_coordinator_unknown("test")
    asked = len(world.requests(FindCoordinatorRequest))
    world.transport.no_brokers = True
    world.beat()
    world.transport.no_brokers = False
    world.beat()
    world.network.poll_no_wakeup()
    assert len(world.requests(FindCoordinatorRequest)) == asked + 1


def test_a_fatal_lookup_of_the_heartbeat_thread_is_raised_once() -> None:
    world = World()
    world.join()
    world.member.mark_coordinator_unknown("test")
    world.beat()
    world.answer(found(Errors.GROUP_AUTHORIZATION_FAILED))
    world.beat()
    with pytest.raises(GroupAuthorizationException):
        world.member.ensure_coordinator_ready(world.timer(0))
    world.know_coordinator()


def test_a_fatal_lookup_of_the_application_is_raised_once() -> None:
    world = World()
    world.prepare(found(Errors.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(GroupAuthorizationException):
        world.member.ensure_coordinator_ready(world.timer(0))
    world.know_coordinator()


def test_a_connection_that_fails_makes_the_coordinator_unknown() -> None:
    world = World()
    world.join()
    world.transport.unreachable_until[COORDINATOR] = 1_000
    assert world.member.coordinator_unknown()
    world.transport.unreachable_until.clear()
    assert world.member.coordinator_unknown()


def test_finding_the_coordinator_starts_the_session_anew() -> None:
    world = World()
    world.clock.sleep(CONFIG.session_timeout_ms)
    assert world.member.heartbeat.session_timeout_expired(world.clock.milliseconds())
    world.know_coordinator()
    assert not world.member.heartbeat.session_timeout_expired(world.clock.milliseconds())


# Heartbeats.


def test_e1_heartbeats_go_on_while_the_assignment_is_awaited() -> None:
    world = syncing()
    world.clock.sleep(INTERVAL)
    world.beat()
    world.network.poll_no_wakeup()
    (heartbeat,) = world.requests(HeartbeatRequest)
    assert heartbeat.generation_id == 1


def test_a_member_that_prepares_sends_no_heartbeat() -> None:
    world = World()
    world.join()
    thread = world.member.heartbeat_thread
    assert thread is not None
    world.member.request_rejoin("test")
    world.member.initiate_join_group()
    world.clock.sleep(INTERVAL)
    assert world.member.time_to_next_heartbeat(world.clock.milliseconds()) == FOREVER_MS
    world.beat()
    assert not thread.enabled
    assert world.requests(HeartbeatRequest) == []


def test_a_heartbeat_that_is_not_due_is_not_sent() -> None:
    world = World()
    world.join()
    world.clock.sleep(INTERVAL - 1)
    world.beat()
    world.network.poll_no_wakeup()
    assert world.requests(HeartbeatRequest) == []
    assert world.member.time_to_next_heartbeat(world.clock.milliseconds()) == 1


def beat_and_answer(world: World, error: Errors) -> None:
    world.clock.sleep(INTERVAL)
    world.beat()
    world.answer(beaten(error))


def test_a_failed_heartbeat_is_repeated_after_the_back_off() -> None:
    world = World()
    world.join()
    beat_and_answer(world, Errors.UNKNOWN_SERVER_ERROR)
    assert world.member.time_to_next_heartbeat(world.clock.milliseconds()) <= 120


@pytest.mark.parametrize("error", [Errors.NONE, Errors.REBALANCE_IN_PROGRESS])
def test_an_answer_keeps_the_session_even_if_the_group_rebalances(error: Errors) -> None:
    world = World()
    world.join()
    world.clock.sleep(CONFIG.session_timeout_ms - INTERVAL - 1)
    beat_and_answer(world, error)
    world.clock.sleep(CONFIG.session_timeout_ms - 1)
    assert not world.member.heartbeat.session_timeout_expired(world.clock.milliseconds())
    assert world.member.rejoin_needed is (error is Errors.REBALANCE_IN_PROGRESS)
    assert world.member.generation.generation_id == 1


def test_a_silent_coordinator_is_given_up() -> None:
    world = World()
    world.join()
    world.clock.sleep(CONFIG.session_timeout_ms)
    world.beat()
    assert world.member.coordinator_unknown()
    assert world.member.generation.generation_id == 1


def test_an_application_that_does_not_poll_leaves_the_group() -> None:
    world = World(replace(CONFIG, rebalance_timeout_ms=4_000))
    world.join()
    world.member.poll_heartbeat(0)
    world.prepare(left())
    world.clock.sleep(4_000)
    world.beat()
    assert len(world.requests(LeaveGroupRequest)) == 1
    assert world.member.state is MemberState.UNJOINED
    assert world.member.rejoin_needed_or_pending()


def test_silence_is_noticed_before_an_application_that_does_not_poll() -> None:
    world = World(replace(CONFIG, rebalance_timeout_ms=4_000))
    world.join()
    world.clock.sleep(CONFIG.session_timeout_ms)
    world.beat()
    assert world.requests(LeaveGroupRequest) == []
    assert world.member.coordinator_unknown()


def test_a_fenced_member_fails_its_application() -> None:
    world = World(static())
    world.join()
    beat_and_answer(world, Errors.FENCED_INSTANCE_ID)
    with pytest.raises(FencedInstanceIdException):
        world.member.poll_heartbeat(world.clock.milliseconds())


@pytest.mark.parametrize("no_brokers", [True, False])
def test_e20_without_a_coordinator_the_heartbeat_thread_waits_between_tries(
    no_brokers: bool,
) -> None:
    clock = MockClock()
    scheduler = DeterministicScheduler(elapse=clock.sleep)
    world = World(concurrency=scheduler, clock=clock)
    world.join()
    world.member.mark_coordinator_unknown("test")
    world.transport.no_brokers = no_brokers
    world.transport.unreachable_until[COORDINATOR] = 10**9
    before = world.clock.milliseconds()
    waits = steps_until(scheduler, lambda: world.clock.milliseconds() - before >= 1_000)
    assert waits <= 500
    assert len(world.requests(FindCoordinatorRequest)) <= 11


def steps_until(scheduler: DeterministicScheduler, done: Callable[[], bool]) -> int:
    for step in range(5_000):
        if done():
            return step
        scheduler.step("heartbeat-dummy-group")
    return 5_000
