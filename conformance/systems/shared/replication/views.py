"""What is seen of a broker: plain numbers and tuples, whoever's objects they are read of.

`observation` makes each into a value of the specification once.
"""

from __future__ import annotations

from typing import NamedTuple

from conformance.systems.shared.replication.controller import AlterPartitionItem

NO_EPOCH = -1
NO_OFFSET = -1


class MessageView(NamedTuple):
    """A message in flight; a field that it lacks has the value of the spec's NoMessage."""

    type: str = "None"
    leader: int | None = None
    current_leader_epoch: int = NO_EPOCH
    broker_epoch: int = 0
    fetch_offset: int = 0
    last_epoch: int = NO_EPOCH
    error: str = "NONE"
    epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET
    records: tuple[int, ...] = ()
    high_watermark: int = 0
    log_start_offset: int = 0


class AlterPartitionView(NamedTuple):
    """An AlterPartition in flight, or its answer; broker epochs by broker."""

    type: str = "None"
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = 0
    isr: frozenset[int] = frozenset()
    broker_epochs: tuple[tuple[int, int], ...] = ()
    error: str = "NONE"


class BrokerView(NamedTuple):
    """One broker. `followers`: (log end offset, broker epoch) in the order of all brokers."""

    online: bool
    broker_epoch: int
    leader_epoch: int
    leader: int | None
    isr: frozenset[int]
    partition_epoch: int
    pending_isr: frozenset[int]
    followers: tuple[tuple[int, int], ...]
    log: tuple[int, ...]
    log_start_offset: int
    high_watermark: int
    epoch_cache: tuple[tuple[int, int], ...]
    fetch_state: str
    fetch_offset: int
    message: MessageView
    alter_partition: AlterPartitionView


NO_ALTER_PARTITION = AlterPartitionView()


def alter_partition_view(item: AlterPartitionItem | None) -> AlterPartitionView:
    """What is in flight between a leader and the controller."""
    if item is None:
        return NO_ALTER_PARTITION
    sent = item.proposed
    if item.decision is None:
        return AlterPartitionView(
            "Request", sent.leader_epoch, sent.partition_epoch, sent.isr, sent.isr_with_broker_epoch
        )
    error = item.decision.error
    return AlterPartitionView(
        "Response", sent.leader_epoch, sent.partition_epoch, sent.isr, error=error
    )
