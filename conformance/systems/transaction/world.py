"""Coordinators of one transactional id, the partitions that it writes, instances and a network."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused, Observation
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.transaction.broker import TIMEOUT_MS, CoordinatorBroker
from conformance.systems.transaction.epochs import epochs_of
from conformance.systems.transaction.instances import ProducerInstances
from conformance.systems.transaction.network import TransactionNetwork
from conformance.systems.transaction.observation import (
    StepOrigin,
    append_of,
    coordinator_of,
    log_of,
    record_of,
    verification_of,
    verified,
)
from conformance.systems.transaction.partition import PartitionLeader
from conformance.systems.transaction.parts import (
    EXPIRATION_MS,
    Coordinator,
    StatePartition,
    TransactionPartition,
)
from conformance.systems.transaction.settings import TransactionSettings
from conformance.systems.transaction.state_log import StateLog
from conformance.tla import Value, make_function
from impl.clock import Clock
from impl.concurrency import Concurrency
from impl.transaction.transaction_marker_channel_manager import NO_LEADER
from impl.transaction.transaction_state_manager import TransactionConfig
from impl.types import TopicPartition


@dataclass(frozen=True, slots=True)
class TransactionParts:
    """What is under test, by name."""

    state: StatePartition
    brokers: Mapping[str, Coordinator]
    partitions: Mapping[str, TransactionPartition]


def impl_parts(
    settings: TransactionSettings, leader: str, clock: Clock, concurrency: Concurrency
) -> TransactionParts:
    """Those of `impl`. Each partition is led by a broker of its own: each marker is a request."""

    epochs = epochs_of(settings.last_epoch, settings.epochs_of_id)
    partitions = {
        name: TransactionPartition(
            name,
            PartitionLeader(
                name,
                clock,
                settings.of_partitions,
                epochs,
                concurrency,
                is_offsets=name in settings.offsets_partitions,
            ),
            settings,
        )
        for name in settings.partitions
    }

    def leader_of(partition: TopicPartition) -> int:
        if partitions[partition.topic].is_leaderless:
            return NO_LEADER
        return settings.partitions.index(partition.topic)

    state = StateLog(leader, epochs)
    config = TransactionConfig(
        transaction_version=settings.version,
        num_partitions=1,
        transactional_id_expiration_ms=EXPIRATION_MS,
    )
    brokers = {
        name: CoordinatorBroker(name, state, leader_of, clock, config, epochs, concurrency)
        for name in settings.coordinators
    }
    return TransactionParts(state, brokers, partitions)


class TransactionWorld:
    """The objects of one run. Each step takes a millisecond, by which records name their step."""

    def __init__(
        self, settings: TransactionSettings, parts: TransactionParts, clock: Clock
    ) -> None:
        self.settings = settings
        self.origins: dict[int, StepOrigin] = {}
        self.preferred: Collection[Value] = ()
        """Verifications: where several batches wait, those of these are asked about first."""
        self._clock = clock
        self.state, self.brokers, self.partitions = parts.state, parts.brokers, parts.partitions
        self.network = TransactionNetwork(settings.late, self.origins)
        self.clients = ProducerInstances(settings.clients, self.network, settings.version)

    def tick(self, origin: StepOrigin) -> None:
        """The next step begins."""
        self._clock.sleep(1)
        self.origins[self._clock.milliseconds()] = origin

    def send_markers(self, name: str) -> None:
        """What the broker has queued goes out. If no marker is late, those of an earlier term never
        arrive: the election was faster."""
        sent = self.brokers[name].sent_markers()
        if "Marker" not in self.settings.late:
            sent = [marker for marker in sent if marker.coordinator_epoch == self.state.tenure]
        self.network.send_markers(sent)

    def time_out(self) -> None:
        """The open transaction has taken longer than its time-out."""
        self._clock.sleep(TIMEOUT_MS + 1)

    def expire_ids(self, name: str) -> None:
        """The id was not used for its time, and a broker looks."""
        self._clock.sleep(EXPIRATION_MS)
        self.brokers[name].expire_ids()

    def origin_of_client(self, client: str) -> StepOrigin:
        """Of a request of an instance: its transaction."""
        return StepOrigin(txn=self.clients.by_name[client].txn)

    def origin_of_batch(self, name: str, partition: str) -> StepOrigin:
        """Of a request of a partition's leader: the transaction of the batch that waits."""
        return StepOrigin(txn=self.waiting(name, partition)[0].txn)

    def origin_of_append(self, name: str, tenure: int) -> StepOrigin:
        """A completion is prepared as the decision is applied."""
        for append in self.state.in_flight:
            if (append.broker, append.tenure) == (name, tenure):
                return self.origins.get(append.record.txn_last_update_timestamp, StepOrigin())
        return StepOrigin()

    def unverified(self, partition: str) -> list[TransactionBatch]:
        """The batches of which the partition's leader has not yet heard from the coordinator."""
        return [v.batch for v in self.partitions[partition].verifications if not v.is_verified]

    def waiting(self, name: str, partition: str) -> list[TransactionBatch]:
        """The batches to ask the coordinator about: those that are preferred come first, then those
        of the epoch that it knows."""
        known = self.brokers[name].known
        epoch = None if known is None else known.current.producer_epoch
        waiting = self.unverified(partition)
        if not waiting:
            raise ActionRefused(f"{partition} verifies nothing")
        later = {batch: verified(batch) not in self.preferred for batch in waiting}
        return sorted(later, key=lambda batch: (later[batch], batch.epoch != epoch, batch))

    def is_acknowledged(self, batch: TransactionBatch) -> bool:
        """Whether the batch is in the log and replicated."""
        return self.partitions[batch.partition].log.is_acknowledged(batch)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        origins, leaders = self.origins, self.partitions.items()
        return Observation(
            {
                "leader": self.state.leader,
                "tenure": self.state.tenure,
                "transactionLog": tuple(record_of(r, origins) for r in self.state.records),
                "replicated": self.state.high_watermark,
                "coordinators": make_function(
                    {name: coordinator_of(b, origins) for name, b in self.brokers.items()}
                ),
                "calls": frozenset(append_of(a, origins) for a in self.state.in_flight),
                "requests": self.network.requests(),
                "clients": self.clients.observe(),
                "log": make_function({name: log_of(p, origins) for name, p in leaders}),
                "highWatermark": make_function(
                    {name: p.leader.high_watermark for name, p in leaders}
                ),
                "entry": make_function({name: p.leader.entry_epoch for name, p in leaders}),
                "verifying": frozenset(
                    verification_of(v) for _, p in leaders for v in p.verifications
                ),
                "leaderless": frozenset(name for name, p in leaders if p.is_leaderless),
            }
        )
