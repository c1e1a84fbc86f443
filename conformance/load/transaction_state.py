"""The records of `__transaction_state` as spec/TransactionStateLog.tla has them.

Each record is of one transactional id, and a later one takes the place of an earlier one.

Source: TransactionStateManager.loadTransactionMetadata, TransactionLog.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.errors import DataError
from conformance.kafka.schemas import Schemas
from conformance.load.partition import LoggedRecord
from conformance.load.units import Numbers, RecordDecoder, UnitRecords, compaction_shape
from conformance.tla import Fn, make_record

_KEY, _VALUE = "TransactionLogKey", "TransactionLogValue"
_NOBODY = ""
"""The id of a record whose key cannot be read: it ends the load of all ids."""
_STATUSES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
"""By number: TransactionState."""
_VERSIONS = range(3)
"""Of transactions."""


class TransactionReader:
    """Reads records by the schemas of one release."""

    def __init__(self, schemas: Schemas, decoder: RecordDecoder) -> None:
        self._keys, self._values = schemas.message(_KEY), schemas.message(_VALUE)
        self._decoder = decoder

    def units(self, records: Iterable[LoggedRecord]) -> Sequence[UnitRecords]:
        """The log, transactional id by transactional id, in the order of names."""
        by_id: dict[str, list[tuple[LoggedRecord, str, str]]] = defaultdict(list)
        for record in records:
            if record.commit is None:
                type_, name, why = self._key(record.key)
                by_id[name].append((record, type_, why))
        return [self._unit(name, entries) for name, entries in sorted(by_id.items())]

    def _key(self, key: bytes) -> tuple[str, str, str]:
        """What kind of record it is, of which id, and why its key cannot be read."""
        version = int.from_bytes(key[:2], "big", signed=True)
        if len(key) < 2:
            return "Unreadable", _NOBODY, "its key has no version"
        if version not in self._keys.versions:
            return "Unknown", f"keys of version {version}", ""
        try:
            body = self._decoder.body(self._keys, version, key)
            return "Transaction", body["transactionalId"], ""
        except DataError as error:
            return "Unreadable", _NOBODY, str(error)

    def _unit(self, name: str, entries: list[tuple[LoggedRecord, str, str]]) -> UnitRecords:
        numbers, meanings, readable = Numbers(), list[Fn](), list[str]()
        for record, type_, why in entries:
            body: Mapping[str, Any] = {}
            if type_ == "Transaction" and record.value is not None:
                type_, body, why = self._value(record.value)
            value = 0 if record.value is None else numbers.of("value", record.value)
            status = body.get("transactionStatus", 0)
            meanings.append(
                make_record(
                    type=type_,
                    value=value,
                    status=status,
                    listed=body.get("transactionPartitions") is not None,
                    version=body.get("clientTransactionVersion", 0),
                )
            )
            readable.append(_readable(name, record, type_, status, why))
        numbered = _telling(meanings)
        kept = tuple(entries[number][0] for number in numbered)
        return UnitRecords(
            name,
            kept,
            tuple(meanings[number] for number in numbered),
            tuple(readable[number] for number in numbered),
            compaction_shape(kept),
        )

    def _value(self, value: bytes) -> tuple[str, Mapping[str, Any], str]:
        version = int.from_bytes(value[:2], "big", signed=True)
        if len(value) < 2:
            return "Unreadable", {}, "its value has no version"
        if version not in self._values.versions:
            return "UnknownValue", {}, f"{_VALUE} has no version {version}"
        try:
            return "Transaction", self._decoder.body(self._values, version, value), ""
        except DataError as error:
            return "Unreadable", {}, str(error)


def _telling(meanings: Sequence[Fn]) -> list[int]:
    """The first record, the last, and those that are, or stand beside, no plain state.

    A plain state takes the place of the one before it: loads come to the same without the others.
    """
    plain = [_is_plain(meaning) for meaning in meanings]
    last = len(meanings) - 1
    return [
        number
        for number in range(len(meanings))
        if number in (0, last) or not all(plain[number - 1 : number + 2])
    ]


def _is_plain(meaning: Fn) -> bool:
    """Whether every release takes it."""
    return (
        meaning["type"] == "Transaction"
        and meaning["value"] != 0
        and meaning["status"] in range(len(_STATUSES))
        and (meaning["status"] == 0 or meaning["listed"] is True)
        and meaning["version"] in _VERSIONS
    )


def _readable(name: str, record: LoggedRecord, type_: str, status: int, why: str) -> str:
    if record.value is None:
        return f"tombstone of {name}"
    known = _STATUSES[status] if 0 <= status < len(_STATUSES) else f"status {status}"
    return f"{name}{f' {known}' if type_ == 'Transaction' else ''}{f': {why}' if why else ''}"
