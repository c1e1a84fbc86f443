"""The partitions of the offsets topic that a coordinator appends to and loads from.

Source: Topic.GROUP_METADATA_TOPIC_NAME and the part of ReplicaManager that the coordinator needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..concurrency import Concurrency
from ..disk import Disk
from ..errors import Errors
from ..log import Log
from ..log_loader import load_log
from ..records import MemoryRecords, Record
from ..scheduler import Scheduler
from ..types import TopicPartition

GROUP_METADATA_TOPIC_NAME = "__consumer_offsets"
DEFAULT_NUM_PARTITIONS = 50

AppendCallback = Callable[[Errors, int], None]
"""Called once with the outcome of an append and the base offset of its batch (-1 on error)."""


class OffsetsTopic(Protocol):
    """Where groups are kept; every append is one batch, acknowledged when it is committed."""

    @property
    def num_partitions(self) -> int:
        """How many partitions the groups are spread over."""

    def become_leader(self, partition: int, leader_epoch: int, /) -> Log | None:
        """The partition's log, to be read by the new coordinator; None if it is not here."""

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[Record],
        callback: AppendCallback,
        /,
    ) -> None:
        """Append as the leader of that epoch; the callback may come at once or later."""


class LocalOffsetsTopic:
    """All partitions on one disk, each append committed at once.

    Shared by several coordinators it stands for a topic whose replicas are always in sync: an
    append in an older epoch than a later leader's fails with NOT_LEADER_OR_FOLLOWER.
    """

    def __init__(
        self,
        disk: Disk,
        scheduler: Scheduler,
        concurrency: Concurrency,
        num_partitions: int = DEFAULT_NUM_PARTITIONS,
    ) -> None:
        self._disk = disk
        self._scheduler = scheduler
        self._concurrency = concurrency
        self._num_partitions = num_partitions
        self._lock = concurrency.lock("offsets-topic")
        self._logs: dict[int, Log] = {}
        self._leader_epochs: dict[int, int] = {}

    @property
    def num_partitions(self) -> int:
        """See `OffsetsTopic.num_partitions`."""
        return self._num_partitions

    def log(self, partition: int) -> Log:
        """The partition's log, made if absent."""
        with self._lock:
            log = self._logs.get(partition)
            if log is None:
                log = self._logs[partition] = load_log(
                    TopicPartition(GROUP_METADATA_TOPIC_NAME, partition),
                    f"{GROUP_METADATA_TOPIC_NAME}-{partition}",
                    self._disk,
                    self._scheduler,
                    self._concurrency,
                )
                log.update_high_watermark(log.log_end_offset)
            return log

    def become_leader(self, partition: int, leader_epoch: int, /) -> Log | None:
        """See `OffsetsTopic.become_leader`."""
        with self._lock:
            latest = self._leader_epochs.get(partition, -1)
            self._leader_epochs[partition] = max(latest, leader_epoch)
            return self.log(partition)

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[Record],
        callback: AppendCallback,
        /,
    ) -> None:
        """See `OffsetsTopic.append`; the callback is called before this returns."""
        with self._lock:
            current = self._leader_epochs.get(partition)
            fenced = current != leader_epoch
            if not fenced:
                log = self.log(partition)
                info = log.append_as_leader(MemoryRecords.with_records(*records), leader_epoch)
                log.update_high_watermark(log.log_end_offset)
        if fenced:
            callback(Errors.NOT_LEADER_OR_FOLLOWER, -1)
        else:
            callback(Errors.NONE, info.first_offset)
