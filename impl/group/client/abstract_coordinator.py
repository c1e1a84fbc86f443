"""One member of a group: finds its coordinator, joins, syncs, heartbeats, leaves.

Source: AbstractCoordinator of Kafka's clients; KAFKA-10793 and KAFKA-13917 for the look-up.
Kinds of groups fill in `metadata`, `perform_assignment`, `on_join_prepare`, `on_join_complete`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from ...errors import Errors, IllegalStateException, KafkaException
from ...types import BrokerEndPoint
from ..messages import (
    UNKNOWN_GENERATION_ID,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from .buffer import ByteBuffer
from .config import GroupRebalanceConfig, MemberRuntime
from .coordinator_metrics import GroupCoordinatorMetrics
from .errors import (
    CoordinatorNotAvailableException,
    DisconnectException,
    IllegalGenerationException,
    MemberIdRequiredException,
    NoAvailableBrokersException,
    RebalanceInProgressException,
    UnjoinedGroupException,
    UnknownMemberIdException,
    exception_of,
    is_retriable,
)
from .generation import NO_GENERATION, Generation, MemberState
from .heartbeat import Heartbeat
from .heartbeat_thread import HeartbeatThread
from .network_client import ConsumerNetworkClient, GroupRequest, GroupResponse
from .request_future import RequestFuture
from .sensors import ClientMetrics
from .timer import FOREVER_MS, Timer

_log = logging.getLogger(__name__)

INT_MAX = 2**31 - 1
JOIN_GROUP_TIMEOUT_LAPSE_MS = 5_000
"""What a join may take beyond the rebalance time-out before its connection is given up."""
MAX_REASON_LENGTH = 255

ResponseT = TypeVar("ResponseT", bound=GroupResponse)
ResultT = TypeVar("ResultT")

_NO_REBALANCE = -1
_REJOIN_AT_ONCE = (
    UnknownMemberIdException,
    IllegalGenerationException,
    RebalanceInProgressException,
    MemberIdRequiredException,
)


def _untimed(_response: object, _latency_ms: int) -> None:
    """No sensor is there for it."""


class AbstractCoordinator(ABC):
    """Drives a member. One application thread; `heartbeat_thread` is the only other one.

    Every blocking method takes a timer: with `timer(0)` it does what can be done now, and a later
    call goes on from there. So a driver can take a member through its protocol step by step.

    `lock` guards the member's state, against the heartbeat thread above all. `needs_join_prepare`:
    the next join calls `on_join_prepare` first, so that it alternates with `on_join_complete`.
    `join_future` lives until its result has been delivered.
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
        self._coordinator: BrokerEndPoint | None = None
        self._find_coordinator_future: RequestFuture[None] | None = None
        self._fatal_find_coordinator_error: Exception | None = None
        self._last_rebalance_start_ms = _NO_REBALANCE
        self.last_rebalance_end_ms: int | None = None
        self.metrics = ClientMetrics(runtime.clock, config.client_id)
        self.sensors = GroupCoordinatorMetrics(self.metrics, self)

    # The contract that a kind of group fills in.

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """The kind of group, `consumer` for example."""

    @abstractmethod
    def metadata(self) -> tuple[JoinGroupRequestProtocol, ...]:
        """The protocols that this member supports, the preferred one first."""

    @abstractmethod
    def perform_assignment(
        self,
        leader_id: str,
        protocol: str,
        members: tuple[JoinGroupResponseMember, ...],
        skip_assignment: bool,
    ) -> Mapping[str, bytes]:
        """This member leads: each member id's assignment (onLeaderElected in trunk)."""

    @abstractmethod
    def on_join_prepare(self, timer: Timer, generation_id: int, member_id: str) -> bool:
        """Before each join, once per rebalance; False: not ready, to be called again."""

    @abstractmethod
    def on_join_complete(
        self, generation_id: int, member_id: str, protocol: str, assignment: ByteBuffer
    ) -> None:
        """The member's assignment; if this raises, the same assignment is delivered again."""

    def on_leave_prepare(self) -> None:  # noqa: B027 - most kinds of groups have nothing to do
        """Before the member leaves as it closes."""

    # The member's own state: generation, rejoin flags, and the resets between them.

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
    def last_heartbeat_send_ms(self) -> int | None:
        """When the last heartbeat was sent; None before the first one."""
        return self.heartbeat.last_heartbeat_send_ms

    @property
    def is_dynamic_member(self) -> bool:
        """Whether the member has no group.instance.id (KIP-345)."""
        return self.config.group_instance_id is None

    @property
    def rebalance_in_progress(self) -> bool:
        """Whether a join or a sync is under way."""
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

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

    # The coordinator: looked up, and given up.

    def coordinator_unknown(self) -> bool:
        """Whether there is no coordinator that can be reached."""
        return self.check_and_get_coordinator() is None

    def check_and_get_coordinator(self) -> BrokerEndPoint | None:
        """The coordinator, unless its connection has failed. Its node id names the connection."""
        with self.lock:
            if self._coordinator is not None and self.network.is_unavailable(self._coordinator):
                self.mark_coordinator_unknown("coordinator unavailable", is_disconnected=True)
            return self._coordinator

    def mark_coordinator_unknown(self, cause: str, is_disconnected: bool = False) -> None:
        """Give up the coordinator; its pending requests fail at the next poll.

        Not in this call: their callbacks come here again (KAFKA-6366).
        """
        with self.lock:
            old, self._coordinator = self._coordinator, None
            if old is not None and not is_disconnected:
                _log.info("Group coordinator %s is unavailable or invalid due to %s", old, cause)
                self.network.disconnect_async(old)

    def ensure_coordinator_ready_async(self) -> bool:
        """Begin a look-up if one is needed, without waiting; True iff the coordinator is known."""
        return self.ensure_coordinator_ready(self._runtime.timer(0), disable_wakeup=True)

    def ensure_coordinator_ready(self, timer: Timer, disable_wakeup: bool = False) -> bool:
        """Look up until the coordinator is known or the timer expires; True iff known.

        Raises a fatal failure of this look-up, or of one that the heartbeat thread made, once.
        """
        attempts = 0
        while self.coordinator_unknown():
            self._raise_fatal_error()
            future = self.lookup_coordinator()
            if not self.network.poll(future, timer, disable_wakeup):
                break
            if self._must_back_off(future):
                timer.sleep(self.retry_backoff.backoff(attempts))
                attempts += 1
                self.network.await_metadata_update(timer)
            self._clear_find_coordinator_future(future)
            if future.failed and not future.is_retriable:
                self._fatal_find_coordinator_error = None
                raise future.exception
            if timer.is_expired:
                break
        return not self.coordinator_unknown()

    def lookup_coordinator(self) -> RequestFuture[None]:
        """The look-up in progress, or a new one. Without a broker to ask it fails at once."""
        with self.lock:
            if self._find_coordinator_future is None:
                node = self.network.least_loaded_node()
                if node is None:
                    return RequestFuture.failure(NoAvailableBrokersException("no broker to ask"))
                self._find_coordinator_future = self._send_find_coordinator_request(node)
            return self._find_coordinator_future

    def discover_coordinator(self) -> None:
        """The heartbeat thread's share: forget a look-up that is over, else begin one."""
        with self.lock:
            future = self._find_coordinator_future
            if future is not None and future.is_done:
                self._clear_find_coordinator_future(future)
            else:
                self.lookup_coordinator()

    def _must_back_off(self, future: RequestFuture[None]) -> bool:
        if future.failed:
            return future.is_retriable
        coordinator = self._coordinator
        if coordinator is None or not self.network.is_unavailable(coordinator):
            return False
        self.mark_coordinator_unknown("coordinator unavailable")
        return True

    def _raise_fatal_error(self) -> None:
        fatal, self._fatal_find_coordinator_error = self._fatal_find_coordinator_error, None
        if fatal is not None:
            raise fatal

    def _clear_find_coordinator_future(self, done: RequestFuture[None]) -> None:
        """Only waiters clear it: a callback may run before the look-up is stored (KAFKA-10793)."""
        with self.lock:
            if self._find_coordinator_future is done:
                self._find_coordinator_future = None

    def _send_find_coordinator_request(self, node: BrokerEndPoint) -> RequestFuture[None]:
        request = FindCoordinatorRequest(self.config.group_id)
        sent = self.network.send(node, request, FindCoordinatorResponse)
        return sent.compose(self._on_find_coordinator, self._on_find_coordinator_failure)

    def _on_find_coordinator(
        self, response: FindCoordinatorResponse, future: RequestFuture[None]
    ) -> None:
        if response.error_code == Errors.NONE and response.coordinator is not None:
            self._coordinator_found(response.coordinator)
            future.complete(None)
        else:
            error = response.error_code or Errors.COORDINATOR_NOT_AVAILABLE
            self._on_find_coordinator_failure(exception_of(error), future)

    def _coordinator_found(self, broker: BrokerEndPoint) -> None:
        """A connection of its own, so that joins do not wait behind fetches of the same broker."""
        with self.lock:
            connection_id = INT_MAX - broker.id
            self._coordinator = BrokerEndPoint(connection_id, broker.host, broker.port)
            self.network.try_connect(self._coordinator)
            self.heartbeat.reset_session_timeout()

    def _on_find_coordinator_failure(self, error: Exception, future: RequestFuture[None]) -> None:
        if not is_retriable(error):
            self._fatal_find_coordinator_error = error
        future.fail(error)

    # Joining: the loop of the application's thread.

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

    # JoinGroup, and every error code of its answer (JoinGroupResponseHandler).

    def initiate_join_group(self) -> RequestFuture[ByteBuffer]:
        """The join in progress, or a new one; its value is the assignment.

        The heartbeat thread keeps running: it stands still by itself until the join is answered,
        and must run while the sync is awaited (KAFKA-10134).
        """
        with self.lock:
            if self.join_future is None:
                self.state = MemberState.PREPARING_REBALANCE
                if self._last_rebalance_start_ms == _NO_REBALANCE:
                    self._last_rebalance_start_ms = self.now_ms()
                self.join_future = self.send_join_group_request()
                self.join_future.add_listener(self._count_failure)
            return self.join_future

    def send_join_group_request(self) -> RequestFuture[ByteBuffer]:
        """Send the join; fails at once while the coordinator is unknown."""
        with self.lock:
            return self.send_to_coordinator(
                self.join_group_request(),
                JoinGroupResponse,
                self.on_join_group_response,
                self.generation,
                self.join_group_timeout_ms,
                timed=self._time_join,
            )

    @property
    def join_group_timeout_ms(self) -> int:
        """How long the answer to a join may take; a 32-bit number (KAFKA-13126)."""
        rebalance_ms = min(self.config.rebalance_timeout_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS, INT_MAX)
        return max(self.network.default_request_timeout_ms, rebalance_ms)

    def join_group_request(self) -> JoinGroupRequest:
        """The join that this member would send now."""
        return JoinGroupRequest(
            group_id=self.config.group_id,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.rebalance_timeout_ms,
            member_id=self.generation.member_id,
            protocol_type=self.protocol_type,
            protocols=self.metadata(),
            group_instance_id=self.config.group_instance_id,
            reason=self.rejoin_reason[:MAX_REASON_LENGTH],
            client_id=self.config.client_id,
            version=self.config.join_version,
        )

    def on_join_group_response(
        self, response: JoinGroupResponse, sent: Generation, future: RequestFuture[ByteBuffer]
    ) -> None:
        """Enter the generation and sync, or fail `future`."""
        error = response.error_code
        if error == Errors.NONE:
            self._on_joined(response, future)
            return
        match error:
            case Errors.UNKNOWN_MEMBER_ID:
                if self.generation_unchanged(sent):
                    self.reset_generation_on_response_error("JoinGroup", error)
            case Errors.COORDINATOR_NOT_AVAILABLE | Errors.NOT_COORDINATOR:
                self.mark_coordinator_unknown(error.name)
            case Errors.MEMBER_ID_REQUIRED:
                self._take_member_id(response.member_id)
            case _:
                pass
        self._fail_unless_unexpected(error, _JOIN_ERRORS, future, "join group response")

    def _on_joined(self, response: JoinGroupResponse, future: RequestFuture[ByteBuffer]) -> None:
        if self._is_protocol_type_inconsistent(response.protocol_type):
            future.raise_error(Errors.INCONSISTENT_GROUP_PROTOCOL)
            return
        with self.lock:
            if self.state is not MemberState.PREPARING_REBALANCE:
                # The member left the group meanwhile: it must not sync.
                future.fail(UnjoinedGroupException("the member left while its join was in flight"))
                return
            self.state = MemberState.COMPLETING_REBALANCE
            if self.heartbeat_thread is not None:
                self.heartbeat_thread.enable()
            self.generation = Generation(
                response.generation_id, response.member_id, response.protocol_name
            )
            if response.leader == response.member_id:
                self.on_join_leader(response).chain(future)
            else:
                self.on_join_follower().chain(future)

    def _time_join(self, response: JoinGroupResponse, latency_ms: int) -> None:
        if self._is_taken(response):
            self.sensors.join.record(latency_ms)

    def _take_member_id(self, member_id: str) -> None:
        with self.lock:
            self.generation = Generation(UNKNOWN_GENERATION_ID, member_id, None)
            self.request_rejoin(f"need to re-join with the given member-id: {member_id}")

    def _count_failure(self, done: RequestFuture[ByteBuffer]) -> None:
        if done.failed:
            self.sensors.failed_rebalance.record()

    # SyncGroup, and every error code of its answer (SyncGroupResponseHandler).

    def on_join_leader(self, response: JoinGroupResponse) -> RequestFuture[ByteBuffer]:
        """Assign, and send the assignment; what the assignor raises fails the rebalance."""
        try:
            assignment = self.perform_assignment(
                response.leader,
                response.protocol_name or "",
                response.members,
                response.skip_assignment,
            )
        except Exception as error:  # noqa: BLE001 - a plug-in's code: the poll raises it
            return RequestFuture.failure(error)
        return self.send_sync_group_request(assignment)

    def on_join_follower(self) -> RequestFuture[ByteBuffer]:
        """Ask for the assignment."""
        return self.send_sync_group_request({})

    def send_sync_group_request(
        self, assignments: Mapping[str, bytes]
    ) -> RequestFuture[ByteBuffer]:
        """Send the sync; fails at once while the coordinator is unknown."""
        request = SyncGroupRequest(
            group_id=self.config.group_id,
            generation_id=self.generation.generation_id,
            member_id=self.generation.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=self.protocol_type,
            protocol_name=self.generation.protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id, assignment)
                for member_id, assignment in assignments.items()
            ),
        )
        return self.send_to_coordinator(
            request,
            SyncGroupResponse,
            self.on_sync_group_response,
            self.generation,
            timed=self._time_sync,
        )

    def _time_sync(self, response: SyncGroupResponse, latency_ms: int) -> None:
        if self._is_taken(response):
            self.sensors.sync.record(latency_ms)

    def on_sync_group_response(
        self, response: SyncGroupResponse, sent: Generation, future: RequestFuture[ByteBuffer]
    ) -> None:
        """Become STABLE and complete `future` with the assignment, or fail it."""
        error = response.error_code
        if error == Errors.NONE:
            self._on_synced(response, future)
            return
        match error:
            case Errors.UNKNOWN_MEMBER_ID | Errors.ILLEGAL_GENERATION:
                if self.generation_unchanged(sent):
                    self.reset_generation_on_response_error("SyncGroup", error)
            case Errors.COORDINATOR_NOT_AVAILABLE | Errors.NOT_COORDINATOR:
                self.mark_coordinator_unknown(error.name)
            case _:
                pass
        self._fail_unless_unexpected(error, _SYNC_ERRORS, future, "sync group response")

    def _on_synced(self, response: SyncGroupResponse, future: RequestFuture[ByteBuffer]) -> None:
        if self._is_protocol_type_inconsistent(response.protocol_type):
            future.raise_error(Errors.INCONSISTENT_GROUP_PROTOCOL)
            return
        with self.lock:
            if (
                self.has_generation_reset(self.generation)
                or self.state is not MemberState.COMPLETING_REBALANCE
            ):
                # The heartbeat thread has put the member out: join again at once.
                future.raise_error(Errors.ILLEGAL_GENERATION)
            elif self._is_protocol_name_inconsistent(response.protocol_name):
                future.raise_error(Errors.INCONSISTENT_GROUP_PROTOCOL)
            else:
                self._become_stable()
                future.complete(ByteBuffer(response.assignment))

    def _become_stable(self) -> None:
        self.state = MemberState.STABLE
        self.rejoin_reason = ""
        self.rejoin_needed = False
        self.last_rebalance_end_ms = self.now_ms()
        latency_ms = self.last_rebalance_end_ms - self._last_rebalance_start_ms
        self.sensors.successful_rebalance.record(latency_ms)
        self._last_rebalance_start_ms = _NO_REBALANCE

    # What every request to the coordinator has in common.

    def send_to_coordinator(
        self,
        request: GroupRequest,
        expects: type[ResponseT],
        handle: Callable[[ResponseT, Generation, RequestFuture[ResultT]], None],
        sent: Generation,
        timeout_ms: int | None = None,
        timed: Callable[[ResponseT, int], None] = _untimed,
    ) -> RequestFuture[ResultT]:
        """Send, and let `handle` see the answer next to `sent`, the generation that asked.

        The coordinator is looked at once: another thread may give it up at any time (KAFKA-4066).
        `timed` sees each answer first, with the ms that it took (ClientResponse.requestLatencyMs).
        """
        coordinator = self.check_and_get_coordinator()
        if coordinator is None:
            return RequestFuture.failure(coordinator_not_available())

        created_ms = self.now_ms()

        def on_success(response: ResponseT, future: RequestFuture[ResultT]) -> None:
            try:
                timed(response, self.now_ms() - created_ms)
                handle(response, sent, future)
            except Exception as error:  # whatever a handler raises belongs to its future
                if future.is_done:
                    raise
                future.fail(error)

        def on_failure(error: Exception, future: RequestFuture[ResultT]) -> None:
            if isinstance(error, DisconnectException):
                self.mark_coordinator_unknown(str(error), is_disconnected=True)
            future.fail(error)

        return self.network.send(coordinator, request, expects, timeout_ms).compose(
            on_success, on_failure
        )

    def _is_taken(self, response: JoinGroupResponse | SyncGroupResponse) -> bool:
        return response.error_code == Errors.NONE and not self._is_protocol_type_inconsistent(
            response.protocol_type
        )

    def _is_protocol_type_inconsistent(self, protocol_type: str | None) -> bool:
        return protocol_type is not None and protocol_type != self.protocol_type

    def _is_protocol_name_inconsistent(self, protocol_name: str | None) -> bool:
        return protocol_name is not None and protocol_name != self.generation.protocol_name

    @staticmethod
    def _fail_unless_unexpected(
        error: Errors, expected: frozenset[Errors], future: RequestFuture[ResultT], what: str
    ) -> None:
        if error in expected:
            future.raise_error(error)
        else:
            future.fail(KafkaException(f"Unexpected error in {what}: {error.name}"))

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
                request,
                HeartbeatResponse,
                self.on_heartbeat_response,
                self.generation,
                timed=lambda _, latency_ms: self.sensors.heartbeat.record(latency_ms),
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
        member = MemberIdentity(
            self.generation.member_id, self.config.group_instance_id, reason[:MAX_REASON_LENGTH]
        )
        request = LeaveGroupRequest(self.config.group_id, (member,))
        return self.send_to_coordinator(
            request, LeaveGroupResponse, self.on_leave_group_response, self.generation
        )

    def on_leave_group_response(
        self, response: LeaveGroupResponse, _sent: Generation, future: RequestFuture[None]
    ) -> None:
        """Complete, or fail with the first error; an answer for several members is not ours."""
        if len(response.members) > 1:
            future.fail(
                IllegalStateException(
                    f"one member left, but the answer names {len(response.members)}"
                )
            )
            return
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


def coordinator_not_available() -> CoordinatorNotAvailableException:
    """The failure of a request that has nobody to go to."""
    return CoordinatorNotAvailableException("the group coordinator is not known")


_JOIN_ERRORS = frozenset(
    {
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.UNKNOWN_MEMBER_ID,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.FENCED_INSTANCE_ID,
        Errors.INCONSISTENT_GROUP_PROTOCOL,
        Errors.INVALID_SESSION_TIMEOUT,
        Errors.INVALID_GROUP_ID,
        Errors.GROUP_AUTHORIZATION_FAILED,
        Errors.GROUP_MAX_SIZE_REACHED,
        Errors.UNSUPPORTED_VERSION,
        Errors.MEMBER_ID_REQUIRED,
        Errors.REBALANCE_IN_PROGRESS,
    }
)

_SYNC_ERRORS = frozenset(
    {
        Errors.GROUP_AUTHORIZATION_FAILED,
        Errors.REBALANCE_IN_PROGRESS,
        Errors.FENCED_INSTANCE_ID,
        Errors.UNKNOWN_MEMBER_ID,
        Errors.ILLEGAL_GENERATION,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
    }
)
