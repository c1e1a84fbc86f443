"""The coordinator under threads: chosen interleavings, and real ones."""

from __future__ import annotations

import dataclasses
import random
import threading
import time
from itertools import count

import pytest

from impl.clock import SystemClock
from impl.concurrency import Condition, Lock, NoConcurrency, RealConcurrency
from impl.deterministic_scheduler import DeterministicScheduler
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.group.config import GroupConfig
from impl.group.group_coordinator import GroupCoordinator, seeded_ids
from impl.group.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from impl.group.offsets_topic import LocalOffsetsTopic
from impl.scheduler import ImmediateScheduler
from tests.unit.impl.group.driver import CONFIG, GROUP, Driver, HeldOffsetsTopic, protocols

PATIENCE_S = 30.0


class HeldLock:
    """A lock that knows whether it is held."""

    def __init__(self) -> None:
        self.depth = 0

    def acquire(self) -> None:
        self.depth += 1

    def release(self) -> None:
        self.depth -= 1

    def __enter__(self) -> object:
        self.depth += 1
        return self

    def __exit__(self, _type: object, _value: object, _traceback: object, /) -> None:
        self.depth -= 1

    def new_condition(self) -> Condition:
        return NoConcurrency().lock("condition").new_condition()


class WatchedConcurrency(NoConcurrency):
    """Single caller, and every lock can be asked whether it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.locks: list[HeldLock] = []

    def lock(self, name: str, /) -> Lock:
        lock = HeldLock()
        self.locks.append(lock)
        return lock

    def held(self) -> int:
        return sum(lock.depth for lock in self.locks)


@pytest.mark.parametrize("known", [True, False], ids=["member", "stranger"])
def test_the_heartbeat_is_answered_without_any_lock(known: bool) -> None:
    concurrency = WatchedConcurrency()
    driver = Driver(concurrency=concurrency)
    member_id = driver.stable() if known else "stranger"
    held: list[int] = []

    def answered(_response: HeartbeatResponse) -> None:
        held.append(concurrency.held())

    driver.coordinator.handle_heartbeat(HeartbeatRequest(GROUP, 1, member_id), answered)
    assert held == [0]


def test_no_lock_stays_held() -> None:
    concurrency = WatchedConcurrency()
    driver = Driver(concurrency=concurrency)
    leader, follower = driver.stable_statics()
    driver.join("", "follower")
    driver.leave((leader, "leader"), (follower, "follower"))
    driver.advance(1000)
    driver.coordinator.on_resignation(0, 1)
    assert concurrency.held() == 0


def run_in_any_order(scheduler: DeterministicScheduler, seed: int) -> None:
    """Step the tasks "join" and "timer" to their ends; the reaper sleeps."""
    choose = random.Random(seed)
    while runnable := [name for name in scheduler.runnable() if name in ("join", "timer")]:
        scheduler.step(choose.choice(runnable))


@pytest.mark.parametrize("seed", range(20))
def test_joins_and_a_fired_rebalance_in_any_order(seed: int) -> None:
    """The last member's join and the rebalance time-out race; one of them ends the join phase."""
    scheduler = DeterministicScheduler()
    driver = Driver(concurrency=scheduler)
    leader, follower = driver.stable_dynamics(2)
    answers = [driver.join(leader)]
    (rebalance,) = (t for t in driver.coordinator.timers() if t.kind == "join")

    def fire() -> None:
        driver.coordinator.fire(rebalance)

    scheduler.spawn("join", lambda: answers.append(driver.join(follower)))
    scheduler.spawn("timer", fire)
    run_in_any_order(scheduler, seed)
    assert (scheduler.point("join"), scheduler.point("timer")) == ("finished", "finished")
    assert answers[0].response.generation_id == 2
    assert answers[1].response.error_code in (Errors.NONE, Errors.UNKNOWN_MEMBER_ID)
    assert driver.group.has(follower) is (answers[1].response.error_code is Errors.NONE)
    assert {kind for kind, _ in driver.timers()} == {"heartbeat", "sync"}


def test_a_clean_up_that_began_before_a_deletion_spares_what_is_committed_after_it() -> None:
    scheduler = DeterministicScheduler()
    config = dataclasses.replace(CONFIG, offsets_retention_ms=1000)
    driver = Driver(config, concurrency=scheduler)
    driver.commit(offset=3)
    driver.clock.sleep(1000)
    removed: list[int] = []
    scheduler.spawn(
        "clean-up", lambda: removed.append(driver.coordinator.cleanup_expired_offsets())
    )
    scheduler.run_until("clean-up", f"lock group-{GROUP}")
    driver.coordinator.handle_delete_groups(DeleteGroupsRequest((GROUP,)))
    driver.commit(offset=5)
    scheduler.run_until("clean-up", "finished")
    assert removed == [0]
    assert driver.failed_over(config).fetched() == (5, Errors.NONE)


class InterruptedTopic(LocalOffsetsTopic):
    """Whoever asks in which partition a group lies can be interrupted."""

    def __init__(self, scheduler: DeterministicScheduler) -> None:
        super().__init__(MemoryDisk(), ImmediateScheduler(), scheduler, 1)
        self._scheduler = scheduler

    @property
    def num_partitions(self) -> int:
        self._scheduler.checkpoint("partition asked")
        return super().num_partitions


