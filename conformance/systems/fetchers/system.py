"""The system under test: a follower's fetcher threads, driven by FetcherThreads.tla's actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.systems.fetchers.broker import (
    BACK_OFF_MS,
    TOPIC,
    FollowingBroker,
    corrupt_record_at,
    error_of,
    record_at,
)
from conformance.systems.fetchers.view import OF_BROKER, VARIABLES
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    WholeSections,
    interrupted,
    take_two_threads,
)
from conformance.tla import Action, Value
from impl.fetcher.remote_leader_endpoint import should_follower_throttle
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.records import MemoryRecords
from impl.types import (
    BrokerEndPoint,
    FetchPartitionData,
    FetchPartitionRequest,
    InitialFetchState,
    TopicPartition,
)

Request = Mapping[TopicPartition, FetchPartitionRequest]

_METADATA = frozenset({"AddFetcher", "AddAgain", "RemoveFetcher", "ShutdownIdle", "Resize"})
_FETCHER = frozenset({"SendFetch", "AnswerFetch", "LoseAnswer"})
_NO_RECORDS = frozenset({"nothing", "fenced", "unknown"})


class FetchersSystem(WholeSections, RewindingSystem):
    """One follower; metadata, leaders and time do what the actions say."""

    variables = VARIABLES
    repeatable = True
    broker: FollowingBroker
    partitions: list[int]
    requests: dict[ReplicaFetcherThread, Request]
    """Of each thread the fetch that is under way."""

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self.partitions = sorted(_numbers(constants["Partitions"]))
        self.leaders = sorted(_names(constants["Leaders"]))
        sizes = _numbers(constants["PoolSizes"])
        self._pool = min(sizes)
        self.numbers = range(max(sizes))
        self._max_offset = _number(constants["MaxOffset"])
        self._high_watermark = _number(constants["HighWatermark"])
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self._actions: dict[str, Callable[..., None]] = {
            "AddFetcher": self._add,
            "AddAgain": self._add_again,
            "RemoveFetcher": self._remove,
            "ShutdownIdle": lambda: self.broker.manager.shutdown_idle_fetcher_threads(),
            "Resize": lambda size: self.broker.manager.resize_thread_pool(size),
            "SendFetch": self._send,
            "AnswerFetch": self._answer,
            "LoseAnswer": self._lose,
            "EndThread": self._end,
            "PassBackoff": lambda: self.broker.clock.sleep(BACK_OFF_MS),
            "ToggleQuota": self._toggle_quota,
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))
        self._start()

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A broker that follows nothing yet. There is one initial state."""
        self._rewinder.forget()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        self._start()

    def _start(self) -> None:
        self.broker = FollowingBroker(self.partitions, self._pool, self._concurrency)
        self._epochs = dict.fromkeys(self.partitions, 0)
        self.requests = {}

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        step_of(self._actions, action)(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        self._concurrency.demand_started()
        return Observation({name: value(self) for name, value in OF_BROKER.items()})

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What a thread begins by itself."""
        return frozenset({"SendFetch"})

    def offers(self) -> frozenset[Action]:
        """The fetches that threads would send now."""
        return frozenset(
            Action("SendFetch", key)
            for key, thread in self.threads().items()
            if not thread.is_thread_failed
            and thread not in self.requests
            and any(self._is_ready(thread, partition) for partition in thread.partitions())
        )

    def _is_ready(self, thread: ReplicaFetcherThread, partition: TopicPartition) -> bool:
        """Whether the next fetch will ask for it; to build that one would change its session."""
        state = thread.fetch_state(partition)
        now_ms = self.broker.clock.milliseconds()
        return (
            state is not None
            and state.is_ready_for_fetch(now_ms)
            and not should_follower_throttle(self.broker.quota, state, partition)
        )

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on the broker has locks at which its steps can be stopped."""
        self._interruptible = True
        return True

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether the metadata's thread takes one and a fetcher thread the other.

        A resize is several sections, and a step of the spec: between two of them a partition is in
        no thread, whose answers do not count then. Nor is a thread's end interrupted: its error is
        raised in a turn that finds a partition to fetch.
        """
        if "Resize" in (running.name, between.name):
            return False
        return take_two_threads((_METADATA, _FETCHER), running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of the broker stand still while another takes its action."""
        return interrupted(self._concurrency, self.apply, running, point, between)

    # ---- what is there ---------------------------------------------------------------------

    def threads(self) -> dict[tuple[str, int], ReplicaFetcherThread]:
        """The manager's threads, by leader and number."""
        return {
            (f"b{key.broker_id}", key.fetcher_id): thread
            for key, thread in self.broker.manager.fetcher_threads().items()
        }

    def _thread(self, leader: str, number: int) -> ReplicaFetcherThread:
        thread = self.threads().get((leader, number))
        if thread is None or thread.is_thread_failed:
            raise ActionRefused(f"no thread {number} of {leader} runs")
        return thread

    def _request(self, thread: ReplicaFetcherThread) -> Request:
        request = self.requests.pop(thread, None)
        if request is None:
            raise ActionRefused(f"{thread.name} has no fetch under way")
        return request

    # ---- the manager -----------------------------------------------------------------------

    def _add(self, number: int, leader: str) -> None:
        self._epochs[number] += 1
        self._add_at(number, leader)

    def _add_at(self, number: int, leader: str) -> None:
        partition = TopicPartition(TOPIC, number)
        initial = InitialFetchState(
            None,
            BrokerEndPoint(int(leader.removeprefix("b"))),
            self._epochs[number],
            self.broker.log(number).log_end_offset,
        )
        self.broker.manager.add_fetcher_for_partitions({partition: initial})

    def _add_again(self, number: int) -> None:
        for (leader, _), thread in self.threads().items():
            if thread.fetch_state(TopicPartition(TOPIC, number)) is not None:
                self._add_at(number, leader)
                return
        raise ActionRefused(f"partition {number} is not followed")

    def _remove(self, number: int) -> None:
        self.broker.manager.remove_fetcher_for_partitions([TopicPartition(TOPIC, number)])

    # ---- a thread --------------------------------------------------------------------------

    def _send(self, leader: str, number: int) -> None:
        thread = self._thread(leader, number)
        fetch = thread.build_fetch()
        if fetch is None or thread in self.requests:
            raise ActionRefused(f"{thread.name} has nothing to fetch")
        self.requests[thread] = dict(fetch.partition_data)

    def _answer(self, leader: str, number: int, special: int, outcome: str) -> None:
        thread = self._thread(leader, number)
        request = self._request(thread)
        thread.process_fetch_response(
            request,
            {
                partition: self._data(
                    asked.fetch_offset,
                    outcome if partition.partition == special else self._usual(asked.fetch_offset),
                )
                for partition, asked in request.items()
            },
        )

    def _usual(self, offset: int) -> str:
        return "records" if offset < self._max_offset else "nothing"

    def _data(self, offset: int, outcome: str) -> FetchPartitionData:
        return FetchPartitionData(
            error_of(outcome), self._high_watermark, 0, _records(offset, outcome)
        )

    def _lose(self, leader: str, number: int) -> None:
        thread = self._thread(leader, number)
        self._request(thread)
        thread.handle_fetch_failure(ConnectionError("the leader does not answer"))

    def _end(self, leader: str, number: int) -> None:
        """The thread's own loop takes a turn, which an error ends."""
        thread = self._thread(leader, number)
        self.broker.replicas.fails = True
        try:
            thread.run()
        finally:
            self.broker.replicas.fails = False

    def _toggle_quota(self) -> None:
        self.broker.quota.is_exceeded = not self.broker.quota.is_exceeded


def _records(offset: int, outcome: str) -> MemoryRecords:
    """What the answer brings; what cannot be appended lies below the log end."""
    if outcome in _NO_RECORDS:
        return MemoryRecords.EMPTY
    if outcome == "corrupt":
        return corrupt_record_at(offset)
    return record_at(offset - 1 if outcome == "broken" else offset)


def _numbers(value: Value) -> set[int]:
    assert isinstance(value, frozenset)
    return {_number(each) for each in value}


def _names(value: Value) -> set[str]:
    assert isinstance(value, frozenset)
    return {str(each) for each in value}


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def create(constants: Mapping[str, Value]) -> FetchersSystem:
    """The system for a model's constants."""
    return FetchersSystem(constants)
