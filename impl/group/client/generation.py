"""What a member believes of its membership: its state, and its generation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..messages import UNKNOWN_GENERATION_ID, UNKNOWN_MEMBER_ID


class MemberState(Enum):
    """AbstractCoordinator.MemberState."""

    UNJOINED = "Unjoined"
    """Not part of a group."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The join is sent."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The join has succeeded, the assignment is awaited."""
    STABLE = "Stable"

    @property
    def has_not_joined_group(self) -> bool:
        """Whether there is no generation to send heartbeats for."""
        return self in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE)


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation as one member knows it; `protocol_name` is none before the join succeeds."""

    generation_id: int
    member_id: str
    protocol_name: str | None

    @property
    def has_member_id(self) -> bool:
        """Whether the coordinator has given this member an id."""
        return self.member_id != UNKNOWN_MEMBER_ID


NO_GENERATION = Generation(UNKNOWN_GENERATION_ID, UNKNOWN_MEMBER_ID, None)
