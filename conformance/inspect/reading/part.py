"""Reads one part: each of its files once, into the rows that it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from conformance.errors import DataError
from conformance.inspect.reading import (
    headers,
    indexes,
    lines,
    records,
    segments,
    snapshots,
    streaming,
    texts,
)
from conformance.inspect.reading.folders import Buffer, ListedFile, UnreadableFile
from conformance.inspect.reading.headers import Positions
from conformance.inspect.reading.inputs import Filters, time_zone
from conformance.inspect.reading.layouts import layouts_of
from conformance.inspect.reading.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    EPOCH_CHECKPOINT,
    INDEXES,
    NO_SEGMENT,
)
from conformance.inspect.reading.plan import Item, ReadingPart, Unit
from conformance.inspect.reading.segments import Columns, Content, Damage, MappedSegment, Segment
from conformance.inspect.reading.sources import opened
from conformance.inspect.reading.topics import Decode, Row, group_rows, metadata_rows
from conformance.inspect.store import METADATA_COPIES, PartWriter
from conformance.kafka.schemas import Schemas


@dataclass(frozen=True, slots=True)
class ReadJob:
    """What a reader must know besides the files, in this process or another."""

    folder: Path
    filters: Filters
    verify: bool
    zone: str
    jars: tuple[Path, ...]
    """Jars of Kafka, for the schemas of records."""
    layouts: tuple[str, ...] = ()
    """How the server logs' lines are laid out, as the user declares it."""


@lru_cache(maxsize=1)
def _schemas(jars: tuple[Path, ...]) -> Schemas:
    return Schemas.of(jars)


def read_part(job: ReadJob, part: ReadingPart) -> None:
    """Read the files of a part and write its rows; afterwards the part counts."""
    with PartWriter(job.folder, part.number) as writer:
        for unit in part.units:
            _Reading(job, writer, unit).run()


