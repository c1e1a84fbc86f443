"""Scopes: where an expression that is used several times is evaluated once.

An SQL text that is long and may be used again gets a name (`Scope.share`); the formula or
lambda body around it introduces the name by a one-element lambda, which Spark compiles. All
texts are total, so it does not matter that a name is evaluated where TLC would not have come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conformance.tla.spark.formulas import Bind, Formula, Guard, Guards
from conformance.tla.spark.naming import bind

_SHORT = 100


class Scope:
    """The names given so far, innermost scope last; one per compiled formula."""

    def __init__(self) -> None:
        self._count = 0
        self._frames: list[list[tuple[str, str]]] = []
        self.copies = 1
        """Into how many copies the quantifiers around have been unrolled."""
        self.bounded: set[str] = set()
        """Stored integers that the text relies on to be within their bounds; "" for all."""

    def fresh(self) -> str:
        """A variable name that no other name contains."""
        self._count += 1
        return f"v{self._count}_"

    def share(self, text: str) -> str:
        """A name for the text, or the text itself where that is short."""
        if len(text) <= _SHORT or not self._frames:
            return text
        for frame in reversed(self._frames):
            for name, known in frame:
                if known == text:
                    return name
        name = self.fresh()
        self._frames[-1].append((name, text))
        return name

    def share_guards(self, guards: Guards) -> Guards:
        """The guards, long conditions under a name of their own."""
        if sum(len(guard.condition) for guard in guards) <= _SHORT:
            return guards
        return tuple(Guard(self.share(guard.condition), guard.causes) for guard in guards)

    @property
    def depth(self) -> int:
        """How many scopes are open."""
        return len(self._frames)

    @contextmanager
    def at(self, depth: int) -> Iterator[None]:
        """Within: as if only the outermost scopes were open, for what is used in all of them."""
        frames, self._frames = self._frames, self._frames[:depth]
        try:
            yield
        finally:
            self._frames = frames

    def formula(self, compile_body: Callable[[], Formula]) -> Formula:
        """A formula that introduces the names that its parts share."""
        self._frames.append([])
        try:
            body = compile_body()
        finally:
            names = self._frames.pop()
        return Bind(tuple(names), body) if names else body

    def text(self, compile_body: Callable[[], str]) -> str:
        """A lambda's body that introduces the names that its parts share."""
        self._frames.append([])
        try:
            body = compile_body()
        finally:
            names = self._frames.pop()
        return bind(names, body)

    @contextmanager
    def unrolled(self, copies: int) -> Iterator[None]:
        """Within: everything is written that many times more."""
        self.copies *= copies
        try:
            yield
        finally:
            self.copies //= copies
