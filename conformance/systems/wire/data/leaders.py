"""Who leads the partition of a test, and how another leader is elected: the user's command does it
for all partitions, or kconform moves the partition to another broker."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from conformance.errors import UserError
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.data.requests import LATEST, NO_EPOCH, DataRequests
from conformance.systems.wire.failover import MOVE, turns
from conformance.systems.wire.leadership import leader_of, move_replica
from conformance.systems.wire.security import Security
from conformance.systems.wire.transaction.requests import NONE

_SECONDS = 60.0
_PAUSE_SECONDS = 0.02
_NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"


class PartitionLeaders:
    """Of one test after the other. A command strikes all partitions, so tests that run side by side
    wait at it for one another."""

    def __init__(self, broker: WireBroker, security: Security, *, change: bool) -> None:
        address = broker.address
        self._broker = broker
        self._turns = turns(address, security) if change and address.fail_over != MOVE else None
        self._in_turn = False

    def begin(self) -> None:
        """A test begins."""
        self.end()
        if self._turns is not None:
            self._turns.begin(late=False)
            self._in_turn = True

    def end(self) -> None:
        """A test has ended: others need not wait for it."""
        if self._turns is not None and self._in_turn:
            self._in_turn = False
            self._turns.end()

    def find(self, requests: DataRequests) -> DataRequests:
        """A new partition's requests at its leader: a broker hears of itself late. Raises
        SystemFailed where there is none."""
        until = time.monotonic() + _SECONDS
        while (error := requests.list_offsets(LATEST).error) != NONE:
            if time.monotonic() > until:
                raise SystemFailed(f"ListOffsets of a new partition was answered {error}")
            time.sleep(_PAUSE_SECONDS)
            if error == _NOT_LEADER:
                requests = self._at_leader(requests)
        return requests

    def elect(self, requests: DataRequests) -> DataRequests:
        """The same, once another leader is elected. Raises UserError where none is."""
        epoch = requests.list_offsets(LATEST).leader_epoch
        if self._turns is None:
            move_replica(self._broker.entry, requests.topic, requests.index)
        else:
            self._turns.wait()
            for port in self._broker.ports:
                port.renew()
        until = time.monotonic() + _SECONDS
        while (known := self._epoch(requests)) <= epoch:
            if time.monotonic() > until:
                raise UserError(
                    f"No leader of {requests.topic}-{requests.index} is elected by --fail-over "
                    f"{self._broker.address.fail_over}: after {_SECONDS:.0f} s its leader epoch "
                    f"is {known}, as before. A command must restart the broker."
                )
            time.sleep(_PAUSE_SECONDS)
            with suppress(SystemFailed, UserError):
                requests = self._at_leader(requests)
        return requests

    def _epoch(self, requests: DataRequests) -> int:
        """In which a leader answers; -1 while none does."""
        try:
            listed = requests.list_offsets(LATEST)
        except (SystemFailed, UserError):  # it is gone, or comes back
            for port in self._broker.ports:
                port.renew()
            return NO_EPOCH
        return listed.leader_epoch if listed.error == NONE else NO_EPOCH

    def _at_leader(self, requests: DataRequests) -> DataRequests:
        where = leader_of(self._broker.entry, requests.topic, requests.index)
        return requests if where is None else replace(requests, port=self._broker.ports.at(*where))
