"""Producer ids and epochs as one count, in the order in which a producer is given them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from impl.transaction.transaction_coordinator import ProducerIdAndEpoch
from impl.transaction.transaction_metadata import MAX_PRODUCER_EPOCH, TxnTransitMetadata

PRODUCER_ID: Final = 7
NEVER: Final = -1
"""The last epoch of an id that is far from its end."""


class ProducerEpochs:
    """The ids of one transactional id, of which there are two.

    The count begins with an epoch of the first id. A transaction that is decided in the last epoch
    that a client may have, 32766, has epoch 32767; then comes epoch 0 of the next id.
    """

    def __init__(self, last: int) -> None:
        self._first = 0 if last == NEVER else MAX_PRODUCER_EPOCH - 1 - last
        self._newest = PRODUCER_ID - 1

    def follow(self, forgotten: Callable[[], int]) -> None:
        """How often the id was forgotten until now; only `EpochsOfIds` asks."""

    @property
    def _are_near_their_end(self) -> bool:
        """Whether the count begins with another epoch than 0."""
        return self._first > 0

    @property
    def ids(self) -> tuple[int, ...]:
        """Those of which a partition may know an epoch, the newest first."""
        return (PRODUCER_ID + 1, PRODUCER_ID) if self._are_near_their_end else (PRODUCER_ID,)

    def generate(self) -> int:
        """ProducerIdManager.generateProducerId."""
        self._newest += 1
        return self._newest

    def of_number(self, number: int) -> ProducerIdAndEpoch:
        """The id and the epoch of that number."""
        epoch = self._first + number
        if epoch > MAX_PRODUCER_EPOCH:
            return ProducerIdAndEpoch(PRODUCER_ID + 1, epoch - MAX_PRODUCER_EPOCH - 1)
        return ProducerIdAndEpoch(PRODUCER_ID, epoch)

    def number(self, producer_id: int, epoch: int) -> int:
        """An epoch below 0 is none."""
        if epoch < 0:
            return epoch
        if producer_id != PRODUCER_ID:
            epoch += MAX_PRODUCER_EPOCH + 1
        return epoch - self._first

    def numbered(self, record: TxnTransitMetadata) -> TxnTransitMetadata:
        """The record, with its epoch's number."""
        return _with_epoch(record, self.number(record.producer_id, record.producer_epoch))


class EpochsOfIds(ProducerEpochs):
    """The ids of a transactional id that is forgotten and comes back.

    Each has `of_id` numbers, and its place is how many tombstones the log had when it was given. Of
    two ids in one place the first one is lost with its coordinator: nobody was told of it.
    """

    def __init__(self, of_id: int) -> None:
        super().__init__(NEVER)
        self._of_id = of_id
        self._places: dict[int, int] = {}
        self._forgotten: Callable[[], int] = int

    def follow(self, forgotten: Callable[[], int]) -> None:
        """See `ProducerEpochs.follow`."""
        self._forgotten = forgotten

    @property
    def ids(self) -> tuple[int, ...]:
        """See `ProducerEpochs.ids`."""
        return tuple(reversed(self._places))

    def generate(self) -> int:
        """See `ProducerEpochs.generate`."""
        producer_id = super().generate()
        self._places[producer_id] = self._forgotten()
        return producer_id

    def of_number(self, number: int) -> ProducerIdAndEpoch:
        """See `ProducerEpochs.of_number`."""
        place, epoch = divmod(number, self._of_id)
        newest = max(known for known, of in self._places.items() if of == place)
        return ProducerIdAndEpoch(newest, epoch)

    def number(self, producer_id: int, epoch: int) -> int:
        """See `ProducerEpochs.number`."""
        if epoch < 0:
            return epoch
        return self._places[producer_id] * self._of_id + epoch


def epochs_of(last: int, of_id: int) -> ProducerEpochs:
    """By a model's `LastEpoch` and `EpochsOfId`; NEVER if it has none."""
    return ProducerEpochs(last) if of_id == NEVER else EpochsOfIds(of_id)


@functools.lru_cache(maxsize=10_000)
def _with_epoch(record: TxnTransitMetadata, epoch: int) -> TxnTransitMetadata:
    return replace(record, producer_epoch=epoch)
