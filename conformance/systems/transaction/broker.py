"""A broker that may coordinate the id: its coordinator, and what waits for an action there."""

from __future__ import annotations

from collections.abc import Callable

from conformance.systems.protocol import ActionRefused
from conformance.systems.transaction.state_log import BrokerStateLog, StateLog
from impl.clock import Clock
from impl.concurrency import NoConcurrency
from impl.errors import Errors
from impl.transaction.transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator
from impl.transaction.transaction_marker_channel_manager import (
    LeaderOf,
    TransactionMarkerChannelManager,
    WriteTxnMarkers,
)
from impl.transaction.transaction_metadata import TransactionMetadata
from impl.transaction.transaction_state_manager import TransactionConfig, TransactionStateManager
from impl.types import TopicPartition

TRANSACTIONAL_ID = "t"
TIMEOUT_MS = 1000
PRODUCER_ID = 7
_PARTITION = 0


class NamedTasks:
    """A scheduler of which an action runs the task that it names."""

    def __init__(self) -> None:
        self._tasks: list[tuple[str, Callable[[], None]]] = []

    def schedule_once(self, name: str, task: Callable[[], None]) -> None:
        """See `Scheduler.schedule_once`."""
        self._tasks.append((name, task))

    def run(self, name: str) -> None:
        """Run the oldest task of that name. Raises ActionRefused if there is none."""
        for place, (scheduled, task) in enumerate(self._tasks):
            if scheduled == name:
                del self._tasks[place]
                task()
                return
        raise ActionRefused(f"no task {name} is scheduled")

    def forget(self) -> None:
        """The threads of an earlier tenure are over."""
        self._tasks.clear()


class CoordinatorBroker:
    """One broker, and the answers that it has given."""

    def __init__(
        self, name: str, log: StateLog, leader_of: LeaderOf, clock: Clock, config: TransactionConfig
    ) -> None:
        self.name = name
        self._clock = clock
        self._log = log
        self.tasks = NamedTasks()
        self.manager = TransactionStateManager(
            BrokerStateLog(log, name), self.tasks, NoConcurrency(), clock, config
        )
        self.channel = TransactionMarkerChannelManager(self.manager, leader_of, self.tasks)
        self.coordinator = TransactionCoordinator(
            self.manager, self.channel, lambda: PRODUCER_ID, self.tasks, clock
        )
        self.tenure = 0
        self.loaded_at = 0
        self._version = config.transaction_version
        self.producer_ids: dict[str, int] = {}
        """The epoch that an instance was answered."""
        self.ends: dict[int, tuple[Errors, int]] = {}
        """What the end of a transaction was answered: error and epoch."""

    @property
    def metadata(self) -> TransactionMetadata | None:
        """The id, if it is loaded here."""
        if self.tenure == 0 or self.manager.loading_epoch(_PARTITION) is not None:
            return None
        known = self.manager.get_transaction_state(TRANSACTIONAL_ID)
        return None if known is None else known.metadata

    @property
    def is_fenced(self) -> bool:
        """Whether the broker is about to abort the transaction by itself."""
        return self.metadata is not None and self.metadata.is_fenced

    # ---- elections -------------------------------------------------------------------------

    def elect(self, tenure: int) -> None:
        """The broker leads; what it has promised in an earlier tenure is forgotten."""
        self.tenure = tenure
        self.tasks.forget()
        self.producer_ids.clear()
        self.ends.clear()
        self.coordinator.on_election(_PARTITION, tenure)

    def load(self) -> None:
        """Read the log; then comes what was delayed since the broker led before."""
        self.tasks.run("load-txns-for-partition")
        self.loaded_at = self._clock.milliseconds()
        self._log.call_back_late(self.name)

    # ---- requests --------------------------------------------------------------------------

    def init_producer_id(self, client: str) -> None:
        """An instance asks for an epoch."""

        def answer(error: Errors, _producer_id: int, epoch: int) -> None:
            if error is Errors.NONE:
                self.producer_ids[client] = epoch

        self.coordinator.handle_init_producer_id(TRANSACTIONAL_ID, TIMEOUT_MS, answer)

    def time_out(self) -> None:
        """The open transaction has taken longer than its time-out."""
        self._clock.sleep(TIMEOUT_MS + 1)
        self.coordinator.abort_timed_out_transactions()

    def add_partition(self, partition: TopicPartition, epoch: int) -> None:
        """A client, or the partition's leader, adds a partition to the transaction."""
        self.coordinator.handle_add_partitions_to_transaction(
            TRANSACTIONAL_ID,
            ProducerIdAndEpoch(PRODUCER_ID, epoch),
            frozenset({partition}),
            self._version,
            lambda _error: None,
        )

    def has_partition(self, partition: TopicPartition, epoch: int) -> bool:
        """Whether the partition is in the transaction of that epoch."""
        errors = self.coordinator.handle_verify_partitions_in_transaction(
            TRANSACTIONAL_ID, ProducerIdAndEpoch(PRODUCER_ID, epoch), frozenset({partition})
        )
        return errors[partition] is Errors.NONE

    def end_transaction(self, txn: int, epoch: int, *, commits: bool) -> None:
        """An instance ends a transaction; the answer is in `ends`."""

        def answer(error: Errors, _producer_id: int, new_epoch: int) -> None:
            self.ends[txn] = (error, new_epoch)

        self.coordinator.handle_end_transaction(
            TRANSACTIONAL_ID,
            ProducerIdAndEpoch(PRODUCER_ID, epoch),
            commits,
            self._version,
            answer,
        )

    # ---- markers ---------------------------------------------------------------------------

    def sent_markers(self) -> list[WriteTxnMarkers]:
        """The requests that the broker sends now."""
        return self.channel.generate_requests()

    def complete_markers(self, request: WriteTxnMarkers) -> None:
        """The partitions' leader has written the markers of the request."""
        errors = {
            marker.producer_id: dict.fromkeys(marker.partitions, Errors.NONE)
            for _, marker in request.entries
        }
        self.channel.on_complete(request, errors)
