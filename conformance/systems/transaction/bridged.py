"""The system under test: Kafka's own classes for transactions, driven by Transactions.tla.

TransactionCoordinator, TransactionStateManager, TransactionMarkerChannelManager and the UnifiedLogs
with their ProducerStateManagers are Kafka's (conformance/systems/kafka/java/transactions). The
steps are those of `system`; here is what they ask of the JVM. Brokers and partitions are numbered
from 1 in the order of their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

import msgspec

from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.transaction.broker import TIMEOUT_MS
from conformance.systems.transaction.epochs import PRODUCER_ID
from conformance.systems.transaction.parts import (
    COMPLETING,
    FENCING,
    NOTHING_PENDING,
    BatchInLog,
    InFlightAppend,
    KnownTransaction,
    SentMarker,
    TransactionLeader,
    TransactionPartition,
)
from conformance.systems.transaction.settings import TransactionSettings
from conformance.systems.transaction.system import ChosenBatches, TransactionSteps
from conformance.systems.transaction.world import TransactionParts
from conformance.tla import Action, Value
from impl.clock import Clock, MockClock
from impl.errors import Errors
from impl.transaction.transaction_metadata import TxnTransitMetadata
from impl.transaction.transaction_state import PREPARES, TransactionState
from impl.types import TopicPartition

_NO_GUARD = 0
_NO_SEQUENCE = -1

_Record = tuple[int, int, tuple[int, ...], int, int]
"""State, epoch, partitions, when the transaction began, when the record was made."""


class _BridgeMetadata(msgspec.Struct, frozen=True, array_like=True):
    """TransactionMetadata as the bridge writes it; `pending` is -1 if nothing is."""

    state: int
    epoch: int
    partitions: tuple[int, ...]
    start: int
    updated: int
    pending: int
    completes: bool

    @property
    def record(self) -> _Record:
        """The part that a record of the log has, too."""
        return self.state, self.epoch, self.partitions, self.start, self.updated


class _BridgeBroker(msgspec.Struct, frozen=True, array_like=True):
    """A coordinator as the bridge writes it."""

    metadata: _BridgeMetadata | None
    producer_ids: dict[str, int]
    ends: tuple[tuple[int, str, int], ...]


class _BridgeTopic(msgspec.Struct, frozen=True, array_like=True):
    """The partition of __transaction_state as the bridge writes it."""

    records: tuple[_Record, ...]
    high_watermark: int


class _TransactionsPartition(msgspec.Struct, frozen=True, array_like=True):
    """A partition as the bridge writes it; batches are in the order of `BatchInLog`."""

    batches: tuple[tuple[str, int, int, str, int, int], ...]
    high_watermark: int
    entry_epoch: int
    guard: int


class _TransactionsView(msgspec.Struct, frozen=True, array_like=True):
    """All of it: Transactions.java."""

    topic: _BridgeTopic
    brokers: tuple[_BridgeBroker, ...]
    appends: tuple[tuple[int, int, int, _Record], ...]
    partitions: tuple[_TransactionsPartition, ...]


_as_view = cache(msgspec.json.Decoder(_TransactionsView).decode)
_as_name = msgspec.json.Decoder(str).decode
_as_markers = msgspec.json.Decoder(list[tuple[int, int, int, int, bool, int, int]]).decode


class _Bridge:
    """Commands to the JVM. What has no answer waits for the next command that has one."""

    def __init__(self, channel: AdapterChannel, settings: TransactionSettings) -> None:
        self.settings = settings
        self._channel = channel
        self._waiting: list[Mapping[str, object]] = []
        self._view: _TransactionsView | None = None
        self._clock: Clock = MockClock()

    def reset(self, clock: Clock, leader: str) -> None:
        """New objects, whose clock follows this one."""
        self._clock = clock
        self.tell(
            "txn_reset",
            leader=self.settings.coordinators.index(leader) + 1,
            brokers=len(self.settings.coordinators),
            partitions=len(self.settings.partitions),
            version=self.settings.version,
            last_epoch=self.settings.last_epoch,
            epochs_of_id=self.settings.epochs_of_id,
            verifies=self.settings.of_partitions.verifies,
        )

    def tell(self, command: str, **members: object) -> None:
        """A command that has no answer."""
        self._view = None
        self._waiting.append(self._timed(command, members))

    def ask(self, command: str, **members: object) -> bytes:
        """A command's answer. ActionRefused or SystemFailed if it, or one before, went wrong."""
        self._view = None
        commands, self._waiting = [*self._waiting, self._timed(command, members)], []
        return bytes(self._channel.call(commands)[-1])

    def _timed(self, command: str, members: Mapping[str, object]) -> Mapping[str, object]:
        return {"command": command, "now": self._clock.milliseconds(), **members}

    @property
    def view(self) -> _TransactionsView:
        """All of it as it is now."""
        if self._view is None:
            self._view = _as_view(self.ask("txn_view"))
        return self._view

    # ---- values ----------------------------------------------------------------------------

    def number_of(self, partition: TopicPartition) -> int:
        """The bridge's."""
        return self.settings.partitions.index(partition.topic) + 1

    def record_of(self, record: _Record) -> TxnTransitMetadata:
        """A record of the log, or what a coordinator has in memory."""
        state, epoch, partitions, start, updated = record
        return TxnTransitMetadata(
            PRODUCER_ID,
            TIMEOUT_MS,
            updated,
            producer_epoch=epoch,
            txn_state=TransactionState(state),
            topic_partitions=frozenset(
                TopicPartition(self.settings.partitions[number - 1], 0) for number in partitions
            ),
            txn_start_timestamp=start,
        )


