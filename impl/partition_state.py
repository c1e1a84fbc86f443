"""The ISR of a partition: what is committed, and the one change that the controller still decides.

Source: PartitionState, CommittedPartitionState, PendingExpandIsr, PendingShrinkIsr in Partition
(KIP-497), and AlterPartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .errors import Errors
from .types import TopicPartition


@dataclass(frozen=True, slots=True)
class LeaderAndIsrPartitionState:
    """The controller's decision on one partition (LeaderAndIsr request)."""

    topic_partition: TopicPartition
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    topic_id: str | None = None
    controller_epoch: int = 0
    is_new: bool = False
    directory: str | None = None
    """Where this broker's replica lies by the metadata (KIP-858); None if the delta does not say
    it."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """An ISR with the broker epochs of its members (KIP-903), proposed or decided."""

    leader: int
    leader_epoch: int
    isr_with_broker_epoch: tuple[tuple[int, int], ...]
    partition_epoch: int

    @property
    def isr(self) -> frozenset[int]:
        """Broker ids of the members."""
        return frozenset(broker_id for broker_id, _ in self.isr_with_broker_epoch)


class AlterPartitionListener(Protocol):
    """Counts what became of proposed ISR changes (Partition.scala)."""

    def mark_isr_expand(self) -> None:
        """A follower has joined."""

    def mark_isr_shrink(self) -> None:
        """Followers have been dropped."""

    def mark_failed(self) -> None:
        """The controller refused, or answered what is out of date."""


class _NobodyCounts:
    def mark_isr_expand(self) -> None:
        pass

    def mark_isr_shrink(self) -> None:
        pass

    def mark_failed(self) -> None:
        pass


NOBODY_COUNTS: AlterPartitionListener = _NobodyCounts()


@dataclass(frozen=True, slots=True)
class CommittedPartitionState:
    """No change is in flight."""

    isr: frozenset[int]

    @property
    def maximal_isr(self) -> frozenset[int]:
        """Who may be in the ISR now."""
        return self.isr

    @property
    def is_inflight(self) -> bool:
        """Whether the controller still has to answer."""
        return False


@dataclass(frozen=True, slots=True)
class PendingExpandIsr:
    """A follower may already be a member: the high watermark waits for it."""

    new_in_sync_replica_id: int
    sent_leader_and_isr: LeaderAndIsr
    last_committed_state: CommittedPartitionState
    maximal_isr: frozenset[int]

    def notify_listener(self, listener: AlterPartitionListener) -> None:
        """The change was made."""
        listener.mark_isr_expand()

    @property
    def isr(self) -> frozenset[int]:
        """The effective ISR: what is committed."""
        return self.last_committed_state.isr

    @property
    def is_inflight(self) -> bool:
        """Whether the controller still has to answer."""
        return True


@dataclass(frozen=True, slots=True)
class PendingShrinkIsr:
    """Followers may still be members: the high watermark waits for them."""

    out_of_sync_replica_ids: frozenset[int]
    sent_leader_and_isr: LeaderAndIsr
    last_committed_state: CommittedPartitionState

    def notify_listener(self, listener: AlterPartitionListener) -> None:
        """The change was made."""
        listener.mark_isr_shrink()

    @property
    def isr(self) -> frozenset[int]:
        """The effective ISR: what is committed."""
        return self.last_committed_state.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        """Who may be in the ISR now."""
        return self.last_committed_state.isr

    @property
    def is_inflight(self) -> bool:
        """Whether the controller still has to answer."""
        return True


PendingPartitionChange = PendingExpandIsr | PendingShrinkIsr
PartitionState = CommittedPartitionState | PendingPartitionChange

AlterPartitionCallback = Callable[[LeaderAndIsr | Errors], None]


class AlterPartitionManager(Protocol):
    """Sends ISR changes to the controller."""

    def submit(
        self,
        topic_partition: TopicPartition,
        proposed: LeaderAndIsr,
        on_complete: AlterPartitionCallback,
        /,
    ) -> None:
        """Send; `on_complete` gets the controller's decision or its error, later, exactly once.

        Called without any of the partition's locks; may call back at once.
        """
        ...
