"""All groups of one coordinator: which it owns, how they are stored, loaded and dropped.

Source: kafka.coordinator.group.GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from ..clock import Clock
from ..concurrency import Concurrency
from ..errors import Errors, IllegalStateException
from ..records import Record
from ..scheduler import Scheduler
from ..types import NO_TIMESTAMP, TopicPartition
from .config import GroupConfig
from .group_loader import group_of, read_groups
from .group_metadata import DEAD, EMPTY, GroupMetadata
from .group_records import (
    GroupMember,
    GroupMetadataValue,
    group_metadata_key,
    group_metadata_value,
    offset_commit_key,
)
from .offsets_topic import AppendCallback, OffsetsTopic

StoreCallback = Callable[[Errors], None]
GroupHook = Callable[[GroupMetadata], None]


@lru_cache(maxsize=65536)
def partition_for(group_id: str, num_partitions: int) -> int:
    """The offsets partition of a group: Java's hash of the id, without its sign."""
    encoded = group_id.encode("utf-16-be")
    code = 0
    for index in range(0, len(encoded), 2):
        code = (31 * code + (encoded[index] << 8 | encoded[index + 1])) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return (0 if signed == -(1 << 31) else abs(signed)) % num_partitions


def group_store_error(error: Errors) -> Errors:
    """What a member learns when its group could not be written."""
    if error in (
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
    ):
        return Errors.COORDINATOR_NOT_AVAILABLE
    if error in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.KAFKA_STORAGE_ERROR):
        return Errors.NOT_COORDINATOR
    if error in (
        Errors.MESSAGE_TOO_LARGE,
        Errors.RECORD_LIST_TOO_LARGE,
        Errors.INVALID_FETCH_SIZE,
    ):
        return Errors.UNKNOWN_SERVER_ERROR
    return error


