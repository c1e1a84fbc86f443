"""The tables that the files of an incident are read into, and lazy access to them.

Each table is a folder of Parquet files, one per part of the reading, which any other tool can
query as well. Times are milliseconds since 1970 in UTC, -1 where the file says so itself. Paths
are relative to the folder that was named for the broker, unless a table says otherwise, and bytes
that are not UTF-8 are written as `\\xNN`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from conformance.errors import DataError

_TEXT, _BOOL = pa.string(), pa.bool_()
_I8, _I16, _I32, _I64, _U32 = pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32()


def _schema(*columns: tuple[str, pa.DataType], nullable: Sequence[str] = ()) -> pa.Schema:
    return pa.schema([pa.field(name, kind, name in nullable) for name, kind in columns])


FILES = _schema(
    ("broker", _TEXT),
    ("directory", _TEXT),
    ("path", _TEXT),
    ("kind", _TEXT),
    ("size", _I64),
    ("mtime", _I64),
    ("status", _TEXT),
    ("reason", _TEXT),
)
"""Every file that was found, once: `status` is read, skipped (with a reason) or error.

`directory` is the log directory. `path` is relative to the broker's folder; a server log's is
absolute. `kind`: segment, index, timeindex, txnindex, checkpoint,
identity, producer-snapshot, metadata-snapshot, server-log, other.
"""

BATCHES = _schema(
    ("broker", _TEXT),
    ("directory", _TEXT),
    ("topic", _TEXT),
    ("partition", _I32),
    ("state", _TEXT),
    ("segment", _TEXT),
    ("position", _I64),
    ("size", _I32),
    ("magic", _I8),
    ("base_offset", _I64),
    ("last_offset", _I64),
    ("leader_epoch", _I32),
    ("stored_crc", _U32),
    ("crc_ok", _BOOL),
    ("attributes", _I16),
    ("producer_id", _I64),
    ("producer_epoch", _I16),
    ("base_sequence", _I32),
    ("base_timestamp", _I64),
    ("max_timestamp", _I64),
    ("records", _I32),
    nullable=("crc_ok",),
)
"""Every batch of every segment, by its header; in a segment in the order of positions.

`state` is '' for a partition's own log; delete, future or stray by the folder's name; deleted,
cleaned or swap by the file's. `segment` is the file's path. `size` is the whole batch in bytes.
`crc_ok` is null if checksums were not verified. A checksum covers neither the base offset nor the
leader epoch. Magic 0 and 1 have leader epoch -1 and no producer; `records` is 1 and `last_offset`
is `base_offset` there (a compressed wrapper message carries its last offset).
"""

DAMAGE = _schema(
    ("broker", _TEXT),
    ("path", _TEXT),
    ("topic", _TEXT),
    ("partition", _I32),
    ("position", _I64),
    ("offset", _I64),
    ("kind", _TEXT),
    ("detail", _TEXT),
    nullable=("topic", "partition", "position", "offset"),
)
"""What is wrong within one file (`DAMAGE_KINDS`); what only shows across files is judged later."""

DAMAGE_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "checksum": "a batch's stored CRC is not that of its bytes",
        "torn-tail": "the file ends within a batch",
        "zero-tail": "zeros from here to the file's end (a preallocated or unsynced tail)",
        "unreadable": "bytes that are no batch; reading went on behind them, or could not",
        "header": "a batch whose header contradicts itself (offsets, record count)",
        "before-segment": "a batch with an offset below the segment's base offset",
        "records": "a batch whose records cannot be decoded",
        "unknown-record": "a record whose type or version the schemas do not know",
        "index-position": "an entry of .index that points at no batch",
        "index-offset": "an entry of .index whose offset is not that of the batch it points at",
        "index-order": "entries of .index that do not grow",
        "index-beyond-end": "an entry of .index behind the end of the segment",
        "index-stale": "wrong entries at the end of an index that was not trimmed: left behind by "
        "a truncation or a crash, and harmless",
        "timeindex-timestamp": "an entry of .timeindex that no batch bears out",
        "timeindex-order": "entries of .timeindex that do not grow",
        "timeindex-beyond-end": "an entry of .timeindex behind the segment's last offset",
        "txnindex": "an entry of .txnindex that cannot be, or that no abort marker bears out",
        "txnindex-missing": "an aborted transaction that .txnindex does not have: consumers with "
        "read_committed would read its records",
        "index-size": "an index file whose size is no multiple of its entries'",
        "checkpoint": "a checkpoint file that Kafka would not read",
        "epoch-order": "epochs or start offsets of leader-epoch-checkpoint that do not grow",
        "identity": "an identity file that cannot be read",
        "producer-snapshot": "a producer snapshot that Kafka would not read",
    }
)

CHECKPOINTS = _schema(
    ("broker", _TEXT),
    ("directory", _TEXT),
    ("kind", _TEXT),
    ("topic", _TEXT),
    ("partition", _I32),
    ("epoch", _I32),
    ("offset", _I64),
    ("state", _TEXT),
    ("mtime", _I64),
    nullable=("epoch",),
)
"""Entries of checkpoint files, in the file's order.

