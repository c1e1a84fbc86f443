"""An instance of a transactional producer, as an adapter plays it (TransactionManager)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from conformance.tla import Fn, Value

NO_EPOCH = -1


@dataclass(frozen=True, slots=True, order=True)
class TransactionBatch:
    """A Produce (or TxnOffsetCommit) request of one record."""

    partition: str
    epoch: int
    sequence: int
    txn: int

    @property
    def value(self) -> str:
        """The record's."""
        return f"{self.txn} {self.sequence}"


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance: where it is, and what it has sent (TransactionManager)."""

    state: str = "Initializing"
    epoch: int = NO_EPOCH
    txn: int = 0
    added: frozenset[str] = frozenset()
    sent: frozenset[TransactionBatch] = field(default_factory=frozenset)
    commits: bool = False

    def with_epoch(self, epoch: int) -> Instance:
        """InitProducerId is answered."""
        return replace(self, state="Ready", epoch=epoch)

    def begin(self, txn: int) -> Instance:
        """The application begins a transaction."""
        return replace(self, state="InTransaction", txn=txn)

    def with_added(self, partition: str) -> Instance:
        """AddPartitionsToTxn is answered."""
        return replace(self, added=self.added | {partition})

    def next_batch(self, partition: str) -> TransactionBatch:
        """The batch that the application sends next; sequences are those of the epoch."""
        sequence = sum(batch.partition == partition for batch in self.sent)
        return TransactionBatch(partition, self.epoch, sequence, self.txn)

    def send(self, batch: TransactionBatch) -> Instance:
        """The batch is sent."""
        return replace(self, sent=self.sent | {batch})

    def end(self, *, commits: bool) -> Instance:
        """The application ends the transaction."""
        return replace(self, state="Ending", commits=commits)

    def ended(self, epoch: int, is_acknowledged: Callable[[TransactionBatch], bool]) -> Instance:
        """EndTxn is answered, in version 2 with a new epoch.

        A batch of unknown fate must not reach the next transaction: version 1 asks for a new epoch
        (KIP-360).
        """
        if epoch != NO_EPOCH:
            return Instance("Ready", epoch)
        own = [batch for batch in self.sent if batch.txn == self.txn]
        if all(map(is_acknowledged, own)):
            return Instance("Ready", self.epoch, sent=self.sent)
        return Instance("Initializing", self.epoch)


def batch_of(batch: TransactionBatch) -> Value:
    """A batch that was sent."""
    return Fn(
        {
            "type": "Produce",
            "partition": batch.partition,
            "epoch": batch.epoch,
            "sequence": batch.sequence,
            "txn": batch.txn,
        }
    )


def instance_of(instance: Instance) -> Value:
    """An instance as the specification has it."""
    return Fn(
        {
            "state": instance.state,
            "epoch": instance.epoch,
            "txn": instance.txn,
            "added": instance.added,
            "sent": frozenset(map(batch_of, instance.sent)),
            "commits": instance.commits,
        }
    )
