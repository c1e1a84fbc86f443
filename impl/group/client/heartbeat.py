"""The three timers of a member: next heartbeat, session, and time between polls (Heartbeat)."""

from __future__ import annotations

from ...clock import Clock
from ...errors import IllegalArgumentException
from .config import GroupRebalanceConfig
from .timer import ExponentialBackoff, Timer


class Heartbeat:
    """Not thread-safe: the coordinator's lock guards it. All times are in ms."""

    def __init__(
        self, config: GroupRebalanceConfig, clock: Clock, retry_backoff: ExponentialBackoff
    ) -> None:
        """Raises IllegalArgumentException unless the interval is below the session time-out."""
        if config.heartbeat_interval_ms >= config.session_timeout_ms:
            raise IllegalArgumentException(
                "Heartbeat must be set lower than the session timeout: "
                f"{config.heartbeat_interval_ms} ms against {config.session_timeout_ms} ms"
            )
        self._config = config
        self._retry_backoff = retry_backoff
        self._heartbeat_timer = Timer(clock, config.heartbeat_interval_ms)
        self._session_timer = Timer(clock, config.session_timeout_ms)
        self._poll_timer = Timer(clock, config.rebalance_timeout_ms)
        self._failed_attempts = 0
        self.last_poll_ms = 0
        self.last_heartbeat_send_ms: int | None = None

    def poll(self, now_ms: int) -> None:
        """The application is alive: restart the poll timer, and only that."""
        self._update(now_ms)
        self._poll_timer.reset(self._config.rebalance_timeout_ms)
        self.last_poll_ms = now_ms

    def sent_heartbeat(self, now_ms: int) -> None:
        """Wait one interval before the next one."""
        self.last_heartbeat_send_ms = now_ms
        self._update(now_ms)
        self._heartbeat_timer.reset(self._config.heartbeat_interval_ms)

    def receive_heartbeat(self) -> None:
        """The coordinator has answered: the session goes on."""
        self._session_timer.update()
        self._failed_attempts = 0
        self._session_timer.reset(self._config.session_timeout_ms)

    def fail_heartbeat(self) -> None:
        """Try again after the back-off instead of after the interval."""
        self._heartbeat_timer.update()
        self._heartbeat_timer.reset(self._retry_backoff.backoff(self._failed_attempts))
        self._failed_attempts += 1

    def should_heartbeat(self, now_ms: int) -> bool:
        """Whether the next heartbeat is due."""
        self._update(now_ms)
        return self._heartbeat_timer.is_expired

    def session_timeout_expired(self, now_ms: int) -> bool:
        """Whether the coordinator has been silent for a whole session time-out."""
        self._update(now_ms)
        return self._session_timer.is_expired

    def poll_timeout_expired(self, now_ms: int) -> bool:
        """Whether the application has not polled for max.poll.interval.ms."""
        self._update(now_ms)
        return self._poll_timer.is_expired

    def time_to_next_heartbeat(self, now_ms: int) -> int:
        """Milliseconds until the next heartbeat is due."""
        self._update(now_ms)
        return self._heartbeat_timer.remaining_ms

    def reset_timeouts(self) -> None:
        """Start all three again, as when heartbeats begin."""
        self._session_timer.update_and_reset(self._config.session_timeout_ms)
        self._poll_timer.update_and_reset(self._config.rebalance_timeout_ms)
        self._heartbeat_timer.update_and_reset(self._config.heartbeat_interval_ms)

    def reset_session_timeout(self) -> None:
        """Start the session again, and only the session."""
        self._session_timer.update_and_reset(self._config.session_timeout_ms)

    def _update(self, now_ms: int) -> None:
        self._heartbeat_timer.update(now_ms)
        self._session_timer.update(now_ms)
        self._poll_timer.update(now_ms)
