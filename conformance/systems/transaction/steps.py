"""The steps of instances and of partitions' leaders: requests and answers that arrive."""

from __future__ import annotations

from conformance.systems.protocol import ActionRefused
from conformance.systems.transaction.world import TransactionWorld
from impl.errors import Errors


def take_producer_id(world: TransactionWorld, client: str, name: str) -> None:
    """InitProducerId is answered."""
    world.clients.take_producer_id(client, world.brokers[name])


def take_added(world: TransactionWorld, client: str, name: str, partition: str) -> None:
    """AddPartitionsToTxn is answered."""
    world.clients.take_added(client, world.brokers[name], world.partitions[partition])


def take_end(world: TransactionWorld, client: str, name: str) -> None:
    """EndTxn is answered."""
    world.clients.take_end(client, world.brokers[name], world.is_acknowledged)


def start_verification(world: TransactionWorld, partition: str, txn: int, sequence: int) -> None:
    """A batch arrives that must be verified."""
    batch = world.network.batch(partition, txn, sequence)
    world.partitions[partition].start_verification(batch)


def verify(world: TransactionWorld, name: str, partition: str) -> None:
    """The coordinator is asked whether the partition is in the batch's transaction."""
    leader = world.partitions[partition]
    batch = world.waiting(name, partition)[0]
    error = world.brokers[name].verify_partition(leader.topic_partition, batch.epoch)
    if error is not Errors.NONE:
        raise ActionRefused(f"{partition} is not in the transaction of {batch}: {error.name}")
    leader.verify(batch)


def append_batch(world: TransactionWorld, partition: str, txn: int, sequence: int) -> None:
    """A batch arrives, or has been verified."""
    world.partitions[partition].append(world.network.batch(partition, txn, sequence))


def write_marker(world: TransactionWorld, partition: str, txn: int, coordinator_epoch: int) -> None:
    """A marker arrives."""
    sent = world.network.marker(partition, txn, coordinator_epoch)
    world.partitions[partition].write_marker(sent)


def restart_leader(world: TransactionWorld, partition: str) -> None:
    """Coordinators that have waited for it send their markers."""
    world.partitions[partition].restart()
    for name in world.brokers:
        world.send_markers(name)
