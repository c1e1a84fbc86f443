"""Settings of a group coordinator; sizes in bytes, times in ms.

Source: GroupConfig, OffsetConfig and the broker's `group.*` and `offsets.*` settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from .group_records import HIGHEST_VALUE_VERSION

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member's first JoinGroup may stay parked (GroupCoordinator)."""


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """A broker's settings of the group protocol.

    The two value versions are those that the inter-broker protocol version allows to write.
    `record_new_groups`: write a new group's metadata at once, as the coordinator of KIP-848 does.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_initial_rebalance_delay_ms: int = 3_000
    new_member_join_timeout_ms: int = NEW_MEMBER_JOIN_TIMEOUT_MS
    max_metadata_size: int = 4_096
    load_buffer_size: int = 5 * 1024 * 1024
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    group_metadata_value_version: int = HIGHEST_VALUE_VERSION
    offset_commit_value_version: int = HIGHEST_VALUE_VERSION
    record_new_groups: bool = False
