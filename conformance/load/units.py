"""What a log is split into: each record changes one unit, and a load of it tells of no other.

A unit of `__consumer_offsets` is a group, of `__transaction_state` a transactional id, of
`__share_group_state` a partition that a share group reads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from conformance.kafka.schemas import Body, MessageSchema
from conformance.load.compactions import NEVER, CompactionShape, LoadSearch, Replay, Variant
from conformance.load.partition import LoggedRecord
from conformance.printable import counted
from conformance.tla import Fn


class LogShape(Protocol):
    """What the records of a unit may have become when a load reads them."""

    def kept(self, variant: Variant) -> list[int]:
        """The records of a variant."""
        ...

    def explore(self, initial: int, replay: Replay, failed: Callable[[int], bool]) -> LoadSearch:
        """Follow a load along all variants; `failed` says which states are the end of a load."""
        ...

    def sample(self, random: Random) -> Iterator[Variant]:
        """Some variants."""
        ...


@dataclass(frozen=True, slots=True)
class UnitRecords:
    """A unit's records in their order."""

    name: str
    records: tuple[LoggedRecord, ...]
    meanings: tuple[Fn, ...]
    """As the specification has them."""
    readable: tuple[str, ...]
    """As a person reads them: the type of record and its key."""
    shape: LogShape


class RecordDecoder:
    """Decodes keys and values, behind the two bytes of their type or version.

    A loader skips what stands behind the fields of a key or a value. Here it is noted: such a
    record is of something else than what it was read as.
    """

    def __init__(self) -> None:
        self.remainders: Counter[str] = Counter()
        """What was left behind keys and values, and how often."""

    def body(self, schema: MessageSchema, version: int, data: bytes) -> Body:
        """The fields. DataError if the bytes have no such fields."""
        body, end = schema.decode_at(version, data, 2)
        if end != len(data):
            left = counted(len(data) - end, "byte")
            self.remainders[f"{left} behind {schema.name}, version {version}"] += 1
        return body


class RecordReader(Protocol):
    """Reads the records of one topic by the schemas of one release."""

    def units(self, records: Iterable[LoggedRecord]) -> Sequence[UnitRecords]:
        """The log, unit by unit, in the order of names."""
        ...


class Numbers:
    """Numbers for what is equal, in the order in which it comes.

    Names are numbered, so that units that did the same have equal records, and one load tells of
    all.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], int] = {}
        self._counts: dict[str, int] = defaultdict(int)

    def of(self, kind: str, what: object) -> int:
        """From 1 on for each kind."""
        if (kind, what) not in self._known:
            self._counts[kind] += 1
            self._known[kind, what] = self._counts[kind]
        return self._known[kind, what]


def compaction_shape(records: tuple[LoggedRecord, ...]) -> CompactionShape:
    """What the cleaner sees; a producer's transaction ends with its marker."""
    count = len(records)
    outcome, opened = [True] * count, dict[int, list[int]]()
    for number, record in enumerate(records):
        if record.commit is not None:
            for member in opened.pop(record.producer, ()):
                outcome[member] = record.commit
        elif record.producer >= 0:
            opened.setdefault(record.producer, []).append(number)
    superseded, newest = [NEVER] * count, dict[bytes, int]()
    for number in reversed(range(count)):
        record = records[number]
        if record.commit is not None:
            continue
        if not outcome[number]:
            superseded[number] = number
            continue
        superseded[number] = newest.get(record.key, NEVER)
        newest[record.key] = number
    return CompactionShape(
        tuple(superseded),
        tuple(r.commit is None and r.value is None for r in records),
        tuple(n == 0 or records[n - 1].batch != r.batch for n, r in enumerate(records)),
        min((members[0] for members in opened.values()), default=count),
    )
