"""The log of a client: the lines that `kconform history` reads (docs/history.md).

Each line is written at once and whole, so that the file of a client that was killed can be read.
Times are `time.monotonic_ns`, which is one clock with Java's `System.nanoTime` on one machine.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

CONFIGURE = "configure"
"""The operation of a file's first line, which says how its client was configured."""


class HistoryLog:
    """A file of operations of one process at a time. Use as a context manager."""

    def __init__(self, path: Path, process: str) -> None:
        self.process = process
        self._client = process
        self._instances = 1
        # One write for a line: a file that is shared with nobody, and is never half of a line.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._open: BegunOperation | None = None
        self._waiting: list[tuple[str, str, Mapping[str, object]]] = []

    def __enter__(self) -> HistoryLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def renew(self) -> None:
        """What follows is of a new instance of the client: a process of its own."""
        self._instances += 1
        self.process = f"{self._client}.{self._instances}"

    def begin(self, f: str, **fields: object) -> BegunOperation:
        """An operation that may never end."""
        self._open = BegunOperation(self, f, time.monotonic_ns())
        self._write(self._line("invoke", f, fields))
        return self._open

    def event(self, f: str, *, kind: str = "ok", **fields: object) -> None:
        """An operation of one line. Amid another one, as of a callback, it waits for its end."""
        if self._open is None:
            self._write(self._line(kind, f, fields))
        else:
            self._waiting.append((kind, f, fields))

    def ended(self, lines: Sequence[tuple[str, Mapping[str, object]]], of: BegunOperation) -> None:
        """Say how the open operation ended: a line for each outcome that parts of it had."""
        for kind, fields in lines:
            self._write({**self._line(kind, of.f, fields), "start": of.start})
        self._open = None
        for waiting in self._waiting:
            self._write(self._line(*waiting))
        self._waiting.clear()

    def _line(self, kind: str, f: str, fields: Mapping[str, object]) -> dict[str, object]:
        line = {"process": self.process, "type": kind, "f": f, "time": time.monotonic_ns()}
        return {**line, **{name: value for name, value in fields.items() if value != ""}}

    def _write(self, line: Mapping[str, object]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")


class BegunOperation:
    """An operation that has begun."""

    def __init__(self, log: HistoryLog, f: str, start: int) -> None:
        self._log = log
        self.f = f
        self.start = start

    def end(self, kind: str, **fields: object) -> None:
        """All of it has one outcome."""
        self._log.ended([(kind, fields)], self)

    def end_in_parts(self, *parts: tuple[str, Mapping[str, object]]) -> None:
        """Its parts have different outcomes."""
        self._log.ended(parts, self)


def key_of(topic: str, partition: int) -> str:
    """A partition's name in a history."""
    return f"{topic}-{partition}"


def sent(topic: str, partition: int, value: str, offset: int | None = None) -> dict[str, object]:
    """A record in a line."""
    record: dict[str, object] = {"key": key_of(topic, partition), "value": value}
    return record if offset is None else {**record, "offset": offset}