class KafkaTransactionState:
    """See `StatePartition`."""

    def __init__(self, bridge: _Bridge, leader: str) -> None:
        self.leader, self.tenure = leader, 1
        self._bridge = bridge
        self._names = bridge.settings.coordinators

    @property
    def records(self) -> Sequence[TxnTransitMetadata]:
        """See `StatePartition.records`."""
        return list(map(self._bridge.record_of, self._bridge.view.topic.records))

    @property
    def high_watermark(self) -> int:
        """See `StatePartition.high_watermark`."""
        return self._bridge.view.topic.high_watermark

    @property
    def in_flight(self) -> Sequence[InFlightAppend]:
        """See `StatePartition.in_flight`."""
        return [
            InFlightAppend(self._names[broker - 1], tenure, offset, self._bridge.record_of(record))
            for broker, tenure, offset, record in self._bridge.view.appends
        ]

    def replicate(self) -> None:
        """See `StatePartition.replicate`."""
        end = len(self._bridge.view.topic.records)
        self._tell("txn_replicate_state", self.leader, end=end)

    def elect(self, broker: str, end: int) -> None:
        """See `StatePartition.elect`."""
        self.leader, self.tenure = broker, self.tenure + 1
        self._tell("txn_elect_state", broker, tenure=self.tenure, end=end)

    def acknowledge(self, broker: str, tenure: int) -> None:
        """See `StatePartition.acknowledge`."""
        self._tell("txn_acknowledge", broker, tenure=tenure)

    def fail(self, broker: str) -> None:
        """See `StatePartition.fail`."""
        self._tell("txn_fail", broker)

    def _tell(self, command: str, broker: str, **members: object) -> None:
        self._bridge.tell(command, broker=self._names.index(broker) + 1, **members)


