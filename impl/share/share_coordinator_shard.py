"""The state of share partitions that is stored: Kafka's ShareCoordinatorShard (KIP-932), by 4.4.

An operation gives the records to append and its answer; `replay` changes the state.
It departs from 4.4.0 in two things. A request to initialise the epoch that a state has is a copy,
and changes nothing: 4.4.0 empties the state, and the branch of the release after it does so unless
the start offset is as it was (MINOR #23190). A state that begins anew keeps the leader's epoch: in
4.4.0 the record has none, so that another broker that loads it forgets who was fenced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..errors import Errors
from .persister_state_batch_combiner import combine_state_batches
from .share_partition import PersisterStateBatch

UNINITIALIZED_START_OFFSET = -1
UNINITIALIZED_DELIVERY_COMPLETE_COUNT = -1
_UNINITIALIZED_EPOCH = 0


@dataclass(frozen=True, slots=True)
class ShareGroupOffset:
    """What is stored of one share partition."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[PersisterStateBatch, ...] = ()
    snapshot_is_cold: bool = False
    """Kafka: the time of the snapshot is not that of its write."""


@dataclass(frozen=True, slots=True)
class ShareSnapshot:
    """A record with all of the state; without a value it deletes the state."""

    key: str
    value: ShareGroupOffset | None


@dataclass(frozen=True, slots=True)
class ShareUpdate:
    """A record with what is new. It has no state epoch."""

    key: str
    value: ShareGroupOffset


ShareRecord = ShareSnapshot | ShareUpdate


