"""The system under test: Kafka's own ShareCoordinatorShard, driven by ShareCoordinator.tla.

The shard, its records and their bytes are Kafka's. The log is the bridge's (java/share); the group
coordinator and the leaders are played here.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.shared.persister import (
    STATE_IDS,
    STATES,
    VARIABLES,
    PersisterSteps,
    ReadAnswer,
    ShareView,
    WriteRequest,
)
from conformance.tla import Value

_Batches = tuple[tuple[int, int, int, int], ...]
"""Of each first and last offset, state, delivery count."""


class _BridgeShareState(msgspec.Struct, frozen=True, array_like=True):
    """What is stored as the bridge writes it: ShareStates.java."""

    known: bool
    epoch: int
    leader: int
    start: int
    complete: int
    batches: _Batches
    leader_fence: int
    epoch_fence: int
    updates: int
    cold: bool


class _BridgeRead(msgspec.Struct, frozen=True, array_like=True):
    """What a leader that reads is told."""

    error: str
    epoch: int
    start: int
    batches: _Batches


_as_read = msgspec.json.Decoder(_BridgeRead).decode
_as_view = msgspec.json.Decoder(_BridgeShareState).decode
_as_error = msgspec.json.Decoder(str).decode


class _BridgedShard:
    """A shard in a JVM."""

    def __init__(self, channel: AdapterChannel, updates: int, *, counts: bool) -> None:
        self._channel = channel
        self._updates = updates
        self._counts = counts

    def reset(self) -> None:
        """See `StoreOfShares.reset`."""
        self._run("reset", updates=self._updates)

    def initialize(self, epoch: int, start: int) -> str:
        """See `StoreOfShares.initialize`."""
        return _as_error(self._run("initialize", stateEpoch=epoch, startOffset=start))

    def read(self, leader: int) -> ReadAnswer:
        """See `StoreOfShares.read`."""
        answer = _as_read(self._run("read", leaderEpoch=leader))
        return ReadAnswer(answer.error, answer.epoch, answer.start, _records(answer.batches))

    def write(self, request: WriteRequest) -> str:
        """See `StoreOfShares.write`."""
        batch = {
            "firstOffset": request.offset,
            "lastOffset": request.offset,
            "deliveryState": STATE_IDS[request.state],
            "deliveryCount": request.count,
        }
        return self._write(request.leader, request.epoch, request.start, request.complete, [batch])

    def write_nothing(self, leader: int | None, epoch: int | None) -> str:
        """See `StoreOfShares.write_nothing`."""
        view = self.view()
        return self._write(
            view.leader_fence if leader is None else leader,
            view.epoch_fence if epoch is None else epoch,
            view.start,
            view.complete or 0,
            [],
        )

    def _write(
        self, leader: int, epoch: int, start: int, complete: int, batches: list[dict[str, int]]
    ) -> str:
        answer = self._run(
            "write",
            leaderEpoch=leader,
            stateEpoch=epoch,
            startOffset=start,
            deliveryCompleteCount=complete,
            stateBatches=batches,
        )
        return _as_error(answer)

    def delete(self) -> str:
        """See `StoreOfShares.delete`."""
        return _as_error(self._run("delete"))

    def snapshot_cold(self) -> None:
        """See `StoreOfShares.snapshot_cold`."""
        self._run("snapshot_cold")

    def fail_over(self, *, pruned: bool) -> None:
        """See `StoreOfShares.fail_over`."""
        self._run("fail_over", pruned=pruned)

    def view(self) -> ShareView:
        """See `StoreOfShares.view`."""
        return self._view

    def _run(self, command: str, **members: object) -> bytes:
        answer, view = self._channel.call(
            [{"command": f"states_{command}", **members}, {"command": "states_view"}]
        )
        self._view = self._as_view(bytes(view))
        return bytes(answer)

    def _as_view(self, text: bytes) -> ShareView:
        share = _as_view(text)
        complete: int | None = share.complete if share.known else 0
        if not self._counts:
            complete = None
        return ShareView(
            share.known,
            share.epoch,
            share.leader,
            share.start,
            complete,
            _records(share.batches),
            share.leader_fence,
            share.epoch_fence,
            share.updates,
            share.cold,
        )


def _records(batches: _Batches) -> dict[int, tuple[str, int]]:
    return {
        offset: (STATES[state], count)
        for first, last, state, count in batches
        for offset in range(first, last + 1)
    }


class KafkaPersisterSystem(PersisterSteps):
    """A share coordinator's shard in a JVM, its group and the leaders of its partition."""

    variables: tuple[str, ...] = VARIABLES

    def __init__(
        self, channel: AdapterChannel, constants: Mapping[str, Value], *, counts: bool = True
    ) -> None:
        updates = constants["UpdatesPerSnapshot"]
        assert isinstance(updates, int), "a number in every model"
        super().__init__(constants, _BridgedShard(channel, updates, counts=counts))
        self._channel = channel
        if not counts:
            self.variables = tuple(name for name in VARIABLES if name != "complete")

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)
