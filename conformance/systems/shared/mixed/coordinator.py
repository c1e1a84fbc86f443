"""The coordinator of a group that changes its protocol: what it is asked, what is seen in it.

It counts its epochs as it likes; MixedGroupSystem counts them as the specification does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from conformance.systems.shared.mixed.client import NO_ERROR
from conformance.systems.shared.mixed.settings import Partitions

_NOTHING: Partitions = frozenset()


class MixedMember(NamedTuple):
    """A member as the coordinator has it; `state` by the specification's names.

    `described`: what its description shows as its assignment; None if it shows none. Behind a port
    nothing but that, `epoch` and `target` is seen.
    """

    state: str = "None"
    epoch: int = 0
    assigned: Partitions = _NOTHING
    revoking: Partitions = _NOTHING
    target: Partitions = _NOTHING
    described: Partitions | None = _NOTHING


class MixedView(NamedTuple):
    """The group as the coordinator has it; the members by name, who is there.

    `epoch`: None where it is not seen.
    """

    type: str
    phase: str
    epoch: int | None
    assignment_epoch: int
    members: Mapping[str, MixedMember]
    parked: frozenset[str]


class HeartbeatOf848(NamedTuple):
    """A request of KIP-848; `reads`: of one that joins."""

    epoch: int
    reads: frozenset[str]
    owned: Partitions


class MixedAnswer(NamedTuple):
    """An answer to any request: an epoch or a generation, partitions if it has any."""

    error: str = NO_ERROR
    epoch: int = 0
    partitions: Partitions | None = None


class MixedCoordinator(Protocol):
    """One coordinator with one group. It keeps the member ids that it has given, by name."""

    def begin_group(self) -> None:
        """An empty log, and a coordinator that has loaded it."""

    def heartbeat_of_848(self, name: str, sent: HeartbeatOf848) -> MixedAnswer:
        """ConsumerGroupHeartbeat; the member's id is its name."""

    def join_group(self, name: str, owned: Partitions) -> MixedAnswer | None:
        """JoinGroup under the id that was given, or none; None: the answer waits for others."""

    def forget(self, name: str) -> None:
        """Who joins next under this name knows no member id."""

    def joins_answered(self) -> Mapping[str, MixedAnswer]:
        """Answers to joins that waited, since this was last asked, by name."""

    def sync_group(
        self, name: str, generation: int, given: Mapping[str, Partitions]
    ) -> MixedAnswer:
        """SyncGroup; `given`: what the leader assigns, by name."""

    def heartbeat(self, name: str, generation: int) -> MixedAnswer:
        """The classic protocol's."""

    def leave_group(self, name: str) -> MixedAnswer:
        """LeaveGroup."""

    def expire(self, name: str) -> None:
        """The member's session runs out. ActionRefused if nothing waits for it."""

    def end_initial_delay(self) -> None:
        """The first members of a new classic group have joined."""

    def view(self) -> MixedView:
        """The group now."""


class ChoosingMixedCoordinator(MixedCoordinator, Protocol):
    """One whose assignor gives what it is told."""

    def choose(self, target: Mapping[str, Partitions] | None) -> None:
        """What the assignor is to give, by member id; None: what it would give."""
