"""The coordinator's answers, state by state, and what becomes of markers.

The table of EndTxn is that of KIP-890 as TransactionCoordinator of 4.4 has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk
from impl.errors import Errors, IllegalStateException
from impl.log import Log
from impl.log_loader import load_log
from impl.records import MemoryRecords
from impl.scheduler import DeferredScheduler, ImmediateScheduler, Scheduler
from impl.transaction.transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator
from impl.transaction.transaction_log import TOPIC
from impl.transaction.transaction_marker_channel_manager import (
    NO_LEADER,
    TransactionMarkerChannelManager,
    WriteTxnMarkers,
)
from impl.transaction.transaction_metadata import (
    MAX_PRODUCER_EPOCH,
    TransactionMetadata,
    TxnTransitMetadata,
)
from impl.transaction.transaction_state import TransactionState
from impl.transaction.transaction_state_manager import (
    AppendCallback,
    TransactionConfig,
    TransactionStateManager,
)
from impl.types import TopicPartition

ID = "id"
P, Q = TopicPartition("p", 0), TopicPartition("q", 0)
TIMEOUT_MS = 100
S = TransactionState


@dataclass
class StateTopic:
    """A log that acknowledges each append with `status`, or keeps the call-backs."""

    disk: MemoryDisk = field(default_factory=MemoryDisk)
    status: Errors | None = Errors.NONE
    kept: list[AppendCallback] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._log = load_log(
            TopicPartition(TOPIC, 0), "log", self.disk, ImmediateScheduler(), NoConcurrency()
        )

    def append_records(
        self, _partition: int, records: MemoryRecords, _timeout: int, callback: AppendCallback
    ) -> None:
        self._log.append_as_leader(records, 0)
        if self.status is None:
            self.kept.append(callback)
        else:
            callback(self.status)

    def log(self, _partition: int) -> Log:
        return self._log


class World:
    """One broker that coordinates the id, whose partitions are led by the brokers in `leaders`."""

    def __init__(self, version: int = 2, completions: Scheduler | None = None) -> None:
        self.clock = MockClock(1000)
        self.topic = StateTopic()
        self.leaders: dict[TopicPartition, int] = {P: 1, Q: 2}
        self.ids = iter(range(10, 100))
        config = TransactionConfig(transaction_version=version, num_partitions=1)
        scheduler = ImmediateScheduler()
        self.manager = TransactionStateManager(
            self.topic, scheduler, NoConcurrency(), self.clock, config
        )
        self.channel = TransactionMarkerChannelManager(
            self.manager,
            lambda partition: self.leaders.get(partition),
            completions or scheduler,
            NoConcurrency(),
        )
        self.coordinator = TransactionCoordinator(
            self.manager, self.channel, lambda: next(self.ids), scheduler, self.clock
        )
        self.version = version
        self.coordinator.on_election(0, 1)

    @property
    def metadata(self) -> TransactionMetadata:
        known = self.manager.get_transaction_state(ID)
        assert known is not None
        return known.metadata

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(
            self.metadata.current.producer_id, self.metadata.current.producer_epoch
        )

    def init(self, expected: ProducerIdAndEpoch | None = None, timeout: int = TIMEOUT_MS) -> object:
        answers: list[object] = []
        self.coordinator.handle_init_producer_id(
            ID, timeout, lambda *answer: answers.append(answer), expected
        )
        return _only(answers)

    def add(self, *partitions: TopicPartition) -> Errors:
        answers: list[Errors] = []
        self.coordinator.handle_add_partitions_to_transaction(
            ID, self.producer, frozenset(partitions), self.version, answers.append
        )
        return answers[0]

    def end(
        self, commits: bool, producer: ProducerIdAndEpoch | None = None
    ) -> tuple[Errors, int, int]:
        answers: list[tuple[Errors, int, int]] = []
        self.coordinator.handle_end_transaction(
            ID,
            producer or self.producer,
            commits,
            self.version,
            lambda *answer: answers.append(answer),
        )
        return answers[0]

    def answer_markers(self, error: Errors = Errors.NONE) -> list[WriteTxnMarkers]:
        requests = self.channel.generate_requests()
        for request in requests:
            self.channel.on_complete(
                request,
                {m.producer_id: dict.fromkeys(m.partitions, error) for _, m in request.entries},
            )
        return requests

    def begin(self) -> None:
        self.init()
        assert self.add(P) is Errors.NONE

    def go_to(self, state: TransactionState) -> None:
        self.init()
        if state is S.EMPTY:
            return
        self.add(P)
        if state is not S.ONGOING:
            self.end(state in (S.PREPARE_COMMIT, S.COMPLETE_COMMIT))
        if state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
            self.answer_markers()
        assert self.metadata.state is state


def _only(answers: list[object]) -> object:
    (answer,) = answers
    return answer


# ---- InitProducerId ------------------------------------------------------------------------


def test_each_instance_gets_the_next_epoch_and_the_former_one_is_fenced() -> None:
    world = World()
    assert world.init() == (Errors.NONE, 10, 0)
    former = world.producer
    assert world.init() == (Errors.NONE, 10, 1)
    assert world.init(former) == (Errors.PRODUCER_FENCED, -1, -1)


def test_a_retry_with_the_expected_epoch_gets_the_same_answer() -> None:
    world = World()
    world.init()
    expected = world.producer
    assert world.init(expected) == (Errors.NONE, 10, 1)
    assert world.init(expected) == (Errors.NONE, 10, 1)


def test_an_open_transaction_is_aborted_before_an_instance_gets_its_epoch() -> None:
    world = World()
    world.begin()
    assert world.init() == (Errors.CONCURRENT_TRANSACTIONS, -1, -1)
    assert world.metadata.state is S.PREPARE_ABORT
    world.answer_markers()
    assert world.init() == (Errors.NONE, 10, 2)


@pytest.mark.parametrize("timeout", [0, -1, 900_001])
def test_a_time_out_must_be_within_the_brokers_limit(timeout: int) -> None:
    assert World().init(timeout=timeout) == (Errors.INVALID_TRANSACTION_TIMEOUT, -1, -1)


def test_without_a_transactional_id_each_request_gets_a_producer_id() -> None:
    world, answers = World(), []
    for _ in range(2):
        world.coordinator.handle_init_producer_id(None, 0, lambda *a: answers.append(a))
    assert answers == [(Errors.NONE, 10, 0), (Errors.NONE, 11, 0)]


def test_an_empty_transactional_id_is_no_id() -> None:
    world, answers = World(), []
    world.coordinator.handle_init_producer_id("", 1, lambda *a: answers.append(a))
    assert answers == [(Errors.INVALID_REQUEST, -1, -1)]


def test_a_producer_id_whose_epochs_are_used_up_gets_a_successor() -> None:
    world = World()
    world.init()
    metadata = world.metadata
    metadata.current = replace(metadata.current, producer_epoch=MAX_PRODUCER_EPOCH - 1)
    assert world.add(P) is Errors.NONE
    last = world.producer
    assert world.end(True) == (Errors.NONE, 11, 0)
    world.answer_markers()
    assert world.producer == ProducerIdAndEpoch(11, 0)
    assert world.end(True, last) == (Errors.NONE, 11, 0)


# ---- AddPartitionsToTxn --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (S.EMPTY, Errors.NONE),
        (S.ONGOING, Errors.NONE),
        (S.PREPARE_COMMIT, Errors.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, Errors.CONCURRENT_TRANSACTIONS),
        (S.COMPLETE_COMMIT, Errors.NONE),
        (S.COMPLETE_ABORT, Errors.NONE),
    ],
)
def test_partitions_are_added_unless_markers_are_on_their_way(
    state: TransactionState, answer: Errors
) -> None:
    world = World()
    world.go_to(state)
    assert world.add(Q) is answer


def test_what_is_in_the_transaction_is_not_written_again() -> None:
    world = World()
    world.begin()
    end = world.topic.log(0).log_end_offset
    assert world.add(P) is Errors.NONE
    assert world.topic.log(0).log_end_offset == end


def test_a_partition_is_verified_whatever_is_pending() -> None:
    world = World()
    world.begin()
    world.topic.status = None
    world.coordinator.handle_add_partitions_to_transaction(
        ID, world.producer, frozenset({Q}), 2, lambda _error: None
    )
    verify: Callable[[ProducerIdAndEpoch], object] = lambda producer: (  # noqa: E731
        world.coordinator.handle_verify_partitions_in_transaction(ID, producer, frozenset({P, Q}))
    )
    assert verify(world.producer) == {P: Errors.NONE, Q: Errors.TRANSACTION_ABORTABLE}
    other = ProducerIdAndEpoch(world.producer.producer_id, 7)
    assert verify(other) == dict.fromkeys((P, Q), Errors.PRODUCER_FENCED)
    other = ProducerIdAndEpoch(77, 0)
    assert verify(other) == dict.fromkeys((P, Q), Errors.INVALID_PRODUCER_ID_MAPPING)


# ---- EndTxn --------------------------------------------------------------------------------

_NONE, _STATE = Errors.NONE, Errors.INVALID_TXN_STATE
_FENCED, _AGAIN = Errors.PRODUCER_FENCED, Errors.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("state", "commit", "commit_again", "abort", "abort_again"),
    [
        (S.EMPTY, _STATE, _FENCED, _NONE, _FENCED),
        (S.ONGOING, _NONE, _FENCED, _NONE, _FENCED),
        (S.PREPARE_COMMIT, _AGAIN, _AGAIN, _AGAIN, _AGAIN),
        (S.PREPARE_ABORT, _AGAIN, _AGAIN, _AGAIN, _AGAIN),
        (S.COMPLETE_COMMIT, _STATE, _NONE, _NONE, _STATE),
        (S.COMPLETE_ABORT, _STATE, _STATE, _NONE, _NONE),
    ],
)
def test_version_2_tells_a_retry_by_its_epoch(
    state: TransactionState,
    commit: Errors,
    commit_again: Errors,
    abort: Errors,
    abort_again: Errors,
) -> None:
    for commits, is_retry, answer in (
        (True, False, commit),
        (True, True, commit_again),
        (False, False, abort),
        (False, True, abort_again),
    ):
        world = World()
        world.go_to(state)
        now = world.producer
        producer = replace(now, epoch=now.epoch - 1) if is_retry else now
        assert world.end(commits, producer)[0] is answer, (commits, is_retry)


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        (S.EMPTY, _STATE, _STATE),
        (S.ONGOING, _NONE, _NONE),
        (S.PREPARE_COMMIT, _AGAIN, _AGAIN),
        (S.PREPARE_ABORT, _AGAIN, _AGAIN),
        (S.COMPLETE_COMMIT, _NONE, _STATE),
        (S.COMPLETE_ABORT, _STATE, _NONE),
    ],
)
def test_version_1_has_one_epoch_for_many_transactions(
    state: TransactionState, commit: Errors, abort: Errors
) -> None:
    for commits, answer in ((True, commit), (False, abort)):
        world = World(version=0)
        world.go_to(state)
        epoch = world.producer.epoch
        assert world.end(commits)[0] is answer
        assert world.producer.epoch == epoch


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("epochs", [-1, 1, 5])
def test_only_the_coordinator_ends_with_another_epoch(version: int, epochs: int) -> None:
    """KAFKA-9600: an epoch of the future ended the transaction."""
    world = World(version)
    world.begin()
    other = replace(world.producer, epoch=world.producer.epoch + epochs)
    assert world.end(True, other)[0] is Errors.PRODUCER_FENCED
    assert world.metadata.state is S.ONGOING


def test_the_end_of_a_transaction_is_answered_with_the_epoch_of_the_next_one() -> None:
    world = World()
    world.begin()
    assert world.end(True) == (Errors.NONE, 10, 1)
    assert world.metadata.state is S.PREPARE_COMMIT
    world.answer_markers()
    assert world.metadata.state is S.COMPLETE_COMMIT


def test_who_is_no_coordinator_or_loads_says_so() -> None:
    world = World()
    world.begin()
    producer = world.producer
    world.coordinator.on_resignation(0, 2)
    assert world.end(True, producer)[0] is Errors.NOT_COORDINATOR
    assert world.init() == (Errors.NOT_COORDINATOR, -1, -1)


# ---- time-outs -----------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "epoch"), [(0, 1), (2, 1)])
def test_what_takes_longer_than_its_time_out_is_aborted(version: int, epoch: int) -> None:
    world = World(version)
    world.begin()
    world.clock.sleep(TIMEOUT_MS)
    world.coordinator.abort_timed_out_transactions()
    assert world.metadata.state is S.ONGOING
    world.clock.sleep(1)
    world.coordinator.abort_timed_out_transactions()
    assert world.metadata.state is S.PREPARE_ABORT
    assert world.producer.epoch == epoch


def test_a_fence_of_version_1_whose_append_fails_raises_the_epoch_once() -> None:
    """KAFKA-9666: each try took one more epoch."""
    world = World(version=0)
    world.begin()
    world.clock.sleep(TIMEOUT_MS + 1)
    world.topic.status = Errors.NOT_ENOUGH_REPLICAS
    for _ in range(3):
        world.coordinator.abort_timed_out_transactions()
        assert (world.metadata.state, world.producer.epoch) == (S.ONGOING, 1)
    world.topic.status = Errors.NONE
    world.coordinator.abort_timed_out_transactions()
    assert (world.metadata.state, world.producer.epoch) == (S.PREPARE_ABORT, 1)


def test_a_fence_of_version_1_that_fails_at_a_replaced_coordinator_is_answered() -> None:
    world = World(version=0)
    world.begin()
    world.topic.status, answers = None, []
    world.coordinator.handle_init_producer_id(
        ID, TIMEOUT_MS, lambda *answer: answers.append(answer)
    )
    world.coordinator.on_resignation(0, 2)
    (callback,) = world.topic.kept

    callback(Errors.NOT_LEADER_OR_FOLLOWER)

    assert answers == [(Errors.NOT_COORDINATOR, -1, -1)]


def test_a_fence_of_version_2_whose_append_fails_leaves_nothing() -> None:
    world = World()
    world.begin()
    world.clock.sleep(TIMEOUT_MS + 1)
    world.topic.status = Errors.REQUEST_TIMED_OUT
    world.coordinator.abort_timed_out_transactions()
    assert (world.metadata.state, world.producer.epoch) == (S.ONGOING, 0)
    assert world.metadata.pending_state is None


# ---- markers -------------------------------------------------------------------------------


def test_each_leader_gets_the_markers_of_its_partitions() -> None:
    world = World()
    world.init()
    world.add(P, Q)
    world.end(False)
    requests = world.answer_markers()
    assert {request.broker: request.entries[0][1].partitions for request in requests} == {
        1: frozenset({P}),
        2: frozenset({Q}),
    }
    (marker,) = {request.entries[0][1].producer_epoch for request in requests}
    assert marker == 1
    assert world.metadata.state is S.COMPLETE_ABORT


@pytest.mark.parametrize("error", [Errors.NOT_LEADER_OR_FOLLOWER, Errors.KAFKA_STORAGE_ERROR])
def test_a_marker_that_may_be_tried_again_goes_to_the_leader_of_then(error: Errors) -> None:
    world = World()
    world.begin()
    world.end(True)
    world.answer_markers(error)
    world.leaders[P] = 2
    assert [request.broker for request in world.answer_markers()] == [1]
    world = World()
    world.begin()
    world.end(True)
    (request,) = world.channel.generate_requests()
    world.leaders[P] = 2
    world.channel.on_disconnect(request)
    assert [request.broker for request in world.answer_markers()] == [2]
    assert world.metadata.state is S.COMPLETE_COMMIT


@pytest.mark.parametrize(
    "error", [Errors.INVALID_PRODUCER_EPOCH, Errors.TRANSACTION_COORDINATOR_FENCED]
)
def test_a_marker_that_was_overtaken_is_given_up(error: Errors) -> None:
    world = World()
    world.begin()
    world.end(True)
    world.answer_markers(error)
    assert world.answer_markers() == []
    assert world.metadata.state is S.PREPARE_COMMIT
    world.coordinator.on_election(0, 2)
    world.answer_markers()
    assert world.metadata.state is S.COMPLETE_COMMIT


def test_an_answer_that_no_marker_gets_is_a_fault() -> None:
    world = World()
    world.begin()
    world.end(True)
    with pytest.raises(IllegalStateException):
        world.answer_markers(Errors.CORRUPT_MESSAGE)


def test_a_partition_without_a_leader_waits_and_a_deleted_one_does_not() -> None:
    world = World()
    world.init()
    world.add(P, Q)
    world.end(True)
    world.answer_markers()
    assert world.metadata.state is S.COMPLETE_COMMIT

    world.leaders = {P: NO_LEADER}
    world.add(P, Q)
    world.end(True)
    assert world.answer_markers() == []
    assert world.metadata.current.topic_partitions == {P}
    world.leaders[P] = 3
    world.answer_markers()
    assert world.metadata.state is S.COMPLETE_COMMIT


def test_a_completion_that_fails_is_appended_again() -> None:
    world = World()
    world.begin()
    world.end(True)
    world.topic.status = Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    world.answer_markers()
    assert (world.metadata.state, world.metadata.pending_state) == (
        S.PREPARE_COMMIT,
        S.COMPLETE_COMMIT,
    )
    world.topic.status = Errors.NONE
    world.channel.generate_requests()
    assert world.metadata.state is S.COMPLETE_COMMIT


def test_a_transaction_is_completed_once_however_many_threads_find_that_it_may_be() -> None:
    completions = DeferredScheduler()
    world = World(completions=completions)
    world.begin()
    world.end(True)
    world.answer_markers()
    world.channel.maybe_write_txn_completion(ID)
    world.topic.status = None

    completions.run_pending()

    assert len(world.topic.kept) == 1


def test_an_answer_to_an_earlier_decision_removes_no_later_one() -> None:
    """KAFKA-16352: whoever was late took away what was pending then."""
    world = World()
    world.begin()
    world.end(True)
    (late,) = world.channel.generate_requests()
    world.coordinator.on_election(0, 2)
    world.channel.on_complete(late, {10: {P: Errors.INVALID_PRODUCER_EPOCH}})
    assert world.channel.has_pending_markers(ID)
    world.answer_markers()
    assert world.metadata.state is S.COMPLETE_COMMIT


# ---- transitions ---------------------------------------------------------------------------


def test_what_was_not_prepared_cannot_be_completed() -> None:
    world = World()
    world.begin()
    metadata = world.metadata
    with pytest.raises(IllegalStateException):
        metadata.complete_transition_to(metadata.current)
    transit: TxnTransitMetadata = metadata.prepare_add_partitions(frozenset({Q}), 1, 2)
    with pytest.raises(IllegalStateException):
        metadata.prepare_add_partitions(frozenset({Q}), 1, 2)
    with pytest.raises(IllegalStateException):
        metadata.complete_transition_to(replace(transit, topic_partitions=frozenset({Q})))
    with pytest.raises(IllegalStateException):
        metadata.complete_transition_to(replace(transit, producer_epoch=9))
    metadata.complete_transition_to(transit)
    with pytest.raises(IllegalStateException):
        metadata.remove_partition(P)
