"""What a group waits for: joins, syncs, heartbeats, and members that only got an id.

Source: DelayedRebalance, DelayedJoin, InitialDelayedJoin, DelayedSync and DelayedHeartbeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from ..concurrency import Concurrency
from ..purgatory.delayed_operation import DelayedOperation
from .group_metadata import GroupMetadata

Key = tuple[str, str]


class RebalanceActions(Protocol):
    """What the delayed operations call back; always with the group's lock held."""

    @property
    def concurrency(self) -> Concurrency:
        """What makes the operations' locks."""

    def try_complete_join(self, group: GroupMetadata, complete: Callable[[], bool], /) -> bool:
        """Complete if nobody is left to wait for."""

    def on_complete_join(self, group: GroupMetadata, /) -> None:
        """The join phase is over."""

    def extend_initial_join(
        self, group: GroupMetadata, remaining_ms: int, remaining_after_ms: int, /
    ) -> None:
        """Members came while the first rebalance was delayed: wait once more.

        `remaining_ms` bounds the next delay, `remaining_after_ms` is what is left after it.
        """

    def try_complete_pending_sync(
        self, group: GroupMetadata, generation_id: int, complete: Callable[[], bool], /
    ) -> bool:
        """Complete if all have sent their SyncGroup, or the generation is over."""

    def on_expire_pending_sync(self, group: GroupMetadata, generation_id: int, /) -> None:
        """Who has not sent its SyncGroup has to go."""

    def try_complete_heartbeat(
        self,
        group: GroupMetadata,
        member_id: str,
        is_pending: bool,
        complete: Callable[[], bool],
        /,
    ) -> bool:
        """Complete if the member need not be watched by this operation any longer."""

    def on_expire_heartbeat(
        self, group: GroupMetadata, member_id: str, is_pending: bool, /
    ) -> None:
        """The member's session is over."""


def join_key(group_id: str) -> Key:
    """Key of a group's join phase."""
    return ("join", group_id)


def sync_key(group_id: str) -> Key:
    """Key of a group's sync phase."""
    return ("sync", group_id)


def member_key(group_id: str, member_id: str) -> Key:
    """Key of a member's session."""
    return (group_id, member_id)


class GroupOperation(DelayedOperation):
    """A delayed operation of a group; `member_id` is None for those of the whole group.

    Its lock is the group's, which guards all that it looks at.
    """

    __slots__ = ("actions", "group", "key", "member_id")

    kind: ClassVar[str] = "group operation"

    def __init__(
        self,
        actions: RebalanceActions,
        group: GroupMetadata,
        delay_ms: int,
        key: Key,
        member_id: str | None = None,
    ) -> None:
        super().__init__(delay_ms, actions.concurrency, group.lock, name="group operation")
        self.actions = actions
        self.group = group
        self.key = key
        self.member_id = member_id

    @property
    def group_id(self) -> str:
        """The group it belongs to."""
        return self.group.group_id

    def __repr__(self) -> str:
        whose = self.group_id if self.member_id is None else f"{self.group_id}/{self.member_id}"
        return f"<{self.kind} of {whose}, deadline {self.deadline_ms}>"

    def run(self) -> bool:
        """See `DelayedOperation.run`; completion and expiry are one step for the group."""
        with self.lock:
            return super().run()


class DelayedJoin(GroupOperation):
    """Waits for all members' JoinGroup, at most the group's rebalance time-out."""

    __slots__ = ()

    kind: ClassVar[str] = "join"

    def __init__(self, actions: RebalanceActions, group: GroupMetadata, delay_ms: int) -> None:
        super().__init__(actions, group, delay_ms, join_key(group.group_id))

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`."""
        return self.actions.try_complete_join(self.group, self.force_complete)

    def on_complete(self) -> None:
        """See `DelayedOperation.on_complete`."""
        self.actions.on_complete_join(self.group)


class InitialDelayedJoin(DelayedJoin):
    """Delays the first rebalance of an Empty group, once more whenever members came (KIP-134)."""

    __slots__ = ("remaining_ms",)

    kind: ClassVar[str] = "initial join"

    def __init__(
        self, actions: RebalanceActions, group: GroupMetadata, delay_ms: int, remaining_ms: int
    ) -> None:
        super().__init__(actions, group, delay_ms)
        self.remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        """Never before its time."""
        return False

    def on_complete(self) -> None:
        """See `DelayedOperation.on_complete`."""
        if self.group.new_member_added and self.remaining_ms != 0:
            self.group.new_member_added = False
            remaining_after_ms = max(self.remaining_ms - self.delay_ms, 0)
            self.actions.extend_initial_join(self.group, self.remaining_ms, remaining_after_ms)
        else:
            super().on_complete()


class DelayedSync(GroupOperation):
    """Waits for all members' SyncGroup, at most the group's rebalance time-out (KAFKA-12890)."""

    __slots__ = ("generation_id",)

    kind: ClassVar[str] = "sync"

    def __init__(self, actions: RebalanceActions, group: GroupMetadata, delay_ms: int) -> None:
        super().__init__(actions, group, delay_ms, sync_key(group.group_id))
        self.generation_id = group.generation_id

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`."""
        return self.actions.try_complete_pending_sync(
            self.group, self.generation_id, self.force_complete
        )

    def on_expiration(self) -> None:
        """See `DelayedOperation.on_expiration`."""
        self.actions.on_expire_pending_sync(self.group, self.generation_id)


class DelayedHeartbeat(GroupOperation):
    """Waits for a sign of life of a member, or for a pending member's JoinGroup."""

    __slots__ = ("is_pending",)

    kind: ClassVar[str] = "heartbeat"

    def __init__(
        self,
        actions: RebalanceActions,
        group: GroupMetadata,
        delay_ms: int,
        member_id: str,
        is_pending: bool,
    ) -> None:
        super().__init__(actions, group, delay_ms, member_key(group.group_id, member_id), member_id)
        self.is_pending = is_pending

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`."""
        return self.actions.try_complete_heartbeat(
            self.group, self.key[1], self.is_pending, self.force_complete
        )

    def on_expiration(self) -> None:
        """See `DelayedOperation.on_expiration`."""
        self.actions.on_expire_heartbeat(self.group, self.key[1], self.is_pending)
