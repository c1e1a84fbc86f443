"""The system under test: impl's share coordinator, with a log that a fail-over loads."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.shared.persister import (
    VARIABLES,
    PersisterSteps,
    ReadAnswer,
    ShareView,
    WriteRequest,
)
from conformance.tla import Value
from impl.share.in_flight_state import RecordState
from impl.share.share_coordinator_shard import (
    ShareCoordinatorResult,
    ShareCoordinatorShard,
    ShareGroupOffset,
    ShareRecord,
    WriteStateRequest,
)
from impl.share.share_partition import PersisterStateBatch

_KEY = "group:topic:0"


class _Shard:
    """A shard whose operations are committed at once."""

    def __init__(self, updates_per_snapshot: int) -> None:
        self._updates_per_snapshot = updates_per_snapshot

    def reset(self) -> None:
        """See `StoreOfShares.reset`."""
        self._log: list[ShareRecord] = []
        self._log_start = 0
        self._shard = ShareCoordinatorShard(self._updates_per_snapshot)

    def initialize(self, epoch: int, start: int) -> str:
        """See `StoreOfShares.initialize`."""
        return self._done(self._shard.initialize_state(_KEY, epoch, start))

    def read(self, leader: int) -> ReadAnswer:
        """See `StoreOfShares.read`."""
        result = self._shard.read_state_and_maybe_update_leader_epoch(_KEY, leader)
        error, state = self._done(result), result.state
        if state is None:
            return ReadAnswer(error)
        return ReadAnswer(error, state.state_epoch, state.start_offset, _records(state))

    def write(self, request: WriteRequest) -> str:
        """See `StoreOfShares.write`."""
        batch = PersisterStateBatch(request.offset, RecordState[request.state], request.count)
        return self._done(
            self._shard.write_state(
                WriteStateRequest(
                    _KEY, request.leader, request.epoch, request.start, request.complete, (batch,)
                )
            )
        )

    def write_nothing(self, leader: int | None, epoch: int | None) -> str:
        """See `StoreOfShares.write_nothing`."""
        view = self.view()
        leader = view.leader_fence if leader is None else leader
        epoch = view.epoch_fence if epoch is None else epoch
        return self._done(
            self._shard.write_state(
                WriteStateRequest(_KEY, leader, epoch, view.start, view.complete or 0)
            )
        )

    def delete(self) -> str:
        """See `StoreOfShares.delete`."""
        return self._done(self._shard.delete_state(_KEY))

    def snapshot_cold(self) -> None:
        """See `StoreOfShares.snapshot_cold`."""
        self._done(self._shard.snapshot_cold_partitions())

    def fail_over(self, *, pruned: bool) -> None:
        """See `StoreOfShares.fail_over`."""
        if pruned:
            self._log_start = self._shard.last_redundant_offset() or 0
        self._shard = ShareCoordinatorShard(self._updates_per_snapshot)
        for offset, record in enumerate(self._log[self._log_start :], self._log_start):
            self._shard.replay(offset, record)

    def view(self) -> ShareView:
        """See `StoreOfShares.view`."""
        state = self._shard.share_state_map.get(_KEY)
        if state is None:
            return ShareView()
        return ShareView(
            True,
            state.state_epoch,
            state.leader_epoch,
            state.start_offset,
            state.delivery_complete_count,
            _records(state),
            self._shard.leader_epoch_map[_KEY],
            self._shard.state_epoch_map[_KEY],
            self._shard.snapshot_update_count.get(_KEY, -1),
            state.snapshot_is_cold,
        )

    def _done(self, result: ShareCoordinatorResult) -> str:
        for record in result.records:
            self._shard.replay(len(self._log), record)
            self._log.append(record)
        return result.error.name


def _records(state: ShareGroupOffset) -> dict[int, tuple[str, int]]:
    return {each.offset: (str(each.state), each.delivery_count) for each in state.state_batches}


class PersisterSystem(PersisterSteps, RewindingSystem):
    """A share coordinator, its group and the leaders of its partition."""

    variables: tuple[str, ...] = VARIABLES
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        updates = constants["UpdatesPerSnapshot"]
        assert isinstance(updates, int), "a number in every model"
        super().__init__(constants, _Shard(updates))
        self._rewinder = Rewinder(self, apart=(self._actions,))

    def reset(self, initial: Mapping[str, Value]) -> None:
        """See `PersisterSteps.reset`."""
        self._rewinder.forget()
        super().reset(initial)


def create(constants: Mapping[str, Value]) -> PersisterSystem:
    """The system for a model's constants."""
    return PersisterSystem(constants)
