"""Server logs into rows: the lines that tell of replication, groups and damage.

The wordings are data (log_patterns.toml): Kafka neither documents its log lines nor keeps them.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import lru_cache
from importlib import resources
from typing import Any

from conformance.errors import DataError
from conformance.inspect.reading.folders import Buffer
from conformance.inspect.reading.inputs import Filters
from conformance.inspect.reading.layouts import Layout, ParsedLine
from conformance.inspect.reading.recognition import ReadLine, read_lines

_MAX_LINE = 1 << 20
"""Bytes of a line that are looked at; a longer one is cut there."""
_MAX_TEXT = 2000
_MAX_SAMPLE = 160
_GZIP = b"\x1f\x8b"
_LISTS = frozenset({"isr", "isr_before", "adding", "removing"})
_PREFIX = re.compile(
    r"\[(?P<inside>(?![Gg]roup(?:Id)? )[^\[\]]*)\][:,]? "
    r"|Partition (?P<partition>\[\S+,\d+\]) on broker (?P<broker>\d+): "
)
"""What the object that logs says of itself; Partition has had brackets around it since 1.0."""
_PAIR = re.compile(r"(\w+)=([^,\s]+)")
_PARTITION = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d{1,9})"
    r"|\[(?P<old_topic>[a-zA-Z0-9._-]+),(?P<old_partition>\d{1,9})\]"
)
"""`t-0`; up to 0.11 also `[t,0]`."""
_FIRST_WORD = re.compile(r"(Partition|LeaderEpochCache|Broker|Log)\s+(\S+)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording of what a line may tell."""

    kind: str
    versions: str
    level: str
    words: str
    regex: re.Pattern[str]


@lru_cache(maxsize=1)
def patterns() -> tuple[Pattern, ...]:
    """The table of wordings."""
    text = resources.files(__package__).joinpath("log_patterns.toml").read_text("utf-8")
    return tuple(
        Pattern(
            entry["kind"],
            entry["versions"],
            entry["level"],
            entry["words"],
            re.compile(entry["regex"]),
        )
        for entry in tomllib.loads(text)["pattern"]
    )


@lru_cache(maxsize=1)
def _by_words() -> Mapping[str, tuple[Pattern, ...]]:
    by_words: dict[str, tuple[Pattern, ...]] = {}
    for pattern in patterns():
        by_words[pattern.words] = (*by_words.get(pattern.words, ()), pattern)
    return by_words


@lru_cache(maxsize=1)
def _any_words() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, _by_words())))


@dataclass(slots=True)
class LineTally:
    """What became of a log's lines: a row of the table `server_logs`, without broker and path."""

    lines: int = 0
    understood: int = 0
    """Lines that say something which a wording knows, whatever the filters take of them."""
    other: int = 0
    """Lines of a known layout that say nothing to us; lines that go on with one before them."""
    unreadable: int = 0
    """Lines that no layout reads."""
    undated: int = 0
    """Understood lines without a date."""
    first_unreadable: int = 0
    """Number of the first unreadable line; 0: there is none."""
    sample: str = ""
    """The beginning of that line."""
    layouts: Counter[str] = field(default_factory=Counter)

    @property
    def layout(self) -> str:
        """The layout of most lines; '' where no layout reads any."""
        return max(self.layouts, key=self.layouts.__getitem__, default="")

    def row(self) -> dict[str, Any]:
        """The tally as the table has it."""
        return {
            "layout": self.layout,
            "lines": self.lines,
            "understood": self.understood,
            "other": self.other,
            "unreadable": self.unreadable,
            "undated": self.undated,
            "first_unreadable": self.first_unreadable,
            "sample": self.sample,
        }

    def note(self, line: ReadLine) -> None:
        """Count a line that tells nothing that a wording knows."""
        if line.entry is not None or line.continues:
            self.other += 1
            return
        self.unreadable += 1
        if not self.first_unreadable:
            self.first_unreadable, self.sample = line.number, line.text[:_MAX_SAMPLE]


def rows(
    data: Buffer, zone: tzinfo, filters: Filters, layouts: Sequence[Layout], tally: LineTally
) -> Iterator[dict[str, Any]]:
    """The rows of a log's lines, without broker and path; every line is counted in `tally`.

    Raises DataError (a damaged archive).
    """
    for line in read_lines(text_lines(data), layouts):
        tally.lines += 1
        row = None if line.entry is None else _row(line.entry, zone)
        if line.entry is not None:
            tally.layouts[line.entry.layout] += 1
        if row is None:
            tally.note(line)
            continue
        tally.understood += 1
        tally.undated += row["time"] is None
        if _wanted(row, filters):
            yield {"line": line.number, **row}


