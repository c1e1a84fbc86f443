"""What the runtime asks of the partition whose log it keeps its records in.

Source: PartitionWriter, CoordinatorPartitionWriter and its ListenerAdaptor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..records import Record


class HighWatermarkListener(Protocol):
    """PartitionWriter.Listener."""

    def on_high_watermark_updated(self, offset: int, /) -> None:
        """The partition's high watermark is `offset` now."""


class PartitionWriter(Protocol):
    """The partition on this broker."""

    @property
    def max_message_bytes(self) -> int:
        """max.message.bytes. Raises NotLeaderOrFollowerException if this broker does not lead."""

    def append(self, records: Sequence[Record]) -> int:
        """Append one batch as the leader, waiting for nobody; the offset after it.

        Raises NotLeaderOrFollowerException, or what the log raises.
        """

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
