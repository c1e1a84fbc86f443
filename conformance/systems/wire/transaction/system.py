"""Drives any broker's transactions through its port, along TransactionsAtPort.tla's actions.

The producer's instances are ours, and a new transactional id begins a test. Where the specification
lets a request have an effect it goes out, and its answer is waited for; where it lets the broker go
on, nothing is done. Seen are the answers, and what `look` asks for while nothing is under way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from conformance.deviations.tolerance import Tolerance
from conformance.systems.protocol import Observation, SystemFailed
from conformance.systems.wire.address import Address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.pace import Pace
from conformance.systems.wire.port import COORDINATOR_SECONDS, TRANSACTION_KEY, Port
from conformance.systems.wire.security import Security
from conformance.systems.wire.transaction.driven import DrivenTransaction
from conformance.systems.wire.transaction.look import BrokerPartition, DrivenId, Look
from conformance.systems.wire.transaction.reach import MARKERS, SPECIFICATION, lacking
from conformance.systems.wire.transaction.requests import (
    RETRY_SECONDS,
    TRY_AGAIN,
    TransactionRequests,
    fetched_offset,
)
from conformance.tla import Action, Value

_OF_LOGS = ("log", "highWatermark", "producers")
"""Seen of all partitions, or not at all: of the groups' offsets there is no log."""
_BY_HAND = frozenset({"RepeatMarker", "RefuseMarker", "RefuseForgedMarker"})
_STABLE_SECONDS = 2.0


class WireTransactionSystem:
    """One transactional id of a broker at a time; a new one for each test."""

    def __init__(
        self,
        constants: Mapping[str, Value],
        address: Address,
        security: Security,
        tolerance: Tolerance,
    ) -> None:
        self.tolerance = tolerance
        self.lanes = address.groups
        self._is_version_2 = constants["Version2"] is True
        self._clients = _names(constants["Clients"])
        (self._coordinator_name,) = _names(constants["Coordinators"])
        offsets = _names(constants["OffsetsPartitions"])
        self._data = [name for name in _names(constants["Partitions"]) if name not in offsets]
        self._offsets = offsets
        self.variables = ("clients", "coordinators", "reads", *(() if offsets else _OF_LOGS))
        self.sometimes = frozenset(self.variables) - {"clients"}
        """While the broker goes on nothing is seen."""
        self._broker = WireBroker(address, security)
        self._broker.require(SPECIFICATION, lacking(self._broker.entry, constants))
        self._pace = Pace(address)
        self._requests = self._new_topic()
        self._open: tuple[str, Port] | None = None
        """The id of the last test, which may have left a transaction open."""

    def _new_topic(self) -> TransactionRequests:
        count = max(len(self._data), 1)
        topic = self._broker.require_topic(count)
        requests = TransactionRequests(self._broker.entry, *topic, count, self._is_version_2)
        until = time.monotonic() + COORDINATOR_SECONDS
        while True:  # a broker hears of its own topics late
            try:
                self._broker.entry.ask_body(requests.fetch([0] * count, committed=False))
                Look.bounds(requests)
                return requests
            except SystemFailed:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A transactional id that nobody has used; the logs begin where the last test's end."""
        self._leave_behind()
        self._pace.begin()
        self._broker.entry.slowest = 0.0
        name = self._broker.new_group_id()
        coordinator = self._broker.ports.at(
            *self._broker.entry.find_coordinator(name, TRANSACTION_KEY)
        )
        producer_id, epoch = self._requests.await_producer_id(
            coordinator, name, COORDINATOR_SECONDS
        )
        if epoch != 0:
            raise SystemFailed(f"a new transactional id has epoch {epoch}")
        self._open = (name, coordinator)
        driven = DrivenId(name, producer_id, coordinator, f"{name}-offsets")
        if self._offsets:
            self._await_group(driven.group_id)
        places = {
            partition: BrokerPartition(self._requests.topic, number)
            for number, partition in enumerate(self._data)
        }
        look = Look(self._requests, driven, places, self._offsets)
        self._driven = DrivenTransaction(
            self._requests, driven, look, self._clients, self._data, self._offsets
        )

    def _await_group(self, group_id: str) -> None:
        """Until the group has a coordinator: at first its topic has to be made."""
        entry = self._broker.entry
        entry.find_coordinator(group_id)
        until = time.monotonic() + COORDINATOR_SECONDS
        while True:
            answer = entry.ask_body(self._requests.fetch_offset(group_id, stable=True))
            error, _ = fetched_offset(answer)
            if error not in TRY_AGAIN or time.monotonic() > until:
                return
            time.sleep(RETRY_SECONDS)

    def _leave_behind(self) -> None:
        """Nothing stays open; partitions where something hangs are given up."""
        if self._open is None:
            return
        left, self._open = self._open, None
        with suppress(SystemFailed):  # what was wrong is told by its test
            name, coordinator = left
            self._requests.await_producer_id(coordinator, name, _STABLE_SECONDS)
        until = time.monotonic() + _STABLE_SECONDS
        while not Look.is_stable(self._requests):
            if time.monotonic() > until:
                self._requests = self._new_topic()
                return
            time.sleep(RETRY_SECONDS)

    def apply(self, action: Action) -> None:
        """See `DrivenTransaction.apply`."""
        self._pace.step()
        self._driven.apply(action)
        self._pace.window = self.patience

    def observe(self) -> Observation:
        """The instances, and what is seen while nothing is under way."""
        driven = self._driven
        clients = driven.clients()
        if not driven.is_quiet:
            return Observation({"clients": clients})
        started = time.monotonic()
        seen = driven.look.values(self._coordinator_name, driven.origin)
        self._pace.looked_at, self._pace.seen_at = started, time.monotonic()
        return Observation({"clients": clients, **seen})

    # ---- Patient, Closeable ----------------------------------------------------------------

    def foresee(self, actions: Sequence[Action]) -> str:
        """There are no timers; but not every broker lets us write markers."""
        if not self._broker.entry.offers(MARKERS) and any(a.name in _BY_HAND for a in actions):
            return "the broker does not offer WriteTxnMarkers"
        return ""

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._pace.be_alone()

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again: markers are written by themselves."""
        return self._pace.patience

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe after a pause that doubles each time."""
        time.sleep(min(seconds, self._pace.next_pause()))
        self._driven.look.forget()
        return self.observe()

    @property
    def late(self) -> str:
        """Whether too little time was left for what was looked for."""
        return self._pace.slow(self._broker.entry.slowest)

    def close(self) -> None:
        """Delete what was made, and close the connections."""
        with self._broker.closing():
            self._leave_behind()


def _names(names: Value) -> list[str]:
    assert isinstance(names, frozenset), "TypeOK of the specification"
    return sorted(map(str, names))
