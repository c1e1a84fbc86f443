"""Records of `__cluster_metadata` and `__consumer_offsets` into rows.

Source: KIP-500 and KIP-630 (metadata log and snapshots), KIP-853 (control records for voters),
the schemas in Kafka's jars.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from conformance.errors import DataError
from conformance.inspect.reading.names import FilePlace
from conformance.inspect.reading.records import LogRecord
from conformance.kafka.schemas import DecodeError, Schemas

_CONTROL = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}

Row = dict[str, Any]
Header = Mapping[str, int]
"""Columns of the table `batches`."""
Decode = Callable[[Header, bool, LogRecord], Row | None]
"""From the batch, whether it holds control records, and a record: the row, if it has one."""


def as_json(body: object) -> str:
    """A decoded value as JSON; bytes become `{"base64": ...}`."""
    return json.dumps(body, default=_plain, separators=(",", ":"), sort_keys=True)


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    raise TypeError(f"{type(value).__name__} is no value of a schema")


def metadata_rows(schemas: Schemas, broker: str, path: str, place: FilePlace) -> Decode:
    """How a record of the metadata log, or of a snapshot of it, becomes a row."""
    snapshot = place.kind == "metadata-snapshot"
    sequence = count()

    def decode(batch: Header, control: bool, record: LogRecord) -> Row | None:
        name, version, body = _metadata(schemas, control, record)
        return {
            "broker": broker,
            "offset": place.base_offset - 1 if snapshot else record.offset,
            "epoch": place.epoch if snapshot else batch["leader_epoch"],
            "timestamp": record.timestamp,
            "type": name,
            "version": version,
            "body": as_json(body),
            "source": "snapshot" if snapshot else "log",
            "path": path,
            "sequence": next(sequence),
        }

    return decode


def _metadata(
    schemas: Schemas, control: bool, record: LogRecord
) -> tuple[str, int, Mapping[str, Any]]:
    if record.value is None:
        raise DecodeError("a record of the metadata log has no value")
    if not control:
        value = schemas.decode_metadata_record(record.value)
        return value.name, value.version, value.body
    number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    name = _CONTROL.get(number)
    if name is None:
        raise DecodeError(f"control record of type {number}")
    # The version is the first field of each of them.
    version = int.from_bytes(record.value[:2], "big", signed=True)
    return name, version, schemas.message(name).decode(version, record.value)


def group_rows(schemas: Schemas, broker: str, place: FilePlace) -> Decode:
    """How a record of the offsets topic becomes a row."""

    def decode(batch: Header, control: bool, record: LogRecord) -> Row | None:
        if control:
            return None  # a transaction's marker
        if record.key is None:
            raise DecodeError("a record of the offsets topic has no key")
        result = schemas.decode_group_record(record.key, record.value)
        if result is None:
            raise DecodeError(f"key of type {int.from_bytes(record.key[:2], 'big', signed=True)}")
        key, value = result
        body = None if value is None else _readable(schemas, key.name, value.body)
        return {
            "broker": broker,
            "partition": place.partition,
            "offset": record.offset,
            "batch": batch["base_offset"],
            "epoch": batch["leader_epoch"],
            "timestamp": record.timestamp,
            "type": key.name,
            "key": as_json(key.body),
            "value": None if body is None else as_json(body),
            "version": None if value is None else value.version,
            "state": place.state,
            "directory": place.directory,
        }

    return decode


def _readable(schemas: Schemas, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value with the consumers' own subscription and assignment decoded."""
    if name != "GroupMetadataKey" or body.get("protocolType") != "consumer":
        return body
    members = [
        {
            **member,
            "subscription": _consumer(schemas, "Subscription", member["subscription"]),
            "assignment": _consumer(schemas, "Assignment", member["assignment"]),
        }
        for member in body["members"]
    ]
    return {**body, "members": members}


def _consumer(schemas: Schemas, kind: str, data: bytes | None) -> object:
    """What a consumer wrote, decoded; as it is if that cannot be."""
    if not data:
        return None if data is None else {}
    schema = schemas.message(f"ConsumerProtocol{kind}")
    version = min(int.from_bytes(data[:2], "big", signed=True), schema.versions.high)
    try:
        return schema.decode_at(version, data, 2)[0]
    except DataError:
        return data
