"""The little log that the documents ship: `python -m tests.e2e.load.example` writes it anew.

- Group `payments`: a member gives a partition back and another takes it. A load beside the cleaner
  may miss the first (KAFKA-19862).
- Group `clicks`: a streams group whose offsets stand before its own records, as they do when the
  cleaner has taken the group's older records away (KAFKA-20254).
- Group `orders`: a classic group with a commit.
"""

from __future__ import annotations

from pathlib import Path

from conformance.kafka.jars import kafka_jars
from conformance.kafka.schemas import Schemas
from conformance.load.classes import release_classes
from conformance.resources import resource_root
from tests.e2e.load.written import SEGMENT, Batch, Consumer, LogWriter, Streams, classic, offset

FOLDER = Path("docs/load/__consumer_offsets-17")
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


def segment() -> bytes:
    """Its bytes, by Kafka's own serialisers."""
    with release_classes(RELEASE) as classes:
        schemas = Schemas.of(kafka_jars(RELEASE).classpath)
        return LogWriter(classes.channel, schemas).segment(batches())


def main() -> None:
    """Write the file."""
    folder = resource_root() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SEGMENT).write_bytes(segment())


if __name__ == "__main__":
    main()
