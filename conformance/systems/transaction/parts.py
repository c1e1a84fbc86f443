"""What the steps of Transactions.tla ask of coordinators, of their log and of partitions.

`impl`'s objects answer it in this process (broker, state_log, partition), Kafka's classes in a JVM
(bridged).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.transaction.settings import TransactionSettings
from impl.errors import Errors
from impl.transaction.transaction_metadata import TxnTransitMetadata
from impl.transaction.transaction_state import TransactionState
from impl.types import TopicPartition

NOTHING_PENDING = "None"
FENCING = "Fence"
COMPLETING = "Complete"
FORGOTTEN = TxnTransitMetadata(-1, 0, -1, txn_state=TransactionState.DEAD)
"""A tombstone; and what a coordinator knows of an id that it has not."""
EXPIRATION_MS = 1 << 16
"""transactional.id.expiration.ms of the brokers: LARGE of TransactionBroker.java."""

_MAX_COPIES = 2


class KnownTransaction(NamedTuple):
    """The id as a coordinator has it in memory, and the state that it is about to enter."""

    current: TxnTransitMetadata
    pending: str


class InFlightAppend(NamedTuple):
    """An append whose call-back has yet to come."""

    broker: str
    tenure: int
    offset: int
    record: TxnTransitMetadata


class SentMarker(NamedTuple):
    """A marker on its way to a partition."""

    partition: str
    epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int
    start: int
    """When the transaction began, in ms."""
    request: object
    """What its coordinator knows the request by."""

    @property
    def kind(self) -> str:
        """How it ends the transaction."""
        return "Committed" if self.is_commit else "Aborted"


class Coordinator(Protocol):
    """A broker that may coordinate the id."""

    @property
    def name(self) -> str:
        """The model's."""
        ...

    @property
    def tenure(self) -> int:
        """The leader epoch in which it was last elected; 0: never."""
        ...

    @property
    def loaded_at(self) -> int:
        """When it has last read the log, in ms."""
        ...

    @property
    def known(self) -> KnownTransaction | None:
        """The id, `FORGOTTEN` if there is none; None if nothing is loaded here."""
        ...

    @property
    def producer_ids(self) -> Mapping[str, int]:
        """The epoch that an instance was answered."""
        ...

    @property
    def ends(self) -> Mapping[int, tuple[Errors, int]]:
        """What the end of a transaction was answered: error and epoch."""
        ...

    def elect(self, tenure: int) -> None:
        """The broker leads; what it has promised in an earlier tenure is forgotten."""
        ...

    def load(self) -> None:
        """Read the log; then comes what was delayed since the broker led before."""
        ...

    def begin(self) -> None:
        """The id is known, and number 0 of `ProducerEpochs` is the next epoch to be given.

        An append that fails leaves the id without an epoch in memory; its record is cut.
        """
        ...

    def init_producer_id(self, client: str) -> None:
        """An instance asks for an epoch."""
        ...

    def begin_fence(self, client: str | None) -> None:
        """An instance asks for an epoch; or, None, the transaction's time is over."""
        ...

    def expire_ids(self) -> None:
        """The next look for ids that nobody uses."""
        ...

    def end_fence(self) -> None:
        """Go on with the fence. ActionRefused if none was begun."""
        ...

    def add_partition(self, partition: TopicPartition, epoch: int) -> None:
        """A client, or the partition's leader, adds a partition to the transaction.

        ApiException or ActionRefused, whose reason begins with the error, if it is refused.
        """
        ...

    def verify_partition(self, partition: TopicPartition, epoch: int) -> Errors:
        """NONE if the partition is in the transaction of that epoch."""
        ...

    def end_transaction(self, txn: int, epoch: int, *, commits: bool) -> None:
        """An instance ends a transaction; the answer is in `ends`."""
        ...

    def sent_markers(self) -> Sequence[SentMarker]:
        """The markers that the broker sends now."""
        ...

    def complete_marker(self, sent: SentMarker) -> None:
        """The partition's leader has written the marker."""
        ...

    def complete_transaction(self) -> None:
        """Append the completion. ActionRefused if markers are to come."""
        ...


