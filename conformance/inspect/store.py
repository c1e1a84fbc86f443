"""Where tables are written: one Parquet file per table and part, the table `files` last.

A part counts if its `files` is there. So a run that was killed leaves parts that count and files
that do not, and the next run removes these and reads those parts that are missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.files import space_for
from conformance.inspect.evidence import METADATA, TABLES, part_number

_ROWS = 1 << 17
"""Rows of a row group, about; also what is kept in memory of a table."""
_LAST = "files"
METADATA_COPIES = "metadata_copies"
"""Records of the metadata log before it is known which of them were committed."""
_SCHEMAS = {**TABLES, METADATA_COPIES: METADATA}


def part_path(folder: Path, table: str, part: int) -> Path:
    """The file of a part in a table."""
    return folder / table / f"part-{part:06d}.parquet"


def finished(folder: Path) -> set[int]:
    """The parts that count."""
    return {part_number(path) for path in (folder / _LAST).glob("part-*.parquet")}


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed run has left of parts that do not count."""
    done = finished(folder)
    for table in _SCHEMAS:
        for path in (folder / table).glob("part-*.parquet"):
            if part_number(path) not in done:
                path.unlink()
        for path in (folder / table).glob(".part-*.tmp"):
            path.unlink()


class PartWriter:
    """Writes one part's rows; at the end of the `with` block it counts, or nothing is left."""

    def __init__(self, folder: Path, part: int) -> None:
        self._folder = folder
        self._part = part
        self._tables: dict[str, _ParquetTable] = {}

    def row(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row; columns that are left out are null."""
        self._of(table).row(row)

    def batch(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows; strings may come as dictionaries."""
        self._of(table).batch(batch)

    def _of(self, table: str) -> _ParquetTable:
        if table not in self._tables:
            path = part_path(self._folder, table, self._part)
            self._tables[table] = _ParquetTable(path, _SCHEMAS[table])
        return self._tables[table]

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            for table in self._tables.values():
                table.discard()
            return
        self._of(_LAST)  # the mark that the part counts is written even if it is empty
        for table in self._tables.values():
            table.close()
        for name in sorted(self._tables, key=lambda name: name == _LAST):
            self._tables[name].commit()


class _ParquetTable:
    """One Parquet file that is written aside."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[Mapping[str, Any]] = []
        self._batches: list[pa.RecordBatch] = []
        self._row_count = 0

    def row(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= 10_000:
            self._take_rows()

    def _take_rows(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self.batch(pa.RecordBatch.from_pylist(rows, schema=self._schema))

    def batch(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._row_count += batch.num_rows
        if self._row_count >= _ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._batches and self._writer is not None:
            return
        batches, self._batches, self._row_count = self._batches, [], 0
        schema = batches[0].schema if batches else self._schema
        table = pa.Table.from_batches(batches, schema=schema).unify_dictionaries()
        with space_for(self._path):
            if self._writer is None:
                self._writer = _writer(self._aside, schema)
            self._writer.write_table(table, row_group_size=table.num_rows or 1)

    def close(self) -> None:
        self._take_rows()
        self._flush()
        assert self._writer is not None
        with space_for(self._path):
            self._writer.close()

    def commit(self) -> None:
        self._aside.replace(self._path)

    def discard(self) -> None:
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()
        self._aside.unlink(missing_ok=True)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Dictionaries for strings; numbers as differences, since most of them grow steadily."""
    texts, numbers = [], []
    for field in schema:
        if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type):
            texts.append(field.name)
        elif field.type in (pa.int32(), pa.int64()):
            numbers.append(field.name)
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=texts,
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    )
