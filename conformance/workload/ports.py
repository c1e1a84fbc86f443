"""What a workload asks of a client library: the same of each, so that one program drives all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from conformance.workload.plan import PlannedRecord

Partition = tuple[str, int]
"""A topic and a number."""
DELIVERY_MS, REQUEST_MS, TRANSACTION_MS, SESSION_MS = 8_000, 3_000, 10_000, 6_000
"""Time-outs of all clients: short, so that a workload shows what becomes of them."""
ANSWER_S = 12.0
"""Seconds after which an operation counts as not answered: longer than a delivery may take."""


class ClientProblem(Exception):
    """The library reports an error: what became of the operation is not known."""


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What a producer was told of a record."""

    acknowledged: bool
    offset: int | None = None
    error: str = ""
    refused: bool = False
    """The error is MESSAGE_TOO_LARGE."""


@dataclass(frozen=True, slots=True)
class PolledRecord:
    """A record that a consumer was given."""

    topic: str
    partition: int
    offset: int
    value: str


def record_key(record: PlannedRecord) -> bytes | None:
    """The key to send it with, None if it has none."""
    return b"k" * record.key_bytes or None


class ConsumerListener(Protocol):
    """Is told what happens in a poll, in its order."""

    def polled(self, records: Sequence[PolledRecord]) -> None:
        """Records in the order in which they came."""

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """All partitions that the consumer has from now on."""


class ClientPort(Protocol):
    """What all have."""

    def rest(self, seconds: float) -> None:
        """Do nothing for so long, but for what runs in the background."""

    def close(self) -> None:
        """Close in order. Raises ClientProblem."""


class ProducerPort(ClientPort, Protocol):
    """A producer. The constructor of a transactional one fences its predecessors."""

    def send(self, records: Sequence[PlannedRecord]) -> list[DeliveryReport]:
        """Send all at once and wait for the answers. Raises ClientProblem."""

    def begin(self) -> None:
        """Begin a transaction. Raises ClientProblem."""

    def commit(self) -> None:
        """Commit it. Raises ClientProblem."""

    def abort(self) -> None:
        """Abort it. Raises ClientProblem."""

    def send_offsets(self, positions: Mapping[Partition, int], consumer: ConsumerPort) -> None:
        """Commit positions of the consumer's group within the transaction. Raises ClientProblem."""


class ConsumerPort(ClientPort, Protocol):
    """A consumer."""

    def subscribe(self, topics: Sequence[str], listener: ConsumerListener) -> None:
        """Join the group, or join it again. Raises ClientProblem."""

    def assign(self, partitions: Sequence[Partition]) -> None:
        """Read these from their beginning. Raises ClientProblem."""

    def poll(self, most: int, seconds: float, listener: ConsumerListener) -> None:
        """Poll once: at most so many records, for so long. Raises ClientProblem."""

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit positions and wait for the answer. Raises ClientProblem."""

    def fetch(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The group's positions, of those that it has. Raises ClientProblem."""

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from there. Raises ClientProblem."""
