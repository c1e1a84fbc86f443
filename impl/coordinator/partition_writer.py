"""What the runtime asks of the partition whose log it keeps its records in.

Source: PartitionWriter, CoordinatorPartitionWriter and its ListenerAdaptor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..producer_state.transactions import SENTINEL, VerificationGuard
from ..records import MemoryRecords

TV_UNKNOWN = -1
"""TransactionVersion.TV_UNKNOWN: of what is no marker."""

VerifiedCallback = Callable[[Exception | None, VerificationGuard], None]
"""Called once, at once or later: with the error, or with the guard to append with."""


class HighWatermarkListener(Protocol):
    """PartitionWriter.Listener."""

    def on_high_watermark_updated(self, offset: int, /) -> None:
        """The partition's high watermark is `offset` now."""


class PartitionWriter(Protocol):
    """The partition on this broker."""

    @property
    def max_message_bytes(self) -> int:
        """max.message.bytes. Raises NotLeaderOrFollowerException if this broker does not lead."""

    def append(
        self,
        records: MemoryRecords,
        guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
    ) -> int:
        """Append one batch as the leader, waiting for nobody; the offset after it.

        `guard` is of `maybe_start_transaction_verification`, `transaction_version` of a marker
        (KAFKA-19446). Raises NotLeaderOrFollowerException, or what the log raises.
        """

    def maybe_start_transaction_verification(
        self, transactional_id: str, producer_id: int, producer_epoch: int, done: VerifiedCallback
    ) -> None:
        """Ask the transaction coordinator whether the transaction has this partition."""

    def register_listener(self, listener: HighWatermarkListener) -> None:
        """Tell the listener each new high watermark, the present one not."""

    def deregister_listener(self, listener: HighWatermarkListener) -> None:
        """Tell it no more."""


class ListenerAdaptor:
    """What the partition tells becomes a listener's, as long as the broker leads.

    It retires when the broker follows, or the partition fails or is deleted, and never serves
    again, even if the broker does: another tenure's watermark says nothing of the records that a
    shard of this one waits for (KAFKA-20634).
    """

    def __init__(self, listener: HighWatermarkListener) -> None:
        self.listener = listener
        self.retired = False

    def on_high_watermark_updated(self, offset: int) -> None:
        """PartitionListener.onHighWatermarkUpdated."""
        if not self.retired:
            self.listener.on_high_watermark_updated(offset)

    def on_becoming_follower(self) -> None:
        """PartitionListener.onBecomingFollower."""
        self.retired = True

    def on_deleted(self) -> None:
        """PartitionListener.onDeleted."""
        self.retired = True
