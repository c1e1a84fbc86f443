"""A fetch session of a broker along FetchSessions.tla's actions, at a port or in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from conformance.kafka.batches import keyed_batch
from conformance.kafka.entities import NO_TIME, make
from conformance.systems.protocol import Observation, step_of
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.wire.data.driven import WallClock
from conformance.systems.wire.data.requests import NO_EPOCH, DataRequests
from conformance.systems.wire.topic import expect
from conformance.systems.wire.transaction.requests import NONE, records_of
from conformance.tla import Action, Fn, Value

SPECIFICATION = "FetchSessions"
SIGN = "Offsets"
"""A constant that its models have, and others at a port have not."""
VARIABLES = ("answer",)
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
NO_SESSION = 0
_CONSUMER = -1
_ALL = -1
_BYTES = 1 << 20
_NO_ANSWER: Mapping[Value, Value] = {
    "request": "none",
    "epoch": "none",
    "error": NONE,
    "isOpen": False,
    "partitions": frozenset(),
}


def partitions_of(constants: Mapping[str, Value]) -> list[int]:
    """The specification's partitions."""
    partitions = constants["Partitions"]
    assert isinstance(partitions, frozenset), "a set of numbers in every model"
    return sorted(each for each in partitions if isinstance(each, int))


class SessionAnswer(NamedTuple):
    """A Fetch answer: its own error, the session's id or 0, and what it says of partitions."""

    error: str
    session_id: int
    partitions: Mapping[int, Any]
    """kio's PartitionData, by index."""


def fetch(
    requests: DataRequests,
    session: tuple[int, int],
    offsets: Mapping[int, int],
    forgotten: frozenset[int] = frozenset(),
    replica_id: int = _CONSUMER,
) -> SessionAnswer:
    """Fetch of several partitions of the topic; `session` is an id and an epoch."""
    module = requests.module("fetch")
    partitions = tuple(
        make(
            module.FetchPartition,
            partition=index,
            current_leader_epoch=NO_EPOCH,
            fetch_offset=offset,
            partition_max_bytes=_BYTES,
        )
        for index, offset in sorted(offsets.items())
    )
    removed = tuple(sorted(forgotten))
    body = make(
        module.FetchRequest,
        replica_id=replica_id,
        max_wait=NO_TIME,
        min_bytes=0,
        isolation_level=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=(requests.named(module.FetchTopic, partitions=partitions),) * bool(offsets),
        forgotten_topics_data=(requests.named(module.ForgottenTopic, partitions=removed),)
        * bool(forgotten),
    )
    if replica_id != _CONSUMER and hasattr(body, "replica_state"):  # since Fetch 15
        body = replace(body, replica_state=module.ReplicaState(replica_id=replica_id))
    answer = requests.port.ask_body(body)
    return SessionAnswer(
        error_name(answer.error_code),
        int(answer.session_id),
        {
            int(partition.partition_index): partition
            for topic in answer.responses
            for partition in topic.partitions
        },
    )


class DrivenSessions:
    """A client with one session at a time. `partitions` are of one topic, and empty; `ends` says
    where their logs end, 0 for the others. Offsets are counted from there."""

    def __init__(
        self,
        partitions: Mapping[int, DataRequests],
        clock: WallClock = time,
        ends: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._any = next(iter(partitions.values()))
        self._names = {requests.index: name for name, requests in partitions.items()}
        self._bases = {name: ends.get(name, 0) for name in partitions}
        self._starts = dict(self._bases)
        self._session_id, self._epoch = NO_SESSION, 1
        self._answer: Mapping[Value, Value] = _NO_ANSWER
        self._steps: Mapping[str, Callable[..., None]] = {
            "Produce": self._produce,
            "DeleteRecords": self._delete_records,
            "FetchFull": self._fetch_full,
            "FetchSessionless": self._fetch_sessionless,
            "FetchIncremental": self._fetch_incremental,
            "TakeAnswer": self._take_answer,
        }

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        step_of(self._steps, action)(*action.args)

    def observe(self) -> Observation:
        """The last answer, until it is taken."""
        return Observation({"answer": Fn(dict(self._answer))})

    def leave(self) -> None:
        """Close the session: a broker has room for few."""
        if self._session_id != NO_SESSION:
            fetch(self._any, (self._session_id, FINAL_EPOCH), {})

    def _produce(self, name: int) -> None:
        batch = keyed_batch([(None, b"v")], first_ms=int(self._clock.time()) * 1_000)
        expect("Produce", self._partitions[name].produce(batch, _ALL).error)

    def _delete_records(self, name: int) -> None:
        self._starts[name] += 1
        done = self._partitions[name].delete_records(self._starts[name])
        expect("DeleteRecords", done.error)

    def _fetch_full(self, names: frozenset[int], offset: int) -> None:
        done = self._fetch("FetchFull", INITIAL_EPOCH, names, offset)
        self._session_id, self._epoch = done.session_id, 1

    def _fetch_sessionless(self, names: frozenset[int], offset: int) -> None:
        self._fetch("FetchSessionless", FINAL_EPOCH, names, offset)

    def _fetch_incremental(
        self, epoch: str, changed: frozenset[int], offset: int, forgotten: frozenset[int]
    ) -> None:
        epochs = {"current": self._epoch, "ahead": self._epoch + 1, "behind": self._epoch - 1}
        done = self._fetch("FetchIncremental", epochs[epoch], changed, offset, forgotten)
        self._answer = {**self._answer, "epoch": epoch}
        if done.error == NONE and done.session_id != NO_SESSION:
            self._epoch = epochs[epoch] + 1

    def _fetch(
        self,
        request: str,
        epoch: int,
        names: frozenset[int],
        offset: int,
        forgotten: frozenset[int] = frozenset(),
    ) -> SessionAnswer:
        done = fetch(
            self._any,
            (self._session_id, epoch),
            {self._partitions[name].index: self._bases[name] + offset for name in names},
            frozenset(self._partitions[name].index for name in forgotten),
        )
        self._answer = {
            **_NO_ANSWER,
            "request": request,
            "error": done.error,
            "isOpen": done.session_id != NO_SESSION,
            "partitions": frozenset(map(self._read, done.partitions.values())),
        }
        return done

    def _read(self, partition: Any) -> Value:
        records = records_of(bytes(partition.records or b""))
        index = int(partition.partition_index)
        base = self._bases.get(self._names.get(index, index), 0)
        return Fn(
            {
                "partition": self._names.get(index, index),
                "error": error_name(partition.error_code),
                "end": _counted(int(partition.high_watermark), base),
                "start": _counted(int(partition.log_start_offset), base),
                "records": frozenset(record.offset - base for record in records),
            }
        )

    def _take_answer(self) -> None:
        self._answer = _NO_ANSWER


def _counted(offset: int, base: int) -> int:
    """From a base on; a negative offset stands for none."""
    return offset if offset < 0 else offset - base
