"""What a follower's objects hold, as the spec's values: the mapping of FetcherThreads.tla."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from conformance.systems.fetchers.broker import TOPIC
from conformance.tla import Fn, Value
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.fetcher.state import PartitionFetchState
from impl.types import FetchPartitionRequest, TopicPartition

if TYPE_CHECKING:
    from conformance.systems.fetchers.system import FetchersSystem

_NONE = -1
_NOT_FOLLOWED = Fn(
    {
        "leader": "none",
        "fetcher": 0,
        "epoch": _NONE,
        "offset": _NONE,
        "lag": _NONE,
        "delayed": False,
    }
)
_NOT_ASKED = Fn({"epoch": _NONE, "offset": _NONE})


class InconsistentFetchers(Exception):
    """What the objects say of one partition cannot be."""


def _of_threads(
    system: FetchersSystem, value: Callable[[ReplicaFetcherThread | None], Value]
) -> Value:
    """A value of each leader and number."""
    threads = system.threads()
    return Fn(
        {
            leader: Fn({number: value(threads.get((leader, number))) for number in system.numbers})
            for leader in system.leaders
        }
    )


def _state(thread: ReplicaFetcherThread | None) -> Value:
    if thread is None:
        return "none"
    return "ended" if thread.is_thread_failed else "runs"


def _followed(system: FetchersSystem) -> Value:
    return Fn({number: _followed_partition(system, number) for number in system.partitions})


def _followed_partition(system: FetchersSystem, number: int) -> Value:
    states = {
        key: state
        for key, thread in system.threads().items()
        if (state := thread.fetch_state(TopicPartition(TOPIC, number))) is not None
    }
    if len(states) > 1:
        raise InconsistentFetchers(f"partition {number} is followed by {sorted(states)}")
    for (leader, fetcher), state in states.items():
        return _fetch_state(leader, fetcher, state, system.broker.clock.milliseconds())
    return _NOT_FOLLOWED


def _fetch_state(leader: str, fetcher: int, state: PartitionFetchState, now_ms: int) -> Value:
    return Fn(
        {
            "leader": leader,
            "fetcher": fetcher,
            "epoch": state.current_leader_epoch,
            "offset": state.fetch_offset,
            "lag": _NONE if state.lag is None else state.lag,
            "delayed": state.is_delayed(now_ms),
        }
    )


def _asked(system: FetchersSystem) -> Value:
    def of_thread(thread: ReplicaFetcherThread | None) -> Value:
        request = {} if thread is None else system.requests.get(thread, {})
        return Fn({number: _request(request, number) for number in system.partitions})

    return _of_threads(system, of_thread)


def _request(request: Mapping[TopicPartition, FetchPartitionRequest], number: int) -> Value:
    asked = request.get(TopicPartition(TOPIC, number))
    if asked is None or asked.current_leader_epoch is None:
        return _NOT_ASKED
    return Fn({"epoch": asked.current_leader_epoch, "offset": asked.fetch_offset})


def _gauges(system: FetchersSystem) -> Value:
    broker = system.broker
    return Fn(
        {
            "dead": broker.gauge("DeadThreadCount"),
            "failed": broker.gauge("FailedPartitionsCount"),
            "maxLag": broker.gauge("MaxLag"),
            "lags": Fn({number: _lag_gauge(system, number) for number in system.partitions}),
        }
    )


def _lag_gauge(system: FetchersSystem, number: int) -> int:
    metrics = system.broker.metrics
    gauges = [
        name
        for name in metrics.names()
        if name.name == "ConsumerLag" and ("partition", str(number)) in name.tags
    ]
    if len(gauges) > 1:
        raise InconsistentFetchers(f"partition {number} has the lags {sorted(gauges)}")
    return int(metrics.value(gauges[0])) if gauges else _NONE


OF_BROKER: dict[str, Callable[[FetchersSystem], Value]] = {
    "threads": lambda system: _of_threads(system, _state),
    "followed": _followed,
    "failed": lambda system: frozenset(
        each.partition for each in system.broker.manager.failed_partitions.partitions()
    ),
    "asked": _asked,
    "poolSize": lambda system: system.broker.manager._num_fetchers_per_broker,
    "exceeded": lambda system: system.broker.quota.is_exceeded,
    "logEnd": lambda system: Fn(
        {number: system.broker.log(number).log_end_offset for number in system.partitions}
    ),
    "gauges": _gauges,
}
"""Each variable, and how the objects show it; what was heard of leaders is not the manager's."""

VARIABLES = tuple(OF_BROKER)
