"""Settings of a consumer beyond those of its group, and the application's callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...types import TopicPartition
from .assignors.assignor import PartitionAssignor
from .consumer_protocol import SUBSCRIPTION_VERSION


def _nothing(_partitions: frozenset[TopicPartition]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class RebalanceListener:
    """The application's callbacks (ConsumerRebalanceListener); lost: revoked by others already."""

    on_partitions_assigned: Callable[[frozenset[TopicPartition]], None] = _nothing
    on_partitions_revoked: Callable[[frozenset[TopicPartition]], None] = _nothing
    on_partitions_lost: Callable[[frozenset[TopicPartition]], None] = _nothing


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Settings beyond the group's; the interval in ms (auto.commit.interval.ms)."""

    assignors: Sequence[PartitionAssignor]
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    listener: RebalanceListener = field(default_factory=RebalanceListener)
    subscription_version: int = SUBSCRIPTION_VERSION
    """Of the join's metadata; below 2 a member that joins again says the same as before."""
