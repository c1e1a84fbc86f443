"""Writes Python source line by line and remembers which place of the specification each is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from conformance.tla.front.syntax import Location

_INDENT = " "


@dataclass(slots=True)
class SourceLine:
    """A line of generated source; text None: nothing (a place that nobody needed)."""

    depth: int
    text: str | None
    location: Location | None


@dataclass(frozen=True, slots=True)
class Branch:
    """A block that was begun; its first lines, still empty, and where it starts."""

    start: int
    headers: list[SourceLine]
    loop: bool


@dataclass(slots=True)
class _LocationScope(AbstractContextManager[None]):
    """Every expression is written in one: a generator would cost as much as the writing."""

    emitter: Emitter
    location: Location | None

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: object) -> None:
        self._swap()

    def _swap(self) -> None:
        self.emitter.location, self.location = self.location, self.emitter.location


class TooLong(Exception):
    """The function has grown beyond the emitter's limit."""


@dataclass(slots=True)
class Emitter:
    """The body of one generated function. Blocks nest; what a block knows ends with it.

    `known` holds the keys of the lazy values that are computed for certain at this point.
    """

    lines: list[SourceLine] = field(default_factory=list)
    depth: int = 1
    loops: int = 0
    function: int = 0
    location: Location | None = None
    known: list[set[object]] = field(default_factory=lambda: [set()])
    counter: int = 0
    limit: int | None = None

    def fresh(self, prefix: str) -> str:
        """A name that is new in this function."""
        self.counter += 1
        return f"{prefix}_{self.counter}"

    def line(self, text: str) -> None:
        """One statement; TooLong if there are more than the limit."""
        if self.limit is not None and len(self.lines) > self.limit:
            raise TooLong
        self.lines.append(SourceLine(self.depth, text, self.location))

    def placeholder(self) -> SourceLine:
        """A statement that may be filled in later."""
        self.lines.append(SourceLine(self.depth, None, self.location))
        return self.lines[-1]

    @contextmanager
    def block(self, header: str, *, loop: bool = False) -> Iterator[None]:
        """`header` and an indented block; a `pass` if it stays empty."""
        self.line(header)
        start = len(self.lines)
        self.depth += 1
        self.loops += loop
        self.known.append(set())
        try:
            yield
            if all(line.text is None for line in self.lines[start:]):
                self.line("pass")
        finally:
            self.known.pop()
            self.loops -= loop
            self.depth -= 1

    def at(self, location: Location) -> AbstractContextManager[None]:
        """Lines written inside belong to that place."""
        return _LocationScope(self, location)

    @contextmanager
    def nested_function(self, header: str) -> Iterator[None]:
        """A function inside this one: loops start again, and it has its own variables."""
        loops, function = self.loops, self.function
        self.counter += 1
        self.loops, self.function = 0, self.counter
        try:
            with self.block(header):
                yield
        finally:
            self.loops, self.function = loops, function

    def open(self, headers: int = 1, *, loop: bool = False) -> Branch:
        """Begins a block whose headers are filled in later, if it turns out to be needed."""
        start = len(self.lines)
        lines = [self.placeholder() for _ in range(headers)]
        self.depth += 1
        self.loops += loop
        self.known.append(set())
        return Branch(start, lines, loop)

    def written(self, branch: Branch) -> bool:
        """Whether any statement has been written since the branch began."""
        return any(line.text is not None for line in self.lines[branch.start :])

    def close(self, branch: Branch) -> None:
        """Ends the block."""
        self.known.pop()
        self.loops -= branch.loop
        self.depth -= 1

    def drop(self, branch: Branch) -> None:
        """Forgets a branch in which nothing was written."""
        del self.lines[branch.start :]

    def is_known(self, key: object) -> bool:
        """Whether the lazy value has certainly been computed."""
        return any(key in known for known in self.known)

    def know(self, key: object) -> None:
        """From here to the end of the block the lazy value is computed."""
        self.known[-1].add(key)

    def source(self, header: str) -> tuple[str, list[Location | None]]:
        """The function's source and the place of each of its lines (index 0 is line 1)."""
        written = [line for line in self.lines if line.text is not None]
        texts = [header, *(_INDENT * line.depth + (line.text or "") for line in written)]
        return "\n".join(texts) + "\n", [None, *(line.location for line in written)]
