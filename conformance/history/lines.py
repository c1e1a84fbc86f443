"""The lines of a history: their form, and a block of them as an Arrow table.

A block is read by Arrow in one go. Where Arrow refuses, each line is read alone, so that a bad line
costs itself only.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from conformance.conversion import convert
from conformance.errors import DataError
from conformance.tla import load_json

Scalar = str | int
Offset = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Time = Annotated[int, msgspec.Meta(ge=-(1 << 63) + 1, le=(1 << 63) - 1)]
TYPES = ("invoke", "ok", "fail", "info")
"""What a line may say of its operation; Jepsen's words. `info` is an unknown outcome."""


class SentRecord(msgspec.Struct, frozen=True):
    """A record that was sent: `key` is its partition (`orders-0`)."""

    key: Scalar
    value: Scalar | None = None
    offset: Offset | None = None


class LoggedRead(msgspec.Struct, frozen=True):
    """A record that was read."""

    key: Scalar
    offset: Offset
    value: Scalar | None = None


class LoggedPosition(msgspec.Struct, frozen=True):
    """A position that was committed, or fetched: the offset that is read next."""

    key: Scalar
    offset: Offset


class LoggedOperation(msgspec.Struct, frozen=True):
    """A line. docs/history.md says what each field means; times are nanoseconds."""

    process: Scalar
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    time: Time | None = None
    start: Time | None = None
    sent: tuple[SentRecord, ...] | None = None
    polled: tuple[LoggedRead, ...] | None = None
    committed: tuple[LoggedPosition, ...] | None = None
    fetched: tuple[LoggedPosition, ...] | None = None
    assigned: tuple[Scalar, ...] | None = None
    moved: tuple[Scalar, ...] | None = None
    group: str | None = None


_TEXT = pa.string()


def _schema(process: pa.DataType, key: pa.DataType, value: pa.DataType) -> pa.Schema:
    record = pa.list_(pa.struct([("key", key), ("value", value), ("offset", pa.int64())]))
    position = pa.list_(pa.struct([("key", key), ("offset", pa.int64())]))
    return pa.schema(
        {
            "process": process,
            "type": _TEXT,
            "f": _TEXT,
            "time": pa.int64(),
            "start": pa.int64(),
            "sent": record,
            "polled": record,
            "committed": position,
            "fetched": position,
            "assigned": pa.list_(key),
            "moved": pa.list_(key),
            "group": _TEXT,
        }
    )


LINES = _schema(_TEXT, _TEXT, _TEXT)
"""A table of lines: numbers that name something are texts."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that was not understood: its number in the file, from 1."""

    number: int
    why: str
    is_end: bool = False
    """Whether the file ends amid it."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """The lines of a block that were understood, with their numbers."""

    table: pa.Table
    numbers: Sequence[int]
    bad: tuple[BadLine, ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many lines were not understood, by reason."""


def read_block(data: bytes, first: int, *, cut: bool) -> LineBlock:
    """The lines of whole text lines; `first` is the number of the first one.

    `cut`: the last line is the file's last and has no line end: it may be half written.
    """
    table = _at_once(data)
    if table is None:
        return _one_by_one(data, first, cut=cut)
    return LineBlock(table, range(first, first + len(table)))


def _at_once(data: bytes) -> pa.Table | None:
    """All lines, or None if one of them needs to be looked at."""
    schema = _schema_of(data)
    if schema is None:
        return None
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = arrow_json.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1 << 16))
    try:
        table = arrow_json.read_json(io.BytesIO(data), read_options=reading, parse_options=options)
    except pa.ArrowInvalid:
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if len(table) != lines or not _in_form(table):
        return None
    return table.cast(LINES)


