"""Reads recordings from files: NDJSON, one event per line, in memory one trace at a time.

A first pass over a file notes for each trace where its lines are, those that follow one another
as one *run*; a second one reads the traces, one after the other. Lines of several traces may be
mixed.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, cast

import msgspec

from conformance.errors import DataError, UserError
from conformance.inputs import open_plain, read_text
from conformance.judge.events import Event, EventReader, Recording
from conformance.printable import bounded, path_text
from conformance.tla import ActionPattern, ObservedPart, Place, load_trace

__all__ = [
    "LineRun",
    "RecordingLocation",
    "RecordingReader",
    "bytes_of",
    "locate",
    "read_recordings",
]

Tell = Callable[[int, int], None]
"""Told bytes that were read, and how many there are in all."""


class LineRun(NamedTuple):
    """Lines of one trace that follow one another in a file."""

    offset: int
    size: int
    """Bytes."""
    first: int
    """The number of the first line, from 1."""
    lines: int

    @property
    def numbers(self) -> range:
        """The numbers of its lines."""
        return range(self.first, self.first + self.lines)


@dataclass(slots=True)
class RecordingLocation:
    """Where a recording is: its lines in a file of NDJSON, or a whole file of ITF.

    It is what travels to whoever judges it: 32 bytes a run.
    """

    path: Path
    name: str
    size: int = 0
    """Bytes."""
    lines: int = 0
    problem: str = ""
    _runs: array[int] = field(default_factory=lambda: array("q"))

    def add(self, run: LineRun) -> None:
        """Some more of its lines."""
        self._runs.extend(run)
        self.size += run.size
        self.lines += run.lines

    def runs(self) -> Iterator[LineRun]:
        """Its lines, in the order of the file."""
        numbers = iter(self._runs)
        return map(LineRun, numbers, numbers, numbers, numbers)


def read_recordings(
    paths: Sequence[Path], tell: Tell = lambda _done, _all: None
) -> Iterator[Recording]:
    """The recordings of some files, in the order in which they begin.

    What cannot be read makes its trace one with a problem, and a file that cannot be read is one
    such trace. UserError if that is all of them, or if there is no trace at all.
    """
    total, done = bytes_of(paths), 0
    with RecordingReader() as reader:
        for location in locate(paths):
            done += location.size
            tell(done, total)
            yield reader.read(location)


def bytes_of(paths: Sequence[Path]) -> int:
    """The total size of the readable files, in bytes."""
    return sum(path.stat().st_size for path in paths if path.is_file())


def locate(paths: Sequence[Path]) -> Iterator[RecordingLocation]:
    """Where the recordings of some files are, in the order in which they begin; errors as above."""
    count, unreadable = 0, list[DataError]()
    for path in paths:
        try:
            for location in _itf_file(path) if _is_itf(path) else _index(path):
                count += 1
                yield location
        except DataError as error:
            unreadable.append(error)
            yield RecordingLocation(path, path_text(path), problem=str(error))
    if not count:
        if unreadable:
            raise unreadable[0]
        names = ", ".join(map(path_text, paths))
        raise UserError(
            f"No trace was found in {names}: nothing was read. docs/traces.md shows what an event "
            "looks like."
        )


def _is_itf(path: Path) -> bool:
    return path.name.endswith((".itf.json", ".itf.json.gz"))


class RecordingReader(AbstractContextManager["RecordingReader"]):
    """Reads located recordings, and shares what stands in many of them.

    Closing closes its file; what it shares stays, and it may be opened again.
    """

    def __init__(self) -> None:
        self._events = EventReader()
        self._file: BinaryIO | None = None
        self._path: Path | None = None

    def read(self, location: RecordingLocation) -> Recording:
        """A recording, with a problem if it cannot be read."""
        source = path_text(location.path)
        if location.problem:
            first = next((f"{source}:{run.first}" for run in location.runs()), source)
            return Recording(location.name, (), first, f"{location.problem}\n{first}")
        return _itf(location.path) if _is_itf(location.path) else self._recording(location)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self, path: Path) -> BinaryIO:
        if self._file is None or self._path != path:
            if self._file is not None:
                self._file.close()
            self._file, self._path = open_plain(path), path
        return self._file

    def _recording(self, location: RecordingLocation) -> Recording:
        path, runs = path_text(location.path), tuple(location.runs())
        first = f"{path}:{runs[0].first}"
        file = self._opened(location.path)
        events: list[Event] = []
        try:
            for run in runs:
                self._read_run(file, run, events)
        except (DataError, ValueError) as error:
            number = next(islice(chain(*(run.numbers for run in runs)), len(events), None))
            problem = f"{bounded(str(error))}\n{path}:{number}"
            return Recording(location.name, tuple(events), first, problem)
        lines = tuple([run.numbers for run in runs])
        return Recording(location.name, tuple(events), first, "", path, lines)

    def _read_run(self, file: BinaryIO, run: LineRun, events: list[Event]) -> None:
        """Append the run's events, up to the first that cannot be read."""
        prefix, rests = _lines(file, run)
        known = self._events.known(rests) if prefix else [None]
        if all(known):
            events += cast("list[Event]", known)
            return
        for rest in rests:
            events.append(self._events.read(prefix, rest))


