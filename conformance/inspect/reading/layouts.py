"""How a line of a server log is laid out: the table of layouts, and those that a user declares.

A layout takes a line apart into time, level and message. Layouts are data (log_layouts.toml): a
conversion pattern of log4j, or the keys of a JSON object; a user may declare either, or a regular
expression. All of them give the same `ParsedLine`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Any

from conformance.errors import UserError
from conformance.inspect.reading.conversion import converted
from conformance.inspect.reading.inputs import time_zone

PARTS = ("time", "level", "logger", "message")
"""What may be taken out of a line. A declared layout must say where the message is."""
_LEVELS = {"WARNING": "WARN", "SEVERE": "ERROR", "CRITICAL": "FATAL"}
_NUMBERED_LEVELS = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
"""By syslog's number, which GELF has."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A line taken apart. What it lacks is ''."""

    time: str
    level: str
    message: str
    layout: str
    """The name of the layout."""
    time_format: str = ""
    """strptime's; '' where the time has one of the usual forms."""
    zone: str = ""
    """The zone that the layout itself states."""
    partial: bool = False
    """Whether the line goes on in the next one."""

    def moment(self, zone: tzinfo) -> int | None:
        """Milliseconds since 1970; None without a date. `zone` is for a time that has none."""
        own = time_zone(self.zone) if self.zone else zone
        return milliseconds(self.time, own, self.time_format)


@dataclass(frozen=True, slots=True)
class TextLayout:
    """A layout that a regular expression recognises, with groups named as in PARTS."""

    name: str
    regex: re.Pattern[str]
    time_format: str = ""
    zone: str = ""

    def entry(self, line: str) -> ParsedLine | None:
        """The line taken apart; None if it is laid out otherwise."""
        match = self.regex.match(line)
        if match is None:
            return None
        parts = match.groupdict("")
        return ParsedLine(
            parts.get("time", ""),
            _level(parts.get("level", "")),
            parts["message"],
            self.name,
            self.time_format,
            self.zone,
            bool(parts.get("partial")),
        )


@dataclass(frozen=True, slots=True)
class JsonLayout:
    """A layout of one JSON object a line."""

    name: str
    keys: Mapping[str, tuple[str, ...]]
    """For each of PARTS the keys that may hold it; the first that is there counts."""

    def entry(self, line: str) -> ParsedLine | None:
        """The line taken apart; None if it is laid out otherwise.

        An object with neither level nor logger has the level '': it wraps a line.
        """
        body = _object(line)
        message = self._part("message", body)
        if not isinstance(message, str):
            return None
        level = self._part("level", body)
        if isinstance(level, int) and 0 <= level < len(_NUMBERED_LEVELS):
            level = _NUMBERED_LEVELS[level]
        if level is None and self._part("logger", body) is not None:
            level = "INFO"
        return ParsedLine(
            _time_text(self._part("time", body)),
            _level(level) if isinstance(level, str) else "",
            message.rstrip("\r\n"),
            self.name,
            partial="stream" in body and not message.endswith("\n"),  # Docker cuts at 16 KB
        )

    def _part(self, part: str, body: Mapping[str, Any]) -> object:
        for key in self.keys.get(part, ()):
            value = body.get(key)
            if value is None and "." in key:
                value = _nested(body, key.split("."))
            if value is not None and (part != "message" or isinstance(value, str)):
                return value
        return None


Layout = TextLayout | JsonLayout


def _object(line: str) -> Mapping[str, Any]:
    if not line.startswith("{"):
        return {}
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _nested(body: object, path: Sequence[str]) -> object:
    for step in path:
        if not isinstance(body, dict):
            return None
        body = body.get(step)
    return body


def _time_text(value: object) -> str:
    """A time of JSON as text; log4j2's `instant` has seconds and nanoseconds apart."""
    if isinstance(value, dict):
        seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        whole = isinstance(seconds, int) and isinstance(nanos, int)
        return f"{seconds}.{nanos:09d}" if whole else ""
    return str(value) if isinstance(value, str | int | float) else ""


def _level(text: str) -> str:
    upper = text.upper()
    return _LEVELS.get(upper, upper)


# Times

_EPOCH = re.compile(r"\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19}")
_COMPACT = re.compile(r"(\d{8})(\d{6})(\d{3})")
_NO_YEAR = 1900
"""What strptime takes for the year of a time without a date."""


