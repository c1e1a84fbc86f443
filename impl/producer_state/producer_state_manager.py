"""All producers that a partition knows, and their snapshots on disk (ProducerStateManager).

The state is a function of the log: it is rebuilt from the newest snapshot and the log behind it.
A log without producers has no snapshots, unlike Kafka's: there is nothing to read back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..clock import Clock
from ..disk import Disk
from ..errors import CorruptRecordException, IllegalArgumentException
from ..records import RecordBatch
from ..types import TopicPartition
from .producer_append_info import AppendOrigin, ProducerAppendInfo
from .producer_snapshot import read_snapshot, snapshot_offsets, snapshot_path, write_snapshot
from .producer_state_entry import NUM_BATCHES_TO_RETAIN, ProducerStateEntry


@dataclass(frozen=True, slots=True)
class ProducerStateManagerConfig:
    """A broker's settings: `expiration_ms` is producer.id.expiration.ms."""

    expiration_ms: int = 86_400_000
    batches_to_retain: int = NUM_BATCHES_TO_RETAIN


class ProducerStateManager:
    """The producers of one log. Its owner holds the log's lock."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        disk: Disk,
        clock: Clock,
        config: ProducerStateManagerConfig,
    ) -> None:
        self.topic_partition = topic_partition
        self._directory = directory
        self._disk = disk
        self._clock = clock
        self._config = config
        self._producers: dict[int, ProducerStateEntry] = {}
        self._snapshots = snapshot_offsets(disk, directory)
        self._last_map_offset = 0
        self._last_snap_offset = 0
        self._has_known = bool(self._snapshots)

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        """The entries by producer id."""
        return self._producers

    @property
    def map_end_offset(self) -> int:
        """Up to where the log is in the entries."""
        return self._last_map_offset

    @property
    def snapshots(self) -> tuple[int, ...]:
        """The offsets of the snapshots on disk, in order."""
        return tuple(self._snapshots)

    def snapshot(self, offset: int) -> list[ProducerStateEntry]:
        """What the snapshot at an offset holds. Raises `CorruptRecordException`."""
        return read_snapshot(self._disk, snapshot_path(self._directory, offset))

    # ---- appends ---------------------------------------------------------------------------

    def find_duplicate(self, batch: RecordBatch) -> tuple[int, int] | None:
        """First and last offset of the batch that `batch` repeats, if that is remembered."""
        entry = self._producers.get(batch.producer.producer_id)
        known = None if entry is None else entry.find_duplicate_batch(batch)
        return None if known is None else (known.first_offset, known.last_offset)

    def prepare(
        self, batches: Iterable[RecordBatch], origin: AppendOrigin
    ) -> tuple[ProducerStateEntry, ...]:
        """The entries as `batches` would change them; raises as `ProducerAppendInfo.append`."""
        infos: dict[int, ProducerAppendInfo] = {}
        for batch in batches:
            producer_id = batch.producer.producer_id
            if producer_id < 0:
                continue
            if producer_id not in infos:
                infos[producer_id] = self._prepare_update(producer_id, origin)
            infos[producer_id].append(batch)
        return tuple(info.updated_entry for info in infos.values())

    def _prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        entry = self._producers.get(producer_id) or ProducerStateEntry(producer_id)
        retained = self._config.batches_to_retain
        return ProducerAppendInfo(self.topic_partition, entry, origin, retained)

    def update(self, entries: Iterable[ProducerStateEntry], end_offset: int) -> None:
        """The log has the batches of `prepare`, and ends at `end_offset`."""
        for entry in entries:
            self._producers[entry.producer_id] = entry
            self._has_known = True
        self._last_map_offset = end_offset

    def remove_expired_producers(self) -> None:
        """Forget who has not written for longer than producer.id.expiration.ms."""
        self._producers = {
            producer_id: entry
            for producer_id, entry in self._producers.items()
            if not self._is_expired(entry)
        }

    def _is_expired(self, entry: ProducerStateEntry) -> bool:
        return self._clock.milliseconds() - entry.last_timestamp >= self._config.expiration_ms

    # ---- snapshots -------------------------------------------------------------------------

    def take_snapshot(self) -> None:
        """Write a snapshot of the entries as they are, unless there is one of this offset."""
        if self._last_map_offset > self._last_snap_offset and self._has_known:
            path = snapshot_path(self._directory, self._last_map_offset)
            write_snapshot(self._disk, path, self._producers.values())
            self._snapshots.append(self._last_map_offset)
            self._last_snap_offset = self._last_map_offset

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """Keep the newest snapshot, and those at which a segment begins."""
        for offset in self._snapshots[:-1]:
            if offset not in segment_base_offsets:
                self._remove(offset)

    def remove_snapshots_before(self, offset: int) -> None:
        """The segments before `offset` are deleted, and their snapshots with them."""
        for snapshot in [known for known in self._snapshots if known < offset]:
            self._remove(snapshot)

    def _remove(self, offset: int) -> None:
        self._disk.remove(snapshot_path(self._directory, offset))
        self._snapshots.remove(offset)

    # ---- truncation and loading ------------------------------------------------------------

    def rebuild(
        self, batches: Iterable[RecordBatch], log_start_offset: int, end_offset: int
    ) -> None:
        """The state of the log up to `end_offset` (UnifiedLog.rebuildProducerState)."""
        was_empty = not self._producers and self._last_map_offset >= end_offset
        self._truncate_and_reload(log_start_offset, end_offset)
        if end_offset > self._last_map_offset and not was_empty:
            self.replay(
                batch
                for batch in batches
                if batch.base_offset >= self._last_map_offset and batch.next_offset <= end_offset
            )
        self._last_map_offset = end_offset
        self.take_snapshot()

    def replay(self, batches: Iterable[RecordBatch]) -> None:
        """Batches that the log has already."""
        for batch in batches:
            self.update(self.prepare((batch,), AppendOrigin.REPLICATION), batch.next_offset)

    def _truncate_and_reload(self, log_start_offset: int, end_offset: int) -> None:
        for offset in list(self._snapshots):
            if offset > end_offset or offset <= log_start_offset:
                self._remove(offset)
        if end_offset != self._last_map_offset:
            self._producers = {}
            self._load_from_snapshot(log_start_offset)

    def _load_from_snapshot(self, log_start_offset: int) -> None:
        while self._snapshots:
            newest = self._snapshots[-1]
            try:
                entries = self.snapshot(newest)
            except CorruptRecordException:
                self._remove(newest)
                continue
            self._producers = {e.producer_id: e for e in entries if not self._is_expired(e)}
            self._last_snap_offset = self._last_map_offset = newest
            return
        self._has_known = False
        self._last_snap_offset = self._last_map_offset = log_start_offset

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """The log is empty and begins at `offset`."""
        if offset < 0:
            raise IllegalArgumentException(f"no log begins at {offset}")
        self._producers = {}
        for snapshot in list(self._snapshots):
            self._remove(snapshot)
        self._has_known = False
        self._last_snap_offset = 0
        self._last_map_offset = offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Entries stay, whatever of their batches is deleted (since Kafka 2.4)."""
        self._last_map_offset = max(self._last_map_offset, log_start_offset)
        self._last_snap_offset = self._snapshots[-1] if self._snapshots else log_start_offset

    def move_to(self, directory: str) -> None:
        """Follow the renaming of the log's directory."""
        self._directory = directory
