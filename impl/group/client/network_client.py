"""Requests of one member: queued, sent, answered and called back in separate steps.

Source: ConsumerNetworkClient. Callbacks run in `poll`, in the polling thread, without the
network's lock; a thread that holds the coordinator's lock may therefore poll.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from ...clock import Clock
from ...concurrency import Concurrency
from ...errors import IllegalStateException
from ...network import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from ...types import BrokerEndPoint
from ..messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from .errors import DisconnectException, WakeupException
from .request_future import RequestFuture
from .timer import Timer

GroupRequest = (
    FindCoordinatorRequest
    | JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
)
GroupResponse = (
    FindCoordinatorResponse
    | JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
)
ConsumerRequest = GroupRequest | FetchRequest | ListOffsetsRequest | OffsetsForLeaderEpochRequest
ConsumerResponse = (
    GroupResponse | FetchResponse | ListOffsetsResponse | OffsetsForLeaderEpochResponse
)
"""Of the group's coordinator, or of a partition's leader."""
ResponseT = TypeVar("ResponseT", bound=ConsumerResponse)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, eq=False)
class ClientRequest:
    """A request on its way to `node`; answered through `ConsumerNetworkClient.respond`."""

    node: BrokerEndPoint
    request: ConsumerRequest
    expects: type[object]
    created_ms: int
    timeout_ms: int
    future: RequestFuture[ConsumerResponse]

    def has_expired(self, now_ms: int) -> bool:
        """Whether it has been without an answer for longer than its time-out."""
        return now_ms - self.created_ms > self.timeout_ms


class Transport(Protocol):
    """What carries requests: a simulated network, a broker in this process, or sockets."""

    def least_loaded_node(self) -> BrokerEndPoint | None:
        """Any broker that can be asked; none if all are unreachable."""
        ...

    def connection_failed(self, node: BrokerEndPoint) -> bool:
        """Whether the last connection to `node` failed and is backing off."""
        ...

    def try_connect(self, node: BrokerEndPoint) -> None:
        """Begin to connect, without waiting."""
        ...

    def send(self, request: ClientRequest) -> None:
        """Carry the request; the answer, if any, is given to `respond`, at once or later."""
        ...

    def update_metadata(self) -> None:
        """Learn again which brokers there are."""
        ...

    def idle(self, timeout_ms: int) -> None:
        """A poll ended without an answer: a simulated network lets up to `timeout_ms` pass."""
        ...


class ConsumerNetworkClient:
    """Request bookkeeping of one member over an injected transport.

    `in_flight` and `respond` let a driver answer a request whenever it likes.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        concurrency: Concurrency,
        request_timeout_ms: int = 40_000,
        max_poll_timeout_ms: int = 5_000,
    ) -> None:
        self.default_request_timeout_ms = request_timeout_ms
        self._transport = transport
        self._clock = clock
        self._max_poll_timeout_ms = max_poll_timeout_ms
        self._checkpoint = concurrency.checkpoint
        self._lock = concurrency.lock("network")
        self._changed = self._lock.new_condition()
        self._unsent: deque[ClientRequest] = deque()
        self._in_flight: list[ClientRequest] = []
        self._completed: deque[tuple[ClientRequest, ConsumerResponse | Exception]] = deque()
        self._pending_disconnects: deque[BrokerEndPoint] = deque()
        self._wakeup = False
        self._wakeups_disabled = False
        self._metadata_failure: Exception | None = None

    # Requests.

    def send(
        self,
        node: BrokerEndPoint,
        request: ConsumerRequest,
        expects: type[ResponseT],
        timeout_ms: int | None = None,
    ) -> RequestFuture[ResponseT]:
        """Queue a request; the next poll sends it. The future fails with DisconnectException."""
        timeout_ms = self.default_request_timeout_ms if timeout_ms is None else timeout_ms
        future: RequestFuture[ConsumerResponse] = RequestFuture()
        now_ms = self._clock.milliseconds()
        with self._lock:
            self._unsent.append(ClientRequest(node, request, expects, now_ms, timeout_ms, future))
            self._changed.notify_all()
        self._checkpoint("request queued")
        return cast(RequestFuture[ResponseT], future)

    def in_flight(self) -> tuple[ClientRequest, ...]:
        """Requests sent and not answered, the oldest first."""
        with self._lock:
            return tuple(self._in_flight)

    def respond(self, request: ClientRequest, response: ConsumerResponse | Exception) -> bool:
        """Hand in an answer; the next poll calls back. False if nobody waits for it any more."""
        if not isinstance(response, Exception | request.expects):
            raise IllegalStateException(f"{response} does not answer {request.request}")
        with self._lock:
            if request not in self._in_flight:
                return False
            self._in_flight.remove(request)
            self._completed.append((request, response))
            self._changed.notify_all()
            return True

    def disconnect_async(self, node: BrokerEndPoint) -> None:
        """Break the connection: at the next poll, what is in flight to `node` fails."""
        with self._lock:
            self._pending_disconnects.append(node)
            self._changed.notify_all()

    def has_pending_requests(self, node: BrokerEndPoint) -> bool:
        """Whether a request to `node` is queued, in flight, or answered but not called back."""
        with self._lock:
            waiting = (*self._unsent, *self._in_flight, *(done for done, _ in self._completed))
            return any(request.node == node for request in waiting)

    # Nodes.

    def least_loaded_node(self) -> BrokerEndPoint | None:
        """Any broker that can be asked."""
        return self._transport.least_loaded_node()

    def is_unavailable(self, node: BrokerEndPoint) -> bool:
        """Whether the connection to `node` has failed."""
        return self._transport.connection_failed(node)

    def try_connect(self, node: BrokerEndPoint) -> None:
        """Begin to connect."""
        self._transport.try_connect(node)

    def await_metadata_update(self, timer: Timer) -> None:
        """Learn again which brokers there are."""
        self._transport.update_metadata()
        timer.update()

    def metadata_failed(self, failure: Exception) -> None:
        """Metadata came with an error: whichever thread polls next raises it, once."""
        with self._lock:
            self._metadata_failure = failure

    # Polling.

    def wakeup(self) -> None:
        """Make the current poll, or the next one, of another thread raise WakeupException."""
        with self._lock:
            self._wakeup = True
            self._changed.notify_all()

    def poll(
        self, future: RequestFuture[ResultT], timer: Timer, disable_wakeup: bool = False
    ) -> bool:
        """Poll, at least once, until `future` is done or the timer expires; True iff done."""
        while True:
            self._poll_once(timer, lambda: not future.is_done, disable_wakeup)
            if future.is_done or timer.is_expired:
                return future.is_done

    def poll_until_answered(self, timer: Timer) -> None:
        """Poll once: wait for any answer, at most as long as the timer has."""
        self._poll_once(timer, lambda: True, disable_wakeup=False)

    @property
    def is_woken(self) -> bool:
        """Whether `wakeup` was called, and no call has raised yet."""
        return self._wakeup

    def disable_wakeups(self) -> None:
        """For good: the consumer closes."""
        with self._lock:
            self._wakeups_disabled = True

    def poll_no_wakeup(self) -> None:
        """Send and call back what is ready, without waiting and without waking up."""
        self._poll_once(Timer(self._clock, 0), lambda: False, disable_wakeup=True)

    def transmit_sends(self) -> None:
        """Send what is queued; call nobody back, and wake nobody up."""
        self._handle_pending_disconnects()
        self._try_send()

    def await_pending_requests(self, node: BrokerEndPoint, timer: Timer) -> bool:
        """Poll until nothing waits for `node` or the timer expires; True iff nothing waits."""
        while self.has_pending_requests(node) and timer.not_expired:
            self.poll_until_answered(timer)
        return not self.has_pending_requests(node)

    def _poll_once(
        self, timer: Timer, should_block: Callable[[], bool], disable_wakeup: bool
    ) -> None:
        """ConsumerNetworkClient.poll: call back, send, wait, fail the overdue, call back."""
        self._fire_pending_completions()
        self._handle_pending_disconnects()
        self._try_send()
        self._await_answer(timer, should_block)
        timer.update()
        if not disable_wakeup:
            self.maybe_trigger_wakeup()
        self._try_send()
        self._fail_expired_requests()
        self._fire_pending_completions()
        self._maybe_throw_metadata_failure()

    def _maybe_throw_metadata_failure(self) -> None:
        """Metadata.maybeThrowAnyException."""
        with self._lock:
            failure, self._metadata_failure = self._metadata_failure, None
        if failure is not None:
            raise failure

    def _await_answer(self, timer: Timer, should_block: Callable[[], bool]) -> None:
        with self._lock:
            timeout_ms = self._poll_timeout_ms(timer)
            if self._completed or self._wakeup or timeout_ms == 0 or not should_block():
                return
            if self._changed.wait(timeout_ms):
                return
        self._transport.idle(timeout_ms)

    def _poll_timeout_ms(self, timer: Timer) -> int:
        now_ms = self._clock.milliseconds()
        waits = [
            request.created_ms + request.timeout_ms + 1 - now_ms for request in self._in_flight
        ]
        return max(0, min(timer.remaining_ms, self._max_poll_timeout_ms, *waits))

    def _try_send(self) -> None:
        while (request := self._next_unsent()) is not None:
            self._transport.send(request)

    def _next_unsent(self) -> ClientRequest | None:
        with self._lock:
            while self._unsent:
                request = self._unsent.popleft()
                if not self._transport.connection_failed(request.node):
                    self._in_flight.append(request)
                    return request
                self._completed.append((request, DisconnectException("connection failed")))
            return None

    def _handle_pending_disconnects(self) -> None:
        with self._lock:
            while self._pending_disconnects:
                self._disconnect(self._pending_disconnects.popleft(), "connection given up")

    def _fail_expired_requests(self) -> None:
        now_ms = self._clock.milliseconds()
        with self._lock:
            overdue = {request.node for request in self._in_flight if request.has_expired(now_ms)}
            for node in overdue:
                self._disconnect(node, "request timed out")

    def _disconnect(self, node: BrokerEndPoint, why: str) -> None:
        for waiting in (self._in_flight, self._unsent):
            for request in [request for request in waiting if request.node == node]:
                waiting.remove(request)
                self._completed.append((request, DisconnectException(why)))

    def _fire_pending_completions(self) -> None:
        fired = False
        while (completion := self._next_completion()) is not None:
            request, response = completion
            fired = True
            if isinstance(response, Exception):
                request.future.fail(response)
            else:
                request.future.complete(response)
        if fired:
            with self._lock:
                self._changed.notify_all()

    def _next_completion(self) -> tuple[ClientRequest, ConsumerResponse | Exception] | None:
        with self._lock:
            return self._completed.popleft() if self._completed else None

    def maybe_trigger_wakeup(self) -> None:
        """Raises WakeupException, once, if another thread has called `wakeup`."""
        with self._lock:
            if self._wakeups_disabled:
                return
            woken, self._wakeup = self._wakeup, False
        if woken:
            raise WakeupException
