"""One broker's replica: a log on a disk of its own, which may be stopped, killed and loaded."""

from __future__ import annotations

from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.disk import MemoryDisk, everything
from impl.log import Log
from impl.log_loader import load_log
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.records import MemoryRecords, RecordBatch
from impl.scheduler import ImmediateScheduler
from impl.types import LogOffsetMetadata, TopicPartition

_TOPIC_PARTITION = TopicPartition("t", 0)


class ProducerReplica:
    """The partition on one broker."""

    def __init__(self, window: int, concurrency: Concurrency) -> None:
        self._concurrency = concurrency
        self._disk = MemoryDisk()
        self._clock = MockClock()
        self._config = ProducerStateManagerConfig(batches_to_retain=window)
        self.log = self._load(clean=True)

    def _load(self, *, clean: bool) -> Log:
        return load_log(
            _TOPIC_PARTITION,
            "log",
            self._disk,
            ImmediateScheduler(),
            self._concurrency,
            had_clean_shutdown=clean,
            clock=self._clock,
            producers=self._config,
        )

    def restart(self, *, clean: bool) -> None:
        """The process stops in order or is killed; its successor loads the log.

        The watermark comes from the broker's checkpoint, which is not on this disk.
        """
        watermark = self.log.high_watermark
        if clean:
            self.log.close()
        else:
            self._disk.crash(everything)
        self.log = self._load(clean=clean)
        self.log.update_high_watermark(watermark)

    def expire(self) -> None:
        """The producer is silent for as long as a broker remembers it."""
        self._clock.sleep(self._config.expiration_ms)
        self.log.remove_expired_producers()

    def common_end(self, leader: ProducerReplica) -> int:
        """Up to where the two logs are the same."""
        end = 0
        for own, led in zip(self.log.batches(), leader.log.batches(), strict=False):
            if own != led:
                break
            end = own.next_offset
        return end

    def fetch_from(self, leader: ProducerReplica) -> None:
        """Append the leader's next batch, if there is one; both watermarks follow."""
        end = self.log.log_end_offset
        following = _batch_at(leader.log, end)
        if following is not None:
            self.log.append_as_follower(MemoryRecords((following,)))
        known = leader.log.high_watermark
        self.advance_watermark(min(self.log.log_end_offset, known))
        leader.advance_watermark(self.log.log_end_offset)

    def advance_watermark(self, offset: int) -> None:
        """The watermark rises to `offset`, or stays."""
        self.log.maybe_increment_high_watermark(LogOffsetMetadata(offset))


def _batch_at(log: Log, offset: int) -> RecordBatch | None:
    return next((batch for batch in log.batches() if batch.base_offset == offset), None)
