"""Rows sorted out into parts on disk: whoever needs a part reads it from each file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from conformance.history.arrays import Array, numbers_of

_COMPRESSION = "lz4"
"""Most columns repeat themselves: rows take a fraction of the disk, and little time."""


def write_parts(rows: pa.Table, part: Array, parts: int, path: Path) -> None:
    """The rows in a file, a batch for each part; `part` is that of each row."""
    rows = rows.unify_dictionaries().take(pa.array(np.argsort(part, kind="stable")))
    rows = rows.combine_chunks()
    ends = np.cumsum(np.bincount(part, minlength=parts))
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, rows.schema, options=options) as writer,
    ):
        begin = 0
        for end in ends:
            batches = rows.slice(begin, int(end) - begin).to_batches()
            writer.write_batch(batches[0] if batches else _empty(rows))
            begin = int(end)


def _empty(rows: pa.Table) -> pa.RecordBatch:
    """No rows, with the dictionaries of the file: it has one of each column.

    An empty slice would not do: its buffers are written whole, a megabyte for each empty part.
    """
    columns = [_none_of(column) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _none_of(column: pa.ChunkedArray) -> pa.Array:
    none = pa.array([], column.type)
    if not column.num_chunks or not pa.types.is_dictionary(column.type):
        return none
    return pa.DictionaryArray.from_arrays(none.indices, column.chunk(0).dictionary)


def read_part(paths: Iterable[Path], part: int) -> Iterator[pa.Table]:
    """A table for each file that has rows of a part; it is gone from memory with its last use."""
    for path in paths:
        with pa.memory_map(str(path)) as source:
            batch = pa.ipc.open_file(source).get_batch(part)
        if len(batch):
            yield pa.Table.from_batches([batch])


def together(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """All rows, in a piece."""
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries().combine_chunks()


def by_key(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each partition, in their order."""
    if not len(rows):
        return
    keys = rows.column("key").combine_chunks()
    codes = numbers_of(keys.indices)
    counts = np.bincount(codes)
    if np.count_nonzero(counts) > 1:
        rows = rows.take(pa.array(np.argsort(codes, kind="stable"))).combine_chunks()
    begin = 0
    for key, count in zip(keys.dictionary.to_pylist(), counts, strict=False):
        if count:
            yield key, rows.slice(begin, int(count)).combine_chunks()
        begin += int(count)


class SortedRows:
    """Rows that are added piece by piece and taken part by part: in memory if there is one part,
    else in files of about so many rows."""

    def __init__(self, schema: pa.Schema, parts: int, stem: Path, most: int) -> None:
        self.parts = parts
        self._schema, self._stem, self._most = schema, stem, most
        self._tables: list[pa.Table] = []
        self._part: list[Array] = []
        self._paths: list[Path] = []

    def add(self, rows: pa.Table, part: Array) -> None:
        """Rows, and the part that each belongs to."""
        if not len(rows):
            return
        self._tables.append(rows)
        self._part.append(part)
        if self.parts > 1 and sum(map(len, self._part)) >= self._most:
            self._write()

    def _write(self) -> None:
        path = self._stem.with_name(f"{self._stem.name}-{len(self._paths)}.arrow")
        rows = pa.concat_tables(self._tables)
        write_parts(rows, np.concatenate(self._part), self.parts, path)
        self._paths.append(path)
        self._tables, self._part = [], []

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows of each part; nothing is left afterwards."""
        if self.parts == 1:
            tables, self._tables = self._tables, []
            yield together(tables, self._schema)
            return
        if self._tables:
            self._write()
        for number in range(self.parts):
            yield together(read_part(self._paths, number), self._schema)
        for path in self._paths:
            path.unlink()