class KafkaCoordinator:
    """See `Coordinator`."""

    def __init__(self, name: str, bridge: _Bridge, clock: Clock) -> None:
        self.name = name
        self.tenure = 0
        self.loaded_at = 0
        self._bridge = bridge
        self._clock = clock
        self._number = bridge.settings.coordinators.index(name) + 1

    @property
    def _seen(self) -> _BridgeBroker:
        return self._bridge.view.brokers[self._number - 1]

    @property
    def known(self) -> KnownTransaction | None:
        """See `Coordinator.known`."""
        metadata = self._seen.metadata
        if metadata is None:
            return None
        return KnownTransaction(self._bridge.record_of(metadata.record), _pending(metadata))

    @property
    def producer_ids(self) -> Mapping[str, int]:
        """See `Coordinator.producer_ids`."""
        return self._seen.producer_ids

    @property
    def ends(self) -> Mapping[int, tuple[Errors, int]]:
        """See `Coordinator.ends`."""
        return {txn: (Errors[error], epoch) for txn, error, epoch in self._seen.ends}

    def elect(self, tenure: int) -> None:
        """See `Coordinator.elect`."""
        self.tenure = tenure
        self._tell("txn_elect", tenure=tenure)

    def load(self) -> None:
        """See `Coordinator.load`."""
        self._tell("txn_load")
        self.loaded_at = self._clock.milliseconds()

    def begin(self) -> None:
        """See `Coordinator.begin`."""
        self._tell("txn_begin")

    def init_producer_id(self, client: str) -> None:
        """See `Coordinator.init_producer_id`."""
        self._tell("txn_init", client=client)

    def begin_fence(self, client: str | None) -> None:
        """See `Coordinator.begin_fence`."""
        self._tell("txn_begin_fence", client=client)

    def expire_ids(self) -> None:
        """See `Coordinator.expire_ids`."""
        self._tell("txn_expire")

    def end_fence(self) -> None:
        """See `Coordinator.end_fence`."""
        self._tell("txn_end_fence")

    def add_partition(self, partition: TopicPartition, epoch: int) -> None:
        """See `Coordinator.add_partition`."""
        self._tell("txn_add", partition=self._bridge.number_of(partition), epoch=epoch)

    def verify_partition(self, partition: TopicPartition, epoch: int) -> Errors:
        """See `Coordinator.verify_partition`."""
        number = self._bridge.number_of(partition)
        return Errors[_as_name(self._ask("txn_verify", partition=number, epoch=epoch))]

    def end_transaction(self, txn: int, epoch: int, *, commits: bool) -> None:
        """See `Coordinator.end_transaction`."""
        self._tell("txn_end", txn=txn, epoch=epoch, commits=commits)

    def sent_markers(self) -> Sequence[SentMarker]:
        """See `Coordinator.sent_markers`."""
        names = self._bridge.settings.partitions
        return [
            SentMarker(
                names[partition - 1], epoch, coordinator_epoch, is_commit, version, start, marker
            )
            for marker, partition, epoch, coordinator_epoch, is_commit, version, start in (
                _as_markers(self._ask("txn_send_markers"))
            )
        ]

    def complete_marker(self, sent: SentMarker) -> None:
        """See `Coordinator.complete_marker`."""
        self._tell("txn_complete_marker", marker=sent.request)

    def complete_transaction(self) -> None:
        """See `Coordinator.complete_transaction`."""
        self._tell("txn_complete")

    def _tell(self, command: str, **members: object) -> None:
        self._bridge.tell(command, broker=self._number, **members)

    def _ask(self, command: str, **members: object) -> bytes:
        return self._bridge.ask(command, broker=self._number, **members)


def _pending(metadata: _BridgeMetadata) -> str:
    if metadata.pending < 0:
        return NOTHING_PENDING
    pending = TransactionState(metadata.pending)
    if pending is TransactionState.PREPARE_EPOCH_FENCE:
        return FENCING
    completes = metadata.completes and TransactionState(metadata.state) in PREPARES
    return COMPLETING if completes else pending.state_name


