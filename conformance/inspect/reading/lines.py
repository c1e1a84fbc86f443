"""Server logs into rows: the lines that tell of replication, groups and damage.

The wordings are data (log_patterns.toml): Kafka neither documents its log lines nor keeps them.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Any

from conformance.errors import DataError
from conformance.inspect.reading.folders import Buffer
from conformance.inspect.reading.inputs import Filters

_MAX_LINE = 1 << 20
"""Bytes of a line that are looked at; a longer one is cut there."""
_MAX_TEXT = 2000
_LISTS = frozenset({"isr", "isr_before", "adding", "removing"})
_HEADER = re.compile(
    r"^(?:.{0,80}?)\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3})\] "
    r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (?P<message>.*?)"
    r"(?: \((?P<logger>[\w.$]+)(?::\d+)?\))?\s*$"
)
_PREFIX = re.compile(r"\[(?P<inside>(?![Gg]roup(?:Id)? )[^\[\]]*)\]:? ")
_PAIR = re.compile(r"(\w+)=([^,\s]+)")
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d{1,9})")
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
def _by_words() -> Mapping[bytes, tuple[Pattern, ...]]:
    found: dict[bytes, tuple[Pattern, ...]] = {}
    for pattern in patterns():
        words = pattern.words.encode()
        found[words] = (*found.get(words, ()), pattern)
    return found


@lru_cache(maxsize=1)
def _any_words() -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, _by_words())))


def rows(data: Buffer, path: str, zone: tzinfo, filters: Filters) -> Iterator[dict[str, Any]]:
    """The rows of a log's lines, without broker and path. Raises DataError (a damaged .gz)."""
    for number, line in _lines(data, path):
        if _any_words().search(line) is None:
            continue
        row = _row(line, zone)
        if row is not None and _wanted(row, filters):
            yield {"line": number, **row}


def _lines(data: Buffer, path: str) -> Iterator[tuple[int, bytes]]:
    source: io.BufferedIOBase = io.BufferedReader(_Bytes(data), _MAX_LINE)
    if path.endswith(".gz"):
        source = io.BufferedReader(gzip.GzipFile(fileobj=source))
    number = 0
    try:
        while line := source.readline(_MAX_LINE):
            number += 1
            yield number, line
            while len(line) == _MAX_LINE and not line.endswith(b"\n"):
                line = source.readline(_MAX_LINE)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"line {number + 1}: cannot be decompressed: {error}") from None


class _Bytes(io.RawIOBase):
    """A buffer as a file: a mapped log is never copied as a whole."""

    def __init__(self, data: Buffer) -> None:
        self._view = memoryview(data)
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        taken = self._view[self._position : self._position + len(into)]
        into[: len(taken)] = taken
        self._position += len(taken)
        return len(taken)


def _row(line: bytes, zone: tzinfo) -> dict[str, Any] | None:
    """The row of a line without its number; None if it tells nothing that a pattern knows."""
    header = _HEADER.match(line.decode("utf-8", "backslashreplace"))
    if header is None:
        return None
    prefix = _PREFIX.match(header["message"])
    message = header["message"][prefix.end() :] if prefix else header["message"]
    for words, candidates in _by_words().items():
        if words not in line:
            continue
        for pattern in candidates:
            match = pattern.regex.match(message)
            if match is not None:
                fields = _prefix_fields(prefix["inside"] if prefix else "")
                fields |= {key: text for key, text in match.groupdict().items() if text is not None}
                return _told(header, pattern.kind, fields, zone)
    return None


def _told(header: re.Match[str], kind: str, fields: dict[str, str], zone: tzinfo) -> dict[str, Any]:
    topic, partition = _partition(fields)
    return {
        "time": _time(header["time"], zone),
        "level": header["level"],
        "kind": kind,
        "topic": topic,
        "partition": partition,
        "fields": json.dumps({key: _value(key, text) for key, text in fields.items()}),
        "text": header["message"][:_MAX_TEXT],
    }


def _prefix_fields(inside: str) -> dict[str, str]:
    """`Partition t-0 broker=2` and its like: what the object that logs says of itself."""
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
        return match["topic"], int(match["partition"])
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


def _time(text: str, zone: tzinfo) -> int | None:
    try:
        moment = datetime.fromisoformat(text.replace(",", ".").replace(" ", "T"))
    except ValueError:
        return None
    return round(moment.replace(tzinfo=zone).timestamp() * 1000)


def _wanted(row: Mapping[str, Any], filters: Filters) -> bool:
    if row["time"] is not None and not filters.in_time(row["time"]):
        return False
    return row["topic"] is None or filters.takes(row["topic"], row["partition"])
