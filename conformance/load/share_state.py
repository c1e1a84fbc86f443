"""The records of `__share_group_state` as spec/ShareStateLog.tla has them.

| spec/ShareStateLog.tla | key and value of a record                              |
|------------------------|--------------------------------------------------------|
| part                   | Snapshot, Update: the key's schema                     |
| value                  | the value's bytes, numbered from 1; 0: a tombstone     |
| leaderEpoch            | of the value                                           |
| stateEpoch             | of a snapshot's value                                  |

Each record is of one partition of a share group.

Source: ShareCoordinatorShard.replay, ShareCoordinatorRecordSerde, CoordinatorLoaderImpl.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from conformance.errors import DataError
from conformance.kafka.schemas import Schemas
from conformance.load.partition import LoggedRecord
from conformance.load.pruning import PruningShape
from conformance.load.units import Numbers, RecordDecoder, UnitRecords
from conformance.tla import Fn, make_record

_PARTS = ("Snapshot", "Update")
"""By the number in front of the key."""
_NOBODY = ""
"""The partition of a record whose key cannot be read: it ends the load of all."""


class _ShareRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of a share partition, as a release reads it."""

    record: LoggedRecord
    type: str
    part: str
    unit: str
    body: Mapping[str, Any] = {}
    why: str = ""
    """Why it cannot be read."""


class ShareReader:
    """Reads records by the schemas of one release."""

    def __init__(self, schemas: Schemas, decoder: RecordDecoder) -> None:
        self._schemas = schemas
        self._decoder = decoder

    def units(self, records: Iterable[LoggedRecord]) -> Sequence[UnitRecords]:
        """The log, partition by partition of share groups, in the order of names."""
        by_unit: dict[str, list[_ShareRecord]] = defaultdict(list)
        newest: dict[str, int] = {}
        deleted: int | None = None
        for record in records:
            if record.commit is not None:
                continue
            read = self._read(record)
            by_unit[read.unit].append(read)
            if read.part == "Update":  # without a snapshot, which no coordinator writes: needed
                newest.setdefault(read.unit, record.offset)
            elif read.part == "Snapshot" and record.value is not None:
                newest[read.unit] = record.offset
            elif read.part == "Snapshot":
                newest.pop(read.unit, None)
                deleted = record.offset
        limit = min(newest.values(), default=deleted)
        return [_unit(name, entries, limit) for name, entries in sorted(by_unit.items())]

    def _read(self, record: LoggedRecord) -> _ShareRecord:
        number = int.from_bytes(record.key[:2], "big", signed=True)
        if len(record.key) < 2:
            return _ShareRecord(record, "Unreadable", "", _NOBODY, why="its key has no type")
        if not 0 <= number < len(_PARTS):
            return _ShareRecord(record, "Unknown", "", f"records of type {number}")
        part = _PARTS[number]
        try:
            schema = self._schemas.message(f"Share{part}Key")
            key = self._decoder.body(schema, 0, record.key)
        except DataError as error:
            return _ShareRecord(record, "Unreadable", "", _NOBODY, why=str(error))
        unit = f"{key['groupId']} {key['topicId']}-{key['partition']}"
        if record.value is None:
            return _ShareRecord(record, "Share", part, unit)
        try:
            return _ShareRecord(record, "Share", part, unit, self._value(part, record.value))
        except DataError as error:
            return _ShareRecord(record, "Unreadable", part, unit, why=str(error))

    def _value(self, part: str, value: bytes) -> Mapping[str, Any]:
        values = self._schemas.message(f"Share{part}Value")
        version = int.from_bytes(value[:2], "big", signed=True)
        if len(value) < 2 or version not in values.versions:
            raise DataError(f"{values.name} has no version {version}")
        return self._decoder.body(values, version, value)


def _unit(name: str, entries: Sequence[_ShareRecord], limit: int | None) -> UnitRecords:
    numbers, records = Numbers(), tuple(entry.record for entry in entries)
    deletable = sum(1 for record in records if limit is not None and record.offset < limit)
    return UnitRecords(
        name,
        records,
        tuple(_meaning(entry, numbers) for entry in entries),
        tuple(_readable(entry) for entry in entries),
        PruningShape(len(records), deletable),
    )


def _meaning(read: _ShareRecord, numbers: Numbers) -> Fn:
    value = read.record.value
    return make_record(
        type=read.type,
        part=read.part,
        value=0 if value is None else numbers.of("value", (read.part, value)),
        leaderEpoch=read.body.get("leaderEpoch", 0),
        stateEpoch=read.body.get("stateEpoch", 0),
    )


def _readable(read: _ShareRecord) -> str:
    what = "tombstone of " if read.record.value is None else ""
    return f"{what}{read.part.lower()} of {read.unit}{f': {read.why}' if read.why else ''}"
