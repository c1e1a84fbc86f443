"""A log on its disk, whose process stops or dies; each step gives the log that goes on."""

from __future__ import annotations

from collections.abc import Callable

from conformance.systems.transaction.replica import load_replica
from conformance.systems.transaction.stepped_disk import Files, disk_with, with_those_of
from impl.clock import Clock
from impl.concurrency import Concurrency
from impl.log import Log
from impl.producer_state.producer_snapshot import SUFFIX as SNAPSHOT
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.transaction_index import SUFFIX as ABORT_INDEX


class StoredReplica:
    """One process after the other, on one directory."""

    def __init__(
        self,
        config: ProducerStateManagerConfig,
        concurrency: Concurrency,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._concurrency = concurrency
        self._clock = clock
        self._disk = disk_with({}, concurrency)
        self.log = self._load(None)

    @property
    def bases(self) -> tuple[int, ...]:
        """The base offsets of the segments."""
        segments = self.log.log_segments(0, self.log.log_end_offset + 1)
        return tuple(segment.base_offset for segment in segments)

    def stop(self, watermark: int) -> Log:
        """The process stops in order; the next one has this high watermark of its checkpoint."""
        self.log.close()
        return self._start(None, watermark)

    def kill(self, watermark: int) -> Log:
        """The process dies between two steps."""
        return self._die(self._disk.contents(), watermark)

    def kill_amid_append(self, append: Callable[[], None], watermark: int) -> Log:
        """The segment has the record; the abort index is as it was."""
        before = self._disk.contents()
        append()
        files = with_those_of(self._disk.contents(), before, _is_abort_index)
        return self._die(files, watermark)

    def kill_amid_truncation(self, target: int, end: int, watermark: int) -> Log:
        """Segments behind the target are removed, the last one is cut or not; snapshots are not."""
        before = self._disk.contents()
        removed = {f"{base:020d}" for base in self.bases if base > target}
        self.log.truncate_to(end)
        after = with_those_of(self._disk.contents(), before, _is_snapshot)
        files = {
            path: content
            for path, content in after.items()
            if _is_snapshot(path) or _offset_of(path) not in removed
        }
        return self._die(files, watermark)

    def _die(self, files: Files, watermark: int) -> Log:
        """The next process finds these files; the last segment is recovered in any case."""
        recovery_point = self.log.recovery_point
        self._disk = disk_with(files, self._concurrency)
        return self._start(recovery_point, watermark)

    def _start(self, recovery_point: int | None, watermark: int) -> Log:
        self.log = self._load(recovery_point)
        self.log.update_high_watermark(watermark)
        return self.log

    def _load(self, recovery_point: int | None) -> Log:
        return load_replica(
            self._config,
            self._clock,
            concurrency=self._concurrency,
            disk=self._disk,
            recovery_point=recovery_point,
        )


def _is_abort_index(path: str) -> bool:
    return path.endswith(ABORT_INDEX)


def _is_snapshot(path: str) -> bool:
    return path.endswith(SNAPSHOT)


def _offset_of(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