`kind`: replication-offset (high watermark), recovery-point, log-start, cleaner (first dirty
offset), leader-epoch (`epoch` starts at `offset`). `state` is that of the partition's folder.
"""

IDENTITIES = _schema(
    ("broker", _TEXT),
    ("directory", _TEXT),
    ("kind", _TEXT),
    ("path", _TEXT),
    ("key", _TEXT),
    ("value", _TEXT),
)
"""Lines of meta.properties (node.id, cluster.id, directory.id), partition.metadata (topic_id),
fields of quorum-state (leaderEpoch, votedId, currentVoters as JSON), of clean-shutdown, and
`tiered` (key: the topic, value: remote.storage.enable) as the metadata log has it."""

METADATA = _schema(
    ("broker", _TEXT),
    ("offset", _I64),
    ("epoch", _I32),
    ("timestamp", _I64),
    ("type", _TEXT),
    ("version", _I16),
    ("body", _TEXT),
    ("committed", _BOOL),
    ("source", _TEXT),
    ("path", _TEXT),
    ("sequence", _I64),
    nullable=("committed",),
)
"""Records of every copy of `__cluster_metadata`, by copy and offset; `body` is JSON.

`source` is log or snapshot; a snapshot's records have the offset of its last record (its end
offset - 1); `sequence` is a record's place in its file. `committed` is null where too few of the
voters' copies are here to tell. Control records have the types LeaderChangeMessage,
SnapshotHeaderRecord, SnapshotFooterRecord, KRaftVersionRecord and VotersRecord.
"""

GROUP_RECORDS = _schema(
    ("broker", _TEXT),
    ("partition", _I32),
    ("offset", _I64),
    ("batch", _I64),
    ("epoch", _I32),
    ("timestamp", _I64),
    ("type", _TEXT),
    ("key", _TEXT),
    ("value", _TEXT),
    ("version", _I16),
    ("state", _TEXT),
    ("directory", _TEXT),
    nullable=("value", "version"),
)
"""Records of every copy of `__consumer_offsets`, both protocols; `value` null: a tombstone.

`batch` is the base offset of the record's batch. `type` is the key's schema: OffsetCommitKey,
GroupMetadataKey, ConsumerGroupMetadataKey, ... In values of classic groups of protocol type
`consumer`, subscription and assignment are decoded.
"""

PRODUCERS = _schema(
    ("broker", _TEXT),
    ("topic", _TEXT),
    ("partition", _I32),
    ("state", _TEXT),
    ("snapshot_offset", _I64),
    ("producer_id", _I64),
    ("epoch", _I16),
    ("last_sequence", _I32),
    ("last_offset", _I64),
    ("offset_delta", _I32),
    ("timestamp", _I64),
    ("coordinator_epoch", _I32),
    ("current_txn_first_offset", _I64),
)
"""Entries of producer snapshots (`.snapshot`)."""

LOG_LINES = _schema(
    ("broker", _TEXT),
    ("path", _TEXT),
    ("line", _I64),
    ("time", _I64),
    ("level", _TEXT),
    ("kind", _TEXT),
    ("topic", _TEXT),
    ("partition", _I32),
    ("fields", _TEXT),
    ("text", _TEXT),
    nullable=("time", "topic", "partition"),
)
"""Lines of server.log, state-change.log and controller.log that tell of replication or groups.