class StatePartition(Protocol):
    """The partition of __transaction_state: the leader's log."""

    @property
    def leader(self) -> str:
        """The broker that leads it."""
        ...

    @property
    def tenure(self) -> int:
        """Its leader epoch."""
        ...

    @property
    def records(self) -> Sequence[TxnTransitMetadata]:
        """All records, oldest first."""
        ...

    @property
    def high_watermark(self) -> int:
        """How many of them are replicated."""
        ...

    @property
    def in_flight(self) -> Sequence[InFlightAppend]:
        """Appends whose call-back is to come."""
        ...

    def replicate(self) -> None:
        """The high watermark rises to the end."""
        ...

    def elect(self, broker: str, end: int) -> None:
        """Another broker leads, or the same one again."""
        ...

    def acknowledge(self, broker: str, tenure: int) -> None:
        """All replicas have the broker's append: its call-back comes."""
        ...

    def fail(self, broker: str) -> None:
        """The broker's append times out; the record stays."""
        ...


@dataclass(frozen=True, slots=True)
class Verification:
    """A batch that waits for the coordinator, with the guard that it was given."""

    batch: TransactionBatch
    guard: object
    is_verified: bool = False


class BatchInLog(NamedTuple):
    """A batch of a partition's log, of one record."""

    kind: str
    """`data`, or how its marker ends a transaction."""
    epoch: int
    coordinator_epoch: int
    value: str
    time: int
    """Of a marker: when its transaction began, in ms."""
    offset: int

    @property
    def is_marker(self) -> bool:
        """Whether it ends a transaction."""
        return self.kind != "data"


class TransactionBatches:
    """What a partition's log has of the batches that are sent, and of markers."""

    def __init__(
        self, batches: Sequence[BatchInLog], high_watermark: int, *, is_offsets: bool
    ) -> None:
        self._batches = batches
        self._high_watermark = high_watermark
        self._is_offsets = is_offsets

    def is_acknowledged(self, batch: TransactionBatch) -> bool:
        """Whether the batch is below the high watermark."""
        return any(
            logged.offset < self._high_watermark
            and logged.epoch == batch.epoch
            and logged.value == batch.value
            for logged in self._batches
        )

    def has_replicated(self, sent: SentMarker) -> bool:
        """Whether the marker is below the high watermark."""
        return self._copies_of_marker(sent, self._high_watermark) > 0

    def copies_of_marker(self, sent: SentMarker) -> int:
        """How often the marker is in the log."""
        return self._copies_of_marker(sent, len(self._batches))

    def _copies_of_marker(self, sent: SentMarker, end: int) -> int:
        key = (sent.kind, sent.epoch, sent.coordinator_epoch, sent.start)
        return sum(
            (logged.kind, logged.epoch, logged.coordinator_epoch, logged.time) == key
            for logged in self._batches
            if logged.offset < end
        )

    def has_place_for(self, batch: TransactionBatch) -> bool:
        """Whether the batch may arrive: those of one epoch come in order, and again."""
        if self._is_offsets:
            return sum(logged.value == batch.value for logged in self._batches) < _MAX_COPIES
        return batch.sequence <= self._next_sequence(batch.epoch)

    def is_next(self, batch: TransactionBatch) -> bool:
        """Whether the batch, if it may arrive, is not there yet."""
        return self._is_offsets or batch.sequence == self._next_sequence(batch.epoch)

    def _next_sequence(self, epoch: int) -> int:
        return sum(logged.epoch == epoch and not logged.is_marker for logged in self._batches)