@dataclass(slots=True)
class _Reading:
    """One unit on its way into the tables."""

    job: ReadJob
    writer: PartWriter
    unit: Unit
    outcomes: dict[ListedFile, tuple[str, str]] = field(default_factory=dict)

    def run(self) -> None:
        items = {item.place.kind: item for item in self.unit.items if not item.file.status}
        if "segment" in items:
            self._attempt(items["segment"], items)
        elif items and self.unit.items[0].place.kind in INDEXES:
            for item in items.values():
                self.outcomes[item.file] = ("skipped", NO_SEGMENT)
        else:
            for item in items.values():
                self._attempt(item, items)
        for item in self.unit.items:
            self._account(item)

    def _attempt(self, item: Item, items: Mapping[str, Item]) -> None:
        try:
            with opened(item.file) as data:
                self.outcomes[item.file] = ("read", "")
                self._read(item, data, items)
        except UnreadableFile as refused:
            self.outcomes[item.file] = ("error", str(refused))
            for other in items.values():
                self.outcomes.setdefault(other.file, ("error", "its segment could not be read"))

    def _read(self, item: Item, data: Buffer, items: Mapping[str, Item]) -> None:
        match item.place.kind:
            case "segment":
                self._segment(item, data, items)
            case "metadata-snapshot":
                self._metadata_snapshot(item, data)
            case "checkpoint":
                self._checkpoint(item, bytes(data[: texts.MAX_SIZE + 1]))
            case "identity":
                self._identity(item, bytes(data[: texts.MAX_SIZE + 1]))
            case "producer-snapshot":
                self._producers(item, bytes(data[: texts.MAX_SIZE + 1]))
            case "server-log":
                self._log(item, data)

    def _account(self, item: Item) -> None:
        status, reason = self.outcomes.get(item.file, (item.file.status, item.file.reason))
        self.writer.row(
            "files",
            {
                "broker": item.file.broker,
                "directory": item.place.directory,
                "path": item.file.shown,
                "kind": item.place.kind,
                "size": item.file.size,
                "mtime": item.file.mtime,
                "status": status,
                "reason": reason,
            },
        )

    def _damage(self, item: Item) -> Damage:
        def tell(position: int | None, offset: int | None, kind: str, detail: str) -> None:
            self.writer.row(
                "damage",
                {
                    "broker": item.file.broker,
                    "path": item.file.shown,
                    "topic": item.place.topic,
                    "partition": item.place.partition,
                    "position": position,
                    "offset": offset,
                    "kind": kind,
                    "detail": detail,
                },
            )

        return tell

    # Segments

    def _segment(self, item: Item, data: Buffer, items: Mapping[str, Item]) -> None:
        with ExitStack() as stack:
            beside = {
                kind: entries
                for kind in INDEXES
                if kind in items and (entries := self._beside(items[kind], stack)) is not None
            }
            hints = indexes.hints(beside["index"]) if "index" in beside else None
            content = self._content(item, data, hints)
            gathered = indexes.ContentsGatherer(item.place.base_offset, len(data))
            self._batches(item, data, content, gathered)
            known = gathered.all(content.walk.positions)
            for kind, entries in beside.items():
                tell = self._damage(items[kind])
                indexes.check_size(entries, kind, tell)
                _CHECKS[kind](entries, known, tell)
            indexes.check_missing_aborts(
                beside.get("txnindex", b""), data, known, self._damage(item)
            )

    def _content(self, item: Item, data: Buffer, hints: Positions | None) -> Content:
        """Streamed if every byte is needed, and needed once; else mapped."""
        if self.job.verify and self._filters(item).all_time and self._decode(item) is None:
            segment = streaming.streamed(item.file, hints)
            if segment is not None:
                return segment
        return MappedSegment(data, headers.walk(data, hints))

    def _beside(self, item: Item, stack: ExitStack) -> Buffer | None:
        try:
            data = stack.enter_context(opened(item.file))
        except UnreadableFile as refused:
            self.outcomes[item.file] = ("error", str(refused))
            return None
        self.outcomes[item.file] = ("read", "")
        return data

    def _batches(
        self, item: Item, data: Buffer, content: Content, gathered: indexes.ContentsGatherer
    ) -> None:
        segment = Segment(item.file.broker, item.file.shown, item.place)
        tell, decode = self._damage(item), self._decode(item)
        asked = segments.touched(content, len(data), self._filters(item))
        for chunk in content.columns():
            gathered.note(chunk)
            # Logs are judged as a whole, so the headers of all batches are needed, whatever their
            # time; what costs, checksums and values, is left out where it was not asked for.
            for piece, within in chunk.split(asked):
                good = content.verified(piece) if within and self.job.verify else None
                self.writer.batch("batches", segments.rows(segment, piece, good))
                segments.tell_damage(item.place.base_offset, piece, good, tell)
                if within and decode is not None:
                    self._values(item, data, piece, good, decode)
        for stretch in content.walk.stretches:
            offset = segments.next_offset(data, content.walk, stretch.start, item.place.base_offset)
            tell(stretch.start, offset, stretch.kind, stretch.detail)

    def _values(
        self, item: Item, data: Buffer, chunk: Columns, good: Any, decode: tuple[str, Decode]
    ) -> None:
        table, decoder = decode
        filters = self._filters(item)
        for row in _decoded(data, chunk, good, decoder, self._damage(item)):
            if filters.in_time(row["timestamp"]):
                self.writer.row(table, row)

    def _filters(self, item: Item) -> Filters:
        """What holds of a group at a time was said before; of a partition, even afterwards."""
        if item.place.topic == CLUSTER_METADATA:
            return Filters()
        if item.place.topic == CONSUMER_OFFSETS:
            return replace(self.job.filters, since=None)
        return self.job.filters

    def _decode(self, item: Item) -> tuple[str, Decode] | None:
        """How values become rows, and of which table, if the topic's are evidence."""
        place, broker = item.place, item.file.broker
        if place.topic == CLUSTER_METADATA:
            schemas = _schemas(self.job.jars)
            return METADATA_COPIES, metadata_rows(schemas, broker, item.file.shown, place)
        if place.topic == CONSUMER_OFFSETS:
            return "group_records", group_rows(_schemas(self.job.jars), broker, place)
        return None

    def _metadata_snapshot(self, item: Item, data: Buffer) -> None:
        tell, decode = self._damage(item), self._decode(item)
        assert decode is not None
        content = MappedSegment(data, headers.walk(data))
        for chunk in content.columns():
            good = content.verified(chunk)
            segments.tell_damage(0, chunk, good, tell)
            self._values(item, data, chunk, good, decode)
        for stretch in content.walk.stretches:
            tell(stretch.start, None, stretch.kind, stretch.detail)

    # Small files

    def _checkpoint(self, item: Item, data: bytes) -> None:
        name = Path(item.file.path).name
        try:
            entries = texts.checkpoint(name, data)
        except DataError as error:
            self._damage(item)(None, None, "checkpoint", str(error))
            return
        for entry in entries:
            topic = item.place.topic if entry.topic is None else entry.topic
            partition = item.place.partition if entry.partition is None else entry.partition
            if self.job.filters.takes(topic, partition):
                self.writer.row(
                    "checkpoints",
                    {
                        "broker": item.file.broker,
                        "directory": item.place.directory,
                        "kind": entry.kind,
                        "topic": topic,
                        "partition": partition,
                        "epoch": entry.epoch,
                        "offset": entry.offset,
                        "state": item.place.state,
                        "mtime": item.file.mtime,
                    },
                )
        if name == EPOCH_CHECKPOINT:
            for offset, detail in texts.disorder(entries):
                self._damage(item)(None, offset, "epoch-order", detail)

    def _identity(self, item: Item, data: bytes) -> None:
        name = Path(item.file.path).name
        try:
            pairs = texts.identity(name, data)
        except DataError as error:
            self._damage(item)(None, None, "identity", str(error))
            return
        for key, value in pairs:
            self.writer.row(
                "identities",
                {
                    "broker": item.file.broker,
                    "directory": item.place.directory,
                    "kind": texts.identity_kind(name),
                    "path": item.file.shown,
                    "key": key,
                    "value": value,
                },
            )

    def _producers(self, item: Item, data: bytes) -> None:
        try:
            producers = snapshots.producers(data)
        except DataError as error:
            self._damage(item)(None, item.place.base_offset, "producer-snapshot", str(error))
            return
        identity = {
            "broker": item.file.broker,
            "topic": item.place.topic,
            "partition": item.place.partition,
            "state": item.place.state,
            "snapshot_offset": item.place.base_offset,
        }
        for entry in producers:
            self.writer.row("producers", identity | entry)

    def _log(self, item: Item, data: Buffer) -> None:
        zone, layouts, tally = (
            time_zone(self.job.zone),
            layouts_of(self.job.layouts),
            lines.LineTally(),
        )
        identity = {"broker": item.file.broker, "path": item.file.shown}
        try:
            for row in lines.rows(data, zone, self.job.filters, layouts, tally):
                self.writer.row("log_lines", identity | row)
        except DataError as error:
            self.outcomes[item.file] = ("error", str(error))
        self.writer.row("server_logs", identity | tally.row())


