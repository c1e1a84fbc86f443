"""Reads recordings from files: NDJSON, one event per line, in memory one trace at a time.

A first pass over a file notes for each trace where its lines are (8 bytes a line); a second one
reads the traces, one after the other. Lines of several traces may be mixed.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from conformance.errors import DataError, UserError
from conformance.judge.events import Event, EventReader, Recording
from conformance.tla import ActionPattern, Part, Place, load_trace

__all__ = ["Located", "RecordingReader", "bytes_of", "locate", "read_recordings"]

Tell = Callable[[int, int], None]
"""Told bytes that were read, and how many there are in all."""


@dataclass(slots=True)
class Located:
    """Where a recording is: its lines in a file of NDJSON, or a whole file of ITF.

    It is what travels to whoever judges it: 16 bytes a line.
    """

    path: Path
    name: str
    offsets: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    size: int = 0
    """Bytes."""
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether its lines stand one after the other in the file."""
        return self.numbers[-1] - self.numbers[0] == len(self.numbers) - 1


def read_recordings(
    paths: Sequence[Path], tell: Tell = lambda _done, _all: None
) -> Iterator[Recording]:
    """The recordings of some files, in the order in which they begin.

    What cannot be read makes its trace one with a problem. UserError if a file cannot be opened,
    or if there is no trace at all.
    """
    total, done = bytes_of(paths), 0
    with RecordingReader() as reader:
        for one in locate(paths):
            done += one.size
            tell(done, total)
            yield reader.read(one)


def bytes_of(paths: Sequence[Path]) -> int:
    """How long the files are together. UserError if one cannot be opened."""
    return sum(map(_size, paths))


def locate(paths: Sequence[Path]) -> Iterator[Located]:
    """Where the recordings of some files are, in the order in which they begin; errors as above."""
    count = 0
    for path in paths:
        itf = path.name.endswith(".itf.json")
        for one in (Located(path, path.name, size=_size(path)),) if itf else _index(path):
            count += 1
            yield one
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
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path} cannot be read: {error.strerror}.")


class RecordingReader(AbstractContextManager["RecordingReader"]):
    """Reads located recordings, and shares what stands in many of them. Closing closes its file."""

    def __init__(self) -> None:
        self._events = EventReader()
        self._file: BinaryIO | None = None
        self._path: Path | None = None

    def read(self, one: Located) -> Recording:
        """A recording. UserError if its file cannot be read."""
        if one.path.name.endswith(".itf.json"):
            return _itf(one.path)
        first = f"{one.path}:{one.numbers[0]}"
        if one.problem:
            return Recording(one.name, (), first, f"{one.problem}\n{first}")
        try:
            return self._recording(self._opened(one.path), one, first)
        except OSError as error:
            raise _unreadable(one.path, error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def _opened(self, path: Path) -> BinaryIO:
        if self._file is None or self._path != path:
            if self._file is not None:
                self._file.close()
            self._file, self._path = path.open("rb"), path
        return self._file

    def _recording(self, file: BinaryIO, one: Located, first: str) -> Recording:
        events: list[Event] = []
        problem, skip, prefix = "", 0, _NONE
        for line, number in zip(_lines(file, one), one.numbers, strict=True):
            if not line.startswith(prefix):
                named = _NAMED.match(line)
                skip, prefix = (named.end(), named[0]) if named else (0, _NONE)
            try:
                events.append(self._events.read(line, f"{one.path}:{number}", skip))
            except (DataError, ValueError) as error:
                problem = f"{error}\n{one.path}:{number}"
                break
        return Recording(one.name, tuple(events), first, problem)


_AT_ONCE = 1 << 20
"""So many bytes of a trace are read at once, if they stand together."""


def _lines(file: BinaryIO, one: Located) -> Iterator[bytes]:
    """The lines of a recording."""
    if one.is_whole and one.size <= _AT_ONCE:
        file.seek(one.offsets[0])
        yield from file.read(one.size).removesuffix(b"\n").split(b"\n")
        return
    for offset in one.offsets:
        file.seek(offset)
        yield file.readline()


# --- NDJSON ---------------------------------------------------------------------------------------


class _Head(msgspec.Struct):
    """Whose event a line is; the rest is skipped."""

    trace: str | int | float | bool | msgspec.UnsetType | None = msgspec.UNSET


_HEAD = msgspec.json.Decoder(_Head)


_NAMED = re.compile(rb'\s*\{\s*"trace"\s*:\s*"([^"\\\x00-\x1f]*)"\s*,\s*')
"""How nearly all lines begin: what comes after it does not depend on the trace."""
_NONE = b"\n\n"
"""No line begins like this."""


def _index(path: Path) -> Iterator[Located]:
    """The traces by name; a line that names none is a trace of its own, so that it is counted."""
    found: dict[str, Located] = {}
    offset = 0
    prefix, one = _NONE, Located(path, "")
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.startswith(prefix):  # most lines are of the trace of the line before
                    named = _NAMED.match(line)
                    prefix = named[0] if named else _NONE
                    if not named and not line.strip():
                        offset += len(line)
                        continue
                    one = _located(found, path, line, number)
                one.offsets.append(offset)
                one.numbers.append(number)
                one.size += len(line)
                offset += len(line)
    except OSError as error:
        raise _unreadable(path, error) from error
    yield from found.values()


def _located(found: dict[str, Located], path: Path, line: bytes, number: int) -> Located:
    """Whose line it is. A line that cannot be read belongs to the trace that it names."""
    name, problem = _name(line, number)
    one = found.get(name)
    if one is None:
        one = found[name] = Located(path, name)
    one.problem = one.problem or problem
    return one


def _name(line: bytes, number: int) -> tuple[str, str]:
    named = _NAMED.match(line)
    try:
        if named:
            return named[1].decode(), ""
        head = _HEAD.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not isinstance(error, msgspec.ValidationError):
            return f"line {number}", f"not JSON: {error}"
        return f"line {number}", 'an event is an object with the key "trace"'
    if head.trace is msgspec.UNSET or head.trace is None:
        return f"line {number}", 'an event is an object with the key "trace"'
    return str(head.trace), ""


# --- ITF ------------------------------------------------------------------------------------------


def _itf(path: Path) -> Recording:
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
        return Recording(path.name, tuple(events), source)
    except (DataError, UnicodeDecodeError) as error:
        return Recording(path.name, (), source, f"{error}\n{source}")
    except OSError as error:
        raise _unreadable(path, error) from error
