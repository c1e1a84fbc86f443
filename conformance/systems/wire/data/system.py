"""Drives any broker's data path through its port, along the actions of DataPathAtPort.tla, of
FetchSessions.tla or of FetchSessionCache.tla.

Partitions that nobody has used begin each test; tests of fetch sessions use theirs again, once all
that they have is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import ModuleType

from conformance.deviations.tolerance import Tolerance
from conformance.systems.protocol import ActionRefused, Observation, SystemFailed
from conformance.systems.wire.address import Address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.data import driven, session_cache, sessions
from conformance.systems.wire.data.driven import DrivenPartition, marker_time
from conformance.systems.wire.data.leaders import PartitionLeaders
from conformance.systems.wire.data.reach import (
    BEYOND_REACH,
    changes_leaders,
    lacking,
    lacking_for_sessions,
)
from conformance.systems.wire.data.requests import LATEST, DataRequests
from conformance.systems.wire.data.session_cache import DrivenCache
from conformance.systems.wire.data.sessions import DrivenSessions
from conformance.systems.wire.failover import MOVE
from conformance.systems.wire.port import TRANSACTION_KEY, Asked
from conformance.systems.wire.security import Security
from conformance.systems.wire.transaction.requests import NONE
from conformance.tla import Action, Value

_PARTITIONS, _PARTITIONS_OF_CHANGES = 24, 4
"""Of a topic; each test takes one, or as many as its model has: one or two. There are more topics
where leaders change, and a broker that is restarted looks at all partitions."""
_LANES = 4
"""Side by side at most: nothing waits for a timer, and each has a topic of its own."""
_LANES_OF_MOVES = 12
"""The same while partitions are moved: each waits for its election. A restart strikes all tests, so
the more there are side by side, the fewer restarts there are."""


class WireDataSystem:
    """Few partitions of a broker at a time; new ones for each test."""

    late = ""
    patience = 0.0
    """A request is answered once it is handled, so nothing is worth to be looked at again."""

    def __init__(
        self,
        constants: Mapping[str, Value],
        address: Address,
        security: Security,
        tolerance: Tolerance,
    ) -> None:
        self.tolerance = tolerance
        change = changes_leaders(constants)
        self._shown = next(
            (each for each in (session_cache, sessions) if each.SIGN in constants), driven
        )
        self.lanes = min(address.groups, _lanes(address, self._shown, change=change))
        self._count = _PARTITIONS_OF_CHANGES if change else _PARTITIONS
        self._constants = constants
        self.variables = self._shown.VARIABLES
        self._broker = WireBroker(address, security)
        reason = lacking if self._shown is driven else lacking_for_sessions
        self._broker.require(self._shown.SPECIFICATION, reason(self._broker.entry, constants))
        self._leaders = PartitionLeaders(self._broker, security, change=change)
        self._unused: list[DataRequests] = []
        self._read: list[DataRequests] = []
        """Partitions that one test after the other takes."""
        self._driven: DrivenPartition | DrivenSessions | DrivenCache | None = None

    def _new_partition(self) -> DataRequests:
        if not self._unused:
            entry = self._broker.entry
            count = self._count if entry.offers("create_topics") else 1
            topic = self._broker.require_topic(count)
            self._unused = [DataRequests(entry, *topic, index) for index in range(count)]
        return self._leaders.find(self._unused.pop())

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Partitions and a transactional id that nobody has used."""
        self._leave()
        self._leaders.begin()
        self._driven = self._new_driven()

    def _new_driven(self) -> DrivenPartition | DrivenSessions | DrivenCache:
        if self._shown is session_cache:
            count = session_cache.partitions_of(self._constants)
            self._read = self._read or [self._new_partition() for _ in range(count)]
            shards = self._broker.address.fetch_shards
            return DrivenCache(self._read, self._constants, shards, _refuse)
        if self._shown is sessions:
            names = sessions.partitions_of(self._constants)
            ends = self._empty(names)
            self._read = self._read if ends else [self._new_partition() for _ in names]
            partitions = dict(zip(names, self._read, strict=True))
            return DrivenSessions(partitions, ends=ends)
        return DrivenPartition(
            self._new_partition(),
            self._coordinator,
            self._broker.new_group_id(),
            marker_time(self._constants["Batches"]),
            self._leaders.elect,
        )

    def _coordinator(self, transactional_id: str) -> Asked:
        where = self._broker.entry.find_coordinator(transactional_id, TRANSACTION_KEY)
        return self._broker.ports.at(*where)

    def _empty(self, names: Sequence[int]) -> Mapping[int, int]:
        """Where the logs of the last test end, without a record; nothing if they cannot be used."""
        if not (self._read and self._broker.entry.offers("delete_records")):
            return {}
        deleted = [requests.delete_records(LATEST) for requests in self._read]
        if any(each.error != NONE for each in deleted):
            return {}
        return {name: each.offset for name, each in zip(names, deleted, strict=True)}

    def _leave(self) -> None:
        if self._driven is not None:
            with suppress(SystemFailed, ActionRefused):  # what was wrong is told by its test
                self._driven.leave()

    def apply(self, action: Action) -> None:
        """Take one step of the specification."""
        assert self._driven is not None, "a test begins with a reset"
        self._driven.apply(action)

    def observe(self) -> Observation:
        """What was answered; see the driven partitions."""
        assert self._driven is not None, "a test begins with a reset"
        return self._driven.observe()

    # ---- Patient, Closeable ----------------------------------------------------------------

    def foresee(self, _actions: Sequence[Action]) -> str:
        """Every path can be driven: there are no timers."""
        return ""

    def be_alone(self) -> None:
        """It makes no difference."""

    def look_again(self, _seconds: float) -> Mapping[str, Value]:
        """Nothing comes later."""
        return self.observe()

    def close(self) -> None:
        """Delete the topics, and close the connections."""
        try:
            with self._broker.closing():
                self._leave()
        finally:
            self._leaders.end()


def _refuse() -> None:
    raise ActionRefused(f"LetEvictionTimePass: {BEYOND_REACH['LetEvictionTimePass']}")


def _lanes(address: Address, shown: ModuleType, *, change: bool) -> int:
    if shown is session_cache:
        return 1  # the slots are the broker's
    if not change:
        return _LANES
    return _LANES_OF_MOVES if address.fail_over == MOVE else address.groups
