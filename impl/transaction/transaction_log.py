"""Records of __transaction_state (TransactionLog): TransactionLogKey, TransactionLogValue.

Value version 1 is flexible: compact lengths, and fields with a tag where they are not the default.
The last producer epoch is in no version (KAFKA-20357).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ..errors import CorruptRecordException
from ..records import Record
from ..types import TopicPartition
from .transaction_metadata import TxnTransitMetadata
from .transaction_state import TransactionState

TOPIC = "__transaction_state"
_KEY_VERSION = 0
_FLEXIBLE = 1
_FIXED = struct.Struct(">hqhib")
_TIMES = struct.Struct(">qq")
_SHORT, _INT, _LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_PREVIOUS_PRODUCER_ID, _NEXT_PRODUCER_ID, _CLIENT_TRANSACTION_VERSION = 0, 1, 2
_DEFAULTS = {_PREVIOUS_PRODUCER_ID: -1, _NEXT_PRODUCER_ID: -1, _CLIENT_TRANSACTION_VERSION: 0}
_FORMATS = {
    _PREVIOUS_PRODUCER_ID: _LONG,
    _NEXT_PRODUCER_ID: _LONG,
    _CLIENT_TRANSACTION_VERSION: _SHORT,
}


@dataclass(frozen=True, slots=True)
class TxnRecord:
    """A record that was read; no `value` in a tombstone."""

    transactional_id: str
    value: TxnTransitMetadata | None


def tombstone_record(transactional_id: str, timestamp: int) -> Record:
    """The record that forgets an id."""
    return Record(None, _key(transactional_id), timestamp)


def _key(transactional_id: str) -> bytes:
    name = transactional_id.encode()
    return struct.pack(">hh", _KEY_VERSION, len(name)) + name


def transaction_record(
    transactional_id: str, value: TxnTransitMetadata, transaction_version: int, timestamp: int
) -> Record:
    """The record of an id; from `transaction_version` 1 on in the flexible version."""
    encoded = _value(value, min(transaction_version, _FLEXIBLE))
    return Record(encoded, _key(transactional_id), timestamp)


def _value(value: TxnTransitMetadata, version: int) -> bytes:
    out = bytearray(
        _FIXED.pack(
            version,
            value.producer_id,
            value.producer_epoch,
            value.txn_timeout_ms,
            value.txn_state,
        )
    )
    flexible = version >= _FLEXIBLE
    _put_partitions(out, value, flexible)
    out += _TIMES.pack(value.txn_last_update_timestamp, value.txn_start_timestamp)
    if flexible:
        _put_tagged(out, value)
    return bytes(out)


def _put_partitions(out: bytearray, value: TxnTransitMetadata, flexible: bool) -> None:
    if value.txn_state is TransactionState.EMPTY:
        out += b"\0" if flexible else _INT.pack(-1)
        return
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(value.topic_partitions):
        by_topic.setdefault(topic, []).append(partition)
    _put_length(out, len(by_topic), _INT, flexible)
    for topic, partitions in by_topic.items():
        name = topic.encode()
        _put_length(out, len(name), _SHORT, flexible)
        out += name
        _put_length(out, len(partitions), _INT, flexible)
        for partition in partitions:
            out += _INT.pack(partition)
        if flexible:
            _put_varint(out, 0)


def _put_length(out: bytearray, length: int, plain: struct.Struct, flexible: bool) -> None:
    if flexible:
        _put_varint(out, length + 1)
    else:
        out += plain.pack(length)


def _put_tagged(out: bytearray, value: TxnTransitMetadata) -> None:
    fields = {
        _PREVIOUS_PRODUCER_ID: value.prev_producer_id,
        _NEXT_PRODUCER_ID: value.next_producer_id,
        _CLIENT_TRANSACTION_VERSION: value.client_transaction_version,
    }
    given = {tag: field for tag, field in fields.items() if field != _DEFAULTS[tag]}
    _put_varint(out, len(given))
    for tag, field in given.items():
        packed = _FORMATS[tag].pack(field)
        _put_varint(out, tag)
        _put_varint(out, len(packed))
        out += packed


def _put_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_transaction_record(record: Record) -> TxnRecord | None:
    """What a record says; None if its version is unknown. Raises `CorruptRecordException`."""
    try:
        version, length = struct.unpack_from(">hh", record.key or b"")
        if version != _KEY_VERSION:
            return None
        transactional_id = (record.key or b"")[4 : 4 + length].decode()
        if record.value is None:
            return TxnRecord(transactional_id, None)
        (value_version,) = _SHORT.unpack_from(record.value)
        if not 0 <= value_version <= _FLEXIBLE:
            return None
        return TxnRecord(transactional_id, _read_value(record.value))
    except (struct.error, UnicodeDecodeError, IndexError, KeyError, ValueError) as error:
        raise CorruptRecordException(f"record of {TOPIC}: {error}") from error


def _read_value(data: bytes) -> TxnTransitMetadata:
    version, producer_id, epoch, timeout, state = _FIXED.unpack_from(data)
    reader = _ValueReader(data, _FIXED.size, flexible=version >= _FLEXIBLE)
    partitions = reader.partitions()
    last_update, start = reader.unpack(_TIMES)
    tagged = _DEFAULTS | (reader.tagged() if version >= _FLEXIBLE else {})
    return TxnTransitMetadata(
        producer_id,
        timeout,
        last_update,
        prev_producer_id=tagged[_PREVIOUS_PRODUCER_ID],
        next_producer_id=tagged[_NEXT_PRODUCER_ID],
        producer_epoch=epoch,
        txn_state=TransactionState(state),
        topic_partitions=partitions,
        txn_start_timestamp=start,
        client_transaction_version=tagged[_CLIENT_TRANSACTION_VERSION],
    )


class _ValueReader:
    def __init__(self, data: bytes, position: int, *, flexible: bool) -> None:
        self._data = data
        self._position = position
        self._flexible = flexible

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        fields = form.unpack_from(self._data, self._position)
        self._position += form.size
        return fields

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _length(self, plain: struct.Struct) -> int:
        return self._varint() - 1 if self._flexible else self.unpack(plain)[0]

    def partitions(self) -> frozenset[TopicPartition]:
        partitions = []
        for _ in range(self._length(_INT)):
            length = self._length(_SHORT)
            topic = self._data[self._position : self._position + length].decode()
            self._position += length
            for _ in range(self._length(_INT)):
                partitions.append(TopicPartition(topic, self.unpack(_INT)[0]))
            if self._flexible:
                self.tagged()
        return frozenset(partitions)

    def tagged(self) -> dict[int, int]:
        """The fields that are known, by tag."""
        fields = {}
        for _ in range(self._varint()):
            tag, size = self._varint(), self._varint()
            if tag in _FORMATS:
                (fields[tag],) = _FORMATS[tag].unpack_from(self._data, self._position)
            self._position += size
        return fields
