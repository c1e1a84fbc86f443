"""Whatever members, timers, the log and the brokers do, a group keeps the rules of the protocol.

Random requests with right and wrong arguments, any timer fired at any moment, appends that fail or
are late, and fail-overs; after every step the group and the answers are checked.
"""

from __future__ import annotations

import dataclasses

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from impl.errors import Errors
from impl.group.group_metadata import VALID_PREVIOUS_STATES, GroupState
from impl.group.messages import JoinGroupResponse, SyncGroupResponse
from tests.unit.impl.group.driver import CONFIG, GROUP, Answer, Driver

LIVING: tuple[GroupState, ...] = tuple(
    state for state in GroupState if state is not GroupState.DEAD
)
MAX_SIZE = 3
SMALL = dataclasses.replace(CONFIG, group_max_size=MAX_SIZE)
INSTANCES = st.sampled_from([None, None, "i1", "i2"])
PROTOCOLS = st.sampled_from([("range",), ("range", "roundrobin"), ("roundrobin", "range")])
OLD = st.integers(0, 1)
PICK = st.integers(0, 7)


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(SMALL)
        self.epoch = 0
        self.ids: list[str] = ["stranger"]
        self.joins: list[Answer[JoinGroupResponse]] = []
        self.last_state = GroupState.EMPTY
        self.last_generation = 0
        self.generations: dict[int, tuple[str, str | None]] = {}
        self.fenced: set[str] = set()

    # -- helpers

    def pick(self, index: int) -> str:
        """One of the ids ever handed out, the newest first."""
        return self.ids[-1 - index % len(self.ids)]

    def generation(self, age: int) -> int:
        group = self.driver.coordinator.group(GROUP)
        return (0 if group is None else group.generation_id) - age

    def learn(self) -> None:
        """Note what was answered since the last step."""
        for answer in [answer for answer in self.joins if answer.done]:
            self.joins.remove(answer)
            response = answer.response
            if response.member_id and response.member_id not in self.ids:
                self.ids.append(response.member_id)
            if response.error_code is Errors.FENCED_INSTANCE_ID:
                self.fenced.add(response.member_id)
            if response.error_code is Errors.NONE and not response.skip_assignment:
                self.check_generation(response)

    def check_generation(self, response: JoinGroupResponse) -> None:
        """All members of a generation learn the same protocol, and who joined late the leader."""
        agreed = self.generations.setdefault(
            response.generation_id, (response.leader, response.protocol_name)
        )
        assert agreed[1] == response.protocol_name

    def accepted(self, error: Errors, member_id: str, generation: int) -> None:
        """Nothing of a fenced member or another generation ever succeeds."""
        if error in (Errors.NONE, Errors.REBALANCE_IN_PROGRESS):
            group = self.driver.group
            assert group.has(member_id)
            assert generation == group.generation_id
            assert member_id not in self.fenced

    # -- requests

    @rule(
        index=PICK,
        new=st.booleans(),
        instance=INSTANCES,
        names=PROTOCOLS,
        version=st.sampled_from([3, 9]),
    )
    def join(
        self, index: int, new: bool, instance: str | None, names: tuple[str, ...], version: int
    ) -> None:
        member_id = "" if new else self.pick(index)
        pending = self.driver.coordinator.group(GROUP)
        if pending is not None and pending.is_pending_member(member_id):
            instance = None  # no client sends an instance with the id of a dynamic member
        self.joins.append(self.driver.join(member_id, instance, names, version=version))

    @rule(index=PICK)
    def join_as_its_own(self, index: int) -> None:
        """A correct client's join: with the instance that it has."""
        group = self.driver.coordinator.group(GROUP)
        member_id = self.pick(index)
        known = group is not None and group.has(member_id)
        instance = group.get(member_id).group_instance_id if group is not None and known else None
        self.joins.append(self.driver.join(member_id, instance, ("range", "roundrobin")))

    @rule(index=PICK, age=OLD, everyone=st.booleans())
    def sync(self, index: int, age: int, everyone: bool) -> None:
        group = self.driver.coordinator.group(GROUP)
        member_id, generation = self.pick(index), self.generation(age)
        members = list(group.members) if everyone and group is not None else []
        shares = {member: f"{generation}:{member}".encode() for member in members}
        answer: Answer[SyncGroupResponse] = self.driver.sync(member_id, generation, shares)
        if answer.done and answer.response.error_code is Errors.NONE:
            self.accepted(Errors.NONE, member_id, generation)

    @rule(index=PICK, age=OLD)
    def heartbeat(self, index: int, age: int) -> None:
        member_id, generation = self.pick(index), self.generation(age)
        self.accepted(self.driver.heartbeat(member_id, generation), member_id, generation)

    @rule(index=PICK, age=OLD)
    def commit(self, index: int, age: int) -> None:
        member_id, generation = self.pick(index), self.generation(age)
        if self.driver.topic.hold or generation < 0:
            return
        answer = self.driver.commit_answer(member_id, generation)
        if answer.done and answer.response.partitions[0].error_code is Errors.NONE:
            self.accepted(Errors.NONE, member_id, generation)

    @rule(index=PICK, instance=INSTANCES, by_instance=st.booleans())
    def leave(self, index: int, instance: str | None, by_instance: bool) -> None:
        self.driver.leave(("" if by_instance else self.pick(index), instance))

    # -- time, the log, the brokers

    @rule(index=PICK)
    def fire_a_timer(self, index: int) -> None:
        timers = self.driver.coordinator.timers()
        if not timers:
            return
        timer = timers[index % len(timers)]
        parked = {
            member.member_id
            for member in self.driver.group.members.values()
            if (member.is_awaiting_join or member.is_awaiting_sync) and not member.is_new
        }
        self.driver.coordinator.fire(timer)
        if timer.kind == "heartbeat" and timer.member_id in parked:
            assert self.driver.group.has(timer.member_id), "a parked member expired"

    @rule(ms=st.sampled_from([1, 51, 250, 501]))
    def let_time_pass(self, ms: int) -> None:
        self.driver.advance(ms)

    @rule(error=st.sampled_from([None, None, Errors.NOT_ENOUGH_REPLICAS, Errors.REQUEST_TIMED_OUT]))
    def fail_appends(self, error: Errors | None) -> None:
        self.driver.topic.fail_with = error

    @rule()
    def hold_appends(self) -> None:
        self.driver.topic.hold = True

    @rule(error=st.sampled_from([Errors.NONE, Errors.REQUEST_TIMED_OUT]))
    def release_appends(self, error: Errors) -> None:
        self.driver.topic.hold = False
        self.driver.topic.release(error)

    @rule()
    def fail_over(self) -> None:
        self.driver.topic.hold = False
        self.driver.topic.release(Errors.NOT_LEADER_OR_FOLLOWER)
        self.epoch += 1
        self.driver.coordinator.on_resignation(0, self.epoch)
        self.learn()
        assert self.driver.timers() == []
        self.driver = self.driver.failed_over(SMALL, self.epoch)
        group = self.driver.coordinator.group(GROUP)
        self.last_state = GroupState.EMPTY if group is None else group.state
        self.last_generation = 0 if group is None else group.generation_id
        # What was not persisted did not happen: its generations may come again.
        persisted = self.last_generation
        self.generations = {g: seen for g, seen in self.generations.items() if g <= persisted}
        known = set() if group is None else set(group.members)
        self.fenced -= known

    # -- what must hold after every step

    @invariant()
    def generations_never_fall(self) -> None:
        self.learn()
        group = self.driver.coordinator.group(GROUP)
        if group is not None:
            assert group.generation_id >= self.last_generation
            self.last_generation = group.generation_id

    @invariant()
    def transitions_are_legal(self) -> None:
        group = self.driver.coordinator.group(GROUP)
        if group is not None:
            assert reachable(self.last_state, group.state)
            self.last_state = group.state

    @invariant()
    def the_books_are_in_order(self) -> None:
        group = self.driver.coordinator.group(GROUP)
        if group is None:
            return
        members = group.members
        assert (group.leader_id is None) == (not members)
        assert group.leader_id is None or group.leader_id in members
        awaiting = sum(member.is_awaiting_join for member in members.values())
        assert group.num_members_awaiting_join == awaiting
        assert not set(group.pending_members) & set(members)
        instances = {
            m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id
        }
        assert group.static_members == instances
        assert all(member_id == member.member_id for member_id, member in members.items())
        if group.state is GroupState.EMPTY:
            assert not members
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert len(members) <= MAX_SIZE
            for member in members.values():
                assert group.protocol_name in {p.name for p in member.supported_protocols}
        if group.state is not GroupState.COMPLETING_REBALANCE:
            assert not any(member.is_awaiting_sync for member in members.values())

    @invariant()
    def timers_belong_to_what_waits(self) -> None:
        group = self.driver.coordinator.group(GROUP)
        if group is None:
            return
        kinds = [timer.kind for timer in self.driver.coordinator.timers()]
        joining = kinds.count("join") + kinds.count("initial join")
        assert joining == (group.state is GroupState.PREPARING_REBALANCE)
        assert kinds.count("sync") <= 1
        if group.state is GroupState.COMPLETING_REBALANCE and group.pending_sync_members:
            assert kinds.count("sync") == 1
        watched = [t.member_id for t in self.driver.coordinator.timers() if t.member_id is not None]
        assert len(watched) == len(set(watched))
        assert set(watched) <= set(group.members) | set(group.pending_members)
        silent = {
            m.member_id
            for m in group.members.values()
            if not m.is_awaiting_join and not m.is_awaiting_sync
        }
        assert silent | set(group.pending_members) <= set(watched)


def reachable(source: GroupState, target: GroupState) -> bool:
    """Whether a few legal moves lead from one state to the other: one request may make several."""
    seen: set[GroupState] = {source}
    frontier: set[GroupState] = {source}
    while frontier:
        frontier = {state for state in LIVING if VALID_PREVIOUS_STATES[state] & frontier} - seen
        seen |= frontier
    return target in seen


TestGroups = Groups.TestCase
TestGroups.settings = settings(derandomize=True, max_examples=80, stateful_step_count=40)
