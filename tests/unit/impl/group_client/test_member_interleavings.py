"""The heartbeat thread against the application's, in chosen and in random interleavings."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from itertools import count

import pytest

from impl.clock import MockClock
from impl.deterministic_scheduler import DeterministicScheduler
from impl.errors import Errors, KafkaException
from impl.group.client.config import GroupRebalanceConfig
from impl.group.client.generation import MemberState
from impl.group.client.network_client import ClientRequest
from impl.group.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from tests.unit.impl.group_client.world import (
    CONFIG,
    MEMBER,
    World,
    beaten,
    found,
    joined,
    synced,
)

HEARTBEAT = "heartbeat-dummy-group"


def scheduled(config: GroupRebalanceConfig = CONFIG) -> tuple[World, DeterministicScheduler]:
    """A member whose waits move the clock; its first join is done."""
    clock = MockClock()
    scheduler = DeterministicScheduler(elapse=clock.sleep)
    world = World(config, scheduler, clock)
    world.transport.moves_clock = False
    world.join()
    return world, scheduler


def test_e7_a_lookup_answered_before_it_is_stored_is_not_stored_for_ever() -> None:
    """The answer's callback runs in one thread while the other still sends (KAFKA-10793)."""
    world, scheduler = scheduled()
    world.member.mark_coordinator_unknown("test")
    world.prepare(found())
    scheduler.spawn("lookup", lambda: world.member.lookup_coordinator() and None)
    scheduler.run_until("lookup", "request queued")
    world.network.poll_no_wakeup()
    scheduler.run_until("lookup", "finished")
    world.prepare(found())
    world.member.ensure_coordinator_ready(world.timer(0))
    world.member.mark_coordinator_unknown("test")
    world.prepare(found())
    timer = world.timer(1_000)
    scheduler.spawn("application", lambda: world.member.ensure_coordinator_ready(timer) and None)
    scheduler.run_until("application", "finished", max_steps=300)
    assert not world.member.coordinator_unknown()


@pytest.mark.parametrize("seed", range(20))
def test_e23_the_coordinator_may_be_given_up_at_any_point_of_a_request(seed: int) -> None:
    world, scheduler = scheduled()
    failures: list[Exception | None] = []

    def leave() -> None:
        future = world.member._send_leave_group_request("test")
        failures.append(future.exception if future.failed else None)

    scheduler.spawn("request", leave)
    scheduler.spawn("give up", lambda: world.member.mark_coordinator_unknown("test"))
    choose = random.Random(seed)
    while runnable := [n for n in scheduler.runnable() if n in ("request", "give up")]:
        scheduler.step(choose.choice(runnable))
    world.network.poll_no_wakeup()
    assert None not in [request.node for request in world.transport.sent]
    assert len(failures) == 1