def milliseconds(text: str, zone: tzinfo, time_format: str = "") -> int | None:
    """The moment that a text names, by its own zone or else `zone`; None if it has no date."""
    if _EPOCH.fullmatch(text):
        seconds = text.partition(".")[0]
        return round(float(text) * 1000) if len(seconds) == 10 else int(text[:13])
    try:
        moment = _parsed(text, time_format)
        if moment.year == _NO_YEAR:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _parsed(text: str, time_format: str) -> datetime:
    if time_format:
        return datetime.strptime(text, time_format)
    if text[2:3] == " ":
        seconds, _, fraction = text.replace(",", ".").partition(".")
        moment = datetime.strptime(seconds, "%d %b %Y %H:%M:%S")
        return moment.replace(microsecond=int(f"{fraction:0<6}"[:6]))
    compact = _COMPACT.fullmatch(text)
    if compact is not None:
        text = f"{compact[1]}T{compact[2]}.{compact[3]}"
    text = re.sub(r" ?(?:UTC|GMT)$", "Z", text.replace("/", "-"))
    return datetime.fromisoformat(re.sub(r" (?=[+-]\d\d:?(?:\d\d)?$|Z$)", "", text))


# The table, and what a user declares


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("log_layouts.toml").read_text("utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=1)
def known_layouts() -> tuple[Layout, ...]:
    """The table of layouts."""
    return tuple(
        _of_pattern(row["name"], row["pattern"])
        if "pattern" in row
        else JsonLayout(row["name"], {part: tuple(row[part]) for part in PARTS})
        for row in _table()["layout"]
    )


@lru_cache(maxsize=1)
def wrappers() -> tuple[TextLayout, ...]:
    """What programs put in front of the lines that they pass on."""
    return tuple(
        TextLayout(row["name"], re.compile(row["regex"] + "$", re.DOTALL))
        for row in _table()["wrapper"]
    )


def layouts_of(declarations: Sequence[str]) -> tuple[Layout, ...]:
    """The layouts that a user declares; all known ones where none is declared. Raises UserError."""
    return tuple(map(declared, declarations)) or known_layouts()


@lru_cache(maxsize=64)
def declared(text: str) -> Layout:
    """The layout that a user declares. Raises UserError.

    That is the name of a known one, a conversion pattern, a regular expression with a group
    `message`, or `json:message=KEY,time=KEY,level=KEY`.
    """
    for layout in known_layouts():
        if layout.name == text:
            return layout
    if text.startswith("json:"):
        return _of_keys(text)
    if "(?P<" in text:
        return _of_regex(text)
    if "%" in text:
        return _of_pattern(text, text)
    names = ", ".join(layout.name for layout in known_layouts())
    raise UserError(
        f"--log-layout {text}: there is no layout of that name. Give one of {names}; or a pattern "
        "of log4j such as '%d %p %m (%c)%n'; or a regular expression with the groups time, level "
        "and message; or json:message=KEY,time=KEY,level=KEY."
    )


def _of_pattern(name: str, pattern: str) -> TextLayout:
    try:
        line_pattern = converted(pattern)
        if line_pattern.zone:
            time_zone(line_pattern.zone)
    except UserError as error:
        raise UserError(f"--log-layout {name}: {error}") from error
    return TextLayout(name, line_pattern.regex, line_pattern.time_format, line_pattern.zone)


def _of_regex(text: str) -> TextLayout:
    try:
        regex = re.compile(text, re.DOTALL)
    except re.error as error:
        raise UserError(f"--log-layout {text}: no regular expression: {error}.") from error
    if "message" not in regex.groupindex:
        raise UserError(
            f"--log-layout {text}: the expression has no group (?P<message>...). It may also have "
            "(?P<time>...) and (?P<level>...)."
        )
    return TextLayout(text, regex)


def _of_keys(text: str) -> JsonLayout:
    pairs = [pair.partition("=") for pair in text.removeprefix("json:").split(",")]
    keys = {part.strip(): (key.strip(),) for part, _, key in pairs if key.strip()}
    if "message" not in keys or not set(keys) <= set(PARTS) or len(keys) < len(pairs):
        raise UserError(
            f"--log-layout {text}: a layout of JSON lines looks like "
            "json:message=msg,time=ts,level=severity,logger=class; message must be there."
        )
    return JsonLayout(text, keys)