`kind` and the keys of `fields` (JSON) are those of reading/log_patterns.toml; of the line's prefix
in brackets there are broker (its node id), dir, leaderId and the like. `path` is absolute. `time`
is by the zone that the line states, or else by the one that the command was given.
"""

SERVER_LOGS = _schema(
    ("broker", _TEXT),
    ("path", _TEXT),
    ("layout", _TEXT),
    ("lines", _I64),
    ("understood", _I64),
    ("other", _I64),
    ("unreadable", _I64),
    ("undated", _I64),
    ("first_unreadable", _I64),
    ("sample", _TEXT),
)
"""Every server log that was read: what became of its lines.

`layout` is the one of most lines (reading/log_layouts.toml, or as the user declared it), '' where
no layout reads any. A line is understood (a row of `log_lines`, if the filters take it), other (of
a known layout, but of no wording; also what goes on with the line before it) or unreadable: the
three add up to `lines`. `undated` are understood lines without a date. `sample` begins the first
unreadable line, `first_unreadable` is its number, 0 if there is none.
"""

TABLES: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "files": FILES,
        "batches": BATCHES,
        "damage": DAMAGE,
        "checkpoints": CHECKPOINTS,
        "identities": IDENTITIES,
        "metadata": METADATA,
        "group_records": GROUP_RECORDS,
        "producers": PRODUCERS,
        "log_lines": LOG_LINES,
        "server_logs": SERVER_LOGS,
    }
)

MANIFEST = "evidence.json"


def about(keys: Collection[tuple[str, int]]) -> ds.Expression:
    """Rows of tables with topic and partition that may be about one of these: look again."""
    topics = pa.array(sorted({key[0] for key in keys}), _TEXT)
    partitions = pa.array(sorted({key[1] for key in keys}), _I32)
    return ds.field("topic").isin(topics) & ds.field("partition").isin(partitions)


def part_number(path: Path) -> int:
    """The part of the reading that a table's file is of."""
    return int(path.stem.removeprefix("part-"))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The tables below a folder, each read when it is asked for."""

    folder: Path
    manifest: Mapping[str, Any]
    """What was read: brokers, filters, whether checksums were verified, counts."""
    parts: frozenset[int] | None = None
    """Only these parts of the reading; None: all."""
    aside: frozenset[str] = frozenset()
    """Brokers whose rows are left out."""

    @classmethod
    def open(cls, folder: Path) -> Evidence:
        """The evidence that a reading has left whole. Raises DataError."""
        path = folder / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(
                f"{folder} holds no evidence, or its reading was not finished: there is no "
                f"{MANIFEST}. Run the same command again; it goes on where it was."
            ) from None
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
        return cls(folder, MappingProxyType(manifest))

    @property
    def brokers(self) -> tuple[str, ...]:
        """The brokers' names, in the order of the command line."""
        return tuple(name for name in self.manifest["brokers"] if name not in self.aside)

    def paths(self, name: str) -> list[Path]:
        """The table's Parquet files; parts in order, neighbouring partitions in one part."""
        every = sorted((self.folder / name).glob("part-*.parquet"))
        return [path for path in every if self.parts is None or part_number(path) in self.parts]

    def within(self, parts: Iterable[int]) -> Evidence:
        """The same evidence, as far as these parts of the reading hold it."""
        return replace(self, parts=frozenset(parts))

    def without(self, brokers: Iterable[str]) -> Evidence:
        """The same evidence, but for what is of these brokers."""
        return replace(self, aside=self.aside | frozenset(brokers))

    def dataset(self, name: str) -> ds.Dataset:
        """The table, to be scanned piece by piece."""
        paths = [str(path) for path in self.paths(name)]
        if not paths:
            return ds.dataset(TABLES[name].empty_table())
        table = ds.dataset(paths, schema=TABLES[name], format="parquet")
        if not self.aside:
            return table
        return table.filter(~ds.field("broker").isin(sorted(self.aside)))

    def table(
        self, name: str, columns: Sequence[str] | None = None, where: ds.Expression | None = None
    ) -> pa.Table:
        """The table in memory, or those columns and rows of it: not for batches without `where`."""
        chosen = None if columns is None else list(columns)
        return self.dataset(name).to_table(columns=chosen, filter=where)

    def rows(self, name: str, where: ds.Expression | None = None) -> Iterator[dict[str, Any]]:
        """The table row by row, a batch at a time in memory."""
        for batch in self.dataset(name).to_batches(filter=where):
            yield from batch.to_pylist()
