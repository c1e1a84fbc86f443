"""What the client knows of partitions and their leaders (Metadata)."""

from __future__ import annotations

from collections.abc import Mapping

from ..group.client.subscription_state import LeaderAndEpoch
from ..types import TopicPartition


class ConsumerMetadata:
    """Leaders with their epochs. An answer of an older epoch than was seen is left out.

    `update_requested` asks the client's network to fetch metadata; `update` is the answer.
    """

    def __init__(self) -> None:
        self.update_version = 0
        self.update_requested = True
        self._leaders: dict[TopicPartition, LeaderAndEpoch] = {}
        self._last_seen_leader_epochs: dict[TopicPartition, int] = {}

    def request_update(self) -> None:
        """What is known is out of date."""
        self.update_requested = True

    def update(self, leaders: Mapping[TopicPartition, LeaderAndEpoch]) -> None:
        """Take an answer over: partitions that it lacks, or of an older epoch, stay."""
        self.update_requested = False
        self.update_version += 1
        for partition, leader in leaders.items():
            seen = self._last_seen_leader_epochs.get(partition)
            if leader.epoch is None or seen is None or leader.epoch >= seen:
                self._leaders[partition] = leader
                if leader.epoch is not None:
                    self._last_seen_leader_epochs[partition] = leader.epoch

    def last_seen_leader_epoch(self, partition: TopicPartition) -> int | None:
        """The greatest that any answer had."""
        return self._last_seen_leader_epochs.get(partition)

    def cached_leader_epoch(self, partition: TopicPartition) -> int | None:
        """That of the last answer that was taken over."""
        leader = self._leaders.get(partition)
        return None if leader is None else leader.epoch

    def update_last_seen_epoch_if_newer(self, partition: TopicPartition, epoch: int) -> None:
        """Another answer knows of a newer leader: until metadata has it, none is known."""
        seen = self._last_seen_leader_epochs.get(partition)
        if seen is not None and epoch > seen:
            self._last_seen_leader_epochs[partition] = epoch
            self.update_requested = True

    def current_leader(self, partition: TopicPartition) -> LeaderAndEpoch:
        """The leader of the newest epoch seen; without one if metadata has only an older one."""
        seen = self._last_seen_leader_epochs.get(partition)
        known = self._leaders.get(partition)
        if known is None or known.epoch != seen:
            return LeaderAndEpoch(None, seen)
        return known
