"""One member of a group: joins, heartbeats, leaves (AbstractCoordinator).

Kinds of groups fill in `metadata`, `perform_assignment`, `on_join_prepare`, `on_join_complete`.
"""

from __future__ import annotations

import logging
from abc import abstractmethod

from impl.errors import Errors, KafkaException
from impl.group.client.buffer import ByteBuffer
from impl.group.client.errors import (
    IllegalGenerationException,
    MemberIdRequiredException,
    RebalanceInProgressException,
    UnknownMemberIdException,
)
from impl.group.client.generation import Generation, MemberState
from impl.group.client.group_joiner import GroupJoiner
from impl.group.client.heartbeat_thread import HeartbeatThread
from impl.group.client.request_future import RequestFuture
from impl.group.client.timer import FOREVER_MS, Timer
from impl.group.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

_log = logging.getLogger(__name__)

_REJOIN_AT_ONCE = (
    UnknownMemberIdException,
    IllegalGenerationException,
    RebalanceInProgressException,
    MemberIdRequiredException,
)


class AbstractCoordinator(GroupJoiner):
    """Drives a member. One application thread; `heartbeat_thread` is the only other one.

    Every blocking method takes a timer: with `timer(0)` it does what can be done now, and a later
    call goes on from there. So a driver can take a member through its protocol step by step.
    """

    @abstractmethod
    def on_join_prepare(self, timer: Timer, generation_id: int, member_id: str) -> bool:
        """Before each join, once per rebalance; False: not ready, to be called again."""

    @abstractmethod
    def on_join_complete(
        self, generation_id: int, member_id: str, protocol: str, assignment: ByteBuffer
    ) -> None:
        """The member's assignment; if this raises, the same assignment is delivered again."""

    def on_leave_prepare(self) -> None:
        """Before the member leaves as it closes."""

    # Joining.

    def ensure_active_group(self, timer: Timer | None = None) -> bool:
        """Be in the group, with an assignment delivered; without a timer, however long it takes."""
        if timer is not None:
            return self._ensure_active_group(timer)
        while not self._ensure_active_group(self._runtime.timer(FOREVER_MS)):
            _log.warning("still waiting to ensure active group")
        return True

    def _ensure_active_group(self, timer: Timer) -> bool:
        if not self.ensure_coordinator_ready(timer):
            return False
        self.start_heartbeat_thread_if_needed()
        return self.join_group_if_needed(timer)

    def join_group_if_needed(self, timer: Timer) -> bool:
        """Join until nothing calls for another join; False if time ran out or prepare must wait.

        Raises what is neither retriable nor cured by joining again, and what the callbacks raise.
        """
        attempts = 0
        while self.rejoin_needed_or_pending():
            if not self.ensure_coordinator_ready(timer):
                return False
            if not self._prepare_join(timer):
                return False
            future = self.initiate_join_group()
            if not self.network.poll(future, timer):
                return False
            if future.succeeded:
                self._complete_join(future)
            elif self._must_back_off_after(future):
                if timer.is_expired:
                    return False
                timer.sleep(self.retry_backoff.backoff(attempts))
                attempts += 1
        return True

    def _prepare_join(self, timer: Timer) -> bool:
        """Call `on_join_prepare` unless this rebalance has had it."""
        if not self.needs_join_prepare:
            return True
        self.needs_join_prepare = False
        if not self.on_join_prepare(
            timer, self.generation.generation_id, self.generation.member_id
        ):
            self.needs_join_prepare = True
            return False
        return True

    def _complete_join(self, future: RequestFuture[ByteBuffer]) -> None:
        """Deliver the assignment, unless the heartbeat thread has put the member out meanwhile."""
        with self.lock:
            generation, state = self.generation, self.state
        if self.has_generation_reset(generation) or state is not MemberState.STABLE:
            self.reset_state_and_rejoin("generation or state changed before the callback", True)
            self.reset_join_group_future()
            return
        self.on_join_complete(
            generation.generation_id,
            generation.member_id,
            generation.protocol_name or "",
            future.value.duplicate(),
        )
        self.reset_join_group_future()
        self.needs_join_prepare = True

    def _must_back_off_after(self, future: RequestFuture[ByteBuffer]) -> bool:
        """A join has failed: ask for another. False: at once. Raises if no join will cure it."""
        error = future.exception
        self.reset_join_group_future()
        if not isinstance(error, MemberIdRequiredException):
            self.request_rejoin(f"rebalance failed due to {type(error).__name__}")
        if isinstance(error, _REJOIN_AT_ONCE):
            return False
        if not future.is_retriable:
            raise error
        return True

    # Heartbeats.

    def start_heartbeat_thread_if_needed(self) -> None:
        """Start the thread; it sends nothing before the first join succeeds."""
        with self.lock:
            if self.heartbeat_thread is None:
                self.heartbeat_thread = HeartbeatThread(
                    f"heartbeat-{self.config.group_id}", self, self._runtime.concurrency
                )
                self.heartbeat_thread.start()

    def poll_heartbeat(self, now_ms: int) -> None:
        """The application polls. Raises, once, what ended the heartbeat thread."""
        with self.lock:
            thread = self.heartbeat_thread
            if thread is None:
                return
            if thread.failure is not None:
                self.heartbeat_thread = None
                thread.close()
                raise thread.failure
            if self.heartbeat.should_heartbeat(now_ms):
                self.changed.notify_all()
            self.heartbeat.poll(now_ms)

    def time_to_next_heartbeat(self, now_ms: int) -> int:
        """Milliseconds until a heartbeat is due; forever if in no generation.

        Raises what ended the heartbeat thread.
        """
        with self.lock:
            thread = self.heartbeat_thread
            if thread is not None and thread.failure is not None:
                raise thread.failure
            if self.state.has_not_joined_group:
                return FOREVER_MS
            return self.heartbeat.time_to_next_heartbeat(now_ms)

    def send_heartbeat_request(self) -> RequestFuture[None]:
        """Send a heartbeat of the current generation."""
        with self.lock:
            request = HeartbeatRequest(
                self.config.group_id,
                self.generation.generation_id,
                self.generation.member_id,
                self.config.group_instance_id,
            )
            return self.send_to_coordinator(
                request, HeartbeatResponse, self.on_heartbeat_response, self.generation
            )

    def on_heartbeat_response(
        self, response: HeartbeatResponse, sent: Generation, future: RequestFuture[None]
    ) -> None:
        """Act on an answer; those to a generation that is over are ignored."""
        error = response.error_code
        match error:
            case Errors.NONE:
                future.complete(None)
            case Errors.COORDINATOR_NOT_AVAILABLE | Errors.NOT_COORDINATOR:
                self.mark_coordinator_unknown(error.name)
                future.raise_error(error)
            case Errors.REBALANCE_IN_PROGRESS:
                self._on_heartbeat_rebalance(future)
            case Errors.ILLEGAL_GENERATION | Errors.UNKNOWN_MEMBER_ID | Errors.FENCED_INSTANCE_ID:
                if self.generation_unchanged(sent):
                    self.reset_generation_on_response_error("Heartbeat", error)
                    future.raise_error(error)
                else:
                    future.complete(None)
            case Errors.GROUP_AUTHORIZATION_FAILED:
                future.raise_error(error)
            case _:
                future.fail(KafkaException(f"Unexpected error in heartbeat response: {error.name}"))

    def _on_heartbeat_rebalance(self, future: RequestFuture[None]) -> None:
        with self.lock:
            if self.state is MemberState.STABLE:
                self.request_rejoin("group is already rebalancing")
                future.raise_error(Errors.REBALANCE_IN_PROGRESS)
            else:
                # The member takes part in that rebalance already.
                future.complete(None)

    # Leaving.

    def maybe_leave_group(self, reason: str) -> RequestFuture[None] | None:
        """Leave, and forget the generation; only a dynamic member tells the coordinator."""
        with self.lock:
            future = None
            if (
                self.is_dynamic_member
                and not self.coordinator_unknown()
                and self.state is not MemberState.UNJOINED
                and self.generation.has_member_id
            ):
                future = self._send_leave_group_request(reason)
                self.network.poll_no_wakeup()
            self.reset_generation_on_leave_group()
            return future

    def _send_leave_group_request(self, reason: str) -> RequestFuture[None]:
        member = MemberIdentity(self.generation.member_id, self.config.group_instance_id, reason)
        request = LeaveGroupRequest(self.config.group_id, (member,))
        return self.send_to_coordinator(
            request, LeaveGroupResponse, self.on_leave_group_response, self.generation
        )

    def on_leave_group_response(
        self, response: LeaveGroupResponse, _sent: Generation, future: RequestFuture[None]
    ) -> None:
        """Complete, or fail with the first error."""
        errors = (response.error_code, *(member.error_code for member in response.members))
        failed = next((error for error in errors if error != Errors.NONE), None)
        if failed is None:
            future.complete(None)
        else:
            future.raise_error(failed)

    def close(self, timer: Timer) -> None:
        """End the heartbeat thread, leave if configured, wait for what is in flight."""
        try:
            self._close_heartbeat_thread()
        finally:
            with self.lock:
                if self.config.leave_group_on_close:
                    self.on_leave_prepare()
                    self.maybe_leave_group("the consumer is being closed")
                coordinator = self.check_and_get_coordinator()
            if coordinator is not None:
                self.network.await_pending_requests(coordinator, timer)

    def _close_heartbeat_thread(self) -> None:
        with self.lock:
            thread, self.heartbeat_thread = self.heartbeat_thread, None
        if thread is not None:
            thread.close()
            thread.join()
