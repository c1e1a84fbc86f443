"""What a broker's objects hold, as the spec's values: the mapping of DirectoryMove.tla."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.systems.directories.broker import DIRECTORIES, TOPIC_PARTITION, TwoDirectoryBroker
from conformance.systems.directories.mover import EpochCall, FetchCall, Mover
from conformance.tla import Fn, Value
from impl.disk import parent
from impl.log import Log
from impl.types import UNDEFINED_EPOCH

_NO_EPOCH = -1
_NO_OFFSET = -1
_FUTURE = "-future"


class InconsistentDirectories(Exception):
    """What an object says of itself cannot be."""


@dataclass(frozen=True, slots=True)
class DirectoriesView:
    """A broker's process, its thread of moves, and the logs that it had when a directory failed."""

    broker: TwoDirectoryBroker
    mover: Mover
    current: Log
    future: Log | None


def _role(view: DirectoriesView) -> Value:
    partition = view.broker.partition
    if partition is None:
        return "offline"
    return "leader" if partition.is_leader else "follower"


def _leader_epoch(view: DirectoriesView) -> Value:
    partition = view.broker.partition
    return _NO_EPOCH if partition is None else partition.leader_epoch


def _records(log: Log) -> Value:
    return tuple(batch.partition_leader_epoch for batch in log.batches())


def _epoch_cache(log: Log) -> Value:
    cache = log.leader_epoch_cache
    entries = () if cache is None else cache.epoch_entries()
    return tuple(Fn({"epoch": entry.epoch, "start": entry.start_offset}) for entry in entries)


def _is_moving(view: DirectoriesView) -> bool:
    """Whether a directory holds a future log, whoever knows of it."""
    disk = view.broker.disk
    names = [name for folder in DIRECTORIES for name in disk.names(folder)]
    futures = [name for name in names if name.endswith(_FUTURE)]
    if len(futures) > 1:
        raise InconsistentDirectories(f"there are several future logs: {futures}")
    return bool(futures)


def _of_copies(view: DirectoriesView, show: Callable[[Log], Value], absent: Value) -> Value:
    future = absent
    if _is_moving(view):
        if view.future is None:
            raise InconsistentDirectories(
                "a future log lies in a directory, and nobody knows of it"
            )
        future = show(view.future)
    return Fn({"current": show(view.current), "future": future})


def _failed(view: DirectoriesView) -> Value:
    online = view.broker.replicas.log_manager.log_directories
    return frozenset(folder for folder in DIRECTORIES if folder not in online)


def _fetch(view: DirectoriesView) -> tuple[str, int, int]:
    """State, offset and epoch of the future log's fetcher."""
    moves = view.broker.moves
    thread = moves.get_fetcher(TOPIC_PARTITION)
    state = None if thread is None else thread.fetch_state(TOPIC_PARTITION)
    if state is not None:
        return state.state.value, state.fetch_offset, state.current_leader_epoch
    failed = moves.failed_partitions.contains(TOPIC_PARTITION)
    return ("Failed" if failed else "None"), 0, _NO_EPOCH


def _message(**fields: Value) -> Value:
    values: dict[Value, Value] = {
        "type": "None",
        "currentLeaderEpoch": _NO_EPOCH,
        "fetchOffset": 0,
        "lastEpoch": _NO_EPOCH,
        "error": "NONE",
        "epoch": _NO_EPOCH,
        "endOffset": _NO_OFFSET,
        "records": (),
        "highWatermark": 0,
        "overtaken": False,
    }
    values.update(fields)
    return Fn(values)


def _channel(view: DirectoriesView) -> Value:
    match view.mover.call:
        case None:
            return _message()
        case EpochCall() as call:
            thread = view.broker.mover()
            return _epoch_call(call, thread.is_marked_since_asked(TOPIC_PARTITION))
        case FetchCall() as call:
            return _fetch_call(call)


def _epoch_call(call: EpochCall, overtaken: bool) -> Value:
    asked = call.request[TOPIC_PARTITION]
    epoch = _or_none(asked.current_leader_epoch)
    if call.answers is None:
        return _message(
            type="EpochRequest",
            currentLeaderEpoch=epoch,
            lastEpoch=asked.leader_epoch,
            overtaken=overtaken,
        )
    end = call.answers[TOPIC_PARTITION]
    return _message(
        type="EpochResponse",
        currentLeaderEpoch=epoch,
        error=end.error.name,
        epoch=end.leader_epoch,
        endOffset=end.end_offset,
        overtaken=overtaken,
    )


def _fetch_call(call: FetchCall) -> Value:
    asked = call.fetch.partition_data[TOPIC_PARTITION]
    sent: dict[str, Value] = {
        "currentLeaderEpoch": _or_none(asked.current_leader_epoch),
        "fetchOffset": asked.fetch_offset,
    }
    if call.answers is None:
        return _message(type="FetchRequest", **sent)
    data = call.answers[TOPIC_PARTITION]
    return _message(
        type="FetchResponse",
        **sent,
        error=data.error.name,
        records=tuple(batch.partition_leader_epoch for batch in data.records.batches()),
        highWatermark=max(0, data.high_watermark),
    )


def _or_none(epoch: int | None) -> int:
    return UNDEFINED_EPOCH if epoch is None else epoch


def _unadded(view: DirectoriesView) -> Value:
    added = view.broker.moves.added
    return _NO_OFFSET if added is None else added[TOPIC_PARTITION].init_offset


def _unmarked(view: DirectoriesView) -> Value:
    marked = view.broker.moves.marked
    return _NO_OFFSET if marked is None else marked


OF_BROKER: dict[str, Callable[[DirectoriesView], Value]] = {
    "role": _role,
    "leaderEpoch": _leader_epoch,
    "directory": lambda view: parent(view.current.directory),
    "moving": _is_moving,
    "log": lambda view: _of_copies(view, _records, ()),
    "highWatermark": lambda view: _of_copies(view, lambda log: log.high_watermark, 0),
    "epochCache": lambda view: _of_copies(view, _epoch_cache, ()),
    "failed": _failed,
    "fetchState": lambda view: _fetch(view)[0],
    "fetchOffset": lambda view: _fetch(view)[1],
    "fetchEpoch": lambda view: _fetch(view)[2],
    "channel": _channel,
    "unadded": _unadded,
    "unmarked": _unmarked,
}
"""Each variable, and how the objects show it."""

VARIABLES = tuple(OF_BROKER)
"""Observed: all but the ghosts."""
