"""An application's callbacks: what its consumer has told it that it owns.

The specification says what a member owns. A consumer says it twice: its subscription has it, and
ConsumerRebalanceListener tells the application of each change, which acts on what it is told.
"""

from __future__ import annotations

from collections.abc import Callable

from impl.group.client.consumer_config import RebalanceListener
from impl.types import TopicPartition

Partitions = frozenset[TopicPartition]


class ImpossibleCallback(Exception):
    """The application is told what cannot be."""


class RebalanceCallbacks:
    """Raises Misled at a call that does not fit those before.

    `is_out`: whether the consumer has left its generation now. Then partitions are lost, otherwise
    revoked (KIP-429). None where threads meet, of which another one may change that meanwhile: then
    nobody listens.
    """

    def __init__(self, is_out: Callable[[], bool] | None) -> None:
        self._is_out = is_out
        self.owned: Partitions = frozenset()

    @property
    def listener(self) -> RebalanceListener:
        """What the consumer calls."""
        if self._is_out is None:
            return RebalanceListener()
        return RebalanceListener(
            self._assigned,
            lambda partitions: self._give_up(partitions, lost=False),
            lambda partitions: self._give_up(partitions, lost=True),
        )

    def _assigned(self, partitions: Partitions) -> None:
        if self.owned:
            raise ImpossibleCallback(f"{partitions} are assigned before {self.owned} are revoked")
        self.owned = partitions

    def _give_up(self, partitions: Partitions, *, lost: bool) -> None:
        if partitions != self.owned:
            raise ImpossibleCallback(f"{partitions} are taken of {self.owned}")
        if self._is_out is not None and self._is_out() is not lost:
            raise ImpossibleCallback(f"{partitions} are called {'lost' if lost else 'revoked'}")
        self.owned = frozenset()

    def check(self, assigned: Partitions) -> None:
        """Raises Misled unless the subscription has what the application was told."""
        if self._is_out is not None and self.owned != assigned:
            raise ImpossibleCallback(f"{assigned} are assigned, {self.owned} was told")
