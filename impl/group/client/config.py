"""Settings of a group member, and what it takes from outside."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ...clock import Clock, SystemClock
from ...concurrency import Concurrency, NoConcurrency
from .timer import ExponentialBackoff, Timer


@dataclass(frozen=True, slots=True)
class GroupRebalanceConfig:
    """Settings with Kafka's defaults; times in ms (GroupRebalanceConfig).

    `rebalance_timeout_ms` is max.poll.interval.ms: for a consumer both are one setting.
    """

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    leave_group_on_close: bool = True
    client_id: str = "consumer"
    join_version: int = 9
    """JoinGroup's version: below 4 the first join needs no id, below 9 nobody is told to skip."""


@dataclass(frozen=True, slots=True)
class MemberRuntime:
    """Time, threads and chance for one member."""

    clock: Clock = field(default_factory=SystemClock)
    concurrency: Concurrency = field(default_factory=NoConcurrency)
    seed: int = 0
    """Seeds the jitter of back-offs."""

    def timer(self, timeout_ms: int) -> Timer:
        """A timer on this clock."""
        return Timer(self.clock, timeout_ms)

    def backoff(self, config: GroupRebalanceConfig) -> ExponentialBackoff:
        """The back-off between tries."""
        return ExponentialBackoff(
            config.retry_backoff_ms, config.retry_backoff_max_ms, random.Random(self.seed)
        )
