"""The network of transactions: requests that stay on their way until an action delivers them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.transaction.instance import TransactionBatch, batch_of
from conformance.systems.transaction.observation import StepOrigin, end_of, marker_of
from conformance.systems.transaction.parts import SentMarker
from conformance.tla import Value


class TransactionNetwork:
    """What was sent; requests that are never late leave with their answer."""

    def __init__(self, late: Collection[str], origins: Mapping[int, StepOrigin]) -> None:
        self.batches: frozenset[TransactionBatch] = frozenset()
        self.ends: frozenset[tuple[int, int, bool]] = frozenset()
        """EndTxn: transaction, epoch, whether it commits."""
        self.markers: dict[Value, SentMarker] = {}
        self._late = late
        self._origins = origins

    def requests(self) -> Value:
        """As the specification has them."""
        ends = (end_of(txn, epoch, commits=commits) for txn, epoch, commits in self.ends)
        return frozenset((*map(batch_of, self.batches), *ends, *self.markers))

    def txn_of(self, marker: SentMarker) -> int:
        """The transaction that it ends."""
        return self._origins[marker.start].txn

    # ---- sending ---------------------------------------------------------------------------

    def send_batch(self, batch: TransactionBatch) -> None:
        """An instance produces."""
        self.batches |= {batch}

    def send_end(self, txn: int, epoch: int, *, commits: bool) -> None:
        """An instance ends a transaction."""
        self.ends |= {(txn, epoch, commits)}

    def send_markers(self, markers: Iterable[SentMarker]) -> None:
        """A coordinator sends markers, one for each partition."""
        for sent in markers:
            self.markers[marker_of(sent, self.txn_of(sent))] = sent

    # ---- what is over ----------------------------------------------------------------------

    def answered_batches(self, batches: Collection[TransactionBatch]) -> None:
        """The instance waits for these no longer."""
        if "Produce" not in self._late:
            self.batches -= frozenset(batches)

    def answered_end(self, txn: int, epoch: int, *, commits: bool) -> None:
        """The instance has the answer."""
        if "EndTxn" not in self._late:
            self.ends -= {(txn, epoch, commits)}

    def answered_marker(self, marker: SentMarker) -> None:
        """The coordinator has the answer."""
        if "Marker" not in self._late:
            kept = ((value, sent) for value, sent in self.markers.items() if sent is not marker)
            self.markers = dict(kept)

    def forget_markers(self) -> None:
        """Another coordinator is elected."""
        if "Marker" not in self._late:
            self.markers.clear()

    # ---- what is on its way ----------------------------------------------------------------

    def batch(self, partition: str, txn: int, sequence: int) -> TransactionBatch:
        """ActionRefused if there is none."""
        for batch in self.batches:
            if (batch.partition, batch.txn, batch.sequence) == (partition, txn, sequence):
                return batch
        raise ActionRefused(f"no batch {sequence} of transaction {txn} is on its way")

    def epoch_of_end(self, txn: int, *, commits: bool) -> int:
        """The epoch of an EndTxn. ActionRefused if there is none."""
        for sent, epoch, sent_commits in self.ends:
            if (sent, sent_commits) == (txn, commits):
                return epoch
        raise ActionRefused(f"no EndTxn of transaction {txn} is on its way")

    def marker(self, partition: str, txn: int, coordinator_epoch: int) -> SentMarker:
        """ActionRefused if there is none."""
        for sent in self.markers.values():
            is_it = sent.partition == partition and self.txn_of(sent) == txn
            if is_it and sent.coordinator_epoch == coordinator_epoch:
                return sent
        raise ActionRefused(f"no marker of transaction {txn} is on its way to {partition}")
