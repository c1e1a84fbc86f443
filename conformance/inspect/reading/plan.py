"""What will be read, in which part: decided once, kept in the output, so that a run can go on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.errors import DataError, UserError
from conformance.files import written_aside
from conformance.inspect.reading.folders import ListedFile
from conformance.inspect.reading.inputs import Inputs, shared_folder
from conformance.inspect.reading.logs import LOG, found_logs
from conformance.inspect.reading.names import INDEXES, FilePlace, is_segment, place_of
from conformance.inspect.reading.sources import listed, opened
from conformance.inspect.reading.texts import identity as identity_of

FORMAT = 3
"""Of the tables and of this plan: a run does not go on with those of another one."""
_PART_BYTES = 256 << 20
_PART_FILES = 3000
_NAME = "plan.parquet"
_SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("unit", pa.int64()),
        ("broker", pa.string()),
        ("root", pa.binary()),
        ("path", pa.binary()),
        ("size", pa.int64()),
        ("mtime", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("is_log", pa.bool_()),
        ("below", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Item:
    """A file and what it is."""

    file: ListedFile
    place: FilePlace


@dataclass(frozen=True, slots=True)
class Unit:
    """Files that are read together: a segment with its indexes; else a file alone."""

    items: tuple[Item, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(item.file.size for item in self.items)


@dataclass(frozen=True, slots=True)
class ReadingPart:
    """Units that are read in one go and count together."""

    number: int
    units: tuple[Unit, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(unit.size for unit in self.units)


def identity(inputs: Inputs, schemas: str) -> dict[str, Any]:
    """What makes two readings the same: written beside the plan, compared when a run goes on."""
    filters = asdict(inputs.filters)
    filters["topics"] = sorted(inputs.filters.topics)
    filters["partitions"] = sorted(inputs.filters.partitions)
    return {
        "format": FORMAT,
        "brokers": {name: list(folders) for name, folders in inputs.brokers.items()},
        "logs": list(inputs.logs),
        "filters": filters,
        "verify": inputs.verify,
        "zone": inputs.zone,
        "layouts": list(inputs.layouts),
        "schemas": schemas,
    }


def planned(inputs: Inputs, schemas: str, folder: Path) -> Iterator[ReadingPart]:
    """The parts of a reading, from the plan in `folder`; made and kept there if it has none.

    Raises UserError when the folder holds the reading of something else.
    """
    mark = folder / "inputs.json"
    wanted = identity(inputs, schemas)
    if mark.exists():
        _compare(mark, wanted)
    else:
        items = list(_items(inputs))
        _check_some(items, inputs)
        parts = _parts(_units(items))
        with written_aside(folder / _NAME) as path:
            pq.write_table(_table(parts), path, compression="zstd")
        with written_aside(mark) as path:
            path.write_text(json.dumps(wanted, indent=1, sort_keys=True), encoding="utf-8")
    return _kept(folder / _NAME)


def _compare(mark: Path, wanted: Mapping[str, Any]) -> None:
    try:
        there = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{mark} cannot be read: {error}. Remove {mark.parent}.") from error
    if there != json.loads(json.dumps(wanted)):
        differing = sorted(key for key in wanted if there.get(key) != wanted[key])
        raise UserError(
            f"{mark.parent} holds what was read of something else ({', '.join(differing)} differ). "
            "Name another folder with -o, or remove that one."
        )


def _items(inputs: Inputs) -> Iterator[Item]:
    nodes: dict[int, str] = {}
    for broker, folders in inputs.brokers.items():
        shared = shared_folder(folders)
        for folder in folders:
            below = folder.removeprefix(shared).strip("/")
            for file in (replace(each, below=below) for each in listed(broker, folder)):
                place = place_of(file.named)
                if os.path.basename(file.path) == "meta.properties" and not file.status:  # noqa: PTH119
                    nodes |= dict.fromkeys(_node_ids(file), broker)
                yield Item(_filtered(file, place, inputs), place)
    for file in found_logs(inputs, nodes):
        yield Item(file, LOG)


def _check_some(items: Iterable[Item], inputs: Inputs) -> None:
    """See that there is something of a broker to be read. Raises UserError."""
    bare: set[str] = set()
    some = False
    for item in items:
        some = some or item.place.kind != "other" or item.file.status == "error"
        if is_segment(item.file.path):
            bare.add(f"{item.file.broker}={item.file.root}")
    for folder in sorted(bare):
        raise UserError(
            f"{folder} is the folder of one partition: segments lie directly in it. Name the log "
            "directory above it (log.dirs), so that the checkpoints beside it are read as well."
        )
    if not some:
        folders = (f"{name}={folder}" for name, own in inputs.brokers.items() for folder in own)
        raise UserError(
            f"There is nothing of a broker in {', '.join(folders)}: no segment, checkpoint or "
            "meta.properties. Name the copy of the log directory (log.dirs) of each broker, or a "
            "folder above it."
        )


def _node_ids(file: ListedFile) -> list[int]:
    """The node id in a meta.properties, if that can be read."""
    try:
        with opened(file) as data:
            pairs = identity_of("meta.properties", bytes(data))
    except DataError:
        return []
    return [
        int(value) for key, value in pairs if key in ("node.id", "broker.id") and value.isdecimal()
    ]


def _filtered(file: ListedFile, place: FilePlace, inputs: Inputs) -> ListedFile:
    """The file with the reason why it is not read, if there is one."""
    if file.status:
        return file
    if place.why_not:
        return replace(file, status="skipped", reason=place.why_not)
    if not inputs.filters.takes(place.topic, place.partition):
        return replace(file, status="skipped", reason="not of the topics and partitions asked for")
    return file


def _order(item: Item) -> tuple[object, ...]:
    """Replicas of a partition side by side, its segments in order."""
    place, file = item.place, item.file
    kind = "segment" if place.kind in _TOGETHER else place.kind
    return (
        place.topic or "",
        -1 if place.partition is None else place.partition,
        file.broker,
        os.fsencode(file.root),
        place.directory,
        os.fsencode(os.path.dirname(file.path)),  # noqa: PTH120 - no path of this machine
        kind,
        place.state,
        place.base_offset if kind == "segment" else 0,
        os.fsencode(file.path) if kind != "segment" else b"",
    )


_TOGETHER = ("segment", *INDEXES)


def _units(items: Iterable[Item]) -> Iterator[Unit]:
    for _, together in groupby(sorted(items, key=_order), key=_order):
        yield Unit(tuple(together))


def _parts(units: Iterable[Unit]) -> Iterator[ReadingPart]:
    parts: list[Unit] = []
    number = size = files = 0
    for unit in units:
        weight = sum(0 if item.file.status else item.file.size for item in unit.items)
        if parts and (size + weight > _PART_BYTES or files >= _PART_FILES):
            yield ReadingPart(number, tuple(parts))
            number, parts, size, files = number + 1, [], 0, 0
        parts.append(unit)
        size, files = size + weight, files + len(unit.items)
    yield ReadingPart(number, tuple(parts))


def _table(parts: Iterable[ReadingPart]) -> pa.Table:
    rows = [
        {
            "part": part.number,
            "unit": number,
            "broker": item.file.broker,
            "root": os.fsencode(item.file.root),
            "path": os.fsencode(item.file.path),
            "size": item.file.size,
            "mtime": item.file.mtime,
            "status": item.file.status,
            "reason": item.file.reason,
            "is_log": item.file.is_log,
            "below": os.fsencode(item.file.below),
        }
        for part in parts
        for number, unit in enumerate(part.units)
        for item in unit.items
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def only(folder: Path, number: int) -> ReadingPart:
    """One part of the plan that is kept in `folder`."""
    (part,) = _grouped(pq.read_table(folder / _NAME, filters=[("part", "=", number)]).to_batches())
    return part


def _kept(path: Path) -> Iterator[ReadingPart]:
    """The parts as they were planned."""
    return _grouped(pq.ParquetFile(path).iter_batches())


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[ReadingPart]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for number, of_part in groupby(rows, key=lambda row: int(row["part"])):
        units = groupby(of_part, key=lambda row: int(row["unit"]))
        yield ReadingPart(number, tuple(Unit(tuple(map(_item, of_unit))) for _, of_unit in units))


def _item(row: Mapping[str, Any]) -> Item:
    file = ListedFile(
        row["broker"],
        os.fsdecode(row["root"]),
        os.fsdecode(row["path"]),
        row["size"],
        row["mtime"],
        row["status"],
        row["reason"],
        row["is_log"],
        os.fsdecode(row["below"]),
    )
    return Item(file, LOG if file.is_log else place_of(file.named))


def schemas_identity(jars: Sequence[Path]) -> str:
    """A short text that differs when the jars with the schemas do."""
    names = "\n".join(sorted(jar.name for jar in jars))
    return hashlib.sha256(names.encode()).hexdigest()[:16]
