"""How far a future log is on its way to be promoted in KRaft (ReplicaAlterLogDirsThread)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class ReassignmentState(Enum):
    """Of the request to assign the replica to the future log's directory."""

    NONE = "None"
    QUEUED = "Queued"
    """It may or may not be at the controller."""
    ACCEPTED = "Accepted"
    """The controller has written it."""
    EFFECTIVE = "Effective"
    """The future log has taken over."""


@dataclass(frozen=True, slots=True, eq=False)
class PromotionState:
    """Two of them are the same only if they are one object: each move has its own."""

    reassignment_state: ReassignmentState
    current_directory: str
    """Where the log lies that is followed."""

    @property
    def maybe_inconsistent_metadata(self) -> bool:
        """Whether the controller may take the replica for one of the other directory."""
        return self.reassignment_state in (ReassignmentState.QUEUED, ReassignmentState.ACCEPTED)

    def with_assignment(self, state: ReassignmentState) -> PromotionState:
        """The same of a request in another state."""
        return replace(self, reassignment_state=state)
