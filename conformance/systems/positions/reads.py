"""The system under test: a consumer's positions, driven by ConsumerPositions.tla's actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.positions.client import BACKOFF_MS, TOPIC
from conformance.systems.positions.reader import ReadingConsumer, topic_partition
from conformance.systems.positions.reads_view import NO_EPOCH, NO_OFFSET, OF_READER
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    WholeSections,
    interrupted,
    take_two_threads,
)
from conformance.tla import Action, Fn, Value
from impl.errors import Errors
from impl.group.client.errors import DisconnectException
from impl.group.client.network_client import ClientRequest, ConsumerResponse
from impl.group.client.subscription_state import OffsetAndMetadata, OffsetResetStrategy
from impl.group.messages import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
)
from impl.network import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from impl.records import MemoryRecords, Record, RecordBatch
from impl.types import (
    EARLIEST_TIMESTAMP,
    NO_PARTITION_LEADER_EPOCH,
    EpochEndOffset,
    FetchPartitionData,
    TopicPartition,
)

_METADATA_AT_FIRST = 1


def _is_int(value: Value) -> int:
    assert isinstance(value, int)
    return value


@dataclass(frozen=True, slots=True)
class Bounds:
    """A model's constants, as far as the system needs them."""

    partitions: tuple[int, ...]
    group_assigns: bool
    log: tuple[int, ...]
    epoch: int
    committed: Mapping[int, OffsetAndMetadata]
    policy: OffsetResetStrategy
    max_fetch: int
    max_poll: int

    @classmethod
    def of(cls, constants: Mapping[str, Value]) -> Bounds:
        """Of a model's constants."""
        partitions = tuple(sorted(map(_is_int, _elements(constants["Partitions"]))))
        committed = constants["Committed"]
        assert isinstance(committed, tuple)
        return cls(
            partitions,
            constants["GroupAssigns"] is True,
            tuple(map(_is_int, _elements(constants["InitialLog"]))),
            _is_int(constants["InitialEpoch"]),
            {number: _position(each) for number, each in zip(partitions, committed, strict=True)},
            OffsetResetStrategy(constants["Policy"]),
            _is_int(constants["MaxFetch"]),
            _is_int(constants["MaxPoll"]),
        )


def _elements(value: Value) -> tuple[Value, ...]:
    assert isinstance(value, tuple | frozenset)
    return tuple(value)


def _position(value: Value) -> OffsetAndMetadata:
    assert isinstance(value, Fn)
    epoch = _is_int(value["epoch"])
    known = NO_PARTITION_LEADER_EPOCH if epoch == NO_EPOCH else epoch
    return OffsetAndMetadata(_is_int(value["offset"]), known)


@dataclass(slots=True)
class Leader:
    """A partition's leader: the leader epochs of its records, and its own."""

    log: tuple[int, ...]
    epoch: int
    max_fetch: int

    def end_offset(self, asked: int) -> EpochEndOffset:
        """The greatest epoch up to the one asked for, and where it ends."""
        known = {epoch for epoch in (*self.log, self.epoch) if epoch <= asked}
        if not known:
            return EpochEndOffset()
        end = sum(epoch <= max(known) for epoch in self.log)
        return EpochEndOffset(Errors.NONE, max(known), end)

    def fetch(self, offset: int) -> FetchPartitionData:
        """Records from an offset on, a batch each."""
        if offset > len(self.log):
            return self.failed_fetch(Errors.OFFSET_OUT_OF_RANGE)
        end = min(offset + self.max_fetch, len(self.log))
        batches = (
            RecordBatch.create((Record(value=b""),), at, self.log[at]) for at in range(offset, end)
        )
        return FetchPartitionData(Errors.NONE, len(self.log), 0, MemoryRecords(batches))

    def failed_fetch(self, error: Errors) -> FetchPartitionData:
        """No records, but an error."""
        return FetchPartitionData(error, len(self.log), 0)


