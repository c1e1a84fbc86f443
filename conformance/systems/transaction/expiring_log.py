"""The system under test: a partition that forgets producers which were silent for too long.

Driven by TransactionalLogExpiry.tla: two producer ids of one transactional id, and a process that
stops in order.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.protocol import Observation
from conformance.systems.transaction.log_system import UNVERIFIED, TransactionalLogSystem
from conformance.systems.transaction.replica import truncate_replica
from conformance.systems.transaction.stored_replica import StoredReplica
from conformance.tla import Value
from impl.clock import MockClock
from impl.log import Log


class ExpiringLogSystem(TransactionalLogSystem):
    """A leader's log; its records have old timestamps by the time that is over."""

    variables = (*TransactionalLogSystem.variables, "known")

    def __init__(self, constants: Mapping[str, Value]) -> None:
        super().__init__(constants)
        self._actions |= {
            "Produce": self._append_data,
            "EndTransaction": self._append_marker,
            "Replicate": self._advance,
            "Truncate": lambda end: truncate_replica(self._log, end),
            "ExpireProducers": self._expire,
            "Restart": self._restart,
            "Read": self._fetch,
        }

    def _empty_log(self) -> Log:
        self._clock = MockClock()
        self._now = self._clock.milliseconds()
        self._replica = StoredReplica(UNVERIFIED, self._threads, self._clock)
        return self._replica.log

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        producers = self._log.producer_state_manager.active_producers
        known = frozenset(self._names[number] for number in producers)
        return Observation({**super().observe(), "known": known})

    def make_interruptible(self) -> bool:
        """Not here: what meets at the log's lock is driven along TransactionalLog."""
        return False

    def _expire(self) -> None:
        self._clock.sleep(UNVERIFIED.expiration_ms)
        self._now = self._clock.milliseconds()
        self._log.remove_expired_producers()

    def _restart(self, watermark: int) -> None:
        self._log = self._replica.stop(watermark)