class GroupMetadataManager:
    """The cache of groups and its copy in the offsets topic.

    Its lock guards ownership and the cache; it is never held while a group's lock is taken.
    """

    def __init__(
        self,
        topic: OffsetsTopic,
        config: GroupConfig,
        clock: Clock,
        concurrency: Concurrency,
        scheduler: Scheduler,
    ) -> None:
        self._topic = topic
        self._config = config
        self._clock = clock
        self._concurrency = concurrency
        self._scheduler = scheduler
        self._lock = concurrency.lock("group-metadata-manager")
        self._groups: dict[str, GroupMetadata] = {}
        self._epochs: dict[int, int] = {}
        self._owned: dict[int, int] = {}
        self._loading: set[int] = set()

    # -- ownership

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic that keeps the group."""
        return partition_for(group_id, self._topic.num_partitions)

    def is_group_local(self, group_id: str) -> bool:
        """Whether this broker coordinates the group."""
        return self.partition_for(group_id) in self._owned

    def is_group_loading(self, group_id: str) -> bool:
        """Whether the group's partition is being read."""
        return self.partition_for(group_id) in self._loading

    def coordinator_epoch(self, partition: int) -> int | None:
        """The newest epoch heard of for a partition."""
        return self._epochs.get(partition)

    def _maybe_update_coordinator_epoch(self, partition: int, epoch: int | None) -> bool:
        """Whether a decision of this epoch is not outdated; without an epoch it never is."""
        current = self._epochs.get(partition)
        if epoch is not None and (current is None or epoch > current):
            self._epochs[partition] = current = epoch
        return epoch is None or epoch == current

    # -- the cache

    def get_group(self, group_id: str) -> GroupMetadata | None:
        """The group, if it is in the cache."""
        return self._groups.get(group_id)

    def current_groups(self) -> tuple[GroupMetadata, ...]:
        """All groups in the cache."""
        with self._lock:
            return tuple(self._groups.values())

    def get_or_maybe_create_group(self, group_id: str, create: bool) -> GroupMetadata | None:
        """The group; made, Empty, if it is absent and `create`."""
        with self._lock:
            group = self._groups.get(group_id)
            if group is None and create:
                lock = self._concurrency.lock(f"group-{group_id}")
                group = self._groups[group_id] = GroupMetadata(group_id, EMPTY, self._clock, lock)
            return group

    def group_not_exists(self, group_id: str) -> bool:
        """Whether the group is this broker's and there is none, or a dead one."""
        group = self.get_group(group_id)
        return self.is_group_local(group_id) and (group is None or group.is_in(DEAD))

    def remove_group(self, group: GroupMetadata) -> bool:
        """Drop exactly this group from the cache. True iff it was there."""
        with self._lock:
            if self._groups.get(group.group_id) is not group:
                return False
            del self._groups[group.group_id]
            return True

    # -- writing

    def append(self, group_id: str, records: Sequence[Record], callback: AppendCallback) -> None:
        """Append to the group's partition; without ownership NOT_LEADER_OR_FOLLOWER."""
        self.append_to(self.partition_for(group_id), records, callback)

    def append_to(
        self, partition: int, records: Sequence[Record], callback: AppendCallback
    ) -> None:
        """Append to a partition of the offsets topic; without ownership as `append`."""
        epoch = self._owned.get(partition)
        if epoch is None:
            callback(Errors.NOT_LEADER_OR_FOLLOWER, -1)
        else:
            self._topic.append(partition, epoch, records, callback)

    def store_group(
        self, group: GroupMetadata, assignment: Mapping[str, bytes], callback: StoreCallback
    ) -> None:
        """Write the group with the given assignment, whatever the members hold in memory."""
        value = group_metadata_value(
            _value_of(group, assignment), self._config.group_metadata_value_version
        )
        key = group_metadata_key(group.group_id)
        record = Record(value, key, self._clock.milliseconds())
        self.append(group.group_id, (record,), lambda error, _: callback(group_store_error(error)))

    def cleanup_group_metadata(
        self,
        groups: Iterable[GroupMetadata],
        select: Callable[[GroupMetadata], list[TopicPartition]],
    ) -> int:
        """Remove the positions that `select` has taken from each group; return how many.

        An Empty group without positions becomes Dead; a Dead one leaves the cache and the log.
        """
        count = 0
        for group in groups:
            with group.lock:
                removed = select(group)
                if group.is_in(EMPTY) and not group.offsets.has_offsets():
                    group.transition_to(DEAD)
                tombstones = [offset_commit_key(group.group_id, tp) for tp in removed]
                if group.is_in(DEAD) and self.remove_group(group) and group.generation_id > 0:
                    tombstones.append(group_metadata_key(group.group_id))
            count += len(removed)
            if tombstones:
                now = self._clock.milliseconds()
                records = [Record(None, key, now) for key in tombstones]
                # A tombstone that is not written is written by the next clean-up after a load.
                self.append(group.group_id, records, lambda _error, _offset: None)
        return count

    # -- loading and unloading

    def schedule_load_group_and_offsets(
        self, partition: int, epoch: int, on_group_loaded: GroupHook
    ) -> None:
        """Read the partition's groups in the background and own it from then on."""
        with self._lock:
            if not self._maybe_update_coordinator_epoch(partition, epoch):
                return
            if partition in self._owned:
                self._owned[partition] = epoch
                self._topic.become_leader(partition, epoch)
                return
            if partition in self._loading:
                return
            self._loading.add(partition)
        self._scheduler.schedule_once(
            f"load-groups-{partition}", lambda: self._load(partition, epoch, on_group_loaded)
        )

    def _load(self, partition: int, epoch: int, on_group_loaded: GroupHook) -> None:
        """Own the partition once it is read; if that fails it is not owned, and the error shows."""
        try:
            groups = self._read(partition, epoch)
            with self._lock:
                if self._epochs.get(partition) != epoch or partition not in self._loading:
                    return  # resigned meanwhile
                self._groups.update({group.group_id: group for group in groups})
                self._owned[partition] = epoch
            for group in groups:
                on_group_loaded(group)
        finally:
            with self._lock:
                self._loading.discard(partition)

    def _read(self, partition: int, epoch: int) -> list[GroupMetadata]:
        log = self._topic.become_leader(partition, epoch)
        if log is None:
            return []
        self._concurrency.checkpoint(f"load-groups-{partition}")
        loaded = read_groups(log, self._config.load_buffer_size)
        groups = []
        for group_id in loaded.group_ids():
            lock = self._concurrency.lock(f"group-{group_id}")
            group = group_of(group_id, loaded.groups.get(group_id), self._clock, lock)
            group.offsets.initialize(
                loaded.offsets.get(group_id, {}), loaded.pending.get(group_id, {})
            )
            groups.append(group)
        return groups

    def remove_groups_for_partition(
        self, partition: int, epoch: int | None, on_group_unloaded: GroupHook
    ) -> None:
        """Stop owning the partition; without an epoch (the partition is deleted) in any case."""
        with self._lock:
            if not self._maybe_update_coordinator_epoch(partition, epoch):
                return
            self._owned.pop(partition, None)
            self._loading.discard(partition)
            unloaded = [id for id in self._groups if self.partition_for(id) == partition]
            groups = [self._groups.pop(group_id) for group_id in unloaded]
        for group in groups:
            on_group_unloaded(group)


def _value_of(group: GroupMetadata, assignment: Mapping[str, bytes]) -> GroupMetadataValue:
    protocol = group.protocol_name
    if protocol is None and group.members:
        raise IllegalStateException(f"group {group.group_id} has members and no protocol")
    timestamp = group.current_state_timestamp
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=protocol,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP if timestamp is None else timestamp,
        members=tuple(
            GroupMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(protocol),
                assignment[member.member_id],
            )
            for member in group.members.values()
            if protocol is not None
        ),
    )
