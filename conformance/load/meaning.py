"""The records of a log as spec/GroupLoad.tla has them, group by group, as a release reads them.

| spec/GroupLoad.tla | key and value of a record                                                  |
|--------------------|----------------------------------------------------------------------------|
| type, part         | the name of the key's schema (`_PARTS`)                                    |
| key                | memberId, regularExpression, topic and partition; `m1`, `m2`, ... in order |
| value              | the value's bytes, numbered from 1; 0: a tombstone                         |
| epoch              | memberEpoch                                                                |
| holds, gives       | assignedPartitions, partitionsPendingRevocation; a streams group's active  |
|                    | tasks                                                                      |
| helps              | standbyTasks, warmupTasks                                                  |
| instance           | instanceId                                                                 |
| process            | processId                                                                  |
| producer           | the batch's producer id, if it is of a transaction; numbered from 1        |
| at                 | the place among the group's records                                        |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from conformance.errors import DataError
from conformance.kafka.schemas import MessageSchema, Schemas
from conformance.load.partition import LoggedRecord, group_of
from conformance.load.units import Numbers, RecordDecoder, UnitRecords, compaction_shape
from conformance.tla import Fn, Value, make_record

_PARTS = {
    "Metadata": "Group",
    "MemberMetadata": "Member",
    "TargetAssignmentMetadata": "Targets",
    "TargetAssignmentMember": "Target",
    "CurrentMemberAssignment": "Current",
    "StatePartitionMetadata": "Sharing",
}
"""By what follows the type in the key's schema; all else is an attribute of the group."""
_TYPES = ("Consumer", "Streams", "Share")
_OFFSETS = ("OffsetCommit", "LegacyOffsetCommit")
_NOBODY = ""
"""The group of a record whose key cannot be read: it ends the load of all groups."""


class _Read(msgspec.Struct, frozen=True, gc=False):
    """A record's key and value as a release reads them."""

    type: str
    part: str
    group: str
    key: str
    body: Mapping[str, Any] = {}
    why: str = ""
    """Why it cannot be read."""


class GroupReader:
    """Reads records by the schemas of one release; keys are read once."""

    def __init__(self, schemas: Schemas, decoder: RecordDecoder) -> None:
        self._schemas = schemas
        self._keys: dict[bytes, _Read] = {}
        self._decoder = decoder

    def units(self, records: Iterable[LoggedRecord]) -> list[UnitRecords]:
        """The log, group by group, in the order of names."""
        by_group: dict[str, list[tuple[LoggedRecord, _Read]]] = defaultdict(list)
        transactions: dict[int, set[str]] = defaultdict(set)
        for record in records:
            if record.commit is not None:
                marker = _Read("Marker", "Commit" if record.commit else "Abort", "", "")
                for name in transactions.pop(record.producer, ()):
                    by_group[name].append((record, marker))
                continue
            read = self._key(record.key)
            by_group[read.group].append((record, read))
            if record.producer >= 0:
                transactions[record.producer].add(read.group)
        return [self._group(name, entries) for name, entries in sorted(by_group.items())]

    def _key(self, key: bytes) -> _Read:
        if key not in self._keys:
            self._keys[key] = self._read_key(key)
        return self._keys[key]

    def _read_key(self, key: bytes) -> _Read:
        number = int.from_bytes(key[:2], "big", signed=True) if len(key) > 1 else -1
        schema = self._schemas.group_keys.get(number)
        if number < 0:
            return _Read("Unreadable", "", _NOBODY, "", why="its key has no type")
        if schema is None:
            return _Read("Unknown", f"type {number}", group_of(key).decode("utf-8", "replace"), "")
        try:
            body = self._decoder.body(schema, _key_version(schema, number), key)
        except DataError as error:
            return _Read("Unreadable", "", _NOBODY, "", why=str(error))
        return _named(schema.name.removesuffix("Key"), body)

    def _value(self, record: LoggedRecord) -> tuple[Mapping[str, Any], str]:
        """The value, and why it cannot be read."""
        assert record.value is not None, "no tombstone"
        schema = self._schemas.group_keys[int.from_bytes(record.key[:2], "big", signed=True)]
        values = self._schemas.message(schema.name.removesuffix("Key") + "Value")
        version = int.from_bytes(record.value[:2], "big", signed=True)
        if len(record.value) < 2 or version not in values.versions:
            return {}, f"{values.name} has no version {version}"
        try:
            return self._decoder.body(values, version, record.value), ""
        except DataError as error:
            return {}, str(error)

    def _group(self, name: str, entries: list[tuple[LoggedRecord, _Read]]) -> UnitRecords:
        numbers, meanings, readable = Numbers(), list[Fn](), list[str]()
        for at, (record, read) in enumerate(entries, 1):
            body, why = read.body, read.why
            if record.value is not None and read.type not in ("Marker", "Unknown", "Unreadable"):
                body, why = self._value(record)
            meanings.append(_meaning(record, read, body, bool(why), numbers, at))
            readable.append(_readable(record, read, why))
        kept = tuple(record for record, _ in entries)
        return UnitRecords(name, kept, tuple(meanings), tuple(readable), compaction_shape(kept))