class KafkaPartitionLeader(TransactionLeader):
    """The rules are those of UnifiedLog and its ProducerStateManager."""

    def __init__(self, name: str, bridge: _Bridge) -> None:
        self._is_offsets = name in bridge.settings.offsets_partitions
        self._bridge = bridge
        self._number = bridge.number_of(TopicPartition(name, 0))

    @property
    def _seen(self) -> _TransactionsPartition:
        return self._bridge.view.partitions[self._number - 1]

    @property
    def batches(self) -> Sequence[BatchInLog]:
        """See `TransactionLeader.batches`."""
        return [BatchInLog(*batch) for batch in self._seen.batches]

    @property
    def high_watermark(self) -> int:
        """See `TransactionLeader.high_watermark`."""
        return self._seen.high_watermark

    @property
    def entry_epoch(self) -> int:
        """See `TransactionLeader.entry_epoch`."""
        return self._seen.entry_epoch

    @property
    def guard(self) -> int:
        """See `TransactionLeader.guard`."""
        return self._seen.guard

    def maybe_start_verification(self, batch: TransactionBatch) -> int | None:
        """See `TransactionLeader.maybe_start_verification`."""
        answer = self._bridge.ask(
            "txn_start_verification",
            partition=self._number,
            epoch=batch.epoch,
            sequence=_NO_SEQUENCE if self._is_offsets else batch.sequence,
            version=self._bridge.settings.of_partitions.version,
        )
        return int(answer) or None

    def append(self, batch: TransactionBatch, guard: object | None) -> None:
        """See `TransactionLeader.append`."""
        self._tell(
            "txn_append",
            epoch=batch.epoch,
            sequence=0 if self._is_offsets else batch.sequence,
            value=batch.value,
            guard=guard or _NO_GUARD,
            of_coordinator=self._is_offsets,
        )

    def write_marker(self, sent: SentMarker) -> None:
        """See `TransactionLeader.write_marker`."""
        self._tell(
            "txn_write_marker",
            epoch=sent.epoch,
            coordinator_epoch=sent.coordinator_epoch,
            commits=sent.is_commit,
            start=sent.start,
            version=sent.transaction_version,
        )

    def replicate(self) -> None:
        """See `TransactionLeader.replicate`."""
        self._tell("txn_replicate")

    def elect(self, end: int) -> None:
        """See `TransactionLeader.elect`."""
        self._tell("txn_elect_leader", end=end)

    def stop(self) -> None:
        """See `TransactionLeader.stop`: the controller's record says so."""
        self._bridge.tell("txn_stop_leader", metadata=self._number)

    def restart(self) -> None:
        """See `TransactionLeader.restart`."""
        self._bridge.tell("txn_restart_leader", metadata=self._number)

    def _tell(self, command: str, **members: object) -> None:
        self._bridge.tell(command, partition=self._number, **members)


def _parts(
    bridge: _Bridge, settings: TransactionSettings, leader: str, clock: Clock
) -> TransactionParts:
    bridge.reset(clock, leader)
    return TransactionParts(
        KafkaTransactionState(bridge, leader),
        {name: KafkaCoordinator(name, bridge, clock) for name in settings.coordinators},
        {
            name: TransactionPartition(name, KafkaPartitionLeader(name, bridge), settings)
            for name in settings.partitions
        },
    )


class KafkaTransactionSystem(TransactionSteps):
    """Coordinators and partitions in a JVM, and the network between them."""

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        settings = TransactionSettings.of(constants)
        self._channel = channel
        self._bridge = _Bridge(channel, settings)
        super().__init__(settings, partial(_parts, self._bridge))

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def apply(self, action: Action) -> None:
        """Let an instance, a coordinator or a partition take one step."""
        super().apply(action)
        _ = self._bridge.view  # all commands have gone out

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)


class KafkaChoosingTransactionSystem(ChosenBatches, KafkaTransactionSystem):
    """The same with offsets partitions."""


def create(channel: AdapterChannel, constants: Mapping[str, Value]) -> KafkaTransactionSystem:
    """The system for a model's constants."""
    chooses = bool(constants["OffsetsPartitions"])
    return (KafkaChoosingTransactionSystem if chooses else KafkaTransactionSystem)(
        channel, constants
    )
