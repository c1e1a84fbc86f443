"""The instances of the producer, which the adapter plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from conformance.systems.protocol import ActionRefused
from conformance.systems.transaction.network import TransactionNetwork
from conformance.systems.transaction.observation import batch_of
from conformance.systems.transaction.parts import (
    Coordinator,
    TransactionBatch,
    TransactionPartition,
)
from conformance.tla import Fn, Value, make_function
from impl.errors import Errors

NO_EPOCH = -1


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


class ProducerInstances:
    """All instances; what they send goes to the network."""

    def __init__(self, names: Iterable[str], network: TransactionNetwork, version: int) -> None:
        self.by_name = {name: Instance() for name in names}
        self._network = network
        self._version = version
        self._begun = 0

    def observe(self) -> Value:
        """As the specification has them."""
        return make_function({name: _instance(i) for name, i in self.by_name.items()})

    def names_in(self, state: str) -> list[str]:
        """The instances that are there."""
        return [name for name, instance in self.by_name.items() if instance.state == state]

    def take_producer_id(self, client: str, broker: Coordinator) -> None:
        """The answer to InitProducerId comes."""
        epoch = broker.producer_ids.get(client)
        if epoch is None:
            raise ActionRefused(f"{broker.name} has given {client} no epoch")
        self.by_name[client] = self.by_name[client].with_epoch(epoch)

    def begin_transaction(self, client: str) -> None:
        """The application begins one; they are numbered."""
        self._begun += 1
        self.by_name[client] = self.by_name[client].begin(self._begun)

    def take_added(self, client: str, broker: Coordinator, partition: TransactionPartition) -> None:
        """The answer to AddPartitionsToTxn comes."""
        instance = self.by_name[client]
        if not broker.has_partition(partition.topic_partition, instance.epoch):
            raise ActionRefused(f"{partition.name} is not in the transaction of {client}")
        self.by_name[client] = instance.with_added(partition.name)

    def send_batch(self, client: str, partition: str) -> None:
        """The application sends a record."""
        batch = self.by_name[client].next_batch(partition)
        self._network.send_batch(batch)
        self.by_name[client] = self.by_name[client].send(batch)

    def end_transaction(self, client: str, *, commits: bool) -> None:
        """The application ends its transaction."""
        instance = self.by_name[client]
        self._network.answered_batches(instance.sent)
        self._network.send_end(instance.txn, instance.epoch, commits=commits)
        self.by_name[client] = instance.end(commits=commits)

    def take_end(
        self,
        client: str,
        broker: Coordinator,
        is_acknowledged: Callable[[TransactionBatch], bool],
    ) -> None:
        """The answer that has come with the decision, or that to the request sent again."""
        instance = self.by_name[client]
        if broker.ends.get(instance.txn, (Errors.UNKNOWN_SERVER_ERROR, 0))[0] is not Errors.NONE:
            broker.end_transaction(instance.txn, instance.epoch, commits=instance.commits)
        error, epoch = broker.ends.get(instance.txn, (Errors.REQUEST_TIMED_OUT, 0))
        if error is not Errors.NONE:
            raise ActionRefused(f"{broker.name} answers the end of {instance.txn}: {error.name}")
        self._network.answered_end(instance.txn, instance.epoch, commits=instance.commits)
        new_epoch = epoch if self._version >= 2 else NO_EPOCH
        self.by_name[client] = instance.ended(new_epoch, is_acknowledged)


def _instance(instance: Instance) -> Value:
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
