"""What tests of all kinds share: given, when, then, and lines of Java."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import ClassVar

from conformance.systems.shared.departing import DepartingPath, Unsayable

_INDENT = "    "
_OUTER = 2


@dataclass(slots=True)
class Lines:
    """A method's body as it grows."""

    _lines: list[str] = field(default_factory=list)
    _depth: int = _OUTER
    _opened: int = 0
    _kept: str = ""

    def add(self, line: str) -> None:
        """A statement."""
        self._lines.append(_INDENT * self._depth + line)

    def comment(self, words: str, *, outer: bool = False) -> None:
        """A comment; an outer one stands at the left, with a line before it."""
        if outer:  # a block that is open belongs to what follows
            place = len(self._lines) if self._depth == _OUTER else self._opened
            self._lines[place:place] = ["", f"{_INDENT * _OUTER}// {words}"]
        else:
            self.add(f"// {words}")

    def open(self, line: str) -> None:
        """A statement whose block follows."""
        if self._depth == _OUTER:
            self._opened = len(self._lines)
        self.add(line)
        self._depth += 1

    def close(self, line: str) -> None:
        """The block's end."""
        self._depth -= 1
        self.add(line)

    def keep(self, line: str) -> None:
        """A statement for later: `kept`."""
        self._kept = line

    def kept(self) -> str:
        """What was kept."""
        return self._kept

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines)


@dataclass(slots=True)
class JUnitScene(ABC):
    """A test as given, when, then: what it says of each step, as what departs sees it."""

    template: ClassVar[str]
    calls: ClassVar[Mapping[str, Set[str]]]
    """By what a test calls, the parts of the template that it needs."""
    oldest: ClassVar[tuple[int, int, int]] = (4, 0, 0)
    """The first release that tests are written for."""

    scene: DepartingPath
    lines: Lines = field(default_factory=Lines, kw_only=True)

    @property
    @abstractmethod
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to this kind of system."""

    def _start(self) -> Iterable[str]:
        """What is done before the first step."""
        return ()

    @abstractmethod
    def _step(self, number: int) -> None:
        """Say a step."""

    @abstractmethod
    def _then(self) -> Iterator[str]:
        """What is asserted at the end."""

    def test(self) -> str:
        """The method's body. Unsayable if nothing of what differs can be asserted."""
        self.lines.comment("given")
        for line in self._start():
            self.lines.add(line)
        for number in range(1, len(self.scene) - 1):
            self._step(number)
        self.lines.comment("when", outer=True)
        self._step(len(self.scene) - 1)
        self.lines.comment("then", outer=True)
        asserted = list(self._then())
        if not asserted:
            names = sorted(name for name, _, _ in self.scene.differing())
            raise Unsayable(f"it has no words for what differs at its end: {', '.join(names)}")
        for line in asserted:
            self.lines.add(line)
        return self.lines.text()

    def parts(self, test: str) -> frozenset[str]:
        """The template's parts that the test calls."""
        return frozenset().union(*(parts for call, parts in self.calls.items() if call in test))
