"""JoinGroup and SyncGroup: requests built, and every error code of their answers.

Source: AbstractCoordinator.JoinGroupResponseHandler and SyncGroupResponseHandler.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from impl.errors import Errors, KafkaException
from impl.group.client.buffer import ByteBuffer
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.coordinator_finder import (
    INT_MAX,
    CoordinatorFinder,
    coordinator_not_available,
)
from impl.group.client.errors import DisconnectException, UnjoinedGroupException
from impl.group.client.generation import Generation, MemberState
from impl.group.client.network_client import ConsumerNetworkClient, GroupRequest, GroupResponse
from impl.group.client.request_future import RequestFuture
from impl.group.messages import (
    UNKNOWN_GENERATION_ID,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

JOIN_GROUP_TIMEOUT_LAPSE_MS = 5_000
"""What a join may take beyond the rebalance time-out before its connection is given up."""
MAX_REASON_LENGTH = 255

_NO_REBALANCE = -1

ResponseT = TypeVar("ResponseT", bound=GroupResponse)
ResultT = TypeVar("ResultT")


class GroupJoiner(CoordinatorFinder):
    """The part of AbstractCoordinator that goes from UNJOINED to STABLE."""

    def __init__(
        self, config: GroupRebalanceConfig, network: ConsumerNetworkClient, runtime: MemberRuntime
    ) -> None:
        super().__init__(config, network, runtime)
        self._last_rebalance_start_ms = _NO_REBALANCE
        self.last_rebalance_latency_ms: int | None = None
        self.successful_rebalances = 0
        self.failed_rebalances = 0

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

    # Join.

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

    def _take_member_id(self, member_id: str) -> None:
        with self.lock:
            self.generation = Generation(UNKNOWN_GENERATION_ID, member_id, None)
            self.request_rejoin(f"need to re-join with the given member-id: {member_id}")

    def _count_failure(self, done: RequestFuture[ByteBuffer]) -> None:
        if done.failed:
            with self.lock:
                self.failed_rebalances += 1

    # Sync.

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
            request, SyncGroupResponse, self.on_sync_group_response, self.generation
        )

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
        self.last_rebalance_latency_ms = self.now_ms() - self._last_rebalance_start_ms
        self._last_rebalance_start_ms = _NO_REBALANCE
        self.successful_rebalances += 1

    # What every request to the coordinator has in common.

    def send_to_coordinator(
        self,
        request: GroupRequest,
        expects: type[ResponseT],
        handle: Callable[[ResponseT, Generation, RequestFuture[ResultT]], None],
        sent: Generation,
        timeout_ms: int | None = None,
    ) -> RequestFuture[ResultT]:
        """Send, and let `handle` see the answer next to `sent`, the generation that asked.

        The coordinator is looked at once: another thread may give it up at any time (KAFKA-4066).
        """
        coordinator = self.check_and_get_coordinator()
        if coordinator is None:
            return RequestFuture.failure(coordinator_not_available())

        def on_success(response: ResponseT, future: RequestFuture[ResultT]) -> None:
            try:
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
