"""Drives a coordinator as GroupCoordinatorTest does: one request, or one stretch of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from impl.clock import MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.group.config import GroupConfig
from impl.group.group_coordinator import GroupCoordinator, seeded_ids
from impl.group.group_metadata import GroupMetadata
from impl.group.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
)
from impl.group.offsets_topic import AppendCallback, LocalOffsetsTopic
from impl.log import Log
from impl.records import Record
from impl.scheduler import ImmediateScheduler, Scheduler
from impl.types import TopicPartition

GROUP = "groupId"
TP = TopicPartition("topic", 0)
SUPERSET = ("range", "roundrobin")
WITHOUT_MEMBER_ID_REQUIRED = 3
CONFIG = GroupConfig(
    group_min_session_timeout_ms=10,
    group_max_session_timeout_ms=600_000,
    group_max_size=4,
    group_initial_rebalance_delay_ms=50,
)

ResponseT = TypeVar("ResponseT")


class Answer(Generic[ResponseT]):
    """The answer to one request, once it has come."""

    def __init__(self) -> None:
        self.responses: list[ResponseT] = []

    def __call__(self, response: ResponseT) -> None:
        assert not self.responses, f"answered twice: {self.responses[0]}, {response}"
        self.responses.append(response)

    @property
    def done(self) -> bool:
        return bool(self.responses)

    @property
    def response(self) -> ResponseT:
        assert self.responses, "not answered yet"
        return self.responses[0]


class HeldOffsetsTopic:
    """An offsets topic whose appends can fail, or be acknowledged later."""

    def __init__(self, inner: LocalOffsetsTopic) -> None:
        self._inner = inner
        self.fail_with: Errors | None = None
        self.refuse_after_append: Errors | None = None
        self.hold = False
        self._held: list[Callable[[Errors], None]] = []

    @property
    def num_partitions(self) -> int:
        return self._inner.num_partitions

    def become_leader(self, partition: int, leader_epoch: int, /) -> Log | None:
        return self._inner.become_leader(partition, leader_epoch)

    def log(self, partition: int) -> Log:
        return self._inner.log(partition)

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[Record],
        callback: AppendCallback,
        /,
    ) -> None:
        if self.fail_with is not None:
            callback(self.fail_with, -1)
        elif self.refuse_after_append is not None:
            refusal = self.refuse_after_append
            self._inner.append(partition, leader_epoch, records, lambda *_: callback(refusal, -1))
        elif not self.hold:
            self._inner.append(partition, leader_epoch, records, callback)
        else:

            def release(error: Errors) -> None:
                if error is Errors.NONE:
                    self._inner.append(partition, leader_epoch, records, callback)
                else:
                    callback(error, -1)

            self._held.append(release)

    def release(self, error: Errors = Errors.NONE) -> None:
        """Acknowledge what is held, or let it fail."""
        held, self._held = self._held, []
        for release in held:
            release(error)


def protocols(*names: str, metadata: bytes = b"") -> tuple[JoinGroupRequestProtocol, ...]:
    return tuple(JoinGroupRequestProtocol(name, metadata) for name in names)


class Driver:
    """One coordinator that owns every partition, a clock, and a topic that may fail."""

    def __init__(
        self,
        config: GroupConfig = CONFIG,
        *,
        num_partitions: int = 1,
        owned: Sequence[int] | None = None,
        topic: HeldOffsetsTopic | None = None,
        clock: MockClock | None = None,
        concurrency: Concurrency | None = None,
        scheduler: Scheduler | None = None,
        epoch: int = 0,
        seed: int = 0,
    ) -> None:
        self.clock = clock or MockClock()
        concurrency = concurrency or NoConcurrency()
        self.topic = topic or HeldOffsetsTopic(
            LocalOffsetsTopic(MemoryDisk(), ImmediateScheduler(), concurrency, num_partitions)
        )
        self.coordinator = GroupCoordinator(
            self.topic,
            self.clock,
            unique_id=seeded_ids(seed),
            config=config,
            concurrency=concurrency,
            scheduler=scheduler,
        )
        self.coordinator.startup()
        for partition in range(num_partitions) if owned is None else owned:
            self.coordinator.on_election(partition, epoch)

    def failed_over(self, config: GroupConfig = CONFIG, epoch: int = 1) -> Driver:
        """Another broker's coordinator, elected for the same topic in a later epoch."""
        return Driver(config, topic=self.topic, clock=self.clock, epoch=epoch, seed=epoch)

    @property
    def group(self) -> GroupMetadata:
        group = self.coordinator.group(GROUP)
        assert group is not None
        return group

    @property
    def state(self) -> str:
        return self.group.state.value

    def advance(self, ms: int) -> int:
        """MockTimer.advanceClock."""
        self.clock.sleep(ms)
        return self.coordinator.expire_due()

    def timers(self) -> list[tuple[str, str | None]]:
        return [(timer.kind, timer.member_id) for timer in self.coordinator.timers()]

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        """(key, value) of everything written to partition 0."""
        batches = self.topic.log(0).batches()
        return [(record.key, record.value) for batch in batches for record in batch.records]

    def join(
        self,
        member_id: str = "",
        instance: str | None = None,
        names: Sequence[str] = ("range",),
        *,
        session: int = 500,
        rebalance: int = 500,
        protocol_type: str = "consumer",
        metadata: bytes = b"",
        version: int | None = None,
        group: str = GROUP,
    ) -> Answer[JoinGroupResponse]:
        """A new dynamic member joins by an old version, which needs one round trip."""
        if version is None:
            version = 9 if instance is not None else WITHOUT_MEMBER_ID_REQUIRED
        answer: Answer[JoinGroupResponse] = Answer()
        request = JoinGroupRequest(
            group,
            session,
            rebalance,
            member_id,
            protocol_type,
            protocols(*names, metadata=metadata),
            instance,
            client_id="consumer-test",
            client_host="/127.0.0.1",
            version=version,
        )
        self.coordinator.handle_join_group(request, answer)
        return answer

    def joined(self, member_id: str = "", *, session: int = 500) -> JoinGroupResponse:
        """Join and wait for the initial delay (dynamicJoinGroup of Kafka's test)."""
        answer = self.join(member_id, session=session)
        self.advance(51)
        assert answer.response.error_code is Errors.NONE
        return answer.response

    def pending(self, session: int = 500) -> str:
        """A member that was given an id, and has not joined with it yet."""
        answer = self.join(session=session, version=9)
        assert answer.response.error_code is Errors.MEMBER_ID_REQUIRED
        return answer.response.member_id

    def sync(
        self,
        member_id: str,
        generation: int = 1,
        assignment: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        group: str = GROUP,
    ) -> Answer[SyncGroupResponse]:
        answer: Answer[SyncGroupResponse] = Answer()
        shares = tuple(SyncGroupRequestAssignment(m, a) for m, a in (assignment or {}).items())
        self.coordinator.handle_sync_group(
            SyncGroupRequest(
                group, generation, member_id, instance, protocol_type, protocol_name, shares
            ),
            answer,
        )
        return answer

    def heartbeat(
        self, member_id: str, generation: int = 1, instance: str | None = None, group: str = GROUP
    ) -> Errors:
        answer: Answer[HeartbeatResponse] = Answer()
        request = HeartbeatRequest(group, generation, member_id, instance)
        self.coordinator.handle_heartbeat(request, answer)
        return answer.response.error_code

    def leave(self, *members: tuple[str, str | None], group: str = GROUP) -> list[Errors]:
        response = self.leave_response(*members, group=group)
        assert response.error_code is Errors.NONE
        return [member.error_code for member in response.members]

    def leave_response(
        self, *members: tuple[str, str | None], group: str = GROUP
    ) -> LeaveGroupResponse:
        answer: Answer[LeaveGroupResponse] = Answer()
        identities = tuple(MemberIdentity(member_id, instance) for member_id, instance in members)
        self.coordinator.handle_leave_group(LeaveGroupRequest(group, identities), answer)
        return answer.response

    def commit_answer(
        self,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        *,
        offset: int = 0,
        metadata: str = "",
        retention_ms: int = -1,
        group: str = GROUP,
    ) -> Answer[OffsetCommitResponse]:
        answer: Answer[OffsetCommitResponse] = Answer()
        partitions = (OffsetCommitRequestPartition(TP, offset, committed_metadata=metadata),)
        self.coordinator.handle_commit_offsets(
            OffsetCommitRequest(group, partitions, generation, member_id, instance, retention_ms),
            answer,
        )
        return answer

    def commit(
        self,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        *,
        offset: int = 0,
        metadata: str = "",
        retention_ms: int = -1,
        group: str = GROUP,
    ) -> Errors:
        answer = self.commit_answer(
            member_id,
            generation,
            instance,
            offset=offset,
            metadata=metadata,
            retention_ms=retention_ms,
            group=group,
        )
        return answer.response.partitions[0].error_code

    def txn_commit(
        self,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        *,
        offset: int = 0,
        producer: int = 7,
    ) -> Errors:
        answer: Answer[OffsetCommitResponse] = Answer()
        partitions = (OffsetCommitRequestPartition(TP, offset),)
        self.coordinator.handle_txn_commit_offsets(
            TxnOffsetCommitRequest(
                GROUP, partitions, "tx", producer, 0, generation, member_id, instance
            ),
            answer,
        )
        return answer.response.partitions[0].error_code

    def fetched(self, *, require_stable: bool = False) -> tuple[int, Errors]:
        """(offset, error) of the topic's partition."""
        response = self.coordinator.handle_fetch_offsets(
            OffsetFetchRequest(GROUP, (TP,), require_stable)
        )
        assert response.error_code is Errors.NONE
        return response.partitions[0].committed_offset, response.partitions[0].error_code

    # -- whole stories

    def stable(
        self, names: Sequence[str] = ("range",), *, session: int = 500, rebalance: int = 500
    ) -> str:
        """One dynamic member, alone in generation 1, Stable; its id."""
        answer = self.join(names=names, session=session, rebalance=rebalance)
        self.advance(51)
        member_id = answer.response.member_id
        assert self.sync(member_id, 1, {member_id: b"a"}).response.error_code is Errors.NONE
        return member_id

    def stable_statics(
        self, *, session: int = 500, rebalance: int = 500, names: Sequence[str] = SUPERSET
    ) -> tuple[str, str]:
        """Two static members, "leader" and "follower", Stable in generation 1; their ids."""
        leader = self.join(instance="leader", names=names, session=session, rebalance=rebalance)
        follower = self.join(instance="follower", names=names, session=session, rebalance=rebalance)
        self.advance(51)  # the second member came while the first rebalance was delayed
        self.advance(51)
        leader_id, follower_id = leader.response.member_id, follower.response.member_id
        assert leader.response.leader == leader_id
        shares = {leader_id: b"leader's", follower_id: b"follower's"}
        assert self.sync(leader_id, 1, shares).response.error_code is Errors.NONE
        assert self.sync(follower_id, 1).response.assignment == b"follower's"
        assert self.state == "Stable"
        return leader_id, follower_id

    def stable_dynamics(self, count: int, *, session: int = 500, rebalance: int = 500) -> list[str]:
        """That many dynamic members, Stable in generation 1; the leader first."""
        answers = [self.join(session=session, rebalance=rebalance) for _ in range(count)]
        while not all(answer.done for answer in answers):
            self.advance(51)
        ids = [answer.response.member_id for answer in answers]
        leader_id = answers[0].response.leader
        ids.sort(key=lambda member_id: member_id != leader_id)
        assert (
            self.sync(leader_id, 1, {m: m.encode() for m in ids}).response.error_code is Errors.NONE
        )
        for member_id in ids[1:]:
            assert self.sync(member_id, 1).response.assignment == member_id.encode()
        return ids
