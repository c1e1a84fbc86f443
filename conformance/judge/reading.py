"""Reads recordings from files: NDJSON, one event per line, in memory one trace at a time.

A first pass over a file notes for each trace where its lines are (8 bytes a line); a second one
reads the traces, one after the other. Lines of several traces may be mixed.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from conformance.errors import DataError, UserError
from conformance.judge.events import Event, Recording, read_event
from conformance.tla import ActionPattern, Part, Place, load_trace

__all__ = ["read_recordings"]

Tell = Callable[[int, int], None]
"""Told bytes that were read, and how many there are in all."""


def read_recordings(
    paths: Sequence[Path], tell: Tell = lambda _done, _all: None
) -> Iterator[Recording]:
    """The recordings of some files, in the order in which they begin.

    What cannot be read makes its trace one with a problem. UserError if a file cannot be opened,
    or if there is no trace at all.
    """
    total, done, count = sum(map(_size, paths)), 0, 0
    for path in paths:
        reader = _itf if path.name.endswith(".itf.json") else _ndjson
        for recording, read in reader(path):
            count += 1
            tell(done + read, total)
            yield recording
        done += _size(path)
    if not count:
        names = ", ".join(map(str, paths))
        raise UserError(
            f"No trace was found in {names}: nothing was read. docs/traces.md shows what an event "
            "looks like."
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


# --- NDJSON ---------------------------------------------------------------------------------------


class _Head(msgspec.Struct):
    """Whose event a line is; the rest is skipped."""

    trace: str | int | float | bool | msgspec.UnsetType | None = msgspec.UNSET


_HEAD = msgspec.json.Decoder(_Head)


@dataclass(slots=True)
class _Lines:
    """Where the lines of one trace are."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    problem: str = ""


def _ndjson(path: Path) -> Iterator[tuple[Recording, int]]:
    try:
        with path.open("rb") as file:
            index = _index(file)
            read = 0
            for name, lines in index.items():
                recording, size = _recording(file, path, name, lines)
                read += size
                yield recording, read
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def _index(file: BinaryIO) -> dict[str, _Lines]:
    """The traces by name; a line that is no event is a trace of its own, so that it is counted."""
    found: dict[str, _Lines] = {}
    offset = 0
    for number, line in enumerate(file, 1):
        if line.strip():
            name, problem = _name(line, number)
            lines = found.setdefault(name, _Lines())
            lines.offsets.append(offset)
            lines.numbers.append(number)
            lines.problem = lines.problem or problem
        offset += len(line)
    return found


def _name(line: bytes, number: int) -> tuple[str, str]:
    try:
        head = _HEAD.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not isinstance(error, msgspec.ValidationError):
            return f"line {number}", f"not JSON: {error}"
        return f"line {number}", 'an event is an object with the key "trace"'
    if head.trace is msgspec.UNSET or head.trace is None:
        return f"line {number}", 'an event is an object with the key "trace"'
    return str(head.trace), ""


def _recording(file: BinaryIO, path: Path, name: str, lines: _Lines) -> tuple[Recording, int]:
    events: list[Event] = []
    problem = f"{lines.problem}\n{path}:{lines.numbers[0]}" if lines.problem else ""
    size = 0
    for offset, number in zip(lines.offsets, lines.numbers, strict=True):
        if problem:
            break
        file.seek(offset)
        line = file.readline()
        size += len(line)
        try:
            events.append(read_event(json.loads(line), f"{path}:{number}"))
        except (DataError, ValueError) as error:
            problem = f"{error}\n{path}:{number}"
    return Recording(name, tuple(events), f"{path}:{lines.numbers[0]}", problem), size


# --- ITF ------------------------------------------------------------------------------------------


def _itf(path: Path) -> Iterator[tuple[Recording, int]]:
    """One file is one trace, its states complete, its steps numbered."""
    source = f"{path}:1"
    try:
        trace = load_trace(path.read_text(encoding="utf-8"))
        if not trace.states:
            raise DataError("the file has no state")
        events = []
        for number, state in enumerate(trace.states):
            action = trace.actions[number - 1] if number else None
            if number and action is None:
                raise DataError(f'state {number} does not say its action (#meta "action")')
            patterns = (ActionPattern(action.name, action.args),) if action else ()
            parts = [Part(Place(n), v) for n, v in zip(trace.variables, state, strict=True)]
            events.append(Event(patterns, (), tuple(parts), number, source=source))
        recording = Recording(path.name, tuple(events), source)
    except (DataError, UnicodeDecodeError) as error:
        recording = Recording(path.name, (), source, f"{error}\n{source}")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    yield recording, _size(path)
