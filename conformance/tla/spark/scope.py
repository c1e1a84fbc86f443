"""Where in the formula the compiler is: which lambdas are around, how often it is unrolled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.tla.spark.sql import Sql


class FormulaScope:
    """One per compiled formula."""

    def __init__(self) -> None:
        self._depth = 0
        self.copies = 1
        """Into how many copies the quantifiers around have been unrolled."""
        self.bounded: set[Sql | None] = set()
        """Stored integers that the text relies on to be within their bounds; None for all."""

    @contextmanager
    def binder(self) -> Iterator[str]:
        """A lambda's variable, and within: that lambda's body.

        The name tells the depth, so that the same expression in two places has the same text.
        """
        name = f"x{self._depth}_"
        self._depth += 1
        try:
            yield name
        finally:
            self._depth -= 1

    @contextmanager
    def unrolled(self, copies: int) -> Iterator[None]:
        """Within: everything is written that many times more."""
        self.copies *= copies
        try:
            yield
        finally:
            self.copies //= copies