class Group:
    """A broker that rebalances, forgets the member, or is silent, as a seed has it."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self.calm = False
        self.generation_id = 1
        world.transport.on_send = self.answer

    def answer(self, request: ClientRequest) -> None:
        match request.request:
            case FindCoordinatorRequest():
                response = found(self._error(Errors.COORDINATOR_NOT_AVAILABLE))
            case JoinGroupRequest():
                self.generation_id += 1
                error = self._error(
                    Errors.REBALANCE_IN_PROGRESS,
                    Errors.COORDINATOR_LOAD_IN_PROGRESS,
                    Errors.UNKNOWN_MEMBER_ID,
                    Errors.NOT_COORDINATOR,
                )
                response = joined(self.generation_id, error=error)
            case SyncGroupRequest():
                error = self._error(Errors.REBALANCE_IN_PROGRESS, Errors.ILLEGAL_GENERATION)
                response = synced(error, str(self.generation_id).encode())
            case HeartbeatRequest():
                response = beaten(
                    self._error(Errors.REBALANCE_IN_PROGRESS, Errors.ILLEGAL_GENERATION)
                )
            case _:
                return
        assert self._world.transport.network is not None
        self._world.transport.network.respond(request, response)

    def _error(self, *errors: Errors) -> Errors:
        quiet = self.calm or self._random.random() < 0.5
        return Errors.NONE if quiet else self._random.choice(errors)


@pytest.mark.parametrize("seed", range(25))
def test_whatever_the_order_a_member_finds_back_to_a_stable_generation(seed: int) -> None:
    world, scheduler = scheduled()
    group = Group(world, seed)
    member = world.member
    rounds = 0

    def application() -> None:
        nonlocal rounds
        for _ in range(25):
            rounds += 1
            group.calm = rounds > 20
            member.poll_heartbeat(world.clock.milliseconds())
            member.ensure_active_group(world.timer(5_000))
            world.clock.sleep(1_000)

    scheduler.spawn("application", application)
    choose = random.Random(seed)
    for _ in range(60_000):
        runnable = scheduler.runnable()
        if scheduler.point("application") == "finished" or not runnable:
            break
        scheduler.step(choose.choice(runnable))
    assert scheduler.point("application") == "finished"
    assert member.state is MemberState.STABLE
    assert not member.rejoin_needed_or_pending()
    assert member.generation.generation_id == group.generation_id
    last = b"mine" if group.generation_id == 1 else str(group.generation_id).encode()
    assert member.delivered[-1] == last
    assert member.generation.member_id == MEMBER
    assert_prepared_before_each_assignment(member.calls)


def assert_prepared_before_each_assignment(calls: list[str]) -> None:
    """No assignment without a preparation since the last one (I15)."""
    for before, call in itertools.pairwise(calls):
        assert (before, call) != ("complete", "complete")


def test_who_left_joins_again_as_such_whatever_an_older_heartbeat_is_answered() -> None:
    """The application handles the answer, so many steps of it before the heartbeat thread gives the
    group up, the others after."""
    for steps in count():
        world, scheduler = scheduled(replace(CONFIG, rebalance_timeout_ms=5_000))
        world.clock.sleep(CONFIG.heartbeat_interval_ms)
        scheduler.run_until(HEARTBEAT, "wait coordinator")
        (heartbeat,) = world.network.in_flight()
        world.network.respond(heartbeat, beaten(Errors.REBALANCE_IN_PROGRESS))
        scheduler.spawn("application", world.network.poll_no_wakeup)
        for _ in range(steps):
            if scheduler.point("application") != "finished":
                scheduler.step("application")
        is_done = scheduler.point("application") == "finished"
        world.clock.sleep(5_000 - CONFIG.heartbeat_interval_ms)
        while not world.requests(LeaveGroupRequest):
            runnable = [one for one in (HEARTBEAT, "application") if one in scheduler.runnable()]
            scheduler.step(runnable[0])
        while scheduler.point("application") != "finished":
            runnable = [one for one in ("application", HEARTBEAT) if one in scheduler.runnable()]
            scheduler.step(runnable[0])
        scheduler.run_until(HEARTBEAT, "wait coordinator")
        world.prepare(joined(2), synced())
        assert world.member.ensure_active_group(world.timer(50))
        reasons = [request.reason for request in world.requests(JoinGroupRequest)]
        assert reasons == ["", "consumer pro-actively leaving the group"], f"after {steps} steps"
        if is_done:
            return


def test_a_heartbeat_that_fails_sends_for_the_coordinator_without_a_back_off() -> None:
    """The answer comes in the application's poll, while the heartbeat thread sleeps."""
    world, scheduler = scheduled()
    world.clock.sleep(CONFIG.heartbeat_interval_ms)
    scheduler.run_until(HEARTBEAT, "wait coordinator")
    world.answer(beaten(Errors.NOT_COORDINATOR))
    failed_ms = world.clock.milliseconds()
    scheduler.run_until(HEARTBEAT, "request queued")
    assert world.clock.milliseconds() == failed_ms
    world.network.poll_no_wakeup()
    assert len(world.requests(FindCoordinatorRequest)) == 2


@pytest.mark.parametrize("steps", range(12))
def test_closing_ends_the_heartbeat_thread_wherever_it_stands(steps: int) -> None:
    world, scheduler = scheduled()
    for _ in range(steps):
        if HEARTBEAT in scheduler.runnable():
            scheduler.step(HEARTBEAT)
    scheduler.spawn("close", lambda: world.member.close(world.timer(0)))
    scheduler.run_random(steps, 1_000)
    assert scheduler.point("close") == "finished"
    assert scheduler.point(HEARTBEAT) == "finished"


def test_a_heartbeat_thread_that_failed_is_replaced() -> None:
    world, scheduler = scheduled()
    thread = world.member.heartbeat_thread
    assert thread is not None
    thread.failure = KafkaException("test")
    with pytest.raises(KafkaException, match="test"):
        world.member.poll_heartbeat(0)
    while HEARTBEAT in scheduler.runnable():
        scheduler.step(HEARTBEAT)
    world.member.start_heartbeat_thread_if_needed()
    assert world.member.heartbeat_thread is not thread