class ReadsSystem(WholeSections, RewindingSystem):
    """One consumer; a group and leaders that do what the actions say."""

    variables = tuple(OF_READER)
    repeatable = True
    reader: ReadingConsumer

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._bounds = Bounds.of(constants)
        self.partitions = self._bounds.partitions
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self._actions: dict[str, Callable[..., None]] = {
            "Poll": self._poll,
            "Assign": self._assign,
            "Seek": self._seek,
            "SeekToEdge": self._seek_to_edge,
            "Pause": lambda p: self.reader.subscriptions.pause(topic_partition(p)),
            "Resume": lambda p: self.reader.subscriptions.resume(topic_partition(p)),
            "PassBackoff": lambda: self.reader.clock.sleep(BACKOFF_MS),
            "Answer": self._answer,
            "Fail": self._fail,
            "AnswerLookup": self._answer_lookup,
            "UpdateMetadata": self._update_metadata,
            "Elect": self._elect,
            "AppendRecord": self._append_record,
        }
        self._rewinder = Rewinder(self, apart=(self._actions, self._bounds))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A consumer that was just constructed. There is one initial state."""
        self._rewinder.forget()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        bounds = self._bounds
        self.reader = ReadingConsumer(
            self._concurrency,
            bounds.policy,
            bounds.max_poll,
            group_assigns=bounds.group_assigns,
        )
        self.reader.update_metadata(dict.fromkeys(self.partitions, _METADATA_AT_FIRST))
        if bounds.group_assigns:
            self.reader.consumer.subscribe([TOPIC])
        self.leaders = {
            number: Leader(bounds.log, bounds.epoch, bounds.max_fetch) for number in self.partitions
        }
        self.offsets_asked_about: dict[ClientRequest, int] = {}

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        self.reader.forget_result()
        step_of(self._actions, action)(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        self._concurrency.demand_started()
        return Observation({name: value(self) for name, value in OF_READER.items()})

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on the consumer has locks at which its steps can be stopped."""
        self._interruptible = True
        return True

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether the application takes one and another thread calls back in the other.

        A poll is several sections: an answer may come between two of them, and nothing is wrong.
        """
        return take_two_threads(_THREADS, running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of the consumer stand still while another takes its action."""
        return interrupted(self._concurrency, self.apply, running, point, between)

    # ---- the application -------------------------------------------------------------------

    def _poll(self) -> None:
        if not self.reader.subscriptions.assigned_partitions:
            raise ActionRefused("nothing is assigned")
        self.reader.poll()
        for request in self.reader.asked_of_leaders():
            if isinstance(request.request, OffsetsForLeaderEpochRequest):
                (partition,) = request.request.partitions
                self.offsets_asked_about.setdefault(request, self._offset(partition))

    def _offset(self, partition: TopicPartition) -> int:
        position = self.reader.subscriptions.position(partition)
        return NO_OFFSET if position is None else position.offset

    def _assign(self, partitions: frozenset[int]) -> None:
        wanted = [topic_partition(number) for number in sorted(partitions)]
        if self._bounds.group_assigns:
            self.reader.subscriptions.assign_from_subscribed(())
            self.reader.subscriptions.assign_from_subscribed(wanted)
        else:
            self.reader.consumer.assign(wanted)

    def _seek(self, number: int, target: Fn) -> None:
        self.reader.consumer.seek(topic_partition(number), _position(target))

    def _seek_to_edge(self, number: int, strategy: str) -> None:
        consumer, partition = self.reader.consumer, topic_partition(number)
        if strategy == OffsetResetStrategy.EARLIEST.value:
            consumer.seek_to_beginning(partition)
        else:
            consumer.seek_to_end(partition)

    # ---- answers ---------------------------------------------------------------------------

    def _answer(self, place: int) -> None:
        sent = self._sent(place)
        number, asked_epoch = _partition_of(sent)
        leader = self.leaders[number]
        if asked_epoch != leader.epoch:
            self._come(sent, _failure_of(sent, leader, Errors.FENCED_LEADER_EPOCH))
        else:
            self._come(sent, _answer_of(sent, leader))

    def _fail(self, place: int, error: str) -> None:
        sent = self._sent(place)
        number, _ = _partition_of(sent)
        self._come(sent, _failure_of(sent, self.leaders[number], Errors[error]))

    def _sent(self, place: int) -> ClientRequest:
        sent = self.reader.asked_of_leaders()
        if place > len(sent):
            raise ActionRefused(f"there is no request {place} in flight")
        return sent[place - 1]

    def _come(self, sent: ClientRequest, answer: ConsumerResponse | Exception) -> None:
        """The heartbeat thread, say, calls back."""
        self.offsets_asked_about.pop(sent, None)
        self.reader.network.respond(sent, answer)
        self.reader.network.poll_no_wakeup()

    def _answer_lookup(self, succeeds: bool) -> None:
        lookups = [
            (sent, sent.request)
            for sent in self.reader.network.in_flight()
            if isinstance(sent.request, OffsetFetchRequest)
        ]
        if not lookups:
            raise ActionRefused("no committed positions are asked for")
        sent, request = lookups[-1]
        answer = OffsetFetchResponse(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        if succeeds:
            assert request.partitions is not None
            answer = OffsetFetchResponse(
                Errors.NONE, tuple(map(self._committed, request.partitions))
            )
        self._come(sent, answer)

    def _committed(self, partition: TopicPartition) -> OffsetFetchResponsePartition:
        committed = self._bounds.committed[partition.partition]
        return OffsetFetchResponsePartition(partition, committed.offset, committed.leader_epoch)

    def _update_metadata(self, age: int) -> None:
        self.reader.update_metadata(
            {number: max(leader.epoch - age, 1) for number, leader in self.leaders.items()}
        )

    # ---- the leaders -----------------------------------------------------------------------

    def _elect(self, number: int, kept: int) -> None:
        leader = self.leaders[number]
        leader.log, leader.epoch = leader.log[:kept], leader.epoch + 1

    def _append_record(self, number: int) -> None:
        leader = self.leaders[number]
        leader.log = (*leader.log, leader.epoch)


def _partition_of(sent: ClientRequest) -> tuple[int, int]:
    """The partition that a request asks about, and the leader epoch that it asks with."""
    match sent.request:
        case ListOffsetsRequest(partition=partition, current_leader_epoch=epoch):
            return partition.partition, epoch
        case OffsetsForLeaderEpochRequest(partitions=asked):
            ((partition, data),) = asked.items()
            return partition.partition, data.current_leader_epoch or NO_EPOCH
        case FetchRequest(to_send=to_send):
            ((partition, wanted),) = to_send.items()
            return partition.partition, wanted.current_leader_epoch or NO_EPOCH
        case other:
            raise TypeError(f"no leader is asked {other}")


def _answer_of(sent: ClientRequest, leader: Leader) -> ConsumerResponse:
    match sent.request:
        case ListOffsetsRequest(timestamp=time):
            offset = 0 if time == EARLIEST_TIMESTAMP else len(leader.log)
            return ListOffsetsResponse(Errors.NONE, offset, leader.epoch)
        case OffsetsForLeaderEpochRequest(partitions=asked):
            ((partition, data),) = asked.items()
            return OffsetsForLeaderEpochResponse({partition: leader.end_offset(data.leader_epoch)})
        case FetchRequest(to_send=to_send):
            ((partition, wanted),) = to_send.items()
            return FetchResponse({partition: leader.fetch(wanted.fetch_offset)})
        case other:
            raise TypeError(f"no leader is asked {other}")


def _failure_of(sent: ClientRequest, leader: Leader, error: Errors) -> ConsumerResponse | Exception:
    if error is Errors.NETWORK_EXCEPTION:
        return DisconnectException("the connection broke")
    match sent.request:
        case ListOffsetsRequest():
            return ListOffsetsResponse(error)
        case OffsetsForLeaderEpochRequest(partitions=asked):
            return OffsetsForLeaderEpochResponse(dict.fromkeys(asked, EpochEndOffset(error)))
        case FetchRequest(to_send=to_send):
            return FetchResponse(dict.fromkeys(to_send, leader.failed_fetch(error)))
        case other:
            raise TypeError(f"no leader is asked {other}")


_THREADS = (frozenset({"Seek", "SeekToEdge"}), frozenset({"Answer", "Fail"}))
"""Which actions one thread takes: the application's, the one that calls back."""
