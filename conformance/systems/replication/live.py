"""What a fetcher thread's own loop needs around it: leaders that answer, waits that are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from conformance.systems.threads import StartedThreads
from impl.concurrency import Condition, Event, Lock, ReadWriteLock, Thread
from impl.network import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    RequestHandlers,
)
from impl.types import LATEST_TIMESTAMP

BACK_OFF_MS = 1_000


class MessageLost(Exception):
    """No answer came."""


@dataclass(slots=True)
class Network:
    """Connections of the fetchers; `lost`: no message arrives."""

    handlers: Callable[[int], RequestHandlers | None]
    """The broker that answers, None if it does not run."""
    lost: bool = False
    asked: list[str] = field(default_factory=list)
    """The requests since it was cleared, by the specification's names."""

    def reach(self, leader: int, request: str) -> RequestHandlers:
        """The leader, if the request arrives. Raises MessageLost."""
        self.asked.append(request)
        handlers = None if self.lost else self.handlers(leader)
        if handlers is None:
            raise MessageLost("the request or its answer was lost")
        return handlers


class LiveConnection:
    """A fetcher thread's connection (BlockingSend) on which the leader answers at once."""

    __slots__ = ("_leader", "_network")

    def __init__(self, leader: int, network: Network) -> None:
        self._leader, self._network = leader, network

    def fetch(self, request: FetchRequest, /) -> FetchResponse:
        return self._network.reach(self._leader, "FetchRequest").fetch(request)

    def offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest, /
    ) -> OffsetsForLeaderEpochResponse:
        leader = self._network.reach(self._leader, "EpochRequest")
        return leader.offsets_for_leader_epoch(request)

    def list_offsets(self, request: ListOffsetsRequest, /) -> ListOffsetsResponse:
        latest = request.timestamp == LATEST_TIMESTAMP
        name = "LatestRequest" if latest else "EarliestRequest"
        return self._network.reach(self._leader, name).list_offsets(request)

    def initiate_close(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


class CountedWaits:
    """A single caller, as NoConcurrency; waits for a condition return at once and are counted."""

    __slots__ = ("_plain", "count")

    def __init__(self) -> None:
        self._plain = StartedThreads()
        self.count = 0

    def lock(self, name: str, /) -> Lock:
        return _CountedLock(self._plain.lock(name), self)

    def read_write_lock(self, name: str, /) -> ReadWriteLock:
        return self._plain.read_write_lock(name)

    def event(self, name: str, /) -> Event:
        return self._plain.event(name)

    def thread(self, name: str, target: Callable[[], None], /) -> Thread:
        return self._plain.thread(name, target)

    def demand_started(self) -> None:
        """See `StartedThreads.demand_started`."""
        self._plain.demand_started()

    def checkpoint(self, _label: str, /) -> None:
        """Nothing: there is nobody to switch to."""


class _CountedLock:
    __slots__ = ("_plain", "_waits")

    def __init__(self, plain: Lock, waits: CountedWaits) -> None:
        self._plain, self._waits = plain, waits

    def acquire(self) -> None:
        self._plain.acquire()

    def release(self) -> None:
        self._plain.release()

    def __enter__(self) -> object:
        return self._plain.__enter__()

    def __exit__(self, kind: object, value: object, trace: object, /) -> None:
        self._plain.__exit__(kind, value, trace)

    def new_condition(self) -> Condition:
        return _CountedCondition(self._waits)


class _CountedCondition:
    __slots__ = ("_waits",)

    def __init__(self, waits: CountedWaits) -> None:
        self._waits = waits

    def wait(self, _timeout_ms: int | None = None, /) -> bool:
        self._waits.count += 1
        return False

    def notify_all(self) -> None:
        """Nobody waits."""
