"""The group coordinator: every request of the group protocol, loading, unloading and its timers.

Source: kafka.coordinator.group.GroupCoordinator. Parked answers come through callbacks, which must
not call the coordinator: like Kafka's, all but the heartbeat's run with the group's lock held.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Collection

from ..clock import Clock
from ..concurrency import Concurrency, NoConcurrency
from ..errors import Errors
from ..scheduler import ImmediateScheduler, Scheduler
from .administration import delete_group, describe_group
from .config import GroupConfig
from .delayed_operations import GroupOperation
from .group_metadata import (
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    GroupMetadata,
)
from .group_metadata_manager import GroupMetadataManager
from .join_group import JoinGroupHandler, MemberIdSource
from .leave_group import leave_group
from .member_metadata import JoinCallback, SyncCallback
from .messages import (
    UNKNOWN_MEMBER_ID,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
)
from .offset_handler import CommitCallback, OffsetHandler, commit_error
from .offsets_topic import OffsetsTopic
from .rebalancer import GroupRebalancer
from .sync_group import SyncGroupHandler
from .validation import validate_generation

_log = logging.getLogger(__name__)

REAPER_POLL_MS = 200
"""How long the reaper sleeps at most between two looks at the timer (ExpiredOperationReaper)."""


def seeded_ids(seed: int) -> MemberIdSource:
    """Random UUIDs, the same for the same seed."""
    source = random.Random(seed)
    return lambda: str(uuid.UUID(int=source.getrandbits(128), version=4))


class GroupCoordinator:
    """Coordinates the groups of the offsets partitions that this broker leads.

    Nothing happens by itself but what the reaper thread of `startup` does with real threads; a
    single caller lists `timers()` and lets them `fire`, or moves the clock and calls `expire_due`.
    """

    def __init__(
        self,
        topic: OffsetsTopic,
        clock: Clock,
        *,
        unique_id: MemberIdSource,
        config: GroupConfig | None = None,
        concurrency: Concurrency | None = None,
        scheduler: Scheduler | None = None,
        broker_id: int = 0,
    ) -> None:
        self.config = config or GroupConfig()
        self.broker_id = broker_id
        self._clock = clock
        self._concurrency = concurrency or NoConcurrency()
        scheduler = scheduler or ImmediateScheduler()
        self.manager = GroupMetadataManager(topic, self.config, clock, self._concurrency, scheduler)
        self._rebalancer = GroupRebalancer(self.config, self.manager, clock, self._concurrency)
        self._joins = JoinGroupHandler(self.config, self.manager, self._rebalancer, unique_id)
        self._syncs = SyncGroupHandler(self.manager, self._rebalancer)
        self._offsets = OffsetHandler(self.config, self.manager, self._rebalancer, clock, scheduler)
        self._is_active = False
        self._stopped = self._concurrency.event("group-coordinator-stopped")

    # -- life

    def startup(self) -> None:
        """Answer requests from now on, and let a thread run what the timer has due."""
        self._is_active = True
        name = f"ExpirationReaper-{self.broker_id}-Group"
        self._concurrency.thread(name, self._reap).start()

    def shutdown(self) -> None:
        """Answer COORDINATOR_NOT_AVAILABLE from now on; what is parked stays parked."""
        self._is_active = False
        self._stopped.set()

    def _reap(self) -> None:
        while not self._stopped.wait(self._milliseconds_to_sleep()):
            try:
                self.expire_due()
            except Exception as error:  # noqa: BLE001 - one timer's failure is not the others'
                _log.error("a timer of a group failed", exc_info=error)

    def _milliseconds_to_sleep(self) -> int:
        deadline = self._rebalancer.timer.next_deadline_ms()
        if deadline is None:
            return REAPER_POLL_MS
        return min(max(deadline + 1 - self._clock.milliseconds(), 1), REAPER_POLL_MS)

    def timers(self) -> tuple[GroupOperation, ...]:
        """All that waits for time to pass, the next due first."""
        pending = self._rebalancer.timer.pending()
        return tuple(operation for operation in pending if isinstance(operation, GroupOperation))

    def fire(self, operation: GroupOperation) -> bool:
        """Let one timer expire now, whatever the clock says. False if it is over already."""
        return operation.is_scheduled and operation.run()

    def expire_due(self) -> int:
        """Let all timers expire whose deadline has passed; return how many did."""
        return self._rebalancer.expire_due()

    def on_election(self, partition: int, coordinator_epoch: int) -> None:
        """This broker leads an offsets partition from this epoch on: load its groups."""
        self.manager.schedule_load_group_and_offsets(
            partition, coordinator_epoch, self._rebalancer.on_group_loaded
        )

    def on_resignation(self, partition: int, coordinator_epoch: int | None) -> None:
        """This broker no longer leads the partition (None: it is deleted): unload its groups."""
        self.manager.remove_groups_for_partition(
            partition, coordinator_epoch, self._rebalancer.on_group_unloaded
        )

    def group(self, group_id: str) -> GroupMetadata | None:
        """The group's state, for tests and tools; read it with its lock held."""
        return self.manager.get_group(group_id)

    def _validate_group_status(
        self, group_id: str | None, *, may_be_empty: bool = False
    ) -> Errors | None:
        """What bars any request of the group, in order of precedence."""
        if group_id is None or (group_id == "" and not may_be_empty):
            return Errors.INVALID_GROUP_ID
        if not self._is_active:
            return Errors.COORDINATOR_NOT_AVAILABLE
        if self.manager.is_group_loading(group_id):
            return Errors.COORDINATOR_LOAD_IN_PROGRESS
        if not self.manager.is_group_local(group_id):
            return Errors.NOT_COORDINATOR
        return None

    # -- JoinGroup

    def handle_join_group(self, request: JoinGroupRequest, callback: JoinCallback) -> None:
        """Answered at once with an error, an id or the current generation; else parked."""
        error = self._validate_group_status(request.group_id)
        if error is None:
            error = self._validate_session_timeout(request.session_timeout_ms)
        if error is not None:
            callback(JoinGroupResponse(error, request.member_id))
            return
        is_unknown_member = request.member_id == UNKNOWN_MEMBER_ID
        is_new_group = self.manager.get_group(request.group_id) is None
        group = self.manager.get_or_maybe_create_group(request.group_id, is_unknown_member)
        if group is None:
            callback(JoinGroupResponse(Errors.UNKNOWN_MEMBER_ID, request.member_id))
        elif is_new_group and self.config.record_new_groups:
            self._record_new_group(group, request, callback)
        else:
            with group.lock:
                self._joins.join(group, request, callback)

    def _validate_session_timeout(self, session_timeout_ms: int) -> Errors | None:
        low = self.config.group_min_session_timeout_ms
        high = self.config.group_max_session_timeout_ms
        return None if low <= session_timeout_ms <= high else Errors.INVALID_SESSION_TIMEOUT

    def _record_new_group(
        self, group: GroupMetadata, request: JoinGroupRequest, callback: JoinCallback
    ) -> None:
        """Write the Empty group before its first member joins; without the record no group."""

        def stored(error: Errors) -> None:
            with group.lock:
                if error is Errors.NONE:
                    self._joins.join(group, request, callback)
                    return
                group.transition_to(DEAD)
                self.manager.remove_group(group)
                callback(JoinGroupResponse(error, request.member_id))

        with group.lock:
            self.manager.store_group(group, {}, stored)

    # -- SyncGroup

    def handle_sync_group(self, request: SyncGroupRequest, callback: SyncCallback) -> None:
        """Answered at once with an error or the assignment; parked until the leader assigns."""
        error = self._validate_group_status(request.group_id)
        if error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
            # Loading means that the rebalance is lost: let the member join again.
            error = Errors.REBALANCE_IN_PROGRESS
        group = self.manager.get_group(request.group_id)
        if error is None and group is None:
            error = Errors.UNKNOWN_MEMBER_ID
        if error is not None or group is None:
            callback(SyncGroupResponse(error or Errors.UNKNOWN_MEMBER_ID))
            return
        with group.lock:
            self._syncs.sync(group, request, callback)

    # -- Heartbeat

    def handle_heartbeat(
        self, request: HeartbeatRequest, callback: Callable[[HeartbeatResponse], None]
    ) -> None:
        """Answered at once; the callback runs without the group's lock (KAFKA-13134)."""
        error = self._validate_group_status(request.group_id)
        if error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
            error = Errors.NONE
        elif error is None:
            group = self.manager.get_group(request.group_id)
            if group is None:
                error = Errors.UNKNOWN_MEMBER_ID
            else:
                with group.lock:
                    error = self._heartbeat(group, request)
        callback(HeartbeatResponse(error))

    def _heartbeat(self, group: GroupMetadata, request: HeartbeatRequest) -> Errors:
        error = validate_generation(
            group, request.generation_id, request.member_id, request.group_instance_id
        )
        if error is not None:
            return error
        if group.is_in(EMPTY):
            return Errors.UNKNOWN_MEMBER_ID
        member = group.get(request.member_id)
        self._rebalancer.complete_and_schedule_next_heartbeat_expiration(group, member)
        if group.is_in(PREPARING_REBALANCE):
            return Errors.REBALANCE_IN_PROGRESS
        return Errors.NONE

    # -- LeaveGroup

    def handle_leave_group(
        self, request: LeaveGroupRequest, callback: Callable[[LeaveGroupResponse], None]
    ) -> None:
        """Answered at once, with one result per member."""
        error = self._validate_group_status(request.group_id)
        if error is not None:
            callback(LeaveGroupResponse(error))
            return
        group = self.manager.get_group(request.group_id)
        if group is None:
            unknown = tuple(_left(each, Errors.UNKNOWN_MEMBER_ID) for each in request.members)
            callback(LeaveGroupResponse(Errors.NONE, unknown))
            return
        with group.lock:
            if group.is_in(DEAD):
                callback(LeaveGroupResponse(Errors.COORDINATOR_NOT_AVAILABLE))
                return
            left = tuple(
                _left(each, leave_group(group, each, self._rebalancer)) for each in request.members
            )
            callback(LeaveGroupResponse(Errors.NONE, left))

    # -- offsets

    def handle_commit_offsets(self, request: OffsetCommitRequest, callback: CommitCallback) -> None:
        """Answered when the positions are in the log."""
        error = self._validate_group_status(request.group_id, may_be_empty=True)
        group = None
        if error is None:
            outside_groups = request.generation_id < 0
            group = self.manager.get_or_maybe_create_group(request.group_id, outside_groups)
            error = Errors.ILLEGAL_GENERATION if group is None else None
        if group is not None:
            self._offsets.commit(group, request, callback)
        elif error is not None:
            callback(commit_error(request.partitions, error))

    def handle_txn_commit_offsets(
        self, request: TxnOffsetCommitRequest, callback: CommitCallback
    ) -> None:
        """Answered when the positions are in the log; they show after the transaction."""
        error = self._validate_group_status(request.group_id)
        if error is not None:
            callback(commit_error(request.partitions, error))
            return
        group = self.manager.get_or_maybe_create_group(request.group_id, create=True)
        if group is not None:
            self._offsets.txn_commit(group, request, callback)

    def handle_txn_completion(
        self, producer_id: int, partitions: Collection[int], is_commit: bool
    ) -> None:
        """A producer's transaction ended on these partitions of the offsets topic."""
        self._offsets.handle_txn_completion(producer_id, partitions, is_commit)

    def handle_fetch_offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """Committed positions, whatever the group's state."""
        error = self._validate_group_status(request.group_id, may_be_empty=True)
        if error is not None:
            return OffsetFetchResponse(error)
        found = self._offsets.fetch(request.group_id, request.partitions, request.require_stable)
        return OffsetFetchResponse(Errors.NONE, found)

    def handle_delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Positions of topics that members subscribe to stay."""
        error = self._validate_group_status(request.group_id)
        if error is not None:
            return OffsetDeleteResponse(error)
        group = self.manager.get_group(request.group_id)
        if group is not None:
            return self._offsets.delete(group, request.partitions)
        absent = self.manager.group_not_exists(request.group_id)
        return OffsetDeleteResponse(Errors.GROUP_ID_NOT_FOUND if absent else Errors.NOT_COORDINATOR)

    def cleanup_expired_offsets(self) -> int:
        """Drop what the retention is over for; return how many positions that was."""
        return self._offsets.cleanup_expired_offsets()

    # -- administration

    def handle_describe_groups(self, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        """An absent group is Dead, without an error."""
        return DescribeGroupsResponse(
            tuple(self._describe(group_id) for group_id in request.groups)
        )

    def _describe(self, group_id: str) -> DescribedGroup:
        error = self._validate_group_status(group_id, may_be_empty=True)
        if error is not None:
            return DescribedGroup(error, group_id, "")
        group = self.manager.get_group(group_id)
        if group is None:
            return DescribedGroup(Errors.NONE, group_id, DEAD.value)
        return describe_group(group)

    def handle_delete_groups(self, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        """Only groups without members can be deleted."""
        names = dict.fromkeys(request.groups_names)
        return DeleteGroupsResponse(
            tuple(DeletableGroupResult(name, self._delete(name)) for name in names)
        )

    def _delete(self, group_id: str) -> Errors:
        error = self._validate_group_status(group_id, may_be_empty=True)
        if error is not None:
            return error
        group = self.manager.get_group(group_id)
        error = None if group is None else delete_group(group, self.manager, self._rebalancer)
        if error is not None:
            return error
        absent = self.manager.group_not_exists(group_id)
        return Errors.GROUP_ID_NOT_FOUND if absent else Errors.NOT_COORDINATOR


def _left(leaving: MemberIdentity, error: Errors) -> LeaveGroupMemberResponse:
    return LeaveGroupMemberResponse(leaving.member_id, leaving.group_instance_id, error)