def test_a_group_may_be_deleted_while_its_partition_is_given_up() -> None:
    scheduler = DeterministicScheduler()
    driver = Driver(topic=HeldOffsetsTopic(InterruptedTopic(scheduler)), concurrency=scheduler)
    driver.commit(offset=3)
    driver.commit(offset=4, group="other")
    deletion = DeleteGroupsRequest(("other",))
    scheduler.spawn("delete", lambda: driver.coordinator.handle_delete_groups(deletion) and None)
    scheduler.spawn("resign", lambda: driver.coordinator.on_resignation(0, 1))
    scheduler.run_until("delete", "lock group-other")
    scheduler.run_until("resign", "partition asked")
    while runnable := [name for name in ("delete", "resign") if name in scheduler.runnable()]:
        scheduler.step(runnable[0])
    assert (scheduler.point("delete"), scheduler.point("resign")) == ("finished", "finished")
    assert [driver.coordinator.group(group_id) for group_id in (GROUP, "other")] == [None, None]
    assert driver.failed_over().fetched() == (3, Errors.NONE)


def test_a_partition_is_given_up_at_any_moment_of_a_deletion() -> None:
    """After so many steps of the deletion, until it has none left."""
    deletion = DeleteGroupsRequest((GROUP,))
    for steps in count():
        scheduler = DeterministicScheduler()
        driver = Driver(concurrency=scheduler)
        driver.commit(offset=3)
        scheduler.spawn(
            "delete",
            lambda driver=driver: driver.coordinator.handle_delete_groups(deletion) and None,
        )
        for _ in range(steps):
            if scheduler.point("delete") != "finished":
                scheduler.step("delete")
        is_done = scheduler.point("delete") == "finished"
        scheduler.spawn("resign", lambda driver=driver: driver.coordinator.on_resignation(0, 1))
        while runnable := [one for one in ("resign", "delete") if one in scheduler.runnable()]:
            scheduler.step(runnable[0])
        assert (scheduler.point("delete"), scheduler.point("resign")) == ("finished", "finished")
        assert driver.coordinator.group(GROUP) is None
        if is_done:
            return


class Member(threading.Thread):
    """Joins and syncs until it has been Stable in `rounds` generations, then leaves."""

    def __init__(self, coordinator: GroupCoordinator, rounds: int) -> None:
        super().__init__(daemon=True)
        self._coordinator = coordinator
        self._rounds = rounds
        self._answered = threading.Condition()
        self.seen: list[tuple[int, str, bytes]] = []

    def _await(self, send: object, request: object) -> object:
        box: list[object] = []

        def answered(response: object) -> None:
            with self._answered:
                box.append(response)
                self._answered.notify_all()

        assert callable(send)
        send(request, answered)
        with self._answered:
            assert self._answered.wait_for(lambda: box, PATIENCE_S), f"no answer to {request}"
        return box[0]

    def run(self) -> None:
        member_id = ""
        while len(self.seen) < self._rounds:
            member_id = self._round(member_id)
        leave = LeaveGroupRequest(GROUP, (MemberIdentity(member_id),))
        self._await(self._coordinator.handle_leave_group, leave)

    def _round(self, member_id: str) -> str:
        metadata = str(len(self.seen)).encode()  # changed metadata forces a rebalance
        request = JoinGroupRequest(
            GROUP, 5000, 5000, member_id, "consumer", protocols("range", metadata=metadata)
        )
        join = self._await(self._coordinator.handle_join_group, request)
        assert isinstance(join, JoinGroupResponse)
        if join.error_code is not Errors.NONE:
            return join.member_id
        shares = tuple(
            SyncGroupRequestAssignment(m.member_id, f"{join.generation_id}:{m.member_id}".encode())
            for m in join.members
        )
        sync = self._await(
            self._coordinator.handle_sync_group,
            SyncGroupRequest(GROUP, join.generation_id, join.member_id, assignments=shares),
        )
        assert isinstance(sync, SyncGroupResponse)
        if sync.error_code is Errors.NONE:
            self.seen.append((join.generation_id, join.member_id, sync.assignment))
        return join.member_id


def test_real_members_get_the_assignment_of_their_generation() -> None:
    clock, concurrency = SystemClock(), RealConcurrency()
    topic = LocalOffsetsTopic(MemoryDisk(), ImmediateScheduler(), concurrency, 1)
    coordinator = GroupCoordinator(
        topic,
        clock,
        unique_id=seeded_ids(1),
        config=GroupConfig(group_min_session_timeout_ms=10, group_initial_rebalance_delay_ms=5),
        concurrency=concurrency,
    )
    coordinator.startup()
    coordinator.on_election(0, 0)
    members = [Member(coordinator, rounds=10) for _ in range(4)]
    for member in members:
        member.start()
    for member in members:
        member.join(PATIENCE_S)
        assert not member.is_alive()
    for member in members:
        for generation, member_id, assignment in member.seen:
            assert assignment == f"{generation}:{member_id}".encode()
    deadline = time.monotonic() + PATIENCE_S
    while coordinator.timers() and time.monotonic() < deadline:
        time.sleep(0.005)
    coordinator.shutdown()
    group = coordinator.group(GROUP)
    assert group is not None
    assert (group.state.value, group.members) == ("Empty", {})


def test_a_timer_that_fails_does_not_end_the_thread_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka's reaper hands expired operations to an executor, which outlives what they raise."""
    coordinator = Driver().coordinator
    turns = []

    def fail_then_stop() -> int:
        turns.append(len(turns))
        if len(turns) == 1:
            raise RuntimeError("a callback failed")
        coordinator.shutdown()
        return 0

    monkeypatch.setattr(coordinator, "expire_due", fail_then_stop)
    coordinator._reap()
    assert turns == [0, 1]
