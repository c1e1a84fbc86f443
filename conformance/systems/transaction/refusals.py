"""Requests that brokers must refuse: the error is a part of the step.

TransactionErrors.tla has them, and TransactionExpiry.tla those of an id that was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from conformance.systems.protocol import ActionRefused
from conformance.systems.transaction.world import TransactionWorld
from impl.errors import ApiException

_OF_MARKERS: Final = ("NONE", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED")


def refuse_verification(
    world: TransactionWorld, partition: str, txn: int, sequence: int, error: str
) -> None:
    """A batch arrives that is too old to be verified."""
    batch, leader = world.network.batch(partition, txn, sequence), world.partitions[partition]
    _refused(world, lambda: leader.start_verification(batch), error)


def refuse_batch(
    world: TransactionWorld, partition: str, txn: int, sequence: int, error: str
) -> None:
    """A batch is to be appended, with the guard that it was given if it was verified."""
    batch, leader = world.network.batch(partition, txn, sequence), world.partitions[partition]
    _refused(world, lambda: leader.append(batch), error)
    leader.forget(batch)


def deliver_outdated_marker(
    world: TransactionWorld, partition: str, txn: int, coordinator_epoch: int
) -> None:
    """A marker arrives that must not end what is open; who takes it has it in the log then."""
    sent = world.network.marker(partition, txn, coordinator_epoch)
    answer = _answer(world, lambda: world.partitions[partition].write_marker(sent))
    if answer not in _OF_MARKERS:
        raise ActionRefused(f"the broker answers {answer}")


def refuse_add_partition(
    world: TransactionWorld, name: str, client: str, partition: str, error: str
) -> None:
    """An instance adds a partition, and nothing is appended."""
    leader, epoch = world.partitions[partition], world.clients.by_name[client].epoch
    _refused(world, lambda: world.brokers[name].add_partition(leader.topic_partition, epoch), error)


def refuse_end(world: TransactionWorld, name: str, txn: int, commits: bool, error: str) -> None:
    """An EndTxn comes, and nothing is appended."""
    broker, epoch = world.brokers[name], world.network.epoch_of_end(txn, commits=commits)
    broker.end_transaction(txn, epoch, commits=commits)
    answer, _epoch = broker.ends[txn]
    _check(answer.name, error)


def refuse_waiting_batch(world: TransactionWorld, name: str, partition: str, error: str) -> None:
    """The leader asks the coordinator about a batch, and answers it with the error."""
    broker, leader = world.brokers[name], world.partitions[partition]
    batch = world.waiting(name, partition)[0]
    if world.settings.version >= 2:
        _refused(world, lambda: broker.add_partition(leader.topic_partition, batch.epoch), error)
    else:
        _check(broker.verify_partition(leader.topic_partition, batch.epoch).name, error)
    leader.forget(batch)


def _refused(world: TransactionWorld, request: Callable[[], None], error: str) -> None:
    """ActionRefused if the request is answered otherwise."""
    _check(_answer(world, request), error)


def _check(answer: str, error: str) -> None:
    if answer != error:
        raise ActionRefused(f"the broker answers {answer}, not {error}")


def _answer(world: TransactionWorld, request: Callable[[], None]) -> str:
    """The error's name; the bridge begins the reason of a refusal with it."""
    try:
        request()
        _ = world.state.high_watermark  # the bridge answers with what is seen next
    except ApiException as refusal:
        return refusal.error.name
    except ActionRefused as refusal:
        return str(refusal).partition(":")[0]
    return "NONE"
