"""An idempotent producer's bookkeeping, as kconform plays it at a port (KIP-98, KIP-360)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from conformance.systems.protocol import ActionRefused

NO_SEQUENCE = -1
OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch as it was sent: `size` records, each with the number `value`."""

    epoch: int
    seq: int
    size: int
    value: int

    @property
    def last(self) -> int:
        """The sequence of its last record."""
        return self.seq + self.size - 1


@dataclass(slots=True)
class WireProducer:
    """A producer of one partition. Its epoch counts its own bumps, from 0 on."""

    epoch: int = 0
    next: int = 0
    last_acked: int = NO_SEQUENCE
    values: int = 0
    pending: list[SentBatch] = field(default_factory=list)
    sent: dict[tuple[int, int], SentBatch] = field(default_factory=dict)
    """By epoch and value: whatever was sent once may arrive at any time."""

    def send(self, size: int) -> None:
        """Number the application's next batch."""
        self.values += 1
        batch = SentBatch(self.epoch, self.next, size, self.values)
        self.next += size
        self.pending.append(batch)
        self.sent[batch.epoch, batch.value] = batch

    def waiting(self, value: int) -> SentBatch:
        """The batch with this value, which is not acknowledged."""
        for batch in self.pending:
            if batch.value == value:
                return batch
        raise ActionRefused(f"the client does not wait for batch {value}")

    def complete(self, batch: SentBatch) -> None:
        """The batch was answered without an error."""
        self.pending.remove(batch)
        self.last_acked = max(self.last_acked, batch.last)

    def bump(self, batch: SentBatch, error: str) -> None:
        """Raise the epoch and number all that is pending anew, if the answer asks for it."""
        if error != OUT_OF_ORDER or batch.seq != self.last_acked + 1:
            raise ActionRefused(f"the client sends batch {batch.value} again after {error}")
        self.epoch, self.next, self.last_acked = self.epoch + 1, 0, NO_SEQUENCE
        for at, old in enumerate(self.pending):
            renumbered = replace(old, epoch=self.epoch, seq=self.next)
            self.next += old.size
            self.pending[at] = renumbered
            self.sent[self.epoch, old.value] = renumbered
