"""Moves a group from one generation to the next: joins, syncs, sessions and their time-outs.

Source: the rebalance half of kafka.coordinator.group.GroupCoordinator. Every method is called with
the group's lock held, also by the timer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ..clock import Clock
from ..concurrency import Concurrency
from ..errors import Errors
from ..purgatory.deadline_timer import DeadlineTimer, TimerShare
from ..purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from .config import GroupConfig
from .delayed_operations import (
    DelayedHeartbeat,
    DelayedJoin,
    DelayedSync,
    GroupOperation,
    InitialDelayedJoin,
    join_key,
    member_key,
    sync_key,
)
from .group_metadata import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupMetadata,
)
from .group_metadata_manager import GroupMetadataManager
from .member_metadata import JoinCallback, MemberMetadata
from .messages import (
    UNKNOWN_MEMBER_ID,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)

GroupOperationT = TypeVar("GroupOperationT", bound=GroupOperation)
_SHARDS = 16
"""Watch lists with a lock of their own: groups are handled under one lock each anyway."""


class GroupRebalancer:
    """The rebalances of all groups of one coordinator."""

    def __init__(
        self,
        config: GroupConfig,
        manager: GroupMetadataManager,
        clock: Clock,
        concurrency: Concurrency,
    ) -> None:
        self._config = config
        self._manager = manager
        self.concurrency = concurrency
        self.timer = DeadlineTimer(clock, concurrency)
        self._heartbeats: DelayedOperationPurgatory[DelayedHeartbeat] = self._purgatory("Heartbeat")
        self._rebalances: DelayedOperationPurgatory[GroupOperation] = self._purgatory("Rebalance")

    def _purgatory(self, name: str) -> DelayedOperationPurgatory[GroupOperationT]:
        """One of two with one order of deadlines; the coordinator's own reaper expires both."""
        return DelayedOperationPurgatory(
            name, TimerShare(self.timer), self.concurrency, shards=_SHARDS, reaper_enabled=False
        )

    def expire_due(self) -> int:
        """Let all timers expire whose deadline has passed; return how many did."""
        expired = self.timer.expire_due()
        self._heartbeats.maybe_purge()
        self._rebalances.maybe_purge()
        return expired

    # -- the join phase

    def maybe_prepare_rebalance(self, group: GroupMetadata) -> None:
        """Begin a rebalance, if none is in its join phase."""
        if group.can_rebalance:
            self.prepare_rebalance(group)

    def prepare_rebalance(self, group: GroupMetadata) -> None:
        """Begin the join phase; who waits for an assignment has to join again."""
        if group.is_in(COMPLETING_REBALANCE):
            self.reset_and_propagate_assignment_error(group, Errors.REBALANCE_IN_PROGRESS)
        self._remove_sync_expiration(group)
        delayed_rebalance: DelayedJoin
        if group.is_in(EMPTY):
            delay_ms = self._config.group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            delayed_rebalance = InitialDelayedJoin(self, group, delay_ms, remaining_ms)
        else:
            delayed_rebalance = DelayedJoin(self, group, group.rebalance_timeout_ms)
        group.transition_to(PREPARING_REBALANCE)
        _watch(self._rebalances, delayed_rebalance)

    def extend_initial_join(
        self, group: GroupMetadata, remaining_ms: int, remaining_after_ms: int
    ) -> None:
        """Wait once more, but never beyond the rebalance time-out of the group's first members."""
        delay_ms = min(self._config.group_initial_rebalance_delay_ms, remaining_ms)
        _watch(self._rebalances, InitialDelayedJoin(self, group, delay_ms, remaining_after_ms))

    def check_and_complete_join(self, group: GroupMetadata) -> None:
        """End the join phase if there is one and nobody is left to wait for."""
        if group.is_in(PREPARING_REBALANCE):
            self._rebalances.check_and_complete(join_key(group.group_id))

    def try_complete_join(self, group: GroupMetadata, complete: Callable[[], bool]) -> bool:
        """See `RebalanceActions.try_complete_join`."""
        return group.has_all_members_joined and complete()

    def on_complete_join(self, group: GroupMetadata) -> None:
        """Begin the next generation, or wait on if only absent static members are left."""
        self._remove_dynamic_members_not_yet_rejoined(group)
        if group.is_in(DEAD):
            return
        if not group.maybe_elect_new_joined_leader() and group.members:
            _watch(self._rebalances, DelayedJoin(self, group, group.rebalance_timeout_ms))
            return
        group.init_next_generation()
        if group.is_in(EMPTY):
            # If this fails, the generation before comes back after a fail-over, and times out.
            self._manager.store_group(group, {}, lambda _error: None)
        else:
            self._propagate_generation(group)
            self._schedule_pending_sync(group)

    def _remove_dynamic_members_not_yet_rejoined(self, group: GroupMetadata) -> None:
        for member in group.not_yet_rejoined_members:
            if not member.is_static_member:
                self.remove(group, member.member_id)

    def _propagate_generation(self, group: GroupMetadata) -> None:
        """Answer the parked joins; sessions and syncs count for every member, joined or not."""
        for member in tuple(group.members.values()):
            is_leader = group.is_leader(member.member_id)
            response = group.join_response(member.member_id, with_members=is_leader)
            group.maybe_invoke_join_callback(member, response)
            self.complete_and_schedule_next_heartbeat_expiration(group, member)
            member.is_new = False
            group.add_pending_sync_member(member.member_id)

    # -- the sync phase

    def _schedule_pending_sync(self, group: GroupMetadata) -> None:
        _watch(self._rebalances, DelayedSync(self, group, group.rebalance_timeout_ms))

    def remove_pending_sync_member(self, group: GroupMetadata, member_id: str) -> None:
        """The member has sent its SyncGroup."""
        group.pending_sync_members.pop(member_id, None)
        self._rebalances.check_and_complete(sync_key(group.group_id))

    def _remove_sync_expiration(self, group: GroupMetadata) -> None:
        group.pending_sync_members.clear()
        self._rebalances.check_and_complete(sync_key(group.group_id))

    def try_complete_pending_sync(
        self, group: GroupMetadata, generation_id: int, complete: Callable[[], bool]
    ) -> bool:
        """See `RebalanceActions.try_complete_pending_sync`."""
        if generation_id != group.generation_id or group.is_in(DEAD, EMPTY, PREPARING_REBALANCE):
            return complete()
        return group.has_received_sync_from_all_members and complete()

    def on_expire_pending_sync(self, group: GroupMetadata, generation_id: int) -> None:
        """See `RebalanceActions.on_expire_pending_sync`."""
        if generation_id != group.generation_id or not group.is_in(COMPLETING_REBALANCE, STABLE):
            return
        if not group.has_received_sync_from_all_members:
            for member_id in tuple(group.pending_sync_members):
                self.remove(group, member_id)
            self.prepare_rebalance(group)

    def set_and_propagate_assignment(
        self, group: GroupMetadata, assignment: Mapping[str, bytes]
    ) -> None:
        """Give every member its share, and answer the parked syncs."""
        for member in group.members.values():
            member.assignment = assignment[member.member_id]
        self._propagate_assignment(group, Errors.NONE)

    def reset_and_propagate_assignment_error(self, group: GroupMetadata, error: Errors) -> None:
        """Take every member's share away, and answer the parked syncs with the error."""
        for member in group.members.values():
            member.assignment = b""
        self._propagate_assignment(group, error)

    def _propagate_assignment(self, group: GroupMetadata, error: Errors) -> None:
        for member in tuple(group.members.values()):
            if error is Errors.NONE:
                response = sync_response(group, member)
            else:
                response = SyncGroupResponse(error)
            if group.maybe_invoke_sync_callback(member, response):
                # While the sync was parked the session could run out without effect.
                self.complete_and_schedule_next_heartbeat_expiration(group, member)

    # -- members

    def add_member_and_rebalance(
        self,
        group: GroupMetadata,
        member_id: str,
        request: JoinGroupRequest,
        callback: JoinCallback,
    ) -> None:
        """Take a new member in, parked; its session is as long as a first JoinGroup may take."""
        member = MemberMetadata(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
        )
        member.is_new = True
        if group.is_in(PREPARING_REBALANCE) and group.generation_id == 0:
            group.new_member_added = True
        group.add(member, callback)
        self._complete_and_schedule_next_expiration(
            group, member, self._config.new_member_join_timeout_ms
        )
        self.maybe_prepare_rebalance(group)

    def update_member_and_rebalance(
        self,
        group: GroupMetadata,
        member: MemberMetadata,
        request: JoinGroupRequest,
        callback: JoinCallback,
    ) -> None:
        """A member joins again: park it and see that a rebalance is under way."""
        group.update_member(
            member,
            request.protocols,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            callback,
        )
        self.maybe_prepare_rebalance(group)

    def remove_member_and_update_group(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """A member leaves or fails: tell it if it waits, and rebalance without it."""
        gone = JoinGroupResponse(Errors.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID)
        group.maybe_invoke_join_callback(member, gone)
        self.remove(group, member.member_id)
        if group.is_in(STABLE, COMPLETING_REBALANCE):
            self.maybe_prepare_rebalance(group)
        else:
            self.check_and_complete_join(group)

    def remove_pending_member_and_update_group(self, group: GroupMetadata, member_id: str) -> None:
        """Nobody waits for the pending member any longer."""
        self.remove(group, member_id)
        self.check_and_complete_join(group)

    def remove(self, group: GroupMetadata, member_id: str) -> None:
        """Drop a member or a pending one together with its session."""
        group.remove(member_id)
        self._heartbeats.check_and_complete(member_key(group.group_id, member_id))

    # -- sessions

    def complete_and_schedule_next_heartbeat_expiration(
        self, group: GroupMetadata, member: MemberMetadata
    ) -> None:
        """The member is alive: its session starts again."""
        self._complete_and_schedule_next_expiration(group, member, member.session_timeout_ms)

    def _complete_and_schedule_next_expiration(
        self, group: GroupMetadata, member: MemberMetadata, timeout_ms: int
    ) -> None:
        member.heartbeat_satisfied = True
        self._heartbeats.check_and_complete(member_key(group.group_id, member.member_id))
        member.heartbeat_satisfied = False
        _watch(
            self._heartbeats,
            DelayedHeartbeat(self, group, timeout_ms, member.member_id, is_pending=False),
        )

    def add_pending_member_expiration(
        self, group: GroupMetadata, member_id: str, timeout_ms: int
    ) -> None:
        """Forget a pending member that does not join in time."""
        _watch(
            self._heartbeats, DelayedHeartbeat(self, group, timeout_ms, member_id, is_pending=True)
        )

    def complete_heartbeat_of_replaced_member(self, group: GroupMetadata, member_id: str) -> None:
        """An id that its instance no longer uses has no session."""
        self._heartbeats.check_and_complete(member_key(group.group_id, member_id))

    def try_complete_heartbeat(
        self,
        group: GroupMetadata,
        member_id: str,
        is_pending: bool,
        complete: Callable[[], bool],
    ) -> bool:
        """See `RebalanceActions.try_complete_heartbeat`."""
        if group.is_in(DEAD):
            return complete()
        if is_pending:
            over = group.has(member_id) or not group.is_pending_member(member_id)
        else:
            # KAFKA-8896: the member may be gone already.
            over = not group.has(member_id) or group.get(member_id).has_satisfied_heartbeat()
        return over and complete()

    def on_expire_heartbeat(self, group: GroupMetadata, member_id: str, is_pending: bool) -> None:
        """See `RebalanceActions.on_expire_heartbeat`."""
        if group.is_in(DEAD):
            return
        if is_pending:
            self.remove_pending_member_and_update_group(group, member_id)
        elif group.has(member_id):
            member = group.get(member_id)
            if not member.has_satisfied_heartbeat():
                self.remove_member_and_update_group(group, member)

    # -- loading and unloading

    def on_group_loaded(self, group: GroupMetadata) -> None:
        """Begin the sessions of a loaded group; one above the maximum size has to rebalance."""
        with group.lock:
            if group.size > self._config.group_max_size:
                self.prepare_rebalance(group)
            for member in group.members.values():
                self.complete_and_schedule_next_heartbeat_expiration(group, member)

    def on_group_unloaded(self, group: GroupMetadata) -> None:
        """The group has moved: answer whom it keeps waiting, and forget its timers."""
        with group.lock:
            group.transition_to(DEAD)
            for member in tuple(group.members.values()):
                moved = Errors.NOT_COORDINATOR
                group.maybe_invoke_join_callback(member, JoinGroupResponse(moved, member.member_id))
                group.maybe_invoke_sync_callback(member, SyncGroupResponse(moved))
            self.forget_timers(group)

    def forget_timers(self, group: GroupMetadata) -> None:
        """Drop all delayed operations of a Dead group, which would expire without effect."""
        self._rebalances.cancel_for_key(join_key(group.group_id))
        self._rebalances.cancel_for_key(sync_key(group.group_id))
        for member_id in (*group.members, *group.pending_members):
            self._heartbeats.check_and_complete(member_key(group.group_id, member_id))


def _watch(
    purgatory: DelayedOperationPurgatory[GroupOperationT], operation: GroupOperationT
) -> None:
    """Complete the operation, or keep it under its one key."""
    purgatory.try_complete_else_watch(operation, (operation.key,))


def sync_response(group: GroupMetadata, member: MemberMetadata) -> SyncGroupResponse:
    """The member's share of the current generation."""
    return SyncGroupResponse(
        Errors.NONE, group.protocol_type, group.protocol_name, member.assignment
    )