def _key_version(schema: MessageSchema, number: int) -> int:
    return number if number in schema.versions and schema.kind == "data" else 0


def _named(name: str, body: Mapping[str, Any]) -> _Read:
    if name == "GroupMetadata":
        return _Read("Classic", "Group", body["group"], "")
    if name in _OFFSETS:
        return _Read("Offset", "", body["group"], f"{body['topic']}-{body['partition']}")
    kind = next((t for t in _TYPES if name.startswith(f"{t}Group")), "")
    if not kind:
        raise AssertionError(f"no rule of spec/GroupLoad.tla is for records of {name}")
    rest = name.removeprefix(f"{kind}Group")
    part = _PARTS.get(rest, "Attribute")
    key = body.get("memberId") or body.get("regularExpression") or ""
    return _Read(kind, part, body["groupId"], key if part != "Attribute" else f"{rest} {key}")


def _meaning(
    record: LoggedRecord,
    read: _Read,
    body: Mapping[str, Any],
    unreadable: bool,
    numbers: Numbers,
    at: int,
) -> Fn:
    """The record of the specification."""
    value = 0 if record.value is None else numbers.of("value", (read.part, record.value))
    member = f"m{numbers.of('key', read.key)}" if read.key else ""
    return make_record(
        type="Unreadable" if unreadable else read.type,
        part=read.part,
        key=member,
        value=value,
        epoch=body.get("memberEpoch", 0),
        holds=_partitions(numbers, body, "assignedPartitions", "activeTasks"),
        gives=_partitions(
            numbers, body, "partitionsPendingRevocation", "activeTasksPendingRevocation"
        ),
        helps=_helped(numbers, body),
        instance=f"i{numbers.of('instance', body['instanceId'])}" if body.get("instanceId") else "",
        process=f"p{numbers.of('process', body['processId'])}" if body.get("processId") else "",
        simple=read.type == "Classic" and not body.get("protocolType") and not body.get("members"),
        producer=0 if record.producer < 0 else numbers.of("producer", record.producer),
        at=at,
    )


def _partitions(numbers: Numbers, body: Mapping[str, Any], *names: str) -> frozenset[Value]:
    """The partitions that the arrays of these names have, as <<topic or subtopology, number>>."""
    return frozenset(
        (numbers.of("topic", place), number)
        for name in names
        for entry in body.get(name) or ()
        for place in (entry.get("topicId") or entry.get("subtopologyId"),)
        for number in entry["partitions"]
    )


def _helped(numbers: Numbers, body: Mapping[str, Any]) -> frozenset[Value]:
    """Standby and warm-up tasks, those to be revoked too, as <<kind, task>>."""
    return frozenset(
        (kind, task)
        for kind in ("standbyTasks", "warmupTasks")
        for name in (kind, f"{kind}PendingRevocation")
        for task in _partitions(numbers, body, name)
    )


def _readable(record: LoggedRecord, read: _Read, why: str) -> str:
    """What a person is told of a record."""
    what = "tombstone of " if record.value is None and read.type != "Marker" else ""
    name = " ".join(part for part in (read.type.lower(), read.part.lower(), read.key) if part)
    return f"{what}{name}{f': {why}' if why else ''}"