def text_lines(data: Buffer) -> Iterator[tuple[int, str]]:
    """The lines of a log with their numbers, decompressed. Raises DataError."""
    number = 0
    source = _decompressed(data)
    try:
        while line := source.readline(_MAX_LINE):
            number += 1
            yield number, line.removeprefix(codecs.BOM_UTF8).decode("utf-8", "backslashreplace")
            while len(line) == _MAX_LINE and not line.endswith(b"\n"):
                line = source.readline(_MAX_LINE)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"line {number + 1}: cannot be decompressed: {error}") from None


def head(data: Buffer, size: int) -> bytes:
    """The first bytes of a log, decompressed as far as that is possible."""
    try:
        return _decompressed(data).read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def _decompressed(data: Buffer) -> io.BufferedIOBase:
    """The bytes, out of gzip where they begin as gzip does, whatever the file is called."""
    source = io.BufferedReader(_Bytes(data), _MAX_LINE)
    if bytes(data[:2]) == _GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=source))
    return source


class _Bytes(io.RawIOBase):
    """A buffer as a file: a mapped log is never copied as a whole."""

    def __init__(self, data: Buffer) -> None:
        self._view = memoryview(data)
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        selection = self._view[self._position : self._position + len(into)]
        into[: len(selection)] = selection
        self._position += len(selection)
        return len(selection)


def matched(entry: ParsedLine) -> tuple[Pattern, dict[str, str]] | None:
    """The wording of an entry, with its fields; None if it says nothing that a wording knows."""
    if _any_words().search(entry.message) is None:
        return None
    prefix = _PREFIX.match(entry.message)
    message = entry.message[prefix.end() :] if prefix else entry.message
    for words, candidates in _by_words().items():
        if words not in message:
            continue
        for pattern in candidates:
            match = pattern.regex.match(message)
            if match is not None:
                parts = {key: text for key, text in match.groupdict().items() if text is not None}
                return pattern, _prefix_fields(prefix) | parts
    return None


def _row(entry: ParsedLine, zone: tzinfo) -> dict[str, Any] | None:
    """The row of an entry without its number; None if it says nothing that a wording knows."""
    result = matched(entry)
    if result is None:
        return None
    pattern, fields = result
    topic, partition = _partition(fields)
    return {
        "time": entry.moment(zone),
        "level": entry.level,
        "kind": pattern.kind,
        "topic": topic,
        "partition": partition,
        "fields": json.dumps({key: _value(key, text) for key, text in fields.items()}),
        "text": entry.message[:_MAX_TEXT],
    }


def _prefix_fields(prefix: re.Match[str] | None) -> dict[str, str]:
    """`Partition t-0 broker=2` and its like, in fields."""
    if prefix is None:
        return {}
    if prefix["partition"] is not None:
        return {"partition": prefix["partition"], "broker": prefix["broker"]}
    inside = prefix["inside"]
    fields = dict(_PAIR.findall(inside))
    first = _FIRST_WORD.match(inside)
    if first is not None and "=" not in first[2]:
        fields.setdefault("partition", first[2])
    for key in ("id", "brokerId", "replicaId"):
        if key in fields:
            fields.setdefault("broker", fields[key])
    return fields


def _partition(fields: dict[str, str]) -> tuple[str | None, int | None]:
    """Topic and partition, taken out of the fields."""
    named = fields.pop("tp", None) or fields.get("partition", "")
    match = _PARTITION.fullmatch(named)
    if match is not None:
        fields.pop("partition", None)
        topic, partition = match["topic"] or match["old_topic"], match["partition"]
        return topic, int(partition or match["old_partition"])
    number = fields.get("number") or named
    if "topic" in fields and number.isdecimal() and len(number) < 10:
        for key in ("number", "partition"):
            fields.pop(key, None)
        return fields.pop("topic"), int(number)
    return None, None


def _value(key: str, text: str) -> object:
    if key in _LISTS:
        return [int(part) for part in text.split(",") if part]
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    return text


def _wanted(row: Mapping[str, Any], filters: Filters) -> bool:
    if row["time"] is not None and not filters.in_time(row["time"]):
        return False
    return row["topic"] is None or filters.takes(row["topic"], row["partition"])