class TransactionLeader(ABC):
    """The leader of a partition that transactions write: what Kafka's rules decide."""

    @property
    @abstractmethod
    def batches(self) -> Sequence[BatchInLog]:
        """The log."""

    @property
    @abstractmethod
    def high_watermark(self) -> int:
        """How many of the batches are replicated."""

    @property
    @abstractmethod
    def entry_epoch(self) -> int:
        """The epoch of the entry that is being verified; -1 if there is none."""

    @property
    @abstractmethod
    def guard(self) -> object:
        """The guard of that entry."""

    @abstractmethod
    def maybe_start_verification(self, batch: TransactionBatch) -> object | None:
        """The guard that the batch is given; None if it needs none."""

    @abstractmethod
    def append(self, batch: TransactionBatch, guard: object | None) -> None:
        """Append with that guard. ActionRefused if the batch is there."""

    @abstractmethod
    def write_marker(self, sent: SentMarker) -> None:
        """KafkaApis.handleWriteTxnMarkersRequest; before 4.2 the request has no version."""

    @abstractmethod
    def replicate(self) -> None:
        """All replicas have all of the log."""

    @abstractmethod
    def elect(self, end: int) -> None:
        """A follower leads that has the log up to `end`. Guards are not replicated."""

    @abstractmethod
    def stop(self) -> None:
        """Its broker stops; what else must hear of it hears."""

    @abstractmethod
    def restart(self) -> None:
        """Its broker is back."""


class TransactionPartition:
    """A partition, and the batches that its leader verifies.

    What is written to an offsets partition has no sequence, and comes from its coordinator.
    """

    def __init__(self, name: str, leader: TransactionLeader, settings: TransactionSettings) -> None:
        self.topic_partition = TopicPartition(name, 0)
        self.leader = leader
        self._is_offsets = name in settings.offsets_partitions
        self._replicates_at_once = not settings.of_partitions.changes_leaders
        self._verifications: dict[TransactionBatch, Verification] = {}
        self.is_leaderless = False

    def stop(self) -> None:
        """The broker that leads stops, and no other may lead. What it verified is over."""
        self.leader.elect(len(self.leader.batches))
        self.leader.stop()
        self.is_leaderless = True

    def restart(self) -> None:
        """The broker is back."""
        self.leader.restart()
        self.is_leaderless = False

    @property
    def verifications(self) -> list[Verification]:
        """Those whose guard still counts, in the order of their batches."""
        guard = self.leader.guard
        known = (self._verifications[batch] for batch in sorted(self._verifications))
        return [verification for verification in known if verification.guard == guard]

    def start_verification(self, batch: TransactionBatch) -> None:
        """A batch arrives that must be verified.

        AddPartitionsToTxnManager asks for one batch of an epoch at a time: who comes second begins
        when the other one is answered.
        """
        guard = self.leader.maybe_start_verification(batch)
        if guard is None:
            raise ActionRefused(f"{batch} needs no verification")
        if self.is_verifying(batch):
            raise ActionRefused(f"another batch of epoch {batch.epoch} is being verified")
        self._verifications[batch] = Verification(batch, guard)

    def verify(self, batch: TransactionBatch) -> None:
        """The coordinator has said that the partition is in the transaction."""
        known = self._verifications[batch]
        self._verifications[batch] = Verification(batch, known.guard, is_verified=True)

    def append(self, batch: TransactionBatch) -> None:
        """Append with the batch's guard; one that waits for the coordinator has none."""
        known = self._verifications.get(batch)
        self.leader.append(batch, known.guard if known is not None and known.is_verified else None)
        self._verifications.pop(batch, None)
        if self._replicates_at_once:
            self.leader.replicate()

    def write_marker(self, sent: SentMarker) -> None:
        """A marker arrives."""
        self.leader.write_marker(sent)
        if self._replicates_at_once:
            self.leader.replicate()

    def forget(self, batch: TransactionBatch) -> None:
        """The request is answered with an error."""
        self._verifications.pop(batch, None)

    @property
    def log(self) -> TransactionBatches:
        """What its log has."""
        leader = self.leader
        return TransactionBatches(
            leader.batches, leader.high_watermark, is_offsets=self._is_offsets
        )

    def is_verifying(self, batch: TransactionBatch) -> bool:
        """Whether the batch, or another of its epoch, waits for the coordinator already."""
        return any(
            known.batch == batch
            or not (self._is_offsets or known.is_verified or known.batch.epoch != batch.epoch)
            for known in self.verifications
        )


def tombstones_in(records: Sequence[TxnTransitMetadata]) -> int:
    """How often the id was forgotten."""
    return sum(record.txn_state is TransactionState.DEAD for record in records)
