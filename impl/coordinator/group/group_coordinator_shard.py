"""The shard of the group coordinator: what a record says goes to the part that keeps it.

Source: GroupCoordinatorShard.
"""

from __future__ import annotations

from ...errors import ApiException, Errors
from ...group.group_offsets import OffsetAndMetadata
from ...group.group_records import OffsetKey, read_message_key, read_offset_commit_value
from ..coordinator_shard import CoordinatorRecord, CoordinatorResult
from .consumer_group_manager import ConsumerGroupManager
from .offset_metadata_manager import OffsetMetadataManager
from .records import read_key, read_value


class GroupCoordinatorShard:
    """Consumer groups and their offsets; `CoordinatorShard` for the runtime."""

    def __init__(self, groups: ConsumerGroupManager, offsets: OffsetMetadataManager) -> None:
        self.groups = groups
        self.offsets = offsets

    def replay(
        self, offset: int, producer_id: int, _producer_epoch: int, record: CoordinatorRecord
    ) -> None:
        """See `CoordinatorShard.replay`. Records of unknown types are skipped."""
        key = read_key(record.key)
        if key is not None:
            value = None if record.value is None else read_value(key, record.value)
            self.groups.replay(key, value)
            return
        of_offsets = read_message_key(record.key)
        if isinstance(of_offsets, OffsetKey):
            self.offsets.replay(offset, producer_id, of_offsets, _offset_value(record.value))

    def replay_end_transaction_marker(
        self, producer_id: int, _producer_epoch: int, *, is_commit: bool
    ) -> None:
        """See `CoordinatorShard.replay_end_transaction_marker`: transactions have offsets only."""
        self.offsets.replay_end_transaction_marker(producer_id, is_commit=is_commit)

    def delete_group(self, group_id: str) -> CoordinatorResult:
        """The group's offsets go first. The response is an error: NONE, GROUP_ID_NOT_FOUND or
        NON_EMPTY_GROUP, of which the caller hears when what it rests on is committed."""
        try:
            group = self.groups.delete_group(group_id)
        except ApiException as error:
            return CoordinatorResult((), Errors.for_exception(error))
        offsets = self.offsets.tombstones_of(group_id)
        return CoordinatorResult((*offsets, *group), Errors.NONE)

    def on_loaded(self) -> None:
        """See `CoordinatorShard.on_loaded`."""
        self.groups.on_loaded()

    def on_unloaded(self) -> None:
        """See `CoordinatorShard.on_unloaded`."""
        self.groups.on_unloaded()


def _offset_value(data: bytes | None) -> OffsetAndMetadata | None:
    return None if data is None else read_offset_commit_value(data)
