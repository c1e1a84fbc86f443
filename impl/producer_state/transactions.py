"""Transactions of a partition, and what must be verified before one begins.

Source: TxnMetadata, CompletedTxn, AbortedTxn, VerificationStateEntry, VerificationGuard
(org.apache.kafka.storage.internals.log).
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class TxnMetadata:
    """A transaction by its first offset; `last_offset` is its marker's, None while it is open."""

    producer_id: int
    first_offset: int
    last_offset: int | None = None


@dataclass(frozen=True, slots=True)
class CompletedTxn:
    """A transaction that a marker ends; `last_offset` is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(frozen=True, slots=True)
class AbortedTxn:
    """An entry of the abort index; `last_stable_offset` is the one behind the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class VerificationGuard:
    """Given to a request that verifies; it counts while its entry is there. Each is another."""

    __slots__ = ()


SENTINEL = VerificationGuard()
"""Of what needs no verification; it verifies nothing."""


@dataclass(frozen=True, slots=True)
class VerificationStateEntry:
    """A producer whose transaction is being verified; `timestamp` is that of its creation, in ms.

    `supports_epoch_bump`: the producer has transactions of version 2.
    """

    guard: VerificationGuard
    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool

    def maybe_update(self, sequence: int, epoch: int) -> VerificationStateEntry:
        """The entry with the lowest sequence of the highest epoch."""
        if epoch > self.epoch:
            return replace(self, epoch=epoch, lowest_sequence=sequence)
        if epoch == self.epoch and sequence < self.lowest_sequence:
            return replace(self, lowest_sequence=sequence)
        return self
