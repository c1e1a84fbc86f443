"""A member's own state: generation, rejoin flags, and the resets between them.

Source: the fields that AbstractCoordinator's monitor guards.
"""

from __future__ import annotations

import logging

from impl.errors import Errors
from impl.group.client.buffer import ByteBuffer
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.generation import NO_GENERATION, Generation, MemberState
from impl.group.client.heartbeat import Heartbeat
from impl.group.client.heartbeat_thread import HeartbeatThread
from impl.group.client.network_client import ConsumerNetworkClient
from impl.group.client.request_future import RequestFuture
from impl.group.messages import UNKNOWN_GENERATION_ID

_log = logging.getLogger(__name__)


class GroupMember:
    """State of one member; `lock` guards it, against the heartbeat thread above all.

    `needs_join_prepare`: the next join calls `on_join_prepare` first, so that it alternates with
    `on_join_complete`. `join_future` lives until its result has been delivered.
    """

    def __init__(
        self, config: GroupRebalanceConfig, network: ConsumerNetworkClient, runtime: MemberRuntime
    ) -> None:
        self.config = config
        self.network = network
        self._runtime = runtime
        self.lock = runtime.concurrency.lock("coordinator")
        self.changed = self.lock.new_condition()
        self.retry_backoff = runtime.backoff(config)
        self.heartbeat = Heartbeat(config, runtime.clock, self.retry_backoff)
        self.heartbeat_thread: HeartbeatThread | None = None
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION
        self.rejoin_needed = True
        self.rejoin_reason = ""
        self.needs_join_prepare = True
        self.join_future: RequestFuture[ByteBuffer] | None = None

    def now_ms(self) -> int:
        """The time of the injected clock."""
        return self._runtime.clock.milliseconds()

    def poll_no_wakeup(self) -> None:
        """Send and call back what is ready."""
        self.network.poll_no_wakeup()

    def wait_backoff(self) -> None:
        """Wait until the state changes, at most for the retry back-off."""
        self.changed.wait(self.config.retry_backoff_ms)

    @property
    def is_dynamic_member(self) -> bool:
        """Whether the member has no group.instance.id (KIP-345)."""
        return self.config.group_instance_id is None

    @property
    def rebalance_in_progress(self) -> bool:
        """Whether a join or a sync is under way."""
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    def generation_if_stable(self) -> Generation | None:
        """The generation, while its assignment may be used."""
        with self.lock:
            return self.generation if self.state is MemberState.STABLE else None

    @staticmethod
    def has_generation_reset(generation: Generation) -> bool:
        """Whether the member has left the generation; it may have kept its id."""
        return generation.generation_id == UNKNOWN_GENERATION_ID

    def generation_unchanged(self, sent_generation: Generation) -> bool:
        """Whether the member is still in the generation in which a request was sent."""
        with self.lock:
            return self.generation == sent_generation

    def rejoin_needed_or_pending(self) -> bool:
        """Whether the member must join, or has a join whose result is not delivered."""
        with self.lock:
            return self.rejoin_needed or self.join_future is not None

    def request_rejoin(self, reason: str) -> None:
        """Join at the next poll; the join request carries the reason (KIP-800)."""
        with self.lock:
            _log.info("Request joining group due to: %s", reason)
            self.rejoin_reason = reason
            self.rejoin_needed = True

    def request_rejoin_if_necessary(self, reason: str) -> None:
        """Keep the reason of a rejoin that is already asked for."""
        with self.lock:
            if not self.rejoin_needed:
                self.request_rejoin(reason)

    def reset_join_group_future(self) -> None:
        """Forget the join: its result is delivered, or dead."""
        with self.lock:
            self.join_future = None

    def reset_generation(self) -> None:
        """Leave the generation, member id included."""
        self.reset_generation_on_leave_group()

    def reset_generation_on_leave_group(self) -> None:
        """The member leaves on its own."""
        self.reset_state_and_rejoin("consumer pro-actively leaving the group", True)

    def reset_generation_on_response_error(self, api: str, error: Errors) -> None:
        """The coordinator has put the member out; ILLEGAL_GENERATION leaves the id valid.

        Source: KAFKA-13419. A new id would make a second member until the session times out.
        """
        should_reset_member_id = error != Errors.ILLEGAL_GENERATION
        self.reset_state_and_rejoin(f"encountered {error.name} from {api}", should_reset_member_id)

    def reset_state_and_rejoin(self, reason: str, should_reset_member_id: bool) -> None:
        """Be UNJOINED, and prepare for a new join."""
        with self.lock:
            self._reset_state_and_generation(should_reset_member_id)
            self.request_rejoin(reason)
            self.needs_join_prepare = True

    def _reset_state_and_generation(self, should_reset_member_id: bool) -> None:
        self.state = MemberState.UNJOINED
        if should_reset_member_id:
            self.generation = NO_GENERATION
        else:
            self.generation = Generation(UNKNOWN_GENERATION_ID, self.generation.member_id, None)
