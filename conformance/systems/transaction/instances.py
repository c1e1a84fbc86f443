"""The instances of the producer, which the adapter plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.transaction.instance import (
    NO_EPOCH,
    Instance,
    TransactionBatch,
    instance_of,
)
from conformance.systems.transaction.network import TransactionNetwork
from conformance.systems.transaction.parts import Coordinator, TransactionPartition
from conformance.tla import Value, make_function
from impl.errors import Errors


class ProducerInstances:
    """All instances; what they send goes to the network."""

    def __init__(self, names: Iterable[str], network: TransactionNetwork, version: int) -> None:
        self.by_name = {name: Instance() for name in names}
        self._network = network
        self._version = version
        self._begun = 0

    def observe(self) -> Value:
        """As the specification has them."""
        return make_function({name: instance_of(i) for name, i in self.by_name.items()})

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
        instance, topic_partition = self.by_name[client], partition.topic_partition
        if broker.verify_partition(topic_partition, instance.epoch) is not Errors.NONE:
            raise ActionRefused(f"{topic_partition} is not in the transaction of {client}")
        self.by_name[client] = instance.with_added(topic_partition.topic)

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
