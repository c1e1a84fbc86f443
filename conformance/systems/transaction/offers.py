"""The steps that brokers may take with what has arrived, within a model's bounds."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.systems.transaction.parts import tombstones_in
from conformance.systems.transaction.world import TransactionWorld
from conformance.tla import Action

OFFERABLE = frozenset(
    {
        "HandleInitProducerId",
        "BeginFence",
        "EndFence",
        "ExpireId",
        "AddPartitionOfClient",
        "AddPartitionOfLeader",
        "Verify",
        "HandleEndTxn",
        "CompleteTransaction",
        "Load",
        "StartVerification",
        "AppendBatch",
        "WriteMarker",
    }
)


def candidates(world: TransactionWorld) -> Iterator[Action]:
    """What is worth trying. A batch arrives in the order of its sequences."""
    for name, broker in world.brokers.items():
        yield Action("Load", (name,))
        yield from (Action("Verify", (name, p)) for p in world.partitions if world.unverified(p))
        if name == world.state.leader and broker.known is not None:
            yield from _of_coordinator(world, name, broker.known.current.producer_epoch)
    for batch in world.network.batches:
        leader = world.partitions[batch.partition]
        args = (batch.partition, batch.txn, batch.sequence)
        if leader.log.has_place_for(batch) and not leader.is_leaderless:
            yield Action("AppendBatch", args)
            if leader.log.is_next(batch) and not leader.is_verifying(batch):
                yield Action("StartVerification", args)
    for sent in world.network.markers.values():
        leader = world.partitions[sent.partition]
        copies = leader.log.copies_of_marker(sent)
        if copies < world.settings.max_copies and not leader.is_leaderless:
            txn, epoch = world.network.txn_of(sent), sent.coordinator_epoch
            yield Action("WriteMarker", (sent.partition, txn, epoch))


def _of_coordinator(world: TransactionWorld, name: str, epoch: int) -> Iterator[Action]:
    """The steps of the coordinator that leads, and knows the id with that epoch."""
    settings, clients = world.settings, world.clients
    asking = clients.names_in("Initializing")
    open_txns = clients.names_in("InTransaction")
    yield from (Action(step, (name,)) for step in ("EndFence", "CompleteTransaction"))
    for partition in world.partitions:
        if settings.version >= 2:
            if world.unverified(partition):
                yield Action("AddPartitionOfLeader", (name, partition))
        else:
            adding = (c for c in open_txns if partition not in clients.by_name[c].added)
            yield from (Action("AddPartitionOfClient", (name, c, partition)) for c in adding)
    for txn, end_epoch, commits in world.network.ends:
        if settings.version < 2 or settings.has_epoch_left(end_epoch):
            yield Action("HandleEndTxn", (name, txn, commits))
    if tombstones_in(world.state.records) < settings.max_expiries:
        yield Action("ExpireId", (name,))
    if settings.has_epoch_left(epoch):
        yield from (Action("HandleInitProducerId", (name, client)) for client in asking)
        if asking or settings.times_out:
            yield Action("BeginFence", (name,))