@dataclass(frozen=True, slots=True)
class WriteStateRequest:
    """WriteShareGroupState of one partition."""

    key: str
    leader_epoch: int
    state_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[PersisterStateBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareCoordinatorResult:
    """The records to append, and the answer; `state` is that of a read."""

    records: Sequence[ShareRecord] = ()
    error: Errors = Errors.NONE
    state: ShareGroupOffset | None = None


@dataclass(slots=True)
class ShareCoordinatorShard:
    """Share partitions by their key."""

    update_records_per_snapshot: int
    """share.coordinator.snapshot.update.records.per.snapshot."""
    share_state_map: dict[str, ShareGroupOffset] = field(default_factory=dict)
    leader_epoch_map: dict[str, int] = field(default_factory=dict)
    state_epoch_map: dict[str, int] = field(default_factory=dict)
    snapshot_update_count: dict[str, int] = field(default_factory=dict)
    _snapshot_offsets: dict[str, int] = field(default_factory=dict)

    # ---- requests --------------------------------------------------------------------------

    def initialize_state(
        self, key: str, state_epoch: int, start_offset: int
    ) -> ShareCoordinatorResult:
        """The state begins, or begins anew."""
        if state_epoch < 0:
            return ShareCoordinatorResult(error=Errors.INVALID_REQUEST)
        known = self.state_epoch_map.get(key)
        if known is not None and known > state_epoch:
            return ShareCoordinatorResult(error=Errors.FENCED_STATE_EPOCH)
        if key in self.share_state_map and known == state_epoch:
            return ShareCoordinatorResult()
        is_known = start_offset != UNINITIALIZED_START_OFFSET
        complete = 0 if is_known else UNINITIALIZED_DELIVERY_COMPLETE_COUNT
        leader_epoch = self.leader_epoch_map.get(key, _UNINITIALIZED_EPOCH)
        anew = ShareGroupOffset(state_epoch, leader_epoch, start_offset, complete)
        return ShareCoordinatorResult((ShareSnapshot(key, anew),))

    def read_state_and_maybe_update_leader_epoch(
        self, key: str, leader_epoch: int
    ) -> ShareCoordinatorResult:
        """The state for a leader; the writes of those before are fenced from now on."""
        if leader_epoch < 0 or key not in self.share_state_map:
            return ShareCoordinatorResult(error=Errors.INVALID_REQUEST)
        if self._is_fenced(key, leader_epoch):
            return ShareCoordinatorResult(error=Errors.FENCED_LEADER_EPOCH)
        state = self.share_state_map[key]
        if self.leader_epoch_map[key] == leader_epoch:
            return ShareCoordinatorResult(state=state)
        record = self._generate_share_state_record(key, replace(state, leader_epoch=leader_epoch))
        return ShareCoordinatorResult((record,), state=state)

    def write_state(self, request: WriteStateRequest) -> ShareCoordinatorResult:
        """What a leader has to store. Epochs stay as they are, and nothing goes back."""
        key = request.key
        if request.leader_epoch < 0 or request.state_epoch < 0:
            return ShareCoordinatorResult(error=Errors.INVALID_REQUEST)
        if key not in self.share_state_map:
            return ShareCoordinatorResult(error=Errors.INVALID_REQUEST)
        if self._is_fenced(key, request.leader_epoch):
            return ShareCoordinatorResult(error=Errors.FENCED_LEADER_EPOCH)
        if self.state_epoch_map[key] > request.state_epoch:
            return ShareCoordinatorResult(error=Errors.FENCED_STATE_EPOCH)
        state = self.share_state_map[key]
        written = replace(
            state,
            start_offset=max(request.start_offset, state.start_offset),
            delivery_complete_count=_complete(request, state),
        )
        record = self._generate_share_state_record(key, written, request.state_batches)
        return ShareCoordinatorResult((record,))

    def delete_state(self, key: str) -> ShareCoordinatorResult:
        """Nothing is left of the state."""
        if key not in self.share_state_map:
            return ShareCoordinatorResult()
        return ShareCoordinatorResult((ShareSnapshot(key, None),))

    def snapshot_cold_partitions(self) -> ShareCoordinatorResult:
        """Snapshots of what had none for long, unless all of it has one of these already."""
        if all(state.snapshot_is_cold for state in self.share_state_map.values()):
            return ShareCoordinatorResult()
        return ShareCoordinatorResult(
            tuple(
                ShareSnapshot(key, replace(state, snapshot_is_cold=True))
                for key, state in self.share_state_map.items()
            )
        )

    def _is_fenced(self, key: str, leader_epoch: int) -> bool:
        return self.leader_epoch_map.get(key, leader_epoch) > leader_epoch

    def _generate_share_state_record(
        self,
        key: str,
        state: ShareGroupOffset,
        batches: Sequence[PersisterStateBatch] = (),
    ) -> ShareRecord:
        """An update with these batches, or a snapshot if there were many updates."""
        start = state.start_offset
        if self.snapshot_update_count.get(key, 0) < self.update_records_per_snapshot:
            new = combine_state_batches((), batches, start)
            return ShareUpdate(key, replace(state, state_batches=new))
        every = combine_state_batches(state.state_batches, batches, start)
        return ShareSnapshot(key, replace(state, state_batches=every, snapshot_is_cold=False))

    # ---- the log ---------------------------------------------------------------------------

    def replay(self, offset: int, record: ShareRecord) -> None:
        """What a record says becomes the state, when it is written and when it is loaded."""
        if isinstance(record, ShareUpdate):
            self._handle_share_update(record)
        else:
            self._handle_share_snapshot(offset, record)

    def _handle_share_snapshot(self, offset: int, record: ShareSnapshot) -> None:
        key, value = record.key, record.value
        if value is None:
            for states in (self.share_state_map, self._snapshot_offsets):
                states.pop(key, None)
            for numbers in (
                self.leader_epoch_map,
                self.state_epoch_map,
                self.snapshot_update_count,
            ):
                numbers.pop(key, None)
            return
        self._maybe_update(self.leader_epoch_map, key, value.leader_epoch)
        self._maybe_update(self.state_epoch_map, key, value.state_epoch)
        self.share_state_map[key] = value
        if self.snapshot_update_count.get(key, -1) >= self.update_records_per_snapshot:
            self.snapshot_update_count[key] = 0
        self._snapshot_offsets[key] = offset

    def _handle_share_update(self, record: ShareUpdate) -> None:
        key, value = record.key, record.value
        self._maybe_update(self.leader_epoch_map, key, value.leader_epoch)
        known = self.share_state_map.get(key, value)
        every = combine_state_batches(known.state_batches, value.state_batches, value.start_offset)
        self.share_state_map[key] = replace(
            known,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            state_batches=every,
        )
        self.snapshot_update_count[key] = self.snapshot_update_count.get(key, 0) + 1

    @staticmethod
    def _maybe_update(epochs: dict[str, int], key: str, epoch: int) -> None:
        epochs[key] = max(epochs.get(key, epoch), epoch)

    def last_redundant_offset(self) -> int | None:
        """No load needs what lies before this offset: ShareCoordinatorOffsetsManager."""
        return min(self._snapshot_offsets.values(), default=None)


def _complete(request: WriteStateRequest, state: ShareGroupOffset) -> int:
    if request.start_offset > state.start_offset:
        return request.delivery_complete_count
    if request.start_offset < state.start_offset:
        return state.delivery_complete_count
    return max(request.delivery_complete_count, state.delivery_complete_count)
