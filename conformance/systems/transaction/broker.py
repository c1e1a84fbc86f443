"""A broker that may coordinate the id: its coordinator, and what waits for an action there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.systems.protocol import ActionRefused
from conformance.systems.transaction.epochs import ProducerEpochs
from conformance.systems.transaction.parts import (
    COMPLETING,
    FENCING,
    FORGOTTEN,
    NOTHING_PENDING,
    KnownTransaction,
    SentMarker,
)
from conformance.systems.transaction.state_log import BrokerStateLog, StateLog
from impl.clock import Clock
from impl.concurrency import Concurrency
from impl.errors import Errors, IllegalStateException
from impl.transaction.transaction_coordinator import TransactionCoordinator
from impl.transaction.transaction_marker_channel_manager import (
    LeaderOf,
    TransactionMarkerChannelManager,
    WriteTxnMarkers,
)
from impl.transaction.transaction_metadata import TransactionMetadata
from impl.transaction.transaction_state import PREPARES, TransactionState
from impl.transaction.transaction_state_manager import TransactionConfig, TransactionStateManager
from impl.types import TopicPartition

TRANSACTIONAL_ID = "t"
TIMEOUT_MS = 1000
_PARTITION = 0
_LOAD = "load-txns-for-partition"
_EXPIRATION = "transactionalId-expiration"


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

    def run_all(self, name: str) -> None:
        """Run all tasks of that name, oldest first. Raises ActionRefused if there is none."""
        self.run(name)
        while any(scheduled == name for scheduled, _ in self._tasks):
            self.run(name)

    def keep(self, *names: str) -> None:
        """The threads of an earlier tenure are over, but for tasks of those names."""
        self._tasks = [task for task in self._tasks if task[0] in names]


class CoordinatorBroker:
    """One broker, and the answers that it has given."""

    def __init__(
        self,
        name: str,
        log: StateLog,
        leader_of: LeaderOf,
        clock: Clock,
        config: TransactionConfig,
        epochs: ProducerEpochs,
        concurrency: Concurrency,
    ) -> None:
        self.name = name
        self._clock = clock
        self._log = log
        self._epochs = epochs
        self._tasks = NamedTasks()
        self._state = BrokerStateLog(log, name)
        self._manager = TransactionStateManager(
            self._state, self._tasks, concurrency, clock, config
        )
        self._channel = TransactionMarkerChannelManager(
            self._manager, leader_of, self._tasks, concurrency
        )
        self._coordinator = TransactionCoordinator(
            self._manager, self._channel, epochs.generate, self._tasks, clock
        )
        self._manager.enable_transactional_id_expiration()
        self.tenure = 0
        self.loaded_at = 0
        self._version = config.transaction_version
        self.producer_ids: dict[str, int] = {}
        """The epoch that an instance was answered."""
        self.ends: dict[int, tuple[Errors, int]] = {}
        """What the end of a transaction was answered: error and epoch."""

    @property
    def known(self) -> KnownTransaction | None:
        """See `Coordinator.known`."""
        if self.tenure == 0 or self._manager.loading_epoch(_PARTITION) is not None:
            return None
        metadata = self._metadata
        if metadata is None:
            return KnownTransaction(FORGOTTEN, NOTHING_PENDING)
        current = self._epochs.numbered(metadata.current)
        return KnownTransaction(current, self._pending(metadata))

    def _pending(self, metadata: TransactionMetadata) -> str:
        state = metadata.pending_state
        if state is None:
            return NOTHING_PENDING
        if state is TransactionState.PREPARE_EPOCH_FENCE:
            return FENCING
        waits = metadata.state in PREPARES and self._channel.has_pending_markers(
            metadata.transactional_id
        )
        return COMPLETING if waits else state.state_name

    @property
    def _metadata(self) -> TransactionMetadata | None:
        return self._manager.cached_metadata(TRANSACTIONAL_ID)

    # ---- elections -------------------------------------------------------------------------

    def elect(self, tenure: int) -> None:
        """See `Coordinator.elect`. Who was elected before has resigned meanwhile."""
        has_led, self.tenure = self.tenure > 0, tenure
        self._tasks.keep(_LOAD, _EXPIRATION)
        self.producer_ids.clear()
        self.ends.clear()
        if has_led:
            self._coordinator.on_resignation(_PARTITION, tenure)
        self._coordinator.on_election(_PARTITION, tenure)
        self._state.tenure = tenure

    def load(self) -> None:
        """See `Coordinator.load`."""
        self._tasks.run_all(_LOAD)
        self.loaded_at = self._clock.milliseconds()
        self._log.call_back_late(self.name)

    def begin(self) -> None:
        """See `Coordinator.begin`."""
        self.init_producer_id("")
        self._log.fail(self.name)
        self._log.log.truncate_to(0)
        metadata = self._metadata
        assert metadata is not None
        before = self._epochs.of_number(0).epoch - 1
        metadata.current = replace(metadata.current, producer_epoch=before)

    # ---- requests --------------------------------------------------------------------------

    def init_producer_id(self, client: str) -> None:
        """See `Coordinator.init_producer_id`."""

        def answer(error: Errors, producer_id: int, epoch: int) -> None:
            if error is Errors.NONE:
                self.producer_ids[client] = self._epochs.number(producer_id, epoch)

        self._coordinator.handle_init_producer_id(TRANSACTIONAL_ID, TIMEOUT_MS, answer)

    def begin_fence(self, client: str | None) -> None:
        """See `Coordinator.begin_fence`."""
        if client is None:
            self._coordinator.abort_timed_out_transactions()
        else:
            self.init_producer_id(client)

    def expire_ids(self) -> None:
        """See `Coordinator.expire_ids`."""
        self._tasks.run(_EXPIRATION)

    def end_fence(self) -> None:
        """See `Coordinator.end_fence`."""
        self._tasks.run("end-fence")

    def add_partition(self, partition: TopicPartition, epoch: int) -> None:
        """See `Coordinator.add_partition`. What its append comes to is nobody's answer here."""
        answers: list[Errors] = []
        self._coordinator.handle_add_partitions_to_transaction(
            TRANSACTIONAL_ID,
            self._epochs.of_number(epoch),
            frozenset({partition}),
            self._version,
            answers.append,
        )
        refusal = next((error for error in answers if error is not Errors.NONE), None)
        if refusal is not None:
            raise refusal.exception()

    def verify_partition(self, partition: TopicPartition, epoch: int) -> Errors:
        """See `Coordinator.verify_partition`."""
        errors = self._coordinator.handle_verify_partitions_in_transaction(
            TRANSACTIONAL_ID, self._epochs.of_number(epoch), frozenset({partition})
        )
        return errors[partition]

    def end_transaction(self, txn: int, epoch: int, *, commits: bool) -> None:
        """See `Coordinator.end_transaction`."""
        try:
            self._end_transaction(txn, epoch, commits=commits)
        except IllegalStateException as error:
            if not commits or self.known is None or self.known.pending != FENCING:
                raise
            # As TransactionCoordinator.endTransaction: a fence is no reason to refuse a commit,
            # which cannot be prepared then. KafkaApis answers UNKNOWN_SERVER_ERROR.
            raise ActionRefused(f"a commit comes amid a fence: {error}") from error

    def _end_transaction(self, txn: int, epoch: int, *, commits: bool) -> None:

        def answer(error: Errors, producer_id: int, new_epoch: int) -> None:
            self.ends[txn] = (error, self._epochs.number(producer_id, new_epoch))

        self._coordinator.handle_end_transaction(
            TRANSACTIONAL_ID,
            self._epochs.of_number(epoch),
            commits,
            self._version,
            answer,
        )

    # ---- markers ---------------------------------------------------------------------------

    def sent_markers(self) -> Sequence[SentMarker]:
        """See `Coordinator.sent_markers`."""
        return [
            SentMarker(
                topic_partition.topic,
                self._epochs.number(entry.producer_id, entry.producer_epoch),
                entry.coordinator_epoch,
                entry.is_commit,
                entry.transaction_version,
                pending.metadata.current.txn_start_timestamp,
                request,
            )
            for request in self._channel.generate_requests()
            for pending, entry in request.entries
            for topic_partition in entry.partitions
        ]

    def complete_marker(self, sent: SentMarker) -> None:
        """See `Coordinator.complete_marker`."""
        request = sent.request
        assert isinstance(request, WriteTxnMarkers)
        errors = {
            marker.producer_id: dict.fromkeys(marker.partitions, Errors.NONE)
            for _, marker in request.entries
        }
        self._channel.on_complete(request, errors)

    def complete_transaction(self) -> None:
        """See `Coordinator.complete_transaction`."""
        self._tasks.run("write-txn-completion")
