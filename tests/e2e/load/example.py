"""The little logs that the documents ship: `python -m tests.e2e.load.example` writes them anew.

`__consumer_offsets-17` is an example of `kconform load`:

- Group `payments`: a member gives a partition back and another takes it. A load beside the cleaner
  may miss the first (KAFKA-19862).
- Group `clicks`: a streams group whose offsets stand before its own records, as they do when the
  cleaner has taken the group's older records away (KAFKA-20254).
- Group `orders`: a classic group with a commit.

`__consumer_offsets-20` and its like have a unit for each way in which releases differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from conformance.kafka.jars import kafka_jars
from conformance.kafka.schemas import Schemas
from conformance.load.classes import release_classes
from conformance.resources import resource_root
from tests.e2e.load.written import (
    SEGMENT,
    Batch,
    Consumer,
    LogWriter,
    Share,
    SharePartition,
    Streams,
    classic,
    gone,
    offset,
    transaction,
)

LOGS = Path("docs/load")
FOLDER = LOGS / "__consumer_offsets-17"
RELEASE = "4.4.0"


def batches() -> list[Batch]:
    """The log."""
    payments, clicks = Consumer("payments"), Streams("clicks")
    return [
        [classic("orders", 1, "o-1")],
        payments.join("a", 1),
        [payments.current("a", 2, 0)],
        [offset("orders", 0, 10)],
        [payments.current("a", 3)],
        [offset("clicks", 0, 5)],
        [clicks.member("s-1", "p"), clicks.metadata(1)],
        payments.join("b", 4),
        [payments.current("b", 4, 0)],
        [payments.current("a", 4)],
    ]


def _beside_the_cleaner(group: Consumer) -> list[Batch]:
    """A member gives a partition back, another takes it, and the first has a newer record."""
    return [
        group.join("a", 1),
        [group.current("a", 2, 0)],
        [group.current("a", 3)],
        group.join("b", 4),
        [group.current("b", 4, 0)],
        [group.current("a", 5)],
    ]


def _joins_again(group: Consumer) -> list[Batch]:
    return [
        group.join("a", 1),
        [group.current("a", 2, 0)],
        group.leave("a", 3),
        group.join("b", 4),
        [group.current("b", 4, 0)],
        group.join("a", 5),
    ]


def hazards() -> list[Batch]:
    """A group for each way in which releases load `__consumer_offsets` differently."""
    streams, share = Streams("KAFKA-20254"), Share("KAFKA-19453")
    return [
        *_beside_the_cleaner(Consumer("KAFKA-19862")),
        *_joins_again(Consumer("stale-owner-joins-again")),
        [offset(streams.group, 0, 5)],
        [streams.member("s-1", "p"), streams.metadata(1)],
        [gone(share.member("a"))],
        [share.metadata(1)],
        [classic("classic", 1, "m")],
        [offset("classic", 0, 10)],
    ]


def transactions() -> list[Batch]:
    """Transactional ids of which one has a value of a version that no release knows."""
    unknown = replace(transaction("version-of-a-value", 1, 0), prefix=b"\x00\x09")
    return [[transaction("committed", 0)], [transaction("committed", 1, 0)], [unknown]]


def shares() -> list[Batch]:
    """A partition of a share group that is deleted, and one that lives."""
    deleted, living = SharePartition("deleted"), SharePartition("living")
    return [
        [deleted.snapshot(0, 0, 1)],
        [living.snapshot(0, 0, 1)],
        [living.update(0, 0, 0, 1)],
        [gone(deleted.snapshot(0, 0, 1))],
    ]


SHIPPED: Mapping[Path, Callable[[], Sequence[Batch]]] = {
    FOLDER: batches,
    LOGS / "__consumer_offsets-20": hazards,
    LOGS / "__transaction_state-20": transactions,
    LOGS / "__share_group_state-20": shares,
}


def segment(folder: Path = FOLDER) -> bytes:
    """Its bytes, by Kafka's own serialisers."""
    with release_classes(RELEASE) as classes:
        schemas = Schemas.of(kafka_jars(RELEASE).classpath)
        return LogWriter(classes.channel, schemas).segment(SHIPPED[folder]())


def main() -> None:
    """Write the files."""
    for shipped in SHIPPED:
        folder = resource_root() / shipped
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SEGMENT).write_bytes(segment(shipped))


if __name__ == "__main__":
    main()
