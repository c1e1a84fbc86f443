"""Settings of consumer groups; times in ms.

Source: GroupCoordinatorConfig and the broker's `group.consumer.*` settings.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsumerGroupConfig:
    """`assignment_interval_ms`: a target is computed no sooner after the last one (KAFKA-20291).
    `regex_refresh_interval_ms`: regular expressions are resolved again after it (KAFKA-18961)."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    assignment_interval_ms: int = 1_000
    max_metadata_size: int = 4_096
    regex_refresh_interval_ms: int = 600_000