_AT_ONCE = 1 << 20
"""The number of bytes that are read at once, approximately."""


def _lines(file: BinaryIO, run: LineRun) -> tuple[bytes, list[bytes]]:
    """What names the trace at the beginning of all lines of a run, and the rest of each line.

    Nothing, and the lines, if they do not begin so.
    """
    file.seek(run.offset)
    text = file.read(run.size).removesuffix(b"\n")
    named = _NAMED.match(text)
    prefix = named[0] if named else b""
    rests = text[len(prefix) :].split(b"\n" + prefix)
    if len(rests) != run.lines:
        raise DataError("the file was changed while it was read")
    return prefix, rests


# --- NDJSON ---------------------------------------------------------------------------------------


class _LineHead(msgspec.Struct):
    """Whose event a line is; the rest is skipped."""

    trace: str | int | float | bool | msgspec.UnsetType | None = msgspec.UNSET


_HEAD = msgspec.json.Decoder(_LineHead)


_NAMED = re.compile(
    rb'[ \t\r]*\{[ \t\r]*"trace"[ \t\r]*:[ \t\r]*"([^"\\\x00-\x1f]*)"[ \t\r]*,[ \t\r]*'
)
"""The usual beginning of a line; the rest of the line does not depend on the trace."""
_NONE = b"\n\n"
"""No line begins like this."""


def _index(path: Path) -> Iterator[RecordingLocation]:
    """The traces by name; a line without a name is a separate trace, so that it is counted."""
    locations: dict[str, RecordingLocation] = {}
    with open_plain(path) as file:
        for line, run in _runs(file):
            if line.strip():
                _located(locations, path, line, run.first).add(run)
    yield from locations.values()


def _runs(file: BinaryIO) -> Iterator[tuple[bytes, LineRun]]:
    """Lines that begin alike, naming one trace, with the first of them; any other line alone."""
    line, prefix, begin, first = b"", _NONE, 0, 1
    end, number = 0, 0
    for number, following in enumerate(file, 1):
        if not following.startswith(prefix) or end - begin > _AT_ONCE:
            if end:
                yield line, LineRun(begin, end - begin, first, number - first)
            named = _NAMED.match(following)
            line, prefix, begin, first = following, named[0] if named else _NONE, end, number
        end += len(following)
    if end:
        yield line, LineRun(begin, end - begin, first, number + 1 - first)


def _located(
    locations: dict[str, RecordingLocation], path: Path, line: bytes, number: int
) -> RecordingLocation:
    """Whose line it is. A line that cannot be read belongs to the trace that it names."""
    name, problem = _name(line, number)
    location = locations.get(name)
    if location is None:
        location = locations[name] = RecordingLocation(path, name)
    location.problem = location.problem or problem
    return location


def _name(line: bytes, number: int) -> tuple[str, str]:
    named = _NAMED.match(line)
    try:
        name = named[1].decode() if named else _HEAD.decode(line).trace
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not isinstance(error, msgspec.ValidationError):
            return f"line {number}", f"not JSON: {error}"
        return f"line {number}", 'an event is an object with the key "trace"'
    if name is msgspec.UNSET or name is None:
        return f"line {number}", 'an event is an object with the key "trace"'
    text = str(name)
    if len(text) > LONGEST_NAME:
        return f"line {number}", (
            f"the name of the trace has {len(text):,} characters, more than {LONGEST_NAME:,}"
        )
    return text, ""


LONGEST_NAME = 1000
"""Characters of a trace's name, which every message about it says."""


# --- ITF ------------------------------------------------------------------------------------------


def _itf_file(path: Path) -> Iterator[RecordingLocation]:
    with open_plain(path):  # or it is none
        yield RecordingLocation(path, path_text(path.name), size=path.stat().st_size)


def _itf(path: Path) -> Recording:
    """One file is one trace, its states complete, its steps numbered."""
    name = path_text(path.name)
    source = f"{path_text(path)}:1"
    try:
        trace = load_trace(read_text(path))
        if not trace.states:
            raise DataError("the file has no state")
        events = []
        for number, state in enumerate(trace.states):
            action = trace.actions[number - 1] if number else None
            if number and action is None:
                raise DataError(f'state {number} does not say its action (#meta "action")')
            patterns = (ActionPattern(action.name, action.args),) if action else ()
            parts = [ObservedPart(Place(n), v) for n, v in zip(trace.variables, state, strict=True)]
            events.append(Event(patterns, (), tuple(parts), number, source=source))
        return Recording(name, tuple(events), source)
    except DataError as error:
        return Recording(name, (), source, f"{bounded(str(error))}\n{source}")