_CHECKS = {
    "index": indexes.check_offsets,
    "timeindex": indexes.check_times,
    "txnindex": indexes.check_aborts,
}


_FOR_VALUES = (
    "position",
    "size",
    "magic",
    "base_offset",
    "leader_epoch",
    "attributes",
    "base_timestamp",
    "records",
)


def _decoded(
    data: Buffer, chunk: Columns, good: Any, decode: Decode, tell: Damage
) -> Iterator[Row]:
    """The rows of the records of all batches whose bytes can be trusted."""
    lists = {name: chunk[name].tolist() for name in _FOR_VALUES}
    for row in range(len(chunk)):
        if good is not None and not good[row]:
            continue
        header = {name: values[row] for name, values in lists.items()}
        yield from _of_batch(data, header, decode, tell)


def _of_batch(
    data: Buffer, header: Mapping[str, int], decode: Decode, tell: Damage
) -> Iterator[Row]:
    position, offset = header["position"], header["base_offset"]
    if header["magic"] != 2:
        tell(position, offset, "records", f"message format v{header['magic']} is not decoded")
        return
    batch = records.BatchHeader(
        offset, header["base_timestamp"], header["attributes"], header["records"]
    )
    try:
        log_records = records.records(batch, data[position : position + header["size"]])
        yield from _rows(log_records, header, batch.is_control, decode, tell)
    except DataError as error:
        tell(position, offset, "records", str(error))


def _rows(
    log_records: Iterable[records.LogRecord],
    header: Mapping[str, int],
    control: bool,
    decode: Decode,
    tell: Damage,
) -> Iterator[Row]:
    for record in log_records:
        try:
            row = decode(header, control, record)
        except DataError as error:
            tell(header["position"], record.offset, "unknown-record", str(error))
            continue
        if row is not None:
            yield row
