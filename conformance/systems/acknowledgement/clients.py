"""The environment: producers and consumers, and what came of their requests."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.tla import Fn
from impl.delayed.delayed_produce import ProducePartitionResponse
from impl.errors import Errors
from impl.purgatory.timer_task import TimerTask
from impl.types import FetchPartitionData

NOWHERE = "none"


@dataclass(slots=True)
class Producer:
    """One produce and what came of it, as its client sees it."""

    leader: str = NOWHERE
    acks: str = "none"
    answers: int = 0
    error: str = "NONE"
    base_offset: int = -1
    operation: TimerTask | None = None

    def answer(self, response: ProducePartitionResponse) -> None:
        """The leader's answer."""
        self.answers += 1
        self.error = response.error.name
        self.base_offset = response.base_offset

    def value(self) -> Fn:
        """As the specification has it."""
        return Fn(
            {
                "leader": self.leader,
                "acks": self.acks,
                "answers": self.answers,
                "error": self.error,
                "baseOffset": self.base_offset,
            }
        )


@dataclass(slots=True)
class FetchingConsumer:
    """A consumer: where its fetch waits, its position, its last answer."""

    leader: str = NOWHERE
    offset: int = 0
    error: str = "NONE"
    high_watermark: int = -1
    operation: TimerTask | None = None

    def answer(self, data: FetchPartitionData) -> None:
        """The leader's answer: the position moves past the records."""
        self.leader = NOWHERE
        self.error = data.error.name
        self.high_watermark = data.high_watermark if data.error is Errors.NONE else -1
        for batch in data.records.batches():
            self.offset = batch.last_offset + 1

    def value(self) -> Fn:
        """As the specification has it."""
        return Fn(
            {
                "leader": self.leader,
                "offset": self.offset,
                "error": self.error,
                "highWatermark": self.high_watermark,
            }
        )
