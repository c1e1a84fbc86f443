"""How a member finds its coordinator, and when it gives it up (KAFKA-10793, KAFKA-13917)."""

from __future__ import annotations

import logging

from impl.errors import Errors
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.errors import (
    CoordinatorNotAvailableException,
    NoAvailableBrokersException,
    exception_of,
    is_retriable,
)
from impl.group.client.group_member import GroupMember
from impl.group.client.network_client import ConsumerNetworkClient
from impl.group.client.request_future import RequestFuture
from impl.group.client.timer import Timer
from impl.group.messages import FindCoordinatorRequest, FindCoordinatorResponse
from impl.types import BrokerEndPoint

_log = logging.getLogger(__name__)

INT_MAX = 2**31 - 1


class CoordinatorFinder(GroupMember):
    """The part of AbstractCoordinator that looks up the coordinator."""

    def __init__(
        self, config: GroupRebalanceConfig, network: ConsumerNetworkClient, runtime: MemberRuntime
    ) -> None:
        super().__init__(config, network, runtime)
        self._coordinator: BrokerEndPoint | None = None
        self._find_coordinator_future: RequestFuture[None] | None = None
        self._fatal_find_coordinator_error: Exception | None = None

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


def coordinator_not_available() -> CoordinatorNotAvailableException:
    """The failure of a request that has nobody to go to."""
    return CoordinatorNotAvailableException("the group coordinator is not known")
