"""The topics in which coordinators keep their state, and how a log of each is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import DataError
from conformance.kafka.schemas import Schemas
from conformance.load.meaning import GroupReader
from conformance.load.share_state import ShareReader
from conformance.load.transaction_state import TransactionReader
from conformance.load.units import RecordDecoder, RecordReader


@dataclass(frozen=True, slots=True)
class StateTopic:
    """One of them."""

    name: str
    unit: str
    """What a record changes, as a noun."""
    model: str
    """The model that has the specification; the rules are those of the release."""
    replay: str
    """The operator that replays a record, and `empty`: the one of a state before the first."""
    empty: str
    reader: Callable[[Schemas, RecordDecoder], RecordReader]
    consequence: str
    """What a record means that no load gets past."""
    pruned: bool = False
    """Whether records go by DeleteRecords, and not by the log cleaner."""

    @property
    def units(self) -> str:
        """The noun in the plural."""
        return f"{self.unit}s"


OFFSETS = StateTopic(
    "__consumer_offsets",
    "group",
    "load/log-2m",
    "GroupReplay",
    "EmptyLoad",
    GroupReader,
    "the partition has no coordinator, and none of its groups works",
)
TRANSACTIONS = StateTopic(
    "__transaction_state",
    "transactional id",
    "load/transaction-state",
    "TransactionReplay",
    "EmptyTransaction",
    TransactionReader,
    "the coordinator serves without the transactional ids and states that stand behind it",
)
SHARES = StateTopic(
    "__share_group_state",
    "share partition",
    "load/share-state",
    "ShareReplay",
    "EmptyShare",
    ShareReader,
    "the partition has no coordinator, and none of its share groups works",
    pruned=True,
)
TOPICS: Mapping[str, StateTopic] = {topic.name: topic for topic in (OFFSETS, TRANSACTIONS, SHARES)}


def topic_of(folder: Path) -> StateTopic:
    """The topic of a partition's folder, by its name. DataError if it is none of them."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: name a copy of one partition's folder.")
    name, _, number = folder.resolve().name.rpartition("-")
    if name not in TOPICS or not number.isdigit():
        raise DataError(
            f"{folder} is not named as a partition of {', '.join(TOPICS)} (TOPIC-NUMBER): what its "
            "records mean is not known. Give the copy the name that the broker's folder has."
        )
    return TOPICS[name]