def _schema_of(data: bytes) -> pa.Schema | None:
    """Whether processes, keys and values are texts or numbers: as the block's first lines have it.

    A block in which that changes is read line by line.
    """
    kinds = {"process": _TEXT, "key": _TEXT, "value": _TEXT}
    for line in data[: 1 << 16].split(b"\n")[:200]:
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(parsed, dict):
            return None
        items = [
            parsed,
            *(r for name in ("sent", "polled", "committed") for r in _list(parsed, name)),
        ]
        for item in items:
            for name in kinds:
                if type(item.get(name)) is int:
                    kinds[name] = pa.int64()
    return _schema(kinds["process"], kinds["key"], kinds["value"])


def _list(parsed: dict[str, object], name: str) -> Iterator[dict[str, object]]:
    items = parsed.get(name)
    yield from (item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


_NEEDED = {"poll": "polled", "fetch": "fetched"}
"""By operation, the list that its line needs if it went well, if only as []: one with a misspelled
name would be none. Sends and commits need none here: the line of their beginning may have it.
"""


def _in_form(table: pa.Table) -> bool:
    """Whether each line has what it needs, which Arrow does not check."""
    for name in ("process", "type", "f"):
        if table.column(name).null_count:
            return False
    if not pc.all(pc.is_in(table.column("type"), value_set=pa.array(TYPES))).as_py():
        return False
    for name in ("sent", "polled", "committed", "fetched"):
        records = pc.list_flatten(table.column(name))
        if records.null_count or pc.struct_field(records, "key").null_count:
            return False
        offsets = pc.struct_field(records, "offset")
        if name in {"committed", "fetched", "polled"} and offsets.null_count:
            return False
        lowest = pc.min(offsets).as_py()
        if lowest is not None and lowest < 0:
            return False
    ok = pc.equal(table.column("type"), "ok")
    for name, listed in _NEEDED.items():
        empty = pc.and_(pc.equal(table.column("f"), name), table.column(listed).is_null())
        if pc.any(pc.and_(ok, empty)).as_py():
            return False
    return not any(pc.list_flatten(table.column(name)).null_count for name in ("assigned", "moved"))


# --- line by line --------------------------------------------------------------------------------


def _one_by_one(data: bytes, first: int, *, cut: bool) -> LineBlock:
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    rows: list[dict[str, object]] = []
    numbers: list[int] = []
    bad: list[BadLine] = []
    reasons: Counter[str] = Counter()
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            operation = _understood(load_json(line))
        except (msgspec.ValidationError, DataError) as error:
            last = cut and place == len(lines) - 1
            why = "the file ends amid it" if last else str(error)
            reasons[why] += 1
            bad.append(BadLine(first + place, why, last))
            continue
        rows.append(as_row(operation))
        numbers.append(first + place)
    table = pa.Table.from_pylist(rows, LINES)
    return LineBlock(table, numbers, tuple(bad), dict(reasons))


def _understood(line: object) -> LoggedOperation:
    """The operation of a line. ValidationError for one that lacks what it needs."""
    operation = convert(line, LoggedOperation)
    needed = _NEEDED.get(operation.f) if operation.type == "ok" else None
    if needed is not None and getattr(operation, needed) is None:
        raise msgspec.ValidationError(
            f"Object missing required field `{needed}` of a {operation.f} that is ok"
        )
    return operation


def as_row(operation: LoggedOperation) -> dict[str, object]:
    """The operation as a row of `LINES`."""
    row: dict[str, object] = {"process": str(operation.process)}
    for name in ("type", "f", "time", "start", "group"):
        row[name] = getattr(operation, name)
    for name in ("sent", "polled", "committed", "fetched"):
        items = getattr(operation, name)
        row[name] = None if items is None else [_struct(item) for item in items]
    for name in ("assigned", "moved"):
        keys = getattr(operation, name)
        row[name] = None if keys is None else [str(key) for key in keys]
    return row


def _struct(item: SentRecord | LoggedRead | LoggedPosition) -> dict[str, object]:
    struct: dict[str, object] = {"key": str(item.key), "offset": item.offset}
    if not isinstance(item, LoggedPosition):
        struct["value"] = None if item.value is None else str(item.value)
    return struct
