"""The background thread that keeps a member's session alive.

Source: AbstractCoordinator.HeartbeatThread; the order of the loop's cases is its contract.
"""

from __future__ import annotations

import logging
from typing import Protocol

from ...concurrency import Concurrency, Condition, Lock
from .errors import (
    AuthenticationException,
    FencedInstanceIdException,
    RebalanceInProgressException,
)
from .generation import MemberState
from .heartbeat import Heartbeat
from .request_future import RequestFuture

_log = logging.getLogger(__name__)


class HeartbeatingMember(Protocol):
    """What the thread needs of its coordinator; all of it is used with `lock` held."""

    heartbeat: Heartbeat
    state: MemberState
    lock: Lock
    changed: Condition

    def now_ms(self) -> int: ...

    def poll_no_wakeup(self) -> None: ...

    def coordinator_unknown(self) -> bool: ...

    def discover_coordinator(self) -> None: ...

    def mark_coordinator_unknown(self, cause: str) -> None: ...

    def maybe_leave_group(self, reason: str) -> RequestFuture[None] | None: ...

    def request_rejoin(self, reason: str) -> None: ...

    def send_heartbeat_request(self) -> RequestFuture[None]: ...

    def wait_backoff(self) -> None: ...


class HeartbeatThread:
    """Sends a heartbeat when one is due, for as long as the member is in a generation.

    `run_once` is one turn of the loop, so that a driver can step it without a thread.
    """

    def __init__(self, name: str, member: HeartbeatingMember, concurrency: Concurrency) -> None:
        self._member = member
        self._thread = concurrency.thread(name, self.run)
        self._closed = False
        self.enabled = False
        self.failure: Exception | None = None

    def start(self) -> None:
        """Start the thread of control."""
        self._thread.start()

    def enable(self) -> None:
        """Begin to send heartbeats, with all three timers started again."""
        with self._member.lock:
            self.enabled = True
            self._member.heartbeat.reset_timeouts()
            self._member.changed.notify_all()

    def disable(self) -> None:
        """Send none until enabled again."""
        with self._member.lock:
            self.enabled = False

    def close(self) -> None:
        """Ask the thread to end."""
        with self._member.lock:
            self._closed = True
            self._member.changed.notify_all()

    def join(self) -> None:
        """Wait for the end; the caller must not hold the member's lock."""
        self._thread.join()

    @property
    def has_failed(self) -> bool:
        """Whether the application must be told of a failure."""
        return self.failure is not None

    def run(self) -> None:
        """The thread's body."""
        while self.run_once():
            pass

    def run_once(self) -> bool:
        """One turn; False when the thread has ended."""
        with self._member.lock:
            if self._closed:
                return False
            if not self.enabled:
                self._member.changed.wait()
                return True
            if self._member.state.has_not_joined_group or self.has_failed:
                self.disable()
                return True
            try:
                self._take_turn()
            except Exception as error:  # noqa: BLE001 - poll_heartbeat raises it in the application's thread
                _log.error("Heartbeat thread failed due to unexpected error", exc_info=error)
                self.failure = error
                if isinstance(error, AuthenticationException):
                    # Only a join starts a new thread (KAFKA-20253).
                    self._member.request_rejoin("authentication error in heartbeat thread")
                return False
            return True

    def _take_turn(self) -> None:
        member = self._member
        member.poll_no_wakeup()
        now_ms = member.now_ms()
        if member.coordinator_unknown():
            member.discover_coordinator()
            member.wait_backoff()
        elif member.heartbeat.session_timeout_expired(now_ms):
            member.mark_coordinator_unknown("session timed out without a heartbeat response")
        elif member.heartbeat.poll_timeout_expired(now_ms):
            _log.warning("consumer poll timeout has expired: max.poll.interval.ms is too short")
            member.maybe_leave_group("consumer poll timeout has expired.")
        elif not member.heartbeat.should_heartbeat(now_ms):
            member.wait_backoff()
        else:
            self._send_heartbeat(now_ms)

    def _send_heartbeat(self, now_ms: int) -> None:
        self._member.heartbeat.sent_heartbeat(now_ms)
        self._member.send_heartbeat_request().add_listener(self._on_heartbeat_done)

    def _on_heartbeat_done(self, done: RequestFuture[None]) -> None:
        with self._member.lock:
            if done.succeeded or isinstance(done.exception, RebalanceInProgressException):
                # While the group rebalances the member must still be kept alive.
                self._member.heartbeat.receive_heartbeat()
            elif isinstance(done.exception, FencedInstanceIdException):
                self.failure = done.exception
            else:
                self._member.heartbeat.fail_heartbeat()
                self._member.changed.notify_all()
