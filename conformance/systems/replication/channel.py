"""A follower's one round trip: the request in flight, its handling by the leader, the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from greenlet import getcurrent, greenlet

from conformance.systems.protocol import ActionRefused
from conformance.systems.replication.broker import TOPIC_PARTITION, Broker
from impl.errors import Errors
from impl.fetcher.leader_endpoint import ReplicaFetch
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.network import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from impl.types import EpochData, TopicPartition


class LeaderConnectionLost(ConnectionError):
    """The request or its answer did not arrive."""


@dataclass(frozen=True, slots=True)
class EpochRoundTrip:
    """OffsetsForLeaderEpoch; `response` once the leader has answered."""

    thread: ReplicaFetcherThread
    leader: int
    broker_epoch: int
    request: Mapping[TopicPartition, EpochData]
    response: OffsetsForLeaderEpochResponse | None = None


@dataclass(frozen=True, slots=True)
class FetchRoundTrip:
    """Fetch; `response` once the leader has answered."""

    thread: ReplicaFetcherThread
    leader: int
    broker_epoch: int
    fetch: ReplicaFetch
    response: FetchResponse | None = None


@dataclass(frozen=True, slots=True)
class ListOffsetsRoundTrip:
    """ListOffsets within the out-of-range reset: the fetcher waits in `waiting`, its lock held."""

    thread: ReplicaFetcherThread
    leader: int
    broker_epoch: int
    fetch_epoch: int | None
    """The leader epoch of the fetch that was out of range."""
    request: ListOffsetsRequest
    waiting: greenlet
    response: ListOffsetsResponse | None = None


RoundTrip = EpochRoundTrip | FetchRoundTrip | ListOffsetsRoundTrip


class LeaderConnection:
    """A fetcher thread's connection to its leader; only ListOffsets is sent from inside a step."""

    __slots__ = ("_leader",)

    def __init__(self, leader: int) -> None:
        self._leader = leader

    def fetch(self, _request: FetchRequest, /) -> FetchResponse:
        """The channel sends fetches itself."""
        raise LeaderConnectionLost("fetches are stepped")

    def offsets_for_leader_epoch(
        self, _request: OffsetsForLeaderEpochRequest, /
    ) -> OffsetsForLeaderEpochResponse:
        """The channel sends epoch requests itself."""
        raise LeaderConnectionLost("epoch requests are stepped")

    def list_offsets(self, request: ListOffsetsRequest, /) -> ListOffsetsResponse:
        """Hand the request to whoever steps this thread, and wait for the answer."""
        parent = getcurrent().parent
        if parent is None:
            raise LeaderConnectionLost("nobody steps this thread")
        answer = parent.switch(request)
        if not isinstance(answer, ListOffsetsResponse):
            raise LeaderConnectionLost("the answer was lost")
        return answer

    def initiate_close(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


class FetchChannel:
    """The slot of one follower; it survives the removal and re-addition of the partition."""

    __slots__ = ("_follower", "_is_alive", "_read", "trip")

    def __init__(self, follower: Callable[[], Broker], is_alive: Callable[[int], bool]) -> None:
        self._follower = follower
        self._is_alive = is_alive
        self._read: RoundTrip | None = None
        self.trip: RoundTrip | None = None

    @property
    def is_parked(self) -> bool:
        """Whether the leader has read the fetch and not yet answered it."""
        return self._read is not None and self._read is self.trip

    def unpark(self) -> None:
        """The leader's process ended: the fetch lies there unread, for the next one."""
        self._read = None

    # ---- the follower sends ----------------------------------------------------------------

    def send_epoch_request(self) -> None:
        """AbstractFetcherThread.maybeTruncate up to the request."""
        thread, leader = self._thread()
        request = dict(thread.fetch_truncating_partitions().with_epoch)
        if not request:
            raise ActionRefused("the fetcher has no truncating partition with an epoch")
        self.trip = EpochRoundTrip(thread, leader, self._follower().epoch, request)

    def send_fetch(self) -> None:
        """AbstractFetcherThread.maybeFetch up to the request."""
        thread, leader = self._thread()
        fetch = thread.build_fetch()
        if fetch is None:
            raise ActionRefused("the fetcher has no partition that is ready for a fetch")
        kept = ReplicaFetch(dict(fetch.partition_data), fetch.request)
        self.trip = FetchRoundTrip(thread, leader, self._follower().epoch, kept)

    def truncate_to_high_watermark(self) -> None:
        """AbstractFetcherThread.maybeTruncate of a partition without epochs: no request."""
        thread, _ = self._thread()
        partitions = thread.fetch_truncating_partitions().without_epoch
        if not partitions:
            raise ActionRefused("the fetcher has no truncating partition without epoch")
        thread.truncate_to_high_watermark(partitions)

    def next_steps(self) -> list[str]:
        """What the fetcher would do next, by the spec's action names; changes nothing."""
        thread = self._follower().fetcher()
        if self.trip is not None or thread is None:
            return []
        truncating = thread.fetch_truncating_partitions()
        state = thread.fetch_state(TOPIC_PARTITION)
        steps = []
        if truncating.with_epoch:
            steps.append("SendEpochRequest")
        if truncating.without_epoch:
            steps.append("TruncateToHighWatermark")
        if state is not None and state.is_ready_for_fetch(self._follower().clock.milliseconds()):
            steps.append("SendFetch")
        return steps

    def leader(self) -> int:
        """The broker that the fetcher follows."""
        thread = self._follower().fetcher()
        if thread is None:
            raise ActionRefused("no fetcher follows the partition")
        return thread.leader.broker_end_point().id

    def _thread(self) -> tuple[ReplicaFetcherThread, int]:
        if self.trip is not None:
            raise ActionRefused("the fetcher still waits for an answer")
        thread = self._follower().fetcher()
        if thread is None:
            raise ActionRefused("no fetcher follows the partition")
        return thread, thread.leader.broker_end_point().id

    # ---- the leader handles ----------------------------------------------------------------

    def handle(self, leader: Broker) -> None:
        """Let the leader answer, now or, a fetch, later."""
        trip = self.trip
        if trip is None or trip.leader != leader.id or trip.response is not None or self.is_parked:
            raise ActionRefused(f"no request of this follower waits at broker {leader.id}")
        manager = leader.replica_manager
        match trip:
            case EpochRoundTrip():
                request = trip.thread.remote_leader.build_epoch_request(trip.request)
                ends = manager.offsets_for_leader_epoch(request)
                self._arrive(trip, replace(trip, response=ends))
            case FetchRoundTrip():
                self._read = trip
                leader.fetch(trip.fetch.request, partial(self._answer_fetch, trip))
            case ListOffsetsRoundTrip():
                self._arrive(trip, replace(trip, response=manager.list_offsets(trip.request)))

    def _answer_fetch(self, trip: FetchRoundTrip, response: FetchResponse) -> None:
        self._arrive(trip, replace(trip, response=response))

    def _arrive(self, trip: RoundTrip, answered: RoundTrip) -> None:
        """What was asked by an earlier life of the follower, or given up, nobody waits for."""
        if self.trip is trip:
            self.trip = answered if self._is_alive(trip.broker_epoch) else None

    # ---- the follower processes ------------------------------------------------------------

    def process(self) -> None:
        """Hand the answer to the fetcher thread."""
        trip = self.trip
        self.trip = None
        match trip:
            case EpochRoundTrip(response=OffsetsForLeaderEpochResponse() as response):
                trip.thread.process_epoch_end_offsets(trip.request, response.partitions)
            case FetchRoundTrip(response=FetchResponse() as response):
                self._process_fetch(trip, response)
            case ListOffsetsRoundTrip(response=ListOffsetsResponse() as response):
                self._resume(trip, response)
            case _:
                raise ActionRefused("no answer has arrived")

    def lose(self) -> None:
        """The request or its answer is lost: the fetcher gets an error instead."""
        trip = self.trip
        self.trip = None
        match trip:
            case EpochRoundTrip():
                trip.thread.handle_partitions_with_errors((TOPIC_PARTITION,))
            case FetchRoundTrip():
                trip.thread.remote_leader.handle_fetch_error()
                trip.thread.handle_fetch_failure(LeaderConnectionLost())
            case ListOffsetsRoundTrip():
                self._resume(trip, None)
            case None:
                raise ActionRefused("nothing is in flight")

    def drop(self) -> None:
        """The follower's process ended; a fetch request already sent may still be handled."""
        trip = self.trip
        if not isinstance(trip, FetchRoundTrip) or trip.response is not None:
            self.end()

    @property
    def waits(self) -> bool:
        """Whether a fetcher stands still in the middle of a turn, until ListOffsets is answered."""
        return isinstance(self.trip, ListOffsetsRoundTrip)

    def end(self) -> None:
        """Nobody waits any more. Garbage collection does not see the frames of a suspended greenlet
        (greenlet's documentation): left alone, it would keep all that its broker holds."""
        if isinstance(self.trip, ListOffsetsRoundTrip):
            self.trip.waiting.throw()
        self.trip = None

    def _process_fetch(self, trip: FetchRoundTrip, response: FetchResponse) -> None:
        data = trip.thread.remote_leader.handle_fetch_response(response)
        asked = trip.fetch.partition_data
        if not any(part.error is Errors.OFFSET_OUT_OF_RANGE for part in data.values()):
            trip.thread.process_fetch_response(asked, data)
            return
        reset = greenlet(trip.thread.process_fetch_response)
        fetch_epoch = asked[TOPIC_PARTITION].current_leader_epoch
        self._park(trip, fetch_epoch, reset, reset.switch(asked, data))

    def _resume(self, trip: ListOffsetsRoundTrip, response: ListOffsetsResponse | None) -> None:
        trip.waiting.parent = getcurrent()
        self._park(trip, trip.fetch_epoch, trip.waiting, trip.waiting.switch(response))

    def _park(
        self, trip: RoundTrip, fetch_epoch: int | None, waiting: greenlet, asked: object
    ) -> None:
        """The thread has either ended its step or asks the leader for an offset."""
        if isinstance(asked, ListOffsetsRequest):
            self.trip = ListOffsetsRoundTrip(
                trip.thread, trip.leader, trip.broker_epoch, fetch_epoch, asked, waiting
            )
