"""AbstractCoordinatorTest and HeartbeatTest: cases K01 to K25 and H01 to H05."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.errors import Errors, IllegalArgumentException, IllegalStateException, KafkaException
from impl.group.client.errors import (
    DisconnectException,
    FencedInstanceIdException,
    GroupMaxSizeReachedException,
    InconsistentGroupProtocolException,
    NoAvailableBrokersException,
    WakeupException,
)
from impl.group.client.generation import NO_GENERATION, Generation, MemberState
from impl.group.client.heartbeat import Heartbeat
from impl.group.messages import (
    FindCoordinatorRequest,
    JoinGroupRequest,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from tests.unit.impl.group_client.world import (
    CONFIG,
    COORDINATOR,
    MEMBER,
    NAME,
    World,
    beaten,
    found,
    join_failed,
    joined,
    left,
    static,
    synced,
)

NEW_GENERATION = Generation(2, "newId", NAME)


def test_a_coordinator_that_was_found_is_connected_to_at_once() -> None:
    world = World()
    world.know_coordinator()
    assert world.transport.connected == [COORDINATOR]


def test_k01_coordinator_discovery_backs_off_exponentially() -> None:
    world = World(replace(CONFIG, retry_backoff_ms=10, retry_backoff_max_ms=100))
    world.transport.unreachable_until[COORDINATOR] = 100
    world.prepare(*[found()] * 5)
    assert world.member.ensure_coordinator_ready(world.timer(10_000))
    lower = sum(10 * 2**i * 0.8 for i in range(4))
    upper = sum(10 * 2**i * 1.2 for i in range(4)) + 10
    assert lower <= world.clock.milliseconds() <= upper
    assert len(world.requests(FindCoordinatorRequest)) == 5


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Errors.GROUP_MAX_SIZE_REACHED, GroupMaxSizeReachedException),
        (Errors.FENCED_INSTANCE_ID, FencedInstanceIdException),
    ],
)
def test_k03_fatal_errors_of_a_join(error: Errors, raised: type[Exception]) -> None:
    world = World()
    world.know_coordinator()
    world.prepare(join_failed(error))
    with pytest.raises(raised):
        world.member.ensure_active_group(world.timer(50))


def test_k03_fenced_in_sync_is_fatal() -> None:
    world = World(static())
    world.know_coordinator()
    world.prepare(joined(), synced(Errors.FENCED_INSTANCE_ID))
    with pytest.raises(FencedInstanceIdException):
        world.member.ensure_active_group(world.timer(50))


def test_k05_a_join_waits_at_least_the_default_request_timeout() -> None:
    world = World(replace(CONFIG, rebalance_timeout_ms=30_000))
    world.know_coordinator()
    future = world.member.send_join_group_request()
    world.network.poll_no_wakeup()
    world.clock.sleep(35_001)
    assert not world.network.poll(future, world.timer(0))
    world.clock.sleep(40_000 - 35_001 + 1)
    assert world.network.poll(future, world.timer(0))
    assert isinstance(future.exception, DisconnectException)
    assert world.member.coordinator_unknown()


def test_k05_the_join_timeout_exceeds_the_rebalance_timeout_by_a_lapse() -> None:
    world = World()
    assert world.member.join_group_timeout_ms == 65_000


def test_k05_the_join_timeout_does_not_overflow() -> None:
    world = World(replace(CONFIG, rebalance_timeout_ms=2**31 - 1))
    world.know_coordinator()
    future = world.member.send_join_group_request()
    world.network.poll_no_wakeup()
    world.clock.sleep(2**31 - 2)
    assert not world.network.poll(future, world.timer(0))
    world.clock.sleep(2)
    assert world.network.poll(future, world.timer(0))
    assert isinstance(future.exception, DisconnectException)


@pytest.mark.parametrize(
    ("join_type", "sync_type", "sync_name", "consistent"),
    [
        (None, None, None, True),
        ("dummy", None, None, True),
        ("dummy", "dummy", NAME, True),
        ("other", None, None, False),
        ("dummy", "other", NAME, False),
        ("dummy", "dummy", "other", False),
    ],
)
def test_k07_protocol_type_and_name(
    join_type: str | None, sync_type: str | None, sync_name: str | None, consistent: bool
) -> None:
    world = World()
    world.know_coordinator()
    world.prepare(joined(protocol_type=join_type), synced(protocol_type=sync_type, name=sync_name))
    if consistent:
        assert world.member.ensure_active_group(world.timer(50))
    else:
        with pytest.raises(InconsistentGroupProtocolException):
            world.member.ensure_active_group(world.timer(50))


def test_k09_the_reason_of_a_rejoin() -> None:
    world = World()
    world.join()
    assert world.requests(JoinGroupRequest)[-1].reason == ""
    world.member.request_rejoin("Manual test trigger")
    world.prepare(joined(2), synced(Errors.UNKNOWN_MEMBER_ID))
    world.member.ensure_active_group(world.timer(50))
    last = world.requests(JoinGroupRequest)
    assert last[-2].reason == "Manual test trigger"
    assert last[-1].reason == "rebalance failed due to UnknownMemberIdException"
    world.answer(joined(3))
    world.answer(synced())
    assert world.member.rejoin_reason == ""
    world.member.request_rejoin("x" * 300)
    assert world.member.join_group_request().reason == "x" * 255


@pytest.mark.parametrize("changed", [True, False])
def test_k11_unknown_member_answers_a_join_of_an_old_generation(changed: bool) -> None:
    world = World()
    world.join()
    world.member.state = MemberState.PREPARING_REBALANCE
    future = world.member.send_join_group_request()
    if changed:
        world.member.generation = NEW_GENERATION
    world.answer(join_failed(Errors.UNKNOWN_MEMBER_ID))
    assert future.failed
    assert world.member.generation == (NEW_GENERATION if changed else NO_GENERATION)


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("error", [Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION])
def test_k11b_c_errors_answer_a_sync_of_an_old_generation(error: Errors, changed: bool) -> None:
    world = World()
    world.join()
    world.member.state = MemberState.COMPLETING_REBALANCE
    future = world.member.send_sync_group_request({})
    if changed:
        world.member.generation = NEW_GENERATION
    world.answer(synced(error))
    assert future.failed
    kept = "" if error is Errors.UNKNOWN_MEMBER_ID else MEMBER
    reset = Generation(-1, kept, None)
    assert world.member.generation == (NEW_GENERATION if changed else reset)


@pytest.mark.parametrize(
    "error",
    [Errors.ILLEGAL_GENERATION, Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_INSTANCE_ID],
)
def test_k11d_errors_answer_a_heartbeat_of_an_old_generation(error: Errors) -> None:
    world = World()
    world.join()
    future = world.member.send_heartbeat_request()
    world.member.generation = NEW_GENERATION
    world.answer(beaten(error))
    assert future.succeeded
    assert world.member.generation == NEW_GENERATION


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (Errors.ILLEGAL_GENERATION, MEMBER),
        (Errors.UNKNOWN_MEMBER_ID, ""),
        (Errors.FENCED_INSTANCE_ID, ""),
    ],
)
def test_k11d_errors_answer_a_heartbeat_of_this_generation(error: Errors, kept: str) -> None:
    world = World()
    world.join()
    future = world.member.send_heartbeat_request()
    world.answer(beaten(error))
    assert future.failed
    assert world.member.generation == Generation(-1, kept, None)
    assert world.member.state is MemberState.UNJOINED
    assert world.member.rejoin_needed
    assert world.member.needs_join_prepare


@pytest.mark.parametrize(
    "state", [MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE]
)
def test_k13_rebalance_in_progress_while_rejoining_is_ignored(state: MemberState) -> None:
    world = World()
    world.join()
    heartbeat = world.member.send_heartbeat_request()
    world.member.request_rejoin("test")
    future = world.member.initiate_join_group()
    world.network.poll_no_wakeup()
    beat, join = world.network.in_flight()
    if state is MemberState.COMPLETING_REBALANCE:
        world.network.respond(join, joined(2))
        world.network.poll_no_wakeup()
    assert world.member.state is state
    before = world.member.generation
    world.network.respond(beat, beaten(Errors.REBALANCE_IN_PROGRESS))
    world.network.poll_no_wakeup()
    assert heartbeat.succeeded
    assert world.member.generation == before
    assert world.member.rejoin_reason == "test"
    if state is MemberState.PREPARING_REBALANCE:
        world.answer(joined(2))
    world.answer(synced())
    assert future.succeeded
    assert world.member.generation == Generation(2, MEMBER, NAME)


def test_k15_an_unknown_instance_must_join_anew() -> None:
    world = World(static())
    world.join()
    world.member.request_rejoin("test")
    world.prepare(join_failed(Errors.UNKNOWN_MEMBER_ID))
    assert not world.member.join_group_if_needed(world.timer(0))
    assert world.member.rejoin_needed_or_pending()
    assert world.member.generation == NO_GENERATION


@pytest.mark.parametrize(("instance", "leaves"), [(None, True), ("i1", False)])
def test_k17_only_a_dynamic_member_says_that_it_leaves(instance: str | None, leaves: bool) -> None:
    world = World(replace(CONFIG, group_instance_id=instance))
    world.join()
    world.prepare(left())
    world.member.close(world.timer(0))
    sent = world.requests(LeaveGroupRequest)
    assert [request.members[0].member_id for request in sent] == ([MEMBER] if leaves else [])
    assert world.member.generation == NO_GENERATION
    assert world.member.state is MemberState.UNJOINED


def test_a_leave_reason_is_cut_as_a_rejoin_reason_is() -> None:
    world = World()
    world.join()
    world.prepare(left())
    world.member.maybe_leave_group("x" * 300)
    [request] = world.requests(LeaveGroupRequest)
    assert request.members[0].reason == "x" * 255


def test_an_answer_for_several_members_is_no_answer_to_one_that_leaves() -> None:
    world = World()
    world.join()
    member = LeaveGroupMemberResponse(MEMBER, None, Errors.NONE)
    world.prepare(LeaveGroupResponse(Errors.NONE, (member, member)))
    future = world.member.maybe_leave_group("test")
    assert future is not None
    assert isinstance(future.exception, IllegalStateException)


def test_k19_a_failure_of_the_heartbeat_thread_reaches_the_application() -> None:
    world = World()
    world.join()
    failure = KafkaException("heartbeat")

    def fail(_: object) -> None:
        raise failure

    world.transport.on_send = fail
    world.clock.sleep(CONFIG.heartbeat_interval_ms)
    world.beat()
    assert not world.beat()
    with pytest.raises(KafkaException, match="heartbeat"):
        world.member.time_to_next_heartbeat(world.clock.milliseconds())
    with pytest.raises(KafkaException, match="heartbeat"):
        world.member.poll_heartbeat(world.clock.milliseconds())
    world.member.poll_heartbeat(world.clock.milliseconds())


def test_k21_lookups_share_a_future_until_it_is_done() -> None:
    world = World()
    world.transport.no_brokers = True
    failed = world.member.lookup_coordinator()
    assert failed.failed
    assert isinstance(failed.exception, NoAvailableBrokersException)
    world.transport.no_brokers = False
    future = world.member.lookup_coordinator()
    assert not future.is_done
    assert world.member.lookup_coordinator() is future
    world.prepare(found())
    assert world.member.ensure_coordinator_ready(world.timer())
    assert world.member.lookup_coordinator() is not future


def test_k23_a_retriable_error_is_tried_again_after_the_back_off() -> None:
    world = World()
    world.know_coordinator()
    world.prepare(join_failed(Errors.COORDINATOR_LOAD_IN_PROGRESS), joined(), synced())
    started = world.clock.milliseconds()
    assert world.member.ensure_active_group(world.timer())
    assert abs(world.clock.milliseconds() - started - 100) <= 21


def test_k23_a_retriable_error_with_an_expired_timer_returns() -> None:
    world = World()
    world.know_coordinator()

    def too_late(_: object) -> None:
        world.clock.sleep(500)

    world.transport.on_send = too_late
    world.prepare(join_failed(Errors.COORDINATOR_LOAD_IN_PROGRESS))
    assert not world.member.join_group_if_needed(world.timer(500))
    assert len(world.requests(JoinGroupRequest)) == 1
    assert world.clock.milliseconds() == 500


def test_k25_a_wakeup_ends_a_blocking_lookup_only() -> None:
    world = World()
    world.network.wakeup()
    assert not world.member.ensure_coordinator_ready_async()
    with pytest.raises(WakeupException):
        world.member.ensure_coordinator_ready(world.timer(0))


HEARTBEAT = replace(
    CONFIG, session_timeout_ms=300, heartbeat_interval_ms=100, rebalance_timeout_ms=900
)


def heartbeat() -> tuple[World, Heartbeat]:
    world = World(HEARTBEAT)
    return world, world.member.heartbeat


@pytest.mark.parametrize(("elapsed_ms", "due"), [(110, True), (50, False)])
def test_h01_when_a_heartbeat_is_due(elapsed_ms: int, due: bool) -> None:
    world, beat = heartbeat()
    beat.sent_heartbeat(0)
    world.clock.sleep(elapsed_ms)
    assert beat.should_heartbeat(elapsed_ms) is due


def test_h03_the_session_expires_and_is_reset_alone() -> None:
    world, beat = heartbeat()
    beat.sent_heartbeat(0)
    world.clock.sleep(305)
    assert beat.session_timeout_expired(305)
    beat.reset_session_timeout()
    assert not beat.session_timeout_expired(305)
    world.clock.sleep(901 - 305)
    beat.reset_session_timeout()
    assert not beat.session_timeout_expired(901)
    assert beat.poll_timeout_expired(901)


def test_h05_each_event_moves_its_own_timers() -> None:
    world, beat = heartbeat()
    world.clock.sleep(290)
    beat.poll(290)
    assert beat.should_heartbeat(290)
    assert not beat.session_timeout_expired(299)
    assert beat.session_timeout_expired(300)
    world.clock.sleep(10)
    beat.receive_heartbeat()
    assert not beat.session_timeout_expired(599)
    assert beat.should_heartbeat(599)
    assert not beat.poll_timeout_expired(1189)
    assert beat.poll_timeout_expired(1190)
    world.clock.sleep(890)
    beat.reset_timeouts()
    assert not beat.should_heartbeat(1190)
    assert beat.time_to_next_heartbeat(1190) == 100
    assert not beat.session_timeout_expired(1489)
    assert not beat.poll_timeout_expired(2089)
    beat.fail_heartbeat()
    assert beat.time_to_next_heartbeat(1190) <= 120


def test_the_heartbeat_interval_must_be_below_the_session_timeout() -> None:
    with pytest.raises(IllegalArgumentException, match="session timeout"):
        World(replace(CONFIG, heartbeat_interval_ms=10_000))
